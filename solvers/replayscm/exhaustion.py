"""Oracle: small problems by exhaustion, in plain Python, for the conformance test of solvers.

It uses no tables of functions, no kernels and no other solver. Least formulas come from a search in the order of size
(D. E. Knuth, A generalization of Dijkstra's algorithm, 1977) over all functions on the observed rows, and acyclic
assignments from all orders of the endogenous variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, permutations
from typing import TypeAlias

from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Task

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
            sizes = [_cheapest(options[v], {*roots, *order[:place]}) for place, v in enumerate(order)]
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
