"""Charts: where marks are, what printed ones look like, that names are text, and how wide letters are at least."""

from __future__ import annotations

import re
from itertools import combinations, pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from calibrant.bench.pages.charts import (
    Axis,
    BarRow,
    Face,
    Line,
    Mark,
    Panel,
    Part,
    Scale,
    bar_chart,
    bar_rows,
    figure,
    foot_axis,
    panels_svg,
    stacked_svg,
    text_at,
    text_width,
)
from calibrant.bench.pages.graphs import GraphNode, draw_ring
from calibrant.bench.pages.page import standalone_svg
from calibrant.bench.pages.tokens import TOKENS
from tests.support.browser import Tab, needs_chromium

PARTS = (Part("good"), Part("warn", is_striped=True), Part("bad"))
SVG = "{http://www.w3.org/2000/svg}"


def drawn(lines: tuple[Line, ...], panels: int = 1) -> ElementTree.Element:
    svg = panels_svg([Panel(f"P{k}", lines) for k in range(panels)], Axis("x", 0, 10), Axis("y", 0, 1), "a plot")
    return ElementTree.fromstring(svg)


def test_marks_are_where_their_values_say_and_intervals_reach_their_ends() -> None:
    root = drawn((Line("s", (Mark(0, 0), Mark(5, 0.5, 0.25, 0.75), Mark(10, 1))),))
    points = [(float(c.get("cx", "")), float(c.get("cy", ""))) for c in root.iter(f"{SVG}circle")][:3]
    (x0, y0), (x1, y1), (x2, y2) = points
    assert (x1, y1) == ((x0 + x2) / 2, (y0 + y2) / 2)
    assert x0 < x2
    assert y0 > y2
    (reach,) = [line for line in root.iter(f"{SVG}line") if line.get("class") == "reach"]
    ends = sorted((float(reach.get("y1", "")), float(reach.get("y2", ""))))
    assert ends == [y2 + (y0 - y2) * 0.25, y2 + (y0 - y2) * 0.75]


def test_printed_marks_are_hollow_on_dashed_lines_and_arrows_end_at_the_last_mark() -> None:
    root = drawn((Line("paper", (Mark(1, 0.1), Mark(2, 0.2)), printed=True), Line("ours", (Mark(3, 0.3),))))
    first, second, key = [c.get("style", "") for c in root.iter(f"{SVG}polygon")]
    third, _ = [c.get("style", "") for c in root.iter(f"{SVG}circle")]
    assert key == first
    assert first.startswith("fill:var(--paper)")
    assert second.startswith("fill:var(--paper)")
    assert not third.startswith("fill:var(--paper)")
    assert [line.get("class") for line in root.iter(f"{SVG}polyline")] == ["path printed"]
    arrow = drawn((Line("s", (Mark(1, 0.5), Mark(9, 0.5)), arrow=True),))
    head = next(arrow.iter(f"{SVG}polygon")).get("points", "")
    assert {round(float(pair.split(",")[1])) for pair in head.split()} != {0}
    assert len(head.split()) == 3


def test_every_colour_is_a_token_and_a_file_has_both_themes_as_numbers() -> None:
    svg = panels_svg([Panel("P", (Line("s", (Mark(1, 0.5),)),))], Axis("x"), Axis("y"), "t")
    assert not re.search(r"#[0-9a-f]{6}", svg)
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", svg)) == {"scale-3"}
    light, dark = TOKENS["scale-3"].light, TOKENS["scale-3"].dark
    file = standalone_svg(svg)
    style, rest = file.split("</style>")
    assert "var(" not in file
    assert rest.count(f"fill:{light}") == 2  # the mark and its key
    before, inside = style.split("@media screen and (prefers-color-scheme:dark)")
    assert f"fill: {TOKENS['ink'].light}" in before
    assert f"fill: {TOKENS['ink'].dark}" in inside
    assert f'[style*="fill:{light}"]{{fill:{dark}!important}}' in inside
    ElementTree.fromstring(file)


def test_names_are_text_and_a_stack_has_a_part_for_each_number() -> None:
    hostile = "<b>&\x00"
    root = ElementTree.fromstring(
        stacked_svg({"": {hostile: [1, 1, 2]}}, dict(zip("abc", PARTS, strict=True)), hostile)
    )
    widths = [float(rect.get("width", "")) for rect in root.iter(f"{SVG}rect") if rect.get("height") == "18"]
    assert widths == [105.0, 105.0, 210.0]
    assert any("<b>&" in (text.text or "") for text in root.iter(f"{SVG}text"))


def test_titles_of_panels_end_before_the_next_panel() -> None:
    titles = ["a model whose name is longer than its bars are wide", "b", "c"]
    root = ElementTree.fromstring(stacked_svg({title: {"x": [1]} for title in titles}, {"p": PARTS[0]}, "t"))
    places = [float(re.findall(r"translate\((\S+) ", part.get("transform", ""))[0]) for part in root.iter(f"{SVG}g")]
    assert len(places) == 3 + 1  # the legend
    assert places[1] - places[0] > text_width(titles[0], face="bold")


