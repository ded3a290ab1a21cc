"""Values of variables and noise, told apart by their compact JSON text: `true`, `1`, `1.0` and `"1"` are four values.

Everywhere but in the interpreter a value *is* that text, called a symbol: symbols hash, sort and compare as values
should, where Python's own `True == 1 == 1.0` does not. A tuple is the list of its members behind the tag "tuple".
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from calibrant.dsl.errors import CalibrantError, short_repr

Symbol: TypeAlias = str
Assignment: TypeAlias = Mapping[str, Symbol]

_TAG = "tuple"
_INVALID = '{"not a value":'
_MAX_DEPTH = 20


class ModelError(CalibrantError):
    """A program, model, question or file of CauSim says something that cannot be meant; one line."""


def symbol(value: object) -> Symbol:
    """Return the symbol of a JSON scalar or a tuple of such; `ModelError` for anything else, for NaN and infinities."""
    return json.dumps(_encode(value, _MAX_DEPTH), separators=(",", ":"))


def value_of(text: Symbol) -> Any:
    """Return the Python value that a symbol stands for; `ModelError` for the placeholder of an invalid value."""
    if text.startswith(_INVALID):
        raise ModelError(f"{text} stands for something that is not a value")
    return _decode(json.loads(text))


def shown_value(text: Symbol) -> str:
    """Return a value as people read it: texts without quotation marks."""
    plain = value_of(text)
    return plain if isinstance(plain, str) else text


def loose_symbol(value: object) -> Symbol:
    """Return the symbol of anything that JSON decodes to; what is not a value gets a placeholder, equal to no symbol.

    The placeholder is a JSON object, which no value is, so that answers stay readable as JSON.
    """
    try:
        if isinstance(value, list) and value[:1] == [_TAG]:
            return symbol(_decode(value))
        return symbol(value)
    except (ModelError, ValueError, RecursionError):  # an integer beyond the interpreter's digit limit
        return _INVALID + json.dumps(type(value).__name__) + "}"


def is_value(text: Symbol) -> bool:
    """Return whether a symbol is that of a value, not the placeholder that `loose_symbol` gives anything else."""
    return not text.startswith(_INVALID)


def compact(value: object) -> str:
    """Compact JSON with sorted keys, the form in which prompts, files and answers are written."""
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def assignment_text(assignment: Assignment) -> str:
    """Return a mapping of names to symbols as compact JSON with sorted keys."""
    return "{" + ",".join(f"{json.dumps(name)}:{assignment[name]}" for name in sorted(assignment)) + "}"


def plain(assignment: Assignment) -> dict[str, Any]:
    """Return a mapping of names to JSON values, as files hold it."""
    return {name: json.loads(assignment[name]) for name in sorted(assignment)}


def symbols(values: Mapping[str, object]) -> dict[str, Symbol]:
    """Return the symbols of a decoded JSON object; `ModelError` names the key of what is no value."""
    by_name = {}
    for name, value in values.items():
        decoded = _decode(value) if isinstance(value, list) else value
        try:
            by_name[name] = symbol(decoded)
        except ModelError as error:
            raise ModelError(f"{short_repr(name)}: {error}") from None
    return by_name


def in_order(values: Iterable[Symbol]) -> tuple[Symbol, ...]:
    """Each value once, sorted by its text."""
    return tuple(sorted(set(values)))


def _encode(value: object, depth: int) -> object:
    if value is None or type(value) in (bool, str, int):
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise ModelError(f"{value} is not a value; finite numbers are")
    if type(value) is tuple and depth:
        return [_TAG, *(_encode(member, depth - 1) for member in value)]
    raise ModelError(f"{short_repr(value)} is not a value; JSON scalars and tuples of them are")


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        if value[:1] != [_TAG]:
            raise ModelError(f"{short_repr(value)} is not a value; a tuple is a list behind the tag {_TAG!r}")
        return tuple(_decode(member) for member in value[1:])
    return value
