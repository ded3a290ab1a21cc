"""Counts of a family of models, and its report in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from calibrant.audits.why import listed, number_text
from calibrant.bench.logic.options import FamilyOptions
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import WhyTable
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.networks import ListedModel, read_networks
from calibrant.dsl.logic.item import Clause, Edge, Experiment, Model, Task, model_texts
from calibrant.dsl.networks.network import read_file
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import Comparison, Judgement, Overclaim, mean_squared_error
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, MeasuredCell
from calibrant.solvers.logic.sums import NextExperiment
from calibrant.solvers.networks.network import BooleanNetwork, parse_network

# --- A counted family with what was asked of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class CountedModels:
    """Members in a row. is_drawn: drawn uniformly with replacement, else listed by ascending misfit and size."""

    models: Sequence[Model]
    is_drawn: bool


@dataclass(frozen=True)
class Ranking:
    """Candidates of the next experiment; best: None without members or candidates, or where `reason` says why not."""

    best: NextExperiment | None
    num_candidates: int
    reason: str = ""


@dataclass(frozen=True)
class Counted:
    """A counted family.

    prior, data: the files; dataset: what was read from the latter; options: as they were given
    whole: all models within the tolerances; family: those of them that have and lack the clauses asked for
    listed: another tool's models, in the order of its file; comparison: None if no list was given
    judgement: of another tool's network, which is compared as a list of one model if it is of the class
    total: all models of the class whatever the data, None where they are too many to count
    """

    prior: Path
    data: Path
    dataset: Dataset
    options: FamilyOptions
    task: Task
    notes: tuple[str, ...]
    whole: LogicFamily
    family: LogicFamily
    total: int | None
    ranking: Ranking
    members: CountedModels | None
    listed: Sequence[ListedModel]
    comparison: Comparison | None
    judgement: Judgement | None = None

    @property
    def is_restricted(self) -> bool:
        """Whether clauses were asked for."""
        return self.family is not self.whole


def rank_candidates(family: LogicFamily, candidates: Sequence[Experiment]) -> Ranking:
    """Return the best of the candidates, or why there is none."""
    try:
        return Ranking(family.best_next(candidates), len(candidates))
    except LatticeLimitError as error:
        return Ranking(None, len(candidates), f"{error}; try a smaller --fit or --size")


def drawn_members(family: LogicFamily, number: int, seed: int) -> Sequence[Model]:
    """Return so many members, drawn uniformly with replacement."""
    return family.draw(np.random.default_rng(seed), number)


def listed_members(family: LogicFamily, number: int) -> Sequence[Model]:
    """Return the first members by ascending misfit and size."""
    return list(islice(family.models(), number))


def item_name(data: Path) -> str:
    """Return the id of the item that a file of data becomes."""
    return data.name.partition(".")[0] or data.name


MAX_HEAD_BYTES = 1 << 16


def read_models(path: Path) -> Sequence[ListedModel] | BooleanNetwork:
    """Return the models of a list of clauses, or the network of a file of any format."""
    content = read_file(path)
    if path.suffix.lower() == ".csv" or b"<-" in content[:MAX_HEAD_BYTES].partition(b"\n")[0]:
        return read_networks(path)
    return parse_network(content, path.name)


def require_members(family: LogicFamily) -> None:
    """`CalibrantError` if no member has and lacks the clauses asked for."""
    if not family.count:
        raise CalibrantError("no member has and lacks these clauses: there is none to list or draw")


# --- A family in words: class, optimum, members, edges, the next experiment, and the audit of a list ------------------
NO_PROBABILITY = "Shares are of models of this class within these limits; they are no probabilities of nature."
MAX_PRINTED = 20  # edges, candidates, members, findings
_WITNESS = "the first optimal model, over values as measured"
LABEL = 10  # width of the first column


def family_lines(counted: Counted, *, ranks_candidates: bool) -> Iterator[str]:
    """Yield the lines of the terminal: the summary, then shares, candidates, members and the audit of a list."""
    yield from _summary(counted)
    if not counted.family.count:
        return
    yield ""
    yield from _open_edges(counted.family)
    if ranks_candidates and counted.ranking.best is not None:
        yield ""
        yield from _candidates(counted)
    if counted.members is not None:
        yield ""
        yield from _members(counted)
    for lines in audit_lines(counted):
        yield ""
        yield from lines


def _summary(counted: Counted) -> Iterator[str]:
    family, task = counted.family, counted.task
    yield from data_lines(counted.dataset)
    for note in counted.notes:
        yield _line("note", note)
    yield from merged_lines(task)
    yield _line("class", family.in_words)
    misfit, size = family.optimum
    best = counted.whole.spectrum.get(family.optimum, 0)
    has = "1 model has" if best == 1 else f"{number_text(best)} models have"
    yield _line("optimum", f"misfit {misfit:,}, proven least, and size {size} at it; {has} both")
    if counted.whole.count:
        yield _line("MSE", f"{mean_squared_error(counted.whole.witness, task):.4f} of {_WITNESS}")
    of = "the class has too many models to count" if counted.total is None else f"of {number_text(counted.total)}"
    if counted.is_restricted:
        yield _line("members", f"{number_text(family.count)} of {number_text(counted.whole.count)} within the limits")
        yield _line("", f"all models of the class: {number_text(counted.total)}" if counted.total is not None else of)
    else:
        of = f"{of} models of the class" if counted.total is not None else of
        yield _line("members", f"{number_text(family.count)} {of}")
    if not family.count:
        return
    edges, clauses = family.edges(), family.clauses()
    always = sum(number == family.count for number in edges.values())
    never = len(task.edges) - len(edges)
    yield _line("edges", f"{always} always, {len(edges) - always} open, {never} never, of {len(task.edges)}")
    certain = sum(number == family.count for number in clauses.values())
    yield _line("clauses", f"{certain} always, {len(clauses) - certain} open")
    yield _line("next", next_words(counted))


def data_lines(dataset: Dataset) -> Iterator[str]:
    """Yield how much of a file is used: rows, readings, those at other times, ranges before and after scaling."""
    use = dataset.use
    times = " and ".join(f"{time:g}" for time in use.times)
    yield _line("rows", f"{len(dataset.experiments):,} of {use.num_rows:,} used, at time {times}")
    others = [f"{plural(number, 'readings')} at {time:g}" for time, number in use.other_times]
    unused = f"; left out: {listed(others)}" if others else ""
    yield _line("readings", f"{dataset.num_values:,} of {use.num_values:,} used{unused}")
    ranges = [
        f"{entry.readout} {_range_words(entry.measured)} became {_range_words(entry.normalised)}"
        for entry in use.ranges
    ]
    if ranges:
        yield _line("scaled", f"{use.normalisation}: {listed(ranges)}")


def merged_lines(task: Task) -> Iterator[str]:
    """Yield the nodes that compression merged, if any: they have no formula in the class."""
    merged = sorted(task.merged_nodes)
    if merged:
        more = f" and {len(merged) - MAX_PRINTED} more" if len(merged) > MAX_PRINTED else ""
        names = f"{', '.join(merged[:MAX_PRINTED])}{more}"
        yield _line("merged", f"{plural(len(merged), 'nodes')}, neither clamped nor measured: {names}")


def _range_words(bounds: tuple[float, float]) -> str:
    return f"{bounds[0]:g} to {bounds[1]:g}"


def next_words(counted: Counted) -> str:
    """Return the next experiment in words, or why there is none."""
    ranking = counted.ranking
    if ranking.best is None:
        return f"not computed: {ranking.reason}" if ranking.reason else "no candidate"
    best, predictions = ranking.best, ranking.best.predictions
    if len(predictions.outcomes[best.number]) < 2:
        return f"none of {ranking.num_candidates} candidates tells members apart"
    behaviours = f"{predictions.behaviours} behaviours over " if predictions.behaviours is not None else "the best of "
    rest = f"expected to leave {percent(float(best.share))} of the members"
    candidates = plural(ranking.num_candidates, "candidates")
    return f"{best.experiment.text(counted.task.setup)}: {rest}; {behaviours}{candidates}"


def percent(share: float) -> str:
    """Return a share as people read it; 0 and 1 alone are 0 % and 100 %."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return f"{min(99.9, max(0.1, 100 * share)):.1f} %"


