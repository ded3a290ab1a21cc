"""Families of models that fit data, as `calibrant family` counts them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from calibrant.audits.why import number_text
from calibrant.bench.core.options import GivenOptions, OptionError, declared_options
from calibrant.bench.logic.family.outputs import PresentedFamily, Uncounted, UncountedFamily
from calibrant.bench.logic.family.words import (
    Counted,
    CountedModels,
    data_lines,
    drawn_members,
    item_name,
    listed_members,
    percent,
    rank_candidates,
    require_members,
)
from calibrant.bench.logic.options import DataOptions, FamilyOptions
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.pools.capabilities import CountedFamily, Families
from calibrant.bench.terminal import HintedError, invocation
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, PoolError, RefusedError, in_one_line, short_repr
from calibrant.dsl.logic import item as logic_item
from calibrant.dsl.logic.files.midas import Dataset, candidate_experiments, read_candidates
from calibrant.dsl.logic.files.networks import ListedModel, bnet_text, read_networks, table_rows
from calibrant.dsl.logic.prompt import task_notes
from calibrant.dsl.logic.records import write_pool
from calibrant.dsl.logic.series import SeriesTask, read_series, readings, series_column
from calibrant.dsl.networks.network import read_file
from calibrant.dsl.parse_limits import read_text
from calibrant.dsl.text import plural
from calibrant.solvers.logic.comparison import Judgement
from calibrant.solvers.logic.data import read_data, read_prior
from calibrant.solvers.logic.family import LogicFamily, solve_class, solve_family
from calibrant.solvers.logic.series import (
    MAX_COUNTED_VALUES,
    MAX_STATES_GENES,
    GeneFunctions,
    SeriesFamily,
    count_functions,
    solve_series,
)
from calibrant.solvers.networks.network import BooleanNetwork, parse_network
from calibrant.solvers.outcome import Found

# --- Series: formulas over the prior, or functions of few parents, counted gene by gene -------------------------------
OPTIONS = (
    "max_clause",
    "sign",
    "extra_errors",
    "max_parents",
    "updates",
    "fixed",
)  # options of series; all others are about MIDAS data
MAX_PRINTED = 8  # attractors, and parent sets of a gene


def is_series(data: Path) -> bool:
    """Return whether the header of a CSV file has the column `series`; its faults are those of MIDAS data."""
    try:
        header = next(table_rows(read_text(data), data.name), None)
    except RefusedError:
        return False
    return header is not None and series_column(header[1]) is not None


def flag_of(name: str) -> str:
    """Return the flag of an option of `calibrant family`, such as --fit."""
    return declared_options("family")[name].flag


def count_series(prior: Path, data: Path, stated: FamilyOptions, option_names: Collection[str]) -> CountedFamily:
    """Return the family of series; `OptionError` if option_names, those given by the user, has one of MIDAS data."""
    for name in option_names:
        if name not in OPTIONS:
            raise OptionError(f"it is about MIDAS data; {data.name} has series", flag_of(name))
    updates = stated.updates or "synchronous"
    genes, series = read_series(data, updates)
    edges, notes = read_prior(prior, stated.sign)
    for state in stated.fixed:
        if len(state) != len(genes) or not {*state} <= {*"01"}:
            raise OptionError(f"{short_repr(state)}; a 0 or 1 for each of {len(genes)} genes", flag_of("fixed"))
    try:
        task = SeriesTask(genes, edges, series, stated.max_clause or 0, stated.extra_errors or 0, updates)
    except CalibrantError as error:
        raise PoolError(str(error), file=data.name) from None
    outcome = solve_series(task)
    if not isinstance(outcome, Found):
        return Uncounted(outcome.reached)
    if not stated.max_parents:
        return CountedSeries(data, stated, outcome.value, (), notes)
    functions = count_functions(task, stated.max_parents)
    if not isinstance(functions, Found):
        return Uncounted(functions.reached)
    return CountedSeries(data, stated, outcome.value, tuple(functions.value), notes)


@dataclass(frozen=True)
class CountedSeries:
    """Implements CountedFamily (bench.pools.capabilities).

    functions: of each gene over sets of at most `max_parents` parents, in the prior or not; empty without that option
    notes: remarks on how the prior was read
    """

    data: Path
    options: FamilyOptions
    family: SeriesFamily
    functions: tuple[GeneFunctions, ...]
    notes: tuple[str, ...] = ()

    @property
    def is_counted(self) -> bool:
        return True

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        family, task = self.family, self.family.task
        use = self._data_use
        yield f"rows      {use['rows']} of {use['rows_in_file']} used; a series of one row has no step"
        yield f"readings  {use['readings']} used: {use['steps']} steps of {len(task.genes)} genes"
        for note in (*self.notes, *self._gap_notes):
            yield f"note      {note}"
        yield f"series    {len(task.series)} of {len(task.genes)} genes, {use['steps']} steps"
        yield f"class     formulas over {plural(len(set(task.prior)), 'edges')} of the prior, gene by gene"
        yield f"optimum   {plural(family.least_errors, 'wrong readings')}, proven least"
        yield f"members   {_models_text(family.count)} with at most {plural(family.limit, 'wrong readings')}"
        always = [edge for edge, number in family.edges.items() if number == family.count]
        yield f"edges     {len(always)} always, {len(family.edges) - len(always)} open, of {len(set(task.prior))}"
        yield from self._joint_lines
        yield from self._dynamics_lines
        yield ""
        rows = [
            [gene.gene, str(self.num_readings[gene.gene]), *map(str, gene.optimum[:2]), number_text(gene.optimum[2])]
            for gene in family.genes
        ]
        yield aligned(["gene", "readings", "errors", "size", "formulas"], rows)
        if family.edges:
            yield ""
            shares = [[str(edge), percent(number / family.count)] for edge, number in family.edges.items()]
            yield aligned(["edge", "share of members"], shares)
        if self.functions:
            yield ""
            yield f"Functions that depend on each of at most {self.options.max_parents} parents, of least errors"
            yield aligned(["gene", "errors", "parents: functions"], [_function_row(entry) for entry in self.functions])

    @property
    def _gap_notes(self) -> Iterator[str]:
        """Lines on clamped genes, unknown cells and steps without change."""
        task = self.family.task
        clamped = sorted({gene for series in task.series for gene in series.clamped})
        if clamped:
            yield f"held in some series, which give no reading of them: {', '.join(clamped)}"
        if task.updates == "asynchronous":
            unchanged = sum(before == after for series in task.series for before, after in series.steps)
            yield f"asynchronous: a step is a reading of the gene that it changes; steps without change: {unchanged}"
        if task.num_unknown_cells:
            yield (
                f"{plural(task.num_unknown_cells, 'unknown cells')}: a reading is wrong only if no completion of the"
                " cells before makes it right; genes may complete a cell differently"
            )

    @property
    def _joint_lines(self) -> Iterator[str]:
        if not self.family.task.num_unknown_cells:
            return
        joint = self.joint
        if joint is None:
            yield "joint     not counted: models without a wrong reading under one completion of all unknown cells"
        else:
            yield f"joint     {number_text(joint)} without a wrong reading under one completion of all unknown cells"
        if joint == 0 and self.family.least_errors == 0:
            yield "          no model fits all genes at once"

    @cached_property
    def joint(self) -> int | None:
        """The number of models without errors under one common completion of unknown cells; None if not counted."""
        return self.family.joint()

    @cached_property
    def mean_fixed_points(self) -> Fraction | None:
        """The mean number of fixed points of a member; None if not counted."""
        return self.family.mean_fixed_points()

    @cached_property
    def num_readings(self) -> dict[str, int]:
        """The number of readings of each gene."""
        task = self.family.task
        return {gene: sum(1 for _ in readings(task, gene)) for gene in task.genes}

    @property
    def _dynamics_lines(self) -> Iterator[str]:
        family = self.family
        network = parse_network(bnet_text(family.witness, family.task.genes, ()).encode(), chosen="bnet")
        attractors = network.attractors()
        if isinstance(attractors, Found):
            states = [f"{a.state} (period {a.period}, basin {a.basin:,})" for a in attractors.value[:MAX_PRINTED]]
            more = f" and {len(attractors.value) - MAX_PRINTED} more" if len(attractors.value) > MAX_PRINTED else ""
            order = "" if network.nodes == family.task.genes else f" over {', '.join(network.nodes)}"
            yield f"witness   attractors{order}: {', '.join(states)}{more}"
        for state in self.options.fixed:
            number = family.fixed([*map(int, state)])
            yield f"fixed     {state} in {number_text(number)} of {number_text(family.count)} members"
        if self.mean_fixed_points is None:
            limits = f"over {MAX_STATES_GENES} genes, or over {MAX_COUNTED_VALUES:,} values of formulas"
            yield f"fixed     points of a member not counted: {limits}"
        else:
            yield f"fixed     {float(self.mean_fixed_points):.4g} fixed points of a member, on average"

    @property
    def _data_use(self) -> dict[str, int]:
        """Numbers of rows in a step, rows in the file, steps, and readings of genes."""
        task = self.family.task
        lengths = [len(entry.states) for entry in task.series]
        return {
            "rows": sum(length for length in lengths if length > 1),
            "rows_in_file": sum(lengths),
            "steps": sum(length - 1 for length in lengths),
            "readings": sum(self.num_readings.values()),
        }

    def to_dict(self) -> dict[str, Any]:
        family = self.family
        return {
            "data": self._data_use,
            "least_errors": family.least_errors,
            "limit": family.limit,
            "members": str(family.count),
            "edges": {str(edge): str(number) for edge, number in family.edges.items()},
            "witness": logic_item.model_texts(family.witness),
            "unknown_cells": family.task.num_unknown_cells,
            "joint": None if self.joint is None else str(self.joint),
            "fixed": {state: str(family.fixed([*map(int, state)])) for state in self.options.fixed},
            "mean_fixed_points": None if self.mean_fixed_points is None else str(self.mean_fixed_points),
            "genes": [
                {
                    "gene": gene.gene,
                    "readings": self.num_readings[gene.gene],
                    "optimum": [gene.optimum[0], gene.optimum[1], str(gene.optimum[2])],
                    "errors": [[errors, str(number)] for errors, number in sorted(gene.errors.items())],
                }
                for gene in family.genes
            ],
            "functions": [
                {
                    "gene": entry.gene,
                    "errors": entry.errors,
                    "parents": {"+".join(parents): str(number) for parents, number in entry.functions.items()},
                }
                for entry in self.functions
            ],
        }

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        return ()

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        if html is not None or certificates is not None:
            option = "--html" if html is not None else "--certificates"
            raise CalibrantError(f"{option} is about MIDAS data; {self.data.name} has series")
        if out is not None:
            write_atomically(out / "family.json", json.dumps(self.to_dict(), indent=1) + "\n")
            write_atomically(out / "optimum.bnet", bnet_text(self.family.witness, self.family.task.genes, ()))
            yield f"family.json and optimum.bnet written to {out}"


def _models_text(number: int) -> str:
    return "1 model" if number == 1 else f"{number_text(number)} models"


def _function_row(entry: GeneFunctions) -> list[str]:
    sets = [f"{'+'.join(parents) or 'constant'}: {number_text(number)}" for parents, number in entry.functions.items()]
    more = [f"{len(sets) - MAX_PRINTED} more"] if len(sets) > MAX_PRINTED else []
    return [entry.gene, str(entry.errors), "; ".join(sets[:MAX_PRINTED] + more)]


MAX_HEAD = 1_000  # bytes of the first line of data, whose first column tells the format
NO_LIMIT = ("any", "none")  # of --fit and --size


class LogicFamilies:
    """Implements Families (bench.pools.capabilities)."""

    def count(self, prior: Path, data: Path, options: GivenOptions) -> CountedFamily:
        stated: FamilyOptions = options.convert("logic", data.name)
        _require_order(prior, data)
        _check_fit(stated.fit)
        if is_series(data):
            return count_series(prior, data, stated, options.values.keys())
        for name in ("extra_errors", "max_parents", "updates", "fixed"):
            if name in options.values:
                raise OptionError(f"it is about series; {data.name} has none", flag_of(name))
        if stated.draw and stated.first:
            raise OptionError("give one of --draw and --list", "--draw")
        if stated.seed is not None and not stated.draw:
            raise OptionError("it is about random members: give --draw", "--seed")
        task, dataset, notes = _read(prior, data, stated)
        outcome = solve_family(task)
        if not isinstance(outcome, Found):
            return UncountedFamily(outcome.reached, dataset, notes)
        family = _restrict(outcome.value, stated)
        total = solve_class(task)
        listed, judgement = _read_listed(stated, family)
        counted = Counted(
            prior,
            data,
            dataset,
            stated,
            task,
            notes,
            outcome.value,
            family,
            total.value.count if isinstance(total, Found) else None,
            rank_candidates(family, _candidates(stated, task)),
            _first_or_drawn(family, stated),
            listed,
            family.compare(listed) if stated.listed is not None and (listed or judgement is None) else None,
            judgement,
        )
        return PresentedFamily(counted)

    def recognizes(self, path: Path) -> bool:
        return path.suffix.lower() == ".sif"

    def convert(self, prior: Path, data: Path, out: Path, options: GivenOptions) -> Sequence[str]:
        if is_series(data):
            raise PoolError("a file of series; a pool of logic models is made of MIDAS data", file=data.name)
        _require_order(prior, data)
        stated: DataOptions = options.convert("logic", data.name)
        task, dataset, notes = _read(prior, data, stated)
        item = logic_item.LogicItem(item_name(data), task)
        write_pool(out, item.id, [item])
        return (
            *data_lines(dataset),
            *(f"note  {note}" for note in notes),
            f"1 item, {in_one_line(item.id)}, written to {out}",
        )


def _require_order(prior: Path, data: Path) -> None:
    """Raise `HintedError` if the prior has a MIDAS header and the data have none: the files are exchanged."""
    if _is_midas(prior) and not _is_midas(data):
        paths = [str(prior), str(data)]
        exchanged = {paths[0]: paths[1], paths[1]: paths[0]}
        command = [exchanged.get(part, part) for part in invocation.get()]
        message = f"{prior.name} holds measurements; the prior network comes first, then the measurements"
        raise HintedError(message, command=command)


def _is_midas(path: Path) -> bool:
    """Return whether a file begins like MIDAS; False if it cannot be read, which its reader reports later."""
    try:
        with path.open("rb") as file:
            return file.readline(MAX_HEAD).lstrip(b'\xef\xbb\xbf"').startswith((b"TR:", b"DA:", b"DV:", b"ID:"))
    except OSError:
        return False


def _check_fit(fit: str) -> None:
    """Raise `OptionError` for an invalid tolerance; without this check the error would name the file."""
    if fit in NO_LIMIT:
        return
    try:
        logic_item.fit_fraction(fit)
    except logic_item.LogicError:
        percent = fit.removesuffix("%")
        is_percent = fit.endswith("%") and percent.isascii() and percent.isdigit()
        example = f"{int(percent) / 100:g}" if is_percent and len(percent) < 4 else "0.1"
        raise OptionError(f"{short_repr(fit)}; a decimal of 0 or more, such as {example}, or any", "--fit") from None


def _read(prior: Path, data: Path, stated: DataOptions) -> tuple[logic_item.Task, Dataset, tuple[str, ...]]:
    options = logic_item.Options(stated.factor, stated.rounding, not stated.no_compress, stated.max_clause or 0)
    size = None if stated.size in NO_LIMIT else _whole_number(stated.size)
    task, dataset = read_data(
        prior,
        data,
        stated.time,
        fit=logic_item.ANY_FIT if stated.fit in NO_LIMIT else stated.fit,
        size=size,
        options=options,
        normalise=stated.normalise,
        cell_line=stated.cell_line,
        sign=stated.sign,
    )
    return task, dataset, (*dataset.notes, *task_notes(task))


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise OptionError(f"{short_repr(text)}; a whole number from 0, or {NO_LIMIT[0]}", "--size")
    return int(text)


def _restrict(family: LogicFamily, stated: FamilyOptions) -> LogicFamily:
    """Return the members with all clauses of --given and none of --without; `OptionError` for another text."""
    for option, texts, present in (("--given", stated.present, True), ("--without", stated.absent, False)):
        for text in texts:
            try:
                family = family.condition(text, present=present)
            except CalibrantError as error:
                raise OptionError(str(error), option) from None
    return family


MAX_HEAD_BYTES = 1 << 16  # of the first line of a list of models, which has `<-` in a clause


def _read_models(path: Path) -> Sequence[ListedModel] | BooleanNetwork:
    """Return the models of a CSV or of a list of clauses, or the network of a file in another format."""
    content = read_file(path)
    if path.suffix.lower() == ".csv" or b"<-" in content[:MAX_HEAD_BYTES].partition(b"\n")[0]:
        return read_networks(path)
    return parse_network(content, path.name)


def _read_listed(stated: FamilyOptions, family: LogicFamily) -> tuple[Sequence[ListedModel], Judgement | None]:
    """Return another tool's models. Of a network: its judgement, and its model, if it is of the class."""
    if stated.listed is None:
        return (), None
    models = _read_models(stated.listed)
    if not isinstance(models, BooleanNetwork):
        return models, None
    judgement = family.judge(models)
    return () if judgement.model is None else [ListedModel(judgement.model)], judgement


def _candidates(stated: FamilyOptions, task: logic_item.Task) -> list[logic_item.Experiment]:
    limits = {"max_stimuli": stated.max_stimuli, "max_inhibitors": stated.max_inhibitors}
    if stated.predict is None:
        return candidate_experiments(task.setup, **limits)
    candidates = read_candidates(stated.predict, **limits)
    try:
        logic_item.check_experiments(tuple(candidates), task.setup)
    except CalibrantError as error:
        raise PoolError(str(error), file=stated.predict.name) from None
    return candidates


def _first_or_drawn(family: LogicFamily, stated: FamilyOptions) -> CountedModels | None:
    if not stated.draw and not stated.first:
        return None
    require_members(family)
    if stated.draw:
        return CountedModels(drawn_members(family, stated.draw, stated.seed or 0), is_drawn=True)
    return CountedModels(listed_members(family, stated.first or 0), is_drawn=False)


FAMILIES: Families = LogicFamilies()
