"""Tables of the paper's appendices, printed on request: `calibrant report --table F.9A`.

Most are contrasts: a row compares answers of one system on several sides (levels of the support-audit ladder:
original, Ext, CEx; disclosures; tasks with and without a reference), over the latent SCMs that all sides share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeAlias

from calibrant.bench.answers.frame import AnswerFrame
from calibrant.bench.core.metrics import MAX_SUPPRESSED, SUPPRESSED, UNDEFINED, Item
from calibrant.bench.papers import group_answers
from calibrant.bench.replayscm.appendix.cohorts import (
    COHORT_TABLES,
    by_depth,
    by_kill_coverage,
    cohort_table,
    find_cohorts,
)
from calibrant.bench.replayscm.appendix.facts import PoolFacts, construction_table
from calibrant.bench.replayscm.paper import (
    DIFFERENCE,
    KNOWN,
    PAIR,
    ROW_LABELS,
    Columns,
    Line,
    Sides,
    TableSpec,
    count,
    count_defined,
    finish_table,
    is_alternative,
    is_hidden_roots,
    metric_cells,
    metrics,
    pool_name,
    printed_rows,
    size_text,
    with_pools,
)
from calibrant.bench.report.comparisons import difference_cell, difference_headings, differences
from calibrant.bench.report.layout import NOTHING, Cell, Heading, Table, TableRow
from calibrant.bench.report.rows import Row
from calibrant.dsl.records import file_digest

# --- Tables with one row per pool and system --------------------------------------------------------------------------


def is_support_audit(setting: str) -> bool:
    """Return whether a setting is a later level of the support-audit ladder."""
    return setting.endswith(("-Ext", "-CEx"))


REFERENCE_OVERLAP = TableSpec(
    "G.4",
    "Overlap of alternatives with the reference",
    "F1, MapExact, LocalMatch: of valid alternatives against the supplied reference. Last three columns: successful"
    " alternatives in which exactly one variable has a different local function; those with the same functional"
    " parents; those with different ones.",
    (
        count("num_valid", "Valid", "valid"),
        count("num_success", "Successful", "alt_train_exact"),
        metrics(
            "reference_f1 reference_map_exact reference_match one_variable one_variable_same_parents"
            " one_variable_changed_parents"
        ),
    ),
    where=is_alternative,
)
APPENDIX_SPECS = (
    TableSpec(
        "C.2",
        "Semantic parents and mechanisms, all settings",
        "Scored: executable answers (Hidden-roots: with the right root set); all further columns are over these."
        " AllMatch: every mechanism means the same as gold. TE|Map: among answers with gold's parents.",
        (
            count("num_structure_scored", "Scored", "parent_f1", count_defined),
            metrics(
                "parent_recall parent_f1 parent_exact parent_map_exact local_match local_map_exact"
                " train_exact_given_parent_map_exact"
            ),
        ),
    ),
    TableSpec(
        "E.1",
        "Support-audit subsets",
        "Ext: Extra Worlds. CEx: Counterexample Audit, where an invalid answer counts as 0 in TrainWorld and"
        " HeldoutWorld. Answers to a hardened pool (--pool) form a row of its level.",
        (metrics("valid train_exact train_world heldout_world heldout_exact heldout_world_given_train_exact"),),
        where=is_support_audit,
    ),
    TableSpec(
        "G.3",
        "Quality of separating interventions",
        "Optimality: the experiment's disagreement divided by that of the best one, over joint successes.",
        (metrics("alt_scm_joint experiment_optimality"),),
        where=is_alternative,
    ),
    REFERENCE_OVERLAP,
    TableSpec(
        "G.6",
        "Hidden-roots",
        "TaskCorrect includes the root set; TrainExact and HeldoutExact are those of the mechanisms, whatever the"
        " roots.",
        (metrics("task_correct root_exact mechanism_train_exact mechanism_heldout_exact"),),
        where=is_hidden_roots,
    ),
    TableSpec(
        "G.7A",
        "Hidden-roots given exact roots",
        "|RE: among answers with the right root set, valid or not.",
        (
            metrics("root_exact"),
            count("num_root_exact", "n RootExact", "root_exact"),
            metrics("train_exact_given_root_exact heldout_world_given_root_exact heldout_exact_given_root_exact"),
        ),
        where=is_hidden_roots,
    ),
    TableSpec(
        "G.7B",
        "Hidden-roots with wrong roots, and failures",
        "|wrong: among answers with another root set. Train failures: right root set, not train-exact. Held-out"
        " failures: right root set, train-exact, not held-out exact.",
        (
            metrics("train_exact_given_root_wrong heldout_world_given_root_wrong"),
            count("num_train_failures", "Train failures", "train_failure"),
            count("num_heldout_failures", "Held-out failures", "heldout_failure"),
        ),
        where=is_hidden_roots,
    ),
    TableSpec(
        "G.8A",
        "Hidden-roots given exact roots and validity",
        "|RE,valid: among valid answers with the right root set.",
        (
            metrics("valid root_exact"),
            count("num_root_exact_valid", "n RE, valid", "root_exact_valid"),
            metrics("parent_f1_given_root_exact_valid parent_map_exact_given_root_exact_valid"),
        ),
        where=is_hidden_roots,
    ),
    TableSpec(
        "G.8B",
        "Hidden-roots replay given exact roots",
        "|RE,valid: among valid answers with the right root set; |RE,TE: among those of them that are train-exact.",
        (metrics("train_exact_given_root_exact_valid heldout_world_given_root_exact_train_exact"),),
        where=is_hidden_roots,
    ),
)

# --- Contrasts --------------------------------------------------------------------------------------------------------
BY_SYSTEM = (Heading("system", "System"), Heading("n", "n"))
PAIR_LABELS = (Heading("pair", "Pair"), *ROW_LABELS[1:])


@dataclass(frozen=True)
class Contrast:
    """A table whose rows have several sides.

    lines: (rows of the report, facts of the pools) -> rows of the table
    labels: headings of the row labels; with BY_SYSTEM, the paper's printed rows follow all of ours
    """

    id: str
    title: str
    caption: str
    lines: Callable[[Sequence[Row], PoolFacts], Iterable[Line]]
    columns: tuple[Columns, ...]
    labels: tuple[Heading, ...] = ROW_LABELS

    def make(self, rows: Sequence[Row], facts: PoolFacts | None = None, *, with_paper: bool) -> Table | None:
        """Return the table; None if no row of the report is in it."""
        sided = [*self.lines(rows, facts or PoolFacts())]
        lines = [
            TableRow(labels, tuple(cell for column in self.columns for cell in column.cells(sides)))
            for labels, sides in (with_pools(sided) if self.labels == BY_SYSTEM else sided)
        ]
        headings = tuple(heading for column in self.columns for heading in column.headings)
        if self.labels != BY_SYSTEM:
            table = Table(self.id, self.title, self.caption, self.labels, headings, tuple(lines))
            return finish_table(table, with_paper=with_paper)
        if not lines:
            return None
        keys = [heading.key for heading in headings]
        printed = printed_rows(self.id, keys, ("system", "n")) if with_paper else []
        notes = (f"The last {len(printed)} rows are printed in the paper's Table {self.id}.",) if printed else ()
        return Table(self.id, self.title, self.caption, self.labels, headings, (*lines, *printed), notes)


def rates(*columns: tuple[str, str, str, str]) -> Columns:
    """Return columns of rates; each is given by (heading key, heading text, metric, side)."""
    headings = tuple(Heading(key, text) for key, text, _, _ in columns)
    return Columns(headings, lambda sides: [metric_cells(sides.get(side), (k,))[0] for _, _, k, side in columns])


def best_match(row: Row, candidates: Iterable[Row]) -> Row | None:
    """Return the first candidate that shares the most latent SCMs with `row`; None if none shares any."""
    best = max(candidates, key=lambda candidate: len(candidate.units & row.units), default=None)
    return best if best is not None and best.units & row.units else None


def matched_pairs(rows: Sequence[Row], first: str, second: str) -> Iterator[tuple[Row, Row]]:
    """Yield each system's rows in two settings, restricted to their common latent SCMs."""
    for row in (row for row in rows if row.setting == first):
        best = best_match(
            row, (candidate for candidate in rows if candidate.setting == second and candidate.system == row.system)
        )
        if best is not None:
            shared = best.units & row.units
            yield row.restrict_units(shared), best.restrict_units(shared)


