"""Changes of JSON values, systematic and seeded: what a forger does to a certificate without knowing what it means."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from random import Random
from typing import Any, TypeAlias

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
