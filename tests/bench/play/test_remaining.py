"""Hypotheses that were open at an answer: the lists are those of plain enumeration by each benchmark's reference."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.report.capabilities import REMAINING, Remaining
from calibrant.dsl.blickets.episode import steps_with_state
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import Plan, generate_items
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.causim.model import run, shown_value
from calibrant.dsl.causim.question import project
from calibrant.dsl.causim.reference import worlds
from calibrant.dsl.episode import Step
from calibrant.dsl.formulas.text import parse_infix
from calibrant.dsl.logic import reference as logic_reference
from calibrant.dsl.logic.item import LogicItem, model_texts
from calibrant.dsl.replayscm.episode import ScmEpisode, steps_evidence, task_class
from calibrant.dsl.replayscm.extensions.reference import likelihood, posterior_weights
from calibrant.dsl.replayscm.scm import LocalFunction, local_function
from calibrant.solvers.blickets.conditions import MAX_SWITCH
from calibrant.solvers.causalab.evidence import evidence_of
from tests.support.benchmarks.blickets import all_orders, lights, lights_in_order, named_rules, switchers
from tests.support.benchmarks.causalab import members_by_reference
from tests.support.benchmarks.logic import random_tasks
from tests.support.play.right_lines import POOLS
from tests.support.replayscm.brute_force import each_member
from tests.support.replayscm.extensions import small_problem as small_extended
from tests.support.replayscm.random_problems import small_problems

EVERYTHING = 10**6
NAMES = tuple(f"{letter}{number}" for letter in "XH" for number in range(13))


def remaining(name: str, item: Any, steps: Sequence[Step[Any]] = (), limit: int = EVERYTHING) -> Remaining:
    listed = benchmark(name).require(REMAINING)(item, steps, limit)
    assert listed is not None
    assert listed.count == sum(entry.number for entry in listed.listed) + listed.num_unlisted
    assert len({entry.text for entry in listed.listed}) == len(listed.listed) <= limit
    return listed


def numbers(listed: Remaining) -> dict[str, int]:
    assert listed.num_unlisted == 0
    return {entry.text: entry.number for entry in listed.listed}


# --- detectors --------------------------------------------------------------------------------------------------------


def _detector(name: str, moves: str) -> tuple[Any, list[tuple[tuple[str, ...], bool]], Sequence[Step[Any]]]:
    """Return item, what lay on the detector and whether it lit at each reading, and the steps."""
    bench = benchmark_of(POOLS["blickets"])
    item = next(item for item in bench.items.read_pool(POOLS["blickets"]).items if item.id == name)
    episode = bench.play.open(item)
    for move in moves.split():
        episode.act({"place" if move[0] == "+" else "remove": move[1:]})
    readings = [
        (tuple(item.task.objects[k] for k in placed), step.reading != "INACTIVE")
        for placed, step in steps_with_state(item.task, episode.steps)
        if step.reading is not None
    ]
    return item, readings, episode.steps


def _words(rule: tuple[str, frozenset[str]]) -> str:
    return f"{'conjunctive' if rule[0] == 'all' else 'disjunctive'} {' '.join(sorted(rule[1]))}"


@pytest.mark.parametrize("moves", ["", "+A", "+A +B -A", "+A +B +C +D +E"])
@pytest.mark.parametrize("name", ["conjunctive-20-0", "disjunctive-20-0"])
def test_rules_of_one_detector(name: str, moves: str) -> None:
    item, readings, steps = _detector(name, moves)
    rules = named_rules(item.task.objects)
    fitting = {_words(rule): 1 for rule in rules if all(lights(rule, on) == lit for on, lit in readings)}
    assert numbers(remaining("blickets", item, steps)) == fitting


def test_orders_and_rules_that_switch() -> None:
    item, readings, steps = _detector("order-2-of-4-20-0", "+A +B +C -A +A")
    orders = [
        order
        for order in all_orders(item.task.objects)
        if all(
            lights_in_order(order, on, contiguous=item.task.order_reading == "contiguous") == lit
            for on, lit in readings
        )
    ]
    texts = {f"conjunctive, placed in the order {' '.join(order)}": 1 for order in orders}
    assert numbers(remaining("blickets", item, steps)) == texts
    item, readings, steps = _detector("easy-3-20-0", "+A +B +C +D +E -A -B +A")
    in_force: Counter[str] = Counter()
    for member in switchers(item.task.objects, MAX_SWITCH):
        activations = 0
        for on, lit in readings:
            if lights(member.rule(activations), on) != lit:
                break
            activations += lit
        else:
            in_force[_words(member.rule(activations))] += 1
    listed = remaining("blickets", item, steps)
    assert numbers(listed) == in_force
    assert listed.by == "by the rule in force at the end"


def test_noisy_rules_come_by_their_probability() -> None:
    item, readings, steps = _detector("stochastic-20-0", "+A +B +C -A +D +E")
    weights: dict[str, Fraction] = {}
    for rule in named_rules(item.task.objects):
        weight = Fraction(0)
        for tenths in (5, 6, 7, 8, 9):
            chance = Fraction(1)
            for on, lit in readings:
                heard = Fraction(tenths, 10) if lights(rule, on) else Fraction(0)
                chance *= heard if lit else 1 - heard
            weight += chance
        if weight:
            weights[_words(rule)] = weight
    listed = remaining("blickets", item, steps)
    total = sum(weights.values())
    assert {e.text: e.posterior for e in listed.listed} == pytest.approx(
        {t: float(w / total) for t, w in weights.items()}
    )
    shares = [entry.posterior or 0 for entry in listed.listed]
    assert shares == sorted(shares, reverse=True)


# --- the others -------------------------------------------------------------------------------------------------------


def test_mechanisms_of_a_laboratory() -> None:
    for item in generate_items(Plan("3nodes", 3), 11, 2):
        episode = LabEpisode(item)
        episode.act({"set": item.task.properties[0], "value": 20})
        expected = members_by_reference(evidence_of(item.task, episode.steps), bounded=False)
        listed = remaining("causalab", item, episode.steps)
        assert {_mechanism(text) for text in numbers(listed)} == expected
        sizes = [len(_mechanism(entry.text)[1]) for entry in listed.listed]
        assert sizes == sorted(sizes)


def _mechanism(text: str) -> tuple[float, tuple[Any, ...]]:
    """Return base and terms of a mechanism in words."""
    edges, _, base = text.partition(f", base of {FREQUENCY} ")
    terms = [] if edges == "no edges" else [re.fullmatch(r"(\w+) -> (\w+) (\d)", edge) for edge in edges.split(", ")]
    return float(base.partition(":")[0]), tuple(sorted((m[2], m[1], 1, float(m[3])) for m in terms if m))


def test_answers_of_worlds() -> None:
    bench = benchmark_of(POOLS["causim"])
    for item in bench.items.read_pool(POOLS["causim"]).items[:6]:
        model, question = item.task.model, item.task.question
        keys = [key for key in question.required_keys(model) if key not in question.do]
        expected: Counter[str] = Counter()
        for noise, _ in worlds(model, question.fixed):
            factual = run(model, noise, {})
            if all(factual[name] == value for name, value in question.observed.items()):
                answer = project(question, model, noise, run(model, noise, question.do))
                expected[", ".join(f"{key} = {shown_value(answer[key])}" for key in keys)] += 1
        assert numbers(remaining("causim", item)) == expected


def test_models_of_logic() -> None:
    for index, task in enumerate(random_tasks(5, 12)):
        expected = [model for _, _, model in logic_reference.family(task)]
        item = LogicItem(f"item-{index}", task, None)
        listed = remaining("logic", item)
        assert {frozenset(text.split("; ")) for text in numbers(listed)} == {
            frozenset(model_texts(model) or ("no clause: every node is 0",)) for model in expected
        }
        assert remaining("logic", item, limit=1).num_unlisted == len(expected) - 1


def _functions(text: str, problem: Any) -> tuple[frozenset[str] | None, dict[str, LocalFunction]]:
    """Return roots, where stated, and local functions of an SCM in words."""
    parts = text.split("; ")
    roots = frozenset(parts.pop(0).removeprefix("roots ").split()) if parts[0].startswith("roots ") else None
    pairs = (part.split(" = ", 1) for part in parts)
    return roots, {name: _function(formula, problem) for name, formula in pairs}


def _function(text: str, problem: Any) -> LocalFunction:
    if text.startswith("always "):
        variable = problem.task.variables[0]
        operator = "iff" if text.endswith("1") else "xor"
        text = f"{variable} {operator} {variable}"
    return local_function(parse_infix(text, problem.task.grammar, NAMES))


def test_scms_that_fit_the_worlds() -> None:
    sizes = []
    for problem in small_problems(3, 12):
        expected = {
            (frozenset(roots) if problem.task.disclosure.roots is None else None, frozenset(mechanisms))
            for roots, mechanisms in each_member(problem.task, 4)
        }
        if not expected or len(expected) > 2_000:
            continue
        texts = [*numbers(remaining("replayscm", problem))]
        stated = [_functions(text, problem) for text in texts]
        listed = {
            (roots, frozenset((v, f.parents, f.table.bits) for v, f in functions.items()))
            for roots, functions in stated
        }
        assert listed == expected
        sizes.append(len(expected))
    assert len(sizes) > 5
    assert max(sizes) > 100


@pytest.mark.parametrize("rate", [None, "1/10"])
def test_scms_that_fit_an_episode(rate: str | None) -> None:
    for seed in range(1 if rate else 3):
        problem, steps = _episode(seed, rate=rate)
        weights = {
            frozenset(member.items()): weight
            for member, weight in posterior_weights(task_class(problem.task), steps_evidence(steps))
            if weight
        }
        listed = remaining("replayscm", problem, steps)
        members = [frozenset(_functions(entry.text, problem)[1].items()) for entry in listed.listed]
        assert listed.count == len(weights)
        if rate is None:
            assert set(members) == weights.keys()
            assert listed.num_unlisted == 0
        else:
            (best,) = members
            assert weights[best] == max(weights.values())
            assert listed.listed[0].posterior == pytest.approx(float(weights[best] / sum(weights.values())))


def test_scms_with_hidden_variables_replay_every_row() -> None:
    """The reference replays them one by one: to enumerate the class would take half a minute."""
    problem, steps = _episode(0, num_hidden=1)
    scm_class, evidence = task_class(problem.task), steps_evidence(steps)
    listed = remaining("replayscm", problem, steps)
    assert 10 < len(listed.listed) == listed.count
    for entry in listed.listed[:200]:
        member = _functions(entry.text, problem)[1]
        assert likelihood(scm_class, member, evidence, dict.fromkeys(scm_class.endogenous, Fraction(0))) == 1
    first = remaining("replayscm", problem, steps, 10)
    assert (len(first.listed), first.num_unlisted) == (10, listed.count - 10)
    assert {entry.text for entry in first.listed} <= {entry.text for entry in listed.listed}


def _episode(seed: int, *, rate: str | None = None, num_hidden: int = 0) -> tuple[Any, Sequence[Step[Any]]]:
    problem = small_extended(seed, rate=rate, num_hidden=num_hidden)
    episode = ScmEpisode(problem)
    for name in problem.task.variables[:2]:
        episode.act({"do": {name: 1}})
    return problem, episode.steps
