"""Families as `calibrant family` asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from calibrant.bench.core.options import GivenOptions, OptionError
from calibrant.bench.families.capabilities import CountedFamily, Families
from calibrant.bench.logic.family.counted import (
    Counted,
    CountedModels,
    drawn_members,
    item_name,
    listed_members,
    rank_candidates,
    read_list,
    require_members,
)
from calibrant.bench.logic.family.presented import PresentedFamily, UncountedFamily
from calibrant.bench.logic.family.series import count_series, flag_of, is_series
from calibrant.bench.logic.family.words import data_lines
from calibrant.bench.logic.options import DataOptions, FamilyOptions
from calibrant.bench.terminal import HintedError, invocation
from calibrant.dsl.errors import CalibrantError, PoolError, in_one_line, short_repr
from calibrant.dsl.logic.clause import parse_clause
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.setup import candidate_experiments, read_candidates
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.logic.notes import task_notes
from calibrant.dsl.logic.records import write_pool
from calibrant.dsl.logic.task import Experiment, LogicError, Options, Task, check_experiments, fit_fraction
from calibrant.solvers.logic.data import read_data
from calibrant.solvers.logic.family import LogicFamily, solve_class, solve_family
from calibrant.solvers.outcome import Found

MAX_HEAD = 1_000  # bytes of a first line that show its format
NO_LIMIT = "none"  # of --size


class LogicFamilies:
    """Implements Families (bench.families.capabilities)."""

    def count(self, prior: Path, data: Path, options: GivenOptions) -> CountedFamily:
        stated: FamilyOptions = options.convert("logic", data.name)
        _require_order(prior, data)
        _check_fit(stated.fit)
        if is_series(data):
            return count_series(prior, data, stated, options.values.keys())
        for name in ("extra_errors", "max_parents"):
            if name in options.values:
                raise OptionError(f"it is about fully observed series; {data.name} has none", flag_of(name))
        if stated.draw and stated.first:
            raise OptionError("give one of --draw and --list", "--draw")
        if stated.seed is not None and not stated.draw:
            raise OptionError("it is about random members: give --draw", "--seed")
        task, dataset, notes = _read(prior, data, stated)
        outcome = solve_family(task)
        if not isinstance(outcome, Found):
            return UncountedFamily(outcome.reached, dataset, notes)
        family = _restrict(outcome.value, stated)
        total = solve_class(task)
        listed = () if stated.listed is None else read_list(stated.listed)
        counted = Counted(
            prior,
            data,
            dataset,
            stated,
            task,
            notes,
            outcome.value,
            family,
            total.value.count if isinstance(total, Found) else None,
            rank_candidates(family, _candidates(stated, task)),
            _members(family, stated),
            listed,
            None if stated.listed is None else family.compare(listed),
        )
        return PresentedFamily(counted)

    def recognizes(self, path: Path) -> bool:
        return path.suffix.lower() == ".sif"

    def convert(self, prior: Path, data: Path, out: Path, options: GivenOptions) -> Sequence[str]:
        if is_series(data):
            raise PoolError("a file of series; a pool of logic models is made of MIDAS data", file=data.name)
        _require_order(prior, data)
        stated: DataOptions = options.convert("logic", data.name)
        task, dataset, notes = _read(prior, data, stated)
        item = LogicItem(item_name(data), task)
        write_pool(out, item.id, [item])
        return (
            *data_lines(dataset),
            *(f"note  {note}" for note in notes),
            f"1 item, {in_one_line(item.id)}, written to {out}",
        )


def _require_order(prior: Path, data: Path) -> None:
    """Raise `HintedError` for files in the other order: the first has a head of MIDAS, the second none."""
    if _is_midas(prior) and not _is_midas(data):
        words = [str(prior), str(data)]
        exchanged = {words[0]: words[1], words[1]: words[0]}
        command = [exchanged.get(word, word) for word in invocation.get()]
        message = f"{prior.name} holds measurements; the prior network comes first, then the measurements"
        raise HintedError(message, command=command)


def _is_midas(path: Path) -> bool:
    """Return whether a file begins like MIDAS; False where it cannot be read, which is said later."""
    try:
        with path.open("rb") as file:
            return file.readline(MAX_HEAD).lstrip(b'\xef\xbb\xbf"').startswith((b"TR:", b"DA:", b"DV:", b"ID:"))
    except OSError:
        return False


def _check_fit(fit: str) -> None:
    """Raise `OptionError` for a tolerance that is no decimal, naming the option and not a file."""
    try:
        fit_fraction(fit)
    except LogicError:
        percent = fit.removesuffix("%")
        is_percent = fit.endswith("%") and percent.isascii() and percent.isdigit()
        example = f"{int(percent) / 100:g}" if is_percent and len(percent) < 4 else "0.1"
        raise OptionError(f"{short_repr(fit)}; a decimal of 0 or more, such as {example}, or any", "--fit") from None


def _read(prior: Path, data: Path, stated: DataOptions) -> tuple[Task, Dataset, tuple[str, ...]]:
    options = Options(stated.factor, stated.rounding, not stated.no_compress, stated.max_clause or 0)
    size = None if stated.size == NO_LIMIT else _whole_number(stated.size)
    task, dataset = read_data(
        prior, data, stated.time, fit=stated.fit, size=size, options=options, normalise=stated.normalise
    )
    return task, dataset, (*dataset.notes, *task_notes(task))


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise OptionError(f"{short_repr(text)}; a whole number from 0, or {NO_LIMIT}", "--size")
    return int(text)


def _restrict(family: LogicFamily, stated: FamilyOptions) -> LogicFamily:
    """Return the members that have and lack the clauses asked for."""
    for texts, present in ((stated.present, True), (stated.absent, False)):
        for text in texts:
            family = family.condition(parse_clause(text), present=present)
    return family


def _candidates(stated: FamilyOptions, task: Task) -> list[Experiment]:
    limits = {"max_stimuli": stated.max_stimuli, "max_inhibitors": stated.max_inhibitors}
    if stated.predict is None:
        return candidate_experiments(task.setup, **limits)
    candidates = read_candidates(stated.predict, **limits)
    try:
        check_experiments(tuple(candidates), task.setup)
    except CalibrantError as error:
        raise PoolError(str(error), file=stated.predict.name) from None
    return candidates


def _members(family: LogicFamily, stated: FamilyOptions) -> CountedModels | None:
    if not stated.draw and not stated.first:
        return None
    require_members(family)
    if stated.draw:
        return CountedModels(drawn_members(family, stated.draw, stated.seed or 0), is_drawn=True)
    return CountedModels(listed_members(family, stated.first or 0), is_drawn=False)


FAMILIES: Families = LogicFamilies()
