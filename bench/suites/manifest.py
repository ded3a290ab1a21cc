"""The manifest of a release, `public/suite.json`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded

PUBLIC, GOLD, ROWS = "public", "gold", "rows"
MANIFEST = "suite.json"


class PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pool of a suite; rows: its calibration rows."""

    name: str
    benchmark: str
    num_items: int
    rows: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A released suite.

    url: address of the suite; empty where it has none
    root: Merkle root of the commitments to gold
    sealed: salted digest of each file below `gold`, by a keyed label that hides its name
    """

    name: str
    release: str
    title: str
    summary: str
    license: str
    url: str
    date: str
    gold: Literal["private", "public"]
    canary: str
    root: str
    pools: tuple[PoolEntry, ...]
    sealed: dict[str, str]
    program: str
    format: Literal["calibrant-suite"] = "calibrant-suite"
    version: Literal[1] = 1

    @property
    def slug(self) -> str:
        """Return name and version, as folders and addresses have them."""
        return f"{self.name}-{self.release}"


def read_manifest(suite: Path) -> Manifest:
    """Return the manifest of a suite's folder; `CalibrantError` if there is none."""
    path = suite / PUBLIC / MANIFEST
    if not path.is_file():
        raise CalibrantError(f"{suite}: no {PUBLIC}/{MANIFEST} in it; `calibrant release` writes one")
    try:
        return decode_json(read_bounded(path), Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(f"{path}: not the manifest of a suite: {' '.join(str(error).split())[:200]}") from None
