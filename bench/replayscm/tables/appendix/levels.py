"""Problems at the levels of the support-audit ladder: original, with extra worlds, after the audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from calibrant.bench.answers.names import SystemKey
from calibrant.bench.replayscm.tables.appendix.specs import KNOWN
from calibrant.bench.replayscm.tables.paper import LABELS, notes, printed_rows, with_printed_rows
from calibrant.bench.replayscm.tables.rows import pool_name
from calibrant.bench.replayscm.tables.spec import ROW_LABELS
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row
from calibrant.bench.report.views import rate_cell

ORIGINAL, EXTRA, AUDITED = "original", "extra_worlds", "counterexample_audit"
LEVEL_HEADINGS = {ORIGINAL: "original", EXTRA: "Ext", AUDITED: "CEx"}
_LEVELS = {
    setting: (disclosure, level)
    for disclosure, short, full in (("Ordered", "Ord", "Ord-Full"), ("Hidden-order", "Hid", "Hid-Full"))
    for level, settings in {
        ORIGINAL: (disclosure, full, f"{short}-Match"),
        EXTRA: (f"{short}-Ext",),
        AUDITED: (f"{short}-CEx",),
    }.items()
    for setting in settings
}


@dataclass(frozen=True)
class Ladder:
    """One system under one disclosure on the same latent SCMs. rows: by level, each on the shared SCMs alone."""

    disclosure: str
    system: str
    rows: Mapping[str, Row]

    @property
    def first(self) -> Row:
        return next(iter(self.rows.values()))


def ladders(rows: Sequence[Row], levels: Sequence[str] = (ORIGINAL, EXTRA, AUDITED)) -> list[Ladder]:
    """Return systems with answers at the first of these levels and at a later one, on the SCMs that all have."""
    by_key: dict[tuple[str, str, SystemKey], list[Row]] = {}
    for row in rows:
        if row.setting in _LEVELS:
            by_key.setdefault((*_LEVELS[row.setting], row.key.system), []).append(row)
    result = []
    for row in rows:
        disclosure, level = _LEVELS.get(row.setting, ("", ""))
        if level != levels[0]:
            continue
        matched = {level: row}
        for later in levels[1:]:
            candidates = by_key.get((disclosure, later, row.key.system), [])
            best = max(candidates, key=lambda candidate: len(candidate.units & row.units), default=None)
            if best is not None and best.units & row.units:
                matched[later] = best
        if len(matched) > 1:
            shared = frozenset.intersection(*(matched_row.units for matched_row in matched.values()))
            if shared:
                restricted = {key: matched_row.restrict_units(shared) for key, matched_row in matched.items()}
                result.append(Ladder(disclosure, row.system, restricted))
    return result


def systems_text(number: int) -> str:
    return f"{number} system{'s' * (number != 1)}"


def metric_cells(row: Row | None, keys: Sequence[str]) -> tuple[Cell, ...]:
    """Return the rates of a row; dashes without a row."""
    if row is None:
        return (NOTHING,) * len(keys)
    return tuple(rate_cell(row, KNOWN[key]) for key in keys)


def side_by_side(
    number: str,
    title: str,
    caption: str,
    rows: Sequence[Row],
    keys: Sequence[str],
    levels: Sequence[str],
    *,
    by_metric: bool,
    with_paper: bool,
) -> Table | None:
    """Return a row a system, with each of these metrics at each level; by_metric: its levels stand together."""
    pairs = [(k, lv) for k in keys for lv in levels] if by_metric else [(k, lv) for lv in levels for k in keys]
    lines = []
    for ladder in ladders(rows, levels):
        cells = {
            (key, level): cell
            for level in levels
            for key, cell in zip(keys, metric_cells(ladder.rows.get(level), keys), strict=True)
        }
        lines.append(TableRow(labels_of(ladder), tuple(cells[pair] for pair in pairs)))
    headings = tuple(Heading(f"{key}_{lv}", f"{KNOWN[key].heading} {LEVEL_HEADINGS[lv]}") for key, lv in pairs)
    return finished(number, title, caption, headings, lines, with_paper=with_paper)


def labels_of(ladder: Ladder) -> tuple[str, ...]:
    first = ladder.first
    return ladder.disclosure, ladder.system, pool_name(first), str(first.num_items)


def finished(
    number: str,
    title: str,
    caption: str,
    headings: tuple[Heading, ...],
    lines: Sequence[TableRow],
    *,
    with_paper: bool,
    labels: tuple[Heading, ...] = ROW_LABELS,
) -> Table | None:
    """Return a table with printed rows after each setting; None without lines."""
    if not lines:
        return None
    places = _first_places(lines)
    ordered = sorted(lines, key=lambda line: places[line.labels[0]])
    if not with_paper:
        return Table(number, title, caption, labels, headings, tuple(ordered))
    keys = [heading.key for heading in headings]
    all_lines = with_printed_rows(number, ordered, keys, [heading.key for heading in labels])
    pools = [line.labels[2] for line in lines] if [heading.key for heading in labels] == [*LABELS] else []
    return Table(number, title, caption, labels, headings, all_lines, notes(number, all_lines, pools))


def _first_places(lines: Sequence[TableRow]) -> dict[str, int]:
    places: dict[str, int] = {}
    for place, line in enumerate(lines):
        places.setdefault(line.labels[0], place)
    return places


def replay_by_level(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.7."""
    return side_by_side(
        "F.7",
        "Replay at the three support levels",
        "The same source problems at each level, over those that all levels of a row have.",
        rows,
        ("train_exact", "heldout_world"),
        (ORIGINAL, EXTRA, AUDITED),
        by_metric=False,
        with_paper=with_paper,
    )


