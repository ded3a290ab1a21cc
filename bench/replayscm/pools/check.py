"""Checks of a pool of ReplaySCM: whether gold reproduces the worlds, official files, and fields that are not read."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from calibrant.audits.claims import Check, ItemIdentity
from calibrant.audits.replayscm.ambiguity import headline_parents
from calibrant.audits.replayscm.extended.items import heldout_requests
from calibrant.audits.replayscm.findings import IDENTITY
from calibrant.audits.replayscm.why.explanation import Limits, count_fitting
from calibrant.bench.pools.soundness import NOT_OFFICIAL, CheckReport, FirstItems, Note
from calibrant.bench.replayscm.options import CheckOptions
from calibrant.dsl.formulas.text import render
from calibrant.dsl.records import file_digest, plain_pool, pool_lines
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.evaluator import replays
from calibrant.dsl.replayscm.extensions.extension import is_flipped
from calibrant.dsl.replayscm.extensions.reference import replay_row
from calibrant.dsl.replayscm.extensions.scores import check_map
from calibrant.dsl.replayscm.generation.problems import SETTINGS
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.pools.official import BY_DIGEST, BY_NAME, problem_from_official
from calibrant.dsl.replayscm.pools.runtime_yaml import raw_records
from calibrant.dsl.replayscm.reference import first_mismatch
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.submission import Rejection, illegality
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.dsl.text import plural
from calibrant.solvers.outcome import BudgetSpent
from calibrant.solvers.replayscm.roots_and_parents import nested_variables

# --- Unused fields of an official file: those that the reader does not touch, recorded while it reads -----------------


class _Watched(dict[str, Any]):
    """A dictionary that records which of its keys were read, in `read_keys`."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        super().__init__({key: _watch(value) for key, value in raw.items()})
        self.read_keys: set[str] = set()

    def get(self, key: str, default: Any = None) -> Any:
        self.read_keys.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        self.read_keys.add(key)
        return super().__getitem__(key)

    def items(self) -> Any:
        self.read_keys.update(self.keys())
        return super().items()

    def values(self) -> Any:
        self.read_keys.update(self.keys())
        return super().values()


def _watch(value: Any) -> Any:
    if isinstance(value, dict):
        return _Watched(value)
    return [_watch(item) for item in value] if isinstance(value, list) else value


def count_unused_fields(path: Path) -> Mapping[str, int]:
    """Return path of a field that was not read -> number of records; list elements have the path `name[]`.

    Empty for the native format, whose fields are all read. Requires a file that was read without error.
    """
    with plain_pool(path) as plain:
        first = next(pool_lines(plain), None)
    if first is not None and first.text.lstrip().startswith("{"):
        return {}
    counts: Counter[str] = Counter()
    for index, raw in enumerate(raw_records(path)):
        record = _Watched(raw)
        problem_from_official(record, index)
        counts.update(set(_unread(record, "")))
    return dict(sorted(counts.items()))


