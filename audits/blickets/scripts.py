"""Scripts that certificates state, played again: the quiet player, and the learner that expects one rule.

Both are written a second time, on sets of object numbers; no solver is used. The detector is that of `dsl`, so noise,
refused moves, switches by moves and late submissions mean what they mean everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations
from math import log2
from typing import Any, TypeAlias

import msgspec

from calibrant.audits.claims import Certificate, checkpoint
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Count
from calibrant.dsl.blickets.records import ItemRecord, item_from_record
from calibrant.dsl.blickets.reference import run
from calibrant.dsl.blickets.score import Grade, Split, grade, grade_episode

Actions: TypeAlias = list[dict[str, Any]]
Stated: TypeAlias = tuple[str, frozenset[int]]  # type of a rule, and its blickets

DIGITS = 9  # worths that differ by less are a tie


class CheckedRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule as an answer states it."""

    rule: str
    blickets: list[str]


class ScriptedAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One action; which of the three it is, the replay decides."""

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
    """Play the quiet script again: the answer is right under the first rule, and the detector has not switched."""
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
    """Play the one-rule learner under both conventions: the scripts are its own, and one verdict is right."""
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
    """Toggle to each pair, its objects one after the other, up to the first activation; submit what activated."""
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

    It toggles towards the set of objects whose reading tells most bits per move about the rule, the first of equals;
    it submits once one rule is left, none is, or no move is. A refused submission is followed by one toggle.
    """
    episode, n = BlicketEpisode(item), item.task.n
    rules, heard = set(range(len(rules_over(n)))), 0
    before = rules
    while True:
        checkpoint("moves", item.task.budget - episode.left, item.task.budget)
        for step in episode.steps[heard:]:
            heard += 1
            if step.reading is not None:
                placed = frozenset(episode.placed)  # only the newest step has a reading that was not heard
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
def rules_over(n: int) -> tuple[Stated, ...]:
    """Return the distinct rules: conjunctive ones of several blickets, then disjunctive ones, by set as a number."""
    sets = [frozenset(i for i in range(n) if number >> i & 1) for number in range(1, 1 << n)]
    several = [("conjunctive", blickets) for blickets in sets if len(blickets) > 1]
    return (*several, *(("disjunctive", blickets) for blickets in sets))


def activates(rule: Stated, placed: frozenset[int]) -> bool:
    """Return whether these objects satisfy the rule."""
    form, blickets = rule
    return blickets <= placed if form == "conjunctive" else bool(blickets & placed)


@cache
def _rules_by_set(n: int) -> tuple[frozenset[int], ...]:
    """Return, for each set of objects as a number, the numbers of the rules that it satisfies."""
    sets = (frozenset(i for i in range(n) if number >> i & 1) for number in range(1 << n))
    return tuple(frozenset(k for k, rule in enumerate(rules_over(n)) if activates(rule, placed)) for placed in sets)


def _next_toggle(n: int, rules: frozenset[int], placed: frozenset[int]) -> int:
    current_set = sum(1 << index for index in placed)
    best, target = float("-inf"), current_set
    for number, active in enumerate(_rules_by_set(n)):
        if number != current_set:
            share = len(active & rules) / len(rules)
            worth = round(_entropy(share) / (number ^ current_set).bit_count(), DIGITS)
            if worth > best:
                best, target = worth, number
    return next(index for index in range(n) if (current_set ^ target) >> index & 1)


def _entropy(share: float) -> float:
    return 0.0 if share in (0.0, 1.0) else -share * log2(share) - (1 - share) * log2(1 - share)


def _toggle(episode: BlicketEpisode, index: int) -> str | None:
    verb = "remove" if index in episode.placed else "place"
    return episode.act({verb: episode.task.objects[index]}).reading


def _submit(episode: BlicketEpisode, rule: Stated) -> None:
    form, blickets = rule
    names = [name for index, name in enumerate(episode.task.objects) if index in blickets]
    episode.act({"check": {"rule": form, "blickets": names}})


def _result(item: BlicketItem, episode: BlicketEpisode) -> tuple[Grade, Actions]:
    opening = 0 if item.sealed.start_on is None else 1
    return grade(item, episode.steps), [dict(step.action) for step in episode.steps[opening:]]
