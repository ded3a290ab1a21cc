"""Pictures of stated graphs: signs in the text, classes in the drawing, hostile names, and how a browser draws them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.causalab.items import lab_picture
from calibrant.bench.cli import main
from calibrant.bench.pages.graphs import EdgeStatus, GraphPicture, graph_text, graphs_svg
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism
from calibrant.dsl.episode import replay_actions
from tests.support.benchmarks.causalab import made_item
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import refused
from tests.support.report_rows import write_records

NODES = ("a", "b", "c", "F")
PICTURE = GraphPicture(
    "somebody",
    "graph short",
    NODES,
    {
        EdgeStatus.PROVEN: (("a", "F"),),
        EdgeStatus.UNPROVEN: (("a", "b"), ("b", "c")),
        EdgeStatus.CONTRADICTED: (("F", "a"), ("c", "c")),
        EdgeStatus.MISSED: (("c", "F"),),
    },
    (("a", 100.0), ("b", 2.5), ("a", 0.0)),
)
TEXT = """\
somebody
graph short
cause \\ effect  a  b  c  F  set to
a               -  ?  -  #  100, 0
b               -  -  ?  -  2.5
c               -  -  x  o
F               x  -  -  -
#  proven: stated, and every mechanism left has it
?  unproven: stated, and some of those left have it
x  contradicted: stated, and none of those left has it
o  not stated, though every mechanism left has it"""


def test_the_text_has_a_sign_for_every_edge_and_says_what_it_means() -> None:
    assert graph_text(PICTURE) == TEXT
    empty = GraphPicture("t", "r", ("a", "F"), {})
    assert graph_text(empty).splitlines()[2:] == [
        "cause \\ effect  a  F",
        "a               -  -",
        "F               -  -",
        "no edge is stated, and none is certain",
    ]


def _classes(svg: str) -> dict[str, int]:
    root = ElementTree.fromstring(svg)
    found: dict[str, int] = {}
    for element in root.iter():
        if element.get("class") and any("title" in child.tag for child in element):
            found[element.get("class", "")] = found.get(element.get("class", ""), 0) + 1
    return found


def test_the_drawing_has_every_edge_in_its_class_and_every_node() -> None:
    assert _classes(graphs_svg([PICTURE, PICTURE])) == {
        "arrow good": 2 + 1,  # and a line of the legend
        "arrow open": 4 + 1,
        "arrow bad": 4 + 1,
        "arrow missed": 2 + 1,
        "node": 8,
    }
    boxes = [box.get("class") for box in ElementTree.fromstring(graphs_svg([PICTURE])).iter() if box.get("rx")]
    assert sorted(map(str, boxes)) == ["box", "box", "box good", "box good"]
    assert "<svg" in graphs_svg([])


def test_names_are_text_and_nothing_else() -> None:
    hostile = "<script>alert('1')</script>\"&\x1b"
    picture = GraphPicture(hostile, hostile, (hostile, "F"), {EdgeStatus.PROVEN: ((hostile, "F"),)}, ((hostile, 1.0),))
    svg = graphs_svg([picture])
    assert "<script" not in svg
    assert len(graph_text(picture).splitlines()) == 6


def test_a_picture_says_what_the_evidence_of_a_run_proves() -> None:
    item = made_item("4nodes", seed=3)
    truth = state_mechanism(item.sealed.mechanism)
    first = item.task.settable[0]
    extra = {"from": FREQUENCY, "to": first}
    everything = [{"set": name, "value": 30} for name in item.task.settable]
    guess = {**truth, "edges": [*truth["edges"], extra, {"from": "moon", "to": "tide"}]}
    steps = replay_actions(LabEpisode(item), [*everything, {"submit": {"hypothesis": guess}}]).steps
    said = BENCHMARK.attribution(item, {}, steps, {})
    assert said is not None
    picture = lab_picture("t", said, item.task.nodes)
    assert picture is not None
    assert set(picture.edges[EdgeStatus.PROVEN]) == item.sealed.mechanism.edges
    assert picture.edges[EdgeStatus.CONTRADICTED] == ((FREQUENCY, first),)
    assert picture.edges[EdgeStatus.UNPROVEN] == picture.edges[EdgeStatus.MISSED] == ()
    assert picture.nodes == item.task.nodes
    assert picture.values == dict.fromkeys(item.task.settable, "30")
    assert picture.remark == "frequency missed, graph missed; 1 mechanism left; 1 stated edges name something else"
    old: dict[str, Any] = {**said, "graph": {key: said["graph"][key] for key in ("kind", "decided", "fits")}}
    assert lab_picture("t", old) is None


def test_large_numbers_of_mechanisms_are_shortened() -> None:
    item = made_item("7nodes", seed=3)
    said = BENCHMARK.attribution(item, {"hypothesis": {}}, (), {})
    assert said is not None
    picture = lab_picture("t", said)
    assert picture is not None
    mantissa, _, exponent = picture.remark.split("; ")[1].removesuffix(" mechanisms left").partition("e")
    assert 0.98 < float(mantissa) * 10 ** int(exponent) / int(said["members"]) < 1.02


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a pool of two laboratories, and a run on it."""
    folder = tmp_path_factory.mktemp("shown")
    write_drawn(BENCHMARK, folder / "pool.jsonl", ["4nodes", "4nodes_quad_hard"], 3, 1)
    line = ["run", "exact,total-effects", str(folder / "pool.jsonl"), "--out", str(folder / "run"), "--workers", "1"]
    assert main(line) == 0
    return folder


