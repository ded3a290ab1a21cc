"""Tables with gaps: functions and SCMs that may and must fit, and errors under the completions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb
from shlex import quote
from typing import Any

import numpy as np

from calibrant.audits.replayscm.fits.catalogue import NUM_COLUMNS
from calibrant.bench.core.capabilities import Steps, Suggestion
from calibrant.bench.replayscm.fitting.columns import GAP
from calibrant.bench.replayscm.fitting.fronts import FormulaOptions, TargetFront, plain_first, size_entry, target_front
from calibrant.bench.replayscm.fitting.results import (
    MAX_LINES,
    POSSIBLE,
    SURE,
    Claim,
    FitWithoutItem,
    Section,
    Unclaimed,
    front_claim,
    front_section,
    rows_section,
    too_wide,
)
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.errors import CalibrantError, in_one_line, readable_repr
from calibrant.dsl.pictures import networkx_graph
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.count import Bounds
from calibrant.solvers.formulas.fronts import MAX_CATALOGUE_COLUMNS, front
from calibrant.solvers.formulas.least_formulas import NUM_VARS, infix_text
from calibrant.solvers.formulas.uncertain_rows import CompletionCounts, count_functions
from calibrant.solvers.replayscm.completions import GappedRows, ScmCounts, count_scms

SETS_SHOWN = 12
MAX_WIDE_SETS = 150  # largest number of sets of five or six columns, each of which takes 0.2 s on rows with gaps
SCMS_HAVE_NO_ARCS = (
    "SCMs of a table with gaps are counted, not listed: fit without roots, or leave out rows with gaps (gaps='drop')"
)
NO_ITEM = "a table with gaps is no item: leave out rows with gaps (--gaps drop) or columns (--drop)"


@dataclass(frozen=True)
class TargetCompletions:
    """Functions of one column under the completions of the gaps.

    rows_without_target: number of rows with a gap in this column, except those in which it was set; neither of these
        decides anything about it
    counts: number of functions that may and must fit, by the columns on which they depend
    sure: front (formulas by size and errors) in which an error is a row that is wrong under every completion
    possible: front in which an error is a row that is wrong under some completion
    """

    rows_without_target: int
    counts: CompletionCounts
    sure: TargetFront
    possible: TargetFront

    @property
    def may_fit(self) -> bool:
        """Return whether some function is right in every row under some completion."""
        return bool(self.counts.may_total.lower) or any(point.errors == 0 for point in self.sure.front.points)

    @property
    def scope(self) -> str:
        """Return the class of functions that are counted, in words."""
        number = len(self.sure.columns)
        return f"functions of at most {min(self.counts.max_parents, number)} of {plural(number, 'columns')}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts, columns = self.counts, self.sure.columns
        by_parents = [
            [[columns[v] for v in chosen], *exact_or_bounds("may", number).values(), counts.must.get(chosen, 0)]
            for chosen, number in sorted(counts.may.items(), key=_by_last_column)
        ]
        return {
            "class": self.scope,
            "proof": proof_of(counts.may_total),
            "rows_without_target": self.rows_without_target,
            **exact_or_bounds("may", counts.may_total),
            "must": counts.must_total,
            "by_parents": by_parents,
            "front_sure": _points(self.sure),
            "front_possible": _points(self.possible),
            "least_may_fit": _least_formulas(self.sure),
            "least_must_fit": _least_formulas(self.possible),
        }

    @property
    def reason(self) -> tuple[str, str]:
        """Return the smallest formula that must fit, or else may fit, and a claim with the numbers of functions."""
        target, counts = self.sure.target, self.counts
        numbers = f"{bounds_text(counts.may_total)} functions may fit, {counts.must_total:,} must."
        of_gaps = "completion of the gaps"
        for fitting, claim in (
            (self.possible, f"is right in every row under every {of_gaps}"),
            (self.sure, f"is right in every row under some {of_gaps}; no formula is known to be under every one"),
        ):
            points = [point for point in fitting.front.points if point.errors == 0]
            if points:
                return f"{target} = {infix_text(plain_first(points[0]), fitting.names)}", f"{claim}; {numbers}"
        return "", f"No formula of {target} is known to be right in every row under any {of_gaps}; {numbers}"

    def section(self) -> Section:
        """Return a table of the numbers of functions by the columns on which they depend."""
        counts = self.counts
        ranked = sorted(counts.may.items(), key=lambda item: (len(item[0]), item[0]))
        lines = [
            [", ".join(self.sure.columns[v] for v in chosen) or "nothing", bounds_text(number),
             f"{counts.must.get(chosen, 0):,}"]
            for chosen, number in ranked
        ]  # fmt: skip
        notes = [self.scope]
        if self.rows_without_target:
            verb = "decides" if self.rows_without_target == 1 else "decide"
            notes.append(f"{plural(self.rows_without_target, 'rows')} without {self.sure.target} {verb} nothing")
        title = f"{self.sure.target}: functions that may and must fit"
        more = max(0, len(lines) - MAX_LINES)
        return Section(title, notes, ("depends on", "may fit", "must fit"), lines[:MAX_LINES], (1, 2), (), more)

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield lines for the terminal. every: whether all sets of columns are listed, not only SETS_SHOWN."""
        target, counts = self.sure.target, self.counts
        if self.rows_without_target:
            pronoun = "it" if self.rows_without_target == 1 else "them"
            yield f"{plural(self.rows_without_target, 'rows')} without {target}: nothing is decided by {pronoun}"
        yield (
            f"{target}, {self.scope}: {bounds_text(counts.may_total)} may fit (right under some completion of the"
            f" gaps), {counts.must_total:,} must (under every one)"
        )
        ranked = sorted(counts.may.items(), key=lambda item: (len(item[0]), item[0]))
        listed = ranked if every else ranked[:SETS_SHOWN]
        if listed:
            yield "     may    must  depends on"
        for chosen, number in listed:
            names = ", ".join(self.sure.columns[v] for v in chosen) or "nothing"
            yield f"{bounds_text(number):>8}  {counts.must.get(chosen, 0):6,}  {names}"
        if len(listed) < len(ranked):
            yield f"and {len(ranked) - len(listed)} more (--verbose)"
        yield ""
        may = _meaning_of_no_errors(self.sure, "may fit", has_none=not counts.may_total.upper)
        must = _meaning_of_no_errors(self.possible, "must fit", has_none=not counts.must_total)
        yield f"at best: an error is a row that no values of its gaps put right{may}"
        yield from self.sure.lines(every=every)
        yield ""
        yield f"at worst: an error is a row that some values of its gaps put wrong{must}"
        yield from self.possible.lines(every=every)


