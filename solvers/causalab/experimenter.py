"""Greedy choice of settings by the expected share of remaining members, until graph and frequency are decided."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Floats, evidence_of
from calibrant.solvers.causalab.linear import far_end
from calibrant.solvers.causalab.replay import EXACT, misfit, predict_frequency
from calibrant.solvers.causalab.space import MAX_LISTED, Setting, WeightedDags, weighted_dags
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget
from calibrant.solvers.space import best_experiment


def solve_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """Find the mechanism with a greedy choice of settings; not unique where no setting separates the members.

    bounded: whether bases are assumed to be sampled as by the benchmark
    """
    try:
        space = weighted_dags(evidence_of(episode.task, episode.steps), bounded=bounded)
        remaining_space = run_experiments(episode, space)
        if not remaining_space.count:
            return Impossible(remaining_space.in_words)
        if remaining_space.count > MAX_LISTED:
            return OutOfBudget(f"{remaining_space.count} members left and no setting")
        return simplest(remaining_space)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))


def run_experiments(episode: LabEpisode, space: WeightedDags) -> WeightedDags:
    """Make greedy settings, within the allowance; return the space after them."""
    while episode.left > 0 and not is_decided(space) and (setting := next_setting(space)) is not None:
        step = episode.act({"set": setting[0], "value": setting[1]})
        if step.reading is None:
            raise ValueError(f"setting {setting[0]} to {setting[1]:g} was refused: {step.refused}")
        space = space.after(setting, step.reading)
    return space


def candidates(space: WeightedDags) -> Iterator[Setting]:
    """Yield one setting of each settable property: in a linear mechanism the value carries no information."""
    now = space.evidence.observations[-1].values
    for name in space.evidence.task.settable:
        yield name, far_end(now[space.evidence.task.properties.index(name)])


def next_setting(space: WeightedDags) -> Setting | None:
    """Choose the setting with the least expected share, the first of equals; None if none separates members.

    Where members are too many to list, the first property that was not set yet.
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
