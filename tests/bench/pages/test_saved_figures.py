"""Figures that matplotlib draws, in the design's colours."""

from __future__ import annotations

import io
import re

import pytest

from calibrant.bench.pages.design.saved_figures import figure_style, with_dark_rules
from calibrant.bench.pages.design.tokens import TOKENS


def test_a_figure_has_text_and_no_colour_but_tokens() -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    with matplotlib.rc_context(figure_style()):
        figure = Figure(figsize=(4, 2))
        axes = figure.add_subplot()
        axes.plot([0, 1], [1, 0], label="a line")
        axes.plot([0, 1], [0, 1], label="another")
        axes.set_xlabel("worlds")
        axes.legend()
        file = io.StringIO()
        figure.savefig(file, format="svg")
    drawn = file.getvalue()
    names = {token.light: name for name, token in TOKENS.items()}
    written = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawn))
    assert {"scale-3", "bad", "ink", "paper", "line"} <= {names.get(colour, colour) for colour in written} <= {*TOKENS}
    assert ">worlds</text>" in drawn
    rules = with_dark_rules(drawn).partition("<style>")[2].partition("</style>")[0]
    assert rules.startswith("@media (prefers-color-scheme:dark)")
    for colour in written:
        assert f"{colour}" in rules
        assert f":{TOKENS[names[colour]].dark}!important" in rules


def test_no_two_tokens_share_a_light_colour() -> None:
    assert len({token.light for token in TOKENS.values()}) == len(TOKENS)
