"""Sums over acyclic choices of parent sets, of numbers or of counts by (errors, size).

A sum over DAGs by the set T of variables without children in the rest (Robinson 1973, inclusion and exclusion):
A(V) = sum over nonempty T of (-1)**(|T| + 1) * product over v in T of w(v, V - T) * A(V - T), where w(v, U) sums what v
may have with parents inside U. Exact; meant for up to a dozen variables, 3**n products.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Point: TypeAlias = tuple[int, int]
"""Errors and size."""
Counts: TypeAlias = dict[Point, int]
"""Number of choices by errors and size."""

MAX_VARIABLES = 10  # 3**10 products of counts: seconds


def multiply(first: Mapping[Point, int], second: Mapping[Point, int]) -> Counts:
    """Return the counts of pairs of choices."""
    result: Counts = {}
    for (errors, size), number in first.items():
        for (more_errors, more_size), factor in second.items():
            key = errors + more_errors, size + more_size
            result[key] = result.get(key, 0) + number * factor
    return result


def sum_over_dags(choices: Sequence[Mapping[int, Mapping[Point, int]]]) -> Counts:
    """Return the counts of all acyclic choices, one parent set a variable, with all points that occur.

    choices: per variable, mask of parents among these variables -> counts of what it may have with exactly these
    """
    number = len(choices)
    inside = [_inside(options, number) for options in choices]
    totals: list[Counts] = [{(0, 0): 1}]
    for variables in range(1, 1 << number):
        total: Counts = {}
        last = variables
        while last:
            rest = variables & ~last
            term: Mapping[Point, int] = totals[rest]
            for v in range(number):
                if last >> v & 1 and term:
                    term = multiply(term, inside[v][rest])
            sign = 1 if last.bit_count() % 2 else -1
            for key, value in term.items():
                total[key] = total.get(key, 0) + sign * value
            last = (last - 1) & variables
        totals.append({key: value for key, value in total.items() if value})
    return totals[-1]


def _inside(options: Mapping[int, Mapping[Point, int]], number: int) -> list[Counts]:
    """Return, for each set of variables, the counts of what has its parents inside."""
    sums: list[Counts] = [{} for _ in range(1 << number)]
    for mask, counts in options.items():
        for variables in range(1 << number):
            if not mask & ~variables:
                for key, value in counts.items():
                    sums[variables][key] = sums[variables].get(key, 0) + value
    return sums


def pareto_points(counts: Mapping[Point, int]) -> list[tuple[int, int, int]]:
    """Return errors, size and count of the points that no other is as good as, by rising size."""
    points: list[tuple[int, int, int]] = []
    for errors, size in sorted(counts, key=lambda key: (key[1], key[0])):
        if not points or errors < points[-1][0]:
            points.append((errors, size, counts[errors, size]))
    return points
