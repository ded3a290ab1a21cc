"""Fronts, smallest formulas by number of errors on a table, as `calibrant fit` states them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.core.capabilities import Steps
from calibrant.bench.replayscm.fitting.columns import GAP, quote_name
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError, readable_repr
from calibrant.dsl.formulas.table import full_mask
from calibrant.dsl.knowledge import Knowledge, read_knowledge
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.count import MAX_VARIABLES, Counts, pareto_points, sum_over_dags
from calibrant.solvers.formulas.fronts import (
    MAX_CATALOGUE_COLUMNS,
    MAX_SETS,
    Front,
    FrontFunction,
    FrontPoint,
    Patterns,
    all_supports,
    front,
    functions_of,
    is_sum_search,
    num_sets,
)
from calibrant.solvers.formulas.least_formulas import (
    MEASURES,
    NUM_VARS,
    Measure,
    Size,
    Tree,
    formula_book,
    infix_text,
    size_of_code,
    tree_text,
)
from calibrant.solvers.formulas.minimal_sums import FRONT_CONFLICTS, MAX_VARS
from calibrant.solvers.formulas.uncertain_rows import Prior
from calibrant.solvers.outcome import Impossible
from calibrant.solvers.replayscm.space import MAX_PARENTS

MAX_TIES = 10_000
MAX_TARGET_PARENTS = 12  # largest number of parents of a target
MAX_TABLE_COLUMNS = 12  # number of columns up to which measures are keyed by truth tables, of 4,096 characters
LINES_SHOWN = 12
SUMMED_LITERALS = 1_000  # weight of a product beside literals in sums over SCMs, where ten columns have at most 320
MEASURE_NAMES: Mapping[Measure, str] = {
    "all": "nodes, all operators",
    "and-or-not": "nodes of not, and, or",
    "sop": "sums of products: products+literals",
    "pos": "products of sums: sums+literals",
}


@dataclass(frozen=True)
class TooFewErrors:
    """The allowed number of errors is below the least number that any formula, or any SCM, has."""

    allowed: int
    least: int

    def line(self, noun: str, scope: str = "") -> str:
        """Return the line that is printed in place of an empty front. noun: what would have errors."""
        return f"no {noun} has at most {plural(self.allowed, 'errors')}{scope}; the least is {self.least}"


@dataclass(frozen=True)
class TargetFront:
    """Front of one target: its smallest formulas by number of errors.

    columns: all other columns, in the order of the table
    counted: number of rows in which the target is known and was not set; ones: of these, those with target 1
    max_errors: largest number of errors that was requested, None for any
    """

    target: str
    columns: tuple[str, ...]
    measure: Measure
    max_parents: int
    counted: int
    ones: int
    front: Front
    patterns: Patterns
    ties: int
    too_few: TooFewErrors | None = None
    max_errors: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        entries: dict[str, Any] = dict(zip(("class", "proof"), self.scope, strict=True))
        entries |= {"counted": self.counted, "ones": self.ones}
        entries["front"] = [self._point(point) for point in self.front.points]
        if self.front.max_size is not None:
            entries["exact_to_size"] = self.front.max_size
        if self.too_few is not None:
            entries["least_errors"] = self.too_few.least
        if self.front.at_least is not None:
            open_points = [
                {"errors": p.errors, "size": p.size, "listed": [text for text, _ in p.formulas(1)]}
                for p in self.front.open_points
            ]
            entries["open"] = {"at_least": self.front.at_least, "points": open_points}
        return entries

    def _point(self, point: FrontPoint) -> dict[str, Any]:
        entries: dict[str, Any] = {
            "errors": point.errors,
            "size": size_entry(point.size),
            "formulas": point.num_formulas,
            "functions": len(point.functions),
            "listed": [text for text, _ in point.formulas(self.ties)],
            "measures": {self._key(f): list(map(fraction_text, self._fit_of(f))) for f in point.functions},
        }
        if self.measure == "sop":
            entries["terms"] = {text: self._terms(tree) for text, tree in point.formulas(self.ties)}
        return entries

    def _key(self, function: FrontFunction) -> str:
        """Return the truth table over all columns; for more than MAX_TABLE_COLUMNS columns the first formula."""
        if len(self.columns) > MAX_TABLE_COLUMNS:
            return function.formulas[0][0]
        rows = np.arange(1 << len(self.columns))
        codes = (rows[:, None] >> np.arange(len(self.columns)) & 1).astype(np.int16)
        return "".join(map(str, function.value(codes).tolist()))

    def _fit_of(self, function: FrontFunction) -> tuple[Fraction | None, Fraction | None]:
        """Return consistency and coverage: of rows where f is 1, the share with target 1, and the reverse share."""
        is_one = function.value(self.patterns.codes) == 1
        return self._consistency(is_one), ratio(int(self.patterns.ones[is_one].sum()), self.ones)

    def _consistency(self, is_one: npt.NDArray[np.bool_]) -> Fraction | None:
        true = int(self.patterns.ones[is_one].sum())
        return ratio(true, true + int(self.patterns.zeros[is_one].sum()))

    def _terms(self, formula: Tree) -> dict[str, list[str | None]]:
        """Return product -> its consistency, raw coverage and unique coverage, for a sum of products."""
        products = formula[1:] if isinstance(formula, tuple) and formula[0] == "or" else (formula,)
        products = () if formula == "0" else products
        covers = [tree_values(product, self.patterns.codes) for product in products]
        terms = {}
        for index, (product, cover) in enumerate(zip(products, covers, strict=True)):
            others = np.zeros(len(cover), np.bool_)
            for covered in (*covers[:index], *covers[index + 1 :]):
                others |= covered
            raw = ratio(int(self.patterns.ones[cover].sum()), self.ones)
            unique = ratio(int(self.patterns.ones[cover & ~others].sum()), self.ones)
            terms[tree_text(product, self.names)] = [*map(fraction_text, (self._consistency(cover), raw, unique))]
        return terms

    @property
    def names(self) -> list[str]:
        """Return the names of the columns as formulas have them."""
        return list(map(quote_name, self.columns))

    @property
    def scope(self) -> tuple[str, str]:
        """Return which formulas are compared, and how far the points are proven, in words."""
        number = f"{min(self.max_parents, len(self.columns))} of {plural(len(self.columns), 'columns')}"
        extent = "" if self.front.max_size is None else f" up to size {self.front.max_size}"
        extent += "" if self.front.at_least is None else " as far as the budget goes"
        return f"formulas ({MEASURE_NAMES[self.measure]}) of at most {number}", f"proven{extent}"

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the lines of the front as a table. every: whether all points are given, not only LINES_SHOWN."""
        scope, proof = self.scope
        yield f"{self.target}: errors against size over all {scope}, {plural(self.counted, 'rows')}; {proof}"
        if self.front.max_size is not None:
            yield "larger formulas of five or six columns were not compared"
        if self.too_few is not None:
            scope = "" if self.front.max_size is None else f" up to size {self.front.max_size}"
            yield self.too_few.line("formula", scope)
            return
        yield "errors  size  formulas  functions  formula"
        points = self.front.points if every else self.front.points[:LINES_SHOWN]
        for point in points:
            size = size_text(point.size)
            first = infix_text(plain_first(point), self.names)
            yield f"{point.errors:6d}  {size:>4}  {point.num_formulas:8d}  {len(point.functions):9d}  {first}"
        if len(points) < len(self.front.points):
            yield f"and {len(self.front.points) - len(points)} more (--verbose)"
        yield from self.open_lines(every=every)

    def open_lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield lines on what a spent budget left open: a lower bound of the size, and formulas that may not be least.

        There are none if the budget was not spent. every: whether all formulas are given
        """
        if self.front.at_least is None:
            return
        points = self.front.open_points if every else self.front.open_points[:LINES_SHOWN]
        fewer = f"fewer than {plural(self.front.points[-1].errors, 'errors')}" if self.front.points else "so few errors"
        yield (
            f"the budget of {FRONT_CONFLICTS:,} conflicts ended: with {fewer} the size is at least"
            f" {size_text(self.front.at_least)}{'; not proven least:' if points else ''}"
        )
        for point in points:
            first = infix_text(plain_first(point), self.names)
            yield f"{point.errors:6d}  {size_text(point.size):>4}  {'?':>8}  {'?':>9}  {first}"
        if len(points) < len(self.front.open_points):
            yield f"and {len(self.front.open_points) - len(points)} more (--verbose)"


@dataclass(frozen=True)
class ScmFront:
    """Front of whole SCMs under named roots.

    points: (errors, size, number of formulas, number of functions), by increasing size
    max_errors: largest number of errors that was requested, None for any
    """

    roots: tuple[str, ...]
    max_parents: int
    points: tuple[tuple[int, Size, int, int], ...]
    measure: Measure
    too_few: TooFewErrors | None = None
    max_errors: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        keys = ("errors", "size", "formulas", "functions")
        points = [(errors, size_entry(size), *numbers) for errors, size, *numbers in self.points]
        front = [dict(zip(keys, point, strict=True)) for point in points]
        return {"class": self._scope, "proof": "proven", "front": front}

    @property
    def _scope(self) -> str:
        return f"SCMs of at most {self.max_parents} parents, roots {', '.join(self.roots) or 'none'}"

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the lines of the front as a table. every: whether all points are given, not only LINES_SHOWN."""
        measure = f" ({MEASURE_NAMES[self.measure]})" if self.measure in ("sop", "pos") else ""
        yield f"errors against size{measure} over all {self._scope}; proven"
        if self.too_few is not None:
            yield self.too_few.line("SCM")
            return
        yield "errors  size  formulas  functions"
        points = self.points if every else self.points[:LINES_SHOWN]
        for errors, size, formulas, functions in points:
            yield f"{errors:6d}  {size_text(size):>4}  {formulas:8d}  {functions:9d}"
        if len(points) < len(self.points):
            yield f"and {len(self.points) - len(points)} more (--verbose)"


