"""Forgers of claims about blicket items."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice, permutations
from math import factorial
from random import Random
from typing import Any

from calibrant.audits.blickets.items import quiet
from calibrant.audits.claims import Certificate
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Count, Form, OrderReading, Rule, SwitchBy, rule_from_json
from calibrant.dsl.blickets.score import Split, grade
from calibrant.solvers.blickets.learner import Static, conclude_episode
from tests.support.forgery.forger import Data, Forger, Genuine, has_shape, is_same

ONE_RULE = "one rule, conjunctive or disjunctive over a non-empty set of the objects"
NOISY_RULE = "one rule that reads ACTIVE with a probability below 1 when satisfied and never otherwise"
TWO_RULES = "two rules, the second in force after some number of activations"
ALL_WALKS = "all sequences of moves within the budget, whatever they read"
ONE_ORDER = "one rule that is active while its objects, any non-empty set, are on in one order of placement"
SCRIPT = "this sequence of moves"


@cache
def items() -> tuple[BlicketItem, ...]:
    """Two of every suite, four of those with late submissions, noise and switches by moves."""
    more = {"forced-moves", "forced-exposure", "noisy-switch", "switch-by-steps", "hard-3"}
    return tuple(
        replace(item, id=f"{suite} {index}")
        for suite in SUITES
        for index, item in enumerate(islice(sample_items(SUITES[suite], 9), 4 if suite in more else 2))
    )


@cache
def certificates() -> dict[str, list[Genuine]]:
    """By claim: all that the audit of these items writes."""
    by_claim: dict[str, list[Genuine]] = {}
    for item in items():
        for finding in benchmark("blickets").require(FINDINGS).findings(item):
            if finding.certificate is not None:
                by_claim.setdefault(finding.certificate.claim, []).append(Genuine(item, finding.certificate))
    return by_claim


def _genuine(claim: str) -> Callable[[], Sequence[Genuine]]:
    return lambda: certificates()[claim]


def _rule(item: BlicketItem, stated: Any) -> Rule:
    return rule_from_json(stated, item.task.objects)


def _sets(item: BlicketItem, rule: Rule) -> set[int]:
    return {present for present in range(1 << item.task.n) if rule.active(present)}


def _either_word(item: BlicketItem, certificate: Certificate) -> bool:
    data = certificate.data
    rules = [mechanism.rule for mechanism in item.sealed.mechanisms]
    lone = has_shape(data, rule=int) and data["rule"] >= 1 and rules[data["rule"] - 1].blickets.bit_count() == 1
    return lone and certificate.in_words == ONE_RULE


def _always_explained(item: BlicketItem, certificate: Certificate) -> bool:
    sealed, words = item.sealed, certificate.in_words == NOISY_RULE
    noisy = sealed.p < 1 and not sealed.switches and sealed.mechanisms[0].order is None and not item.task.graded
    other = _sets(item, _rule(item, certificate.data["other"]))
    return (
        words and has_shape(certificate.data, other=dict) and noisy and other > _sets(item, sealed.mechanisms[0].rule)
    )


def _silently_switched(item: BlicketItem, certificate: Certificate) -> bool:
    sealed, words = item.sealed, certificate.in_words == TWO_RULES
    silent = bool(sealed.switches) and sealed.switch_by is SwitchBy.ACTIVATIONS and sealed.mechanisms[0].order is None
    other = _sets(item, _rule(item, certificate.data["other"]))
    return (
        words and has_shape(certificate.data, other=dict) and silent and other < _sets(item, sealed.mechanisms[0].rule)
    )


def _ordered(item: BlicketItem) -> bool:
    order = item.sealed.mechanisms[0].order
    return order is not None and len(order) == item.task.n and not item.sealed.switches


def _unreachable(item: BlicketItem, certificate: Certificate) -> bool:
    """Between two orders lie two moves at least; the first takes as many as there are objects off."""
    orders = factorial(item.task.n)
    spare = item.task.budget - (item.task.n - len(item.sealed.start_on or ()))
    tried = 1 + spare // 2 if spare >= 0 else 0
    stated = is_same(dict(certificate.data), {"tried": tried, "orders": orders})
    return certificate.in_words == ALL_WALKS and _ordered(item) and stated and tried < orders


def _reachable(item: BlicketItem, certificate: Certificate) -> bool:
    moves, episode, seen = certificate.data["moves"], BlicketEpisode(item), set()
    if not has_shape(certificate.data, moves=list) or not _ordered(item) or certificate.in_words != ALL_WALKS:
        return False
    for name in moves:
        verb = "remove" if item.task.objects.index(name) in episode.placed else "place"
        if episode.act({verb: name}).refused:
            return False
        seen |= {episode.placed} if len(episode.placed) == item.task.n else set()
    return len(seen) == factorial(item.task.n)


def _silence(item: BlicketItem, certificate: Certificate) -> bool:
    """Whether the toggles meet every order of fewer objects, in an episode of the item itself."""
    data, task = certificate.data, item.task
    reliable = not item.sealed.switches and item.sealed.p == 1 and _ordered(item)
    if not (reliable and has_shape(data, moves=list) and certificate.in_words == ONE_ORDER):
        return False
    episode, configurations = BlicketEpisode(item), set[tuple[int, ...]]()
    for name in data["moves"]:
        placed = name in task.objects and task.objects.index(name) in episode.placed
        if episode.act({"remove" if placed else "place": name}).refused:
            return False
        configurations.add(episode.placed)
    contiguous = task.order_reading is OrderReading.CONTIGUOUS
    orders = (order for size in range(1, task.n) for order in permutations(range(task.n), size))
    return all(any(_is_met(order, on, contiguous) for on in configurations) for order in orders)


def _is_met(order: tuple[int, ...], on: tuple[int, ...], contiguous: bool) -> bool:
    if contiguous:
        return any(on[start : start + len(order)] == order for start in range(len(on)))
    return tuple(number for number in on if number in order) == order


def _actions(item: BlicketItem, episode: BlicketEpisode) -> list[dict[str, Any]]:
    return [dict(step.action) for step in episode.steps[0 if item.sealed.start_on is None else 1 :]]


def _full_marks(item: BlicketItem, certificate: Certificate) -> bool:
    if not item.sealed.switches or certificate.in_words != SCRIPT:
        return False
    episode = BlicketEpisode(item)
    quiet(episode)
    graded = grade(item, episode.steps)
    data = {"actions": _actions(item, episode), "activations": graded.activations}
    return bool(graded.correct) and graded.split is Split.PRE and is_same(dict(certificate.data), data)


def _counting(item: BlicketItem, certificate: Certificate) -> bool:
    if not item.sealed.switches or certificate.in_words != SCRIPT:
        return False
    scripts, verdicts = {}, set()
    for count in Count:
        counted = replace(item, task=replace(item.task, count=count))
        episode = BlicketEpisode(counted)
        conclude_episode(episode, Static)
        scripts[str(count)] = _actions(counted, episode)
        verdicts.add(bool(grade(counted, episode.steps).correct))
    return len(verdicts) == 2 and is_same(dict(certificate.data), scripts)


def _other_rules(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """Every rule over the objects, and rules of a certificate with an order that changes what they mean."""
    objects = list(genuine.item.task.objects)
    for number in range(1, 1 << len(objects)):
        names = [name for i, name in enumerate(objects) if number >> i & 1]
        for word in ("conjunctive", "disjunctive"):
            yield {"other": {"rule": word, "blickets": names}}
    stated = genuine.certificate.data["other"]
    yield {"other": {**stated, "order": stated["blickets"]}}
    yield {"other": {**stated, "blickets": [*stated["blickets"], stated["blickets"][0]]}}


def _numbers(genuine: Genuine, rng: Random) -> Iterator[Data]:
    for number in range(-2, 8):
        yield {"rule": number}


def _bounds(genuine: Genuine, rng: Random) -> Iterator[Data]:
    for _ in range(20):
        yield {"tried": rng.randint(-1, 130), "orders": rng.choice([factorial(genuine.item.task.n), 6, 24, 120])}


def _walks(genuine: Genuine, rng: Random) -> Iterator[Data]:
    moves = genuine.certificate.data["moves"]
    for _ in range(10):
        at = rng.randrange(len(moves))
        yield {"moves": [*moves[:at], rng.choice(genuine.item.task.objects), *moves[at + 1 :]]}
    yield {"moves": "".join(moves)}
    yield {"moves": moves * 2}


def _lucky_scripts(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """Yield the right answer at once, wrong answers, more moves, and answers that are no rule."""
    item, data = genuine.item, genuine.certificate.data
    answer = item.sealed.mechanisms[0].rule.as_json(item.task.objects)
    moves = data["actions"][:-1]
    yield {"actions": [{"check": answer}], "activations": 0}
    yield {"actions": [*moves, {"check": {**answer, "rule": "banana"}}], "activations": data["activations"]}
    yield {"actions": [*moves, {"check": answer, "place": "A"}], "activations": data["activations"]}
    yield {"actions": [*moves, {"check": answer}, {"check": answer}], "activations": data["activations"]}
    for _ in range(10):
        rule = Rule(rng.choice(list(Form)), rng.randrange(1, 1 << item.task.n))
        check = {"check": rule.as_json(item.task.objects)}
        yield {"actions": [*moves, check], "activations": data["activations"]}


def _scripts_of_nobody(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """Yield a right answer at once beside a wrong one, swapped conventions, scripts of two learners."""
    item, data = genuine.item, genuine.certificate.data
    for one in item.sealed.mechanisms:
        for other in item.sealed.mechanisms:
            first, second = ({"check": m.rule.as_json(item.task.objects)} for m in (one, other))
            yield {"level": [first], "edge": [second]}
            yield {"level": [*data["level"][:-1], first], "edge": [*data["edge"][:-1], second]}
    yield {"level": data["edge"], "edge": data["level"]}
    yield {"level": data["level"], "edge": data["level"]}
    yield {"level": [], "edge": data["edge"]}


FORGERS = {
    "either-word": Forger(_genuine("either-word"), _numbers, _either_word),
    "always-explained": Forger(_genuine("always-explained"), _other_rules, _always_explained),
    "silently-switched": Forger(_genuine("silently-switched"), _other_rules, _silently_switched),
    "unreachable-orders": Forger(_genuine("unreachable-orders"), _bounds, _unreachable),
    "reachable-orders": Forger(_genuine("reachable-orders"), _walks, _reachable),
    "silence-decides": Forger(_genuine("silence-decides"), _walks, _silence),
    "full-marks-before-the-switch": Forger(_genuine("full-marks-before-the-switch"), _lucky_scripts, _full_marks),
    "counting-decides": Forger(_genuine("counting-decides"), _scripts_of_nobody, _counting),
}
