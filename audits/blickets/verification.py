"""Checks of certificates about blicket items. They share no code with the issuers and read the record alone.

Evidence is the item's record as JSON. Rules are compared here by the specification alone, set by set; scripts are
played again by audits.blickets.scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial, perm
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.blickets.scripts import CheckedRule, CountedScripts, QuietScript, counting_decides, full_marks
from calibrant.audits.claims import Certificate, ClaimKind, Verifier, fixed_words

Record: TypeAlias = Mapping[str, Any]
MAX_WALK = 5_000  # moves of a walk that is recounted: each has up to 2^8 orders


def _is_satisfied(rule: Record, placed: Sequence[str]) -> bool:
    within = [name in placed for name in rule["blickets"]]
    return all(within) if rule["rule"] == "conjunctive" else any(within)


def _all_sets(objects: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(objects) + 1):
        yield from combinations(objects, size)


def _rules(item: Record) -> list[Record]:
    sealed = item["sealed"]
    later = [entry["rule"] for entry in sealed.get("later", [])]
    return [sealed["rule1"], *([sealed["rule2"]] if "rule2" in sealed else []), *later]


def _rule(item: Record, stated: Any) -> Record:
    """Return a rule of a certificate, if it is one over the item's objects; ValueError otherwise."""
    names = stated["blickets"]
    sound = stated["rule"] in ("conjunctive", "disjunctive") and names and len(set(names)) == len(names)
    if not sound or not set(names) <= set(item["objects"]):
        raise ValueError("no rule over the item's objects")
    return stated  # type: ignore[no-any-return]


def _are_equivalent(first: Record, second: Record, objects: Sequence[str]) -> bool:
    return all(_is_satisfied(first, chosen) == _is_satisfied(second, chosen) for chosen in _all_sets(objects))


def _either_word(item: Any, certificate: Certificate) -> str:
    number = certificate.data["rule"]
    if not 1 <= number <= len(_rules(item)):
        return "there is no such rule"
    rule = _rules(item)[number - 1]
    conjunctive, disjunctive = ({"rule": word, "blickets": rule["blickets"]} for word in ("conjunctive", "disjunctive"))
    return "" if _are_equivalent(conjunctive, disjunctive, item["objects"]) else "the two words are different functions"


