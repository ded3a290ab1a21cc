"""The command `python -m calibrant.bench.lab.renamings`: rates and answers of rows under other names and orders."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.registry import benchmark, benchmark_of, bundled_files, bundled_sample
from calibrant.bench.core.scoring import AnswerContext
from calibrant.bench.protocols import (
    Protocol,
    applicable_protocols,
    chosen_protocols,
    left_out,
    read_pool_once,
    replace_words,
)
from calibrant.bench.report.table import ResultTable
from calibrant.bench.runs.workers import timed_answer
from calibrant.bench.variants import VARIANTS, CopyMap
from calibrant.dsl.errors import CalibrantError

# --- Renamed items, with the map of names -----------------------------------------------------------------------------
T = TypeVar("T")

RENAMED = ("replayscm", "blickets", "causalab", "causim", "logic")  # benchmarks whose items can be renamed here


class Alike(NamedTuple):
    """Names and values that nothing in an item tells apart.

    roles: name -> text that is equal for objects that are alike; value_roles: of names, value -> number
    """

    roles: Mapping[str, str] = {}
    value_roles: Mapping[str, Mapping[Any, int]] = {}


class RenamedItem(NamedTuple):
    """An item with other names and orders.

    names: old name -> new name; answers over the old names become answers over the new ones
    columns: of tables of probabilities, the old place of each new column; empty where they stay
    value_roles: of new names, value -> number that is equal for values that nothing in the item tells apart
    values: of answers that assign values to old names, old value -> new value
    roles: new name -> text that is equal for objects that nothing in the item tells apart; empty where there are none
    exchanges: maps of new names to new names that leave the item as it is
    map_answer: in place of names and values, from answers to the original to those to the item
    """

    item: Any
    names: Mapping[str, str]
    columns: tuple[int, ...] = ()
    roles: Mapping[str, str] = {}
    values: Mapping[str, Mapping[Any, Any]] = {}
    value_roles: Mapping[str, Mapping[Any, int]] = {}
    exchanges: tuple[Mapping[str, str], ...] = ()
    map_answer: Callable[[Any], Any] | None = None


def shuffled(sequence: Sequence[T], random: Random) -> list[T]:
    """Return the elements in a random order."""
    return random.sample(sequence, len(sequence))


def permuted_names(names: Sequence[str], random: Random) -> dict[str, str]:
    """Return a random permutation of names: the pool's names stay, what they stand for changes."""
    return dict(zip(names, shuffled(names, random), strict=True))


def renamer(benchmark: str) -> Callable[[Any, Random], RenamedItem]:
    """Return the function that renames and reorders an item of a benchmark; its id stays."""
    rename: Callable[[Any, Random], RenamedItem] = import_module(f"calibrant.bench.lab.{benchmark}").rename
    return rename


# --- Answers of a row to a pool and to its renamings: rates of the table in every digit, and answers up to the names
_TOKEN = re.compile(r"\w+")
_TIMES = ("seconds_median", "seconds_max")


@dataclass(frozen=True)
class Invariance:
    """Outcome for one row on one pool.

    rates: "setting metric" -> rate in the table, of the pool as it is and of each renaming
    num_different: answers, over all renamings, that are not the renamed answer to the original
    different: ids of the items with such an answer; num_crashed: crashes on the originals and all renamings
    """

    row: str
    rates: Sequence[Mapping[str, str]]
    num_answers: int
    num_different: int
    different: Sequence[str]
    num_crashed: int = 0

    @cached_property
    def moved(self) -> dict[str, list[str]]:
        """Return metric -> all its values, for metrics whose rates differ in some digit."""
        listed = {key: sorted({rates[key] for rates in self.rates}) for key in self.rates[0]}
        return {key: values for key, values in listed.items() if len(values) > 1}

    def line(self) -> str:
        """Return one line for a terminal."""
        ranges = ", ".join(f"{key} {values[0]} to {values[-1]}" for key, values in self.moved.items())
        rates = f"rates move: {ranges}" if self.moved else "rates equal in every digit"
        if self.num_crashed:
            return f"{self.row}: {self.num_crashed} answers are crashes"
        if not self.num_different:
            return f"{self.row}: {rates}; all {self.num_answers} answers equal up to the names"
        which = f" (items {', '.join(self.different[:3])}{', ...' if len(self.different) > 3 else ''})"
        return f"{self.row}: {rates}; {self.num_different} of {self.num_answers} answers differ{which}"


