"""Contract of a benchmark whose items have variants, on native records; and renaming of JSON by a map of names."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from calibrant.bench.core.capabilities import Capability

Record: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
_TOKEN = re.compile(r"[A-Za-z_]\w*")


class Variant(NamedTuple):
    """A copy of a record; names: from the original's names to the copy's, without those that stay."""

    record: dict[str, Any]
    names: dict[str, str]


class Variable(Protocol):
    """Items with variants.

    kinds: of changes, by name
    fixed: keys of records whose values have no names of the item: ids, labels, words of the format
    """

    kinds: Sequence[str]
    fixed: frozenset[str]

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        """Return a copy with a change of that kind; None where the item has nothing to change so."""
        ...

    def normal_form(self, record: Record) -> Any:
        """Return what is equal for two records, ids and labels apart, that differ in orders without a meaning alone."""
        ...


VARIANTS: Capability[Variable] = Capability("`variants`")


def rename_json(value: Any, names: Mapping[str, str], fixed: frozenset[str] = frozenset()) -> Any:
    """Return JSON with each name in keys and texts replaced at once; values under fixed keys stay."""
    if isinstance(value, str):
        return _TOKEN.sub(lambda match: names.get(match[0], match[0]), value)
    if isinstance(value, Mapping):
        return {
            rename_json(key, names): part if key in fixed else rename_json(part, names, fixed)
            for key, part in value.items()
        }
    if isinstance(value, list | tuple):
        return [rename_json(part, names, fixed) for part in value]
    return value


def shuffled(values: Sequence[T], random: Random) -> list[T]:
    """Return the values in another order, if there is one."""
    order = random.sample(range(len(values)), len(values))
    if len(values) > 1 and order == sorted(order):
        order = [*order[1:], order[0]]
    return [values[k] for k in order]


def permuted(names: Sequence[str], random: Random) -> dict[str, str]:
    """Return a permutation of names that moves some, if there are two."""
    return {name: new for name, new in zip(names, shuffled(names, random), strict=True) if name != new}
