"""The native pool format of CauSim: one question a line with its program. These classes are its schema."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.dsl.causim.item import BENCHMARK, CausimItem, Labels, Sealed, Task, Vocabulary
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.prompt import ProseStyle, View
from calibrant.dsl.causim.question import (
    Question,
    QuestionRecord,
    QuestionType,
    Scenario,
    question_from_record,
    record_of,
)
from calibrant.dsl.causim.values import ModelError, plain, symbols
from calibrant.dsl.item import Pool
from calibrant.dsl.records import FORMAT, VERSION, Header, read_items, write_records


class LabelsRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The JSON record of difficulty labels; those that do not apply are omitted."""

    size: Annotated[int, Meta(description="number of right answers")]
    trivial: Annotated[bool, Meta(description="`do` covers every required key")]
    effect_all: Annotated[
        bool | UnsetType, Meta(description="something outside `do` changes in all, in some worlds that fit")
    ] = UNSET
    effect_some: Annotated[
        bool | UnsetType, Meta(description="something outside `do` changes in all, in some worlds that fit")
    ] = UNSET
    copy: Annotated[bool | UnsetType, Meta(description="the evidence with `do` written over it is right")] = UNSET


class ItemRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One question. Values are JSON values; a tuple is a list behind the tag "tuple"."""

    id: Annotated[str, Meta(description="unique in the pool")]
    type: Annotated[QuestionType, Meta(description="of the question")]
    scenario: Annotated[Scenario, Meta(description="whether one answer is right or several")]
    program: Annotated[str, Meta(description="the source, which is read and never run")]
    fixed_exogenous: Annotated[dict[str, Any], Meta(description="noise whose value is given")]
    unknown_exogenous: Annotated[list[str], Meta(description="the other noise")]
    labels: Annotated[LabelsRecord, Meta(description="how hard it is")]
    do: Annotated[dict[str, Any], Meta(description="values set by intervention")] = {}
    observed_endogenous: Annotated[dict[str, Any], Meta(description="values seen in the factual world")] = {}
    with_noise: Annotated[bool, Meta(description="a counterfactual that asks for the unknown noise too")] = False
    view: Annotated[View, Meta(description="whether the prompt shows it or sentences")] = "code"
    scm_id: Annotated[str, Meta(description="the program, and its number of nodes")] = ""
    v: Annotated[int, Meta(description="the program, and its number of nodes")] = 0
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
    """`ModelError` where program and question do not fit together."""
    question_record = QuestionRecord(
        record.fixed_exogenous, record.unknown_exogenous, record.do, record.observed_endogenous
    )
    labels = record.labels
    task = Task(record.program, Question(record.type), record.scenario, record.view)
    question = question_from_record(question_record, record.type, task.model, with_noise=record.with_noise)
    task.model.under(question.do)  # a mechanism that raises for a value of `do` refuses the question
    return CausimItem(
        record.id,
        Task(record.program, question, record.scenario, record.view, record.prose),
        Labels(labels.size, labels.trivial, _set(labels.effect_all), _set(labels.effect_some), _set(labels.copy)),
        Sealed(_world(record, task.model)),
        record.scm_id,
        record.v or len(task.model),
        record.topology,
        record.vocabulary,
    )


def _set(value: bool | UnsetType) -> bool | None:
    return None if isinstance(value, UnsetType) else value


def _world(record: ItemRecord, model: Model) -> dict[str, str]:
    world = symbols(record.world)
    if world and set(world) != set(model.noises):
        raise ModelError("world: it does not name every noise variable of the program, and nothing else")
    for node in model.nodes:
        if world and world[node.noise] not in node.support:
            raise ModelError(f"world: {node.noise} never has the value {world[node.noise]}")
    return world


def record_of_item(item: CausimItem) -> ItemRecord:
    """Return the inverse of `item_from_record`."""
    question_record, labels = record_of(item.task.question), item.labels
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
        view="code" if item.task.view == "code" else item.task.view,  # a default is told by identity, which copies lose
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
