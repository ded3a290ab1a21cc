"""Part of a page: errors against size of one target, its formulas, and the rows that they get wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from markupsafe import Markup

from calibrant.bench.pages.charts import Scale, figure, foot_axis, side_axis, text_at
from calibrant.bench.pages.page import html_page
from calibrant.bench.replayscm.fitting.columns import GAP
from calibrant.bench.replayscm.fitting.fronts import TargetFront, plain_first, size_text
from calibrant.bench.replayscm.fitting.table import Table
from calibrant.dsl.text import plural
from calibrant.solvers.formulas.fronts import FrontPoint
from calibrant.solvers.formulas.least_formulas import infix_text

MAX_ROWS = 200  # that are listed if no formula gets them wrong
MAX_MARKED_ROWS = 2_000
WIDTH, HEIGHT, LEFT, TOP, RIGHT, FOOT = 560.0, 260.0, 64.0, 12.0, 16.0, 44.0


def front_section(front: TargetFront, table: Table, number: int) -> Markup:
    """Return the front as a step plot, a table of its points with their formulas, and the rows of the table.

    number: of the section in its page, for ids
    """
    claim = next(front.lines())
    points = [_point(front, f"point-{number}-{k}", point) for k, point in enumerate(front.front.points)]
    rows, num_wrong = _rows(front, table)
    content = {
        "target": front.target,
        "number": number,
        "claim": claim,
        "chart": Markup(_chart(front, number)),
        "points": points,
        "decided": points[-1] if points else None,
        "columns": [*front.columns, front.target],
        "rows": rows,
        "wrong": plural(num_wrong, "rows"),
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


def _rows(front: TargetFront, table: Table) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that are listed, marked where the formula of fewest errors is wrong or rows contradict."""
    position = table.position(front.target)
    counting = (table.codes[:, position] != GAP) & ~table.is_set(position)
    others = [k for k in range(len(table.names)) if k != position]
    best = front.front.points[-1]
    tree = plain_first(best)
    function = next(f for f in best.functions if any(tree == listed for _, listed in f.formulas))
    values = function.value(table.codes[:, others])
    is_wrong = counting & (values != table.codes[:, position])
    _, groups = np.unique(table.codes[:, others], axis=0, return_inverse=True)
    groups = groups.ravel()
    groups_by_value = [set(groups[counting & (table.codes[:, position] == value)]) for value in (0, 1)]
    clashes = groups_by_value[0] & groups_by_value[1]
    rows: list[dict[str, Any]] = []
    plain = marked = 0
    for row, pattern in enumerate(table.pattern_of_row.tolist()):
        in_clash = bool(counting[pattern]) and groups[pattern] in clashes
        is_marked = bool(is_wrong[pattern]) or in_clash
        marked += is_marked
        plain += not is_marked
        if (marked if is_marked else plain) <= (MAX_MARKED_ROWS if is_marked else MAX_ROWS):
            rows.append({"line": int(table.lines[row]), "cells": list(_words(table, pattern, others, position)),
                         "is_wrong": bool(is_wrong[pattern]), "in_clash": in_clash})  # fmt: skip
    return rows, int(table.counts[is_wrong].sum())


def _words(table: Table, pattern: int, others: list[int], position: int) -> Iterator[str]:
    for k in [*others, position]:
        yield table.used[k].word(int(table.codes[pattern, k]))
