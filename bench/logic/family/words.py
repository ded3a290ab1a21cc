"""A counted family of models, and its report in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from calibrant.audits.why import listed, number_text
from calibrant.bench.logic.options import FamilyOptions
from calibrant.bench.pages.charts import Axis, Line, Mark, Panel, panels_svg
from calibrant.bench.pages.page import WhyTable
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.networks import ListedModel
from calibrant.dsl.logic.item import Edge, Experiment, Model, Task, model_texts
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import (
    Comparison,
    Judgement,
    errors_by_readout,
    mean_squared_error,
)
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily, MeasuredCell
from calibrant.solvers.logic.sums import NextExperiment, Predictions, choose_next, find_done, rank_new

# --- A counted family with its candidates, members and audit ----------------------------------------------------------


@dataclass(frozen=True)
class CountedModels:
    """Members, drawn uniformly with replacement (is_drawn) or the first by ascending misfit and size."""

    models: Sequence[Model]
    is_drawn: bool


@dataclass(frozen=True)
class Ranking:
    """Candidates of the next experiment.

    best: the best candidate not yet done; None if none distinguishes members or nothing was computed
    repeat: if there is no best, the best of the experiments already done that distinguishes members; else None
    predictions: None without members or candidates, or if `reason` says why they were not computed
    """

    best: NextExperiment | None
    repeat: NextExperiment | None
    predictions: Predictions | None
    num_candidates: int
    reason: str = ""


@dataclass(frozen=True)
class Counted:
    """A counted family.

    prior, data: the files; dataset: content of `data`; notes: remarks on how both were read
    whole: all models within the tolerances; family: its members that satisfy --given and --without
    listed: another tool's models, in the order of its file; comparison: None if no list was given
    judgement: of another tool's network, which is compared as a list of one model if it is of the class
    total: number of models of the class, whether they fit or not; None if they are too many to count
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
        """Whether the options require or exclude clauses."""
        return self.family is not self.whole


def rank_candidates(family: LogicFamily, candidates: Sequence[Experiment]) -> Ranking:
    """Return the ranking of candidate experiments, with the best one or the reason why there is none."""
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
    """Return `number` members, drawn uniformly with replacement."""
    return family.draw(np.random.default_rng(seed), number)


def listed_members(family: LogicFamily, number: int) -> Sequence[Model]:
    """Return the first `number` members by ascending misfit and size."""
    return list(islice(family.models(), number))


def item_name(data: Path) -> str:
    """Return the id of the item made of a data file: its name up to the first dot."""
    return data.name.partition(".")[0] or data.name


def require_members(family: LogicFamily) -> None:
    """Raise `CalibrantError` if no member satisfies --given and --without."""
    if not family.count:
        raise CalibrantError("no member has and lacks these clauses: there is none to list or draw")


# --- A family in words: class, optimum, members, edges, the next experiment, and the audit of a list ------------------
NO_PROBABILITY = "Shares are of models of this class within these limits; they are no probabilities of nature."
LABEL = 10  # characters of the first column
MAX_PRINTED = 20  # lines of each list in the terminal: edges, candidates, members, findings


def family_lines(counted: Counted, *, ranks_candidates: bool) -> Iterator[str]:
    """Yield the lines of the terminal: summary, shares of edges, candidates, members."""
    yield from _summary(counted)
    if not counted.family.count:
        return
    yield ""
    yield from _edge_lines(counted.family)
    if ranks_candidates and counted.ranking.predictions is not None:
        yield ""
        yield from _candidate_lines(counted)
    if counted.members is not None:
        yield ""
        yield from _member_lines(counted)


