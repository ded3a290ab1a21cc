"""Pages of reasons: of one item, of many, and of every kind."""

from __future__ import annotations

import base64
import io
import json
import re
import unicodedata
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from time import process_time

import pytest
from markupsafe import Markup, escape

from calibrant.audits.why import Why, number_text
from calibrant.bench.core.registry import benchmark_of, bundled_pool, bundled_sample
from calibrant.bench.pages.capabilities import EXPLANATIONS
from calibrant.bench.pages.page import WhyTable
from calibrant.bench.pages.why import (
    MAX_EMBEDDED,
    MAX_ROWS,
    MAX_UNFOLDED,
    IndexItem,
    IndexText,
    index_page,
    shown_table,
    tables_body,
    why_page,
)
from calibrant.bench.runs.audits import ReasonRecord, explain_item
from tests.support.accessibility import DESKTOP, PHONE, find_violations, measure, needs_axe
from tests.support.browser import Tab, needs_chromium, pressed
from tests.support.commands import CHECKOUT, called
from tests.support.packages import needs
from tests.support.suites import SPECIFICATION, write_specification

# --- Pages of why items of blickets, CausaLab and CauSim are open: text, keys of accessibility, no network ------------
EXAMPLES = {
    "blickets": "conjunctive-20-0",
    "causalab": "4nodes/20/1",
    "causim": "tree-0001-s20-v04-intervention-000",
}


def page(name: str, num_moves: int = 4) -> str:
    pool = bundled_sample(name)
    bench = benchmark_of(pool)
    item = next(item for item in bench.items.read_pool(pool).items if item.id == EXAMPLES[name])
    steps = []
    if name == "blickets":
        episode = bench.play.open(item)
        for thing in item.task.objects[:num_moves]:
            episode.act({"place": thing})
        steps = list(episode.steps)
    explanations = bench.require(EXPLANATIONS)
    why = explanations.explain(item, steps)
    return why_page(why, explanations.body(why, "why"), pool.name, why.item)


@needs_axe
@pytest.mark.parametrize(
    ("name", "theme", "width"), [("blickets", "dark", PHONE), ("causalab", "light", PHONE), ("causim", "dark", DESKTOP)]
)
def test_a_page_is_accessible_and_fits_its_width(name: str, theme: str, width: int, tmp_path: Path) -> None:
    found = measure(page(name), tmp_path, theme=theme, width=width)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= width


@pytest.mark.parametrize("name", EXAMPLES)
def test_terminal_json_and_page_have_one_reason(name: str, tmp_path: Path) -> None:
    pool, item, file = bundled_sample(name), EXAMPLES[name], tmp_path / "why.html"
    reason = json.loads(called("show", pool, item, "--why", "--json").stdout)["reason"]
    text = "".join(span["text"] for span in reason)
    assert text in called("show", pool, item, "--why").stdout.splitlines()
    assert called("show", pool, item, "--why", "--html", file).returncode == 0
    written = file.read_text(encoding="utf-8")
    texts = [(str(escape(s["text"])), s.get("marked")) for s in reason]
    assert "".join(f"<mark>{text}</mark>" if marked else text for text, marked in texts) in written
    assert "<main " in written


def test_after_the_moves_of_a_prediction_the_reason_is_another(tmp_path: Path) -> None:
    pool = bundled_sample("blickets")
    bench = benchmark_of(pool)
    item = next(item for item in bench.items.read_pool(pool).items if item.id == EXAMPLES["blickets"])
    lines = []
    for model, number in (("short", 1), ("long", 3)):
        episode = bench.play.open(item)
        for thing in item.task.objects[:number]:
            episode.act({"place": thing})
        steps = [{"action": dict(s.action), "reading": s.reading, "cost": s.cost} for s in episode.steps]
        lines.append({"instanceId": item.id, "model": model, "steps": steps})
    predictions = tmp_path / "predictions.jsonl"
    predictions.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    both = called("show", pool, item.id, "--run", predictions, "--why")
    assert (both.returncode, both.stderr.count("\n")) == (2, 1)
    assert "choose one with --system" in both.stderr
    done = called("show", pool, item.id, "--run", predictions, "--why", "--system", "long", "--json")
    assert len(json.loads(done.stdout)["moves"]) == 3


