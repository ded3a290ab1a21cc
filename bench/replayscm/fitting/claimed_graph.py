"""A graph of one's own as a claim: each column is a function of its parents in it; refuted by rows, or SCMs counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import prod
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.bench.core.capabilities import Suggestion
from calibrant.bench.pages.page import html_page
from calibrant.bench.replayscm.fitting.columns import GAP, quote_name
from calibrant.bench.replayscm.fitting.fronts import FormulaOptions, patterns_of_target, plain_first, size_text
from calibrant.bench.replayscm.fitting.graph_files import read_graph
from calibrant.bench.replayscm.fitting.missing import bounds_text, exact_or_bounds, proof_of
from calibrant.bench.replayscm.fitting.network_fit import draw_class
from calibrant.bench.replayscm.fitting.results import FitWithoutItem, Section, rows_section
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.pictures import Picture, PictureEdge
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.formulas.fronts import (
    MAX_CATALOGUE_COLUMNS,
    BoolArray,
    FrontPoint,
    Patterns,
    front,
    is_sum_search,
)
from calibrant.solvers.formulas.least_formulas import infix_text
from calibrant.solvers.formulas.uncertain_rows import CompletionCounts, count_functions

MAX_CLAIMED_PARENTS = 12  # 4,096 sets of them, of which functions may depend
_BESIDE = ("operators", "ties", "graph")  # options of `fit` that a graph does not exclude


@dataclass(frozen=True)
class Contradiction:
    """Two rows with equal parents and different values of a column. lines: of the file, or rows counted from 1."""

    lines: tuple[int, int]
    parents: Mapping[str, str]
    words: tuple[str, str]


@dataclass(frozen=True, eq=False)
class ClaimedColumn:
    """A column with its parents in the graph.

    counts: functions of the parents that may fit, by those that they depend on; must: of all together, under every
        completion of gaps
    least: point of the least formulas without errors; None of more than six parents; ties: formulas listed of it
    least_errors: rows that are wrong under any function of the parents
    in_clash: [patterns] rows that contradict another
    """

    name: str
    parents: tuple[str, ...]
    counts: CompletionCounts
    least: FrontPoint | None
    ties: int
    contradiction: Contradiction | None
    least_errors: int
    in_clash: BoolArray

    @property
    def is_refuted(self) -> bool:
        """Whether no function of the parents fits."""
        return self.counts.may_total.upper == 0

    @property
    def num_on_all(self) -> Bounds:
        """Number of functions that depend on every parent."""
        return self.counts.may.get(tuple(range(len(self.parents))), Bounds(0, 0))

    @property
    def infix(self) -> str:
        """The first least formula as people write it, empty where it is not known."""
        return "" if self.least is None else infix_text(plain_first(self.least), list(map(quote_name, self.parents)))

    @property
    def formulas(self) -> list[str]:
        """Least formulas in prefix form; none if they are not known."""
        return [] if self.least is None else [text for text, _ in self.least.formulas(self.ties)]

    def lines(self, counting: str) -> Iterator[str]:
        """Yield why no function fits, or the least formula and how many functions do. counting: how lines count."""
        of = ", ".join(self.parents)
        if self.contradiction is not None:
            first, second = self.contradiction.lines
            parents = ", ".join(f"{name} = {word}" for name, word in self.contradiction.parents.items())
            values = " and ".join(self.contradiction.words)
            yield f"{self.name} is no function of {of}: rows {first} and {second} ({counting}) have {parents}, and"
            yield f"  {self.name} = {values}; at least {plural(self.least_errors, 'rows')} wrong under any function"
        elif self.is_refuted:
            yield f"{self.name} is no function of {of} under any completion of the gaps"
        else:
            if self.least is None:
                yield f"{self.name}: a function of {of} fits; its least formula is not known"
            else:
                size = f"size {size_text(self.least.size)}, proven least over the graph's parents"
                yield f"{self.name} = {self.infix}  ({size})"
            number, on_all = self.counts.may_total, self.num_on_all
            yield f"  functions of {of} that fit: {bounds_text(number)}, {_dependent(on_all)} on all"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        clash = self.contradiction
        return {
            "parents": list(self.parents),
            "refuted": self.is_refuted,
            "contradiction": clash and {"rows": list(clash.lines), "parents": clash.parents, "values": clash.words},
            "least_errors": self.least_errors,
            "size": None if self.least is None else self.least.size,
            "formulas": self.formulas,
            **exact_or_bounds("functions", self.counts.may_total),
            **exact_or_bounds("functions_of_all_parents", self.num_on_all),
        }


@dataclass(frozen=True, eq=False)
class GraphFit(FitWithoutItem):
    """A graph that claims each column to be a function of its parents, judged on a table."""

    table: Table
    columns: tuple[ClaimedColumn, ...]

    @property
    def roots(self) -> tuple[str, ...]:
        """Columns without parents, which the graph leaves open."""
        claimed = {column.name for column in self.columns}
        return tuple(name for name in self.table.names if name not in claimed)

    @property
    def fits(self) -> bool:
        """Whether no rows refute the graph."""
        return not any(column.is_refuted for column in self.columns)

    @property
    def may_fit_wider(self) -> bool:
        """False: the class is the graph's."""
        return False

    @property
    def why_no_item(self) -> str:
        """The graph, which an item does not disclose."""
        return "a graph of your own makes no item; --json has all figures, --html a page"

    @property
    def reasons(self) -> Sequence[tuple[str, str]]:
        """Whether rows refute the graph, and the decided formulas."""
        refuted = [column for column in self.columns if column.is_refuted]
        if refuted:
            names = ", ".join(column.name for column in refuted)
            number = plural(len(refuted), "columns")
            return [("", f"The graph is refuted: {number} of {len(self.columns)} ({names}).")]
        formulas = [(f"{c.name} = {c.infix}", "") for c in self.columns if c.infix]
        return [("", f"The graph is not refuted: SCMs that have it: {bounds_text(self.num_scms)}."), *formulas]

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """A row for each column with parents."""
        return {
            "column": [c.name for c in self.columns],
            "parents": [", ".join(c.parents) for c in self.columns],
            "refuted": [c.is_refuted for c in self.columns],
            "formula": [c.infix or None for c in self.columns],
            "least_errors": [c.least_errors for c in self.columns],
        }

    def picture(self) -> Picture:
        """Return the graph, arcs into refuted columns marked, and the columns."""
        edges = tuple(
            PictureEdge(parent, column.name, "bad" if column.is_refuted else "", "refuted" if column.is_refuted else "")
            for column in self.columns
            for parent in column.parents
        )
        return replace(super().picture(), nodes=dict.fromkeys(self.table.names, ""), edges=edges)

    def sections(self) -> Iterator[Section]:
        """Yield the graph, its columns, and the rows, contradicting ones marked."""
        arcs = tuple((parent, column.name) for column in self.columns for parent in column.parents)
        drawing = Markup(draw_class(self.table.names, arcs, set(), {}))
        yield Section("Graph", markup=Markup(html_page("why/drawn.html", {"title": "Your graph", "drawing": drawing})))
        lines = []
        for column in self.columns:
            verdict = "refuted" if column.is_refuted else "not refuted"
            numbers = bounds_text(column.counts.may_total), bounds_text(column.num_on_all)
            lines.append([column.name, ", ".join(column.parents), verdict, column.infix, *numbers,
                          str(column.least_errors)])  # fmt: skip
        headings = ("column", "parents", "verdict", "least formula", "functions", "of all parents", "errors at least")
        notes = [f"no parents, so nothing is claimed: {', '.join(self.roots)}"] if self.roots else []
        yield Section("Columns as functions of their parents", notes, headings, lines, (4, 5, 6), (3,))
        marks = {f"contradicts another row ({c.name})": c.in_clash for c in self.columns if c.contradiction}
        marks["gap"] = (self.table.codes == GAP).any(axis=1)
        number = int(
            self.table.counts[np.logical_or.reduce([c.in_clash for c in self.columns] or [marks["gap"]])].sum()
        )
        note = f"{plural(number, 'rows')} in contradictions" if self.columns else "no arcs"
        yield Section("rows", markup=rows_section(self.table, range(len(self.table.names)), marks, note))

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Options that go on: an item discloses no graph."""
        figures = ("--json",), "all figures"
        is_complete = (self.table.codes != GAP).all(axis=1)
        if not is_complete.any():
            return (figures,)
        dropped = () if is_complete.all() else ("--gaps", "drop")
        return figures, ((*dropped, "--score", "bde"), "if values are noisy: its rank among all networks")

    @property
    def num_scms(self) -> Bounds:
        """Number of SCMs: each column by any function of its parents."""
        return _product([column.counts.may_total for column in self.columns])

    @property
    def num_faithful(self) -> Bounds:
        """Number of SCMs in which each column depends on all of its parents."""
        return _product([column.num_on_all for column in self.columns])

    def __repr__(self) -> str:
        return f"<GraphFit: {plural(len(self.columns), 'columns')} with parents, {'not ' * self.fits}refuted>"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        return {
            "rows": self.table.num_rows,
            "coding": self.table.coding,
            "notes": list(self.table.notes),
            "gaps": self.table.num_gaps,
            "class": "each column a function of its parents in the graph",
            "proof": proof_of(self.num_scms),
            "refuted": not self.fits,
            "roots": list(self.roots),
            **exact_or_bounds("scms", self.num_scms),
            **exact_or_bounds("scms_of_all_arcs", self.num_faithful),
            "columns": {column.name: column.to_dict() for column in self.columns},
        }

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on how the table was read."""
        yield from self.table.reading_lines(every=verbose)
        if self.table.num_gaps:
            yield "a gap may be either value: what is counted fits under some completion, a column at a time"
        refuted = [column for column in self.columns if column.is_refuted]
        if refuted:
            names = ", ".join(column.name for column in refuted)
            yield f"your graph is refuted: {plural(len(refuted), 'columns')} of {len(self.columns)} ({names})"
        else:
            have = "SCM has" if self.num_scms == Bounds(1, 1) else "SCMs have"
            yield (
                f"your graph is not refuted: {bounds_text(self.num_scms)} {have} it (each column a function of its"
                f" parents), {_dependent(self.num_faithful)} on every arc"
            )
        if self.roots:
            yield f"no parents, so nothing is claimed of: {', '.join(self.roots)}"
        for column in (*refuted, *(c for c in self.columns if not c.is_refuted)):
            yield from column.lines(self.table.counting)


