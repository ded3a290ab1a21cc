"""The least size of an acyclic choice by python-sat's RC2, with a linear order of the variables in clauses."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from calibrant.solvers.acyclic.least import Cost, Mask, Part, reduce_to_parts, total_size
from calibrant.solvers.sat import Cnf, add_linear_order


def least_size(options: Mapping[int, Mapping[Mask, Cost]], roots: Mask) -> int | None:
    """Return the least size; None if every choice has a cycle.

    options: per variable its possible parent sets and what they cost
    """
    components = reduce_to_parts(options, roots)
    sizes = None if components is None else [_of_part(part) for part in components]
    return None if sizes is None or None in sizes else sum(size for size in sizes if size is not None)


def _of_part(part: Part) -> int | None:
    from pysat.examples.rc2 import RC2
    from pysat.formula import WCNF

    cnf = Cnf()
    arcs = {(u, v): cnf.variable(f"{u} -> {v}") for v in part for u in part if any(mask >> u & 1 for mask in part[v])}
    base, preferred = 0, list[tuple[int, int]]()
    for v, sets in part.items():
        sizes = sorted({total_size(option.cost) for option in sets.values()})
        beyond = {high: cnf.variable(f"{v}: at least {high}") for high in sizes[1:]}
        for low, high in pairwise(sizes[1:]):
            cnf.add(-beyond[high], beyond[low])
        preferred += [(-beyond[high], high - low) for low, high in pairwise(sizes)]
        base += sizes[0]
        taken = {mask: cnf.variable(f"{v} from {mask:#x}") for mask in sets}
        cnf.add(*taken.values())
        for mask, literal in taken.items():
            size = total_size(sets[mask].cost)
            if size in beyond:
                cnf.add(-literal, beyond[size])
            for u in part:
                if mask >> u & 1:
                    cnf.add(-literal, arcs[u, v])
    add_linear_order(cnf, arcs)
    formula = WCNF()
    formula.extend(cnf.clauses)
    for literal, weight in preferred:
        formula.append([literal], weight=weight)
    with RC2(formula) as search:
        return base + search.cost if search.compute() is not None else None
