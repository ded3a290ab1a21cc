"""docs/blickets.md: what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
PAGE = (CHECKOUT / "docs" / "blickets.md").read_text(encoding="utf-8")


def test_every_module_that_the_page_names_is_there() -> None:
    named = re.findall(r"`(?:calibrant\.)?((?:dsl|solvers|audits|bench)[./]blickets[\w./]*)`", PAGE)
    assert len(named) > 8
    for name in named:
        path = CHECKOUT / name if name.endswith(".py") else CHECKOUT / Path(*name.split(".")).with_suffix(".py")
        assert path.exists(), name
