"""Separation of two SCMs of one problem, as `calibrant separate` prints it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.bench.replayscm.audit.separations import (
    SeparatedPair,
    against_file,
    closing_text,
    fit_text,
    member_pairs,
    pair_text,
    smallest,
)
from calibrant.bench.replayscm.extended.plain import require_plain
from calibrant.bench.replayscm.options import SeparateOptions
from calibrant.bench.replayscm.pages import find_instance
from calibrant.dsl.replayscm.pools.files import read_pool


@dataclass(frozen=True)
class Separation:
    """Implements SeparationReport (bench.pools.capabilities).

    notes: what was compared
    """

    instance: str
    pairs: Sequence[SeparatedPair]
    notes: Sequence[str]
    targets: int

    def to_dict(self) -> Mapping[str, Any]:
        return {"instance": self.instance, "notes": self.notes, "pairs": [pair.to_dict() for pair in self.pairs]}

    def text(self) -> str:
        return "\n\n".join([*map(pair_text, self.pairs), *self.notes, closing_text(self.pairs, self.targets)])


def separate(pool: Path, instance: str, against: Path | None, options: SeparateOptions) -> Separation:
    """Compare the smallest SCMs that fit; with an answer, that with the reference or gold."""
    problem = find_instance(read_pool(pool, keep_results=False), instance)
    require_plain([problem], "`separate`")
    targets = options.targets
    if against:
        pairs = [against_file(problem, against, max_targets=targets)]
        notes = [f"{against.name} {fit_text(problem, pairs[0].models[1])}"]
    else:
        members = smallest(problem, options.members, options.max_parents)
        pairs = member_pairs(members.models, max_targets=targets)
        which = "smallest" if members.more else "only"
        number = f"{len(members.models)} {which} members, {options.max_parents} parents at most"
        notes = [f"{number}; {len(pairs)} pairs with the same roots"]
    return Separation(problem.id, pairs, notes, targets)


SEPARATE = separate
