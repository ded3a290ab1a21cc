"""The specification of a release, its manifest, digests of its files, and commitments to gold."""

from __future__ import annotations

import datetime
import hmac
import os
import stat
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import file_digest, sha256
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.options import VERIFY_SECONDS
from calibrant.bench.pools.findings_audit import VERIFY, Verdict, check_file
from calibrant.bench.runs.executors import Progress
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded

# --- Specification of a suite, `suite.toml`: sources of its pools, rows, and the statements of its authors ------------
_NAMESPACE = uuid.UUID("0c5b9e0e-6d0d-5a4b-8a53-5d9d2c8f4a11")

Slug: TypeAlias = Annotated[
    str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,63}$", description="lower-case letters, digits, -")
]
# names of the other entries in folders of pools (`gold`, boards), and names that Windows reserves
RESERVED_NAMES = frozenset({"rows", "certificates", "hardening", "public", "gold", "index", "con", "prn", "aux", "nul"})
RESERVED_NAMES |= {f"{device}{number}" for device in ("com", "lpt") for number in range(10)}
Sentence: TypeAlias = Annotated[str, Meta(min_length=1, max_length=20_000)]


class PoolSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One pool of a suite: items from a seed, from a file, or of the package.

    name: name of its folder, also in addresses
    benchmark, seed, strata, per_stratum, generate, item_options: options of `calibrant generate`
    file: a pool file, relative to the specification; bundled: name of a pool that comes with the package
    harden: options of `calibrant harden`; None: the pool is not hardened
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

    gold: private (the release commits to it, and it is revealed later) or public (it is published)
    master: file with the key of all salts, 64 hexadecimal digits, for private gold; None for public gold
    url: address of the suite, None if it has none
    canary: GUID; by default derived from the name
    statements: key of a question (bench.suites.checklist) -> the authors' statement
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
        """The canary: a warning against training on the items, with the suite's GUID."""
        guid = self.canary or str(uuid.uuid5(_NAMESPACE, self.name))
        return (
            "Benchmark data; it should never appear in training corpora of models that are evaluated on it. "
            f"{self.name}-canary GUID {guid}"
        )


def read_specification(path: Path) -> SuiteSpec:
    """Read a specification; `CalibrantError` names field and problem."""
    return read_toml(path, SuiteSpec)


def resolve_beside(specification: Path, name: str) -> Path:
    """Return the path of a file that a specification names, relative to its folder."""
    return specification.parent / name


# --- Manifests of a suite: digests, commitments to sealed parts, and certificates -------------------------------------
# An unsalted digest would reveal gold, because anyone can list the answers that fit an item and hash each. The salt of
# an item is HMAC-SHA256(master, id), 32 bytes; its leaf is SHA-256(salt, gold). Inner nodes hash a byte 1 before their
# children, leaves a byte 0 (RFC 6962, section 2.1), so that no inner node can pass for a leaf.
# --- The manifest of a release, `public/suite.json` -------------------------------------------------------------------
PUBLIC, GOLD, ROWS = "public", "gold", "rows"
MANIFEST = "suite.json"


class PoolEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A pool of a suite. rows: names of the calibration rows, methods that answered it for comparison."""

    name: str
    benchmark: str
    num_items: int
    rows: tuple[str, ...]


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A released suite.

    url: address of the suite, empty if it has none
    root: Merkle root of the commitments to gold
    sealed: keyed label that hides the name of a file below `gold` -> salted digest of the file
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


# --- Digests of all files of a folder in the format of `sha256sum`, and differences from them -------------------------
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
    """Return file -> digest from a folder's SHA256SUMS; `CalibrantError` for a malformed line."""
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
    """Return file -> how it differs from the folder's digests: changed, missing or not listed."""
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


# --- Commitments to gold: salted digests that reveal nothing, with a Merkle root, so that each item can be opened alone
MASTER_DIGITS = 64
PUBLIC_MASTER = sha256(b"calibrant public gold").hexdigest()  # master of suites with public gold


