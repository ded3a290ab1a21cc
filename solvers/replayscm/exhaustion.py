"""Small problems by exhaustion, in plain Python: what the contract of solvers compares with.

Nothing here uses tables of functions, kernels or the other solvers. Least formulas come from a search in the order of
size (Knuth 1977, a generalization of Dijkstra's algorithm) over all functions on the rows that were seen, and acyclic
choices from all orders of the endogenous variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from heapq import heappop, heappush
from itertools import combinations, permutations
from typing import TypeAlias

from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.problem import Task

Reached: TypeAlias = tuple[str, int, int]
"""A formula ("", values, 0), or a list of two or more arguments (operator, what they give, 0).

For `iff` what matters of a list is where all of it is 1 and where any of it is, so both stand there.
"""


def least_size(task: Task, max_parents: int, root_sets: Iterable[tuple[str, ...]]) -> int | None:
    """Least total size of a train-exact SCM with at most `max_parents` mentions a mechanism; None if there is none."""
    totals = []
    for roots in root_sets:
        endogenous = [v for v in task.variables if v not in roots]
        options = {v: _options(task, v, max_parents) for v in endogenous}
        for order in permutations(endogenous):
            sizes = [_cheapest(options[v], {*roots, *order[:place]}) for place, v in enumerate(order)]
            totals += [sum(size for size in sizes if size)] if all(sizes) else []
    return min(totals, default=None)


def _cheapest(options: dict[frozenset[str], int], available: set[str]) -> int | None:
    return min((size for parents, size in options.items() if parents <= available), default=None)


def _options(task: Task, variable: str, max_parents: int) -> dict[frozenset[str], int]:
    """Least size over every parent set over which the variable is a function with a formula."""
    admissible = sorted(task.disclosure.admissible_parents(variable))
    options = {}
    for number in range(max_parents + 1):
        for parents in combinations(admissible, number):
            seen = _seen(task, variable, parents)
            size = None if seen is None else _formula_size(tuple(sorted(seen.items())), number, task.grammar)
            if size:
                options[frozenset(parents)] = size
    return options


def _seen(task: Task, variable: str, parents: tuple[str, ...]) -> dict[tuple[int, ...], int] | None:
    """The variable's value for every value of the parents; None if two rows contradict each other."""
    seen: dict[tuple[int, ...], int] = {}
    for world in task.training.worlds:
        for row in world.rows() if variable not in world.intervention.targets else ():
            if seen.setdefault(tuple(row[p] for p in parents), row[variable]) != row[variable]:
                return None
    return seen


@cache
def _formula_size(seen: tuple[tuple[tuple[int, ...], int], ...], num_parents: int, grammar: Grammar) -> int | None:
    """Least size of a formula with these values."""
    full, wanted = (1 << len(seen)) - 1, sum(bit << row for row, (_, bit) in enumerate(seen))
    atoms = [sum(values[i] << row for row, (values, _) in enumerate(seen)) for i in range(num_parents)]
    atoms += [0, full] if grammar.allow_constants else []
    queue = [(1, ("", atom, 0)) for atom in sorted(atoms)]
    sizes: dict[str, dict[Reached, int]] = {operator: {} for operator in ("", *_JOIN)}
    while queue:
        size, reached = heappop(queue)
        if reached == ("", wanted, 0):
            return size
        if reached not in sizes[reached[0]]:
            sizes[reached[0]][reached] = size
            for more, made in _steps(reached, sizes, grammar, full):
                if made not in sizes[made[0]]:
                    heappush(queue, (size + more, made))
    return None


def _steps(
    reached: Reached, sizes: Mapping[str, Mapping[Reached, int]], grammar: Grammar, full: int
) -> Iterator[tuple[int, Reached]]:
    """Return what one formula or list makes, alone or with what was reached before, and the nodes that this adds."""
    operator, one, some = reached
    if operator:
        yield 1, ("", one | (full ^ some) if operator == "iff" else one, 0)
    elif "not" in grammar.operators:
        yield 1, ("", full ^ one, 0)
    for name, join in _JOIN.items():
        if name in grammar.operators and operator in ("", name):
            for kind in ("",) if operator else ("", name):
                for (_, other, other_some), size in sizes[kind].items():
                    either = (some if operator else one) | (other_some if kind else other) if name == "iff" else 0
                    yield size, (name, join(one, other), either)


_JOIN = {"and": int.__and__, "or": int.__or__, "xor": int.__xor__, "iff": int.__and__}
