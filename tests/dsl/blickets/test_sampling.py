"""Drawn items: by seed and number alone, roles drawn evenly, every suite readable and playable."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.generation import EASY, HARD, SUITES, Later, Plan, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Exposure, Form
from calibrant.dsl.blickets.records import item_from_record, read_pool, record_from_item, write_pool


def _some(plan: Plan, number: int, seed: int = 7) -> list[BlicketItem]:
    return list(islice(sample_items(plan, seed), number))


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_is_drawn_by_seed_and_number_alone(name: str, tmp_path: Path) -> None:
    items = _some(SUITES[name], 12)
    assert next(sample_items(SUITES[name], 7, first=11)) == items[11]
    assert _some(SUITES[name], 12, seed=8) != items
    for item in items:
        assert item_from_record(record_from_item(item)) == item
        assert BlicketEpisode(item).act({"place": item.task.objects[0]}).reading is not None
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        write_pool(path, name, items)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert read_pool(paths[0]).items == tuple(items)


def test_every_assignment_of_roles_is_drawn_about_equally_often() -> None:
    seen = Counter(tuple(m.rule for m in item.sealed.mechanisms) for item in _some(SUITES["easy-3"], 3_000))
    assert len(seen) == 30  # 10 pairs, 3 singletons each
    assert sum((k - 100) ** 2 / 100 for k in seen.values()) < 58  # chi-square, 29 degrees of freedom, p about .001


def test_the_second_rule_is_as_planned() -> None:
    for item in _some(SUITES["hard-3-AC"], 50):
        first, second = (mechanism.rule for mechanism in item.sealed.mechanisms)
        assert (second.form, second.blickets.bit_count()) == (Form.CONJUNCTIVE, 2)
        assert (first.blickets & second.blickets).bit_count() == 1
    for item in _some(SUITES["hard-3"], 50):
        first, second = (mechanism.rule for mechanism in item.sealed.mechanisms)
        assert first.blickets | second.blickets == 0b11111
        assert first.blickets & second.blickets == 0


def test_budgets_are_those_of_the_paper() -> None:
    assert [
        _some(SUITES[name], 1)[0].task.budget for name in ("three-objects", "hard-3", "hard-3-short", "order-2-of-4")
    ] == [
        50,
        75,
        50,
        100,
    ]


def test_unequal_priors_draw_the_condition() -> None:
    conditions = Counter(item.condition for item in _some(SUITES["unequal-priors"], 1_000))
    assert set(conditions) == {Condition.CONJUNCTIVE, Condition.DISJUNCTIVE}
    assert 150 < conditions[Condition.CONJUNCTIVE] < 250


def test_no_two_items_of_a_series_share_a_name() -> None:
    items = _some(SUITES["series"], 15)
    for at in range(0, 15, 5):
        names = [name for item in items[at : at + 5] for name in item.task.objects]
        assert len(set(names)) == 25
        assert {item.labels["series"] for item in items[at : at + 5]} == {str(at // 5)}


def test_an_informed_item_tells_its_condition_and_no_more() -> None:
    (item,) = _some(Plan(Condition.MODERATOR, later=(HARD,), informed=True), 1)
    (uninformed,) = _some(Plan(Condition.MODERATOR, later=(HARD,)), 1)
    assert item.task.condition is Condition.MODERATOR
    assert uninformed.task.condition is None
    assert item.sealed == uninformed.sealed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": 9}, "n = 9; 2 to 8"),
        ({"blickets": 0}, "blickets = 0; 1 to n = 5"),
        ({"condition": Condition.MODERATOR}, "0 later rules with condition moderator"),
        ({"later": (EASY,)}, "1 later rules with condition conjunctive"),
        ({"condition": Condition.STOCHASTIC}, "p = 1.0 with condition stochastic"),
        ({"p": 0.5}, "p = 0.5 with condition conjunctive"),
        ({"condition": Condition.MODERATOR, "later": (EASY, HARD)}, r"switch points \[3, 3\] are not ascending"),
        (
            {"condition": Condition.MODERATOR, "later": (Later(Form.CONJUNCTIVE, 4, 3),)},
            "cannot be drawn from 5 objects",
        ),
        ({"conjunctive_share": 1.5}, "no probability"),
        ({"series": 6}, "series = 6; 1 to 5"),
        ({"budget": 0}, "budget = 0"),
    ],
)
def test_a_plan_that_cannot_be_drawn_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Plan(**{"condition": Condition.CONJUNCTIVE, "exposure": Exposure(), **options})