def _by_last_column(item: tuple[tuple[int, ...], Bounds]) -> tuple[int, ...]:
    return tuple(reversed(item[0]))


def exact_or_bounds(key: str, number: Bounds) -> dict[str, Any]:
    """Return entries for JSON: key -> the number, or key -> None and `KEY_bounds` -> its bounds if it is not exact."""
    if number.lower == number.upper:
        return {key: number.lower}
    return {key: None, f"{key}_bounds": list(number)}


def proof_of(number: Bounds) -> str:
    """Return whether a number is exact, in words."""
    return "counted exactly" if number.lower == number.upper else "counted between bounds"


def bounds_text(number: Bounds) -> str:
    """Return a number, or its bounds, in words."""
    if number.lower == number.upper:
        return f"{number.lower:,}"
    return f"at least {number.lower:,}, at most {number.upper:,}"


def _meaning_of_no_errors(stated: TargetFront, claim: str, *, has_none: bool) -> str:
    """Return what a front's point of 0 errors means, or that there is none; empty if that is not known.

    claim: about formulas without errors; has_none: whether the count proves that no function is without errors
    """
    if any(point.errors == 0 for point in stated.front.points):
        return f"; the line of 0 errors has the least formulas that {claim}"
    return f"; none {claim}" if has_none else ""


def _points(stated: TargetFront) -> list[list[Any]]:
    return [[p.errors, size_entry(p.size), p.num_formulas, len(p.functions)] for p in stated.front.points]