def test_long_tables_are_folded_and_complete() -> None:
    table = WhyTable("Rows", "all of them", ("number",), tuple((f"row {k:02d}",) for k in range(70)), frozenset({20}))
    shown = shown_table(table)
    rows = [line["cells"][0] for line in (*shown["lines"], *shown["folded"])]
    assert rows == [f"row {k:02d}" for k in range(MAX_ROWS)]
    assert (len(shown["lines"]), shown["more"]) == (MAX_UNFOLDED, 10)
    bench = benchmark_of(bundled_sample("causim"))
    why = explain_item(bench, bench.items.read_pool(bundled_sample("causim")).items[0])
    assert isinstance(why, Why)
    page = str(tables_body(why, [table], (), "why"))
    assert [page.count(row) for row in rows] == [1] * MAX_ROWS
    assert page.index("48 more rows") < page.index("row 20")


# --- The page of many items: list, filter, pages inside, keys; sizes at 100,000 items ---------------------------------


def reasons(number: int) -> Iterator[IndexItem]:
    for k in range(number):
        text = f"No row shows X{k}</script> & so on, with X{k % 7} = 1 and X{k % 11} = 0 while it is free; SCMs fit."
        reason = ReasonRecord("open" if k % 2 else "decided", text, number_text((k + 1) ** (1 + 9 * (k % 3))), "", "")
        yield IndexItem(
            f"item {k} <b>", reason, Markup(f'<h1 id="i{k}-head">Page of {k}</h1>'), cells=(f"{k % 5}.5", "-")
        )


COLUMNS = IndexText("Items", "Audit", "calibrant audit p.jsonl --only ID --html FILE", columns=("share", "nothing"))


def rows(page: str) -> list[list[object]]:
    """Return the packed rows, decoded by this file's own code."""
    packed = re.search(r'<script type="([a-z/]+)" id="rows">(.*?)</script>', page, re.DOTALL)
    assert packed is not None
    text = packed[2] if packed[1] == "application/json" else zlib.decompress(base64.b64decode(packed[2]), 31).decode()
    listed: list[list[object]] = json.loads(text)
    return listed


def test_each_item_has_its_row_and_the_first_have_their_page() -> None:
    page = index_page("p.jsonl", reasons(250))
    assert len(rows(page)) == 250
    assert rows(page)[3][:4] == [3, "item 3 <b>", "open", "4"]
    assert str(rows(page)[3][4]).startswith("No row shows X3</script> & so on")
    assert [row[0] for row in rows(page)] == [*range(MAX_EMBEDDED), *[None] * 50]
    assert page.count("<template id=") == MAX_EMBEDDED
    assert "calibrant show p.jsonl ID --why --html FILE" in page
    assert "calibrant audit p.jsonl --only ID --html FILE" in index_page("p.jsonl", reasons(250), COLUMNS)


@needs_chromium
def test_filter_pages_links_and_keys(tmp_path: Path) -> None:
    presses = """
    const lines = () => document.querySelectorAll("#index tbody tr").length;
    const wait = () => dispatchEvent(new HashChangeEvent("hashchange"));
    const key = (name) => { document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true})); wait(); };
    said.push(lines());
    document.getElementById("later").click(); said.push(lines());
    const filter = document.getElementById("filter");
    filter.value = "x119"; filter.dispatchEvent(new Event("input")); said.push(lines());
    location.hash = encodeURIComponent("item 7 <b>"); wait();
    said.push(document.querySelector("#view h1").textContent, document.getElementById("list").hidden);
    key("j"); said.push(document.querySelector("#view h1").textContent);
    key("k"); key("k"); said.push(document.querySelector("#view h1").textContent);
    key("Escape"); said.push(document.getElementById("list").hidden);
    """
    expected = ["100", "25", "1", "Page of 7", "true", "Page of 8", "Page of 6", "false"]
    assert pressed(index_page("p.jsonl", reasons(125)), presses, tmp_path) == expected


