"""Drawings of panels: where marks are, what printed ones look like, and that names are text."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from calibrant.bench.pages.design.tokens import TOKENS
from calibrant.bench.report.figures.panels import Axis, Line, Mark, Panel, panels_svg, stacked_svg

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
    first, second, third, *_ = [c.get("style", "") for c in root.iter(f"{SVG}circle")]
    assert first.startswith("fill:var(--paper)")
    assert second.startswith("fill:var(--paper)")
    assert not third.startswith("fill:var(--paper)")
    assert [line.get("class") for line in root.iter(f"{SVG}polyline")] == ["path printed"]
    arrow = drawn((Line("s", (Mark(1, 0.5), Mark(9, 0.5)), arrow=True),))
    head = next(arrow.iter(f"{SVG}polygon")).get("points", "")
    assert {round(float(pair.split(",")[1])) for pair in head.split()} != {0}
    assert len(head.split()) == 3


def test_every_colour_is_a_token_and_tokens_stay_inside_the_drawing() -> None:
    svg = panels_svg([Panel("P", (Line("s", (Mark(1, 0.5),)),))], Axis("x"), Axis("y"), "t")
    style, rest = svg.split("</style>")
    assert not re.search(r"#[0-9a-f]{6}", rest)
    assert set(re.findall(r"var\(--([a-z0-9-]+)\)", svg)) <= TOKENS.keys()
    selectors = [part for part in re.findall(r"([^{}]+)\{", style.partition("<style>")[2]) if "@media" not in part]
    assert all(".cal-plot" in selector for selector in selectors)


def test_names_are_text_and_a_stack_has_a_part_for_each_number() -> None:
    hostile = "<b>&\x00"
    root = ElementTree.fromstring(stacked_svg({hostile: [1, 1, 2]}, {"a": "good", "b": "warn", "c": "bad"}, hostile))
    widths = [float(rect.get("width", "")) for rect in root.iter(f"{SVG}rect")][1:4]
    assert widths == [105.0, 105.0, 210.0]
    assert any("<b>&" in (text.text or "") for text in root.iter(f"{SVG}text"))
