"""Results of agents under the paper's conditions: accuracy, steps and outcome of the switch, with intervals."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from math import sqrt
from multiprocessing import get_context
from statistics import mean, stdev

from calibrant.bench.blickets.agents import play_agent
from calibrant.bench.blickets.paper import (
    NOT_PRINTED,
    PRINTED_AGENTS,
    PlayedEpisode,
    paper,
    printed_counts,
    share_cell,
)
from calibrant.bench.blickets.rates import count_classes
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Source, Table, TableRow
from calibrant.bench.statistics import NORMAL_95

SEED = 2026
DEFAULT_SUITES = (
    "conjunctive",
    "easy-3",
    "easy-5",
    "hard-3",
    "stochastic",
    "order",
    "order-2-of-4",
    "order-3-of-4",
    "order-4-of-4",
)
DEFAULT_AGENTS = ("static", "switch-aware", "seek", "noise-aware", "order-aware", "base", "cg", "cg+db", "quiet")
_PRINTED_COUNTS = {"easy-3": "5a", "easy-5": "11", "hard-3": "6"}
_PRINTED_PERCENT = {"stochastic": 2, "order-2-of-4": 3}  # rows of Table 7


def all_played(
    agents: Sequence[str], suites: Sequence[str], episodes: int, *, seed: int = SEED, jobs: int = 1
) -> list[PlayedEpisode]:
    """Every agent on the same items of every suite: suite after suite, agent after agent, item after item."""
    pairs = [(agent, suite) for suite, agent in product(suites, agents)]
    return [episode for part in played_pairs(pairs, episodes, seed=seed, jobs=jobs) for episode in part]


def played_pairs(
    pairs: Sequence[tuple[str, str]], episodes: int, *, seed: int = SEED, jobs: int = 1
) -> list[list[PlayedEpisode]]:
    """Play the episodes of each pair of an agent and a suite."""
    work = [(agent, suite, episodes, seed) for agent, suite in pairs]
    if jobs == 1:
        return list(map(_part, work))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return list(pool.map(_part, work))


def _part(work: tuple[str, str, int, int]) -> list[PlayedEpisode]:
    return list(play_agent(*work))


HEADINGS = (
    Heading("accuracy", "Accuracy"),
    Heading("steps", "Steps"),
    Heading("exactly_n_rate", "Exactly-N rate"),
    Heading("eligible_rate", "RE rate"),
    Heading("eligible_accuracy", "RE accuracy"),
    Heading("switched_accuracy", "All switched"),
)


def agent_table(episodes: Iterable[PlayedEpisode]) -> Table:
    """Rows by suite and agent, in the order in which they first occur; after each suite what the paper prints of it."""
    groups: dict[str, dict[str, list[PlayedEpisode]]] = {}
    for episode in episodes:
        groups.setdefault(episode.suite, {}).setdefault(episode.agent, []).append(episode)
    rows: list[TableRow] = []
    for suite, by_agent in groups.items():
        rows += [TableRow((suite, agent), _cells(played_by)) for agent, played_by in by_agent.items()]
        rows += _list_printed(suite)
    return Table(
        "standing",
        "Agents under the paper's conditions",
        "Percent with 95 % score intervals, means with normal ones. RE: more than N activations. All switched: accuracy"
        " over episodes with N activations or more.",
        (Heading("condition", "Condition"), Heading("agent", "Agent")),
        HEADINGS,
        tuple(rows),
        (f"Rows of source paper are those of {paper().source}.",),
    )


def _cells(episodes: Sequence[PlayedEpisode]) -> tuple[Cell, ...]:
    grades = [episode.grade for episode in episodes]
    counts = count_classes(grades)
    shares = (counts.exactly_n_rate, counts.eligible_rate, counts.eligible_accuracy, counts.switched_accuracy)
    return (
        share_cell(counts.accuracy, with_interval=True),
        mean_cell([grade.steps for grade in grades]),
        *(share_cell(share, with_interval=True) for share in shares),
    )


def mean_cell(values: Sequence[int]) -> Cell:
    middle = mean(values)
    if len(values) < 2:
        return Cell(f"{middle:.1f}")
    half_width = NORMAL_95 * stdev(values) / sqrt(len(values))
    return Cell(f"{middle:.1f}", f"{middle - half_width:.1f}", f"{middle + half_width:.1f}")


def _list_printed(suite: str) -> Iterator[TableRow]:
    if suite in _PRINTED_COUNTS:
        for (agent,), counts in printed_counts(_PRINTED_COUNTS[suite]):
            shares = (counts.exactly_n_rate, counts.eligible_rate, counts.eligible_accuracy, counts.switched_accuracy)
            cells = (share_cell(counts.accuracy), NOTHING, *map(share_cell, shares))
            yield TableRow((suite, agent), cells, Source.PAPER)
    if suite in _PRINTED_PERCENT:
        texts = paper().tables["7"].rows[_PRINTED_PERCENT[suite]][1:]
        for agent, text in zip(PRINTED_AGENTS, texts, strict=True):
            accuracy = NOTHING if text == NOT_PRINTED else Cell(text)
            yield TableRow((suite, agent), (accuracy, *[NOTHING] * 5), Source.PAPER)
