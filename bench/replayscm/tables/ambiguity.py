"""Ambiguity of answered instances, from audits: how many SCMs fit, and the expected score of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeAlias

from calibrant.audits.replayscm.findings import Findings
from calibrant.bench.answers.frame import estimate
from calibrant.bench.replayscm.audit.generator_ceiling import GeneratorCeiling
from calibrant.bench.replayscm.audit.records import AUDIT_RECORDS, AuditRecord
from calibrant.bench.replayscm.audit.text import heldout_share
from calibrant.bench.replayscm.tables.pairs import HELDOUT_EXACT
from calibrant.bench.replayscm.tables.rows import pool_name
from calibrant.bench.replayscm.tables.spec import ROW_LABELS
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Observation, Row
from calibrant.dsl.errors import CalibrantError


class Ambiguity(NamedTuple):
    """One instance, in the class of its audit's headline.

    members: SCMs that fit; draw: share of them that replay every held-out world, None without held-out worlds
    ceiling: the expected HeldoutExact of the best answer, if the truth is what the published generator draws
    if_alike, if_by_size: certified upper bounds of it, if the truth were drawn from all members alike, or with smaller
        formulas likelier, as no pool is. All of them None where the audit has none.
    """

    members: int
    draw: float | None
    ceiling: float | None
    if_alike: float | None
    if_by_size: float | None


Ambiguities: TypeAlias = Mapping[tuple[str, str], Ambiguity]  # by pool digest and instance


def ambiguities(folders: Sequence[Path]) -> dict[tuple[str, str], Ambiguity]:
    """Return the audits in these folders, without instances that no SCM fits; `CalibrantError` if none remain."""
    by_instance: dict[tuple[str, str], Ambiguity] = {}
    for record in sorted(_records(folders), key=lambda record: repr(record.key)):
        if record.findings is not None and (ambiguity := _ambiguity(record.findings, record.generator)).members:
            by_instance[record.pool_digest, record.instance] = ambiguity
    return by_instance


def _records(folders: Sequence[Path]) -> Iterable[AuditRecord]:
    for folder in folders:
        path = folder / AUDIT_RECORDS.file_name
        if not path.is_file():
            raise CalibrantError(f"{folder}: no {path.name} there; give a folder that `calibrant audit --out` wrote")
        yield from AUDIT_RECORDS.read_records(path)


def _ambiguity(findings: Findings, generator: GeneratorCeiling | None) -> Ambiguity:
    class_count = findings.class_count(findings.headline)
    alike = [ceiling.upper for ceiling in findings.ceilings if ceiling.size_penalty is None]
    by_size = [ceiling.upper for ceiling in findings.ceilings if ceiling.size_penalty is not None]
    share = heldout_share(class_count)
    probability = None if generator is None else generator.probability
    return Ambiguity(int(class_count.members), share, probability, next(iter(alike), None), next(iter(by_size), None))


_HEADINGS = (
    Heading("heldout_exact", "HeldoutExact"),
    Heading("draw", "Fair draw"),
    Heading("ceiling", "Ceiling"),
    Heading("ceiling_if_alike", "If all were alike"),
    Heading("ceiling_if_by_size", "If by size alone"),
)


def ceilings(rows: Sequence[Row], audited: Ambiguities) -> Table | None:
    """HeldoutExact beside what the evidence allows, over the instances that were audited."""
    lines = [line for row in rows if (line := _line(row, audited))]
    if not lines:
        return None
    caption = (
        "What an answer can expect, over the audited instances that some SCM of the class fits. Fair draw: a member of"
        " the class drawn at random. Ceiling: what the best answer can expect if the truth is what the published"
        " generator draws, estimated from draws of its posterior. The last two columns are certified bounds for truths"
        " that no pool is drawn from, all members alike or by formula size alone: rows above them are no error."
    )
    return Table("ceiling", "Held-out replay and its ceiling", caption, ROW_LABELS, _HEADINGS, tuple(lines))


def _line(row: Row, audited: Ambiguities) -> TableRow | None:
    pairs = [(o, audited[o.item]) for o in row.observations if o.item in audited]
    if not pairs or row.setting.startswith("Alt-"):
        return None
    quantities = [
        [(o, o.values[row.places[HELDOUT_EXACT.key]]) for o, _ in pairs],
        [(o, ambiguity.draw) for o, ambiguity in pairs],
        [(o, ambiguity.ceiling) for o, ambiguity in pairs],
        [(o, ambiguity.if_alike) for o, ambiguity in pairs],
        [(o, ambiguity.if_by_size) for o, ambiguity in pairs],
    ]
    cells = tuple(_mean([(o, float(value)) for o, value in listed if value is not None]) for listed in quantities)
    return TableRow((row.setting, row.system, pool_name(row), str(len(pairs))), cells)


def _mean(values: Sequence[tuple[Observation, float]]) -> Cell:
    mean = estimate((o.item, o.unit, value) for o, value in values)
    return NOTHING if mean is None else cell(f"{mean.mean:.3f}", mean.interval)
