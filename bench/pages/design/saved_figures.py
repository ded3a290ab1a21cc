"""Style of matplotlib figures in the design's colours, and their SVG with tokens in place of numbers."""

from __future__ import annotations

from typing import Any

from calibrant.bench.pages.design.tokens import TOKENS

CYCLE = ("scale-3", "bad", "warn", "gold", "scale-4", "edge")  # colours of lines, in their order


def figure_style() -> dict[str, Any]:
    """Return settings for `matplotlib.rc_context`: light tokens, text as text, no label below 9 points."""
    light = {name: token.light for name, token in TOKENS.items()}
    return {
        "svg.fonttype": "none",
        "font.family": "sans-serif",
        "font.size": 9,
        "figure.facecolor": light["paper"],
        "savefig.facecolor": light["paper"],
        "axes.facecolor": light["paper"],
        "axes.edgecolor": light["edge"],
        "axes.labelcolor": light["ink"],
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": _cycle([light[name] for name in CYCLE]),
        "grid.color": light["line"],
        "text.color": light["ink"],
        "xtick.color": light["soft"],
        "ytick.color": light["soft"],
        "legend.edgecolor": light["line"],
    }


def _cycle(colours: list[str]) -> Any:
    from cycler import cycler

    return cycler(color=colours)


def with_tokens(svg: str) -> str:
    """Return a drawn SVG with each light colour as var(--token), so that it follows the page's theme."""
    for name, token in TOKENS.items():
        svg = svg.replace(token.light, f"var(--{name})")
    return svg