def front_columns(fronts: Iterable[TargetFront | ScmFront]) -> dict[str, list[Any]]:
    """Return the points of fronts as columns of a frame; of whole SCMs there is no target and no formula.

    proof: "least", or "not proven" of a point that a budget left open, whose ties are not counted
    """
    names = ("target", "errors", "size", "formulas", "functions", "formula", "proof")
    rows: list[tuple[Any, ...]] = []
    for front_of in fronts:
        if isinstance(front_of, ScmFront):
            rows += [(None, e, size_text(size), *numbers, None, "least") for e, size, *numbers in front_of.points]
            continue
        for is_open, points in ((False, front_of.front.points), (True, front_of.front.open_points)):
            for p in points:
                numbers = [None, None] if is_open else [p.num_formulas, len(p.functions)]
                first, proof = infix_text(plain_first(p), front_of.names), "not proven" if is_open else "least"
                rows.append((front_of.target, p.errors, size_text(p.size), *numbers, first, proof))
    return {name: [row[k] for row in rows] for k, name in enumerate(names)}


@dataclass(frozen=True)
class FormulaOptions:
    """Options of `fit`; their defaults are stated here alone.

    errors: "front", a largest number, "none" or None; rates: as `parse_rates` reads them, or None
    graph: a claim on the parents of every column, or None
    consistency: least share of ones of a row of the truth table that is 1, or None; cases: fewest rows of a pattern
    assume: statements that an SCM has to satisfy, as `dsl.knowledge.read_knowledge` takes them, or None
    """

    target: str | None = None
    roots: str | Sequence[str] | None = None
    max_parents: int = 4
    operators: Measure = "all"
    errors: str | int | None = None
    ties: int = 20
    rates: Any = None
    prior: Prior = "uniform"
    graph: Any = None
    consistency: str | float | Fraction | None = None
    cases: int = 1
    assume: str | Path | Knowledge | None = None

    @property
    def consistency_cut(self) -> Fraction:
        """Consistency as an exact fraction; `CalibrantError` if it is none."""
        try:
            cut = Fraction(str(self.consistency))
        except (ValueError, ZeroDivisionError):
            cut = Fraction(0)
        if not 0 < cut <= 1:
            raise CalibrantError(
                f"consistency is {readable_repr(self.consistency)}; a share above 0 and up to 1 is allowed, like"
                " 4/5 or .8"
            )
        return cut

    @property
    def asked_errors(self) -> str | int | None:
        """Errors that are asked for; "none" refuses even the front of a target that no function fits."""
        return None if self.errors == "none" else self.errors

    @property
    def is_asked(self) -> bool:
        """Whether anything but the least formulas over all operators that fit is asked for."""
        return self.asked_errors is not None or self.rates is not None or self.operators != "all"

    @property
    def follows_up(self) -> bool:
        """Whether a target that no function fits has its front without being asked: quick to four columns."""
        return self.target is not None and self.errors is None and self.assume is None and self.max_parents <= NUM_VARS

    @property
    def max_errors(self) -> int | None:
        """Largest number of errors, None for all; other operators without errors are fitted exactly."""
        return None if self.asked_errors == "front" else int(self.asked_errors or 0)

    def check(self) -> None:
        """Refuse values that are not allowed."""
        limit = MAX_PARENTS if self.target is None else MAX_TARGET_PARENTS
        if isinstance(self.max_parents, bool) or self.max_parents not in range(1, limit + 1):
            of_target = "" if limit > MAX_PARENTS else f", with target to {MAX_TARGET_PARENTS}"
            raise CalibrantError(
                f"max_parents is {readable_repr(self.max_parents)}; 1 to {limit} are supported{of_target}"
            )
        if self.target is not None and self.roots is not None:
            raise CalibrantError("target and roots exclude each other: with a target all other columns are roots")
        self._check_configurations()
        self._check_assumption()
        if self.rates is not None and self.target is None:
            raise CalibrantError("rates are of one target: name it (--target)")
        if self.operators not in MEASURES:
            raise CalibrantError(f"operators is {readable_repr(self.operators)}; allowed: {', '.join(MEASURES)}")
        if self.asked_errors not in (None, "front") and not _is_count(self.errors):
            raise CalibrantError(
                f"errors is {readable_repr(self.errors)}; 'front', 'none' or a whole number from 0 is allowed"
            )
        if not _is_count(self.ties) or not 1 <= self.ties <= MAX_TIES:
            raise CalibrantError(f"ties is {readable_repr(self.ties)}; 1 to {MAX_TIES:,} formulas are listed")
        if self.prior not in ("uniform", "by_parents"):
            raise CalibrantError(f"prior is {readable_repr(self.prior)}; allowed: uniform, by_parents")
        if self.prior != "uniform" and self.rates is None:
            raise CalibrantError("prior is of an unknown rate of errors: give rates (--rates)")

    def assumption(self, table: Table) -> Knowledge | None:
        """Return the assumption over legal names; refuse unknown columns, clashes, and tables with gaps or outputs."""
        if self.assume is None:
            return None
        knowledge = read_knowledge(self.assume, "assume")
        if table.outputs or table.num_gaps:
            feature = "outputs" if table.outputs else "gaps"
            raise CalibrantError(
                f"{table.source} has {feature}; assume is for tables without: leave out columns or rows"
            )
        knowledge.check(table.names, table.left_out)
        return knowledge.renamed(dict(zip(table.names, table.legal_names, strict=True)))

    def _check_assumption(self) -> None:
        """Refuse an assumption beside options that do not search SCMs."""
        if self.assume is None:
            return
        others = {
            "errors": self.asked_errors,
            "rates": self.rates,
            "graph": self.graph,
            "consistency": self.consistency,
        }
        options = [name for name, value in others.items() if value is not None]
        options += ["operators"] if self.operators != "all" else []
        if options:
            raise CalibrantError(f"assume is about SCMs that fit every row; take it or {options[0]} away")
        if self.max_parents > MAX_PARENTS:
            raise CalibrantError(f"assume is for mechanisms of at most {MAX_PARENTS} parents; lower max_parents")

    def _check_configurations(self) -> None:
        """Refuse values of a truth table's options, and options beside it."""
        if not _is_count(self.cases) or self.cases < 1:
            raise CalibrantError(f"cases is {readable_repr(self.cases)}; a whole number from 1 is allowed")
        if self.consistency is None:
            if self.cases != 1:
                raise CalibrantError("cases are of a truth table: give consistency (--consistency)")
            return
        _ = self.consistency_cut
        if self.target is None:
            raise CalibrantError("consistency is of one target: name it (--target)")
        if self.operators not in ("all", "sop") or self.asked_errors is not None or self.rates is not None:
            raise CalibrantError("consistency gives sums of products: leave out operators, errors and rates")


