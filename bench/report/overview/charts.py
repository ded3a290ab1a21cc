"""Marks of the first screen's rows: intervals and bars of classes as SVG in shares of the width, colours by token.

Positions are percentages, so a row is as wide as its column, and the end of blue is the accuracy at any width.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from html import escape

from calibrant.bench.answers.intervals import Interval
from calibrant.bench.pages.charts import foot_axis, rule
from calibrant.bench.report.overview.contract import Levels
from calibrant.bench.report.overview.results import CLASSES, RIGHT_CLASSES, SystemResult
from calibrant.bench.report.overview.sentences import count_text

HEIGHT, BAR = 34, 18
TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)


def percent(share: Fraction | float) -> str:
    """Return a share as a percentage that is exact to a hundredth of a pixel at 1,000 px."""
    return f"{float(100 * share):.4f}".rstrip("0").rstrip(".") + "%"


def _rules() -> Iterator[str]:
    for tick in TICKS:
        yield rule(percent(tick), 0, percent(tick), HEIGHT)


def _plot(label: str, marks: Iterator[str]) -> str:
    body = "".join(marks)
    return f'<svg class="row-plot" role="img" aria-label="{escape(label)}" width="100%" height="{HEIGHT}">{body}</svg>'


def interval_plot(system: SystemResult, interval: Interval | None) -> str:
    """Return the point of the accuracy with its interval, and the guess where there is one."""
    name = f"{system.name}: right {system.accuracy:.3f}"
    reach = "" if interval is None else f", 95 % interval {interval.low:.3f} to {interval.high:.3f}"
    return _plot(name + reach, _interval_marks(system.accuracy, interval, system.levels.guess))


def _interval_marks(accuracy: float, interval: Interval | None, guess: float | None) -> Iterator[str]:
    yield from _rules()
    middle = HEIGHT / 2
    if guess is not None:
        yield rule(percent(guess), 0, percent(guess), HEIGHT, "guess")
    if interval is not None:
        yield rule(percent(interval.low), middle, percent(interval.high), middle, "reach")
    yield f'<circle class="point" cx="{percent(accuracy)}" cy="{middle:g}" r="6"/>'


def class_bar(system: SystemResult) -> str:
    """Return the bar of classes with the levels marked. Missing and invalid answers are boxes at its end."""
    counts = [f"{count_text(system.bar_tally[kind])} {kind}" for kind in CLASSES if system.bar_tally[kind]]
    parts = ", ".join([*counts, refusals_text(system)] if system.unanswered else counts)
    draw = "" if system.levels.draw is None else f"; a draw is right {system.levels.draw:.3f}"
    label = f"{system.name}: {parts} of {count_text(system.tallied(*CLASSES))}{draw}"
    return _plot(label, _bar_marks(system))


def _bar_marks(system: SystemResult) -> Iterator[str]:
    yield from _rules()
    top = (HEIGHT - BAR) / 2
    position = Fraction(0)
    for kind, share in bar_shares(system):
        if share:
            x, width = percent(position), percent(share)
            yield f'<rect class="class-{kind}" x="{x}" y="{top:g}" width="{width}" height="{BAR}"/>'
        position += share
    yield from _level_marks(system.levels)


def refusals_text(system: SystemResult) -> str:
    """Return how many answers are invalid, and how many are missing."""
    counts = ((system.invalid, "invalid"), (system.unanswered - system.invalid, "no answer"))
    return ", ".join(f"{count_text(number)} {name}" for number, name in counts if number)


def bar_shares(system: SystemResult) -> list[tuple[str, Fraction]]:
    """Return the segments of a bar in their order: classes of answers, invalid ones, those without one; together 1."""
    shares = {kind: Fraction(system.counts[kind]) for kind in CLASSES} | dict.fromkeys(("invalid", "none"), Fraction(0))
    for outcome in system.outcomes:
        if not outcome.is_answered and outcome.kind not in RIGHT_CLASSES:
            shares[outcome.kind] -= outcome.weight
            shares["invalid" if outcome.is_invalid else "none"] += outcome.weight
    return [(kind, number / system.num_items) for kind, number in shares.items()]


def _level_marks(levels: Levels) -> Iterator[str]:
    for end in dict.fromkeys((levels.ceiling, levels.ceiling_bound)):
        if end is not None:
            triangle = '<path class="ceiling" d="M-5 0h10l-5 8z"/>'
            yield f'<svg class="over" x="{percent(end)}" width="1" height="8">{triangle}</svg>'
    if levels.draw is not None:
        yield rule(percent(levels.draw), 3, percent(levels.draw), HEIGHT - 3, "draw")


def axis() -> str:
    """Return the labels of an axis from 0 to 1, below the rows."""
    texts = "".join(foot_axis([(percent(tick), f"{tick:g}") for tick in TICKS], 0))
    return f'<svg class="row-plot" aria-hidden="true" width="100%" height="20">{texts}</svg>'
