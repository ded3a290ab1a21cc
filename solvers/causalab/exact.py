"""The exact solver of every suite: what the family, the noise and the allowance ask for."""

from __future__ import annotations

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Family, Weights
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.experimenter import simplest, solve_by_experiments
from calibrant.solvers.causalab.linear import solve_linear
from calibrant.solvers.causalab.noise.solve import solve_noisy
from calibrant.solvers.causalab.offline import solve_offline
from calibrant.solvers.causalab.quadratic.solve import solve_quadratic
from calibrant.solvers.causalab.space import weighted_dags
from calibrant.solvers.outcome import Impossible, Outcome, OutOfBudget


def solve(episode: LabEpisode) -> Outcome[Answer]:
    """An answer that the reference replays, from the task and the episode's readings alone.

    Where each property can be set, all are; where that is not allowed, the settings that tell most are made.
    """
    task = episode.task
    if not task.allowance:
        return solve_offline(evidence_of(task))
    if task.family is Family.QUADRATIC:
        return OutOfBudget("quadratic laboratories with noise") if task.noise else solve_quadratic(episode)
    if task.noise:
        return OutOfBudget("noise where the frequency may be a parent") if task.freq_parent else solve_noisy(episode)
    if task.freq_parent:
        return solve_frequency_parent(episode)
    if task.weights is Weights.SMALL and (task.settable != task.properties or episode.left < len(task.properties)):
        return solve_by_experiments(episode)
    return solve_linear(episode)


def solve_frequency_parent(episode: LabEpisode) -> Outcome[Answer]:
    """Each property is set once; what is left cannot be told apart, and the simplest of it is taken.

    F -> X with weight w reads like p -> X with weight w c_p for all parents p of F, but for the base of X, which was
    drawn from 0 to 100; after that the fewest edges count, and then edges out of the frequency.
    """
    moved = solve_linear(episode)
    if isinstance(moved, OutOfBudget):
        return moved
    evidence = evidence_of(episode.task, episode.steps)
    try:
        bounded_dags = weighted_dags(evidence, bounded=True)
        dags = bounded_dags if bounded_dags.count else weighted_dags(evidence, bounded=False)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return simplest(dags) if dags.count else Impossible(dags.in_words)