def _is_count(value: object) -> bool:
    text = str(value)
    return not isinstance(value, bool) and isinstance(value, int | str) and text.isascii() and text.isdigit()


def patterns_of_target(table: Table, target: str) -> tuple[tuple[str, ...], Patterns]:
    """Return the other columns, and the rows in which the target is known and was not set."""
    place = table.position(target)
    counts = (table.codes[:, place] != GAP) & ~table.is_set(place)
    others = [k for k in range(len(table.names)) if k != place]
    codes, values, numbers = table.codes[counts][:, others], table.codes[counts, place], table.counts[counts]
    names = tuple(table.names[k] for k in others)
    return names, Patterns(codes, np.where(values == 0, numbers, 0), np.where(values == 1, numbers, 0))


def target_front(table: Table, target: str, options: FormulaOptions) -> TargetFront:
    """Return the front of one target."""
    max_parents = options.max_parents
    names, patterns = patterns_of_target(table, target)
    widest = min(max_parents, len(names))
    is_search = is_sum_search(options.operators, widest)
    if is_search and (len(names) > MAX_VARS or (patterns.codes == GAP).any()):
        table_limit = f"tables of at most {MAX_VARS} columns beside the target, without gaps"
        raise CalibrantError(
            f"{table.source}: errors against size ({options.operators}) of more than {NUM_VARS} columns is searched in"
            f" {table_limit}: lower max_parents (--max-parents {NUM_VARS}), or leave out columns"
        )
    if widest > MAX_CATALOGUE_COLUMNS and not is_search:
        raise CalibrantError(
            f"{table.source}: errors against size ({options.operators}) is compared for formulas of at most"
            f" {MAX_CATALOGUE_COLUMNS} columns: lower max_parents (--max-parents {MAX_CATALOGUE_COLUMNS})"
        )
    number = num_sets(len(names), max_parents)
    if number > MAX_SETS and not is_search:
        raise CalibrantError(
            f"{table.source}: {len(names)} columns have {number:,} sets of columns to compare; at most {MAX_SETS:,}"
            " are: lower max_parents (--max-parents), or leave out columns"
        )
    texts = [quote_name(name) for name in names]
    points = front(patterns, options.operators, max_parents, texts, max_errors=options.max_errors, ties=options.ties)
    counted, ones = int((patterns.zeros + patterns.ones).sum()), int(patterns.ones.sum())
    too_few = None
    if options.max_errors is not None and not points.points and points.at_least is None:
        every = front(patterns, options.operators, max_parents, texts, max_errors=None, ties=1)
        points = replace(points, max_size=every.max_size)
        too_few = TooFewErrors(options.max_errors, min(point.errors for point in every.points))
    return TargetFront(target, names, options.operators, max_parents, counted, ones, points, patterns, options.ties,
                       too_few, options.max_errors)  # fmt: skip


