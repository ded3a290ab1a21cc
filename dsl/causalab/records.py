"""Native pool files of CausaLab: items state all their numbers; those that are shown are recomputed on reading."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from calibrant.dsl.causalab.item import BENCHMARK, Bases, Family, LabItem, Name, Terms, Traced, Weights, lab_item
from calibrant.dsl.causalab.mechanism import FREQUENCY, TRIES, Draw, Equation, Mechanism, Noise, Term
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.errors import CalibrantError, PoolError, short_repr
from calibrant.dsl.item import Pool
from calibrant.dsl.records import FORMAT, VERSION, Header, read_items, write_records
from calibrant.dsl.text import Wording


class EquationRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """The structural equation of a node."""

    terms: Annotated[list[tuple[str, int, float]], Meta(description="summands: parent, power (1 or 2) and weight")] = []
    base: Annotated[
        float | None,
        Meta(description="constant summand of the frequency; null for properties, whose bases belong to crystals"),
    ] = None


class BasesRecord(msgspec.Struct, forbid_unknown_fields=True):
    """The bases of the crystals, by property."""

    records: Annotated[list[dict[str, float]], Meta(description="bases of the earlier crystals")]
    manipulator: Annotated[dict[str, float], Meta(description="bases of the crystal whose properties are set")]
    reactor: Annotated[dict[str, float], Meta(description="bases of the crystal whose frequency is predicted")]


class NoiseRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """Hidden noise of settings."""

    values: Annotated[list[float], Meta(description="possible draws, equally probable")]
    weight: Annotated[float, Meta(description="factor of a draw")]
    affected: Annotated[list[str], Meta(description="nodes that the noise is added to")]
    seed: Annotated[int, Meta(description="seed of the draws")]
    draw: Annotated[Draw, Meta(description="whether affected nodes share a draw")] = Draw.SHARED


class SealedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The JSON record of an item's sealed part."""

    equations: Annotated[
        dict[str, EquationRecord], Meta(description="node -> how it is computed, in the order in which bases are drawn")
    ]
    bases: Annotated[BasesRecord, Meta(description="bases of all crystals")]
    target: Annotated[float, Meta(description="the reactor crystal's frequency")]
    hidden: Annotated[NoiseRecord | None, Meta(description="noise, if there is any")] = None
    labels: Annotated[dict[str, float], Meta(description="difficulty labels")] = {}


class TracedRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One entry of a static trace."""

    values: Annotated[dict[str, float], Meta(description="values of all nodes")]
    property: Annotated[
        str | None,
        Meta(description="the property that was set to get here from the entry before, null for a crystal as it is"),
    ] = msgspec.field(name="set", default=None)
    value: Annotated[float | None, Meta(description="value that the property was set to")] = None


class LabRecord(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """One laboratory."""

    id: Annotated[str, Meta(description="unique in the pool")]
    suite: Annotated[str, Meta(description="name of the suite")]
    line: Annotated[int, Meta(description="index in the suite, from 0")]
    family: Annotated[Family, Meta(description="shape of the equations")]
    properties: Annotated[list[str], Meta(description=f"their names, sorted; {FREQUENCY} is always there besides")]
    records: Annotated[list[dict[str, float]], Meta(description="values of earlier crystals")]
    baseline: Annotated[dict[str, float], Meta(description="values of the manipulator crystal before any setting")]
    reactor: Annotated[dict[str, float], Meta(description="shown values of the reactor crystal")]
    allowance: Annotated[int, Meta(description="largest number of settings")]
    sealed: Annotated[SealedRecord, Meta(description="mechanism, bases and target")]
    freq_parent: Annotated[bool, Meta(description="whether the frequency may be a parent")] = False
    noise: Annotated[bool, Meta(description="whether settings are noisy")] = False
    weights: Annotated[Weights, Meta(description="class of the weights")] = Weights.SMALL
    settable: Annotated[list[str] | None, Meta(description="properties that may be set, null for all")] = None
    trace: Annotated[list[TracedRecord], Meta(description="measurements and settings that the item shows")] = []
    tries: Annotated[int, Meta(description="largest number of tries of the reactor")] = TRIES
    reading: Annotated[SettingMeaning, Meta(description="what the value of a setting means")] = SettingMeaning.VALUE
    wording: Annotated[Wording, Meta(description="whether the prompt has the standard sentences")] = "standard"


def read_pool(path: Path) -> Pool[LabItem]:
    """Read the items of a native pool; `PoolError` names file, item and field of whatever cannot be meant."""
    return read_items(path, BENCHMARK, LabRecord, item_of_record)


def write_pool(pool: Pool[LabItem], path: Path) -> None:
    """Write the native format; the file appears complete or not at all."""
    header = Header(format=FORMAT, version=VERSION, benchmark=BENCHMARK, name=pool.name, metadata=dict(pool.metadata))
    write_records(path, header, (record_of_item(item) for item in pool.items))


def record_of_item(item: LabItem) -> LabRecord:
    """Return the record of an item; `item_of_record` takes it back to an equal item."""
    task, sealed = item.task, item.sealed
    noise = sealed.noise
    return LabRecord(
        id=item.id,
        suite=item.suite,
        line=item.line,
        family=task.family,
        properties=list(task.properties),
        records=[dict(r) for r in task.records],
        baseline=dict(task.baseline),
        reactor=dict(task.reactor),
        allowance=task.allowance,
        sealed=SealedRecord(
            equations={
                node: EquationRecord([(t.parent, t.power, t.weight) for t in e.terms], e.base)
                for node, e in sealed.mechanism.equations.items()
            },
            bases=BasesRecord(
                [dict(b) for b in sealed.bases.records], dict(sealed.bases.manipulator), dict(sealed.bases.reactor)
            ),
            target=sealed.target,
            hidden=None
            if noise is None
            else NoiseRecord(list(noise.values), noise.weight, list(noise.affected), noise.seed, noise.draw),
            labels=dict(sealed.labels),
        ),
        freq_parent=task.freq_parent,
        noise=task.noise,
        weights=task.weights,
        settable=None if task.settable == task.properties else list(task.settable),
        trace=[TracedRecord(dict(t.values), t.property, t.value) for t in task.trace],
        tries=task.tries,
        reading=task.reading,
        # the default itself: msgspec compares by identity what it omits
        wording="standard" if task.wording == "standard" else task.wording,
    )


def item_of_record(record: LabRecord) -> LabItem:
    """Return the item; `PoolError` if a shown number is not what the sealed mechanism gives."""
    for field, value in _numbers(record):
        if not math.isfinite(value):
            raise PoolError(f"{short_repr(value)} is not a finite number", field=field)
    if record.allowance < 0 or record.tries < 0:
        raise PoolError("below 0", field="allowance" if record.allowance < 0 else "tries")
    try:
        mechanism = Mechanism(
            {
                node: Equation(tuple(Term(*term) for term in e.terms), e.base)
                for node, e in record.sealed.equations.items()
            }
        )
    except (ValueError, CalibrantError) as error:
        raise PoolError(str(error), field="sealed.equations") from None
    _check_names(record, mechanism)
    terms = Terms(
        record.family,
        record.allowance,
        record.freq_parent,
        record.weights,
        record.tries,
        record.reading,
        tuple(Traced(t.values, t.property, t.value) for t in record.trace),
        None if record.settable is None else tuple(record.settable),
        tuple(record.reactor),
        record.wording,
    )
    crystals = record.sealed.bases
    bases = Bases(tuple(crystals.records), crystals.manipulator, crystals.reactor)
    name = Name(record.id, record.suite, record.line)
    try:
        item = lab_item(name, terms, mechanism, bases, _noise(record), dict(record.sealed.labels))
    except CalibrantError as error:
        raise PoolError(str(error), field="sealed.bases") from None
    _check_shown(record, item)
    return item


def _noise(record: LabRecord) -> Noise | None:
    hidden = record.sealed.hidden
    if hidden is None:
        return None
    if not hidden.values:
        raise PoolError("empty", field="sealed.hidden.values")
    return Noise(tuple(hidden.values), hidden.weight, tuple(hidden.affected), hidden.seed, hidden.draw)


def _numbers(record: LabRecord) -> Iterator[tuple[str, float]]:
    """Every number that the meaning depends on, with its field."""
    sealed = record.sealed
    for node, e in sealed.equations.items():
        yield f"sealed.equations.{node}", e.base or 0.0
        yield from ((f"sealed.equations.{node}", weight) for _, _, weight in e.terms)
    crystals = {"manipulator": sealed.bases.manipulator, "reactor": sealed.bases.reactor}
    crystals |= {f"records[{i}]": b for i, b in enumerate(sealed.bases.records)}
    for name, bases in crystals.items():
        yield from ((f"sealed.bases.{name}", number) for number in bases.values())
    for entry in record.trace:
        yield from (("trace", number) for number in (*entry.values.values(), entry.value or 0.0))
    yield "sealed.target", sealed.target
    if sealed.hidden is not None:
        yield from (("sealed.hidden", number) for number in (*sealed.hidden.values, sealed.hidden.weight))


def _check_names(record: LabRecord, mechanism: Mechanism) -> None:
    properties = set(mechanism.properties)
    nodes = properties | {FREQUENCY}
    crystals = record.sealed.bases
    hidden = record.sealed.hidden
    comparisons: list[tuple[str, bool]] = [
        ("properties", sorted(record.properties) == list(mechanism.properties)),
        ("reactor", record.reactor.keys() <= properties),
        ("settable", set(record.settable or ()) <= properties),
        ("sealed.bases.manipulator", crystals.manipulator.keys() == properties),
        ("sealed.bases.reactor", crystals.reactor.keys() == properties),
        ("sealed.bases.records", all(b.keys() == properties for b in crystals.records)),
        ("sealed.hidden.affected", set(hidden.affected if hidden else ()) <= nodes),
        ("trace", all(t.values.keys() == nodes for t in record.trace)),
        ("trace", all(t.property is None or t.property in properties for t in record.trace)),
        ("trace", all((t.property is None) == (t.value is None) for t in record.trace)),
        ("freq_parent", record.freq_parent or all(p != FREQUENCY for p, _ in mechanism.edges)),
    ]
    for field, agrees in comparisons:
        if not agrees:
            raise PoolError("does not agree with the nodes of sealed.equations", field=field)


def _check_shown(record: LabRecord, item: LabItem) -> None:
    task = item.task
    stated: list[tuple[str, object, object]] = [
        ("records", tuple(record.records), task.records),
        ("baseline", record.baseline, task.baseline),
        ("reactor", record.reactor, task.reactor),
        ("noise", record.noise, task.noise),
        ("sealed.target", record.sealed.target, item.sealed.target),
    ]
    for field, stated_value, computed in stated:
        if stated_value != computed:
            raise PoolError(
                f"states {short_repr(stated_value)}; its mechanism gives {short_repr(computed)}", field=field
            )
