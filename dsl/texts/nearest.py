"""Ends of messages on an unknown name: the names that are most like it, or those that there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 12  # names in a message
MIN_LIKENESS = 0.6  # of a name that is offered; difflib's own default


def nearest_names(name: str, allowed: Iterable[str], number: int = 3) -> list[str]:
    """Return the allowed names that are most like this one, the most similar first, whatever the case of letters."""
    by_small: dict[str, str] = {}
    for candidate in allowed:
        by_small.setdefault(candidate.lower(), candidate)
    return [by_small[small] for small in get_close_matches(name.lower(), by_small, number, MIN_LIKENESS)]


def known_names(name: str, allowed: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: `did you mean X?`, and the names where they are few."""
    names = list(dict.fromkeys(allowed))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    if len(names) > MAX_LISTED:
        some = f"known: {', '.join(names[:MAX_LISTED])}, ... ({len(names)} in all)"
        return question or some
    return " ".join(filter(None, (question, f"known: {', '.join(names)}")))
