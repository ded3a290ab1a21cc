"""calibrant list"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.bench.commands.options import AsJson, PoolPath
from calibrant.dsl.errors import CalibrantError, in_one_line

if TYPE_CHECKING:
    from calibrant.bench.core.benchmark import Benchmark

DEFAULT_LIMIT = 20
COLUMNS = {"id": "Id", "setting": "Setting", "suite": "Suite"}


def list_items(
    pool: PoolPath,
    setting: Annotated[
        str | None, typer.Option("--setting", metavar="NAME", help="Only items of this setting.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=0, help="So many lines at most; 0 lists all.")] = DEFAULT_LIMIT,
    as_json: AsJson = False,
) -> None:
    """List the items of a pool: id, setting and suite, in the order of the file. With --json an object a line."""
    from calibrant.bench.core.registry import benchmark_of

    of = benchmark_of(pool)
    items = of.read_pool(pool).items
    rows = _rows(of, items, setting)
    number = 0
    page: list[Mapping[str, str]] = []
    for row in rows:
        number += 1
        if limit and number > limit:
            continue
        if as_json:
            typer.echo(json.dumps(row))
        else:
            page.append(row)
    if not number and setting is not None:
        settings = dict.fromkeys(item.setting for item in items)
        raise CalibrantError(f"{pool.name} has no item of setting {setting}; it has {', '.join(settings)}")
    if not as_json:
        _print(page, number)


def _rows(of: Benchmark[Any], items: Sequence[Any], setting: str | None) -> Iterator[dict[str, str]]:
    for item in items:
        if setting is None or item.setting == setting:
            yield {"id": item.id, "setting": item.setting, "suite": of.suite_of(item)}


def _print(rows: Sequence[Mapping[str, str]], number: int) -> None:
    """Print a table; columns that are empty throughout are left out."""
    from calibrant.bench.pages.aligned import aligned

    columns = [key for key in COLUMNS if key == "id" or any(row[key] for row in rows)]
    if rows:
        typer.echo(
            aligned([COLUMNS[key] for key in columns], [[in_one_line(row[key]) for key in columns] for row in rows])
        )
    more = "" if len(rows) == number else "; --limit 0 for all, --json for scripts"
    typer.echo(f"{len(rows)} of {number} items{more}" if more else f"{number} items")
