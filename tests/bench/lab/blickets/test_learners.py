"""Exact learners beside a prototype's figures: what ties decide, what is called a difference, and the command."""

from __future__ import annotations

from random import Random

import pytest

from calibrant.bench.blickets.agents import agent, play_agent
from calibrant.bench.blickets.rates import Share, count_classes
from calibrant.bench.lab.blickets import (
    SEED,
    STATED,
    Stated,
    difference_of_means,
    difference_of_shares,
    learner_table,
    main,
)
from calibrant.bench.report.layout import NOTHING, Source
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Condition, Mechanism, Sealed, Task, all_rules
from calibrant.dsl.blickets.score import grade
from calibrant.solvers.blickets.conditions import RELIABILITIES, NoiseSpace
from calibrant.solvers.blickets.learner import Greedy, learn, submit_answer
from tests.support.binomial import within


@pytest.mark.parametrize(
    ("suite", "accuracy"),
    [("easy-5", 0.94), ("hard-3", 0.25), ("stochastic", 0.36), ("order", 0.25), ("order-4-of-4", 0.1)],
)
def test_with_ties_at_random_the_static_learner_is_as_stated(suite: str, accuracy: float) -> None:
    found = count_classes(episode.grade for episode in play_agent("static-at-random", suite, 150, SEED))
    assert within(found.correct, accuracy, 150)


def test_ties_alone_decide_between_all_and_hardly_any_of_four_ordered_objects() -> None:
    first = count_classes(episode.grade for episode in play_agent("static", "order-4-of-4", 30, SEED))
    drawn = count_classes(episode.grade for episode in play_agent("static-at-random", "order-4-of-4", 30, SEED))
    assert first.correct == 30
    assert within(drawn.correct, 0.1, 30)


@pytest.mark.parametrize(
    ("suite", "steps"), [("conjunctive", 15.6), ("easy-3", 15.5), ("easy-5", 17.0), ("hard-3", 16.1)]
)
def test_with_ties_at_random_the_switch_aware_learner_takes_the_stated_steps(suite: str, steps: float) -> None:
    grades = [episode.grade for episode in play_agent("switch-aware-at-random", suite, 100, SEED)]
    assert all(found.correct for found in grades)
    assert not any(found.exposed == "exactly-N" for found in grades)
    assert sum(found.steps for found in grades) / 100 == pytest.approx(steps, abs=1)


def test_belief_in_a_noisy_rule_is_calibrated() -> None:
    """Over its own prior a learner that stops at a belief of .8 is right that often at least."""
    right = 0
    for number in range(200):
        rng = Random(number)
        rule, p = rng.choice(all_rules(4)), rng.choice(RELIABILITIES)
        sealed = Sealed((Mechanism(rule),), p=p, noise_seed=number)
        item = BlicketItem("n", Condition.STOCHASTIC, Task(tuple("ABCD"), 100), sealed)
        episode = BlicketEpisode(item)
        submit_answer(episode, learn(episode, Greedy(item.task, NoiseSpace.full(4), 0.2)).guess)
        right += bool(grade(item, episode.steps).correct)
    assert within(right, 0.85, 200) or right > 0.85 * 200


def test_another_delta_has_a_name() -> None:
    assert agent("noise-aware@0.2").name == "noise-aware@0.2"
    assert agent("order-aware-at-random@0.05").name == "order-aware-at-random@0.05"
    few, many = (
        sum(episode.grade.steps for episode in play_agent(name, "stochastic", 10, SEED))
        for name in ("noise-aware@0.2", "noise-aware@0.001")
    )
    assert few < many


@pytest.mark.parametrize(
    ("ours", "stated", "expected"),
    [
        (Share(250, 500), 0.5, []),
        (Share(250, 500), 0.56, []),  # chance: the two samples differ by 1.9 of their standard error
        (Share(250, 500), 0.6, ["-10.0!"]),
        (Share(500, 500), 1.0, []),
        (Share(500, 500), 0.98, ["+2.0"]),
        (Share(2, 4), 0.1, ["+40.0!"]),
    ],
)
def test_shares_differ_where_chance_does_not_explain_it(ours: Share, stated: float, expected: list[str]) -> None:
    assert list(difference_of_shares(ours, stated)) == expected


@pytest.mark.parametrize(
    ("ours", "stated", "expected"),
    [
        ([7, 9] * 250, 8.1, []),
        ([7, 9] * 250, 8.3, ["steps -0.3"]),
        ([7, 9] * 250, 6.5, ["steps +1.5!"]),
        ([3], 3.0, []),
    ],
)
def test_means_differ_where_chance_does_not_explain_it(ours: list[int], stated: float, expected: list[str]) -> None:
    assert list(difference_of_means(ours, stated)) == expected


def test_a_stated_row_is_followed_by_ours_and_by_ours_with_ties_at_random() -> None:
    stated = (Stated("order-4-of-4", "static", 0.1), Stated("hard-3", "seek", None, 16.6, None, 1.0))
    table = learner_table(20, stated=stated)
    assert [(row.source, *row.labels) for row in table.rows] == [
        (Source.PROTOTYPE, "order-4-of-4", "static"),
        (Source.OURS, "order-4-of-4", "static"),
        (Source.OURS, "order-4-of-4", "static-at-random"),
        (Source.PROTOTYPE, "hard-3", "seek"),
        (Source.OURS, "hard-3", "seek"),
    ]
    assert [cell.text for cell in table.rows[0].cells] == ["10.0", *[NOTHING.text] * 4]
    assert [cell.text for cell in table.rows[3].cells] == [NOTHING.text, "16.6", NOTHING.text, "100.0", NOTHING.text]
    assert table.rows[1].cells[4].text == "accuracy +90.0!"
    assert table.rows[2].cells[4].text == "no"


def test_the_command_prints_every_stated_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(STATED) == 31
    monkeypatch.setattr("calibrant.bench.lab.blickets.STATED", STATED[:1])
    assert main(["learners", "--episodes", "2"]) == 0
    assert any(line.startswith("prototype") for line in capsys.readouterr().out.splitlines())