# --- Levels of the support-audit ladder: original, with extra worlds, after the audit ---------------------------------
ORIGINAL, EXTRA, AUDITED = "original", "extra_worlds", "counterexample_audit"
LEVEL_HEADINGS = {ORIGINAL: "original", EXTRA: "Ext", AUDITED: "CEx"}
_LEVELS = {  # setting -> (disclosure, level)
    setting: (disclosure, level)
    for disclosure, short, full in (("Ordered", "Ord", "Ord-Full"), ("Hidden-order", "Hid", "Hid-Full"))
    for level, settings in {
        ORIGINAL: (disclosure, full, f"{short}-Match"),
        EXTRA: (f"{short}-Ext",),
        AUDITED: (f"{short}-CEx",),
    }.items()
    for setting in settings
}
_ORDERED, _HIDDEN = ("Ordered", "Ord-Full"), ("Hidden-order", "Hid-Full")


def ladder_lines(levels: Sequence[str], rows: Sequence[Row], _: PoolFacts) -> Iterator[Line]:
    """Yield a line, on common latent SCMs, for each system with answers at the first of `levels` and a later one."""
    by_key = group_answers(
        (row for row in rows if row.setting in _LEVELS), lambda row: (*_LEVELS[row.setting], row.key.system)
    )
    for row in rows:
        disclosure, level = _LEVELS.get(row.setting, ("", ""))
        if level != levels[0]:
            continue
        matched = {level: row}
        for later in levels[1:]:
            best = best_match(row, by_key.get((disclosure, later, row.key.system), []))
            if best is not None:
                matched[later] = best
        shared = frozenset.intersection(*(side.units for side in matched.values()))
        if len(matched) > 1 and shared:
            sides = {key: side.restrict_units(shared) for key, side in matched.items()}
            first = sides[level]
            yield (disclosure, row.system, pool_name(first), str(first.num_items)), sides


