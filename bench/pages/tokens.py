"""Colour tokens, each for light and dark: the only file in which a colour is written as a number.

Text colours reach a contrast of 4.5 on `BACKGROUNDS` in both themes, `edge` and `focus` 3.0 (WCAG 2.2, AA).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Token(NamedTuple):
    """A colour in the light and in the dark theme, as #rrggbb; use: what it stands for."""

    light: str
    dark: str
    use: str


TOKENS: dict[str, Token] = {
    "paper": Token("#ffffff", "#11151b", "background of the page"),
    "panel": Token("#f4f6f9", "#1a2028", "background of boxes and code"),
    "sunk": Token("#e9edf2", "#242c37", "background of empty bars"),
    "line": Token("#d3dae3", "#343e4b", "rules between rows"),
    "edge": Token("#7d8898", "#76849a", "outlines of controls and marks"),
    "ink": Token("#17202b", "#e8edf3", "text"),
    "soft": Token("#4d5968", "#aab6c5", "secondary text"),
    "link": Token("#174f9e", "#8fbcff", "links"),
    "good": Token("#1a5fa5", "#74b3f7", "right, proven, decided"),
    "bad": Token("#b23c0b", "#ff9a6b", "wrong, contradicted"),
    "warn": Token("#7d5600", "#eec256", "open, undecided"),
    "good-ground": Token("#e4eefa", "#15304d", "background of what is decided"),
    "bad-ground": Token("#fdebe2", "#44230f", "background of what is contradicted"),
    "warn-ground": Token("#fdf2d3", "#3d3110", "background of what is open"),
    "gold": Token("#9c2b86", "#ee9bdc", "sealed content, once revealed"),
    "focus": Token("#b000a0", "#ff9df2", "focus ring"),
    "mark": Token("#fff0c2", "#4a3d12", "highlighted text"),
    "scale-1": Token("#a9cdeb", "#2d5a88", "ordered, first step"),
    "scale-2": Token("#5e9fd6", "#4c8bc8", "ordered, second step"),
    "scale-3": Token("#2a6fb3", "#86bdf0", "ordered, third step"),
    "scale-4": Token("#123f77", "#d2e8ff", "ordered, last step"),
}
# for readers who ask for it: text reaches 7.0 on every background (WCAG 2.2, 1.4.6); tokens not listed keep their value
HIGH_CONTRAST: dict[str, Token] = {
    "paper": Token("#ffffff", "#000000", "background of the page"),
    "panel": Token("#ffffff", "#000000", "background of boxes and code"),
    "sunk": Token("#ededed", "#262626", "background of empty bars"),
    "line": Token("#1f1f1f", "#f0f0f0", "rules between rows"),
    "edge": Token("#000000", "#ffffff", "outlines of controls and marks"),
    "ink": Token("#000000", "#ffffff", "text"),
    "soft": Token("#1f1f1f", "#f0f0f0", "secondary text"),
    "link": Token("#0b2f6b", "#bcd8ff", "links"),
    "good": Token("#0b3a6f", "#a9d2ff", "right, proven, decided"),
    "bad": Token("#7a1f00", "#ffbf9f", "wrong, contradicted"),
    "warn": Token("#4f3600", "#ffdc8a", "open, undecided"),
    "good-ground": Token("#e4eefa", "#0a2440", "background of what is decided"),
    "bad-ground": Token("#fdebe2", "#341400", "background of what is contradicted"),
    "warn-ground": Token("#fdf2d3", "#2e2400", "background of what is open"),
    "gold": Token("#6b1259", "#ffc4f2", "sealed content, once revealed"),
    "mark": Token("#fff0c2", "#3a2f00", "highlighted text"),
}
TEXT = ("ink", "soft", "link", "good", "bad", "warn", "gold")  # colours of text
BACKGROUNDS = ("paper", "panel", "sunk", "mark")  # of text


def token_rules() -> str:
    """Return the tokens as CSS custom properties: light, dark where the system asks for it, and by `data-theme`."""
    light = _declarations(TOKENS, "light")
    dark = _declarations(TOKENS, "dark")
    return (
        f":root{{color-scheme:light;{light}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}\n"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}\n"
        f"@media print{{:root,:root[data-theme=dark]{{color-scheme:light;{light}}}}}\n"
    )


def scoped_token_rules(scope: str, light_hosts: Sequence[str], dark_hosts: Sequence[str]) -> str:
    """Return the tokens as custom properties of one element inside another page.

    light_hosts, dark_hosts: selectors of pages with a light or a dark theme; other pages follow the system
    """
    light, dark = _declarations(TOKENS, "light"), _declarations(TOKENS, "dark")
    chosen = [
        f"{','.join(f'{host} {scope}' for host in hosts)}{{color-scheme:{theme};{declarations}}}"
        for hosts, theme, declarations in ((light_hosts, "light", light), (dark_hosts, "dark", dark))
    ]
    system = f"@media (prefers-color-scheme:dark){{{scope}{{color-scheme:dark;{dark}}}}}"
    plain = f"{scope}{{color-scheme:light;{light}}}"
    return "\n".join([plain, system, *chosen, f"@media print{{{plain}}}", ""])


def contrast_rules() -> str:
    """Return the tokens of high contrast as CSS, for pages that have `data-contrast=high` on their root."""
    selector, light = ":root[data-contrast=high]", _declarations(HIGH_CONTRAST, "light")
    dark = _declarations(HIGH_CONTRAST, "dark")
    return (
        f"{selector}{{{light}}}\n"
        f"@media (prefers-color-scheme:dark){{{selector}:not([data-theme=light]){{{dark}}}}}\n"
        f"{selector}[data-theme=dark]{{{dark}}}\n"
        f"@media print{{{selector},{selector}[data-theme=dark]{{{light}}}}}\n"
    )


def _declarations(tokens: Mapping[str, Token], theme: str) -> str:
    return "".join(f"--{name}:{getattr(token, theme)};" for name, token in tokens.items())


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2, relative luminance), 1 to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
