"""A benchmark's section of a report, and the contents that a report was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from calibrant.bench.core.metrics import InvalidHandling
from calibrant.bench.pages.timeline import Timeline
from calibrant.bench.report.layout import Table
from calibrant.bench.report.rows import Answer, Grouping
from calibrant.bench.scoring.answers import FieldNames
from calibrant.dsl.errors import CalibrantError, in_one_line


class NoAnswersError(CalibrantError):
    """None of a benchmark's answers belongs into a table that was asked for."""


@dataclass(frozen=True)
class ReportContents:
    """Contents of a report.

    tables: ids, empty for all; against: systems that the others are compared with, empty for the default
    with_paper: the paper's printed rows beside ours; with_times: what two runs of the same thing differ in
    with_plots: plots that are files alone; with_pictures: those that a page has too
    by, means: what gets a row, and what invalid submissions count
    pools: pool files of the answers, for what is said there only; audits: folders of audits
    cohorts: NAME=POOL of each, whose answers are compared with those of the first
    transcripts: by benchmark, folders of runs and files of predictions; some of their episodes are shown step by step
    fields: what the predictions call their fields
    runs, predictions: inputs that a page or a table reads again for responses; predictions by benchmark
    embed: how many responses of each class a page has
    sets: files of verdicts on sets
    """

    tables: frozenset[str] = frozenset()
    against: tuple[str, ...] = ()
    with_paper: bool = True
    with_times: bool = True
    with_plots: bool = False
    by: Grouping = Grouping.POOL
    means: InvalidHandling = InvalidHandling.PUBLISHED
    pools: tuple[Path, ...] = ()
    audits: tuple[Path, ...] = ()
    cohorts: tuple[str, ...] = ()
    transcripts: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    fields: FieldNames | None = None
    runs: tuple[Path, ...] = ()
    predictions: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    embed: int = 200
    with_pictures: bool = False
    sets: tuple[Path, ...] = ()


class Plot(NamedTuple):
    """Plot of a section.

    name: of its file and of its place in the page; in_page: whether the page has it too
    """

    name: str
    title: str
    caption: str
    svg: str
    in_page: bool = False


@dataclass(frozen=True)
class Section:
    """A benchmark's section of a report.

    title: the benchmark's; about: what the figures in brackets are
    systems: their names; pools: (name, digest) of each; answers: how many there are
    episodes: some of them, step by step
    """

    title: str
    about: str
    systems: frozenset[str]
    pools: tuple[tuple[str, str], ...]
    answers: int
    tables: tuple[Table, ...]
    plots: tuple[Plot, ...] = ()
    episodes: tuple[Timeline, ...] = ()

    @classmethod
    def of(
        cls, title: str, about: str, answers: Sequence[Answer], tables: tuple[Table, ...], plots: tuple[Plot, ...]
    ) -> Section:
        """Return what tables and plots say of these answers, with whose and about what they are."""
        systems = frozenset(in_one_line(context.system) for context, _ in answers)
        pools = sorted({(in_one_line(context.pool), context.pool_digest) for context, _ in answers})
        return cls(title, about, systems, tuple(pools), len(answers), tables, plots)