def parents_before_and_after(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.9, panel A."""
    return side_by_side(
        "F.9A",
        "Parents before and after added worlds",
        "Over executable answers. Two printed exact parent maps (Opus 4.6, Grok 4.20 after added worlds) are counts"
        " over all 100 answers instead.",
        rows,
        ("parent_f1", "parent_shd", "parent_map_exact"),
        (ORIGINAL, EXTRA),
        by_metric=True,
        with_paper=with_paper,
    )


def replay_before_and_after(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table F.9, panel B."""
    return side_by_side(
        "F.9B",
        "Mechanisms and replay before and after added worlds",
        "LocalMatch: over executable answers.",
        rows,
        ("local_match", "train_exact", "heldout_world"),
        (ORIGINAL, EXTRA),
        by_metric=True,
        with_paper=with_paper,
    )


def train_exact_matrix(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table D.2: a system a row, a setting a column, over the latent SCMs that all rows of a system have."""
    settings = {
        "Ord-Match": ("Ordered", "Ord-Full"),
        "Block": ("Block",),
        "Hid-Match": ("Hidden-order", "Hid-Full"),
        "Hid-Roots": ("Hidden-roots", "Hid-Roots"),
        **{name: (name,) for name in ("Ord-Ext", "Hid-Ext", "Ord-CEx", "Hid-CEx")},
    }
    by_system: dict[str, dict[str, Row]] = {}
    for row in rows:
        column = next((column for column, names in settings.items() if row.setting in names), None)
        if column is not None:
            by_system.setdefault(row.system, {}).setdefault(column, row)
    lines = []
    for system, listed in by_system.items():
        shared = frozenset.intersection(*(row.units for row in listed.values()))
        if len(listed) < 2 or not shared:
            continue
        restricted = {column: row.restrict_units(shared) for column, row in listed.items()}
        cells = [metric_cells(restricted.get(column), ("train_exact",))[0] for column in settings]
        lines.append(TableRow((system, str(len(shared))), tuple(cells)))
    headings = tuple(Heading(name, name) for name in settings)
    caption = "TrainExact on the latent SCMs that a system answered under every setting of its row."
    return by_system_table("D.2", "TrainExact on the common matched pool", caption, headings, lines, with_paper)


def by_system_table(
    number: str,
    title: str,
    caption: str,
    headings: tuple[Heading, ...],
    lines: Iterable[TableRow],
    with_paper: bool,
) -> Table | None:
    """Return a table whose rows are systems, all printed ones after ours; None without rows of ours."""
    own_rows = tuple(lines)
    if not own_rows:
        return None
    labels = (Heading("system", "System"), Heading("n", "n"))
    printed = printed_rows(number, [heading.key for heading in headings], ("system", "n")) if with_paper else []
    note_lines = (f"The last {len(printed)} rows are printed in the paper's Table {number}.",) if printed else ()
    return Table(number, title, caption, labels, headings, (*own_rows, *printed), note_lines)


def extra_worlds_by_disclosure(rows: Sequence[Row], panel: str, *, with_paper: bool) -> Table | None:
    """Table F.8: Ordered and Hidden-order with the same extra worlds, side by side."""
    title, keys = {
        "A": ("Extra Worlds: validity and parents", ("valid", "parent_f1", "parent_shd")),
        "B": ("Extra Worlds: exact structure and replay", ("parent_map_exact", "train_exact", "heldout_world")),
    }[panel]
    headings = tuple(
        Heading(f"{key}_{short}_ext", f"{KNOWN[key].heading} {short.capitalize()}-Ext")
        for key in keys
        for short in ("ord", "hid")
    )
    lines = []
    for ordered, hidden in matched_pairs(rows, "Ord-Ext", "Hid-Ext"):
        sides = [metric_cells(row, keys) for row in (ordered, hidden)]
        cells = tuple(side[k] for k in range(len(keys)) for side in sides)
        lines.append(TableRow((ordered.system, str(ordered.num_items)), cells))
    caption = "The same latent SCMs, the same extra worlds, the same held-out worlds; only the order is hidden."
    return by_system_table(f"F.8{panel}", title, caption, headings, lines, with_paper)


def matched_pairs(rows: Sequence[Row], first: str, second: str) -> Iterator[tuple[Row, Row]]:
    """Yield the rows of each system in two settings, on the latent SCMs that both have."""
    for row in rows:
        if row.setting != first:
            continue
        candidates = [candidate for candidate in rows if candidate.setting == second and candidate.system == row.system]
        best = max(candidates, key=lambda candidate: len(candidate.units & row.units), default=None)
        if best is not None and (shared := best.units & row.units):
            yield row.restrict_units(shared), best.restrict_units(shared)
