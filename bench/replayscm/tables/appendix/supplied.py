"""Alternative-SCM beside the tasks that it comes from, by where the alternative is from, and by depth of the edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED, Item
from calibrant.bench.replayscm.appendix_metrics import DEPTH_KEYS
from calibrant.bench.replayscm.reference_overlap import NUM_DEPTHS
from calibrant.bench.replayscm.tables.appendix.levels import finished, metric_cells, systems_text
from calibrant.bench.replayscm.tables.appendix.specs import is_alternative
from calibrant.bench.replayscm.tables.paper import PAIR
from calibrant.bench.replayscm.tables.rows import pool_name
from calibrant.bench.replayscm.tables.spec import ROW_LABELS
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row

_SOURCE_SETTINGS = {
    "Alt-Ordered": ("Ordered", "Ord-Full"),
    "Alt-Ord": ("Ord-Full", "Ordered"),
    "Alt-Hidden-order": ("Hidden-order", "Hid-Full"),
    "Alt-Hid": ("Hid-Full", "Hidden-order"),
}
KNOWN_PAIRS, OTHER_MODEL, SAME_MODEL, OPEN_ENDED = "KP-all", "OM-src", "SM-src", "OE"
_SOURCE_METRICS = {
    "joint": "alt_scm_joint",
    "alternative": "alt_train_exact",
    "experiment_valid": "experiment_valid",
    "separates": "separates",
    "witness": "experiment_witness",
}


def paired_row(row: Row, rows: Sequence[Row]) -> Row | None:
    """Return the row of the same system in the task without the reference that shares most latent SCMs."""
    candidates = [
        candidate
        for candidate in rows
        if candidate.setting in _SOURCE_SETTINGS.get(row.setting, ()) and candidate.system == row.system
    ]
    best = max(candidates, key=lambda candidate: len(candidate.units & row.units), default=None)
    return best if best is not None and best.units & row.units else None


def supplied_reference(
    rows: Sequence[Row], sources: Mapping[Item, frozenset[str]], *, with_paper: bool
) -> Table | None:
    """Table 3, panel A."""
    lines = []
    for row in filter(lambda row: is_alternative(row.setting), rows):
        source = paired_row(row, rows)
        left_out = dict(by_relation(row, sources)).get(OTHER_MODEL)
        joint, train, witness = metric_cells(row, ("alt_scm_joint", "alt_train_exact", "experiment_witness"))
        cells = (
            NOTHING if source is None else metric_cells(source.restrict_units(row.units), ("train_exact",))[0],
            joint,
            metric_cells(left_out, ("alt_scm_joint",))[0],
            train,
            witness,
        )
        lines.append(TableRow(_labels(row), cells))
    headings = (
        Heading("paired_train_correct", "Paired TrainCorrect"),
        Heading("alt_scm_joint", "Joint"),
        Heading("joint_leave_model_out", "Joint, leave model out"),
        Heading("alt_train_exact", "AltTrain"),
        Heading("experiment_witness", "Exp+Witness"),
    )
    caption = (
        "Joint: a train-exact, semantically distinct alternative with a working experiment and witness. AltTrain: the"
        " alternative alone. Exp+Witness: the experiment and its witness. Paired TrainCorrect: the same latent SCMs"
        " without the reference. Leave model out: items whose known alternative is not from an answer of the system;"
        " these need the pool's file."
    )
    return finished("3A", "Alternative-SCM", caption, headings, lines, with_paper=with_paper)


def _labels(row: Row) -> tuple[str, ...]:
    size = str(row.num_items) if row.num_items == row.num_expected else f"{row.num_items} of {row.num_expected}"
    return row.setting, row.system, pool_name(row), size


def by_relation(row: Row, sources: Mapping[Item, frozenset[str]]) -> Iterator[tuple[str, Row]]:
    """Yield the answers by where the known alternative is from; nothing where the pool's file was not read."""
    if not any(item in sources for item in row.items):
        return
    tests: dict[str, Callable[[Item], bool]] = {
        KNOWN_PAIRS: lambda item: item in sources,
        OTHER_MODEL: lambda item: item in sources and row.key.system.system not in sources[item],
        SAME_MODEL: lambda item: item in sources and row.key.system.system in sources[item],
        OPEN_ENDED: lambda item: item not in sources,
    }
    for name, holds in tests.items():
        part = row.restrict(holds)
        if part.num_items:
            yield name, part


