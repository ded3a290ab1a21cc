"""Submissions to a board: a folder each, with a card and a file of answers for each pool. Nothing in them is believed.

Bounds: number and size of files, names, ordinary files only. Each file is copied before it is read, so that what was
checked is what is scored.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.bench.suites.board.lookalikes import is_plain, skeleton
from calibrant.bench.suites.manifest import Manifest
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr

CARD = "card.toml"
ROW_SUBMITTER = "row of the suite"  # what boards show for calibration rows
MAX_SUBMISSIONS = 2_000
MAX_FILES = 100  # of a submission
MAX_CARD_BYTES = 1 << 16
MAX_FILE_BYTES = 1 << 26
MAX_SUBMISSION_BYTES = 1 << 28  # of its files together
MAX_BOARD_BYTES = 1 << 34  # of all submissions together: they are copied before they are read
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BLOCK = 1 << 20
_PACKED = (b"\x1f\x8b", b"PK")  # gzip and zip: a few bytes of them can hold anything

Line: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 60)]


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tokens that a system read and wrote, as its submitter states them."""

    input: Count
    output: Count


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Statements of a submitter about a submission; files: SHA-256 of each file of answers."""

    system: Line
    version: Line
    suite: Line
    suite_version: Line
    submitter: Line
    date: datetime.date
    relationship: Literal["first_party", "third_party", "collaborative", "other"]
    files: Annotated[
        dict[Line, Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]], Meta(min_length=1, max_length=MAX_FILES)
    ]
    developer: Line = "unknown"
    settings: Annotated[dict[Line, Line], Meta(max_length=50)] = {}
    tokens: Tokens | None = None
    cost: Annotated[float, Meta(ge=0, le=1e12)] | None = None
    currency: Annotated[str, Meta(pattern="^[A-Z]{3}$")] | None = None
    deployment: Literal["self_deployed", "externally_managed", "unknown"] = "unknown"
    availability: Literal["open_weights", "closed_weights", "unknown"] = "unknown"

    def __post_init__(self) -> None:
        if (self.cost is None) is not (self.currency is None):
            raise ValueError("cost and currency are given together")
        texts = (self.system, self.version, self.submitter, self.developer, *self.settings, *self.settings.values())
        for text in texts:
            if not is_plain(text):
                raise ValueError(f"{short_repr(text)} has spaces or characters that are not shown")
        if skeleton(self.submitter) == skeleton(ROW_SUBMITTER):
            raise ValueError(f"a submitter is not called {ROW_SUBMITTER!r}")


@dataclass(frozen=True)
class Submission:
    """A submission that can be scored.

    name: of its folder; files: copies of its files, by pool; digest: of card and files
    is_row: a calibration row of the suite
    """

    name: str
    card: Card
    files: Mapping[str, Path]
    digest: str
    is_row: bool = False

    @property
    def folder(self) -> str:
        """Return its folder in the site."""
        return f"{'rows' if self.is_row else 'systems'}/{self.name}"

    @property
    def names(self) -> tuple[str, str]:
        """Return system and version as they read."""
        return skeleton(self.card.system), skeleton(self.card.version)


@dataclass(frozen=True)
class RefusedSubmission:
    """A submission that stays out of the ranking; system: as its card has it, empty without a readable card."""

    name: str
    system: str
    reason: str


def read_submissions(
    folder: Path, manifest: Manifest, scratch: Path, *, are_rows: bool = False, rows: Iterable[Submission] = ()
) -> Iterator[Submission | RefusedSubmission]:
    """Yield the submissions in a folder, in the order of their names; `CalibrantError` if there are too many.

    rows: calibration rows of the suite, whose names no submission may have; their answers it may
    """
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    if len(names) > MAX_SUBMISSIONS:
        raise CalibrantError(f"{folder}: more than {MAX_SUBMISSIONS} submissions")
    prefix, num_bytes = "row" if are_rows else "submission", 0
    earlier = _Earlier({row.names: f"the row {row.name}" for row in rows})
    for number, name in enumerate(names):
        system = ""
        try:
            card = read_card(folder, name, manifest)
            system = f"{card.system} {card.version}"
            if not are_rows and card.date.isoformat() < manifest.date:
                raise CalibrantError(f"{CARD}: its date {card.date} is before that of the suite, {manifest.date}")
            target = scratch / f"{prefix}-{number}"
            target.mkdir()
            submission = Submission(name, card, *_copy_files(folder / name, card, manifest, target), are_rows)
            earlier.check(submission)
        except (CalibrantError, OSError) as error:
            shutil.rmtree(scratch / f"{prefix}-{number}", ignore_errors=True)
            yield RefusedSubmission(_safe_name(name, number), in_one_line(system), refusal_text(error, scratch))
        else:
            num_bytes += sum(copy.stat().st_size for copy in submission.files.values())
            if num_bytes > MAX_BOARD_BYTES:
                raise CalibrantError(f"{folder}: submissions of more than {MAX_BOARD_BYTES} bytes together")
            yield submission


class _Earlier:
    """Names as they read, folders and files of the submissions before another.

    systems: by system and version as they read, whose they are
    """

    def __init__(self, systems: Mapping[tuple[str, str], str]) -> None:
        self._systems = dict(systems)
        self._folders: dict[str, str] = {}
        self._files: dict[tuple[tuple[str, str], ...], str] = {}

    def check(self, submission: Submission) -> None:
        """Raise `CalibrantError` for a submission that passes for an earlier one, or is a copy of it."""
        name, files = submission.name, tuple(sorted(submission.card.files.items()))
        if (holder := self._folders.setdefault(name.casefold(), name)) != name:
            raise CalibrantError(f"its folder is that of {holder} where case is ignored")
        if (holder := self._systems.setdefault(submission.names, name)) != name:
            raise CalibrantError(f"the same system and version as {holder}, or names that read like them")
        if not submission.is_row and (holder := self._files.setdefault(files, name)) != name:
            raise CalibrantError(f"its files are those of {holder}")


def refusal_text(error: Exception, scratch: Path) -> str:
    """Return the reason of a refusal in one line, without folders of this machine."""
    text = error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)
    return in_one_line(text.replace(f"{scratch}{os.sep}", ""))[:400]


def _safe_name(name: str, number: int) -> str:
    return name if _FOLDER_NAME.fullmatch(name) else f"entry {number + 1}: {short_repr(name)}"


def read_card(folder: Path, name: str, manifest: Manifest) -> Card:
    """Return the card of a submission to this suite; refuse links, other entries, and another suite or version."""
    if not _FOLDER_NAME.fullmatch(name):
        raise CalibrantError("a name of a submission is 1 to 64 letters, digits, dots, - and _")
    if not stat.S_ISDIR((folder / name).lstat().st_mode):
        raise CalibrantError("not a folder with a card")
    entries = sorted(os.listdir(folder / name))
    if len(entries) > MAX_FILES + 1:
        raise CalibrantError(f"more than {MAX_FILES} files")
    for entry in entries:
        if not stat.S_ISREG((folder / name / entry).lstat().st_mode):
            raise CalibrantError(f"{short_repr(entry)} is a link, a folder or a device, not a file")
    if CARD not in entries:
        raise CalibrantError(f"no {CARD} in it")
    if (folder / name / CARD).stat().st_size > MAX_CARD_BYTES:
        raise CalibrantError(f"{CARD}: larger than {MAX_CARD_BYTES} bytes")
    card = read_toml(folder / name / CARD, Card)
    if (card.suite, card.suite_version) != (manifest.name, manifest.release):
        stated = short_repr(f"{card.suite} {card.suite_version}")
        raise CalibrantError(f"{CARD}: it is for {stated}, not for {manifest.name} {manifest.release}")
    listed = {CARD, *card.files}
    for entry in entries:
        if entry not in listed:
            raise CalibrantError(f"{short_repr(entry)} is not listed in {CARD}")
    return card


def _copy_files(folder: Path, card: Card, manifest: Manifest, target: Path) -> tuple[dict[str, Path], str]:
    """Copy the files of a submission; return the copies by pool, and the digest of card and files."""
    pools = {f"{pool.name}.jsonl": pool.name for pool in manifest.pools}
    files: dict[str, Path] = {}
    num_bytes = 0
    total = sha256((folder / CARD).read_bytes())
    for name, stated in sorted(card.files.items()):
        if name not in pools:
            raise CalibrantError(f"{CARD}: file {short_repr(name)} is none of {', '.join(pools)}")
        num_bytes += (folder / name).lstat().st_size
        if num_bytes > MAX_SUBMISSION_BYTES:
            raise CalibrantError(f"its files have more than {MAX_SUBMISSION_BYTES} bytes together")
        copy = target / name
        digest = copy_file(folder / name, copy)
        if digest != stated:
            raise CalibrantError(f"{name}: changed: its SHA-256 is {digest[:8]}, the card has {stated[:8]}")
        files[pools[name]] = copy
        total.update(digest.encode())
    return files, total.hexdigest()


def copy_file(source: Path, target: Path) -> str:
    """Copy a file within bounds, never through a link; return its SHA-256."""
    digest, size = sha256(), 0
    with open(os.open(source, os.O_RDONLY | os.O_NOFOLLOW), "rb") as reading, target.open("xb") as writing:
        while block := reading.read(_BLOCK):
            if not size and block.startswith(_PACKED):
                raise CalibrantError(f"{source.name}: compressed; give plain JSON lines")
            size += len(block)
            if size > MAX_FILE_BYTES:
                raise CalibrantError(f"{source.name}: larger than {MAX_FILE_BYTES} bytes")
            digest.update(block)
            writing.write(block)
    return digest.hexdigest()
