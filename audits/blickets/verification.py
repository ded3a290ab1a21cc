"""Checks certificates about blicket items. Shares no code with what made them: it reads the record and nothing else.

Evidence is the item's record as JSON. A detector is replayed here a second time, from the specification alone; noise is
not, since no certificate needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import factorial
from types import MappingProxyType
from typing import Any, TypeAlias

from audits.claims import Certificate, Verifier

Record: TypeAlias = Mapping[str, Any]


def _satisfied(rule: Record, placed: Sequence[str], contiguous: bool = False) -> bool:
    order = rule.get("order")
    if order is None:
        within = [name in placed for name in rule["blickets"]]
        return all(within) if rule["rule"] == "conjunctive" else any(within)
    if contiguous:
        return any(list(placed[at : at + len(order)]) == list(order) for at in range(len(placed)))
    return [name for name in placed if name in order] == list(order)


def _all_sets(objects: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for size in range(len(objects) + 1):
        yield from combinations(objects, size)


def _rules(item: Record) -> list[Record]:
    sealed = item["sealed"]
    later = [entry["rule"] for entry in sealed.get("later", [])]
    return [sealed["rule1"], *([sealed["rule2"]] if "rule2" in sealed else []), *later]


def _rule(item: Record, stated: Any) -> Record:
    """A rule of a certificate, if it is one over the item's objects; ValueError otherwise."""
    names = stated["blickets"]
    sound = stated["rule"] in ("conjunctive", "disjunctive") and names and len(set(names)) == len(names)
    if not sound or not set(names) <= set(item["objects"]):
        raise ValueError("no rule over the item's objects")
    return stated  # type: ignore[no-any-return]


def _same(one: Record, other: Record, objects: Sequence[str]) -> bool:
    return all(_satisfied(one, chosen) == _satisfied(other, chosen) for chosen in _all_sets(objects))


def _either_word(item: Any, certificate: Certificate) -> str:
    number = certificate.data["rule"]
    if type(number) is not int or not 1 <= number <= len(_rules(item)):
        return "there is no such rule"
    rule = _rules(item)[number - 1]
    both, either = ({"rule": word, "blickets": rule["blickets"]} for word in ("conjunctive", "disjunctive"))
    return "" if _same(both, either, item["objects"]) else "the two words are different functions"


