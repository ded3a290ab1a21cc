"""Where compiled kernels are kept: a folder of the user's cache that is named by a digest of all kernel sources.

Compiled code is loaded without asking, so a folder that others can write to is never used.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from platformdirs import user_cache_path

_ROOT = Path(__file__).resolve().parent.parent
_KERNEL_PACKAGES = ("dsl", "solvers", "baselines")
KERNEL_FILES = tuple(sorted(path for package in _KERNEL_PACKAGES for path in (_ROOT / package).rglob("_kernels*.py")))


def cache_folder(compiler_version: str) -> Path:
    """The folder, made if need be; where the home is read-only one beside the temporary files, for one boot."""
    digest = hashlib.sha256(compiler_version.encode())
    for path in KERNEL_FILES:
        digest.update(path.read_bytes())
    name = f"kernels-{digest.hexdigest()[:16]}"
    folder = user_cache_path("calibrant") / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return private_folder(Path(tempfile.gettempdir()), f"calibrant-{name}")
    return folder


def private_folder(parent: Path, name: str) -> Path:
    """A folder that only this user can write to: the one of that name, or a new one if that is somebody else's."""
    folder = parent / f"{name}-{_user()}"
    with suppress(OSError):
        folder.mkdir(mode=0o700)
    with suppress(OSError):
        state = folder.lstat()
        others = state.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if stat.S_ISDIR(state.st_mode) and state.st_uid == _user() and not others:
            return folder
    return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))


def _user() -> int:
    """0 where there are no user numbers, and then files have none either."""
    return os.getuid() if hasattr(os, "getuid") else 0
