"""Pools of a release, and measurements of them."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.options import GivenOptions
from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_sample, is_native_pool
from calibrant.bench.pools.capabilities import CHECK, GENERATE, HARDEN, GenerateRequest, HardenRequest
from calibrant.bench.pools.findings_audit import AUDIT
from calibrant.bench.pools.generated import SuiteGenerator, chosen_suites
from calibrant.bench.protocols import Protocol, chosen_protocols, protocols_of, with_installed
from calibrant.bench.runs.audits import audit_items, reason_of
from calibrant.bench.runs.executors import HERE, Execution, Progress
from calibrant.bench.runs.records import Key, Record, folder_records
from calibrant.bench.runs.runner import EVERYTHING, run, selected_keys
from calibrant.bench.suites.manifest import FOLDER, PoolSpec, certificate_names, certificate_problem, resolve_beside
from calibrant.bench.suites.rescoring import PoolJudge
from calibrant.dsl.errors import CalibrantError, short_repr

# --- The pools of a release: generated or copied, hardened, audited, verified, and answered by calibration rows -------


@dataclass(frozen=True)
class BuiltPool:
    """A pool of a release.

    file: its native file; num_items: number of items in it
    states: id -> state of the item by the audit (open, decided, ...); empty in a draft
    certificates: names of certificate files, all verified; empty in a draft
    """

    spec: PoolSpec
    bench: Benchmark[Any]
    file: Path
    num_items: int
    states: Mapping[str, str] = field(default_factory=dict)
    certificates: Sequence[str] = ()

    @property
    def folder(self) -> Path:
        return self.file.parent

    @property
    def state_counts(self) -> dict[str, int]:
        """Return state -> number of items."""
        return dict(sorted(Counter(self.states.values()).items()))


def build_pool(
    spec: PoolSpec, specification: Path, gold: Path, scratch: Path, execution: Execution, progress: Progress
) -> BuiltPool:
    """Build one pool below `gold`, and the answers of its calibration rows below `gold`/rows.

    `CalibrantError` if an item cannot be audited, or if a certificate does not hold.
    """
    pool = _draw(spec, specification, gold, execution, progress)
    protocols = list(_row_protocols(pool))
    states = _audit(spec, pool.bench, pool.file, scratch / spec.name, execution, progress)
    if problem := certificate_problem(pool.bench, pool.file, progress):
        raise CalibrantError(problem)
    for protocol in protocols:
        folder = scratch / spec.name / "rows" / protocol.name
        run(protocol, [pool.file], folder, execution=execution, progress=progress)
        _write_row(pool, protocol, gold / "rows", folder_records(folder))
    return replace(pool, states=states, certificates=certificate_names(pool.file))


def draft_pool(spec: PoolSpec, specification: Path, gold: Path, answered: Mapping[Key, Record]) -> BuiltPool:
    """Build one pool below `gold` without audits; the answers of its rows are taken from `answered`."""
    pool = _draw(spec, specification, gold, HERE, lambda name, done, total: None)
    for protocol in _row_protocols(pool):
        keys = selected_keys([protocol], [pool.file], EVERYTHING, HERE.wall_budget)
        _write_row(pool, protocol, gold / "rows", map(answered.__getitem__, keys))
    return pool


def _draw(spec: PoolSpec, specification: Path, gold: Path, execution: Execution, progress: Progress) -> BuiltPool:
    """Write the pool's items; return the pool without audit states and certificates."""
    folder = gold / spec.name
    folder.mkdir()
    file = _harden(spec, _source(spec, specification, folder, execution, progress), execution, progress)
    bench = benchmark_of(file)
    _require_verdicts(spec, bench, file)
    return BuiltPool(spec, bench, file, len(bench.items.read_pool(file)))


def check_drawing(spec: PoolSpec) -> None:
    """Raise `CalibrantError` for an unknown suite or option of a pool that will be drawn, before anything is."""
    if spec.seed is not None:
        bench = benchmark(str(spec.benchmark))
        GivenOptions("generate", spec.generate).convert(bench.name, spec.name)
        if isinstance(bench.require(GENERATE), SuiteGenerator):
            chosen_suites(bench.name, spec.strata)


def _source(spec: PoolSpec, specification: Path, folder: Path, execution: Execution, progress: Progress) -> Path:
    """Write the generated, bundled or given items; return their file."""
    target = folder / f"{spec.name}.jsonl"
    if spec.seed is not None:
        bench = benchmark(str(spec.benchmark))
        options = GivenOptions("generate", spec.generate).convert(bench.name, spec.name)
        request = GenerateRequest(
            target, spec.strata, spec.seed, spec.per_stratum, execution, progress, spec.item_options
        )
        bench.require(GENERATE).generate(request, options)
        return target
    source = bundled_source(spec.bundled) if spec.bundled is not None else resolve_beside(specification, str(spec.file))
    bench = benchmark_of(source)
    if spec.benchmark not in (None, bench.name):
        raise CalibrantError(f"{source.name} is a pool of {bench.title}, not of {spec.benchmark}")
    if is_native_pool(source):
        shutil.copyfile(source, target)
    else:
        bench.items.convert(source, target, GivenOptions("pool convert", {}).convert(bench.name, source.name))
    return target