def test_show_draws_what_the_records_prove_and_with_gold_the_true_edges(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = str(played / "pool.jsonl")
    item = made_item("4nodes", seed=3)
    capsys.readouterr()
    assert main(["show", pool, item.id]) == 0
    lines = capsys.readouterr().out.splitlines()
    public_id = lines[0].partition(",")[0]
    assert re.fullmatch(r"item-[0-9a-f]{16}", public_id)
    assert lines[0] == f"{public_id}, edges beside what the first measurements prove"
    assert lines[1] == "nothing stated; 289 mechanisms left"
    assert sum(line.split()[1:].count("o") for line in lines[3:7]) == len(item.sealed.mechanism.frequency.parents)
    assert main(["show", pool, item.id, "--gold"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == "the truth stated; 289 mechanisms left"
    told = shown[3:7]
    signs = [sign for line in told for sign in line.split()[1:] if sign != "-"]
    assert len(signs) == len(item.sealed.mechanism.edges)
    assert set(signs) == {"#", "?"}


def test_show_tells_how_an_item_was_played_as_text(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = ["show", str(played / "pool.jsonl"), "4nodes/3/0", "--run", str(played / "run")]
    capsys.readouterr()
    assert main(line) == 0
    both = capsys.readouterr().out
    assert [text.splitlines()[0] for text in both.split("\n\n")] == ["exact, 4nodes/3/0", "total-effects, 4nodes/3/0"]
    assert main([*line, "--system", "exact"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == both.split("\n\n")[0]
    assert "no episode of nobody" in refused(capsys, *line, "--system", "nobody")
    assert "give --run" in refused(capsys, *line[:3], "--system", "exact")


def test_a_false_transcript_is_not_drawn(played: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record = next(one for one in folder_records(played / "run") if one.instance == "4nodes/3/0" and one.steps)
    assert record.steps
    false = [msgspec.structs.replace(record.steps[0], cost=0), *record.steps[1:]]
    folder = write_records(tmp_path / "false", [msgspec.structs.replace(record, steps=false)])
    page = tmp_path / "page.html"
    for further in ((), ("--html", page)):
        said = refused(capsys, "show", played / "pool.jsonl", "4nodes/3/0", "--run", folder, *further)
        assert f"{record.protocol} on 4nodes/3/0: step 0: cost 0 recorded, was 1" in said
    assert not page.exists()


@needs_chromium
def test_pages_of_laboratories_are_stepped_through_and_need_no_network(played: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    line = ["show", str(played / "pool.jsonl"), "4nodes/3/0", "--run", str(played / "run"), "--html", str(page)]
    assert main([*line, "--gold"]) == 0
    text = page.read_text(encoding="utf-8")
    presses = """
      const here = () => [...document.querySelectorAll("#run-0 .moment")].filter((one) => one.offsetHeight > 0);
      const press = (key) => document.dispatchEvent(new KeyboardEvent("keydown", { key }));
      said.push(here().map((one) => one.querySelector("h3").textContent).join());
      press("Home");
      press("ArrowRight");
      said.push(here().map((one) => one.querySelector("h3").textContent.slice(0, 10)).join());
      said.push(here()[0].querySelectorAll(".title").length);
      said.push([...here()[0].querySelectorAll(".node rect")].every((one) => one.getBoundingClientRect().width > 60));
      said.push(document.querySelectorAll("#run-0 .course-line").length);
      said.push(performance.getEntriesByType("resource").length);
    """
    loosened = text.replace("style-src", "script-src 'unsafe-inline'; style-src", 1)  # for the script of this test
    assert pressed(loosened, presses, tmp_path) == ["Step 5: submit", "Step 1: se", "2", "true", "4", "0"]
    assert "https:" not in text
    assert main(line) == 0
    assert "the true graph" not in page.read_text(encoding="utf-8")


def test_the_steps_of_a_run_have_its_metrics_and_with_gold_the_true_graph(
    played: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    line = ["show", str(played / "pool.jsonl"), "4nodes/3/0", "--run", str(played / "run"), "--system", "exact"]
    assert main([*line, "--gold"]) == 0
    title, steps, stated, truth = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert title == "exact, 4nodes/3/0"
    rows = [re.split(r"\s{2,}", row.strip()) for row in steps.splitlines()[1:]]
    assert [row[0] for row in rows] == ["0", "1", "2", "3", "4", "5"]
    assert rows[0][2] == "289"  # mechanisms before any setting
    assert rows[3][2:] == ["1", "0.000", "0.000", "0.000", "no", "no"]  # all is decided and nothing stated
    assert rows[5][1:] == ["submit", "1", "1.000", "1.000", "1.000", "yes", "no"]
    assert stated.startswith("stated after step 5\nfrequency earned, graph earned; 1 mechanism left")
    assert truth.startswith("the true graph\nbeside the same readings; 1 mechanism left")
    assert truth.splitlines()[3:] == stated.splitlines()[3:]  # the exact row states the truth


def test_table_has_means_by_step(played: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    pool, run = played / "pool.jsonl", played / "run"
    assert main(["table", str(run), "--trajectory", "--pool", str(pool), "--json"]) == 0
    rows = [
        row
        for row in json.loads(capsys.readouterr().out)["rows"]
        if (row["setting"], row["system"]) == ("4nodes", "exact")
    ]
    assert [row["step"] for row in rows] == [1, 2, 3, 4, 5]
    assert [(row["n"], row["going_on"]) for row in rows] == [(1, 1)] * 5
    assert [row["edge_f1"] for row in rows] == [0, 0, 0, 0, 1]
    assert [row["fits"] for row in rows] == [0, 0, 0, 0, 1]
    assert rows[2]["members"] == pytest.approx(1)
    assert main(["table", str(run), "--trajectory", "--pool", str(pool)]) == 0
    assert capsys.readouterr().out.splitlines()[0].split()[:4] == ["Setting", "System", "Step", "n"]
    assert "give the pools of the runs" in refused(capsys, "table", run, "--trajectory")
    for option in (["--by", "stratum"], ["--columns", "all"], ["--attribution"], ["--decided-at", ".95"]):
        line = ["table", run, "--trajectory", "--pool", pool, *option]
        assert "--trajectory has rows and columns of its own" in refused(capsys, *line)


@needs_chromium
def test_a_browser_draws_nodes_apart_and_loads_nothing(tmp_path: Path) -> None:
    page = f"<!DOCTYPE html><html><body>{standalone_svg(graphs_svg([PICTURE]))}</body></html>"
    presses = """
      const boxes = [...document.querySelectorAll(".node rect")].map((one) => one.getBoundingClientRect());
      const apart = (a, b) => a.right < b.left || b.right < a.left || a.bottom < b.top || b.bottom < a.top;
      said.push(boxes.length);
      said.push(boxes.every((one, k) => boxes.every((other, m) => m <= k || apart(one, other))));
      const edges = [...document.querySelectorAll(".arrow.open")];
      said.push(edges.map((one) => getComputedStyle(one).strokeDasharray).join(" "));
      said.push([...document.querySelectorAll("path.arrow")].every((one) => one.getTotalLength() > 20));
      said.push(performance.getEntriesByType("resource").length);
    """
    dashes = "6px, 4px"
    assert pressed(page, presses, tmp_path) == ["4", "true", " ".join([dashes] * 3), "true", "0"]
