"""Pages whose examples are run: each printed line is compared with the comment behind its `print`."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator

BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


def printed_and_promised(page: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Every Python block of a page in turn, all in one namespace: its text, what it printed, what it says it prints."""
    namespace: dict[str, object] = {"__name__": "page"}
    for code in BLOCK.findall(page):
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, "page", "exec"), namespace)
        promised = re.findall(r"^ *print\(.*\)  # (.*)$", code, re.MULTILINE)
        assert len(promised) == len(re.findall(r"^ *print\(", code, re.MULTILINE))
        yield code, out.getvalue().splitlines(), promised
