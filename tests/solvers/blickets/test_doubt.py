"""One rule with or without noise: against plain enumeration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsl.blickets.reference import ACTIVE, INACTIVE
from dsl.blickets.rule import all_rules, set_of
from solvers.blickets.doubt import DoubtSpace
from solvers.blickets.noise import RELIABILITIES

READS = st.lists(st.tuples(st.sets(st.integers(0, 2)).map(lambda on: tuple(sorted(on))), st.booleans()), max_size=8)


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
