"""Replay of a mechanism by the reference: whether it reproduces every reading, setting by setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.reference import NO_SHIFT, Reading, bases_after, bases_of, round_value, values
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causalab.evidence import Evidence, Floats

EXACT = 1e-6  # readings are multiples of 0.01
SAME_BASE = 0.005  # bases are multiples of 0.01
MIDDLE_BASE = 50.0  # of a property of the reactor crystal that is not shown


def mechanism_of(
    nodes: Sequence[str], linear: Sequence[Mapping[int, float]], base: float, square: Sequence[Mapping[int, float]] = ()
) -> Mechanism:
    """Build the mechanism with these weights by node and parent; `CycleError` if it has a cycle.

    nodes: the frequency is the last; base: the frequency's
    """
    equations = {}
    for i, node in enumerate(nodes):
        squares = square[i] if square else {}
        terms = [Term(nodes[p], 2, squares[p]) for p in sorted(squares)]
        terms += [Term(nodes[p], 1, linear[i][p]) for p in sorted(linear[i])]
        equations[node] = Equation(tuple(terms), base if node == FREQUENCY else None)
    return Mechanism(equations)


def linear_matrix(mechanism: Mechanism, evidence: Evidence) -> Floats | None:
    """Return the weights, row = child; None for other nodes, for squares, or for a base that the weights rule out.

    The frequency's base follows from its weights and the first reading, which is free of noise.
    """
    nodes, first = evidence.nodes, evidence.table[0]
    if set(mechanism.equations) != set(nodes) or any(mechanism.weights(node, 2) for node in nodes):
        return None
    matrix = np.array([[mechanism.weights(child).get(parent, 0.0) for parent in nodes] for child in nodes])
    base = np.round(first[-1] - first @ matrix[-1], 2)
    return matrix if abs(base - mechanism.frequency_base) < SAME_BASE else None


def misfit(
    mechanism: Mechanism, evidence: Evidence, *, reading: Reading, shifts: Sequence[Mapping[str, float]]
) -> float:
    """Return the largest difference between a reading and the reference; infinite if the reference fails.

    The bases of a crystal follow from its first reading, which has to be free of noise; every further reading follows
    from its setting. Settings of static traces state the value; `reading` is the meaning of those of the manipulator. A
    noisy reading may have any one of the `shifts`.
    """
    nodes, worst = evidence.nodes, 0.0
    bases: dict[int, dict[str, float]] = {}
    try:
        for observation in evidence.observations:
            row = dict(zip(nodes, observation.values, strict=True))
            if observation.crystal not in bases:
                bases[observation.crystal] = bases_of(mechanism, row)
            elif observation.changed is not None:
                node, crystal_bases = nodes[observation.changed], bases[observation.crystal]
                setting_reading = reading if observation.crystal == evidence.manipulator else Reading.VALUE
                bases[observation.crystal] = bases_after(
                    mechanism, crystal_bases, node, observation.setting, setting_reading
                )
            possible = shifts if observation.noisy else (NO_SHIFT,)
            predictions = [values(mechanism, bases[observation.crystal], shift) for shift in possible]
            # a draw belongs to its reading: each noisy reading takes the shift that suits it best
            worst = max(worst, min(max(abs(f[node] - row[node]) for node in nodes) for f in predictions))
    except CalibrantError:
        return float("inf")
    return worst


def predict_frequency(mechanism: Mechanism, evidence: Evidence) -> float:
    """Predict the reactor crystal's frequency from its shown values; hidden properties have base MIDDLE_BASE."""
    reactor = evidence.task.reactor
    reading: dict[str, float] = {}
    for node in mechanism.order:
        if node in reactor:
            reading[node] = reactor[node]
            continue
        equation = mechanism.equations[node]
        total = MIDDLE_BASE if equation.base is None else equation.base
        for term in equation.terms:  # from the left, base first, as the reference adds
            total += term.weight * reading[term.parent] ** term.power
        reading[node] = round_value(total)
    return reading[FREQUENCY]