def _at_levels(pairs: Iterable[tuple[str, str]]) -> Columns:
    """Return rates for pairs of a metric and a level."""
    return rates(*((f"{k}_{lv}", f"{KNOWN[k].heading} {LEVEL_HEADINGS[lv]}", k, lv) for k, lv in pairs))


def _before_and_after(*keys: str) -> tuple[Columns, ...]:
    return (_at_levels((key, level) for key in keys for level in (ORIGINAL, EXTRA)),)


_original_and_extra_lines = partial(ladder_lines, (ORIGINAL, EXTRA))
REPLAY_BY_LEVEL = Contrast(
    "F.7",
    "Replay at the three support levels",
    "Over the source problems that a system answered at every level of its row.",
    partial(ladder_lines, (ORIGINAL, EXTRA, AUDITED)),
    (_at_levels((k, lv) for lv in (ORIGINAL, EXTRA, AUDITED) for k in ("train_exact", "heldout_world")),),
)
PARENTS_BEFORE_AND_AFTER = Contrast(
    "F.9A",
    "Parents before and after added worlds",
    "Over executable answers. Two printed values of MapExact (Opus 4.6, Grok 4.20 after added worlds) are over"
    " all 100 answers instead.",
    _original_and_extra_lines,
    _before_and_after("parent_f1", "parent_shd", "parent_map_exact"),
)
REPLAY_BEFORE_AND_AFTER = Contrast(
    "F.9B",
    "Mechanisms and replay before and after added worlds",
    "LocalMatch: over executable answers.",
    _original_and_extra_lines,
    _before_and_after("local_match", "train_exact", "heldout_world"),
)


