"""Page, drawing and sentences of a `ReplayWhy`; the terminal prints the same sentences as the page."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from html import escape
from itertools import accumulate
from typing import Any, TypeAlias

from markupsafe import Markup

from calibrant.audits.replayscm.why.parts import (
    DecidedVariable,
    Decider,
    Exclusion,
    FittingScm,
    ReplayWhy,
    TableRow,
    range_text,
    witness_row,
)
from calibrant.audits.why import expected_text, listed, number_text
from calibrant.bench.pages.charts import text_width
from calibrant.bench.pages.graphs import Graph, GraphNode, draw_together
from calibrant.bench.pages.page import MAX_UNBROKEN_CHARS, html_page, standalone_svg
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse
from calibrant.dsl.text import plural

# --- Sentences of page and terminal -----------------------------------------------------------------------------------
MAX_ROWS = 16  # rows of the table over the pair's parents
MAX_PLACES = 4  # worlds and units listed for a row


def table(why: ReplayWhy) -> list[TableRow]:
    """Return at most MAX_ROWS rows of the table, preferring the witness, then rows that differ, then observed ones."""
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
    """Return the worlds and units that show a row: w0 u0, u3; w1 u2."""
    if row.differs:
        return "A and B differ"
    return places(row.where) if row.where else "nowhere"


def places(names: tuple[str, ...]) -> str:
    """Return the first MAX_PLACES worlds and units, and the number of further ones."""
    by_world: dict[str, list[str]] = {}
    for name in names[:MAX_PLACES]:
        world, _, unit = name.partition(" ")
        by_world.setdefault(world, []).append(unit)
    visible = "; ".join(f"{world} {_units_text(units)}" for world, units in by_world.items())
    more = len(names) - MAX_PLACES
    return f"{visible}; {more} more" if more > 0 else visible


def _units_text(units: list[str]) -> str:
    """Return units as text: u0, u1; lines of a table: lines 2, 3."""
    for noun in ("line", "row"):
        if len(units) > 1 and all(unit.startswith(f"{noun} ") for unit in units):
            return f"{noun}s {', '.join(unit.removeprefix(f'{noun} ') for unit in units)}"
    return ", ".join(units)


def shown_but_set(why: ReplayWhy) -> str:
    """Return a sentence on rows with the witness's values in which the variable is set; empty without such rows."""
    row = witness_row(why)
    if row is None or not row.set_in or why.pair is None:
        return ""
    values = ", ".join(f"{name} = {bit}" for name, bit in row.values.items())
    variable, number = why.pair.differing[0], len(row.set_in)
    which = listed(list(row.set_in)) if number <= 3 else f"{number} rows, {row.set_in[0]} the first,"
    worlds = "it" if number == 1 else "both" if number == 2 else "all"
    if not values:
        verb, place = ("does", "there") if number == 1 else ("do", f"in {worlds}")
        return f"{which} {verb} not show what {variable} would be: it was set {place}."
    has, says = ("has", "it does not show") if number == 1 else ("have", "none shows")
    return f"{which} {has} {values}, but {variable} was set in {worlds}: {says} what {variable} would be."


def witness_words(why: ReplayWhy) -> str:
    if why.witness is None or why.pair is None:
        return ""
    fixed_values = [*why.witness.intervention.items()]
    parts = [f"do({', '.join(f'{name} = {bit}' for name, bit in fixed_values)})"] if fixed_values else []
    relevant = witness_row(why)
    roots = {n: b for n, b in why.witness.roots.items() if b or relevant is None or n in relevant.values}
    parts += [f"{name} = {bit}" for name, bit in roots.items()]
    if len(roots) < len(why.witness.roots):
        parts = [f"{', '.join(parts)} and all other roots 0" if parts else "all roots 0"]
    gives = "; ".join([_gives("A", why.pair.first.values, why), _gives("B", why.pair.second.values, why)])
    return f"{' '.join(filter(None, ('Witness', ', '.join(parts))))}: {gives}."


def _gives(letter: str, values: Mapping[str, int], why: ReplayWhy) -> str:
    assert why.witness is not None
    return f"{letter} gives {', '.join(f'{name} = {values[name]}' for name in why.witness.differs)}"


