"""Alternatives and forecasts in words: what is typed is the answer that a solver sends as JSON, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.words import Act, Draft, Edit, Position, WordsError
from calibrant.bench.replayscm.play import WORDS
from calibrant.dsl.formulas.text import infix, render
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.alternative import AlternativeAnswer
from tests.support.play.other_questions import alternative_lines, alternative_of, forecast_of, solved_alternative
from tests.support.play.right_lines import EPISODES, POOLS, extended_item, first_item

SCORING = benchmark("replayscm").scoring


def typed(item: Problem, lines: Sequence[str]) -> tuple[Draft, dict[str, Any]]:
    """Return the draft that lines state, which the page's check leaves as it is, and the answer that is sent."""
    draft: Draft = {}
    for line in lines:
        stated = WORDS.read(item, Position((), 0, draft), line)
        assert isinstance(stated, Edit), line
        draft = WORDS.check_draft(item, stated.draft)
        assert draft == {key: value for key, value in stated.draft.items() if value}
    sent = WORDS.read(item, Position((), 0, draft), "submit")
    assert isinstance(sent, Act)
    return draft, dict(sent.action["submit"])


@pytest.fixture(scope="module")
def alternative() -> tuple[Problem, AlternativeAnswer]:
    item = alternative_of(first_item(POOLS["replayscm"]))
    return item, solved_alternative(item)


def test_an_alternative_is_typed_as_a_solver_sends_it(alternative: tuple[Problem, AlternativeAnswer]) -> None:
    item, answer = alternative
    lines = [*alternative_lines(answer)]
    draft, sent = typed(item, lines)
    mechanisms = {name: render(formula) for name, formula in answer.model.mechanisms.items()}
    assert sent["alternative"] == {"mechanisms": mechanisms}
    assert sent["experiment"] == answer.separation.experiment.to_dict()
    assert sent["witness"]["rootAssignment"] == dict(answer.witness["rootAssignment"])
    assert {d["variable"] for d in sent["witness"]["differences"]} == {
        d["variable"] for d in answer.witness["differences"]
    }
    assert SCORING.score(item, SCORING.extract(item, sent), ())["correct"]
    again, _ = typed(item, WORDS.draft_lines(item, draft))
    assert again == draft
    verbs = {verb.form.split()[0] for verb in WORDS.verbs(item)}
    assert {"experiment", "witness", "differs", "submit"} <= verbs
    for without in ("experiment", "witness", "differs"):
        kept = [line for line in lines if not line.startswith(without)]
        with pytest.raises(WordsError, match=f"type for example {without}"):
            typed(item, kept)


@pytest.mark.parametrize(
    "line",
    [
        "experiment",
        "experiment X1=1 X2=1",
        "experiment X1=2",
        "witness X9=1",
        "differs X4",
        "differs X4 1 1",
        "chance X4 = 1",
    ],
)
def test_a_mistake_in_an_alternative_is_no_edit(line: str, alternative: tuple[Problem, AlternativeAnswer]) -> None:
    with pytest.raises(WordsError):
        WORDS.read(alternative[0], Position((), 0, {}), line)


@pytest.fixture(scope="module")
def forecast() -> Problem:
    item = extended_item(EPISODES["noisy episode"], is_episode=False)
    return forecast_of(item, item.sealed.heldout.worlds[:2])


def test_probabilities_are_typed_for_all_rows_for_a_world_and_for_a_row(forecast: Problem) -> None:
    extension = forecast.task.extension
    assert extension is not None
    free = [v for v in extension.variables if v not in extension.roots]
    lines = [f"chance {name} = 0.5" for name in free if any(name not in w.constants for w in extension.forecast_worlds)]
    name = next(v for v in free if v not in extension.forecast_worlds[1].constants)
    draft, sent = typed(forecast, [*lines, f"chance 2 {name.lower()} = 0.25", f"chance 2.1 {name} = 1"])
    chances = [row[name] for row in sent["forecast"][1]]
    assert chances == [1, *[0.25] * (len(chances) - 1)]
    cells = [value for world in sent["forecast"] for row in world for value in row.values()]
    assert cells.count(0.5) == len(cells) - len(chances)
    score = SCORING.score(forecast, SCORING.extract(forecast, sent), ())
    assert score["valid"]
    assert typed(forecast, WORDS.draft_lines(forecast, draft))[0] == draft
    with pytest.raises(WordsError, match=r"probabilities are missing; type for example chance 1\.1"):
        typed(forecast, [f"chance 2.1 {name} = 1"])


def test_formulas_may_stand_in_place_of_probabilities(forecast: Problem) -> None:
    gold: Any = forecast.sealed.gold
    lines = [f"{name} = {infix(formula)}" for name, formula in gold.mechanisms.items()]
    name = next(iter(gold.mechanisms))
    _, sent = typed(forecast, [*lines, f"chance {name} = 1", "chance nothing"])
    assert sent == {
        "mechanisms": {v: render(gold.mechanisms[v]) for v in forecast.task.variables if v in gold.mechanisms}
    }
    for line in ("chance X1 = 2", "chance", f"chance 9 {name} = 1", f"chance {name} = soon", "chance Q = 1"):
        with pytest.raises(WordsError):
            WORDS.read(forecast, Position((), 0, {}), line)
