"""Weights of the frequency to six decimals: further settings, far away, after the mechanism is known as displayed.

A reading of two decimals tells a linear weight within 0.005 / v if its property stands at v. So each parent of the
frequency is set far away, those farthest downstream first. Parents further down that it drags along are set back, so
that the reading is about one weight that is not known yet; those known already may stay where they are.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.mechanism import FREQUENCY, Mechanism, Term
from calibrant.solvers.causalab.answer import Answer
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.quadratic.solve import solve_quadratic
from calibrant.solvers.outcome import Found, Outcome

FAR, BACK = 20_000.0, 0.0
WEIGHT_DECIMALS = 6
READ = 0.02  # how far F's equation may be from a reading: its rounding, and that of its base


def solve_to_six_decimals(episode: LabEpisode) -> Outcome[Answer]:
    """The exact solver's answer with the frequency's linear weights to six decimals, as far as the allowance goes."""
    outcome = solve_quadratic(episode)
    return Found(_sharpened(episode, outcome.value)) if isinstance(outcome, Found) else outcome


def _sharpened(episode: LabEpisode, answer: Answer) -> Answer:
    weights = dict(answer.mechanism.weights(FREQUENCY))
    squares = answer.mechanism.weights(FREQUENCY, 2)
    below = {parent: _descendants(answer.mechanism, parent) & weights.keys() for parent in weights}
    for parent in sorted(weights, key=lambda name: (len(below[name]), name)):
        dragged = sorted(below[parent], key=lambda name: (-len(below[name]), name))
        if episode.left < 1 + len(dragged):
            return answer
        step = episode.act({"set": parent, "value": FAR})
        for name in dragged:
            step = episode.act({"set": name, "value": BACK})
        if step.reading is None:
            return answer
        at = step.reading
        other_terms = sum(squares[q] * at[q] ** 2 + weights[q] * at[q] for q in weights if q != parent)
        parent_term = at[FREQUENCY] - answer.mechanism.frequency_base - other_terms - squares[parent] * at[parent] ** 2
        weights[parent] = round(parent_term / at[parent], WEIGHT_DECIMALS)
    sharp = _with_weights(answer.mechanism, weights)
    return replace(answer, mechanism=sharp) if _reads(episode, sharp) else answer


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


def _reads(episode: LabEpisode, mechanism: Mechanism) -> bool:
    """Return whether the frequency's equation gives every reading, within what display and floating point allow."""
    evidence = evidence_of(episode.task, episode.steps)
    nodes = evidence.nodes
    for row in evidence.table:
        at = dict(zip(nodes, row.tolist(), strict=True))
        parts = [t.weight * at[t.parent] ** t.power for t in mechanism.frequency.terms]
        apart = abs(mechanism.frequency_base + sum(parts) - at[FREQUENCY])
        if apart > READ + float(np.sum(np.abs(parts))) * 1e-6:
            return False
    return True