def by_source(rows: Sequence[Row], sources: Mapping[Item, frozenset[str]], *, with_paper: bool) -> Table | None:
    """Table G.2."""
    lines = []
    for row in filter(lambda row: is_alternative(row.setting), rows):
        for name, part in by_relation(row, sources):
            row_labels = (row.setting, row.system, name, pool_name(row), str(part.num_items))
            lines.append(TableRow(row_labels, metric_cells(part, [*_SOURCE_METRICS.values()])))
    texts = ("Joint", "Alternative", "Exp valid", "Separates", "Witness")
    headings = tuple(Heading(key, text) for key, text in zip(_SOURCE_METRICS, texts, strict=True))
    labels = (*ROW_LABELS[:2], Heading("source", "Source"), *ROW_LABELS[2:])
    caption = (
        "KP-all: items with a known alternative. OM-src: it is not from an answer of the evaluated system; SM-src: it"
        " is. OE: no alternative is known."
    )
    return finished(
        "G.2",
        "Alternative-SCM by where the alternative was found",
        caption,
        headings,
        lines,
        with_paper=with_paper,
        labels=labels,
    )


def against_paired_task(rows: Sequence[Row], *, with_paper: bool) -> Table | None:
    """Table G.1."""
    lines = []
    for row in filter(lambda row: is_alternative(row.setting), rows):
        source = paired_row(row, rows)
        if source is None:
            continue
        shared = source.units & row.units
        source, matched = source.restrict_units(shared), row.restrict_units(shared)
        place = source.places["train_exact"]
        solved = {o.unit for o in source.observations if o.values[place] == 1}
        failed = matched.restrict_units(shared - solved)
        cells = (
            *metric_cells(source, ("train_exact",)),
            *metric_cells(matched, ("alt_scm_joint",)),
            _suppressed(failed),
        )
        lines.append(
            TableRow((PAIR.join((source.setting, row.setting)), row.system, pool_name(row), str(len(shared))), cells)
        )
    headings = (
        Heading("paired_train_correct", "Paired TrainCorrect"),
        Heading("alt_scm_joint", "Joint"),
        Heading("alt_scm_joint_given_paired_failure", "Joint|paired task failed"),
    )
    labels = (Heading("pair", "Pair"), *ROW_LABELS[1:])
    caption = "The same latent SCMs with and without a supplied reference."
    return finished(
        "G.1",
        "Alternative-SCM against the paired task",
        caption,
        headings,
        lines,
        with_paper=with_paper,
        labels=labels,
    )


def _suppressed(row: Row) -> Cell:
    """Return joint success of a row as a conditional rate."""
    if not row.num_items:
        return NOTHING
    return Cell(SUPPRESSED) if row.num_items <= MAX_SUPPRESSED else metric_cells(row, ("alt_scm_joint",))[0]


def by_depth(rows: Sequence[Row], panel: str, *, with_paper: bool) -> Table | None:
    """Table G.5, pooled over systems: variables that successful alternatives change, by depth in the reference."""
    by_setting: dict[str, list[Row]] = {}
    for row in filter(lambda row: is_alternative(row.setting), rows):
        by_setting.setdefault(row.setting, []).append(row)
    lines = []
    for setting, listed in by_setting.items():
        counts = [[_total(listed, f"{key}_{place + 1}") for key in DEPTH_KEYS] for place in range(NUM_DEPTHS)]
        num_changed = sum(parents + functions for _, parents, functions in counts)
        for place, (variables, parents, functions) in enumerate(counts):
            name = f"{place + 1}{'+' * (place + 1 == NUM_DEPTHS)}"
            changed = parents + functions
            whole = variables if panel == "A" else changed
            first = _rate(changed, variables) if panel == "A" else _rate(changed, num_changed)
            cells = (str(whole), first, _rate(parents, whole), _rate(functions, whole))
            lines.append(TableRow((setting, name, systems_text(len(listed))), tuple(map(Cell, cells))))
    if not lines:
        return None
    keys = {
        "A": ("num_variables", "changed", "structure_and_mechanism", "mechanism_only"),
        "B": ("num_changed", "share_of_changed", "structure_and_mechanism", "mechanism_only"),
    }[panel]
    texts = {
        "A": ("Variables", "Changed", "Parents and mechanism", "Mechanism only"),
        "B": ("Changed", "Share of changed", "Parents and mechanism", "Mechanism only"),
    }[panel]
    titles = {"A": "Changed variables by depth in the reference", "B": "Composition of changed variables"}
    headings = tuple(Heading(key, text) for key, text in zip(keys, texts, strict=True))
    labels = (Heading("setting", "Setting"), Heading("depth", "Depth"), Heading("system", "Systems"))
    caption = (
        "Variables of the reference of every successful alternative. Depth: 1 without endogenous functional parents,"
        " else 1 more than the deepest of them."
    )
    return finished(f"G.5{panel}", titles[panel], caption, headings, lines, with_paper=with_paper, labels=labels)


def _total(rows: Sequence[Row], key: str) -> int:
    return int(sum(o.values[row.places[key]] or 0 for row in rows for o in row.observations))


def _rate(number: int, whole: int) -> str:
    return f"{number / whole:.3f}" if whole else UNDEFINED
