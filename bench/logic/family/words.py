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
from calibrant.bench.terminal import NextCommand
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import Clause, Edge, Experiment, Model, Task, model_texts
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import (
    Comparison,
    Judgement,
    Overclaim,
    Prediction,
    errors_by_readout,
    mean_squared_error,
)
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, MeasuredCell
from calibrant.solvers.logic.sums import NextExperiment, Predictions, choose_next, find_done, rank_new

# --- A counted family with what was asked of it -----------------------------------------------------------------------


@dataclass(frozen=True)
class CountedModels:
    """Members in a row. is_drawn: drawn uniformly with replacement, else listed by ascending misfit and size."""

    models: Sequence[Model]
    is_drawn: bool


@dataclass(frozen=True)
class Ranking:
    """Candidates of the next experiment.

    best: of those that were not done, None where none tells members apart or nothing was computed
    repeat: an experiment that was done and still tells members apart, None beside a best one
    predictions: None without members or candidates, or where `reason` says why not
    """

    best: NextExperiment | None
    repeat: NextExperiment | None
    predictions: Predictions | None
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
    number = len(candidates)
    try:
        predictions = family.predict(candidates)
    except LatticeLimitError as error:
        return Ranking(None, None, None, number, f"{error}; try a smaller --fit or --size")
    if not number or not predictions.count:
        return Ranking(None, None, None, number)
    telling = (
        choose_next(family.task, predictions, numbers)
        for numbers in (rank_new(family.task, predictions), range(number))
    )
    best, repeat = (entry if entry is not None and entry.share < 1 else None for entry in telling)
    return Ranking(best, None if best is not None else repeat, predictions, number)


def drawn_members(family: LogicFamily, number: int, seed: int) -> Sequence[Model]:
    """Return so many members, drawn uniformly with replacement."""
    return family.draw(np.random.default_rng(seed), number)


def listed_members(family: LogicFamily, number: int) -> Sequence[Model]:
    """Return the first members by ascending misfit and size."""
    return list(islice(family.models(), number))


def item_name(data: Path) -> str:
    """Return the id of the item that a file of data becomes."""
    return data.name.partition(".")[0] or data.name


def require_members(family: LogicFamily) -> None:
    """`CalibrantError` if no member has and lacks the clauses asked for."""
    if not family.count:
        raise CalibrantError("no member has and lacks these clauses: there is none to list or draw")


# --- A family in words: class, optimum, members, edges, the next experiment, and the audit of a list ------------------
NO_PROBABILITY = "Shares are of models of this class within these limits; they are no probabilities of nature."
_WITNESS = "the first optimal model, over values as measured"
LABEL = 10  # width of the first column
MAX_PRINTED = 20  # edges, candidates, members, findings


def family_lines(counted: Counted, *, ranks_candidates: bool) -> Iterator[str]:
    """Yield the lines of the terminal: the summary, then shares, candidates, members and the audit of a list."""
    yield from _summary(counted)
    if not counted.family.count:
        return
    yield ""
    yield from _open_edges(counted.family)
    if ranks_candidates and counted.ranking.predictions is not None:
        yield ""
        yield from _candidates(counted)
    if counted.members is not None:
        yield ""
        yield from _members(counted)
    for lines in audit_lines(counted):
        yield ""
        yield from lines
    if counted.judgement is not None and counted.judgement.prediction is not None:
        yield ""
        yield from answer_lines(counted.judgement.prediction, counted.task)


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
        errors = errors_by_readout(counted.whole.witness, task)
        readouts = sorted(errors, key=lambda name: -errors[name])[:MAX_PRINTED]
        if len(errors) > 1:
            more = f" and {len(errors) - MAX_PRINTED} more" if len(errors) > MAX_PRINTED else ""
            yield _line("", f"by readout: {', '.join(f'{name} {errors[name]:.4f}' for name in readouts)}{more}")
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
    ranking, setup = counted.ranking, counted.task.setup
    if ranking.predictions is None:
        return f"not computed: {ranking.reason}" if ranking.reason else "no candidate"
    if ranking.best is None and ranking.repeat is None:
        return f"none of {ranking.num_candidates} candidates tells members apart"
    if ranking.best is None:
        assert ranking.repeat is not None
        return (
            f"nothing new among {ranking.num_candidates} candidates tells members apart; repeating"
            f" {ranking.repeat.experiment.text(setup)}, which was done, is expected to leave"
            f" {percent(float(ranking.repeat.share))}: its values do not yet separate models within --fit"
        )
    behaviours = ranking.predictions.behaviours
    number = f"{behaviours} behaviours over " if behaviours is not None else "the best of "
    rest = f"expected to leave {percent(float(ranking.best.share))} of the members"
    candidates = plural(ranking.num_candidates, "candidates")
    return f"{ranking.best.experiment.text(setup)}: {rest}; {number}{candidates}"


