"""Luck among right answers: one sentence about the system with the largest share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import in_one_line


def luck_sentence(rows: Iterable[Row]) -> str:
    """Return how many right answers of a system were not decided; empty where none is known to be right by luck.

    The system is the one with the largest share of them, or the first of those by name.
    """
    earned: Counter[str] = Counter()
    lucky: Counter[str] = Counter()
    for row in rows:
        for counts, key in ((earned, "earned"), (lucky, "lucky")):
            if (place := row.places.get(key)) is not None:
                counts[row.system] += sum(values[place] == 1 for answers in row.answers.values() for values in answers)
    if not lucky.total():
        return ""
    system = min(lucky, key=lambda name: (-lucky[name] / (lucky[name] + earned[name] or 1), name))
    right, name = lucky[system] + earned[system], in_one_line(system)
    if right == 1:
        return f"The only right answer of {name} was not decided by what it had seen."
    verb = "was" if lucky[system] == 1 else "were"
    return f"{lucky[system]} of the {right} right answers of {name} {verb} not decided by what it had seen."
