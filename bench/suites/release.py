"""Releases of suites: a folder that may be published and one with gold, both written atomically.

The validator of Croissant 1.1 (mlcroissant 1.1.1) accepts a missing `description`, `url` or `creator`, and a wrong
digest until the files are loaded, so this module checks them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.registry import benchmark
from calibrant.bench.hub.card import CONFORMS_TO, CONTEXT, Column, Row, columns_of
from calibrant.bench.hub.export import ExportRows, write_table
from calibrant.bench.pages.page import design_page
from calibrant.bench.runs.executors import HERE, Execution, Progress
from calibrant.bench.runs.records import Key, Record
from calibrant.bench.suites.checklist import (
    CERTIFICATES,
    KEYS,
    MEASURES,
    Answer,
    Evidence,
    ReleaseFacts,
    answer_questions,
    datasheet,
)
from calibrant.bench.suites.manifest import (
    GOLD,
    MANIFEST,
    PUBLIC,
    PUBLIC_MASTER,
    ROWS,
    Commitments,
    Manifest,
    PoolEntry,
    SuiteSpec,
    file_commitment,
    file_label,
    file_names,
    item_salt,
    read_master,
    read_specification,
    resolve_beside,
    sha256_of,
    write_sums,
)
from calibrant.bench.suites.pools import (
    BuiltPool,
    PoolMeasures,
    build_pool,
    bundled_source,
    check_drawing,
    draft_pool,
    measure_pool,
)
from calibrant.bench.terminal import making_folder, require_free, write_json
from calibrant.bench.version import program_version
from calibrant.dsl.errors import CalibrantError, short_repr
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded
from calibrant.dsl.text import plural

# --- The lock of a release: digests of its inputs and versions of programs, which another build must have too ---------
FORMAT, VERSION = "calibrant-suite-lock", 1


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Inputs of a release.

    program: version of calibrant; parquet: version of pyarrow, null without Parquet files
    inputs: "suite.toml", "master" or "pool NAME" -> SHA-256 of that file
    """

    program: str
    parquet: str | None
    inputs: dict[str, str]
    format: str = FORMAT
    version: int = VERSION


def make_lock(path: Path, spec: SuiteSpec) -> Lock:
    """Return the lock of a specification with this machine's versions; `CalibrantError` names a pool in error."""
    inputs = {"suite.toml": sha256_of(path)}
    if spec.master is not None:
        inputs["master"] = sha256_of(resolve_beside(path, spec.master))
    for number, pool in enumerate(spec.pools, 1):
        with _naming_pool(path, number):
            check_drawing(pool)
            if pool.file is not None:
                inputs[f"pool {pool.name}"] = _digest_pool(path, pool.file)
            elif pool.bundled is not None:
                inputs[f"pool {pool.name}"] = sha256_of(bundled_source(pool.bundled))
    return Lock(program_version(), _pyarrow_version() if "parquet" in spec.formats else None, inputs)


@contextmanager
def _naming_pool(specification: Path, number: int) -> Iterator[None]:
    """Put the specification and the number of the pool before errors, as errors of its fields have them."""
    try:
        yield
    except CalibrantError as error:
        raise CalibrantError(f"{specification.name}: pool {number}: {error}") from None


def _digest_pool(specification: Path, file: str) -> str:
    try:
        return sha256_of(resolve_beside(specification, file))
    except OSError as error:
        raise CalibrantError(f"{file}: {error.strerror or 'cannot be read'}") from None


def read_lock(path: Path) -> Lock:
    """Return the lock in a file; `CalibrantError` for anything else."""
    try:
        return decode_json(read_bounded(path), Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, TooLargeError) as error:
        raise CalibrantError(f"{path.name}: not a lock of a suite: {' '.join(str(error).split())[:200]}") from None


def require_equal(lock: Lock, actual: Lock, name: str) -> None:
    """Raise `CalibrantError` that names a difference from a lock."""
    for field, stated, value in (
        ("version of calibrant", lock.program, actual.program),
        ("version of pyarrow", lock.parquet, actual.parquet),
        *((key, lock.inputs.get(key), actual.inputs.get(key)) for key in sorted(lock.inputs | actual.inputs)),
    ):
        if stated != value:
            raise CalibrantError(f"{name}: {field} is {value or 'missing'}, the lock has {stated or 'none'}")


def _pyarrow_version() -> str:
    try:
        return metadata.version("pyarrow")
    except metadata.PackageNotFoundError:
        message = "Parquet files need pyarrow: pip install 'calibrant[hub]', or formats = [\"jsonl\"] in suite.toml"
        raise CalibrantError(message) from None


# --- Items of a release as data sets: public columns in `public`, all columns in `gold`, as JSON lines and Parquet ----
ITEMS = "items"


