"""The findings of a pool: what can be proved about its items, as text, JSON and certificates."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from calibrant.audits.finding import ClaimStatus, Finding
from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark as benchmark_named
from calibrant.bench.pages.aligned import GAP, aligned_lines
from calibrant.bench.runs.executors.opening import as_completed
from calibrant.bench.runs.jobs import HERE, Execution, Failure, Jobs
from calibrant.bench.runs.runner import Selection
from calibrant.bench.runs.spill_file import SpillBuffer
from calibrant.dsl.atomic_write import write_atomically
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.item import Item

CERTIFICATES = "*.claim.json"
MIN_CLAIM_WIDTH = 24  # columns; in fewer a line holds one or two words


class PoolFindings(Iterable[Finding]):
    """What was found in a pool, item by item; it can be gone through again and again, and much of it is in a file."""

    def __init__(self, items: Sequence[Sequence[Finding]]) -> None:
        self._items = items

    def __iter__(self) -> Iterator[Finding]:
        return chain.from_iterable(self._items)


def pool_findings(
    benchmark: Benchmark[Any], pool: Path, selection: Selection, execution: Execution = HERE
) -> PoolFindings:
    """Of the chosen items, in their order; `CalibrantError` for an item that is not there or cannot be audited."""
    read = benchmark.read_pool(pool)
    places = selection.places(read)
    missing = sorted(set(selection.only) - set(places.values()))
    if missing:
        raise CalibrantError(f"{pool.name}: no instance {short_repr(missing[0])}")
    jobs = Jobs(places, lambda place: read.items[place])
    with SpillBuffer[list[Finding]]() as found:
        for place, made in as_completed(partial(_item_findings, benchmark.name), jobs, execution):
            if isinstance(made, Failure):
                raise CalibrantError(f"{pool.name}: {in_one_line(places[place])}: {made.error}")
            found.put((place,), made)
        return PoolFindings(found.values())


def _item_findings(name: str, item: Item[Any, Any]) -> list[Finding]:
    """name: of the benchmark, which itself may keep what cannot be sent to another process"""
    return list(benchmark_named(name).findings(item))


def findings_lines(found: Iterable[Finding], width: int | None = None) -> Iterator[str]:
    """Yield the lines of the table of findings; a claim that ends beyond the width continues below itself.

    width: columns of a line, as far as the other cells leave MIN_CLAIM_WIDTH of them; None: a line for each finding
    """
    cells = [
        [*map(in_one_line, (finding.where, finding.kind, str(finding.verdict), finding.claim))] for finding in found
    ]
    if not cells:
        return iter(["nothing found"])
    headings = ["Instance", "Kind", "Verdict", "Claim"]
    if width is not None:
        used = sum(
            max(map(len, column)) + GAP for column in zip(headings[:-1], *(row[:-1] for row in cells), strict=True)
        )
        claim_width = max(MIN_CLAIM_WIDTH, width - used)
        cells = [line for row in cells for line in _wrapped_row(row, claim_width)]
    return aligned_lines(headings, cells)


def _wrapped_row(cells: Sequence[str], width: int) -> Iterator[list[str]]:
    """Yield the row, then a row for each further line of its last cell, which is wrapped to the width."""
    *labels, claim = cells
    for line in textwrap.wrap(claim, width, break_on_hyphens=False) or [""]:
        yield [*labels, line]
        labels = [""] * len(labels)


def finding_record(found: Finding) -> dict[str, Any]:
    """Ready for JSON."""
    certificate = None if found.certificate is None else msgspec.to_builtins(found.certificate)
    fields = {"instance": found.where, "kind": found.kind, "verdict": str(found.verdict), "claim": found.claim}
    return fields | {"data": dict(found.data), "certificate": certificate}


def fails(found: Iterable[Finding], kind: str) -> bool:
    """Return whether a flaw of that kind is proved.

    `CalibrantError` names the kinds there are where it is none of them.
    """
    kinds = {one.kind for one in found}
    if kind not in kinds and kind not in KINDS:  # also where nothing was found
        raise CalibrantError(f"unknown kind {short_repr(kind)}; known: {', '.join(sorted({*KINDS, *kinds}))}")
    return any(one.kind == kind and one.verdict is ClaimStatus.PROVED for one in found)


KINDS = (
    "ambiguous",
    "unwinnable",
    "bounded-orders",
    "vacuous",
    "unfair",
    "leak",
    "duplicate",
    "trivial",
    "gameable",
    "copyable",
    "wrong_label",
)


def write_certificates(found: Iterable[Finding], folder: Path) -> int:
    """A file for each finding that has a certificate, numbered; how many."""
    number = 0
    for one in found:
        if one.certificate is not None:
            made = {"instance": one.where, "certificate": msgspec.to_builtins(one.certificate)}
            write_atomically(folder / f"{number:04}.claim.json", json.dumps(made, indent=1) + "\n")
            number += 1
    return number


def checked(benchmark: Benchmark[Any], made: Any, items: Mapping[str, Item[Any, Any]]) -> tuple[bool, str]:
    """Return whether a certificate holds about the item that it names, and why not.

    Else the class that was derived again.
    """
    from calibrant.audits.claims import Certificate, verify

    if not isinstance(made, dict) or made.keys() != {"instance", "certificate"}:
        return False, "not an object with the keys instance and certificate"
    item = items.get(made["instance"]) if isinstance(made["instance"], str) else None
    if item is None:
        return False, "it is about no instance of this pool"
    try:
        certificate = msgspec.convert(made["certificate"], Certificate, strict=True)
    except (msgspec.ValidationError, ValueError) as error:  # ValueError: half a surrogate pair
        return False, str(error)
    verdict = verify(certificate, benchmark.evidence(item), benchmark.verifiers)
    return verdict.holds, verdict.reason or f"{item.id}: {certificate.claim}; class: {verdict.in_words}"