def _unreachable_orders(item: Any, certificate: Certificate) -> str:
    order, objects = item["sealed"]["rule1"].get("order"), item["objects"]
    if order is None or sorted(order) != sorted(objects) or "rule2" in item["sealed"]:
        return "the rule is not one order of all objects"
    moves = item["budget"] - (len(objects) - len(item["sealed"].get("start_on", [])))
    max_tried = max(0, 1 + moves // 2) if moves >= 0 else 0
    if certificate.data["tried"] != max_tried or certificate.data["orders"] != factorial(len(objects)):
        return f"{max_tried} of {factorial(len(objects))} orders can be tried at most"
    return "" if max_tried < factorial(len(objects)) else "the bound leaves no order untried"


def _reachable_orders(item: Any, certificate: Certificate) -> str:
    moves, objects = certificate.data["moves"], item["objects"]
    if sorted(item["sealed"]["rule1"].get("order", [])) != sorted(objects) or "rule2" in item["sealed"]:
        return "the rule is not one order of all objects"
    if len(moves) > item["budget"]:
        return "more moves than the budget has"
    placed = list(item["sealed"].get("start_on", []))
    reached = set()
    for name in moves:
        if name not in objects:
            return "an unknown object is moved"
        placed = [present for present in placed if present != name] if name in placed else [*placed, name]
        if len(placed) == len(objects):
            reached.add(tuple(placed))
    return "" if len(reached) == factorial(len(objects)) else f"{len(reached)} orders are reached"


def _silence_decides(item: Any, certificate: Certificate) -> str:
    sealed, objects, moves = item["sealed"], item["objects"], certificate.data["moves"]
    order = sealed["rule1"].get("order")
    if order is None or sorted(order) != sorted(objects) or "rule2" in sealed or sealed.get("p", 1) != 1:
        return "the detector is not one reliable order of all objects"
    if len(moves) > min(item["budget"], MAX_WALK):
        return f"more than {min(item['budget'], MAX_WALK)} moves"
    if not all(name in objects for name in moves):
        return "an unknown object is moved"
    placed = list(sealed.get("start_on", []))
    configurations = set()
    for name in moves:
        placed = [present for present in placed if present != name] if name in placed else [*placed, name]
        configurations.add(tuple(placed))
    contiguous = item["order_reading"] == "contiguous"
    orders_met = set().union(*(_orders_met(on, contiguous) for on in configurations))
    missed = sum(perm(len(objects), size) for size in range(1, len(objects)))
    missed -= sum(len(met_order) < len(objects) for met_order in orders_met)
    return f"{missed} orders of fewer objects are never met" if missed else ""


def _orders_met(on: tuple[str, ...], contiguous: bool) -> set[tuple[str, ...]]:
    """Return the orders that would be active: every subsequence, or every stretch of what is on."""
    if contiguous:
        return {on[first:end] for first, end in combinations(range(len(on) + 1), 2)}
    return {order for size in range(1, len(on) + 1) for order in combinations(on, size)}


def _always_explained(item: Any, certificate: Certificate) -> str:
    sealed, objects = item["sealed"], item["objects"]
    if not sealed.get("p", 1) < 1 or len(_rules(item)) > 1 or "order" in sealed["rule1"]:
        return "the detector is not one unreliable rule"
    if item["graded"]:
        return "a graded detector reads how many of its blickets are on"
    rule, rival = sealed["rule1"], _rule(item, certificate.data["other"])
    if _are_equivalent(rule, rival, objects):
        return "the other rule is the same function"
    for chosen in _all_sets(objects):
        if _is_satisfied(rule, chosen) and not _is_satisfied(rival, chosen):
            return f"an ACTIVE reading with {', '.join(chosen)} refutes the other rule"
    return ""


def _silently_switched(item: Any, certificate: Certificate) -> str:
    sealed, objects = item["sealed"], item["objects"]
    if "rule2" not in sealed or sealed.get("switch_by", "activations") != "activations" or "order" in sealed["rule1"]:
        return "the detector does not switch by activations from a rule without order"
    rule, rival = sealed["rule1"], _rule(item, certificate.data["other"])
    if _are_equivalent(rule, rival, objects):
        return "the other rule is the same function"
    for chosen in _all_sets(objects):
        if _is_satisfied(rival, chosen) and not _is_satisfied(rule, chosen):
            return f"an INACTIVE reading with {', '.join(chosen)} tells them apart"
    return ""


class RuleNumber(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Number of a rule of the detector, from 1."""

    rule: int


class OtherRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule that no reading tells from the detector's."""

    other: CheckedRule


class OrderBound(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Largest number of orders that can be tried, and number of all orders."""

    tried: int
    orders: int


class OrderWalk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Names of the objects that are toggled, one a move."""

    moves: list[str]


_DATA: Mapping[str, type[msgspec.Struct]] = {  # shape of each claim's data
    "either-word": RuleNumber,
    "always-explained": OtherRule,
    "silently-switched": OtherRule,
    "unreachable-orders": OrderBound,
    "reachable-orders": OrderWalk,
    "silence-decides": OrderWalk,
    "full-marks-before-the-switch": QuietScript,
    "counting-decides": CountedScripts,
}

_IN_WORDS = {
    "either-word": "one rule, conjunctive or disjunctive over a non-empty set of the objects",
    "always-explained": "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise",
    "silently-switched": "two rules, the second in force after some number of activations",
    "unreachable-orders": "all sequences of moves within the budget, whatever they read",
    "reachable-orders": "all sequences of moves within the budget, whatever they read",
    "silence-decides": "one rule that is active while its objects, any non-empty set, are on in one order of placement",
    "full-marks-before-the-switch": "this sequence of moves",
    "counting-decides": "this sequence of moves",
}


VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        claim: ClaimKind(_DATA[claim], fixed_words(_IN_WORDS[claim]), check)
        for claim, check in {
            "either-word": _either_word,
            "always-explained": _always_explained,
            "silently-switched": _silently_switched,
            "unreachable-orders": _unreachable_orders,
            "reachable-orders": _reachable_orders,
            "silence-decides": _silence_decides,
            "full-marks-before-the-switch": full_marks,
            "counting-decides": counting_decides,
        }.items()
    }
)
