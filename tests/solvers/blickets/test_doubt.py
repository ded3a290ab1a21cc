"""One rule with or without noise: against plain enumeration."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.blickets.item import all_rules, set_of
from calibrant.dsl.blickets.reference import ACTIVE, INACTIVE
from calibrant.solvers.blickets.conditions import RELIABILITIES, DoubtSpace
from tests.support.effort import examples

READS = st.lists(st.tuples(st.sets(st.integers(0, 2)).map(lambda on: tuple(sorted(on))), st.booleans()), max_size=8)


@settings(deadline=None, max_examples=examples(30))
@given(READS)
def test_both_families_weigh_alike_beforehand_and_members_of_each_too(
    reads: list[tuple[tuple[int, ...], bool]],
) -> None:
    space = DoubtSpace.full(3)
    masses = {
        (rule, p): weight for rule in all_rules(3) for p, weight in ((1.0, 1.0), *((p, 0.2) for p in RELIABILITIES))
    }
    for placed, active in reads:
        space = space.after(placed, ACTIVE if active else INACTIVE)
        for rule, p in masses:
            heard = p if rule.active(set_of(placed)) else 0.0
            masses[rule, p] *= heard if active else 1 - heard
    assert space.count == sum(mass > 0 for mass in masses.values())
    total = sum(masses.values())
    expected = {rule: sum(masses[rule, p] for p in (1.0, *RELIABILITIES)) for rule in all_rules(3)}
    assert space.posterior() == pytest.approx({rule: mass / total for rule, mass in expected.items() if mass}, rel=1e-9)
    for present in range(8 if total else 0):
        both = {rule: expected[rule] / total for rule in expected}
        lit = {
            rule: sum(masses[rule, p] * p for p in (1.0, *RELIABILITIES)) / total * rule.active(present)
            for rule in both
        }
        heard = sum(lit.values())
        told = sum(
            part * log2(part / (both[rule] * of_reading))
            for rule in both
            for part, of_reading in ((lit[rule], heard), (both[rule] - lit[rule], 1 - heard))
            if part > 1e-15
        )
        assert space.information()[present] == pytest.approx(told, abs=1e-9)
