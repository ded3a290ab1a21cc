"""Variable names and their natural order: X2 before X10."""

from __future__ import annotations

import re
from functools import lru_cache

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBERED = re.compile(r"X([0-9]{1,9})", re.ASCII)  # nine digits: no name can make the key a huge integer


def is_name(token: str) -> bool:
    """Return whether a token has the shape of a variable name."""
    return _NAME.fullmatch(token) is not None


@lru_cache(maxsize=4096)
def natural_key(name: str) -> tuple[int, int, str]:
    """Sorts X1, X2, ..., X10 by number; other names follow in code-point order."""
    numbered = _NUMBERED.fullmatch(name)
    return (0, int(numbered.group(1)), name) if numbered else (1, 0, name)
