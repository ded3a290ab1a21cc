"""Pages of decided items, wide evidence, wide tables in print, and items in steps for a class."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from calibrant.audits.causalab.why import LabMember
from calibrant.bench.causalab.why import depends
from calibrant.bench.core.registry import benchmark_of, bundled_sample
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.page import design_page
from tests.support.accessibility import DESKTOP, PHONE, find_violations, needs_axe
from tests.support.browser import Tab, needs_chromium
from tests.support.commands import CHECKOUT, called
from tests.support.packages import needs

KIND_EXAMPLES = CHECKOUT / "docs" / "examples"

# --- Decided pages begin with the answer, which holds of everything that was measured ---------------------------------


def decided_lines(path: Path) -> list[str]:
    """Return the lines of the answer that a decided page begins with."""
    (block,) = re.findall(r'<section class="panel answer"><h2>[^<]*</h2><pre>(.*?)</pre>', path.read_text(), re.DOTALL)
    return [unescape(line) for line in block.splitlines()]


def assigned(lines: list[str]) -> dict[str, str]:
    """Return the formula, or value, by name."""
    return dict(re.findall(r"(\S+) = (.*)", "\n".join(lines)))


def test_the_model_on_a_decided_page_of_a_network_gives_every_measured_value(tmp_path: Path) -> None:
    pool, page = bundled_sample("logic"), tmp_path / "page.html"
    assert called("show", pool, "exact-20-0", "--html", page).returncode == 0
    formulas, item = assigned(decided_lines(page)), next(iter(benchmark_of(pool).items.read_pool(pool).items))
    assert (item.id, len(item.task.experiments) > 3) == ("exact-20-0", True)
    for experiment, values in zip(item.task.experiments, item.task.values, strict=True):
        state = {name: name in experiment.on for name in item.task.setup.stimuli} | dict.fromkeys(formulas, False)
        for _ in formulas:  # without a cycle: as often as there are nodes
            state |= {n: bool(eval(f, dict(state))) and n not in experiment.inhibited for n, f in formulas.items()}
        assert [float(state[name]) for name in item.task.setup.readouts] == list(values)


def test_the_mechanism_on_a_decided_page_of_a_laboratory_gives_every_reading(tmp_path: Path) -> None:
    pool, run, page = bundled_sample("causalab"), tmp_path / "run", tmp_path / "page.html"
    assert called("run", "exact", pool, "--limit", "1", "--out", run, "--workers", "1").returncode == 0
    episode = ("show", pool, "3nodes/20/0", "--run", run, "--why")
    assert called(*episode, "--html", page).returncode == 0
    readings = json.loads(called(*episode, "--json").stdout)["readings"]
    lines = [line for line in decided_lines(page) if "its base" not in line]
    assert (len(readings), [line.partition(" ")[0] for line in lines]) == (5, ["resonanceFreq"])
    formula = assigned(lines)["resonanceFreq"]
    assert all(eval(formula, dict(reading["values"])) == reading["values"]["resonanceFreq"] for reading in readings)


def test_the_answer_on_a_decided_page_of_a_program_is_scored_right(tmp_path: Path) -> None:
    pool, page = bundled_sample("causim"), tmp_path / "page.html"
    name = "chain-0000-s20-v02-intervention-000"
    assert called("show", pool, name, "--html", page).returncode == 0
    answer = tmp_path / "answers.jsonl"
    answer.write_text(json.dumps({"id": name, "answer": assigned(decided_lines(page))}) + "\n", encoding="utf-8")
    done = called("score", pool, answer, "--out", tmp_path / "scores.jsonl")
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "scores.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["correct"] is True


# --- Wide evidence: nine variables in sixteen worlds; labels of graphs beside their edges -----------------------------
WIDE_NAMES = ("V1", "V2", "V3", "V4", "V5", "V6", "V7", "temperature", "resonance")
SCROLLED = """[...document.querySelectorAll("table.rows")].map((table) => {
  const box = table.closest(".scroll"), row = table.querySelector("tbody tr");
  box.scrollLeft = 1e6;
  const sides = (part) => { const { left, right } = part.getBoundingClientRect(); return [left, right]; };
  const [world, unit] = row.children;
  return { box: sides(box), world: sides(world), unit: sides(unit), last: sides(row.lastElementChild),
    clipped: [...row.children].filter((cell) => cell.scrollWidth > cell.clientWidth + 1).length };
})"""
LABELS_OVER_EDGES = """[...document.querySelectorAll("svg")].flatMap((svg) => {
  const edges = [...svg.querySelectorAll("path")].filter((path) => !path.closest("defs"))
    .filter((path) => getComputedStyle(path).fill === "none");
  const at = (path, share) => path.getPointAtLength(path.getTotalLength() * share).matrixTransform(path.getScreenCTM());
  return [...svg.querySelectorAll("text")].filter((text) => {
    const box = text.getBoundingClientRect();
    return edges.some((path) => [...Array(61).keys()].map((k) => at(path, k / 60)).some(({ x, y }) =>
      x > box.left + 1 && x < box.right - 1 && y > box.top + 2 && y < box.bottom - 2));
  }).map((text) => text.textContent);
})"""


def wide_pool(path: Path) -> Path:
    """Write an item of nine variables whose sixteen worlds set up to two of them each."""
    worlds: list[dict[str, Any]] = []
    for number in range(16):
        targets = WIDE_NAMES[number % 9 :][: number % 3]
        values = dict.fromkeys(targets, number >> 1 & 1)
        rows = []
        for unit in range(2):
            row = {name: (number + unit) >> k & 1 for k, name in enumerate(WIDE_NAMES[:4])} | values
            for name, (first, second) in zip(
                WIDE_NAMES[4:], (("V1", "V2"), ("V2", "V3"), ("V4", "V5"), ("V5", "V6"), ("V6", "V7")), strict=True
            ):
                row.setdefault(name, row[first] & row[second])
            rows.append("".join(str(row[name]) for name in WIDE_NAMES))
        worlds.append({"id": f"w{number}", "rows": rows, **({"constants": values} if values else {})})
    disclosure = {"type": "hidden_order", "roots": WIDE_NAMES[:4]}
    item: dict[str, Any] = {"id": "wide", "kind": "CIND_A_SCM", "variables": WIDE_NAMES, "units": ["u0", "u1"]}
    item |= {"disclosure": disclosure, "training": worlds, "sealed": {}}
    head: dict[str, Any] = {"format": "calibrant-pool", "version": 1, "name": "wide", "metadata": {}}
    path.write_text("".join(json.dumps(line) + "\n" for line in (head, item)), encoding="utf-8")
    return path


@needs_axe
@pytest.mark.parametrize("width", [PHONE, DESKTOP])
def test_first_columns_of_wide_evidence_stay_and_no_column_is_cut(width: int, tmp_path: Path) -> None:
    page = tmp_path / "wide.html"
    done = called("show", wide_pool(tmp_path / "wide.jsonl"), "wide", "--html", page)
    assert done.returncode == 0, done.stderr
    with Tab() as tab:
        tab.emulate(width)
        tab.open(page.as_uri())
        tab.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        tables = tab.evaluate(SCROLLED)
        assert len(tables) == 2  # rows that bear on the pair, and all
        for table in tables:
            assert abs(table["world"][0] - table["box"][0]) <= 1
            assert abs(table["unit"][0] - table["world"][1]) <= 1
            assert table["last"][1] <= table["box"][1] + 1
            assert table["last"][0] >= table["unit"][1] - 1
            assert table["clipped"] == 0
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        assert tab.evaluate(LABELS_OVER_EDGES) == []
        assert find_violations(tab) == []


@needs_chromium
@pytest.mark.parametrize(
    ("pool", "item", "num_labels"),
    [
        *(("causalab", item, 3) for item in ("3nodes/20/0", "3nodes/20/1", "4nodes/20/0", "4nodes/20/2")),
        *(("hidden_order", f"CAL_hs_n6_easy_calibration_2000000{k}", 1) for k in range(3)),
    ],
)
def test_no_label_of_a_graph_is_over_an_edge(pool: str, item: str, num_labels: int, tmp_path: Path) -> None:
    page = tmp_path / "graph.html"
    assert called("show", bundled_sample(pool), item, "--html", page).returncode == 0
    with Tab() as tab:
        tab.emulate(DESKTOP)
        tab.open(page.as_uri())
        labels = tab.evaluate("[...document.querySelectorAll('svg .halo, svg text.warn')].length")
        assert labels >= num_labels
        assert tab.evaluate(LABELS_OVER_EDGES) == []


@needs_chromium
def test_no_cell_of_the_rows_of_a_front_is_over_another(tmp_path: Path) -> None:
    table, page = tmp_path / "open.csv", tmp_path / "front.html"
    table.write_text("x,y\n0,0\n0,1\n1,1\n1,0\n", encoding="utf-8")
    called("fit", table, "--target", "y", "--html", page)
    with Tab() as tab:
        tab.open(page.as_uri())
        texts, titles = tab.evaluate(
            """[[...document.querySelectorAll("section:last-of-type tbody tr")].map((row) =>
            [...row.children].map((cell) => {
            cell.scrollIntoView();
            const { left, top, width, height } = cell.getBoundingClientRect();
            const seen = document.elementFromPoint(left + width / 2, top + height / 2);
            return seen === cell ? cell.textContent : null; })), document.querySelectorAll("h1").length]"""
        )
    assert texts == [
        *(["2", "0", "0", "contradicts another row"], ["3", "0", "1", "wrong, contradicts another row"]),
        *(["4", "1", "1", "wrong, contradicts another row"], ["5", "1", "0", "contradicts another row"]),
    ]
    assert titles == 1


@needs_chromium
def test_a_table_of_many_columns_and_rows_is_printed_in_landscape(tmp_path: Path) -> None:
    """What `turned` marks in reports, between text that stays upright; every page of it has all heads."""
    needs("pypdf")
    import pypdf

    names = [f"Heading{k}" for k in range(20)]
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    rows = f"<tr>{'<td>0.125</td>' * len(names)}</tr>" * 45
    table = f'<div class="scroll turned"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>'
    page = tmp_path / "turned.html"
    content = {"title": "Turned", "crumbs": ["Turned"], "body": Markup(f"<p>before</p>{table}<p>after</p>"), "item": ""}
    page.write_text(design_page("why/why.html", content), encoding="utf-8")
    with Tab() as tab:
        tab.emulate(DESKTOP)
        tab.open(page.as_uri())
        pdf = tab.print_pdf()
    pages = pypdf.PdfReader(pdf).pages
    with_rows = [one for one in pages if "0.125" in one.extract_text()]
    assert len(with_rows) > 1
    for one in with_rows:
        assert one.mediabox.width > one.mediabox.height
        assert all(name in "".join(one.extract_text().split()) for name in names)
    upright = [one for one in pages if "before" in one.extract_text() or "after" in one.extract_text()]
    assert [one.mediabox.width < one.mediabox.height for one in upright] == [True, True]


# --- Nouns beside a number: pages and texts of pools with one item, of all benchmarks ---------------------------------
PLURALS = "SCMs|models|items|rows|worlds|answers|edges|rules|hypotheses|instances|systems|mechanisms|readings|variables"
ONE_OF_MANY = re.compile(rf"(?<![\d.,/-])\b1 (?:were|are|have|{PLURALS})\b|\w\(s\)|\bits 1\b")


@pytest.mark.parametrize("name", ["blickets", "causalab", "causim", "logic", "ordered", "hidden_order"])
def test_one_item_is_not_spoken_of_in_the_plural(name: str, tmp_path: Path) -> None:
    pool, page, run = tmp_path / "pool.jsonl", tmp_path / "page.html", tmp_path / "run"
    head, first, *_ = bundled_sample(name).read_text(encoding="utf-8").splitlines()
    pool.write_text(f"{head}\n{first}\n", encoding="utf-8")
    item = json.loads(first)["id"]
    lines: list[tuple[object, ...]] = [("list", pool, "--why"), ("show", pool, item, "--why", "--html", page)]
    lines += [("show", pool, item, "--html", page, "--steps"), ("run", "exact", pool, "--out", run, "--workers", "1")]
    lines += [("audit", pool, "--workers", "1", "--out", tmp_path / "audits", "--html", page), ("table", run)]
    for line in lines:
        done = called(*line)
        assert done.returncode == 0, done.stderr
        text = done.stdout + done.stderr
        if page in line:
            visible = re.sub(r"<(script|style|pre).*?</\1>", " ", page.read_text(encoding="utf-8"), flags=re.DOTALL)
            text += re.sub(r"<[^>]+>", " ", visible)
        assert len(text) > 20
        assert [text[max(0, match.start() - 40) : match.end() + 40] for match in ONE_OF_MANY.finditer(text)] == []


# --- In steps for a class: the answer comes after the vote, which is counted in the page and by keys alone ------------
STEP_ITEMS = {
    "replayscm": (KIND_EXAMPLES / "switches.jsonl", "lamp"),
    "blickets": (bundled_sample("blickets"), "conjunctive-20-0"),
    "causalab": (bundled_sample("causalab"), "3nodes/20/0"),
    "causim": (bundled_sample("causim"), "chain-0000-s20-v02-deduction-000"),
    "decided program": (bundled_sample("causim"), "chain-0000-s20-v02-intervention-000"),
    "logic": (bundled_sample("logic"), "exact-20-1"),
    "decided network": (bundled_sample("logic"), "exact-20-0"),
    "episode": (bundled_sample("replayscm_episodes"), "CAL_hs_n6_easy_calibration_episode_hidden-order_1"),
}
VISIBLE_STEP = "[...document.querySelectorAll('.step')].filter((step) => !step.hidden).map((step) => step.id).join()"
COUNTS = "[...document.querySelectorAll('.step:not([hidden]) output')].map((one) => Number(one.textContent))"


@needs_axe
@pytest.mark.parametrize("kind", STEP_ITEMS)
def test_a_class_votes_before_it_sees_the_answer(kind: str, tmp_path: Path) -> None:
    pool, item = STEP_ITEMS[kind]
    page = tmp_path / "steps.html"
    done = called("show", pool, item, "--html", page, "--steps")
    assert done.returncode == 0, done.stderr
    with Tab() as tab:
        tab.emulate(DESKTOP)
        tab.open(page.as_uri())
        before = tab.evaluate("document.querySelector('main').innerText")
        assert "What the data support" not in before
        assert not any(word in before for word in ("ambiguous", "models fit", "still open"))
        tab.press("ArrowRight")
        assert tab.evaluate(VISIBLE_STEP) == "i1s2"
        assert tab.evaluate("document.activeElement.id") == "i1s2-head"
        for key in ("1", "2", "2", "u", "1"):
            tab.press(key)
        assert tab.evaluate(COUNTS)[:2] == [2, 1]
        assert re.fullmatch(r".+: 2", tab.evaluate("told.textContent"))
        assert find_violations(tab) == []
        tab.press("ArrowRight")
        answer = tab.evaluate("document.querySelector('.step:not([hidden])').innerText")
        labels = tab.evaluate("[...document.querySelectorAll('.vote')].map((one) => one.dataset.label)")
        (supported,) = re.findall("What the data support: (.*)", answer)
        assert supported in labels
        assert f"The vote: {labels[0]}: 2; " in answer
        tab.press("ArrowLeft")
        tab.press("Tab")
        assert tab.evaluate("document.activeElement.className") == "vote"
        tab.press("Enter")
        assert tab.evaluate(COUNTS)[0] == 3
        assert tab.evaluate("performance.getEntriesByType('resource').length") == 0


@needs_chromium
def test_a_printed_lesson_has_its_answer_on_a_later_page_than_its_question(tmp_path: Path) -> None:
    """With an empty box before each choice; no page names the item, whose id tells the rule."""
    needs("pypdf")
    import pypdf

    pool, item = STEP_ITEMS["blickets"]
    page = tmp_path / "steps.html"
    assert called("show", pool, item, "--html", page, "--steps").returncode == 0
    assert item not in page.read_text(encoding="utf-8")
    with Tab() as tab:
        tab.emulate(DESKTOP)
        tab.open(page.as_uri())
        tab.press("ArrowRight")
        tab.press("1")
        pdf = tab.print_pdf()
    texts = [one.extract_text() for one in pypdf.PdfReader(pdf).pages]
    first = next(k for k, text in enumerate(texts) if "What the data support" in text)
    asked = "".join(texts[:first])
    assert "what will the light do" in asked
    assert not any(word in "".join(texts) for word in ("One press", "The light goes on: 1", "The rows again"))
    assert not re.search(r"The light goes on\s*\d(?!\.)", asked)


def test_models_of_a_class_page_give_what_it_says() -> None:
    """Both of the lamp's models give every row that was seen, and differ in the row asked."""
    pool, item = STEP_ITEMS["replayscm"]
    bench = benchmark_of(pool)
    (problem,) = (one for one in bench.items.read_pool(pool).items if one.id == item)
    explanations = bench.require(EXPLANATIONS)
    lesson = explanations.lesson(problem, explanations.explain(problem, ()))
    rules = [model.lines[0].removeprefix("X3 = ") for model in lesson.models]
    assert len(lesson.evidence.rows) == 3
    for _, *cells in lesson.evidence.rows:
        values = dict(zip(("X1", "X2", "X3"), map(int, cells), strict=True))
        assert [int(eval(rule, values)) for rule in rules] == [values["X3"]] * 2
    asked = {name: int(bit) for name, bit in re.findall(r"(X\d) = (\d)", lesson.question)}
    bits = [int(re.findall(r"X3 = (\d)", model.title)[0]) for model in lesson.models]
    assert [int(eval(rule, asked)) for rule in rules] == bits
    assert sorted(bits) == [0, 1]
    assert lesson.choices[lesson.answer or 0] == "The data do not say"


