"""Order of five of five is winnable: the walk, its certificate and its silence, computed from the reference alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from calibrant.audits.blickets.items import item_findings
from calibrant.audits.blickets.verify import VERIFIERS, evidence_of
from calibrant.audits.claims import ClaimStatus, Finding, certify, verify
from calibrant.bench.cli import main
from calibrant.dsl.blickets import reference
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Condition,
    Form,
    Mechanism,
    OrderReading,
    Rule,
    Sealed,
    Task,
    set_of,
)
from calibrant.dsl.blickets.records import write_pool
from calibrant.dsl.blickets.score import grade_episode
from calibrant.dsl.episode import Action

# Printed in BLICKETS.md, section 9, with five objects; the last four moves make it a script of 75 toggles.
PRINTED_WALK = "ABCDEAABBEECCAABBAACCEEBBAADDEECCBBEEDDAACCDDBBAABBDDCCAAEEDDBBCCDDCCBB"
SCRIPT = PRINTED_WALK + "BAAA"
ALL_FIVE = {"rule": "conjunctive", "blickets": list("ABCDE")}


def _item(order: tuple[int, ...] = (0, 1, 2, 3, 4), **sealed: object) -> BlicketItem:
    mechanism = Mechanism(Rule(Form.CONJUNCTIVE, set_of(order)), order)
    return BlicketItem("x", Condition.ORDER, Task(tuple("ABCDE"), 75), Sealed((mechanism,), **sealed))  # type: ignore[arg-type]


def _toggles(script: str) -> Iterator[Action]:
    placed = set[str]()
    for name in script:
        yield {"remove" if name in placed else "place": name}
        placed ^= {name}


def _readings(order: tuple[int, ...], script: str) -> tuple[str | None, ...]:
    return tuple(moment.reading for moment in reference.run(_item(order), _toggles(script)).moments)


def _orders(sizes: range) -> list[tuple[int, ...]]:
    return [order for size in sizes for order in permutations(range(5), size)]


def test_the_walk_meets_all_205_shorter_orders_so_that_silence_leaves_the_five() -> None:
    assert len(PRINTED_WALK) == 71
    shorter = _orders(range(1, 5))
    assert len(shorter) == 205
    assert all("ACTIVE" in _readings(order, PRINTED_WALK) for order in shorter)
    silent = [order for order in _orders(range(1, 6)) if "ACTIVE" not in _readings(order, PRINTED_WALK)]
    assert {len(order) for order in silent} == {5}


@pytest.mark.parametrize("script", [PRINTED_WALK, SCRIPT])
def test_a_fixed_script_is_right_about_all_120_orders_and_has_decided_88(script: str) -> None:
    """Decided in the class of 320 ordered sets: no other set gives the same readings."""
    sets = defaultdict(set)
    for order in _orders(range(2, 6)):
        sets[_readings(order, script)].add(frozenset(order))
    orders = _orders(range(5, 6))
    assert sum(len(sets[_readings(order, script)]) == 1 for order in orders) == 88
    for order in orders:
        item = _item(order)
        history = reference.run(item, [*_toggles(script), {"check": ALL_FIVE}])
        assert grade_episode(item, history).correct


def _by_kind(item: BlicketItem) -> dict[str, Finding]:
    return {finding.kind: finding for finding in item_findings(item)}


def test_five_of_five_is_not_called_unwinnable_and_the_walk_is_its_certificate() -> None:
    found = _by_kind(_item())
    assert found["bounded-orders"].verdict is ClaimStatus.PROVED
    assert found["unwinnable"].verdict is ClaimStatus.REFUTED
    assert found["unwinnable"].data == {"shorter": 205, "budget": 75, "moves": 71}
    certificate = found["unwinnable"].certificate
    assert certificate is not None
    assert certificate.data == {"moves": list(PRINTED_WALK)}
    assert verify(certificate, evidence_of(_item()), VERIFIERS).holds


def test_what_is_on_at_the_start_is_removed_before_the_walk() -> None:
    item = _item(start_on=(1, 3))
    certificate = _by_kind(item)["unwinnable"].certificate
    assert certificate is not None
    assert certificate.data["moves"] == ["B", "D", *PRINTED_WALK]
    assert verify(certificate, evidence_of(item), VERIFIERS).holds


@pytest.mark.parametrize(
    "change",
    [
        {"budget": 70},
        {"order_reading": OrderReading.CONTIGUOUS},
        {"objects": tuple("ABCDEF")},
    ],
)
def test_without_a_walk_the_question_stays_open(change: dict[str, object]) -> None:
    item = _item()
    if "objects" in change:
        order = tuple(range(6))
        item = replace(item, sealed=Sealed((Mechanism(Rule(Form.CONJUNCTIVE, 63), order),)))
    item = replace(item, task=replace(item.task, **change))  # type: ignore[arg-type]
    found = _by_kind(item)["unwinnable"]
    assert (found.verdict, found.certificate) == (ClaimStatus.OPEN, None)


@pytest.mark.parametrize("flaw", ["order of four", "unreliable", "two rules", "short budget"])
def test_the_walk_proves_nothing_about_other_detectors(flaw: str) -> None:
    certificate = _by_kind(_item())["unwinnable"].certificate
    assert certificate is not None
    four = Mechanism(Rule(Form.CONJUNCTIVE, 15), (0, 1, 2, 3))
    whole = _item().sealed.mechanisms[0]
    item = {
        "order of four": replace(_item(), sealed=Sealed((four,))),
        "unreliable": _item(p=0.5),
        "two rules": replace(_item(), sealed=Sealed((whole, four), (3,))),
        "short budget": replace(_item(), task=replace(_item().task, budget=70)),
    }[flaw]
    forged = certify(certificate.claim, certificate.in_words, evidence_of(item), certificate.data)
    assert not verify(forged, evidence_of(item), VERIFIERS).holds


def test_nothing_calls_a_winnable_item_unwinnable(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = tmp_path / "five.jsonl"
    write_pool(pool, "five", [_item()])
    assert main(["pool", "check", str(pool), "--json"]) == 0
    (report,) = json.loads(capsys.readouterr().out)
    assert {note["kind"] for note in report["notes"]} == {"vacuous", "bounded-orders"}
    assert main(["audit", str(pool), "--fail-on", "unwinnable"]) == 0
    assert main(["audit", str(pool), "--fail-on", "bounded-orders"]) == 1
    capsys.readouterr()
