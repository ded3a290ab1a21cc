"""The least SCM, or the least formula of one column, that fits a Boolean table; how many others fit, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from calibrant.audits.replayscm.why.explanation import Limits, count_factors, explain, smallest_contradiction
from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.audits.replayscm.why.smallest_pair import Choices
from calibrant.bench.core.capabilities import Fittable, FormulaQuestion, NetworkQuestion, Steps, Suggestion
from calibrant.bench.replayscm.fitting import results
from calibrant.bench.replayscm.fitting import target as fitting_target
from calibrant.bench.replayscm.fitting.columns import quote_name
from calibrant.bench.replayscm.fitting.fronts import (
    MAX_TARGET_PARENTS,
    FormulaOptions,
    ScmFront,
    TargetFront,
    find_fronts,
    follow_up,
    front_columns,
)
from calibrant.bench.replayscm.fitting.reading import Reading, join_names, read_with, reading_options, split_names
from calibrant.bench.replayscm.fitting.table import (
    ITEM,
    Gaps,
    Naming,
    Table,
    handle_gaps,
    problem_of,
    require_size,
    task_of,
)
from calibrant.bench.replayscm.why.page import lines as why_lines
from calibrant.bench.report.tidy import Framed
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import infix
from calibrant.dsl.knowledge import Knowledge
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, Picture, PictureEdge, networkx_graph
from calibrant.dsl.replayscm.disclosure import HiddenOrder, HiddenRoots, natural
from calibrant.dsl.replayscm.item import Pool, Problem, Task
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.text import plural
from calibrant.solvers.acyclic.maxsat import fewest_roots
from calibrant.solvers.formulas.least_formulas import Measure
from calibrant.solvers.formulas.uncertain_rows import Prior
from calibrant.solvers.outcome import Budget, BudgetSpent, Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.certified import certify
from calibrant.solvers.replayscm.exact import ExactAnswer, solve
from calibrant.solvers.replayscm.roots_and_parents import MAX_ROOT_SETS
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass, VersionSpace

if TYPE_CHECKING:  # imported by what makes them: a table alone is fitted in .85 of the time
    from calibrant.bench.pools.capabilities import CertificateCheck
    from calibrant.bench.replayscm.fitting.claimed_graph import GraphFit
    from calibrant.bench.replayscm.fitting.forms import FormsFit
    from calibrant.bench.replayscm.fitting.missing import GapFit
    from calibrant.bench.replayscm.fitting.network_fit import NetworkFit

MAX_ROOT_PARENT_SETS = 2_000_000  # parent sets that fit times root sets: the least SCM takes two seconds
MAX_ROOT_CONFLICTS = 20_000  # of the search for fewest roots
MAX_STATES = 40_000_000  # states of the least SCM: 2,000 conflicts of MaxSAT, two seconds
LIMITS = Limits(parent_sets=MAX_ROOT_PARENT_SETS, terms=100_000, pair_sets=8_000)  # half a second each
_SPENT = "more parent sets than are gone through; name the roots, leave out columns, or lower max_parents"
AS_READ = ("target", "coding", "notes", "constants", "rows")  # keys of JSON with the user's names already


@dataclass(frozen=True)
class Fit(Framed):
    """SCMs that a table admits.

    problem: the table as an item, which every other function takes; target: the column that was asked for, if one was
    outcome: the least SCM with proof (`Found`), `Impossible` with what was exhausted, or `OutOfBudget`
    why: how many SCMs fit, what is open and what would settle it; None where nothing fits, or beyond the limits
    table: the table as it was read; naming: legal names of its columns in `problem`, and the user's own
    uncounted: the limit that kept `why` from being made
    is_contradictory: nothing of any class fits, because rows contradict each other
    fronts: errors against size, of the target, of whole SCMs, or of each column; rates: posterior of a rate of errors
    needs: smallest sets of columns that determine the target; num_functions: that fit, where more than six are allowed
    best_formula: of the target, where its size is not proven least
    some_roots: as few as possible, behind which some SCM fits, where root sets are not gone through
    """

    problem: Problem
    target: str | None
    outcome: Found[ExactAnswer] | Impossible | OutOfBudget
    why: ReplayWhy | None
    table: Table
    uncounted: str | None = None
    is_contradictory: bool = False
    fronts: tuple[TargetFront | ScmFront, ...] = ()
    rates: fitting_target.TargetRates | None = None
    needs: fitting_target.TargetNeeds | None = None
    num_functions: int | None = None
    best_formula: Formula | None = None
    some_roots: tuple[str, ...] = ()

    @property
    def naming(self) -> Naming:
        """Legal names of columns in the problem, and the user's own."""
        return self.table.naming

    def __repr__(self) -> str:
        subject = "" if self.target is None else f" of {in_one_line(self.target)[:40]}"
        if not isinstance(self.outcome, Found):
            return f"<Fit{subject}: {type(self.outcome).__name__}>"
        number = "" if self.why is None else f", {self.why.count.in_words()[:60]} fit"
        return f"<Fit{subject}: size {self.outcome.value.size}, proven least{number}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_networkx(self) -> Any:
        """Return the least SCM as a networkx `DiGraph` under the table's names; roots have the `formula` ""."""
        formulas, arcs = self.naming.graph(self.outcome.value.model, is_whole=self.target is None)
        return networkx_graph(
            ((v, {"formula": formula}) for v, formula in formulas.items()), ((*arc, {}) for arc in arcs)
        )

    def picture(self) -> Picture:
        """Return the graph and the formulas of the least SCM, and how many fit; or why there is none."""
        if not isinstance(self.outcome, Found):
            return Picture(repr(self).strip("<>"), text=self.naming.text(str(self.outcome)))
        formulas, arcs = self.naming.graph(self.outcome.value.model, is_whole=self.target is None)
        rows = tuple((name, formula or "a root") for name, formula in formulas.items())[:MAX_PICTURE_ROWS]
        return Picture(
            repr(self).strip("<>"),
            nodes=dict.fromkeys(formulas, ""),
            edges=tuple(PictureEdge(*arc) for arc in arcs),
            columns=("column", "formula"),
            rows=rows,
            num_rows=len(formulas),
            text="" if self.why is None else self.naming.text(self.why.reason_text),
        )

    @property
    def frame_columns(self) -> Mapping[str, Sequence[Any]]:
        """The points of its fronts; without any the formula of each column, None of roots."""
        if self.fronts:
            return front_columns(self.fronts)
        model = self.outcome.value.model if isinstance(self.outcome, Found) else None
        formulas = {} if model is None else {v: self.naming.text(infix(f)) for v, f in model.mechanisms.items()}
        names = [v for v in self.table.legal_names if model is not None and (self.target is None or v in formulas)]
        return {"column": list(map(self.naming.to_raw, names)), "formula": [formulas.get(v) for v in names]}

    @property
    def formula(self) -> str | None:
        """The formula of the target, in infix form."""
        if self.target is None or not isinstance(self.outcome, Found):
            return None
        return self.naming.text(infix(self.outcome.value.model.mechanisms[self.naming.to_legal(self.target)]))

    def to_dict(self) -> dict[str, Any]:
        """Ready for JSON."""
        answer = self.outcome.value if isinstance(self.outcome, Found) else None
        entries = {
            "target": self.target,
            "rows": self.table.num_rows,
            "coding": self.table.coding,
            "notes": list(self.table.notes),
            "constants": {name: float(factor) for name, factor in self.table.factors.items()},
            "roots": None if answer is None else list(answer.model.roots),
            "mechanisms": None if answer is None else {v: str(f) for v, f in answer.model.mechanisms.items()},
            "size": None if answer is None else answer.size,
            "class": None if answer is None else answer.provenance["class"],
            "proof": None if answer is None else dict(answer.provenance),
            "exhausted": self.outcome.exhausted if isinstance(self.outcome, Impossible) else None,
            "out_of_budget": self.outcome.reached if isinstance(self.outcome, OutOfBudget) else self.uncounted,
            "why": None if self.why is None else self.why.to_dict(),
        }
        inside = {key: self.naming.value(value) for key, value in entries.items() if key not in AS_READ}
        stated = {key: inside.get(key, value) for key, value in entries.items()} | self._target_entries()
        if len(self.fronts) == 1:
            proof = stated["proof"]
            stated |= self.fronts[0].to_dict()
            stated["proof"] = proof or stated["proof"]
        elif self.fronts:
            columns = {front.target: front.to_dict() for front in self.fronts if isinstance(front, TargetFront)}
            stated["columns"] = columns
        return stated if self.rates is None else stated | self.rates.to_dict()

    def _target_entries(self) -> dict[str, Any]:
        """Return columns needed, columns mentioned and functions counted, of one target."""
        if self.needs is None or self.target is None:
            return {}
        legal, best = self.naming.to_legal(self.target), self.best_formula
        if isinstance(self.outcome, Found):
            best = self.outcome.value.model.mechanisms[legal]
        entries = {"mentions": None if best is None else len(best.mentioned), **self.needs.to_dict()}
        if self.best_formula is not None:
            entries["best_known"] = self.naming.text(str(self.best_formula))
        if self.num_functions is not None:
            entries["functions"] = self.num_functions
        return entries

    def lines(self, *, verbose: bool = False) -> Iterator[str]:
        """Yield the lines of the terminal; verbose: all notes on columns."""
        yield from self.table.reading_lines(every=verbose, target=self.target)
        yield from self._answer_lines()
        yield from map(self.naming.text, self._result_lines())
        for front in self.fronts:
            yield ""
            yield from front.lines(every=verbose)
        if self.rates is not None:
            yield ""
            yield from self.rates.lines()

    def _answer_lines(self) -> Iterator[str]:
        """Yield the formulas with their size and class, or why there are none."""
        measured = results.measured_lines(self.target, self.fronts)
        yield from measured
        if not measured or isinstance(self.outcome, Impossible):
            yield from map(self.naming.text, self._outcome_lines())

    def _outcome_lines(self) -> Iterator[str]:
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

    def _result_lines(self) -> Iterator[str]:
        if self.needs is not None and not isinstance(self.outcome, Found):
            yield from self.needs.lines()
        if self.num_functions is not None:
            yield fitting_target.functions_line(self.num_functions)
        if self.uncounted is not None:
            yield f"how many SCMs fit was not counted: {self.uncounted}"
        if self.why is not None:
            yield ""
            yield from map(self.naming.with_values, why_lines(self.why, self.naming.values))

    @property
    def fits(self) -> bool:
        """True if some SCM fits."""
        return isinstance(self.outcome, Found) or self.best_formula is not None

    @property
    def may_fit_wider(self) -> bool:
        """True if nothing fits, and a wider class may have an SCM that does."""
        return isinstance(self.outcome, Impossible) and not self.is_contradictory

    @property
    def suggestions(self) -> Sequence[Suggestion]:
        """Roots that fit, where not all sets are gone through; what to do where nothing fits; else none."""
        if self.some_roots:
            return ((("--roots", join_names(self.some_roots)), "the least SCM behind roots that fit"),)
        if self.is_contradictory and not self.fronts and self.target is None:
            return (("--errors", "front"), "allow errors"), (("--score", "bde"), "if values are noisy: networks")
        return ((("--json",), "all figures"),) if self.fronts and not self.fits else ()

    @property
    def needed_parents(self) -> int | None:
        """Fewest columns that determine the target, where they are known."""
        return None if self.needs is None else self.needs.needed.number

    @property
    def has_page(self) -> bool:
        """Whether there is anything to draw: what is open, or a front of one column."""
        return self.why is not None or bool(results.drawn_fronts(self.fronts))

    @property
    def has_item(self) -> bool:
        """Whether the table is an item: without a fit no number of roots is known, which the item would state."""
        return self.fits or not isinstance(self.problem.task.disclosure, HiddenRoots)

    def write(
        self,
        name: str,
        *,
        html: Path | None = None,
        steps: Path | None = None,
        svg: Path | None = None,
        out: Path | None = None,
        certificates: Path | None = None,
    ) -> Iterator[str]:
        """Write a page, one in steps, a picture, a pool of its item, certificates; yield notes. name: on the page."""
        if html is not None and self.has_page:
            answer, sections = list(self._answer_lines()), results.front_sections(self.fronts, self.table)
            write_atomically(html, results.table_page(self.table, self.target, answer, self.why, name, sections))
            yield f"page written to {html}"
        if steps is not None and self.fits:
            write_atomically(steps, results.page_in_steps(self.table, self.target, self.why, name))
            yield f"page in steps written to {steps}"
        if self.why is not None and svg is not None:
            from calibrant.bench.replayscm.why.page import drawing

            write_atomically(svg, self.naming.markup(drawing(self.why)))
            yield f"picture written to {svg}"
        if out is not None and self.has_item:
            write_pool(Pool(out.name.partition(".")[0], (self.problem,)), out)
            note = "" if self.problem.task.assumption is None else "; the assumption is no part of its item"
            yield f"pool written to {out}{note}"
        is_counted = self.why is not None
        kinds = {"page": None if self.has_page else html, "page in steps": None if self.fits else steps}
        kinds |= {"picture": None if is_counted else svg, "pool": None if self.has_item else out}
        kinds["certificate"] = None if is_counted or self.fronts else certificates
        yield from results.state_unwritten(kinds, self.outcome, fits=self.fits)
        if certificates is not None and self.problem.task.assumption is not None:
            raise CalibrantError("a certificate states no assumption; take assume or the certificates away")
        claims = list(results.front_claims(self.fronts, len(self.table.names)))
        if claims and certificates is not None:
            yield from results.write_claims(self.table, claims, certificates)
        if self.why is not None and certificates is not None and (out is not None or not claims):
            from calibrant.bench.replayscm.audit.records import write_certificates

            model_class = ModelClass(self.why.max_parents)
            yield from write_certificates([self.problem], certificates, lambda _: model_class)


