"""Exact learners beside the figures of a prototype, over 500 episodes a condition, with their differences.

The prototype's figures came with the benchmark's description; its code did not. Rows of a learner `at random` show the
effect of ties: among equally good configurations the first is taken elsewhere, there one is drawn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import stdev
from typing import NamedTuple

from calibrant.bench.blickets.agents import AT_RANDOM
from calibrant.bench.blickets.paper import PlayedEpisode, share_cell
from calibrant.bench.blickets.rates import Share, count_classes
from calibrant.bench.lab.blickets.results import SEED, mean_cell, played_pairs
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.bench.statistics import NORMAL_95

STATED_EPISODES = 500
ALLOWED_SHARE, ALLOWED_STEPS = 0.03, 1.0


class Stated(NamedTuple):
    """Results of the prototype; None where no figure is stated."""

    suite: str
    agent: str
    accuracy: float | None = None
    steps: float | None = None
    exactly_n: float | None = None
    eligible: float | None = None

    @property
    def figures(self) -> tuple[float | None, ...]:
        return self.accuracy, self.steps, self.exactly_n, self.eligible


STATED = (
    Stated("conjunctive", "static", 1.0, 7.5),
    Stated("conjunctive", "switch-aware", 1.0, 15.6),
    Stated("conjunctive", "seek", None, 39.3),
    Stated("easy-3", "static", 0.25, 7.5),
    Stated("easy-3", "switch-aware", 1.0, 15.5, 0.0, 0.95),
    Stated("easy-3", "seek", None, 15.9, None, 1.0),
    Stated("easy-5", "static", 0.94, 7.5),
    Stated("easy-5", "switch-aware", 1.0, 17.0, 0.0, 0.44),
    Stated("easy-5", "seek", None, 23.0, None, 1.0),
    Stated("hard-3", "static", 0.25, 7.5, 0.75),
    Stated("hard-3", "switch-aware", 1.0, 16.1, 0.0, 0.95),
    Stated("hard-3", "seek", None, 16.6, None, 1.0),
    Stated("hard-3-edge", "static", 1.0),
    Stated("stochastic", "static", 0.36, 7.7),
    Stated("stochastic", "noise-aware", 0.994, 19.4),
    Stated("stochastic", "noise-aware@0.2", 0.718, 11.4),
    Stated("stochastic", "noise-aware@0.1", 0.846, 13.1),
    Stated("stochastic", "noise-aware@0.05", 0.93, 14.8),
    Stated("stochastic", "noise-aware@0.001", 1.0, 27.5),
    Stated("order", "static", 0.25, 6.5),
    Stated("order", "order-aware", 1.0, 11.7),
    Stated("order-2-of-4", "static", 0.32),
    Stated("order-2-of-4", "order-aware", 1.0, 8.7),
    Stated("order-3-of-4", "static", 0.15),
    Stated("order-3-of-4", "order-aware", 1.0, 16.1),
    Stated("order-4-of-4", "static", 0.1),
    Stated("order-4-of-4", "order-aware", 1.0, 21.3),
    Stated("hard-3", "script/db/confirm-1", None, None, 0.0),
    Stated("hard-3", "script/db/confirm-2", None, None, 1.0),
    Stated("hard-3", "script/db/confirm-3", None, None, 0.45),
    Stated("hard-3", "script/db/silent", None, None, 0.0),
)
HEADINGS = (
    Heading("accuracy", "Accuracy"),
    Heading("steps", "Steps"),
    Heading("exactly_n_rate", "Exactly-N rate"),
    Heading("eligible_rate", "RE rate"),
    Heading("differs", "Differs"),
)
_MEASURES = ("accuracy", "steps", "exactly-N", "RE rate")


def learner_table(episodes: int, *, seed: int = SEED, jobs: int = 1, stated: Sequence[Stated] | None = None) -> Table:
    """Return each row of the prototype, then ours, then the same learner with other ties or another class."""
    pairs = [(line, agent) for line in (STATED if stated is None else stated) for agent in _list_agents(line.agent)]
    parts = played_pairs([(agent, line.suite) for line, agent in pairs], episodes, seed=seed, jobs=jobs)
    rows: list[TableRow] = []
    for (line, agent), played in zip(pairs, parts, strict=True):
        if agent == line.agent:
            rows.append(TableRow((line.suite, agent), (*_stated_cells(line), NOTHING), Source.PROTOTYPE))
        rows.append(TableRow((line.suite, agent), _cells(line, played)))
    return Table(
        "learners",
        "Exact learners beside a prototype's",
        "Percent with 95 % score intervals, means with normal ones. Differs: beyond chance (95 %, both being samples);"
        f" ! beyond {100 * ALLOWED_SHARE:.0f} points or {ALLOWED_STEPS:.0f} step.",
        (Heading("condition", "Condition"), Heading("agent", "Agent")),
        HEADINGS,
        tuple(rows),
    )


def _list_agents(agent: str) -> Iterator[str]:
    yield agent
    if f"{agent}-at-random" in {variant.name for variant in AT_RANDOM}:
        yield f"{agent}-at-random"
    if agent.startswith("noise-aware"):
        yield agent.replace("noise-aware", "maybe-noise")


def _stated_cells(line: Stated) -> Iterator[Cell]:
    for measure, figure in zip(_MEASURES, line.figures, strict=True):
        percent = "" if figure is None else f"{figure:.1f}" if measure == "steps" else f"{100 * figure:.1f}"
        yield Cell(percent) if percent else NOTHING


def _cells(line: Stated, played: Sequence[PlayedEpisode]) -> tuple[Cell, ...]:
    counts = count_classes(episode.grade for episode in played)
    steps = [episode.grade.steps for episode in played]
    shares = (counts.exactly_n_rate, counts.eligible_rate)
    return (
        share_cell(counts.accuracy, with_interval=True),
        mean_cell(steps),
        *(share_cell(share, with_interval=True) for share in shares),
        Cell(", ".join(_differences(line, counts.accuracy, steps, *shares)) or "no"),
    )


def _differences(
    line: Stated, accuracy: Share, steps: Sequence[int], exactly_n: Share | None, eligible: Share | None
) -> Iterator[str]:
    shares = (accuracy, None, exactly_n, eligible)
    for measure, figure, share in zip(_MEASURES, line.figures, shares, strict=True):
        if figure is None:
            continue
        if measure == "steps":
            yield from difference_of_means(steps, figure)
        elif share is not None:
            yield from (f"{measure} {text}" for text in difference_of_shares(share, figure))


def difference_of_shares(share: Share, stated: float) -> Iterator[str]:
    """Yield the difference in points if chance between two samples does not explain it.

    stated: the printed share, rounded to 1/200
    """
    pooled = (share.hits + stated * STATED_EPISODES) / (share.number + STATED_EPISODES)
    error = sqrt(pooled * (1 - pooled) * (1 / share.number + 1 / STATED_EPISODES))
    difference = share.rate - stated
    # 0.005: rounding of the stated share
    if abs(difference) > NORMAL_95 * error + 0.005:
        yield f"{100 * difference:+.1f}" + "!" * (abs(difference) > ALLOWED_SHARE)


def difference_of_means(steps: Sequence[int], stated: float) -> Iterator[str]:
    """Yield the difference in mean steps if chance does not explain it.

    The prototype's standard deviation is not stated; ours stands for it.

    stated: mean, rounded to one decimal
    """
    spread = stdev(steps) if len(steps) > 1 else 0.0
    error = spread * sqrt(1 / len(steps) + 1 / STATED_EPISODES)
    difference = sum(steps) / len(steps) - stated
    # 0.05: rounding of the stated mean
    if abs(difference) > NORMAL_95 * error + 0.05:
        yield f"steps {difference:+.1f}" + "!" * (abs(difference) > ALLOWED_STEPS)
