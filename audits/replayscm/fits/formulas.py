"""Recounts of claims about formulas on a table: least errors by size; functions that may and must fit rows with gaps.

A front lists, for each number of errors, the least size of a formula, by falling errors. With gaps, a function may fit
if it is right in every row under some completion, and must fit if it is right under every completion.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import combinations, product
from math import comb
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from calibrant.audits.claims import Certificate, NotExaminedError, checkpoint
from calibrant.audits.replayscm.certificates.counting import count_dags
from calibrant.audits.replayscm.fits.catalogue import (
    FULL,
    LITERALS,
    NUM_COLUMNS,
    NUM_FUNCTIONS,
    Catalogue,
    Measure,
    catalogue,
    column_bits,
)
from calibrant.audits.replayscm.fits.evidence import GAP, ReadingRecord, TableEvidence, TargetRows, rows_of_target
from calibrant.dsl.errors import short_repr
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.text import plural

I64: TypeAlias = npt.NDArray[np.int64]
Count = Annotated[int, Meta(ge=0)]
Parents = Annotated[int, Meta(ge=1, le=NUM_COLUMNS)]
Counting: TypeAlias = Literal["sure", "possible"]
Point: TypeAlias = tuple[int, int, int, int]
"""Errors, size, number of formulas, number of functions."""

MAX_SCM_COLUMNS = 6  # columns that are no roots, for a front of whole SCMs
MAX_MEMBERS = 20_000  # SCMs that are replayed one by one
MEASURES = {
    "all": "nodes of not, and, or, xor, iff",
    "and-or-not": "nodes of not, and, or",
    "sop": "products and literals of a sum of products",
    "pos": "sums and literals of a product of sums",
}


class PointRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A point of a front.

    size: nodes, or (products or sums, literals); formulas, functions: numbers of those with these errors and size
    formula: one of them: the position of a column among the others, "0" or "1", or [operator, arguments ...]
    """

    errors: Count
    size: int | tuple[int, int]
    formulas: Count
    functions: Count
    formula: int | str | list[Any]


class FrontData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A front; `counting`: errors that no completion of the gaps avoids, or that some completion has."""

    reading: ReadingRecord
    target: str
    measure: Literal["all", "and-or-not", "sop", "pos"]
    max_parents: Parents
    max_errors: Count | None
    counting: Counting
    points: list[PointRecord]


class CompletionData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of functions that may and must fit rows with gaps; `by_parents`: (columns, may, must)."""

    reading: ReadingRecord
    target: str
    max_parents: Parents
    rows_without_target: Count
    may: Count
    must: Count
    by_parents: list[tuple[list[str], Count, Count]]


class ScmCompletionData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of whole SCMs on rows with gaps.

    must, local: every mechanism must, or may, fit; joint: bounds of the number that fit under one common completion
    """

    reading: ReadingRecord
    roots: list[str]
    max_parents: Parents
    must: Count
    joint: tuple[Count, Count]
    local: Count


class ScmFrontData(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A front of whole SCMs: sums over the columns that are no roots; `points`: errors, size, formulas, functions."""

    reading: ReadingRecord
    roots: list[str]
    measure: Literal["all", "and-or-not"]
    max_parents: Parents
    max_errors: Count | None
    points: list[tuple[Count, Count, Count, Count]]


# --- Errors of all functions of a set of columns ----------------------------------------------------------------------


@cache
def _supports() -> I64:
    """Return which of the four columns each function depends on, as a mask."""
    words = np.arange(NUM_FUNCTIONS)
    masks = np.zeros(NUM_FUNCTIONS, np.int64)
    for column in range(NUM_COLUMNS):
        low = FULL ^ column_bits(column)
        masks |= ((((words >> (1 << column)) ^ words) & low) != 0).astype(np.int64) << column
    return masks


