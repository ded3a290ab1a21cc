"""Complete solver: a train-exact SCM of least total formula size, with proof that none is smaller.

An SCM is train-exact iff every mechanism reproduces the observed rows in which its variable is not intervened on. So
the problem decomposes: for each variable, the parent sets that determine its column and a least formula over each; then
the acyclic, admissible assignment of least total size. Formula sizes that are expensive to prove are at first only
bounded from below. The assignment of least bound is optimal once all its sizes are exact, because every other one costs
at least its own bound. If the budget ends before that, the answer is a bound and the incumbent (`BestSoFar`).

Class of the claim: every mechanism mentions at most `max_parents` variables and uses the allowed operators. With hidden
roots and shared units, the columns of all roots are also nested (solvers.replayscm.roots_and_parents); other root sets,
which may have a smaller train-exact SCM, are considered only if no nested one fits.
Ties between assignments of equal total size: fewest mentions, then the smallest root set, then the smallest parent sets
(variables in the order of the task, sets compared as numbers with bit i for variable i); between formulas over one set,
the rule of solvers.formulas.synthesis. If literals 0 and 1 are allowed, they are only used as constant mechanisms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heapreplace
from itertools import combinations
from time import monotonic
from typing import Any, NamedTuple

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask
from calibrant.dsl.knowledge import RELATION_WORDS, CheckedKnowledge, Knowledge, Statement
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.least import Cost, Mask, cost_by_size, find_good_choice, total_size
from calibrant.solvers.acyclic.optimum import Choice, least_under_relations, optimal_choice, require_engine
from calibrant.solvers.formulas.catalogue import constant_sizes, require_literals_alone
from calibrant.solvers.formulas.synthesis import LeastSize, formula_for, least_formula
from calibrant.solvers.outcome import (
    LEAST_SCM_STATES,
    BestSoFar,
    Budget,
    BudgetSpent,
    Found,
    Impossible,
    OutOfBudget,
    Undecided,
)
from calibrant.solvers.replayscm.assumptions import is_directed, least_functions
from calibrant.solvers.replayscm.certified import certify, check
from calibrant.solvers.replayscm.roots_and_parents import MAX_ROOT_SETS, ParentSearch, ParentSet, nested_variables
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace, local_space

MAX_VARIABLES = 63  # a set of variables is a signed word
MAX_ROOT_SETS_TRIED = 20  # root sets tried for an incumbent, those of least bound first


@dataclass(frozen=True)
class ExactAnswer:
    """A train-exact SCM of least total size in the class that `provenance` names."""

    model: Scm
    size: int
    provenance: Mapping[str, Any] = field(default_factory=dict)


def solve(
    task: Task,
    *,
    max_parents: int = 5,
    nested_roots: bool | None = None,
    states: int | None = LEAST_SCM_STATES,
    engine: str = "auto",
    seconds: float | None = None,
) -> Found[ExactAnswer] | Impossible | OutOfBudget:
    """Solve a task whose answer is an SCM (Ordered, Block, Hidden-order, Hidden-roots).

    An assumption of the task restricts the class; the variables that a mechanism mentions count as its parents.

    `ValueError` for a grammar in which literals inside formulas would matter (solvers.formulas.catalogue), and for
    seconds with an engine that has a budget of states. `MissingExtraError` without the engine's package, before any
    search. `CalibrantError` for relations between parent sets with another engine than SMT.

    max_parents: most variables that a mechanism may mention, 1 to 6
    nested_roots: with hidden roots, whether only root sets with nested columns count; None: if units are shared
    states: budget, in functions compared by formula search; a conflict of MaxSAT costs
        solvers.acyclic.optimum.STATES_PER_CONFLICT; None means no limit
    engine: how parent sets are assigned (solvers.acyclic.optimum.optimal_choice)
    seconds: wall time of all integer programs together; None means no limit
    """
    if seconds is not None and engine != "integer_program":
        raise ValueError(f"seconds are for the engine integer_program; '{engine}' has a budget of states")
    if task.assumption is not None and task.assumption.check(task.variables).relations:
        if engine not in ("auto", "smt"):
            relations = (statement for statement in task.assumption.statements if statement.word in RELATION_WORDS)
            sources = ", ".join(statement.source for statement in relations)
            raise CalibrantError(f"{sources}: relations between parents need SMT; leave the engine '{engine}' away")
        engine = "smt"
    require_engine(engine)
    too_large = _too_large(task)
    return too_large or _Search(task, max_parents, nested_roots, Budget(states), _Engine(engine, seconds)).run()


def _too_large(task: Task) -> OutOfBudget | None:
    """Return the refusal of a task with too many variables or root sets; None if it is not too large."""
    if len(task.variables) > MAX_VARIABLES:
        return OutOfBudget(f"nothing was tried: {len(task.variables)} variables, at most {MAX_VARIABLES}")
    disclosure = task.disclosure
    if disclosure.order is None and disclosure.num_root_sets() > MAX_ROOT_SETS:
        return OutOfBudget(f"nothing was tried: more than {MAX_ROOT_SETS} root sets of the disclosed size")
    return None


ONLY_NESTED = "only root sets with nested columns"
TIE_RULE = "fewest mentions, then smallest root set, then smallest parent sets in canonical variable order"


class _Choice(NamedTuple):
    """Cheapest assignment under one root set, by the size bounds at the time; sorts by the tie rule.

    cost: as `cost_by_size`; a lower bound as long as some of its sizes are not exact
    roots: the root set as a mask; entries of a run differ in it, so that no comparison goes on to `chosen`
    chosen: endogenous variable -> parent set
    refinements: number of refinements of sizes before it was computed
    """

    cost: Cost
    roots: Mask
    chosen: Mapping[int, Mask]
    refinements: int

    @property
    def size(self) -> int:
        return total_size(self.cost)


class _Engine:
    """Engine that assigns parent sets, and its deadline on the monotonic clock."""

    def __init__(self, name: str, seconds: float | None) -> None:
        self.name = name
        self.deadline = None if seconds is None else monotonic() + seconds

    def seconds_left(self) -> float | None:
        return None if self.deadline is None else max(0.0, self.deadline - monotonic())


class _Search:
    """Search over root sets that makes exact only those size bounds on which the optimum depends.

    options: variable -> parent set -> its bounds; refiners: size searches of (variable, parent set)
    functions: truth tables of least functions by (variable, parent set), under an assumption
    refinements: number of rounds in which bounds were raised
    """

    def __init__(
        self, task: Task, max_parents: int, nested_roots: bool | None, budget: Budget, engine: _Engine
    ) -> None:
        require_literals_alone(task.grammar)
        self.task = task
        self.engine = engine
        self.budget = budget
        self.index = {variable: i for i, variable in enumerate(task.variables)}
        self.search = ParentSearch(task, max_parents)
        self.operators = self.search.operators
        self.nested = task.shares_units if nested_roots is None else nested_roots
        self.assumed = None if task.assumption is None else task.assumption.check(task.variables)
        self.functions: dict[tuple[int, Mask], int] = {}
        self.options: dict[int, dict[Mask, ParentSet]] = {}
        self.refiners: dict[tuple[int, Mask], LeastSize] = {}
        self.refinements = 0

    def run(self) -> Found[ExactAnswer] | Impossible | OutOfBudget:
        try:
            return self._run()
        except BudgetSpent as spent:  # before there was any bound
            return OutOfBudget(str(spent) or "the budget ran out while functions were listed under the assumption")

    def _run(self) -> Found[ExactAnswer] | Impossible | OutOfBudget:
        """Minimise over the disclosed roots; without them over nested root sets first, then over all."""
        note = "not needed: the roots are disclosed"
        disclosure = self.task.disclosure
        hypotheses = list(disclosure.root_sets())
        if disclosure.roots is not None:
            return self._minimise(hypotheses, note) or self._impossible(hypotheses)
        if self.nested:
            # with shared units the columns of true roots are nested (paper, B.2.2), so there are far fewer hypotheses;
            # all are tried only if none of these fits, because the class of the claim then has to be the wider one
            candidates = nested_variables(self.task)
            outcome = self._minimise(disclosure.root_sets(candidates), ONLY_NESTED)
            if outcome:
                return outcome
            note = "no root set with nested columns fits, so all were considered"
        else:
            note = "not used"
        return self._minimise(hypotheses, note) or self._impossible(hypotheses)

    def _impossible(self, hypotheses: list[tuple[str, ...]]) -> Impossible:
        exhausted = (
            f"no acyclic admissible choice of parent sets of at most {self.search.max_parents} variables determines "
            f"every observed column by formulas of {', '.join(self.operators)} "
            f"({plural(len(hypotheses), 'root sets')} tried)"
        )
        if self.assumed is not None:
            exhausted = f"{unsatisfied_words([self.task], self.search.max_parents)}; {exhausted}"
        return Impossible(exhausted)

    def _minimise(self, hypotheses: Iterable[tuple[str, ...]], note: str) -> Found[ExactAnswer] | OutOfBudget | None:
        """Minimise over these root sets; None if none of them admits any assignment.

        Best first: the queue holds the cheapest assignment by bounds of each root set. The least is refined until all
        its sizes are exact. note: what is said about nested roots in the provenance
        """
        root_masks = [sum(1 << self.index[root] for root in roots) for roots in hypotheses]
        if self.assumed is not None:
            with_parents = sum(1 << v for v, required in enumerate(self.assumed.required) if required)
            root_masks = [roots for roots in root_masks if not roots & with_parents]
        queue: list[_Choice] = []
        num_started = current_roots = 0
        try:
            for current_roots in root_masks:
                num_started += 1
                queue += filter(None, [self._choose(current_roots)])
            num_fitting = len(queue)
            heapify(queue)
            while queue:
                best = queue[0]
                # lazy updates: sizes may have grown since this bound was computed, and bounds only ever rise
                if best.refinements < self.refinements:
                    current_roots = best.roots
                    updated = self._choose(current_roots)
                    if updated is None:
                        heappop(queue)
                    else:
                        heapreplace(queue, updated)
                    continue
                open_sets = [(v, mask) for v, mask in best.chosen.items() if self.options[v][mask].size is None]
                # exact: all other entries are lower bounds that sort after it, ties by root set included
                if not open_sets:
                    return self._certify(best, note, num_fitting)
                self.refinements += 1
                are_refined = [self._refine(variable, mask) for variable, mask in open_sets]
                # the least entry has open sizes and cannot be refined: its cost bounds all others from below
                if self.budget.exhausted or not all(are_refined):
                    return self._out_of_budget(best.cost, note, root_masks)
        except Undecided as spent:
            # root sets not yet started are bounded without acyclicity, which can only lower the bound
            other_bounds = [choice.cost for choice in queue] + [
                self._lower_bound(roots) for roots in root_masks[num_started:]
            ]
            incumbent = None if spent.incumbent is None else (current_roots, spent.incumbent)
            return self._out_of_budget(min([spent.at_least, *other_bounds]), note, root_masks, incumbent)
        return None

    def _choose(self, roots: Mask) -> _Choice | None:
        """Choose the cheapest assignment under one root set; None if there is none."""
        costs = {v: self._costs(v) for v in self.index.values() if not roots >> v & 1}
        if not all(costs.values()):
            return None
        if self.assumed is not None and self.assumed.relations:
            assigned = least_under_relations(costs, self.budget, self.assumed.relations, self.index)
            size = 0 if assigned is None else sum(costs[v][mask] for v, mask in assigned.items())
            return None if assigned is None else _Choice(size, roots, assigned, self.refinements)
        # a disclosed order: candidates come earlier, so no cycle is possible and variables are independent
        if self.task.disclosure.order is not None:
            chosen = {v: min((cost, mask) for mask, cost in candidates.items())[1] for v, candidates in costs.items()}
            best: Choice | None = Choice(sum(costs[v][mask] for v, mask in chosen.items()), chosen)
        else:
            best = optimal_choice(
                costs, roots, len(self.index), self.budget, engine=self.engine.name, seconds=self.engine.seconds_left()
            )
        return best and _Choice(best.cost, roots, best.chosen, self.refinements)

    def _costs(self, variable: int) -> dict[Mask, Cost]:
        """Return the cost of each parent set of a variable, by the proven bound of its size."""
        if variable not in self.options:
            self.options[variable] = self._options(self.task.variables[variable])
        return {mask: cost_by_size(option.at_least, mask) for mask, option in self.options[variable].items()}

    def _lower_bound(self, roots: Mask) -> Cost:
        """Return a lower bound of the cost under one root set, without the acyclicity constraint."""
        return sum(min(self._costs(v).values(), default=0) for v in self.index.values() if not roots >> v & 1)

    def _out_of_budget(
        self,
        at_least: Cost,
        note: str,
        hypotheses: list[Mask],
        incumbent: tuple[Mask, Mapping[int, Mask]] | None = None,
    ) -> OutOfBudget:
        """Return the bound, with the smallest of the models built under the root sets of least bound, if there is one.

        incumbent: (root set, parent sets) from an engine that ran out of budget
        """
        lower_bound = total_size(at_least)
        reached = f"every train-exact SCM of the class{_class_note(note)} has total size at least {lower_bound}"
        models = [
            model
            for roots in sorted(hypotheses, key=lambda roots: (self._lower_bound(roots), roots))[:MAX_ROOT_SETS_TRIED]
            if (model := self._find_good_model(roots))
        ]
        if incumbent and all(self.options[v][mask].size is not None for v, mask in incumbent[1].items()):
            models.append(self._model(*incumbent))
        if not models:
            return OutOfBudget(reached, lower_bound)
        best = certify(self.task, min(models, key=lambda model: model.size))
        if best.size == lower_bound:  # of least size, but perhaps not the answer by the tie rule
            reached, minimal = f"{reached}, as the one found has, which may not be the first of them", "size alone"
        else:
            reached += f", the best one found has {best.size}"
            minimal = f"not proven: between {lower_bound} and {best.size}"
        provenance = {**self._provenance(note), "minimal": minimal}
        return BestSoFar(
            reached,
            lower_bound,
            incumbent=ExactAnswer(best, best.size, provenance),
            upper_bound=best.size,
        )

    def _find_good_model(self, roots: Mask) -> Scm | None:
        """Search for a model of exact sizes under one root set; None without one, and always under relations."""
        if self.assumed is not None and self.assumed.relations:
            return None
        costs = {
            v: {mask: cost for mask, cost in self._costs(v).items() if self.options[v][mask].size is not None}
            for v in self.index.values()
            if not roots >> v & 1
        }
        # only sets of exact size: else the total of an incumbent would be no upper bound
        best = find_good_choice(costs, roots) if all(costs.values()) else None
        return None if best is None else self._model(roots, best[1])

    def _options(self, variable: str) -> dict[Mask, ParentSet]:
        """Return the parent sets among which a variable's optimum is, by mask."""
        candidates = [self.index[u] for u in self.task.disclosure.admissible_parents(variable)]
        roots = self.task.disclosure.roots or ()
        free = sum(1 << self.index[u] for u in roots)
        i, assumed = self.index[variable], self.assumed
        if assumed is None:
            parent_sets = self.search.parent_sets(i, candidates, free=free)
        elif self._drops_dominated(variable):
            candidates = [u for u in candidates if assumed.allowed[i] >> u & 1]
            # no variable is free: a smaller mechanism might have more parents than are allowed
            parent_sets = self.search.parent_sets(i, candidates) if candidates else []
            parent_sets = [option for option in parent_sets if option.mask.bit_count() <= assumed.limits[i]]
        else:
            return self._assumed_options(i, candidates, assumed)
        options = {option.mask: option for option in parent_sets}
        if self.task.grammar.allow_constants:
            training = self.task.training
            scored = training.scored_rows(variable)
            ones = training.columns[variable] & scored
            # a literal is one node without mentions, so no option is cheaper, and it closes no cycle
            if ones in (0, scored):
                options[0] = ParentSet(0, PartialTable(0, int(scored > 0), int(ones > 0)), 1, 1)
        return options

    def _drops_dominated(self, variable: str) -> bool:
        """Return whether a cheaper subset of a parent set satisfies the assumption wherever the set does."""
        assert self.assumed is not None
        i = self.index[variable]
        is_related = any(child == variable for relation in self.assumed.relations for _, child in relation.arcs)
        return not (self.assumed.required[i] or is_directed(self.assumed, i) or is_related)

    def _assumed_options(self, i: int, candidates: list[int], assumed: CheckedKnowledge) -> dict[Mask, ParentSet]:
        """Return every admitted parent set of a variable with its least function, including dominated ones.

        If the assumption requires no parent, constants are options too: with the empty parent set as literals, else
        with the one variable that they mention.
        """
        largest = min(self.search.max_parents, len(candidates))
        local = local_space(self.search.packed, i, candidates, largest).under(assumed, i)
        has_function = local.num_functions > 0
        tables = local.masks[has_function], local.cares[has_function], local.values[has_function]
        directions = assumed.rising[i], assumed.falling[i]
        options = {}
        for least in least_functions(*tables, self.search.functions, directions, self.budget):
            table = PartialTable(least.mask.bit_count(), least.care, least.value)
            is_exact = least.bits is not None
            options[least.mask] = ParentSet(least.mask, table, least.at_least, least.at_least if is_exact else None)
            if least.bits is not None:
                self.functions[i, least.mask] = least.bits
        if assumed.required[i]:
            return options
        scored = self.task.training.scored_rows(self.task.variables[i])
        ones = self.task.training.columns[self.task.variables[i]] & scored
        for bit, size in constant_sizes(self.search.functions, self.task.grammar).items():
            if ones != bit * scored:
                continue
            allowed = [0] if self.task.grammar.allow_constants else [1 << u for u in candidates]
            for mask in allowed:
                is_admitted = not mask or (assumed.allowed[i] & mask and assumed.limits[i])
                if is_admitted and (mask not in options or size < options[mask].at_least):
                    # as in the parent sets of the search, the table is over the mentioned variables
                    full = full_mask(mask.bit_count())
                    options[mask] = ParentSet(mask, PartialTable(mask.bit_count(), full, bit * full), size, size)
                    self.functions[i, mask] = bit * full
        return options

    def _refine(self, variable: int, mask: Mask) -> bool:
        """Test the next formula size of one parent set; False if formula search cannot test it."""
        if self.assumed is not None and not self._drops_dominated(self.task.variables[variable]):
            return False  # formula search cannot restrict functions to an assumption
        option = self.options[variable][mask]
        refiner = self.refiners.get((variable, mask))
        if refiner is None:
            refiner = self.refiners[variable, mask] = LeastSize(option.table, self.operators)
        if not refiner.in_reach:
            return False
        refiner.advance(self.budget)
        if not refiner.possible:
            # proven: no formula of these operators has these values, whatever the roots
            del self.options[variable][mask]
            return True
        option.at_least = max(option.at_least, refiner.lower_bound)
        option.size = refiner.size
        return True

    def _certify(self, choice: _Choice, note: str, num_root_sets: int) -> Found[ExactAnswer]:
        model = certify(self.task, self._model(choice.roots, choice.chosen))
        # the model's size is that of its formulas, the choice's comes from tables
        if model.size != choice.size:
            raise AssertionError(f"the answer failed its certificate: {model.size} nodes, {choice.size} are least")
        claims = {"minimal": "total formula size, by exhaustion of the class", "root_sets_that_fit": num_root_sets}
        return Found(ExactAnswer(model, choice.size, {**self._provenance(note), "tie_rule": TIE_RULE, **claims}))

    def _model(self, roots: Mask, chosen: Mapping[int, Mask]) -> Scm:
        """Return the SCM of an assignment, checked by the evaluator."""
        variables = self.task.variables
        mechanisms = {variables[v]: self._formula(v, mask) for v, mask in chosen.items()}
        return check(self.task, Scm(tuple(v for v in variables if roots >> self.index[v] & 1), mechanisms))

    def _provenance(self, note: str) -> dict[str, Any]:
        return {
            "class": f"every mechanism mentions at most {self.search.max_parents} variables{_class_note(note)}"
            + ("" if self.task.assumption is None else f", {self.task.assumption.in_words}"),
            "operators": list(self.operators),
            "nested_roots": note,
            "states": self.budget.used,
            "certified_by": "dsl.reference",
            **({} if self.engine.name == "auto" else {"engine": self.engine.name}),
        }

    def _formula(self, variable: int, mask: Mask) -> Formula:
        option = self.options[variable][mask]
        if not mask:
            return constant(bool(option.table.value))
        names = [self.task.variables[i] for i in option.indices]
        if (variable, mask) in self.functions:
            return formula_for(TruthTable(option.table.num_vars, self.functions[variable, mask]), names, self.operators)
        if (variable, mask) in self.refiners:
            return self.refiners[variable, mask].formula(names)
        outcome = least_formula(option.table, names, operators=self.operators)
        assert isinstance(outcome, Found)
        return outcome.value


