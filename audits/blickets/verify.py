"""Claims about blicket items, checked by playing their scripts again; bounds on orders of placement.

Evidence is the item's record as JSON. Rules are compared set by set, by their definition, and scripts (sequences of
actions) are played again. Both are independent of the solvers and work on sets of object numbers. The detector is that
of `dsl`, so noise, refused moves, switches by moves and late submissions follow the one definition.

Bounds on orders concern detectors that are active while their blickets were placed in one order. The paper's grader
asks for the set of blickets only, the `strict` score for their order too. If the detector is silent through every order
of fewer objects, all objects are blickets. So a budget too small for all orders rules out the `strict` score only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import factorial, log2, perm
from types import MappingProxyType
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.claims import (
    Certificate,
    ClaimKind,
    ClaimStatus,
    Finding,
    Verifier,
    certify,
    checkpoint,
    fixed_words,
)
from calibrant.dsl.blickets.episode import BlicketEpisode, apply_move
from calibrant.dsl.blickets.item import BlicketItem, Count, OrderReading
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, record_from_item
from calibrant.dsl.blickets.reference import run
from calibrant.dsl.blickets.score import Grade, Split, grade, grade_episode

# --- Scripts that certificates state, played again: the quiet player, and the learner that expects one rule -----------
Actions: TypeAlias = list[dict[str, Any]]
PlainRule: TypeAlias = tuple[str, frozenset[int]]  # type of a rule, and its blickets

NUM_DIGITS = 9  # decimals to which bits per move are rounded: closer values are a tie


class CheckedRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as an answer states it."""

    rule: str
    blickets: list[str]


class ScriptedAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One action; the replay refuses it unless exactly one field is set."""

    place: str | msgspec.UnsetType = msgspec.UNSET
    remove: str | msgspec.UnsetType = msgspec.UNSET
    check: CheckedRule | msgspec.UnsetType = msgspec.UNSET


class QuietScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Actions that end in an answer, and the activations that they cause."""

    actions: list[ScriptedAction]
    activations: int


class CountedScripts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Actions of one learner under each convention of counting."""

    level: list[ScriptedAction]
    edge: list[ScriptedAction]


def full_marks(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that the quiet script ends in a right answer before the detector switches; return why not, "" if so."""
    item = _item(evidence)
    if not item.sealed.switches:
        return "the detector has no switch"
    verdict = grade_episode(item, run(item, certificate.data["actions"]))
    if verdict.activations != certificate.data["activations"]:
        return f"there are {verdict.activations} activations"
    if verdict.split is not Split.PRE:
        return "the detector has switched"
    if not verdict.correct:
        return "the answer is wrong"
    _, actions = quiet_play(item)
    return "" if certificate.data["actions"] == actions else "the script is not that of single objects and pairs"


def counting_decides(evidence: Mapping[str, Any], certificate: Certificate) -> str:
    """Check that the one-rule learner plays these scripts and is right under just one convention of counting."""
    item = _item(evidence)
    if not item.sealed.switches:
        return "the detector has no switch"
    verdicts = set()
    for count in Count:
        verdict, actions = one_rule_play(replace(item, task=replace(item.task, count=count)))
        if certificate.data[str(count)] != actions:
            return f"the one-rule learner acts otherwise under {count}, in {len(actions)} actions"
        verdicts.add(bool(verdict.correct))
    return "" if len(verdicts) == 2 else "both conventions give the same verdict"


def _item(evidence: Mapping[str, Any]) -> BlicketItem:
    return item_from_record(msgspec.convert({**evidence, "id": "evidence"}, ItemRecord))


def quiet_play(item: BlicketItem) -> tuple[Grade, Actions]:
    """Toggle to each pair, its objects one after the other, up to the first activation; submit the objects on then."""
    episode = BlicketEpisode(item)
    for pair in combinations(range(item.task.n), 2):
        toggles = [index for index in episode.placed if index not in pair]
        for index in [*toggles, *(index for index in pair if index not in episode.placed)]:
            reading = _toggle(episode, index)
            active = reading is not None and reading.startswith("ACTIVE")
            if active:
                form = "conjunctive" if len(episode.placed) > 1 else "disjunctive"
                _submit(episode, (form, frozenset(episode.placed)))
            if active or episode.left == 0:
                return _result(item, episode)
    return _result(item, episode)


