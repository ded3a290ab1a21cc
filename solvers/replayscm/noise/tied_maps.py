"""All most probable SCMs of least formula size: their exact number, and each of them or uniform draws.

`best_map` returns one of them by its tie rule; what a rate owes to that choice is what the others say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import prod
from random import Random
from typing import NamedTuple

from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.extensions.extension import NoiseKind, Prior
from calibrant.solvers.acyclic.draws import draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.outcome import Found, OutOfBudget
from calibrant.solvers.replayscm.least_models import MAX_LISTED
from calibrant.solvers.replayscm.noise.best_map import (
    BestMap,
    Option,
    column_options,
    mentioned_roots,
    table_formula,
)
from calibrant.solvers.replayscm.noise.layered_maxima import Assignment, Key, LayeredMaxima, SetMaximum
from calibrant.solvers.replayscm.noise.most_probable import rate_factor
from calibrant.solvers.replayscm.noise.posterior import Posterior

MAX_MECHANISMS = 8  # 3**8 states of the sum over DAGs, about a second under one column of hidden variables

Formulas = Mapping[str, Formula]
"""An SCM: formula of each variable, hidden ones too."""


@dataclass(frozen=True)
class TiedMaps:
    """The most probable SCMs of least size: how many, and all of them or independent uniform draws."""

    count: int
    maps: tuple[Formulas, ...]


class _Part(NamedTuple):
    """SCMs under one column of the hidden variables that attain one pair of weight and mismatches."""

    number: int
    options: Mapping[int, Mapping[Mask, Option]]
    maxima: LayeredMaxima
    key: Key


def tied_maps(
    posterior: Posterior, grammar: Grammar, best: BestMap, *, max_listed: int = MAX_LISTED
) -> Found[TiedMaps] | OutOfBudget:
    """Return all SCMs that are as probable and as small as the best one, or draws; `OutOfBudget` says why not."""
    if not best.is_smallest:
        return OutOfBudget("ties are not counted: the smallest were sought under some hidden columns alone")
    if len(posterior.scm_class.variables) - len(posterior.scm_class.roots) > MAX_MECHANISMS:
        return OutOfBudget(f"ties are not counted: more than {MAX_MECHANISMS} mechanisms")
    parts = list(_parts(posterior, grammar, best))
    count = sum(part.number for part in parts)
    writer = _Writer(posterior, grammar)
    if count <= max_listed:
        return Found(TiedMaps(count, tuple(writer.list_maps(parts, best.size))))
    rng = Random(count)
    return Found(TiedMaps(count, tuple(writer.draw(parts, best.size, rng, count) for _ in range(max_listed))))


def _parts(posterior: Posterior, grammar: Grammar, best: BestMap) -> Iterator[_Part]:
    for columns in best.signed_columns:
        options = _attaining_options(posterior, column_options(posterior, grammar, columns), best)
        maxima = LayeredMaxima(
            {
                v: {mask: SetMaximum(o.weight, o.mismatches, o.size, len(o.tables)) for mask, o in by_mask.items()}
                for v, by_mask in options.items()
            },
            posterior.root_mask,
        )
        for key, least in maxima.front.items():
            weight, mismatches = key
            if least.size == best.size and weight * rate_factor(posterior, mismatches) == best.weight:
                yield _Part(least.number, options, maxima, key)


def _attaining_options(
    posterior: Posterior, options: Mapping[int, Sequence[Option]], best: BestMap
) -> dict[int, dict[Mask, Option]]:
    """Return the options by parent set, without those that fall short of the best SCM whatever the others are."""
    odds = _mismatch_odds(posterior)
    if odds is None:
        return {v: {o.mask: o for o in listed} for v, listed in options.items()}
    values = {v: {o.mask: o.weight * odds**o.mismatches for o in listed} for v, listed in options.items()}
    target = best.weight / rate_factor(posterior, best.mismatches) * odds**best.mismatches
    # cycles are allowed in this bound, so it excludes nothing that an optimum has
    bound = prod((max(by_mask.values()) for by_mask in values.values()), start=Fraction(1))
    return {
        v: {o.mask: o for o in listed if values[v][o.mask] * bound >= target * max(values[v].values())}
        for v, listed in options.items()
    }


def _mismatch_odds(posterior: Posterior) -> Fraction | None:
    """Return a factor by which a mismatch changes the order of SCMs; None where no one factor does."""
    noise, prior = posterior.scm_class.noise, posterior.scm_class.prior
    if noise.kind is NoiseKind.EACH:
        return Fraction(1)  # the options' weights contain their mismatches
    if len(noise.grid) == 1:
        ((rate, _),) = noise.grid
        return rate / (1 - rate)
    # of equal weights the fewest mismatches are best, whatever the factor below 1
    return Fraction(1, 2) if prior is Prior.UNIFORM else None


class _Writer:
    """Writes SCMs of parts as formulas."""

    def __init__(self, posterior: Posterior, grammar: Grammar) -> None:
        self._scm_class = posterior.scm_class
        self._grammar = grammar

    def list_maps(self, parts: list[_Part], size: int) -> Iterator[Formulas]:
        for part in parts:
            for assignment in part.maxima.assignments(part.key, size):
                tables = [part.options[v][mask].tables for v, mask in assignment]
                for bits in product(*tables):
                    yield self._formulas(assignment, bits)

    def draw(self, parts: list[_Part], size: int, rng: Random, count: int) -> Formulas:
        part: _Part = draw_weighted(rng, ((part, part.number) for part in parts), count)
        assignment = part.maxima.draw(rng, part.key, size)
        return self._formulas(assignment, tuple(rng.choice(part.options[v][mask].tables) for v, mask in assignment))

    def _formulas(self, assignment: Assignment, bits: tuple[int, ...]) -> Formulas:
        names = self._scm_class.variables
        formulas = {}
        for (v, mask), table in sorted(zip(assignment, bits, strict=True)):
            parents = members_of(mask)
            roots = mentioned_roots(self._scm_class, names[v])
            formulas[names[v]] = table_formula(
                TruthTable(len(parents), table), [names[u] for u in parents], self._grammar, roots
            )
        return formulas