def measure(
    bench: Benchmark[Any],
    items: Sequence[Any],
    protocol: Protocol,
    *,
    times: int,
    seed: int,
    change: Callable[[Any, Random], RenamedItem | None] | None = None,
) -> Invariance:
    """Answer the items and so many copies of them by one row, and compare.

    change: returns a copy, or None for an item without one, which is then answered as it is; by default a renaming
    """
    change = change or renamer(bench.name)
    rates, num_different, num_crashed, different = [], 0, 0, dict[str, None]()
    originals: dict[str, Any] = {}
    for number in range(times + 1):
        table = ResultTable(bench.metrics)
        for index, item in enumerate(items):
            renamed = RenamedItem(item, {})
            if number:
                renamed = change(item, Random(f"{seed} {number} {index}")) or renamed
            answer = _answer(bench, renamed.item, protocol, table, len(items))
            num_crashed += answer["outcome"] == "crashed"
            if not number:
                originals[item.id] = answer
            elif not _is_renamed(originals[item.id], answer, renamed):
                num_different += 1
                different[item.id] = None
        rates.append(_rates(table))
    return Invariance(protocol.name, rates, times * len(items), num_different, tuple(different), num_crashed)


def _answer(bench: Benchmark[Any], item: Any, protocol: Protocol, table: ResultTable, size: int) -> Any:
    result = timed_answer(protocol, bench.handout(item))
    answered = bench.scoring.no_answer(item) if result.result.answer is None else result.result.answer
    score = bench.scoring.score(item, answered, result.steps or ())
    setting = bench.metrics.row_group(item.setting, "")
    context = AnswerContext(
        protocol.name, "pool", "", size, item.id, setting, "", outcome=result.result.outcome, benchmark=bench.name
    )
    table.add(context, score)
    return {"answer": answered, "outcome": result.result.outcome}


def _is_renamed(original: Any, answer: Any, renamed: RenamedItem) -> bool:
    """Return whether an answer is the original one over the new names, objects that are alike exchanged or not."""
    if renamed.map_answer is not None and original["outcome"] == "found":
        original = {**original, "answer": renamed.map_answer(original["answer"])}
    if renamed.values and original["outcome"] == "found":
        assigned = {key: renamed.values[key].get(value, value) for key, value in original["answer"].items()}
        original = {**original, "answer": assigned}
    expected, probabilities = replace_words(original, _TOKEN, renamed.names), original["answer"].get("probabilities")
    if probabilities is not None and renamed.columns:
        expected["answer"]["probabilities"] = [[row[place] for place in renamed.columns] for row in probabilities]
    if renamed.value_roles and original["outcome"] == answer["outcome"] == "found":
        expected, answer = (_with_roles(content["answer"], renamed.value_roles) for content in (expected, answer))
    exchanged = [replace_words(expected, _TOKEN, exchange) for exchange in ({}, *renamed.exchanges)]
    return any(
        normal(replace_words(content, _TOKEN, roles)) == normal(replace_words(answer, _TOKEN, roles))
        for content in exchanged
        for roles in ({}, renamed.roles)
    )


def _with_roles(answer: Mapping[str, Any], roles: Mapping[str, Mapping[Any, int]]) -> dict[str, Any]:
    return {key: roles[key].get(value, value) for key, value in answer.items()}


def _rates(table: ResultTable) -> dict[str, str]:
    return {
        f"{row['setting']} {key}": repr(value)
        for row in table.to_json()
        for key, value in row.items()
        if key not in _TIMES
    }


