"""Parts of the reason why a ReplaySCM item is open, with title, reason and facts in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from calibrant.audits.why import Fact, Span, State, Why, listed, number_text, spans

# --- The parts of the reason why a ReplaySCM item is open -------------------------------------------------------------


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
    table_line: the same as a line of the table that the item was made of, empty for other items; table_hint: what to
        replace in it, where its values are not 0 and 1
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
    table_hint: str = ""

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


# --- Title, reason and facts in words; the same for pages, JSON and the terminal --------------------------------------
TITLES: dict[State, str] = {
    "open": "Why is \u201c{}\u201d ambiguous?",
    "uncounted": "Why is \u201c{}\u201d ambiguous?",
    "decided": "Why is \u201c{}\u201d decided?",
    "empty": "Why does nothing fit \u201c{}\u201d?",
}


def title(item: str, state: State) -> str:
    return TITLES[state].format(item)


def reason(why: ReplayWhy, asked_parents: int) -> tuple[Span, ...]:
    """At most two sentences; what to look at is marked."""
    if why.state == "empty":
        return _nothing_fits(why, asked_parents)
    wider = f"No SCM with at most {asked_parents} parents fits. " if why.max_parents > asked_parents else ""
    if why.state == "decided":
        return spans(f"{wider}One SCM fits: every mechanism is decided", *_what_decides(why), ".")
    number = _fit(why)
    if why.pair is None:
        return spans(f"{wider}{number}; ", (listed(list(why.open)),), " stay open.")
    variable = why.pair.differing[0]
    row = witness_row(why)
    if row is None:
        difference = f"differ in {listed(list(why.pair.differing))}"
        return spans(f"{wider}{number}. Two of them {difference}: ", ("what is a root",), " is not told.")
    values = ", ".join(f"{name} = {bit}" for name, bit in row.values.items())
    visible = "No row shows " if row.values else "No row leaves "
    never = (
        spans(wider, visible, (variable,), " with ", (values,), f" while {variable} is free")
        if row.values
        else spans(wider, visible, (variable,), " free")
    )
    unset = unset_parents(why, row)
    because = f", and no world sets {listed(unset)}" if unset else ""
    is_pair = why.count.is_exact and why.count.lower == "2"
    fit = (
        f"{number} everything else and disagree there"
        if is_pair
        else f"{number} what is shown; two of them disagree there"
    )
    return (*never, *spans(f"{because}. {fit}."))


def _fit(why: ReplayWhy) -> str:
    if why.count.is_exact and why.count.lower == "2":
        return "Two SCMs fit"
    words = why.count.in_words()
    return f"{words[0].upper()}{words[1:]} SCMs fit"


def _what_decides(why: ReplayWhy) -> Iterator[str | tuple[str]]:
    """Yield the world without which most SCMs would fit."""
    counted = [(int(entry.remaining), entry.world) for entry in why.without if entry.remaining.isdecimal()]
    if counted:
        remaining, world = max(counted, key=lambda entry: entry[0])
        if remaining > 1:
            yield ". Without "
            yield (world,)
            yield f", {number_text(remaining)} SCMs would fit"
        else:
            yield ", and any one world can be left out"


def _nothing_fits(why: ReplayWhy, asked_parents: int) -> tuple[Span, ...]:
    if why.contradiction is not None:
        clash = why.contradiction
        return spans(
            "No SCM of any class fits: ",
            (f"{clash.first} and {clash.second}",),
            f" agree in everything that {clash.variable} may depend on, and differ in {clash.variable}.",
        )
    return spans(f"No SCM with at most {asked_parents} parents fits, nor any with at most {why.max_parents}.")


def witness_row(why: ReplayWhy) -> TableRow | None:
    """Return the row of the table in which the pair parts at the witness.

    The first in which it does, without a witness.
    """
    if why.pair is None:
        return None
    parting = [row for row in why.pair.rows if row.differs]
    values = why.pair.first.values
    return next((row for row in parting if all(values.get(u) == bit for u, bit in row.values.items())), None) or next(
        iter(parting), None
    )


def unset_parents(why: ReplayWhy, row: TableRow) -> list[str]:
    """Return the parents that the row needs set and that no world sets.

    They need setting because the mechanisms never give these values.
    """
    if why.witness is None or not why.witness.needs_set:
        return []
    set_somewhere = {name for world in why.evidence.worlds for name in world.targets}
    return [name for name in why.witness.intervention if name in row.values and name not in set_somewhere]


def facts(why: ReplayWhy) -> tuple[Fact, ...]:
    """At most six: how many fit, what is open, what is decided, the class, what it costs to settle."""
    parts = [_count_fact(why)]
    if why.open:
        parts.append(Fact(f"open: {listed(list(why.open))}"))
    if why.decided and why.state != "decided":
        parts.append(Fact(f"decided: {listed(list(why.decided))}"))
    counted = (
        "counted exactly" if why.count.is_exact else f"at most {number_text(int(why.count.upper or why.count.lower))}"
    )
    parts.append(Fact(f"{counted}; each variable depends on at most {why.max_parents} others"))
    if why.state == "open":
        parts.append(Fact(cost(why.deciders)))
    return tuple(parts)


def _count_fact(why: ReplayWhy) -> Fact:
    if why.state == "empty":
        return Fact("no SCM fits", "bad")
    if why.state == "decided":
        return Fact("1 SCM fits", "good")
    return Fact(f"{why.count.in_words()} SCMs fit", "warn")


def cost(deciders: tuple[Decider, ...]) -> str:
    """Return what the best world of one row does."""
    if not deciders:
        return "no single row was measured"
    best = deciders[0]
    if best.decides:
        return "one row would settle it"
    if not best.complete:
        return f"the pair's readings of one row leave {range_text(best)}"
    return f"one row leaves {range_text(best)}"


def range_text(decider: Decider) -> str:
    """Return the least and the most that a world leaves, once where they are equal."""
    least, most = number_text(int(decider.least)), number_text(int(decider.most))
    return least if decider.least == decider.most else f"{least} to {most}"
