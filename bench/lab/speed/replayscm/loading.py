"""Loading of an 86 MB pool file in the official format, made on the fly and deleted afterwards.

Rivals: the plain libyaml safe loader, which gives dictionaries and checks nothing, and the native file of the same
pool. Items are whole pools, each of its own format.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import yaml

from calibrant.bench.lab.speed.comparison import Comparison, Discipline, Rival, Row, measure
from calibrant.bench.lab.speed.options import Options
from calibrant.bench.lab.speed.replayscm.official_file import MEGABYTE, write_official_file
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool

TOPIC = "load"
NUM_BYTES = 86 * MEGABYTE
ROUNDS = 3


def rows(options: Options) -> Iterator[Row]:
    if options.official is None:
        yield Row(TOPIC, "86 MB", "all", note="left out: needs a pool file in the official YAML format, see --pool")
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        comparison = _comparison(options.official, Path(folder), round(NUM_BYTES * options.scale))
        yield from measure(comparison, Discipline(min(options.discipline.rounds, ROUNDS), 0.0))


def _comparison(source: Path, folder: Path, num_bytes: int) -> Comparison:
    official, native, lean = (folder / name for name in ("official.yaml", "native.jsonl", "lean.jsonl"))
    num_records = write_official_file(source, official, num_bytes)
    write_pool(read_pool(official), native)
    write_pool(read_pool(official, keep_results=False), lean)
    rivals = [
        Rival("official, results as text", lambda: read_pool(official)),
        Rival("official, without results", lambda: read_pool(official, keep_results=False)),
        Rival("official, safe_load of libyaml", lambda: plain_yaml(official)),
        Rival("native, with results", lambda: read_pool(native)),
        Rival("native, results dropped on reading", lambda: read_pool(native, keep_results=False)),
        Rival("native, written without results", lambda: read_pool(lean)),
    ]
    sizes = {path.name: path.stat().st_size / MEGABYTE for path in (official, native, lean)}
    counts = {"problems": num_records} | {f"MB {name}": size for name, size in sizes.items()}
    return Comparison(TOPIC, f"{sizes[official.name]:.0f} MB", "pool", rivals, counts=counts)


def plain_yaml(path: Path) -> object:
    """Rival: what everybody writes first."""
    with path.open(encoding="utf-8") as file:
        return yaml.load(file, Loader=yaml.CSafeLoader)
