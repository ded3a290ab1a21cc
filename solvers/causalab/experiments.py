"""Greedy choice of settings until graph and frequency are decided, without and with hidden noise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.solvers.causalab.evidence import EXACT, Answer, Floats, evidence_of, far_end, misfit, predict_frequency
from calibrant.solvers.causalab.noisy import NoisyDags, noisy_dags, replays
from calibrant.solvers.causalab.space import MAX_LISTED, Setting, WeightedDags, weighted_dags
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import best_experiment

# --- Greedy choice of settings by the expected share of remaining members, until graph and frequency are decided ------


def solve_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """Find the mechanism with a greedy choice of settings; not unique if no setting separates the members.

    bounded: whether bases are assumed to be those that the benchmark samples, unless no mechanism has such bases
    """
    try:
        space = weighted_dags(evidence_of(episode.task, episode.steps), bounded=bounded)
        remaining_space = run_experiments(episode, space)
        if bounded and not remaining_space.count:
            return solve_by_experiments(episode, bounded=False)
        if not remaining_space.count:
            return Impossible(remaining_space.in_words)
        if remaining_space.count > MAX_LISTED:
            return OutOfBudget(f"{remaining_space.count} members left and no setting")
        return simplest(remaining_space)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))


def run_experiments(episode: LabEpisode, space: WeightedDags) -> WeightedDags:
    """Make settings greedily until the space is decided or tries run out; return the space after them."""
    while episode.left > 0 and not is_decided(space) and (setting := next_setting(space)) is not None:
        step = episode.act({"set": setting[0], "value": setting[1]})
        if step.reading is None:
            raise ValueError(f"setting {setting[0]} to {setting[1]:g} was refused: {step.refused}")
        space = space.after(setting, step.reading)
    return space


def candidates(space: WeightedDags) -> Iterator[Setting]:
    """Yield one setting of each settable property: in a linear mechanism the value carries no information."""
    current = space.evidence.observations[-1].values
    for name in space.evidence.task.settable:
        yield name, far_end(current[space.evidence.task.properties.index(name)])


def next_setting(space: WeightedDags) -> Setting | None:
    """Choose the setting with the least expected share left, the first in a tie; None if none separates members.

    If members are too many to list, choose the first property that was not set yet.
    """
    # outcomes of a setting are counted by listing the members
    if space.count <= MAX_LISTED:
        experiment = best_experiment(space, candidates(space), lambda _: 1)
        return experiment.value.experiment if isinstance(experiment, Found) else None
    moved = {observation.changed for observation in space.evidence.observations}
    properties = space.evidence.task.properties
    return next(((n, v) for n, v in candidates(space) if properties.index(n) not in moved), None)


def is_decided(space: WeightedDags) -> bool:
    """Return whether graph and frequency are decided, or the space is empty."""
    return not space.count or (len(space.verdicts()) == 1 and space.graph_decided)


def simplest(space: WeightedDags) -> Outcome[Answer]:
    """Return a member with the fewest edges, then most edges out of the frequency; replayed by the reference."""
    member = space.member(min(space.matrices, key=_rank))
    evidence = space.evidence
    if (distance := misfit(member, evidence, reading=evidence.task.reading, shifts=())) > EXACT:
        return Impossible(f"{space.in_words}: the member is {distance:g} away from a reading")
    return Found(Answer(member, predict_frequency(member, evidence), is_decided(space), space.in_words))


def _rank(matrix: Floats) -> tuple[int, int, tuple[float, ...]]:
    edges = matrix > 0
    return int(edges.sum()), -int(edges[:, -1].sum()), tuple(matrix.ravel().tolist())


# --- Few settings under hidden noise: often a single mechanism fits the noise-free start ------------------------------


def solve_noisy_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """Find the mechanism by settings that separate the remaining mechanisms, chosen as if there were no noise.

    bounded: as in `solve_by_experiments`. Needs an episode without settings.
    """
    task = episode.task
    if episode.steps:
        return OutOfBudget("settings were made before")
    try:
        start = weighted_dags(evidence_of(replace(task, noise=False)), bounded=bounded)
        if bounded and not start.count:
            return solve_noisy_by_experiments(episode, bounded=False)
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
    """Return the first member that the reference replays, on the noise-free start and under noise."""
    noisy = any(observation.noisy for observation in space.evidence.observations)
    for member in members:
        replays_start = misfit(member, start.evidence, reading=SettingMeaning.VALUE, shifts=()) <= EXACT
        if replays_start and (not noisy or replays(space, member)):
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
        # sum of n_i^2 is proportional to the expected number of mechanisms left, as in solvers.space
        remaining = int((sizes**2).sum())
        if len(sizes) > 1 and (best is None or remaining < best[0]):
            best = remaining, name
    return None if best is None else best[1]


def _totals(member: Mechanism, nodes: tuple[str, ...]) -> Floats:
    direct = np.array([[member.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes])
    # integer weights on a DAG have integer total effects: rounding removes the error of the inverse
    return np.asarray(np.rint(np.linalg.inv(np.eye(len(nodes)) - direct)))
