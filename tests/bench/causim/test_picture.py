"""A question drawn: who is set, reached and changed, worked out by hand; the page as a browser lays it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from calibrant.bench.causim.benchmark import BENCHMARK
from calibrant.bench.causim.items import question_picture
from calibrant.bench.causim.pictures import Mark, layered_svg, layered_text
from calibrant.bench.cli import main
from calibrant.bench.pages.page import standalone_svg
from calibrant.dsl.causim.item import CausimItem, Labels, Sealed, Task
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.records import write_pool
from tests.support.browser import needs_chromium, pressed

PROGRAM = """
import random

def U_A():
    return random.choice(["hot", "<b>"])

def U_B():
    return random.choice([0, 1, 2])

def U_C():
    return random.choice([0, 1])

def U_D():
    return random.choice([0, 1])

def f_A(u):
    return u

def f_B(a, u):
    return u if a == "hot" else 5

def f_C(u):
    return u

def f_D(a, b, c, u):
    return b + c + u if a == "hot" else c + u

def run_once(seed=None):
    u_a = U_A()
    a = f_A(u_a)
    u_b = U_B()
    b = f_B(a, u_b)
    u_c = U_C()
    c = f_C(u_c)
    u_d = U_D()
    d = f_D(a, b, c, u_d)
    return {"a": a, "b": b, "c": c, "d": d}
"""
WORLD = {"U_A": '"hot"', "U_B": "0", "U_C": "1", "U_D": "1"}
# A = hot, B = 0, C = 1, D = 0 + 1 + 1; under do(B := 2) D is 4, under do(A := "<b>") B is 5 and D stays 2
SEEN = {"A": '"hot"', "B": "0", "C": "1", "D": "2"}
NOISE = tuple(WORLD)
SET_B = Question("counterfactual", {"U_C": "1"}, ("U_A", "U_B", "U_D"), {"B": "2"}, SEEN)
SET_A = Question("counterfactual", {}, NOISE, {"A": '"<b>"'}, SEEN)
SEEN_ONLY = Question("abduction", {}, NOISE, {}, SEEN)
TEXT = """\
set-b
counterfactual-deterministic; program of 4 nodes; U ? n: unknown noise with n values; 12 worlds agree with the fixed \
noise, 1 fit; answers: 1 right

