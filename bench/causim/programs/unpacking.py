"""A pool as the folder of files that the paper describes: programs, bundles, instantiations, query files, state."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from calibrant.bench.causim.programs.conversion import NO_COMMENTS, POOL_NAME, PoolFacts
from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.causim.bundle import Bundle, module_text
from calibrant.dsl.causim.external_programs.sources import STATE_NAME, bundle_of_source
from calibrant.dsl.causim.generated_functions import Draws
from calibrant.dsl.causim.generation import draw_world
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import Model, ModelError, plain, run
from calibrant.dsl.causim.records import (
    ExpectedOutput,
    Instance,
    QueryFile,
    Scm,
    check_id,
    check_version,
    read_pool,
    record_of_item,
    write_queries,
    write_states,
)
from calibrant.dsl.causim.records import QueryMeta as QueryMeta
from calibrant.dsl.errors import CalibrantError
from calibrant.solvers.causim.generation import stored_answers

NUM_INSTANTIATIONS = 10
MAX_TRIES = 10  # seeds for each instantiation that is wanted
MAX_STORED = 100  # answers of a query file
_QUESTION = ("type", "scenario", "program", "fixed_exogenous", "unknown_exogenous", "do", "observed_endogenous")
_SEED = re.compile(r"-([0-9]{3,6})$")


class Instantiation(NamedTuple):
    """One run of a program; values are JSON values."""

    seed: int
    outputs: dict[str, Any]
    exogenous: dict[str, Any]
    structural: dict[str, Any]


def unpack_pool(pool_file: Path, folder: Path) -> list[str]:
    """Write a pool as a folder; return lines that say what was written.

    `CalibrantError` for a folder with files, and for items whose programs have no place in it.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CalibrantError(f"{folder} has files; give a folder that is empty or new")
    pool = read_pool(pool_file)
    by_program = _by_program(pool.items)
    bundles = {place: _bundle(items[0]) for place, items in by_program.items()}
    folder.mkdir(parents=True, exist_ok=True)
    histories: dict[str, list[Bundle]] = {}
    for scm_id, version in sorted(by_program):
        histories.setdefault(scm_id, []).append(bundles[scm_id, version])
    for (scm_id, version), items in by_program.items():
        is_latest = histories[scm_id][-1].v == version
        _write_program(folder, items[0], bundles[scm_id, version], is_latest=is_latest)
        for queries in _query_files(items):
            write_queries(folder, queries)
    write_states(folder / STATE_NAME, (Scm(scm_id, history) for scm_id, history in histories.items()))
    selected = _complete_ids(by_program)
    _write_json(folder / "selected.json", selected)
    facts = PoolFacts(pool.name, dict(pool.metadata), [item.id for item in pool.items])
    _write_json(folder / POOL_NAME, facts)
    counts = f"{len(histories)} programs in {len(by_program)} versions, {len(selected)} of the programs complete"
    return [f"{len(pool)} questions about {counts}, written to {folder}"]


def _by_program(items: Sequence[CausimItem]) -> Mapping[tuple[str, int], list[CausimItem]]:
    groups: dict[tuple[str, int], list[CausimItem]] = {}
    for item in items:
        check_id(item.scm, item.id)
        check_version(item.version, item.id)
        group = groups.setdefault((item.scm, item.version), [])
        if group and group[0].task.source != item.task.source:
            raise CalibrantError(f"{item.id}: another program than that of {group[0].id}, with the same scm_id and v")
        group.append(item)
    return groups


def _bundle(item: CausimItem) -> Bundle:
    return bundle_of_source(item.task.source, item.task.model, item.topology)


def _write_program(folder: Path, item: CausimItem, bundle: Bundle, *, is_latest: bool) -> None:
    place = folder / f"scm_{item.scm}"
    place.mkdir(exist_ok=True)
    texts = {
        "scm_{}{}.py": module_text(bundle).encode(),
        NO_COMMENTS.replace("_v{}", "{}"): item.task.source.encode(),
        "bundle{1}.json": _json(bundle),
        "instantiations{1}.json": _json([entry._asdict() for entry in instantiations(item.task.model, item.scm)]),
    }
    for suffix in (f"_v{item.version}", *([""] if is_latest else [])):
        for name, text in texts.items():
            with whole_file(place / name.format(item.scm, suffix)) as file:
                file.write(text)


def instantiations(model: Model, key: str, number: int = NUM_INSTANTIATIONS) -> Iterator[Instantiation]:
    """Yield runs of a model by ascending seeds; seeds that raise are skipped, up to MAX_TRIES for each run."""
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


def _query_files(items: Sequence[CausimItem]) -> Iterator[QueryFile]:
    groups: dict[tuple[str, str], list[CausimItem]] = {}
    for item in items:
        groups.setdefault((item.task.question.type, item.task.scenario), []).append(item)
    for group in groups.values():
        first = group[0]
        question = first.task.question
        meta = QueryMeta(first.scm, first.version, question.type, first.task.scenario, first.topology)
        yield QueryFile(meta, [_instance(item) for item in group])


def _instance(item: CausimItem) -> Instance:
    record = dict(msgspec.to_builtins(record_of_item(item)))
    question = item.task.question
    support = [plain(answer) for answer in stored_answers(item.task.model, question, MAX_STORED)]
    keys = list(question.required_keys(item.task.model))
    expected = ExpectedOutput(support, keys, item.labels.size, len(support) == item.labels.size)
    seed = _SEED.search(item.id)
    return Instance(
        int(seed.group(1)) if seed else 0,
        record["fixed_exogenous"],
        record["unknown_exogenous"],
        record.get("do", {}),
        record.get("observed_endogenous", {}),
        expected,
        {name: value for name, value in record.items() if name not in (*_QUESTION, "scm_id", "v")},
    )


def _complete_ids(by_program: Mapping[tuple[str, int], Sequence[CausimItem]]) -> list[str]:
    """Return the ids of programs with every version, and questions of every type about each version."""
    types = {item.task.question.type for items in by_program.values() for item in items}
    versions = {version for _, version in by_program}
    complete = {place for place, items in by_program.items() if {item.task.question.type for item in items} == types}
    return [
        scm_id
        for scm_id in sorted({scm_id for scm_id, _ in by_program})
        if all((scm_id, version) in complete for version in versions)
    ]


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def _write_json(path: Path, value: object) -> None:
    with whole_file(path) as file:
        file.write(_json(value))
