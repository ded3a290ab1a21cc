"""Conformance test of solvers: rules that hold for the outcomes of any method, and least sizes by exhaustion.

It uses no tables of functions, no kernels and no other solver. Least formulas come from a search in the order of size
(D. E. Knuth, A generalization of Dijkstra's algorithm, 1977) over all functions on the observed rows, and acyclic
assignments from all orders of the endogenous variables.

The caller provides the problems, so no test framework is needed. Small problems are also solved by exhaustion, in
plain Python that shares no code with the solvers.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from heapq import heappop, heappush
from itertools import combinations, permutations
from typing import Protocol, TypeAlias

from calibrant.dsl.formulas.text import Grammar, render
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.outcome import BestSoFar, Found, Outcome, OutOfBudget

# --- Oracle: small problems by exhaustion, in plain Python, for the conformance test of solvers -----------------------
State: TypeAlias = tuple[str, int, int]
"""A formula ("", values, 0), or a list of two or more arguments (operator, combined values, 0).

A list under `iff` is (operator, rows where all arguments are 1, rows where any is).
"""


def least_size(task: Task, max_parents: int, root_sets: Iterable[tuple[str, ...]]) -> int | None:
    """Return the least total size of a train-exact SCM with `max_parents` mentions a mechanism; None without one."""
    totals = []
    for roots in root_sets:
        endogenous = [v for v in task.variables if v not in roots]
        options = {v: _options(task, v, max_parents) for v in endogenous}
        # every order, m! of them: no dynamic programming whose error could be that of the solver under test
        for order in permutations(endogenous):
            sizes = [_cheapest(options[v], {*roots, *order[:index]}) for index, v in enumerate(order)]
            totals += [sum(size for size in sizes if size)] if all(sizes) else []
    return min(totals, default=None)


def _cheapest(options: dict[frozenset[str], int], available: set[str]) -> int | None:
    return min((size for parents, size in options.items() if parents <= available), default=None)


def _options(task: Task, variable: str, max_parents: int) -> dict[frozenset[str], int]:
    """Return the least formula size over every parent set that determines the variable."""
    admissible = sorted(task.disclosure.admissible_parents(variable))
    options = {}
    for number in range(max_parents + 1):
        for parents in combinations(admissible, number):
            observed = _observed_values(task, variable, parents)
            size = None if observed is None else _formula_size(tuple(sorted(observed.items())), number, task.grammar)
            if size:
                options[frozenset(parents)] = size
    return options


def _observed_values(task: Task, variable: str, parents: tuple[str, ...]) -> dict[tuple[int, ...], int] | None:
    """Return the variable's value for every value of the parents; None if two rows contradict each other."""
    values: dict[tuple[int, ...], int] = {}
    for world in task.training.worlds:
        for row in world.rows() if variable not in world.intervention.targets else ():
            if values.setdefault(tuple(row[p] for p in parents), row[variable]) != row[variable]:
                return None
    return values


@cache
def _formula_size(observed: tuple[tuple[tuple[int, ...], int], ...], num_parents: int, grammar: Grammar) -> int | None:
    """Return the least size of a formula with these values; None without one."""
    full, target = (1 << len(observed)) - 1, sum(bit << row for row, (_, bit) in enumerate(observed))
    atoms = [sum(values[i] << row for row, (values, _) in enumerate(observed)) for i in range(num_parents)]
    atoms += [0, full] if grammar.allow_constants else []
    queue = [(1, ("", atom, 0)) for atom in sorted(atoms)]
    sizes: dict[str, dict[State, int]] = {operator: {} for operator in ("", *_JOIN)}
    while queue:
        size, state = heappop(queue)
        if state == ("", target, 0):
            return size
        # every step adds at least a node, so the first time that a state is popped its size is least
        if state not in sizes[state[0]]:
            sizes[state[0]][state] = size
            for added_size, successor in _successors(state, sizes, grammar, full):
                if successor not in sizes[successor[0]]:
                    heappush(queue, (size + added_size, successor))
    return None


def _successors(
    state: State, sizes: Mapping[str, Mapping[State, int]], grammar: Grammar, full: int
) -> Iterator[tuple[int, State]]:
    """Yield the successors of a state, alone or combined with earlier states, and the nodes that each adds."""
    operator, values, any_values = state
    if operator:
        # n-ary iff: all arguments equal (docs/semantics.md), that is all 1 or none; hence both words in its state
        yield 1, ("", values | (full ^ any_values) if operator == "iff" else values, 0)
    elif "not" in grammar.operators:
        yield 1, ("", full ^ values, 0)
    for name, join in _JOIN.items():
        if name in grammar.operators and operator in ("", name):
            for kind in ("",) if operator else ("", name):
                for (_, other_values, other_any), size in sizes[kind].items():
                    either = (
                        (any_values if operator else values) | (other_any if kind else other_values)
                        if name == "iff"
                        else 0
                    )
                    yield size, (name, join(values, other_values), either)


_JOIN = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__, "iff": int.__and__}


# --- Conformance test of solvers for whole problems: rules that hold for the outcomes of any method -------------------
# ascending: what a smaller budget decided, each larger one has to decide alike
BUDGETS = (0, 1, 100, 10_000, 1_000_000, None)  # states, ascending
# the oracle tries up to 5! orders, and 2**8 functions on the rows of each parent set
SMALL_VARIABLES, SMALL_ROWS = 5, 8  # different rows of one parent set; exhaustion takes well under a second


class SolverAnswer(Protocol):
    """Result of a solver: an SCM and its total formula size."""

    @property
    def model(self) -> Scm: ...
    @property
    def size(self) -> int: ...


