"""Reference semantics of noise and hidden variables: enumerate SCMs, run each under every noise assignment.

Slow on purpose and without any closed form; every fast path is compared with it. An SCM of the class is a map of
functional parents and truth tables (`LocalFunction`), hidden variables included. A context assigns the roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from math import prod
from typing import TypeAlias

from calibrant.dsl.formulas.table import TruthTable, support
from calibrant.dsl.replayscm.disclosure import Names
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind
from calibrant.dsl.replayscm.scm import LocalFunction

Mechanisms: TypeAlias = Mapping[str, LocalFunction]
"""Observed endogenous or hidden variable -> its function."""


@dataclass(frozen=True)
class EvidenceWorld:
    """Rows of observed values under constants.

    rows: texts of 0 and 1, a character for each observed variable
    is_clean: whether rows come from noise-free replay, so that only SCMs that reproduce them fit
    """

    constants: Mapping[str, int] = field(default_factory=dict)
    rows: tuple[str, ...] = ()
    is_clean: bool = False


@cache
def _essential_tables(num_vars: int) -> tuple[TruthTable, ...]:
    """Return every function that depends on all of num_vars variables."""
    tables = (TruthTable(num_vars, bits) for bits in range(1 << (1 << num_vars)))
    return tuple(table for table in tables if len(support(table)) == num_vars)


def mechanisms_of(scm_class: MechanismClass, variable: str) -> Iterator[LocalFunction]:
    """Yield every mechanism of one variable that the class admits."""
    candidates, stated = scm_class.admissible_parents(variable), scm_class.hidden_parents.get(variable)
    sets: Iterable[Names]
    if stated is not None:  # all functions of the stated parents, which depend on each of them
        sets = [stated]
    else:
        sizes = range(min(scm_class.max_parents, len(candidates)) + 1)
        sets = (chosen for size in sizes for chosen in combinations(candidates, size))
    for parents in sets:
        for table in _essential_tables(len(parents)):
            yield LocalFunction(parents, table)


def enumerate_scms(scm_class: MechanismClass) -> Iterator[tuple[Mechanisms, Fraction]]:
    """Yield every acyclic SCM of the class with its prior weight."""
    names = (*scm_class.hidden_parents, *scm_class.endogenous)
    options = [list(mechanisms_of(scm_class, name)) for name in names]
    for choice in product(*options):
        mechanisms = dict(zip(names, choice, strict=True))
        if evaluation_order(mechanisms) is not None:
            weights = (scm_class.mechanism_weight(name, len(f.parents)) for name, f in mechanisms.items())
            yield mechanisms, prod(weights, start=Fraction(1))


def evaluation_order(mechanisms: Mechanisms) -> Names | None:
    """Return the variables with mechanisms, parents first; None if there is a cycle."""
    order: list[str] = []
    waiting = list(mechanisms)
    while waiting:
        ready = [v for v in waiting if not any(parent in waiting for parent in mechanisms[v].parents)]
        if not ready:
            return None
        order += ready
        waiting = [v for v in waiting if v not in ready]
    return tuple(order)


def apply_function(function: LocalFunction, values: Mapping[str, int]) -> int:
    """Return the value of a mechanism."""
    row = sum(values[parent] << i for i, parent in enumerate(function.parents))
    return function.table.bits >> row & 1


def replay_row(
    scm_class: MechanismClass,
    mechanisms: Mechanisms,
    observed: Mapping[str, int],
    constants: Mapping[str, int],
    flipped: frozenset[str] = frozenset(),
) -> dict[str, int]:
    """Return all values, hidden ones too, in one row of an acyclic SCM.

    observed: values of the roots at least; flipped: variables whose cell the noise flips
    """
    values = {root: constants.get(root, observed[root]) for root in scm_class.roots}
    for variable in evaluation_order(mechanisms) or ():
        if variable in constants:
            values[variable] = constants[variable]
        else:
            values[variable] = apply_function(mechanisms[variable], values) ^ (variable in flipped)
    return values


def row_likelihood(
    scm_class: MechanismClass, mechanisms: Mechanisms, world: EvidenceWorld, row: str, rates: Mapping[str, Fraction]
) -> Fraction:
    """Return the probability of a row given its context: summed over all noise assignments.

    rates: probability of a flip, for each observed endogenous variable
    """
    observed = {v: int(bit) for v, bit in zip(scm_class.observed, row, strict=True)}
    noisy = [] if world.is_clean else [v for v in scm_class.endogenous if v not in world.constants]
    probability = Fraction(0)
    for assignment in product((False, True), repeat=len(noisy)):
        flipped = frozenset(v for v, flips in zip(noisy, assignment, strict=True) if flips)
        values = replay_row(scm_class, mechanisms, observed, world.constants, flipped)
        if all(values[v] == bit for v, bit in observed.items()):
            probability += prod((rates[v] if v in flipped else 1 - rates[v] for v in noisy), start=Fraction(1))
    return probability


def likelihood(
    scm_class: MechanismClass, mechanisms: Mechanisms, worlds: Sequence[EvidenceWorld], rates: Mapping[str, Fraction]
) -> Fraction:
    """Return the probability of all rows given their contexts, for known rates."""
    rows = ((world, row) for world in worlds for row in world.rows)
    probability = Fraction(1)
    for world, row in rows:
        if not probability:
            break
        probability *= row_likelihood(scm_class, mechanisms, world, row, rates)
    return probability


def rate_assignments(scm_class: MechanismClass) -> Iterator[tuple[dict[str, Fraction], Fraction]]:
    """Yield every assignment of rates to the observed endogenous variables, with its prior probability."""
    endogenous, noise = scm_class.endogenous, scm_class.noise
    if noise.kind is NoiseKind.EACH:
        for choice in product(noise.grid, repeat=len(endogenous)):
            rates = {v: rate for v, (rate, _) in zip(endogenous, choice, strict=True)}
            yield rates, prod((prior for _, prior in choice), start=Fraction(1))
    else:
        for rate, prior in noise.grid:
            yield dict.fromkeys(endogenous, rate), prior


def posterior_weights(
    scm_class: MechanismClass, worlds: Sequence[EvidenceWorld]
) -> Iterator[tuple[Mechanisms, Fraction]]:
    """Yield every SCM with prior x P(rows | contexts), rates summed out; the sum is the mass of the evidence."""
    assignments = list(rate_assignments(scm_class))
    for mechanisms, weight in enumerate_scms(scm_class):
        terms = (prior * likelihood(scm_class, mechanisms, worlds, rates) for rates, prior in assignments)
        yield mechanisms, weight * sum(terms, start=Fraction(0))


def visible_rows(scm_class: MechanismClass, mechanisms: Mechanisms) -> tuple[tuple[int, ...], ...]:
    """Return the observed rows under every intervention on observed variables, in every context.

    SCMs with the same rows have the same meaning.
    """
    rows = []
    for constants in all_interventions(scm_class.endogenous):
        for context in product((0, 1), repeat=len(scm_class.roots)):
            values = replay_row(scm_class, mechanisms, dict(zip(scm_class.roots, context, strict=True)), constants)
            rows.append(tuple(values[v] for v in scm_class.observed))
    return tuple(rows)


def all_interventions(endogenous: Sequence[str]) -> Iterator[dict[str, int]]:
    """Yield every intervention on endogenous variables; a constant of a root is only another context."""
    for choice in product((None, 0, 1), repeat=len(endogenous)):
        yield {v: bit for v, bit in zip(endogenous, choice, strict=True) if bit is not None}
