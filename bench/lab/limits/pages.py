"""Output of a sweep: a plot with a curve for each way to answer, and a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.lab.limits.sweep import Point, Sweep
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.design.page import standalone_svg

LEAST = 1e-5  # seconds; what took less is drawn there


def plot(sweep: Sweep, points: Sequence[Point]) -> str:
    """Return an SVG file: medians joined by lines, bars up to the slowest problem, a cross where a curve stops."""
    lines = []
    for curve in sweep.curves:
        of_curve = [point for point in points if point.curve == curve.name]
        medians = (
            Mark(p.x, max(p.median, LEAST), max(p.median, LEAST), max(p.maximum, LEAST)) for p in of_curve if p.answered
        )
        stops = (Mark(p.x, max(p.median, LEAST), shape="cross", radius=5) for p in of_curve if p.stop)
        lines += [Line(curve.name, tuple(medians)), Line(curve.name, tuple(stops), kind="points")]
    x, y = Axis(sweep.axis), Axis("processor seconds", logarithmic=True)
    return standalone_svg(panels_svg([Panel(sweep.title, tuple(lines))], x, y, sweep.title))


def table(sweep: Sweep, points: Sequence[Point]) -> str:
    """Sizes down, curves across: median, and the slowest problem in brackets; below it why curves stop."""
    xs = sorted({point.x for point in points})
    cells = {(point.curve, point.x): _cell(point) for point in points}
    names = [curve.name for curve in sweep.curves]
    lines = [f"| {sweep.axis} | {' | '.join(names)} |", f"|--:|{'--:|' * len(names)}"]
    lines += [f"| {x} | {' | '.join(cells.get((name, x), '') for name in names)} |" for x in xs]
    stops = [f"- {point.curve} ends at {point.x}: {point.stop}" for point in points if point.stop]
    return "\n".join([*lines, "", *stops, ""])


def _cell(point: Point) -> str:
    if not point.answered:
        return "not answered"
    short = "" if point.answered == point.problems else f", {point.answered} of {point.problems}"
    return f"{_seconds(point.median)} ({_seconds(point.maximum)}{short})"


def _seconds(value: float) -> str:
    return f"{1000 * value:.3g} ms" if value < 1 else f"{value:.3g} s"