def _unread(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _unread(item, f"{path}[]")
    if not isinstance(value, _Watched):
        return
    for key in value.keys() - value.read_keys:
        yield f"{path}.{key}".lstrip(".")
    for key in value.read_keys & value.keys():
        child = dict.__getitem__(value, key)
        if not isinstance(child, _Watched) or child.read_keys:  # else it was taken as a whole
            yield from _unread(child, f"{path}.{key}")


# --- Checks of extended items: gold and seed reproduce the rows; the worlds to forecast are the held-out ones ---------
MEASURED = "flips follow from sealed.seed: leave it out for measured rows"


def row_difference(problem: Problem, worlds: Sequence[World], *, is_noisy: bool) -> str | None:
    """Return the first cell that gold, with the flips of the seed, does not reproduce; empty if there is none.

    None if that cannot be computed: without gold, or under noise without a seed or stated rates.
    """
    gold, seed = problem.sealed.gold, problem.sealed.seed
    scm_class = task_class(problem.task)
    rates = problem.sealed.rates if is_noisy else {}
    is_noiseless = scm_class.noise.is_noiseless or not is_noisy
    if gold is None or not worlds or (not is_noiseless and (seed is None or not rates)):
        return None
    for index, world in enumerate(worlds):
        targets = world.intervention.targets
        for row, values in enumerate(world.rows()):
            clamped = {v: values[v] for v in targets}
            flipped = frozenset(
                v
                for v, rate in rates.items()
                if v not in targets and seed is not None and is_flipped(seed, index, row, v, rate)
            )
            computed = replay_row(scm_class, gold.local_functions, values, clamped, flipped)
            for variable in scm_class.endogenous:
                if computed[variable] != values[variable]:
                    replayed, expected = computed[variable], values[variable]
                    reason = f"world {world.id}, row {row}: {variable} is {expected}, computed {replayed}"
                    return reason if is_noiseless else f"{reason}; {MEASURED}"
    return ""


def gold_rejection(problem: Problem) -> str | None:
    """Return the reason why gold is no legal answer; empty if it is legal, None without gold."""
    gold = problem.sealed.gold
    if gold is None:
        return None
    texts = {v: render(mechanism) for v, mechanism in gold.mechanisms.items()}
    checked = check_map(task_class(problem.task), problem.task.grammar, {"mechanisms": texts})
    return checked.reason if isinstance(checked, Rejection) else ""


def training_difference(problem: Problem) -> str | None:
    """Return the first training cell that gold does not reproduce; see `row_difference`."""
    return row_difference(problem, problem.task.training.worlds, is_noisy=True)


def heldout_difference(problem: Problem) -> str | None:
    """Return the first held-out cell, all noise-free, that gold does not reproduce; see `row_difference`."""
    return row_difference(problem, problem.sealed.heldout.worlds, is_noisy=False)


def forecast_difference(problem: Problem) -> str | None:
    """Return how the worlds to forecast differ from the held-out ones; empty if they are equal, None without any."""
    extension = problem.task.extension
    if extension is None or not extension.forecast_worlds:
        return None
    scm_class = task_class(problem.task)
    heldout = [(dict(do), tuple(contexts)) for do, contexts in heldout_requests(problem, scm_class)]
    stated = [
        (dict(world.constants), tuple(_context_of(context) for context in world.contexts))
        for world in extension.forecast_worlds
    ]
    if len(stated) != len(heldout):
        return f"{plural(len(stated), 'worlds')} to forecast, {len(heldout)} held out"
    for index, (forecast, true) in enumerate(zip(stated, heldout, strict=True)):
        # an intervention overwrites the values of the roots that it sets
        free = [i for i, root in enumerate(scm_class.roots) if root not in forecast[0]]
        if forecast[0] != true[0] or _select_bits(forecast[1], free) != _select_bits(true[1], free):
            return f"world {index} to forecast is not the held-out one"
    return ""


def _context_of(context: str) -> int:
    return int(context[::-1] or "0", 2)  # the first character is the first root, bit 0


def _select_bits(contexts: Sequence[int], positions: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the bits at these places of each context."""
    return [tuple(context >> position & 1 for position in positions) for context in contexts]


AMBIGUOUS, NOT_COUNTED, HEADER = "ambiguous", "not counted", "header"
COUNT_LIMITS = Limits(parent_sets=1_000_000, terms=1_000_000)  # keeps a check below a second an item


def check_pools(paths: Iterable[Path], *, must_be_official: bool = False) -> Iterator[CheckReport]:
    """Yield a report for each file; items are compared with those of earlier files for duplicates."""
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
    """Return a note if the header states another disclosure than the record, which is the one in effect."""
    label = problem.task.disclosure.label
    for field in ("disclosure", "setting"):
        stated = str(metadata.get(field, "")).lower().replace("_", "-")
        if stated in SETTINGS and stated != label.lower():
            return Note(HEADER, problem.id, f"the record is {label}; the header states {field}: {stated}")
    return None


def _note_ambiguous(problem: Problem) -> Note | None:
    """Return a note if several SCMs of `audit`'s class of verdicts fit, counted as by `list --why`.

    None for extended items, whose audits take seconds each (3 s for one of the bundled episodes).
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
    """Return the first mismatch, by the reference replay, which runs only if the ten times faster one finds some."""
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
    """Return which root columns are not nested over all worlds; empty if none, None if units are not shared."""
    gold = problem.sealed.gold
    if gold is None or not problem.task.shares_units:
        return None
    everything = dataclasses.replace(problem.task, training=Panel(problem.task.variables, problem.worlds))
    broken = sorted(set(gold.roots) - set(nested_variables(everything)))
    return f"columns of {', '.join(broken)} are not nested over the worlds" if broken else ""


def _unscored_worlds(worlds: tuple[World, ...], model: Scm) -> Iterator[str]:
    return (world.id for world in worlds if world.intervention.targets.issuperset(model.endogenous))


def _has_scored_cells(problem: Problem) -> str | None:
    """Return a failure if no training cell is scored, since no answer could then be train-exact."""
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