def _line(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}".rstrip()


def _open_edges(family: LogicFamily) -> Iterator[str]:
    edges = family.edges()
    certain = [_edge_words(edge) for edge, number in edges.items() if number == family.count]
    yield _line("always", ", ".join(certain) or "no edge")
    rows = sorted(
        ((number, edge) for edge, number in edges.items() if number < family.count), key=lambda row: (-row[0], row[1])
    )
    for k, (number, edge) in enumerate(rows[:MAX_PRINTED]):
        share = percent(number / family.count)
        yield _line("open" if k == 0 else "", f"{share:>7}  {_edge_words(edge)}")
    if len(rows) > MAX_PRINTED:
        yield _line("", f"and {len(rows) - MAX_PRINTED} more; --out or --json has all")
    never = [_edge_words(edge) for edge in family.never()]
    if never:
        more = f" ... and {len(never) - MAX_PRINTED} more; all in marginals.csv" if len(never) > MAX_PRINTED else ""
        yield _line("never", ", ".join(never[:MAX_PRINTED]) + more)
    yield NO_PROBABILITY


def _edge_words(edge: Edge) -> str:
    return f"{edge.source} {'->' if edge.sign == 1 else '-|'} {edge.target}"


def _candidates(counted: Counted) -> Iterator[str]:
    best = counted.ranking.best
    assert best is not None
    predictions = best.predictions
    order = sorted(
        range(len(predictions.experiments)), key=lambda number: (predictions.sum_of_squared_counts(number), number)
    )
    rows = [
        [
            predictions.experiments[number].text(counted.task.setup),
            percent(predictions.sum_of_squared_counts(number) / predictions.count**2),
            str(len(predictions.outcomes[number])),
            "done" if best.is_done[number] else "",
        ]
        for number in order[:MAX_PRINTED]
    ]
    yield "Candidates, those that are expected to leave least first"
    yield aligned(["experiment", "left", "readings", ""], rows)
    if len(order) > MAX_PRINTED:
        yield f"and {len(order) - MAX_PRINTED} more; --out or --json has all"


