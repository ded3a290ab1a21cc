"""The contract of a version space, by running every world."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from calibrant.dsl.causim.model import Model, ModelError, assignment_text, run
from calibrant.dsl.causim.question import Question, project
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.causim.topology import TOPOLOGIES
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.space import WorldSpace
from calibrant.solvers.outcome import Budget, BudgetSpent
from calibrant.solvers.space import Space
from tests.support.causim.models import random_graph, random_model, random_question

Seen = dict[str, str]


def members(model: Model, question: Question) -> list[tuple[Seen, Seen, str]]:
    found = []
    for noise, _ in worlds(model, question.fixed):
        factual = run(model, noise, {})
        if all(factual[name] == value for name, value in question.observed.items()):
            answer = project(question, model, noise, run(model, noise, question.do))
            found.append((noise, {**noise, **factual}, assignment_text(answer)))
    return found


@pytest.mark.parametrize("topology", TOPOLOGIES)
def test_counts_outcomes_and_verdicts_are_those_of_running_every_world(topology: str) -> None:
    rng = np.random.default_rng(41)
    for _ in range(25):
        model = random_model(rng, random_graph(rng, topology, int(rng.integers(1, 5))))
        question = random_question(rng, model)
        left, space = members(model, question), WorldSpace(model, question)
        typed: Space[object, str, str, str] = space  # type: ignore[assignment]
        assert typed.count == len(left)
        for _ in range(3):
            assert space.count == len(left)
            assert space.verdicts() == Counter(text for _, _, text in left)
            name = str(rng.choice([*model.names, *model.noises]))
            outcomes = space.outcomes(name)
            assert outcomes == Counter(seen[name] for _, seen, _ in left)
            assert sum(outcomes.values()) == space.count
            for noise, _ in list(worlds(model, {}))[:20]:
                assert space.fits(noise) is any(noise == own for own, _, _ in left)
            if left:
                drawn = space.sample(rng, 5)
                assert all(space.fits(world) for world in drawn)
            else:
                with pytest.raises(ValueError, match="no world fits"):
                    space.sample(rng, 1)
                break
            reading = left[int(rng.integers(len(left)))][1][name]
            smaller = space.after(name, reading)
            assert smaller.count == outcomes[reading] <= space.count
            other = smaller.after(name, "no such value")
            assert other.count == 0
            assert other.after(name, reading).count == 0
            left, space = [one for one in left if one[1][name] == reading], smaller


def test_members_are_drawn_evenly_where_evidence_is_partial() -> None:
    rng = np.random.default_rng(2)
    model = random_model(rng, random_graph(rng, "poly_tree", 4))
    last = len(model) - 1
    question = Question("counterfactual", {}, model.noises, {}, {model.names[last]: model.system[last].domain[0]})
    left = members(model, question)
    drawn = Counter(assignment_text(world) for world in WorldSpace(model, question).sample(rng, 3000))
    assert set(drawn) == {assignment_text(noise) for noise, _, _ in left}
    assert all(abs(number - 3000 / len(left)) < 6 * (3000 / len(left)) ** 0.5 for number in drawn.values())


def test_unknown_names_and_spent_budgets_are_told() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, random_graph(rng, "chain", 4))
    space = WorldSpace(model, Question("deduction", {}, model.noises))
    with pytest.raises(ModelError, match="neither noise nor a variable"):
        space.after("nothing", "1")
    with pytest.raises(BudgetSpent):
        space.verdicts(Budget(1))


def test_listing_fitting_worlds_visits_prefixes_of_fitting_worlds_alone() -> None:
    """States are the values that can follow a prefix of some fitting world, evidence aside: counted from all worlds."""
    rng = np.random.default_rng(5)
    num_partial = 0
    for _ in range(40):
        model = random_model(rng, random_graph(rng, "poly_tree", 5))
        last = model.names[-1]
        question = Question("counterfactual", {}, model.noises, {}, {last: model.system[-1].domain[0]})
        answers = AnswerSet(model, question)
        if answers._compiled.product is not None:
            continue
        every = [tuple(run(model, noise, {}).values()) for noise, _ in worlds(model, {})]
        fitting = [values for values in every if values[-1] == question.observed[last]]
        num_partial += bool(fitting)
        # after a prefix of a fitting world come the values that any world has there; the last one is evidence
        begun = {values[:i] for values in fitting for i in range(len(values))}
        states = {values[: i + 1] for values in every for i in range(len(values)) if values[:i] in begun}
        states = {values for values in states if len(values) < len(model) or values[-1] == question.observed[last]}
        budget = Budget(10_000)
        assert len(list(answers.fitting_worlds(budget))) == len(fitting)
        assert budget.used == len(states)
    assert num_partial > 10
