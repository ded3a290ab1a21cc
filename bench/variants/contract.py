"""Contract of a benchmark whose items have variants, on native records; and renaming of JSON by a map of names."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, ClassVar, NamedTuple, TypeAlias, TypeVar

import msgspec

from calibrant.bench.core.capabilities import Capability
from calibrant.dsl.errors import CalibrantError

Record: TypeAlias = Mapping[str, Any]
T = TypeVar("T")
WORDING = "wording"  # field of records
_TOKEN = re.compile(r"[A-Za-z_]\w*")


class CopyMap(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Origin of a copy.

    of: id of the original; kind: of change
    names: from the original's names to the copy's; values: of names, from texts of values to those of the copy
    """

    of: str
    kind: str
    names: dict[str, str] = {}
    values: dict[str, dict[str, str]] = {}


class Variant(NamedTuple):
    """A copy of a record; names, values: as in its map, without those that stay."""

    record: dict[str, Any]
    names: Mapping[str, str] = {}
    values: Mapping[str, Mapping[str, str]] = {}


class Variable(ABC):
    """Items with variants.

    kinds: of changes, by name
    fixed: keys of records whose values have no names of the item: ids, labels, words of the format
    worded_by: fields that the kind `words` changes
    """

    kinds: ClassVar[Sequence[str]]
    fixed: ClassVar[frozenset[str]]
    worded_by: ClassVar[Sequence[str]] = (WORDING,)

    @abstractmethod
    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        """Return a copy with a change of that kind; None where the item has nothing to change so."""

    @abstractmethod
    def normal_form(self, record: Record, kind: str) -> Any:
        """Return what is equal for two records, ids and labels apart, that a change of that kind makes of each other.

        Names and values apart: these are changed by `map_record`.
        """

    def absence(self, record: Record) -> str:
        """Return why an item has no variants at all; empty if it may have some."""
        return ""

    def other_fields(self, record: Record, kind: str, fields: Collection[str]) -> dict[str, Any]:
        """Return a record without these fields, and without those of its wording if that is what changes."""
        left_out = {*fields, *(self.worded_by if kind == "words" else ())}
        return {key: value for key, value in record.items() if key not in left_out}

    def map_record(self, record: Record, stated: CopyMap) -> dict[str, Any]:
        """Return a record over the names and values of a copy; `CalibrantError` for values that cannot be mapped."""
        if stated.values:
            raise CalibrantError("values have no map here")
        mapped: dict[str, Any] = rename_json(record, stated.names, self.fixed)
        return mapped

    def map_answer(self, answer: Any, stated: CopyMap) -> Any:
        """Return an answer to the original as an answer to the copy."""
        return rename_json(answer, stated.names)


VARIANTS: Capability[Variable] = Capability("`variants`", "variants:VARIANTS")


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


def rephrase(record: Record) -> Variant:
    """Return a record whose prompt has the other of two wordings."""
    wording = "standard" if record.get(WORDING) == "rephrased" else "rephrased"
    return Variant({**record, WORDING: wording})


def shuffled(values: Sequence[T], random: Random) -> list[T]:
    """Return the values in another order, if there is one."""
    order = random.sample(range(len(values)), len(values))
    if len(values) > 1 and order == sorted(order):
        order = [*order[1:], order[0]]
    return [values[k] for k in order]


def permuted(names: Sequence[str], random: Random) -> dict[str, str]:
    """Return a permutation of names that moves some, if there are two."""
    return {name: new for name, new in zip(names, shuffled(names, random), strict=True) if name != new}
