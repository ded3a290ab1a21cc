"""Meanings of the columns of a printed table, below it."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS
from calibrant.dsl.errors import in_one_line

PRIORS = {
    ("Chance", "Uniform"): "Chance and Best weigh what fits by the generator's prior where it explains the item, so"
    " they may be 1.000 where nothing is decided; Uniform weighs all that fit alike.",
}  # headings that are printed together -> how they differ

CHOSEN = " (chosen)"  # ends the name of a row of the answers that a tie rule chose


def legend_lines(headings: Collection[str], meanings: Mapping[str, str], width: int) -> list[str]:
    """Return a sentence with the meaning of each heading that is printed, wrapped to the width; none for no heading."""
    stated = [f"{heading}: {meaning}" for heading, meaning in meanings.items() if heading in headings]
    return textwrap.wrap(f"{'; '.join(stated)}.", width, break_on_hyphens=False) if stated else []


def attribution_legend(headings: Collection[str], width: int) -> list[str]:
    """Return what the columns on attributions and chance levels mean, as far as they are among these headings."""
    meanings = {metric.heading: metric.meaning for metric in ATTRIBUTION_METRICS}
    lines = legend_lines(headings, {heading: meanings[heading] for heading in headings if heading in meanings}, width)
    for together, sentence in PRIORS.items():
        if set(together) <= set(headings):
            lines += textwrap.wrap(sentence, width)
    return lines


def tie_legend(systems: Collection[str], width: int) -> list[str]:
    """Return how the rows of the chosen ones of equally good answers differ from the others; none without such rows."""
    chosen = next((name for name in systems if name.endswith(CHOSEN)), None)
    if chosen is None:
        return []
    name = in_one_line(chosen.removesuffix(CHOSEN))
    text = f"{name}: mean over all equally good answers; {name}{CHOSEN}: the answer that the tie rule takes of them."
    return textwrap.wrap(text, width, break_on_hyphens=False)