def scm_front(table: Table, roots: Sequence[str], options: FormulaOptions) -> ScmFront:
    """Return the front of whole SCMs: errors and sizes are summed over the columns that are no roots."""
    inner, max_parents = [name for name in table.names if name not in roots], options.max_parents
    if len(inner) > MAX_VARIABLES or max_parents > NUM_VARS:
        raise CalibrantError(
            f"{table.source}: fronts of whole SCMs are for at most {MAX_VARIABLES} columns that are no roots, and"
            f" {NUM_VARS} parents; give --target for one column, or name more roots"
        )
    choices = [_choices(table, name, inner, options) for name in inner]
    counts = sum_over_dags([c.formulas for c in choices])
    number_of = sum_over_dags([c.functions for c in choices])
    is_sum = options.operators in ("sop", "pos")
    every = [
        (errors, divmod(size, SUMMED_LITERALS) if is_sum else size, number, number_of[errors, size])
        for errors, size, number in pareto_points(counts)
    ]
    if options.max_errors is None:
        return ScmFront(tuple(roots), max_parents, tuple(every), options.operators)
    points = tuple(point for point in every if point[0] <= options.max_errors)
    least = min((errors for errors, *_ in every), default=0)
    too_few = None if points or not every else TooFewErrors(options.max_errors, least)
    return ScmFront(tuple(roots), max_parents, points, options.operators, too_few, options.max_errors)


