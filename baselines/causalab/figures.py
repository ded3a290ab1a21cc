"""Averages of rows over items, each with its denominator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import NamedTuple

from calibrant.baselines.causalab.rows import ROWS, Row, play
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.run import RunScore, run_score
from calibrant.solvers.outcome import Found


@dataclass(frozen=True, slots=True)
class Figures:
    """Statistics of a method's runs.

    means: by flat name, over all `items`; `answered`: in how many the row had an answer of its own
    """

    items: int
    answered: int
    means: Mapping[str, float]


class Run(NamedTuple):
    """A row's run on an item.

    answered: whether it had an answer of its own
    """

    score: RunScore
    answered: bool
    steps: Sequence[LabStep]


def run(row: Row, item: LabItem, seed: int = 0) -> Run:
    """Play an episode by a method from its beginning to its end."""
    episode = LabEpisode(item)
    outcome = play(row, episode, seed)
    return Run(run_score(item, episode.steps), isinstance(outcome, Found), episode.steps)


def figures(row: Row, items: Iterable[LabItem], seed: int = 0) -> Figures:
    """Return the mean scores of a baseline; an item without an answer counts with its stand-in."""
    played = [run(row, item, seed) for item in items]
    scores = [result.score.flat() for result in played]
    names = scores[0] if scores else {}
    means = {name: fsum(score[name] for score in scores) / len(scores) for name in names}
    return Figures(len(scores), sum(result.answered for result in played), means)


def table(items: Sequence[LabItem], seed: int = 0, rows: Mapping[str, Row] = ROWS) -> dict[tuple[str, str], Figures]:
    """Figures by row and suite, suites in order of first appearance."""
    suites: dict[str, list[LabItem]] = {}
    for item in items:
        suites.setdefault(item.suite, []).append(item)
    return {
        (name, suite): figures(row, suite_items, seed)
        for name, row in rows.items()
        for suite, suite_items in suites.items()
    }
