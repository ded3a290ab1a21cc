"""Submissions to a board: their files, names that look alike, and their ranking.

Number and size of files are bounded; links and devices are refused. Each file is copied before it is read, so that the
scored bytes are those that were checked.

Names are compared after replacing letters of other scripts by the Latin ones that they look like, which are a part of
Unicode's confusable characters.
"""

from __future__ import annotations

import datetime
import json
import os
import re
import shutil
import stat
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta

from calibrant.bench.answers.frame import estimate
from calibrant.bench.answers.rates import mean_if_known
from calibrant.bench.scoring.answers import model_field
from calibrant.bench.scoring.files import PredictionFile
from calibrant.bench.scoring.formats import parse_line
from calibrant.bench.suites.manifest import Manifest
from calibrant.bench.suites.rescoring import CellResult
from calibrant.bench.terminal import making_folder, require_free
from calibrant.bench.toml_file import read_toml
from calibrant.dsl.atomic_write import open_no_follow
from calibrant.dsl.errors import CalibrantError, in_one_line, readable_repr, short_repr

# --- Names that look alike, so that no submission passes for another (a part of Unicode Technical Standard 39)
INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # blanks that Unicode classes as letters or symbols
_CYRILLIC = dict(zip("авекмнорстухіјѕһԁԛԝгьѵ", "abekmhopctyxijshdqwrbv", strict=True))
_GREEK = dict(zip("αβεζηικμνοπρστυχωγ", "abezhikmvonpotuxwy", strict=True))
_OTHERS = dict(zip("\u0131\u0251\u0261\u0585\u0578\u057d\u0570", "iagonuh", strict=True))
_ALIKE = {"0": "o", "1": "l", "i": "l", "|": "l"}
_LETTERS = _ALIKE | {letter: _ALIKE.get(latin, latin) for letter, latin in (_CYRILLIC | _GREEK | _OTHERS).items()}
_KINDS = {"Pd": "-", "Zs": " "}


def is_plain(text: str) -> bool:
    """Return whether a text has no controls, no invisible letters, and no spaces but single ones inside."""
    return text.isprintable() and text == " ".join(text.split()) and INVISIBLE.isdisjoint(text)


def skeleton(text: str) -> str:
    """Return a key that is equal for names that look alike: `0`, `O` and `o` become one letter, as do `1`, `I`, `l`."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    letters = (_letter(letter) for letter in plain if unicodedata.category(letter) not in ("Mn", "Cf"))
    return " ".join("".join(letters).split())


def _letter(letter: str) -> str:
    return _KINDS.get(unicodedata.category(letter)) or _LETTERS.get(letter, letter)


# --- Submissions to a board, which are untrusted: a folder with a card and a file of answers for each pool
CARD = "card.toml"
ROW_SUBMITTER = "row of the suite"  # submitter of calibration rows on boards
MAX_SUBMISSIONS = 2_000
MAX_FILES = 100  # files of a submission
MAX_CARD_BYTES = 1 << 16
MAX_FILE_BYTES = 1 << 26
MAX_SUBMISSION_BYTES = 1 << 28  # all files of a submission together
MAX_BOARD_BYTES = 1 << 34  # all submissions together, which are copied before they are read
_FOLDER_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BLOCK = 1 << 20
_PACKED = (b"\x1f\x8b", b"PK")  # first bytes of gzip and zip, refused because few bytes can expand to any size

Line: TypeAlias = Annotated[str, Meta(min_length=1, max_length=200)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=1 << 60)]


class Tokens(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Numbers of tokens that a system read and wrote, stated by the submitter."""

    input: Count
    output: Count


