"""Functions of the language: statements read once into functions of a frame, and calls of them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from calibrant.dsl.causim.language.calls import augmented_operator
from calibrant.dsl.causim.language.execution_limits import (
    MAX_STEPS,
    Frame,
    Scope,
    StepBudget,
    check_name,
    require_ordered,
    statement_cost,
    target_names,
    tree_nodes,
)
from calibrant.dsl.causim.language.expressions import Evaluate, assign, expression, item_of, store_item
from calibrant.dsl.causim.language.randomness import Choices, Unsupported

Run: TypeAlias = Callable[[Frame], object]
MAX_BLOCKS: Final = 20
_BINDING: Final = (ast.AugAssign, ast.AnnAssign, ast.For)

_BREAK: Final = object()
_CONTINUE: Final = object()
RETURN: Final = object()
_RAISED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    NameError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)


class FunctionRaises(Unsupported):
    """A sampler or a mechanism raises on a value of its domain, as it would in Python."""

    def __init__(self, function_name: str, exception_name: str) -> None:
        super().__init__(f"{function_name} raises {exception_name}")
        self.function_name = function_name


@dataclass(frozen=True, slots=True)
class Function:
    """One U_* or f_* of a program.

    parameters: in the order of the signature
    unread: the parameters that the body never names
    parts: the statements of the body; live[i]: the names that part i or a later one reads, live[-1] being empty
    """

    name: str
    parameters: tuple[str, ...]
    unread: tuple[str, ...]
    body: Run
    parts: tuple[Run, ...]
    live: tuple[frozenset[str], ...]

    def call(self, arguments: Sequence[Any], choices: Choices | None = None, work: StepBudget | None = None) -> Any:
        """Run the function; `Unsupported` if it raises or exceeds its limits."""
        frame = Frame(dict(zip(self.parameters, arguments, strict=True)), choices)
        returned = run_signal(self.name, self.body, frame) is RETURN
        if work is not None:
            work.spend(MAX_STEPS - frame.left)
        return frame.result if returned else None


def run_signal(name: str, run: Run, frame: Frame) -> object:
    """Run and return the signal; any exception becomes `Unsupported` with the function's name."""
    try:
        return run(frame)
    except Unsupported as error:
        raise Unsupported(f"{name}: {error}") from None
    except _RAISED as error:
        raise FunctionRaises(name, type(error).__name__) from None


@lru_cache(maxsize=512)  # equal texts have the same tree (dsl.causim.language.driver)
def function(node: ast.FunctionDef, *, random: bool) -> Function:
    """Read a definition; `Unsupported` for what is not in the language."""
    parameters = _parameters(node)
    statements = _without_docstring(node.body)
    bound = set(parameters)
    reads: list[set[str]] = []
    for statement in statements:
        names_read: set[str] = set()
        for part in tree_nodes(statement):
            if isinstance(part, ast.Name):
                if isinstance(part.ctx, ast.Load):
                    names_read.add(part.id)
            elif isinstance(part, ast.Assign):
                bound.update(name for target in part.targets for name in target_names(target))
            elif isinstance(part, _BINDING):
                bound.update(target_names(part.target))
                if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                    names_read.add(part.target.id)
        reads.append(names_read)
    everything = set().union(*reads)
    scope = Scope(frozenset(bound), random=random)
    try:
        parts = tuple(_statement(statement, scope, 0) for statement in statements)
    except RecursionError:
        raise Unsupported(f"{node.name}: nested too deeply") from None
    unread = tuple(name for name in parameters if name not in everything)
    live = [frozenset[str]()]
    for names_read in reversed(reads):
        live.append(live[-1] | names_read)
    return Function(node.name, parameters, unread, _sequence(parts), parts, tuple(reversed(live)))


def _parameters(node: ast.FunctionDef) -> tuple[str, ...]:
    signature = node.args
    if node.decorator_list:
        raise Unsupported("a decorator")
    if signature.vararg or signature.kwarg or signature.kwonlyargs or signature.posonlyargs or signature.defaults:
        raise Unsupported("parameters are plain names without defaults")
    return tuple(check_name(parameter.arg) for parameter in signature.args)


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    first = body[0]
    documented = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str
    )
    return body[1:] if documented else body


def _block(statements: list[ast.stmt], scope: Scope, depth: int) -> Run:
    if depth > MAX_BLOCKS:
        raise Unsupported(f"blocks nest more than {MAX_BLOCKS} deep")
    return _sequence([_statement(statement, scope, depth) for statement in statements])


def _sequence(parts: Sequence[Run]) -> Run:
    if len(parts) == 1:
        return parts[0]

    def run(frame: Frame) -> object:
        for part in parts:
            signal = part(frame)
            if signal is not None:
                return signal
        return None

    return run


