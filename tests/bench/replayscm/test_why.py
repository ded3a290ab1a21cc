"""Explanations of ReplaySCM: pages and drawings of open items, of wide ones, and of answers that fail."""

from __future__ import annotations

import json
import re
import shlex
from html.parser import HTMLParser
from pathlib import Path

import pytest

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.why import expected_text
from calibrant.bench.core.registry import bundled_files
from calibrant.bench.pages.why import why_page
from calibrant.bench.replayscm.why.page import body, drawing
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.audits.replayscm.why.appendix_cases import CASES, case_record
from tests.support.accessibility import DESKTOP, PHONE, measure, needs_axe
from tests.support.browser import Tab, needs_chromium, pressed
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.replayscm.table_vectors import fit_complete
from tests.support.replayscm.written import lamp, write_classroom

# --- The page, the drawing and the terminal's text of why a ReplaySCM item is open; and the command that writes them
REASON = "No row shows X3 with X1 = 1, X2 = 0 while X3 is free. Two SCMs fit everything else and disagree there."


class Texts(HTMLParser):
    """Texts of elements with a class, and of all cells, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.by_class: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        kind = dict(attributes).get("class") or tag
        self._open.append((tag, kind))
        self.by_class.setdefault(kind, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, text: str) -> None:
        for _, kind in self._open:
            self.by_class[kind][-1] += text


def lamp_page(name: str = "lamp") -> str:
    why = explain(lamp().task, name)
    return why_page(why, body(why, "why"), "classroom.jsonl", name)


def wide_page() -> str:
    """Return an item of nine variables and 80 rows."""
    pool = read_pool(CHECKOUT / "bench/replayscm/data/sample_hidden_order.jsonl", keep_results=False)
    why = explain(pool.problems[13].task, pool.problems[13].id)
    return why_page(why, body(why, "why"), "sample_hidden_order.jsonl", pool.problems[13].id)


def test_the_page_has_the_reason_of_the_terminal_and_marks_the_row(tmp_path: Path) -> None:
    page = Texts(lamp_page())
    assert page.by_class["reason"] == [REASON]
    assert {"X3", "X1 = 1, X2 = 0"} <= set(page.by_class["mark"])
    terminal = called("show", write_classroom(tmp_path), "lamp", "--why")
    assert REASON in terminal.stdout.splitlines()
    assert len(page.by_class["chips"][0].strip().splitlines()) <= 6


def test_the_command_writes_page_drawing_and_json_of_one_object(tmp_path: Path) -> None:
    pool = write_classroom(tmp_path)
    done = called("show", pool, "lamp", "--html", tmp_path / "why.html", "--svg", tmp_path / "why.svg")
    files = f"page written to {tmp_path / 'why.html'}\npicture written to {tmp_path / 'why.svg'}\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", files)
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == lamp_page()
    svg = (tmp_path / "why.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert all(
        text in svg for text in ("X3 = X1<", "X3 = X1 and X2<", "never seen with X3 free", "prefers-color-scheme:dark")
    )
    printed = json.loads(called("show", pool, "lamp", "--why", "--json").stdout)
    assert printed == json.loads(json.dumps(explain(lamp().task, "lamp").to_dict()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--html", "a.html", "--json"), "writes a page"),
        (("--svg", "a.svg", "--json"), "writes a page"),
    ],
)
def test_contradictory_options_are_refused(arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done = called("show", write_classroom(tmp_path), "lamp", *arguments)
    assert done.returncode == 2
    assert reason in done.stderr


def test_names_in_a_page_are_text(tmp_path: Path) -> None:
    why = explain(lamp().task, "<script>alert(1)</script>")
    page = why_page(why, body(why, "why"), "<img src=x>")
    assert "<script>alert" not in page
    assert "<img" not in page


def test_ids_of_a_page_are_unique_and_every_copy_button_has_its_text() -> None:
    page = lamp_page()
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {*re.findall(r'data-copy="([^"]+)"', page)} <= {*ids}


@needs_chromium
def test_keys_open_the_list_and_escape_returns_the_focus(tmp_path: Path) -> None:
    presses = """
    const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
    const theme = document.getElementById("theme"); theme.focus();
    key("?"); said.push(document.getElementById("keys").hidden);
    key("Escape"); said.push(document.getElementById("keys").hidden, document.activeElement.id);
    theme.click(); said.push(document.documentElement.dataset.theme, theme.getAttribute("aria-pressed"));
    theme.click(); said.push(document.documentElement.dataset.theme);
    dispatchEvent(new Event("beforeprint"));
    said.push(document.querySelectorAll("details:not([open], .unprinted)").length);
    dispatchEvent(new Event("afterprint")); said.push(document.querySelectorAll("details:not([open])").length > 0);
    said.push(document.querySelector("a").className);
    """
    assert pressed(lamp_page(), presses, tmp_path) == [
        "false",
        "true",
        "theme",
        "dark",
        "true",
        "light",
        "0",
        "true",
        "skip",
    ]


@needs_axe
@pytest.mark.parametrize(("theme", "width"), [("light", PHONE), ("dark", DESKTOP)])
def test_the_page_is_accessible_loads_nothing_and_does_not_scroll_sideways(
    theme: str, width: int, tmp_path: Path
) -> None:
    found = measure(lamp_page(), tmp_path, theme=theme, width=width)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= width


@needs_axe
def test_a_wide_item_on_a_phone_is_accessible_too(tmp_path: Path) -> None:
    """Wide tables and graphs scroll in boxes of their own, which a small item has none of."""
    found = measure(wide_page(), tmp_path, theme="dark", width=PHONE)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= PHONE


@pytest.mark.parametrize(("number", "text"), [(2.0, "2"), (10.5, "10.5"), (2.04, "2.0"), (1999.6, "2,000"), (0.0, "0")])
def test_whole_expected_numbers_have_no_decimals(number: float, text: str) -> None:
    assert expected_text(number) == text


def test_a_decided_item_names_the_world_without_which_others_would_fit(tmp_path: Path) -> None:
    path = tmp_path / "hardened.jsonl"
    assert called("harden", CHECKOUT / "docs" / "examples" / "switches.jsonl", "--out", path).returncode == 0
    printed = called("show", path, "lamp", "--why").stdout
    assert "One SCM fits: every mechanism is decided. Without w0, 4 SCMs would fit.\n" in printed


# --- The picture of an open item: texts of long names do not overlap, by their extents in a browser -------------------
OVERLAPS = """
(() => {
  const texts = [...document.querySelectorAll('text')].map((part) => [part.textContent, part.getBoundingClientRect()]);
  const meet = (a, b) => Math.min(a.right, b.right) - Math.max(a.left, b.left) > 0.5
    && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4;
  return texts.flatMap(([s, a], k) => texts.slice(k + 1).filter(([, b]) => meet(a, b)).map(([t]) => `${s} | ${t}`));
})()
"""
BEYOND = """
(() => { const all = document.querySelector('svg').getBoundingClientRect();
  return [...document.querySelectorAll('text')].filter((part) => part.getBoundingClientRect().right > all.right + 1)
    .map((part) => part.textContent); })()
