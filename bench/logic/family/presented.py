"""Output of `calibrant family`: of a counted family, and of data whose models are too many to count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.logic.family.counted import Counted
from calibrant.bench.logic.family.outputs import write_outputs
from calibrant.bench.logic.family.record import counted_record, use_record
from calibrant.bench.logic.family.words import data_lines, family_lines
from calibrant.dsl.logic.files.midas import Dataset


@dataclass(frozen=True)
class PresentedFamily:
    """Implements CountedFamily (bench.families.capabilities)."""

    counted: Counted

    @property
    def is_counted(self) -> bool:
        return True

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        return family_lines(self.counted, ranks_candidates=ranks_candidates)

    def to_dict(self) -> dict[str, Any]:
        return counted_record(self.counted)

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        comparison = self.counted.comparison
        if comparison is None:
            return ()
        failures = []
        certain = [claim for claim in comparison.overclaims if claim.claimed == "always"]
        if "overclaimed" in kinds and certain:
            names = ", ".join(str(claim.part) for claim in certain[:3]) + (", ..." if len(certain) > 3 else "")
            failures.append(f"overclaimed: {len(certain)} that the list has always and the family has not ({names})")
        if "missing" in kinds and comparison.num_members < self.counted.family.count:
            failures.append(
                f"missing: the list has {comparison.num_members:,} of {self.counted.family.count:,} members"
            )
        num_outside = len(comparison.outside_class) + len(comparison.outside_limits)
        if "outside" in kinds and num_outside:
            failures.append(f"outside: {num_outside} of {comparison.num_listed} models of the list are no members")
        return failures

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        return write_outputs(self.counted, out=out, html=html, certificates=certificates)


@dataclass(frozen=True)
class Uncounted:
    """Implements CountedFamily for models that are too many to count; reached: how far the count got, in words."""

    reached: str

    @property
    def is_counted(self) -> bool:
        return False

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        yield f"not counted: {self.reached}"

    def to_dict(self) -> dict[str, Any]:
        return {"out_of_budget": self.reached}

    def failures(self, kinds: Sequence[str]) -> Sequence[str]:
        return ()

    def write(self, *, out: Path | None, html: Path | None, certificates: Path | None) -> Iterator[str]:
        if out or html or certificates:
            yield "nothing written: the models were not counted"


@dataclass(frozen=True)
class UncountedFamily(Uncounted):
    """Data that were read, with notes."""

    dataset: Dataset
    notes: tuple[str, ...]

    def lines(self, *, ranks_candidates: bool) -> Iterator[str]:
        yield from data_lines(self.dataset)
        yield from super().lines(ranks_candidates=ranks_candidates)
        for note in self.notes:
            yield f"note  {note}"

    def to_dict(self) -> dict[str, Any]:
        return {"data": use_record(self.dataset)} | super().to_dict() | {"notes": list(self.notes)}
