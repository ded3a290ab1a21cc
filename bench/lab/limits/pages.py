"""Output of a sweep: a plot with a curve for each way to answer, and a table in Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.lab.limits.sweep import Point, Sweep
from calibrant.bench.report.figures.drawing import drawn_svg, legend, looks, new_figure, plain, style

LEAST = 1e-5  # seconds; what took less is drawn there


def plot(sweep: Sweep, points: Sequence[Point]) -> str:
    """Return an SVG: medians joined by lines, bars up to the slowest problem, a cross where a curve stops."""
    with style():
        figure, ((axes,),) = new_figure(1, 1, extra=1.5)
        look = looks(curve.name for curve in sweep.curves)
        for curve in sweep.curves:
            curve_points = [point for point in points if point.curve == curve.name and point.answered]
            xs = [point.x for point in curve_points]
            middle = [max(point.median, LEAST) for point in curve_points]
            above = [max(point.maximum, LEAST) - low for point, low in zip(curve_points, middle, strict=True)]
            colour, marker = look[curve.name]
            reach = [[0.0] * len(curve_points), above]
            axes.errorbar(
                xs,
                middle,
                yerr=reach,
                color=colour,
                marker=marker,
                linewidth=1.2,
                elinewidth=0.8,
                label=plain(curve.name),
            )
            stops = [point for point in points if point.curve == curve.name and point.stop]
            heights = [max(point.median, LEAST) for point in stops]
            axes.plot([point.x for point in stops], heights, "x", color=colour, markersize=9)
        axes.set_yscale("log")
        axes.set_xlabel(sweep.axis)
        axes.set_ylabel("processor seconds")
        axes.set_title(plain(sweep.title))
        legend(figure, [axes])
        return drawn_svg(figure)


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
