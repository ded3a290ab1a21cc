"""One picture of an open item: the rows that are seen, the one that is not, and two SCMs that fit."""

from __future__ import annotations

from html import escape

from calibrant.audits.replayscm.why.parts import ReplayWhy
from calibrant.bench.pages.design.page import standalone_svg
from calibrant.bench.pages.why.graphs import draw_together
from calibrant.bench.replayscm.why import words
from calibrant.bench.replayscm.why.page import graph
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.infix import infix
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse

COLUMN, ROW, LEFT, TOP, SPACE = 44, 26, 20, 34, 36
RULES = """
text{font:13px system-ui,sans-serif;fill:var(--ink)}.soft{fill:var(--soft)}.name{font-weight:600}
.box{fill:var(--panel);stroke:var(--edge)}.box.open{fill:var(--warn-ground);stroke:var(--warn);stroke-width:2}
.arrow{fill:none;stroke:var(--soft);stroke-width:1.6}.arrow.only{stroke:var(--warn);stroke-width:3.4}
.tip{fill:var(--soft)}.tip.only{fill:var(--warn)}.look{fill:var(--mark);stroke:var(--warn)}.warn{fill:var(--warn)}
"""


def drawing(why: ReplayWhy) -> str:
    """Return the item as an SVG file in both themes; `CalibrantError` for an item of which no pair is shown."""
    if why.pair is None or not why.pair.rows:
        raise CalibrantError(f"{why.item}: there are no two SCMs to draw ({why.reason_text})")
    variable = why.pair.differing[0]
    rows = words.table(why)
    names = [*rows[0].values, variable]
    parts = [f'<text class="soft" x="{LEFT}" y="20">what {escape(variable)} shows</text>']
    for k, name in enumerate(names):
        parts.append(_cell(name, LEFT + COLUMN * k, TOP, "name"))
    for r, row in enumerate(rows):
        y = TOP + ROW * (r + 1)
        if row.differs:
            parts.append(
                f'<rect class="look" x="{LEFT}" y="{y - 18}" width="{COLUMN * len(names)}" height="{ROW - 2}" rx="5"/>'
            )
        observed = "?" if row.observed is None else str(row.observed)
        for k, value in enumerate([*map(str, row.values.values()), observed]):
            parts.append(_cell(value, LEFT + COLUMN * k, y, "name" if value == "?" else ""))
    table_height = TOP + ROW * (len(rows) + 1)
    parts.append(
        f'<text class="warn" x="{LEFT}" y="{table_height + 4}">?  never seen with {escape(variable)} free</text>'
    )
    x, height = LEFT + COLUMN * len(names) + SPACE + 0.0, table_height + 24.0
    models = (why.pair.first, why.pair.second)
    drawings = draw_together([graph(why, m, letter, names) for m, letter in zip(models, "AB", strict=True)], "pair")
    for svg, model, words_above in zip(drawings, models, ("fits", "fits too"), strict=True):
        inner, width, tall = _inner(svg)
        formula = infix(parse(model.mechanisms[variable], ALL_OPERATORS)) if variable in model.mechanisms else "a root"
        label = f"{variable} = {formula}"
        width = max(width, 7.2 * len(label) + 20)
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
    return standalone_svg(svg, RULES)


def _cell(text: str, x: float, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{x + COLUMN / 2}" y="{y}" text-anchor="middle">{escape(text)}</text>'


def _inner(svg: str) -> tuple[str, float, float]:
    """Return the contents of a drawn graph, its width and height."""
    start = svg.index(">") + 1
    width, height = (float(svg.split(f' {name}="')[1].split('"')[0]) for name in ("width", "height"))
    return svg[start : svg.rindex("</svg>")], width, height