def decider_words(why: ReplayWhy, decider: Decider) -> str:
    """Return a sentence on the best world of one row and its effect."""
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
    """Return a sentence on what the count is over, of which the shown table is a part; empty without a pair."""
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
    were, subject = ("was", "it") if never == 1 else ("were", "each of them")
    unseen = f"{variable} was never seen free"
    if roots:
        unseen = f"of the {total} rows over {listed(list(roots))}, {never} {were} never seen with {variable} free"
    return f"{why.count.in_words()} = 2 to the {never}: {unseen}, and {subject} may be 0 or 1."


def unit_heading(why: ReplayWhy) -> str:
    """Return the name of the evidence's rows: units, or lines of a table."""
    units = [unit for world in why.evidence.worlds for unit in world.units]
    nouns = [noun for noun in ("line", "row") if units and all(unit.startswith(f"{noun} ") for unit in units)]
    return nouns[0].capitalize() if nouns else "Unit"


def world_text(decider: Decider) -> str:
    """Return the world as a line to copy into the table that the item was made of, else into a pool's `training`."""
    return decider.table_line or json.dumps(decider.world)


def world_hint(why: ReplayWhy, decider: Decider) -> str:
    """Return a sentence on what to replace in the copied line, and where to insert it."""
    (row,) = decider.world["rows"]
    observe = [name for name, character in zip(why.columns, row, strict=True) if character == "?"]
    blanks = f"each ? by the 0 or 1 that you observe ({', '.join(observe)})" if observe else ""
    if decider.table_line:
        line = f"A line of the table; replace {blanks}." if blanks else "A line of the table."
        return decider.table_hint or line
    order = (
        f"A world for the item's training worlds; characters of a row are {' '.join(why.columns)}, in the file's order"
    )
    return f"{order}; replace {blanks}." if blanks else f"{order}."


def also(why: ReplayWhy) -> str:
    """Return a sentence on other worlds with the same effect; empty without."""
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


def formula_text(model: FittingScm, name: str) -> str:
    """Return a mechanism in infix notation; `a root` for a variable without one."""
    return infix(parse(model.mechanisms[name], ALL_OPERATORS)) if name in model.mechanisms else "a root"


def exclusion_words(variable: str, exclusion: Exclusion) -> str:
    """Return a sentence on why a parent set is excluded."""
    names = listed(list(exclusion.parents))
    rows = " and ".join(place.removeprefix("observed ") for place in (exclusion.first, exclusion.second))
    if not exclusion.first:
        return f"A function of {names} fits its rows, and every SCM with it has a cycle."
    if not exclusion.parents:
        return f"It is no constant: {rows} differ in {variable}."
    agree = f"{rows} agree in {names} and differ in {variable}"
    return f"It is no function of {names}{' alone' if len(exclusion.parents) == 1 else ''}: {agree}."


def excluded_words(mechanism: DecidedVariable) -> list[str]:
    """Return sentences on excluded parent sets, and on the number of further ones."""
    sentences = [exclusion_words(mechanism.name, exclusion) for exclusion in mechanism.excluded]
    more = (mechanism.num_excluded or 0) - len(sentences)
    return [*sentences, f"{plural(more, 'more sets')} of parents are excluded in the same way."] if more else sentences


WordTexts: TypeAlias = Mapping[str, Sequence[str]]
"""Variable -> texts of 0 and 1 in tables, of a user's table; others have digits."""


def word_of(words: WordTexts, name: str, value: object) -> str:
    """Return the text of a variable's value; of what is no value, such as `never`, that."""
    return words[name][int(str(value))] if name in words and str(value) in ("0", "1") else str(value)


def lines(why: ReplayWhy, words: WordTexts | None = None) -> Iterator[str]:
    """Yield the lines of the terminal."""
    from calibrant.bench.pages.terminal_tables import aligned

    yield why.title
    yield why.reason_text
    yield "  ".join(f"[{fact.text}]" for fact in (*why.facts, *why.sealed))
    if why.pair:
        yield ""
        for letter, model in (("A", why.pair.first), ("B", why.pair.second)):
            for name in why.pair.differing:
                yield f"{letter}  {name} = {formula_text(model, name)}"
        rows = table(why)
        if rows:
            yield ""
            parents, read = list(rows[0].values), partial(word_of, words or {})
            body = [
                [
                    *(read(name, value) for name, value in row.values.items()),
                    *(read(why.pair.differing[0], value) for value in (seen_text(row), row.first, row.second)),
                    where(row),
                ]
                for row in rows
            ]
            yield aligned([*parents, "seen", "A", "B", "where"], body)
        if origin := count_origin(why):
            yield origin
        if note := shown_but_set(why):
            yield f"Shown, but not for {why.pair.differing[0]}: {note}"
        if why.witness:
            yield witness_words(why)
    if why.model is not None:
        yield ""
        for mechanism in why.mechanisms:
            yield f"{mechanism.name} = {formula_text(why.model, mechanism.name)}"
            yield from (f"  {sentence}" for sentence in excluded_words(mechanism))
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
    """Return the open variables as rows of a table, by column."""
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


