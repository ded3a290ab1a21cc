"""The lock of a release: digests of its inputs and versions of what wrote it, which a second build must share."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import msgspec

from calibrant.bench.pools.bundled import bundled_sample
from calibrant.bench.suites.digests import sha256_of
from calibrant.bench.suites.specification import SuiteSpec, resolve_beside
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded

FORMAT, VERSION = "calibrant-suite-lock", 1


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Inputs of a release.

    program: version of calibrant; parquet: version of pyarrow, null without Parquet files
    inputs: SHA-256 of specification, master and pools, by their names in the specification
    """

    program: str
    parquet: str | None
    inputs: dict[str, str]
    format: str = FORMAT
    version: int = VERSION


def make_lock(path: Path, spec: SuiteSpec) -> Lock:
    """Return the lock of a specification on this machine; `OSError` names an input that is missing."""
    inputs = {"suite.toml": sha256_of(path)}
    if spec.master is not None:
        inputs["master"] = sha256_of(resolve_beside(path, spec.master))
    for pool in spec.pools:
        if pool.file is not None:
            inputs[f"pool {pool.name}"] = sha256_of(resolve_beside(path, pool.file))
        elif pool.bundled is not None:
            try:
                inputs[f"pool {pool.name}"] = sha256_of(bundled_sample(pool.bundled))
            except ValueError as error:
                raise CalibrantError(f"{path.name}: pool {pool.name}: {error}") from None
    return Lock(program_version(), _pyarrow_version() if "parquet" in spec.formats else None, inputs)


def read_lock(path: Path) -> Lock:
    """Return the lock in a file; `CalibrantError` for anything else."""
    try:
        return decode_json(read_bounded(path), Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(f"{path.name}: not a lock of a suite: {' '.join(str(error).split())[:200]}") from None


def require_equal(lock: Lock, actual: Lock, name: str) -> None:
    """Raise `CalibrantError` naming what differs from a lock."""
    for field, stated, value in (
        ("version of calibrant", lock.program, actual.program),
        ("version of pyarrow", lock.parquet, actual.parquet),
        *((key, lock.inputs.get(key), actual.inputs.get(key)) for key in sorted(lock.inputs | actual.inputs)),
    ):
        if stated != value:
            raise CalibrantError(f"{name}: {field} is {value or 'missing'}, the lock has {stated or 'none'}")


def _pyarrow_version() -> str:
    try:
        return metadata.version("pyarrow")
    except metadata.PackageNotFoundError:
        message = "Parquet files need pyarrow: pip install 'calibrant[hub]', or formats = [\"jsonl\"] in suite.toml"
        raise CalibrantError(message) from None
