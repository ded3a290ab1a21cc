"""One picture of an open item: the rows that are seen, the one that is not, and two SCMs that fit."""

from __future__ import annotations

from html import escape
from itertools import accumulate

from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.pages.charts import text_width
from calibrant.bench.pages.design.page import standalone_svg
from calibrant.bench.pages.graphs import draw_together
from calibrant.bench.replayscm.why import words
from calibrant.bench.replayscm.why.page import graph
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import ALL_OPERATORS, infix, parse

LEAST_COLUMN, ROW, LEFT, TOP, SPACE, GAP = 44, 26, 20, 34, 36, 16


def drawing(why: ReplayWhy) -> str:
    """Return the item as an SVG file in both themes; `CalibrantError` for an item of which no pair is shown."""
    if why.pair is None or not why.pair.rows:
        raise CalibrantError(f"{why.item}: there are no two SCMs to draw ({why.reason_text})")
    variable = why.pair.differing[0]
    rows = words.table(why)
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