def count_errors(rows: TargetRows, chosen: Sequence[int], counting: Counting) -> I64:
    """Count the errors of every function of the chosen columns, at most four; shape [functions].

    counting: "sure": rows that are wrong under every completion of their gaps; "possible": under some completion
    """
    words = np.arange(NUM_FUNCTIONS)
    if_one, if_zero = np.zeros(16, np.int64), np.zeros(16, np.int64)
    errors = np.zeros(NUM_FUNCTIONS, np.int64)
    patterns, inverse = np.unique(rows.codes[:, list(chosen)], axis=0, return_inverse=True)
    zeros = np.bincount(inverse.ravel(), rows.zeros, len(patterns)).astype(np.int64)
    ones = np.bincount(inverse.ravel(), rows.ones, len(patterns)).astype(np.int64)
    for pattern, low, high in zip(patterns.tolist(), zeros.tolist(), ones.tolist(), strict=True):
        completions = [*product(*((0, 1) if cell == GAP else (cell,) for cell in pattern))]
        table_rows = [sum(bit << k for k, bit in enumerate(completion)) for completion in completions]
        if len(table_rows) == 1:
            if_one[table_rows[0]] += low
            if_zero[table_rows[0]] += high
            continue
        inside = sum(1 << row for row in table_rows)
        has_one, has_zero = (words & inside) != 0, (words & inside) != inside
        if counting == "sure":
            errors += low * ~has_zero + high * ~has_one
        else:
            errors += low * has_one + high * has_zero
    tables = []
    for half in (slice(0, 8), slice(8, 16)):
        bits = np.arange(256)[:, None] >> np.arange(8) & 1
        tables.append(bits @ if_one[half] + (1 - bits) @ if_zero[half])
    return np.asarray(errors + tables[0][words & 255] + tables[1][words >> 8], np.int64)


def _checked_sets(rows: TargetRows, max_parents: int, part: str) -> Iterator[tuple[int, ...]]:
    """Yield the largest sets of columns that the class allows, with checkpoints."""
    num_columns = len(rows.columns)
    size = min(num_columns, max_parents)
    total = comb(num_columns, size)
    for index, chosen in enumerate(combinations(range(num_columns), size)):
        if not index & 63:
            checkpoint(part, index, total)
        yield chosen


# --- Front of a target ------------------------------------------------------------------------------------------------


def recount_front(
    rows: TargetRows, measure: Measure, max_parents: int, max_errors: int | None, counting: Counting
) -> list[Point]:
    """Return the points of the front by rising size; sizes are packed as in `catalogue`.

    max_errors: omit points with more errors; None: no limit
    """
    functions_of_four = catalogue(measure)
    order = np.argsort(functions_of_four.sizes, kind="stable")
    is_allowed = _supports()[order] < 1 << min(len(rows.columns), max_parents)
    order = order[is_allowed]
    sizes, starts = np.unique(functions_of_four.sizes[order], return_index=True)
    best = np.full(len(sizes), np.iinfo(np.int64).max)
    for chosen in _checked_sets(rows, max_parents, "least errors of each size"):
        errors = count_errors(rows, chosen, counting)[order]
        best = np.minimum(best, np.minimum.reduceat(errors, starts))
    goals: dict[int, int] = {}  # index of a size -> errors of its point
    fewest = None
    for index, errors in enumerate(best.tolist()):
        if fewest is None or errors < fewest:
            goals[index] = fewest = errors
    goals = {index: errors for index, errors in goals.items() if max_errors is None or errors <= max_errors}
    # by index of a size: (columns, table over them) -> number of formulas
    functions: dict[int, dict[tuple[tuple[int, ...], int], int]] = {index: {} for index in goals}
    ends = [*starts[1:], len(order)]
    for chosen in _checked_sets(rows, max_parents, "formulas of each point") if goals else ():
        errors = count_errors(rows, chosen, counting)
        for index, goal in goals.items():
            words = order[starts[index] : ends[index]]
            for word in words[errors[words] == goal].tolist():
                functions[index][_essential_table(word, chosen)] = int(functions_of_four.counts[word])
    return [
        (errors, int(sizes[index]), sum(functions[index].values()), len(functions[index]))
        for index, errors in goals.items()
    ]


