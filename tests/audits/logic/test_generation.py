"""Generated items: gold is a member, labels are those of the family, the same bytes from the same seed."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from calibrant.audits.logic.generation import LogicPlan, generate_item, generate_items
from calibrant.baselines.logic import rows
from calibrant.baselines.logic.rows import GeneticPlan, greedy_model
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import LogicError, fit_limit, model_size
from calibrant.dsl.logic.records import item_from_record, record_from_item
from calibrant.dsl.logic.score import answer_json, grade
from calibrant.solvers.logic import family as exact_rows
from calibrant.solvers.logic.family import solve_family
from calibrant.solvers.logic.network import ModelCosts
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import random_tasks

PLAN = LogicPlan(nodes=9, loops=2, noise=0.2, missing=0.1)


def test_items_depend_on_plan_seed_and_number_alone() -> None:
    items = list(generate_items(PLAN, 5, 4, greedy_model))
    assert [generate_item(PLAN, 5, number, greedy_model) for number in (3, 1)] == [items[3], items[1]]
    assert items[0] != generate_item(PLAN, 6, 0, greedy_model)
    for item in items:
        assert item_from_record(record_from_item(item)) == item
        assert msgspec.json.encode(record_from_item(item))


def test_gold_and_labels() -> None:
    for item in generate_items(PLAN, 8, 5, greedy_model):
        task, sealed = item.task, item.sealed
        assert sealed is not None
        assert not set(task.questions) & set(task.experiments)
        limit = fit_limit(sealed.optimum[0], task.tolerance.fit)
        assert limit is not None
        assert reference.broken_rule(sealed.gold, task) == ""
        assert reference.misfit(sealed.gold, task) <= limit
        assert model_size(sealed.gold) <= sealed.optimum[1] + 2
        outcome = solve_family(task)
        assert isinstance(outcome, Found)
        assert item.labels["members"] == str(outcome.value.count)
        tables = {tuple(reference.predict(m, task.setup, x) for x in task.questions) for m in outcome.value.models()}
        assert item.labels["behaviours"] == str(len(tables))
        assert item.labels["decided"] == ("yes" if len(tables) == 1 else "no")
        optimal = reference.misfit(greedy_model(task), task) == sealed.optimum[0]
        assert item.labels["greedy_optimal"] == ("yes" if optimal else "no")


def test_without_noise_gold_has_no_misfit() -> None:
    for item in generate_items(replace(PLAN, noise=0, missing=0), 1, 3):
        assert item.sealed is not None
        assert item.sealed.optimum[0] == reference.misfit(item.sealed.gold, item.task) == 0


def test_methods_answer_every_item() -> None:
    for item in generate_items(PLAN, 3, 2):
        task = item.task
        outcomes = {
            "exact": exact_rows.exact(task),
            "vote": exact_rows.vote(task),
            "posterior": exact_rows.posterior(task),
            "abstain": rows.abstain(task),
            "random": rows.random_model(task, 1),
            "greedy": rows.greedy(task),
            "genetic": rows.genetic(task, 1, GeneticPlan(generations=15)),
            "listed": rows.listed(task, [ListedModel(frozenset()), ListedModel(greedy_model(task), 3)]),
        }
        verdicts = {}
        for name, outcome in outcomes.items():
            assert isinstance(outcome, Found), name
            verdicts[name] = grade(item, answer_json(outcome.value))
            assert verdicts[name].error == "", name
        assert verdicts["exact"].optimal
        assert verdicts["abstain"].brier == 0.25
        briers = [verdicts[name].brier for name in ("vote", "posterior")]
        assert all(brier is not None for brier in briers)


def test_shares_and_votes_are_those_of_the_members() -> None:
    item = next(item for item in generate_items(PLAN, 4, 20) if item.labels["decided"] == "no")
    outcome = solve_family(item.task)
    assert isinstance(outcome, Found)
    members = list(outcome.value.models())
    posterior, vote = exact_rows.posterior(item.task), exact_rows.vote(item.task)
    assert isinstance(posterior, Found)
    assert isinstance(vote, Found)
    for question, shares, votes in zip(item.task.questions, posterior.value, vote.value, strict=True):
        texts = [reference.predict(model, item.task.setup, question) for model in members]
        for r, (share, majority) in enumerate(zip(shares, votes, strict=True)):
            ones = sum(text[r] == "1" for text in texts)
            assert share == ones / len(members)
            assert majority == float(2 * ones > len(members))


def test_fast_misfits_are_those_of_the_reference() -> None:
    for task in random_tasks(11, 30):
        costs = ModelCosts(task)
        for number, model in enumerate(reference.all_models(task)):
            assert costs.misfit(model) == reference.misfit(model, task)
            if number > 20:
                break


def test_local_search_and_the_genetic_algorithm_give_models_of_the_class() -> None:
    for task in random_tasks(12, 20):
        assert reference.broken_rule(greedy_model(task), task) == ""
        outcome = rows.genetic(task, 3, GeneticPlan(generations=5, population=12))
        assert isinstance(outcome, Found)
        assert reference.broken_rule(outcome.value, task) == ""


def test_a_plan_that_is_refused() -> None:
    with pytest.raises(LogicError, match="plan: readouts: 1 to nodes"):
        LogicPlan(nodes=3, readouts=4)
