"""What each row gets right and wrong, on generated questions and on the vectors."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from math import prod

import numpy as np
import pytest

from calibrant.baselines.causim.rows import ROWS, recall
from calibrant.dsl.causim.generated_functions import TOPOLOGIES
from calibrant.dsl.causim.item import CausimItem, Task
from calibrant.dsl.causim.model import assignment_text, run
from calibrant.dsl.causim.question import Answer
from calibrant.dsl.causim.reference import work_out, worlds
from calibrant.dsl.causim.score import reasons
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import generated_items
from calibrant.solvers.causim.space import likeliest_answer, likeliest_world
from calibrant.solvers.outcome import Found, Impossible
from tests.support.causim.models import random_graph, random_model, random_question


@pytest.fixture(scope="module")
def items() -> list[CausimItem]:
    return [item for topology in TOPOLOGIES for item in generated_items(12, topology, 1, nodes=6, num_questions=3)]


def answered(row: str, task: Task) -> Answer | None:
    found = ROWS[row](task, 0)
    return found.value if isinstance(found, Found) else None


def is_right(row: str, item: CausimItem) -> bool:
    answer = answered(row, item.task)
    return answer is not None and AnswerSet(item.task.model, item.task.question).contains(answer)


def test_exact_is_right_everywhere(items: list[CausimItem]) -> None:
    assert len(items) > 300
    assert all(is_right("exact", item) for item in items)


def test_one_forward_sample_is_right_on_every_deduction_and_intervention(items: list[CausimItem]) -> None:
    rates = Counter[tuple[str, bool]]((item.task.question.type, is_right("run_once", item)) for item in items)
    for kind in ("deduction", "intervention"):
        assert rates[kind, False] == 0
    for kind in ("abduction", "counterfactual"):
        assert rates[kind, False] > 20


def test_copying_is_right_exactly_where_the_label_says_so(items: list[CausimItem]) -> None:
    for item in items:
        stated = item.task.question.type == "intervention" and item.labels.trivial
        assert is_right("copy", item) is (bool(item.labels.copy) or stated)


def test_graph_only_is_between_copying_and_exact_on_counterfactuals(items: list[CausimItem]) -> None:
    asked = [item for item in items if item.task.question.type == "counterfactual" and not item.labels.trivial]
    right = sum(is_right("graph_only", item) for item in asked)
    assert 0 < right < len(asked)


def test_the_most_probable_world_and_answer_are_right_and_alike_where_one_answer_is(items: list[CausimItem]) -> None:
    for item in items:
        assert is_right("most_probable_noise", item)
        assert is_right("most_probable_answer", item)


def test_ignoring_do_is_that_error_and_no_other(items: list[CausimItem]) -> None:
    seen = 0
    for item in items:
        if item.task.question.type == "counterfactual" and not item.task.question.with_noise:
            answer = answered("no_do", item.task)
            assert answer is not None
            found = reasons(item.task.model, item.task.question, answer)
            assert all(found[name] == "do ignored" for name in item.task.question.do)
            seen += 1
    assert seen > 50


def test_prior_noise_never_ignores_do_and_never_breaks_a_mechanism(items: list[CausimItem]) -> None:
    kinds: Counter[str] = Counter()
    for item in items:
        if item.task.question.type == "counterfactual":
            for row in ("run_once", "resampled_noise"):
                answer = answered(row, item.task)
                assert answer is not None
                kinds.update(reasons(item.task.model, item.task.question, answer).values())
    assert set(kinds) == {"ok", "wrong noise"}


def test_a_cap_finds_some_answers_and_no_wrong_one(items: list[CausimItem]) -> None:
    for item in items[::10]:
        few, many = recall(item.task, 20), recall(item.task, 10_000)
        assert few is not None
        assert many is not None
        assert few[0] <= many[0] <= many[1] == item.labels.size
        answer = answered("truncated_100", item.task)
        assert answer is None or AnswerSet(item.task.model, item.task.question).contains(answer)


def test_rows_depend_on_task_and_seed_alone(items: list[CausimItem]) -> None:
    for row in ("run_once", "random_symbols", "resampled_noise"):
        first = [answered(row, item.task) for item in items[:40]]
        assert first == [answered(row, item.task) for item in items[:40]]
        assert first != [
            found.value if isinstance(found := ROWS[row](item.task, 1), Found) else None for item in items[:40]
        ]


def test_every_row_says_that_nothing_fits_or_gives_no_right_answer(items: list[CausimItem]) -> None:
    item = next(item for item in items if item.task.question.type == "deduction" and item.task.question.fixed)
    question = item.task.question
    broken = type(question)(question.type, dict.fromkeys(question.fixed, '"nowhere"'), question.unknown)
    task = Task(item.task.source, broken, "impossible")
    for row in ROWS:
        found = ROWS[row](task, 0)
        assert not isinstance(found, Found) or not AnswerSet(task.model, broken).contains(found.value)
    assert isinstance(ROWS["exact"](task, 0), Impossible)


def test_the_most_probable_are_those_of_running_every_world() -> None:
    rng = np.random.default_rng(17)
    for topology in TOPOLOGIES:
        for _ in range(25):
            model = random_model(rng, random_graph(rng, topology, int(rng.integers(1, 5))))
            question = random_question(rng, model)
            worked = work_out(model, question)
            answer, world = likeliest_answer(model, question), likeliest_world(model, question)
            if not worked.answers:
                assert isinstance(answer, Impossible)
                assert isinstance(world, Impossible)
                continue
            assert isinstance(answer, Found)
            assert isinstance(world, Found)
            assert worked.probabilities[assignment_text(answer.value)] == max(worked.probabilities.values())
            weights = [
                weight
                for noise, weight in worlds(model, question.fixed)
                if question.observed.items() <= run(model, noise, {}).items()
            ]
            own = prod(
                (dict(zip(node.support, node.weights, strict=True))[world.value[node.noise]] for node in model.nodes),
                start=Fraction(1),
            )
            assert own == max(weights)