def _alternatives_at(level: str) -> tuple[Columns, Columns]:
    """Return two columns: the number of train-exact answers at a level, and the rates of alternatives there."""

    def count_train_exact(sides: Sides) -> tuple[Cell]:
        row = sides[level]
        return (Cell(str(sum(o.values[row.column_indices["train_exact"]] == 1 for o in row.observations))),)

    texts = {"alternative": "per answer", "alternative_given_train_exact": "per train-exact"}
    return (
        Columns((Heading(f"train_exact_{level}", f"Train-exact {LEVEL_HEADINGS[level]}"),), count_train_exact),
        rates(*((f"{key}_{level}", f"{text} {LEVEL_HEADINGS[level]}", key, level) for key, text in texts.items())),
    )


def _alternative_difference(sides: Sides) -> tuple[Cell]:
    (difference,) = differences(sides[EXTRA], sides[ORIGINAL], AnswerFrame.unit_means, ("alternative",))
    return (difference_cell(difference),)


ALTERNATIVES_BEFORE_AND_AFTER = Contrast(
    "F.13",
    "Alternatives before and after Extra Worlds",
    "Alternatives: train-exact answers that differ in meaning from gold. The difference is that of rates"
    " per answer, after minus before. An alternative that no system found may still exist.",
    _original_and_extra_lines,
    (
        *_alternatives_at(ORIGINAL),
        *_alternatives_at(EXTRA),
        Columns((Heading("alternative_difference", "Δ per answer"),), _alternative_difference),
    ),
)


def _first_answers(row: Row) -> dict[str, tuple[bool, bool]]:
    """Return latent SCM (`unit`) -> (whether the first answer to it is train-exact, whether it is an alternative)."""
    train, alternative = row.column_indices["train_exact"], row.column_indices["alternative"]
    outcomes: dict[str, tuple[bool, bool]] = {}
    for o in row.observations:
        outcomes.setdefault(o.unit, (o.values[train] == 1, o.values[alternative] == 1))
    return outcomes


def _solved_on_both_sides(sides: Sides) -> list[Cell]:
    before, after = (_first_answers(sides[level]) for level in (ORIGINAL, EXTRA))
    solved = [unit for unit, (is_exact, _) in before.items() if is_exact and after.get(unit, (False, False))[0]]
    counts = [sum(side[unit][1] for unit in solved) for side in (before, after)]
    num_solved = len(solved)
    mark = UNDEFINED if not num_solved else SUPPRESSED if num_solved <= MAX_SUPPRESSED else ""
    texts = [mark or f"{num / num_solved:.3f}" for num in counts]
    difference = mark or f"{(counts[1] - counts[0]) / num_solved:+.3f}"
    return [*map(Cell, (str(num_solved), *map(str, counts), *texts, difference))]


ALTERNATIVES_SOLVED_ON_BOTH_SIDES = Contrast(
    "F.14",
    "Alternatives among problems solved on both sides",
    "Train-exact answers before and after, of the same system to the same problem.",
    _original_and_extra_lines,
    (
        Columns(
            (
                Heading("solved_both", "Solved on both sides"),
                Heading("alternatives_original", "Alternatives original"),
                Heading("alternatives_extra_worlds", "Alternatives Ext"),
                Heading("alternative_rate_original", "Rate original"),
                Heading("alternative_rate_extra_worlds", "Rate Ext"),
                Heading("difference", "Δ rate"),
            ),
            _solved_on_both_sides,
        ),
    ),
)

# --- Disclosures and settings side by side ----------------------------------------------------------------------------
_SETTINGS_OF_COLUMN = {
    "Ord-Match": _ORDERED,
    "Block": ("Block",),
    "Hid-Match": _HIDDEN,
    "Hid-Roots": ("Hidden-roots", "Hid-Roots"),
    **{name: (name,) for name in ("Ord-Ext", "Hid-Ext", "Ord-CEx", "Hid-CEx")},
}


