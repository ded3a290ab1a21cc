"""Programs in `pool check`, `pool convert` (files to a pool) and `pool unpack` (a pool to the paper's files)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from calibrant.bench.causim.generation import question_plan, versions_of
from calibrant.bench.causim.options import ConvertedItems
from calibrant.bench.pools.item_options import ItemOptions, refused_plan
from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.causim import records
from calibrant.dsl.causim.bundle import Bundle, load_bundle, module_text
from calibrant.dsl.causim.external_programs.sources import (
    MODULE,
    STATE_NAME,
    ProgramSource,
    bundle_of_source,
    read_programs,
)
from calibrant.dsl.causim.generated_functions import TOPOLOGIES, Draws
from calibrant.dsl.causim.generation import draw_world
from calibrant.dsl.causim.item import CausimItem, Labels, load_model
from calibrant.dsl.causim.model import Model, ModelError, assignment_text, plain, run, symbols
from calibrant.dsl.causim.question import QuestionRecord, question_from_record, scenario_of
from calibrant.dsl.causim.records import QueryMeta as QueryMeta
from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line
from calibrant.dsl.item import Pool
from calibrant.dsl.parse_limits import TooLargeError, decode_json, read_bounded
from calibrant.dsl.records import convert_object
from calibrant.dsl.text import plural
from calibrant.solvers.causim.exact import AnswerSet
from calibrant.solvers.causim.generation import Program, items_about, stored_answers
from calibrant.solvers.outcome import Budget, BudgetSpent, Found

if TYPE_CHECKING:
    from calibrant.bench.causim.checking import ProgramReport


# --- Programs in `pool check`, `pool convert` and `pool unpack` -------------------------------------------------------


class CausimPrograms:
    """Implements ProgramFiles (bench.pools.capabilities)."""

    benchmark = "causim"

    def recognizes(self, path: Path) -> bool:
        from calibrant.dsl.causim.external_programs.sources import holds_programs

        return holds_programs(path)

    def check(self, paths: Sequence[Path], options: Any) -> ProgramReport:
        from calibrant.bench.causim.checking import check_programs

        return check_programs(paths, options)

    def convert(self, source: Path, target: Path, options: ItemOptions | None) -> list[str]:

        conversion = convert_programs(source, target, options)
        return [*conversion.lines, f"{plural(conversion.num_items, 'instances')} written to {target}"]

    def unpack(self, pool: Path, folder: Path) -> list[str]:

        return unpack_pool(pool, folder)


PROGRAMS = CausimPrograms()


# --- Pools made from state files, folders and modules: questions of query files, or drawn ones ------------------------
QUERY_GLOB = "scm_*/causal_queries/*/*/causal_queries_v*.json"
POOL_NAME = "pool.json"
NO_COMMENTS = "scm_{}_v{}_nocomments.py"
MAX_SIZE = 200_000  # steps of the count of answers to a question of a query file
_SHOWN_BY = ("view", "prose")  # options that change how a question is shown; all others draw new questions


class PoolFacts(msgspec.Struct, frozen=True):
    """Header of an unpacked pool; order: ids of its items."""

    name: str
    metadata: dict[str, Any]
    order: list[str]


class Conversion(NamedTuple):
    """Result of a conversion; lines: remarks for standard error."""

    num_items: int
    lines: list[str]


@dataclass
class _Totals:
    """Reasons of skipped programs, and number of questions whose stored answers are wrong."""

    skipped: list[str] = field(default_factory=list)
    num_wrong: int = 0


def convert_programs(source: Path, target: Path, options: ItemOptions | None) -> Conversion:
    """Write a pool of the questions of query files, or of drawn ones; `PoolError` names the file that is invalid."""
    values: ConvertedItems = ConvertedItems() if options is None else options.values
    stated: Mapping[str, Any] = {} if options is None else options.stated
    totals = _Totals()
    queries = sorted(source.glob(QUERY_GLOB)) if source.is_dir() else []
    facts = _read_pool_facts(source)
    if queries and not stated.keys() - set(_SHOWN_BY):
        items = [_with_view(item, values) for path in queries for item in _items_of_queries(source, path, totals)]
        if facts is not None:
            items = _in_pool_order(items, facts, source)
    else:
        items = list(_draw_items(source, values, totals))
    if not items:
        reason = totals.skipped[0] if totals.skipped else "no questions of this kind about its programs"
        raise PoolError(reason.removeprefix(f"{source.name}: "), file=source.name)
    metadata = dict(facts.metadata) if facts is not None else {}
    metadata |= {"options": dict(stated)} if stated else {}
    name = facts.name if facts is not None else source.name.partition(".")[0]
    pool = Pool(name, "causim", items, metadata)
    records.write_pool(target, pool.items, name=pool.name, metadata=metadata)
    num_skipped = plural(len(totals.skipped), "programs")
    lines = [f"left out {num_skipped}; the first: {totals.skipped[0]}"] if totals.skipped else []
    if totals.num_wrong:
        states = "states other answers than it has" if totals.num_wrong == 1 else "state other answers than they have"
        lines.append(f"{plural(totals.num_wrong, 'questions')} {states}")
    return Conversion(len(items), lines)


def _read_pool_facts(source: Path) -> PoolFacts | None:
    path = source / POOL_NAME
    if not source.is_dir() or not path.is_file():
        return None
    try:
        return decode_json(read_bounded(path), PoolFacts)
    except (OSError, msgspec.MsgspecError, UnicodeError, TooLargeError) as error:
        raise PoolError(in_one_line(str(error)), file=path.name) from None


def _in_pool_order(items: list[CausimItem], facts: PoolFacts, source: Path) -> list[CausimItem]:
    by_id = {item.id: item for item in items}
    if len(by_id) < len(items) or set(facts.order) != set(by_id) or len(facts.order) != len(by_id):
        raise PoolError(f"{POOL_NAME} lists other items than the query files hold", file=source.name)
    return [by_id[item_id] for item_id in facts.order]


def _with_view(item: CausimItem, options: ConvertedItems) -> CausimItem:
    if options.prose is not None and options.view != "prose":
        raise refused_plan(ValueError("prose is the style of view=prose; give both"))
    task = item.task
    return replace(item, task=replace(task, view=options.view or task.view, style=options.prose or task.style))


# --- Questions of query files -----------------------------------------------------------------------------------------


def _items_of_queries(folder: Path, path: Path, totals: _Totals) -> Iterator[CausimItem]:
    file_name = path.relative_to(folder).as_posix()
    try:
        queries = records.read_queries(path)
    except PoolError as error:
        raise PoolError(error.problem, file=file_name, instance=error.instance, field=error.field) from None
    text = _program_text(folder, queries)
    for index, instance in enumerate(queries.instances):
        location = f"instance {index}"
        try:
            item = (
                _native_item(queries, instance, text)
                if instance.item
                else _foreign_item(queries, instance, text, index)
            )
            totals.num_wrong += _states_other_answers(item, instance)
        except PoolError as error:
            raise error.with_location(file=file_name, instance=location) from None
        except CalibrantError as error:
            raise PoolError(str(error), file=file_name, instance=location) from None
        yield item


def _program_text(folder: Path, queries: records.QueryFile) -> str:
    meta = queries.meta
    module = folder / f"scm_{meta.scm_id}" / NO_COMMENTS.format(meta.scm_id, meta.v)
    if module.is_file():
        return next(read_programs(module)).text
    state = folder / STATE_NAME
    if state.is_file():
        for scm in records.read_states(state):
            for bundle in scm.history:
                if (scm.scm_id, bundle.v) == (meta.scm_id, meta.v):
                    return module_text(bundle, comments=False)
    raise PoolError(f"no program: neither {module.name} nor version {meta.v} in {STATE_NAME}", file=folder.name)


def _question_fields(queries: records.QueryFile, instance: records.Instance, text: str) -> dict[str, Any]:
    meta = queries.meta
    return {
        "type": meta.type,
        "scenario": meta.scenario,
        "program": text,
        "fixed_exogenous": instance.fixed_exogenous,
        "unknown_exogenous": instance.unknown_exogenous,
        "do": instance.do,
        "observed_endogenous": instance.observed_endogenous,
        "scm_id": meta.scm_id,
        "v": meta.v,
    }


def _native_item(queries: records.QueryFile, instance: records.Instance, text: str) -> CausimItem:
    return records.item_from_record(
        convert_object({**instance.item, **_question_fields(queries, instance, text)}, records.ItemRecord)
    )


def _foreign_item(queries: records.QueryFile, instance: records.Instance, text: str, index: int) -> CausimItem:
    meta = queries.meta
    model = load_model(text)
    record = QuestionRecord(
        instance.fixed_exogenous, instance.unknown_exogenous, instance.do, instance.observed_endogenous
    )
    question = question_from_record(record, meta.type, model, with_noise=meta.with_noise)
    answers = AnswerSet(model, question)
    size = answers.size(Budget(MAX_SIZE))
    if not isinstance(size, Found):
        raise ModelError(f"the answers were not counted: {getattr(size, 'reached', 'too many')}")
    if scenario_of(size.value) != meta.scenario:
        raise ModelError(f"the file states {meta.scenario}; with {size.value} answers it is {scenario_of(size.value)}")
    all_change, some_change = answers.effect or (None, None)
    labels = Labels(size.value, question.is_trivial(model), all_change, some_change, answers.copy)
    item_id = f"{meta.scm_id}-v{meta.v:02d}-{meta.type}-{meta.scenario}-{index:03d}"
    fields = _question_fields(queries, instance, text)
    label_fields = {"size": labels.size, "trivial": labels.trivial}
    flags = {"effect_all": labels.effect_all, "effect_some": labels.effect_some, "copy": labels.copy}
    label_fields |= {key: value for key, value in flags.items() if value is not None}
    return records.item_from_record(
        convert_object(
            {
                "id": item_id,
                **fields,
                "labels": label_fields,
                "with_noise": meta.with_noise,
                "topology": meta.topology,
                "vocabulary": "other",
            },
            records.ItemRecord,
        )
    )


def _states_other_answers(item: CausimItem, instance: records.Instance) -> bool:
    """Return whether a stored answer is wrong, or the stored answers are said to be complete and are not."""
    stated = instance.expected_output
    answers = AnswerSet(item.task.model, item.task.question)
    try:
        if any(not answers.contains(symbols(answer)) for answer in stated.support):
            return True
    except (CalibrantError, BudgetSpent):
        return True
    texts = {assignment_text(symbols(answer)) for answer in stated.support}
    return stated.exhausted and (stated.size != item.labels.size or len(texts) != stated.size)


# --- Drawn questions --------------------------------------------------------------------------------------------------


def _draw_items(source: Path, options: ConvertedItems, totals: _Totals) -> Iterator[CausimItem]:
    plan, versions, seed = question_plan(options), versions_of(options.versions), options.seed or 0
    ids: dict[str, int] = {}
    for program_source in _sources(source):
        try:
            model = load_model(program_source.text)
        except ModelError as error:
            totals.skipped.append(f"{program_source.label}: {error}")
            continue
        version = len(model)
        if versions and version not in versions:
            continue
        scm_id = program_source.scm_id or _new_id(program_source.label, ids)
        topology = program_source.topology if program_source.topology in TOPOLOGIES else ""
        program = Program(program_source.text, scm_id, version, topology, "other")
        yield from items_about(program, plan, key=f"{seed}/{scm_id}/{version}", name=f"{scm_id}-s{seed}-v{version:02d}")


def _sources(source: Path) -> Iterator[ProgramSource]:
    """Yield the programs of a source; those of bundles are written without comments, after a check of the bundle."""
    state = source / STATE_NAME if source.is_dir() else source
    if state.suffix == ".json" and state.is_file():
        for scm in records.read_states(state):
            for bundle in scm.history:
                label = f"{state.name}: {scm.scm_id} v{bundle.v}"
                try:
                    load_bundle(bundle)
                except ModelError as error:
                    raise PoolError(str(error), file=state.name, instance=f"{scm.scm_id} v{bundle.v}") from None
                yield ProgramSource(label, module_text(bundle, comments=False), scm.scm_id, bundle.v, bundle.topology)
    else:
        yield from read_programs(source)


def _new_id(label: str, ids: dict[str, int]) -> str:
    """Return an id from the last part of a label, with a number if an earlier program has it."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", label.rpartition(": ")[2].removesuffix(MODULE)).strip("_")[:60] or "program"
    ids[name] = ids.get(name, 0) + 1
    return name if ids[name] == 1 else f"{name}-{ids[name]}"


