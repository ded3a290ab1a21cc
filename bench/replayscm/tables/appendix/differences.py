"""Paired differences between disclosures and between levels, and the alternatives that more worlds remove."""

from __future__ import annotations

from collections.abc import Sequence

from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED
from calibrant.bench.replayscm.tables.appendix.levels import (
    EXTRA,
    LEVEL_HEADINGS,
    ORIGINAL,
    finished,
    labels_of,
    ladders,
    matched_pairs,
    metric_cells,
)
from calibrant.bench.replayscm.tables.appendix.specs import KNOWN
from calibrant.bench.replayscm.tables.pairs import Paired, by_latent, paired_differences
from calibrant.bench.replayscm.tables.paper import DIFFERENCE
from calibrant.bench.replayscm.tables.rows import mean_by_unit, pool_name
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow, cell
from calibrant.bench.report.rows import Row

PANELS = {"A": ("parent_shd", "parent_f1", "parent_map_exact"), "B": ("local_match", "heldout_world")}
TITLES = {"A": "Differences of parents", "B": "Differences of mechanisms and replay"}
_ORDERED, _HIDDEN = ("Ordered", "Ord-Full"), ("Hidden-order", "Hid-Full")


def structure_differences(rows: Sequence[Row], panel: str, *, with_paper: bool) -> Table | None:
    """Table F.10: first minus second setting, over latent SCMs with a valid answer on both sides."""
    keys, lines = PANELS[panel], []
    settings = [("Hid-Ext", "Ord-Ext")]
    settings += [("Ord-Ext", name) for name in _ORDERED] + [("Hid-Ext", name) for name in _HIDDEN]
    for first_name, second_name in settings:
        for first, second in matched_pairs(rows, first_name, second_name):
            differences = row_differences(first, second, keys)
            cells = tuple(difference_cell(d, KNOWN[k].decimals) for d, k in zip(differences, keys, strict=True))
            label = DIFFERENCE.join((first.setting, second.setting))
            number = max((difference.num_units for difference in differences), default=0)
            lines.append(TableRow((label, first.system, pool_name(first), str(number)), cells))
    headings = tuple(Heading(f"{key}_difference", f"Δ {KNOWN[key].heading}") for key in keys)
    labels = (Heading("pair", "Pair"), Heading("system", "System"), Heading("pool", "Pool"), Heading("n", "n"))
    caption = (
        "First minus second, over latent SCMs with a valid answer on both sides; in brackets the 95% percentile"
        " bootstrap over them, both sides drawn together. The longer prompts after added worlds are part of the"
        " difference."
    )
    return finished(f"F.10{panel}", TITLES[panel], caption, headings, lines, with_paper=with_paper, labels=labels)


def row_differences(first: Row, second: Row, keys: Sequence[str]) -> list[Paired]:
    """Return paired differences of metrics, each over the latent SCMs for which both rows define it."""
    cluster = {unit: unit for unit in first.units | second.units}
    sides = [
        tuple(mean_by_unit(row.observations, by_latent, row.places[key]) for row in (first, second)) for key in keys
    ]
    return paired_differences([(before, after) for before, after in sides], cluster)


def difference_cell(difference: Paired, decimals: int) -> Cell:
    """Return a difference with its interval, suppressed over 1 to 5 units."""
    if difference.mean is None:
        return NOTHING
    if difference.num_units <= MAX_SUPPRESSED:
        return Cell(SUPPRESSED)
    return cell(f"{difference.mean + 0.0:+.{decimals}f}", difference.interval, decimals=decimals, signed=True)


def alternatives_before_and_after(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.13: alternatives per answer and per train-exact answer, before and after extra worlds."""
    lines = []
    for ladder in ladders(rows, (ORIGINAL, EXTRA)):
        before, after = ladder.rows[ORIGINAL], ladder.rows[EXTRA]
        (difference,) = row_differences(after, before, ("alternative",))
        sides = [
            (
                Cell(str(num_with(row, "train_exact"))),
                *metric_cells(row, ("alternative", "alternative_given_train_exact")),
            )
            for row in (before, after)
        ]
        lines.append(TableRow(labels_of(ladder), (*sides[0], *sides[1], difference_cell(difference, 3))))
    keys = ("train_exact", "alternative", "alternative_given_train_exact")
    texts = ("Train-exact", "per answer", "per train-exact")
    headings = tuple(
        Heading(f"{key}_{level}", f"{text} {LEVEL_HEADINGS[level]}")
        for level in (ORIGINAL, EXTRA)
        for key, text in zip(keys, texts, strict=True)
    )
    caption = (
        "Alternatives: train-exact answers that differ in meaning from gold. The difference is that of rates"
        " per answer, after minus before. What no system found may still be there."
    )
    return finished(
        "F.13",
        "Alternatives before and after Extra Worlds",
        caption,
        (*headings, Heading("alternative_difference", "Δ per answer")),
        lines,
        with_paper=with_paper,
    )


def num_with(row: Row, key: str) -> int:
    """Return the number of answers for which a metric is 1."""
    return sum(o.values[row.places[key]] == 1 for o in row.observations)


def alternatives_solved_on_both_sides(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.14: alternatives among problems that a system solves before and after extra worlds."""
    lines = []
    for ladder in ladders(rows, (ORIGINAL, EXTRA)):
        before, after = (by_unit(ladder.rows[level]) for level in (ORIGINAL, EXTRA))
        solved = [unit for unit in before if before[unit][0] and after.get(unit, (False, None))[0]]
        counts = [sum(bool(side[unit][1]) for unit in solved) for side in (before, after)]
        number = len(solved)
        mark = UNDEFINED if not number else SUPPRESSED if number <= MAX_SUPPRESSED else ""
        rates = [Cell(mark or f"{count / number:.3f}") for count in counts]
        difference = Cell(mark or f"{(counts[1] - counts[0]) / number:+.3f}")
        cells = (Cell(str(number)), *(Cell(str(count)) for count in counts), *rates, difference)
        lines.append(TableRow(labels_of(ladder), cells))
    headings = (
        Heading("solved_both", "Solved on both sides"),
        Heading("alternatives_original", "Alternatives original"),
        Heading("alternatives_extra_worlds", "Alternatives Ext"),
        Heading("alternative_rate_original", "Rate original"),
        Heading("alternative_rate_extra_worlds", "Rate Ext"),
        Heading("difference", "Δ rate"),
    )
    caption = "Train-exact answers before and after, of the same system to the same problem."
    return finished(
        "F.14", "Alternatives among problems solved on both sides", caption, headings, lines, with_paper=with_paper
    )


def by_unit(row: Row) -> dict[str, tuple[bool, bool | None]]:
    """Return by latent SCM whether the first answer to it is train-exact, and whether it is an alternative."""
    train, alternative = row.places["train_exact"], row.places["alternative"]
    result: dict[str, tuple[bool, bool | None]] = {}
    for o in row.observations:
        value = o.values[alternative]
        result.setdefault(o.unit, (o.values[train] == 1, None if value is None else value == 1))
    return result
