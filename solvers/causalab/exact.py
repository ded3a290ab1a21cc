"""Exact solver of every suite: chooses the method by family, noise and allowance."""

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
    """Return an answer that the reference replays, from the task and the episode's readings alone.

    If each property can be set, all are; otherwise the most informative settings are chosen.
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
    # solve_linear needs a setting of every property; weights 1, 2, 3 can be listed, and fewer settings may do
    if task.weights is Weights.SMALL and (task.settable != task.properties or episode.left < len(task.properties)):
        return solve_by_experiments(episode)
    return solve_linear(episode)


def solve_frequency_parent(episode: LabEpisode) -> Outcome[Answer]:
    """Set each property once; the remaining members are indistinguishable, and the simplest of them is returned.

    F -> X with weight w reads like p -> X with weight w c_p for all parents p of F, except for the base of X, which was
    sampled from 0 to 100. Ties: fewest edges, then most edges out of the frequency.
    """
    moved = solve_linear(episode)
    if isinstance(moved, OutOfBudget):
        return moved
    evidence = evidence_of(episode.task, episode.steps)
    try:
        bounded_dags = weighted_dags(evidence, bounded=True)
        # limits of bases are those of the benchmark's generator; a laboratory of another origin may break them
        dags = bounded_dags if bounded_dags.count else weighted_dags(evidence, bounded=False)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return simplest(dags) if dags.count else Impossible(dags.in_words)
