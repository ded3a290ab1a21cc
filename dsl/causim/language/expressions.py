"""Expressions of the language, read once into functions of a frame. Nothing is compiled or executed by Python."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from calibrant.dsl.causim.language.calls import (
    BUILTIN_KEYWORDS,
    BUILTINS,
    COMPARISONS,
    METHOD_NAMES,
    METHODS,
    binary,
    compare_values,
)
from calibrant.dsl.causim.language.execution_limits import (
    CONTAINERS,
    MAX_SIZE,
    SCALARS,
    Frame,
    Scope,
    charge_copy,
    charge_value,
    check_name,
    check_size,
    checked_number,
    require_ordered,
    statement_cost,
    target_names,
    text_of,
)
from calibrant.dsl.causim.language.randomness import RANDOM, RANDOM_KEYWORDS, Unsupported

Evaluate: TypeAlias = Callable[[Frame], Any]
MAX_NESTING: Final = 100


def expression(node: ast.expr, scope: Scope) -> Evaluate:
    """`Unsupported` for what is not in the language."""
    reader = _READERS.get(type(node))
    if reader is None:
        raise Unsupported(f"{type(node).__name__} is not in the language")
    scope.depth += 1
    if scope.depth > MAX_NESTING:
        raise Unsupported(f"expressions nest more than {MAX_NESTING} deep")
    try:
        return reader(node, scope)
    finally:
        scope.depth -= 1


def assign(target: ast.expr, scope: Scope) -> Callable[[Frame, Any], None]:
    """Bind a target to a value: a name, a tuple of targets, or an item of a list or dict."""
    if isinstance(target, ast.Name):
        name = check_name(target.id)
        return lambda frame, value: frame.names.__setitem__(name, value)
    if isinstance(target, ast.Tuple | ast.List):
        parts = [assign(part, scope) for part in target.elts]

        def unpack(frame: Frame, value: Any) -> None:
            elements = (
                list(require_ordered(frame, value))
                if type(value) not in (str, range)
                else list(value[: len(parts) + 1])
            )
            if len(elements) != len(parts):
                raise Unsupported("a value does not unpack into its targets")
            for part, member in zip(parts, elements, strict=True):
                part(frame, member)

        return unpack
    if isinstance(target, ast.Subscript) and not isinstance(target.slice, ast.Slice):
        container, index = expression(target.value, scope), expression(target.slice, scope)

        def store(frame: Frame, value: Any) -> None:
            holder = container(frame)
            store_item(holder, index(frame), value)

        return store
    raise Unsupported(f"{type(target).__name__} is assigned to")


# --- leaves ----------------------------------------------------------------------------------------------------------


def _constant(node: ast.Constant, scope: Scope) -> Evaluate:
    value = node.value
    if type(value) not in SCALARS:
        raise Unsupported(f"a constant of type {type(value).__name__}")
    if type(value) is str:
        check_size(len(value))
    checked_number(value)
    return lambda frame: value


def _name(node: ast.Name, scope: Scope) -> Evaluate:
    name = check_name(node.id)
    if name not in scope.variables:
        raise Unsupported(f"the name {name!a} is not defined")
    return lambda frame: frame.names[name]


def _format_string(node: ast.JoinedStr, scope: Scope) -> Evaluate:
    parts: list[Evaluate] = []
    for value in node.values:
        if isinstance(value, ast.FormattedValue):
            if value.format_spec is not None or value.conversion not in (-1, 115):
                raise Unsupported("a format in an f-string")
            inner = expression(value.value, scope)
            parts.append(lambda frame, inner=inner: text_of(frame, inner(frame)))  # type: ignore[misc]
        else:
            parts.append(expression(value, scope))

    def join(frame: Frame) -> str:
        texts = [part(frame) for part in parts]
        charge_copy(frame, sum(map(len, texts)))
        return "".join(texts)

    return join


# --- containers ------------------------------------------------------------------------------------------------------


def _list(node: ast.List, scope: Scope) -> Evaluate:
    parts = [expression(part, scope) for part in node.elts]
    check_size(len(parts))
    return lambda frame: [part(frame) for part in parts]


def _tuple(node: ast.Tuple, scope: Scope) -> Evaluate:
    if all(isinstance(part, ast.Constant) for part in node.elts):
        constants = tuple([expression(part, scope)(_NO_FRAME) for part in node.elts])
        check_size(len(constants))
        return lambda frame: constants
    parts = [expression(part, scope) for part in node.elts]
    check_size(len(parts))

    def build(frame: Frame) -> tuple[Any, ...]:
        elements = tuple([part(frame) for part in parts])
        for member in elements:
            if type(member) in CONTAINERS:
                charge_value(frame, elements)
                break
        return elements

    return build


def _set(node: ast.Set, scope: Scope) -> Evaluate:
    parts = [expression(part, scope) for part in node.elts]
    check_size(len(parts))
    return lambda frame: {part(frame) for part in parts}


def _dict(node: ast.Dict, scope: Scope) -> Evaluate:
    keys = [expression(key, scope) if key is not None else _refuse("** in a dict") for key in node.keys]
    values = [expression(value, scope) for value in node.values]
    check_size(len(keys))
    return lambda frame: {key(frame): value(frame) for key, value in zip(keys, values, strict=True)}


def _refuse(construct: str) -> Evaluate:
    raise Unsupported(f"{construct} is not in the language")


_NO_FRAME: Final = Frame({}, None)


# --- operators -------------------------------------------------------------------------------------------------------


def _operation(node: ast.BinOp, scope: Scope) -> Evaluate:
    left_side, right_side, apply = expression(node.left, scope), expression(node.right, scope), binary(node.op)
    return lambda frame: apply(frame, left_side(frame), right_side(frame))


def _unary(node: ast.UnaryOp, scope: Scope) -> Evaluate:
    operand = expression(node.operand, scope)
    if isinstance(node.op, ast.Not):
        return lambda frame: not operand(frame)
    if isinstance(node.op, ast.USub):
        return lambda frame: checked_number(-operand(frame))
    if isinstance(node.op, ast.UAdd):
        return lambda frame: checked_number(+operand(frame))
    raise Unsupported("the operator ~ is not in the language")


def _boolean(node: ast.BoolOp, scope: Scope) -> Evaluate:
    *earlier, last = [expression(value, scope) for value in node.values]
    stops_at = isinstance(node.op, ast.Or)

    def decide(frame: Frame) -> Any:
        for part in earlier:
            value = part(frame)
            if bool(value) is stops_at:
                return value
        return last(frame)

    return decide


def _comparison(node: ast.Compare, scope: Scope) -> Evaluate:
    first = expression(node.left, scope)
    steps = []
    for kind, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(kind, ast.Is | ast.IsNot) and not (
            isinstance(right, ast.Constant) and type(right.value) in (bool, type(None))
        ):
            raise Unsupported("`is` with anything but None, True and False")
        steps.append((COMPARISONS[type(kind)], expression(right, scope)))
    if len(steps) == 1:
        compare, second = steps[0]
        return lambda frame: compare_values(frame, compare, first(frame), second(frame))

    def chain(frame: Frame) -> Any:
        left_value, result = first(frame), True
        for compare, right_side in steps:
            right_value = right_side(frame)
            result = compare_values(frame, compare, left_value, right_value)
            if not result:
                return result
            left_value = right_value
        return result

    return chain


def _conditional(node: ast.IfExp, scope: Scope) -> Evaluate:
    test, then, otherwise = expression(node.test, scope), expression(node.body, scope), expression(node.orelse, scope)
    return lambda frame: then(frame) if test(frame) else otherwise(frame)


def _subscript(node: ast.Subscript, scope: Scope) -> Evaluate:
    container = expression(node.value, scope)
    index = _slice(node.slice, scope) if isinstance(node.slice, ast.Slice) else expression(node.slice, scope)

    def look_up(frame: Frame) -> Any:
        holder = container(frame)
        return item_of(frame, holder, index(frame))

    return look_up


def item_of(frame: Frame, holder: Any, index: Any) -> Any:
    """Return an item or a slice."""
    if type(holder) not in (str, list, tuple, dict, range):
        raise Unsupported(f"an item of {type(holder).__name__} is read")
    item = holder[index]
    if type(index) is slice and type(holder) is not range:
        charge_copy(frame, len(item))
    return item


def store_item(holder: Any, index: Any, value: Any) -> None:
    """Set an item of a list or dict."""
    if type(holder) not in (list, dict):
        raise Unsupported(f"an item of {type(holder).__name__} is assigned")
    holder[index] = value
    check_size(len(holder))


def _slice(node: ast.Slice, scope: Scope) -> Evaluate:
    parts = [expression(part, scope) if part is not None else None for part in (node.lower, node.upper, node.step)]
    return lambda frame: slice(*[part(frame) if part is not None else None for part in parts])


# --- calls and comprehensions ----------------------------------------------------------------------------------------


def _call(node: ast.Call, scope: Scope) -> Evaluate:
    target = node.func
    arguments = [expression(argument, scope) for argument in node.args if not _is_generator(argument)]
    if any(_is_generator(argument) for argument in node.args):
        if len(node.args) != 1:
            raise Unsupported("a generator beside other arguments")
        arguments = [_comprehension(node.args[0], scope)]
    keywords = [(keyword.arg or "**", expression(keyword.value, scope)) for keyword in node.keywords]
    names = {name for name, _ in keywords}
    if len(names) < len(keywords):
        raise Unsupported("a keyword is given twice")
    if isinstance(target, ast.Name):
        name = check_name(target.id)
        if name in scope.variables or name not in BUILTINS or not names <= BUILTIN_KEYWORDS.get(name, set()):
            raise Unsupported(f"a call of {name!a} in this form is not in the language")
        return _with_arguments(BUILTINS[name], arguments, keywords)
    if not isinstance(target, ast.Attribute):
        raise Unsupported("a call of what is not a listed function or method")
    method = check_name(target.attr)
    if isinstance(target.value, ast.Name) and target.value.id == "random" and "random" not in scope.variables:
        if not scope.random:
            raise Unsupported("a mechanism draws random numbers")
        if method not in RANDOM or not names <= RANDOM_KEYWORDS:
            raise Unsupported(f"random.{method} in this form is not in the language")
        return _drawing(RANDOM[method], arguments, keywords)
    if method not in METHOD_NAMES or keywords:
        raise Unsupported(f"the method {method!a} in this form is not in the language")
    return _method(expression(target.value, scope), method, arguments)


def _is_generator(node: ast.expr) -> bool:
    return isinstance(node, ast.GeneratorExp)


def _with_arguments(
    function: Callable[..., Any], arguments: list[Evaluate], keywords: list[tuple[str, Evaluate]]
) -> Evaluate:
    if len(arguments) == 1 and not keywords:
        only = arguments[0]
        return lambda frame: function(frame, only(frame))
    return lambda frame: function(
        frame, *[argument(frame) for argument in arguments], **{name: value(frame) for name, value in keywords}
    )


def _drawing(function: Callable[..., Any], arguments: list[Evaluate], keywords: list[tuple[str, Evaluate]]) -> Evaluate:
    return lambda frame: function(
        frame.choices, *[argument(frame) for argument in arguments], **{name: value(frame) for name, value in keywords}
    )


def _method(target: Evaluate, name: str, arguments: list[Evaluate]) -> Evaluate:
    def call(frame: Frame) -> Any:
        holder = target(frame)
        function = METHODS.get(type(holder), {}).get(name)
        if function is None:
            raise Unsupported(f"{type(holder).__name__} has no listed method {name!a}")
        return function(frame, holder, *[argument(frame) for argument in arguments])

    return call


def _comprehension(node: ast.expr, scope: Scope) -> Evaluate:
    """Compile a list, set or dict comprehension, or the members of a generator one after the other."""
    assert isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp)
    outer = expression(node.generators[0].iter, scope)
    inner = scope
    loops = []
    for index, generator in enumerate(node.generators):
        if generator.is_async:
            raise Unsupported("async is not in the language")
        source = outer if index == 0 else expression(generator.iter, inner)
        inner = inner.add_names(set(target_names(generator.target)))
        tests = [expression(test, inner) for test in generator.ifs]
        loops.append((source, assign(generator.target, inner), tests))
    parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    compiled_parts = [expression(part, inner) for part in parts]
    price = statement_cost(*parts, *(test for generator in node.generators for test in generator.ifs))

    def members_of(frame: Frame) -> Iterator[Any]:
        before = frame.names
        names = before.copy()
        source = loops[0][0](frame)

        def go(level: int, values: Any) -> Iterator[Any]:
            _, bind, tests = loops[level]
            for value in require_ordered(frame, values):
                frame.names = names
                frame.spend(price)
                bind(frame, value)
                if all(test(frame) for test in tests):
                    if level + 1 < len(loops):
                        yield from go(level + 1, loops[level + 1][0](frame))
                    else:
                        item = (
                            tuple([part(frame) for part in compiled_parts])
                            if len(compiled_parts) == 2
                            else compiled_parts[0](frame)
                        )
                        frame.names = before
                        yield item
                frame.names = before

        return go(0, source)

    if isinstance(node, ast.GeneratorExp):
        return members_of
    collect: Any = {ast.ListComp: list, ast.SetComp: set, ast.DictComp: dict}[type(node)]
    return lambda frame: collect(_limit_length(members_of(frame)))


def _limit_length(values: Iterator[Any]) -> Iterator[Any]:
    for index, value in enumerate(values):
        if index >= MAX_SIZE:
            check_size(index + 1)
        yield value


_READERS: Final[dict[type[ast.expr], Callable[[Any, Scope], Evaluate]]] = {
    ast.Constant: _constant,
    ast.Name: _name,
    ast.JoinedStr: _format_string,
    ast.List: _list,
    ast.Tuple: _tuple,
    ast.Set: _set,
    ast.Dict: _dict,
    ast.BinOp: _operation,
    ast.UnaryOp: _unary,
    ast.BoolOp: _boolean,
    ast.Compare: _comparison,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.Call: _call,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.DictComp: _comprehension,
}
