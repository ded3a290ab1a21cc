"""Exact sampling from a version space: root set, then parent sets, then functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from random import Random

import numpy as np
import numpy.typing as npt

from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.formulas.table import PartialTable, TruthTable, full_mask, projection
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.acyclic.draws import draw_weighted
from calibrant.solvers.acyclic.least import Mask
from calibrant.solvers.formulas.catalogue import EssentialFunctions, constant_sizes, synthesis_operators
from calibrant.solvers.formulas.lookup import formula_for
from calibrant.solvers.replayscm.version_space import VersionSpace


def sample_members(space: VersionSpace, rng: Random, num_members: int, *, size_penalty: int | None = None) -> list[Scm]:
    """Sample members independently: uniformly, or in a size-capped class by 2**(-size_penalty * total size)."""
    return [sample_member(space, rng, size_penalty) for _ in range(num_members)]


def sample_member(space: VersionSpace, rng: Random, size_penalty: int | None) -> Scm:
    """Sample a member with probability proportional to its weight; `ValueError` from an empty space."""
    # root set first, by its exact total: members are then uniform across root sets of different size
    sums = [(roots, space.draws(roots, size_penalty).total) for roots in space.counts_by_roots]
    total = sum(weight for _, weight in sums)
    if not total:
        raise ValueError("the version space is empty")
    roots = draw_weighted(rng, sums, total)
    chosen = space.draws(roots, size_penalty).draw(rng)
    mechanisms = {}
    for variable, mask in sorted(chosen.items()):
        table = _function(space, rng, variable, mask, size_penalty)
        mechanisms[space.task.variables[variable]] = write_mechanism(space, roots, variable, mask, table)
    return Scm(roots, mechanisms)


def write_mechanism(space: VersionSpace, roots: Sequence[str], variable: int, mask: Mask, table: TruthTable) -> Formula:
    """Write a formula for a function of exactly these parents, of least size wherever the catalogues list it.

    A constant is a literal, or mentions the first admissible root: no cycle can go through that.
    """
    grammar = space.task.grammar
    if mask:
        return formula_for(table, space.names(mask), synthesis_operators(grammar))
    if grammar.allow_constants:
        return constant(bool(table.bits))
    name = space.task.variables[variable]
    mentioned = [root for root in roots if root in space.task.disclosure.admissible_parents(name)]
    if not mentioned:
        raise ValueError(f"'{name}' is constant in a member, and neither a literal nor a root can say so")
    return formula_for(table, mentioned[:1], synthesis_operators(grammar))


def _function(space: VersionSpace, rng: Random, variable: int, mask: Mask, penalty: int | None) -> TruthTable:
    """Sample a function of exactly these parents, by the same weights."""
    local = space.local(variable)
    table = local.tables[mask]
    if not local.by_size:
        return TruthTable(table.num_vars, sample_completion(rng, table.num_vars, table.care, table.value))
    cap = space.model_class.max_size
    assert cap is not None
    sizes = [(s, n << (penalty * (cap - s) if penalty else 0)) for s, n in local.by_size[mask].items()]
    size = draw_weighted(rng, sizes, sum(weight for _, weight in sizes))
    listed = agreeing_functions(space, table, size)
    return listed[rng.randrange(len(listed))]


def agreeing_functions(space: VersionSpace, table: PartialTable, size: int) -> list[TruthTable]:
    """Return the functions of that least size that depend on all variables and agree with the table, by bits."""
    functions = space.functions
    if table.num_vars == 0:
        constants = constant_sizes(functions, space.task.grammar)
        tables = [TruthTable(0, bit) for bit in sorted(constants) if constants[bit] == size]
        return [function for function in tables if table.agrees(function)]
    bits = _functions_of_size(functions, table.num_vars, size)
    agreeing = bits[(bits ^ np.uint64(table.value)) & np.uint64(table.care) == 0]
    return [TruthTable(table.num_vars, word) for word in agreeing.tolist()]


@cache
def _functions_of_size(functions: EssentialFunctions, num_vars: int, size: int) -> npt.NDArray[np.uint64]:
    """Return the tables of the functions of so many variables and that least size, by bits."""
    start, end = functions.starts[num_vars], functions.ends[num_vars]
    bits: npt.NDArray[np.uint64] = functions.bits[start:end][functions.sizes[start:end] == size]
    return bits


def sample_completion(rng: Random, num_vars: int, care: int, value: int) -> int:
    """Complete the unobserved rows uniformly among functions that depend on every variable, by rejection."""
    num_rows = 1 << num_vars
    unseen = full_mask(num_vars) & ~care
    halves = _low_rows(num_vars)
    # ends with probability 1: sets without an agreeing function weigh 0 and are never drawn
    while True:
        table = value | (rng.getrandbits(num_rows) & unseen)
        for shift, low_rows in halves:
            if not (table >> shift ^ table) & low_rows:
                break
        else:
            return table


@cache
def _low_rows(num_vars: int) -> list[tuple[int, int]]:
    """Return, per variable, the distance of rows that differ in it, and the rows in which it is 0."""
    return [(1 << i, full_mask(num_vars) & ~projection(i, num_vars).bits) for i in range(num_vars)]
