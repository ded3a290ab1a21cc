"""Command `calibrant report`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from calibrant.bench.commands import options as commands_options
from calibrant.bench.commands.guard import READS, WRITES_PAGE, WRITES_PICTURE
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.help import INPUT, OUTPUT, VIEW

if TYPE_CHECKING:
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.report.sections import ReportContents
    from calibrant.bench.report.sources import Sources
    from calibrant.bench.scoring.answers import FieldNames
    from calibrant.bench.terminal import NextCommand

ATTRIBUTION = "attribution"  # id of the table
EMBEDDED, MAX_EMBEDDED = 200, 5_000  # embedded responses of each class: default, maximum
Format: TypeAlias = Literal["terminal", "markdown", "csv", "latex", "html"]
SUFFIXES: dict[str, Format] = {".html": "html", ".md": "markdown", ".csv": "csv", ".tex": "latex", ".txt": "terminal"}
TableNames: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--table",
        metavar="ID",
        help="Only this table: its number in the paper, `paired`, `ceiling` or `time`; `people`, `learning` or `open`.",
        rich_help_panel=VIEW,
    ),
]
PlotFolder: TypeAlias = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Write every plot there too, as an SVG file of its own.", rich_help_panel=OUTPUT),
    replace(WRITES_PICTURE, inside=("*.svg",)),
]
OfficialFiles: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help="Pool file with embedded model results; may be repeated.", rich_help_panel=INPUT),
    READS,
]
PaperRows: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--paper/--no-paper", help="Also what the papers print, where it is about such items.", rich_help_panel=VIEW
    ),
]
Times: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--times/--no-times", help="What the searches took; two runs differ in nothing else.", rich_help_panel=VIEW
    ),
]
Embed: TypeAlias = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=MAX_EMBEDDED,
        help=f"Responses of each class inside a page.  [default: {EMBEDDED}]",
        rich_help_panel=OUTPUT,
    ),
]
Attributions: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--attribution",
        help="Also which answers the evidence had decided; ReplaySCM's are counted for the items of --pool.",
        rich_help_panel=VIEW,
    ),
]


Predictions: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help="Responses to instances of --pool, in any format that `score` takes; may be repeated.",
        rich_help_panel=INPUT,
    ),
    READS,
]


Form: TypeAlias = Annotated[
    Format | None,
    typer.Option("--format", help="What to make. [default: as --out is named, else terminal]", rich_help_panel=OUTPUT),
]


@commands_options.with_options("report")
def report(
    given: GivenOptions,
    sources: commands_options.RunSources = None,
    predictions: Predictions = None,
    official: OfficialFiles = None,
    pools: commands_options.PoolsOption = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write there instead of printing.", rich_help_panel=OUTPUT),
        WRITES_PAGE,
    ] = None,
    form: Form = None,
    tables: TableNames = None,
    by: Annotated[
        Literal["pool", "setting"], typer.Option(help="What gets a row for each system.", rich_help_panel=VIEW)
    ] = "pool",
    plots: PlotFolder = None,
    paper: PaperRows = False,
    times: Times = True,
    attribution: Attributions = False,
    decided_at: commands_options.DecidedAt = None,
    embed: Embed = None,
    id_field: commands_options.IdField = None,
    text_field: commands_options.TextField = None,
    model_field: commands_options.ModelField = None,
    extractor: commands_options.ExtractorOption = "paper",
    thoughts: commands_options.ThoughtsChoice = None,
    model: commands_options.ModelName = None,
    on_error: commands_options.OnError = "stop",
    duplicates: commands_options.Duplicates = "keep",
) -> int:
    """Make the paper's tables from runs, predictions and official files, with intervals and plots.

    Intervals are 95%: percentile bootstrap over latent SCMs, paired where two rows share them; of blickets score
    intervals. HTML is one file: who was right and who earned it, tables and responses.
    """
    from calibrant.bench.commands.options import progress_bar
    from calibrant.bench.report.rows import Grouping
    from calibrant.bench.report.sections import ReportContents
    from calibrant.bench.report.sources import Sources
    from calibrant.bench.report.writing import chosen_tables, report_text
    from calibrant.bench.scoring.answers import FieldNames, LineRules
    from calibrant.bench.terminal import stated_width
    from calibrant.dsl.memory import gc_paused

    _check_options(sources, predictions, official, decided_at, tables, attribution=attribution)
    rules = LineRules(on_error, duplicates, model)
    fields = FieldNames(id_field, text_field, model_field, commands_options.reading_options(extractor, thoughts), rules)
    _check_reading(fields, None if official else thoughts, predictions)
    chosen, embed = _check_format(form or _named_format(out), embed)
    files = (*(pools or ()), *(official or ()))
    contents = ReportContents(chosen_tables(tables or ()), with_paper=paper, with_times=times, pools=files)
    contents = replace(_add_options(contents, given.values), by=Grouping(by), embed=embed)
    sources, contents = _take_sets(sources or (), contents)
    if contents.sets and not (sources or predictions or official):
        return _report_sets(contents, chosen, out)
    inputs = (sources or (), predictions or (), official or (), pools or ())
    collected = Sources(*inputs, fields, partial(typer.echo, err=True))
    with gc_paused(), progress_bar() as progress:  # collections would take a fifth of the time: 10^5 answers stay alive
        answers = collected.answers()
        given.refuse_foreign(answers)
        contents = _with_inputs(contents, collected)
        if attribution or ATTRIBUTION in contents.tables:
            answers = _decided_at(_add_attributions(answers, files, needed=attribution), decided_at)
        width = None if out else stated_width(sys.stdout)
        text = report_text(answers, contents, chosen, plots=plots, width=width, progress=progress)
    _write_report(text, out)
    _print_after(out, plots, _next_commands(*inputs))
    return 0


def _check_format(form: Format, embed: int | None) -> tuple[Format, int]:
    """Return the format, and the number of embedded responses of each class."""
    if embed is not None and form != "html":
        raise typer.BadParameter("only a page embeds responses: give --out FILE.html", param_hint="--embed")
    return form, EMBEDDED if embed is None else embed


def _check_options(
    sources: Sequence[Path] | None,
    predictions: Sequence[Path] | None,
    official: Sequence[Path] | None,
    decided_at: float | None,
    tables: Sequence[str] | None,
    *,
    attribution: bool,
) -> None:
    """Raise `CalibrantError` for a report without inputs, and for a posterior without attributions."""
    if not (sources or predictions or official):
        raise typer.BadParameter("folders of runs, --predictions or --official", param_hint="DIR...")
    commands_options.require_level(decided_at, attribution=attribution or ATTRIBUTION in (tables or ()))


def _print_after(out: Path | None, plots: Path | None, commands: Iterator[NextCommand]) -> None:
    """Print the folder of plots and, after a report in a file, the commands to suggest."""
    from calibrant.bench.terminal import print_next, print_written

    if plots is not None:
        print_written(plots, "plots")
    if out is not None:
        print_next(commands)


def _next_commands(
    sources: Sequence[Path], predictions: Sequence[Path], official: Sequence[Path], pools: Sequence[Path]
) -> Iterator[NextCommand]:
    """Yield the commands to suggest after a report of these files."""
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.terminal import NextCommand, unused_path

    if sources and pools:
        pool_options = [word for pool in pools for word in ("--pool", pool)]
        yield NextCommand(("table", *sources, "--attribution", *pool_options), "earned or luck")
    elif sources:
        yield NextCommand(("table", *sources, "--by", "stratum"), "rows by stratum")
    if predictions and len({benchmark_of(pool).name for pool in pools}) == 1:
        for file_number, path in enumerate(predictions, 1):
            name = "scores.jsonl" if len(predictions) == 1 else f"scores-{file_number}.jsonl"
            yield NextCommand(("score", *pools, path, "--out", unused_path(name)), "keep the verdicts")
    if official and not sources:
        stored = [word for path in official for word in ("--official", path)]
        yield NextCommand(("table", *stored), "stored evaluations, again")


def _take_sets(sources: Sequence[Path], contents: ReportContents) -> tuple[list[Path], ReportContents]:
    """Return the sources without files of verdicts on sets, which become contents."""
    from calibrant.bench.scoring.sets import is_set_file

    files = tuple(path for path in sources if is_set_file(path))
    return [path for path in sources if path not in files], replace(contents, sets=files)


def _report_sets(contents: ReportContents, form: Format, out: Path | None) -> int:
    """Write the tables of sets alone."""
    from calibrant.bench.report.layout import TEXTS, as_terminal
    from calibrant.bench.report.writing import set_tables
    from calibrant.bench.terminal import NextCommand, print_next, printable, stated_width

    if form == "html":
        raise typer.BadParameter("a page of sets needs answers beside them: give runs or predictions", param_hint="DIR")
    tables = list(set_tables(contents.sets).values())
    width = stated_width(sys.stdout) if out is None else None
    _write_report(printable(as_terminal(tables, width) if form == "terminal" else TEXTS[form](tables)), out)
    print_next(() if out is None else [NextCommand(("table", *contents.sets), "its figures")])
    return 0


def _with_inputs(contents: ReportContents, collected: Sources) -> ReportContents:
    """Return the contents with inputs that are read again, and with the responses that are in no rate."""
    again, runs, excluded = collected.transcripts(), tuple(collected.runs), tuple(collected.excluded)
    return replace(
        contents, transcripts=again, fields=collected.fields, runs=runs, predictions=again, excluded=excluded
    )


def _check_reading(fields: FieldNames, thoughts: str | None, predictions: Sequence[Path] | None) -> None:
    """Raise `CalibrantError` for options of reading predictions without predictions."""
    if predictions:
        return
    rules = fields.rules
    options: dict[str, object] = {"--id-field": fields.id, "--text-field": fields.text, "--model-field": fields.model}
    options |= {"--extractor": fields.reading.extractor != "paper", "--thoughts": thoughts, "--model": rules.model}
    options |= {"--on-error": rules.on_error != "stop", "--duplicates": rules.duplicates != "keep"}
    commands_options.refuse_options(options, "it is about predictions: give --predictions")


def _add_options(contents: ReportContents, options: Mapping[str, Any]) -> ReportContents:
    """Return the contents with the benchmarks' options."""
    from calibrant.bench.core.metrics import InvalidHandling

    means = InvalidHandling(options.get("means", InvalidHandling.PUBLISHED))
    against, audits = tuple(options.get("against", ())), tuple(options.get("audits", ()))
    return replace(contents, against=against, means=means, audits=audits, cohorts=options.get("cohort", ()))


