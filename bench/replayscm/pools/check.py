"""Checks of a pool of ReplaySCM: does gold do what it claims, is it an official file, and what in it was not read."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.identity import IDENTITY
from calibrant.audits.replayscm.why.explanation import Limits, count_fitting
from calibrant.audits.soundness import Check, ItemIdentity
from calibrant.bench.pools.soundness import NOT_OFFICIAL, CheckReport, FirstItems, Note
from calibrant.bench.replayscm.extended.check import (
    forecast_difference,
    gold_rejection,
    heldout_difference,
    training_difference,
)
from calibrant.bench.replayscm.options import CheckOptions
from calibrant.bench.replayscm.pools.unused_fields import count_unused_fields
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.generation.problems import SETTINGS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.pools.published_files import BY_DIGEST, BY_NAME
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import illegality
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.solvers.budget import BudgetSpent
from calibrant.solvers.replayscm.roots import nested_variables

AMBIGUOUS, NOT_COUNTED, HEADER = "ambiguous", "not counted", "header"
COUNT_LIMITS = Limits(parent_sets=1_000_000, terms=1_000_000)  # below a second an item


def check_pools(paths: Iterable[Path], *, must_be_official: bool = False) -> Iterator[CheckReport]:
    """Yield a report for each file; a duplicate may stand in an earlier one."""
    first_items = FirstItems()
    for path in paths:
        yield check_pool(path, must_be_official=must_be_official, first_items=first_items)


def check_pool(path: Path, *, must_be_official: bool = False, first_items: FirstItems | None = None) -> CheckReport:
    """Read a pool and check every instance; `PoolError` if it cannot be read at all.

    first_items: of earlier files; this file's are added
    """
    first_items = first_items or FirstItems()
    pool = read_pool(path, keep_results=False)
    report = CheckReport(pool.name, file_digest(path), len(pool))
    notes: list[Note | None] = []
    for problem in pool.problems:
        notes.append(first_items.note_repeat(path, problem.id, IDENTITY.duplicate_key(problem)))
        notes += [_note_header(problem, pool.metadata), _note_ambiguous(problem)]
        for name, check in CHECKS.items():
            reason = check(problem)
            if reason is not None:
                report.applied[name] += 1
            if reason:
                report.failures.append((name, problem.id, reason))
    report.notes = [note for note in notes if note is not None] or None
    report.unread = count_unused_fields(path)
    report.official, genuine = _official(path.name, report.digest)
    report.official_failure = must_be_official and not genuine
    return report


def _note_header(problem: Problem, metadata: Mapping[str, Any]) -> Note | None:
    """Return the note that the header states another disclosure than the record has; records alone are read."""
    label = problem.task.disclosure.label
    for field in ("disclosure", "setting"):
        stated = str(metadata.get(field, "")).lower().replace("_", "-")
        if stated in SETTINGS and stated != label.lower():
            return Note(HEADER, problem.id, f"the record is {label}; the header states {field}: {stated}")
    return None


def _note_ambiguous(problem: Problem) -> Note | None:
    """Return the note that several SCMs of the headline class of `audit` fit, counted as `list --why` does.

    None for extended items, whose audits take minutes.
    """
    if problem.task.extension is not None:
        return None
    try:
        parts = count_fitting(problem.task, headline_parents(problem), COUNT_LIMITS)
    except (BudgetSpent, ValueError) as reason:
        return Note(NOT_COUNTED, problem.id, str(reason))
    space = parts.space
    words = f"{parts.count.in_words()} SCMs fit: {space.model_class.describe(space.task)}"
    if parts.state == "uncounted" and int(parts.count.lower) < 2:
        return Note(NOT_COUNTED, problem.id, words)
    return Note(AMBIGUOUS, problem.id, words) if parts.state in ("open", "uncounted") else None


def _official(name: str, digest: str) -> tuple[str, bool]:
    if digest in BY_DIGEST:
        return f"official file {BY_DIGEST[digest].name}", True
    if name in BY_NAME:
        return "has the name of an official file, but other bytes", False
    return NOT_OFFICIAL, False


def _gold_is_legal(problem: Problem) -> str | None:
    if problem.task.extension is not None:
        return gold_rejection(problem)
    return None if problem.sealed.gold is None else illegality(problem.task, problem.sealed.gold) or ""


def _reference_is_legal(problem: Problem) -> str | None:
    return None if problem.task.reference is None else illegality(problem.task, problem.task.reference) or ""


def _replays(model: Scm | None, panel: Panel) -> str | None:
    """Return the mismatch by the reference; it runs only where replay on whole columns, ten times faster, finds one."""
    if model is None:
        return None
    cell = None if replays(model, panel) else first_mismatch(model, panel.worlds)
    if cell is None:
        return ""
    return f"world {cell.world}, row {cell.row}: {cell.variable} is {cell.expected}, computed {cell.predicted}"


def _gold_replays_training(problem: Problem) -> str | None:
    if problem.task.extension is not None:
        return training_difference(problem)
    return _replays(problem.sealed.gold, problem.task.training)


def _gold_replays_heldout(problem: Problem) -> str | None:
    if problem.task.extension is not None:
        return heldout_difference(problem)
    return _replays(problem.sealed.gold, problem.sealed.heldout)


def _reference_replays_training(problem: Problem) -> str | None:
    return _replays(problem.task.reference, problem.task.training)


def _stated_size(problem: Problem) -> str | None:
    gold, stated = problem.sealed.gold, problem.sealed.gold_size
    if gold is None or stated is None:
        return None
    return "" if gold.size == stated else f"stated {stated}, counted {gold.size}"


def _roots_nested(problem: Problem) -> str | None:
    """Return which root columns are not nested over all worlds, held-out ones too; None where none need be."""
    gold = problem.sealed.gold
    if gold is None or not problem.task.shares_units:
        return None
    everything = dataclasses.replace(problem.task, training=Panel(problem.task.variables, problem.worlds))
    broken = sorted(set(gold.roots) - set(nested_variables(everything)))
    return f"columns of {', '.join(broken)} are not nested over the worlds" if broken else ""


def _unscored_worlds(worlds: tuple[World, ...], model: Scm) -> Iterator[str]:
    return (world.id for world in worlds if world.intervention.targets.issuperset(model.endogenous))


def _has_scored_cells(problem: Problem) -> str | None:
    """Without a scored training cell nothing can be train-exact."""
    gold = problem.sealed.gold
    if gold is None or not problem.task.training.worlds:
        return None
    unscored = list(_unscored_worlds(problem.task.training.worlds, gold))
    return "no training world has a scored cell" if len(unscored) == len(problem.task.training.worlds) else ""


CHECKS: Mapping[str, Check[Problem]] = {
    "gold is legal under the disclosure": _gold_is_legal,
    "gold replays its training worlds": _gold_replays_training,
    "gold replays its held-out worlds": _gold_replays_heldout,
    "some training cell is scored": _has_scored_cells,
    "stated gold size": _stated_size,
    "shared units: root columns are nested": _roots_nested,
    "reference is legal under the disclosure": _reference_is_legal,
    "reference replays its training worlds": _reference_replays_training,
    "forecasts are of the held-out worlds": forecast_difference,
}


class ScmChecks:
    """Implements Checkable (bench.pools.capabilities)."""

    def check(self, pools: Sequence[Path], options: CheckOptions) -> Iterator[CheckReport]:
        return check_pools(pools, must_be_official=options.official)

    @property
    def identity(self) -> ItemIdentity[Problem]:
        return IDENTITY


CHECK = ScmChecks()
