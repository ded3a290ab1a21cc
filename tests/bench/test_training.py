"""Curricula, and replies that trainers score."""

from __future__ import annotations

from itertools import islice

import pytest

from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.training import FIRST_DRAWN, endless, in_stages, in_turns, replies
from calibrant.dsl.errors import CalibrantError

# --- Items without end: the same for the same seed, however many are taken --------------------------------------------
EASY = {name: benchmark(name).training.stages[0] for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
def test_item_i_is_the_same_however_many_are_taken(name: str) -> None:
    of = benchmark(name)
    taken = list(islice(endless(of, EASY[name], 3), FIRST_DRAWN + 2))
    assert taken[: FIRST_DRAWN - 1] == list(of.suites.draw((EASY[name],), 3, FIRST_DRAWN - 1))
    assert len({item.id for item in taken}) == len(taken)
    assert taken[0] != next(endless(of, EASY[name], 4))


@pytest.mark.parametrize("name", NAMES)
def test_stages_are_suites_of_the_benchmark(name: str) -> None:
    of = benchmark(name)
    assert len(of.training.stages) > 1
    assert set(of.training.stages) <= set(of.suites.names)


@pytest.mark.parametrize("name", NAMES)
def test_the_labels_of_an_item_are_numbers_of_the_same_names(name: str) -> None:
    of = benchmark(name)
    labels = [of.training.difficulty(next(endless(of, stage, 1))) for stage in of.training.stages[:3]]
    assert len({tuple(one) for one in labels}) == 1
    assert all(type(value) is int for one in labels for value in one.values())


def test_turns_and_stages() -> None:
    of, suites = benchmark("blickets"), ("conjunctive", "easy-3")
    turns = [(one.suite, one.stage, one.place) for one in islice(in_turns(of, suites, 1), 4)]
    assert turns == [("conjunctive", 0, 0), ("easy-3", 1, 0), ("conjunctive", 0, 1), ("easy-3", 1, 1)]
    stages = [(one.suite, one.stage, one.place) for one in islice(in_stages(of, suites, 1, 2), 5)]
    assert stages == [("conjunctive", 0, 0), ("conjunctive", 0, 1), *(("easy-3", 1, place) for place in range(3))]
    assert next(in_stages(of, (), 1, 2)).suite == of.training.stages[0]


def test_difficulty_rises_with_the_stages_of_causalab() -> None:
    of = benchmark("causalab")
    nodes = [of.training.difficulty(next(endless(of, stage, 1)))["nodes"] for stage in of.training.stages[:5]]
    assert nodes == [3, 4, 5, 6, 7]


def test_what_cannot_be_meant() -> None:
    of = benchmark("blickets")
    with pytest.raises(CalibrantError, match="unknown suite 'nowhere'; known: conjunctive"):
        next(in_turns(of, ("nowhere",), 1))
    with pytest.raises(CalibrantError, match="0 items a stage"):
        next(in_stages(of, (), 1, 0))


# --- Completions of every shape that trainers have --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("completion", "said"),
    [
        ("text", ["text"]),
        ("", [""]),
        ([], []),
        ([{"role": "assistant", "content": "a"}], ["a"]),
        (
            [
                {"role": "assistant", "content": "a"},
                {"role": "user", "content": "told"},
                {"role": "tool", "content": "told"},
                {"role": "assistant", "content": "b"},
            ],
            ["a", "b"],
        ),
        ([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}], ["ab"]),
        ([{"role": "assistant", "content": [{"type": "image"}, "odd"]}], [""]),
        ([{"role": "assistant", "content": None}, {"role": "assistant"}], ["", ""]),
        ([{"content": "nobody"}], []),
    ],
)
def test_what_the_model_said(completion: object, said: list[str]) -> None:
    responses = replies(completion)
    assert responses is not None
    assert [response.text or "" for response in responses] == said


@pytest.mark.parametrize("completion", [None, 1, {"role": "assistant", "content": "a"}, ["a"], [None]])
def test_what_is_no_completion(completion: object) -> None:
    assert replies(completion) is None