def _least_formulas(stated: TargetFront) -> list[str]:
    """Return the smallest formulas without errors; empty if no known formula is without errors."""
    points = [point for point in stated.front.points if point.errors == 0]
    return [text for text, _ in points[0].formulas(stated.ties)] if points else []


@dataclass(frozen=True)
class ScmCompletions:
    """Whole SCMs under named roots."""

    roots: tuple[str, ...]
    max_parents: int
    counts: ScmCounts

    @property
    def may_fit(self) -> bool:
        return self.counts.joint.upper > 0

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        counts = self.counts
        reason = counts.inexact_reason
        return {
            "class": f"SCMs of at most {self.max_parents} functional parents",
            "proof": f"joint between bounds: {reason}" if reason else proof_of(counts.local),
            "roots": list(self.roots),
            **exact_or_bounds("must", counts.must),
            **exact_or_bounds("joint", counts.joint),
            **exact_or_bounds("local", counts.local),
        }

    @property
    def reason(self) -> tuple[str, str]:
        """Number of SCMs that fit."""
        joint = bounds_text(self.counts.joint)
        verb = "fits" if joint == "1" else "fit"
        return "", f"{joint} SCM{'' if joint == '1' else 's'} {verb} under one completion of the gaps."

    def section(self) -> Section:
        """Return the three numbers."""
        return Section(f"SCMs with roots {', '.join(self.roots) or 'none'}", list(self.lines()))

    def lines(self, *, every: bool = False) -> Iterator[str]:
        """Yield the counts."""
        counts, roots = self.counts, ", ".join(self.roots) or "none"
        yield f"SCMs of at most {self.max_parents} functional parents, roots {roots}"
        yield f"  {bounds_text(counts.must)}: every mechanism fits under every completion of the gaps"
        reason = "" if counts.inexact_reason is None else f" ({counts.inexact_reason})"
        yield f"  {bounds_text(counts.joint)}: all mechanisms fit under one completion{reason}"
        yield f"  {bounds_text(counts.local)}: every mechanism by itself fits under some completion"


