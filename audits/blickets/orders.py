"""Bounds on the orders of placement that can be tried, and walks that decide the blickets without trying them all.

The rules are active while their objects are on in one order. The paper's grader asks for the set of blickets only, and
the `strict` score for their order too. If the detector is silent through every order of fewer objects, the set must be
that of all objects. So a budget too small for all orders rules out the `strict` score, and need not rule out the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import factorial

from calibrant.audits.blickets.verify import evidence_of
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, certify
from calibrant.dsl.blickets.episode import apply_move
from calibrant.dsl.blickets.item import BlicketItem, OrderReading

ANY_AGENT = "all sequences of moves within the budget, whatever they read"
ORDERS = "one rule that is active while its objects, any non-empty set, are on in one order of placement"
MAX_STATES = 200_000  # of the search for a walk through every order
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
    toggles = [*start, *(number for number in map("ABCDE".index, WALK) if number < n)]
    if len(toggles) > task.budget:
        return None
    placed, orders_met = tuple(start), set[tuple[int, ...]]()
    for number in toggles:
        placed = apply_move(placed, "remove" if number in placed else "place", number)
        orders_met |= _orders_within(placed, contiguous=task.order_reading is OrderReading.CONTIGUOUS)
    shorter = sum(factorial(n) // factorial(n - size) for size in range(1, n))
    return (
        [task.objects[number] for number in toggles] if sum(len(order) < n for order in orders_met) == shorter else None
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
