"""Engines against the reference, which runs every world; and against SAT where there are too many worlds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pytest

from calibrant.dsl.causim.model import Model, assignment_text, symbol
from calibrant.dsl.causim.question import Question
from calibrant.dsl.causim.reference import work_out
from calibrant.dsl.causim.topology import TOPOLOGIES, satisfies
from calibrant.solvers.causim.exact import AnswerSet, TwinAnswerSet, enumerate_worlds, first_answers
from calibrant.solvers.causim.experiments import SatQuestion
from calibrant.solvers.outcome import Budget, Found, Impossible, OutOfBudget
from tests.support.causim.table_models import random_graph, random_model, random_question
from tests.support.causim.vectors import answer_texts, printed, questions, vectors
from tests.support.effort import effort


def asked(seed: int, number: int, n: int, topology: str) -> Iterator[tuple[np.random.Generator, Model, Question]]:
    """Yield random questions, ten about each random model."""
    rng, models = np.random.default_rng(seed), list[Model]()
    for k in range(number):
        if k % 10 == 0:
            graph = random_graph(rng, topology, int(rng.integers(1, n + 1)) if n < 10 else n)
            assert satisfies(graph, topology)
            models.append(random_model(rng, graph))
        yield rng, models[-1], random_question(rng, models[-1])


def other_answers(rng: np.random.Generator, model: Model, question: Question) -> Iterator[dict[str, str]]:
    """Answers with random values of the right domains, and one value from nowhere."""
    answer: dict[str, str] = {}
    for _ in range(5):
        answer = {}
        for key in question.required_keys(model):
            i = model.position.get(key)
            values = model.system[i].domain if i is not None else model.nodes[model.of_noise[key]].support
            answer[key] = question.do.get(key, values[int(rng.integers(len(values)))])
        yield answer
    if answer:
        yield {**answer, next(iter(answer)): symbol("nowhere")}


@pytest.mark.soak
@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_local_elimination_and_twin_agree_with_running_every_world(topology: str) -> None:
    """Ten questions about each of five models; about each of thirteen in a soak."""
    for rng, model, question in asked(20, effort(50, 130), 6, topology):
        worked = work_out(model, question)
        for members in (AnswerSet(model, question), TwinAnswerSet(model, question)):
            assert (members.worlds, members.fitting) == (worked.worlds, worked.fitting)
            assert members.size() == Found(len(worked.answers))
            assert sorted(map(assignment_text, members.answers())) == list(worked.answers)
            assert members.effect == (None if worked.effect_all is None else (worked.effect_all, worked.effect_some))
            assert members.copy is worked.copy
            for text, answer in list(worked.answers.items())[:6]:
                assert members.contains(answer)
                assert members.probability(answer) == worked.probabilities[text]
            for answer in other_answers(rng, model, question):
                assert members.contains(answer) is (assignment_text(answer) in worked.answers)
            picked = members.pick()
            if worked.answers:
                assert isinstance(picked, Found)
                assert assignment_text(picked.value) in worked.answers
            else:
                assert isinstance(picked, Impossible)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_clauses_agree_with_running_every_world(topology: str) -> None:
    for rng, model, question in asked(21, 40, 5, topology):
        worked = work_out(model, question)
        with closing(SatQuestion(model, question)) as sat:
            for answer in [*list(worked.answers.values())[:3], *other_answers(rng, model, question)]:
                assert sat.contains(answer) is (assignment_text(answer) in worked.answers)
            assert sorted(map(assignment_text, sat.answers(Budget(None)))) == list(worked.answers)


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_ten_nodes_agree_with_clauses(topology: str) -> None:
    number = 8 if topology == "inverted_star" else 20
    for rng, model, question in asked(22, number, 10, topology):
        members = AnswerSet(model, question)
        picked = members.pick()
        with closing(SatQuestion(model, question)) as sat:
            assert sat.is_satisfiable(()) is isinstance(picked, Found)
            known = [picked.value] if isinstance(picked, Found) else []
            for answer in [*known, *other_answers(rng, model, question)]:
                assert sat.contains(answer) is members.contains(answer)
            size = members.size(Budget(300))
            if isinstance(size, Found) and size.value <= 60:
                assert sat.size(Budget(None)) == size


def test_clauses_count_no_states_that_were_spent_before() -> None:
    model, question = next(
        (model, question)
        for _, model, question in asked(21, 40, 5, "chain")
        if len(work_out(model, question).answers) > 2
    )
    budget = Budget(102)
    budget.spend(100)
    with closing(SatQuestion(model, question)) as sat:
        outcome = sat.size(budget)
    assert isinstance(outcome, OutOfBudget)
    assert outcome.lower_bound == 2


def test_the_vectors_are_answered_by_every_engine() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        expected = record["expect"]
        for members in (AnswerSet(model, question), TwinAnswerSet(model, question)):
            assert (members.worlds, members.fitting) == (expected["worlds"], expected["fitting"])
            assert members.size() == Found(expected["size"])
            assert sorted(map(assignment_text, members.answers())) == answer_texts(record)
        if expected["size"] <= 500:
            with closing(SatQuestion(model, question)) as sat:
                assert sorted(map(assignment_text, sat.answers(Budget(None)))) == answer_texts(record)


def test_probabilities_of_the_vectors() -> None:
    for record in vectors("question"):
        members = AnswerSet(*questions()[record["id"]])
        for answer, probability in list(
            zip(record["expect"]["answers"], record["expect"]["probabilities"], strict=True)
        )[:9]:
            given = {key: symbol(value) for key, value in answer.items()}
            assert printed(members.probability(given)) == probability


def test_a_search_without_states_left_says_so_instead_of_counting_wrong() -> None:
    rng = np.random.default_rng(4)
    model = random_model(rng, random_graph(rng, "poly_tree", 6))
    question = Question("counterfactual", {}, model.noises, {}, {model.names[-1]: model.system[-1].domain[0]})
    assert isinstance(AnswerSet(model, question).size(Budget(2)), OutOfBudget)
    assert isinstance(enumerate_worlds(model, question, 3), OutOfBudget)


def test_the_first_worlds_give_some_answers_and_all_worlds_give_all() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        texts = answer_texts(record)
        some, worlds = first_answers(model, question, 5), record["expect"]["worlds"]
        assert set(some) <= set(texts)
        if worlds <= 500:
            assert sorted(first_answers(model, question, worlds)) == texts