@dataclass(frozen=True)
class GapFit(FitWithoutItem):
    """Functions or SCMs that a table with gaps admits.

    target: the column that was asked for, if one was; parts: of it, of whole SCMs, or of each column
    """

    table: Table
    target: str | None
    parts: tuple[TargetCompletions | ScmCompletions, ...]

    def __repr__(self) -> str:
        subject = "" if self.target is None else f" of {in_one_line(self.target)[:40]}"
        return f"<GapFit{subject}: {plural(self.table.num_gaps, 'gaps')}, {'some' if self.fits else 'nothing'} may fit>"

    @property
    def fits(self) -> bool:
        """True if something may fit: of one target, of whole SCMs, or of some column."""
        return any(part.may_fit for part in self.parts)

    @property
    def may_fit_wider(self) -> bool:
        """True if nothing fits, and a wider class may have something that does."""
        widest = len(self.table.names) - 1
        return not self.fits and any(
            (part.counts.max_parents if isinstance(part, TargetCompletions) else part.max_parents) < widest
            for part in self.parts
        )

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Options that go on: an item has no gaps."""
        figures = ("--json",), "all figures"
        has_complete = bool((self.table.codes != GAP).all(axis=1).any())
        return ((("--gaps", "drop"), "the rows without gaps alone"), figures) if has_complete else (figures,)

    @property
    def why_no_item(self) -> str:
        """Gaps, which an item lacks; those of a column that names what was set are none."""
        unread = self.table.unread_do
        if not unread:
            return NO_ITEM
        return f"is {readable_repr(unread)} what was set by hand in each row? then give --do {quote(unread)}; {NO_ITEM}"

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        stated: dict[str, Any] = {
            "target": self.target,
            "rows": self.table.num_rows,
            "coding": self.table.coding,
            "notes": list(self.table.notes),
            "gaps": self.table.num_gaps,
        }
        if len(self.parts) == 1:
            return stated | self.parts[0].to_dict()
        columns = {part.sure.target: part.to_dict() for part in self.parts if isinstance(part, TargetCompletions)}
        return stated | {"columns": columns}

    @property
    def reasons(self) -> Sequence[tuple[str, str]]:
        """A sentence on each part: the formula that must or may fit, or how many SCMs do."""
        return [part.reason for part in self.parts]

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """Numbers of functions by target and the columns that they depend on; of SCMs their three numbers. Bounds."""
        rows: list[tuple[str | None, str, int, int, int]] = []
        for part in self.parts:
            if isinstance(part, ScmCompletions):
                counts = part.counts
                rows.append((None, ", ".join(part.roots), *counts.joint, counts.must.lower))
                continue
            for chosen, number in sorted(part.counts.may.items()):
                names = ", ".join(part.sure.columns[v] for v in chosen)
                rows.append((part.sure.target, names, *number, part.counts.must.get(chosen, 0)))
        headings = ("target", "depends_on", "may_at_least", "may_at_most", "must")
        return {heading: [row[k] for row in rows] for k, heading in enumerate(headings)}

    def to_networkx(self) -> Any:
        """Return a networkx `DiGraph`: an arc from each column that some function which may fit depends on.

        Its `necessary` states whether all of them do. `CalibrantError` for SCMs, of which there are numbers alone.
        """
        arcs = []
        for part in self.parts:
            if isinstance(part, ScmCompletions):
                raise CalibrantError(SCMS_HAVE_NO_ARCS)
            sets = [set(chosen) for chosen, number in part.counts.may.items() if number.upper]
            arcs += [
                (name, part.sure.target, {"necessary": all(v in chosen for chosen in sets)})
                for v, name in enumerate(part.sure.columns)
                if any(v in chosen for chosen in sets)
            ]
        return networkx_graph(((name, {}) for name in self.table.names), arcs)

    def sections(self) -> Iterator[Section]:
        """Yield the numbers and the fronts of each part."""
        for k, part in enumerate(self.parts):
            yield part.section()
            if isinstance(part, TargetCompletions):
                for number, (stated, wording) in enumerate(((part.sure, SURE), (part.possible, POSSIBLE)), 2 * k):
                    if stated.front.points:
                        yield Section(stated.target, markup=front_section(stated, self.table, number, wording))
        if any(isinstance(part, ScmCompletions) for part in self.parts):
            marks = {"gap": (self.table.codes == GAP).any(axis=1)}
            note = f"{plural(self.table.num_gaps, 'gaps')}, each ?"
            yield Section("rows", markup=rows_section(self.table, range(len(self.table.names)), marks, note))

    @property
    def claims(self) -> Iterator[Claim | Unclaimed]:
        """Fronts of every column, and numbers of functions or SCMs."""
        for part in self.parts:
            if isinstance(part, TargetCompletions):
                yield front_claim(part.sure, "sure")
                yield front_claim(part.possible, "possible")
                yield _completion_claim(part)
            else:
                yield _scm_completion_claim(part)

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: everything."""
        yield from self.table.reading_lines(every=verbose, target=self.target)
        number = int(self.table.counts[(self.table.codes == GAP).any(axis=1)].sum())
        rows = plural(self.table.num_rows, "rows")
        yield f"gaps in {number:,} of {rows}; a gap may be either value, no row is left out"
        if self.target is None and isinstance(self.parts[0], TargetCompletions):
            yield "each column by itself; SCMs are counted where roots are named (--roots A,B)"
        for part in self.parts:
            yield from part.lines(every=verbose)
            yield ""