def _summary(counted: Counted) -> Iterator[str]:
    family, task = counted.family, counted.task
    yield from data_lines(counted.dataset)
    for note in counted.notes:
        yield _line("note", note)
    yield from merged_lines(task)
    yield _line("class", family.in_words)
    misfit, size = family.optimum
    num_optimal = counted.whole.spectrum.get(family.optimum, 0)
    has = "1 model has" if num_optimal == 1 else f"{number_text(num_optimal)} models have"
    yield _line("optimum", f"misfit {misfit:,}, proven least, and size {size} at it; {has} both")
    if counted.whole.count:
        scaling = counted.dataset.use.normalisation
        values = "values as measured" if scaling == "none" else f"values scaled by {scaling}"
        error = mean_squared_error(counted.whole.witness, task)
        yield _line("MSE", f"{error:.4f} of the first optimal model, over {values}")
        errors = errors_by_readout(counted.whole.witness, task)
        readouts = sorted(errors, key=lambda name: -errors[name])[:MAX_PRINTED]
        if len(errors) > 1:
            more = f" and {len(errors) - MAX_PRINTED} more" if len(errors) > MAX_PRINTED else ""
            yield _line("", f"by readout: {', '.join(f'{name} {errors[name]:.4f}' for name in readouts)}{more}")
    class_size = (
        "the class has too many models to count" if counted.total is None else f"of {number_text(counted.total)}"
    )
    if counted.is_restricted:
        yield _line("members", f"{number_text(family.count)} of {number_text(counted.whole.count)} within the limits")
        yield _line(
            "", f"all models of the class: {number_text(counted.total)}" if counted.total is not None else class_size
        )
    else:
        class_size = f"{class_size} models of the class" if counted.total is not None else class_size
        yield _line("members", f"{number_text(family.count)} {class_size}")
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
    """Yield used and unused rows and readings of a file, and ranges of readouts before and after scaling."""
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
    """Yield a line on nodes merged by compression, if any; these have no formula in the class."""
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
    """Return a share in percent; only 0 and 1 are shown as 0 % and 100 %, others as 0.1 % to 99.9 %."""
    if share in (0, 1):
        return f"{share:.0%}".replace("%", " %")
    return f"{min(99.9, max(0.1, 100 * share)):.1f} %"


MAX_READOUTS, MAX_EXPERIMENTS = 12, 60  # more have no chart of measured values, only the table
MAX_MEASURED = 2_000  # rows of the table of measured values


def _line(label: str, text: str) -> str:
    return f"{label:<{LABEL}}{text}".rstrip()


def _edge_lines(family: LogicFamily) -> Iterator[str]:
    edges = family.edges()
    certain = [edge_words(edge) for edge, num_members in edges.items() if num_members == family.count]
    yield _line("always", ", ".join(certain) or "no edge")
    rows = sorted(
        ((num_members, edge) for edge, num_members in edges.items() if num_members < family.count),
        key=lambda row: (-row[0], row[1]),
    )
    for index, (num_members, edge) in enumerate(rows[:MAX_PRINTED]):
        share = percent(num_members / family.count)
        yield _line("open" if index == 0 else "", f"{share:>7}  {edge_words(edge)}")
    if len(rows) > MAX_PRINTED:
        yield _line("", f"and {len(rows) - MAX_PRINTED} more; --out or --json has all")
    never = [edge_words(edge) for edge in family.never()]
    if never:
        more = f" ... and {len(never) - MAX_PRINTED} more; all in marginals.csv" if len(never) > MAX_PRINTED else ""
        yield _line("never", ", ".join(never[:MAX_PRINTED]) + more)
    yield NO_PROBABILITY


def edge_words(edge: Edge) -> str:
    """Return an edge as text: a -> b activates, a -| b inhibits."""
    return f"{edge.source} {'->' if edge.sign == 1 else '-|'} {edge.target}"


def _candidate_lines(counted: Counted) -> Iterator[str]:
    predictions = counted.ranking.predictions
    assert predictions is not None
    is_done = find_done(counted.task, predictions.experiments)
    done = [index for index, entry in enumerate(is_done) if entry]
    order = [*rank_new(counted.task, predictions)]
    order += sorted(done, key=lambda index: (predictions.sum_of_squared_counts(index), index))
    rows = [
        [
            predictions.experiments[index].text(counted.task.setup),
            percent(predictions.sum_of_squared_counts(index) / predictions.count**2),
            str(len(predictions.outcomes[index])),
            "done" if is_done[index] else "",
        ]
        for index in order[:MAX_PRINTED]
    ]
    yield "Candidates, those that are expected to leave least first, and then those that were done"
    yield aligned(["experiment", "left", "readings", ""], rows)
    if len(order) > MAX_PRINTED:
        yield f"and {len(order) - MAX_PRINTED} more; --out or --json has all"


def _member_lines(counted: Counted) -> Iterator[str]:
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


# --- Measured values beside predictions: a table, a chart, and lines of the terminal ----------------------------------


@dataclass(frozen=True)
class AuditText:
    """Audit of another tool's models on a page.

    answers: a row for each experiment with the model's value of each readout, `0 or 1` if both occur; empty for a list
    """

    heading: str
    lines: Sequence[str] = ()
    answers: Sequence[Sequence[str]] = ()