def percent(share: float) -> str:
    """Return a share as people read it; 0 and 1 alone are 0 % and 100 %."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return f"{min(99.9, max(0.1, 100 * share)):.1f} %"


MAX_READOUTS, MAX_EXPERIMENTS = 12, 60  # of the chart of measured values; the table has all to MAX_MEASURED
MAX_MEASURED = 2_000


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
    predictions = counted.ranking.predictions
    assert predictions is not None
    is_done = find_done(counted.task, predictions.experiments)
    done = [number for number, entry in enumerate(is_done) if entry]
    order = [*rank_new(counted.task, predictions)]
    order += sorted(done, key=lambda number: (predictions.sum_of_squared_counts(number), number))
    rows = [
        [
            predictions.experiments[number].text(counted.task.setup),
            percent(predictions.sum_of_squared_counts(number) / predictions.count**2),
            str(len(predictions.outcomes[number])),
            "done" if is_done[number] else "",
        ]
        for number in order[:MAX_PRINTED]
    ]
    yield "Candidates, those that are expected to leave least first, and then those that were done"
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


def audit_text(counted: Counted) -> AuditText:
    """Return the audit of another tool's models, as a page has it."""
    judgement = counted.judgement
    lines = [line for entries in audit_lines(counted) for line in entries]
    if not lines or counted.options.listed is None:
        return AuditText("")
    heading = f"The {'list' if judgement is None else 'model'} {counted.options.listed.name}"
    prediction = None if judgement is None else judgement.prediction
    return AuditText(heading, lines, () if prediction is None else prediction.answers)


def audit_lines(counted: Counted) -> Iterator[Iterator[str]]:
    """Yield the audit of another tool's network, and that of its models."""
    judgement, comparison = counted.judgement, counted.comparison
    if judgement is not None:
        yield judgement_lines(judgement, counted)
    if comparison is not None:
        yield comparison_lines(comparison) if judgement is None else model_lines(comparison)


def judgement_lines(judgement: Judgement, counted: Counted) -> Iterator[str]:
    """Yield what was done to a network before it was judged, its predictions, and what it is to the family."""
    for names, text in (
        (judgement.lacks.stimuli, "stimuli that the model lacks, so that they change nothing in it"),
        (
            judgement.lacks.inhibitors,
            "inhibited nodes that the model lacks, so that inhibiting them changes nothing in it",
        ),
        (judgement.lacks.readouts, "readouts that the model lacks, predicted 0"),
        (judgement.ignored, "rules of stimuli, which the clamps override"),
        (judgement.zero, "driven by nothing, so 0"),
        (judgement.substituted, "merged and helper nodes, put into those that read them"),
        (judgement.left_out, "left out, for no readout depends on them"),
    ):
        if names:
            yield f"{text}: {listed(names, MAX_PRINTED)}"
    prediction = judgement.prediction
    if prediction is None:
        yield from _cycle_lines(judgement, counted)
        return
    least = counted.whole.optimum[0]
    size = "" if judgement.size is None else f", size {judgement.size}"
    limit = judgement.limit[judgement.reason == "size"]
    detail = judgement.detail.replace(" ", " to ") or ("" if limit is None else f"{limit:,}")
    yield (
        f"The model: {_REASONS[judgement.reason].format(detail)}; misfit {prediction.misfit:,}, MSE"
        f" {prediction.mse:.4f}{size}"
    )
    if judgement.num_formulas is not None and judgement.num_members is not None:
        formulas = plural(judgement.num_formulas, "formulas")
        yield f"1 function, {formulas} of the class, {plural(judgement.num_members, 'members')}"
    elif judgement.model is None and prediction.misfit < least:
        yield f"its misfit is below the least of the class, {least:,}: the prior forbids a better model"
    if prediction.differs:
        yield f"measured values that it predicts otherwise than every optimal model: {len(prediction.differs)}"