def normal(content: Any) -> Any:
    """Return JSON in which lists of texts are sorted: they are sets of names."""
    if isinstance(content, Mapping):
        return {key: normal(value) for key, value in sorted(content.items())}
    if isinstance(content, list):
        parts = [normal(part) for part in content]
        return sorted(parts) if all(isinstance(part, str) for part in parts) else parts
    return content


# --- Copies of items by the kinds of `calibrant variants`, as the measurement of renamings takes them -----------------
Change: TypeAlias = Callable[[Any, Random], RenamedItem | None]


def changer(bench: Benchmark[Any], kind: str) -> Change:
    """Return the function that changes an item by a kind; it returns None where the item has no such copy."""
    variable = bench.require(VARIANTS)
    alike = getattr(import_module(f"calibrant.bench.lab.{bench.name}"), "alike", lambda _: Alike())

    def change(item: Any, random: Random) -> RenamedItem | None:
        variant = variable.vary(msgspec.to_builtins(bench.items.record(item)), kind, random)
        if variant is None:
            return None
        values = {key: dict(moved) for key, moved in variant.values.items()}
        stated = CopyMap(item.id, kind, dict(variant.names), values)
        copy = bench.items.item_of_record(variant.record | {"id": item.id})
        roles, value_roles = alike(copy)
        return RenamedItem(
            copy,
            {},
            roles=roles,
            value_roles=value_roles,
            map_answer=lambda answer: variable.map_answer(answer, stated),
        )

    return change


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each row and pool; 1 if a rate moves, an answer differs or a method crashes."""
    parser = argparse.ArgumentParser(prog="python -m calibrant.bench.lab.renamings", description=__doc__)
    parser.add_argument("pools", nargs="*", type=Path, help="pool files; by default all bundled pools")
    parser.add_argument("--rows", default="all", help="protocols, with commas between them")
    parser.add_argument("--times", type=int, default=6, help="renamings")
    parser.add_argument("--items", type=int, help="only the first so many items of each pool")
    parser.add_argument(
        "--every", type=int, default=1, help="only every so manyth item of each pool, from the first on"
    )
    parser.add_argument("--kinds", help="kinds of `calibrant variants` in place of renamings, with commas; or all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    paths = options.pools or list(_bundled())
    if options.kinds is not None:
        kinds = {"all"}.union(*(benchmark_of(path).require(VARIANTS).kinds for path in paths))
        if unknown := sorted({*options.kinds.split(",")} - kinds):
            parser.error(f"--kinds: '{unknown[0]}' is none of {', '.join(sorted(kinds))}")
    moved = False
    for path in paths:
        bench = benchmark_of(path)
        protocols = applicable_protocols(bench, [path])
        items = read_pool_once(bench, path)[1].items[:: options.every][: options.items]
        missing = left_out(protocols)
        for row in protocols if options.rows == "all" else options.rows.split(","):
            if row in missing:
                print(f"{path.name}: {row}: left out, {missing[row]}", flush=True)
                continue
            (protocol,) = chosen_protocols(protocols, row, {})
            protocol.warm_up()
            for kind, change in _changes(bench, options.kinds):
                result = measure(bench, items, protocol, times=options.times, seed=options.seed, change=change)
                moved |= bool(result.moved or result.num_different or result.num_crashed)
                print(f"{path.name}: {kind}{result.line()}", flush=True)
    return int(moved)


def _changes(bench: Benchmark[Any], kinds: str | None) -> Iterator[tuple[str, Change | None]]:
    """Yield the kinds of changes, with marks for their lines."""
    if kinds is None:
        yield "", None
        return
    available = bench.require(VARIANTS).kinds
    for kind in available if kinds == "all" else [kind for kind in kinds.split(",") if kind in available]:
        yield f"{kind}: ", changer(bench, kind)


def _bundled() -> Iterator[Path]:
    for name, files in bundled_files().items():
        if name in RENAMED:
            yield from files
            yield from map(bundled_sample, benchmark(name).bundled_extras)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CalibrantError as error:
        sys.exit(str(error))
