"""Operators of the language, with the sizes of their results checked before they are made."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, Final

from calibrant.dsl.causim.language.calls import add_values, charge_search, extend_list
from calibrant.dsl.causim.language.execution_limits import (
    CONTAINERS,
    NODES_PER_STEP,
    SCALARS,
    Frame,
    charge_copy,
    checked_number,
    weigh,
)
from calibrant.dsl.causim.language.randomness import Uniform, Unsupported

_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.items()))


def _times(frame: Frame, left_value: Any, right_value: Any) -> Any:
    for text, number in ((left_value, right_value), (right_value, left_value)):
        if type(text) in (str, list, tuple):
            if type(number) not in (int, bool):
                raise Unsupported("a text or list is multiplied by what is no integer")
            charge_copy(frame, len(text) * max(number, 0))
            result = text * number
            if type(result) is tuple:
                weigh(frame, result)
            return result
    return checked_number(left_value * right_value)


def _minus(frame: Frame, left_value: Any, right_value: Any) -> Any:
    for value in (left_value, right_value):
        if type(value) is set:
            weigh(frame, value)
        elif type(value) in _VIEWS:
            frame.spend(len(value))
        elif type(value) not in SCALARS and type(value) is not Uniform:
            raise Unsupported(f"- on {type(value).__name__}")
    return checked_number(left_value - right_value)


def _remainder(frame: Frame, left_value: Any, right_value: Any) -> Any:
    if type(left_value) is str:
        raise Unsupported("% on a string")
    return checked_number(left_value % right_value)


_BINARY: Final[dict[type[ast.operator], Callable[[Frame, Any, Any], Any]]] = {
    ast.Add: add_values,
    ast.Sub: _minus,
    ast.Mult: _times,
    ast.Div: lambda frame, left_value, right_value: left_value / right_value,
    ast.FloorDiv: lambda frame, left_value, right_value: checked_number(left_value // right_value),
    ast.Mod: _remainder,
}


def binary(kind: ast.operator) -> Callable[[Frame, Any, Any], Any]:
    """Return the function of an operator; `Unsupported` for one that is not in the language."""
    apply = _BINARY.get(type(kind))
    if apply is None:
        raise Unsupported(f"the operator {type(kind).__name__} is not in the language")
    return apply


def augmented_operator(kind: ast.operator) -> Callable[[Frame, Any, Any], Any]:
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


def _contains(element: Any, container: Any) -> bool:
    return element in container


def _lacks(element: Any, container: Any) -> bool:
    return element not in container


def _charge_membership(frame: Frame, element: Any, container: Any) -> None:
    """Charge a search; a range is gone through for what is no integer."""
    if type(container) is range and type(element) not in (int, bool):
        frame.spend(len(container) // NODES_PER_STEP)
    elif type(container) is str:
        charge_search(frame, container, element)


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


def compare_values(frame: Frame, compare: Callable[[Any, Any], Any], left_value: Any, right_value: Any) -> Any:
    """Compare two values; charge large or deep ones first."""
    for value in (left_value, right_value):
        if type(value) in CONTAINERS:
            weigh(frame, value)
        elif type(value) not in SCALARS and type(value) not in (Uniform, range):
            raise Unsupported(f"{type(value).__name__} is compared")
    if compare in (_contains, _lacks):
        _charge_membership(frame, left_value, right_value)
    return compare(left_value, right_value)