def write_items(spec: SuiteSpec, pool: BuiltPool, public: Path, scratch: Path) -> list[tuple[str, str]]:
    """Write the items of a pool; return (public id, canonical gold) of each, for commitments."""
    rows = ExportRows([pool.file], scratch / f"{pool.spec.name}.rows.jsonl")
    folder = public / pool.spec.name
    folder.mkdir()
    visible_columns = columns_of(rows, with_gold=False)
    for kind in spec.formats:
        _write(folder / f"{ITEMS}.{kind}", _with_canary(rows.by_id(), spec, pool), visible_columns, spec.canary_text)
    if "parquet" in spec.formats:
        all_columns = columns_of(rows, with_gold=True)
        _write(pool.folder / "gold.parquet", _with_canary(rows, spec, pool), all_columns, spec.canary_text)
    return [(row["id"], row["record"]) for row in rows]


def public_columns(spec: SuiteSpec) -> Sequence[Column]:
    """Return the columns of the public items."""
    return columns_of([], with_gold=False)


def _with_canary(rows: Iterable[Row], spec: SuiteSpec, pool: BuiltPool) -> Iterator[Row]:
    return ({**row, "canary": spec.canary_text, "pool": pool.spec.name} for row in rows)


def _write(path: Path, rows: Iterable[Row], columns: Sequence[Column], canary: str) -> None:
    if path.suffix == ".parquet":
        write_table(path, rows, columns, {"canary": canary})
        return
    names = [column.name for column in columns]
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(json.dumps({name: row.get(name) for name in names}) + "\n" for row in rows)


# --- Croissant metadata of a release's public items, and a check of the fields that Croissant requires ----------------
REQUIRED = (
    *("@context", "@type", "conformsTo", "name", "description", "license", "url", "creator", "datePublished"),
    "distribution",
)
_MEDIA = {"jsonl": "application/jsonlines", "parquet": "application/x-parquet"}
_RAI = {
    "collection": "dataCollection",
    "preprocessing": "dataPreprocessingProtocol",
    "biases": "dataBiases",
    "limitations": "dataLimitations",
    "uses": "dataUseCases",
    "social_impact": "dataSocialImpact",
    "personal_information": "personalSensitiveInformation",
    "maintenance": "dataReleaseMaintenancePlan",
}
"""Key of an author's statement -> field of RAI 1.0 that repeats it."""


def describe_release(spec: SuiteSpec, public: Path) -> dict[str, Any]:
    """Return the JSON-LD; `CalibrantError` if a required field is missing or a digest is wrong."""
    files = [(pool.name, kind) for pool in spec.pools for kind in spec.formats]
    described = {
        "@context": CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": spec.title,
        "description": spec.summary,
        "license": spec.license,
        "url": spec.url or "index.html",  # the page beside this file is the only address that is known
        "creator": [{"@type": "sc:Person", "name": name} for name in spec.creators],
        "datePublished": spec.date.isoformat(),
        "version": spec.version,
        "inLanguage": "en",
        "isLiveDataset": False,
        "citeAs": spec.citation or _citation(spec),
        **{f"rai:{field}": spec.statements[key] for key, field in _RAI.items() if key in spec.statements},
        "distribution": [_file(public, f"{name}/{ITEMS}.{kind}", kind) for name, kind in files],
        "recordSet": [_records(name, spec) for name in dict.fromkeys(name for name, _ in files)],
    }
    check_described(described, public)
    return described


def check_described(described: Mapping[str, Any], public: Path) -> None:
    """Raise `CalibrantError` for a missing or empty required field, or a file with another digest."""
    for name in REQUIRED:
        if not described.get(name):
            raise CalibrantError(f"croissant.json: {name} is missing")
    for file in described["distribution"]:
        if sha256_of(public / file["contentUrl"]) != file["sha256"]:
            raise CalibrantError(f"croissant.json: {file['contentUrl']} has another digest")


def _citation(spec: SuiteSpec) -> str:
    """Return a BibTeX entry from the specification."""
    fields = {
        "title": f"{spec.title} {spec.version}",
        "author": " and ".join(spec.creators),
        "year": str(spec.date.year),
    } | ({} if spec.url is None else {"url": spec.url})
    listed = ", ".join(f"{name} = {{{text}}}" for name, text in fields.items())
    return f"@misc{{{spec.name}, {listed}}}"


def _file(public: Path, name: str, kind: str) -> dict[str, Any]:
    path = public / name
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": _MEDIA[kind],
        "sha256": sha256_of(path),
    }