def _all_settings(rows: Sequence[Row], _: PoolFacts) -> Iterator[Line]:
    lines: list[tuple[str, dict[str, Row]]] = []  # rows of a system that share latent SCMs, one of each column
    for row in rows:
        for column in [column for column, names in _SETTINGS_OF_COLUMN.items() if row.setting in names]:
            free = (line for system, line in lines if system == row.system and column not in line)
            shared = next((line for line in free if all(row.units & side.units for side in line.values())), {})
            lines += [] if shared else [(row.system, shared)]
            shared[column] = row
    for system, by_column in lines:
        units = frozenset.intersection(*(row.units for row in by_column.values()))
        if len(by_column) > 1 and units:
            yield (system, str(len(units))), {name: row.restrict_units(units) for name, row in by_column.items()}


TRAIN_EXACT_MATRIX = Contrast(
    "D.2",
    "TrainExact on the common matched pool",
    "TrainExact on the latent SCMs that a system answered under every setting of its row.",
    _all_settings,
    (rates(*((name, name, "train_exact", name) for name in _SETTINGS_OF_COLUMN)),),
    BY_SYSTEM,
)


def _both_disclosures(rows: Sequence[Row], _: PoolFacts) -> Iterator[Line]:
    for ordered, hidden in matched_pairs(rows, "Ord-Ext", "Hid-Ext"):
        yield (ordered.system, str(ordered.num_items)), {"ord": ordered, "hid": hidden}


def _extra_worlds(panel: str, title: str, *keys: str) -> Contrast:
    columns = (
        (f"{key}_{short}_ext", f"{KNOWN[key].heading} {short.capitalize()}-Ext", key, short)
        for key in keys
        for short in ("ord", "hid")
    )
    caption = "The same latent SCMs, the same extra worlds, the same held-out worlds; only the order is hidden."
    return Contrast(f"F.8{panel}", f"Extra Worlds: {title}", caption, _both_disclosures, (rates(*columns),), BY_SYSTEM)


def _differing_settings(keys: Sequence[str], rows: Sequence[Row], _: PoolFacts) -> Iterator[Line]:
    setting_pairs = [("Hid-Ext", "Ord-Ext")]
    setting_pairs += [("Ord-Ext", name) for name in _ORDERED] + [("Hid-Ext", name) for name in _HIDDEN]
    for names in setting_pairs:
        for pair in matched_pairs(rows, *names):
            first, second = ([row.frame.unit_means(row.column_indices[key]) for key in keys] for row in pair)
            num_compared = max(len(a.keys() & b.keys()) for a, b in zip(first, second, strict=True))
            label = DIFFERENCE.join(row.setting for row in pair)
            yield (label, pair[0].system, pool_name(pair[0]), str(num_compared)), dict(zip("ab", pair, strict=True))


def _structure_differences(panel: str, title: str, *keys: str) -> Contrast:
    def cells(sides: Sides) -> list[Cell]:
        deltas = differences(sides["a"], sides["b"], AnswerFrame.unit_means, keys)
        return [difference_cell(delta, KNOWN[key].decimals) for delta, key in zip(deltas, keys, strict=True)]

    return Contrast(
        f"F.10{panel}",
        title,
        "First minus second, over latent SCMs with a valid answer on both sides; in brackets the 95% percentile"
        " interval of the paired bootstrap over them. The longer prompts after added worlds are part of the"
        " difference.",
        partial(_differing_settings, keys),
        (Columns(difference_headings(KNOWN[key] for key in keys), cells),),
        PAIR_LABELS,
    )


PARENT_DIFFERENCES = _structure_differences(
    "A", "Differences of parents", "parent_shd", "parent_f1", "parent_map_exact"
)
MECHANISM_DIFFERENCES = _structure_differences(
    "B", "Differences of mechanisms and replay", "local_match", "heldout_world"
)

