"""The least SCM, or the least formula of one column, that fits a Boolean table; how many others fit, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from markupsafe import Markup

from calibrant.audits.replayscm.why.explanation import Limits, explain, smallest_contradiction
from calibrant.audits.replayscm.why.parts import Contradiction, Decider, ReplayWhy, title
from calibrant.audits.replayscm.why.smallest_pair import Choices
from calibrant.bench.core.capabilities import Fittable
from calibrant.bench.pages.why import why_page
from calibrant.bench.replayscm.audit.records import write_certificates
from calibrant.bench.replayscm.fitting.columns import BooleanTable, DegenerateColumns, degenerate_columns, table_of
from calibrant.bench.replayscm.fitting.networks import NetworkFit, learn_in_steps
from calibrant.bench.replayscm.why.page import body, drawing
from calibrant.bench.replayscm.why.page import lines as why_lines
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.formulas.text import Grammar, infix
from calibrant.dsl.replayscm.disclosure import Disclosure, HiddenOrder, HiddenRoots, natural
from calibrant.dsl.replayscm.item import Pool, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.world import Intervention, Panel, World, columns_from_rows
from calibrant.dsl.text import known_names, plural
from calibrant.solvers.outcome import BudgetSpent, Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

# --- Advice where nothing fits a table --------------------------------------------------------------------------------
NOISY = "if values are noisy, learn networks (--score bde; learn_networks in Python)"


def contradiction_message(table: BooleanTable, clash: Contradiction) -> str:
    """Return which rows contradict each other, and what to do."""
    first, second = (place.split()[-1] for place in (clash.first, clash.second))
    reason = f"{clash.variable} differs, and all that it may depend on is equal"
    advice = "" if table.has_do else "name the columns that were set in a column given by do (--do), "
    rows = f"rows {first} and {second} ({table.counting})"
    return f"{rows} contradict each other: {reason}; correct one, {advice}or {NOISY}"


def advise_bound(max_parents: int) -> str:
    """Return which bound to raise, and what fits noisy columns."""
    if max_parents < MAX_PARENTS:
        return f"raise max_parents (--max-parents), at most {MAX_PARENTS}; {NOISY}"
    wider = f"wider classes than {MAX_PARENTS} are not searched: leave out columns, or add one that combines some"
    return f"{wider}; {NOISY}"


MAX_PARENT_SETS = 5_000_000  # of all variables together: seconds
MAX_ROOT_PARENT_SETS = 2_000_000  # parent sets that fit times root sets: the least SCM takes two seconds
MAX_STATES = 40_000_000  # of the least SCM: 2,000 conflicts of MaxSAT, two seconds
LIMITS = Limits(parent_sets=MAX_ROOT_PARENT_SETS, terms=100_000, pair_sets=8_000)  # half a second each
_SPENT = "more parent sets than are gone through; name the roots, leave out columns, or lower max_parents"
ITEM = "table"
SCMS_APART = "SCMs that differ in what such a column does, or does to others, are all counted"
Steps: TypeAlias = Callable[[str, int, int], None]  # the step, how many of its parts are done, of how many


@dataclass(frozen=True)
class Fit:
    """SCMs that a table admits.

    problem: the table as an item, which every other function takes; target: the column that was asked for, if one was
    outcome: the least SCM with proof (`Found`), `Impossible` with what was exhausted, or `OutOfBudget`
    why: how many SCMs fit, what is open and what would settle it; None where nothing fits, or beyond the limits
    degenerate: columns of which no row tells what they do
    uncounted: the limit that kept `why` from being made
    is_contradictory: nothing of any class fits, because rows contradict each other
    """

    problem: Problem
    target: str | None
    outcome: Found[ExactAnswer] | Impossible | OutOfBudget
    why: ReplayWhy | None
    degenerate: DegenerateColumns
    uncounted: str | None = None
    is_contradictory: bool = False

    def __repr__(self) -> str:
        subject = "" if self.target is None else f" of {in_one_line(self.target)[:40]}"
        if not isinstance(self.outcome, Found):
            return f"<Fit{subject}: {type(self.outcome).__name__}>"
        number = "" if self.why is None else f", {self.why.count.in_words()[:60]} fit"
        return f"<Fit{subject}: size {self.outcome.value.size}, proven least{number}>"

    def __str__(self) -> str:
        """Return the text of the terminal, the result or the reason first."""
        return "\n".join(self.lines())

    @property
    def formula(self) -> str | None:
        """The formula of the target, in infix form."""
        if self.target is None or not isinstance(self.outcome, Found):
            return None
        return infix(self.outcome.value.model.mechanisms[self.target])

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        answer = self.outcome.value if isinstance(self.outcome, Found) else None
        return {
            "target": self.target,
            "degenerate_columns": self.degenerate.to_dict(),
            "roots": None if answer is None else list(answer.model.roots),
            "mechanisms": None if answer is None else {v: str(f) for v, f in answer.model.mechanisms.items()},
            "size": None if answer is None else answer.size,
            "proof": None if answer is None else dict(answer.provenance),
            "exhausted": self.outcome.exhausted if isinstance(self.outcome, Impossible) else None,
            "out_of_budget": self.outcome.reached if isinstance(self.outcome, OutOfBudget) else self.uncounted,
            "why": None if self.why is None else self.why.to_dict(),
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines of the terminal."""
        yield from self.degenerate.lines(SCMS_APART)
        if isinstance(self.outcome, Found):
            model = self.outcome.value.model
            if self.target is None:
                yield f"roots: {', '.join(model.roots)}"
            for variable in model.order:
                yield f"{variable} = {infix(model.mechanisms[variable])}"
            yield f"total size {self.outcome.value.size}, proven least: {self.outcome.value.provenance['class']}"
        elif isinstance(self.outcome, Impossible):
            yield f"nothing fits: {self.outcome.exhausted}"
        else:
            yield f"not decided: {self.outcome.reached}"
        if self.uncounted is not None:
            yield f"how many SCMs fit was not counted: {self.uncounted}"
        if self.why is not None:
            yield ""
            yield from why_lines(self.why)

    @property
    def fits(self) -> bool:
        """True if some SCM fits."""
        return isinstance(self.outcome, Found)

    @property
    def may_fit_wider(self) -> bool:
        """True if nothing fits, and a wider class may have an SCM that does."""
        return isinstance(self.outcome, Impossible) and not self.is_contradictory

    def write(
        self,
        name: str,
        *,
        html: Path | None = None,
        svg: Path | None = None,
        out: Path | None = None,
        certificates: Path | None = None,
    ) -> Iterator[str]:
        """Write a page, a picture, a pool of this item and certificates, as far as asked for; yields notes.

        name: of the table, as the page has it
        """
        if self.why is not None and html is not None:
            notes = Markup().join(map(Markup('<p class="callout">{}</p>\n').format, self.degenerate.lines(SCMS_APART)))
            write_atomically(html, why_page(self.why, notes + body(self.why, "why"), name))
            yield f"page written to {html}"
        if self.why is not None and svg is not None:
            write_atomically(svg, drawing(self.why))
            yield f"picture written to {svg}"
        # without a fit no number of roots is known, which the item would state
        has_item = self.fits or not isinstance(self.problem.task.disclosure, HiddenRoots)
        if out is not None and has_item:
            write_pool(Pool(out.name.partition(".")[0], (self.problem,)), out)
            yield f"pool written to {out}"
        kinds = (("page", html), ("picture", svg), ("certificate", certificates), ("pool", None if has_item else out))
        unwritten_kinds = [name for name, path in kinds if path is not None]
        if isinstance(self.outcome, Impossible) and unwritten_kinds:
            yield f"no {' and no '.join(unwritten_kinds)} written: nothing fits"
        if self.why is not None and certificates is not None:
            model_class = ModelClass(self.why.max_parents)
            yield from write_certificates([self.problem], certificates, lambda _: model_class)