def bundled_source(name: str) -> Path:
    """Return a pool that comes with the package; `CalibrantError` for an unknown name lists them."""
    try:
        return bundled_sample(name)
    except ValueError as error:
        raise CalibrantError(str(error)) from None


def _harden(spec: PoolSpec, file: Path, execution: Execution, progress: Progress) -> Path:
    """Return the file of the hardened pool; write the original pool, the report and the proofs into its folder."""
    if spec.harden is None:
        return file
    bench = benchmark_of(file)
    hardening = bench.require(HARDEN)
    arguments = GivenOptions("harden", spec.harden)
    options = arguments.convert(bench.name, spec.name)
    hardening.check(arguments.values)
    before = file.rename(file.with_name(f"{spec.name}.before.jsonl"))
    report, proofs = file.parent / "hardening.jsonl", file.parent / "hardening"
    hardening.harden(HardenRequest(before, file, report, proofs, EVERYTHING, execution, progress), options)
    return file


def _require_verdicts(spec: PoolSpec, bench: Benchmark[Any], file: Path) -> None:
    """Raise `CalibrantError` for an item whose answers cannot be right or wrong, or whose gold does not score right."""
    for item in bench.items.read_pool(file).items:
        score = bench.scoring.score(item, bench.scoring.no_answer(item), ())
        if not bench.metrics.success.is_defined(score, item.setting):
            raise CalibrantError(
                f"item {short_repr(item.id)} holds nothing out, so that no answer is right or wrong; "
                "give it held-out worlds, or leave it out of the pool"
            )
        gold = bench.training.gold(item)
        if gold is not None and not bench.metrics.success.is_right(bench.scoring.score(item, gold, ()), item.setting):
            raise CalibrantError(
                f"item {short_repr(item.id)}: its own gold does not score right;"
                " what is held out has to have cells that are scored"
            )


def _audit(
    spec: PoolSpec, bench: Benchmark[Any], file: Path, scratch: Path, execution: Execution, progress: Progress
) -> dict[str, str]:
    """Audit every item, write audits and certificates; return the state of each item."""
    auditor = bench.require(AUDIT)
    options = GivenOptions("audit", spec.audit).convert(bench.name, spec.name)
    work = auditor.work(options, None, certify=True)
    audited = audit_items(bench, file, scratch / "audits", work, execution=execution, progress=progress)
    for record in audited.records:
        if record.outcome != "audited":
            raise CalibrantError(f"{record.instance}: no audit: {record.error or record.outcome}")
    lines = (json.dumps(record.to_dict()) + "\n" for record in audited.records)  # without times, which differ
    (file.parent / "audits.jsonl").write_text("".join(lines), encoding="utf-8")
    folder = file.parent / FOLDER
    folder.mkdir()
    list(auditor.report(audited, work, options, None).write_certificates(folder))
    return {record.instance: reason_of(record).state for record in audited.records}


def _row_protocols(pool: BuiltPool) -> Iterator[Protocol]:
    protocols = with_installed(protocols_of(pool.bench), pool.bench.name)
    for row in pool.spec.rows:
        yield from chosen_protocols(protocols, row, {})


def _write_row(pool: BuiltPool, protocol: Protocol, rows: Path, records: Iterable[Record]) -> None:
    """Write a method's answers as a file of a submission, under public ids."""
    public = PublicIds.of_pool(pool.file, pool.bench.items.read_pool(pool.file).items)
    records = sorted(records, key=lambda record: public.public(record.instance))
    crashed = [record.instance for record in records if record.outcome == "crashed"]
    if crashed:
        raise CalibrantError(f"row {protocol.name} crashed on {crashed[0]}")
    folder = rows / protocol.name
    folder.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(submission_line(record, public)) + "\n" for record in records)
    (folder / f"{pool.spec.name}.jsonl").write_text("".join(lines), encoding="utf-8")


def submission_line(record: Record, public: PublicIds) -> dict[str, Any]:
    """Return a record's answer as a line of a submission: the steps of an episode, or the answer."""
    line: dict[str, Any] = {"instanceId": public.public(record.instance), "model": record.protocol}
    if record.steps is not msgspec.UNSET and record.steps:
        return line | {"steps": msgspec.to_builtins(record.steps)}
    return line | {"answer": record.answer}


# --- Measurements of a built pool, which answer questions of checklists -----------------------------------------------


class RowMeasures(msgspec.Struct, frozen=True):
    """Rates of a method on a pool.

    chance, best: expected rates of guessers with the method's evidence; kinds: class of answers -> share of items
    scored_twice_equal: whether scoring the answers a second time gave the same result
    """

    rate: float
    num_answered: int
    chance: float | None
    best: float | None
    kinds: dict[str, float]
    scored_twice_equal: bool


