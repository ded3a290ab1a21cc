"""Findings about blicket items, and what the order of five of five proves: certificates, and forgeries that fail."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.audits.blickets.attribution import attribute_runs
from calibrant.audits.blickets.items import counting_decides, gameable, item_findings
from calibrant.audits.blickets.verify import VERIFIERS, WALK, evidence_of
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, certify, verify
from calibrant.bench.cli import main
from calibrant.dsl.blickets import reference
from calibrant.dsl.blickets.generation import SUITES, sample_items
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
from calibrant.dsl.blickets.replies import text_runs
from calibrant.dsl.episode import Action
from tests.support.benchmarks.blickets import text_game_expected, text_game_lines


# --- Findings about items: what is proved carries a certificate that holds, and tampering with either is noticed ------
def _items(suite: str, number: int = 3) -> list[BlicketItem]:
    return list(islice(sample_items(SUITES[suite], 5), number))


def _all_findings(item: BlicketItem) -> Iterator[Finding]:
    yield from item_findings(item)
    yield from gameable(item)
    yield from counting_decides(item)


def _found(suite: str) -> dict[str, ClaimStatus]:
    (item,) = _items(suite, 1)
    return {finding.kind: finding.verdict for finding in _all_findings(item)}


PROVED, REFUTED, OPEN = ClaimStatus.PROVED, ClaimStatus.REFUTED, ClaimStatus.OPEN


@pytest.mark.parametrize(
    ("suite", "kinds"),
    [
        ("conjunctive", {}),
        ("disjunctive", {}),
        ("stochastic", {"never-suffices": PROVED}),
        ("order-2-of-4", {"vacuous": PROVED}),
        ("order-4-of-4", {"vacuous": PROVED, "bounded-orders": REFUTED}),
        ("order-5-of-5", {"vacuous": PROVED, "bounded-orders": PROVED, "unwinnable": REFUTED}),
    ],
)
def test_suites_have_the_flaws_that_the_specification_lists(suite: str, kinds: dict[str, ClaimStatus]) -> None:
    assert _found(suite) == kinds


def test_items_that_switch_are_gameable_and_judged_by_the_counting() -> None:
    found = _found("easy-3")
    assert (found["vacuous"], found["gameable"], found["never-suffices"]) == (PROVED, PROVED, PROVED)
    verdicts = [finding.verdict for item in _items("hard-3", 20) for finding in counting_decides(item)]
    assert verdicts.count(PROVED) >= 10  # the static learner: about .25 right by level, all by edge
    strict = replace(_items("easy-3", 1)[0], sealed=replace(_items("easy-3", 1)[0].sealed, strict_singleton=True))
    assert "unfair" in {finding.kind for finding in item_findings(strict)}


def test_five_ordered_objects_leave_84_of_120_orders_untried_and_four_leave_none() -> None:
    (bounded,) = [f for f in item_findings(_items("order-5-of-5", 1)[0]) if f.kind == "bounded-orders"]
    assert (bounded.data["tried"], bounded.data["orders"]) == (36, 120)
    assert bounded.claim.endswith("a bound on orders and not on winning; unwinnable for the strict score only")
    (free,) = [f for f in item_findings(_items("order-4-of-4", 1)[0]) if f.kind == "bounded-orders"]
    assert (free.data["moves"], free.data["orders"]) == (50, 24)


def _certified() -> list[tuple[BlicketItem, Finding, Certificate]]:
    suites = ["easy-3", "hard-3", "hard-3-AC", "stochastic", "order-4-of-4", "order-5-of-5", "several-switches"]
    return [
        (item, finding, finding.certificate)
        for suite in suites
        for item in _items(suite)
        for finding in _all_findings(item)
        if finding.certificate is not None
    ]


def test_every_certificate_holds_and_every_claim_is_among_them() -> None:
    claims = set()
    for item, finding, certificate in _certified():
        again = msgspec.json.decode(msgspec.json.encode(certificate), type=Certificate)
        verdict = verify(again, evidence_of(item), VERIFIERS)
        assert (verdict.holds, verdict.reason) == (True, ""), finding
        claims.add(certificate.claim)
    assert claims == set(VERIFIERS)


def test_a_certificate_holds_for_its_own_item_and_words_only() -> None:
    for item, finding, certificate in _certified():
        other = replace(item, task=replace(item.task, budget=item.task.budget + 1))
        assert not verify(certificate, evidence_of(other), VERIFIERS).holds, finding
        reworded = msgspec.structs.replace(certificate, in_words="everything")
        assert verify(reworded, evidence_of(item), VERIFIERS).reason == "it is about another class"


TAMPERED: dict[str, list[dict[str, Any]]] = {
    "either-word": [{"rule": 1}, {"rule": 9}, {"rule": "2"}, {}],
    "always-explained": [
        {"other": {"rule": "conjunctive", "blickets": ["A", "B", "C", "D", "E"]}},
        {"other": {"rule": "conjunctive", "blickets": []}},
        {"other": 3},
        {},
    ],
    "silently-switched": [
        {"other": {"rule": "disjunctive", "blickets": ["A", "B", "C", "D", "E"]}},
        {"other": {"rule": "xor", "blickets": ["A"]}},
    ],
    "unreachable-orders": [{"tried": 35, "orders": 120}, {"tried": 36, "orders": 121}, {}],
    "reachable-orders": [{"moves": ["A", "B", "C", "D"]}, {"moves": ["Z"]}, {"moves": [["A"]]}, {"moves": ["A"] * 101}],
    "silence-decides": [
        {"moves": list("ABCDE")},
        {"moves": [*WALK[:-1]]},
        {"moves": [*WALK, *"ABCDE"]},
        {"moves": ["Z"]},
        {"moves": [["A"]]},
        {"moves": WALK},
        {"moves": 3},
        {},
    ],
    "full-marks-before-the-switch": [{"actions": [], "activations": 1}, {"actions": [{"place": "Z"}, {"check": {}}]}],
    "counting-decides": [{"level": [], "edge": []}, {}],
}


def test_tampered_certificates_do_not_hold() -> None:
    claims = set()
    for item, _, certificate in _certified():
        claims.add(certificate.claim)
        for data in TAMPERED[certificate.claim]:
            verdict = verify(msgspec.structs.replace(certificate, data=data), evidence_of(item), VERIFIERS)
            assert not verdict.holds, (certificate.claim, data)
            assert len(verdict.reason.splitlines()) == 1
    assert claims == set(TAMPERED) == set(VERIFIERS)


def test_a_wrong_final_answer_is_not_worth_full_marks() -> None:
    for item, _, certificate in _certified():
        if certificate.claim != "full-marks-before-the-switch":
            continue
        actions = [*certificate.data["actions"][:-1], {"check": {"rule": "disjunctive", "blickets": ["A"]}}]
        changed = msgspec.structs.replace(certificate, data={**certificate.data, "actions": actions})
        assert verify(changed, evidence_of(item), VERIFIERS).reason == "the answer is wrong"


def test_the_public_runs_have_the_attribution_that_is_expected() -> None:
    expected = text_game_expected()
    audited = attribute_runs(text_runs(text_game_lines()))
    assert (audited.runs, audited.truth_kept) == (expected["rows"], expected["rows_whose_space_keeps_the_truth"])
    assert {
        setting: {
            "decided and right": counts.earned,
            "decided and wrong": counts.missed,
            "undecided and right": counts.lucky,
            "undecided and wrong": counts.short,
        }
        for setting, counts in audited.counts.items()
    } == expected["counts"]
    assert [finding.verdict for finding in audited.findings()] == [PROVED] * 5


# --- Order of five of five is winnable: the walk, its certificate and its silence, computed from the reference
# alone
# Printed in BLICKETS.md, section 9, with five objects; the last four moves make it a script of 75 toggles.
PRINTED_WALK = "ABCDEAABBEECCAABBAACCEEBBAADDEECCBBEEDDAACCDDBBAABBDDCCAAEEDDBBCCDDCCBB"


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