node   from     noise    seen   do    noise was  value  under do  changed
A      -        U_A ? 2  "hot"        "hot"      "hot"  "hot"
. B    A        U_B ? 3  0      := 2  0          0      2         yes
C      -        U_C = 1  1            1          1      1
. . D  A, B, C  U_D ? 2  2            1          2      4         yes"""


def item(name: str, question: Question, *, world: bool = True) -> CausimItem:
    return CausimItem(name, Task(PROGRAM, question, "deterministic"), Labels(1, False), Sealed(WORLD if world else {}))


def marks(question: Question, *, reveal_sealed: bool) -> dict[str, set[Mark]]:
    return {
        node.name: set(node.marks)
        for node in question_picture(item("x", question), reveal_sealed=reveal_sealed).nodes
        if node.marks
    }


def test_what_is_set_reached_and_changed_is_marked() -> None:
    assert marks(SET_B, reveal_sealed=False) == {"B": {Mark.SET}, "D": {Mark.REACHED}}
    assert marks(SET_B, reveal_sealed=True) == {"B": {Mark.SET}, "D": {Mark.REACHED, Mark.CHANGED}}
    assert marks(SET_A, reveal_sealed=True) == {"A": {Mark.SET}, "B": {Mark.REACHED, Mark.CHANGED}, "D": {Mark.REACHED}}
    assert marks(SEEN_ONLY, reveal_sealed=True) == {}


def test_the_text_has_graph_noise_do_and_change() -> None:
    assert layered_text(question_picture(item("set-b", SET_B), reveal_sealed=True)) == TEXT


def test_without_gold_no_value_is_shown_that_the_question_does_not_tell() -> None:
    text = layered_text(question_picture(item("x", SET_A), reveal_sealed=False))
    assert text.splitlines()[3].split() == ["node", "from", "noise", "seen", "do"]
    assert "fit" not in text.splitlines()[1]
    plain = question_picture(item("x", SET_A), reveal_sealed=False)
    assert [node.value for node in plain.nodes] == [':= "<b>"', "0", "1", "2"]
    assert {key for node in plain.nodes for key in node.facts or {}} == {"seen", "do"}


def test_where_the_world_is_not_known_one_that_fits_is_shown() -> None:
    alone = question_picture(item("x", SET_B, world=False), reveal_sealed=True)
    assert [(node.facts or {})["value"] for node in alone.nodes] == ['"hot"', "0", "1", "2"]
    never = Question("counterfactual", {}, NOISE, {"B": "2"}, {**SEEN, "D": "9"})
    assert "value" not in (question_picture(item("x", never, world=False), reveal_sealed=True).nodes[0].facts or {})


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(path, [item("set-b", SET_B), item("set-a", SET_A)])
    return path


def test_show_draws_above_the_prompt(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pool), "set-b", "--gold"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(TEXT + "\n\nA system of variables is described below.")
    assert json.loads(printed[printed.index('\n{\n "sealed"') :])["sealed"]["world"]["U_A"] == "hot"
    assert main(["show", str(pool), "set-b"]) == 0
    assert "under do" not in capsys.readouterr().out


def test_a_page_is_made_of_a_question(pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["show", str(pool), "set-a", "--html", str(tmp_path / "p.html")]) == 0
    page = (tmp_path / "p.html").read_text(encoding="utf-8")
    assert "<b>&quot;" not in page
    assert "&lt;b&gt;" in page
    assert "The sealed world" not in page
    assert "//" not in page.replace("http://www.w3.org/2000/svg", "")
    assert main(["show", str(pool), "set-a", "--gold", "--html", str(tmp_path / "gold.html")]) == 0
    assert "The sealed world" in (tmp_path / "gold.html").read_text(encoding="utf-8")


LAID_OUT = """
const boxes = [...document.querySelectorAll('.node .box')].map(box => box.getBoundingClientRect());
const noise = [...document.querySelectorAll('.noise rect')].map(box => box.getBoundingClientRect());
const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
const all = [...boxes, ...noise];
said.push(boxes.length, noise.length, document.querySelectorAll('path.arrow').length);
said.push(document.querySelectorAll('.arrow.cut').length);
said.push(all.filter((a, i) => all.some((b, j) => i < j && meet(a, b))).length);
said.push(all.filter(a => a.left < 0 || a.right > document.documentElement.clientWidth).length);
const texts = [...document.querySelectorAll('.node')].flatMap(node => {
  const box = node.querySelector('.box').getBoundingClientRect();
  return [...node.querySelectorAll('.name, .value')].filter(text => {
    const own = text.getBoundingClientRect();
    return own.left < box.left || own.right > box.right || own.top < box.top || own.bottom > box.bottom;
  });
});
said.push(texts.length);
said.push([...document.querySelectorAll('.changed .name')].map(name => name.textContent).join(' '));
said.push(document.documentElement.scrollWidth > document.documentElement.clientWidth);
"""


def measured(drawn: CausimItem, folder: Path) -> list[str]:
    """Measure a picture in a page that shows it no wider than itself."""
    drawing = standalone_svg(layered_svg(question_picture(drawn, reveal_sealed=True)))
    style = "<style>svg{max-width:100%;height:auto}body{margin:8px}</style>"
    return pressed(f"<!DOCTYPE html><html><head>{style}</head><body>{drawing}</body></html>", LAID_OUT, folder)


@needs_chromium
def test_the_page_draws_every_node_inside_itself_and_marks_what_changes(pool: Path, tmp_path: Path) -> None:
    # nodes, noises, edges, cut ones; overlaps, outside, texts beyond boxes; changed; wider than the window
    assert measured(item("set-a", SET_A), tmp_path) == ["4", "4", "4", "0", "0", "0", "0", "B", "false"]
    assert measured(item("set-b", SET_B), tmp_path)[3:8] == ["1", "0", "0", "0", "D"]


@needs_chromium
@pytest.mark.parametrize("topology", ["inverted_star", "poly_tree"])
def test_generated_programs_of_ten_nodes_fit_the_page(topology: str, tmp_path: Path) -> None:
    drawn = [one for one in BENCHMARK.suites.draw([topology], 5, 20) if one.version == 10][-1]
    said = measured(drawn, tmp_path)
    assert said[:2] == ["10", "10"]
    assert said[2] == str(sum(len(node.parents) for node in drawn.task.model.nodes))
    assert (said[4:7], said[8]) == (["0", "0", "0"], "false")
