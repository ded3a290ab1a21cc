"""The strip of a detector's moves: when each object is on it, its light, and bars of the hypotheses that are left."""

from __future__ import annotations

from html import escape

from calibrant.audits.blickets.why import DetectorWhy
from calibrant.audits.why import number_text
from calibrant.bench.pages.charts import Scale, figure, text_width, widest

STEP, WIDE = 46, 66  # width of a move; of the first so many moves
FEW_MOVES = 10
ROW, TOP, BARS = 23, 8, 64  # height of an object's row, border, height of the tallest bar
LIT = "ACTIVE"


def strip(why: DetectorWhy) -> str:
    """Return the strip as an SVG; empty without a move."""
    if not why.moves:
        return ""
    counts = [int(why.count.total or why.count.lower), *(int(move.remaining) for move in why.moves)]
    texts = [number_text(count) for count in counts]
    labels = [_short(move.in_words) for move in why.moves]
    step = max(WIDE if len(why.moves) <= FEW_MOVES else STEP, widest([*texts, *labels], 13, "bold") + 8)
    margin = max(64.0, widest(why.objects) + 20)
    light_y = TOP + ROW * len(why.objects) + 14
    base = light_y + 34 + BARS
    scale = Scale(1, max(10, *counts), base, base - BARS + 14, logarithmic=True)
    marks = [_row(why, k, margin, step) for k in range(len(why.objects))]
    marks.append(f'<text class="soft" x="{margin - 10:.0f}" y="{light_y + 4}" text-anchor="end">light</text>')
    marks.append(f'<text class="soft" x="{margin - 10:.0f}" y="{base - 8}" text-anchor="end">fit</text>')
    for k, (count, text) in enumerate(zip(counts, texts, strict=True)):
        x, top = margin + step * (k + 0.5), scale.at(max(1, count)) - (3 if count else 0)
        kind = "bar-2" if count else "unlit"
        marks.append(
            f'<rect class="{kind}" x="{x - step * 0.34:.1f}" y="{top:.1f}" width="{step * 0.68:.1f}"'
            f' height="{max(1, base - top):.1f}"/>'
            f'<text class="name" x="{x:.1f}" y="{top - 4:.1f}" text-anchor="middle">{escape(text)}</text>'
        )
        word = "start" if k == 0 else labels[k - 1]
        marks.append(f'<text x="{x:.1f}" y="{base + 16}" text-anchor="middle">{escape(word)}</text>')
    for k, move in enumerate(why.moves, 1):
        marks.append(_light(move.reading, margin + step * (k + 0.5), light_y, step))
    words = ", ".join(texts)
    return figure(margin + step * len(counts) + 8, base + 24, f"Moves and hypotheses left: {words}", marks)


def _short(move: str) -> str:
    verb, _, name = move.partition(" ")
    return {"place": f"+{name}", "remove": f"\N{MINUS SIGN}{name}"}.get(verb, verb)


def _row(why: DetectorWhy, number: int, margin: float, step: float) -> str:
    """Return the row of an object: a bar over the moves during which it is on the detector."""
    name, y = why.objects[number], TOP + ROW * (number + 0.5)
    end = margin + step * (len(why.moves) + 1)
    parts = [
        f'<text x="{margin - 10:.0f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>',
        f'<line class="rule" x1="{margin:.1f}" x2="{end:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>',
    ]
    start: int | None = None
    for k in range(len(why.moves) + 1):
        is_on = k < len(why.moves) and name in why.moves[k].placed
        if is_on and start is None:
            start = k
        if not is_on and start is not None:
            x, width = margin + step * (start + 1.08), step * (k - start - 0.16)
            parts.append(f'<rect class="bar-3" x="{x:.1f}" y="{y - 6:.1f}" width="{width:.1f}" height="12" rx="6"/>')
            start = None
    return "".join(parts)


def _light(reading: str, x: float, y: float, step: float) -> str:
    if not reading:
        return ""
    word = reading if text_width(reading) <= step else reading[:3]
    kind = "lit" if reading == LIT else "unlit"
    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="8"><title>{escape(reading)}</title></circle>'
        f'<text class="soft" x="{x:.1f}" y="{y + 22}" text-anchor="middle">{escape(word)}</text>'
    )