class Card(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A submitter's statements about a submission. files: file of answers -> SHA-256."""

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

    name: name of its folder; files: pool -> copy of its file; digest: SHA-256 of card and files
    is_row: whether it is a calibration row, a method that the suite brings for comparison
    """

    name: str
    card: Card
    files: Mapping[str, Path]
    digest: str
    is_row: bool = False

    @property
    def folder(self) -> str:
        """Its folder in the site."""
        return f"{'rows' if self.is_row else 'systems'}/{self.name}"

    @property
    def names(self) -> tuple[str, str]:
        """Skeletons of system and version (`skeleton`)."""
        return skeleton(self.card.system), skeleton(self.card.version)

    def refuse(self, reason: str) -> RefusedSubmission:
        """Return this submission as a refused one."""
        return RefusedSubmission(self.name, f"{self.card.system} {self.card.version}", reason)


@dataclass(frozen=True)
class RefusedSubmission:
    """A submission that is excluded from the ranking. system: from its card, empty if that is unreadable."""

    name: str
    system: str
    reason: str


def read_submissions(
    folder: Path, manifest: Manifest, scratch: Path, *, are_rows: bool = False
) -> Iterator[Submission | RefusedSubmission]:
    """Yield the submissions in a folder, sorted by name; `CalibrantError` if there are too many."""
    names = sorted(os.listdir(folder)) if folder.is_dir() else []
    if len(names) > MAX_SUBMISSIONS:
        raise CalibrantError(f"{folder}: more than {MAX_SUBMISSIONS} submissions")
    prefix, num_bytes = "row" if are_rows else "submission", 0
    for index, name in enumerate(names):
        system = ""
        try:
            card = read_card(folder, name, manifest)
            system = f"{card.system} {card.version}"
            if not are_rows and card.date.isoformat() < manifest.date:
                raise CalibrantError(f"{CARD}: its date {card.date} is before that of the suite, {manifest.date}")
            target = scratch / f"{prefix}-{index}"
            target.mkdir()
            submission = Submission(name, card, *_copy_files(folder / name, card, manifest, target), are_rows)
        except (CalibrantError, OSError) as error:
            shutil.rmtree(scratch / f"{prefix}-{index}", ignore_errors=True)
            yield RefusedSubmission(_safe_name(name, index), in_one_line(system), refusal_text(error, scratch))
        else:
            num_bytes += sum(copy.stat().st_size for copy in submission.files.values())
            if num_bytes > MAX_BOARD_BYTES:
                raise CalibrantError(f"{folder}: submissions of more than {MAX_BOARD_BYTES} bytes together")
            yield submission


def find_repeated_submissions(
    submissions: Iterable[Submission], rows: Iterable[Submission]
) -> Iterator[tuple[str, str]]:
    """Yield (folder, reason) of the submissions whose names look like those of an earlier one, or that copy its files.

    submissions: only scored ones, because a submission refused for its answers may be sent again under its names
    rows: calibration rows of the suite, whose names submissions must not have; equal answers are allowed
    """
    systems = {row.names: f"the row {row.name}" for row in rows}
    folders: dict[str, str] = {}
    copies: dict[tuple[tuple[str, str], ...], str] = {}
    for submission in submissions:
        name, files = submission.name, tuple(sorted(submission.card.files.items()))
        if name.casefold() in folders:
            reason = f"its folder is that of {folders[name.casefold()]} where case is ignored"
        elif submission.names in systems:
            reason = f"the same system and version as {systems[submission.names]}, or names that read like them"
        elif files in copies:
            reason = f"its files are those of {copies[files]}"
        else:
            folders[name.casefold()] = systems[submission.names] = copies[files] = name
            continue
        yield submission.folder, reason


def refusal_text(error: Exception, scratch: Path) -> str:
    """Return the reason of a refusal as one line, without paths of this machine."""
    text = error.strerror or "cannot be read" if isinstance(error, OSError) else str(error)
    return in_one_line(text.replace(f"{scratch}{os.sep}", ""))[:400]


def _safe_name(name: str, number: int) -> str:
    return name if _FOLDER_NAME.fullmatch(name) else f"entry {number + 1}: {readable_repr(name)}"


def read_cards(folder: Path, manifest: Manifest) -> list[Card]:
    """Return the cards in a folder of submissions that can be read; none if there is no folder."""
    cards = []
    for name in sorted(os.listdir(folder)) if folder.is_dir() else []:
        with suppress(CalibrantError, OSError):
            cards.append(read_card(folder, name, manifest))
    return cards


def read_card(folder: Path, name: str, manifest: Manifest) -> Card:
    """Return the card of a submission; `CalibrantError` for links, other entries, and another suite or version."""
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
    allowed = {CARD, *card.files}
    for entry in entries:
        if entry not in allowed:
            raise CalibrantError(f"{short_repr(entry)} is not listed in {CARD}")
    return card


def _copy_files(folder: Path, card: Card, manifest: Manifest, target: Path) -> tuple[dict[str, Path], str]:
    """Copy the files of a submission; return (pool -> copy, digest of card and files)."""
    pools = {f"{pool.name}.jsonl": pool.name for pool in manifest.pools}
    files: dict[str, Path] = {}
    num_bytes = 0
    whole_digest = sha256((folder / CARD).read_bytes())
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
        whole_digest.update(digest.encode())
    return files, whole_digest.hexdigest()


def copy_file(source: Path, target: Path) -> str:
    """Copy a file and return its SHA-256; `CalibrantError` for a compressed one or one above MAX_FILE_BYTES."""
    digest, size = sha256(), 0
    with open_no_follow(source) as reading, target.open("xb") as writing:
        while block := reading.read(_BLOCK):
            if not size and block.startswith(_PACKED):
                raise CalibrantError(f"{source.name}: compressed; give plain JSON lines")
            size += len(block)
            if size > MAX_FILE_BYTES:
                raise CalibrantError(f"{source.name}: larger than {MAX_FILE_BYTES} bytes")
            digest.update(block)
            writing.write(block)
    return digest.hexdigest()


# --- Writing of a submission: copies of files of answers, and a card with their digests -------------------------------


def write_submission(manifest: Manifest, answers: Sequence[Path], statements: dict[str, Any], out: Path) -> Card:
    """Write a submission to a suite in the new or empty folder `out`, atomically; return its card as a board reads it.

    answers: files named POOL.jsonl, at most one for each pool; statements: fields of the card, but for suite and files
    """
    require_free(out, "a submission")
    pools = [f"{pool.name}.jsonl" for pool in manifest.pools]
    names = [path.name for path in answers]
    for path in answers:
        if path.name not in pools:
            raise CalibrantError(f"{path}: a file is called as the pool that it answers: {' or '.join(pools)}")
        if names.count(path.name) > 1:
            raise CalibrantError(f"{path}: a second file for the same pool")
        _require_one_model(path)
    with making_folder(out) as (folder, _):
        folder.mkdir()
        files = {path.name: copy_file(path, folder / path.name) for path in answers}
        stated = statements | {"suite": manifest.name, "suite_version": manifest.release, "files": files}
        try:
            card = msgspec.convert(stated, Card)
        except msgspec.ValidationError as error:
            raise CalibrantError(f"{CARD}: {error}") from None
        (folder / CARD).write_text("".join(_format_lines(card)), encoding="utf-8")
        if read_card(folder.parent, folder.name, manifest) != card:
            raise AssertionError(f"{CARD} does not say what was stated")
    return card


def _require_one_model(path: Path) -> None:
    """Raise `CalibrantError` for a file whose lines name several models, as a board does (bench.suites.rescoring)."""
    models: dict[str, str] = {}
    for where, line in PredictionFile(path).objects():
        parsed = None if line is None else parse_line(line)
        model = parsed.model if parsed is not None else model_field(line or {})[1]
        if isinstance(model, str) and model:
            models.setdefault(model, where)
    if len(models) > 1:
        (first, _), (second, where) = list(models.items())[:2]
        raise CalibrantError(
            f"{path}: {where}: lines of several models: {short_repr(first)}, {short_repr(second)};"
            " a submission is of one: give a file for each"
        )


def _format_lines(card: Card) -> Iterator[str]:
    """Yield lines for the card's fields that differ from their defaults, tables last."""
    fields = {name: value for name, value in msgspec.to_builtins(card).items() if value not in (None, {})}
    tables = {name: value for name, value in fields.items() if isinstance(value, dict)}
    for name, value in fields.items():
        if name not in tables:
            yield f"{name} = {value if name == 'date' else _format_toml(value)}\n"
    for name, table in tables.items():
        yield f"\n[{name}]\n"
        yield from (f"{_format_toml(key)} = {_format_toml(value)}\n" for key, value in table.items())


def _format_toml(value: str | float) -> str:
    """Return a text or a number as TOML; texts are written as in JSON, which TOML accepts."""
    return json.dumps(value, ensure_ascii=False)


# --- Rows and cells of a board: rates with intervals and chance levels, and the order of systems ----------------------


@dataclass(frozen=True)
class BoardCell:
    """Result of a system on a pool.

    low, high: 95 % interval of the rate over items (bench.answers.rates)
    consistency: share of originals whose copies have equal scores; None for a pool without variants
    """

    pool: str
    result: CellResult
    low: float
    high: float
    consistency: float | None = None

    @classmethod
    def of_result(cls, pool: str, result: CellResult, consistency: float | None = None) -> BoardCell:
        rate = estimate((item.id, item.unit or item.id, item.right) for item in result.items)
        low, high = (rate and rate.interval) or (0.0, 1.0)  # a single unit has no interval
        return cls(pool, result, low, high, consistency)

    @cached_property
    def rate(self) -> float:
        return self.result.rate

    @cached_property
    def chance(self) -> float | None:
        return self.result.chance

    @cached_property
    def best(self) -> float | None:
        return self.result.best

    @cached_property
    def kinds(self) -> Mapping[str, float]:
        return self.result.kinds

    @property
    def skill(self) -> tuple[float, float, float] | None:
        """(skill, low, high), where skill = (rate - chance) / (best - chance); None unless best exceeds chance.

        Chance and best count as exact, so the interval is that of the rate, rescaled.
        """
        chance, best = self.chance, self.best
        if chance is None or best is None or best <= chance:
            return None
        low, middle, high = ((value - chance) / (best - chance) for value in (self.low, self.rate, self.high))
        return middle, low, high

    @property
    def is_above_best(self) -> bool:
        """Whether the rate is significantly above that of the best guesser, a sign of leaked gold."""
        return self.best is not None and self.low > self.best


@dataclass(frozen=True)
class BoardRow:
    """Results of a system. cells: pool -> result, for the undamaged pools that it answered; num_pools: of the suite."""

    submission: Submission
    cells: Mapping[str, BoardCell]
    num_pools: int

    @property
    def is_ranked(self) -> bool:
        """Whether it is a submission with a scored file; files for damaged pools are not scored."""
        return not self.submission.is_row and bool(self.cells)

    @property
    def status(self) -> str:
        return "rescored" if self.cells else "not scored"

    @property
    def mean(self) -> float | None:
        """Mean rate over all pools; None unless it answered all of them."""
        return self.partial_mean if len(self.cells) == self.num_pools else None

    @property
    def partial_mean(self) -> float | None:
        """Mean rate over the pools that it answered."""
        return mean_if_known([cell.rate for cell in self.cells.values()])


def sort_rows(rows: Iterable[BoardRow]) -> list[BoardRow]:
    """Sort rows by mean rate, highest first, ties by name; rows that did not answer all pools come last."""
    return sorted(rows, key=lambda row: (row.mean is None, -(row.partial_mean or 0.0), row.submission.name))


def rank_pool(rows: Iterable[BoardRow], pool: str) -> list[tuple[int | None, BoardRow]]:
    """Return (rank, row) for a pool, highest rate first; equal rates share a rank, calibration rows have None."""
    by_rate = sorted(
        (row for row in rows if pool in row.cells), key=lambda row: (-row.cells[pool].rate, row.submission.name)
    )
    rates = [row.cells[pool].rate for row in by_rate if not row.submission.is_row]
    return [(None if row.submission.is_row else 1 + _count_above(rates, row.cells[pool].rate), row) for row in by_rate]


def _count_above(rates: Sequence[float], rate: float) -> int:
    return sum(other_rate > rate for other_rate in rates)