def fit(
    data: Any,
    *,
    target: str | None = FormulaOptions.target,
    roots: str | Sequence[str] | None = FormulaOptions.roots,
    max_parents: int = FormulaOptions.max_parents,
    operators: Measure = FormulaOptions.operators,
    errors: str | int | None = FormulaOptions.errors,
    ties: int = FormulaOptions.ties,
    rates: Any = FormulaOptions.rates,
    prior: Prior = FormulaOptions.prior,
    graph: Any = FormulaOptions.graph,
    consistency: str | float | Fraction | None = FormulaOptions.consistency,
    cases: int = FormulaOptions.cases,
    assume: str | Path | Knowledge | None = FormulaOptions.assume,
    gaps: Gaps = "complete",
    **reading: Unpack[Reading],
) -> Fit | GapFit | GraphFit | FormsFit:
    """Fit a table of columns with two values: the least SCM, or with `target` the least formula of that column.

    data: a path to a CSV, TSV or Parquet file, a data frame (pandas, polars, pyarrow), a mapping of columns, a list of
        mappings, or an array of two dimensions; or a path to a PLA file, whose outputs are targets (`FormsFit`)
    target: the column to explain by the others; None explains every column that is no root
    roots: columns that need no explanation; None: as few as possible, proven by exhaustion
    max_parents: largest number of columns that one depends on, 1 to 6
    operators: all, and-or-not (nodes of formulas), sop or pos (sums of products, products of sums)
    errors: "front" for the least size of every number of errors, or the largest number; ties: formulas listed of each
    rates: of an unknown rate of errors in the target: "1/10", "1/100:1/5,1/20:4/5", or pairs; prior: of functions,
        uniform or by_parents
    graph: claims that each column is a function of its parents in it: a file, a text 'A -> B', pairs, or a graph of
        networkx or pgmpy (`GraphFit`); with operators and ties alone
    consistency: least share of ones of a pattern that counts as 1, like "4/5": the truth table of qualitative
        comparative analysis (`FormsFit`); cases: fewest rows of a pattern that is no remainder
    assume: statements that the SCM has to satisfy (docs/engines.md): a text of lines, or a `pathlib.Path` of a file
    gaps: `complete`: a gap may be either value, and functions that may and must fit are counted (`GapFit`);
        `drop` leaves out rows with a gap
    reading: how the table is read: do, do_flags, one, binarize, drop, missing, columns (docs/tables.md). Messages name
        options of the command: --binarize 'a:>0.5' is binarize="a:>0.5" here
    """
    target = target if target is None else str(target)  # names of a frame's columns may be numbers
    roots = roots if roots is None or isinstance(roots, str) else [str(root) for root in roots]
    options = FormulaOptions(
        target, roots, max_parents, operators, errors, ties, rates, prior, graph, consistency, cases, assume
    )
    return fit_in_steps(data, options, gaps, reading, fitting_target.log_step)