@needs_chromium
def test_columns_are_sorted_as_the_numbers_that_they_show(tmp_path: Path) -> None:
    """Counts such as 1,024 and 3.6 x 10^9 stand in one column; the expected order is of the numbers themselves."""
    presses = """
    const heads = document.querySelectorAll("#index thead button");
    const names = () => [...document.querySelectorAll("#index tbody th")].map((head) => head.textContent);
    const ids = () => names().map((name) => name.split(" ")[1]).join(" ");
    heads[2].click(); said.push(ids()); heads[2].click(); said.push(ids());
    said.push(document.querySelector("[aria-sort]").getAttribute("aria-sort"));
    heads[4].click(); said.push(ids());
    """
    number = 12
    up = sorted(range(number), key=lambda k: (k + 1) ** (1 + 9 * (k % 3)))
    share = sorted(range(number), key=lambda k: (k % 5, k))
    expected = [" ".join(map(str, order)) for order in (up, up[::-1], share)]
    answers = pressed(index_page("p.jsonl", reasons(number), COLUMNS), presses, tmp_path)
    assert answers == [*expected[:2], "descending", expected[2]]


@needs_chromium
def test_a_long_list_is_unpacked_by_the_browser(tmp_path: Path) -> None:
    page = index_page("p.jsonl", reasons(20_000))
    assert 'type="text/plain" id="rows"' in page
    file = tmp_path / "long.html"
    file.write_text(page, encoding="utf-8")
    with Tab() as tab:
        tab.open(file.as_uri())
        tab.wait("document.body.textContent.includes('1 to 100 of 20000')", seconds=60)
    assert len(rows(page)) == 20_000


@needs_axe
def test_the_list_is_accessible_on_a_phone(tmp_path: Path) -> None:
    found = measure(index_page("p.jsonl", reasons(40)), tmp_path, theme="dark", width=PHONE)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= PHONE


def test_100_000_items_are_a_file_of_few_megabytes() -> None:
    """Seconds of a loaded machine: what is quadratic would take minutes."""
    started = process_time()
    page = index_page("p.jsonl", reasons(100_000), COLUMNS)
    assert len(page) < 20_000_000
    assert len(rows(page)) == 100_000
    assert process_time() - started < 20


def test_list_writes_one_page_and_prints_reasons(tmp_path: Path) -> None:
    pool = bundled_pool("hidden-order")
    done = called("list", pool, "--html", tmp_path / "index.html", "--limit", 2)
    assert done.returncode == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    printed = [json.loads(line) for line in called("list", pool, "--why", "--limit", 2, "--json").stdout.splitlines()]
    assert [(row[1], row[3], row[4]) for row in rows(page)] == [
        (one["id"], one["fit"], one["reason"]) for one in printed
    ]
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<template id=") == 2


# --- A page of each kind: both themes, real keys, reload, print, a phone, no network ----------------------------------
FIRST_EPISODE = "CAL_hs_n6_easy_calibration_episode_hidden-order_1"
CARD = ("--system", "mine", "--system-version", "1", "--submitter", "me", "--date", "2026-01-02")
KIND_EXAMPLES = CHECKOUT / "docs" / "examples"
NETWORKS = ("--score", "bde", "--graph", "left -> lamp", "--effect", "lamp=1 | do(left=1)")
KINDS = (
    *("why", "index", "audit", "report", "failure", "episodes", "trajectory", "review", "fit", "next-world"),
    *("difficulty", "release", "board", "cell", "networks", "class", "steps"),
)
LEAST_FONT = """Math.min(...[...document.querySelectorAll("body *")]
  .filter((part) => [...part.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim()))
  .filter((part) => part.checkVisibility() && part.getClientRects().length)
  .map((part) => [part, part.closest("svg") ? part.getScreenCTM() : { a: 1, b: 0 }])  // b: of turned labels
  .map(([part, matrix]) => parseFloat(getComputedStyle(part).fontSize) * Math.hypot(matrix.a, matrix.b)))"""
