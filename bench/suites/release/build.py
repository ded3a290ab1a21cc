"""A release: a folder with everything that may be published, and one with gold, each complete or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.design.page import design_page
from calibrant.bench.runs.jobs import HERE, Execution, Progress
from calibrant.bench.suites.commitments import (
    PUBLIC_MASTER,
    Commitments,
    file_commitment,
    file_label,
    item_salt,
    read_master,
)
from calibrant.bench.suites.digests import file_names, sha256_of, write_sums
from calibrant.bench.suites.manifest import GOLD, MANIFEST, PUBLIC, ROWS, Manifest, PoolEntry
from calibrant.bench.suites.release.checklist import (
    CERTIFICATES,
    MEASURES,
    Answer,
    Evidence,
    ReleaseFacts,
    answer_questions,
)
from calibrant.bench.suites.release.datasheet import datasheet
from calibrant.bench.suites.release.items import ITEMS, write_items
from calibrant.bench.suites.release.lock import Lock, make_lock, require_equal
from calibrant.bench.suites.release.measures import PoolMeasures, measure_pool
from calibrant.bench.suites.release.metadata import describe_release
from calibrant.bench.suites.release.pools import BuiltPool, build_pool
from calibrant.bench.suites.release.questions import KEYS
from calibrant.bench.suites.specification import SuiteSpec, read_specification, resolve_beside
from calibrant.bench.terminal import making_folder, require_free, write_json
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError, short_repr

OPENINGS = "openings.jsonl"
CARD = "card.toml"


def build_release(
    specification: Path,
    out: Path,
    *,
    lock: Lock | None = None,
    lock_name: str = "",
    execution: Execution = HERE,
    progress: Progress = lambda name, done, total: None,
) -> Manifest:
    """Build the release of a specification into `out`, which must not be there, or empty; all of it or nothing.

    lock: of an earlier build, whose inputs and versions must be the same. The same specification and lock give the
    same bytes, whatever the number of workers.
    """
    spec = read_specification(specification)
    _check_statements(spec, specification.name)
    actual = make_lock(specification, spec)
    if lock is not None:
        require_equal(lock, actual, lock_name)
    master = PUBLIC_MASTER if spec.master is None else read_master(resolve_beside(specification, spec.master))
    require_free(out, "a release")
    with making_folder(out) as (suite, scratch):
        return _Making(spec, specification, master, suite, scratch, actual).build(execution, progress)


def _check_statements(spec: SuiteSpec, name: str) -> None:
    for key in spec.statements:
        if key not in KEYS:
            raise CalibrantError(f"{name}: statements: unknown key {short_repr(key)}; known: {', '.join(KEYS)}")


@dataclass(frozen=True)
class _Making:
    """A release in the making.

    suite: folder that becomes the release; scratch: for files that do not stay
    """

    spec: SuiteSpec
    specification: Path
    master: str
    suite: Path
    scratch: Path
    lock: Lock

    def build(self, execution: Execution, progress: Progress) -> Manifest:
        for folder in (self._public, self._gold, self.scratch):
            folder.mkdir(parents=True)
        pools = [
            build_pool(pool, self.specification, self._gold, self.scratch, execution, progress)
            for pool in self.spec.pools
        ]
        gold = [pair for pool in pools for pair in write_items(self.spec, pool, self._public, self.scratch)]
        commitments = Commitments.of_gold(self.master, gold)
        measures = {pool.spec.name: measure_pool(pool, self._gold / ROWS, self.scratch) for pool in pools}
        self._write_gold(pools, dict(gold), commitments)
        sealed = {
            file_label(self.master, name): file_commitment(self.master, name, (self._gold / name).read_bytes())
            for name in file_names(self._gold)
        }
        write_sums(self._gold)
        manifest = self._manifest(pools, commitments.root, dict(sorted(sealed.items())))
        self._write_public(pools, manifest, commitments, measures)
        write_sums(self._public)
        return manifest

    @property
    def _public(self) -> Path:
        return self.suite / PUBLIC

    @property
    def _gold(self) -> Path:
        return self.suite / GOLD

    def _write_gold(self, pools: Sequence[BuiltPool], gold: Mapping[str, str], commitments: Commitments) -> None:
        shutil.copyfile(self.specification, self._gold / "suite.toml")
        write_json(self._gold / "suite.lock", msgspec.to_builtins(self.lock))
        (self._gold / "master.key").write_text(self.master + "\n", encoding="ascii")
        index = {
            f"{pool.spec.name}/certificates/{name}": sha256_of(pool.folder / "certificates" / name)
            for pool in pools
            for name in pool.certificates
        }
        write_json(self.suite / CERTIFICATES, index)
        with (self._gold / OPENINGS).open("w", encoding="utf-8", newline="\n") as file:
            for name in sorted(gold):
                opening = {"id": name, "salt": item_salt(self.master, name), "gold": gold[name]}
                file.write(json.dumps(opening | {"path": commitments.path(name)}) + "\n")
        for row in dict.fromkeys(row for pool in pools for row in pool.spec.rows):
            self._write_card(row, [pool.spec.name for pool in pools if row in pool.spec.rows])

    def _write_card(self, row: str, pools: Sequence[str]) -> None:
        """Write the card of a row, as submissions have one."""
        folder = self._gold / ROWS / row
        fields = {
            "system": row,
            "version": f"calibrant {program_version()}",
            "suite": self.spec.name,
            "suite_version": self.spec.version,
            "submitter": "calibrant",
            "developer": "calibrant",
            "relationship": "first_party",
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in fields.items()]
        lines += [f"date = {self.spec.date.isoformat()}", "", "[files]"]
        lines += [f'"{name}.jsonl" = "{sha256_of(folder / f"{name}.jsonl")}"' for name in pools]
        (folder / CARD).write_text("\n".join(lines) + "\n", encoding="utf-8")

    def _manifest(self, pools: Sequence[BuiltPool], root: str, sealed: dict[str, str]) -> Manifest:
        spec = self.spec
        entries = tuple(PoolEntry(pool.spec.name, pool.of.name, len(pool.states), pool.spec.rows) for pool in pools)
        return Manifest(
            name=spec.name,
            release=spec.version,
            title=spec.title,
            summary=spec.summary,
            license=spec.license,
            url=spec.url or "",
            date=spec.date.isoformat(),
            gold=spec.gold,
            canary=spec.canary_text,
            root=root,
            pools=entries,
            sealed=sealed,
            program=program_version(),
        )

    def _write_public(
        self,
        pools: Sequence[BuiltPool],
        manifest: Manifest,
        commitments: Commitments,
        measures: Mapping[str, PoolMeasures],
    ) -> None:
        write_json(self._public / MANIFEST, msgspec.to_builtins(manifest))
        leaves = {"root": commitments.root, "leaves": dict(commitments.leaves)}
        write_json(self._public / "commitments.json", leaves)
        write_json(self.suite / MEASURES, {name: msgspec.to_builtins(value) for name, value in measures.items()})
        write_json(self._public / "croissant.json", describe_release(self.spec, self._public))
        facts = ReleaseFacts(
            folder=self.suite,
            measures=measures,
            num_certificates=sum(len(pool.certificates) for pool in pools),
            items=[f"{PUBLIC}/{pool.spec.name}/{ITEMS}.{self.spec.formats[0]}" for pool in pools],
            statements=self.spec.statements,
            is_private=self.spec.gold == "private",
            digest=lambda name: self._evidence(name, manifest),
        )
        answers = answer_questions(facts)
        write_json(self._public / "checklist.json", msgspec.to_builtins(answers))
        (self._public / "datasheet.md").write_text(datasheet(self.spec, measures, answers), encoding="utf-8")
        (self._public / "index.html").write_text(self._page(manifest, measures, answers), encoding="utf-8")

    def _evidence(self, name: str, manifest: Manifest) -> Evidence:
        """Return a file of the release with its digest, of one below `gold` the salted one."""
        part, _, inside = name.partition("/")
        if part == GOLD:
            return Evidence(name, manifest.sealed[file_label(self.master, inside)], salted=True)
        return Evidence(name, sha256_of(self.suite / name))

    def _page(self, manifest: Manifest, measures: Mapping[str, PoolMeasures], answers: Sequence[Answer]) -> str:
        total = sum(pool.num_items for pool in measures.values())
        content = {
            "title": f"{self.spec.title} {self.spec.version}",
            "crumbs": ("Suite", manifest.slug),
            "summary": self.spec.summary,
            "canary": self.spec.canary_text,
            "chips": [
                (total, "items"),
                (sum(pool.num_certificates for pool in measures.values()), "certificates verified"),
                (self.spec.gold, "gold"),
                (self.spec.license, ""),
                (manifest.date, ""),
            ],
            "pools": [_pool_cells(name, pool) for name, pool in measures.items()],
            "answers": answers,
            "root": manifest.root,
            "files": sorted(file_names(self._public)),
        }
        return design_page("suites/release.html", content)


def _pool_cells(name: str, pool: PoolMeasures) -> dict[str, Any]:
    return {
        "name": name,
        "benchmark": benchmark(pool.benchmark).title,
        "num_items": pool.num_items,
        "states": ", ".join(f"{number} {state}" for state, number in pool.states.items()),
        "num_certificates": pool.num_certificates,
        "rows": ", ".join(f"{row} {values.rate:.3f}" for row, values in pool.rows.items()) or "none",
    }
