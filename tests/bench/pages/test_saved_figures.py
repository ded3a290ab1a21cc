"""Figures that matplotlib draws, in the design's colours."""

from __future__ import annotations

import io
import re

import pytest

from calibrant.bench.pages.design.saved_figures import figure_style, with_tokens
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
    svg = with_tokens(file.getvalue())
    named = set(re.findall(r"var\(--([\w-]+)\)", svg))
    assert {"scale-3", "bad", "ink", "paper", "line"} <= named <= TOKENS.keys()
    assert re.findall(r"#[0-9a-f]{6}\b", svg) == []
    assert ">worlds</text>" in svg


def test_no_two_tokens_share_a_light_colour() -> None:
    assert len({token.light for token in TOKENS.values()}) == len(TOKENS)
