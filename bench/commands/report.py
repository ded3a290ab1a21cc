"""calibrant report"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

import typer

from bench.commands.guard import READS, WRITES, Writes
from bench.commands.options import IdField, ModelField, RunSources, TextField
from dsl.errors import CalibrantError

if TYPE_CHECKING:
    from bench.report.part import Answer

ATTRIBUTION = "attribution"  # the table's id
Format: TypeAlias = Literal["terminal", "markdown", "csv", "latex", "html"]
SUFFIXES: dict[str, Format] = {".html": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".txt": "terminal"}
TableNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="ID", help="Only this table, by its number in the paper, `paired`, `ceiling` or `time`."
    ),
]
Against: TypeAlias = Annotated[
    list[str] | None, typer.Option(metavar="SYSTEM", help="Compare the others with this one; may be repeated.")
]
AuditFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="DIR", help="Folder of `calibrant audit --out`, for success against ambiguity."),
    READS,
]
PlotFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write every plot there too, as an SVG file of its own."),
    Writes(("*.svg",)),
]
OfficialFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Pool file with embedded model results; may be repeated."),
    READS,
]
Attributions: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--attribution",
        help="Also which answers the evidence had decided; ReplaySCM's are counted for the items of --pools.",
    ),
]


def report(
    sources: RunSources = None,
    predictions: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Raw predictions (JSONL, or a log of Inspect) for instances of --pools; may be repeated.",
        ),
        READS,
    ] = None,
    official: OfficialFiles = None,
    pools: Annotated[
        list[Path] | None,
        typer.Option(metavar="POOL", help="Pool file that says which instances share a latent SCM; may be repeated."),
        READS,
    ] = None,
    audits: AuditFolders = None,
    out: Annotated[Path | None, typer.Option(metavar="FILE", help="Write there instead of printing."), WRITES] = None,
    form: Annotated[
        Format | None, typer.Option("--format", help="What to make. [default: as --out is named, else terminal]")
    ] = None,
    tables: TableNames = None,
    against: Against = None,
    by: Annotated[Literal["pool", "setting"], typer.Option(help="What gets a row for each system.")] = "pool",
    means: Annotated[
        Literal["published", "paper"],
        typer.Option(help="Invalid submissions in HeldoutWorld: left out, or 0. See `calibrant table`."),
    ] = "published",
    plots: PlotFolder = None,
    paper: Annotated[bool, typer.Option("--paper/--no-paper", help="The paper's printed rows beside ours.")] = True,
    times: Annotated[
        bool, typer.Option("--times/--no-times", help="What the searches took; two runs differ in nothing else.")
    ] = True,
    attribution: Attributions = False,
    id_field: IdField = None,
    text_field: TextField = None,
    model_field: ModelField = None,
) -> int:
    """Make the paper's tables from runs, predictions and official files, with intervals and plots.

    Intervals are 95%: percentile bootstrap over latent SCMs, paired where two rows share them; of blickets score
    intervals. HTML is one file with the plots inside; it needs matplotlib (`pip install 'calibrant[report]'`).
    """
    from bench.answers.columns import Means
    from bench.answers.fields import FieldNames
    from bench.commands.progress import progress_bar
    from bench.report.part import ReportContents
    from bench.report.rate_rows import Grouping
    from bench.report.sources import Sources
    from bench.report.writing import chosen_tables, report_text
    from dsl.whole_file import write_whole

    if not (sources or predictions or official):
        raise typer.BadParameter("folders of runs, --predictions or --official", param_hint="DIR...")
    chosen = form or _named_format(out)
    said = (*(pools or ()), *(official or ()))
    wanted = ReportContents(chosen_tables(tables or ()), tuple(against or ()), paper, times, pools=said)
    wanted = replace(wanted, by=Grouping(by), means=Means(means), audits=tuple(audits or ()))
    fields, say = FieldNames(id_field, text_field, model_field), partial(typer.echo, err=True)
    given = Sources(sources or (), predictions or (), official or (), pools or (), fields, say)
    answers, wanted = given.answers(), replace(wanted, transcripts=given.transcripts(), fields=fields)
    with progress_bar() as progress:
        if attribution or ATTRIBUTION in wanted.tables:
            answers = _attributed(answers, said, needed=attribution)
        text = report_text(answers, wanted, chosen, plots=plots, progress=progress)
    if out is None:
        typer.echo(text, nl=False)
    else:
        write_whole(out, text)
    return 0


def _attributed(
    answers: Mapping[str, Sequence[Answer]], pools: Sequence[Path], *, needed: bool
) -> dict[str, list[Answer]]:
    """The answers, each with its attribution where a pool says what it takes. needed: also of ReplaySCM's"""
    from bench.benchmarks.attributions import attributed
    from bench.benchmarks.registry import DEFAULT, benchmark_of

    needed = needed or [*answers] == [DEFAULT]
    if needed and DEFAULT in answers and not any(benchmark_of(path).name == DEFAULT for path in pools):
        raise CalibrantError("what the evidence of ReplaySCM decided is counted for the items of --pools; give them")
    return {
        name: list(attributed(listed, [path for path in pools if benchmark_of(path).name == name]))
        for name, listed in answers.items()
    }


def _named_format(out: Path | None) -> Format:
    """The format that the name of the file asks for; of none, as a terminal shows it."""
    if out is None or not out.suffix:
        return "terminal"
    if out.suffix not in SUFFIXES:
        raise typer.BadParameter(
            f"'{out.suffix}' is none of {', '.join(SUFFIXES)}; or give --format", param_hint="--out"
        )
    return SUFFIXES[out.suffix]
