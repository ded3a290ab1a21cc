"""Plots as SVG in the design's tokens: scales, axes and marks. They need neither a library nor a network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10

LETTER = 6.6  # width of a letter of 12 px


@dataclass(frozen=True)
class Scale:
    """Scale from values in [low, high] to pixels in [start, end]; logarithmic: over positive values."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value; values outside are moved to the border."""
        low, high, value = (self._transform(number) for number in (self.low, self.high, value))
        share = 0.0 if high == low else min(1.0, max(0.0, (value - low) / (high - low)))
        return self.start + share * (self.end - self.start)

    def _transform(self, value: float) -> float:
        return log10(max(value, 1e-12)) if self.logarithmic else value

    def ticks(self, number: int = 4) -> list[float]:
        """Round values inside, at most about so many: powers of ten, or steps of 1, 2 or 5."""
        if self.logarithmic:
            first, last = ceil(log10(max(self.low, 1e-12))), floor(log10(max(self.high, 1e-12)))
            step = max(1, ceil((last - first + 1) / max(1, number)))
            return [10.0**power for power in range(first, last + 1, step)]
        span = self.high - self.low
        if span <= 0:
            return [self.low]
        raw = span / number
        unit = 10.0 ** floor(log10(raw))
        step_size = unit * next(factor for factor in (1, 2, 5, 10) if factor * unit >= raw)
        first, last = ceil(self.low / step_size), floor(self.high / step_size + 1e-9)
        return [k * step_size for k in range(first, last + 1)]


def figure(width: float, height: float, label: str, marks: Iterable[str]) -> str:
    """Return an SVG element whose label states the finding; it keeps its size and scrolls where there is no room."""
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="fixed" role="img" aria-label="{escape(label)}" {size}>'
        f"{''.join(marks)}</svg>"
    )


def axis(scale: Scale, x: float, right: float) -> Iterable[str]:
    """Yield rules and labels of a vertical axis whose labels end at x; rules reach from there to `right`."""
    for value in scale.ticks():
        y = scale.at(value)
        yield f'<line class="rule" x1="{x:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield f'<text class="soft" x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'


def bar_chart(
    labels: Sequence[str], values: Sequence[int], label: str, *, width: float = 30, height: float = 90
) -> str:
    """Bars on a logarithmic scale from 1, each with its number above; a value of 0 has an empty outline."""
    from calibrant.audits.why import number_text

    texts = [number_text(value) for value in values]
    step = max(width, *(LETTER * len(text) + 6 for text in texts), *(LETTER * len(name) + 6 for name in labels))
    scale = Scale(1, max(10, *values), height, 18, logarithmic=True)
    marks = []
    for k, (name, value, text) in enumerate(zip(labels, values, texts, strict=True)):
        x, top = 8 + k * step, scale.at(max(1, value)) - 4
        kind = "bar-2" if value else "unlit"
        marks.append(
            f'<rect class="{kind}" x="{x + 3:.1f}" y="{top:.1f}" width="{step - 6:.1f}" height="{height - top:.1f}"/>'
        )
        for word, y in ((text, top - 4), (name, height + 15)):
            marks.append(f'<text x="{x + step / 2:.1f}" y="{y:.1f}" text-anchor="middle">{escape(word)}</text>')
    return figure(16 + step * len(values), height + 22, label, marks)
