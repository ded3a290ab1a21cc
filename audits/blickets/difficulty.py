"""Difficulty of an item: moves that an exact learner needs, and hypotheses before any reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import permutations

import msgspec

from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Mechanism, Sealed
from calibrant.dsl.blickets.rule import Rule, set_of
from calibrant.dsl.blickets.score import grade
from calibrant.solvers.blickets.conditions import NoiseSpace, OrderSpace, SwitchSpace
from calibrant.solvers.blickets.exact import exact_learner
from calibrant.solvers.blickets.learner import certifiable, conclude_episode
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.outcome import Found, Impossible, Outcome, OutOfBudget

MAX_PERMUTED = 5  # objects: 120 assignments of roles are played, 720 for six


@dataclass(frozen=True, slots=True)
class Difficulty:
    """Labels of an item.

    members: hypotheses of each family before any reading
    steps: moves of the exact learner to a decided and correct answer; OutOfBudget where its moves ran out or, with
        noise, its decided answer was wrong; Impossible where no exact learner has the mechanism in its class
    certifiable: whether the first rule allows a silent certificate
    winnable: share of the permutations of objects (which object has which role in the rules) in which the exact learner
        comes to a decided and correct answer; Impossible as with steps, and for more than MAX_PERMUTED objects
    """

    members: Mapping[str, int]
    steps: Outcome[int]
    certifiable: bool
    winnable: Outcome[float]

    def as_labels(self) -> dict[str, str]:
        """Return the labels of an item, which are texts; outcomes without a value have none."""
        texts = {f"members_{family}": str(number) for family, number in self.members.items()}
        for name, outcome in (("steps", self.steps), ("winnable", self.winnable)):
            if isinstance(outcome, Found):
                texts[name] = f"{outcome.value:.4g}"
        return {**texts, "certifiable": "yes" if self.certifiable else "no"}


def difficulty(item: BlicketItem) -> Difficulty:
    """Return the labels of an item."""
    n = item.task.n
    members = {
        "static": StaticSpace.full(n).count,
        "switch": SwitchSpace.full(n, item.task.count).count,
        "order": OrderSpace.full(n, item.task.order_reading).count,
        "noise": NoiseSpace.full(n).count,
    }
    return Difficulty(members, steps_needed(item), certifiable(item.sealed.mechanisms[0].rule), winnable_share(item))


def steps_needed(item: BlicketItem) -> Outcome[int]:
    """Return the moves of the exact learner, as `Difficulty` defines them."""
    learner = exact_learner(item)
    if not isinstance(learner, Found):
        return learner
    episode = BlicketEpisode(item)
    learned = conclude_episode(episode, learner.value)
    if not isinstance(learned.outcome, Found):
        return learned.outcome
    moves = item.task.budget - episode.left
    if not grade(item, episode.steps).correct:
        return OutOfBudget(f"the answer after {moves} moves was wrong")
    return Found(moves)


def winnable_share(item: BlicketItem) -> Outcome[float]:
    """Return the share described in `Difficulty`, cached for items that differ in names and roles only."""
    if item.task.n > MAX_PERMUTED:
        return Impossible(f"roles are permuted for at most {MAX_PERMUTED} objects")
    return _winnable_share(replace(item, id="", labels=_NO_LABELS, sealed=_normalise_roles(item)))


def _normalise_roles(item: BlicketItem) -> Sealed:
    """Return the mechanism under the first of all permutations: the same for items that differ in roles only."""
    return min(
        (_permute_roles(item.sealed, roles) for roles in permutations(range(item.task.n))), key=msgspec.json.encode
    )


def _permute_roles(sealed: Sealed, roles: tuple[int, ...]) -> Sealed:
    def rule(old: Rule) -> Rule:
        return Rule(old.form, set_of(roles[i] for i in range(len(roles)) if old.blickets >> i & 1))

    def order(old: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return None if old is None else tuple(roles[i] for i in old)

    mechanisms = tuple(Mechanism(rule(old.rule), order(old.order)) for old in sealed.mechanisms)
    return replace(sealed, mechanisms=mechanisms, start_on=order(sealed.start_on))


_NO_LABELS: Mapping[str, str] = {}
_shares: dict[bytes, Outcome[float]] = {}


def _winnable_share(item: BlicketItem) -> Outcome[float]:
    key = msgspec.json.encode(item)
    if key not in _shares:
        _shares[key] = _play_all_roles(item)
    return _shares[key]


def _play_all_roles(item: BlicketItem) -> Outcome[float]:
    won, played = 0, 0
    # each mechanism once, though several permutations give it; a dict keeps their order, a set would not
    for sealed in dict.fromkeys(_permute_roles(item.sealed, roles) for roles in permutations(range(item.task.n))):
        steps = steps_needed(replace(item, sealed=sealed))
        if isinstance(steps, Impossible):
            return steps
        won += isinstance(steps, Found)
        played += 1
    return Found(won / played)