def one_rule_play(item: BlicketItem) -> tuple[Grade, Actions]:
    """Play the learner that expects one rule throughout.

    It toggles towards the set of objects whose reading has most information on the rule, in bits per move (the first
    of equals). It submits once at most one rule or no move is left. After a refused submission it toggles one object.
    """
    episode, n = BlicketEpisode(item), item.task.n
    rules, num_read = set(range(len(rules_over(n)))), 0
    before = rules  # the last set that is not empty
    while True:
        checkpoint("moves", item.task.budget - episode.left, item.task.budget)
        for step in episode.steps[num_read:]:
            num_read += 1
            if step.reading is not None:
                placed = frozenset(episode.placed)  # only the newest step can have a reading that was not used
                before = rules or before
                active = step.reading.startswith("ACTIVE")
                rules = {k for k in rules if activates(rules_over(n)[k], placed) == active}
        if len(rules) > 1 and episode.left > 0 and not episode.closed:
            _toggle(episode, _next_toggle(n, frozenset(rules), frozenset(episode.placed)))
            continue
        _submit(episode, rules_over(n)[min(rules or before)])
        if not episode.steps[-1].refused or episode.left <= 0:
            return _result(item, episode)
        _toggle(episode, episode.left % n)


@cache
def rules_over(n: int) -> tuple[PlainRule, ...]:
    """Return the distinct rules: conjunctive ones of several blickets, then disjunctive ones, by ascending set."""
    sets = [frozenset(i for i in range(n) if mask >> i & 1) for mask in range(1, 1 << n)]
    several = [("conjunctive", blickets) for blickets in sets if len(blickets) > 1]
    return (*several, *(("disjunctive", blickets) for blickets in sets))


def activates(rule: PlainRule, placed: frozenset[int]) -> bool:
    """Return whether these objects satisfy the rule."""
    form, blickets = rule
    return blickets <= placed if form == "conjunctive" else bool(blickets & placed)


@cache
def _rules_by_set(n: int) -> tuple[frozenset[int], ...]:
    """Return, for each set of objects as a number, the indices in `rules_over` of the rules that it satisfies."""
    sets = (frozenset(i for i in range(n) if mask >> i & 1) for mask in range(1 << n))
    return tuple(frozenset(k for k, rule in enumerate(rules_over(n)) if activates(rule, placed)) for placed in sets)


def _next_toggle(n: int, rules: frozenset[int], placed: frozenset[int]) -> int:
    """Return the first object to toggle towards the set with most bits per move; `rules`: indices of those left."""
    current_set = sum(1 << index for index in placed)
    best, target = float("-inf"), current_set
    for objects, active in enumerate(_rules_by_set(n)):
        if objects != current_set:
            share = len(active & rules) / len(rules)
            bits_per_move = round(_entropy(share) / (objects ^ current_set).bit_count(), NUM_DIGITS)
            if bits_per_move > best:
                best, target = bits_per_move, objects
    return next(index for index in range(n) if (current_set ^ target) >> index & 1)


def _entropy(share: float) -> float:
    return 0.0 if share in (0.0, 1.0) else -share * log2(share) - (1 - share) * log2(1 - share)


def _toggle(episode: BlicketEpisode, index: int) -> str | None:
    verb = "remove" if index in episode.placed else "place"
    return episode.act({verb: episode.task.objects[index]}).reading


def _submit(episode: BlicketEpisode, rule: PlainRule) -> None:
    form, blickets = rule
    names = [name for index, name in enumerate(episode.task.objects) if index in blickets]
    episode.act({"check": {"rule": form, "blickets": names}})


def _result(item: BlicketItem, episode: BlicketEpisode) -> tuple[Grade, Actions]:
    opening = 0 if item.sealed.start_on is None else 1
    return grade(item, episode.steps), [dict(step.action) for step in episode.steps[opening:]]


# --- Checks of certificates about blicket items. They share no code with the issuers and read the record alone --------
Record: TypeAlias = Mapping[str, Any]
MAX_WALK = 5_000  # moves of a walk that is recounted: each has up to 2^8 orders


