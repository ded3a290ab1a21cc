"""docs/api.md: every public name once, each with an example (tests/test_pages.py runs them)."""

from __future__ import annotations

import re

import calibrant
from tests.support.commands import CHECKOUT

PAGE = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def test_every_public_name_has_a_section_with_an_example_of_it() -> None:
    assert sorted(name for name, _ in SECTIONS) == sorted(calibrant.__all__)
    assert all("```python\n" in text for _, text in SECTIONS)
