"""Listed members: all of them, without time for choices that have no acyclic completion, within a budget of rows."""

from __future__ import annotations

from random import Random
from time import process_time

import pytest

from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.extensions.extension import MechanismClass
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.hidden import members as meanings
from calibrant.solvers.replayscm.hidden.mass import count_members
from calibrant.solvers.replayscm.hidden.members import list_members
from calibrant.solvers.replayscm.noise.posterior import Posterior
from tests.support.replayscm.extensions.random_items import random_class, random_member, random_worlds


@pytest.mark.parametrize(("observed", "hidden", "stated"), [(4, 1, 2), (5, 0, 2), (4, 1, None), (4, 2, 1)])
def test_members_are_as_many_as_are_counted_and_each_agrees(observed: int, hidden: int, stated: int | None) -> None:
    rng = Random(f"{observed} {hidden} {stated}")
    num_listed = 0
    for _ in range(5):
        scm_class = random_class(rng, observed, num_hidden=hidden, stated=stated)
        worlds = random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4)
        posterior = Posterior(scm_class).condition(*worlds)
        if count_members(posterior) > 3_000:
            continue
        members = list_members(posterior)
        assert len({tuple(sorted(member.items())) for member in members}) == len(members) == count_members(posterior)
        assert all(posterior.likelihood(member) > 0 for member in members[:50])
        num_listed += len(members)
    assert num_listed > 20


def copies(num_copies: int) -> Posterior:
    """Variables that read like a root, and two that read like each other alone; one functional parent each."""
    names = tuple(f"X{i}" for i in range(num_copies))
    observed = ("R", "S", *names, "A", "B")
    scm_class = MechanismClass(observed, ("R", "S"), HiddenOrder(observed, ("R", "S")), 1)
    rows = tuple(f"{c & 1}{c >> 1}" + f"{c & 1}" * num_copies + f"{(c ^ c >> 1) & 1}" * 2 for c in range(4))
    return Posterior(scm_class).condition(EvidenceWorld({}, rows))


def test_choices_that_end_in_a_cycle_cost_no_time() -> None:
    """A copies B and B copies A, whatever the ten others copy: 10**10 choices, each of them cyclic."""
    posterior = copies(10)
    start = process_time()
    assert list_members(posterior) == []
    assert process_time() - start < 20


def test_rows_that_are_compared_have_a_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = Random(2)
    scm_class = random_class(rng, 4, num_hidden=1)
    posterior = Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4))
    assert count_members(posterior) <= 3_000
    monkeypatch.setattr(meanings, "MAX_COMPARED_ROWS", 5)
    with pytest.raises(BudgetSpent, match="more than 5 rows"):
        list_members(posterior)