def _write_report(text: str, out: Path | None) -> None:
    """Write the report to a file, or to standard output."""
    from calibrant.bench.terminal import print_written
    from calibrant.dsl.atomic_write import write_atomically

    if out is None:
        typer.echo(text, nl=False)
    else:
        write_atomically(out, text)
        print_written(out, "report")


def _add_attributions(
    answers: Mapping[str, Sequence[Answer]], pools: Sequence[Path], *, needed: bool
) -> dict[str, list[Answer]]:
    """Return the answers, with attributions where their pool is given.

    needed: whether pools without attributions are refused for several benchmarks, as they are for one
    """
    from calibrant.bench.core.registry import benchmark_of
    from calibrant.bench.report.pool_attribution import AttributionCoverage, add_attributions

    attributions: dict[str, list[Answer]] = {}
    for name, listed in answers.items():
        keys = [(context.pool_digest, context.instance, id(score)) for context, score in listed]  # of shared scores
        distinct = dict(zip(keys, listed, strict=True))
        of_benchmark = [path for path in pools if benchmark_of(path).name == name]
        attributed = (score for _, score in add_attributions(distinct.values(), of_benchmark))
        score_by_key = dict(zip(distinct, attributed, strict=True))
        attributions[name] = [(context, score_by_key[key]) for key, (context, _) in zip(keys, listed, strict=True)]
    coverage = AttributionCoverage()
    for context, score in chain.from_iterable(attributions.values()):
        coverage.count(context, score)
    if needed or len(attributions) == 1:
        coverage.refuse_bare_pools(pools)
    for line in coverage.lines():
        typer.echo(line, err=True)
    return attributions


def _decided_at(answers: dict[str, list[Answer]], level: float | None) -> dict[str, list[Answer]]:
    """Return the answers, in which noisy readings decide at a posterior of at least `level`, if one is given."""
    from calibrant.bench.report.pool_attribution import apply_decision_level

    if level is None:
        return answers
    decided: dict[str, list[Answer]] = {name: [] for name in answers}
    for context, score in apply_decision_level((answer for listed in answers.values() for answer in listed), level):
        decided[context.benchmark].append((context, score))
    return decided


def _named_format(out: Path | None) -> Format:
    """Return the format by the suffix of the file; "terminal" without a file."""
    if out is None or not out.suffix:
        return "terminal"
    if out.suffix not in SUFFIXES:
        raise typer.BadParameter(
            f"'{out.suffix}' is none of {', '.join(SUFFIXES)}; or give --format", param_hint="--out"
        )
    return SUFFIXES[out.suffix]