FOLDED_AND_UNSEEN = """[...document.querySelectorAll("details:not([open])")].filter((part) => part.checkVisibility())
  .filter((part) => ![...part.querySelectorAll(":scope > :not(summary)")].some((child) => child.checkVisibility()))
  .length"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("kinds")
    switches, cells, labs = KIND_EXAMPLES / "switches.jsonl", bundled_sample("blickets"), bundled_sample("causalab")
    pages = {kind: folder / f"{kind}.html" for kind in KINDS}
    worlds, suite = bundled_sample("replayscm_episodes"), folder / "suite"
    whole, _, _ = SPECIFICATION.rpartition("[[pool]]")  # one pool of two
    specification = write_specification(folder, whole)
    site = folder / "site" / "two-pools-1.0"
    pages |= {"release": suite / "public" / "index.html", "board": site / "index.html"}
    pages["class"] = folder / "class" / "class.html"
    pages["cell"] = site / "systems" / "one" / "detectors.html"
    answers = suite / "gold" / "rows" / "static" / "detectors.jsonl"
    scores, played = folder / "scores.jsonl", folder / "played"
    lines = [
        ("show", switches, "lamp", "--html", pages["why"]),
        ("list", switches, "--html", pages["index"]),
        ("audit", switches, "--html", pages["audit"]),
        ("run", "copy-parent", switches, "--out", folder / "answers"),
        ("show", switches, "lamp", "--run", folder / "answers", "--gold", "--html", pages["failure"]),
        ("score", switches, KIND_EXAMPLES / "answers.jsonl", "--out", scores),
        ("report", scores, "--pool", switches, "--attribution", "--out", pages["report"]),
        ("run", "quiet", cells, "--limit", "1", "--out", folder / "cells"),
        ("show", cells, "conjunctive-20-0", "--run", folder / "cells", "--html", pages["episodes"]),
        ("run", "abstain", labs, "--limit", "1", "--out", folder / "labs"),
        ("show", labs, "3nodes/20/0", "--run", folder / "labs", "--html", pages["trajectory"]),
        ("fit", KIND_EXAMPLES / "switches.csv", "--target", "lamp", "--html", pages["fit"]),
        ("fit", KIND_EXAMPLES / "switches.csv", *NETWORKS, "--html", pages["networks"]),
        ("fit", KIND_EXAMPLES / "switches.csv", "--target", "lamp", "--html", pages["steps"], "--steps"),
        ("demo", "--class", "--out", folder / "class"),
        ("show", worlds, FIRST_EPISODE, "--why", "--html", pages["next-world"]),
        ("run", "base,quiet", cells, "--out", folder / "runs"),
        ("difficulty", folder / "runs", "--pool", cells, "--html", pages["difficulty"]),
        ("release", specification, "--out", suite),
        ("submission", suite, answers, *CARD, "--out", folder / "sent" / "one"),
        ("board", suite, folder / "sent", "--out", site.parent),
        ("play", cells, "conjunctive-20-0", "--out", played, "--participant", "p1"),
        ("play", cells, "--out", played, "--participant", "p1", "--review", pages["review"]),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("place A\ncheck conjunctive A B\n"))
        for line in lines:
            done = called(*line)
            status = 1 if line[-1] == "p1" else 0  # of an answer that is not right
            assert done.returncode == status, (line, done.stderr)
    return pages


MAX_RELOADS = 20
# of tables, where a heading is a button that sorts and buttons are not printed
UNSEEN_HEADINGS = """[...document.querySelectorAll("th")].map((heading) => [heading, heading.textContent.trim()])
  .filter(([heading, text]) => text && heading.getClientRects().length && !heading.innerText.trim())
  .map(([, text]) => text)"""


@needs_axe
@pytest.mark.parametrize("kind", KINDS)
def test_a_page_is_read_in_both_themes_by_keys_on_a_phone_and_in_print(kind: str, pages: dict[str, Path]) -> None:
    with Tab() as tab:
        tab.emulate(PHONE, dark=True)
        tab.open(pages[kind].as_uri())
        assert find_violations(tab) == []
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE
        assert tab.evaluate(LEAST_FONT) >= 9
        tab.press("Tab")
        tab.press("?")
        assert tab.evaluate("[keys.hidden, document.activeElement.id]") == [False, "keys"]
        tab.press("Escape")
        assert tab.evaluate("[keys.hidden, document.activeElement.className]") == [True, "skip"]
        for _ in range(MAX_RELOADS):  # a reload may outrun what a page stores: seen once in 60 pages on a busy machine
            tab.evaluate("theme.click()")
            assert tab.evaluate("document.documentElement.dataset.theme") == "light"
            tab.reload()
            if tab.evaluate("document.documentElement.dataset.theme") is not None:
                break
        assert tab.evaluate("document.documentElement.dataset.theme") == "light"
        assert find_violations(tab) == []
        tab.emulate(DESKTOP, medium="print")
        assert tab.evaluate("getComputedStyle(document.querySelector('.bar nav')).display") == "none"
        assert tab.evaluate(FOLDED_AND_UNSEEN) == 0
        assert tab.evaluate(UNSEEN_HEADINGS) == []
        assert tab.evaluate("performance.getEntriesByType('resource').length") == 0


# --- On paper: headings are read back from the PDF, nothing is cut, a report of 20 items has ten pages at most --------
PRINT_WIDTH = 703  # of A4 within margins of 12 mm, at 96 px an inch
HEADINGS = """[...document.querySelectorAll("th, h1, h2, h3")].filter((part) => part.getClientRects().length)
  .map((part) => part.textContent)"""
CUT = """[...document.querySelectorAll("table, pre, svg")].filter((part) => part.getClientRects().length)
  .filter((part) => part.getBoundingClientRect().right > innerWidth)
  .map((part) => `${part.tagName} of ${part.closest("[id]").id}`)"""
MAX_REPORT_PAGES = 10


def squeezed(text: str) -> str:
    """Return a text without spaces, and without the ligatures that fonts have."""
    return "".join(unicodedata.normalize("NFKC", text).replace("\u00ad", "").split())


def printed(tab: Tab) -> list[str]:
    """Return the texts of the printed pages of a tab, squeezed."""
    import pypdf

    return [squeezed(page.extract_text()) for page in pypdf.PdfReader(tab.print_pdf()).pages]


def check_print(tab: Tab, page: Path) -> list[str]:
    """Check that every visible heading is on paper and nothing is wider; return the texts of the pages."""
    tab.emulate(DESKTOP)
    tab.open(page.as_uri())
    texts = printed(tab)
    tab.emulate(PRINT_WIDTH, medium="print")
    tab.evaluate("dispatchEvent(new Event('beforeprint'))")
    headings = tab.evaluate(HEADINGS)
    assert headings
    whole = "".join(texts)
    assert [heading for heading in headings if squeezed(heading) not in whole] == []
    assert tab.evaluate(CUT) == []
    return texts


@needs_chromium
@pytest.mark.parametrize("kind", KINDS)
def test_a_printed_page_has_its_headings_and_all_of_its_columns(kind: str, pages: dict[str, Path]) -> None:
    needs("pypdf")
    with Tab() as tab:
        texts = check_print(tab, pages[kind])
    # of six items each has a sheet and answers on pages of their own, one of them two
    assert len(texts) <= (13 if kind == "class" else 4)
    assert f"1of{len(texts)}" in texts[0]
    assert not any('"benchmark":' in text for text in texts)  # JSON is for programs


@needs_chromium
@pytest.mark.parametrize("columns", [(), tuple(f"Column{k}" for k in range(14))])
def test_headings_of_a_long_table_are_on_each_of_its_pages(columns: tuple[str, ...], tmp_path: Path) -> None:
    needs("pypdf")
    page = tmp_path / "long.html"
    text = IndexText("Items", "Audit", "calibrant audit p.jsonl --only ID --html FILE", columns=columns)
    rows = (replace(item, cells=("0.125",) * len(columns)) for item in reasons(90))
    page.write_text(index_page("p.jsonl", rows, text), encoding="utf-8")
    with Tab() as tab:
        texts = check_print(tab, page)
    with_rows = [text for text in texts if "whileitisfree" in text]
    assert len(with_rows) > 2
    assert all("verdict" in text for text in with_rows)
    assert all(squeezed(name) in text for name in columns for text in with_rows)


@needs_chromium
@pytest.mark.parametrize(("name", "methods"), [("blickets", "base,quiet,static"), ("causalab", "abstain")])
def test_a_printed_report_of_20_items_has_ten_pages_at_most(name: str, methods: str, tmp_path: Path) -> None:
    needs("pypdf")
    pool, page = bundled_sample(name), tmp_path / "report.html"
    run = called("run", methods, pool, "--limit", "20", "--out", tmp_path / "run", "--workers", "1")
    assert run.returncode == 0, run.stderr
    done = called("report", tmp_path / "run", "--pool", pool, "--attribution", "--out", page)
    assert done.returncode == 0, done.stderr
    with Tab() as tab:
        texts = check_print(tab, page)
        assert len(texts) <= MAX_REPORT_PAGES
        starts = [k for k, text in enumerate(texts) if text.startswith(f"{k + 1}of{len(texts)}Results")]
        assert len(starts) == 1  # a section begins a page
        assert "InthePaper" not in "".join(texts)
        tab.emulate(DESKTOP)
        tab.evaluate("document.getElementById('paper').click()")
        assert len(printed(tab)) > len(texts)


@needs_chromium
def test_a_printed_report_of_several_benchmarks_has_two_pages_for_each_and_what_was_opened(tmp_path: Path) -> None:
    needs("pypdf")
    pools = [bundled_sample("blickets"), bundled_sample("causalab")]
    for name, methods, pool in zip(("detectors", "labs"), ("base,quiet,static", "abstain"), pools, strict=True):
        run = called("run", methods, pool, "--limit", "20", "--out", tmp_path / name, "--workers", "1")
        assert run.returncode == 0, run.stderr
    page, runs = tmp_path / "report.html", (tmp_path / "detectors", tmp_path / "labs")
    done = called("report", *runs, "--pool", pools[0], "--pool", pools[1], "--attribution", "--out", page)
    assert done.returncode == 0, done.stderr
    with Tab() as tab:
        texts = check_print(tab, page)
        assert len(texts) <= 2 + 2 * len(pools)
        assert "Onthescreen:Agentsbycondition" in "".join(texts)
        first = squeezed("RE rate")
        assert first not in "".join(texts)
        tab.emulate(DESKTOP)
        tab.evaluate("document.getElementById('table-standing').open = true")
        assert first in "".join(printed(tab))


@needs_chromium
def test_two_wide_graphs_stand_below_each_other_on_paper(tmp_path: Path) -> None:
    """Of seven causes a graph is 695 px wide, and half a page 340: it ran into the other one."""
    needs("pypdf")
    table, page = tmp_path / "wide.csv", tmp_path / "wide.html"
    rows = [[k >> place & 1 for place in range(7)] for k in range(0, 128, 9)]
    lines = [",".join(map(str, [*row, row[0] & row[1] | row[2]])) for row in rows]
    table.write_text("\n".join([",".join([f"column{k}" for k in range(7)] + ["out"]), *lines]) + "\n", encoding="utf-8")
    assert called("fit", table, "--target", "out", "--html", page).returncode == 0
    with Tab() as tab:
        check_print(tab, page)
        drawn = "[...document.querySelectorAll('.pair svg')].map((part) => part.getBoundingClientRect())"
        first, second = tab.evaluate(f"{drawn}.map((box) => [box.left, box.right, box.top, box.bottom])")
        assert first[3] <= second[2]
        assert max(first[1], second[1]) <= PRINT_WIDTH
