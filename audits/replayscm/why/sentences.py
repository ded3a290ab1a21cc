"""Title, reason and facts in words; the same for pages, JSON and the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from calibrant.audits.replayscm.why.parts import Decider, ReplayWhy, TableRow
from calibrant.audits.why import Fact, Span, State, listed, number_text, spans

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
