"""Files of CauSim questions: our pool format, and the paper's state and query files.

State: {"scms": [{"scm_id", "history": [bundle, ...]}]}, one bundle (program and graph) for each version. Queries:
scm_<id>/causal_queries/<type>/<scenario>/causal_queries_v<v>.json with `meta` and `instances`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.dsl.atomic_write import open_atomically
from calibrant.dsl.causim import question as causim_question
from calibrant.dsl.causim.bundle import Bundle
from calibrant.dsl.causim.item import BENCHMARK, CausimItem, Labels, Sealed, Task, Vocabulary
from calibrant.dsl.causim.model import Model, ModelError, plain, symbols
from calibrant.dsl.causim.prompt import ProseStyle, View
from calibrant.dsl.errors import PoolError, in_one_line, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.parse_limits import TooLargeError, check_json_depth
from calibrant.dsl.records import FORMAT, VERSION, Header, read_items, write_records

# --- The native pool format of CauSim: a question with its program in each line. These classes are its schema ---------


class LabelsRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON record of difficulty labels; those that do not apply are omitted."""

    size: Annotated[int, Meta(description="number of right answers")]
    trivial: Annotated[bool, Meta(description="`do` covers every required key")]
    effect_all: Annotated[
        bool | UnsetType, Meta(description="a variable outside `do` changes in all worlds that fit")
    ] = UNSET
    effect_some: Annotated[
        bool | UnsetType, Meta(description="a variable outside `do` changes in some world that fits")
    ] = UNSET
    copy: Annotated[bool | UnsetType, Meta(description="the evidence with `do` written over it is right")] = UNSET


class ItemRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One question. Values are JSON values; a tuple is a list behind the tag "tuple"."""

    id: Annotated[str, Meta(description="unique in the pool")]
    type: Annotated[causim_question.QuestionType, Meta(description="type of the question")]
    scenario: Annotated[causim_question.Scenario, Meta(description="whether one answer is right or several")]
    program: Annotated[str, Meta(description="the source, which is read and never run")]
    fixed_exogenous: Annotated[dict[str, Any], Meta(description="noise whose value is given")]
    unknown_exogenous: Annotated[list[str], Meta(description="the other noise")]
    labels: Annotated[LabelsRecord, Meta(description="difficulty labels")]
    do: Annotated[dict[str, Any], Meta(description="values set by intervention")] = {}
    observed_endogenous: Annotated[dict[str, Any], Meta(description="values seen in the factual world")] = {}
    with_noise: Annotated[bool, Meta(description="a counterfactual that asks for the unknown noise too")] = False
    view: Annotated[View, Meta(description="whether the prompt shows the program or sentences")] = "code"
    scm_id: Annotated[str, Meta(description="id of the program")] = ""
    v: Annotated[int, Meta(description="number of nodes of the program")] = 0
    topology: Annotated[str, Meta(description="one of the six, or empty")] = ""
    world: Annotated[
        dict[str, Any], Meta(description="sealed, the noise of the world that the question was drawn from")
    ] = {}
    prose: Annotated[ProseStyle, Meta(description="style of the prose")] = "sentences"
    vocabulary: Annotated[Vocabulary, Meta(description="of the program's values; other if it is from elsewhere")] = (
        "nonsense"
    )


def read_pool(path: Path) -> Pool[CausimItem]:
    """Read the pool in a file; programs are read, never run. `PoolError` names file, item and field."""
    return read_items(path, BENCHMARK, ItemRecord, item_from_record)


def item_from_record(record: ItemRecord) -> CausimItem:
    """Return the item of a record; `ModelError` if the question is invalid for the program."""
    question_record = causim_question.QuestionRecord(
        record.fixed_exogenous, record.unknown_exogenous, record.do, record.observed_endogenous
    )
    labels = record.labels
    # parses the program, against whose model the question is then checked
    task = Task(record.program, causim_question.Question(record.type), record.scenario, record.view)
    question = causim_question.question_from_record(
        question_record, record.type, task.model, with_noise=record.with_noise
    )
    task.model.under(question.do)  # raises if a mechanism raises for a value of `do`
    return CausimItem(
        record.id,
        Task(record.program, question, record.scenario, record.view, record.prose),
        Labels(
            labels.size,
            labels.trivial,
            effect_all=_none_if_unset(labels.effect_all),
            effect_some=_none_if_unset(labels.effect_some),
            copy=_none_if_unset(labels.copy),
        ),
        Sealed(_world(record, task.model)),
        scm=record.scm_id,
        version=record.v or len(task.model),
        topology=record.topology,
        vocabulary=record.vocabulary,
    )


def _none_if_unset(value: bool | UnsetType) -> bool | None:
    return None if isinstance(value, UnsetType) else value


def _world(record: ItemRecord, model: Model) -> dict[str, str]:
    world = symbols(record.world)
    if world and set(world) != set(model.noises):
        raise ModelError("world: it must name exactly the noise variables of the program")
    for node in model.nodes:
        if world and world[node.noise] not in node.support:
            raise ModelError(f"world: {node.noise} never has the value {world[node.noise]}")
    return world


def record_of_item(item: CausimItem) -> ItemRecord:
    """Return the record of an item, the inverse of `item_from_record`."""
    question_record, labels = causim_question.record_of(item.task.question), item.labels
    flags = {"effect_all": labels.effect_all, "effect_some": labels.effect_some, "copy": labels.copy}
    return ItemRecord(
        id=item.id,
        type=item.task.question.type,
        scenario=item.task.scenario,
        program=item.task.source,
        fixed_exogenous=question_record.fixed_exogenous,
        unknown_exogenous=question_record.unknown_exogenous,
        labels=LabelsRecord(
            labels.size, labels.trivial, **{name: value for name, value in flags.items() if value is not None}
        ),
        do=question_record.do,
        observed_endogenous=question_record.observed_endogenous,
        with_noise=item.task.question.with_noise,
        # view, prose and vocabulary: msgspec omits a default by identity, which copies lose
        view="code" if item.task.view == "code" else item.task.view,
        scm_id=item.scm,
        v=item.version,
        topology=item.topology,
        world=plain(item.sealed.world),
        prose="sentences" if item.task.style == "sentences" else item.task.style,
        vocabulary="nonsense" if item.vocabulary == "nonsense" else item.vocabulary,
    )


def write_pool(
    path: Path, items: Iterable[CausimItem], *, name: str = "", metadata: dict[str, Any] | None = None
) -> None:
    """Write a native pool file, whole or not at all."""
    header = Header(format=FORMAT, version=VERSION, benchmark=BENCHMARK, name=name, metadata=metadata or {})
    write_records(path, header, map(record_of_item, items))


# --- State files and query files in the layout of the paper -----------------------------------------------------------
R = TypeVar("R")
MAX_BYTES = 1_000_000_000  # of a state or query file
MAX_VERSION = 10_000  # the version is part of file names
_ID = re.compile(r"[A-Za-z0-9_-]{1,80}")


class Scm(msgspec.Struct, frozen=True):
    """A program with its versions in the order of growth; in the paper's files history[k] has k + 1 nodes."""

    scm_id: str
    history: list[Bundle]


