"""Style of matplotlib figures in the design's colours, and rules for readers who prefer dark.

Saved figures have light colours as numbers, since programs that convert SVG know no custom properties.
"""

from __future__ import annotations

from typing import Any

from calibrant.bench.pages.design.tokens import TOKENS

CYCLE = ("scale-3", "bad", "warn", "gold", "scale-4", "edge", "scale-2", "ink", "soft")  # of lines, in their order


def figure_style() -> dict[str, Any]:
    """Return settings for `matplotlib.rc_context`: light tokens, text as text, no label below 9 points."""
    return {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
        "figure.facecolor": light("paper"),
        "savefig.facecolor": light("paper"),
        "axes.facecolor": light("paper"),
        "axes.edgecolor": light("edge"),
        "axes.labelcolor": light("ink"),
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": _cycle([light(name) for name in CYCLE]),
        "grid.color": light("line"),
        "text.color": light("ink"),
        "xtick.color": light("soft"),
        "ytick.color": light("soft"),
        "legend.edgecolor": light("line"),
    }


def _cycle(colours: list[str]) -> Any:
    from cycler import cycler

    return cycler(color=colours)


def light(token: str) -> str:
    """Return a colour of saved figures."""
    return TOKENS[token].light


def with_dark_rules(svg: str) -> str:
    """Return a drawn SVG with rules that switch its colours where the reader prefers dark."""
    start = svg.index(">", svg.index("<svg")) + 1
    rules = "".join(
        f'[style*="{name}: {token.light}"]{{{name}:{token.dark}!important}}'
        for token in TOKENS.values()
        for name in ("fill", "stroke")
        if f"{name}: {token.light}" in svg
    )
    text = f"text:not([style*='fill:']){{fill:{TOKENS['ink'].dark}}}"
    return f"{svg[:start]}<style>@media (prefers-color-scheme:dark){{{rules}{text}}}</style>{svg[start:]}"
