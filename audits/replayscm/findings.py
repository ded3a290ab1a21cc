"""Findings of an audit about one instance, ready for JSON.

Counts are texts, because they are larger than the integers of many readers.
"""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.audits.replayscm.bounded import Bounded
from calibrant.audits.replayscm.exposure import Exposure, HeldoutBalance, InterventionMix
from calibrant.audits.replayscm.separation import TargetSeparation


class ClassCount(msgspec.Struct, frozen=True):
    """Number of SCMs of one class that fit the evidence.

    members: SCMs of the class that fit the training worlds, in decimal
    heldout_exact: how many of them replay every held-out world; None without held-out worlds
    """

    max_parents: int
    in_words: str
    members: str
    heldout_exact: str | None


class Spectrum(msgspec.Struct, frozen=True):
    """Members by total formula size, in a class with a size cap; by_size: size -> members, ascending."""

    in_words: str
    by_size: dict[int, str]


class Survivors(msgspec.Struct, frozen=True):
    """Two members that differ most among those looked at, and the experiment that tells them apart.

    looked_at: members compared with each other
    disagreement_rate, cell_rate: share of root assignments, and of cells, in which the experiment shows a difference
    one, other: mechanisms as text; roots are the same
    means_gold: which of them means the same as gold: "one", "other" or ""
    experiment: the best single-variable intervention, None if none separates the two
    witness: root assignment, and the values of both at the variables that differ
    targets: the best hard intervention on up to three targets; separating_sets: how many sets of so many targets
    separate the two
    """

    in_words: str
    looked_at: int
    roots: list[str]
    one: dict[str, str]
    other: dict[str, str]
    means_gold: str
    disagreement_rate: float
    cell_rate: float
    experiment: dict[str, Any] | None
    witness: dict[str, Any] | None
    targets: TargetSeparation | None
    separating_sets: dict[int, int]


class CappedCount(msgspec.Struct, frozen=True):
    """Number of SCMs that fit the evidence in a class that also bounds each mechanism's formula size."""

    max_parents: int
    max_size: int
    members: str


class Coverage(msgspec.Struct, frozen=True):
    """Local predecessor patterns that scored training rows show (audits.replayscm.patterns).

    seen, total: over all variables; by_variable: the same for each
    """

    seen: int
    total: int
    by_variable: dict[str, list[int]]

    @property
    def share(self) -> float:
        return self.seen / self.total if self.total else 1.0


class Draw(msgspec.Struct, frozen=True):
    """The exact probability that a drawn member is held-out exact.

    probability: None for an empty class
    """

    in_words: str
    size_penalty: int | None
    probability: float | None


class Ceiling(msgspec.Struct, frozen=True):
    """The best expected HeldoutExact of any answer, if the truth is drawn from the class (audits.replayscm.ceiling).

    lower, upper: a certified interval; exact: whether it is one point; counts: exact counts that it took
    realised: whether the best answer is held-out exact; None without gold
    """

    in_words: str
    size_penalty: int | None
    lower: float
    upper: float
    exact: bool
    counts: int
    realised: bool | None


class Split(msgspec.Struct, frozen=True):
    """The world that removes the largest share of the members, of the candidates (audits.replayscm.splitting).

    It is the one that is expected to, over truths drawn from the members; where roots are hidden, gold is the truth.

    candidates: worlds that were compared; mode: of the intervention; targets: its variables
    columns, rows: the values of roots and targets that it shows, every different row once
    removed: certified bounds of the expected share; estimate, standard_error: of it; all None where roots are hidden
    removed_from_gold: the exact share if gold is the truth; None without gold
    """

    in_words: str
    candidates: int
    mode: str
    targets: list[str]
    columns: list[str]
    rows: list[str]
    removed: list[float] | None
    estimate: float | None
    standard_error: float | None
    removed_from_gold: float | None


class Findings(msgspec.Struct, frozen=True):
    """The audit of one instance.

    num_variables, num_roots, num_worlds, num_rows, num_heldout: how many it has; worlds and rows are those of training
    spectrum: members by size; None where the class is empty or cannot be listed by size
    classes: by bound of functional parents, ascending; headline: the bound of the class that the verdict is about
    capped: classes with a bound of formula size, largest first
    draws, ceilings: over a class that has gold as a member, uniform and by size; [] where there is none
    bounded: the paper's searches with budgets and flags, each with the exact number; None without gold
    exposure, coverage, mix, balance: how training and held-out worlds are spread; the first two are None without gold
    survivors, split: None for at most one member; left_out: part -> why it could not be had
    """

    num_variables: int
    num_roots: int
    num_worlds: int
    num_rows: int
    num_heldout: int
    headline: int
    classes: list[ClassCount]
    capped: list[CappedCount]
    spectrum: Spectrum | None
    draws: list[Draw]
    ceilings: list[Ceiling]
    bounded: Bounded | None
    exposure: list[Exposure] | None
    coverage: Coverage | None
    mix: InterventionMix
    balance: HeldoutBalance | None
    survivors: Survivors | None
    split: Split | None
    left_out: dict[str, str]

    def __repr__(self) -> str:
        counts = ", ".join(f"{entry.members} at k <= {entry.max_parents}" for entry in self.classes)
        return f"<Findings: members {counts}>"[:120]

    def members(self, max_parents: int) -> int:
        """Return the count of a class that was counted."""
        return int(self.class_count(max_parents).members)

    def class_count(self, max_parents: int) -> ClassCount:
        return next(entry for entry in self.classes if entry.max_parents == max_parents)