"""


@needs_chromium
@pytest.mark.parametrize(
    "names", [("battery", "button", "master", "lamp"), ("w" * 20, "MAINS_SWITCH_OF_TEN_", "b", "wattmeter_in_the_hall")]
)
def test_no_two_texts_overlap(names: tuple[str, ...], tmp_path: Path) -> None:
    rows = [{name: r >> k & 1 for k, name in enumerate(names[:3])} | {names[3]: int(r == 7)} for r in (0, 1, 2, 7)]
    fitted = fit_complete(rows, target=names[3])
    assert fitted.why is not None
    (tmp_path / "why.html").write_text(drawing(fitted.why), encoding="utf-8")
    with Tab() as tab:
        tab.emulate(1280, dark=False)
        tab.open((tmp_path / "why.html").as_uri())
        assert tab.evaluate("document.querySelectorAll('text').length") > 10
        assert tab.evaluate(OVERLAPS) == []
        assert tab.evaluate(BEYOND) == []


# --- Why pages of long names: no table, graph or heading is cut, in both themes, on a desktop and on a phone ----------
LENGTH = 20
CUT = """
[...document.querySelectorAll('main *')].filter((part) => {
  const box = part.getBoundingClientRect();
  const scroll = part.closest('.scroll');
  if (!box.width || part.closest('svg')) return false;
  if (scroll && scroll.scrollWidth > scroll.clientWidth) {
    const style = getComputedStyle(scroll);
    return style.overflowX !== 'auto' || style.scrollbarColor === 'auto';
  }
  const limit = (part.closest('.panel, .fix, .left') || document.documentElement).getBoundingClientRect().right;
  return box.right > limit + 1;
}).map((part) => part.outerHTML.slice(0, 80))
"""
SCROLLING = """
[...document.querySelectorAll('.scroll')].filter((s) => s.querySelector('table') && s.scrollWidth > s.clientWidth)
  .map((s) => s.getAttribute('aria-label'))