def fit(
    data: Any,
    *,
    target: str | None = None,
    do: str | None = None,
    roots: Sequence[str] | None = None,
    max_parents: int = 4,
    columns: Sequence[str] | None = None,
) -> Fit:
    """Fit a table of Boolean columns: the least SCM, or with `target` the least formula of that column.

    data: a path to a CSV file, a data frame (pandas, polars, pyarrow), a mapping of columns, a list of mappings, or an
        array of two dimensions
    target: the column to explain by the others; None explains every column that is no root
    do: the column that names the columns set by an intervention in each row, separated by commas; empty for none
    roots: columns that need no explanation; None: as few as possible, proven by exhaustion
    max_parents: largest number of columns that one depends on, 1 to 6
    columns: names of an array's columns
    """
    return fit_in_steps(data, target, do, roots, max_parents, columns, lambda step, done, total: None)


def fit_in_steps(
    data: Any,
    target: str | None,
    do: str | None,
    roots: Sequence[str] | None,
    max_parents: int,
    columns: Sequence[str] | None,
    listen: Steps,
) -> Fit:
    """Fit a table as `fit` does; `listen` is called with each step."""
    if max_parents not in range(1, MAX_PARENTS + 1):
        raise CalibrantError(f"max_parents is {short_repr(max_parents)}; 1 to {MAX_PARENTS} are supported")
    if target is not None and roots is not None:
        raise CalibrantError("target and roots exclude each other: with a target all other columns are roots")
    table = table_of(data, do, columns)
    for name in [target] if target is not None else roots or ():
        if name not in table.names:
            raise CalibrantError(
                f"{table.source} has no column {short_repr(name)}; {known_names(str(name), table.names)}"
            )
    free = natural(name for name in table.names if name != target) if target is not None else roots
    if free is not None:
        task = _task(table, HiddenOrder(natural(table.names), natural(free)))
        return _fit_under(table, task, target, max_parents, listen)
    return _fewest_roots(table, max_parents, listen)


