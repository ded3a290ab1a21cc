"""Operators of the language, with the sizes of their results checked before they are made."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from dsl.causim.language.calls import added, extend_list
from dsl.causim.language.randomness import Uniform, Unsupported
from dsl.causim.language.work import CONTAINERS, SCALARS, Frame, check_size, checked_number, weigh

_VIEWS: Final[tuple[type, ...]] = (type(dict[Any, Any]().keys()), type(dict[Any, Any]().items()))


def _times(frame: Frame, one: Any, other: Any) -> Any:
    for text, number in ((one, other), (other, one)):
        if type(text) in (str, list, tuple):
            if type(number) not in (int, bool):
                raise Unsupported("a text or list is multiplied by what is no integer")
            check_size(len(text) * max(number, 0))
            frame.spend(len(text) * max(number, 0) // 64)
            result = text * number
            if type(result) is tuple:
                weigh(frame, result)
            return result
    return checked_number(one * other)


def _minus(frame: Frame, one: Any, other: Any) -> Any:
    for value in (one, other):
        if type(value) is set:
            weigh(frame, value)
        elif type(value) in _VIEWS:
            frame.spend(len(value))
        elif type(value) not in SCALARS and type(value) is not Uniform:
            raise Unsupported(f"- on {type(value).__name__}")
    return checked_number(one - other)


def _remainder(frame: Frame, one: Any, other: Any) -> Any:
    if type(one) is str:
        raise Unsupported("% on a string")
    return checked_number(one % other)


_BINARY: Final[dict[type[ast.operator], Callable[[Frame, Any, Any], Any]]] = {
    ast.Add: added,
    ast.Sub: _minus,
    ast.Mult: _times,
    ast.Div: lambda frame, one, other: one / other,
    ast.FloorDiv: lambda frame, one, other: checked_number(one // other),
    ast.Mod: _remainder,
}


def binary(kind: ast.operator) -> Callable[[Frame, Any, Any], Any]:
    """The function of an operator; `Unsupported` for one that is not in the language."""
    found = _BINARY.get(type(kind))
    if found is None:
        raise Unsupported(f"the operator {type(kind).__name__} is not in the language")
    return found


def augmented(kind: ast.operator) -> Callable[[Frame, Any, Any], Any]:
    """Return the function of an augmented assignment: the new value, which is the old one where Python changes that."""
    apply = binary(kind)

    def change(frame: Frame, old: Any, new: Any) -> Any:
        if type(old) is list and isinstance(kind, ast.Add):
            extend_list(frame, old, new)
            return old
        if type(old) is list and isinstance(kind, ast.Mult):
            old[:] = apply(frame, old, new)
            return old
        if type(old) is set and type(new) is set and isinstance(kind, ast.Sub):
            weigh(frame, old)
            weigh(frame, new)
            old -= new
            return old
        return apply(frame, old, new)

    return change


def _contains(one: Any, other: Any) -> bool:
    return one in other


def _lacks(one: Any, other: Any) -> bool:
    return one not in other


COMPARISONS: Final[dict[type[ast.cmpop], Callable[[Any, Any], Any]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: _contains,
    ast.NotIn: _lacks,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}


def compared(frame: Frame, compare: Callable[[Any, Any], Any], one: Any, other: Any) -> Any:
    """Whether a comparison holds; what is large or deep is weighed first."""
    for value in (one, other):
        if type(value) in CONTAINERS:
            weigh(frame, value)
        elif type(value) not in SCALARS and type(value) not in (Uniform, range):
            raise Unsupported(f"{type(value).__name__} is compared")
    return compare(one, other)
