"""docs/api.md: every public name once, each with an example that does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.cli import main
from tests.support.commands import CHECKOUT
from tests.support.pages import printed_and_promised

PAGE = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### `(\w+)`\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)


def test_every_public_name_has_a_section_with_an_example_of_it() -> None:
    assert sorted(name for name, _ in SECTIONS) == sorted(calibrant.__all__)
    assert all("```python\n" in text for _, text in SECTIONS)


def test_the_examples_print_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^    calibrant (sample .*)$", PAGE, re.MULTILINE)
    assert main(command.split()) == 0
    for code, printed, promised in printed_and_promised(PAGE):
        assert printed == promised, code
