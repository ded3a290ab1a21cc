"""Sentences about a `ReplayWhy` that page and terminal share."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from calibrant.audits.replayscm.why.parts import Decider, ReplayWhy, TableRow
from calibrant.audits.replayscm.why.sentences import range_text, witness_row
from calibrant.audits.why import expected_text, listed, number_text

MAX_ROWS = 16  # of the table over the pair's parents
MAX_PLACES = 4  # worlds and units that a row names


def table(why: ReplayWhy) -> list[TableRow]:
    """Return the rows to show: all of a small table, else those that differ first, then those that are seen."""
    if why.pair is None:
        return []
    rows = list(why.pair.rows)
    if len(rows) <= MAX_ROWS:
        return rows
    at_witness = witness_row(why)
    ranked = sorted(rows, key=lambda row: (row is not at_witness, not row.differs, row.observed is None))
    visible = {id(row) for row in ranked[:MAX_ROWS]}
    return [row for row in rows if id(row) in visible]


def where(row: TableRow) -> str:
    """Return where a row is seen: w0 u0, u3; w1 u2."""
    if row.differs:
        return "A and B differ"
    return places(row.where) if row.where else "nowhere"


def places(names: tuple[str, ...]) -> str:
    """Return the first worlds and units, and how many more there are."""
    by_world: dict[str, list[str]] = {}
    for name in names[:MAX_PLACES]:
        world, _, unit = name.partition(" ")
        by_world.setdefault(world, []).append(unit)
    visible = "; ".join(f"{world} {_units_text(units)}" for world, units in by_world.items())
    more = len(names) - MAX_PLACES
    return f"{visible}; {more} more" if more > 0 else visible


def _units_text(units: list[str]) -> str:
    """Return units as a list: u0, u1; lines of a table as lines 2, 3."""
    for noun in ("line", "row"):
        if len(units) > 1 and all(unit.startswith(f"{noun} ") for unit in units):
            return f"{noun}s {', '.join(unit.removeprefix(f'{noun} ') for unit in units)}"
    return ", ".join(units)


def shown_but_set(why: ReplayWhy) -> str:
    """Say that rows with the witness's values are there, but with the variable set; empty if there are none."""
    row = witness_row(why)
    if row is None or not row.set_in or why.pair is None:
        return ""
    values = ", ".join(f"{name} = {bit}" for name, bit in row.values.items())
    variable, number = why.pair.differing[0], len(row.set_in)
    which = listed(list(row.set_in)) if number <= 3 else f"{number} rows, {row.set_in[0]} the first,"
    worlds = "it" if number == 1 else "both" if number == 2 else "all"
    has, says = ("has", "does not show") if number == 1 else ("have", "none shows")
    return f"{which} {has} {values}, but {variable} was set in {worlds}: {says} what {variable} would be."


def witness_words(why: ReplayWhy) -> str:
    if why.witness is None or why.pair is None:
        return ""
    fixed_values = [*why.witness.intervention.items()]
    parts = [f"do({', '.join(f'{name} = {bit}' for name, bit in fixed_values)})"] if fixed_values else []
    relevant = witness_row(why)
    roots = {n: b for n, b in why.witness.roots.items() if b or relevant is None or n in relevant.values}
    parts += [f"{name} = {bit}" for name, bit in roots.items()]
    other_roots = " and all other roots 0" if len(roots) < len(why.witness.roots) else ""
    gives = "; ".join([_gives("A", why.pair.first.values, why), _gives("B", why.pair.second.values, why)])
    return f"Witness {', '.join(parts)}{other_roots}: {gives}."


def _gives(letter: str, values: Mapping[str, int], why: ReplayWhy) -> str:
    assert why.witness is not None
    return f"{letter} gives {', '.join(f'{name} = {values[name]}' for name in why.witness.differs)}"


def decider_words(why: ReplayWhy, decider: Decider) -> str:
    """Describe the best world of one row and its effect."""
    free = why.pair.differing[0] if why.pair else ""
    world = f"One more world that leaves {free} free: {decider.in_words}."
    if decider.decides:
        return f"{world} Whichever value it shows, 1 SCM is left."
    if not decider.complete:
        effect = f"If the other columns are as SCM A or B has them, it leaves {range_text(decider)} SCMs"
        return f"{world} {effect}; the roots are not told, so other rows are possible too."
    expected = "" if decider.expected is None else f", {expected_text(decider.expected)} expected"
    return f"{world} It leaves {range_text(decider)} of {why.count.in_words()} SCMs{expected}."


def count_origin(why: ReplayWhy) -> str:
    """Say how the count comes about, beside a table that may have fewer rows than what is counted; empty without."""
    roots, names = why.evidence.roots, why.evidence.variables
    if why.pair is None or not why.pair.rows:
        return ""
    general = "Counted are all sets of parents that fit; the table is over the parents of A and B alone."
    if roots is None or len(roots) + 1 != len(names) or len(roots) > why.max_parents or not why.count.is_exact:
        return general
    (variable,) = set(names) - set(roots)
    place = names.index(variable)
    free = [row for world in why.evidence.worlds if variable not in world.targets for row in world.rows]
    total = 1 << len(roots)
    never = total - len({row[:place] + row[place + 1 :] for row in free})
    if int(why.count.lower) != 1 << never:
        return general
    rows = f"of the {total} rows over {listed(list(roots))}, {never} were never seen with {variable} free"
    return f"{why.count.in_words()} = 2 to the {never}: {rows}, and each of them may be 0 or 1."