def _is_satisfied(rule: Record, placed: Sequence[str]) -> bool:
    is_on = [name in placed for name in rule["blickets"]]
    return all(is_on) if rule["rule"] == "conjunctive" else any(is_on)


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
    position = certificate.data["rule"]
    if not 1 <= position <= len(_rules(item)):
        return "there is no such rule"
    rule = _rules(item)[position - 1]
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
    """Return the orders that the objects on satisfy: every subsequence, or every contiguous one."""
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
    """Position of a rule of the detector, from 1."""

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


# --- Evidence of a certificate about an item: the native record without id and labels ---------------------------------


def evidence_of(item: BlicketItem) -> dict[str, Any]:
    """Return the item as JSON, with its sealed part: these claims are about the mechanism."""
    record: dict[str, Any] = msgspec.to_builtins(record_from_item(item))
    return {key: value for key, value in record.items() if key not in ("id", "labels")}


# --- Bounds on the orders of placement that can be tried, and walks that decide the blickets without trying them all
ANY_AGENT = "all sequences of moves within the budget, whatever they read"
ORDERS = "one rule that is active while its objects, any non-empty set, are on in one order of placement"
MAX_STATES = 200_000  # states of the search for a walk through every order
# Toggles of objects 0 to 4 (A to E) from an empty detector. By the relative reading they meet all 205 orders of one to
# four objects, by the contiguous one 125; `_silent_walk` counts them, so a walk that misses one is never reported.
WALK = "ABCDEAABBEECCAABBAACCEEBBAADDEECCBBEEDDAACCDDBBAABBDDCCAAEEDDBBCCDDCCBB"


def order_findings(item: BlicketItem) -> Iterator[Finding]:
    """Yield findings about an item whose rule is one order of all its objects; none for other items.

    `bounded-orders`: whether the budget is too short for trying every order. Where it is, `unwinnable` stands beside
    it, refuted by a walk that meets every order of fewer objects, open without such a walk.
    """
    order = item.sealed.mechanisms[0].order
    if order is None or len(order) != item.task.n or item.sealed.switches:
        return
    orders, max_tried = factorial(len(order)), _max_orders(item)
    data = {"orders": orders, "tried": max_tried, "budget": item.task.budget}
    if max_tried < orders:
        note = _strict_note(item, max_tried)
        claim = f"at most {max_tried} of {orders} orders can be tried in {item.task.budget} moves{note}"
        certificate = _certificate("unreachable-orders", ANY_AGENT, item, {"tried": max_tried, "orders": orders})
        yield Finding("bounded-orders", ClaimStatus.PROVED, item.id, claim, data, certificate)
        yield winnable_by_silence(item)
        return
    tour = _tour(item)
    if tour is None:
        claim = f"the bound allows all {orders} orders, and no tour of them was found"
        yield Finding("bounded-orders", ClaimStatus.OPEN, item.id, claim, data)
        return
    claim = f"all {orders} orders can be tried in {len(tour)} of {item.task.budget} moves"
    certificate = _certificate("reachable-orders", ANY_AGENT, item, {"moves": tour})
    yield Finding("bounded-orders", ClaimStatus.REFUTED, item.id, claim, {**data, "moves": len(tour)}, certificate)


def _strict_note(item: BlicketItem, max_tried: int) -> str:
    """Return the end of the claim: what the bound is about, and whether the strict score is out of reach.

    Two orders that are never tried read alike, and no answer is right about both. A single one follows by elimination.
    """
    strict = max_tried <= factorial(item.task.n) - 2
    return ", a bound on orders and not on winning" + ("; unwinnable for the strict score only" if strict else "")