def fit_with_gaps(table: Table, roots: Sequence[str] | None, options: FormulaOptions, listen: Steps) -> GapFit:
    """Count what may and must fit a table with gaps: a target, whole SCMs under roots, or each column by itself.

    roots: as names of columns; listen: called with the number of columns that are done
    """
    if options.rates is not None:
        raise CalibrantError(
            f"{table.source} has {plural(table.num_gaps, 'gaps')}, and an unknown rate (--rates) is of complete rows:"
            " leave out rows with gaps (--gaps drop) or columns (--drop)"
        )
    if options.max_parents > MAX_CATALOGUE_COLUMNS:
        raise CalibrantError(
            f"max_parents is {options.max_parents}; on rows with gaps (here {plural(table.num_gaps, 'gaps')}) at most"
            f" {MAX_CATALOGUE_COLUMNS} are compared: lower it, or leave out rows with gaps (--gaps drop)"
        )
    if roots is not None:
        for name in ("errors", "operators", "ties"):
            if getattr(options, name) != getattr(FormulaOptions, name):
                raise CalibrantError(
                    f"{table.source} has {plural(table.num_gaps, 'gaps')}, and with roots (--roots) SCMs are counted"
                    f" over their completions without {name} (--{name}): leave it out, or leave out rows with gaps"
                    " (--gaps drop)"
                )
        is_set = np.stack([table.is_set(k) for k in range(len(table.names))], axis=1)
        rows = GappedRows(table.codes, is_set, table.counts)
        counts = count_scms(rows, [table.position(root) for root in roots], options.max_parents)
        return GapFit(table, None, (ScmCompletions(tuple(roots), options.max_parents, counts),))
    num_wide = sum(comb(len(table.names) - 1, k) for k in range(NUM_VARS + 1, options.max_parents + 1))
    if num_wide > MAX_WIDE_SETS:
        raise CalibrantError(
            f"{table.source}: {len(table.names) - 1} columns have {num_wide:,} sets of five and six, with gaps at"
            f" most {MAX_WIDE_SETS} are compared: lower max_parents (--max-parents) to {NUM_VARS}, or leave out columns"
        )
    if options.asked_errors is None:
        options = replace(options, errors="front")
    names = table.names if options.target is None else (options.target,)
    parts = []
    for index, name in enumerate(names):
        listen("completions of gaps", index, len(names))
        parts.append(_complete_target(table, name, options))
    return GapFit(table, options.target, tuple(parts))


def _complete_target(table: Table, target: str, options: FormulaOptions) -> TargetCompletions:
    sure = target_front(table, target, options)
    possible = front(
        sure.patterns,
        options.operators,
        options.max_parents,
        sure.names,
        max_errors=options.max_errors,
        counting="possible",
        ties=options.ties,
    )
    position = table.position(target)
    unknown = (table.codes[:, position] == GAP) & ~table.is_set(position)
    counts = count_functions(sure.patterns, options.max_parents)
    return TargetCompletions(int(table.counts[unknown].sum()), counts, sure, replace(sure, front=possible))


def _completion_claim(part: TargetCompletions) -> Claim | Unclaimed:
    counts, columns, target = part.counts, part.sure.columns, part.sure.target
    reason = too_wide(counts.max_parents, len(columns))
    if reason or not _is_exact(counts.may_total):
        return Unclaimed(f"functions of {target}", reason or "their number is not exact")
    data = {
        "target": target,
        "max_parents": min(counts.max_parents, NUM_COLUMNS),
        "rows_without_target": part.rows_without_target,
        "may": counts.may_total.lower,
        "must": counts.must_total,
        "by_parents": [
            [[columns[v] for v in chosen], number.lower, counts.must.get(chosen, 0)]
            for chosen, number in sorted(counts.may.items())
            if number.lower
        ],
    }
    return Claim("gap-functions", target, data)


def _scm_completion_claim(part: ScmCompletions) -> Claim | Unclaimed:
    counts = part.counts
    if part.max_parents > NUM_COLUMNS or not (_is_exact(counts.must) and _is_exact(counts.local)):
        return Unclaimed("SCMs", too_wide(part.max_parents, part.max_parents) or "their number is not exact")
    data = {
        "roots": list(part.roots),
        "max_parents": part.max_parents,
        "must": counts.must.lower,
        "joint": list(counts.joint),
        "local": counts.local.lower,
    }
    return Claim("gap-scms", "", data)


def _is_exact(number: Bounds) -> bool:
    return number.lower == number.upper
