"""calibrant score"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TextIO

import typer

from bench.commands.guard import READS, WRITES
from bench.commands.options import AsJson, IdField, ModelField, TextField
from dsl.errors import CalibrantError
from dsl.whole_file import whole_file

if TYPE_CHECKING:
    from bench.answers.predictions import PoolItems, Predictions
    from bench.answers.replies import ReplyScorer
    from bench.answers.verdicts import PredictionScorer


def score(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="POOL... PREDICTIONS",
            help="Pool files, then JSON lines, also compressed (.gz); - reads standard input.",
        ),
        READS,
    ],
    extractor: Annotated[
        Literal["paper", "published"], typer.Option(help="How a response text becomes an answer.")
    ] = "paper",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the verdicts there, as JSON lines."), WRITES
    ] = None,
    structure: Annotated[
        bool, typer.Option("--structure", help="Also compare functional parents and local functions with gold.")
    ] = False,
    skip_unknown: Annotated[bool, typer.Option("--skip-unknown", help="Pass over instances that no pool has.")] = False,
    id_field: IdField = None,
    text_field: TextField = None,
    model_field: ModelField = None,
    as_json: AsJson = False,
) -> None:
    """Score model outputs with the published metrics.

    Gives one JSON object a line with the published scorer's keys, and a table.

    Each line of PREDICTIONS names an instance (instanceId, id, item_id, task_id or sample_id) and a model, and gives an
    answer: extractedAnswer, rawResponse, response, text, completion, output, answer, choices or messages, as text,
    object or chat. What was recognised is said on standard error. Several answers of a model to an instance are its
    samples: mean, pass@k and majority. A field seconds is what the answer took.

    On pools of episodes a line may give steps instead, as records of runs have them: they are replayed first, and a
    false one is refused by its number. An answer without steps is submitted at once. On CauSim pools an answer is the
    last JSON object of the response, and a wrong one is explained node by node.

    With --json the verdicts go to standard output and the tables to standard error. FILE appears complete or not at
    all; `calibrant table` reads it.
    """
    from bench.answers.fields import FieldNames
    from bench.answers.verdicts import json_line
    from bench.benchmarks.registry import one_benchmark
    from bench.commands.table import print_rows
    from bench.report.rate_rows import CalibrationTable

    if len(paths) < 2:
        raise typer.BadParameter("give at least one pool, and the predictions as the last argument")
    *pools, file = paths
    collected = CalibrationTable(one_benchmark(pools).measures)
    scorer, read = _scorer(pools, extractor=extractor, structure=structure)
    hint = "; --skip-unknown passes over such lines"
    fields = FieldNames(id_field, text_field, model_field)
    predictions = read(file, skip_unknown=skip_unknown, hint=hint, fields=fields)
    with _output(out) as written:
        for prediction in predictions:
            scored = scorer.score(prediction)
            collected.add(scored.origin, scored.line)
            if as_json or written:
                line = json_line(scored.line) + "\n"
                if as_json:
                    sys.stdout.write(line)
                if written:
                    written.write(line)
    _tell(file, predictions, scorer.items)
    print_rows(collected, err=as_json)


def _scorer(
    pools: list[Path], *, extractor: str, structure: bool
) -> tuple[PredictionScorer | ReplyScorer, Callable[..., Predictions]]:
    """What scores predictions for these pools, and what reads them."""
    from bench.answers.episodes import EpisodePredictions, EpisodeScorer
    from bench.answers.predictions import Predictions
    from bench.answers.replies import ReplyPredictions, ReplyScorer
    from bench.answers.verdicts import PredictionScorer
    from bench.benchmarks.registry import DEFAULT, one_benchmark

    benchmark = one_benchmark(pools)
    if benchmark.name == DEFAULT:
        scorer = PredictionScorer(pools, extractor=extractor, with_structure=structure)
        return scorer, partial(Predictions, pools=scorer.items)
    if structure or extractor != "paper":
        raise CalibrantError(f"--structure and --extractor: {benchmark.title} has no such thing here")
    if benchmark.transcripts:
        episodes = EpisodeScorer(pools)
        return episodes, partial(EpisodePredictions, scorer=episodes)
    replies = ReplyScorer(pools)
    return replies, partial(ReplyPredictions, scorer=replies)


def _tell(file: Path, predictions: Predictions, pools: Sequence[PoolItems]) -> None:
    """What was recognised in the predictions, passed over and not submitted."""
    from bench.answers.lines import shown_name

    typer.echo(f"{shown_name(file)}: {predictions.recognised}", err=True)
    if predictions.num_skipped:
        names = ", ".join(pool.names[0] for pool in pools)
        have = "does not have" if len(pools) == 1 else "do not have"
        typer.echo(f"{predictions.num_skipped} lines are for instances that {names} {have}", err=True)
    if predictions.num_unread:
        typer.echo(f"nothing was submitted in {predictions.num_unread} of them; `problem` says why", err=True)


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with whole_file(path) as file, io.TextIOWrapper(file, encoding="ascii", newline="") as text:
        yield text
