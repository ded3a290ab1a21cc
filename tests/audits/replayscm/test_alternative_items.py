"""Alternative-SCM items: both members fit, they differ, an experiment separates them, and the protocol solves them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from calibrant.audits.replayscm.alternative_items import KnownPair, alternative_item, known_pair
from calibrant.audits.replayscm.generation.generate import generate
from calibrant.dsl.formulas.text import STANDARD, parse, render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.generation.problems import disclose_problem
from calibrant.dsl.replayscm.generation.strata import STRATA, Stratum
from calibrant.dsl.replayscm.item import Pool, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator, Score
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.alternative import AlternativeAnswer, find_alternative
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.oracles import replay
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.written import written_problem, written_scm

SETTINGS = ("ordered", "block", "hidden-order")
CASES = [(s, setting, seed) for s in STRATA for setting in SETTINGS for seed in (0, 1)]
EVERY_ITEM = pytest.mark.parametrize(
    ("known", "setting", "seed"), CASES, ids=[f"{s.name}-{setting}-{seed}" for s, setting, seed in CASES]
)


@cache
def source(known: Stratum, setting: str, seed: int) -> Problem:
    return disclose_problem(generate(known, seed).problem, setting)


@cache
def pair(known: Stratum, setting: str, seed: int) -> KnownPair:
    found = known_pair(source(known, setting, seed), seed)
    assert found is not None
    return found


def submitted(answer: AlternativeAnswer) -> dict[str, object]:
    return {
        "alternative": {"mechanisms": {v: render(mechanism) for v, mechanism in answer.model.mechanisms.items()}},
        "experiment": answer.separation.experiment.to_dict(),
        "witness": dict(answer.witness),
    }


def assert_joint_and_best(score: Score) -> None:
    assert score.alternative is not None
    assert (score.failure, score.correct, score.alternative.optimality) == (None, True, 1.0)


@EVERY_ITEM
def test_gold_is_one_of_two_members_that_differ(known: Stratum, setting: str, seed: int) -> None:
    found, problem = pair(known, setting, seed), source(known, setting, seed)
    gold = problem.sealed.gold
    assert gold is not None
    assert {"gold": found.reference, "alternative": found.counterpart}[found.reference_role] is gold
    assert any(found.reference.local_functions[v] != found.counterpart.local_functions[v] for v in gold.endogenous)
    for member in (found.reference, found.counterpart):
        assert replays_exactly(member, problem.task.training.worlds)
        assert problem.task.disclosure.violation(member.mechanisms) is None


@EVERY_ITEM
def test_the_known_answer_and_the_protocols_answer_succeed_jointly(known: Stratum, setting: str, seed: int) -> None:
    found = pair(known, setting, seed)
    evaluator = Evaluator(found.problem)
    assert_joint_and_best(evaluator.score_answer(found.answer))
    answer = find_alternative(found.problem.task)
    assert isinstance(answer, Found)
    assert_joint_and_best(evaluator.score_answer(submitted(answer.value)))


@EVERY_ITEM
def test_an_item_is_its_source_with_a_reference(known: Stratum, setting: str, seed: int) -> None:
    problem = source(known, setting, seed)
    item = alternative_item(problem, seed)
    assert item == pair(known, setting, seed).problem
    assert item is not None
    assert item.id == f"{problem.id}__ALT_EXP"
    assert item.setting == f"Alt-{problem.setting}"
    assert replace(item.task, kind=TaskKind.SCM, reference=None) == problem.task
    assert replace(item.sealed, labels=problem.sealed.labels) == problem.sealed
    assert_joint_and_best(Evaluator(item).score_answer(json.loads(item.sealed.labels["known_answer"])))


def test_both_roles_occur_and_the_seed_decides() -> None:
    roles = Counter(pair(*case).reference_role for case in CASES)
    assert roles.keys() == {"gold", "alternative"}
    assert min(roles.values()) > len(CASES) / 4
    problem = source(STRATA[4], "ordered", 0)
    made = [known_pair(problem, seed) for seed in range(12)]
    assert made == [known_pair(problem, seed) for seed in range(12)]
    assert len({found.reference_role for found in made if found}) == 2
    assert len({str(found.answer) for found in made if found}) > 4


def test_items_of_the_shared_pool_survive_their_file(tmp_path: Path) -> None:
    problems = dev_problems("ordered")[::9]
    items = tuple(item for item in (alternative_item(problem, 1) for problem in problems) if item)
    assert len(items) == len(problems)
    write_pool(Pool("alternatives", items), tmp_path / "items.jsonl")
    assert read_pool(tmp_path / "items.jsonl").problems == items


def determined() -> Problem:
    """X4 = xor(X1, X2, X3), shown for all values of the roots: no second SCM fits."""
    names = ("X1", "X2", "X3", "X4")
    columns = (0b10101010, 0b11001100, 0b11110000, 0b10010110)
    world = World("train_00", Intervention(), names, tuple(f"u{i:02d}" for i in range(8)), columns)
    gold = scm(("X1", "X2", "X3"), {"X4": parse("(xor X1 X2 X3)")})
    task = Task(TaskKind.SCM, HiddenOrder(names, names[:3]), STANDARD, Panel(names, (world,)), True, 0)
    return Problem("determined", task, Sealed(gold, gold.size, Panel(names, ()), names))


def test_no_item_where_gold_is_the_only_member() -> None:
    assert alternative_item(determined(), 0) is None


def test_problems_that_can_have_no_pair_are_refused() -> None:
    problem = determined()
    item = pair(STRATA[1], "ordered", 0).problem
    hidden = disclose_problem(generate(STRATA[1], 0).problem, "hidden-roots")
    for wrong in (replace(problem, sealed=replace(problem.sealed, gold=None)), item, hidden):
        with pytest.raises(ValueError, match="has no gold SCM, hides its roots or has a reference"):
            known_pair(wrong, 0)


def test_none_is_claimed_only_where_no_other_member_fits() -> None:
    """One SCM of one-parent mechanisms fits, D differs from the reference's only at A, B, C = 1, 0, 1.

    No intervention on a single variable leads there, so it is no answer; but it is a second SCM that fits.
    """
    reference = written_scm("A", B="A", C="B", D="(and A (or B (not C)))")
    interventions = [Intervention({v: bit}) for v in "ABCD" for bit in (0, 1)]
    worlds = [
        World(f"train_{i:02d}", do, reference.variables, ("u0", "u1"), columns_of(reference, do))
        for i, do in enumerate([Intervention(), *interventions])
    ]
    disclosure = HiddenOrder(reference.variables, reference.roots)
    problem = written_problem(disclosure, reference, worlds, kind=TaskKind.ALTERNATIVE, reference=reference)
    assert VersionSpace(problem.task, ModelClass(1)).count == 1
    assert isinstance(find_alternative(problem.task, max_parents=1), OutOfBudget)
    twin = written_scm("A", B="A", C="B", D="A")
    problem = written_problem(disclosure, twin, worlds, kind=TaskKind.ALTERNATIVE, reference=twin)
    assert isinstance(find_alternative(problem.task, max_parents=1), Impossible)


def columns_of(model: Scm, intervention: Intervention) -> tuple[int, ...]:
    """Return packed columns of two units, A = 0 and A = 1."""
    rows = [replay(model, intervention, {"A": a}.__getitem__) for a in (0, 1)]
    return tuple(sum(row[v] << unit for unit, row in enumerate(rows)) for v in model.variables)
