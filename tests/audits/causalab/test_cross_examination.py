"""Claims about laboratories by SMT search: members against all mechanisms, claims against the version space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from random import Random

import msgspec
import pytest

from calibrant.audits.causalab.cross_examination import EXAMINERS, Mechanisms
from calibrant.audits.causalab.verify import (
    VERIFIERS,
    VisibleData,
    every_property_set,
    item_evidence,
    nonmember_reason,
    visible_data,
)
from calibrant.audits.claims import NotExaminedError, RecountLimitError, Refused, examine
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.mechanism import FREQUENCY, Equation, Mechanism, Term
from calibrant.dsl.causalab.reference import SettingMeaning, bases_of
from calibrant.dsl.errors import CycleError
from tests.oracles.engines import lab_forgeries
from tests.support.forgery import causalab
from tests.support.packages import needs

NUM_ALIKE = 4  # spaces of as many members or predictions that are searched: each asks z3 in a context of its own


@pytest.fixture(autouse=True)
def _z3() -> None:
    needs("z3")


def _all_mechanisms(visible: VisibleData) -> Iterator[Mechanism]:
    """Yield every acyclic mechanism of the class; the frequency's base is the one that the first crystal leaves."""
    nodes, start = [*visible["properties"], FREQUENCY], visible["baseline"]
    pairs = [(p, c) for c in nodes for p in nodes if p != c and (p != FREQUENCY or visible["freq_parent"])]
    for weights in product(range(4), repeat=len(pairs)):
        terms = [(p, c, w) for (p, c), w in zip(pairs, weights, strict=True) if w]
        base = round(start[FREQUENCY] - sum(w * start[p] for p, c, w in terms if c == FREQUENCY), 2)
        try:
            yield Mechanism(
                {
                    node: Equation(
                        tuple(Term(p, 1, float(w)) for p, c, w in terms if c == node),
                        base if node == FREQUENCY else None,
                    )
                    for node in nodes
                }
            )
        except CycleError:
            continue


def _has_drawn_bases(mechanism: Mechanism, visible: VisibleData) -> bool:
    starts = [*visible["records"], visible["baseline"]]
    bases = [base for start in starts for base in bases_of(mechanism, start).values()]
    in_range = all(base.is_integer() and 0 <= base <= 100 for base in bases)
    return in_range and mechanism.frequency_base.is_integer() and 15 <= mechanism.frequency_base <= 25


def _listed(mechanisms: Mechanisms) -> list[Mechanism]:
    """Return the members, excluded one after another."""
    members = []
    while (solution := mechanisms.search.find_integers()) is not None:
        members.append(mechanisms.mechanism(solution))
        pairs = [(p, c) for c in mechanisms.nodes for p in mechanisms.parents_of(c)]
        mechanisms.search.require(*(mechanisms.weight(*pair) != solution["weight", *pair] for pair in pairs))
    return members


def test_members_are_those_of_all_mechanisms_that_replay() -> None:
    """With unrestricted bases, and with those that the generator draws."""
    plans = [replace(PLANS["3nodes"], records=n, reading=r) for n in (0, 1, 2) for r in SettingMeaning]
    plans.append(replace(PLANS["3nodes"], records=2, freq_parent=True))
    sizes = {False: Counter[int](), True: Counter[int]()}
    for plan in plans:
        for item in generate_items(plan, 3, 5):
            numbers = [len(every_property_set(item))]
            numbers += [0, 1] if plan.records and not plan.freq_parent else [1]
            for number in numbers:
                visible = visible_data(item, every_property_set(item)[:number])
                replaying = [m for m in _all_mechanisms(visible) if not nonmember_reason(m, visible)]
                for bounded, counts in sizes.items():
                    expected = [m for m in replaying if not bounded or _has_drawn_bases(m, visible)]
                    if counts[len(expected)] == NUM_ALIKE:
                        continue
                    listed = _listed(Mechanisms(visible, "smt", bounded=bounded))
                    assert item.sealed.mechanism.edges in [member.edges for member in expected]
                    weights = [(sorted(m.all_weights.items()), m.frequency_base) for m in listed]
                    assert sorted(weights) == sorted(
                        (sorted(m.all_weights.items()), m.frequency_base) for m in expected
                    )
                    counts[len(expected)] += 1
    for counts in sizes.values():
        assert counts[1] >= 4
        assert sum(number for size, number in counts.items() if size > 1) >= 4


