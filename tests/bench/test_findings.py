"""The findings that need nothing but the project come out as docs/findings.md says."""

from __future__ import annotations

import re

from tests.support.commands import CHECKOUT

PAGE = (CHECKOUT / "docs" / "findings.md").read_text(encoding="utf-8")


def test_tests_that_are_named_exist() -> None:
    for path in re.findall(r"pytest (tests/[\w/.]+)", PAGE):
        assert (CHECKOUT / path).exists()
    (name,) = re.findall(r"`(test_\w+)`", PAGE)
    assert f"def {name}(" in (CHECKOUT / "tests/baselines/structure_learning/test_search.py").read_text("utf-8")