def _records(name: str, spec: SuiteSpec) -> dict[str, Any]:
    kind = "parquet" if "parquet" in spec.formats else "jsonl"
    source = f"{name}/{ITEMS}.{kind}"
    fields = [
        {
            "@type": "cr:Field",
            "@id": f"{name}/{column.name}",
            "name": column.name,
            "description": column.means,
            "dataType": "sc:Text",
            "source": {
                "fileObject": {"@id": source},
                "extract": {"column": column.name} if kind == "parquet" else {"jsonPath": f"$.{column.name}"},
            },
        }
        for column in public_columns(spec)
    ]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


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
    """Build the release of a specification in the new or empty folder `out`, atomically.

    Equal specifications and locks give equal bytes, whatever the number of workers.

    lock: lock of an earlier build, whose inputs and versions are required; None: no requirement
    lock_name: name of the lock's file, for the error
    """
    spec = read_specification(specification)
    _check_statements(spec, specification.name)
    actual = make_lock(specification, spec)
    if lock is not None:
        require_equal(lock, actual, lock_name)
    master = _master(specification, spec)
    require_free(out, "a release")
    with making_folder(out) as (suite, scratch):
        return _UnfinishedRelease(spec, specification, master, suite, scratch, actual).build(execution, progress)


def draft_release(specification: Path, out: Path, answered: Mapping[Key, Record]) -> None:
    """Build a release in `out` without audits, certificates, checklist and datasheet; a board needs none of them.

    answered: records of the suite's methods, one for each method and item
    """
    spec = read_specification(specification)
    lock, master = make_lock(specification, spec), _master(specification, spec)
    with making_folder(out) as (suite, scratch):
        _UnfinishedRelease(spec, specification, master, suite, scratch, lock).draft(answered)


def _master(specification: Path, spec: SuiteSpec) -> str:
    return PUBLIC_MASTER if spec.master is None else read_master(resolve_beside(specification, spec.master))


def _check_statements(spec: SuiteSpec, name: str) -> None:
    for key in spec.statements:
        if key not in KEYS:
            raise CalibrantError(f"{name}: statements: unknown key {short_repr(key)}; known: {', '.join(KEYS)}")


@dataclass(frozen=True)
class _UnfinishedRelease:
    """An unfinished release.

    suite: folder that becomes the release; scratch: folder for temporary files
    """

    spec: SuiteSpec
    specification: Path
    master: str
    suite: Path
    scratch: Path
    lock: Lock

    def build(self, execution: Execution, progress: Progress) -> Manifest:
        self._make_folders()
        pools = []
        for number, pool in enumerate(self.spec.pools, 1):
            with _naming_pool(self.specification, number):
                pools.append(build_pool(pool, self.specification, self._gold, self.scratch, execution, progress))
        manifest = self._seal(pools)
        measures = {pool.spec.name: measure_pool(pool, self._gold / ROWS, self.scratch) for pool in pools}
        self._describe(pools, manifest, measures)
        write_sums(self._public)
        return manifest

    def draft(self, answered: Mapping[Key, Record]) -> None:
        self._make_folders()
        self._seal([draft_pool(pool, self.specification, self._gold, answered) for pool in self.spec.pools])
        write_sums(self._public)

    def _make_folders(self) -> None:
        for folder in (self._public, self._gold, self.scratch):
            folder.mkdir(parents=True)

    def _seal(self, pools: Sequence[BuiltPool]) -> Manifest:
        """Write public items, gold, and the manifest with commitments to gold."""
        gold = [pair for pool in pools for pair in write_items(self.spec, pool, self._public, self.scratch)]
        commitments = Commitments.of_gold(self.master, gold)
        self._write_gold(pools, dict(gold), commitments)
        sealed = {
            file_label(self.master, name): file_commitment(self.master, name, (self._gold / name).read_bytes())
            for name in file_names(self._gold)
        }
        write_sums(self._gold)
        manifest = self._manifest(pools, commitments.root, dict(sorted(sealed.items())))
        write_json(self._public / MANIFEST, msgspec.to_builtins(manifest))
        leaves = {"root": commitments.root, "leaves": dict(commitments.leaves)}
        write_json(self._public / "commitments.json", leaves)
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
        """Write the card of a method, in the form of submissions."""
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
        entries = tuple(PoolEntry(pool.spec.name, pool.bench.name, pool.num_items, pool.spec.rows) for pool in pools)
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

    def _describe(self, pools: Sequence[BuiltPool], manifest: Manifest, measures: Mapping[str, PoolMeasures]) -> None:
        """Write the documents of a release: measurements, metadata, checklist, datasheet and page."""
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
        """Return a file of the release with its digest, salted for a file below private `gold`."""
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
                (plural(total, "items"), ""),
                (plural(sum(pool.num_certificates for pool in measures.values()), "certificates"), "verified"),
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