def test_scales_have_round_ticks_and_keep_values_inside() -> None:
    scale = Scale(0, 1, 100, 0)
    assert (scale.at(0), scale.at(0.25), scale.at(1), scale.at(2)) == (100, 75, 0, 0)
    assert scale.ticks(4) == [(100.0, "0"), (50.0, "0.5"), (0.0, "1")]
    assert [text for _, text in Scale(1, 57, 90, 0, logarithmic=True).ticks()] == ["1", "10"]
    assert [text for _, text in Scale(1, 3, 0, 90).ticks()] == ["1", "1.5", "2", "2.5", "3"]
    assert [text for _, text in Scale(1, 3, 0, 90, whole=True).ticks()] == ["1", "2", "3"]
    assert [text for _, text in Scale(0, 30, 0, 90, whole=True).ticks()] == ["0", "10", "20", "30"]
    assert [text for _, text in Scale(2e-5, 7e-5, 90, 0, logarithmic=True).ticks()] == ["2e-05", "5e-05"]
    assert [text for _, text in Scale(1e-7, 1e7, 0, 1, logarithmic=True).ticks(3)] == ["10⁻⁷", "0.01", "1000"]
    assert Scale(1, 100, 0, 200, logarithmic=True).at(10) == pytest.approx(100)


def test_bars_are_in_the_order_and_height_of_their_values() -> None:
    chart = bar_chart(["start", "1"], [57, 2], ["57", "2"], "two bars")
    heights = [
        float(part.split('"')[0]) for part in chart.split('class="bar-2"')[1:] for part in [part.split('height="')[1]]
    ]
    assert heights[0] > heights[1] > 0
    assert 'aria-label="two bars"' in chart


def test_bars_below_zero_go_to_the_left_of_the_same_line() -> None:
    root = ElementTree.fromstring(bar_rows([BarRow("a", 2, "+2"), BarRow("b", -1, "-1", "bar-3")], "odds"))
    (up, down), (zero,) = list(root.iter(f"{SVG}rect")), list(root.iter(f"{SVG}line"))
    start = float(zero.get("x1", ""))
    assert (float(up.get("x", "")), float(up.get("width", ""))) == (start, 150.0)
    assert (float(down.get("x", "")) + float(down.get("width", "")), float(down.get("width", ""))) == (start, 75.0)


def test_labels_that_would_touch_take_turns() -> None:
    def heights(*ticks: tuple[float, str]) -> list[str]:
        return re.findall(r' y="([0-9.]+)"', "".join(foot_axis(ticks, 0)))

    assert heights((0, "a"), (50, "b"), (100, "c")) == ["15", "15", "15"]
    assert heights((0, "a long label"), (50, "another one"), (100, "c")) == ["15", "29", "15"]
    assert heights((0, "two\nlines"), (90, "one")) == ["15", "29", "15"]


def test_notes_stand_apart_from_each_other_and_from_marks() -> None:
    marks = tuple(Mark(5, 0.5 + k / 1000, note=f"system {k}") for k in range(8))
    root = drawn((Line("s", marks, kind="points"),))
    heights = sorted(float(n.get("y", "")) for n in root.iter(f"{SVG}text") if n.get("class") == "note-text")
    assert len(heights) == 8
    assert min(below - above for above, below in pairwise(heights)) >= 13


@needs_chromium
@pytest.mark.parametrize(("pixels", "face"), [(12, "plain"), (13, "bold"), (12, "mono")])
def test_texts_are_no_wider_than_measured(tmp_path: Path, pixels: int, face: Face) -> None:
    """In a browser; a width that is more than twice too large would waste room."""
    style = {"plain": "", "bold": "font-weight:600;", "mono": "font-family:ui-monospace,monospace;"}[face]
    texts = [
        "battery",
        "WWWWMMMM",
        "illicit",
        "X12_y = a & !b",
        "GPT-5.4 (paper)",
        "10 \N{MULTIPLICATION SIGN} 4",
        "\u6f22\u5b57",
    ]
    marks = [
        text_at(text, 0, 20 * (k + 1), more=f'style="{style}font-size:{pixels}px"') for k, text in enumerate(texts)
    ]
    (tmp_path / "texts.svg").write_text(standalone_svg(figure(400, 200, "texts", marks)), encoding="utf-8")
    with Tab() as tab:
        tab.open((tmp_path / "texts.svg").as_uri())
        widths = tab.evaluate("[...document.querySelectorAll('text')].map((text) => text.getBBox().width)")
    for text, width in zip(texts, widths, strict=True):
        assert width <= text_width(text, pixels, face) < 2 * width, text


def test_no_two_tokens_share_a_light_colour() -> None:
    """Rules of the dark theme find colours of a file by their number."""
    assert len({token.light for token in TOKENS.values()}) == len(TOKENS)


@pytest.mark.parametrize("number", range(1, 13))
def test_boxes_of_a_ring_cover_no_other(number: int) -> None:
    nodes = [GraphNode(f"A_NAME_OF_{'MANY_' * (k % 4)}LETTERS_{k}", "label") for k in range(number)]
    drawing = draw_ring(nodes, [], "a ring", "ring")
    numbers = r'<rect class="box" x="([-\d.]+)" y="([-\d.]+)" width="([-\d.]+)" height="([-\d.]+)"'
    boxes = [tuple(map(float, box)) for box in re.findall(numbers, drawing)]
    assert len(boxes) == number
    for (x, y, width, height), (other_x, other_y, other_width, other_height) in combinations(boxes, 2):
        is_beside = x + width <= other_x or other_x + other_width <= x
        assert is_beside or y + height <= other_y or other_y + other_height <= y
