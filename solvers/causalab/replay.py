"""Replay of a mechanism by the reference: whether it gives every value that was seen, setting by setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.reference import NO_SHIFT, Reading, bases_after, bases_of, values
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causalab.evidence import Evidence, Floats

EXACT = 1e-6  # readings are multiples of 0.01
SAME_BASE = 0.005  # bases are multiples of 0.01
MIDDLE_BASE = 50.0  # of a property of the reactor crystal that is not shown


def mechanism_of(
    nodes: Sequence[str], linear: Sequence[Mapping[int, float]], base: float, square: Sequence[Mapping[int, float]] = ()
) -> Mechanism:
    """The mechanism with these weights by node and parent; `CycleError` if it is none.

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

    The frequency's base is what its weights leave of the first reading, which is free of noise.
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
    """The largest difference between a value that was seen and the reference's; infinite if it gives none.

    The bases of a crystal are what is missing to its first reading, which has to be free of noise; every further
    reading follows from its setting. Settings of static traces give the value, whatever `reading` says of those of the
    manipulator. A noisy reading may be any one of the `shifts`.
    """
    nodes, worst = evidence.nodes, 0.0
    bases: dict[int, dict[str, float]] = {}
    try:
        for seen in evidence.seen:
            row = dict(zip(nodes, seen.values, strict=True))
            if seen.crystal not in bases:
                bases[seen.crystal] = bases_of(mechanism, row)
            elif seen.changed is not None:
                node, own = nodes[seen.changed], bases[seen.crystal]
                meant = reading if seen.crystal == evidence.manipulator else Reading.VALUE
                bases[seen.crystal] = bases_after(mechanism, own, node, seen.setting, meant)
            possible = shifts if seen.noisy else (NO_SHIFT,)
            found = [values(mechanism, bases[seen.crystal], shift) for shift in possible]
            worst = max(worst, min(max(abs(f[node] - row[node]) for node in nodes) for f in found))
    except CalibrantError:
        return float("inf")
    return worst


def predicted(mechanism: Mechanism, evidence: Evidence) -> float:
    """The reactor crystal's frequency, from what is shown of it; properties that are not shown have a middling base."""
    shown = evidence.task.reactor
    found: dict[str, float] = {}
    for node in mechanism.order:
        if node in shown:
            found[node] = shown[node]
            continue
        equation = mechanism.equations[node]
        base = MIDDLE_BASE if equation.base is None else equation.base
        found[node] = round(base + sum(t.weight * found[t.parent] ** t.power for t in equation.terms), 2) + 0.0
    return found[FREQUENCY]