def unit_heading(why: ReplayWhy) -> str:
    """Return what rows of the evidence are called: units, or lines of a table."""
    units = [unit for world in why.evidence.worlds for unit in world.units]
    nouns = [noun for noun in ("line", "row") if units and all(unit.startswith(f"{noun} ") for unit in units)]
    return nouns[0].capitalize() if nouns else "Unit"


def world_text(decider: Decider) -> str:
    """Return the world as a line to copy: of the table that the item was made of, else of a pool's `training`."""
    return decider.table_line or json.dumps(decider.world)


def world_hint(why: ReplayWhy, decider: Decider) -> str:
    """Say what to replace in the line to copy, and where the line belongs."""
    (row,) = decider.world["rows"]
    observe = [name for name, character in zip(why.columns, row, strict=True) if character == "?"]
    blanks = f"each ? by the 0 or 1 that you observe ({', '.join(observe)})" if observe else ""
    if decider.table_line:
        names = " and ".join(decider.world.get("constants", ()))
        is_stated = all(name in decider.table_line for name in decider.world.get("constants", ()))
        setting = "" if is_stated else f" It sets {names}: name that in a column, and give the column with --do."
        return f"A line of the table; replace {blanks}.{setting}" if blanks else f"A line of the table.{setting}"
    order = (
        f"A world for the item's training worlds; characters of a row are {' '.join(why.columns)}, in the file's order"
    )
    return f"{order}; replace {blanks}." if blanks else f"{order}."


def also(why: ReplayWhy) -> str:
    """Other worlds that do as much."""
    if len(why.deciders) < 2:
        return ""
    best = why.deciders[0]
    equal = [entry.in_words for entry in why.deciders[1:] if (entry.least, entry.most) == (best.least, best.most)]
    return f"As good: {'; '.join(equal)}." if equal else ""


def counted_words(why: ReplayWhy) -> str:
    bounds = f"{number_text(int(why.count.lower))} and {number_text(int(why.count.upper or why.count.lower))}"
    method = "Counted exactly" if why.count.is_exact else f"Not counted: between {bounds}"
    size_note = (
        ""
        if why.pair is None
        else (
            " A and B have the least total size of all pairs that differ in as few variables."
            if why.pair.least
            else " A and B are not proven to be the smallest such pair."
        )
    )
    class_note = "Two SCMs are the same if each variable has the same function."
    return f"{method}, in the class: {why.class_in_words}. {class_note}{size_note}"


def lines(why: ReplayWhy) -> Iterator[str]:
    """Yield the lines of the terminal."""
    from calibrant.bench.pages.aligned import aligned
    from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse

    yield why.title
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in (*why.facts, *why.sealed))
    if why.pair:
        yield ""
        for letter, model in (("A", why.pair.first), ("B", why.pair.second)):
            for name in why.pair.differing:
                text = infix(parse(model.mechanisms[name], ALL_OPERATORS)) if name in model.mechanisms else "a root"
                yield f"{letter}  {name} = {text}"
        rows = table(why)
        if rows:
            yield ""
            parents = list(rows[0].values)
            body = [
                [*map(str, row.values.values()), seen_text(row), str(row.first), str(row.second), where(row)]
                for row in rows
            ]
            yield aligned([*parents, "seen", "A", "B", "where"], body)
        if origin := count_origin(why):
            yield origin
        if note := shown_but_set(why):
            yield f"Shown, but not for {why.pair.differing[0]}: {note}"
        if why.witness:
            yield witness_words(why)
    for entry in why.without:
        yield f"without the rows of {entry.world}: {entry.remaining} SCM{'s' * (entry.remaining != '1')} would fit"
    if why.deciders:
        yield ""
        heading = "What would settle it" if why.deciders[0].decides else "What would help most"
        yield f"{heading}: {decider_words(why, why.deciders[0])}"
        yield world_text(why.deciders[0])
        yield world_hint(why, why.deciders[0])
        if why.deciders[0].sealed is not None:
            yield f"Sealed: the row of the true SCM leaves {number_text(int(why.deciders[0].sealed))}."
        if more := also(why):
            yield more
    yield ""
    yield counted_words(why)


def seen_text(row: TableRow) -> str:
    return "never" if row.observed is None else str(row.observed)


def variable_record(why: ReplayWhy) -> list[dict[str, Any]]:
    """Return the open variables as rows of a table."""
    return [
        {
            "name": entry.name,
            "functions": number_text(int(entry.functions)),
            "parent_sets": f"{entry.parent_sets:,}",
            "may_be_root": "yes" if entry.may_be_root else "no",
            "never": "" if entry.never is None else f"{entry.never} of {entry.total}",
        }
        for entry in why.variables
    ]