"""


def long_page(num_causes: int) -> str:
    """Return the page of a table of causes with names of LENGTH characters, of which no two rows are shown alike."""
    names = [f"cause_number_{k:02d}".ljust(LENGTH, "x") for k in range(num_causes)]
    rows = [{name: r >> k & 1 for k, name in enumerate(names)} | {"outcome": r & 1} for r in (0, 1, 2, 7)]
    fitted = fit_complete(rows, target="outcome")
    assert fitted.why is not None
    return why_page(fitted.why, body(fitted.why, "why"), "table.csv")


@needs_chromium
@pytest.mark.parametrize("num_causes", [3, 6, 10])
def test_nothing_is_cut_and_a_desktop_shows_whole_tables(num_causes: int, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(long_page(num_causes), encoding="utf-8")
    for width in (DESKTOP, PHONE):
        for dark in (False, True):
            with Tab() as tab:
                tab.emulate(width, dark=dark)
                tab.open(file.as_uri())
                assert tab.evaluate("document.documentElement.scrollWidth") <= width
                assert tab.evaluate(CUT) == []
                if width == DESKTOP:
                    assert tab.evaluate(SCROLLING) == []


# --- `calibrant show POOL ID --run FILE --gold`: what it prints, its page, its JSON and what it refuses ---------------
HEADER = {"format": "calibrant-pool", "version": 1, "name": "cases", "metadata": {}}
NEVER_SHOWN = ["0000", "1100", "1101"]


@pytest.fixture
def case(tmp_path: Path) -> tuple[Path, Path]:
    """Return a pool with the paper's case 2 and answers to it: the printed one, gold's, one that does not parse."""
    pool, answers = tmp_path / "cases.jsonl", tmp_path / "answers.jsonl"
    pool.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, case_record("case 2", NEVER_SHOWN))), "utf-8")
    variable, gold, answer = CASES["case 2"]
    texts = {"printed": answer, "right": gold, "broken": "(and X3"}
    lines = [
        {"instanceId": "case 2", "model": name, "response": json.dumps({"mechanisms": {variable: text}})}
        for name, text in texts.items()
    ]
    answers.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return pool, answers


def test_text_has_each_differing_assignment_and_the_first_wrong_cell(case: tuple[Path, Path]) -> None:
    pool, answers = case
    shown = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "printed")
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "3 of 16 assignments differ; 3 never shown" in shown.stdout
    assert " 1   1   0   1     0       1  never shown                1" in shown.stdout
    assert "with X3=0, X4=0, X6=0, X7=0, X5 is 1, the answer gives 0; the mechanism of X5 itself" in shown.stdout
    right = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "right")
    assert "case 2: a right answer" in right.stdout


def test_an_answer_is_shown_beside_a_bad_line(case: tuple[Path, Path]) -> None:
    pool, answers = case
    first = answers.read_text("utf-8").splitlines()[0]
    mixed = answers.with_name("mixed.jsonl")
    mixed.write_text(f'{first}\n{{"instanceId": "case 2", "note": 1}}\nno JSON\n', "utf-8")
    shown = called("show", pool, "case 2", "--run", mixed, "--gold")
    assert shown.returncode == 0
    assert "3 of 16 assignments differ" in shown.stdout
    assert "mixed.jsonl: skipped line 2: no answer in it" in shown.stderr
    assert "mixed.jsonl: skipped line 3: " in shown.stderr


def test_json_is_the_object_behind_page_and_text(case: tuple[Path, Path]) -> None:
    pool, answers = case
    (content,) = json.loads(
        called("show", pool, "case 2", "--run", answers, "--gold", "--system", "printed", "--json").stdout
    )
    (variable,) = content["variables"]
    assert [row["train"] for row in variable["assignments"]] == [0, 0, 0]
    assert content["totals"]["train_world"] == 1.0


@needs_axe
@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_the_page_is_accessible_and_loads_nothing(case: tuple[Path, Path], tmp_path: Path, width: int) -> None:
    pool, answers = case
    page, readable = tmp_path / "why.html", tmp_path / "readable.jsonl"
    lines = [line for line in answers.read_text("utf-8").splitlines() if "broken" not in line]
    readable.write_text("\n".join(lines), "utf-8")  # of two systems, whose parts need names of their own
    assert called("show", pool, "case 2", "--run", readable, "--gold", "--html", page).returncode == 0
    measured = measure(page.read_text("utf-8"), tmp_path, width=width)
    assert measured.violations == []
    assert measured.requests == []
    assert measured.scroll_width <= width


def test_what_cannot_be_explained_is_refused_in_one_line(case: tuple[Path, Path]) -> None:
    pool, answers = case
    broken = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "broken")
    assert (broken.returncode, broken.stdout) == (2, "")
    assert "broken on case 2: the answer is not valid: " in broken.stderr
    page = answers.with_suffix(".html")
    for options in ((), ("--json",), ("--html", page)):
        others = called("show", pool, "case 2", "--run", answers, "--gold", *options)
        assert others.returncode == 0
        assert others.stderr.startswith("not shown: broken on case 2: the answer is not valid: ")
    assert "not shown: broken on case 2" in page.read_text("utf-8")
    message = {
        "role": "assistant",
        "model": "shy",
        "content": [{"type": "text", "text": "No."}],
        "stop_reason": "refusal",
    }
    refusal = {"custom_id": "case 2", "result": {"type": "succeeded", "message": message}}
    shy = jsonl(answers.with_name("shy.jsonl"), refusal)
    said = called("show", pool, "case 2", "--run", shy, "--gold").stderr
    assert said.startswith("error  shy on case 2: no answer to compare (refused): the provider or the model refused")
    assert "choose another with --system" in said
    assert called("show", pool, "case 2", "--run", answers, "--run", shy, "--gold").returncode == 0
    nobody = called("show", pool, "case 2", "--run", answers, "--gold", "--system", "x")
    assert (nobody.returncode, "no answer of x to case 2" in nobody.stderr) == (2, True)
    both = called("show", pool, "case 2", "--run", answers, "--gold", "--why")
    assert both.returncode == 2
    other = bundled_files()["causim"][0]
    lacking = called(
        "show", other, json.loads(other.read_text("utf-8").splitlines()[1])["id"], "--run", answers, "--gold"
    )
    assert lacking.returncode == 2
    assert "`show --run --gold` does not support CauSim" in lacking.stderr
    (advised,) = re.findall(r"`calibrant (report .*) --out report.html` shows each answer", lacking.stderr)
    assert shlex.split(advised) == ["report", "--predictions", str(answers), "--pool", str(other)]


def test_a_report_counts_wrong_mechanisms_by_what_training_shows(case: tuple[Path, Path]) -> None:
    """Case 2 of the printed answer is never shown; with the whole table in training it is contradicted."""
    pool, answers = case
    lines = {}
    for name, hidden in (("never", NEVER_SHOWN), ("shown", [])):
        pool.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, case_record("case 2", hidden))), "utf-8")
        report = called("report", "--predictions", answers, "--pool", pool, "--table", "wrong", "--format", "csv")
        assert report.returncode == 0
        fields = [line.split(",") for line in report.stdout.splitlines()[1:]]
        lines[name] = {(row[3], row[7]): row[8] for row in fields}
    for name, never, contradicted in (("never", "1", "0"), ("shown", "0", "1")):
        assert lines[name]["printed", "num_never_shown"] == never
        assert lines[name]["printed", "num_contradicted"] == contradicted
        assert lines[name]["right", "num_wrong"] == lines[name]["broken", "num_wrong"] == "0"