def _fewest_roots(table: BooleanTable, max_parents: int, listen: Steps) -> Fit:
    """Fit with as few roots as possible: every smaller number is exhausted first."""
    for number in range(1, len(table.names)):
        listen("numbers of roots", number - 1, len(table.names))
        task = _task(table, HiddenRoots(natural(table.names), number))
        _require_size(table, task, max_parents)
        choices = Choices(VersionSpace(task, ModelClass(max_parents)))
        try:
            num_root_sets = len(choices.root_sets)
        except BudgetSpent as spent:
            raise CalibrantError(f"{table.source}: {spent}; name the roots (--roots A,B,...)") from None
        if num_root_sets * choices.num_parent_sets > MAX_ROOT_PARENT_SETS:
            least = f"at least {plural(number, 'roots')} are needed, and {num_root_sets:,} sets of {number} fit, with "
            sets = f"{choices.num_parent_sets:,} parent sets: more than are gone through for the least"
            advice = "name the roots (--roots A,B,...), leave out columns, or lower max_parents (--max-parents)"
            out_of_budget = OutOfBudget(f"{least}{sets}; {advice}")
            return Fit(_problem(table, task), None, out_of_budget, None, degenerate_columns(table))
        if num_root_sets:
            return _fit_under(table, task, None, max_parents, listen)
    reason = f"no column is a function of at most {max_parents} others where it was not set; every root set was tried"
    reason += f"; {_what_to_do(table, max_parents)}"
    return Fit(
        _problem(table, _task(table, HiddenRoots(natural(table.names), len(table.names)))),
        None,
        Impossible(reason),
        None,
        degenerate_columns(table),
        is_contradictory=max_parents >= len(table.names) - 1,  # no column can depend on more
    )


def _what_to_do(table: BooleanTable, max_parents: int) -> str:
    """Return the contradicting rows if no bound helps, else the bound to raise."""
    if max_parents < len(table.names) - 1:
        return advise_bound(max_parents)
    for name in table.names:
        others = natural(column for column in table.names if column != name)
        clash = smallest_contradiction(_task(table, HiddenOrder(natural(table.names), others)))
        if clash is not None:
            return contradiction_message(table, clash)
    raise AssertionError("every column is a function of the others, but no set of roots fits")


def _fit_under(table: BooleanTable, task: Task, target: str | None, max_parents: int, listen: Steps) -> Fit:
    clash = smallest_contradiction(task)
    if clash is not None:
        raise CalibrantError(f"{table.source}, {contradiction_message(table, clash)}")
    _require_size(table, task, max_parents)
    listen("least SCM", 0, 2)
    problem, degenerate = _problem(table, task), degenerate_columns(table, target)
    outcome = solve(task, max_parents=max_parents, nested_roots=False, states=MAX_STATES)
    if isinstance(outcome, Impossible):
        impossible = Impossible(_report_exhaustion(outcome, task, target, max_parents))
        return Fit(problem, target, impossible, None, degenerate)
    listen("what else fits", 1, 2)
    try:
        why = explain(task, ITEM, max_parents=max_parents, columns=table.names, limits=LIMITS)
    except (BudgetSpent, ValueError) as spent:
        return Fit(problem, target, outcome, None, degenerate, uncounted=str(spent) or _SPENT)
    return Fit(problem, target, outcome, _of_table(why, table, target), degenerate)


