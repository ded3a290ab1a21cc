"""Command `calibrant list`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.bench.commands.guard import WRITES
from calibrant.bench.commands.options import AsJson, PoolPath
from calibrant.dsl.errors import CalibrantError, in_one_line

if TYPE_CHECKING:
    from markupsafe import Markup

    from calibrant.audits.why import Why
    from calibrant.bench.core.benchmark import Benchmark

DEFAULT_LIMIT = 20
COLUMNS = {"id": "Id", "setting": "Setting", "suite": "Suite", "fit": "Fit", "reason": "Why"}


def list_items(
    pool: PoolPath,
    setting: Annotated[
        str | None, typer.Option("--setting", metavar="NAME", help="Only items of this setting.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="So many lines at most; 0 lists all.")] = DEFAULT_LIMIT,
    why: Annotated[bool, typer.Option("--why", help="Also how many hypotheses fit, and why an item is open.")] = False,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write one page of the listed items and why each is open."),
        WRITES,
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the items of a pool in the order of the file: id, setting and suite; with --why the reason of each.

    With --json an object a line.
    """
    from calibrant.bench.core.registry import benchmark_of

    of = benchmark_of(pool)
    items = of.items.read_pool(pool).items
    chosen = [k for k, item in enumerate(items) if setting is None or item.setting == setting]
    if not chosen and setting is not None:
        settings = dict.fromkeys(item.setting for item in items)
        raise CalibrantError(f"{pool.name} has no item of setting {setting}; it has {', '.join(settings)}")
    places = chosen[:limit] if limit else chosen
    if html is not None:
        _write_index(of, pool, (items[k] for k in places), html)
        return
    rows = _rows(of, (items[k] for k in places), why=why)
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
    else:
        _print(list(rows), len(chosen))


def _rows(of: Benchmark[Any], items: Iterator[Any], *, why: bool) -> Iterator[dict[str, str]]:
    from calibrant.bench.core.capabilities import STATISTICS

    group = of.require(STATISTICS).group
    for item in items:
        row = {"id": item.id, "setting": item.setting, "suite": group(item)}
        if why:
            reason = _explain(of, item)
            row |= {"fit": "", "reason": reason} if isinstance(reason, str) else _reason_columns(reason)
        yield row


def _reason_columns(why: Why) -> dict[str, str]:
    return {"fit": why.count.in_words(), "reason": why.reason_text}


def _explain(of: Benchmark[Any], item: Any) -> Why | str:
    """Return the reason, or why there is none."""
    from calibrant.bench.pages.capabilities import EXPLANATIONS

    try:
        return of.require(EXPLANATIONS).explain(item, ())
    except CalibrantError as error:
        return str(error)


def _write_index(of: Benchmark[Any], pool: Path, items: Iterator[Any], html: Path) -> None:
    from calibrant.bench.pages.capabilities import EXPLANATIONS
    from calibrant.bench.pages.why.index import MAX_EMBEDDED, index_page
    from calibrant.dsl.atomic_write import write_atomically

    explanations, notes = of.require(EXPLANATIONS), []

    def pages() -> Iterator[tuple[Why, Markup | None]]:
        number = 0
        for item in items:
            reason = _explain(of, item)
            if isinstance(reason, str):
                notes.append(reason)
                continue
            yield reason, explanations.body(reason, f"i{number}") if number < MAX_EMBEDDED else None
            number += 1

    write_atomically(html, index_page(pool.name, pages()))
    for note in notes:
        typer.echo(in_one_line(note), err=True)
    typer.echo(f"page written to {html}", err=True)


def _print(rows: Sequence[Mapping[str, str]], number: int) -> None:
    """Print a table; columns that are empty throughout are left out."""
    from calibrant.bench.pages.aligned import aligned

    columns = [key for key in COLUMNS if key == "id" or any(row.get(key) for row in rows)]
    if rows:
        body = [[in_one_line(row[key]) for key in columns] for row in rows]
        typer.echo(aligned([COLUMNS[key] for key in columns], body))
    more = "" if len(rows) == number else "; --limit 0 for all, --json for scripts"
    typer.echo(f"{len(rows)} of {number} items{more}" if more else f"{number} items")