def _dependent(number: Bounds) -> str:
    """Return the beginning of a clause on those that depend on what follows."""
    return f"{bounds_text(number)} of them {'depends' if number == Bounds(1, 1) else 'depend'}"


def _product(numbers: list[Bounds]) -> Bounds:
    return Bounds(prod(number.lower for number in numbers), prod(number.upper for number in numbers))


def judge_graph(table: Table, options: FormulaOptions) -> GraphFit:
    """Judge the graph of the options as a claim on a table; `CalibrantError` for options that it leaves no sense."""
    changed = [f.name for f in fields(options) if getattr(options, f.name) != f.default]
    excluded = [name for name in changed if name not in _BESIDE]
    if excluded:
        raise CalibrantError(
            f"{excluded[0]} and graph exclude each other: a graph names the parents of every column; it takes operators"
            " and ties"
        )
    arcs, remarks = read_graph(options.graph, table)
    parents_of = {name: [parent for parent, child in arcs if child == name] for name in table.names}
    wide = next((name for name, parents in parents_of.items() if len(parents) > MAX_CLAIMED_PARENTS), None)
    if wide is not None:
        raise CalibrantError(
            f"graph: {wide} has {len(parents_of[wide])} parents; at most {MAX_CLAIMED_PARENTS} are compared with rows"
        )
    columns = [
        _judge_column(table, name, sorted(parents, key=table.names.index), options)
        for name, parents in parents_of.items()
        if parents
    ]
    return GraphFit(replace(table, remarks=(*table.remarks, *remarks)), tuple(columns))