def _class_note(note: str) -> str:
    """Return what a note about nested roots adds to the description of the class."""
    return ", roots with nested columns" if note == ONLY_NESTED else ""


# --- Statements of an assumption that no SCM of a class satisfies together with the evidence --------------------------

MAX_LISTED_PAIRS = 200  # pairs of statements up to which all are tried; else statements are dropped one by one


def conflicting_statements(tasks: Sequence[Task], model_class: ModelClass) -> tuple[Statement, ...]:
    """Return an inclusion-minimal set of statements that no SCM of the class satisfies together.

    It is a smallest set if it has one statement, or two and there are at most MAX_LISTED_PAIRS pairs. () if some SCM
    satisfies all statements, or if none fits even without the assumption. `BudgetSpent` if that is not decided.

    tasks: tasks with the same assumption and different disclosures; an SCM fits if it fits one of them
    """
    assert tasks[0].assumption is not None
    statements = tasks[0].assumption.statements
    if _is_satisfiable(tasks, model_class, statements) or not _is_satisfiable(tasks, model_class, ()):
        return ()
    candidates: list[tuple[Statement, ...]] = [(statement,) for statement in statements]
    if len(statements) * (len(statements) - 1) // 2 <= MAX_LISTED_PAIRS:
        candidates += combinations(statements, 2)
    for chosen in candidates:
        if not _is_satisfiable(tasks, model_class, chosen):
            return chosen
    conflict = list(statements)
    for statement in statements:
        others = [member for member in conflict if member is not statement]
        if not _is_satisfiable(tasks, model_class, others):
            conflict = others
    return tuple(conflict)


