"""Few settings under hidden noise: the noise-free start often leaves one mechanism already."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.reference import Reading
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Floats, evidence_of
from calibrant.solvers.causalab.linear import far_end
from calibrant.solvers.causalab.noise.worlds import NoisyDags, noisy_dags, replays
from calibrant.solvers.causalab.replay import EXACT, misfit, predict_frequency
from calibrant.solvers.causalab.space import WeightedDags, weighted_dags
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


def solve_noisy_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """Find the mechanism by settings that separate the remaining mechanisms, chosen as if there were no noise.

    bounded: whether bases are assumed to be sampled as by the benchmark. Needs an episode without settings.
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
            name = _most_informative(task.settable, task.properties, candidates)
            if name is None:
                break
            value = far_end(space.evidence.observations[-1].values[task.properties.index(name)])
            step = episode.act({"set": name, "value": value})
            space = space.after((name, value), step.reading or {})
            candidates = space.mechanisms()
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return _first_replayed(start, space, candidates)


def _first_replayed(start: WeightedDags, space: NoisyDags, members: list[Mechanism]) -> Outcome[Answer]:
    noisy = any(observation.noisy for observation in space.evidence.observations)
    for member in members:
        quiet = misfit(member, start.evidence, reading=Reading.VALUE, shifts=()) <= EXACT
        if quiet and (not noisy or replays(space, member)):
            words = space.in_words if noisy else start.in_words
            return Found(Answer(member, predict_frequency(member, space.evidence), len(members) == 1, words))
    return Impossible(f"{space.in_words}: no mechanism replays")


def _most_informative(settable: tuple[str, ...], properties: tuple[str, ...], members: list[Mechanism]) -> str | None:
    """Return the property whose total effects split the mechanisms most evenly; None if none splits them."""
    nodes = (*properties, *(node for node in members[0].equations if node not in properties))
    totals = np.array([_totals(member, nodes) for member in members])
    best: tuple[int, str] | None = None
    for name in settable:
        _, sizes = np.unique(totals[:, :, nodes.index(name)], axis=0, return_counts=True)
        # sum of n_i^2, the expected number left times a constant, as in solvers.space
        remaining = int((sizes**2).sum())
        if len(sizes) > 1 and (best is None or remaining < best[0]):
            best = remaining, name
    return None if best is None else best[1]


def _totals(member: Mechanism, nodes: tuple[str, ...]) -> Floats:
    direct = np.array([[member.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes])
    # integer weights on a DAG have integer total effects: rounding removes the error of the inverse
    return np.asarray(np.rint(np.linalg.inv(np.eye(len(nodes)) - direct)))