def fit_in_steps(
    data: Any,
    options: FormulaOptions,
    gaps: Gaps,
    reading: Mapping[str, Any],
    listen: Steps,
    *,
    refuses_contradictions: bool = True,
) -> Fit | GapFit | GraphFit | FormsFit:
    """Fit a table as `fit` does; `listen` is called with each step. Contradicting rows are an error, or a result."""
    options.check()
    target, roots, max_parents = options.target, options.roots, options.max_parents
    table = handle_gaps(read_with(data, reading_options(reading), "formulas"), gaps)
    assumption = options.assumption(table)
    if table.outputs:
        from calibrant.bench.replayscm.fitting.forms import fit_outputs

        return fit_outputs(table, options, listen)
    if options.graph is not None:
        from calibrant.bench.replayscm.fitting.claimed_graph import judge_graph

        listen("functions of the graph", 0, 1)
        return judge_graph(table, options)
    naming = table.naming
    listed = split_names(roots, table.names) if isinstance(roots, str) else roots
    table.require_columns([target] if target is not None else listed or ())
    free = [name for name in table.names if name != target] if target is not None else listed
    if options.consistency is not None:
        from calibrant.bench.replayscm.fitting.forms import fit_configurations

        return fit_configurations(table, options, listen)
    if table.num_gaps:
        from calibrant.bench.replayscm.fitting.missing import fit_with_gaps

        listen("completions of gaps", 0, 1)
        return fit_with_gaps(table, listed, options, listen)
    posterior = None
    if options.rates is not None and target is not None:
        posterior = fitting_target.target_rates(table, target, options)
    fronts = find_fronts(table, listed, options, listen)
    needs = None if target is None else fitting_target.find_needs(table, target)
    try:
        if free is None and assumption is not None:
            fitted = _fewest_assumed_roots(table, max_parents, assumption, listen)
        elif free is None:
            fitted = _fewest_roots(table, max_parents, listen)
        elif needs is not None and max_parents > MAX_PARENTS:
            fitted = _fit_wide(table, needs, max_parents, listen)
        else:
            disclosed = HiddenOrder(natural(table.legal_names), natural(map(naming.to_legal, free)))
            task = replace(task_of(table, disclosed), assumption=assumption)
            fitted = _fit_under(table, task, needs, max_parents, listen)
    except CalibrantError as error:
        reason, is_clash = naming.text(str(error)), isinstance(error, fitting_target.ContradictionError)
        if not options.is_asked and (refuses_contradictions or not is_clash):
            raise fitting_target.ContradictionError(reason) if is_clash else CalibrantError(reason) from None
        disclosed = HiddenOrder(natural(table.legal_names), natural(map(naming.to_legal, free or table.names)))
        problem = problem_of(table, task_of(table, disclosed))
        undecided = Impossible(reason) if is_clash else OutOfBudget(reason)
        fitted = Fit(problem, target, undecided, None, table, is_contradictory=is_clash)
    outcome, best = fitting_target.state_best_known(
        fitting_target.prefer_plain(fitted.outcome, table, options, fronts), needs, max_parents
    )
    if options.follows_up and not refuses_contradictions and isinstance(outcome, Impossible):
        outcome, fronts = follow_up(table, options, outcome.exhausted, listen)
    if options.asked_errors is not None or (options.follows_up and fronts):
        outcome = fitting_target.advise_networks(outcome)
    fitted = replace(fitted, target=target, outcome=outcome, best_formula=best or fitted.best_formula, needs=needs)
    return replace(fitted, fronts=fronts, rates=posterior)