class Solver(Protocol):
    """Function from a task to the SCM of least total size; `states` is its budget, None for no limit."""

    def __call__(self, task: Task, *, states: int | None) -> Outcome[SolverAnswer]: ...


Hypotheses = Callable[[Task], Iterable[tuple[str, ...]]]
"""The root sets that a solver claims to consider."""


@dataclass(frozen=True, slots=True)
class Breach:
    """Violation of the contract.

    rule: certified | least | budget | repeatable; problem: its id; reason: what was returned and what was expected
    """

    rule: str
    problem: str
    reason: str


def all_root_sets(task: Task) -> Iterable[tuple[str, ...]]:
    """Return the disclosed root set, or every set of the disclosed size."""
    return task.disclosure.root_sets()


def check(
    solver: Solver, problems: Iterable[Problem], *, max_parents: int = 5, hypotheses: Hypotheses = all_root_sets
) -> list[Breach]:
    """Return every breach of the contract; the solver receives the tasks only.

    certified: answers are legal, replay every training row, and have the size that is stated
    least: answers of small problems have the least size, and are Impossible only if there is none
    budget: a larger budget never changes what was decided; lower bounds are true
    repeatable: the answer stays when the task is copied and its worlds come in another order
    """
    rules: dict[str, Callable[[Solver, Task, Outcome[SolverAnswer]], Iterator[str]]] = {
        "certified": partial(_check_certificate, max_parents=max_parents),
        "least": partial(_check_least, max_parents=max_parents, hypotheses=hypotheses),
        "budget": _check_budget,
        "repeatable": _check_repeatable,
    }
    breaches = []
    for problem in problems:
        outcome = solver(problem.task, states=None)
        for rule, breach in rules.items():
            breaches += [Breach(rule, problem.id, reason) for reason in breach(solver, problem.task, outcome)]
    return breaches


def _check_certificate(
    solver: Solver, task: Task, outcome: Outcome[SolverAnswer], *, max_parents: int
) -> Iterator[str]:
    if not isinstance(outcome, Found):
        return
    model = outcome.value.model
    if fault := illegality(task, model):
        yield fault
    elif mismatch := first_mismatch(model, task.training.worlds):
        yield f"does not replay {mismatch}"
    if model.size != outcome.value.size:
        yield f"has {model.size} nodes, {outcome.value.size} are stated"
    for variable, mechanism in model.mechanisms.items():
        if len(mechanism.mentioned) > max_parents:
            yield f"mechanism of {variable} mentions {len(mechanism.mentioned)} variables"


def _check_least(
    solver: Solver, task: Task, outcome: Outcome[SolverAnswer], *, max_parents: int, hypotheses: Hypotheses
) -> Iterator[str]:
    num_vars = len(task.variables)
    if num_vars > SMALL_VARIABLES or min(task.training.num_rows, 1 << min(max_parents, num_vars - 1)) > SMALL_ROWS:
        return
    stated = outcome.value.size if isinstance(outcome, Found) else None
    least_by_exhaustion = least_size(task, max_parents, hypotheses(task))
    if stated != least_by_exhaustion:
        yield f"least size {stated}; by exhaustion {least_by_exhaustion}"


def _check_budget(solver: Solver, task: Task, outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    decided = False
    for states in BUDGETS:
        limited = solver(task, states=states)
        if isinstance(limited, OutOfBudget):
            if decided:
                yield f"undecided with {states} states, decided with fewer"
            bound = limited.lower_bound or 0
            if isinstance(outcome, Found) and bound > outcome.value.size:
                yield f"lower bound {bound} with {states} states; an answer has size {outcome.value.size}"
            if isinstance(limited, BestSoFar):
                yield from _check_best_so_far(task, limited, outcome)
        else:
            decided = True
            if _summary(limited) != _summary(outcome):
                yield f"with {states} states: {_summary(limited)}; without limit: {_summary(outcome)}"


def _check_best_so_far(task: Task, best: BestSoFar[SolverAnswer], outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    """Yield the faults of the incumbent of a search that was cut off."""
    model = best.incumbent.model
    wrong = illegality(task, model) or first_mismatch(model, task.training.worlds)
    if wrong or model.size != best.upper_bound:
        yield f"best so far: {wrong or f'has {model.size} nodes, {best.upper_bound} are stated'}"
    elif not isinstance(outcome, Found) or outcome.value.size > model.size:
        yield f"best so far: {model.size} nodes, less than what was said to be least"


def _check_repeatable(solver: Solver, task: Task, outcome: Outcome[SolverAnswer]) -> Iterator[str]:
    worlds = task.training.worlds
    reversed_task = replace(task, training=Panel(task.variables, worlds[::-1]))
    for name, variant in (("a copy", pickle.loads(pickle.dumps(task))), ("the worlds turned round", reversed_task)):
        # copies differ in object identity, reversed worlds in order: nothing else may decide ties
        repeated = _summary(solver(variant, states=None))
        if repeated != _summary(outcome):
            yield f"for {name}: {repeated}; first: {_summary(outcome)}"


def _summary(outcome: Outcome[SolverAnswer]) -> tuple[str, Sequence[str], Sequence[tuple[str, str]]]:
    """Return the part of an outcome that has to be equal whenever the question is."""
    if not isinstance(outcome, Found):
        return type(outcome).__name__, (), ()
    model = outcome.value.model
    return "Found", model.roots, [(v, render(mechanism)) for v, mechanism in model.mechanisms.items()]
