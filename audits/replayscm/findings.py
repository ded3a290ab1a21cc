"""Findings of an audit about one instance, ready for JSON.

Counts are texts, because they are larger than the integers of many readers.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from calibrant.audits.replayscm.bounded import Bounded
from calibrant.audits.replayscm.exposure import Exposure, HeldoutBalance, InterventionMix
from calibrant.audits.replayscm.separation import TargetSeparation


class ClassCount(msgspec.Struct, frozen=True):
    """Number of SCMs of one class that fit the evidence."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    members: Annotated[str, Meta(description="SCMs of the class that fit the training worlds, in decimal")]
    heldout_exact: Annotated[
        str | None, Meta(description="how many of them replay every held-out world; None without held-out worlds")
    ]


class Spectrum(msgspec.Struct, frozen=True):
    """Members by total formula size, in a class with a size cap"""  # noqa: D400, D415  # in published JSON schemas

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    by_size: Annotated[dict[int, str], Meta(description="size -> members, ascending.")]


class Survivors(msgspec.Struct, frozen=True):
    """Two members that differ most among those looked at, and the experiment that tells them apart."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    looked_at: Annotated[int, Meta(description="members compared with each other")]
    roots: Annotated[list[str], Meta(description="names of the variables without a mechanism")]
    one: Annotated[dict[str, str], Meta(description="mechanisms as text; roots are the same")]
    other: Annotated[dict[str, str], Meta(description="mechanisms as text; roots are the same")]
    means_gold: Annotated[str, Meta(description='which of them means the same as gold: "one", "other" or ""')]
    disagreement_rate: Annotated[
        float, Meta(description="share of root assignments, and of cells, in which the experiment shows a difference")
    ]
    cell_rate: Annotated[
        float, Meta(description="share of root assignments, and of cells, in which the experiment shows a difference")
    ]
    experiment: Annotated[
        dict[str, Any] | None, Meta(description="the best single-variable intervention, None if none separates the two")
    ]
    witness: Annotated[
        dict[str, Any] | None, Meta(description="root assignment, and the values of both at the variables that differ")
    ]
    targets: Annotated[TargetSeparation | None, Meta(description="the best hard intervention on up to three targets")]
    separating_sets: Annotated[dict[int, int], Meta(description="how many sets of so many targets separate the two")]


class CappedCount(msgspec.Struct, frozen=True):
    """Number of SCMs that fit the evidence in a class that also bounds each mechanism's formula size."""

    max_parents: Annotated[int, Meta(description="most functional parents of a mechanism of the class")]
    max_size: Annotated[int, Meta(description="largest formula of a mechanism of the class")]
    members: Annotated[str, Meta(description="SCMs of the class that fit the training worlds, in decimal")]


class Coverage(msgspec.Struct, frozen=True):
    """Local predecessor patterns that scored training rows show (audits.replayscm.patterns)."""

    seen: Annotated[int, Meta(description="over all variables")]
    total: Annotated[int, Meta(description="over all variables")]
    by_variable: Annotated[dict[str, list[int]], Meta(description="the same for each")]

    @property
    def share(self) -> float:
        return self.seen / self.total if self.total else 1.0