# --- Alternative-SCM beside the tasks that it comes from, and by where the alternative is from ------------------------
_SOURCE_SETTINGS = {
    "Alt-Ordered": _ORDERED,
    "Alt-Ord": _ORDERED,
    "Alt-Hidden-order": _HIDDEN,
    "Alt-Hid": _HIDDEN,
}
KNOWN_PAIRS, OTHER_MODEL, SAME_MODEL, OPEN_ENDED = "KP-all", "OM-src", "SM-src", "OE"
PAIRED_TASK = ("paired_train_correct", "Paired TrainCorrect", "train_exact", "paired")


def paired_row(row: Row, rows: Sequence[Row]) -> Row | None:
    """Return the same system's row in the task without a reference that shares the most latent SCMs, or None."""
    names = _SOURCE_SETTINGS.get(row.setting, ())
    return best_match(
        row, (candidate for candidate in rows if candidate.setting in names and candidate.system == row.system)
    )


def by_origin(row: Row, facts: PoolFacts) -> Iterator[tuple[str, Row]]:
    """Yield (origin of the known alternative, row of the answers to such items); nothing without the pool's file."""
    sources = facts.sources
    if not any((digest, id_) in sources or digest in facts.pools for digest, id_ in row.items):
        return
    tests: dict[str, Callable[[Item], bool]] = {
        KNOWN_PAIRS: lambda item: item in sources,
        OTHER_MODEL: lambda item: item in sources and row.key.system.system not in sources[item],
        SAME_MODEL: lambda item: item in sources and row.key.system.system in sources[item],
        OPEN_ENDED: lambda item: item not in sources,
    }
    for name, holds in tests.items():
        restricted = row.restrict(holds)
        if restricted.num_items:
            yield name, restricted


def _with_reference(rows: Sequence[Row], facts: PoolFacts) -> Iterator[Line]:
    for row in (row for row in rows if is_alternative(row.setting)):
        paired, others_only = paired_row(row, rows), dict(by_origin(row, facts)).get(OTHER_MODEL)
        sides = {"all": row, "left out": others_only, "paired": paired and paired.restrict_units(row.units)}
        labels = row.setting, row.system, pool_name(row), size_text(row)
        yield labels, {name: side for name, side in sides.items() if side is not None}


SUPPLIED_REFERENCE = Contrast(
    "3A",
    "Alternative-SCM",
    "Joint: a train-exact, semantically distinct alternative with a working experiment and witness. AltTrain: the"
    " alternative alone. Exp+Witness: the experiment and its witness. Paired TrainCorrect: the same latent SCMs"
    " without the reference. Leave model out: items whose known alternative is not from an answer of the system;"
    " these need the pool's file.",
    _with_reference,
    (
        rates(
            PAIRED_TASK,
            ("alt_scm_joint", "Joint", "alt_scm_joint", "all"),
            ("joint_leave_model_out", "Joint, leave model out", "alt_scm_joint", "left out"),
            ("alt_train_exact", "AltTrain", "alt_train_exact", "all"),
            ("experiment_witness", "Exp+Witness", "experiment_witness", "all"),
        ),
    ),
)


def _by_origin(rows: Sequence[Row], facts: PoolFacts) -> Iterator[Line]:
    for row in (row for row in rows if is_alternative(row.setting)):
        for name, restricted in by_origin(row, facts):
            yield (row.setting, row.system, name, pool_name(row), str(restricted.num_items)), {"": restricted}


BY_SOURCE = Contrast(
    "G.2",
    "Alternative-SCM by where the alternative was found",
    "KP-all: items with a known alternative. OM-src: it is not from an answer of the evaluated system; SM-src: it"
    " is. OE: no alternative is known.",
    _by_origin,
    (
        rates(
            ("joint", "Joint", "alt_scm_joint", ""),
            ("alternative", "Alternative", "alt_train_exact", ""),
            ("experiment_valid", "Exp valid", "experiment_valid", ""),
            ("separates", "Separates", "separates", ""),
            ("witness", "Witness", "experiment_witness", ""),
        ),
    ),
    (*ROW_LABELS[:2], Heading("origin", "Source"), *ROW_LABELS[2:]),
)


