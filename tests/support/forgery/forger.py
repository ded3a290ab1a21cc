"""What a forger of one kind of claim has: genuine certificates, forgeries that know the claim, and the truth.

The truth comes from brute force, from solvers or from what writes certificates, none of which a verifier uses.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

from calibrant.audits.claims import Certificate

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
