"""Registry of the benchmarks, recognition of the benchmark of a file, and the bundled pools."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from calibrant.bench.core.benchmark import Benchmark, load_benchmark
from calibrant.bench.core.capabilities import C, Capability
from calibrant.bench.core.names import FIRST, TITLES
from calibrant.bench.core.scoring import ID_FIELDS
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.parse_limits import TooLargeError, load_json
from calibrant.dsl.records import FORMAT, pool_head
from calibrant.dsl.text import known_names

# --- The benchmarks, and the benchmark of a pool file. Adapters are imported at first use
NAMES = tuple(TITLES)
LOGS = {"metric_type": "blickets"}  # field that the first line of a log (a file of items and answers) has -> benchmark
ITEM_FIELDS = {"sealed", "training", "variables", "task"}  # fields of items that no prediction has
HEADER_EXAMPLE = '{"format": "calibrant-pool", "version": 1, "name": "mine"}'
LINE_FIELDS = {"item", *ID_FIELDS}  # fields of predictions, records and traces that no header of a pool has
PUBLIC_FIELDS = {"id", "prompt", "digest", "canary"}  # fields of the items that suites and data sets publish
DEFAULT = "replayscm"  # benchmark of files that name none: the published YAML, native files older than the field


def benchmark(name: str) -> Benchmark[Any]:
    """Return the benchmark of that name; `CalibrantError` for an unknown one lists the names."""
    if name not in NAMES:
        raise CalibrantError(f"unknown benchmark {short_repr(name)}; {known_names(name, NAMES)}")
    return load_benchmark(name)


def stated_name(name: object) -> str:
    """Return the benchmark's name that a record or line states; DEFAULT for the None of one that states none."""
    return name if isinstance(name, str) else DEFAULT


def is_stated(name: str) -> bool:
    """Return whether records and lines state this benchmark's name; those of DEFAULT do not, as they are older."""
    return name != DEFAULT


def benchmarks() -> list[Benchmark[Any]]:
    """Return all benchmarks."""
    return [benchmark(name) for name in NAMES]


def sole_provider(key: Capability[C]) -> C:
    """Return the provider of a capability that exactly one benchmark has."""
    (only,) = (bench for bench in benchmarks() if bench.has(key))
    return only.require(key)


def benchmark_of(path: Path) -> Benchmark[Any]:
    """Return the benchmark that a pool file names in its header, or whose published format its first line has.

    `PoolError` if the file cannot be read or names an unknown benchmark.
    """
    name = _stated_benchmark(path)
    if name not in NAMES:
        names = ", ".join(NAMES)
        raise PoolError(f"a pool of {short_repr(name)}; this program knows {names}", file=path.name, field="benchmark")
    return benchmark(str(name))


def benchmark_of_item(item: Any) -> Benchmark[Any]:
    """Return the benchmark that an item belongs to; `CalibrantError` if it is no item."""
    name = getattr(item, "benchmark", None)
    if not isinstance(name, str) or not hasattr(item, "task"):
        raise CalibrantError(f"{short_repr(type(item).__name__)} is no item; `load_pool(path)` has items")
    return benchmark(name)


def one_benchmark(paths: Iterable[Path]) -> Benchmark[Any]:
    """Return the common benchmark of several pools; `CalibrantError` if they have more than one."""
    path_by_name = {benchmark_of(path).name: path for path in paths}
    if len(path_by_name) > 1:
        listed = ", ".join(f"{path.name} ({name})" for name, path in path_by_name.items())
        raise CalibrantError(f"pools of several benchmarks: {listed}; give those of one at a time")
    return benchmark(next(iter(path_by_name), DEFAULT))


def log_benchmark(path: Path) -> Benchmark[Any] | None:
    """Return the benchmark of a log of episodes, a file that holds items and answers; None for any other file."""
    name = _log_of(_header(path))
    return None if name is None else benchmark(name)


def is_native_pool(path: Path) -> bool:
    """Return whether a file begins with the header of a native pool; False for standard input."""
    try:
        header = _header(path) if path.is_file() else None
    except PoolError:  # a truncated compressed file: its reader raises the error
        return False
    return isinstance(header, dict) and header.get("format") == FORMAT


def _log_of(header: Any) -> str | None:
    return next((name for field, name in LOGS.items() if isinstance(header, dict) and field in header), None)


def _header(path: Path) -> Any:
    """Return the parsed first line; None if it is not JSON."""
    try:
        return load_json(pool_head(path))
    except PoolError as error:
        raise error.with_location(file=path.name or str(path)) from None
    except (ValueError, TooLargeError):  # the file's reader raises a more precise error
        return None


def _stated_benchmark(path: Path) -> Any:
    """Return the header's benchmark; DEFAULT without a header, so that the pool's reader raises the error."""
    header = _header(path)
    if _log_of(header) is not None:
        raise PoolError("a log of episodes that were played, no pool; `calibrant score` reads it alone", file=path.name)
    if isinstance(header, dict) and "format" not in header:
        from calibrant.dsl.causalab.configs import is_config  # takes 0.1 s, needed for such files alone

        if is_config(header):
            return "causalab"
    if isinstance(header, dict) and header.keys() >= PUBLIC_FIELDS:
        problem = (
            "no pool, but the public items of a suite or data set: each line holds what to send, in the fields system"
            " and prompt, and answers name its id; the pool is with who made it"
        )
        raise PoolError(problem, file=path.name)
    if isinstance(header, dict) and "format" not in header and not LINE_FIELDS.isdisjoint(header):
        keys = short_repr(", ".join(header)).strip("'\"")
        remedy = f"; a pool begins with a header: put a line before it such as {HEADER_EXAMPLE}"
        remedy = "" if ITEM_FIELDS.isdisjoint(header) else remedy
        raise PoolError(f"no pool: its first line is about an instance, with the fields {keys}{remedy}", file=path.name)
    return header.get("benchmark", DEFAULT) if isinstance(header, dict) else DEFAULT


# --- The pools that come with the package, each in its benchmark's folder ---------------------------------------------
_BENCH = Path(__file__).resolve().parent.parent


def bundled_files() -> Mapping[str, tuple[Path, ...]]:
    """Return benchmark -> its bundled pool files, without extras, in the order of benchmarks."""
    return {bench.name: tuple(_file(bench.name, pool) for pool in bench.bundled) for bench in benchmarks()}


def bundled_sample(name: str) -> Path:
    """Return the bundled pool file of that name, with or without the prefix `sample_`; `ValueError` if none is."""
    benchmark_by_pool = {pool: bench.name for bench in benchmarks() for pool in (*bench.bundled, *bench.bundled_extras)}
    name = name.removeprefix("sample_") if name not in benchmark_by_pool else name
    if name not in benchmark_by_pool:
        raise ValueError(f"unknown pool '{name}'; known: {', '.join(benchmark_by_pool)}")
    return _file(benchmark_by_pool[name], name)


def bundled_pool(setting: str) -> Path:
    """Return the bundled pool file of a ReplaySCM setting, as `generate --setting` names it; `ValueError` if none."""
    settings = [path.stem.removeprefix("sample_").replace("_", "-") for path in bundled_pools()]
    if setting not in settings:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(settings)}")
    return bundled_pools()[settings.index(setting)]


def bundled_pools() -> tuple[Path, ...]:
    """Return the bundled pool files of ReplaySCM (FIRST), in the order of its settings."""
    return bundled_files()[FIRST]


def _file(benchmark: str, pool: str) -> Path:
    return _BENCH / benchmark / "data" / f"sample_{pool}.jsonl"
