"""Versions that must be equal on all machines of a run: results depend on nothing else of a machine."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from calibrant.bench.version import program_version

PACKAGES = ("dsl", "solvers", "audits", "baselines", "bench")
LIBRARIES = (
    "numpy",
    "numba",
    "msgspec",
    "python-sat",
    "pysmt",
    "z3-solver",
    "distributed",
    "causal-learn",
    "gies",
    "pgmpy",
    "scipy",
)
ABSENT = "absent"


@cache
def versions() -> Mapping[str, str]:
    """Return the versions in this process: of Python, our code, and the libraries that results come from."""
    return {
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "calibrant": f"{program_version()} with code {_code()}",
        **{name: _version(name) for name in LIBRARIES},
    }


def difference(local: Mapping[str, str], remote: Mapping[str, str]) -> str:
    """Return the first thing that differs, as "numpy 2.4.6 here, 2.3.0 there"; empty if nothing does."""
    for name in [*local, *(remote.keys() - local.keys())]:
        local_version, remote_version = local.get(name, ABSENT), remote.get(name, ABSENT)
        if local_version != remote_version:
            return f"{name} {local_version} here, {remote_version} there"
    return ""


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ABSENT


def _code() -> str:
    """Return a digest of our sources: two checkouts may have one version."""
    folders = {name: Path(__file__).resolve().parents[3] / name for name in PACKAGES}
    digest = hashlib.sha256()
    for name, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            digest.update(f"{name}/{path.relative_to(folder).as_posix()}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:12]
