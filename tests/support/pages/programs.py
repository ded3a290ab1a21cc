"""Python blocks of a page: each line that they print is compared with the comment behind its `print`."""

from __future__ import annotations

import contextlib
import io
import re
from typing import Any

PROMISE = re.compile(r"^ *print\(.*\)  # (?P<output>.*)$")
FURTHER = re.compile(r"^ *# (?P<output>.*)$")
PROSE = "; "  # what stands behind it is about the output


def promised_lines(code: str) -> list[str]:
    """Return the comments behind prints, and of lines right below one: what a loop prints next."""
    promised: list[str] = []
    follows = False
    for line in code.splitlines():
        match = PROMISE.match(line) or (FURTHER.match(line) if follows else None)
        follows = match is not None
        if match is not None:
            promised.append(match["output"])
        else:
            assert not re.match(r" *print\((?!.*file=)", line), f"the page does not show what it prints: {line}"
    return promised


def is_as_promised(printed: str, promised: str) -> bool:
    return promised == printed or promised.startswith(printed + PROSE)


def run_program(code: str, where: str, names: dict[str, Any]) -> None:
    """Run a block in the names of its page; an AssertionError shows what it prints otherwise than the page says."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, where, "exec"), names)
    printed, promised = out.getvalue().splitlines(), promised_lines(code)
    assert len(printed) == len(promised), (printed, promised)
    for was, shown in zip(printed, promised, strict=True):
        assert is_as_promised(was, shown), f"{where}: prints {was!r}, the page shows {shown!r}"