def _fit_wide(table: Table, needs: fitting_target.TargetNeeds, max_parents: int, listen: Steps) -> Fit:
    """Fit a target by formulas that may mention more columns than whole SCMs may."""
    others = natural(needs.legal)
    task = task_of(table, HiddenOrder(natural(table.legal_names), others))
    number, best, narrow = needs.needed.number, None, None
    if number is None or number <= MAX_PARENTS:
        narrow = _fit_under(table, task, needs, MAX_PARENTS, listen)
        if needs.needed.clash is not None or not isinstance(narrow.outcome, Found):
            return narrow
        best = next(iter(narrow.outcome.value.model.mechanisms.values()))
    fitted = Fit(problem_of(table, task), needs.target, Impossible(""), None, table) if narrow is None else narrow
    advice = needs.advice(max_parents, MAX_TARGET_PARENTS)
    if advice is not None:
        reason = f"{quote_name(needs.target)} is no function of at most {max_parents} columns; {advice}"
        return replace(fitted, outcome=Impossible(reason))
    listen("formulas of many columns", 0, 1)
    wide = needs.find_formula(max_parents, best)
    legal = table.naming.to_legal(needs.target)
    fitted = replace(fitted, num_functions=needs.count_functions(max_parents))
    model = None if wide.formula is None else certify(task, Scm(others, {legal: wide.formula}))
    if wide.formula is None or model is None or not wide.is_proven:
        bound = f"at least {wide.at_least} ({wide.reason})"
        return replace(
            fitted, outcome=OutOfBudget(fitting_target.bounds_text(wide.formula, bound)), best_formula=wide.formula
        )
    provenance = {"class": f"formulas of at most {max_parents} columns", "proof": wide.reason}
    return replace(fitted, outcome=Found(ExactAnswer(model, wide.formula.size, provenance)))


