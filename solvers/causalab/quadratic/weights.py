"""Weights of the frequency to six decimals, by further extreme settings once the mechanism is known.

A reading of two decimals determines a linear weight within 0.005 / v if its property has value v. So each parent of the
frequency is set to a large value, those farthest downstream first. Downstream parents that move along are set back, so
that each reading depends on one unknown weight.
"""

from __future__ import annotations

from dataclasses import replace
from math import fsum

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Term
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.quadratic.solve import solve_quadratic
from calibrant.solvers.outcome import Found, Outcome

FAR, BACK = 20_000.0, 0.0
WEIGHT_DECIMALS = 6
READING_TOLERANCE = 0.02  # of the frequency: rounding of the reading and of its base


def solve_to_six_decimals(episode: LabEpisode) -> Outcome[Answer]:
    """Refine the exact solver's answer: the frequency's linear weights to six decimals, within the allowance."""
    outcome = solve_quadratic(episode)
    return Found(_refine_weights(episode, outcome.value)) if isinstance(outcome, Found) else outcome


def _refine_weights(episode: LabEpisode, answer: Answer) -> Answer:
    weights = dict(answer.mechanism.weights(FREQUENCY))
    squares = answer.mechanism.weights(FREQUENCY, 2)
    downstream = {parent: _descendants(answer.mechanism, parent) & weights.keys() for parent in weights}
    # fewest parents of the frequency downstream first: when one moves others along, their weights are known
    for parent in sorted(weights, key=lambda name: (len(downstream[name]), name)):
        dragged = sorted(downstream[parent], key=lambda name: (-len(downstream[name]), name))
        if episode.left < 1 + len(dragged):
            return answer
        step = episode.act({"set": parent, "value": FAR})
        for name in dragged:
            step = episode.act({"set": name, "value": BACK})
        if step.reading is None:
            return answer
        reading = step.reading
        other_terms = fsum(squares[q] * reading[q] ** 2 + weights[q] * reading[q] for q in weights if q != parent)
        parent_term = (
            reading[FREQUENCY] - answer.mechanism.frequency_base - other_terms - squares[parent] * reading[parent] ** 2
        )
        weights[parent] = round(parent_term / reading[parent], WEIGHT_DECIMALS)
    refined = _with_weights(answer.mechanism, weights)
    return replace(answer, mechanism=refined) if _fits_readings(episode, refined) else answer


def _descendants(mechanism: Mechanism, node: str) -> set[str]:
    names: set[str] = set()
    unseen = [node]
    while unseen:
        above = unseen.pop()
        for parent, child in mechanism.edges:
            if parent == above and child not in names:
                names.add(child)
                unseen.append(child)
    return names


def _with_weights(mechanism: Mechanism, weights: dict[str, float]) -> Mechanism:
    frequency_law = mechanism.frequency
    terms = tuple(Term(t.parent, t.power, weights[t.parent] if t.power == 1 else t.weight) for t in frequency_law.terms)
    return Mechanism({**mechanism.equations, FREQUENCY: replace(frequency_law, terms=terms)})


def _fits_readings(episode: LabEpisode, mechanism: Mechanism) -> bool:
    """Return whether the frequency's equation gives every reading, within display and floating-point error."""
    evidence = evidence_of(episode.task, episode.steps)
    nodes = evidence.nodes
    for row in evidence.table:
        at = dict(zip(nodes, row.tolist(), strict=True))
        parts = [t.weight * at[t.parent] ** t.power for t in mechanism.frequency.terms]
        distance = abs(mechanism.frequency_base + fsum(parts) - at[FREQUENCY])
        if distance > READING_TOLERANCE + float(np.sum(np.abs(parts))) * 1e-6:
            return False
    return True