# --- The page of a `ReplayWhy` ----------------------------------------------------------------------------------------
EVIDENCE_ROOM = 220  # pixels for columns of variables beside world and unit, in a third of a page of 1280
TABLE_ROOM = 130  # the same beside seen, A, B and where, in half of the rest
WIDE_TABLE_ROOM = 360  # the same in half of the page, where evidence is wide and stands below
MAX_EVIDENCE = 12  # rows of evidence on the first screen
NO_NOTES = Markup()
MAX_READINGS = 40  # listed readings of a world


def body(why: ReplayWhy, prefix: str, *, notes: Markup = NO_NOTES, words: WordTexts | None = None) -> Markup:
    """Return the body of the page; prefix: put before its HTML ids; notes: between title and reason."""
    parting = witness_row(why)
    bearing = bearing_rows(why)
    compact = why.evidence.num_rows > MAX_EVIDENCE
    is_wide = _width(why.evidence.variables) > EVIDENCE_ROOM
    content = {
        "why": why,
        "word_of": partial(word_of, words or {}),
        "prefix": prefix,
        "notes": notes,
        "evidence_summary": evidence_summary(why),
        "caption": f"{_bearing_caption(why)}Striped: set by the intervention." if compact else STRIPED,
        "rows": _evidence_rows(why, bearing) if compact else _evidence_rows(why),
        "all_rows": _evidence_rows(why) if compact else [],
        "shown_but_set": shown_but_set(why),
        "variable": why.pair.differing[0] if why.pair else "",
        "parents": list(parting.values) if parting else [],
        "table": _table(why),
        "table_caption": _table_caption(why),
        "count_origin": count_origin(why),
        "unit_heading": unit_heading(why),
        "is_wide": is_wide,
        "is_stacked": _width(parting.values if parting else ()) > (WIDE_TABLE_ROOM if is_wide else TABLE_ROOM),
        "witness_words": witness_words(why),
        "without": [
            {
                "world": entry.world,
                "remaining": number_text(int(entry.remaining)) if entry.remaining.isdecimal() else entry.remaining,
            }
            for entry in why.without
        ],
        "decider": _decider(why),
        "truth": _truth(why),
        "counted_words": counted_words(why),
        "variables": variable_record(why),
        "json_text": json.dumps(why.to_dict(), indent=1, ensure_ascii=False),
        "decided": _decided(why),
        **_models(why, prefix),
    }
    return Markup(html_page("why/replayscm.html", content))


def _width(names: Iterable[str]) -> float:
    """Return the total width, in pixels, of the columns with these headings."""
    return sum(text_width(name[:MAX_UNBROKEN_CHARS], 13, "bold") + 15 for name in names)


def evidence_summary(why: ReplayWhy) -> str:
    return f"Evidence: {plural(len(why.evidence.worlds), 'worlds')}, {plural(why.evidence.num_rows, 'rows')}"


STRIPED = "Striped: set by the intervention."


def _bearing_caption(why: ReplayWhy) -> str:
    if why.model is not None:
        return "Rows that decide: one for each row of a mechanism. "
    return "Rows that bear on the pair. " if why.pair else ""