def winnable_by_silence(item: BlicketItem) -> Finding:
    """Refute `unwinnable` by a walk that meets every order of fewer objects within the budget; OPEN without one."""
    n = item.task.n
    # sequences of `size` distinct objects, of 1 to n - 1
    shorter = sum(factorial(n) // factorial(n - size) for size in range(1, n))
    walk = _silent_walk(item)
    data = {"shorter": shorter, "budget": item.task.budget}
    if walk is None:
        claim = f"no walk through all {shorter} orders of fewer objects is known within {item.task.budget} moves"
        return Finding("unwinnable", ClaimStatus.OPEN, item.id, claim, data)
    claim = (
        f"a walk of {len(walk)} moves meets all {shorter} orders of fewer objects: silence leaves the set of all {n},"
        " and the order is not asked for"
    )
    certificate = _certificate("silence-decides", ORDERS, item, {"moves": walk})
    return Finding("unwinnable", ClaimStatus.REFUTED, item.id, claim, {**data, "moves": len(walk)}, certificate)


def _silent_walk(item: BlicketItem) -> list[str] | None:
    """Return WALK for this item's objects, after those on at the start are removed; None if it misses an order."""
    task, n = item.task, item.task.n
    # below p = 1 a satisfied rule may be silent, so that silence excludes nothing
    if item.sealed.p < 1 or n > len(set(WALK)):
        return None
    start = item.sealed.start_on or ()
    toggles = [*start, *(index for index in map("ABCDE".index, WALK) if index < n)]
    if len(toggles) > task.budget:
        return None
    placed, orders_met = tuple(start), set[tuple[int, ...]]()
    for index in toggles:
        placed = apply_move(placed, "remove" if index in placed else "place", index)
        orders_met |= _orders_within(placed, contiguous=task.order_reading is OrderReading.CONTIGUOUS)
    shorter = sum(factorial(n) // factorial(n - size) for size in range(1, n))
    return (
        [task.objects[index] for index in toggles] if sum(len(order) < n for order in orders_met) == shorter else None
    )


def _orders_within(placed: tuple[int, ...], *, contiguous: bool) -> set[tuple[int, ...]]:
    """Return the orders that these objects, first placed first, satisfy."""
    if contiguous:
        places = range(len(placed) + 1)
        return {placed[first:end] for first, end in combinations(places, 2)}
    return {order for size in range(1, len(placed) + 1) for order in combinations(placed, size)}


def _max_orders(item: BlicketItem) -> int:
    """Return an upper bound on the orders that can be tried within the budget.

    The first takes a move for each missing object; each further one a removal and a placement at least.
    """
    missing = item.task.n - len(item.sealed.start_on or ())
    spare = item.task.budget - missing
    return 0 if spare < 0 else 1 + spare // 2


def _tour(item: BlicketItem) -> list[str] | None:
    """Return the toggles of a walk through every order within the budget; None without one in MAX_STATES steps."""
    objects = item.task.objects
    on = tuple(item.sealed.start_on or ())
    off = tuple(index for index in range(len(objects)) if index not in on)
    walk = _walk((*on, *off), factorial(len(objects)))
    if walk is None:
        return None
    # an object is moved to the end by two toggles: it is removed and placed again
    toggled = [*off, *(order[-1] for order in walk[1:] for _ in range(2))]
    return [objects[index] for index in toggled] if len(toggled) <= item.task.budget else None


def _walk(first: tuple[int, ...], length: int) -> list[tuple[int, ...]] | None:
    """Search a path of `length` distinct orders; each step moves one object of the order to the end.

    Depth first with backtracking; successors with the fewest successors first (the rule of Warnsdorff, 1823).
    """
    walk, visited = [first], {first}

    def onward(order: tuple[int, ...]) -> list[tuple[int, ...]]:
        moved = [(*order[:at], *order[at + 1 :], order[at]) for at in range(len(order) - 1)]
        return [next_order for next_order in moved if next_order not in visited]

    # ways[i]: the untried successors of walk[i], best last, as they are popped
    ways = [sorted(onward(first), key=lambda order: (len(onward(order)), order), reverse=True)]
    for _ in range(MAX_STATES):
        if len(walk) == length:
            return walk
        if not ways:
            return None
        if not ways[-1]:
            ways.pop()
            visited.remove(walk.pop())
            continue
        following = ways[-1].pop()
        walk.append(following)
        visited.add(following)
        ways.append(sorted(onward(following), key=lambda order: (len(onward(order)), order), reverse=True))
    return None


def _certificate(claim: str, in_words: str, item: BlicketItem, data: dict[str, object]) -> Certificate:
    return certify(claim, in_words, evidence_of(item), data)