def test_formulas_that_a_class_votes_down_are_excluded_by_the_row_that_is_named(tmp_path: Path) -> None:
    table, page = tmp_path / "whole.csv", tmp_path / "page.html"
    table.write_text("left,right,lamp\n0,0,0\n0,1,1\n1,1,1\n1,0,1\n", encoding="utf-8")
    assert called("fit", table, "--target", "lamp", "--html", page, "--steps").returncode == 0
    text = re.sub(r"<[^>]+>", " ", page.read_text(encoding="utf-8"))
    assert "What the data support: lamp = left or right" in text
    excluded = re.findall(r"lamp = ([a-z ]+) is out: line (\d) has left = (\d) and right = (\d) and lamp = (\d)", text)
    assert len(excluded) == 2
    lines = table.read_text(encoding="utf-8").splitlines()
    for formula, line, left, right, lamp in excluded:
        assert lines[int(line) - 1] == f"{left},{right},{lamp}"
        assert int(eval(formula, {"left": int(left), "right": int(right)})) != int(lamp)


def test_steps_ask_for_a_page_and_a_reason() -> None:
    pool, item = STEP_ITEMS["replayscm"]
    table = KIND_EXAMPLES / "switches.csv"
    for line, message in (
        (("show", pool, item, "--steps"), "--steps: it is a kind of page: give --html FILE"),
        (("fit", table, "--steps"), "--steps: it is a kind of page: give --html FILE"),
        (("fit", table, "--score", "bde", "--steps", "--html", "no.html"), "--steps: not with --score"),
    ):
        done = called(*line)
        assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_an_equation_names_its_causes_and_not_the_words_of_its_base() -> None:
    member = LabMember({"y": "2 * base + room heat + its base", "z": "its base"}, "")
    named = {(cause, effect) for cause in ("base", "room heat", "heat", "its") for effect in "yz"}
    assert {edge for edge in named if depends(member, edge)} == {("base", "y"), ("room heat", "y")}


def test_no_id_stands_twice_on_a_page_of_several_items(tmp_path: Path) -> None:
    page = tmp_path / "list.html"
    assert called("list", bundled_sample("causim"), "--html", page).returncode == 0
    ids = re.findall(r' id="([^"]*)"', page.read_text(encoding="utf-8"))
    assert sum(name.endswith("tip-plain") for name in ids) > 1  # of arrow heads: every drawing defines its own
    assert len(ids) == len({*ids})
