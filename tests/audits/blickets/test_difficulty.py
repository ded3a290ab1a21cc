"""Labels of items: what the exact learner needs, and how often it gets there."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from math import factorial

import pytest

from calibrant.audits.blickets.items import difficulty, steps_needed, winnable_share
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Form, Mechanism, Rule, all_rules
from calibrant.dsl.blickets.score import grade
from calibrant.solvers.blickets.exact import exact_learner, space_after, space_of_condition
from calibrant.solvers.blickets.learner import conclude_episode
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
from tests.support.blickets.items import static_item


def _item(suite: str) -> BlicketItem:
    return next(sample_items(SUITES[suite], 3))


def _ordered_switch() -> BlicketItem:
    """Return a switch to a rule whose blickets have an order: in no class here."""
    item = _item("easy-3")
    later = Mechanism(Rule(Form.CONJUNCTIVE, 0b11), (1, 0))
    return replace(item, sealed=replace(item.sealed, mechanisms=(item.sealed.mechanisms[0], later)))


def test_members_beforehand_are_those_of_the_formulas() -> None:
    for n in (2, 3, 4, 5):
        rules = 2 * (2**n - 1) - n
        orders = sum(factorial(n) // factorial(n - k) for k in range(2, n + 1))
        assert difficulty(static_item(Rule(Form.CONJUNCTIVE, 3), n)).members == {
            "static": rules,
            "switch": rules * (rules - 1) * 12,
            "order": orders,
            "noise": rules * 5,
        }


def test_labels_are_texts_that_an_item_can_carry() -> None:
    labels = difficulty(_item("hard-3")).as_labels()
    assert labels["members_static"] == "57"
    assert (labels["certifiable"], labels["winnable"]) == ("yes", "1")
    assert 10 <= int(labels["steps"]) <= 25
    assert "steps" not in difficulty(_ordered_switch()).as_labels()


@pytest.mark.parametrize(
    "suite",
    ["conjunctive", "easy-3", "hard-3-AC", "order-3-of-4", "forced-exposure", "forced-moves", "switch-by-steps"],
)
def test_an_exact_learner_wins_under_every_assignment_of_roles(suite: str) -> None:
    assert winnable_share(_item(suite)) == Found(1.0)


def test_what_no_class_here_knows_has_no_exact_learner() -> None:
    item = _ordered_switch()
    assert isinstance(exact_learner(item), Impossible)
    assert isinstance(steps_needed(item), Impossible)
    assert isinstance(winnable_share(item), Impossible)
    assert isinstance(winnable_share(static_item(all_rules(6)[0], 6)), Impossible)


def test_a_short_budget_is_out_of_budget_and_not_winnable() -> None:
    item = _item("conjunctive")
    short = replace(item, task=replace(item.task, budget=2))
    assert isinstance(steps_needed(short), OutOfBudget)
    assert winnable_share(short) == Found(0.0)


def test_winnable_share_is_that_of_playing_every_assignment() -> None:
    """Seven moves are enough for some pairs and not for others; roles are 10 pairs, each played here by itself."""
    item = _item("conjunctive")
    short = replace(item, task=replace(item.task, budget=7))
    pairs = [rule for rule in all_rules(5) if rule.form is Form.CONJUNCTIVE and rule.blickets.bit_count() == 2]
    won = [isinstance(steps_needed(static_item(rule, 5, 7)), Found) for rule in pairs]
    assert 0 < sum(won) < 10
    assert winnable_share(short) == Found(sum(won) / 10)


@pytest.mark.parametrize("suite", ["conjunctive", "disjunctive", "easy-3", "order", "stochastic"])
def test_the_knowing_space_keeps_the_rule_in_force(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 9), 10):
        learner = exact_learner(item)
        assert isinstance(learner, Found)
        episode = BlicketEpisode(item)
        conclude_episode(episode, learner.value)
        space = space_after(space_of_condition(item.task, item.condition), item.task, episode.steps)
        assert grade(item, episode.steps).rule_in_force.canonical in space.verdicts()
