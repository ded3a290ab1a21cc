"""Specification of a suite, `suite.toml`: sources of its pools, rows, and the statements of its authors."""

from __future__ import annotations

import datetime
import uuid
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.bench.toml_file import read_toml

_NAMESPACE = uuid.UUID("0c5b9e0e-6d0d-5a4b-8a53-5d9d2c8f4a11")

Slug: TypeAlias = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="lower-case letters, digits, -")
]
# beside the folders of pools in `gold`, beside their pages on a board, and names that Windows does not take
RESERVED_NAMES = frozenset({"rows", "certificates", "hardening", "public", "gold", "index", "con", "prn", "aux", "nul"})
RESERVED_NAMES |= {f"{device}{number}" for device in ("com", "lpt") for number in range(10)}
Sentence: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20_000)]


class PoolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One pool of a suite: items from a seed, from a file, or of the package.

    name: of its folder and in addresses
    benchmark, seed, strata, per_stratum, generate, item_options: as `calibrant generate` takes them
    file: a pool beside the specification; bundled: one that comes with the package
    harden: options of `calibrant harden`; absent: the pool stays as it is
    audit: options of `calibrant audit`; rows: protocols of `calibrant run`
    """

    name: Slug
    benchmark: str | None = None
    seed: int | None = None
    strata: str = "all"
    per_stratum: Annotated[int, Meta(ge=1, le=100_000)] | None = None
    generate: dict[str, Any] = {}
    item_options: tuple[str, ...] = ()
    file: str | None = None
    bundled: str | None = None
    harden: dict[str, Any] | None = None
    audit: dict[str, Any] = {}
    rows: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.name in RESERVED_NAMES:
            raise ValueError(f"a pool cannot be called {self.name}: releases and boards have files of that name")
        sources = [name for name in ("seed", "file", "bundled") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(f"give one of seed, file and bundled, not {' and '.join(sources) or 'none'}")
        if self.seed is not None and self.benchmark is None:
            raise ValueError("a pool from a seed needs its benchmark")
        if self.seed is None and (self.generate or self.item_options or self.per_stratum or self.strata != "all"):
            raise ValueError("strata, per_stratum, generate and item_options need a seed")


class SuiteSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename={"pools": "pool"}):
    """A suite.

    gold: private gold is committed to and revealed later; public gold is there for everybody
    master: of private gold, a file with 64 hexadecimal digits, the key of all salts
    url: address of the suite, where it has one
    canary: GUID; by default one that follows from the name
    statements: of its authors, by the key of a question (bench.suites.checklist)
    """

    name: Slug
    version: Annotated[str, Meta(pattern=r"^\d+\.\d+(\.\d+)?$", description="numbers with dots, 1.0 or 1.0.0")]
    title: Sentence
    summary: Sentence
    license: Sentence
    url: Annotated[str, Meta(pattern=r"^https?://\S+$", max_length=2_000, description="http or https")] | None = None
    creators: Annotated[tuple[Sentence, ...], Meta(min_length=1)]
    date: datetime.date
    pools: Annotated[tuple[PoolSpec, ...], Meta(min_length=1)]
    gold: Literal["private", "public"] = "private"
    master: str | None = None
    canary: str | None = None
    citation: str = ""
    formats: Annotated[tuple[Literal["jsonl", "parquet"], ...], Meta(min_length=1)] = ("jsonl", "parquet")
    statements: dict[str, Sentence] = {}

    def __post_init__(self) -> None:
        names = [pool.name for pool in self.pools]
        if len(set(names)) < len(names):
            raise ValueError("two pools have the same name")
        if (self.gold == "private") is not (self.master is not None):
            raise ValueError("private gold needs a master, a file with 64 hexadecimal digits; public gold has none")
        if self.canary is not None:
            uuid.UUID(self.canary)

    @property
    def slug(self) -> str:
        """Return name and version, as folders and addresses have them."""
        return f"{self.name}-{self.version}"

    @property
    def canary_text(self) -> str:
        """Return the warning with the suite's GUID."""
        guid = self.canary or str(uuid.uuid5(_NAMESPACE, self.name))
        return (
            "Benchmark data; it should never appear in training corpora of models that are evaluated on it. "
            f"{self.name}-canary GUID {guid}"
        )


def read_specification(path: Path) -> SuiteSpec:
    """Return the specification in a file; `CalibrantError` names field and problem."""
    return read_toml(path, SuiteSpec)


def resolve_beside(specification: Path, name: str) -> Path:
    """Return the path of a file that a specification names, relative to its folder."""
    return specification.parent / name