def _is_satisfiable(tasks: Sequence[Task], model_class: ModelClass, statements: Sequence[Statement]) -> bool:
    knowledge = Knowledge(tuple(statements)) if statements else None
    try:
        return any(VersionSpace(replace(task, assumption=knowledge), model_class).has_member() for task in tasks)
    except CalibrantError:  # the statements contradict each other, whatever the evidence
        return False


def unsatisfied_words(tasks: Sequence[Task], max_parents: int) -> str:
    """Return, in words, the statements that no SCM of at most `max_parents` parents satisfies together.

    tasks: as in `conflicting_statements`
    """
    try:
        conflict = conflicting_statements(tasks, ModelClass(max_parents))
    except BudgetSpent as spent:
        return f"no model of the class fits and satisfies the assumption; which of its lines conflict is open: {spent}"
    if conflict:
        return f"no model of the class fits and satisfies {_join_sources([statement.source for statement in conflict])}"
    if not _is_satisfiable(tasks, ModelClass(max_parents), ()):
        return "no model of the class fits, whether or not it satisfies the assumption"
    return "no model of the class fits and satisfies the assumption by formulas of these operators"


def _join_sources(sources: Sequence[str]) -> str:
    return sources[0] if len(sources) == 1 else f"{', '.join(sources[:-1])} and {sources[-1]}"
