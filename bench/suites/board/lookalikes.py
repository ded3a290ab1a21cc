"""Names that read alike, so that no submission passes for another: after Unicode Technical Standard 39, in small.

Its full table of confusable characters is large; here are the letters of other scripts that look like Latin ones.
"""

from __future__ import annotations

import unicodedata

INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0")  # fillers and a blank that count as letters or symbols
_CYRILLIC = dict(zip("авекмнорстухіјѕһԁԛԝгьѵ", "abekmhopctyxijshdqwrbv", strict=True))
_GREEK = dict(zip("αβεζηικμνοπρστυχωγ", "abezhikmvonpotuxwy", strict=True))
_OTHERS = dict(zip("\u0131\u0251\u0261\u0585\u0578\u057d\u0570", "iagonuh", strict=True))
_ALIKE = {"0": "o", "1": "l", "i": "l", "|": "l"}
_LETTERS = _ALIKE | {letter: _ALIKE.get(latin, latin) for letter, latin in (_CYRILLIC | _GREEK | _OTHERS).items()}
_KINDS = {"Pd": "-", "Zs": " "}


def is_plain(text: str) -> bool:
    """Return whether a text shows all that it holds: no controls, no invisible letters, no spaces beside words."""
    return text.isprintable() and text == " ".join(text.split()) and INVISIBLE.isdisjoint(text)


def skeleton(text: str) -> str:
    """Return what names that read alike have in common: `0`, `O` and `o` are one letter, so are `1`, `I` and `l`."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    letters = (_letter(letter) for letter in plain if unicodedata.category(letter) not in ("Mn", "Cf"))
    return " ".join("".join(letters).split())


def _letter(letter: str) -> str:
    return _KINDS.get(unicodedata.category(letter)) or _LETTERS.get(letter, letter)