def _unreachable_orders(item: Any, certificate: Certificate) -> str:
    order, objects = item["sealed"]["rule1"].get("order"), item["objects"]
    if order is None or sorted(order) != sorted(objects) or "rule2" in item["sealed"]:
        return "the rule is not one order of all objects"
    moves = item["budget"] - (len(objects) - len(item["sealed"].get("start_on", [])))
    tried = max(0, 1 + moves // 2) if moves >= 0 else 0
    if certificate.data["tried"] != tried or certificate.data["orders"] != factorial(len(objects)):
        return f"{tried} of {factorial(len(objects))} orders can be tried at most"
    return "" if tried < factorial(len(objects)) else "the bound leaves no order untried"


def _reachable_orders(item: Any, certificate: Certificate) -> str:
    moves, objects = certificate.data["moves"], item["objects"]
    if len(moves) > item["budget"]:
        return "more moves than the budget has"
    placed = list(item["sealed"].get("start_on", []))
    reached = set()
    for name in moves:
        if name not in objects:
            return "an unknown object is moved"
        placed = [other for other in placed if other != name] if name in placed else [*placed, name]
        if len(placed) == len(objects):
            reached.add(tuple(placed))
    return "" if len(reached) == factorial(len(objects)) else f"{len(reached)} orders are reached"


def _always_explained(item: Any, certificate: Certificate) -> str:
    sealed, objects = item["sealed"], item["objects"]
    if not sealed.get("p", 1) < 1 or len(_rules(item)) > 1 or "order" in sealed["rule1"]:
        return "the detector is not one unreliable rule"
    rule, other = sealed["rule1"], _rule(item, certificate.data["other"])
    if _same(rule, other, objects):
        return "the other rule is the same function"
    for chosen in _all_sets(objects):
        if _satisfied(rule, chosen) and not _satisfied(other, chosen):
            return f"an ACTIVE reading with {', '.join(chosen)} refutes the other rule"
    return ""


def _silently_switched(item: Any, certificate: Certificate) -> str:
    sealed, objects = item["sealed"], item["objects"]
    if "rule2" not in sealed or sealed.get("switch_by", "activations") != "activations" or "order" in sealed["rule1"]:
        return "the detector does not switch by activations from a rule without order"
    rule, other = sealed["rule1"], _rule(item, certificate.data["other"])
    if _same(rule, other, objects):
        return "the other rule is the same function"
    for chosen in _all_sets(objects):
        if _satisfied(other, chosen) and not _satisfied(rule, chosen):
            return f"an INACTIVE reading with {', '.join(chosen)} tells them apart"
    return ""


def _played(item: Record, actions: Sequence[Any], count: str) -> tuple[int, Record, Any]:
    """(activations, rule in force at the end, answer) of legal moves and a final check; ValueError otherwise."""
    sealed = item["sealed"]
    if sealed.get("p", 1) != 1 or sealed.get("switch_by", "activations") != "activations":
        raise ValueError("only reliable detectors that switch by activations are replayed")
    points = [sealed["switch"], *(entry["switch"] for entry in sealed.get("later", []))]
    placed = list(sealed.get("start_on", []))
    activations, was_active = 0, False
    readings = ([placed] if "start_on" in sealed else []) + list(_configurations(item, placed, actions[:-1]))
    for on in readings:
        rule = _rules(item)[sum(point <= activations for point in points)]
        active = _satisfied(rule, on, item["order_reading"] == "contiguous")
        activations += active and (count == "level" or not was_active)
        was_active = active
    rule = _rules(item)[sum(point <= activations for point in points)]
    return activations, rule, actions[-1]["check"]


def _configurations(item: Record, placed: Sequence[str], moves: Sequence[Any]) -> Iterator[list[str]]:
    on = list(placed)
    if len(moves) > item["budget"]:
        raise ValueError("more moves than the budget has")
    for move in moves:
        ((verb, name),) = move.items()
        if verb not in ("place", "remove") or name not in item["objects"] or (name in on) == (verb == "place"):
            raise ValueError("a move that is refused")
        on = [*on, name] if verb == "place" else [other for other in on if other != name]
        yield on


def _right(rule: Record, answer: Any) -> bool:
    same_set = sorted(rule["blickets"]) == sorted(answer["blickets"])
    return same_set and (rule["rule"] == answer["rule"] or len(answer["blickets"]) == 1)


def _full_marks(item: Any, certificate: Certificate) -> str:
    activations, rule, answer = _played(item, certificate.data["actions"], item["count"])
    if activations >= item["sealed"]["switch"]:
        return "the detector has switched"
    if activations != certificate.data["activations"]:
        return f"there are {activations} activations"
    strict = item["strict_singleton"] and answer["rule"] != rule["rule"]
    return "" if _right(rule, answer) and not strict else "the answer is wrong"


def _counting_decides(item: Any, certificate: Certificate) -> str:
    verdicts = set()
    for count in ("level", "edge"):
        _, rule, answer = _played(item, certificate.data[count], count)
        strict = item["strict_singleton"] and answer["rule"] != rule["rule"]
        verdicts.add(_right(rule, answer) and not strict)
    return "" if len(verdicts) == 2 else "both conventions give the same verdict"


_IN_WORDS = {
    "either-word": "one rule, conjunctive or disjunctive over a non-empty set of the objects",
    "always-explained": "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise",
    "silently-switched": "two rules, the second in force after some number of activations",
    "unreachable-orders": "all sequences of moves within the budget, whatever they read",
    "reachable-orders": "all sequences of moves within the budget, whatever they read",
    "full-marks-before-the-switch": "this sequence of moves",
    "counting-decides": "this sequence of moves",
}


def _worded(claim: str, check: Verifier) -> Verifier:
    def checked(item: Any, certificate: Certificate) -> str:
        return check(item, certificate) if certificate.in_words == _IN_WORDS[claim] else "it is about another class"

    return checked


VERIFIERS: Mapping[str, Verifier] = MappingProxyType(
    {
        claim: _worded(claim, check)
        for claim, check in {
            "either-word": _either_word,
            "always-explained": _always_explained,
            "silently-switched": _silently_switched,
            "unreachable-orders": _unreachable_orders,
            "reachable-orders": _reachable_orders,
            "full-marks-before-the-switch": _full_marks,
            "counting-decides": _counting_decides,
        }.items()
    }
)
