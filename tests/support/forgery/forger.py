"""Forgers of certificates, and mutations that they share."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from calibrant.audits.claims import Certificate

# --- What a forger of one kind of claim has: genuine certificates, forgeries that know the claim, and the truth -------
# The truth comes from brute force, from solvers or from what writes certificates, none of which a verifier uses.
Data: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Genuine:
    """A certificate that its writer made, with its item."""

    item: Any
    certificate: Certificate


@dataclass(frozen=True)
class Forger:
    """One kind of claim.

    genuine: certificates of that kind, of several items
    forged: data that only somebody who knows the claim would write, for an item
    is_true: whether the claim follows for an item in the class as worded; anything that it raises means no
    """

    genuine: Callable[[], Sequence[Genuine]]
    forged: Callable[[Genuine, Random], Iterator[Data]]
    is_true: Callable[[Any, Certificate], bool]


def nothing_forged(genuine: Genuine, rng: Random) -> Iterator[Data]:
    """No data of its own: the changes at every place are all."""
    yield from ()


def is_same(first: object, second: object) -> bool:
    """Equality of JSON in which true is not 1, 1 is 1.0 and -0.0 is 0.0."""
    return _text(first) == _text(second)


def _text(value: object) -> str:
    return json.dumps(_as_floats(value), sort_keys=True)


def _as_floats(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _as_floats(below) for key, below in value.items()}
    if isinstance(value, list | tuple):
        return [_as_floats(below) for below in value]
    return value + 0.0 if isinstance(value, int | float) and not isinstance(value, bool) else value  # -0.0 is 0.0


def has_shape(data: Data, **types: type) -> bool:
    """Whether these are the fields, each of exactly that type; whole numbers pass for floats."""
    if set(data) != set(types):
        return False
    return all(type(data[name]) is kind or (kind is float and type(data[name]) is int) for name, kind in types.items())


# --- Changes of JSON values, systematic and seeded: what a forger does to a certificate without knowing what it
# means
Path: TypeAlias = tuple[str | int, ...]

ODD: tuple[Any, ...] = (None, True, False, -1, 0, 1.5, 10**30, 1e300, "xy", "", [], {}, [[]], {"x": 1}, "\ud800")


def paths(value: Any, above: Path = ()) -> Iterator[Path]:
    """Every place in a JSON value, the outermost first."""
    yield above
    if isinstance(value, dict):
        for key, below in value.items():
            yield from paths(below, (*above, key))
    elif isinstance(value, list):
        for index, below in enumerate(value):
            yield from paths(below, (*above, index))


def value_at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def with_value(value: Any, path: Path, new: Any) -> Any:
    """Return a copy with another value at one place."""
    if not path:
        return new
    changed = copy.deepcopy(value)
    value_at(changed, path[:-1])[path[-1]] = new
    return changed


def without(value: Any, path: Path) -> Any:
    """Return a copy without the entry at one place."""
    changed = copy.deepcopy(value)
    del value_at(changed, path[:-1])[path[-1]]
    return changed


def one_place_mutants(value: Any, rng: Random, number: int) -> Iterator[Any]:
    """So many copies, each changed at a drawn place below the top: odd values, near ones, entries more or fewer."""
    places = [path for path in paths(value) if path]
    for _ in range(number if places else 0):
        path = rng.choice(places)
        yield (
            with_value(value, path, _other(value_at(value, path), rng)) if rng.random() < 0.8 else without(value, path)
        )


def _other(value: Any, rng: Random) -> Any:
    near = list(_near(value, rng))
    return rng.choice(near) if near and rng.random() < 0.7 else copy.deepcopy(rng.choice(ODD))


def _near(value: Any, rng: Random) -> Iterator[Any]:
    """Values of the same type that differ little, and some that are equal but written otherwise."""
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int | float):
        yield from (value + 1, value - 1, -value, value * 2, float(value), str(value))
    elif isinstance(value, str):
        yield from (value + " ", value.upper(), value[:-1], value[::-1], f"{value}1")
        if value.lstrip("-").isdigit():
            yield from (str(int(value) + 1), f"0{value}", int(value))
    elif isinstance(value, list) and value:
        shuffled = copy.deepcopy(value)
        rng.shuffle(shuffled)
        yield from (shuffled, value[:-1], value[1:], [*value, copy.deepcopy(rng.choice(value))], value[::-1])
    elif isinstance(value, dict):
        yield {**value, "extra": 1}
        if value:
            key = rng.choice(list(value))
            yield from ({k: v for k, v in value.items() if k != key}, {**value, f"{key}2": value[key]})
            values = list(value.values())
            rng.shuffle(values)
            yield dict(zip(value, values, strict=True))


def doubled_fields(text: str) -> Iterator[str]:
    """Texts in which one object has a field twice, with another value first: at every level, one for each field."""
    for at, letter in enumerate(text):
        if letter == "{" and (end := text.find('"', at + 2)) > 0 and text[at + 1 : at + 2] == '"':
            yield f"{text[: at + 1]}{text[at + 1 : end + 1]}:null,{text[at + 1 :]}"
