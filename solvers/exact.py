"""The complete solver: a train-exact SCM of least total formula size, with proof that none is smaller.

Because a map is train-exact iff every mechanism reproduces the observed rows in which its variable is not clamped, the
problem falls apart: per variable the parent sets that determine its column and a least formula over each, then the
acyclic, admissible choice of least total size. Formula sizes that are hard to find are only bounded from below at
first; a choice is final once everything it uses is exact, because every other choice costs at least its bound.

Class of the claim: every mechanism mentions at most `max_parents` variables and uses the allowed operators.
Ties between choices of equal total size: fewest mentions, then the smallest root set, then the smallest parent sets
(variables in natural order, sets compared as numbers with bit i for variable i); between formulas over one parent set
the rule of solvers.synthesis.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace
from typing import Any

from dsl.disclosure import HiddenRoots, Ordered
from dsl.formula import Formula, constant
from dsl.partial import PartialTable
from dsl.problem import Task
from dsl.reference import first_mismatch
from dsl.scm import Scm
from solvers.budget import Budget
from solvers.outcome import Found, Impossible, OutOfBudget
from solvers.parents import ParentSearch, ParentSet
from solvers.roots import nested_variables, root_sets
from solvers.structure import Cost, Mask, best_structure
from solvers.synthesis import LeastSize, least_formula

MAX_STATES = 200_000_000  # candidate functions that formula search may try in all; far above what pools need
_COUNT_BITS = 16  # of the tie-break: a problem mentions fewer than 2**16 parents


@dataclass(frozen=True)
class ExactAnswer:
    """A train-exact SCM of least total size in the class that `provenance` names."""

    model: Scm
    size: int
    provenance: Mapping[str, Any] = field(default_factory=dict)


def solve(
    task: Task, *, max_parents: int = 5, nested_roots: bool | None = None, states: int | None = MAX_STATES
) -> Found[ExactAnswer] | Impossible | OutOfBudget:
    """Solve a task whose answer is an SCM (Ordered, Block, Hidden-order, Hidden-roots).

    max_parents: how many variables a mechanism may mention, 1 to 6
    nested_roots: in Hidden-roots, consider only root sets with nested columns; None means where units are shared
    states: how many candidate functions formula search may try before it gives up; None means no limit
    """
    return _Search(task, max_parents, nested_roots, Budget(states)).run()


TIE_RULE = "fewest mentions, then smallest parent sets in natural variable order (a root counts as the empty set)"


class _Search:
    """One run: options per variable, root hypotheses, and the loop that makes bounds exact where it matters."""

    def __init__(self, task: Task, max_parents: int, nested_roots: bool | None, budget: Budget) -> None:
        self.task = task
        self.budget = budget
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self.search = ParentSearch(task, max_parents)
        self.nested = task.shares_units if nested_roots is None else nested_roots
        self.options: dict[int, dict[Mask, ParentSet]] = {}
        self.refiners: dict[tuple[int, Mask], LeastSize] = {}

    def run(self) -> Found[ExactAnswer] | Impossible | OutOfBudget:
        note = "not needed: the roots are disclosed"
        if not isinstance(self.task.disclosure, HiddenRoots):
            hypotheses = [self.task.disclosure.roots]
            return self._least(hypotheses, note) or self._impossible(hypotheses)
        hypotheses = list(root_sets(self.task.variables, self.task.disclosure.root_count))
        if self.nested:
            able = set(nested_variables(self.task))
            kept = [roots for roots in hypotheses if able.issuperset(roots)]
            outcome = self._least(kept, "only root sets with nested columns")
            if outcome:
                return outcome
            note = "no root set with nested columns fits, so all were considered"
        else:
            note = "not used"
        return self._least(hypotheses, note) or self._impossible(hypotheses)

    def _impossible(self, hypotheses: list[tuple[str, ...]]) -> Impossible:
        return Impossible(
            f"no acyclic admissible choice of parent sets of at most {self.search.max_parents} variables determines "
            f"every observed column ({len(hypotheses)} root sets tried)"
        )

    def _least(self, hypotheses: Iterable[tuple[str, ...]], note: str) -> Found[ExactAnswer] | OutOfBudget | None:
        """The optimum over these root sets; None if none of them admits any choice."""
        queue = [choice for roots in hypotheses if (choice := self._choose(roots))]
        considered = len(queue)
        heapify(queue)
        while queue:
            _, roots, chosen = queue[0]
            open_sets = [(v, mask) for v, mask in chosen if self.options[v][mask].size is None]
            if not open_sets:
                return self._certified(roots, dict(chosen), note, considered)
            decided = [self._refine(variable, mask) for variable, mask in open_sets]
            if self.budget.exhausted or not all(decided):
                size = sum(self.options[v][mask].at_least for v, mask in chosen)
                return OutOfBudget(f"every train-exact SCM of the class has total size at least {size}", size)
            again = self._choose(roots)
            if again is None:
                heappop(queue)
            else:
                heapreplace(queue, again)
        return None

    def _choose(self, roots: tuple[str, ...]) -> tuple[Cost, tuple[str, ...], tuple[tuple[int, Mask], ...]] | None:
        """The cheapest choice under one root set, by what is known of the sizes so far."""
        known = sum(1 << self.index[root] for root in roots)
        endogenous = [v for v in self.task.variables if v not in roots]
        for variable in endogenous:
            if self.index[variable] not in self.options:
                self.options[self.index[variable]] = self._options(variable)
        costs = {
            self.index[v]: {
                mask: self._cost(self.index[v], option) for mask, option in self.options[self.index[v]].items()
            }
            for v in endogenous
        }
        if not all(costs.values()):
            return None
        if isinstance(self.task.disclosure, Ordered):  # only earlier variables are candidates: nothing can be cyclic
            chosen = {v: min(options, key=options.__getitem__) for v, options in costs.items()}
            return sum(costs[v][mask] for v, mask in chosen.items()), roots, tuple(chosen.items())
        best = best_structure(costs, known)
        return None if best is None else (best[0], roots, tuple(sorted(best[1].items())))

    def _options(self, variable: str) -> dict[Mask, ParentSet]:
        candidates = [self.index[u] for u in self.task.disclosure.admissible_parents(variable)]
        options = {option.mask: option for option in self.search.parent_sets(self.index[variable], candidates)}
        if self.task.grammar.allow_constants:
            training = self.task.training
            scored = training.all_rows & ~training.clamped[variable]
            ones = training.columns[variable] & scored
            if ones in (0, scored):
                options[0] = ParentSet(0, PartialTable(0, int(scored > 0), int(ones > 0)), 1, 1)
        return options

    def _cost(self, variable: int, option: ParentSet) -> Cost:
        """Size, then mentions, then the parent sets as one number with the first variable's most significant."""
        n = len(self.index)
        rank = option.mask << (n * (n - 1 - variable))
        return (option.at_least << _COUNT_BITS | option.mask.bit_count()) << (n * n) | rank

    def _refine(self, variable: int, mask: Mask) -> bool:
        """Test the next size of one option; False if that is out of the search's reach."""
        option = self.options[variable][mask]
        refiner = self.refiners.get((variable, mask))
        if refiner is None:
            refiner = self.refiners[variable, mask] = LeastSize(option.table, self.task.grammar.operators)
        if not refiner.in_reach:
            return False
        refiner.advance(self.budget)
        if not refiner.possible:
            del self.options[variable][mask]
            return True
        option.at_least = max(option.at_least, refiner.lower_bound)
        option.size = refiner.size
        return True

    def _certified(
        self, roots: tuple[str, ...], chosen: Mapping[int, Mask], note: str, sets: int
    ) -> Found[ExactAnswer]:
        """The answer, once the reference has replayed it on every training row."""
        variables = self.task.variables
        mechanisms = {variables[v]: self._formula(self.options[v][mask]) for v, mask in chosen.items()}
        model = Scm(roots, mechanisms)
        disclosure = self.task.disclosure
        judge = disclosure.given_roots(roots) if isinstance(disclosure, HiddenRoots) else disclosure
        size = sum(self.options[v][mask].at_least for v, mask in chosen.items())
        wrong = judge.violation(mechanisms) or first_mismatch(model, self.task.training.worlds)
        if wrong or model.size != size:
            raise AssertionError(f"the solver's answer failed its certificate: {wrong or (model.size, size)}")
        provenance = {
            "class": f"every mechanism mentions at most {self.search.max_parents} variables",
            "operators": list(self.task.grammar.operators),
            "minimal": "total formula size, by exhaustion of the class",
            "tie_rule": TIE_RULE,
            "nested_roots": note,
            "root_sets_that_fit": sets,
            "states": self.budget.used,
            "certified_by": "dsl.reference",
        }
        return Found(ExactAnswer(model, size, provenance))

    def _formula(self, option: ParentSet) -> Formula:
        if not option.mask:
            return constant(bool(option.table.value))
        names = [self.task.variables[i] for i in option.indices]
        outcome = least_formula(option.table, names, operators=self.task.grammar.operators)
        assert isinstance(outcome, Found)
        return outcome.value
