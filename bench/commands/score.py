"""Command `calibrant score`."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO, TypeAlias

import typer

from calibrant.bench.commands import options
from calibrant.bench.commands.guard import READS, WRITES
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.core.scoring import NO_MODEL
from calibrant.bench.help import INPUT, OUTPUT
from calibrant.bench.terminal import json_text
from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark
    from calibrant.bench.report.rows import Answer
    from calibrant.bench.report.table import ResultTable
    from calibrant.bench.scoring.answers import FieldNames, ResponseCounts
    from calibrant.bench.scoring.lines import TableVerdict
    from calibrant.bench.scoring.predictions import PoolItems, Predictions
    from calibrant.bench.scoring.scorer import PoolScorer
    from calibrant.bench.terminal import NextCommand


PROGRESS_STEP = 1_000
"""Number of verdicts between updates of the progress bar: 0.05 s to a few seconds of scoring."""

Paths: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="POOL... PREDICTIONS",
        help="Pool files, then JSON lines, a JSON document, CSV, TSV or Parquet, also compressed (.gz), or a log of"
        " Inspect (.eval); - reads standard input.",
    ),
    READS,
]


@options.with_options("score")
def score(
    paths: Paths,
    given: GivenOptions,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the verdicts there, as JSON lines.", rich_help_panel=OUTPUT),
        WRITES,
    ] = None,
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Pass over instances that no pool has.", rich_help_panel=INPUT)
    ] = False,
    extractor: options.ExtractorOption = "paper",
    thoughts: options.ThoughtsChoice = None,
    model: options.ModelName = None,
    on_error: options.OnError = "stop",
    duplicates: options.Duplicates = "keep",
    id_field: options.IdField = None,
    text_field: options.TextField = None,
    model_field: options.ModelField = None,
    workers: options.Workers = None,
    cluster: options.Cluster = None,
    set_size: options.SetSize = None,
    as_json: options.AsJson = False,
) -> None:
    """Score model outputs with the published metrics.

    Gives one JSON object a line with the published scorer's keys, and a table.

    Each line of PREDICTIONS names an instance (instanceId, custom_id, id, item_id, task_id, sample_id or key, or its
    prompt) and a model, and gives an answer: a field of text, an object, a chat, or what OpenAI, Anthropic, Gemini,
    Vertex, Bedrock, Cohere, Ollama, vLLM, SGLang, llama.cpp, TGI, transformers, lm-eval, Inspect, HELM, Every Eval
    Ever, verifiers and TRL write, with failed requests, too (docs/predictions.md). What was recognised is said on
    standard error. Answers of a model to an instance are samples: mean, pass@k and majority. seconds is their time.

    What a model thought is never its answer. A response without an answer has a reason (docs/answers.md): not_run and
    infrastructure_error are left out of all rates; refused, wrong_format, tool_call, cut_off, only_thoughts, empty and
    unreadable are not right. correctPublished and correctLenient are verdicts of the other readers.

    On pools of episodes a line may give steps instead, as records of runs have them: they are replayed first, and a
    false one is refused by its number. An answer without steps is submitted at once. Traces of blickets (item, agent,
    steps) are lines too; results of the public blicket text game bring their items along and need no POOL. On CauSim
    pools an answer is the last JSON object of the response, and a wrong one is explained node by node.

    With --json the verdicts go to standard output and the tables to standard error. FILE appears complete or not at
    all; `calibrant table` reads it.
    """
    from calibrant.bench.core.registry import log_benchmark
    from calibrant.bench.scoring.answers import FieldNames, LineRules

    field_options: dict[str, Any] = {"--id-field": id_field, "--text-field": text_field, "--model-field": model_field}
    field_options |= {"--model": model, "--thoughts": thoughts, "--on-error": on_error != "stop" and on_error}
    field_options |= {"--extractor": extractor != "paper", "--duplicates": duplicates != "keep"}
    work_options = {"--skip-unknown": skip_unknown, "--workers": workers, "--cluster": cluster}
    if set_size is not None:
        options.print_set_scores(paths, set_size, out, field_options | work_options | given.by_flag, as_json=as_json)
        return
    if (logs := log_benchmark(paths[0])) is not None:
        given.refuse_foreign([logs.name], paths[0].name)
        _refuse_options_for_logs(paths[0], logs, {**field_options, **work_options})
        _score_logs(paths, logs, out=out, as_json=as_json)
        return
    *pools, file = paths
    bench = _benchmark(pools, file)
    reading = options.reading_options(extractor, thoughts)
    fields = FieldNames(id_field, text_field, model_field, reading, LineRules(on_error, duplicates, model))
    item_options = given.convert(bench.name, pools[0].name)
    scorer, predictions = _open_predictions(pools, file, item_options, fields, skip_unknown=skip_unknown)
    collected = _score_file(file, bench, scorer, predictions, workers, cluster, out=out, as_json=as_json)
    _print(collected, pools, out, as_json=as_json)


def _open_predictions(
    pools: Sequence[Path],
    file: Path,
    item_options: Any,
    fields: FieldNames,
    *,
    skip_unknown: bool,
) -> tuple[PoolScorer, Predictions]:
    """Return the scorer for these pools, and the reader of the file of predictions."""
    from calibrant.bench.scoring.files import STANDARD_INPUT
    from calibrant.bench.scoring.predictions import Predictions
    from calibrant.bench.scoring.scorer import PoolScorer

    scorer = PoolScorer(pools, item_options, fields.reading)

    @cache
    def hint() -> str:
        """Return the end of the error on an unknown item: whether --skip-unknown helps, or no line has a known item."""
        if file != STANDARD_INPUT:
            lines = Predictions(file, scorer, skip_unknown=True, fields=fields)
            with suppress(CalibrantError):
                next(iter(lines), None)
            if lines.num_unknown and lines.num_unknown == lines.recognised.lines:
                return f"; no line of {file.name} is about an instance of these pools"
        return "; --skip-unknown passes over such lines"

    predictions = Predictions(file, scorer, skip_unknown=skip_unknown, hint=hint, fields=fields, with_excluded=True)
    return scorer, predictions


def _score_file(
    file: Path,
    bench: Benchmark[Any],
    scorer: PoolScorer,
    predictions: Predictions,
    workers: int | None,
    cluster: str | None,
    *,
    out: Path | None,
    as_json: bool,
) -> ResultTable:
    """Score a file, write its verdicts, print what was recognised in it, and return the table of its rates."""
    from calibrant.bench.commands.options import usable_cores
    from calibrant.bench.report.table import ResultTable
    from calibrant.bench.scoring.lines import score_in_parallel, score_on_cluster
    from calibrant.bench.scoring.predictions import NothingRunError

    collected = ResultTable(bench.metrics)
    if cluster is None:
        num_workers = workers or usable_cores()
        verdicts = score_in_parallel(
            scorer, bench.metrics, predictions, with_lines=as_json or out is not None, workers=num_workers
        )
    else:
        verdicts = score_on_cluster(scorer, bench.metrics, predictions, options.execution(workers, cluster))
    try:
        _collect_counted(_with_progress(file, verdicts), predictions.counts, collected, out=out, as_json=as_json)
    except NothingRunError:
        _print_recognised(file, predictions, scorer.items)
        raise
    _print_recognised(file, predictions, scorer.items)
    if as_json and (summary := _summary(predictions)):
        typer.echo(json_text({"summary": summary}, indent=None))
    return collected


def _print(collected: ResultTable, pools: Sequence[Path], out: Path | None, *, as_json: bool) -> None:
    """Print the table of rates, which system was lucky most often, and the commands to run next."""
    from calibrant.bench.commands.table import print_rows
    from calibrant.bench.terminal import print_next

    print_rows(collected, err=as_json, again=_table_command(out))
    _print_luck(collected, err=as_json)
    if not as_json:
        answered = {digest for row, _ in collected.read_rows() for digest in row.pools}
        print_next(_next_commands(pools, out, answered))


def _benchmark(pools: Sequence[Path], file: Path) -> Benchmark[Any]:
    """Return the benchmark of the pools; `CalibrantError` for arguments in the wrong order."""
    from calibrant.bench.core.registry import is_native_pool, one_benchmark
    from calibrant.dsl.errors import PoolError

    if not pools:
        raise typer.BadParameter("give at least one pool, and the predictions as the last argument")
    order = "pools are given first, the predictions last"
    if extra_file := next(filter(_is_predictions, pools[1:]), None):
        raise CalibrantError(
            f"{extra_file}: no pool; one file of predictions is scored at a time:"
            " score each with --out, and give `table` or `report` all files of verdicts"
        )
    try:
        benchmark = one_benchmark(pools)
    except PoolError as error:
        raise CalibrantError(f"{error}; {order}") from None
    if is_native_pool(file):
        raise CalibrantError(f"{file.name} is a pool, no file of predictions; {order}")
    return benchmark


def _is_predictions(path: Path) -> bool:
    """Return whether a file among the pools has the form of predictions."""
    from calibrant.bench.core.registry import benchmark_of, is_native_pool
    from calibrant.dsl.errors import PoolError

    if not path.is_file() or is_native_pool(path):
        return False
    if path.name.lower().removesuffix(".gz").endswith((".csv", ".tsv", ".parquet", ".eval")):
        return True
    try:
        benchmark_of(path)
    except PoolError:
        return True
    return False


def _with_progress(file: Path, verdicts: Iterable[TableVerdict]) -> Iterator[TableVerdict]:
    """Yield verdicts; a progress bar appears after the first PROGRESS_STEP, and moves after as many more."""
    from calibrant.bench.commands.options import progress_bar

    remaining = iter(verdicts)
    yield from islice(remaining, PROGRESS_STEP)  # one by one, so that those before an error are printed
    following = next(remaining, None)
    if following is None:
        return
    with progress_bar("scoring ") as progress:
        num_lines = _num_lines(file)
        for num_done, verdict in enumerate(chain((following,), remaining), PROGRESS_STEP):
            if num_done % PROGRESS_STEP == 0:
                progress(file.name, num_done, num_lines)
            yield verdict
        progress(file.name, num_lines, num_lines)


def _num_lines(file: Path) -> int:
    """Return the number of lines of a file of JSON lines; 0 (unknown) for other files."""
    if file.suffix not in (".jsonl", ".ndjson") or not file.is_file():
        return 0
    with file.open("rb") as lines:
        return sum(part.count(b"\n") for part in iter(partial(lines.read, 1 << 20), b""))


def _collect_counted(
    verdicts: Iterable[TableVerdict],
    counts: ResponseCounts,
    collected: ResultTable,
    *,
    out: Path | None,
    as_json: bool,
) -> None:
    """Add every verdict on a prediction to the table and the counts, and write its line to the requested outputs."""
    with _output(out) as out_file:
        for context, values, sample, line, reading, by_rule, location in verdicts:
            counts.add(location, reading)
            if values is None:
                collected.exclude(context, reading.reason)
                if context.system == NO_MODEL:
                    counts.nameless.add(location)
            else:
                collected.count(context, values, sample, reading.reason)
                counts.compare(location, *by_rule)
            if line is not None:
                _write_line(line, out_file, as_json=as_json)


def _summary(predictions: Predictions) -> dict[str, Any]:
    """Return the counts that --json adds for lines without a verdict of their own.

    {} if no line was skipped, none answers an instance twice and none holds the answers of several filters
    """
    counts = predictions.counts.as_json()
    if not predictions.skipped and {"duplicate", "filters"}.isdisjoint(counts["warnings"]):
        return {}
    skipped = [{"line": number, "problem": problem} for number, problem in predictions.skipped]
    return {
        "read": predictions.recognised.lines,
        "skipped": skipped,
        "scored": predictions.num_scored,
        **counts,
    }


def _score_logs(paths: list[Path], bench: Benchmark[Any], *, out: Path | None, as_json: bool) -> None:
    """Score logs of episodes, which hold their items; print rates by stratum, of each system and of all together."""
    from calibrant.bench.commands.table import print_rows
    from calibrant.bench.core.capabilities import LOGS
    from calibrant.bench.core.registry import log_benchmark
    from calibrant.bench.report.rows import Grouping
    from calibrant.bench.report.table import ResultTable

    for path in paths:
        if log_benchmark(path) is not bench:
            raise CalibrantError(f"{path}: logs of played episodes are scored without pools; this is none")
    collected, everybody = (ResultTable(bench.metrics, by=Grouping.STRATUM) for _ in range(2))
    scored = chain.from_iterable(map(bench.require(LOGS), paths))
    _collect(_count_everybody(scored, everybody), collected, out=out, as_json=as_json)
    for table in (collected, everybody):
        print_rows(table, columns="n,accuracy,earned,missed,lucky,short", err=as_json, again=_table_command(out))
    _print_luck(collected, err=as_json)


def _print_luck(collected: ResultTable, *, err: bool) -> None:
    if sentence := collected.luck():
        typer.echo(sentence, err=err)


def _next_commands(pools: Sequence[Path], out: Path | None, answered: Set[str]) -> Iterator[NextCommand]:
    """Yield the commands to suggest after scoring. answered: digests of the pools that have answers."""
    from calibrant.bench.terminal import NextCommand, invocation, unused_path
    from calibrant.dsl.records import file_digest

    if out is None:
        if "-" not in (arguments := invocation.get()):  # standard input cannot be read again
            yield NextCommand((*arguments, "--out", unused_path("scores.jsonl")), "keep the verdicts")
        return
    yield NextCommand(("report", out, "--out", unused_path("report.html")), "tables and plots")
    pool_options = [word for pool in pools for word in ("--pool", pool)]
    yield NextCommand(("table", out, "--attribution", *pool_options), "earned or luck")
    # no --class, since which classes have answers is known only after `table --attribution`
    for pool in [pool for pool in pools if file_digest(pool) in answered][:1]:
        yield NextCommand(("list", pool, "--scores", out), "which items")


def _table_command(out: Path | None) -> str:
    """Return the command that prints the table from the file of verdicts; empty without such a file."""
    return "" if out is None else shlex.join(["calibrant", "table", str(out)])


def _count_everybody(scored: Iterable[Answer], everybody: ResultTable) -> Iterator[Answer]:
    """Yield the answers, and add each one to the table in which all systems are a single one."""
    for context, verdict in scored:
        everybody.add(context._replace(system="(all)"), verdict)
        yield context, verdict


def _collect(scored: Iterable[Answer], collected: ResultTable, *, out: Path | None, as_json: bool) -> None:
    """Add every verdict on a log to the table, and write its line to the requested outputs."""
    from calibrant.bench.scoring.lines import json_line

    with _output(out) as out_file:
        for context, verdict in scored:
            collected.add(context, verdict)
            if as_json or out_file:
                _write_line(json_line(verdict), out_file, as_json=as_json)


def _write_line(line: str, out_file: TextIO | None, *, as_json: bool) -> None:
    if as_json:
        sys.stdout.write(line + "\n")
    if out_file:
        out_file.write(line + "\n")


def _refuse_options_for_logs(path: Path, bench: Benchmark[Any], options_for_predictions: Mapping[str, object]) -> None:
    """Raise `typer.BadParameter` if an option has a value that applies to predictions, not to a log of episodes."""
    for option, value in options_for_predictions.items():
        if value:
            reason = (
                f"{path.name} is a log of episodes of {bench.title}, which is scored here, without pools and fields"
            )
            raise typer.BadParameter(in_one_line(reason), param_hint=option)


def _print_recognised(file: Path, predictions: Predictions, pools: Sequence[PoolItems]) -> None:
    """Print what was recognised in the predictions, and how many lines were skipped, excluded or not submitted."""
    from calibrant.bench.scoring.files import shown_name

    typer.echo(f"{shown_name(file)}: {predictions.recognised}", err=True)
    if predictions.num_unknown:
        names = ", ".join(pool.names[0] for pool in pools)
        have = "does not have" if len(pools) == 1 else "do not have"
        lines = "1 line is" if predictions.num_unknown == 1 else f"{predictions.num_unknown} lines are"
        typer.echo(f"{lines} for instances that {names} {have}", err=True)
    for line in predictions.skipped_lines():
        typer.echo(line, err=True)
    if predictions.num_unread:
        typer.echo(f"nothing was submitted in {predictions.num_unread} of them; `problem` says why", err=True)
    for line in predictions.counts.lines():
        typer.echo(line, err=True)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with open_atomically(path) as file, io.TextIOWrapper(file, encoding="ascii", newline="") as text:
        yield text