NO_AUDIT = AuditText("")


def measured_table(
    cells: Sequence[MeasuredCell], readouts: Sequence[str], answers: Sequence[Sequence[str]]
) -> WhyTable:
    """Return measured values beside predictions; rows that the first optimal model misses are marked.

    answers: as AuditText.answers
    """
    shown_cells, times = cells[:MAX_MEASURED], _times(cells)
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
        for c in shown_cells
    )
    missed = frozenset(index for index, cell in enumerate(shown_cells) if cell.square > MISSED)
    caption = (
        "Measured values, what the first optimal model predicts, the share of models that predict 1, and the square"
    )
    caption += " of the difference; a yellow row is a value on the other side of 1/2 than predicted"
    headings = ("experiment", *(("time",) if times else ()), "readout", "value", "predicted", "share", "square")
    if answers:
        headings, caption = (*headings, "the model"), f"{caption}; the model: that of --of"
    numeric = frozenset(range(len(headings))) - {0, headings.index("readout")}
    return WhyTable("Measured and predicted", caption, headings, rows, missed, numeric=numeric)


MISSED = 0.25  # squared difference above which a value is on the other side of 1/2 than its prediction
PREDICTED_RADIUS = 5.5  # pixels; larger than the mark of a measured value, which is drawn inside if both agree


def _times(cells: Sequence[MeasuredCell]) -> list[float]:
    """Return the times of the values, ascending; empty if all have one time."""
    times = sorted({cell.time for cell in cells if cell.time is not None})
    return times if len(times) > 1 else []


def measured_chart(cells: Sequence[MeasuredCell], errors: Mapping[str, float]) -> str:
    """Return an SVG with a panel for each readout: measured and predicted values by number of the experiment.

    Empty for more than MAX_READOUTS or MAX_EXPERIMENTS. Values of one treatment at several times share a number.

    errors: mean squared error of each readout, for its heading
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
        panels.append(Panel(f"{readout}, MSE {errors[readout]:.4f}", tuple(lines)))
    return panels_svg(
        panels,
        Axis("experiment", whole=True),
        Axis("value", 0, 1),
        "Measured and predicted values by readout",
        columns=1 if len(panels) <= MAX_STACKED else 2,
    )


MAX_STACKED = 4  # panels one below the other, which fit a phone's width; more are in two columns


def number_experiments(cells: Sequence[MeasuredCell]) -> dict[int, str]:
    """Return the experiments by their number on the chart; a treatment measured at several times has one number."""
    if not _times(cells):
        return {cell.number: cell.experiment for cell in cells}
    return dict(enumerate(dict.fromkeys(cell.experiment for cell in cells), 1))


def model_answers(judgement: Judgement | None) -> Sequence[Sequence[str]]:
    """Return a row for each experiment with the model's value of each readout: 0, 1 or 01; empty if unknown."""
    if judgement is None:
        return ()
    return (judgement.reached or ()) if judgement.prediction is None else judgement.prediction.answers


def answer_lines(judgement: Judgement, task: Task) -> Iterator[str]:
    """Yield measured values beside a network's, marked if missed or unlike the value of every optimal model."""
    answers = model_answers(judgement)
    differs = {*((judgement.prediction.differs if judgement.prediction is not None else None) or ())}
    rows = [
        [
            *(
                str(number + 1),
                experiment.text(task.setup),
                readout,
                f"{value:.3g}",
                " or ".join(answers[number][column]),
            ),
            "missed" * all((int(bit) - value) ** 2 > MISSED for bit in answers[number][column]),
            OTHERWISE * ((number, readout) in differs),
        ]
        for number, (experiment, values) in enumerate(zip(task.experiments, task.values, strict=True))
        for column, (readout, value) in enumerate(zip(task.setup.readouts, values, strict=True))
        if value is not None
    ]
    # marked rows are kept first, because the table is cut
    order = sorted(range(len(rows)), key=lambda column: (not rows[column][-1], not rows[column][-2], column))[
        :MAX_PRINTED
    ]
    yield f"Measured values and what the model {'has in attractors' if judgement.prediction is None else 'predicts'}"
    yield aligned(["", "experiment", "readout", "value", "model", "", ""], [rows[column] for column in sorted(order)])
    if len(rows) > MAX_PRINTED:
        yield f"and {len(rows) - MAX_PRINTED} more; the page (--html) has all"


OTHERWISE = "otherwise than every optimal model"
