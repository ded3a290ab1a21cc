"""Prompts in other words: sentences replaced by sentences with the same meaning; names and numbers stay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

Wording: TypeAlias = Literal["standard", "rephrased"]
Phrases: TypeAlias = Sequence[tuple[str, str]]
"""Standard phrases with their replacements, none of them part of another standard one that follows."""


def reword(text: str, wording: Wording, phrases: Phrases) -> str:
    """Return a standard text in a wording: rephrased, with each standard phrase replaced."""
    if wording == "rephrased":
        for standard, replacement in phrases:
            text = text.replace(standard, replacement)
    return text
