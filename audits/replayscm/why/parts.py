"""The parts of the reason why a ReplaySCM item is open."""

from __future__ import annotations

from typing import Any

import msgspec

from calibrant.audits.why import Why


class EvidenceWorld(msgspec.Struct, frozen=True):
    """A training world: intervention in words, variables it sets, a text of 0 and 1 per unit."""

    id: str
    intervention: str
    targets: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[str, ...]


class Evidence(msgspec.Struct, frozen=True):
    """The training worlds; roots: None where they are hidden."""

    variables: tuple[str, ...]
    roots: tuple[str, ...] | None
    worlds: tuple[EvidenceWorld, ...]

    @property
    def num_rows(self) -> int:
        return sum(len(world.rows) for world in self.worlds)


class FittingScm(msgspec.Struct, frozen=True):
    """An SCM that replays every training world.

    mechanisms: variable -> prefix text, parents before children; parents: functional ones; size: total formula size
    values: of every variable at the witness
    """

    roots: tuple[str, ...]
    mechanisms: dict[str, str]
    parents: dict[str, tuple[str, ...]]
    size: int
    values: dict[str, int]


class TableRow(msgspec.Struct, frozen=True):
    """A row over the union of the pair's parents.

    values: of the parents; seen: the value in rows in which the variable is free, None if no such row is shown
    one, other: what each SCM of the pair gives; where: worlds and units that show it; set_in: that show it with the
    variable set
    """

    values: dict[str, int]
    observed: int | None
    first: int
    second: int
    where: tuple[str, ...]
    set_in: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return self.first != self.second


class Pair(msgspec.Struct, frozen=True):
    """Two SCMs that fit and differ in as few variables as possible, then in total size as little as possible.

    differing: the variables whose function differs; rows: of the first of them; least: whether the total size is proven
    least among such pairs
    """

    differing: tuple[str, ...]
    first: FittingScm
    second: FittingScm
    rows: tuple[TableRow, ...]
    least: bool


class Witness(msgspec.Struct, frozen=True):
    """A row in which the pair differs: variables set, values of the roots, variables that differ.

    needs_set: whether the pair differs in no row without an intervention
    """

    intervention: dict[str, int]
    roots: dict[str, int]
    differs: tuple[str, ...]
    needs_set: bool


class Reading(msgspec.Struct, frozen=True):
    """A row that a world may show, and how many SCMs it leaves."""

    row: str
    remaining: str


class Decider(msgspec.Struct, frozen=True):
    """A world of one row that splits what fits.

    world: a line of `training` in the pool format, with ? for what is to be observed; readings: every possible one, or
    those of the pair alone where `complete` is false, because the roots are not told; rows of both: in the order of
    `ReplayWhy.columns`
    table_line: the same as a line of the table that the item was made of, empty for other items
    least, most: SCMs left; expected: over SCMs that fit, all alike; in_words: as part of a sentence
    sealed: SCMs that the reading of the gold SCM leaves, where that is revealed
    """

    in_words: str
    world: dict[str, Any]
    readings: tuple[Reading, ...]
    least: str
    most: str
    expected: float | None
    complete: bool = True
    sealed: str | None = None
    table_line: str = ""

    @property
    def decides(self) -> bool:
        return self.complete and self.most == "1"


class OpenVariable(msgspec.Struct, frozen=True):
    """An open variable: how many functions and parent sets it may have, whether it may be a root.

    never: rows of `total` over the union of the pair's parents that no training world shows with it free, where a pair
    was made for it
    """

    name: str
    functions: str
    parent_sets: int
    may_be_root: bool
    never: int | None = None
    total: int | None = None


class WithoutWorld(msgspec.Struct, frozen=True):
    """Number of SCMs that would fit without a training world."""

    world: str
    remaining: str


class Contradiction(msgspec.Struct, frozen=True):
    """Two rows that agree in everything that may be a parent, and differ in the variable."""

    variable: str
    first: str
    second: str


class ReplayWhy(Why, frozen=True, kw_only=True):
    """The reason for a ReplaySCM item; max_parents: of the class that was counted.

    columns: order of the variables in rows of the item's file; deciders: best first; variables: the open ones
    without: where one SCM fits; contradiction: where none can
    true_mechanisms: prefix texts of the gold SCM, where it is revealed
    """

    max_parents: int
    evidence: Evidence
    columns: tuple[str, ...]
    pair: Pair | None = None
    witness: Witness | None = None
    deciders: tuple[Decider, ...] = ()
    variables: tuple[OpenVariable, ...] = ()
    without: tuple[WithoutWorld, ...] = ()
    contradiction: Contradiction | None = None
    true_mechanisms: dict[str, str] | None = None
    certificate: dict[str, Any] | None = None