def _statement(node: ast.stmt, scope: Scope, depth: int) -> Run:
    reader = _READERS.get(type(node))
    if reader is None:
        raise Unsupported(f"{type(node).__name__} is not in the language")
    return reader(node, scope, depth)


def _return(node: ast.Return, scope: Scope, depth: int) -> Run:
    if node.value is None:
        return lambda frame: RETURN
    value, price = expression(node.value, scope), statement_cost(node.value)

    def run(frame: Frame) -> object:
        frame.left -= price
        if frame.left < 0:
            frame.spend(0)
        frame.result = value(frame)
        return RETURN

    return run


def _if(node: ast.If, scope: Scope, depth: int) -> Run:
    branches: list[tuple[Evaluate, Run, int]] = []
    otherwise: list[ast.stmt] = [node]
    while len(otherwise) == 1 and isinstance(otherwise[0], ast.If):  # `elif` by `elif`, however many there are
        branch = otherwise[0]
        branches.append(
            (expression(branch.test, scope), _block(branch.body, scope, depth + 1), statement_cost(branch.test))
        )
        otherwise = branch.orelse
    last = _block(otherwise, scope, depth + 1) if otherwise else None

    def run(frame: Frame) -> object:
        for test, body, price in branches:
            frame.left -= price
            if frame.left < 0:
                frame.spend(0)
            if test(frame):
                return body(frame)
        return last(frame) if last is not None else None

    return run


def _for(node: ast.For, scope: Scope, depth: int) -> Run:
    source, bind = expression(node.iter, scope), assign(node.target, scope)
    scope.loops += 1
    body, price = _block(node.body, scope, depth + 1), statement_cost(node.target)
    scope.loops -= 1
    last = _block(node.orelse, scope, depth + 1) if node.orelse else None
    first_price = statement_cost(node.iter)

    def run(frame: Frame) -> object:
        frame.spend(first_price)
        for value in require_ordered(frame, source(frame)):
            frame.spend(price)
            bind(frame, value)
            signal = body(frame)
            if signal is _BREAK:
                return None
            if signal is RETURN:
                return signal
        return last(frame) if last is not None else None

    return run


def _assignment(node: ast.Assign | ast.AnnAssign, scope: Scope, depth: int) -> Run:
    if node.value is None:
        return _pass(node, scope, depth)
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    value, binds = expression(node.value, scope), [assign(target, scope) for target in targets]
    price = statement_cost(node.value, *targets)

    def run(frame: Frame) -> object:
        frame.spend(price)
        result = value(frame)
        for bind in binds:
            bind(frame, result)
        return None

    return run


def _augmented_assignment(node: ast.AugAssign, scope: Scope, depth: int) -> Run:
    """Read the target once, then the value, then change or rebind the target, in the order of Python."""
    value, change = expression(node.value, scope), augmented_operator(node.op)
    price = statement_cost(node.value, node.target)
    if isinstance(node.target, ast.Name):
        name, before = node.target.id, expression(ast.Name(node.target.id, ast.Load()), scope)

        def rebind(frame: Frame) -> object:
            frame.spend(price)
            old = before(frame)
            frame.names[name] = change(frame, old, value(frame))
            return None

        return rebind
    if not isinstance(node.target, ast.Subscript) or isinstance(node.target.slice, ast.Slice):
        raise Unsupported(f"{type(node.target).__name__} is assigned to")
    container, index = expression(node.target.value, scope), expression(node.target.slice, scope)

    def restore(frame: Frame) -> object:
        frame.spend(price)
        holder, key = container(frame), index(frame)
        old = item_of(frame, holder, key)
        store_item(holder, key, change(frame, old, value(frame)))
        return None

    return restore


def _expression(node: ast.Expr, scope: Scope, depth: int) -> Run:
    if not isinstance(node.value, ast.Call) or not isinstance(node.value.func, ast.Attribute):
        raise Unsupported("an expression that does nothing")
    value, price = expression(node.value, scope), statement_cost(node.value)

    def run(frame: Frame) -> object:
        frame.spend(price)
        value(frame)
        return None

    return run


def _pass(node: ast.stmt, scope: Scope, depth: int) -> Run:
    return lambda frame: frame.spend(1)


def _jump(node: ast.stmt, scope: Scope, depth: int) -> Run:
    if not scope.loops:
        raise Unsupported("a break or continue outside a loop")
    signal = _BREAK if isinstance(node, ast.Break) else _CONTINUE
    return lambda frame: signal


_READERS: Final[dict[type[ast.stmt], Callable[[Any, Scope, int], Run]]] = {
    ast.Return: _return,
    ast.If: _if,
    ast.For: _for,
    ast.Assign: _assignment,
    ast.AnnAssign: _assignment,
    ast.AugAssign: _augmented_assignment,
    ast.Expr: _expression,
    ast.Pass: _pass,
    ast.Break: _jump,
    ast.Continue: _jump,
}
