"""A released suite as a board opens it: everything checked again, and what is wrong stated by pool.

Damage of one pool's files keeps that pool out of rankings; damage of what all pools share keeps all out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.bench.hub.card import record_text
from calibrant.bench.runs.jobs import Progress
from calibrant.bench.scoring.ids import PublicIds
from calibrant.bench.suites.certificates import certificate_problem
from calibrant.bench.suites.commitments import Commitments, file_commitment, file_label, read_master
from calibrant.bench.suites.digests import SUMS, differences, file_names, sha256_of
from calibrant.bench.suites.manifest import GOLD, PUBLIC, ROWS, Manifest, PoolEntry, read_manifest
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.parse_limits import TooLargeError, load_json, read_bounded


@dataclass(frozen=True)
class OpenSuite:
    """A suite whose files were checked.

    digest: SHA-256 of the list of public digests, which identifies the release
    damage: by pool, why its cells stay out of rankings; row_damage: the same by row
    """

    folder: Path
    manifest: Manifest
    digest: str
    damage: Mapping[str, str]
    row_damage: Mapping[str, str]

    def pool_file(self, name: str) -> Path:
        """Return the pool file of that name, with gold."""
        return pool_path(self.folder, name)

    @property
    def sound_pools(self) -> list[PoolEntry]:
        return [pool for pool in self.manifest.pools if pool.name not in self.damage]


def pool_path(suite: Path, name: str) -> Path:
    """Return where a suite has the pool of that name."""
    return suite / GOLD / name / f"{name}.jsonl"


def open_suite(folder: Path, progress: Progress = lambda name, done, total: None, *, expected: str = "") -> OpenSuite:
    """Check a suite's folder; `CalibrantError` if it is none, has no gold, or is not the expected release.

    expected: digest of the release, as its authors published it; empty if it is not given
    """
    manifest = read_manifest(folder)
    digest = sha256_of(folder / PUBLIC / SUMS) if (folder / PUBLIC / SUMS).is_file() else ""
    if expected and digest != expected:
        raise CalibrantError(f"{folder}: another release: its SHA-256 is {digest or 'missing'}, not {expected}")
    if not (folder / GOLD / "master.key").is_file():
        raise CalibrantError(f"{folder}: no {GOLD}/master.key; a board needs the gold of the suite")
    damage: dict[str, str] = {}
    row_damage: dict[str, str] = {}
    names = [pool.name for pool in manifest.pools]
    for file, reason in _faults(folder, manifest):
        part, _, inside = file.partition("/")
        first, _, rest = inside.partition("/")
        text = in_one_line(f"{file}: {reason}")
        if part == GOLD and first == ROWS:
            row_damage.setdefault(rest.partition("/")[0], text)
        else:
            for name in [first] if first in names else names:
                damage.setdefault(name, text)
    for number, pool in enumerate(manifest.pools):
        progress("suite", number, len(manifest.pools))
        if pool.name not in damage and (problem := _pool_problem(folder, manifest, pool)):
            damage[pool.name] = problem
    return OpenSuite(folder, manifest, digest, damage, row_damage)


def _faults(folder: Path, manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Yield files that differ from the digests and commitments of the suite, with the difference."""
    yield from ((f"{PUBLIC}/{name}", reason) for name, reason in differences(folder / PUBLIC).items())
    gold = folder / GOLD
    master = read_master(gold / "master.key")
    actual = {
        file_label(master, name): (name, file_commitment(master, name, (gold / name).read_bytes()))
        for name in file_names(gold)
        if name != SUMS
    }
    for label, (name, committed) in actual.items():
        if label not in manifest.sealed:
            yield f"{GOLD}/{name}", "the suite does not commit to this file"
        elif manifest.sealed[label] != committed:
            yield f"{GOLD}/{name}", "not what the suite commits to"
    missing = manifest.sealed.keys() - actual.keys()
    if missing:
        yield GOLD, f"{len(missing)} of the files that the suite commits to are missing"


def _pool_problem(folder: Path, manifest: Manifest, pool: PoolEntry) -> str:
    """Return why a pool whose files are unchanged cannot be ranked by; empty if it can."""
    path = pool_path(folder, pool.name)
    try:
        of = benchmark_of(path)
        if of is not benchmark(pool.benchmark):
            return f"{path.name} is a pool of {of.title}"
        items: Any = of.items.read_pool(path).items
        public = PublicIds.of_pool(path, items)
        gold = [(public.public(item.id), record_text(of.items.record(item))) for item in items]
        committed = _committed_leaves(folder, manifest)
        actual = Commitments.of_gold(read_master(folder / GOLD / "master.key"), gold).leaves
        wrong = [name for name, leaf in actual if committed.get(name) != leaf]
        if wrong or len(actual) != pool.num_items:
            return f"gold of {wrong[0] if wrong else 'some item'} is not what the suite commits to"
    except CalibrantError as error:
        return in_one_line(str(error))
    return certificate_problem(of, path)


def _committed_leaves(folder: Path, manifest: Manifest) -> Mapping[str, str]:
    """Return the committed leaves by id; `CalibrantError` if they do not lead to the root."""
    try:
        stated = load_json(read_bounded(folder / PUBLIC / "commitments.json"))
        leaves = {str(name): str(leaf) for name, leaf in stated["leaves"].items()}
        root = Commitments(sorted(leaves.items())).root
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, TooLargeError):
        raise CalibrantError("commitments.json: not a list of commitments") from None
    if root != manifest.root:
        raise CalibrantError("commitments.json: its leaves do not lead to the root of the suite")
    return leaves
