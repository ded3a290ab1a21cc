"""A disclosure that is defined here alone: everything that solves, counts, scores and guesses takes it as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from random import Random

import pytest

from calibrant.baselines.replayscm.fit import staged_search
from calibrant.baselines.replayscm.rows import copy_parent, first_found, random_legal
from calibrant.baselines.replayscm.structure import bnlearn_candidates, exact_mbde_candidates
from calibrant.bench.replayscm.pages import instance_text
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import Disclosure, KnownRoots, Names
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.prompt import prompt
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.submission import illegality
from calibrant.solvers.outcome import Found, Impossible
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.oracles.members_by_sat import sat_members
from tests.support.replayscm.brute_force import families, optimum, root_hypotheses
from tests.support.replayscm.random_problems import small_problems

MOST = 2  # parents of a mechanism


@dataclass(frozen=True)
class Skeleton(KnownRoots):
    """Which pairs of variables may be linked, in neither direction.

    links: unordered pairs
    """

    variables: Names
    roots: Names
    links: frozenset[frozenset[str]]

    label = "Skeleton"
    order = None
    blocks = None

    def admissible_parents(self, variable: str) -> frozenset[str]:
        return frozenset(u for u in self.variables if frozenset({u, variable}) in self.links and u != variable)


def tasks(seed: int, number: int) -> Iterator[Problem]:
    """Small problems, told as a skeleton that lacks one link or two."""
    for index, problem in enumerate(small_problems(seed, number)):
        known = problem.task.disclosure.roots
        if known is not None:
            rng, variables = Random(index), problem.task.variables
            links = [frozenset({u, v}) for i, u in enumerate(variables) for v in variables[:i]]
            kept = frozenset(rng.sample(links, len(links) - rng.randint(1, 2)))
            disclosure: Disclosure = Skeleton(variables, known, kept)
            yield replace(problem, task=replace(problem.task, disclosure=disclosure))


def test_the_solver_and_the_version_space_agree_with_brute_force_under_it() -> None:
    solved = 0
    for problem in tasks(71, 160):
        task = problem.task
        hypotheses = root_hypotheses(task)
        best, outcome = optimum(task, MOST, hypotheses), solve(task, max_parents=MOST)
        assert isinstance(outcome, Impossible if best is None else Found)
        if best is not None and isinstance(outcome, Found):
            solved += 1
            assert outcome.value.size == best.size
            assert Evaluator(problem).score_answer(answer(outcome.value.model)).valid
        members = sum(family.num_members for family in families(task, MOST, hypotheses))
        assert VersionSpace(task, ModelClass(MOST)).count == members
    assert solved >= 20


def test_sat_finds_the_members_under_it() -> None:
    several = 0
    for problem in tasks(72, 40):
        members = VersionSpace(problem.task, ModelClass(MOST)).count
        assert sum(1 for _ in islice(sat_members(problem.task, ModelClass(MOST)), 4)) == min(members, 4)
        several += members >= 2
    assert several >= 5


ROWS: dict[str, Callable[[Task], object]] = {
    "first-found": first_found,
    "staged": staged_search,
    "bnlearn+dsl": lambda task: next(bnlearn_candidates(task), None),
    "exact-mbde+dsl": lambda task: next(exact_mbde_candidates(task), None),
}


@pytest.mark.parametrize("name", ROWS)
def test_baselines_find_train_exact_models_that_it_admits(name: str) -> None:
    found = 0
    for problem in list(tasks(73, 40))[:15]:
        said = ROWS[name](problem.task)
        model = said if isinstance(said, Scm) else getattr(said, "model", None)
        if isinstance(model, Scm):
            found += 1
            assert illegality(problem.task, model) is None
            assert replays_exactly(model, problem.task.training.worlds)
    assert found >= 3


def test_rows_without_search_obey_it() -> None:
    made = [row for problem in tasks(74, 60) for row in (random_legal(problem.task, 1), copy_parent(problem.task))]
    assert sum(row is not None for row in made) >= 20  # each of them was judged by it before it was returned


def test_a_mention_that_it_forbids_is_refused_with_the_reason() -> None:
    problem = next(tasks(75, 40))
    task, told = problem.task, problem.task.disclosure
    child = next(v for v in told.endogenous if len(told.admissible_parents(v)) < len(task.variables) - 1)
    parent = next(u for u in task.variables if u != child and u not in told.admissible_parents(child))
    texts = {v: render_any(task, v) for v in task.disclosure.endogenous} | {child: parent}
    score = Evaluator(problem).score_answer({"mechanisms": texts})
    assert score.rejection is not None
    assert score.rejection.stage == "legal"


def render_any(task: Task, variable: str) -> str:
    return min(task.disclosure.admissible_parents(variable), default=variable)


def answer(model: Scm) -> dict[str, object]:
    return {"mechanisms": {v: render(mechanism) for v, mechanism in model.mechanisms.items()}}


def test_it_can_be_shown() -> None:
    problem = next(tasks(76, 8))
    assert "order       hidden" in instance_text(problem)
    assert "Topological order: not told" in prompt(problem.task)
