"""Instances of 20 and 40 variables: the same gates as in ten, and files, prompts, replay and scores for them."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from calibrant.audits.replayscm.generation.generate import Generated, generate
from calibrant.audits.replayscm.generation.plans import plan_for
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.scms import shortest_sizes
from calibrant.dsl.replayscm.generation.strata import LARGE_STRATA, NAMED_STRATA, stratum
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.prompt import prompt
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Panel, World

TWENTY, FORTY = stratum("large_n20"), stratum("large_n40")


@cache
def twenty() -> Generated:
    return generate(TWENTY, 0)


@cache
def forty() -> Problem:
    return sample_problem(FORTY, 0)


def problems() -> list[Problem]:
    return [twenty().problem, forty()]


def test_worlds_grow_with_the_variables_and_nothing_else_does() -> None:
    ten = next(known for known in NAMED_STRATA if known.name == "vhs_n10_anchor_m10")
    assert [(s.num_variables, s.num_worlds) for s in LARGE_STRATA] == [
        (12, 10), (14, 12), (16, 13), (20, 16), (30, 24), (40, 32)
    ]  # fmt: skip
    for known in LARGE_STRATA:
        assert (known.num_units, known.max_parents, known.sizes) == (10, 4, ten.sizes)
        assert (known.max_survivors, known.exposure) == (0, ten.exposure)
        assert plan_for(known).iterations == -(-12 * known.num_worlds // 8)


def shortcuts_left(problem: Problem) -> dict[str, list[int]]:
    """Functions of a variable's window that fit all its rows and have a formula of three to five nodes, below gold's.

    Rows are read one by one; the functions are those of dsl.replayscm.generation.scms, with tests of their own.
    """
    gold, order = problem.sealed.gold, problem.sealed.latent_order
    assert gold is not None
    left: dict[str, list[int]] = {}
    for variable in gold.endogenous:
        place = order.index(variable)
        window = order[max(0, place - 4) : place]
        shown = {
            (sum(row[u] << i for i, u in enumerate(window)), row[variable])
            for world in problem.task.training.worlds
            if variable not in world.intervention.targets
            for row in world.rows()
        }
        cap = min(5, gold.mechanisms[variable].size - 1)
        small = [bits for bits, size in shortest_sizes(len(window), 5).items() if size <= cap and cap >= 3]
        left[variable] = [bits for bits in small if all(bits >> pattern & 1 == value for pattern, value in shown)]
    return left


@pytest.mark.parametrize("size", [20, 40])
def test_no_small_formula_over_the_window_explains_a_variable(size: int) -> None:
    (problem,) = (one for one in problems() if len(one.task.variables) == size)
    assert not any(shortcuts_left(problem).values())
    fewer = replace(problem.task, training=Panel(problem.task.variables, problem.task.training.worlds[:3]))
    assert any(shortcuts_left(replace(problem, task=fewer)).values())


def test_gold_replays_and_no_two_worlds_share_their_intervention() -> None:
    for problem, known in zip(problems(), (TWENTY, FORTY), strict=True):
        gold = problem.sealed.gold
        assert gold is not None
        assert replays_exactly(gold, problem.worlds)
        assert len({world.intervention.signature for world in problem.worlds}) == len(problem.worlds)
        assert len(problem.sealed.heldout.worlds) == known.num_worlds
        assert len(problem.task.training.worlds) - known.num_worlds in range(4)
        varying(problem, gold.endogenous)


def varying(problem: Problem, endogenous: tuple[str, ...]) -> None:
    def values(world: World, variable: str) -> set[int]:
        return set() if variable in world.intervention.targets else {row[variable] for row in world.rows()}

    for variable in endogenous:
        assert set().union(*(values(world, variable) for world in problem.task.training.worlds)) == {0, 1}


def test_the_audit_of_twenty_variables_counts_exactly() -> None:
    """Gold is among them; nothing had to be bounded, and the record says nothing of bounds."""
    audit = twenty().audit.final
    assert audit.counts.keys() == {3, 4, 5}
    assert 1 <= audit.counts[4] < audit.counts[5]
    assert "bounds" not in twenty().audit.to_dict()["final"]


def test_files_prompts_and_scores_of_forty_variables(tmp_path: Path) -> None:
    problem = forty()
    gold = problem.sealed.gold
    assert gold is not None
    write_pool(Pool("large", (problem,), {}), tmp_path / "pool.jsonl")
    (read,) = read_pool(tmp_path / "pool.jsonl").problems
    assert read.task == problem.task
    told = prompt(read.task)
    row = problem.task.training.worlds[-1].row(9)
    assert " ".join(f"{v}={row[v]}" for v in problem.task.variables) in told
    mechanisms = {v: str(formula) for v, formula in gold.mechanisms.items()}
    verdict = Evaluator(read).score_text(json.dumps({"mechanisms": mechanisms}))
    assert verdict.correct
    last = gold.endogenous[-1]
    wrong = Evaluator(read).score_answer({"mechanisms": {**mechanisms, last: f"(not {mechanisms[last]})"}})
    assert wrong.valid
    assert not wrong.train_exact