def _of_table(why: ReplayWhy, table: BooleanTable, target: str | None) -> ReplayWhy:
    """Return the reason in the words of the table: its name, its order of columns, the target last, lines to add."""
    evidence = why.evidence
    names = (*(name for name in table.names if name != target), *([] if target is None else [target]))
    places = [evidence.variables.index(name) for name in names]
    worlds = tuple(
        msgspec.structs.replace(world, rows=tuple("".join(row[place] for place in places) for row in world.rows))
        for world in evidence.worlds
    )
    deciders = tuple(
        msgspec.structs.replace(decider, table_line=_table_line(decider, table)) for decider in why.deciders
    )
    return msgspec.structs.replace(
        why,
        title=title(table.source, why.state),
        evidence=msgspec.structs.replace(evidence, variables=names, worlds=worlds),
        deciders=deciders,
    )


def _table_line(decider: Decider, table: BooleanTable) -> str:
    """Return a world of one row as a line of the file; of a table that is no file, by the names of its columns."""
    (row,) = decider.world["rows"]
    layout = table.layout
    if layout is None:
        cells = ", ".join(f"{name} = {value}" for name, value in zip(table.names, row, strict=True))
        set_names = " and ".join(decider.world.get("constants", ()))
        return f"{cells}; set: {set_names}" if set_names else cells
    values = zip((name for name in layout.header if name != layout.do), row, strict=True)
    return layout.line(dict(values), list(decider.world.get("constants", ())))


def _report_exhaustion(outcome: Impossible, task: Task, target: str | None, max_parents: int) -> str:
    """Report which class was exhausted, and which bound to raise."""
    if target is None:
        return f"{outcome.exhausted}; {advise_bound(max_parents)}"
    num_others = len(task.variables) - 1
    sets = sum(comb(num_others, k) for k in range(max_parents + 1))
    claim = (
        f"{target} is no function of at most {max_parents} of the {num_others} other columns: "
        f"all {sets:,} sets were tried"
    )
    return f"{claim}; {advise_bound(max_parents)}"


def _require_size(table: BooleanTable, task: Task, max_parents: int) -> None:
    numbers = [len(task.disclosure.admissible_parents(v)) for v in task.disclosure.endogenous]
    sets = sum(comb(number, k) for number in numbers for k in range(max_parents + 1))
    if sets > MAX_PARENT_SETS:
        raise CalibrantError(
            f"{table.source}: {len(table.names)} columns have {sets:,} sets of at most {max_parents} parents; at most"
            f" {MAX_PARENT_SETS:,} are gone through: leave out columns, or lower max_parents (--max-parents)"
        )


def _task(table: BooleanTable, disclosure: Disclosure) -> Task:
    """Return the table as a task: rows with the same columns set are a world, in the order of the table."""
    names = natural(table.names)
    order = [table.names.index(name) for name in names]
    groups: dict[frozenset[str], list[int]] = {}
    for r, targets in enumerate(table.targets):
        groups.setdefault(targets, []).append(r)
    worlds = tuple(_world(table, names, order, targets, rows) for targets, rows in groups.items())
    kind = TaskKind.ROOTS if disclosure.roots is None else TaskKind.SCM
    return Task(kind, disclosure, Grammar(allow_constants=True), Panel(names, worlds), False, 0)


def _world(
    table: BooleanTable, names: tuple[str, ...], order: Sequence[int], targets: frozenset[str], rows: Sequence[int]
) -> World:
    texts = ["".join(str(table.rows[r][k]) for k in order) for r in rows]
    assigned = natural(targets)
    noun = "row" if table.layout is None else "line"
    return World(
        f"do_{'_'.join(assigned)}" if assigned else "observed",
        Intervention(assigned=assigned),
        names,
        tuple(f"{noun} {table.numbers[r]}" for r in rows),
        columns_from_rows(texts, len(names)),
    )


def _problem(table: BooleanTable, task: Task) -> Problem:
    sealed = Sealed(None, None, Panel(task.variables, ()), task.variables)
    return Problem(ITEM, task, sealed, columns=table.names)


# --- Fitting of a CSV file as `calibrant fit` asks for it -------------------------------------------------------------


class TableFitting:
    """See bench.core.capabilities.Fittable."""

    def fit(
        self,
        data: Path,
        *,
        target: str | None,
        do: str | None,
        roots: Sequence[str] | None,
        max_parents: int,
        progress: Steps,
    ) -> Fit:
        return fit_in_steps(data, target, do, roots, max_parents, None, progress)

    def networks(
        self, data: Path, *, do: str | None, score: str, best: int, max_parents: int | None, progress: Steps
    ) -> NetworkFit:
        return learn_in_steps(data, do, score, 1.0, best, max_parents, None, progress)


FITTING: Fittable = TableFitting()
