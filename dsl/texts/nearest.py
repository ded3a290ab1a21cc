"""Ends of messages on an unknown name: the names that are most like it, or those that there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 12  # names beside those that are offered
MIN_LIKENESS = 0.6  # of a name that is offered; difflib's own default


def nearest_names(name: object, allowed: Iterable[str], number: int = 3) -> list[str]:
    """Return the allowed names that are most like this one, the most similar first, whatever the case of letters."""
    by_small: dict[str, str] = {}
    for candidate in allowed:
        by_small.setdefault(candidate.lower(), candidate)
    return [by_small[small] for small in get_close_matches(str(name).lower(), by_small, number, MIN_LIKENESS)]


def known_names(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: `did you mean X?`, and all names if few or if none is like it."""
    names = list(dict.fromkeys(allowed))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    if near and len(names) > MAX_LISTED:
        return question
    return " ".join(filter(None, (question, f"known: {', '.join(names)}")))
