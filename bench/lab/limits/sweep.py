"""A sweep: the same question asked of ever larger problems, until it takes too long or is refused."""

from __future__ import annotations

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from statistics import median
from types import FrameType
from typing import NamedTuple, TypeAlias

import msgspec

from calibrant.bench.lab.speed.report import seconds
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import standalone_svg
from calibrant.dsl.errors import CalibrantError

MAX_SECONDS = 30.0  # seconds of a problem, which is interrupted then if Python has control
PROBLEMS = 5

Ask: TypeAlias = Callable[[], str | None]
"""Asks the question; None if it was answered, else in a few words why not."""


class Curve(NamedTuple):
    """One way to answer.

    xs: sizes, ascending; prepare: makes the question of a size and a seed, which is not timed
    """

    name: str
    xs: Sequence[int]
    prepare: Callable[[int, int], Ask]


class Sweep(NamedTuple):
    """A question to problems of growing size.

    key: of the file of its plot; title: the question; axis: what the sizes are
    problems: of each size; most_seconds: a curve ends where half of them took longer
    apart: each problem in a process of its own, for what Python cannot interrupt
    """

    key: str
    title: str
    axis: str
    curves: Sequence[Curve]
    problems: int = PROBLEMS
    max_seconds: float = MAX_SECONDS
    apart: bool = False


class Point(msgspec.Struct, frozen=True, omit_defaults=True):
    """One size on one curve.

    median, most: processor seconds of a problem; answered: of how many of the `problems` asked
    stop: why the curve ends here, empty if it does not or if no larger size was to be asked
    """

    key: str
    curve: str
    x: int
    problems: int
    answered: int
    median: float
    maximum: float
    stop: str = ""


def points(sweep: Sweep, seeds: Sequence[int], minutes: float) -> Iterator[Point]:
    """Yield every curve as far as it goes.

    minutes: after which a curve begins no further size
    """
    for curve in sweep.curves:
        until = time.monotonic() + 60 * minutes
        for x in curve.xs:
            if time.monotonic() >= until:
                break
            if x == curve.xs[0]:
                _within(curve.prepare(x, len(seeds)), sweep.max_seconds)  # imports and compiles
            point = _point(sweep, curve, x, seeds)
            yield point
            if point.stop:
                break


def _point(sweep: Sweep, curve: Curve, x: int, seeds: Sequence[int]) -> Point:
    took: list[float] = []
    refused: list[str] = []
    for seed in seeds:
        ask = partial(_measure, curve.prepare(x, seed), sweep.max_seconds)
        cost, why = _apart(ask, sweep.max_seconds) if sweep.apart else ask()
        took.append(cost)
        refused += [why] if why else []
        if 2 * sum(cost >= sweep.max_seconds for cost in took) > len(seeds):
            break
    stop = ""
    if len(refused) == len(took):
        stop = refused[0]
    elif median(took) >= sweep.max_seconds:
        stop = _late(sweep.max_seconds)
    return Point(sweep.key, curve.name, x, len(took), len(took) - len(refused), median(took), max(took), stop)


def _measure(ask: Ask, max_seconds: float) -> tuple[float, str]:
    refused: list[str] = []
    took = seconds(lambda: refused.extend(filter(None, [_within(ask, max_seconds)])), 1)
    why = "".join(refused)
    # the system's clock that interrupts may be a few milliseconds ahead of the one that measures
    return max(took, max_seconds) if why == _late(max_seconds) else took, why


def _apart(ask: Callable[[], tuple[float, str]], max_seconds: float) -> tuple[float, str]:
    """Return what a function gives in a copy of this process, so that it cannot end this one.

    The system kills the copy after 2 * `max_seconds` of processor time; `CalibrantError` if it ends without a reply.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (ceil(2 * max_seconds),) * 2)
            os.write(writing, msgspec.json.encode(ask()))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        reply = answer.read()
    _, status = os.waitpid(child, 0)
    if reply:
        return msgspec.json.decode(reply, type=tuple[float, str])
    if not os.WIFSIGNALED(status):
        raise CalibrantError("a problem was not asked to its end: its process crashed")
    return 2 * max_seconds, _late(max_seconds)


def _late(most_seconds: float) -> str:
    return f"a problem took over {most_seconds:.0f} s"


def _within(ask: Ask, most_seconds: float) -> str | None:
    try:
        with _interrupt_after(most_seconds):
            return ask()
    except TimeoutError:
        return _late(most_seconds)


@contextmanager
def _interrupt_after(after: float) -> Iterator[None]:
    """Raise `TimeoutError` in the context after so many seconds of processor time, once Python has control again."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, after, 1.0)  # again, where a destructor swallowed the first
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


# --- Output of a sweep: a plot with a curve for each way to answer, and a table in Markdown ---------------------------
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
    """Return a Markdown table with a row per size and a column per curve, and below it why curves stop.

    A cell has the median, and the slowest problem in brackets.
    """
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
