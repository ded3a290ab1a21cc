"""Sentences below a printed table: the meanings of its columns, and luck among right answers."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.report.rows import Row
from calibrant.dsl.errors import in_one_line

# --- Meanings of the columns of a printed table, below it -------------------------------------------------------------
PRIORS = {
    ("Chance", "Uniform"): "Chance and Best weigh what fits by the generator's prior where it explains the item, so"
    " they may be 1.000 where nothing is decided; Uniform weighs all that fit alike.",
}  # headings that are printed together -> how they differ


def legend_lines(headings: Collection[str], meanings: Mapping[str, str], width: int) -> list[str]:
    """Return a sentence with the meaning of each heading that is printed, wrapped to the width; none for no heading."""
    stated = [f"{heading}: {meaning}" for heading, meaning in meanings.items() if heading in headings]
    return textwrap.wrap(f"{'; '.join(stated)}.", width, break_on_hyphens=False) if stated else []


def attribution_legend(headings: Collection[str], width: int) -> list[str]:
    """Return what the columns on attributions and chance levels mean, as far as they are among these headings."""
    meanings = {metric.heading: metric.meaning for metric in ATTRIBUTION_METRICS}
    lines = legend_lines(headings, {heading: meanings[heading] for heading in headings if heading in meanings}, width)
    if "NoAnswer" in headings:
        lines += textwrap.wrap(BASE, width)
    for together, sentence in PRIORS.items():
        if set(together) <= set(headings):
            lines += textwrap.wrap(sentence, width)
    return lines


def tie_legend(names: tuple[str, str] | None, width: int) -> list[str]:
    """Return how the row of a mean over equally good answers differs from that of the chosen one; none without rows."""
    if names is None:
        return []
    text = f"{names[0]}: mean over all equally good answers; {names[1]}: the answer that the tie rule takes of them."
    return textwrap.wrap(text, width, break_on_hyphens=False)


# --- Luck among right answers: one sentence about the system with the largest share -----------------------------------


def luck_sentence(rows: Iterable[Row]) -> str:
    """Return how many right answers of a system were not decided; empty where none is known to be right by luck.

    The system is the one with the largest share of them, or the first of those by name.
    """
    earned: Counter[str] = Counter()
    lucky: Counter[str] = Counter()
    for row in rows:
        for counts, key in ((earned, "earned"), (lucky, "lucky")):
            if (place := row.places.get(key)) is not None:
                counts[row.system] += row.frame.count(place, 1)
    if not lucky.total():
        return ""
    system = min(lucky, key=lambda name: (-lucky[name] / (lucky[name] + earned[name] or 1), name))
    right, name = lucky[system] + earned[system], in_one_line(system)
    if right == 1:
        return f"The only right answer of {name} was not decided by what it had seen."
    verb = "was" if lucky[system] == 1 else "were"
    return f"{lucky[system]} of the {right} right answers of {name} {verb} not decided by what it had seen."
