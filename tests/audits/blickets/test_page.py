"""docs/blickets.md: its examples print what it says, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.pages import printed_and_promised

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "blickets.md").read_text(encoding="utf-8")


def test_the_examples_print_what_the_page_says() -> None:
    blocks = list(printed_and_promised(PAGE))
    assert len(blocks) == 5
    for code, printed, promised in blocks:
        assert printed == promised, code


def test_every_module_that_the_page_names_is_there() -> None:
    named = re.findall(r"`((?:dsl|solvers|audits|bench)[./]blickets[\w./]*)`", PAGE)
    assert len(named) > 8
    for name in named:
        path = CHECKOUT / name if name.endswith(".py") else CHECKOUT / Path(*name.split(".")).with_suffix(".py")
        assert path.exists(), name