class StateFile(msgspec.Struct, frozen=True):
    scms: list[Scm]


class ExpectedOutput(msgspec.Struct, frozen=True):
    """support: stored right answers; size: number of all right answers; exhausted: whether all are stored."""

    support: list[dict[str, Any]]
    required_keys: list[str]
    size: int
    exhausted: bool


class Instance(msgspec.Struct, frozen=True, omit_defaults=True):
    """One question; values are JSON values.

    item: further fields of the native pool record that the file was unpacked from; empty in other files
    """

    seed: int
    fixed_exogenous: dict[str, Any]
    unknown_exogenous: list[str]
    do: dict[str, Any]
    observed_endogenous: dict[str, Any]
    expected_output: ExpectedOutput
    item: dict[str, Any] = {}


class QueryMeta(msgspec.Struct, frozen=True, omit_defaults=True):
    """The fields that the instances of a file share."""

    scm_id: str
    v: int
    type: causim_question.QuestionType
    scenario: causim_question.Scenario
    topology: str = ""
    evidence: str = "full"
    with_noise: bool = False


class QueryFile(msgspec.Struct, frozen=True):
    meta: QueryMeta
    instances: list[Instance]


def read_states(path: Path) -> list[Scm]:
    """Read the programs of a state file; `PoolError` names the file and the invalid field."""
    scms = _read_file(path, StateFile).scms
    for scm in scms:
        check_id(scm.scm_id, path.name)
        for bundle in scm.history:
            check_version(bundle.v, path.name)
    if len({scm.scm_id for scm in scms}) < len(scms):
        raise PoolError("two programs have the same scm_id", file=path.name)
    return scms


def read_queries(path: Path) -> QueryFile:
    """Read a query file; `PoolError` names the file and the invalid field."""
    queries = _read_file(path, QueryFile)
    check_id(queries.meta.scm_id, path.name)
    check_version(queries.meta.v, path.name)
    return queries


def write_states(path: Path, scms: Iterable[Scm]) -> None:
    """Write a state file, whole or not at all."""
    _write(path, StateFile(list(scms)))


def query_path(folder: Path, meta: QueryMeta) -> Path:
    """Return the path of a query file; `PoolError` for an id that may not be part of a path."""
    check_id(meta.scm_id, "")
    return (
        folder / f"scm_{meta.scm_id}" / "causal_queries" / meta.type / meta.scenario / f"causal_queries_v{meta.v}.json"
    )


def write_queries(folder: Path, queries: QueryFile) -> Path:
    """Write a query file to its path in the folder; return the path."""
    path = query_path(folder, queries.meta)
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(path, queries)
    return path


def _read_file(path: Path, kind: type[R]) -> R:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise PoolError(f"larger than {MAX_BYTES} bytes", file=path.name)
        text = path.read_bytes()  # up to MAX_BYTES, a larger limit than that of other JSON texts
        check_json_depth(text)
        return msgspec.json.decode(text, type=kind)
    except OSError as error:
        raise PoolError(error.strerror or "cannot be read", file=path.name) from None
    except (msgspec.MsgspecError, UnicodeError, TooLargeError) as error:
        raise PoolError(in_one_line(str(error)), file=path.name) from None


def _write(path: Path, record: msgspec.Struct) -> None:
    with open_atomically(path) as file:
        file.write(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def check_version(version: int, file: str) -> None:
    """Raise `PoolError` for a version that may not be part of a path."""
    if not 0 <= version <= MAX_VERSION:
        raise PoolError(f"{short_repr(version)}; a number from 0 to {MAX_VERSION} is expected", file=file, field="v")


def check_id(scm_id: str, file: str) -> None:
    """Raise `PoolError` for an id that may not be part of a path."""
    if not _ID.fullmatch(scm_id):
        raise PoolError(f"{short_repr(scm_id)}; letters, digits, _ and - are allowed", file=file, field="scm_id")