def _essential_table(word: int, chosen: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Return the columns that a function of the chosen ones depends on, and its table over these."""
    positions = [k for k in range(len(chosen)) if int(_supports()[word]) >> k & 1]
    bits = 0
    for row in range(1 << len(positions)):
        full_row = sum((row >> k & 1) << position for k, position in enumerate(positions))
        bits |= (word >> full_row & 1) << row
    return tuple(chosen[position] for position in positions), bits


def check_front(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, FrontData)
    rows = rows_of_target(evidence, data.target)
    points = recount_front(rows, data.measure, data.max_parents, data.max_errors, data.counting)
    claimed = [(p.errors, _size_code(data.measure, p.size), p.formulas, p.functions) for p in data.points]
    if points != claimed:
        index = next((k for k, pair in enumerate(zip(points, claimed, strict=False)) if pair[0] != pair[1]), None)
        if index is None:
            return f"the front has {plural(len(points), 'points')}, the certificate {len(claimed)}"
        errors, code, formulas, functions = points[index]
        size = code if data.measure in ("all", "and-or-not") else f"{code // LITERALS}+{code % LITERALS}"
        return (
            f"point {index + 1} of the front has {plural(errors, 'errors')}, size {size},"
            f" {plural(formulas, 'formulas')}, {plural(functions, 'functions')}"
        )
    # after the recount: only now their number and sizes are those of the front, whatever the file holds
    return next(filter(None, (_check_formula(rows, data, point) for point in data.points)), "")


def _size_code(measure: str, size: int | tuple[int, int]) -> int:
    if isinstance(size, int):
        return size if measure in ("all", "and-or-not") else -1
    return size[0] * LITERALS + size[1] if measure in ("sop", "pos") and size[1] < LITERALS else -1


def _check_formula(rows: TargetRows, data: FrontData, point: PointRecord) -> str:
    """Return why the formula of a point is outside the class or has other errors or size, "" if neither."""
    mentioned = sorted(set(_columns_of(point.formula)))
    if len(mentioned) > data.max_parents or any(not 0 <= column < len(rows.columns) for column in mentioned):
        return "a formula mentions columns outside the class"
    if _formula_size(data.measure, point.formula) != point.size:
        return "a formula has another size than its point"
    word = 0
    for row in range(1 << len(mentioned)):
        word |= _value(point.formula, {column: row >> k & 1 for k, column in enumerate(mentioned)}) << row
    for width in range(len(mentioned), NUM_COLUMNS):
        word |= word << (1 << width)
    if int(count_errors(rows, mentioned, data.counting)[word]) != point.errors:
        return "a formula has another number of errors than its point"
    return ""


def _columns_of(formula: Any) -> Iterator[int]:
    """Yield the columns that a formula mentions; `ValueError` for what is no formula, such as true for column 1."""
    if isinstance(formula, list) and formula and formula[0] in STANDARD_OPERATORS:
        operator, *parts = formula
        if len(parts) != 1 if operator == "not" else len(parts) < 2:
            raise ValueError(f"a formula has {operator} of {plural(len(parts), 'arguments')}")
        for part in parts:
            yield from _columns_of(part)
    elif type(formula) is int:
        yield formula
    elif formula not in ("0", "1"):
        raise ValueError(f"a formula has {short_repr(formula)} for a column, a constant or an operator with arguments")


def _value(formula: Any, values: Mapping[int, int]) -> int:
    if isinstance(formula, int):
        return values[formula]
    if formula in ("0", "1"):
        return int(formula)
    operator, *parts = formula
    bits = [_value(part, values) for part in parts]
    if operator == "not":
        return 1 - bits[0]
    results = {"and": min(bits), "or": max(bits), "xor": sum(bits) & 1, "iff": int(min(bits) == max(bits))}
    return int(results[operator])


def _formula_size(measure: str, formula: Any) -> int | tuple[int, int]:
    """Return the size of a formula; `ValueError` for operators outside the measure."""
    if measure in ("all", "and-or-not"):
        return _num_nodes(formula, has_parity=measure == "all")
    outer, inner = ("or", "and") if measure == "sop" else ("and", "or")
    if formula in ("0", "1"):
        return (0, 0) if (formula == "0") == (measure == "sop") else (1, 0)
    terms = formula[1:] if isinstance(formula, list) and formula[0] == outer else [formula]
    return len(terms), sum(_num_literals(term, inner) for term in terms)


def _num_nodes(formula: Any, *, has_parity: bool) -> int:
    if not isinstance(formula, list):
        return 1
    if formula[0] in ("xor", "iff") and not has_parity:
        raise ValueError(f"{formula[0]} is not of the class")
    return 1 + sum(_num_nodes(part, has_parity=has_parity) for part in formula[1:])


def _num_literals(term: Any, operator: str) -> int:
    literals = term[1:] if isinstance(term, list) and term[0] == operator else [term]
    for literal in literals:
        if not (isinstance(literal, int) or (literal[0] == "not" and isinstance(literal[1], int))):
            raise ValueError("not a literal")
    return len(literals)


def front_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, FrontData)
    num_columns = len(evidence.names) - 1
    errors = {"sure": "errors", "possible": "rows that some completion of the gaps puts wrong"}[data.counting]
    if data.counting == "sure" and (evidence.codes == GAP).any():
        errors = "rows that no completion of the gaps puts right"
    limit = "" if data.max_errors is None else f", at most {data.max_errors}"
    return (
        f"{errors}{limit} of {data.target} against {MEASURES[data.measure]}, over all formulas of at most"
        f" {min(data.max_parents, num_columns)} of {plural(num_columns, 'columns')}; {evidence.in_words}"
    )


# --- Rows with gaps ---------------------------------------------------------------------------------------------------


def count_fitting(rows: TargetRows, max_parents: int) -> dict[tuple[int, ...], tuple[int, int]]:
    """Count the functions that may and must fit, by the columns that they depend on; without columns if none may."""
    counts: dict[tuple[int, ...], tuple[int, int]] = {}
    supports = _supports()
    for chosen in _checked_sets(rows, max_parents, "functions by their columns"):
        may = count_errors(rows, chosen, "sure") == 0
        must = count_errors(rows, chosen, "possible") == 0
        for mask in range(1 << len(chosen)):
            columns = tuple(column for k, column in enumerate(chosen) if mask >> k & 1)
            if columns not in counts:
                has_support = supports == mask
                counts[columns] = int((may & has_support).sum()), int((must & has_support).sum())
    return {columns: pair for columns, pair in counts.items() if pair[0]}


def check_completions(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, CompletionData)
    rows, position = rows_of_target(evidence, data.target), evidence.position(data.target)
    lacks_target = (evidence.codes[:, position] == GAP) & ~evidence.is_set[:, position]
    if int(evidence.counts[lacks_target].sum()) != data.rows_without_target:
        return "another number of rows lacks the target"
    counts = {tuple(rows.columns[v] for v in c): n for c, n in count_fitting(rows, data.max_parents).items()}
    claimed = {tuple(columns): (may, must) for columns, may, must in data.by_parents}
    if len(claimed) != len(data.by_parents):
        return "a set of columns is listed twice"
    wrong = next((c for c in {**counts, **claimed} if counts.get(c) != claimed.get(c)), None)
    if wrong is not None:
        may, must = counts.get(wrong, (0, 0))
        return f"of {', '.join(wrong) or 'no column'}, {may} functions may fit and {must} must"
    totals = sum(may for may, _ in counts.values()), sum(must for _, must in counts.values())
    return "" if totals == (data.may, data.must) else f"{totals[0]} functions may fit and {totals[1]} must"


def completion_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, CompletionData)
    num_columns = len(evidence.names) - 1
    return (
        f"functions of at most {min(data.max_parents, num_columns)} of {plural(num_columns, 'columns')} that are right"
        f" in every row for {data.target} under some, and under every, completion of the gaps; {evidence.in_words}"
    )


def check_scm_completions(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ScmCompletionData)
    inner = _inner_columns(evidence, data.roots)
    may: dict[str, dict[frozenset[str], int]] = {}
    must: dict[str, dict[frozenset[str], int]] = {}
    for name in inner:
        rows = rows_of_target(evidence, name)
        counts = count_fitting(rows, data.max_parents)
        may[name] = {frozenset(rows.columns[v] for v in c): num_may for c, (num_may, _) in counts.items()}
        must[name] = {frozenset(rows.columns[v] for v in c): num_must for c, (_, num_must) in counts.items()}
    num_must = count_dags(must, data.roots, evidence.names)
    num_local = count_dags(may, data.roots, evidence.names)
    if (num_must, num_local) != (data.must, data.local):
        return f"{num_must} SCMs must fit, and {num_local} fit mechanism by mechanism"
    if data.joint == (num_must, num_local):
        return ""
    if num_local > MAX_MEMBERS:
        raise NotExaminedError(f"{num_local} SCMs fit mechanism by mechanism; at most {MAX_MEMBERS} are compared")
    num_joint = _count_joint(evidence, may, data.max_parents)
    return "" if data.joint == (num_joint, num_joint) else f"{num_joint} SCMs fit under one completion"


def _inner_columns(evidence: TableEvidence, roots: Sequence[str]) -> list[str]:
    for root in roots:
        evidence.position(root)
    if len(set(roots)) < len(roots):
        raise ValueError("a root is listed twice")
    return [name for name in evidence.names if name not in roots]


def _count_joint(evidence: TableEvidence, may: Mapping[str, Mapping[frozenset[str], int]], max_parents: int) -> int:
    """Count the SCMs whose mechanisms all reproduce a common completion of every row, by trying each."""
    mechanisms = {}
    for name, parent_sets in may.items():
        rows = rows_of_target(evidence, name)
        mechanisms[name] = [
            (columns, word) for parents in parent_sets for columns, word in _fitting_functions(rows, parents)
        ]
    count = 0
    for tried, model in enumerate(_acyclic_models(list(mechanisms), mechanisms, {})):
        checkpoint("SCMs one by one", tried, MAX_MEMBERS)
        count += all(
            _replays(evidence, model, codes, is_set)
            for codes, is_set in zip(evidence.codes.tolist(), evidence.is_set, strict=True)
        )
    return count


Mechanism: TypeAlias = tuple[tuple[str, ...], int]  # parents, truth table


def _fitting_functions(rows: TargetRows, parents: frozenset[str]) -> Iterator[Mechanism]:
    chosen = [k for k, name in enumerate(rows.columns) if name in parents]
    may = count_errors(rows, chosen, "sure") == 0
    for word in np.flatnonzero(may & (_supports() == (1 << len(chosen)) - 1)).tolist():
        yield tuple(rows.columns[k] for k in chosen), word


def _acyclic_models(
    names: Sequence[str], mechanisms: Mapping[str, Sequence[Mechanism]], chosen: Mapping[str, Mechanism]
) -> Iterator[Mapping[str, Mechanism]]:
    if len(chosen) == len(names):
        yield chosen
        return
    name = names[len(chosen)]
    for mechanism in mechanisms[name]:
        extended = {**chosen, name: mechanism}
        if not _reaches(name, mechanism[0], extended):
            yield from _acyclic_models(names, mechanisms, extended)


def _reaches(name: str, parents: Sequence[str], chosen: Mapping[str, Mechanism]) -> bool:
    """Return whether a column is an ancestor of itself."""
    waiting, ancestors = list(parents), set(parents)
    while waiting:
        upper = waiting.pop()
        new = set(chosen[upper][0]) - ancestors if upper in chosen else set()
        ancestors |= new
        waiting += new
    return name in ancestors


def _replays(
    evidence: TableEvidence, model: Mapping[str, Mechanism], codes: Sequence[int], is_set: npt.NDArray[np.bool_]
) -> bool:
    """Return whether all mechanisms of columns that were not set reproduce some completion of a row."""
    for completion in product(*((0, 1) if cell == GAP else (cell,) for cell in codes)):
        values = dict(zip(evidence.names, completion, strict=True))
        if all(
            is_set[evidence.names.index(name)]
            or word >> sum(values[parent] << k for k, parent in enumerate(parents)) & 1 == values[name]
            for name, (parents, word) in model.items()
        ):
            return True
    return False


def scm_completion_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ScmCompletionData)
    return (
        f"SCMs of at most {data.max_parents} functional parents with roots {', '.join(data.roots) or 'none'}, under the"
        f" completions of the gaps; {evidence.in_words}"
    )


# --- Front of whole SCMs ----------------------------------------------------------------------------------------------
Sums: TypeAlias = dict[tuple[int, int], tuple[int, int]]
"""(errors, size) -> numbers of formulas and of functions."""


def check_scm_front(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ScmFrontData)
    inner = _inner_columns(evidence, data.roots)
    if len(inner) > MAX_SCM_COLUMNS:
        raise NotExaminedError(f"{len(inner)} columns are no roots; at most {MAX_SCM_COLUMNS} are recounted")
    options = [_points_by_parents(evidence, name, inner, data.measure, data.max_parents) for name in inner]
    sums: list[Sums] = [{(0, 0): (1, 1)}]
    for placed in range(1, 1 << len(inner)):  # the recurrence over sinks of certificates.counting, on points
        total: Sums = {}
        for sinks in range(1, placed + 1):
            if sinks & ~placed:
                continue
            below = placed & ~sinks
            terms = sums[below]
            for k in range(len(inner)):
                if sinks >> k & 1:
                    terms = _multiply(terms, _sum_options(options[k], below))
            sign = 1 if sinks.bit_count() & 1 else -1
            for point, counts in terms.items():
                formulas, functions = total.get(point, (0, 0))
                total[point] = formulas + sign * counts[0], functions + sign * counts[1]
        sums.append({point: counts for point, counts in total.items() if counts != (0, 0)})
    points: list[Point] = []
    for (errors, size), counts in sorted(sums[-1].items(), key=lambda item: (item[0][1], item[0][0])):
        if not points or errors < points[-1][0]:
            points.append((errors, size, *counts))
    points = [point for point in points if data.max_errors is None or point[0] <= data.max_errors]
    return "" if points == [tuple(point) for point in data.points] else f"the front is {points[:8]}"


def _points_by_parents(
    evidence: TableEvidence, name: str, inner: Sequence[str], measure: Measure, max_parents: int
) -> dict[int, Sums]:
    """Return, by the mask of parents among the inner columns, the points of functions with exactly these parents."""
    rows, functions_catalogue = rows_of_target(evidence, name), catalogue(measure)
    options: dict[int, Sums] = {}
    for num_parents in range(min(max_parents, len(rows.columns)) + 1):
        for chosen in combinations(range(len(rows.columns)), num_parents):
            checkpoint(f"points of {name}", 0, 1)
            mask = sum(1 << inner.index(rows.columns[v]) for v in chosen if rows.columns[v] in inner)
            sums = options.setdefault(mask, {})
            for point, counts in _least_points(rows, chosen, functions_catalogue).items():
                formulas, functions = sums.get(point, (0, 0))
                sums[point] = formulas + counts[0], functions + counts[1]
    return options


def _least_points(rows: TargetRows, chosen: Sequence[int], listed: Catalogue) -> Sums:
    """Return the front of the functions that depend on all chosen columns."""
    errors = count_errors(rows, chosen, "sure")
    is_essential = _supports() == (1 << len(chosen)) - 1
    points: Sums = {}
    fewest = None
    for size in np.unique(listed.sizes[is_essential]).tolist():
        has_size = is_essential & (listed.sizes == size)
        least = int(errors[has_size].min())
        if fewest is None or least < fewest:
            fewest = least
            reached = has_size & (errors == least)
            points[least, size] = int(listed.counts[reached].sum()), int(reached.sum())
    return points


def _sum_options(options: Mapping[int, Sums], allowed: int) -> Sums:
    """Add the points of all parent sets within the allowed columns (a mask)."""
    total: Sums = {}
    for mask, sums in options.items():
        if not mask & ~allowed:
            for point, counts in sums.items():
                formulas, functions = total.get(point, (0, 0))
                total[point] = formulas + counts[0], functions + counts[1]
    return total


def _multiply(first: Sums, second: Sums) -> Sums:
    """Return the points of pairs: errors and sizes add up, numbers multiply."""
    result: Sums = {}
    for (e, s), (a, b) in first.items():
        for (f, t), (c, d) in second.items():
            formulas, functions = result.get((e + f, s + t), (0, 0))
            result[e + f, s + t] = formulas + a * c, functions + b * d
    return result


def scm_front_words(evidence: TableEvidence, certificate: Certificate) -> str:
    data = msgspec.convert(certificate.data, ScmFrontData)
    limit = "" if data.max_errors is None else f", at most {data.max_errors}"
    return (
        f"errors{limit} against {MEASURES[data.measure]}, summed over the columns of SCMs of at most"
        f" {data.max_parents} functional parents with roots {', '.join(data.roots) or 'none'}; {evidence.in_words}"
    )
