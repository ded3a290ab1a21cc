"""Sets of hypotheses in `calibrant score --set-size` and `calibrant table`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from calibrant.bench.commands.options import refuse_options
from calibrant.bench.help_groups import METHOD

SetSize: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--set-size",
        min=1,
        max=1_000,
        help="Lines hold so many hypotheses each: what do they recover?",
        rich_help_panel=METHOD,
    ),
]


def score_and_print(
    paths: Sequence[Path], size: int, out: Path | None, options: Mapping[str, object], *, as_json: bool
) -> None:
    """Score the sets of a file of predictions; options: given ones that sets have none of."""
    from calibrant.bench.sets.scoring import score_sets
    from calibrant.bench.sets.table import set_rows
    from calibrant.dsl.atomic_write import write_pieces

    refuse_options({option: bool(value) for option, value in options.items()}, "sets of hypotheses have none of this")
    if len(paths) < 2:
        raise typer.BadParameter("give at least one pool, and the predictions as the last argument")
    lines = [score.to_dict() for score in score_sets(paths[:-1], paths[-1], size)]
    if out is not None:
        write_pieces(out, (json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    if as_json:
        for line in lines:
            typer.echo(json.dumps(line))
    _print_rows(set_rows(lines), err=as_json)


def print_set_table(paths: Sequence[Path], *, as_json: bool) -> bool:
    """Print the table of files of verdicts on sets; return whether the first is such a file."""
    from calibrant.bench.sets.table import is_set_file, json_lines, read_set_lines, set_rows

    if not paths or not is_set_file(paths[0]):
        return False
    rows = set_rows(read_set_lines(paths))
    if as_json:
        typer.echo(json_lines(rows))
    else:
        _print_rows(rows, err=False)
    return True


def _print_rows(rows: Sequence[Mapping[str, object]], *, err: bool) -> None:
    from calibrant.bench.sets.table import set_table

    for line in set_table(rows):
        typer.echo(line, err=err)