def _fewest_assumed_roots(table: Table, max_parents: int, assumption: Knowledge, listen: Steps) -> Fit:
    """Fit with as few roots as possible under an assumption: every smaller number is exhausted first."""
    for number in range(1, len(table.legal_names)):
        listen("numbers of roots", number - 1, len(table.legal_names))
        task = replace(task_of(table, HiddenRoots(natural(table.legal_names), number)), assumption=assumption)
        require_size(table, task, max_parents)
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
            return Fit(problem_of(table, task), None, out_of_budget, None, table)
        if num_root_sets and choices.space.has_member():
            return _fit_under(table, task, None, max_parents, listen)
    unassumed = _fewest_roots(table, max_parents, listen)
    reason = fitting_target.report_unsatisfied(unassumed.outcome, unassumed.problem.task, assumption, max_parents)
    return replace(unassumed, outcome=Impossible(reason), why=None)


def _fewest_roots(table: Table, max_parents: int, listen: Steps) -> Fit:
    """Fit with as few roots as possible, proven by hitting sets: no smaller set has all other columns behind it."""
    names = natural(table.legal_names)
    listen("parent sets of each column", 0, 2)
    task = task_of(table, HiddenRoots(names, 1))
    require_size(table, task, max_parents)
    choices = Choices(VersionSpace(task, ModelClass(max_parents)))
    listen("fewest roots", 1, 2)
    fewest = fewest_roots(choices.least_sets, Budget(MAX_ROOT_CONFLICTS))
    if fewest.at_least == len(names):
        reason = f"no column is a function of at most {max_parents} others where it was not set; every root set was"
        reason += f" tried; {fitting_target.advise_on_no_fit(table, max_parents)}"
        problem = problem_of(table, task_of(table, HiddenRoots(names, len(names))))
        is_contradictory = max_parents >= len(names) - 1  # no column can depend on more
        return Fit(problem, None, Impossible(reason), None, table, is_contradictory=is_contradictory)
    number = max(fewest.at_least, 1)
    disclosed = HiddenRoots(names, number)
    if disclosed.num_root_sets() > MAX_ROOT_SETS:
        disclosed = replace(disclosed, certain=choices.certain_roots)
    task = task_of(table, disclosed)
    num_root_sets = None
    if fewest.roots is not None and disclosed.num_root_sets() <= MAX_ROOT_SETS:
        num_root_sets = len(Choices(VersionSpace(task, ModelClass(max_parents))).root_sets)
    if num_root_sets and num_root_sets * choices.num_parent_sets <= MAX_ROOT_PARENT_SETS:
        return _fit_under(table, task, None, max_parents, listen)
    some_roots: tuple[str, ...] = ()
    least = f"at least {plural(number, 'roots')} are needed"
    advice = "name the roots (--roots A,B,...), leave out columns, or lower max_parents (--max-parents)"
    if fewest.roots is not None:
        sets = f"{num_root_sets:,} sets of {number} fit" if num_root_sets else f"some sets of {number} fit"
        least += f", and {sets}, with {choices.num_parent_sets:,} parent sets: more than are gone through for the least"
        raw = table.naming.to_raw
        some_roots = tuple(map(raw, choices.names_of(fewest.roots) or names[:1]))
    undecided = OutOfBudget(f"{least}; {advice}")
    return Fit(problem_of(table, task), None, undecided, None, table, some_roots=some_roots)


