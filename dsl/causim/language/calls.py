"""Functions, methods and operators that programs may use, each with its limits checked before it works.

`sum` adds from left to right on every version of Python; `zip`, `enumerate` and `reversed` are read at once.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable
from typing import Any, Final

from calibrant.dsl.causim.language.execution_limits import (
    CONTAINERS,
    MEMBERS_PER_STEP,
    NODES_PER_STEP,
    SCALARS,
    Frame,
    charge_copy,
    charge_value,
    check_size,
    checked_number,
    list_members,
    require_ordered,
    text_of,
)
from calibrant.dsl.causim.language.randomness import Uniform, Unsupported

# --- The functions and methods that programs may call, each with its limits checked before it works -------------------
Function = Callable[..., Any]


def _len(frame: Frame, value: Any) -> int:
    return len(value)


def _extreme(function: Function) -> Function:
    def call(frame: Frame, *values: Any, **keywords: Any) -> Any:
        if len(values) == 1:
            (collection,) = values
            if type(collection) is set and all(type(member) is str for member in collection):
                # the extreme of different texts does not depend on their order
                frame.spend(len(collection) // NODES_PER_STEP)
                values = tuple(collection)
            else:
                values = tuple(list_members(frame, collection))
            if not values:
                return keywords["default"]
        for value in values:
            if type(value) is not Uniform:
                charge_value(frame, value)
        return function(values)

    return call


def _sum(frame: Frame, iterable: Any, start: Any = 0) -> Any:
    total = start
    for member in list_members(frame, iterable):
        if type(total) is str or type(member) is str:
            raise Unsupported("sum of strings")
        total = add_values(frame, total, member)
    return total


def add_values(frame: Frame, left_value: Any, right_value: Any) -> Any:
    """`one + other`."""
    kind = type(left_value)
    if kind in (str, list, tuple) and type(right_value) is kind:
        charge_copy(frame, len(left_value) + len(right_value))
        result = left_value + right_value
        if kind is tuple:
            charge_value(frame, result)
        return result
    return checked_number(left_value + right_value)


def _call_sorted(frame: Frame, iterable: Any, *, reverse: Any = False) -> list[Any]:
    if type(iterable) is set:
        charge_copy(frame, len(iterable))
    elements = list(iterable) if type(iterable) is set else list_members(frame, iterable)
    charge_value(frame, elements)
    frame.spend(len(elements))
    return sorted(elements, reverse=bool(reverse))


def _call_any(frame: Frame, iterable: Any) -> bool:
    return any(_few_steps(frame, iterable))


def _call_all(frame: Frame, iterable: Any) -> bool:
    return all(_few_steps(frame, iterable))


def _few_steps(frame: Frame, iterable: Iterable[Any]) -> Iterable[Any]:
    for member in iterable:
        frame.spend(1)
        yield member


def _range(frame: Frame, *limits: Any) -> range:
    return range(*limits)


def _zip(frame: Frame, *iterables: Any) -> Any:
    return _iterate_pairs(frame, list(zip(*[list_members(frame, iterable) for iterable in iterables], strict=False)))


def _enumerate(frame: Frame, iterable: Any, start: Any = 0) -> Any:
    return _iterate_pairs(frame, list(enumerate(list_members(frame, iterable), start)))


def _iterate_pairs(frame: Frame, pairs: list[Any]) -> Any:
    for pair in pairs[:1]:
        charge_value(frame, pair)  # so that tuples of tuples of tuples do not nest without end
    return iter(pairs)


def _call_reversed(frame: Frame, sequence: Any) -> Any:
    if type(sequence) not in (str, list, tuple, dict, range):
        raise Unsupported(f"reversed of {type(sequence).__name__}")
    return iter(list_members(frame, sequence)[::-1])


def _str(frame: Frame, value: Any = "") -> str:
    return text_of(frame, value)


def _int(frame: Frame, value: Any = 0) -> Any:
    if type(value) is str:
        frame.spend(len(value) // NODES_PER_STEP)
    return checked_number(int(value))


def _float(frame: Frame, value: Any = 0.0) -> float:
    if type(value) is str:
        frame.spend(len(value) // NODES_PER_STEP)
    return float(value)


def _bool(frame: Frame, value: Any = False) -> bool:
    return bool(value)


def _list(frame: Frame, iterable: Any = ()) -> list[Any]:
    return list_members(frame, iterable)


def _tuple(frame: Frame, iterable: Any = ()) -> tuple[Any, ...]:
    elements = tuple(list_members(frame, iterable))
    charge_value(frame, elements)
    return elements


def _set(frame: Frame, iterable: Any = ()) -> set[Any]:
    if type(iterable) is set:
        charge_copy(frame, 8 * len(iterable))  # a member of a set takes as much as eight of a list
        return set(iterable)
    elements = list_members(frame, iterable)
    charge_value(frame, elements)
    return set(elements)


def _dict(frame: Frame, items: Any = ()) -> dict[Any, Any]:
    if type(items) is dict:
        frame.spend(len(items) // NODES_PER_STEP)
        return dict(items)
    return dict(list_members(frame, items))


def _abs(frame: Frame, value: Any) -> Any:
    return abs(value)


def _round(frame: Frame, number: Any, ndigits: Any = None) -> Any:
    if ndigits is not None and not -20 <= ndigits <= 20:
        raise Unsupported("round to more than 20 digits")
    return checked_number(round(number) if ndigits is None else round(number, ndigits))


BUILTINS: Final[dict[str, Function]] = {
    "len": _len,
    "min": _extreme(min),
    "max": _extreme(max),
    "sum": _sum,
    "sorted": _call_sorted,
    "any": _call_any,
    "all": _call_all,
    "range": _range,
    "zip": _zip,
    "enumerate": _enumerate,
    "str": _str,
    "int": _int,
    "float": _float,
    "bool": _bool,
    "list": _list,
    "tuple": _tuple,
    "set": _set,
    "dict": _dict,
    "abs": _abs,
    "reversed": _call_reversed,
    "round": _round,
}
BUILTIN_KEYWORDS: Final = {
    "min": {"default"},
    "max": {"default"},
    "sum": {"start"},
    "sorted": {"reverse"},
    "enumerate": {"start"},
    "round": {"ndigits"},
}


# --- methods ---------------------------------------------------------------------------------------------------------


def _replace(frame: Frame, text: str, old: Any, new: Any, count: Any = -1) -> str:
    charge_search(frame, text, old)
    charge_copy(frame, len(text) + text.count(old) * len(new))
    return text.replace(old, new, count)


def _join(frame: Frame, text: str, iterable: Any) -> str:
    parts = list_members(frame, iterable)
    charge_copy(frame, sum(len(part) for part in parts) + len(text) * len(parts))
    return text.join(parts)


def extend_list(frame: Frame, target: list[Any], iterable: Any) -> None:
    """Append what an iterable gives; as in Python, what is no list or tuple is read while the list grows."""
    if type(iterable) in (list, tuple):
        check_size(len(target) + len(iterable))
        target.extend(list_members(frame, iterable))
        return
    for member in _few_steps(frame, require_ordered(frame, iterable)):
        target.append(member)
        check_size(len(target))


def _sort(frame: Frame, target: list[Any]) -> None:
    charge_value(frame, target)
    frame.spend(len(target))
    target.sort()


def _update(frame: Frame, target: Any, source: Any) -> None:
    if type(source) in (dict, set):
        frame.spend(len(source) // NODES_PER_STEP)
    target.update(source if type(source) in (dict, set) else list_members(frame, source))


def _plain(method: Function) -> Function:
    """Wrap a method whose work and result are no larger than what it is called on and with."""

    def call(frame: Frame, target: Any, *arguments: Any) -> Any:
        if type(target) is not str:
            charge_value(frame, target)
            for argument in arguments:
                charge_value(frame, argument)
        else:
            frame.spend(len(target) // MEMBERS_PER_STEP)
            for argument in arguments:
                charge_search(frame, target, argument)
        return method(target, *arguments)

    return call


def charge_search(frame: Frame, text: str, part: Any) -> None:
    """Charge a search in a text, which compares each place with all of the part at worst."""
    if type(part) is str:
        frame.spend(len(text) * len(part) // 4096)


def _light(method: Function) -> Function:
    """Wrap a method that compares at most its arguments with members, and adds one member at most."""

    def call(frame: Frame, target: Any, *arguments: Any) -> Any:
        for argument in arguments:
            if type(argument) is not Uniform:
                charge_value(frame, argument)
        check_size(len(target))
        frame.spend(len(target) // (MEMBERS_PER_STEP if type(target) is list else NODES_PER_STEP))
        result = method(target, *arguments)
        check_size(len(target))
        return result

    return call


_STR = (
    "upper lower strip lstrip rstrip startswith endswith split rsplit splitlines partition rpartition capitalize title"
)
_STR += " swapcase casefold count find rfind index rindex isalpha isdigit isalnum isupper islower isspace istitle"
_STR += " isnumeric isdecimal isidentifier isascii removeprefix removesuffix"
_LIST = "append insert pop reverse copy clear"
_DICT = "keys values items pop copy clear get setdefault"
_SET = "union intersection difference symmetric_difference issubset issuperset isdisjoint"
METHODS: Final[dict[type, dict[str, Function]]] = {
    str: {name: _plain(getattr(str, name)) for name in _STR.split()} | {"replace": _replace, "join": _join},
    list: {name: _plain(getattr(list, name)) for name in ("index", "count", "remove")}
    | {name: _light(getattr(list, name)) for name in _LIST.split()}
    | {"extend": extend_list, "sort": _sort},
    tuple: {name: _plain(getattr(tuple, name)) for name in ("index", "count")},
    dict: {name: _light(getattr(dict, name)) for name in _DICT.split()} | {"update": _update},
    set: {name: _plain(getattr(set, name)) for name in _SET.split()}
    | {name: _light(getattr(set, name)) for name in ("copy", "remove", "discard")}
    | {"add": _light(set.add), "update": _update},
}
METHOD_NAMES: Final = frozenset(name for methods in METHODS.values() for name in methods)


# --- Operators of the language, with the sizes of their results checked before they are made --------------------------
_VIEWS: Final[tuple[type, ...]] = (type({}.keys()), type({}.items()))


def _times(frame: Frame, left_value: Any, right_value: Any) -> Any:
    for text, factor in ((left_value, right_value), (right_value, left_value)):
        if type(text) in (str, list, tuple):
            if type(factor) not in (int, bool):
                raise Unsupported("a text or list is multiplied by what is no integer")
            charge_copy(frame, len(text) * max(factor, 0))
            result = text * factor
            if type(result) is tuple:
                charge_value(frame, result)
            return result
    return checked_number(left_value * right_value)


def _minus(frame: Frame, left_value: Any, right_value: Any) -> Any:
    for value in (left_value, right_value):
        if type(value) is set:
            charge_value(frame, value)
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
            charge_value(frame, old)
            charge_value(frame, new)
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
            charge_value(frame, value)
        elif type(value) not in SCALARS and type(value) not in (Uniform, range):
            raise Unsupported(f"{type(value).__name__} is compared")
    if compare in (_contains, _lacks):
        _charge_membership(frame, left_value, right_value)
    return compare(left_value, right_value)
