"""What can be proved about a blicket item before anybody plays it.

Claims that come with a certificate are checked by audits.blickets.verification, which shares no code with this module
or with the solvers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import factorial

import msgspec

from audits.blickets.evidence import evidence_of
from audits.claims import Certificate, certified
from audits.finding import Finding, Standing
from dsl.blickets.item import BlicketItem, SwitchBy
from dsl.blickets.rule import Form, Rule

ONE_RULE = "one rule, conjunctive or disjunctive over a non-empty set of the objects"
NOISY_RULE = "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise"
SWITCHES = "two rules, the second in force after some number of activations"
MAX_STATES = 200_000  # of the search for a walk through every order
ANY_AGENT = "all sequences of moves within the budget, whatever they read"


def item_findings(item: BlicketItem) -> Iterator[Finding]:
    """All findings of this module about one item."""
    yield from either_word(item)
    yield from order_never_asked(item)
    yield from unreachable_orders(item)
    yield from never_decided_under_noise(item)
    yield from never_decided_under_a_switch(item)


def either_word(item: BlicketItem) -> Iterator[Finding]:
    """A rule with one blicket is the same function under both words, so its type is asked for in vain.

    `vacuous`; where only the word that the rule is written with is accepted, `unfair`.
    """
    for number, mechanism in enumerate(item.sealed.mechanisms, 1):
        if mechanism.rule.blickets.bit_count() != 1:
            continue
        strict = item.sealed.strict_singleton
        graded = f"only '{mechanism.rule.form}' is accepted" if strict else "both words are accepted"
        yield Finding(
            "unfair" if strict else "vacuous",
            Standing.PROVED,
            item.id,
            f"rule {number} has one blicket: no reading tells its type, and {graded}",
            {"rule": number},
            _certificate("either-word", ONE_RULE, item, {"rule": number}),
        )


def order_never_asked(item: BlicketItem) -> Iterator[Finding]:
    """The order that the detector wants is no part of the answer."""
    for mechanism in item.sealed.mechanisms:
        if mechanism.order is not None and len(mechanism.order) > 1:
            orders = factorial(len(mechanism.order))
            claim = (
                f"all {orders} orders of the same blickets have the same graded answer: the order is never asked for"
            )
            yield Finding("vacuous", Standing.PROVED, item.id, claim, {"orders": orders})


def unreachable_orders(item: BlicketItem) -> Iterator[Finding]:
    """Whether all orders of all objects can be tried. An ACTIVE reading needs the one order that is right.

    Between two different configurations with everything on the detector lie a removal and a placement at least, so
    budget moves reach at most 1 + (budget - missing) // 2 of them, where `missing` objects are off at the start.
    """
    order = item.sealed.mechanisms[0].order
    if order is None or len(order) != item.task.n or item.sealed.switches:
        return
    orders, tried = factorial(len(order)), _most_orders(item)
    data = {"orders": orders, "tried": tried, "budget": item.task.budget}
    if tried < orders:
        claim = f"at most {tried} of {orders} orders can be tried in {item.task.budget} moves"
        certificate = _certificate("unreachable-orders", ANY_AGENT, item, {"tried": tried, "orders": orders})
        yield Finding("unwinnable", Standing.PROVED, item.id, claim, data, certificate)
        return
    tour = _tour(item)
    if tour is None:
        claim = f"the bound allows all {orders} orders, and no tour of them was found"
        yield Finding("unwinnable", Standing.OPEN, item.id, claim, data)
        return
    claim = f"all {orders} orders can be tried in {len(tour)} of {item.task.budget} moves"
    certificate = _certificate("reachable-orders", ANY_AGENT, item, {"moves": tour})
    yield Finding("unwinnable", Standing.REFUTED, item.id, claim, {**data, "moves": len(tour)}, certificate)


def _most_orders(item: BlicketItem) -> int:
    missing = item.task.n - len(item.sealed.start_on or ())
    spare = item.task.budget - missing
    return 0 if spare < 0 else 1 + spare // 2


def _tour(item: BlicketItem) -> list[str] | None:
    """Toggled objects of a walk through every order within the budget; None if none was found in MAX_STATES."""
    objects = item.task.objects
    on = tuple(item.sealed.start_on or ())
    off = tuple(index for index in range(len(objects)) if index not in on)
    walk = _walk((*on, *off), factorial(len(objects)))
    if walk is None:
        return None
    toggled = [*off, *(order[-1] for order in walk[1:] for _ in range(2))]
    return [objects[index] for index in toggled] if len(toggled) <= item.task.budget else None


def _walk(first: tuple[int, ...], length: int) -> list[tuple[int, ...]] | None:
    """That many different orders, each the last with one object moved to the end; fewest ways on first, with return."""
    walk, visited = [first], {first}

    def onward(order: tuple[int, ...]) -> list[tuple[int, ...]]:
        moved = [(*order[:at], *order[at + 1 :], order[at]) for at in range(len(order) - 1)]
        return [other for other in moved if other not in visited]

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


def never_decided_under_noise(item: BlicketItem) -> Iterator[Finding]:
    """With an unreliable detector no number of readings leaves one rule: another explains whatever can be read."""
    sealed = item.sealed
    mechanism = sealed.mechanisms[0]
    if sealed.p == 1 or sealed.switches or mechanism.order is not None or item.task.graded:
        return  # a graded reading counts blickets, so it tells the wider rule from this one
    other = _wider(mechanism.rule, item.task.n)
    if other is None:
        yield Finding(
            "never-suffices", Standing.REFUTED, item.id, "no other rule is satisfied wherever this one is", {}
        )
        return
    stated = other.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        Standing.PROVED,
        item.id,
        f"whatever is read, {other.in_words(item.task.objects)} explains it too; k readings that only it would "
        f"activate leave it odds of {1 - sealed.p:.3g}^k",
        {"p": sealed.p, "other": other.in_words(item.task.objects)},
        _certificate("always-explained", NOISY_RULE, item, {"other": stated}),
    )


def _wider(rule: Rule, n: int) -> Rule | None:
    """Another rule that is satisfied wherever this one is."""
    everything = (1 << n) - 1
    if rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.DISJUNCTIVE, rule.blickets & -rule.blickets)
    outside = everything & ~rule.blickets
    return Rule(Form.DISJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def never_decided_under_a_switch(item: BlicketItem) -> Iterator[Finding]:
    """Where a switch by activations is possible, no readings without a further activation rule it out.

    A second rule that is satisfied only where the first is cannot be told from it by INACTIVE readings.
    """
    sealed = item.sealed
    if not sealed.switches or sealed.switch_by is not SwitchBy.ACTIVATIONS or sealed.mechanisms[0].order is not None:
        return
    rule = sealed.mechanisms[0].rule
    other = _narrower(rule, item.task.n)
    if other is None:
        claim = "no other rule is satisfied only where the first is"
        yield Finding("never-suffices", Standing.REFUTED, item.id, claim, {})
        return
    silent = "any INACTIVE reading" if rule.form is Form.DISJUNCTIVE else "the silent certificate"
    stated = other.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        Standing.PROVED,
        item.id,
        f"a switch from {rule.in_words(item.task.objects)} to {other.in_words(item.task.objects)} at the last "
        f"activation survives {silent}",
        {"first": rule.in_words(item.task.objects), "other": other.in_words(item.task.objects)},
        _certificate("silently-switched", SWITCHES, item, {"other": stated}),
    )


def _narrower(rule: Rule, n: int) -> Rule | None:
    """Another rule that is satisfied only where this one is."""
    if rule.form is Form.DISJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.CONJUNCTIVE, rule.blickets)
    outside = (1 << n) - 1 & ~rule.blickets
    return Rule(Form.CONJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def _certificate(claim: str, in_words: str, item: BlicketItem, data: dict[str, object]) -> Certificate:
    return certified(claim, in_words, evidence_of(item), data)


def duplicates(items: list[BlicketItem]) -> Iterator[Finding]:
    """Items that are the same but for id, labels and noise: a second one measures nothing new."""
    seen: dict[bytes, str] = {}
    for item in items:
        bare = msgspec.json.encode(replace(item, id="", labels={}, sealed=replace(item.sealed, noise_seed=0)))
        if bare in seen and item.sealed.p == 1:
            claim = f"the same as {seen[bare]}"
            yield Finding("duplicate", Standing.PROVED, item.id, claim, {"of": seen[bare]})
        seen.setdefault(bare, item.id)
