"""Words of messages and prompts: counts with their noun, names in natural order, the nearest known names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, TypeAlias

# --- Ends of messages on an unknown name: the names that are most like it, or those that there are --------------------
MAX_LISTED = 12  # names beside those that are offered
MIN_BEGUN = 4  # letters of a name that is offered the rest
MIN_LIKENESS = 0.6  # likeness of a name that is offered; difflib's own default


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


def nearest_hint(name: object, allowed: Iterable[str]) -> str:
    """Return `; did you mean X?` for a message on an unknown name among many; empty if none is like it."""
    near = nearest_names(name, allowed)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def known_names(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: `did you mean X?`, and all names if few or if none is like it."""
    names = list(dict.fromkeys(allowed))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    if near and len(names) > MAX_LISTED:
        return question
    return " ".join(filter(None, (question, f"known: {', '.join(names)}")))


# --- A number and the noun that it counts -----------------------------------------------------------------------------


def plural(number: int, noun: str) -> str:
    """Return a number with a plural noun, which is in the singular for one: 1 pool, 2 pools, 1 query, 1,000 queries."""
    if number != 1:
        return f"{number:,} {noun}"
    if noun.endswith(("ches", "shes", "sses", "xes")):
        return f"1 {noun[:-2]}"
    return f"1 {noun[:-3]}y" if noun.endswith("ies") and noun != "series" else f"1 {noun.removesuffix('s')}"


# --- Prompts in other words: sentences replaced by sentences with the same meaning; names and numbers stay ------------
Wording: TypeAlias = Literal["standard", "rephrased"]
Phrases: TypeAlias = Sequence[tuple[str, str]]
"""Standard phrases with their replacements, none of them part of another standard one that follows."""


def reword(text: str, wording: Wording, phrases: Phrases) -> str:
    """Return a standard text in a wording: rephrased, with each standard phrase replaced."""
    if wording == "rephrased":
        for standard, replacement in phrases:
            text = text.replace(standard, replacement)
    return text


# --- Variable names and their natural order: X2 before X10 ------------------------------------------------------------
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
