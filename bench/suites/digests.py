"""Digests of all files of a folder, as `sha256sum` writes them, and what differs from them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from hashlib import file_digest
from pathlib import Path

from calibrant.dsl.errors import CalibrantError, short_repr

SUMS = "SHA256SUMS"
MAX_SUMS_BYTES = 1 << 26
_DIGITS = 64


def write_sums(folder: Path) -> None:
    """Write the digests of all files of a folder, sorted by name."""
    lines = [f"{digest}  {name}\n" for name, digest in sorted(tree_digests(folder).items()) if name != SUMS]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def tree_digests(folder: Path) -> dict[str, str]:
    """Return the digest of each file below a folder; `CalibrantError` for a link or a device."""
    return {name: sha256_of(folder / name) for name in file_names(folder)}


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as content:
        return file_digest(content, "sha256").hexdigest()


def read_sums(folder: Path) -> dict[str, str]:
    """Return the digests that a folder states; `CalibrantError` for a line of another form."""
    path = folder / SUMS
    if path.is_symlink() or not path.is_file():
        raise CalibrantError(f"{folder.name}/{SUMS}: missing")
    with path.open("rb") as file:
        raw = file.read(MAX_SUMS_BYTES + 1)
    if len(raw) > MAX_SUMS_BYTES:
        raise CalibrantError(f"{folder.name}/{SUMS}: larger than {MAX_SUMS_BYTES} bytes")
    sums: dict[str, str] = {}
    for number, line in enumerate(raw.decode("utf-8", "replace").splitlines(), 1):
        digest, separator, name = line.partition("  ")
        if not separator or len(digest) != _DIGITS or name in sums:
            raise CalibrantError(f"{folder.name}/{SUMS}: line {number}: not a digest and a name: {short_repr(line)}")
        sums[name] = digest
    return sums


def differences(folder: Path) -> dict[str, str]:
    """Return, by file, what differs from the folder's digests: changed, missing, not listed."""
    stated, actual = read_sums(folder), tree_digests(folder)
    actual.pop(SUMS, None)
    return dict(sorted(_differences(stated, actual)))


def _differences(stated: Mapping[str, str], actual: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name in stated.keys() | actual.keys():
        if name not in actual:
            yield name, "missing"
        elif name not in stated:
            yield name, f"not listed in {SUMS}"
        elif stated[name] != actual[name]:
            yield name, f"changed: its SHA-256 is {actual[name][:8]}, not {stated[name][:8]}"


def file_names(folder: Path) -> Iterator[str]:
    """Yield the names of all files below a folder; `CalibrantError` for a link or a device."""
    for parent, folders, files in os.walk(folder, followlinks=False):
        for name in sorted([*folders, *files]):
            path = Path(parent, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                yield path.relative_to(folder).as_posix()
            elif not stat.S_ISDIR(mode):
                raise CalibrantError(f"{path.relative_to(folder).as_posix()}: a link or a device, not a file")
