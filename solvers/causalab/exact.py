"""Exact solver of every suite, with and without settings."""

from __future__ import annotations

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import Family, Weights
from calibrant.solvers.causalab import evidence as causalab_evidence
from calibrant.solvers.causalab import space as causalab_space
from calibrant.solvers.causalab.experiments import simplest, solve_by_experiments
from calibrant.solvers.causalab.noisy import solve_noisy
from calibrant.solvers.causalab.quadratic import solve_quadratic
from calibrant.solvers.outcome import BudgetSpent, Impossible, Outcome, OutOfBudget

# --- Laboratories without settings: solved from records and static traces ---------------------------------------------
IN_WORDS = "linear mechanisms with weights 1, 2, 3, any bases; edges between properties only where nothing else is left"


def solve_offline(evidence: causalab_evidence.Evidence) -> Outcome[causalab_evidence.Answer]:
    """Return the mechanism if every property was moved; else the frequency's equation and the proven parent sets.

    Bases of properties are unrestricted, so a property whose weights are not decided gets no parents. If the prediction
    of the frequency is not decided otherwise, its base is assumed to be from 15 to 25, unless no weights imply that.
    """
    if evidence.task.noise:
        return OutOfBudget("a noisy task without settings")
    if causalab_evidence.total_effects(evidence) is not None and not evidence.task.freq_parent:
        return causalab_evidence.solve_from_totals(evidence)
    try:
        space = causalab_space.weighted_dags(evidence, bounded=False)
        # the limits 15 to 25 are assumed for the frequency alone, and only if its prediction is open without them
        if len(space.verdicts()) > 1:
            frequency = causalab_space.weighted_dags(evidence, bounded=True).locals[-1]
            if len(frequency.vectors):
                space = causalab_space.WeightedDags(evidence, False, (*space.locals[:-1], frequency))
        return _proven_answer(space)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))


def _proven_answer(space: causalab_space.WeightedDags) -> Outcome[causalab_evidence.Answer]:
    if not space.count:
        return Impossible(space.in_words)
    # bases are free: a property without parents reproduces every reading, so undecided parents are left out
    weights = [_weights(local.vectors[0]) if len(local.vectors) == 1 else {} for local in space.locals[:-1]]
    row = causalab_space.frequency_equation(space)
    baseline = space.evidence.table[0]
    base = float(np.rint((baseline[-1] - baseline @ row) * causalab_space.PER_UNIT) / causalab_space.PER_UNIT)
    return causalab_evidence.certify_answer(
        space.evidence, [*weights, _weights(row)], base, unique=space.count == 1, in_words=IN_WORDS
    )


def _weights(row: causalab_space.Integers) -> dict[int, float]:
    return {int(p): float(row[p]) for p in np.flatnonzero(row)}


# --- Exact solver of every suite: chooses the method by family, noise and allowance -----------------------------------


def solve(episode: LabEpisode) -> Outcome[causalab_evidence.Answer]:
    """Return an answer that the reference replays, from the task and the episode's readings alone.

    Without tries, from the readings of the task. Else each property is set once; if weights are small, and a property
    cannot be set or there are fewer tries than properties, the most informative settings are chosen.
    """
    task = episode.task
    if not task.allowance:
        return solve_offline(causalab_evidence.evidence_of(task))
    if task.family is Family.QUADRATIC:
        return OutOfBudget("quadratic laboratories with noise") if task.noise else solve_quadratic(episode)
    if task.noise:
        return OutOfBudget("noise where the frequency may be a parent") if task.freq_parent else solve_noisy(episode)
    if task.freq_parent:
        return solve_frequency_parent(episode)
    # solve_linear needs a setting of every property; weights 1, 2, 3 can be listed, and fewer settings may do
    if task.weights is Weights.SMALL and (task.settable != task.properties or episode.left < len(task.properties)):
        return solve_by_experiments(episode)
    return causalab_evidence.solve_linear(episode)


def solve_frequency_parent(episode: LabEpisode) -> Outcome[causalab_evidence.Answer]:
    """Set each property once; the remaining members are indistinguishable, and the simplest of them is returned.

    F -> X with weight w reads like p -> X with weight w c_p for all parents p of F, except for the base of X, which was
    sampled from 0 to 100. Ties: fewest edges, then most edges out of the frequency.
    """
    moved = causalab_evidence.solve_linear(episode)
    if isinstance(moved, OutOfBudget):
        return moved
    evidence = causalab_evidence.evidence_of(episode.task, episode.steps)
    try:
        dags = causalab_space.likely_dags(evidence)
    except BudgetSpent as spent:
        return OutOfBudget(str(spent))
    return simplest(dags) if dags.count else Impossible(dags.in_words)