def _paired_tasks(rows: Sequence[Row], _: PoolFacts) -> Iterator[Line]:
    for row in (row for row in rows if is_alternative(row.setting)):
        source = paired_row(row, rows)
        if source is None:
            continue
        shared = source.units & row.units
        paired, matched = source.restrict_units(shared), row.restrict_units(shared)
        column = paired.column_indices["train_exact"]
        solved = {o.unit for o in paired.observations if o.values[column] == 1}
        labels = PAIR.join((paired.setting, row.setting)), row.system, pool_name(row), str(len(shared))
        yield labels, {"paired": paired, "all": matched, "failed": matched.restrict_units(shared - solved)}


def _joint_if_failed(sides: Sides) -> tuple[Cell]:
    """Return the rate of joint success among items whose paired task failed."""
    row = sides["failed"]
    if not row.num_items:
        return (NOTHING,)
    joint = metric_cells(row, ("alt_scm_joint",))[0]
    return (Cell(SUPPRESSED) if row.num_items <= MAX_SUPPRESSED else joint,)


AGAINST_PAIRED_TASK = Contrast(
    "G.1",
    "Alternative-SCM against the paired task",
    "The same latent SCMs with and without a supplied reference.",
    _paired_tasks,
    (
        rates(PAIRED_TASK, ("alt_scm_joint", "Joint", "alt_scm_joint", "all")),
        Columns((Heading("alt_scm_joint_given_paired_failure", "Joint|paired task failed"),), _joint_if_failed),
    ),
    PAIR_LABELS,
)
CONTRASTS = (
    *(TRAIN_EXACT_MATRIX, REPLAY_BY_LEVEL, PARENTS_BEFORE_AND_AFTER, REPLAY_BEFORE_AND_AFTER),
    _extra_worlds("A", "validity and parents", "valid", "parent_f1", "parent_shd"),
    _extra_worlds("B", "exact structure and replay", "parent_map_exact", "train_exact", "heldout_world"),
    *(PARENT_DIFFERENCES, MECHANISM_DIFFERENCES),
    *(ALTERNATIVES_BEFORE_AND_AFTER, ALTERNATIVES_SOLVED_ON_BOTH_SIDES, AGAINST_PAIRED_TASK, BY_SOURCE),
)


# --- Tables by id -----------------------------------------------------------------------------------------------------
Maker: TypeAlias = Callable[[], Table | None]
_PANELS = ("A", "B")
APPENDIX_IDS = (
    *(spec.id for spec in APPENDIX_SPECS),
    *(contrast.id for contrast in CONTRASTS),
    *("F.2", "F.6", "G.5A", "G.5B", *COHORT_TABLES),
)


def appendix_makers(
    rows: Sequence[Row], facts: PoolFacts, named_pools: Sequence[tuple[str, Path]], *, with_paper: bool
) -> Mapping[str, Maker]:
    """Return id -> function that makes the table. named_pools: (name, file) of --cohort; cohort tables need some."""
    makers: dict[str, Maker] = {s.id: partial(s.make, rows, with_paper=with_paper) for s in APPENDIX_SPECS}
    makers |= {contrast.id: partial(contrast.make, rows, facts, with_paper=with_paper) for contrast in CONTRASTS}
    makers |= {f"G.5{panel}": partial(by_depth, rows, panel, with_paper=with_paper) for panel in _PANELS}
    makers["F.2"] = partial(construction_table, facts.pools, with_paper=with_paper)
    makers["F.6"] = partial(by_kill_coverage, rows, facts.kill_coverage, with_paper=with_paper)
    if named_pools:
        cohorts = find_cohorts(rows, [(name, file_digest(path)) for name, path in named_pools])
        makers |= {id_: partial(cohort_table, cohorts, id_, with_paper=with_paper) for id_ in COHORT_TABLES}
    return makers
