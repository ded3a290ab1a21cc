"""Part of a page: errors against size of one target, its formulas, and the rows that they get wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup

from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.page import html_page
from calibrant.bench.replayscm.fitting.columns import GAP
from calibrant.bench.replayscm.fitting.fronts import TargetFront, plain_first, size_text
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.text import plural
from calibrant.solvers.formulas.fronts import BoolArray, Counting, FrontFunction, FrontPoint
from calibrant.solvers.formulas.least_formulas import infix_text

MAX_ROWS = 200  # that are listed if no formula gets them wrong
MAX_MARKED_ROWS = 2_000
WIDTH, HEIGHT, LEFT, TOP, RIGHT, FOOT = 560.0, 260.0, 64.0, 12.0, 16.0, 44.0


class Wording(NamedTuple):
    """Words of a front. counting: how rows with gaps count; noun: what is counted; mark: of a row so counted."""

    counting: Counting
    heading: str
    noun: str
    mark: str


ERRORS = Wording("sure", "{}: errors against size", "errors", "wrong")
SURE = Wording("sure", "{}: rows that no completion puts right", "rows that no completion puts right", "wrong")
POSSIBLE = Wording(
    "possible", "{}: rows that some completion puts wrong", "rows that some completion puts wrong", "maybe wrong"
)


def front_section(front: TargetFront, table: Table, number: int, wording: Wording = ERRORS) -> Markup:
    """Return the front as a step plot, a table of its points with their formulas, and the rows of the table.

    number: of the section in its page, for ids
    """
    points = [_point(front, f"point-{number}-{k}", point) for k, point in enumerate(front.front.points)]
    content = {
        "target": front.target,
        "number": number,
        "heading": wording.heading.format(front.target),
        "noun": wording.noun,
        "claim": next(front.lines()),
        "chart": Markup(_chart(front, number)) if points else "",
        "points": points,
        "open": next(front.open_lines(), ""),
        "open_points": [
            {"errors": p.errors, "size": size_text(p.size), "first": infix_text(plain_first(p), front.names)}
            for p in front.front.open_points
        ],
        "decided": points[-1] if points else None,
        "rows": _rows(front, table, wording) if points else "",
    }
    return Markup(html_page("why/front.html", content))


def _point(front: TargetFront, anchor: str, point: FrontPoint) -> dict[str, Any]:
    texts = [infix_text(tree, front.names) for _, tree in point.formulas(front.ties)]
    return {
        "id": anchor,
        "errors": point.errors,
        "size": size_text(point.size),
        "formulas": point.num_formulas,
        "functions": len(point.functions),
        "ties": f"{plural(point.num_formulas, 'formulas')} of {plural(len(point.functions), 'functions')}",
        "first": infix_text(plain_first(point), front.names),
        "listed": texts,
    }


def _chart(front: TargetFront, number: int) -> str:
    """Return the step plot: sizes across, errors up; each point leads to its formulas."""
    points = front.front.points
    across = [p.size[0] if isinstance(p.size, tuple) else p.size for p in points]
    x = Scale(0, max(across) + 1, LEFT, WIDTH - RIGHT)
    y = Scale(0, max(p.errors for p in points) or 1, HEIGHT - FOOT, TOP)
    marks = [*side_axis(y.ticks(), LEFT, WIDTH - RIGHT)]
    marks += foot_axis([tick for tick in x.ticks(8) if tick[1].isdigit()], HEIGHT - FOOT)
    marks.append(text_at("size", (LEFT + WIDTH) / 2, HEIGHT - 8, "soft", "middle"))
    marks.append(text_at("errors", 4, TOP + 4, "soft"))
    ends = [*across[1:], x.high]
    corners = [(x.at(size), y.at(p.errors)) for p, *sizes in zip(points, across, ends, strict=True) for size in sizes]
    path = " ".join(f"{across_pixel:.1f},{up_pixel:.1f}" for across_pixel, up_pixel in corners)
    marks.append(f'<polyline class="path" style="stroke:var(--link)" points="{path}"/>')
    for k, (point, size) in enumerate(zip(points, across, strict=True)):
        label = f"{plural(point.errors, 'errors')} at size {size_text(point.size)}"
        circle = f'<circle cx="{x.at(size):.1f}" cy="{y.at(point.errors):.1f}" r="5" style="fill:var(--link)"/>'
        marks.append(f'<a href="#point-{number}-{k}" aria-label="{label}"><title>{label}</title>{circle}</a>')
    last = points[-1]
    label = f"Least errors by size: from {points[0].errors} down to {last.errors} at size {size_text(last.size)}"
    return figure(WIDTH, HEIGHT, label, marks).replace('role="img"', 'role="group"')


def _rows(front: TargetFront, table: Table, wording: Wording) -> Markup:
    """Return the rows, marked where the formula of fewest errors is wrong, rows contradict, or a cell is a gap."""
    position = table.position(front.target)
    target = table.codes[:, position]
    counting = (target != GAP) & ~table.is_set(position)
    others = [k for k in range(len(table.names)) if k != position]
    best = front.front.points[-1]
    tree = plain_first(best)
    function = next(f for f in best.functions if any(tree == listed for _, listed in f.formulas))
    codes = table.codes[:, others]
    can_be_one, can_be_zero = _possible_values(function, codes)
    if wording.counting == "possible":
        is_wrong = counting & np.where(target == 1, can_be_zero, can_be_one)
    else:
        is_wrong = counting & ~np.where(target == 1, can_be_one, can_be_zero)
    _, groups = np.unique(codes, axis=0, return_inverse=True)
    groups = groups.ravel()
    counting = counting & (codes != GAP).all(axis=1)
    groups_by_value = [groups[counting & (target == value)] for value in (0, 1)]
    in_clash = counting & np.isin(groups, groups_by_value[0]) & np.isin(groups, groups_by_value[1])
    marks = {wording.mark: is_wrong, "contradicts another row": in_clash, "gap": (table.codes == GAP).any(axis=1)}
    note = f"{plural(int(table.counts[is_wrong].sum()), 'rows')} {wording.mark} under this formula"
    heading = f"Rows of the table, {wording.heading.format(front.target)}"
    return rows_section(table, [*others, position], marks, note, heading)


def _possible_values(function: FrontFunction, codes: npt.NDArray[np.int16]) -> tuple[BoolArray, BoolArray]:
    """Return in which patterns some completion of the gaps gives the function the value 1, and 0."""
    values = np.zeros((2, len(codes)), np.bool_)
    for row in range(1 << len(function.columns)):
        bits = [row >> k & 1 for k in range(len(function.columns))]
        chosen = codes[:, list(function.columns)]
        values[function.bits >> row & 1] |= ((chosen == GAP) | (chosen == bits)).all(axis=1)
    return values[1], values[0]


def rows_section(
    table: Table,
    order: Sequence[int],
    marks: Mapping[str, BoolArray],
    note: str,
    heading: str = "Rows of the table",
) -> Markup:
    """Return the first rows and every marked one, in the user's words.

    order: positions of columns; marks: word -> patterns that have it, the first of which are drawn marked
    """
    first = next(iter(marks))
    is_marked = np.logical_or.reduce(list(marks.values()))
    rows: list[dict[str, Any]] = []
    num_plain = num_marked = 0
    for row, pattern in enumerate(table.pattern_of_row.tolist()):
        num_marked += bool(is_marked[pattern])
        num_plain += not is_marked[pattern]
        is_listed = num_marked <= MAX_MARKED_ROWS if is_marked[pattern] else num_plain <= MAX_ROWS
        if is_listed:
            words = [table.used[k].word(int(code)) if (code := table.codes[pattern, k]) != GAP else "?" for k in order]
            stated = ", ".join(mark for mark, patterns in marks.items() if patterns[pattern])
            rows.append({"line": int(table.lines[row]), "cells": words, "marks": stated,
                         "is_wrong": bool(marks[first][pattern])})  # fmt: skip
    content = {
        "heading": heading,
        "note": f"{note}; the first {MAX_ROWS} rows are listed, and every one that is marked, to {MAX_MARKED_ROWS:,}.",
        "columns": [table.names[k] for k in order],
        "rows": rows,
    }
    return Markup(html_page("why/table_rows.html", content))