def _cycle_lines(judgement: Judgement, counted: Counted) -> Iterator[str]:
    """Yield the cycle of a network, and the commands that show what it reaches under the clamps of the data."""
    arrows = {"+": "->", "-": "-|", "both": "-?"}
    cycle = "".join(f"{edge.source} {arrows[edge.sign]} " for edge in judgement.cycle) + judgement.cycle[0].source
    yield f"The model: not of the class, whose models have no feedback: it has the cycle {cycle}"
    yield "so nothing is predicted here; the states that it reaches under the clamps of an experiment:"
    setup, lacks = counted.task.setup, judgement.lacks
    commands: dict[str, str] = {}  # of experiments that clamp the same nodes of the network, the first
    for experiment in counted.task.experiments:
        clamps = [f"{name}={int(name in experiment.on)}" for name in setup.stimuli if name not in lacks.stimuli]
        clamps += [f"{name}=0" for name in setup.inhibitors if name in experiment.inhibited - {*lacks.inhibitors}]
        held = ("--clamp", ",".join(clamps)) if clamps else ()
        command = NextCommand(("network", counted.options.listed, "--attractors", *held), "")
        commands.setdefault(command.line, experiment.text(setup))
    for line, text in [*commands.items()][:MAX_COMMANDS]:
        yield f"  {text}: {line}"
    if len(commands) > MAX_COMMANDS:
        yield f"  and {len(commands) - MAX_COMMANDS} more experiments"


MAX_COMMANDS = 6  # to paste, one an experiment


_REASONS: Final[Mapping[str, str]] = {
    "": "a member",
    "constant": "not of the class, {} is 1 whatever the stimuli",
    "edge": "not of the class, which has no edge from {}",
    "sign": "not of the class, whose edge from {} has another sign",
    "clause": "not of the class, whose clauses are too short for the function of {}",
    "misfit": "no member, its misfit is above {}",
    "size": "no member, its size is above {}",
}


def comparison_lines(comparison: Comparison) -> Iterator[str]:
    """Yield the audit of another tool's list; its models are numbered from 1."""
    num_outside = len(comparison.outside_class) + len(comparison.outside_limits)
    share = percent(float(comparison.share))
    yield (
        f"The list: {plural(comparison.num_listed, 'models')}, {comparison.num_distinct} different;"
        f" members among them: {comparison.num_members}, {share} of the family; others: {num_outside}"
    )
    if comparison.merged_nodes:
        yield f"merged in the list as in the prior: {listed(comparison.merged_nodes, MAX_PRINTED)}"
    for entry in comparison.outside_class[:MAX_PRINTED]:
        yield f"model {entry.number + 1} of the list: not of the class, {entry.rule}"
    for entry in comparison.outside_limits[:MAX_PRINTED]:
        yield f"model {entry.number + 1} of the list: misfit {entry.misfit:,}, size {entry.size}: beyond the limits"
    yield from _overclaim_lines(comparison, "the list")
    for wrong in comparison.misstatements[:MAX_PRINTED]:
        stated = f"{wrong.field} is {wrong.actual:g}, the list states {wrong.stated:g}"
        yield f"model {wrong.number + 1} of the list: {stated}"
    if comparison.unknown_edges:
        edges = listed([_edge_words(edge) for edge in comparison.unknown_edges])
        yield f"edges that the class lacks: {edges}"
    if comparison.max_difference_clause is not None:
        difference = percent(float(comparison.max_difference))
        yield f"largest difference of a frequency: {difference}, of {comparison.max_difference_clause}"


def model_lines(comparison: Comparison) -> Iterator[str]:
    """Yield what a single model has or lacks against the members."""
    share = percent(float(comparison.share))
    if comparison.num_members:
        yield f"The model beside all members: it is one of them, {share} of the family"
    else:
        yield "The model beside all members: it is none of them"
    yield from _overclaim_lines(comparison, "the model")


def _overclaim_lines(comparison: Comparison, name: str) -> Iterator[str]:
    for claim in comparison.overclaims[:MAX_PRINTED]:
        yield _overclaim(claim, name)
    if len(comparison.overclaims) > MAX_PRINTED:
        yield f"and {len(comparison.overclaims) - MAX_PRINTED} more that {name} calls certain; --json has all"