def bearing_rows(why: ReplayWhy) -> list[tuple[int, int]]:
    """Return (world, row) of the evidence that matters.

    Of an open item: rows with the witness's values in which the variable is set, then one for each observed row of the
    table. Of a decided item: the first for each row of a mechanism. Without a pair: the first rows.
    """
    place = {
        f"{world.id} {unit}": (w, u)
        for w, world in enumerate(why.evidence.worlds)
        for u, unit in enumerate(world.units)
    }
    if why.pair is None:
        rows = [row.where[0] for mechanism in why.mechanisms for row in mechanism.rows if row.where]
        return sorted({place[name] for name in rows} if rows else list(place.values())[:MAX_EVIDENCE])
    parting, observed = witness_row(why), [row.where[0] for row in why.pair.rows if row.where]
    names = [*(parting.set_in if parting else ())][: MAX_EVIDENCE // 2]
    return sorted({place[name] for name in [*names, *observed[: MAX_EVIDENCE - len(names)]]})


def _evidence_rows(why: ReplayWhy, only: Sequence[tuple[int, int]] | None = None) -> list[dict[str, Any]]:
    parting = witness_row(why)
    look = set(parting.set_in) if parting else set()
    rows: list[dict[str, Any]] = []
    for w, world in enumerate(why.evidence.worlds):
        indices = [u for u in range(len(world.rows)) if only is None or (w, u) in only]
        for k, u in enumerate(indices):
            cells = [
                {"name": name, "value": value, "clamped": name in world.targets}
                for name, value in zip(why.evidence.variables, world.rows[u], strict=True)
            ]
            rows.append(
                {
                    "span": len(indices) if k == 0 else 0,
                    "world": world.id,
                    "intervention": "nothing set" if not world.targets else world.intervention,
                    "unit": world.units[u],
                    "cells": cells,
                    "look": f"{world.id} {world.units[u]}" in look,
                }
            )
    return rows


def _table(why: ReplayWhy) -> list[dict[str, Any]]:
    return [
        {
            "cells": list(row.values.values()),
            "observed": seen_text(row),
            "first": row.first,
            "second": row.second,
            "differs": row.differs,
            "where": where(row),
        }
        for row in table(why)
    ]


def _table_caption(why: ReplayWhy) -> str:
    rows = why.pair.rows if why.pair else ()
    visible = len(table(why))
    never = sum(row.observed is None for row in rows)
    part = f"{visible} of {len(rows)} rows; " if visible < len(rows) else ""
    return f"{part}{never} of {len(rows)} never seen"


def _models(why: ReplayWhy, prefix: str) -> dict[str, Any]:
    if why.model is not None:
        (drawing,) = draw_together([graph(why, why.model, "")], f"{prefix}-graph")
        return {"only": {"drawing": Markup(drawing), "formulas": _formulas(why, why.model)}}
    if why.pair is None:
        return {}
    models = (why.pair.first, why.pair.second)
    graphs = [graph(why, model, letter) for model, letter in zip(models, "AB", strict=True)]
    drawings = draw_together(graphs, f"{prefix}-graph")
    return {
        key: {"drawing": Markup(drawing), "formulas": _formulas(why, model)}
        for key, drawing, model in zip(("first", "second"), drawings, models, strict=True)
    }


def graph(why: ReplayWhy, model: FittingScm, letter: str, only: Sequence[str] | None = None) -> Graph:
    """Return an SCM as a graph with its values at the witness, differing ones marked open; only: variables to draw."""
    differing = why.witness.differs if why.witness else why.pair.differing if why.pair else ()
    names = [v for v in why.evidence.variables if only is None or v in only]
    nodes = {
        v: GraphNode(v, f"= {model.values[v]}" if v in model.values else "", "open" if v in differing else "")
        for v in names
    }
    parents = {v: [p for p in model.parents.get(v, ()) if p in names] for v in names}
    if why.pair is None:
        return Graph(parents, nodes, "Graph of the SCM that fits", "")
    variable = why.pair.differing[0]
    listed = ", ".join(model.parents.get(variable, ())) or "nothing"
    return Graph(parents, nodes, f"Graph of SCM {letter}: {variable} depends on {listed}", f"only in {letter}")


def _formulas(why: ReplayWhy, model: FittingScm) -> list[dict[str, Any]]:
    differing = why.pair.differing if why.pair else ()
    return [
        {"name": name, "text": formula_text(model, name), "differs": name in differing} for name in model.mechanisms
    ]


def _decided(why: ReplayWhy) -> list[dict[str, Any]]:
    """Return template fields for the mechanisms of the only SCM: formula, rows, excluded parent sets."""
    if why.model is None:
        return []
    return [
        {
            "name": mechanism.name,
            "formula": formula_text(why.model, mechanism.name),
            "parents": mechanism.parents,
            "rows": [
                {"cells": list(row.values.values()), "value": row.first, "where": places(row.where) or "nowhere"}
                for row in mechanism.rows
            ],
            "excluded": excluded_words(mechanism),
        }
        for mechanism in why.mechanisms
    ]


def _truth(why: ReplayWhy) -> list[dict[str, Any]]:
    """Return the gold SCM's formulas; empty if they are not revealed."""
    differing = why.pair.differing if why.pair else ()
    return [
        {"name": name, "text": infix(parse(text, ALL_OPERATORS)), "differs": name in differing}
        for name, text in (why.true_mechanisms or {}).items()
    ]


def _decider(why: ReplayWhy) -> dict[str, Any] | None:
    if not why.deciders:
        return None
    best = why.deciders[0]
    more = len(best.readings) - MAX_READINGS
    return {
        "heading": "What would settle it" if best.decides else "What would help most",
        "words": decider_words(why, best),
        "world": world_text(best),
        "hint": world_hint(why, best),
        "also": also(why),
        "readings": [
            {"row": entry.row, "remaining": number_text(int(entry.remaining))} for entry in best.readings[:MAX_READINGS]
        ],
        "more": f"{more} more readings are in the JSON." if more > 0 else "",
        "sealed": "" if best.sealed is None else number_text(int(best.sealed)),
    }


# --- Picture of an open item: observed rows, the unobserved one, and two SCMs that fit --------------------------------
LEAST_COLUMN, ROW, LEFT, TOP, SPACE, GAP = 44, 26, 20, 34, 36, 16  # pixels


def drawing(why: ReplayWhy) -> str:
    """Return the item as an SVG file for light and dark theme; `CalibrantError` for an item without a pair."""
    if why.pair is None or not why.pair.rows:
        raise CalibrantError(f"{why.item}: there are no two SCMs to draw ({why.reason_text})")
    variable = why.pair.differing[0]
    rows = table(why)
    names = [*rows[0].values, variable]
    heading, note = f"what {variable} shows", f"?  never seen with {variable} free"
    widths = [max(LEAST_COLUMN, text_width(name, 13, "bold") + GAP) for name in names]
    centres = [
        LEFT + before + width / 2 for before, width in zip(accumulate(widths, initial=0.0), widths, strict=False)
    ]
    table_width = sum(widths)
    parts = [f'<text class="soft" x="{LEFT}" y="20">{escape(heading)}</text>']
    parts += [_cell(name, centre, TOP, "name") for name, centre in zip(names, centres, strict=True)]
    for r, row in enumerate(rows):
        y = TOP + ROW * (r + 1)
        if row.differs:
            parts.append(
                f'<rect class="look" x="{LEFT}" y="{y - 18}" width="{table_width:.0f}" height="{ROW - 2}" rx="5"/>'
            )
        observed = "?" if row.observed is None else str(row.observed)
        for value, centre in zip([*map(str, row.values.values()), observed], centres, strict=True):
            parts.append(_cell(value, centre, y, "name" if value == "?" else ""))
    table_height = TOP + ROW * (len(rows) + 1)
    parts.append(f'<text class="warn" x="{LEFT}" y="{table_height + 4}">{escape(note)}</text>')
    x = LEFT + max(table_width, text_width(heading), text_width(note)) + SPACE
    height = table_height + 24.0
    models = (why.pair.first, why.pair.second)
    drawings = draw_together([graph(why, m, letter, names) for m, letter in zip(models, "AB", strict=True)], "pair")
    for svg, model, words_above in zip(drawings, models, ("fits", "fits too"), strict=True):
        inner, width, tall = _inner(svg)
        formula = infix(parse(model.mechanisms[variable], ALL_OPERATORS)) if variable in model.mechanisms else "a root"
        label = f"{variable} = {formula}"
        width = max(width, text_width(label) + 20)
        parts.append(f'<text class="soft" x="{x + 12}" y="20">{words_above}</text>')
        parts.append(f'<g transform="translate({x} 24)">{inner}</g>')
        parts.append(f'<text x="{x + 12}" y="{tall + 44}">{escape(label)}</text>')
        height = max(height, tall + 60)
        x += width + SPACE
    title = escape(f"{why.item}: {why.reason_text}")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{title}" viewBox="0 0 {x:.0f} {height:.0f}"'
        f' width="{x:.0f}" height="{height:.0f}">{"".join(parts)}</svg>'
    )
    return standalone_svg(svg)


def _cell(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def _inner(svg: str) -> tuple[str, float, float]:
    """Return the contents of a drawn graph, its width and height."""
    start = svg.index(">") + 1
    width, height = (float(svg.split(f' {name}="')[1].split('"')[0]) for name in ("width", "height"))
    return svg[start : svg.rindex("</svg>")], width, height
