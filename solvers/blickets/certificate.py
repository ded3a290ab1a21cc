"""Silent certificate: a proof that no switch has gone unnoticed, from readings that could not have caused one.

After a conjunctive rule with blickets S, |S| >= 2, the probe "all objects but s", s in S, is INACTIVE while that rule
is in force. Two such probes after the last activation refute every disjunctive second rule, and one for every s in S
refutes every conjunctive second rule that does not contain S. A second rule that contains S stays possible: whatever
it makes inactive is inactive, or an activation, under the first. After a disjunctive rule there is no such proof.
"""

from __future__ import annotations

from collections.abc import Iterable

from calibrant.dsl.blickets.reference import is_active
from calibrant.dsl.blickets.rule import Form, Rule, set_of


def certifiable(rule: Rule) -> bool:
    """Return whether silent probes can refute a switch after this rule."""
    return rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() >= 2


def missing_probes(n: int, rule: Rule, readings: Iterable[tuple[tuple[int, ...], str]]) -> list[int]:
    """Return the probes, as sets, not read since the last ACTIVE reading; `ValueError` for disjunctive rules."""
    if not certifiable(rule):
        raise ValueError("there is no silent certificate after a disjunctive rule")
    everything = (1 << n) - 1
    silent: set[int] = set()
    for placed, reading in readings:
        if is_active(reading):  # an activation may have been the switch: probes before it prove nothing
            silent.clear()
        else:
            silent.add(set_of(placed))
    # all objects but one of S: the largest sets on which the rule is silent, so the ones that refute most
    probes = [everything & ~(1 << index) for index in range(n) if rule.blickets >> index & 1]
    return [probe for probe in probes if probe not in silent]
