"""Names and values of generated programs."""

from __future__ import annotations

import keyword
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

from calibrant.dsl.causim.generation.draws import Draws

Vocabulary: TypeAlias = Literal["nonsense", "medical"]
_CONSONANTS: Final = "bdfgklmnprstvz"
_VOWELS: Final = "aeiou"

NOISE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("bo", "cek", "da", "fi", "gul", "ho", "jat", "ki", "lu", "mep", "no", "pir", "qua", "rus", "so"),
    "medical": (
        "acute", "benign", "chronic", "delayed", "early", "focal", "gradual", "latent", "marked", "occult", "patchy",
        "recurrent", "stable", "transient", "unstable", "viral",
    ),
}  # fmt: skip
VALUE_WORDS: Final[dict[Vocabulary, tuple[str, ...]]] = {
    "nonsense": ("BEX", "COD", "FAP", "GIM", "HUR", "JOL", "KET", "LIS", "MAV", "NUB", "POZ", "RIK", "SEF", "TAG"),
    "medical": (
        "absent", "mild", "moderate", "severe", "normal", "raised", "low", "high", "present", "resolved", "worse",
        "improved", "pending", "excluded", "confirmed",
    ),
}  # fmt: skip


def new_name(draws: Draws, used: Iterable[str]) -> str:
    """Return a name of consonants and vowels in turn that is no keyword and not used in any case."""
    used_names = {name.lower() for name in used}
    while True:
        name = "".join(draws.choice(_CONSONANTS) + draws.choice(_VOWELS) for _ in range(2))
        if name not in used_names and not keyword.iskeyword(name) and not keyword.issoftkeyword(name):
            return name.capitalize()


def outcomes(draws: Draws, vocabulary: Vocabulary, number: int) -> list[object]:
    """Draw the values of a node: words, whole numbers or truth values.

    They are of one kind so that none equals another in Python.
    """
    kind = draws.below(6)
    if kind == 0:
        return list(range(number))
    if kind == 1 and number == 2:
        return [False, True]
    return list(draws.sample(VALUE_WORDS[vocabulary], number))