class Opening(NamedTuple):
    """Proof that an item's gold is the committed one.

    path: for each node from the leaf up to the root, its sibling as ("left" or "right", digest)
    """

    id: str
    salt: str
    gold: str
    path: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Commitments:
    """Merkle tree of a suite's items. leaves: (id, digest), sorted by id."""

    leaves: Sequence[tuple[str, str]]

    @classmethod
    def of_gold(cls, master: str, gold: Iterable[tuple[str, str]]) -> Commitments:
        """Commit to (id, canonical gold) of all items."""
        return cls(sorted((name, commitment(item_salt(master, name), text.encode())) for name, text in gold))

    @property
    def root(self) -> str:
        return self._nodes[-1][0].hex()

    def path(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return (side, digest) of the siblings on the way from a leaf to the root; `KeyError` for an unknown id."""
        index = self._indices[name]
        steps = []
        for level in self._nodes[:-1]:
            sibling = index ^ 1
            if sibling < len(level):
                steps.append(("left" if sibling < index else "right", level[sibling].hex()))
            index //= 2
        return tuple(steps)

    @cached_property
    def _nodes(self) -> list[list[bytes]]:
        return _levels([_leaf(name, digest) for name, digest in self.leaves])

    @cached_property
    def _indices(self) -> dict[str, int]:
        return {name: k for k, (name, _) in enumerate(self.leaves)}


def item_salt(master: str, name: str) -> str:
    """Return the salt of an item or a file, 64 hexadecimal digits."""
    return hmac.digest(bytes.fromhex(master), name.encode("utf-8", "surrogatepass"), "sha256").hex()


def file_label(master: str, name: str) -> str:
    """Return the public label of a file below `gold`, whose name may be an item's id and so reveal sealed facts."""
    return hmac.digest(bytes.fromhex(master), b"name " + name.encode("utf-8", "surrogatepass"), "sha256").hex()[:32]


def file_commitment(master: str, name: str, content: bytes) -> str:
    """Return the salted digest of a file below `gold`."""
    return commitment(item_salt(master, name), content)


def commitment(salt: str, content: bytes) -> str:
    """Return SHA-256 of salt and content."""
    return sha256(bytes.fromhex(salt) + content).hexdigest()


def check_opening(opening: Opening, root: str) -> bool:
    """Return whether the gold, salt and path of an opening give the Merkle root."""
    node = _leaf(opening.id, commitment(opening.salt, opening.gold.encode()))
    for side, digest in opening.path:
        sibling = bytes.fromhex(digest)
        node = _inner(sibling, node) if side == "left" else _inner(node, sibling)
    return node.hex() == root


def read_master(path: Path) -> str:
    """Return the master key in a file; `CalibrantError` for anything but 64 hexadecimal digits."""
    with path.open("rb") as file:
        text = file.read(1_000).decode("ascii", "replace").strip().lower()
    if len(text) != MASTER_DIGITS or not set(text) <= set("0123456789abcdef"):
        raise CalibrantError(f"{path.name}: a master is {MASTER_DIGITS} hexadecimal digits; write 32 random bytes so")
    return text


def _leaf(name: str, digest: str) -> bytes:
    return sha256(b"\x00" + name.encode("utf-8", "surrogatepass") + b"\x00" + bytes.fromhex(digest)).digest()


def _inner(first: bytes, second: bytes) -> bytes:
    return sha256(b"\x01" + first + second).digest()


def _levels(leaves: list[bytes]) -> list[list[bytes]]:
    """Return the levels of the tree from the leaves to the root; a node without a sibling moves up unchanged."""
    levels = [leaves]
    while len(levels[-1]) > 1:
        level = levels[-1]
        paired = [_inner(level[k], level[k + 1]) for k in range(0, len(level) - 1, 2)]
        levels.append(paired + level[len(paired) * 2 :])
    return levels


# --- Certificates of a suite's pool, checked by recounting when it is built and before a board ranks by it
FOLDER = "certificates"  # beside the pool's file


def certificate_names(pool: Path) -> tuple[str, ...]:
    """Return the names of the certificates of a pool's file, in order."""
    return tuple(sorted(path.name for path in (pool.parent / FOLDER).glob("*")))


def certificate_problem(bench: Benchmark[Any], pool: Path, progress: Progress = lambda name, done, total: None) -> str:
    """Check all certificates of a pool; return why the first one is refused or open, empty if all are verified."""
    check = bench.require(VERIFY).check_against(pool)
    names = certificate_names(pool)
    for index, name in enumerate(names):
        progress("certificates", index, len(names))
        result = check_file(pool.parent / FOLDER / name, check, VERIFY_SECONDS)
        if result.verdict is not Verdict.VERIFIED:
            return in_one_line(f"{name}: {result.verdict}: {result.reason}")
    return ""
