"""The native pool format of logic models: one JSON object for each item. These classes are its schema."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, cast

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.dsl.errors import CalibrantError, PoolError, readable_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.logic import item as logic_item
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.trajectories import (
    TrajectoryItemRecord,
    is_trajectory_item,
    item_from_trajectories,
    record_from_trajectories,
)
from calibrant.dsl.records import FORMAT, VERSION, Header, read_items, write_records
from calibrant.dsl.text import Wording

BENCHMARK = "logic"
MAX_EDGES, MAX_EXPERIMENTS = 20_000, 20_000


class ExperimentRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Clamps of an experiment."""

    stimuli: Annotated[list[str], Meta(description="stimuli that are present")]
    inhibited: Annotated[list[str], Meta(description="nodes that are forced to 0")]


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True):
    """Hidden part of an item."""

    gold: Annotated[list[str], Meta(description="clauses of the model that the values come from")]
    answers: Annotated[
        list[str], Meta(description="answers of that model to each question, one digit for each readout")
    ]
    optimum: Annotated[
        tuple[int, int], Meta(description="least misfit of the class, and least size of its models with that misfit")
    ]


class ItemRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One item of experiments. FORMS: records of other items of a pool, by a field that they alone have."""

    FORMS: ClassVar[Mapping[str, type[msgspec.Struct]]] = {"genes": TrajectoryItemRecord}
    id: Annotated[str, Meta(description="unique in the pool")]
    prior: Annotated[list[tuple[str, int, str]], Meta(description="edges as source, sign (1 or -1), target")]
    stimuli: Annotated[list[str], Meta(description="names in the order of the header")]
    inhibitors: Annotated[list[str], Meta(description="nodes that experiments may inhibit, in the order of the header")]
    readouts: Annotated[list[str], Meta(description="measured nodes, in the order of values")]
    experiments: Annotated[list[ExperimentRecord], Meta(description="measured experiments")]
    values: Annotated[
        list[list[float | None]], Meta(description="a row an experiment, a value a readout; null where not measured")
    ]
    factor: Annotated[int, Meta(description="values are multiplied by it before they are rounded")] = 100
    rounding: Annotated[logic_item.Rounding, Meta(description="how multiplied values become integers")] = "round"
    compress: Annotated[bool, Meta(description="nodes that are neither clamped nor measured are merged")] = True
    max_clause: Annotated[int, Meta(description="most literals of a clause; 0 sets no limit")] = 0
    fit: Annotated[str, Meta(description='tolerance of the misfit as a decimal text, or "any"')] = "0"
    size: Annotated[int | None, Meta(description="literals beyond the optimum's; null sets no limit")] = 0
    questions: Annotated[list[ExperimentRecord], Meta(description="held-out experiments that are asked for")] = []
    sealed: Annotated[SealedRecord | UnsetType, Meta(description="the truth; absent of data without a known one")] = (
        UNSET
    )
    labels: Annotated[dict[str, str], Meta(description="stratum, and what describes how hard the item is")] = {}
    wording: Annotated[
        Wording | UnsetType, Meta(description="whether the prompt has the standard sentences; absent where it has")
    ] = UNSET


def item_from_record(record: ItemRecord | TrajectoryItemRecord) -> logic_item.LogicItem:
    """Return the item of a record of experiments or of trajectories; `PoolError` names an invalid field."""
    if isinstance(record, TrajectoryItemRecord):
        # readers of pools tell the forms of items by `is_trajectory_item`
        return cast("logic_item.LogicItem", item_from_trajectories(record))
    _check_names(record)
    if len(record.prior) > MAX_EDGES or len(record.experiments) + len(record.questions) > MAX_EXPERIMENTS:
        raise PoolError(f"more than {MAX_EDGES} edges or {MAX_EXPERIMENTS} experiments", field="prior")
    try:
        task = logic_item.Task(
            tuple(logic_item.Edge(*edge) for edge in record.prior),
            logic_item.Setup(tuple(record.stimuli), tuple(record.inhibitors), tuple(record.readouts)),
            tuple(map(_experiment, record.experiments)),
            tuple(map(tuple, record.values)),
            logic_item.Options(record.factor, record.rounding, record.compress, record.max_clause),
            logic_item.Tolerance(record.fit, record.size),
            tuple(map(_experiment, record.questions)),
            "standard" if isinstance(record.wording, UnsetType) else record.wording,
        )
    except CalibrantError as error:
        raise PoolError(str(error), field="task") from None
    sealed = None if isinstance(record.sealed, UnsetType) else _sealed(record.sealed, task)
    return logic_item.LogicItem(record.id, task, sealed, record.labels)


def _check_names(record: ItemRecord) -> None:
    names = {
        "prior": [name for source, _, target in record.prior for name in (source, target)],
        "stimuli": record.stimuli,
        "inhibitors": record.inhibitors,
        "readouts": record.readouts,
    }
    for field, entries in names.items():
        strange = next((name for name in entries if not logic_item.is_node_name(name)), None)
        if strange is not None:
            raise PoolError(f"{readable_repr(strange)} is no name of a node", field=field)


def _experiment(record: ExperimentRecord) -> logic_item.Experiment:
    return logic_item.Experiment(frozenset(record.stimuli), frozenset(record.inhibited))


def _sealed(record: SealedRecord, task: logic_item.Task) -> logic_item.Sealed:
    try:
        gold = frozenset(map(logic_item.parse_clause, record.gold))
    except CalibrantError as error:
        raise PoolError(str(error), field="sealed.gold") from None
    rule = reference.class_violation(gold, task)
    if rule:
        raise PoolError(f"no model of the class: {rule}", field="sealed.gold")
    answers = tuple(reference.predict(gold, task.setup, question) for question in task.questions)
    if list(answers) != record.answers:
        raise PoolError("not the answers of the gold model to the questions", field="sealed.answers")
    misfit, size = record.optimum
    if not 0 <= misfit <= reference.misfit(gold, task) or size < 0:
        raise PoolError("a least misfit above that of the gold model, or a number below 0", field="sealed.optimum")
    return logic_item.Sealed(gold, answers, record.optimum)


def record_from_item(item: logic_item.LogicItem) -> ItemRecord | TrajectoryItemRecord:
    """Return the record of an item."""
    if is_trajectory_item(item):
        return record_from_trajectories(item)
    task, sealed = item.task, item.sealed
    return ItemRecord(
        item.id,
        [(edge.source, edge.sign, edge.target) for edge in task.prior],
        list(task.setup.stimuli),
        list(task.setup.inhibitors),
        list(task.setup.readouts),
        [_record(experiment) for experiment in task.experiments],
        [list(row) for row in task.values],
        task.options.factor,
        task.options.rounding,
        task.options.compress,
        task.options.max_clause,
        task.tolerance.fit,
        task.tolerance.size,
        [_record(experiment) for experiment in task.questions],
        SealedRecord(logic_item.model_texts(sealed.gold), list(sealed.answers), sealed.optimum) if sealed else UNSET,
        dict(item.labels),
        UNSET if task.wording == "standard" else task.wording,
    )


def _record(experiment: logic_item.Experiment) -> ExperimentRecord:
    return ExperimentRecord(sorted(experiment.on), sorted(experiment.inhibited))


def read_pool(path: Path) -> Pool[logic_item.LogicItem]:
    """Return the items of a native file; `PoolError` names file, line and invalid field."""
    return read_items(path, BENCHMARK, ItemRecord, item_from_record)


def write_pool(
    path: Path, name: str, items: Iterable[logic_item.LogicItem], metadata: dict[str, Any] | None = None
) -> None:
    """Write items as a native file, complete or not at all."""
    header = Header(format=FORMAT, version=VERSION, benchmark=BENCHMARK, name=name, metadata=metadata or {})
    write_records(path, header, map(record_from_item, items))