def _overclaim(claim: Overclaim, name: str) -> str:
    part = f"clause {claim.part}" if isinstance(claim.part, Clause) else f"edge {_edge_words(claim.part)}"
    members = "1 member has it" if claim.count == 1 else f"{number_text(claim.count)} members have it"
    if name == "the model":
        return f"{part}: {name} {'has' if claim.claimed == 'always' else 'lacks'} it, {members}"
    return f"{part}: in {'every model' if claim.claimed == 'always' else 'no model'} of {name}, but {members}"


# --- Measured values beside predictions, as a table, drawn, and in lines ----------------------------------------------


@dataclass(frozen=True)
class AuditText:
    """Another tool's models on a page: what was found, and what a single model predicts, a text an experiment."""

    heading: str
    lines: Sequence[str] = ()
    answers: Sequence[str] = ()


NO_AUDIT = AuditText("")


def measured_table(cells: Sequence[MeasuredCell], readouts: Sequence[str], answers: Sequence[str]) -> WhyTable:
    """Return measured values beside predictions, those that the first optimal model misses marked.

    answers: of another tool's model to the experiments, a digit a readout; none without one
    """
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
            *((answers[c.number - 1][readouts.index(c.readout)],) if answers else ()),
        )
        for c in listed
    )
    missed = frozenset(index for index, cell in enumerate(listed) if cell.square > MISSED)
    caption = (
        "Measured values, what the first optimal model predicts, the share of models that predict 1, and the square"
    )
    caption += " of the difference; a yellow row is a value on the other side of 1/2 than predicted"
    headings = ("experiment", *(("time",) if times else ()), "readout", "measured", "predicted", "share", "square")
    if answers:
        headings, caption = (*headings, "the model"), f"{caption}; the model: that of --of"
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

    Times of the same treatments stand above each other; experiments are numbered.
    """
    readouts, times = list(dict.fromkeys(cell.readout for cell in cells)), _times(cells)
    if not cells or len(readouts) > MAX_READOUTS or max(cell.number for cell in cells) > MAX_EXPERIMENTS:
        return ""
    numbers = {text: number for number, text in number_experiments(cells).items()}
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
        mean = sum(c.square for _, c in values) / len(values)
        panels.append(Panel(f"{readout}, MSE {mean:.4f}", tuple(lines)))
    return panels_svg(
        panels,
        Axis("experiment", whole=True),
        Axis("value", 0, 1),
        "Measured and predicted values by readout",
        columns=1 if len(panels) <= MAX_STACKED else 2,
    )


MAX_STACKED = 4  # panels one below the other, so that a phone has them whole


def number_experiments(cells: Sequence[MeasuredCell]) -> dict[int, str]:
    """Return the experiments by their number on the chart; of several times a treatment has one."""
    if not _times(cells):
        return {cell.number: cell.experiment for cell in cells}
    return dict(enumerate(dict.fromkeys(cell.experiment for cell in cells), 1))


def answer_lines(prediction: Prediction, task: Task) -> Iterator[str]:
    """Yield the measured values beside the predictions of a network, and those that no optimal model predicts."""
    differs = {*(prediction.differs or ())}
    rows = [
        [
            str(number + 1),
            experiment.text(task.setup),
            readout,
            f"{value:.3g}",
            answer,
            "missed" * ((int(answer) - value) ** 2 > MISSED),
            word,
        ]
        for number, (experiment, values, answers) in enumerate(
            zip(task.experiments, task.values, prediction.answers, strict=True)
        )
        for readout, value, answer in zip(task.setup.readouts, values, answers, strict=True)
        for word in [OTHERWISE * ((number, readout) in differs)]
        if value is not None
    ]
    # those that differ and those that are missed first: the table is cut
    order = sorted(range(len(rows)), key=lambda k: (not rows[k][-1], not rows[k][-2], k))[:MAX_PRINTED]
    yield "Measured values and what the model predicts"
    yield aligned(["", "experiment", "readout", "measured", "model", "", ""], [rows[k] for k in sorted(order)])
    if len(rows) > MAX_PRINTED:
        yield f"and {len(rows) - MAX_PRINTED} more; the page (--html) has all"


OTHERWISE = "otherwise than every optimal model"
