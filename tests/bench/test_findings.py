"""The findings that need nothing but the project come out as docs/findings.md says."""

from __future__ import annotations

import re

from tests.support.commands import CHECKOUT
from tests.support.pages import printed_and_promised

PAGE = (CHECKOUT / "docs" / "findings.md").read_text(encoding="utf-8")


def test_the_examples_print_what_they_say() -> None:
    blocks = list(printed_and_promised(PAGE))
    assert len(blocks) == 2
    (_, coverage, promised), (code, means, first) = blocks
    assert coverage == promised == ["0.949", "0.5"]
    further = re.findall(r"^        # (.*)$", code, re.MULTILINE)
    assert means == [*first, *further]


def test_tests_that_are_named_exist() -> None:
    for path in re.findall(r"pytest (tests/[\w/.]+)", PAGE):
        assert (CHECKOUT / path).exists()
    (name,) = re.findall(r"`(test_\w+)`", PAGE)
    assert f"def {name}(" in (CHECKOUT / "tests/baselines/structure_learning/test_averaging.py").read_text("utf-8")
