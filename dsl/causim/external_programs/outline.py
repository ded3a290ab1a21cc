"""The equations of a program as its driver states them, sound or not: which noise and which parents each one is given.

`language.driver` refuses a program whose noise is shared or whose calls are out of order, without a graph. Here every
variable of the driver stands for the call that it is assigned from, wherever that call is, so that the fault itself
can be named: a noise in two equations, an equation without noise, a cycle.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibrant.dsl.causim.language.driver import (
    DRIVER,
    MECHANISM,
    SAMPLER,
    UnsupportedAt,
    is_seeding,
    is_text,
    read_definitions,
    read_functions,
    seed_names,
)
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.scope import check_name


@dataclass(frozen=True, slots=True)
class Equation:
    """One call of a mechanism in the driver.

    name: the mechanism without its f_
    parents, noises: the mechanisms (without f_) and samplers (with U_) that its arguments come from, in order
    line: of the call, counted from 1
    premature: the first argument that is computed after this call, None if all are computed before it
    """

    name: str
    parents: tuple[str, ...]
    noises: tuple[str, ...]
    line: int
    premature: str | None


@dataclass(frozen=True, slots=True)
class Outline:
    """lines: the line of each definition, by its name; equations: in the order of the calls."""

    lines: Mapping[str, int]
    equations: tuple[Equation, ...]

    @property
    def samplers(self) -> list[str]:
        return [name for name in self.lines if name.startswith(SAMPLER)]

    @property
    def mechanisms(self) -> list[str]:
        return [name for name in self.lines if name.startswith(MECHANISM)]

    @property
    def graph(self) -> dict[str, tuple[str, ...]]:
        """The parents of each node, in the order of the calls."""
        return {equation.name: equation.parents for equation in self.equations}


def read_outline(source: str) -> Outline:
    """Read the equations of a module without running any of it.

    `InvalidSyntax` if it is no Python text, `UnsupportedAt` for the first construct outside the language.
    """
    definitions = read_definitions(source)
    parameters = {name: function.parameters for name, function in read_functions(definitions).items()}
    lines = {name: line for name, (line, _) in definitions.items()}
    if DRIVER not in definitions:
        return Outline(lines, ())
    line, driver = definitions[DRIVER]
    return Outline(lines, _DriverReader(parameters, line - driver.lineno).read_equations(driver))


class _DriverReader:
    """Reads the calls of a driver. parameters: of each function; offset: what its line numbers lack."""

    def __init__(self, parameters: Mapping[str, Sequence[str]], offset: int) -> None:
        self._parameters = parameters
        self._offset = offset
        self._sources: dict[str, str] = {}  # variable -> the function whose result it holds, or another variable
        self._calls: list[tuple[str, tuple[str, ...], int]] = []  # function, variables given, line

    def read_equations(self, driver: ast.FunctionDef) -> tuple[Equation, ...]:
        seeds = seed_names(driver)
        for statement in driver.body:
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                self._read_assignment(statement)
            elif not isinstance(statement, ast.Return) and not is_text(statement) and not is_seeding(statement, seeds):
                raise self._refusal(statement, f"{type(statement).__name__} in the driver")
        computed: set[str] = set()
        equations = []
        for name, variables, line in self._calls:
            sources = [self._origin(variable, line) for variable in variables]
            premature = next((source for source in sources if source not in computed), None)
            computed.add(name)
            if name.startswith(MECHANISM):
                parents = tuple(source[len(MECHANISM) :] for source in sources if source.startswith(MECHANISM))
                noises = tuple(source for source in sources if source.startswith(SAMPLER))
                equations.append(Equation(name[len(MECHANISM) :], parents, noises, line, premature))
        return tuple(equations)

    def _read_assignment(self, node: ast.Assign | ast.AnnAssign) -> None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        target, value = targets[0], node.value
        if len(targets) > 1 or not isinstance(target, ast.Name) or value is None:
            raise self._refusal(node, "it assigns to something other than one name")
        try:
            variable = check_name(target.id)
        except Unsupported as error:
            raise self._refusal(node, str(error)) from None
        if isinstance(value, ast.Dict):  # the outputs; the loader checks what they hold
            return
        if variable in self._sources or variable in self._parameters:
            raise self._refusal(node, f"the name {variable!a} is bound twice")
        if isinstance(value, ast.Name):
            self._sources[variable] = value.id
        elif isinstance(value, ast.Call):
            self._sources[variable] = self._read_call(value)
        else:
            raise self._refusal(node, f"{type(value).__name__} in the driver")

    def _read_call(self, node: ast.Call) -> str:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in self._parameters:
            raise self._refusal(node, "it calls something other than the U_ and f_ functions of the module")
        if any(name == called for called, _, _ in self._calls):
            raise self._refusal(node, f"{name} is called twice")
        by_keyword = {keyword.arg: keyword.value for keyword in node.keywords}
        remaining = self._parameters[name][len(node.args) :]
        if len(node.args) + len(node.keywords) != len(self._parameters[name]) or set(by_keyword) != set(remaining):
            raise self._refusal(node, f"{name} is not given exactly its parameters")
        variables = []
        for argument in (*node.args, *(by_keyword[parameter] for parameter in remaining)):
            if not isinstance(argument, ast.Name):
                raise self._refusal(node, f"{name} is given something other than the result of a call")
            variables.append(argument.id)
        self._calls.append((name, tuple(variables), node.lineno + self._offset))
        return name

    def _origin(self, variable: str, line: int) -> str:
        """Return the function whose result a variable holds, through assignments of one variable to another."""
        followed: set[str] = set()
        source = variable
        while source in self._sources and source not in followed:
            followed.add(source)
            source = self._sources[source]
        if source not in self._parameters:
            raise UnsupportedAt(f"{DRIVER}: {variable} is the result of no call", line, DRIVER)
        return source

    def _refusal(self, node: ast.AST, message: str) -> UnsupportedAt:
        return UnsupportedAt(f"{DRIVER}: {message}", getattr(node, "lineno", 1) + self._offset, DRIVER)
