"""Pictures in notebooks: bounded, escaped, self-contained, without anything sealed, and without a compiler."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import calibrant
from calibrant.bench.core.registry import bundled_pool, bundled_sample
from calibrant.bench.pages.notebook import draw_picture
from calibrant.dsl.pictures import MAX_PICTURE_LINES, MAX_PICTURE_ROWS, Picture, Pictured, PictureEdge
from tests.support.accessibility import PHONE, THEMES, measure, needs_axe
from tests.support.browser import Tab, needs_chromium
from tests.support.commands import CHECKOUT, program

NAMES = ("blickets", "causalab", "causim", "logic")
COLUMNS = {"A <b>": [0, 0, 1, 1, 0], "B": [0, 1, 0, 1, 1], "Y": [0, 0, 0, 1, 0]}
GAPS = {"A": [0, 1, None], "Y": [0, 1, 1]}
MAX_BYTES = 60_000


def item_of(name: str) -> Any:
    """Return the first item of a bundled pool."""
    return calibrant.load_pool(bundled_sample(name) if name in NAMES else bundled_pool(name))[0]


def records_of(folder: Path) -> calibrant.Records:
    return calibrant.run("copy-parent", calibrant.load_pool(bundled_pool("ordered"))[:2], folder / "runs")


def table_of(folder: Path) -> calibrant.RateTable:
    records_of(folder)
    return calibrant.table(folder / "runs")


VALUES: Mapping[str, Callable[[Path], Any]] = {
    "Pool": lambda folder: calibrant.load_pool(bundled_pool("ordered")),
    **{name: lambda folder, name=name: item_of(name) for name in (*NAMES, "ordered", "hidden-roots")},  # type: ignore[misc]
    "Task": lambda folder: item_of("block").task,
    "Scm": lambda folder: item_of("ordered").sealed.gold,
    "Found": lambda folder: calibrant.solve(item_of("ordered")),
    **{f"Solution {name}": lambda folder, name=name: calibrant.solve(item_of(name)).value for name in NAMES},  # type: ignore[misc]
    "Impossible": lambda folder: calibrant.solve(item_of("ordered"), max_parents=1),
    "OutOfBudget": lambda folder: calibrant.OutOfBudget("half <i>way</i>", 3),
    "VersionSpace": lambda folder: calibrant.version_space(item_of("ordered")),
    "LogicFamily": lambda folder: calibrant.version_space(item_of("logic")),
    "Fit": lambda folder: calibrant.fit(COLUMNS),
    "Fit target": lambda folder: calibrant.fit(COLUMNS, target="Y"),
    "Fit none": lambda folder: calibrant.fit(COLUMNS, target="Y", max_parents=1),
    "GapFit": lambda folder: calibrant.fit(GAPS, target="Y"),
    "GraphFit": lambda folder: calibrant.fit(COLUMNS, graph="B -> Y"),
    "NetworkFit": lambda folder: calibrant.learn_networks(COLUMNS),
    "NetworkClass": lambda folder: calibrant.network_class(["A", "B", "C"], [("A", "B"), ("B", "C")]),
    "Table": lambda folder: calibrant.read_table(COLUMNS),
    "BooleanNetwork": lambda folder: calibrant.read_network(CHECKOUT / "docs/examples/feedback.bnet"),
    "Score": lambda folder: calibrant.score(item_of("ordered"), "no"),
    "CausimScore": lambda folder: calibrant.score(item_of("causim"), "no"),
    "Verdicts": lambda folder: calibrant.score_many([item_of("ordered")], ["no"]),
    "Records": records_of,
    "RateTable": table_of,
}


class Balanced(HTMLParser):
    """Collects ids and elements that are not closed in their order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("pictures")
    drawn = {name: make(folder)._repr_html_() for name, make in VALUES.items()}
    assert all(isinstance(html, str) for html in drawn.values())
    return drawn


def test_every_public_class_of_values_has_a_picture() -> None:
    classes = {name for name in calibrant.__all__ if isinstance(getattr(calibrant, name), type)}
    without = {name for name in classes if not issubclass(getattr(calibrant, name), Pictured)}
    assert without == {
        *("BooleanSCM", "CalibrantError", "PoolError", "Protocol", "ProtocolResult"),
        *("Evaluation", "Finding", "Findings", "Generated", "Hardening", "Record", "SeparatedPair", "Step"),
        "TextEpisode",
    }


def test_pictures_are_balanced_small_and_load_nothing(pictures: dict[str, str]) -> None:
    ids: list[str] = []
    for html in pictures.values():
        parser = Balanced()
        parser.feed(html)
        assert parser.open == []
        ids += parser.ids
        assert len(html.encode()) < MAX_BYTES
        assert not re.search(r"<script|<link|<img|@import|url\((?!#)|https?://(?!www\.w3\.org/2000/svg)", html)
    assert len(set(ids)) == len(ids) > len(pictures)


