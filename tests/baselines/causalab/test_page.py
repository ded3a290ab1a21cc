"""docs/causalab.md: its examples run and print what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "causalab.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_examples_print_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    for example in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(example, names)
        said = [line.partition("  # ")[2] for line in example.splitlines() if line.startswith("print(")]
        for line, expected in zip(printed.getvalue().splitlines(), said, strict=True):
            assert line == expected or expected.startswith("sorted;")


def test_every_module_that_the_page_names_is_there() -> None:
    root = Path(__file__).resolve().parents[3]
    for name in re.findall(r"`((?:dsl|solvers|baselines|audits)\.causalab[\w.]*)", PAGE):
        path = root / Path(*name.split("."))
        assert path.with_suffix(".py").exists() or path.parent.with_suffix(".py").exists() or path.is_dir(), name
    for name in re.findall(r"`((?:dsl|solvers)/causalab/[\w/.]+)`", PAGE):
        assert (root / name).exists()
