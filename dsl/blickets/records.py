"""The native pool format of the extended blickets: one JSON object for each item. These classes are its schema."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from calibrant.dsl.blickets.item import (
    MAX_OBJECTS,
    MIN_OBJECTS,
    BlicketItem,
    Condition,
    Count,
    Exposure,
    Mechanism,
    OrderReading,
    Sealed,
    SwitchBy,
    Task,
    object_numbers,
    rule_from_json,
)
from calibrant.dsl.episode import ActionError
from calibrant.dsl.errors import PoolError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.records import FORMAT, VERSION, Header, read_items, write_records
from calibrant.dsl.text import Wording

BENCHMARK = "blickets"
MAX_BUDGET = 100_000


class RuleRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A rule of the detector."""

    rule: Annotated[Literal["conjunctive", "disjunctive"], Meta(description="type of the rule")]
    blickets: Annotated[list[str], Meta(description="names of the blickets")]
    order: Annotated[
        list[str] | UnsetType,
        Meta(
            description="the blickets in the order in which they have to be placed; absent where that does not matter"
        ),
    ] = UNSET


class LaterRecord(msgspec.Struct, forbid_unknown_fields=True):
    """A further rule."""

    rule: Annotated[RuleRecord, Meta(description="the rule in force from the switch point on")]
    switch: Annotated[
        int, Meta(description="switch point: number of activations, or moves, after which the rule is in force")
    ]


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The JSON record of an item's hidden part."""

    rule1: Annotated[RuleRecord, Meta(description="in force at first")]
    rule2: Annotated[RuleRecord | UnsetType, Meta(description="in force after the switch, if there is one")] = UNSET
    switch: Annotated[
        int | UnsetType, Meta(description="number of activations, or moves, after which rule2 is in force")
    ] = UNSET
    later: Annotated[list[LaterRecord], Meta(description="the rules after rule2")] = []
    switch_by: Annotated[SwitchBy, Meta(description="unit of switch points: activations or moves")] = (
        SwitchBy.ACTIVATIONS
    )
    p: Annotated[float, Meta(description="probability that a satisfied rule reads ACTIVE")] = 1.0
    noise_seed: Annotated[int, Meta(description="seed of the uniform random numbers, one for each move")] = 0
    draws: Annotated[
        list[float],
        Meta(description="given values of the first of these random numbers; the seed determines the others"),
    ] = []
    start_on: Annotated[
        list[str] | UnsetType,
        Meta(
            description="objects on the detector at the start, in the order of placement; absent where it starts empty"
        ),
    ] = UNSET
    check_after_moves: Annotated[int, Meta(description="submissions are refused before that many moves")] = 0
    check_after_switch: Annotated[
        bool, Meta(description="submissions are refused until the last switch has left evidence")
    ] = False


class ItemRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One item."""

    id: Annotated[str, Meta(description="unique in the pool")]
    n: Annotated[int, Meta(description="number of objects")]
    objects: Annotated[list[str], Meta(description="names of the objects")]
    budget: Annotated[int, Meta(description="largest number of moves")]
    condition: Annotated[Condition, Meta(description="kind of mechanism behind the detector")]
    sealed: Annotated[SealedRecord, Meta(description="the mechanism")]
    count: Annotated[Count, Meta(description="what counts as an activation")] = Count.LEVEL
    order_reading: Annotated[OrderReading, Meta(description="whether distractors between ordered blickets matter")] = (
        OrderReading.RELATIVE
    )
    informed: Annotated[bool, Meta(description="whether the agent is told the condition")] = False
    start: Annotated[
        Literal["empty", "random"], Meta(description="whether objects are on the detector at the start")
    ] = "empty"
    strict_singleton: Annotated[
        bool,
        Meta(description="whether an answer to a rule of one blicket must state the form in which the item states it"),
    ] = False
    graded: Annotated[bool, Meta(description="whether an ACTIVE reading tells how many blickets are on")] = False
    labels: Annotated[dict[str, str], Meta(description="stratum, seed and difficulty, for tables and matching")] = {}
    wording: Annotated[
        Wording | UnsetType, Meta(description="whether the prompt has the standard sentences; absent where it has")
    ] = UNSET


def item_from_record(record: ItemRecord) -> BlicketItem:
    """Return the item of a record; `PoolError` names an invalid field."""
    _check_task(record)
    sealed = record.sealed
    _check_switches(sealed)
    objects = tuple(record.objects)
    rules = [sealed.rule1]
    switches = []
    if not isinstance(sealed.rule2, UnsetType) and not isinstance(sealed.switch, UnsetType):
        rules += [sealed.rule2, *(later.rule for later in sealed.later)]
        switches += [sealed.switch, *(later.switch for later in sealed.later)]
    task = Task(
        objects,
        record.budget,
        record.count,
        record.order_reading,
        record.condition if record.informed else None,
        record.graded,
        "standard" if isinstance(record.wording, UnsetType) else record.wording,
    )
    start = None
    if not isinstance(sealed.start_on, UnsetType):
        start = _object_numbers(sealed.start_on, objects, "sealed.start_on") if sealed.start_on else ()
    return BlicketItem(
        record.id,
        record.condition,
        task,
        Sealed(
            mechanisms=tuple(_mechanism(rule, objects, f"sealed.rule{k}") for k, rule in enumerate(rules, 1)),
            switches=tuple(switches),
            switch_by=sealed.switch_by,
            p=sealed.p,
            noise_seed=sealed.noise_seed,
            draws=tuple(sealed.draws),
            start_on=start,
            exposure=Exposure(sealed.check_after_moves, sealed.check_after_switch),
            strict_singleton=record.strict_singleton,
        ),
        dict(record.labels),
    )


def _require(holds: bool, field: str, problem: str) -> None:
    if not holds:
        raise PoolError(problem, field=field)


def _check_task(record: ItemRecord) -> None:
    objects, n = record.objects, len(record.objects)
    _require(bool(record.id), "id", "empty")
    _require(MIN_OBJECTS <= n <= MAX_OBJECTS, "objects", f"{n} objects; {MIN_OBJECTS} to {MAX_OBJECTS} are allowed")
    _require(record.n == n, "n", f"{record.n}, but {n} objects are listed")
    _require(len(set(objects)) == n, "objects", "a name occurs twice")
    for name in objects:
        _require(0 < len(name) <= 60 and name.isprintable(), "objects", f"{short_repr(name)} is no name")
    _require(1 <= record.budget <= MAX_BUDGET, "budget", f"{record.budget}; 1 to {MAX_BUDGET} moves are allowed")
    random = record.start == "random"
    _require(random != isinstance(record.sealed.start_on, UnsetType), "start", "random goes with sealed.start_on")


def _check_switches(sealed: SealedRecord) -> None:
    lone = isinstance(sealed.rule2, UnsetType)
    _require(lone == isinstance(sealed.switch, UnsetType), "sealed.switch", "rule2 and switch go together")
    _require(not (lone and sealed.later), "sealed.later", "there is no rule2 before it")
    points = [] if isinstance(sealed.switch, UnsetType) else [sealed.switch, *(later.switch for later in sealed.later)]
    _require(all(point >= 1 for point in points), "sealed.switch", "a switch point below 1")
    _require(points == sorted(set(points)), "sealed.later", "switch points do not ascend")
    _require(0 < sealed.p <= 1, "sealed.p", f"{sealed.p}; above 0 and at most 1 is allowed")
    _require(all(0 <= draw < 1 for draw in sealed.draws), "sealed.draws", "a draw outside [0, 1)")
    _require(sealed.noise_seed >= 0, "sealed.noise_seed", "negative")
    _require(sealed.check_after_moves >= 0, "sealed.check_after_moves", "negative")


def _mechanism(record: RuleRecord, objects: tuple[str, ...], field: str) -> Mechanism:
    try:
        rule = rule_from_json({"rule": record.rule, "blickets": record.blickets}, objects)
    except ActionError as error:
        raise PoolError(str(error), field=field) from None
    if isinstance(record.order, UnsetType):
        return Mechanism(rule)
    order = _object_numbers(record.order, objects, f"{field}.order")
    _require(sorted(record.order) == sorted(record.blickets), f"{field}.order", "is not an order of the blickets")
    _require(record.rule == "conjunctive", f"{field}.order", "only a conjunctive rule has an order")
    return Mechanism(rule, order)


def _object_numbers(names: list[str], objects: tuple[str, ...], field: str) -> tuple[int, ...]:
    try:
        return object_numbers(names, objects)
    except ActionError as error:
        raise PoolError(str(error), field=field) from None


def record_from_item(item: BlicketItem) -> ItemRecord:
    """Return the record of an item; the inverse of `item_from_record`."""
    task, sealed = item.task, item.sealed
    rules = [_rule_record(mechanism, task.objects) for mechanism in sealed.mechanisms]
    start = sealed.start_on
    return ItemRecord(
        id=item.id,
        n=task.n,
        objects=list(task.objects),
        budget=task.budget,
        condition=item.condition,
        sealed=SealedRecord(
            rule1=rules[0],
            rule2=rules[1] if len(rules) > 1 else UNSET,
            switch=sealed.switches[0] if sealed.switches else UNSET,
            later=[LaterRecord(rule, point) for rule, point in zip(rules[2:], sealed.switches[1:], strict=True)],
            switch_by=sealed.switch_by,
            p=sealed.p,
            noise_seed=sealed.noise_seed,
            draws=list(sealed.draws),
            start_on=UNSET if start is None else [task.objects[i] for i in start],
            check_after_moves=sealed.exposure.moves,
            check_after_switch=sealed.exposure.after_switch,
        ),
        count=task.count,
        order_reading=task.order_reading,
        informed=task.condition is not None,
        start="empty" if start is None else "random",
        strict_singleton=sealed.strict_singleton,
        graded=task.graded,
        labels=dict(item.labels),
        wording=UNSET if task.wording == "standard" else task.wording,
    )


def _rule_record(mechanism: Mechanism, objects: tuple[str, ...]) -> RuleRecord:
    stated = mechanism.rule.as_json(objects)
    order = mechanism.order
    return RuleRecord(
        stated["rule"], stated["blickets"], UNSET if order is None else [objects[index] for index in order]
    )


def read_pool(path: Path) -> Pool[BlicketItem]:
    """Read the items of a pool file; `PoolError` names file, line or item, and field."""
    return read_items(path, BENCHMARK, ItemRecord, item_from_record)


def write_pool(path: Path, name: str, items: Iterable[BlicketItem], metadata: dict[str, Any] | None = None) -> None:
    """Write a pool file; it appears complete or not at all."""
    header = Header(format=FORMAT, version=VERSION, benchmark=BENCHMARK, name=name, metadata=metadata or {})
    write_records(path, header, (record_from_item(item) for item in items))