@dataclass(frozen=True)
class _Choices:
    """Least formulas of a column by parents: mask of them among columns that are no roots -> number by (errors, size).

    formulas, functions: numbers of formulas, and of functions
    """

    formulas: dict[int, Counts]
    functions: dict[int, Counts]

    def add(self, mask: int, point: tuple[int, int], num_formulas: int, num_functions: int) -> None:
        for choices, number in ((self.formulas, num_formulas), (self.functions, num_functions)):
            counts = choices.setdefault(mask, {})
            counts[point] = counts.get(point, 0) + number


def _choices(table: Table, name: str, inner: Sequence[str], options: FormulaOptions) -> _Choices:
    """Return the points of a column, of each set of parents those alone that no smaller size reaches."""
    names, patterns = patterns_of_target(table, name)
    book = formula_book(options.operators)
    choices = _Choices({}, {})
    for number in range(min(options.max_parents, len(names)) + 1):
        functions = functions_of(options.operators, number)
        depends = all_supports(number)[functions.words.astype(np.int64)] == (1 << number) - 1
        words, sizes = functions.words[depends], functions.codes[depends]
        for chosen in combinations(range(len(names)), number):
            errors = functions.count_errors(patterns.merge(chosen))[depends]
            mask = sum(1 << inner.index(names[v]) for v in chosen if names[v] in inner)
            least = int(errors.max(initial=0)) + 1
            for size in np.unique(sizes).tolist():
                of_size = sizes == size
                fewest = int(errors[of_size].min())
                if fewest < least:
                    least = fewest
                    best = words[of_size][errors[of_size] == fewest]
                    num_formulas = sum(book.count(_widened(int(word), number)) for word in best)
                    least_size = size_of_code(options.operators, int(size))
                    summand = (
                        least_size if isinstance(least_size, int) else least_size[0] * SUMMED_LITERALS + least_size[1]
                    )
                    choices.add(mask, (fewest, summand), num_formulas, len(best))
    return choices


