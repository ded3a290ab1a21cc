"""The most probable SCM with formulas, of least total formula size; all that tie, counted, listed and drawn.

For every parent set, the best tables are those of fewest mismatches that depend on all of it; the smallest formula of
these is looked up. Then dynamic programming over subsets of the endogenous variables has the pairs of prior weight and
mismatches that no other exceeds in both, each with its least size. Under a uniform prior a single pair remains: that of
fewest mismatches, whatever the rate.

`best_map` returns one SCM by its tie rule; `tied_maps` has the others, which show how far a rate depends on that rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import islice, product
from math import lcm, prod
from random import Random
from typing import NamedTuple

import numpy as np

from calibrant.dsl.formulas.formula import Formula, constant
from calibrant.dsl.formulas.table import PartialTable, TruthTable, support
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, Prior
from calibrant.solvers.acyclic.draws import draw_weighted
from calibrant.solvers.acyclic.least import Mask, members_of
from calibrant.solvers.formulas.catalogue import essential_functions, synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found, OutOfBudget
from calibrant.solvers.replayscm.hidden.columns import HiddenColumn, hidden_columns
from calibrant.solvers.replayscm.hidden.mass import best_fitting_columns, exact_mass, feasible_columns
from calibrant.solvers.replayscm.members import MAX_LISTED
from calibrant.solvers.replayscm.noise.most_probable import (
    Assignment,
    Key,
    LayeredMaxima,
    SetMaximum,
    fewest_mismatches,
    rate_factor,
)
from calibrant.solvers.replayscm.noise.posterior import Posterior, extend_rows
from calibrant.solvers.replayscm.noise.subset_tables import VariableRows, clean_patterns, pattern_counts

# --- The most probable SCM with formulas; in a tie the one of least total formula size --------------------------------
MAX_CATALOGUE_VARS = 4  # variables of functions whose least formulas are all listed
MAX_OPEN_ROWS = 12  # open rows of a table: 2**12 completions are compared by size
# a hidden variable of 3 parents has at most 109 columns, negations apart; two have 11,881 before worlds exclude most
MAX_COLUMNS = 2_048  # combinations of hidden columns whose best posterior is computed, 5 ms each
MAX_SIGNED_COLUMNS = 128  # columns that attain the maximum and are searched, with negations, for the smallest formulas


class Option(NamedTuple):
    """Best mechanism over one parent set.

    tables: bits of all best functions of the same formula size, that of the formula first
    """

    weight: Fraction
    mismatches: int
    size: int
    formula: Formula
    mask: Mask
    tables: Sequence[int]


class Partial(NamedTuple):
    """Best assignment of a set of variables: weight, mismatches, total size, and the option of each variable."""

    weight: Fraction
    mismatches: int
    size: int
    chosen: tuple[tuple[int, Option], ...]


@dataclass(frozen=True)
class BestMap:
    """Most probable SCM.

    formulas: variable -> formula, hidden ones too; share: posterior; num_columns: hidden columns that attain it
    is_smallest: whether all of these were searched, so that no SCM of the same posterior has smaller formulas
    weight: prior x probability of the rows
    signed_columns: hidden columns under which SCMs of the same size attain the maximum
    """

    formulas: Mapping[str, Formula]
    share: Fraction
    mismatches: int
    size: int
    num_columns: int
    is_smallest: bool
    weight: Fraction
    signed_columns: tuple[tuple[HiddenColumn, ...], ...]


def best_map(posterior: Posterior, grammar: Grammar) -> BestMap:
    """Return the most probable SCM, in a tie the smallest under the first MAX_SIGNED_COLUMNS columns that attain it.

    `BudgetSpent` for too many hidden columns; `ValueError` if no SCM has positive posterior.
    """
    columns, is_complete = _best_columns(posterior, grammar)
    best: tuple[tuple[Fraction, int], Partial] | None = None
    attaining: dict[tuple[Fraction, int], list[tuple[HiddenColumn, ...]]] = {}
    # negated columns have the same posterior but other formulas, whose sizes decide ties
    for signed in (signed for pair in columns[:MAX_SIGNED_COLUMNS] for signed in product(*map(_signs, pair))):
        for partial in _column_front(posterior, grammar, signed):
            value = partial.weight * rate_factor(posterior, partial.mismatches)
            key = value, -partial.size
            columns_of_key = attaining.setdefault(key, [])
            if not columns_of_key or columns_of_key[-1] is not signed:  # two partials of a column may have one key
                columns_of_key.append(signed)
            if value and (best is None or key > best[0]):
                best = key, partial
    if best is None:
        raise ValueError("no SCM of the class has positive posterior")
    key, partial = best
    value = key[0]
    names = posterior.scm_class.variables
    formulas = {names[v]: option.formula for v, option in sorted(partial.chosen, key=lambda pair: pair[0])}
    is_smallest = is_complete and len(columns) <= MAX_SIGNED_COLUMNS
    share = value / exact_mass(posterior)
    return BestMap(
        formulas, share, partial.mismatches, partial.size, len(columns), is_smallest, value, tuple(attaining[key])
    )


def _best_columns(posterior: Posterior, grammar: Grammar) -> tuple[list[tuple[HiddenColumn, ...]], bool]:
    """Return the columns under which the posterior has its maximum, without negations, and whether these are all."""
    scm_class = posterior.scm_class
    if not scm_class.hidden_parents:
        return [()], True
    if not scm_class.noise.is_noiseless:
        columns_left = iter(hidden_columns(scm_class, posterior.words))
        listed = list(islice(columns_left, MAX_COLUMNS))
        if next(columns_left, None) is not None:
            raise BudgetSpent(f"more than {MAX_COLUMNS:,} columns of hidden variables; compared are that many")
        values = [_best_value(posterior, grammar, columns) for columns in listed]
        top = max(values, default=Fraction(0))
        return [columns for columns, value in zip(listed, values, strict=True) if value == top], True
    # without noise, most columns fit no SCM, which their groups show; under a uniform prior all SCMs that fit are best
    is_uniform = scm_class.prior is Prior.UNIFORM
    best = (
        feasible_columns(posterior)
        if is_uniform
        else best_fitting_columns(posterior, lambda columns: _best_value(posterior, grammar, columns), MAX_COLUMNS)
    )
    listed = list(islice(best, MAX_COLUMNS))
    return listed, next(best, None) is None


def _best_value(posterior: Posterior, grammar: Grammar, columns: Sequence[HiddenColumn]) -> Fraction:
    """Return the largest posterior weight of an SCM under these columns; 0 if none fits."""
    front = _column_front(posterior, grammar, columns)
    return max((p.weight * rate_factor(posterior, p.mismatches) for p in front), default=Fraction(0))


def _signs(column: HiddenColumn) -> list[HiddenColumn]:
    """Return a column and its negation; the column alone if it has no values."""
    negated = replace(column, values={word: 1 - bit for word, bit in column.values.items()})
    return [column, negated] if column.values else [column]


def _column_front(posterior: Posterior, grammar: Grammar, columns: Sequence[HiddenColumn]) -> list[Partial]:
    """Return the best assignments under these columns, one for each number of mismatches on the front."""
    return _best_assignments(column_options(posterior, grammar, columns), posterior.root_mask)


def column_options(posterior: Posterior, grammar: Grammar, columns: Sequence[HiddenColumn]) -> dict[int, list[Option]]:
    """Return variable -> best mechanism over each parent set, under these columns of the hidden variables."""
    scm_class = posterior.scm_class
    options: dict[int, list[Option]] = {}
    for v, local in posterior.local_rows.items():
        options[v] = _options(posterior, grammar, v, extend_rows(local, columns))
    for column in columns:
        parents = members_of(column.parents)
        values = {sum((w >> u & 1) << i for i, u in enumerate(parents)): bit for w, bit in column.values.items()}
        name = scm_class.variables[column.index]
        table = _partial_table(len(parents), values)
        # a hidden variable of unknown parents may be a constant
        formula, least = _smallest(
            [table], [scm_class.variables[u] for u in parents], grammar, mentioned_roots(scm_class, name)
        )
        weight = scm_class.mechanism_weight(name, column.num_parents)
        options[column.index] = [Option(weight, 0, formula.size, formula, column.parents, least)]
    return options


def _options(posterior: Posterior, grammar: Grammar, variable: int, rows: VariableRows) -> list[Option]:
    """Return the best mechanism over each parent set, without sets that a subset dominates."""
    scm_class = posterior.scm_class
    grid, names = scm_class.noise.grid, scm_class.variables
    fewest = fewest_mismatches(rows, variable, posterior.masks[variable])
    pairs: dict[Mask, tuple[Fraction, int]] = {}
    for mask, (mismatches, _) in fewest.items():
        weight = scm_class.parent_weights[mask.bit_count()]
        if scm_class.noise.kind is NoiseKind.EACH:
            cells = rows.num_cells
            weight *= sum((p * e**mismatches * (1 - e) ** (cells - mismatches) for e, p in grid), start=Fraction(0))
            pairs[mask] = weight, 0
        elif not (scm_class.noise.is_noiseless and mismatches):
            pairs[mask] = weight, mismatches
    mentioned = mentioned_roots(scm_class, names[variable])
    options = []
    for mask, (weight, mismatches) in pairs.items():
        # a subset is available wherever the set is, so a set that it dominates is in no best SCM
        if not weight or any(
            _dominates(pairs[sub], (weight, mismatches)) for sub in pairs if sub & mask == sub != mask
        ):
            continue
        tables = _best_tables(rows, variable, mask, fewest[mask][0])
        formula, least = _smallest(tables, [names[u] for u in members_of(mask)], grammar, mentioned)
        options.append(Option(weight, mismatches, formula.size, formula, mask, least))
    return options


def mentioned_roots(scm_class: MechanismClass, variable: str) -> list[str]:
    """Return the roots that a formula of a variable may mention."""
    return [root for root in scm_class.roots if root in scm_class.admissible_parents(variable)]


def _dominates(first: tuple[Fraction, int], second: tuple[Fraction, int]) -> bool:
    """Return whether one (weight, mismatches) is at least as good as another in both parts, and differs."""
    return first[0] >= second[0] and first[1] <= second[1] and first != second


def _best_tables(rows: VariableRows, variable: int, mask: Mask, fewest: int) -> list[PartialTable]:
    """Return the majority table, or its cheapest single flips if every completion of it ignores a parent.

    fewest: fewest mismatches of a function that depends on all parents
    """
    parents = members_of(mask)
    clean = clean_patterns(rows, variable, mask)
    assert clean is not None
    values: dict[int, int] = {}
    costs: dict[int, int] = {}
    least = 0
    counts = pattern_counts(rows, variable, mask)
    for pattern in counts.keys() | clean.keys():
        zeros, ones = counts.get(pattern, (0, 0))
        row = sum((pattern >> u & 1) << i for i, u in enumerate(parents))
        if pattern in clean:
            values[row] = clean[pattern]
            least += zeros if clean[pattern] else ones
        else:
            # a pattern with as many zeros as ones stays open: the smallest formula decides
            least += min(zeros, ones)
            if zeros != ones:
                values[row] = int(ones > zeros)
                costs[row] = abs(ones - zeros)
    if fewest == least:
        return [_partial_table(len(parents), values)]
    # one flip is enough (proof in the head of most_probable); with an open pattern, which flips at no cost, `fewest` is
    # `least`
    flips = [row for row, cost in costs.items() if cost == fewest - least]
    return [_partial_table(len(parents), values | {row: 1 - values[row]}) for row in sorted(flips)]


def _partial_table(num_vars: int, values: Mapping[int, int]) -> PartialTable:
    return PartialTable(num_vars, sum(1 << row for row in values), sum(bit << row for row, bit in values.items()))


def _smallest(
    tables: Sequence[PartialTable], names: Sequence[str], grammar: Grammar, mentioned: Sequence[str]
) -> tuple[Formula, Sequence[int]]:
    """Return a smallest formula of a completion that depends on all names, and the bits of all of that size.

    The formula is that of the first of these.

    mentioned: roots that a constant may mention

    `BudgetSpent` for more than MAX_OPEN_ROWS open rows.
    """
    if 1 <= len(names) <= MAX_CATALOGUE_VARS:
        return _smallest_listed(tables, names, synthesis_operators(grammar))
    formulas = {
        table.bits: table_formula(table, names, grammar, mentioned)
        for partial in tables
        for table in _completions(partial)
        if len(support(table)) == len(names)
    }
    best = min(formulas.values(), key=lambda formula: formula.size)
    return best, [bits for bits, formula in formulas.items() if formula.size == best.size]


def _smallest_listed(
    tables: Sequence[PartialTable], names: Sequence[str], operators: tuple[str, ...]
) -> tuple[Formula, Sequence[int]]:
    """Return a smallest formula from the complete catalogue of functions that depend on all names."""
    functions = essential_functions(MAX_CATALOGUE_VARS, operators)
    span = slice(functions.starts[len(names)], functions.ends[len(names)])
    bits, sizes = functions.bits[span], functions.sizes[span]
    agreeing = np.zeros(len(bits), np.bool_)
    for partial in tables:
        agreeing |= (bits ^ np.uint64(partial.value)) & np.uint64(partial.care) == 0
    positions = np.flatnonzero(agreeing)
    # the catalogue ascends by size, then by bits
    least = bits[positions[sizes[positions] == sizes[positions].min()]].tolist()
    return formula_for(TruthTable(len(names), least[0]), names, operators), least


def table_formula(table: TruthTable, names: Sequence[str], grammar: Grammar, mentioned: Sequence[str]) -> Formula:
    """Return a smallest formula of a table over names; a constant is a literal or mentions the first of the roots."""
    operators = synthesis_operators(grammar)
    if names:
        return formula_for(table, names, operators)
    if grammar.allow_constants:
        return constant(bool(table.bits))
    if not mentioned:
        raise ValueError("a constant needs a literal or a root that may be mentioned")
    return formula_for(table, list(mentioned[:1]), operators)


def _completions(partial: PartialTable) -> list[TruthTable]:
    """Return all tables that agree; `BudgetSpent` for more than MAX_OPEN_ROWS open rows."""
    size = 1 << partial.num_vars
    unseen = [row for row in range(size) if not partial.care >> row & 1]
    if len(unseen) > MAX_OPEN_ROWS:
        raise BudgetSpent(f"2**{len(unseen)} completions of a table; compared are up to 2**{MAX_OPEN_ROWS}")
    return [
        TruthTable(partial.num_vars, partial.value | sum((n >> i & 1) << row for i, row in enumerate(unseen)))
        for n in range(1 << len(unseen))
    ]


class _State(NamedTuple):
    """Best assignment of a set of variables, during the search.

    weight: times the scales of its variables; code: parent sets as one number, that of the first variable highest
    """

    weight: int
    size: int
    code: int
    chosen: tuple[tuple[int, Option], ...]


def _best_assignments(options: Mapping[int, Sequence[Option]], roots: Mask) -> list[Partial]:
    """Return the best assignments of all variables, by dynamic programming over the sets of placed variables."""
    variables = sorted(options)
    width = max(option.mask.bit_length() for sets in options.values() for option in sets) if variables else 0
    # a scale for each variable: assignments of the same variables compare as integers, 20 times faster than fractions
    scales = {v: lcm(*(option.weight.denominator for option in sets)) for v, sets in options.items()}
    scaled = {
        v: [
            (int(option.weight * scales[v]), option.mask << width * (len(variables) - position), option)
            for option in options[v]
        ]
        for position, v in enumerate(variables, start=1)
    }
    # by orders, not by layers: for a maximum a DAG may occur in several orders
    fronts: dict[Mask, dict[int, _State]] = {0: {0: _State(1, 0, 0, ())}}  # placed -> mismatches -> best assignment
    for _ in variables:
        following: dict[Mask, dict[int, _State]] = {}
        for placed, states in fronts.items():
            for v in variables:
                if placed >> v & 1:
                    continue
                allowed = [triple for triple in scaled[v] if not triple[2].mask & ~(placed | roots)]
                _extend(states, v, allowed, following.setdefault(placed | 1 << v, {}))
        fronts = {placed: _undominated(states) for placed, states in following.items()}
    scale = prod(scales.values())
    return [
        Partial(Fraction(state.weight, scale), mismatches, state.size, state.chosen)
        for mismatches, state in next(iter(fronts.values()), {}).items()
    ]


def _extend(
    states: Mapping[int, _State], variable: int, allowed: Sequence[tuple[int, int, Option]], best: dict[int, _State]
) -> None:
    """Add a variable to every assignment; for each number of mismatches keep largest weight, then smallest size.

    allowed: weight, code and option of each parent set; the code breaks ties, whatever the order of options
    best: mismatches -> best assignment so far, updated
    """
    for mismatches, state in states.items():
        for factor, code, option in allowed:
            total_mismatches, weight = mismatches + option.mismatches, state.weight * factor
            incumbent = best.get(total_mismatches)
            if incumbent is not None:
                if weight < incumbent.weight:
                    continue
                rank = state.size + option.size, state.code + code
                if weight == incumbent.weight and rank >= (incumbent.size, incumbent.code):
                    continue
            chosen = (*state.chosen, (variable, option))
            best[total_mismatches] = _State(weight, state.size + option.size, state.code + code, chosen)


def _undominated(states: Mapping[int, _State]) -> dict[int, _State]:
    """Drop assignments if another of fewer mismatches has at least their weight."""
    pruned: dict[int, _State] = {}
    top = 0
    for mismatches in sorted(states):
        if states[mismatches].weight > top:
            pruned[mismatches] = states[mismatches]
            top = states[mismatches].weight
    return pruned


# --- All most probable SCMs of least formula size: their exact number, and each of them or uniform draws --------------
MAX_MECHANISMS = 8  # 3**8 states of the sum over DAGs, about a second under one column of hidden variables

Formulas = Mapping[str, Formula]
"""An SCM: formula of each variable, hidden ones too."""


@dataclass(frozen=True)
class TiedMaps:
    """Most probable SCMs of least size: their number, and all of them or independent uniform draws."""

    count: int
    maps: tuple[Formulas, ...]


class _Part(NamedTuple):
    """SCMs under one combination of hidden columns that attain one key (weight, mismatches).

    num_scms: number of SCMs; options: variable -> parent set -> best mechanism
    """

    num_scms: int
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
    count = sum(part.num_scms for part in parts)
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
                yield _Part(least.multiplicity, options, maxima, key)


def _attaining_options(
    posterior: Posterior, options: Mapping[int, Sequence[Option]], best: BestMap
) -> dict[int, dict[Mask, Option]]:
    """Return the options by parent set, without those that no SCM of the maximal posterior can have."""
    odds = _mismatch_odds(posterior)
    if odds is None:
        return {v: {o.mask: o for o in listed} for v, listed in options.items()}
    values = {v: {o.mask: o.weight * odds**o.mismatches for o in listed} for v, listed in options.items()}
    target = best.weight / rate_factor(posterior, best.mismatches) * odds**best.mismatches
    # the bound ignores cycles, so it excludes no option of an optimum
    bound = prod((max(by_mask.values()) for by_mask in values.values()), start=Fraction(1))
    return {
        v: {o.mask: o for o in listed if values[v][o.mask] * bound >= target * max(values[v].values())}
        for v, listed in options.items()
    }


def _mismatch_odds(posterior: Posterior) -> Fraction | None:
    """Return a factor for each mismatch by which SCMs can be compared; None if there is no single one."""
    noise, prior = posterior.scm_class.noise, posterior.scm_class.prior
    if noise.kind is NoiseKind.EACH:
        return Fraction(1)  # the options' weights contain their mismatches
    if len(noise.grid) == 1:
        ((rate, _),) = noise.grid
        return rate / (1 - rate)
    # with equal weights the fewest mismatches are best, so any factor below 1 will do
    return Fraction(1, 2) if prior is Prior.UNIFORM else None


class _Writer:
    """Writer of the SCMs of parts as formulas."""

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
        part: _Part = draw_weighted(rng, ((part, part.num_scms) for part in parts), count)
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