class Draw(msgspec.Struct, frozen=True):
    """The exact probability that a drawn member is held-out exact."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    size_penalty: Annotated[
        int | None, Meta(description="members weigh 2**(-size_penalty * total formula size); null: all the same")
    ]
    probability: Annotated[float | None, Meta(description="None for an empty class")]


class Ceiling(msgspec.Struct, frozen=True):
    """The best expected HeldoutExact of any answer, if the truth is drawn from the class (audits.replayscm.ceiling)."""

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    size_penalty: Annotated[
        int | None, Meta(description="members weigh 2**(-size_penalty * total formula size); null: all the same")
    ]
    lower: Annotated[float, Meta(description="a certified interval")]
    upper: Annotated[float, Meta(description="a certified interval")]
    exact: Annotated[bool, Meta(description="whether it is one point")]
    counts: Annotated[int, Meta(description="exact counts that it took")]
    realised: Annotated[bool | None, Meta(description="whether the best answer is held-out exact; None without gold")]


class Split(msgspec.Struct, frozen=True):
    """The world that removes the largest share of the members, of the candidates (audits.replayscm.splitting).

    It is the one that is expected to, over truths drawn from the members; where roots are hidden, gold is the truth.
    """

    in_words: Annotated[str, Meta(description="the class of SCMs, in words")]
    candidates: Annotated[int, Meta(description="worlds that were compared")]
    mode: Annotated[str, Meta(description="of the intervention")]
    targets: Annotated[list[str], Meta(description="its variables")]
    columns: Annotated[
        list[str], Meta(description="the values of roots and targets that it shows, every different row once")
    ]
    rows: Annotated[
        list[str], Meta(description="the values of roots and targets that it shows, every different row once")
    ]
    removed: Annotated[list[float] | None, Meta(description="certified bounds of the expected share")]
    estimate: Annotated[float | None, Meta(description="of it; all None where roots are hidden")]
    standard_error: Annotated[float | None, Meta(description="of it; all None where roots are hidden")]
    removed_from_gold: Annotated[
        float | None, Meta(description="the exact share if gold is the truth; None without gold")
    ]


class Findings(msgspec.Struct, frozen=True):
    """The audit of one instance."""

    num_variables: Annotated[int, Meta(description="how many it has; worlds and rows are those of training")]
    num_roots: Annotated[int, Meta(description="how many it has; worlds and rows are those of training")]
    num_worlds: Annotated[int, Meta(description="how many it has; worlds and rows are those of training")]
    num_rows: Annotated[int, Meta(description="how many it has; worlds and rows are those of training")]
    num_heldout: Annotated[int, Meta(description="how many it has; worlds and rows are those of training")]
    headline: Annotated[int, Meta(description="the bound of the class that the verdict is about")]
    classes: Annotated[list[ClassCount], Meta(description="by bound of functional parents, ascending")]
    capped: Annotated[list[CappedCount], Meta(description="classes with a bound of formula size, largest first")]
    spectrum: Annotated[
        Spectrum | None, Meta(description="members by size; None where the class is empty or cannot be listed by size")
    ]
    draws: Annotated[
        list[Draw],
        Meta(description="over a class that has gold as a member, uniform and by size; [] where there is none"),
    ]
    ceilings: Annotated[
        list[Ceiling],
        Meta(description="over a class that has gold as a member, uniform and by size; [] where there is none"),
    ]
    bounded: Annotated[
        Bounded | None,
        Meta(description="the paper's searches with budgets and flags, each with the exact number; None without gold"),
    ]
    exposure: Annotated[
        list[Exposure] | None,
        Meta(description="how training and held-out worlds are spread; the first two are None without gold"),
    ]
    coverage: Annotated[
        Coverage | None,
        Meta(description="how training and held-out worlds are spread; the first two are None without gold"),
    ]
    mix: Annotated[
        InterventionMix,
        Meta(description="how training and held-out worlds are spread; the first two are None without gold"),
    ]
    balance: Annotated[
        HeldoutBalance | None,
        Meta(description="how training and held-out worlds are spread; the first two are None without gold"),
    ]
    survivors: Annotated[Survivors | None, Meta(description="None for at most one member")]
    split: Annotated[Split | None, Meta(description="None for at most one member")]
    left_out: Annotated[dict[str, str], Meta(description="part -> why it could not be had")]

    def __repr__(self) -> str:
        counts = ", ".join(f"{entry.members} at k <= {entry.max_parents}" for entry in self.classes)
        return f"<Findings: members {counts}>"[:120]

    def members(self, max_parents: int) -> int:
        """Return the count of a class that was counted."""
        return int(self.class_count(max_parents).members)

    def class_count(self, max_parents: int) -> ClassCount:
        return next(entry for entry in self.classes if entry.max_parents == max_parents)
