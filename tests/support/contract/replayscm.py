"""ReplaySCM under the contract. An item has no actions: its evidence grows world by world, without outcomes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from calibrant.audits.replayscm.ambiguity import gold_class
from calibrant.bench.core.registry import bundled_pools
from calibrant.bench.protocols import protocols_of
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools import files
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.solvers.outcome import Found
from calibrant.solvers.replayscm.exact import solve
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.contract.subject import Evidence, Settled, Subject
from tests.support.replayscm import brute_force
from tests.support.replayscm.random_problems import small_problems


class ReplayScm(Subject):
    name = "replayscm"
    interactive = False
    settles = 5

    def items(self) -> Sequence[Problem]:
        return _bundled()

    def every(self) -> Sequence[Problem]:
        return _bundled()

    def small(self) -> Sequence[Problem]:
        return _small()

    def evidence(self, item: Problem, choices: Sequence[int]) -> Evidence:
        worlds = item.sealed.heldout.worlds
        return [(world, None) for world in (worlds[choice % len(worlds)] for choice in choices[:2] if worlds)]

    def space(self, item: Problem) -> VersionSpace:
        gold = item.sealed.gold
        return VersionSpace(item.task, ModelClass(3) if gold is None else gold_class(item))

    def after(self, space: VersionSpace, experiment: Any, reading: Any) -> VersionSpace:
        return space.with_worlds([experiment])

    def truth_fits(self, item: Problem, space: VersionSpace) -> bool:
        gold = item.sealed.gold
        assert gold is not None
        given = space.given_roots(gold.roots)
        has_parents = [
            given.parent_set_marginals(variable).get(local.parents, 0) > 0
            for variable, local in gold.local_functions.items()
        ]
        return first_mismatch(gold, item.worlds) is None and all(has_parents)

    def listed(self, item: Problem, evidence: Evidence) -> int:
        assert not evidence, "problems of the oracle have no held-out worlds"
        families = brute_force.families(item.task, 3, brute_force.root_hypotheses(item.task))
        return sum(family.num_members for family in families)

    def settled(self) -> Iterator[Settled]:
        for problem in small_problems(61, 80):
            task = problem.task
            found = [
                member
                for family in brute_force.families(task, 3, brute_force.root_hypotheses(task))
                for member in islice(brute_force.members(family), 2)
            ]
            outcome = solve(task)
            if len(found) == 1 and isinstance(outcome, Found):
                roots, mechanisms = found[0]
                scm = outcome.value.model
                functions = {v: (f.parents, f.table.bits) for v, f in scm.local_functions.items()}
                answer = protocols_of(self.benchmark)["exact"]().answer(task).answer
                left = roots, {v: (parents, bits) for v, parents, bits in mechanisms}
                best = answer is not None and Evaluator(problem).score_answer(answer).train_exact
                yield Settled(problem.id, left, (tuple(scm.roots), functions), best)
            elif len(found) == 1:
                yield Settled(problem.id, found[0], None, False)

    def right(self, item: Problem, text: str) -> bool:
        return Evaluator(item).score_text(text).correct is True


@cache
def _bundled() -> tuple[Problem, ...]:
    return tuple(problem for path in bundled_pools() for problem in files.read_pool(path).problems[:2])


@cache
def _small() -> tuple[Problem, ...]:
    return tuple(small_problems(62, 40))