# --- A pool unpacked as the paper's folder: programs, bundles, instantiations, query files, state ---------------------
NUM_INSTANTIATIONS = 10
MAX_TRIES = 10  # seeds tried for each requested instantiation
MAX_STORED = 100  # answers that a query file lists for a question
_QUESTION = ("type", "scenario", "program", "fixed_exogenous", "unknown_exogenous", "do", "observed_endogenous")
_SEED = re.compile(r"-([0-9]{3,6})$")


class Instantiation(NamedTuple):
    """One run of a program; names to JSON values, `structural` as `outputs`."""

    seed: int
    outputs: dict[str, Any]
    exogenous: dict[str, Any]
    structural: dict[str, Any]


def unpack_pool(pool_file: Path, folder: Path) -> list[str]:
    """Write a pool as a folder; return lines that say what was written.

    Raises `CalibrantError` if the folder has files, or ids and versions of programs cannot be its file names.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CalibrantError(f"{folder} has files; give a folder that is empty or new")
    pool = records.read_pool(pool_file)
    by_program = _by_program(pool.items)
    bundles = {key: _bundle(items[0]) for key, items in by_program.items()}
    folder.mkdir(parents=True, exist_ok=True)
    histories: dict[str, list[Bundle]] = {}
    for scm_id, version in sorted(by_program):
        histories.setdefault(scm_id, []).append(bundles[scm_id, version])
    for (scm_id, version), items in by_program.items():
        is_latest = histories[scm_id][-1].v == version
        _write_program(folder, items[0], bundles[scm_id, version], is_latest=is_latest)
        for queries in _query_files(items):
            records.write_queries(folder, queries)
    records.write_states(folder / STATE_NAME, (records.Scm(scm_id, history) for scm_id, history in histories.items()))
    selected = _complete_ids(by_program)
    _write_json(folder / "selected.json", selected)
    facts = PoolFacts(pool.name, dict(pool.metadata), [item.id for item in pool.items])
    _write_json(folder / POOL_NAME, facts)
    programs = f"{plural(len(histories), 'programs')} in {plural(len(by_program), 'versions')}"
    counts = f"{programs}, {len(selected)} of the programs complete"
    return [f"{plural(len(pool), 'questions')} about {counts}, written to {folder}"]


def _by_program(items: Sequence[CausimItem]) -> Mapping[tuple[str, int], list[CausimItem]]:
    groups: dict[tuple[str, int], list[CausimItem]] = {}
    for item in items:
        records.check_id(item.scm, item.id)
        records.check_version(item.version, item.id)
        group = groups.setdefault((item.scm, item.version), [])
        if group and group[0].task.source != item.task.source:
            raise CalibrantError(f"{item.id}: another program than that of {group[0].id}, with the same scm_id and v")
        group.append(item)
    return groups


def _bundle(item: CausimItem) -> Bundle:
    return bundle_of_source(item.task.source, item.task.model, item.topology)


def _write_program(folder: Path, item: CausimItem, bundle: Bundle, *, is_latest: bool) -> None:
    program_folder = folder / f"scm_{item.scm}"
    program_folder.mkdir(exist_ok=True)
    texts = {
        "scm_{}{}.py": module_text(bundle).encode(),
        NO_COMMENTS.replace("_v{}", "{}"): item.task.source.encode(),
        "bundle{1}.json": _json(bundle),
        "instantiations{1}.json": _json([entry._asdict() for entry in instantiations(item.task.model, item.scm)]),
    }
    for suffix in (f"_v{item.version}", *([""] if is_latest else [])):
        for name, text in texts.items():
            with open_atomically(program_folder / name.format(item.scm, suffix)) as file:
                file.write(text)


def instantiations(model: Model, key: str, number: int = NUM_INSTANTIATIONS) -> Iterator[Instantiation]:
    """Yield runs of a model by ascending seed; failing seeds are skipped, at most MAX_TRIES * `number` are tried."""
    num_runs = 0
    for seed in count():
        if num_runs == number or seed == number * MAX_TRIES:
            return
        world = draw_world(Draws("instantiation", key, len(model), seed), model)
        try:
            values = plain(run(model, world, {}))
        except ModelError:
            continue
        num_runs += 1
        yield Instantiation(seed, values, plain(world), values)


def _query_files(items: Sequence[CausimItem]) -> Iterator[records.QueryFile]:
    groups: dict[tuple[str, str], list[CausimItem]] = {}
    for item in items:
        groups.setdefault((item.task.question.type, item.task.scenario), []).append(item)
    for group in groups.values():
        first = group[0]
        question = first.task.question
        meta = QueryMeta(first.scm, first.version, question.type, first.task.scenario, first.topology)
        yield records.QueryFile(meta, [_instance(item) for item in group])


def _instance(item: CausimItem) -> records.Instance:
    record = dict(msgspec.to_builtins(records.record_of_item(item)))
    question = item.task.question
    support = [plain(answer) for answer in stored_answers(item.task.model, question, MAX_STORED)]
    keys = list(question.required_keys(item.task.model))
    expected = records.ExpectedOutput(support, keys, item.labels.size, len(support) == item.labels.size)
    seed = _SEED.search(item.id)
    return records.Instance(
        int(seed.group(1)) if seed else 0,
        record["fixed_exogenous"],
        record["unknown_exogenous"],
        record.get("do", {}),
        record.get("observed_endogenous", {}),
        expected,
        {name: value for name, value in record.items() if name not in (*_QUESTION, "scm_id", "v")},
    )


def _complete_ids(by_program: Mapping[tuple[str, int], Sequence[CausimItem]]) -> list[str]:
    """Return ids of the programs that have all versions of the pool, each with questions of all its types."""
    types = {item.task.question.type for items in by_program.values() for item in items}
    versions = {version for _, version in by_program}
    complete = {key for key, items in by_program.items() if {item.task.question.type for item in items} == types}
    return [
        scm_id
        for scm_id in sorted({scm_id for scm_id, _ in by_program})
        if all((scm_id, version) in complete for version in versions)
    ]


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _write_json(path: Path, value: object) -> None:
    with open_atomically(path) as file:
        file.write(_json(value))
