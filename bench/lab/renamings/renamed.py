"""Renamed items, with the map of names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from random import Random
from typing import Any, NamedTuple, TypeVar

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
    rename: Callable[[Any, Random], RenamedItem] = import_module(f"calibrant.bench.lab.renamings.{benchmark}").rename
    return rename
