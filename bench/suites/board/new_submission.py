"""A folder that a board reads: copies of files of answers, and a card with their digests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.suites.board.submissions import CARD, Card, copy_file, read_card
from calibrant.bench.suites.manifest import Manifest
from calibrant.bench.terminal import making_folder, require_free
from calibrant.dsl.errors import CalibrantError


def write_submission(manifest: Manifest, answers: Sequence[Path], statements: dict[str, Any], out: Path) -> Card:
    """Write a submission to a suite into `out`, which must not be there, or empty; all of it or nothing.

    answers: files called POOL.jsonl, at most one for each pool; statements: fields of the card beside suite and files

    Return the card, as a board reads it.
    """
    require_free(out, "a submission")
    pools = [f"{pool.name}.jsonl" for pool in manifest.pools]
    names = [path.name for path in answers]
    for path in answers:
        if path.name not in pools:
            raise CalibrantError(f"{path}: a file is called as the pool that it answers: {' or '.join(pools)}")
        if names.count(path.name) > 1:
            raise CalibrantError(f"{path}: a second file for the same pool")
    with making_folder(out) as (folder, _):
        folder.mkdir()
        files = {path.name: copy_file(path, folder / path.name) for path in answers}
        stated = statements | {"suite": manifest.name, "suite_version": manifest.release, "files": files}
        try:
            card = msgspec.convert(stated, Card)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"{CARD}: {error}") from None
        (folder / CARD).write_text("".join(_format_lines(card)), encoding="utf-8")
        if read_card(folder.parent, folder.name, manifest) != card:
            raise AssertionError(f"{CARD} does not say what was stated")
    return card


def _format_lines(card: Card) -> Iterator[str]:
    """Yield the card's fields that are not their defaults, tables last; its texts have no characters to escape."""
    fields = {name: value for name, value in msgspec.to_builtins(card).items() if value not in (None, {})}
    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    for name, value in fields.items():
        if name not in tables:
            yield f"{name} = {value if name == 'date' else _format_toml(value)}\n"
    for name, table in tables.items():
        yield f"\n[{name}]\n"
        yield from (f"{_format_toml(key)} = {_format_toml(value)}\n" for key, value in table.items())


def _format_toml(value: str | float) -> str:
    """Return a text or a number as TOML, whose texts are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
