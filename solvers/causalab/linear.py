"""Linear laboratories without noise, solved by one setting of each property; and the answer of any solver.

With x = W x + b the total effects are T = inv(I - W), so W = I - inv(T) for the properties, and the frequency's weights
are c = T_F inv(T). Whether a setting states base or value, T is the same, because changes are measured. One setting for
each property, O(n**3) arithmetic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.errors import CycleError
from calibrant.solvers.causalab.evidence import (
    EXACT,
    Evidence,
    Floats,
    evidence_of,
    mechanism_of,
    misfit,
    predict_frequency,
)
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

# --- Answer of a solver of laboratories, and its submission -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """Mechanism that reproduces all readings, by the reference, and the frequency that it predicts.

    unique: whether no other mechanism of the class `in_words` does; otherwise it is one of several
    """

    mechanism: Mechanism
    frequency: float
    unique: bool
    in_words: str


def submit_hypothesis(episode: LabEpisode, hypothesis: Mapping[str, Any], frequency: float) -> None:
    """Dial the frequency once and submit the hypothesis."""
    episode.act({"reactor": frequency})
    episode.act({"submit": {"hypothesis": dict(hypothesis)}})


def submit_answer(episode: LabEpisode, answer: Answer) -> None:
    submit_hypothesis(episode, state_mechanism(answer.mechanism), answer.frequency)


# --- Linear laboratories without noise: set each property once, and compute direct effects from total effects ---------
LOW, MIDDLE, HIGH = 0.0, 50.0, 100.0
MARGIN_FOR_HUNDREDTHS = 10_000.0  # weights of two decimals need a step that drowns rounding
DECIMALS = 2
ROUNDING_TOLERANCE = 0.05  # of replayed values: bases are rounded, and weights in hundredths multiply the error
IN_WORDS = "linear mechanisms with any weights of two decimals"


def solve_linear(episode: LabEpisode) -> Outcome[Answer]:
    """Find the mechanism from one setting of every property; earlier settings are used too."""
    task = episode.task
    evidence = evidence_of(task, episode.steps)
    for name in task.settable:
        node = task.properties.index(name)
        num_trials = 0
        while _column(evidence, node) is None:
            if episode.left <= 0:
                return OutOfBudget(f"{len(episode.steps)} settings made; {name} was not moved")
            value = far_end(
                evidence.observations[-1].values[node],
                MARGIN_FOR_HUNDREDTHS if task.weights is Weights.HUNDREDTHS else 0.0,
            )
            episode.act({"set": name, "value": value + num_trials})  # a base may happen to be the first value already
            evidence = evidence_of(task, episode.steps)
            num_trials += 1
    return solve_from_totals(evidence)


def far_end(value: float, margin: float = 0.0) -> float:
    """Return the end of the scale that is farther from a value, moved outwards by a margin."""
    return HIGH + margin if value <= MIDDLE else LOW - margin


def solve_from_totals(evidence: Evidence) -> Outcome[Answer]:
    """Compute the mechanism from evidence in which every property was moved once."""
    totals = total_effects(evidence)
    if totals is None:
        return OutOfBudget("a property was never moved")
    direct = direct_effects(totals)
    m = evidence.frequency
    weights = [{p: float(w) for p, w in enumerate(row) if w} for row in direct]
    base = float(np.round(evidence.table[-1, m] - evidence.table[-1, :m] @ direct[m], DECIMALS))
    return certify_answer(evidence, weights, base, unique=True, in_words=IN_WORDS)


def certify_answer(
    evidence: Evidence, weights: list[dict[int, float]], base: float, *, unique: bool, in_words: str
) -> Outcome[Answer]:
    """Return the answer with these weights, if the reference reproduces all readings."""
    try:
        mechanism = mechanism_of(evidence.nodes, weights, base)
    except CycleError as error:
        return Impossible(f"{in_words}: {error}")
    allowed = EXACT if evidence.task.weights is Weights.SMALL else ROUNDING_TOLERANCE
    if (distance := misfit(mechanism, evidence, reading=evidence.task.reading, shifts=())) > allowed:
        return Impossible(f"{in_words}: the only one that explains the changes is {distance:g} away from a reading")
    return Found(Answer(mechanism, predict_frequency(mechanism, evidence), unique, in_words))


def total_effects(evidence: Evidence) -> Floats | None:
    """Return the effect of a unit change of each property on each node; None if one was never moved."""
    columns = [_column(evidence, i) for i in range(evidence.frequency)]
    complete_columns = [column for column in columns if column is not None]
    return np.array(complete_columns).T if len(complete_columns) == len(columns) else None


def _column(evidence: Evidence, node: int) -> Floats | None:
    """Return the effects of one property, from the setting that moved it most; None if none did."""
    # the largest change has the smallest relative rounding error
    best: Floats | None = None
    last: dict[int, int] = {}
    for i, observation in enumerate(evidence.observations):
        if observation.changed == node:
            change = evidence.table[i] - evidence.table[last[observation.crystal]]
            if change[node] and (best is None or abs(change[node]) > abs(best[node])):
                best = change
        last[observation.crystal] = i
    return None if best is None else best / best[node]


def direct_effects(totals: Floats) -> Floats:
    """Compute direct effects to two decimals; shape (nodes, properties)."""
    m = totals.shape[1]
    # I - W is unit triangular in topological order: determinant 1, so T of an acyclic mechanism is invertible
    inverse = np.linalg.inv(totals[:m])
    direct = np.vstack([np.eye(m) - inverse, totals[m:] @ inverse])
    return np.round(direct, DECIMALS) + 0.0