def test_rules_reach_no_other_element(pictures: dict[str, str]) -> None:
    for html in pictures.values():
        (prefix,) = re.findall(r'<div class="calibrant-picture" id="([\w-]+)">', html)
        style = html[html.index("<style>") + 7 : html.index("</style>")]
        bare = re.sub(r"@media[^{]*\{", "", style)
        selectors = [part for rule in re.findall(r"([^{}]+)\{", bare) for part in rule.split(",")]
        assert len(selectors) > 40
        assert [selector for selector in selectors if f"#{prefix}" not in selector] == []


def test_names_are_escaped(pictures: dict[str, str]) -> None:
    assert "<b>" not in pictures["Table"] + pictures["Fit"] + pictures["NetworkFit"]
    assert "A &lt;b&gt;" in pictures["Table"]
    assert "<i>" not in pictures["OutOfBudget"]
    nodes, rows = {"</svg>": "<x>"}, (("<td>",),)
    hostile = Picture("</style><script>", ("&<",), nodes, (), "<c>", ("<h>",), rows, 1, text="<p onx>", code="</pre>")
    html = draw_picture(hostile)
    assert not re.search(r"<script|<x>|<c>|<h>|<p onx|</pre></pre>", html)
    assert html.count("</svg>") == 1


@pytest.mark.parametrize("name", [*NAMES, "ordered", "hidden-roots"])
def test_a_picture_of_an_item_has_nothing_sealed(name: str) -> None:
    item = item_of(name)
    assert replace(item, sealed=None).picture() == item.picture()


def test_tables_and_graphs_are_bounded() -> None:
    table = calibrant.read_table({f"V{k}": [k % 2, 1] * 500 for k in range(60)})
    picture = table.picture()
    assert (len(picture.rows), picture.num_rows) == (MAX_PICTURE_ROWS, 1000)
    html = draw_picture(picture)
    assert "24 of 1,000 rows. 40 of 60 columns." in html
    assert html.count("<th ") == 40
    assert html.count("<td>") == 40 * MAX_PICTURE_ROWS
    names = [f"N{k}" for k in range(30)]
    assert "30 nodes and 1 edge: graphs are drawn up to 24 and 120." in draw_picture(
        Picture("big", nodes=dict.fromkeys(names, ""), edges=(PictureEdge("N0", "N1"),))
    )
    long = draw_picture(Picture("long", code="line\n" * 500))
    assert long.count("line\n") + long.count("line<") <= MAX_PICTURE_LINES + 1
    assert "60 of 500 lines." in long


def test_graphs_are_drawn_with_and_without_cycles() -> None:
    nodes = {"A": "", "B": ""}
    layered = draw_picture(Picture("g", nodes=nodes, edges=(PictureEdge("A", "B", "bad"),)))
    ring = draw_picture(Picture("g", nodes=nodes, edges=(PictureEdge("A", "B", "open"), PictureEdge("B", "A", "open"))))
    assert layered.count('class="arrow bad"') == 1
    assert ring.count('class="arrow open"') == 2


def test_no_picture_of_an_item_imports_the_compiler() -> None:
    source = f"""
import sys
import calibrant
for path in {[str(bundled_pool("ordered")), *(str(bundled_sample(name)) for name in NAMES)]!r}:
    assert calibrant.load_pool(path)[0]._repr_html_()
print("numba" in sys.modules)
"""
    assert program("-c", source).stdout == "False\n"


def page_of(pictures: Mapping[str, str]) -> str:
    """Return a document with all pictures, each under a heading."""
    body = "".join(f"<h2>{name}</h2>{html}" for name, html in pictures.items())
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Pictures</title>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body><main><h1>All</h1>{body}</main></body></html>'


@needs_axe
@pytest.mark.parametrize("theme", THEMES)
def test_pictures_are_accessible_in_both_themes(theme: str, pictures: dict[str, str], tmp_path: Path) -> None:
    measured = measure(page_of(pictures), tmp_path, theme=theme, width=PHONE)
    assert (measured.violations, measured.requests) == ([], [])
    assert measured.scroll_width <= PHONE


@needs_chromium
@pytest.mark.parametrize("host", ['data-jp-theme-light="false"', 'class="vscode-dark"'])
def test_the_theme_of_the_notebook_goes_before_the_systems(host: str, pictures: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "dark.html"
    file.write_text(page_of(pictures).replace("<body", f"<body {host}"), encoding="utf-8")
    with Tab() as tab:
        tab.open(file.as_uri())
        ground = tab.evaluate("getComputedStyle(document.querySelector('.calibrant-picture')).backgroundColor")
    assert ground == "rgb(17, 21, 27)"
