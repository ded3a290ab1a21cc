"""The audit report: well-formed, self-contained, the same bytes for the same audits, and it works in a browser."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from calibrant.audits.replayscm.items import AuditOptions
from calibrant.bench.cli import main
from calibrant.bench.replayscm.audit import audit_pool
from calibrant.bench.replayscm.audit.page import agreement_plot, profile_plot
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from tests.support.browser import Tab, needs_chromium, pressed
from tests.support.replayscm.pools import ALL_ROWS, FOUR_MEMBERS, TWO_MEMBERS, written_pool

VOID = {"meta", "input", "br", "link", "img", "hr", "wbr"}
SVG_SHAPES = {"rect", "line", "circle", "path", "polygon", "polyline"}
EVIDENCE = [ALL_ROWS, TWO_MEMBERS, FOUR_MEMBERS]


class Page(HTMLParser):
    """Everything a test asks of a page; an element that is not closed where it should be is an error."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.tags: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            self.attributes.append((tag, name, value or ""))
        values = {name: value or "" for name, value in attrs}
        self.ids += [values["id"]] if "id" in values else []
        self.links += [values["href"]] if "href" in values else []
        if tag == "tr":
            self.cells.append([])
        if tag == "td":
            self.cells[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SVG_SHAPES, tag
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open and self.open[-1] not in ("tr", "tbody"):
            self.cells[-1][-1] += data


def written_report(pool: Path, file: Path, *more: str) -> str:
    assert main(["audit", str(pool), "--html", str(file), "--workers", "1", *more]) == 0
    return file.read_text(encoding="utf-8")


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return written_pool(tmp_path / "small.jsonl", EVIDENCE)


@pytest.fixture
def text(pool: Path, tmp_path: Path) -> str:
    return written_report(pool, tmp_path / "report.html")


def rows(text: str) -> list[list[Any]]:
    """Return the rows of the list: place of the page, id, verdict, fit, reason, further cells."""
    packed = re.search(r'<script type="application/json" id="rows">(.*?)</script>', text, re.DOTALL)
    assert packed is not None
    listed: list[list[Any]] = json.loads(packed[1])
    return listed


def test_the_page_is_well_formed_and_its_links_lead_somewhere(text: str) -> None:
    assert text.lstrip().startswith("<!DOCTYPE html>")
    page = Page(text)
    assert len(set(page.ids)) == len(page.ids)
    assert {"index", "filter", "rows", "page-0", "page-1", "page-2"} <= set(page.ids)
    assert {link.removeprefix("#") for link in page.links} <= set(page.ids)
    assert [row[0] for row in rows(text)] == [0, 1, 2]
    assert page.tags.count("details") == page.tags.count("summary")
    # two plots, a reliability diagram for each prior, a spectrum for every instance, two graphs of each open one
    assert page.tags.count("svg") == 2 + 3 + 3 + 2 * 2


def test_nothing_is_loaded_from_anywhere(text: str) -> None:
    page = Page(text)
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert not {"src", "srcset", "action", "poster", "data", "xlink:href"} & {name for _, name, _ in page.attributes}
    assert all(link.startswith("#") for link in page.links)
    outside = text.replace('xmlns="http://www.w3.org/2000/svg"', "").replace("url(#", "")  # of its own arrow heads
    assert re.findall(r"(?i)https?:|//[a-z]|@import|url\(|fetch\(|XMLHttp", outside) == []
    (policy,) = [value for tag, name, value in page.attributes if tag == "meta" and "default-src" in value]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def test_equal_audits_give_equal_bytes(pool: Path, tmp_path: Path, text: str) -> None:
    again = written_report(pool, tmp_path / "again.html", "--out", str(tmp_path / "records"), "--workers", "2")
    assert again == text
    assert written_report(pool, tmp_path / "resumed.html", "--out", str(tmp_path / "records")) == text


def test_the_table_says_what_the_truth_tables_say(text: str) -> None:
    listed = [row[1:] for row in rows(text)]
    assert [(row[0], row[1], row[2], row[8:12]) for row in listed] == [
        ("I0", "unique, k \u2264 4", "1", ["1"] * 4),
        ("I1", "ambiguous, k \u2264 4", "2", ["2"] * 4),
        ("I2", "ambiguous, k \u2264 4", "4", ["4"] * 4),
    ]
    assert [row[12] for row in listed] == ["1", "0.75", "0.5"]  # patterns of X1 and X2 that are shown
    assert [row[13] for row in listed] == ["1", "0.5", "0.25"]
    assert [row[16] for row in listed] == ["1", "0.5", "0.25"]  # every member has a behaviour of its own
    assert "<b>1</b> unique" in text
    assert "<b>2</b> ambiguous" in text
    assert listed[1][3].startswith("No row shows X3 with X1 = ")


def test_names_from_the_pool_are_text_and_nothing_else(tmp_path: Path) -> None:
    hostile = "<script>alert('1')</script>\"&"
    path = written_pool(tmp_path / "p.jsonl", [ALL_ROWS], id=hostile)
    text = written_report(path, tmp_path / "r.html")
    assert "<script>alert" not in text
    page = Page(text)
    assert page.tags.count("script") == 2
    assert [row[1] for row in rows(text)] == [hostile]


def _survivors(pool: Path, folder: Path) -> list[tuple[Problem, dict[str, Any] | None]]:
    assert main(["audit", str(pool), "--out", str(folder), "--workers", "1"]) == 0
    from calibrant.dsl.replayscm.pools.files import read_pool

    records = [json.loads(line) for line in (folder / "audits.jsonl").read_text().splitlines()]
    problems = read_pool(pool).problems
    return [(p, r["findings"]["survivors"]) for p, r in zip(problems, records, strict=True)]


def _truth(model: Scm, clamp: tuple[str, int], roots: dict[str, int]) -> dict[str, int]:
    """Values of all variables at one root assignment under one intervention, by the row-at-a-time reference."""
    values = {**roots} | ({clamp[0]: clamp[1]} if clamp[0] in roots else {})
    for variable in model.order:
        values[variable] = clamp[1] if variable == clamp[0] else evaluate(model.mechanisms[variable], values)
    return values


def test_survivors_fit_and_differ_as_stated(pool: Path, tmp_path: Path) -> None:
    """Recomputed row by row over all assignments of the roots."""
    seen = 0
    for problem, shown in _survivors(pool, tmp_path / "records"):
        if shown is None:
            continue
        grammar = problem.task.grammar
        pair = [scm(shown["roots"], {v: parse(t, grammar) for v, t in shown[m].items()}) for m in ("one", "other")]
        assert all(replays_exactly(model, problem.task.training.worlds) for model in pair)
        ((variable, value),) = shown["experiment"]["assignments"].items()
        rows = [{"X1": a & 1, "X2": a >> 1} for a in range(4)]
        values = [[_truth(model, (variable, value), row) for model in pair] for row in rows]
        differing = [one["X3"] != other["X3"] for one, other in values]
        assert sum(differing) / 4 == shown["disagreement_rate"]
        witness = shown["witness"]
        one, other = values[rows.index(witness["rootAssignment"])]
        assert witness["differences"] == [{"variable": "X3", "reference": one["X3"], "alternative": other["X3"]}]
        seen += 1
    assert seen == 2
    (_, unique), (_, two), (_, four) = _survivors(pool, tmp_path / "records")
    assert unique is None
    assert two is not None
    assert (two["looked_at"], two["disagreement_rate"], two["means_gold"] != "") == (2, 0.5, True)
    assert four is not None
    assert (four["looked_at"], four["disagreement_rate"]) == (4, 1.0)  # the constant 0 against X2, under do(X2=1)


def test_plots_have_a_point_for_every_count_in_the_right_order(pool: Path, tmp_path: Path) -> None:
    audited = audit_pool(pool, tmp_path / "records", AuditOptions(1, (1, 2)))
    anchors = {record.instance: f"i{record.index}" for record in audited.records}
    svg = profile_plot(audited.records, anchors).svg
    heights = {(title.split(":")[0], item): y for item, _, y, title in _points(svg)}
    assert len(heights) == 3 * 2
    of = {
        (item, bound): heights[f"{item.upper()}, parents <= {bound}", item]
        for item in anchors.values()
        for bound in (1, 2)
    }
    ticks = {text: float(y) - 4 for y, text in re.findall(r'y="([0-9.]+)" text-anchor="end">([^<]*)<', svg)}
    assert of["i0", 1] == ticks["empty"]  # nothing of one parent fits: below the scale
    assert of["i0", 2] == of["i1", 1] == ticks["0"] < ticks["empty"]  # 1 member: log10 is 0; y grows down
    assert of["i2", 2] < of["i1", 2] == of["i2", 1] < of["i0", 2]  # 4, 2, 1
    wider = audit_pool(pool, tmp_path / "records", AuditOptions(2, (2,)))
    points = {item: (x, y) for item, x, y, _ in _points(agreement_plot(wider.records, anchors).svg)}
    assert points["i0"][0] < points["i1"][0] < points["i2"][0]
    assert points["i0"][1] < points["i1"][1] < points["i2"][1]  # shares 1, 1/2, 1/4


def _points(svg: str) -> list[tuple[str, float, float, str]]:
    """Return instance, place and title of each point of a chart."""
    root = ElementTree.fromstring(svg)
    return [
        (mark.get("data-item", ""), float(mark.get("cx", "")), float(mark.get("cy", "")), "".join(mark.itertext()))
        for mark in root.iter("{http://www.w3.org/2000/svg}circle")
        if mark.get("data-item")
    ]


def test_an_instance_says_what_a_drawn_truth_means(text: str) -> None:
    """The sections of I2: its four members are 0, X2, X1 and X2, and X2 without X1, each with its own behaviour."""
    section = text[text.index('<template id="page-2">') :]
    section = section[section.index("<h2>What the audit measured") :]
    cells = Page(f"<div>{section[: section.index('</section>')]}</div>").cells
    assert ["a draw", "uniform", "functional parents <= 4, any formula size, Ordered", "0.25", ""] in cells
    (uniform,) = [row for row in cells if row[:2] == ["the best answer", "if uniform"]]
    assert uniform[3] == "0.25"
    assert next(row[:5] for row in cells if row[:1] == ["4"]) == ["4", "4", "1", "0.25", "0.60"]  # log10 of 4
    assert "It removes 0.7500 of them on average, and 0.7500 with gold's outcome." in section
    assert "Up to three targets: 1 sets of 0, 2 sets of 1, 1 sets of 2 separate them." in section
    assert "Local predecessor patterns that scored rows show: 2 of 4." in section
    assert ["X3", "1", "2", "0", "2 of 4"] in cells
    assert "local: gold size +2, at most 8, 50000 functions a size" in section


@needs_chromium
def test_sorting_filtering_and_points_work_in_a_browser(text: str, tmp_path: Path) -> None:
    """Headless Chromium runs the page with a script appended that presses what a reader would press."""
    presses = """
      const ids = () => [...document.querySelectorAll("#index tbody th")].map((head) => head.textContent).join(" ");
      said.push(ids());
      const heads = document.querySelectorAll("#index thead button");
      heads[2].click(); heads[2].click(); said.push(ids());
      for (const column of [12, 16, 17]) { heads[column].click(); said.push(ids()); }
      const filter = document.getElementById("filter");
      filter.value = "AMBIGUOUS"; filter.dispatchEvent(new Event("input")); said.push(ids());
      document.querySelector("circle[data-item=I2]").dispatchEvent(new MouseEvent("click", {bubbles: true}));
      said.push(decodeURIComponent(location.hash));
      said.push(performance.getEntriesByType("resource").length);
    """
    orders = ["I0 I1 I2", "I2 I1 I0", *["I2 I1 I0"] * 2, "I1 I2 I0", "I1 I2"]
    assert pressed(text, presses, tmp_path) == [*orders, "#I2", "0"]


@needs_chromium
def test_every_chart_has_its_room(text: str, tmp_path: Path) -> None:
    """On the screen and in print: a container without an inner width would collapse to nothing."""
    (tmp_path / "audit.html").write_text(text, encoding="utf-8")
    for medium, width in (("", 1280), ("", 390), ("print", 700)):
        with Tab() as tab:
            tab.emulate(width, medium=medium)
            tab.open((tmp_path / "audit.html").as_uri())
            rooms = "(svg) => Math.round(svg.parentElement.getBoundingClientRect().width)"
            widths = tab.evaluate(f"[...document.querySelectorAll('.audit svg')].map({rooms})")
            assert len(widths) == 2 + 3
            assert all(room > 300 for room in widths), (medium, width)
