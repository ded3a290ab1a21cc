"""Settings chosen by what they are expected to leave, until graph and reactor frequency are decided."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import Floats, evidence_of
from calibrant.solvers.causalab.linear import far_from
from calibrant.solvers.causalab.replay import EXACT, misfit, predicted
from calibrant.solvers.causalab.space import MAX_LISTED, Setting, WeightedDags, weighted_dags
from calibrant.solvers.experiment import best_experiment
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget


def solve_by_experiments(episode: LabEpisode, *, bounded: bool = True) -> Outcome[Answer]:
    """The mechanism after as few settings as a greedy choice needs; not unique where no setting tells members apart.

    bounded: whether bases are assumed to be drawn as the benchmark draws them
    """
    try:
        space = weighted_dags(evidence_of(episode.task, episode.steps), bounded=bounded)
        remaining_space = played(episode, space)
        if not remaining_space.count:
            return Impossible(remaining_space.in_words)
        if remaining_space.count > MAX_LISTED:
            return OutOfBudget(f"{remaining_space.count} members left and no setting")
        return simplest(remaining_space)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))


def played(episode: LabEpisode, space: WeightedDags) -> WeightedDags:
    """The space after greedy settings, as far as the allowance goes."""
    while episode.left > 0 and not decided(space) and (setting := next_setting(space)) is not None:
        step = episode.act({"set": setting[0], "value": setting[1]})
        if step.reading is None:
            raise ValueError(f"setting {setting[0]} to {setting[1]:g} was refused: {step.refused}")
        space = space.after(setting, step.reading)
    return space


def candidates(space: WeightedDags) -> Iterator[Setting]:
    """One setting of each property that may be set: in a linear mechanism the value tells nothing."""
    now = space.evidence.seen[-1].values
    for name in space.evidence.task.settable:
        yield name, far_from(now[space.evidence.task.properties.index(name)])


def next_setting(space: WeightedDags) -> Setting | None:
    """The setting that leaves least, the first of equals; None if none tells members apart.

    Where members are too many to list, the first property that was not set yet.
    """
    if space.count <= MAX_LISTED:
        experiment = best_experiment(space, candidates(space), lambda _: 1)
        return experiment.value.experiment if isinstance(experiment, Found) else None
    moved = {observation.changed for observation in space.evidence.seen}
    properties = space.evidence.task.properties
    return next(((n, v) for n, v in candidates(space) if properties.index(n) not in moved), None)


def decided(space: WeightedDags) -> bool:
    """Return whether graph and frequency are: nothing is left to find out (or nothing of the class is left)."""
    return not space.count or (len(space.verdicts()) == 1 and space.graph_decided)


def simplest(space: WeightedDags) -> Outcome[Answer]:
    """A member with the fewest edges, of equals one with most edges out of the frequency; replayed by the reference."""
    member = space.member(min(space.matrices, key=_rank))
    evidence = space.evidence
    if (apart := misfit(member, evidence, reading=evidence.task.reading, shifts=())) > EXACT:
        return Impossible(f"{space.in_words}: the member is {apart:g} away from a reading")
    return Found(Answer(member, predicted(member, evidence), decided(space), space.in_words))


def _rank(matrix: Floats) -> tuple[int, int, tuple[float, ...]]:
    edges = matrix > 0
    return int(edges.sum()), -int(edges[:, -1].sum()), tuple(matrix.ravel().tolist())
