"""Ends of messages on an unknown name: the names that are most like it, or those that there are."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

MAX_LISTED = 12  # names beside those that are offered
MIN_BEGUN = 4  # letters of a name that is offered the rest
MIN_LIKENESS = 0.6  # of a name that is offered; difflib's own default


def nearest_names(name: object, allowed: Iterable[str], number: int = 3) -> list[str]:
    """Return the allowed names that are most like this one, the most similar first, whatever the case of letters.

    Names that this one begins come before those with other letters: the rest of them was left away.
    """
    by_small: dict[str, str] = {}
    for candidate in allowed:
        by_small.setdefault(candidate.lower(), candidate)
    small = str(name).lower()
    begun = sorted((full for full in by_small if full.startswith(small)), key=len) if len(small) >= MIN_BEGUN else []
    near = dict.fromkeys([*begun, *get_close_matches(small, by_small, number, MIN_LIKENESS)])
    return [by_small[candidate] for candidate in near][:number]


def known_names(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: `did you mean X?`, and all names if few or if none is like it."""
    names = list(dict.fromkeys(allowed))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    if near and len(names) > MAX_LISTED:
        return question
    return " ".join(filter(None, (question, f"known: {', '.join(names)}")))
