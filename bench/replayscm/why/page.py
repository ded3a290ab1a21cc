"""The page of a `ReplayWhy`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from calibrant.audits.replayscm.why.parts import FittingScm, ReplayWhy
from calibrant.audits.replayscm.why.sentences import witness_row
from calibrant.audits.why import number_text
from calibrant.bench.pages.charts import text_width
from calibrant.bench.pages.graphs import Graph, GraphNode, draw_together
from calibrant.bench.pages.html_page import MAX_UNBROKEN, html_page
from calibrant.bench.replayscm.why import words
from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse
from calibrant.dsl.text import plural

EVIDENCE_ROOM = 220  # pixels for columns of variables beside world and unit, in a third of a page of 1280
TABLE_ROOM = 130  # the same beside seen, A, B and where, in half of the rest
MAX_EVIDENCE = 12  # rows of evidence on the first screen
MAX_READINGS = 40  # readings of a world that are listed


def body(why: ReplayWhy, prefix: str) -> Markup:
    """Return the contents of the page, without its frame; prefix: of ids, unique in the page."""
    parting = witness_row(why)
    bearing = _bearing_rows(why)
    compact = why.evidence.num_rows > MAX_EVIDENCE
    content = {
        "why": why,
        "prefix": prefix,
        "evidence_summary": _evidence_summary(why),
        "caption": "Rows that bear on the pair. Striped: set by the intervention."
        if compact
        else "Striped: set by the intervention.",
        "rows": _evidence_rows(why, bearing) if compact else _evidence_rows(why),
        "all_rows": _evidence_rows(why) if compact else [],
        "shown_but_set": words.shown_but_set(why),
        "variable": why.pair.differing[0] if why.pair else "",
        "parents": list(parting.values) if parting else [],
        "table": _table(why),
        "table_caption": _table_caption(why),
        "count_origin": words.count_origin(why),
        "unit_heading": words.unit_heading(why),
        "is_wide": _width(why.evidence.variables) > EVIDENCE_ROOM,
        "is_stacked": _width(parting.values if parting else ()) > TABLE_ROOM,
        "witness_words": words.witness_words(why),
        "without": [
            {
                "world": entry.world,
                "remaining": number_text(int(entry.remaining)) if entry.remaining.isdecimal() else entry.remaining,
            }
            for entry in why.without
        ],
        "decider": _decider(why),
        "truth": _truth(why),
        "counted_words": words.counted_words(why),
        "variables": words.variable_record(why),
        "json_text": json.dumps(why.to_dict(), indent=1, ensure_ascii=False),
        **_models(why, prefix),
    }
    return Markup(html_page("why/replayscm.html", content))


def _width(names: Iterable[str]) -> float:
    """Return the width of the columns of a table under these names, in pixels."""
    return sum(text_width(name[:MAX_UNBROKEN], 13, "bold") + 15 for name in names)


def _evidence_summary(why: ReplayWhy) -> str:
    return f"Evidence: {plural(len(why.evidence.worlds), 'worlds')}, {why.evidence.num_rows} rows"


def _bearing_rows(why: ReplayWhy) -> list[tuple[int, int]]:
    """World and row, those that show the parting values with the variable set first, then one of each seen row."""
    if why.pair is None:
        return []
    place = {
        f"{world.id} {unit}": (w, u)
        for w, world in enumerate(why.evidence.worlds)
        for u, unit in enumerate(world.units)
    }
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
                {"value": value, "clamped": name in world.targets}
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
            "observed": words.seen_text(row),
            "first": row.first,
            "second": row.second,
            "differs": row.differs,
            "where": words.where(row),
        }
        for row in words.table(why)
    ]


def _table_caption(why: ReplayWhy) -> str:
    rows = why.pair.rows if why.pair else ()
    visible = len(words.table(why))
    never = sum(row.observed is None for row in rows)
    part = f"{visible} of {len(rows)} rows; " if visible < len(rows) else ""
    return f"{part}{never} of {len(rows)} never seen"


def _models(why: ReplayWhy, prefix: str) -> dict[str, Any]:
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
    """Return an SCM as a graph with its values at the witness; open at what differs there; only: these variables."""
    differing = why.witness.differs if why.witness else why.pair.differing if why.pair else ()
    names = [v for v in why.evidence.variables if only is None or v in only]
    nodes = {
        v: GraphNode(v, f"= {model.values[v]}" if v in model.values else "", "open" if v in differing else "")
        for v in names
    }
    parents = {v: [p for p in model.parents.get(v, ()) if p in names] for v in names}
    variable = why.pair.differing[0] if why.pair else ""
    listed = ", ".join(model.parents.get(variable, ())) or "nothing"
    return Graph(parents, nodes, f"Graph of SCM {letter}: {variable} depends on {listed}", f"only in {letter}")


def _formulas(why: ReplayWhy, model: FittingScm) -> list[dict[str, Any]]:
    assert why.pair is not None
    return [
        {"name": name, "text": infix(parse(text, ALL_OPERATORS)), "differs": name in why.pair.differing}
        for name, text in model.mechanisms.items()
    ]


def _truth(why: ReplayWhy) -> list[dict[str, Any]]:
    """Return the gold SCM's formulas, where they are revealed."""
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
        "words": words.decider_words(why, best),
        "world": words.world_text(best),
        "hint": words.world_hint(why, best),
        "also": words.also(why),
        "readings": [
            {"row": entry.row, "remaining": number_text(int(entry.remaining))} for entry in best.readings[:MAX_READINGS]
        ],
        "more": f"{more} more readings are in the JSON." if more > 0 else "",
        "sealed": "" if best.sealed is None else number_text(int(best.sealed)),
    }
