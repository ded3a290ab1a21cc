"""Few settings in spite of hidden noise: what the noise-free start leaves is often one mechanism already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Floats, evidence_of
from calibrant.solvers.causalab.linear import far_from
from calibrant.solvers.causalab.noise.worlds import NoisyDags, noisy_dags, replays
from calibrant.solvers.causalab.replay import EXACT, misfit, predicted
from calibrant.solvers.causalab.space import WeightedDags, weighted_dags
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


def solve_noisy_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """The mechanism after settings that tell the remaining mechanisms apart, as if there were no noise.

    bounded: whether bases are assumed to be drawn as the benchmark draws them. Needs an episode without settings.
    """
    task = episode.task
    if episode.steps:
        return OutOfBudget("settings were made before")
    try:
        start = weighted_dags(evidence_of(replace(task, noise=False)), bounded=bounded)
        if not start.count:
            return Impossible(start.in_words)
        candidates, space = list(start.members()), noisy_dags(evidence_of(task), bounded=bounded)
        while len(candidates) > 1 and episode.left > 0:
            name = _telling(task.settable, task.properties, candidates)
            if name is None:
                break
            value = far_from(space.evidence.seen[-1].values[task.properties.index(name)])
            step = episode.act({"set": name, "value": value})
            space = space.after((name, value), step.reading or {})
            candidates = space.mechanisms()
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return _answered(start, space, candidates)


def _answered(start: WeightedDags, space: NoisyDags, left: list[Mechanism]) -> Outcome[Answer]:
    noisy = any(observation.noisy for observation in space.evidence.seen)
    for member in left:
        quiet = misfit(member, start.evidence, reading=Reading.VALUE, shifts=()) <= EXACT
        if quiet and (not noisy or replays(space, member)):
            words = space.in_words if noisy else start.in_words
            return Found(Answer(member, predicted(member, space.evidence), len(left) == 1, words))
    return Impossible(f"{space.in_words}: no mechanism replays")


def _telling(settable: tuple[str, ...], properties: tuple[str, ...], left: list[Mechanism]) -> str | None:
    """The property whose total effects split the mechanisms most evenly; None if none splits them."""
    nodes = (*properties, *(node for node in left[0].equations if node not in properties))
    totals = np.array([_totals(member, nodes) for member in left])
    best: tuple[int, str] | None = None
    for name in settable:
        _, sizes = np.unique(totals[:, :, nodes.index(name)], axis=0, return_counts=True)
        worth = int((sizes**2).sum())
        if len(sizes) > 1 and (best is None or worth < best[0]):
            best = worth, name
    return None if best is None else best[1]


def _totals(member: Mechanism, nodes: tuple[str, ...]) -> Floats:
    direct = np.array([[member.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes])
    return np.asarray(np.rint(np.linalg.inv(np.eye(len(nodes)) - direct)))