def test_predictions_are_those_of_all_mechanisms_that_replay() -> None:
    """With unrestricted bases, and with those that the generator draws."""
    sizes = {False: Counter[int](), True: Counter[int]()}
    for records, count in ((0, 45), (1, 6), (2, 6)):
        for item in generate_items(replace(PLANS["3nodes"], records=records), 6, count):
            visible, reactor = visible_data(item), item.task.reactor
            expected: dict[bool, set[float]] = {False: set(), True: set()}
            for member in _all_mechanisms(visible):
                if nonmember_reason(member, visible):
                    continue
                terms = member.frequency.terms
                predicted = round(member.frequency_base + sum(t.weight * reactor[t.parent] for t in terms), 2)
                expected[False].add(predicted)
                bases = bases_of(member, {**reactor, FREQUENCY: predicted}).values()
                if _has_drawn_bases(member, visible) and all(0 <= base <= 100 for base in bases):
                    expected[True].add(predicted)
            for bounded, counts in sizes.items():
                if counts[len(expected[bounded])] < NUM_ALIKE:
                    assert _listed_predictions(Mechanisms(visible, "smt", bounded=bounded)) == expected[bounded]
                    counts[len(expected[bounded])] += 1
    for counts in sizes.values():
        assert counts[1] >= 4
        assert sum(number for size, number in counts.items() if size > 1) >= 4


def _listed_predictions(mechanisms: Mechanisms) -> set[float]:
    """Return the predictions, excluded one after another."""
    listed, frequency = set(), mechanisms.add_reactor()
    while (solution := mechanisms.search.find_integers()) is not None:
        _, predicted = mechanisms.predict(solution)
        assert predicted not in listed
        listed.add(predicted)
        mechanisms.search.require(frequency != round(100 * predicted))
    return listed


@pytest.mark.parametrize("claim", sorted(EXAMINERS))
def test_claims_are_proved_or_refuted_as_the_version_space_decides(claim: str) -> None:
    forger, rng, verdicts = causalab.FORGERS[claim], Random(7), Counter[bool]()
    for genuine in forger.genuine():
        forged = [genuine.certificate.data, *list(forger.forged(genuine, rng))[::16]]
        if "edges" in forged[0]:
            forged.append({**forged[0], "edges": [*forged[0]["edges"], [FREQUENCY, "no node"]]})
        for data in forged:
            certificate = msgspec.structs.replace(genuine.certificate, data=dict(data))
            try:
                holds = forger.is_true(genuine.item, certificate)
            except Exception:  # as a forger's truth is read: whatever it raises means no
                holds = False
            try:
                line = examine(certificate, item_evidence(genuine.item), VERIFIERS, EXAMINERS, "smt")
            except (Refused, ValueError):  # data of another shape
                line = ""
            assert ("proved again by smt" in line) is holds, (genuine.item.id, data, line)
            verdicts[holds] += 1
    assert min(verdicts[True], verdicts[False]) >= 3


def test_forged_claims_are_refuted_by_what_replays() -> None:
    forgeries = list(islice(lab_forgeries(), 20))
    assert [forgery for forgery in forgeries if not forgery.replays] == []
    assert {forgery.kind for forgery in forgeries} == {"causalab, uniqueness", "causalab, emptiness"}


def test_sat_and_a_budget_of_steps_leave_a_claim_open(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = causalab.certificates()["causalab-graph-decided"][0]
    evidence = item_evidence(genuine.item)
    with pytest.raises(NotExaminedError, match="take smt"):
        examine(genuine.certificate, evidence, VERIFIERS, EXAMINERS, "sat")
    monkeypatch.setattr("calibrant.audits.search.MAX_STEPS", {"smt": 10})
    with pytest.raises(RecountLimitError, match="10 steps are over"):
        examine(genuine.certificate, evidence, VERIFIERS, EXAMINERS, "smt")


def test_claims_that_are_a_replay_are_open() -> None:
    genuine = causalab.certificates()["causalab-edges-cannot-matter"][0]
    with pytest.raises(NotExaminedError, match="has no encoding of causalab-edges-cannot-matter"):
        examine(genuine.certificate, item_evidence(genuine.item), VERIFIERS, EXAMINERS, "smt")