def _fit_under(
    table: Table, task: Task, needs: fitting_target.TargetNeeds | None, max_parents: int, listen: Steps
) -> Fit:
    target = None if needs is None else needs.target
    clash = smallest_contradiction(task)
    if clash is not None:
        raise fitting_target.ContradictionError(f"{table.source}, {fitting_target.contradiction_message(table, clash)}")
    require_size(table, task, max_parents)
    listen("least SCM", 0, 2)
    problem = problem_of(table, task)
    outcome = solve(task, max_parents=max_parents, nested_roots=False, states=MAX_STATES)
    if isinstance(outcome, Impossible):
        impossible = Impossible(fitting_target.report_exhaustion(outcome, task, table, needs, max_parents))
        return Fit(problem, target, impossible, None, table)
    listen("what else fits", 1, 2)
    try:
        why = explain(task, ITEM, max_parents=max_parents, columns=table.legal_names, limits=LIMITS)
    except (BudgetSpent, ValueError) as spent:
        return Fit(problem, target, outcome, None, table, uncounted=str(spent) or _SPENT)
    constants = [n for n, column in zip(table.legal_names, table.used, strict=True) if column.kind == "constant"]
    counted = {} if task.assumption is not None else count_factors(task, why, constants, LIMITS)
    factors = {table.naming.to_raw(name): factor for name, factor in counted.items()}
    return Fit(problem, target, outcome, results.why_of_table(why, table, target), replace(table, factors=factors))


# --- Fitting of a CSV file as `calibrant fit` asks for it -------------------------------------------------------------


class TableFitting:
    """See bench.core.capabilities.Fittable."""

    def fit(
        self,
        data: Path,
        question: FormulaQuestion,
        *,
        gaps: Gaps,
        reading: Mapping[str, Any],
        progress: Steps,
    ) -> Fit | GapFit | GraphFit | FormsFit:
        options = FormulaOptions(**question)
        return fit_in_steps(data, options, gaps, reading, progress, refuses_contradictions=False)

    def networks(
        self,
        data: Path,
        question: NetworkQuestion,
        *,
        gaps: Gaps,
        reading: Mapping[str, Any],
        progress: Steps,
        report: Callable[[str], None],
    ) -> NetworkFit:
        from calibrant.bench.replayscm.fitting.networks import NetworkOptions, learn_in_steps

        return learn_in_steps(data, NetworkOptions(**question), gaps, reading, progress, report)

    def check_against(self, table: Path) -> CertificateCheck:
        return results.check_against(table)

    def claim_files(self, folder: Path) -> Sequence[Path]:
        return results.claim_files(folder)


FITTING: Fittable = TableFitting()