def _members(counted: Counted) -> Iterator[str]:
    members = counted.members
    assert members is not None
    if members.is_drawn:
        yield f"{plural(len(members.models), 'members')}, drawn uniformly with seed {counted.options.seed or 0}"
    else:
        yield f"the first {plural(len(members.models), 'members')} by misfit and size"
    for model in members.models[:MAX_PRINTED]:
        yield " ".join(model_texts(model)) or "the empty model"
    if len(members.models) > MAX_PRINTED:
        yield f"and {len(members.models) - MAX_PRINTED} more; --out or --json has all"


def audit_lines(counted: Counted) -> Iterator[Iterator[str]]:
    """Yield the audit of another tool's network, and that of its models."""
    if counted.judgement is not None:
        yield judgement_lines(counted.judgement, counted.whole)
    if counted.comparison is not None:
        yield comparison_lines(counted.comparison)


def judgement_lines(judgement: Judgement, family: LogicFamily) -> Iterator[str]:
    """Yield what was done to a network before it was judged, its predictions, and what it is to the family."""
    for names, text in (
        (judgement.ignored, "rules of stimuli, which the clamps override"),
        (judgement.zero, "driven by nothing, so 0"),
        (judgement.substituted, "merged and helper nodes, put into those that read them"),
        (judgement.left_out, "left out, for no readout depends on them"),
    ):
        if names:
            yield f"{text}: {listed(names, MAX_PRINTED)}"
    prediction = judgement.prediction
    if prediction is None:
        yield "The model: not of the class, it has a cycle; nothing further is said of it"
        return
    least = family.optimum[0]
    size = "" if judgement.size is None else f", size {judgement.size}"
    limits = _limit_words(judgement)
    yield (
        f"The model: {_REASONS[judgement.reason].format(judgement.detail or limits)}; misfit {prediction.misfit:,}, MSE"
        f" {prediction.mse:.4f}{size}"
    )
    if judgement.num_formulas is not None and judgement.num_members is not None:
        formulas = plural(judgement.num_formulas, "formulas")
        yield f"1 function, {formulas} of the class, {plural(judgement.num_members, 'members')}"
    elif judgement.model is None and prediction.misfit < least:
        yield f"its misfit is below the least of the class, {least:,}: the prior forbids a better model"
    if prediction.differs:
        cells = [f"{readout} in experiment {number + 1}" for number, readout in prediction.differs]
        yield f"measured cells that it predicts as no optimal model does: {len(cells)}: {listed(cells, 5)}"


_REASONS: Final[Mapping[str, str]] = {
    "": "a member",
    "constant": "not of the class, {} is 1 whatever the stimuli",
    "edge": "not of the class, which lacks the edge {}",
    "sign": "not of the class, whose edge {} has another sign",
    "clause": "not of the class, whose clauses are too short for the function of {}",
    "misfit": "no member, its misfit is above {}",
    "size": "no member, its size is above {}",
}


