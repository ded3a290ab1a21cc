"""Texts of messages and prompts: counts with nouns, decimal commas, names in natural order, similar known names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Literal, TypeAlias

# --- Ends of messages on an unknown name: the most similar names, or all known ones -----------------------------------
MAX_LISTED = 12  # known names that a message lists
MIN_BEGUN = 4  # letters of a prefix for which longer names are suggested
MIN_LIKENESS = 0.6  # similarity of a suggested name; difflib's default


def nearest_names(name: object, allowed: Iterable[str], number: int = 3) -> list[str]:
    """Return at most `number` allowed names similar to `name`, case ignored, the most similar first.

    Names of which `name` is a prefix come before all others.
    """
    by_small: dict[str, str] = {}
    for candidate in allowed:
        by_small.setdefault(candidate.lower(), candidate)
    small = str(name).lower()
    begun = sorted((full for full in by_small if full.startswith(small)), key=len) if len(small) >= MIN_BEGUN else []
    near = dict.fromkeys([*begun, *get_close_matches(small, by_small, number, MIN_LIKENESS)])
    return [by_small[candidate] for candidate in near][:number]


def nearest_hint(name: object, allowed: Iterable[str]) -> str:
    """Return `; did you mean X?` for a message on an unknown name; empty if no allowed name is similar."""
    near = nearest_names(name, allowed)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def known_names(name: object, allowed: Iterable[str]) -> str:
    """Return the end of a message on an unknown name: `did you mean X?`, and all names if few or none is similar."""
    names = list(dict.fromkeys(allowed))
    near = nearest_names(name, names)
    question = f"did you mean {' or '.join(near)}?" if near else ""
    if near and len(names) > MAX_LISTED:
        return question
    return " ".join(filter(None, (question, f"known: {', '.join(names)}")))


# --- A number and its noun --------------------------------------------------------------------------------------------


def plural(number: int, noun: str) -> str:
    """Return a number and a noun given in the plural, singular for one: 1 pool, 2 pools, 1 query, 1,000 queries."""
    if number != 1:
        return f"{number:,} {noun}"
    if noun.endswith(("ches", "shes", "sses", "xes")):
        return f"1 {noun[:-2]}"
    return f"1 {noun[:-3]}y" if noun.endswith("ies") and noun != "series" else f"1 {noun.removesuffix('s')}"


# --- Numbers with a decimal comma -------------------------------------------------------------------------------------
_COMMA_NUMBER = re.compile(r"[+-]?\d*,\d+", re.ASCII)
_COMMA_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}", re.ASCII)  # no number of thousands begins with 0


def replace_decimal_comma(word: str) -> str:
    """Return a number that has a decimal comma with a point; any other text as it is."""
    return word.replace(",", ".") if _COMMA_NUMBER.fullmatch(word) else word


def has_unclear_comma(word: str) -> bool:
    """Return whether the comma of a number may mark thousands: 1,250 may, 0,250 and 1250,500 do not."""
    return _COMMA_THOUSANDS.fullmatch(word) is not None


# --- Rephrased prompts: sentences replaced by equivalent ones, names and numbers unchanged ----------------------------
Wording: TypeAlias = Literal["standard", "rephrased"]
Phrases: TypeAlias = Sequence[tuple[str, str]]
"""Pairs (standard phrase, replacement); no standard phrase is part of a later one."""


def reword(text: str, wording: Wording, phrases: Phrases) -> str:
    """Return a standard text in a wording; `rephrased` replaces each standard phrase."""
    if wording == "rephrased":
        for standard, replacement in phrases:
            text = text.replace(standard, replacement)
    return text


# --- Variable names and their natural order: X2 before X10 ------------------------------------------------------------
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_NUMBERED = re.compile(r"X([0-9]{1,9})", re.ASCII)  # nine digits bound the integer of the key


def is_name(token: str) -> bool:
    """Return whether a token is a valid variable name."""
    return _NAME.fullmatch(token) is not None


@lru_cache(maxsize=4096)
def natural_key(name: str) -> tuple[int, int, str]:
    """Return a sort key: X1, X2, ..., X10 by number, then other names in code point order."""
    numbered = _NUMBERED.fullmatch(name)
    return (0, int(numbered.group(1)), name) if numbered else (1, 0, name)