class PoolMeasures(msgspec.Struct, frozen=True):
    """Measurements of a pool.

    num_interactive: number of items that are played in episodes; num_sound: of items without a fault by `pool check`
    num_gold: of items whose gold can be submitted without steps; num_gold_right: of these, where gold scores right
    num_text_equal: of items whose gold scores equally inside a fenced block in prose
    num_empty_right: of items on which an empty answer scores right
    num_listed_right: of items on which gold and an empty answer, as two samples, score more than one half on average
    num_forged: number of answers with a changed step or item; num_forged_refused: of these, that were refused
    states: state by the audit -> number of items; num_certificates: number of verified certificates
    """

    benchmark: str
    num_items: int
    num_interactive: int
    num_sound: int
    num_gold: int
    num_gold_right: int
    num_text_equal: int
    num_empty_right: int
    num_listed_right: int
    num_forged: int
    num_forged_refused: int
    states: dict[str, int]
    num_certificates: int
    rows: dict[str, RowMeasures]


def measure_pool(pool: BuiltPool, rows: Path, scratch: Path) -> PoolMeasures:
    """Measure a pool. rows: folder of the calibration rows' answers."""
    judge = PoolJudge(pool.file)
    items = pool.bench.items.read_pool(pool.file).items
    counts = [_measure_item(judge, item) for item in items]
    totals = {key: sum(count[key] for count in counts) for key in (counts[0] if counts else {})}
    files = [rows / row / f"{pool.spec.name}.jsonl" for row in pool.spec.rows]
    forged = [_is_refused(judge, line, scratch) for file in files for line in _forged_lines(file)]
    return PoolMeasures(
        benchmark=pool.bench.name,
        num_items=len(items),
        num_interactive=sum(map(pool.bench.is_interactive, items)),
        num_sound=_count_sound(pool),
        num_forged=len(forged),
        num_forged_refused=sum(forged),
        states=pool.state_counts,
        num_certificates=len(pool.certificates),
        rows={row: _measure_row(judge, rows / row / f"{pool.spec.name}.jsonl") for row in pool.spec.rows},
        **totals,
    )


def _measure_row(judge: PoolJudge, file: Path) -> RowMeasures:
    cell = judge.score_file(file)
    is_equal = cell == judge.fresh().score_file(file)
    return RowMeasures(cell.rate, cell.num_answered, cell.chance, cell.best, cell.kinds, is_equal)


def _forged_lines(file: Path) -> Iterator[str]:
    """Yield two forgeries of the first answer: for another item, and with another cost of its first step."""
    with file.open(encoding="utf-8") as lines:
        line = json.loads(lines.readline())
    yield json.dumps(line | {"instanceId": f"{line['instanceId']}0"})
    if steps := line.get("steps"):
        yield json.dumps(line | {"steps": [steps[0] | {"cost": steps[0].get("cost", 0) + 1}, *steps[1:]]})


def _is_refused(judge: PoolJudge, line: str, scratch: Path) -> bool:
    file = scratch / "forged.jsonl"
    file.write_text(line + "\n", encoding="utf-8")
    try:
        judge.score_file(file)
    except CalibrantError:
        return True
    return False


def _count_sound(pool: BuiltPool) -> int:
    options = GivenOptions("pool check", {}).convert(pool.bench.name, pool.spec.name)
    (report,) = pool.bench.require(CHECK).check([pool.file], options)
    faulty = {instance for _, instance, _ in report.failures}
    return report.num_instances - len(faulty)


def _measure_item(judge: PoolJudge, item: Any) -> dict[str, int]:
    """Return field of `PoolMeasures` -> 1 if the item counts in it, else 0."""
    bench = judge.bench
    no_answer = bench.scoring.no_answer(item)
    empty = judge.is_right(bench.scoring.score(item, no_answer, ()), item.setting)
    gold = bench.training.gold(item)
    has_gold = gold is not None
    right = gold is not None and _is_right(judge, item, gold)
    text = gold is not None and _is_text_right(judge, item, gold)
    return {
        "num_gold": int(has_gold),
        "num_gold_right": int(right),
        "num_text_equal": int(has_gold and text == right),
        "num_empty_right": int(empty),
        "num_listed_right": int(has_gold and (right + empty) / 2 > 1 / 2),
    }


def _is_right(judge: PoolJudge, item: Any, answer: Mapping[str, Any]) -> bool:
    return judge.is_right(judge.bench.scoring.score(item, answer, ()), item.setting)


def _is_text_right(judge: PoolJudge, item: Any, answer: Mapping[str, Any]) -> bool:
    """Return whether an answer scores right inside a fenced block after a sentence."""
    response = f"My answer is below.\n\n```json\n{json.dumps(answer, indent=2)}\n```\n"
    return _is_right(judge, item, judge.bench.scoring.extract(item, response))