def _widened(word: int, number: int) -> int:
    """Return a truth table over NUM_VARS variables, on the later of which it does not depend."""
    for width in range(number, NUM_VARS):
        word |= word << (1 << width)
    return word & full_mask(NUM_VARS)


def size_text(size: Size) -> str:
    """Return a size as the terminal prints it: nodes, or products and literals."""
    return "+".join(map(str, size)) if isinstance(size, tuple) else str(size)


def size_entry(size: Size) -> int | list[int]:
    """Return a size, ready for JSON."""
    return list(size) if isinstance(size, tuple) else size


def ratio(part: int, whole: int) -> Fraction | None:
    return Fraction(part, whole) if whole else None


def fraction_text(value: Fraction | None) -> str | None:
    return None if value is None else str(value)


def plain_first(point: FrontPoint) -> Tree:
    """Return a formula of the point, without xor and iff if there is one."""
    formulas = point.formulas(MAX_TIES)
    plain = [tree for text, tree in formulas if "(xor " not in text and "(iff " not in text]
    return (plain or [formulas[0][1]])[0]


def tree_values(tree: Tree, codes: npt.NDArray[np.int16]) -> npt.NDArray[np.bool_]:
    """Return in which rows a sum of products is 1."""
    if isinstance(tree, int):
        return np.asarray(codes[:, tree] == 1)
    if isinstance(tree, str):
        return np.full(len(codes), tree == "1")
    values = [tree_values(part, codes) for part in tree[1:]]
    if tree[0] == "not":
        return ~values[0]
    join = np.logical_and if tree[0] == "and" else np.logical_or
    return np.asarray(join.reduce(values))


def find_fronts(
    table: Table, roots: Sequence[str] | None, options: FormulaOptions, listen: Steps
) -> tuple[TargetFront | ScmFront, ...]:
    """Return the front that is asked for: of the target, of whole SCMs under roots, else of each column.

    listen: called with the number of columns that are done
    """
    if options.asked_errors is None and options.operators == "all":
        return ()
    if roots is not None and options.target is None:
        listen("fronts", 0, 1)
        return (scm_front(table, roots, options),)
    names = table.names if options.target is None else (options.target,)
    fronts = []
    for index, name in enumerate(names):
        listen("fronts", index, len(names))
        fronts.append(target_front(table, name, options))
    return tuple(fronts)


def follow_up(
    table: Table, options: FormulaOptions, reason: str, listen: Steps
) -> tuple[Impossible, tuple[TargetFront | ScmFront, ...]]:
    """Return why no function of a target fits, with the least errors, and its front; without where it is too large."""
    try:
        fronts = find_fronts(table, None, replace(options, errors="front"), listen)
    except CalibrantError:
        return Impossible(reason), ()
    (front_of,) = fronts
    assert isinstance(front_of, TargetFront)
    errors, number = front_of.front.points[-1].errors, min(options.max_parents, len(front_of.columns))
    wrong = f"at least {errors:,} of {plural(front_of.counted, 'rows')} {'is' if errors == 1 else 'are'} wrong"
    return Impossible(f"{reason}; {wrong} under any function of at most {plural(number, 'columns')}"), fronts