def _limit_words(judgement: Judgement) -> str:
    limit = judgement.limit[judgement.reason == "size"]
    return "" if limit is None else f"{limit:,}"


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the audit of another tool's list."""
    num_outside = len(comparison.outside_class) + len(comparison.outside_limits)
    share = percent(float(comparison.share))
    yield (
        f"The list: {_models(comparison.num_listed)}, {comparison.num_distinct} different;"
        f" members among them: {comparison.num_members}, {share} of the family; others: {num_outside}"
    )
    if comparison.merged_nodes:
        yield f"merged in the list as in the prior: {listed(comparison.merged_nodes, MAX_PRINTED)}"
    for entry in comparison.outside_class[:MAX_PRINTED]:
        yield f"model {entry.number}: not of the class, {entry.rule}"
    for entry in comparison.outside_limits[:MAX_PRINTED]:
        yield f"model {entry.number}: misfit {entry.misfit:,}, size {entry.size}: beyond the limits"
    for claim in comparison.overclaims[:MAX_PRINTED]:
        yield _overclaim(claim)
    if len(comparison.overclaims) > MAX_PRINTED:
        yield f"and {len(comparison.overclaims) - MAX_PRINTED} more that the list calls certain; --json has all"
    for wrong in comparison.misstatements[:MAX_PRINTED]:
        yield f"model {wrong.number}: {wrong.field} is {wrong.actual:g}, the list states {wrong.stated:g}"
    if comparison.unknown_edges:
        edges = listed([_edge_words(edge) for edge in comparison.unknown_edges])
        yield f"edges that the class lacks: {edges}"
    if comparison.max_difference_clause is not None:
        difference = percent(float(comparison.max_difference))
        yield f"largest difference of a frequency: {difference}, of {comparison.max_difference_clause}"


def _models(number: int) -> str:
    return "1 model" if number == 1 else f"{number:,} models"


def _overclaim(claim: Overclaim) -> str:
    part = f"clause {claim.part}" if isinstance(claim.part, Clause) else f"edge {_edge_words(claim.part)}"
    members = "1 member has it" if claim.count == 1 else f"{number_text(claim.count)} members have it"
    return f"{part}: in {'every model' if claim.claimed == 'always' else 'no model'} of the list, but {members}"


# --- Measured values beside predictions, as a table and drawn ---------------------------------------------------------
MAX_READOUTS, MAX_EXPERIMENTS = 12, 60  # of the chart of measured values; the table has all to MAX_MEASURED
MAX_MEASURED = 2_000


def measured_table(cells: Sequence[MeasuredCell]) -> WhyTable:
    """Return measured values beside predictions, those that the first optimal model misses marked."""
    listed, times = cells[:MAX_MEASURED], _times(cells)
    rows = tuple(
        (
            c.experiment,
            *((f"{c.time:g}",) if times else ()),
            c.readout,
            f"{c.value:.3g}",
            str(c.predicted),
            percent(c.share),
            f"{c.square:.4f}",
        )
        for c in listed
    )
    missed = frozenset(index for index, cell in enumerate(listed) if cell.square > MISSED)
    caption = "Measured values, the first optimal model, the share of models that predict 1, and the squared difference"
    headings = ("experiment", *(("time",) if times else ()), "readout", "measured", "predicted", "share", "square")
    numeric = frozenset(range(len(headings))) - {0, headings.index("readout")}
    return WhyTable("Measured and predicted", caption, headings, rows, missed, numeric=numeric)


MISSED = 0.25  # a value on the other side of 1/2
PREDICTED_RADIUS = 5.5  # pixels; the measured value is drawn inside where both agree


def _times(cells: Sequence[MeasuredCell]) -> list[float]:
    """Return the times of the values where there are several."""
    times = sorted({cell.time for cell in cells if cell.time is not None})
    return times if len(times) > 1 else []


def measured_chart(cells: Sequence[MeasuredCell]) -> str:
    """Return a panel for each readout, measured and predicted by experiment; empty where there are many.

    Times of the same treatments stand above each other; experiments are numbered as the table lists them.
    """
    readouts, times = list(dict.fromkeys(cell.readout for cell in cells)), _times(cells)
    numbers = {text: number for number, text in enumerate(dict.fromkeys(cell.experiment for cell in cells), 1)}
    if not cells or len(readouts) > MAX_READOUTS or max(cell.number for cell in cells) > MAX_EXPERIMENTS:
        return ""
    panels = []
    for readout in readouts:
        values = [(numbers[c.experiment] if times else c.number, c) for c in cells if c.readout == readout]
        lines = [
            Line(
                "predicted",
                tuple(Mark(x, c.predicted, title=c.experiment, radius=PREDICTED_RADIUS) for x, c in values),
                printed=True,
                kind="points",
            ),
            Line("share of models", tuple(Mark(x, c.share) for x, c in values), kind="dots"),
        ]
        for name in [f"measured at {time:g}" for time in times] or ["measured"]:
            marks = tuple(
                Mark(x, c.value, title=f"{c.experiment}: {c.value:.3g}")
                for x, c in values
                if not times or name == f"measured at {c.time:g}"
            )
            lines.append(Line(name, marks, kind="points"))
        panels.append(Panel(readout, tuple(lines)))
    return panels_svg(
        panels,
        Axis("experiment", whole=True),
        Axis("value", 0, 1),
        "Measured and predicted values by readout",
        columns=2,
    )
