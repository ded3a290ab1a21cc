"""calibrant score"""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, Literal, TextIO

import typer

from bench.commands.guard import READS, WRITES
from bench.commands.options import AsJson, PoolPath
from dsl.whole_file import whole_file


def score(
    pool: PoolPath,
    predictions: Annotated[
        Path, typer.Argument(metavar="PREDICTIONS", help="JSON lines; - reads standard input."), READS
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
    skip_unknown: Annotated[
        bool, typer.Option("--skip-unknown", help="Pass over instances that the pool does not have.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Score model outputs with the published metrics.

    Gives one JSON object a line with the published scorer's keys, and a table.

    Each line of PREDICTIONS names instanceId and model, and gives extractedAnswer, rawResponse, response or text.
    With --json the verdicts go to standard output and the table to standard error. FILE appears complete or not at all;
    `calibrant table` reads it.
    """
    from bench.answers.predictions import Predictions, PredictionScorer, json_line
    from bench.pages.aligned import table_text
    from bench.report.rate_rows import CalibrationTable

    scorer = PredictionScorer(pool, extractor=extractor, with_structure=structure)
    collected = CalibrationTable()
    with _input(predictions) as lines, _output(out) as written:
        checked = Predictions(lines, str(predictions), scorer, skip_unknown=skip_unknown)
        for prediction in checked:
            scored = scorer.score(prediction)
            collected.add(scored.run, scored.line)
            if as_json or written:
                line = json_line(scored.line) + "\n"
                if as_json:
                    sys.stdout.write(line)
                if written:
                    written.write(line)
    if checked.num_skipped:
        typer.echo(f"{checked.num_skipped} lines are for instances that {scorer.pool} does not have", err=True)
    for line in collected.incomplete():
        typer.echo(f"incomplete: {line}", err=True)
    typer.echo(table_text(collected.rows()), err=as_json)


@contextmanager
def _input(path: Path) -> Iterator[BinaryIO]:
    if str(path) == "-":
        yield sys.stdin.buffer
    else:
        with path.open("rb") as lines:
            yield lines


@contextmanager
def _output(path: Path | None) -> Iterator[TextIO | None]:
    if path is None:
        yield None
        return
    with whole_file(path) as file, io.TextIOWrapper(file, encoding="ascii", newline="") as text:
        yield text
