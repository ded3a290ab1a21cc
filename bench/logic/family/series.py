"""Fully observed synchronous series: formulas over the prior, or functions of few parents, counted gene by gene."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.audits.why import number_text
from calibrant.bench.core.options import OptionError, declared_options
from calibrant.bench.families.capabilities import CountedFamily
from calibrant.bench.logic.family.presented import Uncounted
from calibrant.bench.logic.family.words import percent
from calibrant.bench.logic.options import FamilyOptions
from calibrant.bench.pages.aligned import aligned
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, PoolError
from calibrant.dsl.logic.clause import model_texts
from calibrant.dsl.logic.files.bnet import bnet_text
from calibrant.dsl.logic.files.sif import read_sif
from calibrant.dsl.logic.files.text_input import read_text, table_rows
from calibrant.dsl.logic.series import SERIES_COLUMN, SeriesTask, read_series, readings
from calibrant.solvers.logic.series import GeneFunctions, SeriesFamily, count_functions, solve_series
from calibrant.solvers.outcome import Found

OPTIONS = ("max_clause", "extra_errors", "max_parents")  # that series have; all others are about MIDAS data
MAX_PRINTED = 8  # parent sets of a gene


def is_series(data: Path) -> bool:
    """Return whether a CSV file has a column `series`."""
    header = next(table_rows(read_text(data), data.name), None)
    return header is not None and SERIES_COLUMN in header[1]


def flag_of(name: str) -> str:
    """Return how an option of `calibrant family` is given."""
    return declared_options("family")[name].flag


def count_series(prior: Path, data: Path, stated: FamilyOptions, option_names: Collection[str]) -> CountedFamily:
    """Return the family of series; `OptionError` for options of MIDAS data.

    option_names: of the options that were given
    """
    for name in option_names:
        if name not in OPTIONS:
            raise OptionError(f"it is about MIDAS data; {data.name} has fully observed series", flag_of(name))
    genes, series = read_series(data)
    edges = read_sif(prior)
    try:
        task = SeriesTask(genes, edges, series, stated.max_clause or 0, stated.extra_errors or 0)
    except CalibrantError as error:
        raise PoolError(str(error), file=data.name) from None
    outcome = solve_series(task)
    if not isinstance(outcome, Found):
        return Uncounted(outcome.reached)
    if not stated.max_parents:
        return CountedSeries(data, stated, outcome.value, ())
    functions = count_functions(task, stated.max_parents)
    if not isinstance(functions, Found):
        return Uncounted(functions.reached)
    return CountedSeries(data, stated, outcome.value, tuple(functions.value))


@dataclass(frozen=True)
class CountedSeries:
    """Implements CountedFamily (bench.families.capabilities).

    functions: of each gene over parent sets of bounded size, whatever the prior; empty if not asked for
    """

    data: Path
    options: FamilyOptions
    family: SeriesFamily
    functions: tuple[GeneFunctions, ...]

    @property
    def is_counted(self) -> bool:
        return True

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        family, task = self.family, self.family.task
        use = self._use
        yield f"rows      {use['rows']} of {use['rows_in_file']} used; a series of one row has no step"
        yield f"readings  {use['readings']} used: {use['steps']} steps of {len(task.genes)} genes"
        yield f"series    {len(task.series)} of {len(task.genes)} genes, {use['steps']} steps"
        yield f"class     formulas over {len(set(task.prior))} edges of the prior, gene by gene"
        yield f"optimum   {family.least_errors} wrong readings, proven least"
        yield f"members   {number_text(family.count)} models with at most {family.limit} wrong readings"
        always = [edge for edge, number in family.edges.items() if number == family.count]
        yield f"edges     {len(always)} always, {len(family.edges) - len(always)} open, of {len(set(task.prior))}"
        yield ""
        rows = [
            [gene.gene, str(gene.optimum[0]), str(gene.optimum[1]), number_text(gene.optimum[2])]
            for gene in family.genes
        ]
        yield aligned(["gene", "errors", "size", "formulas"], rows)
        if family.edges:
            yield ""
            shares = [[str(edge), percent(number / family.count)] for edge, number in family.edges.items()]
            yield aligned(["edge", "share of members"], shares)
        if self.functions:
            yield ""
            yield f"Functions that depend on each of at most {self.options.max_parents} parents, of least errors"
            yield aligned(["gene", "errors", "parents: functions"], [_function_row(entry) for entry in self.functions])

    @property
    def _use(self) -> dict[str, int]:
        """The rows of the file, those in a step, the steps, and their readings of a gene."""
        task = self.family.task
        lengths = [len(entry.states) for entry in task.series]
        return {
            "rows": sum(length for length in lengths if length > 1),
            "rows_in_file": sum(lengths),
            "steps": sum(length - 1 for length in lengths),
            "readings": sum(1 for gene in task.genes for _ in readings(task, gene)),
        }

    def to_dict(self) -> dict[str, Any]:
        family = self.family
        return {
            "data": self._use,
            "least_errors": family.least_errors,
            "limit": family.limit,
            "members": str(family.count),
            "edges": {str(edge): str(number) for edge, number in family.edges.items()},
            "witness": model_texts(family.witness),
            "genes": [
                {
                    "gene": gene.gene,
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
            raise CalibrantError(f"{option} is about MIDAS data; {self.data.name} has fully observed series")
        if out is not None:
            write_atomically(out / "family.json", json.dumps(self.to_dict(), indent=1) + "\n")
            write_atomically(out / "optimum.bnet", bnet_text(self.family.witness, self.family.task.genes, ()))
            yield f"family.json and optimum.bnet written to {out}"


def _function_row(entry: GeneFunctions) -> list[str]:
    sets = [f"{'+'.join(parents) or 'constant'}: {number_text(number)}" for parents, number in entry.functions.items()]
    more = [f"{len(sets) - MAX_PRINTED} more"] if len(sets) > MAX_PRINTED else []
    return [entry.gene, str(entry.errors), "; ".join(sets[:MAX_PRINTED] + more)]