def _judge_column(table: Table, name: str, parents: list[str], options: FormulaOptions) -> ClaimedColumn:
    others, patterns = patterns_of_target(table, name)
    places = [others.index(parent) for parent in parents]
    claimed = Patterns(patterns.codes[:, places], patterns.zeros, patterns.ones)
    counts = count_functions(claimed, len(parents))
    is_complete = (claimed.codes != GAP).all(axis=1)
    _, inverse = np.unique(claimed.codes[is_complete], axis=0, return_inverse=True)
    zeros = np.bincount(inverse.ravel(), claimed.zeros[is_complete])
    ones = np.bincount(inverse.ravel(), claimed.ones[is_complete])
    least = None
    is_search = is_sum_search(options.operators, len(parents))  # of complete rows alone
    if len(parents) <= MAX_CATALOGUE_COLUMNS and (not is_search or is_complete.all()):
        texts = list(map(quote_name, parents))
        points = front(claimed, options.operators, len(parents), texts, max_errors=0, ties=options.ties).points
        least = points[0] if points else None
    clash = _first_contradiction(table, name, parents)
    least_errors = int(np.minimum(zeros, ones).sum())
    in_clash = _contradicting(table, name, parents)
    return ClaimedColumn(name, tuple(parents), counts, least, options.ties, clash, least_errors, in_clash)


def _contradicting(table: Table, name: str, parents: list[str]) -> BoolArray:
    """Return the patterns with other rows of the same parents and the other value of a column; [patterns]."""
    place, positions = table.position(name), [table.position(parent) for parent in parents]
    is_complete = (table.codes[:, [*positions, place]] != GAP).all(axis=1) & ~table.is_set(place)
    _, groups = np.unique(table.codes[:, positions], axis=0, return_inverse=True)
    groups = groups.ravel()
    of_value = [np.isin(groups, groups[is_complete & (table.codes[:, place] == value)]) for value in (0, 1)]
    return np.asarray(is_complete & of_value[0] & of_value[1], np.bool_)


def _first_contradiction(table: Table, name: str, parents: list[str]) -> Contradiction | None:
    """Return the first row that contradicts an earlier one, and the first such row."""
    place = table.position(name)
    positions = [table.position(parent) for parent in parents]
    chosen = table.codes[:, [*positions, place]]
    rows = np.flatnonzero((chosen != GAP).all(axis=1) & ~table.is_set(place))
    first: dict[bytes, int] = {}
    for pattern in rows[np.argsort(table.first_rows[rows], kind="stable")].tolist():
        earlier = first.setdefault(table.codes[pattern, positions].tobytes(), pattern)
        if table.codes[earlier, place] != table.codes[pattern, place]:
            lines = [int(table.lines[table.first_rows[p]]) for p in (earlier, pattern)]
            words = [table.used[place].word(int(table.codes[p, place])) for p in (earlier, pattern)]
            values = {
                parent: table.used[k].word(int(table.codes[pattern, k]))
                for parent, k in zip(parents, positions, strict=True)
            }
            return Contradiction((lines[0], lines[1]), values, (words[0], words[1]))
    return None
