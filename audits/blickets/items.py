"""Findings about a blicket item before it is played.

Claims that come with a certificate are checked by audits.blickets.verification, which shares no code with this module
or with the solvers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import factorial

import msgspec

from calibrant.audits.blickets.evidence import evidence_of
from calibrant.audits.blickets.orders import order_findings
from calibrant.audits.claims import Certificate, ClaimStatus, Finding, certify
from calibrant.dsl.blickets.item import BlicketItem, SwitchBy
from calibrant.dsl.blickets.rule import Form, Rule

ONE_RULE = "one rule, conjunctive or disjunctive over a non-empty set of the objects"
NOISY_RULE = "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise"
SWITCHES = "two rules, the second in force after some number of activations"


def item_findings(item: BlicketItem) -> Iterator[Finding]:
    """Yield all findings of this module about one item."""
    yield from either_word(item)
    yield from order_never_asked(item)
    yield from order_findings(item)
    yield from never_decided_under_noise(item)
    yield from never_decided_under_a_switch(item)


def either_word(item: BlicketItem) -> Iterator[Finding]:
    """Yield a rule with one blicket is the same function under both words, so its type is asked for in vain.

    `vacuous`; where only the word that the rule is written with is accepted, `unfair`.
    """
    for number, mechanism in enumerate(item.sealed.mechanisms, 1):
        if mechanism.rule.blickets.bit_count() != 1:
            continue
        strict = item.sealed.strict_singleton
        graded = f"only '{mechanism.rule.form}' is accepted" if strict else "both words are accepted"
        yield Finding(
            "unfair" if strict else "vacuous",
            ClaimStatus.PROVED,
            item.id,
            f"rule {number} has one blicket: no reading tells its type, and {graded}",
            {"rule": number},
            _certificate("either-word", ONE_RULE, item, {"rule": number}),
        )


def order_never_asked(item: BlicketItem) -> Iterator[Finding]:
    """Yield the order that the detector wants is no part of the answer."""
    for mechanism in item.sealed.mechanisms:
        if mechanism.order is not None and len(mechanism.order) > 1:
            orders = factorial(len(mechanism.order))
            claim = (
                f"all {orders} orders of the same blickets have the same graded answer: the order is never asked for"
            )
            yield Finding("vacuous", ClaimStatus.PROVED, item.id, claim, {"orders": orders})


def never_decided_under_noise(item: BlicketItem) -> Iterator[Finding]:
    """Yield whether some other rule explains every possible reading of an unreliable detector."""
    sealed = item.sealed
    mechanism = sealed.mechanisms[0]
    if sealed.p == 1 or sealed.switches or mechanism.order is not None or item.task.graded:
        return  # a graded reading counts blickets, so it tells the wider rule from this one
    rival = _wider(mechanism.rule, item.task.n)
    if rival is None:
        yield Finding(
            "never-suffices", ClaimStatus.REFUTED, item.id, "no other rule is satisfied wherever this one is", {}
        )
        return
    stated = rival.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        ClaimStatus.PROVED,
        item.id,
        f"whatever is read, {rival.in_words(item.task.objects)} explains it too; k readings that only it would "
        f"activate leave it odds of {1 - sealed.p:.3g}^k",
        {"p": sealed.p, "other": rival.in_words(item.task.objects)},
        _certificate("always-explained", NOISY_RULE, item, {"other": stated}),
    )


def _wider(rule: Rule, n: int) -> Rule | None:
    """Return another rule that is satisfied wherever this one is."""
    everything = (1 << n) - 1
    if rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.DISJUNCTIVE, rule.blickets & -rule.blickets)
    outside = everything & ~rule.blickets
    return Rule(Form.DISJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def never_decided_under_a_switch(item: BlicketItem) -> Iterator[Finding]:
    """Yield whether a switch at the last activation can be ruled out by INACTIVE readings.

    A second rule that is satisfied only where the first is cannot be told from it by INACTIVE readings.
    """
    sealed = item.sealed
    if not sealed.switches or sealed.switch_by is not SwitchBy.ACTIVATIONS or sealed.mechanisms[0].order is not None:
        return
    rule = sealed.mechanisms[0].rule
    rival = _narrower(rule, item.task.n)
    if rival is None:
        claim = "no other rule is satisfied only where the first is"
        yield Finding("never-suffices", ClaimStatus.REFUTED, item.id, claim, {})
        return
    silent = "any INACTIVE reading" if rule.form is Form.DISJUNCTIVE else "the silent certificate"
    stated = rival.as_json(item.task.objects)
    yield Finding(
        "never-suffices",
        ClaimStatus.PROVED,
        item.id,
        f"a switch from {rule.in_words(item.task.objects)} to {rival.in_words(item.task.objects)} at the last "
        f"activation survives {silent}",
        {"first": rule.in_words(item.task.objects), "other": rival.in_words(item.task.objects)},
        _certificate("silently-switched", SWITCHES, item, {"other": stated}),
    )


def _narrower(rule: Rule, n: int) -> Rule | None:
    """Return another rule that is satisfied only where this one is."""
    if rule.form is Form.DISJUNCTIVE and rule.blickets.bit_count() > 1:
        return Rule(Form.CONJUNCTIVE, rule.blickets)
    outside = (1 << n) - 1 & ~rule.blickets
    return Rule(Form.CONJUNCTIVE, rule.blickets | (outside & -outside)) if outside else None


def _certificate(claim: str, in_words: str, item: BlicketItem, data: dict[str, object]) -> Certificate:
    return certify(claim, in_words, evidence_of(item), data)


def duplicates(items: list[BlicketItem]) -> Iterator[Finding]:
    """Yield items that are the same but for id, labels and noise: a second one measures nothing new."""
    first_ids: dict[bytes, str] = {}
    for item in items:
        bare = msgspec.json.encode(replace(item, id="", labels={}, sealed=replace(item.sealed, noise_seed=0)))
        if bare in first_ids and item.sealed.p == 1:
            claim = f"the same as {first_ids[bare]}"
            yield Finding("duplicate", ClaimStatus.PROVED, item.id, claim, {"of": first_ids[bare]})
        first_ids.setdefault(bare, item.id)
