"""External programs: their files, their equations, lowering to statements with few arguments, and their bundle.

`language.driver` refuses a program whose noise is shared or whose calls are out of order, without giving its graph.
Here a variable of the driver stands for the call that it is assigned from, wherever that call is. So the fault itself
can be named: a noise in two equations, an equation without noise, a cycle.

Lowering turns `a + b + c` and `sum([a, b, c])` into three statements, and a loop over a list of names into one
statement for each turn. The returned value stays the same, and so does whether the function raises. The number of steps
of a call changes.
"""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import msgspec

from calibrant.dsl.causim.bundle import Bundle, Definition, bundle_of, graph_record, load_source, module_text
from calibrant.dsl.causim.language.driver import (
    DRIVER,
    MECHANISM,
    SAMPLER,
    UnsupportedAt,
    is_seeding,
    is_text,
    located_statements,
    read_definitions,
    read_functions,
    seed_names,
)
from calibrant.dsl.causim.language.execution_limits import check_name
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.model import Model, ModelError
from calibrant.dsl.causim.prompt import same_model
from calibrant.dsl.causim.records import read_states
from calibrant.dsl.errors import PoolError, in_one_line
from calibrant.dsl.parse_limits import TooLargeError, decode_json
from calibrant.dsl.records import decode_line, pool_head

# --- The equations of a program as its driver states them, valid or not: noise and parents of each --------------------


@dataclass(frozen=True, slots=True)
class Equation:
    """One call of a mechanism in the driver.

    name: the mechanism without its f_
    parents, noises: the mechanisms (without f_) and samplers (with U_) that its arguments come from, in order
    line: line of the call, counted from 1
    premature: the first argument that is computed after this call, None if all are computed before it
    """

    name: str
    parents: tuple[str, ...]
    noises: tuple[str, ...]
    line: int
    premature: str | None


@dataclass(frozen=True, slots=True)
class Outline:
    """Definitions and equations of a module.

    lines: name of a definition -> its line; equations: in the order of the calls
    """

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
    """Reader of the calls of a driver.

    parameters: function -> its parameters; offset: added to line numbers of the driver's tree
    """

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


# --- Lowering: sums and loops over literal lists become statements, each of which reads few arguments -----------------
MAX_STATEMENTS = 2_000  # statements of a lowered function
SUM = "sum"


def lower_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return the lowered definition; unchanged if it rebinds `sum` or would have more than MAX_STATEMENTS."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {argument.arg for argument in node.args.args}
    if SUM in names & {argument.arg for argument in node.args.args} | _assigned(node):
        return node
    fresh = (name for k in count() if (name := f"part{k}") not in names)
    lists = _written_lists(node)
    body: list[ast.stmt] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign) and _single_target(statement) in lists:
            continue  # it is inlined where it is used
        for lowered in _lower_statement(_Inline(lists).visit(deepcopy(statement)), fresh):
            body.append(lowered)
            if len(body) > MAX_STATEMENTS:
                return node
    lowered_function = ast.FunctionDef(node.name, node.args, body, node.decorator_list, node.returns, node.type_comment)
    return ast.fix_missing_locations(ast.copy_location(lowered_function, node))


def _assigned(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _single_target(statement: ast.Assign) -> str:
    (target, *further) = statement.targets
    return target.id if isinstance(target, ast.Name) and not further else ""


def _elements(value: ast.expr, changing: set[str]) -> list[ast.expr] | None:
    """Return the elements of a literal list of constants and names that are not in `changing`; None for others."""
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    plain = all(
        isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id not in changing)
        for part in value.elts
    )
    return value.elts if plain else None


def _written_lists(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the literal lists by name that are assigned once, in the body itself, and only iterated over or summed."""
    stores = [part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)]
    changing = set(stores)
    sources: set[int] = set()
    for part in ast.walk(node):
        if isinstance(part, ast.For | ast.comprehension):
            sources.add(id(part.iter))
        elif (argument := _summed(part)) is not None:
            sources.add(id(argument))
    lists: dict[str, ast.expr] = {}
    for statement in node.body:
        if not isinstance(statement, ast.Assign) or not (name := _single_target(statement)):
            continue
        if stores.count(name) != 1 or _elements(statement.value, changing) is None:
            continue
        loads = [part for part in ast.walk(node) if isinstance(part, ast.Name) and part.id == name]
        if all(isinstance(part.ctx, ast.Store) or id(part) in sources for part in loads):
            lists[name] = statement.value
    return lists


class _Inline(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self._values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that ast requires
        value = self._values.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if value is None else deepcopy(value)


def _summed(node: ast.AST) -> ast.expr | None:
    """Return the argument of `sum(...)`; None for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    return node.args[0] if node.func.id == SUM and len(node.args) == 1 else None


def _lower_statement(node: ast.stmt, fresh: Iterator[str]) -> Iterator[ast.stmt]:
    if isinstance(node, ast.For) and (turns := _turns(node)) is not None:
        for turn in turns:
            yield from _lower_statement(turn, fresh)
    elif isinstance(node, ast.Return | ast.Assign) and node.value is not None and len(_terms(node.value)) > 1:
        name = next(fresh)
        terms = _terms(node.value)
        yield ast.Assign([ast.Name(name, ast.Store())], terms[0])
        for term in terms[1:]:
            added = ast.BinOp(ast.Name(name, ast.Load()), ast.Add(), term)
            yield ast.Assign([ast.Name(name, ast.Store())], added)
        total = ast.Name(name, ast.Load())
        yield ast.Return(total) if isinstance(node, ast.Return) else ast.Assign(node.targets, total)
    elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add) and _summed(node.value) is not None:
        name = next(fresh)
        yield from _lower_statement(ast.Assign([ast.Name(name, ast.Store())], node.value), fresh)
        yield ast.AugAssign(node.target, node.op, ast.Name(name, ast.Load()))
    else:
        yield node


def _turns(node: ast.For) -> list[ast.stmt] | None:
    """Return the statements of a loop over a literal list, turn by turn; None for any other loop."""
    body = [part for statement in node.body for part in ast.walk(statement)]
    if node.orelse or any(isinstance(part, ast.Break | ast.Continue) for part in body):
        return None
    elements = _elements(node.iter, _assigned(node))
    if elements is None:
        return None
    return [
        deepcopy(statement) for element in elements for statement in (ast.Assign([node.target], element), *node.body)
    ]


def _terms(value: ast.expr) -> list[ast.expr]:
    """Return the terms of a sum from the left; for another expression the expression alone."""
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        return [*_terms(value.left), value.right]
    argument = _summed(value)
    if isinstance(argument, ast.List | ast.Tuple):
        if not any(isinstance(part, ast.Starred) for part in argument.elts):
            return [ast.Constant(0), *argument.elts]
    elif isinstance(argument, ast.GeneratorExp | ast.ListComp):
        terms = _comprehended(argument)
        return [value] if terms is None else [ast.Constant(0), *terms]
    return [value]


def _comprehended(node: ast.GeneratorExp | ast.ListComp) -> list[ast.expr] | None:
    """Return the terms of a comprehension over a literal list, 0 if its condition fails; None for others."""
    (source, *further) = node.generators
    inner = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
    parts = [part for tree in (node.elt, *source.ifs) for part in ast.walk(tree)]
    if further or not isinstance(source.target, ast.Name) or any(isinstance(part, inner) for part in parts):
        return None
    elements = _elements(source.iter, set())
    if elements is None:
        return None
    terms: list[ast.expr] = []
    for element in elements:
        inline = _Inline({source.target.id: element})
        term = inline.visit(deepcopy(node.elt))
        for condition in reversed(source.ifs):
            term = ast.IfExp(inline.visit(deepcopy(condition)), term, ast.Constant(0))
        terms.append(term)
    return terms


# --- Programs in files: modules, state files, JSON lines of {id, source}, and folders of these. Nothing is executed
MODULE, STATES, LINES = ".py", ".json", ".jsonl"
STATE_NAME = "state.json"
MAX_HEAD_BYTES = 65_536  # the key "scms" of a state file is searched in so many first bytes
MAX_MODULE_BYTES = 2_000_000  # the reader of programs refuses texts of over 200,000 characters itself
_COPY = re.compile(r"scm_.*?(_nocomments|(?<!_v\d)(?<!_v\d\d))\.py")


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """The text of a program.

    label: file, and id or version, as reports name it
    scm_id, version, topology: as a state file states them; empty or None for other files
    """

    label: str
    text: str
    scm_id: str = ""
    version: int | None = None
    topology: str = ""


class ProgramLine(msgspec.Struct):
    """A line of a file of programs; further fields are not read."""

    id: str
    source: str


def holds_programs(path: Path) -> bool:
    """Return whether a path is a folder, a module, a state file or a file of lines with programs."""
    if path.is_dir() or path.suffix == MODULE:
        return True
    if path.suffix == STATES:
        return _is_state_file(path)
    if path.suffix != LINES or not path.is_file():
        return False
    try:
        decode_json(pool_head(path), ProgramLine)
    except (PoolError, TooLargeError, msgspec.MsgspecError, UnicodeError):
        return False
    return True


def _is_state_file(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return b'"scms"' in file.read(MAX_HEAD_BYTES)
    except OSError:
        return False


def read_programs(path: Path) -> Iterator[ProgramSource]:
    """Yield the programs of a path, those of a folder by name; `PoolError` names file and line of an invalid one.

    A folder with a state file is read from that file, else from its modules and files of lines. A second copy of a
    module is skipped: one without comments, or one of the latest version without its number.
    """
    if path.is_dir():
        yield from _read_folder(path)
    elif path.suffix == MODULE:
        yield ProgramSource(path.name, _module(path))
    elif path.suffix == STATES:
        states = read_states(path)
        if not any(scm.history for scm in states):
            raise PoolError("no programs: no SCM has a history", file=path.name)
        for scm in states:
            for bundle in scm.history:
                label = f"{path.name}: {scm.scm_id} v{bundle.v}"
                yield ProgramSource(label, module_text(bundle), scm.scm_id, bundle.v, bundle.topology)
    else:
        yield from _read_lines(path)


def _read_folder(folder: Path) -> Iterator[ProgramSource]:
    state = folder / STATE_NAME
    if state.is_file():
        yield from read_programs(state)
        return
    files = sorted(path for path in folder.rglob("*") if path.suffix in (MODULE, LINES) and path.is_file())
    names = {path.name for path in files}
    num_files = 0
    for path in files:
        if path.suffix == LINES and not holds_programs(path):
            continue
        if _COPY.fullmatch(path.name) and any(
            name.startswith(path.stem.removesuffix("_nocomments")) for name in names - {path.name}
        ):
            continue
        num_files += 1
        for source in read_programs(path):
            relative_path = path.relative_to(folder).as_posix()
            yield ProgramSource(source.label.replace(path.name, relative_path, 1), source.text)
    if not num_files:
        raise PoolError("no programs: neither state.json, nor .py files, nor lines of id and source", file=folder.name)


def _module(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_MODULE_BYTES:
            raise PoolError(f"larger than {MAX_MODULE_BYTES} bytes", file=path.name)
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PoolError(error.strerror or "cannot be read", file=path.name) from None
    except UnicodeError as error:
        raise PoolError(f"no UTF-8 text: {in_one_line(str(error))}", file=path.name) from None


def _read_lines(path: Path) -> Iterator[ProgramSource]:
    try:
        with path.open(encoding="utf-8") as file:
            for line_number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = decode_line(line, ProgramLine, where=f"line {line_number}")
                except PoolError as error:
                    raise error.with_location(file=path.name) from None
                yield ProgramSource(f"{path.name}:{line_number}: {in_one_line(record.id)[:80]}", record.source)
    except OSError as error:
        raise PoolError(error.strerror or "cannot be read", file=path.name) from None
    except UnicodeError as error:
        raise PoolError(f"no UTF-8 text: {in_one_line(str(error))}", file=path.name) from None


# --- The bundle of a module that is given as text, so that state files can hold it ------------------------------------


def bundle_of_source(source: str, model: Model, topology: str = "") -> Bundle:
    """Return a bundle with the texts of a module, whose model is `model`.

    If splitting the module into definitions would change its model, the bundle is rendered from the model.
    """
    lines = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    imports: list[str] = []
    samplers: list[Definition] = []
    mechanisms: list[Definition] = []
    driver = ""
    for line, node in located_statements(source):
        if isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
        elif isinstance(node, ast.FunctionDef) and node.name == DRIVER:
            driver = "\n".join(_lines_of(lines, line, node))
        elif isinstance(node, ast.FunctionDef):
            definition = _definition(lines, line, node)
            (samplers if node.name.startswith(SAMPLER) else mechanisms).append(definition)
    bundle = Bundle(len(model), imports, samplers, mechanisms, driver, graph_record(model), topology)
    try:
        texts = [module_text(bundle, comments=comments) for comments in (False, True)]
        if all(same_model(load_source(text), model) for text in texts):
            return bundle
    except ModelError:
        pass
    return bundle_of(model, topology)


def _lines_of(lines: Sequence[str], first: int, node: ast.FunctionDef) -> Sequence[str]:
    return lines[first - 1 : first + (node.end_lineno or node.lineno) - node.lineno]


def _definition(lines: Sequence[str], line: int, node: ast.FunctionDef) -> Definition:
    text = is_text(node.body[0]) and len(node.body) > 1
    statement = node.body[1 if text else 0]
    if statement.lineno == node.lineno:  # the body stands in the line of the name
        body = "\n".join(map(ast.unparse, node.body[1 if text else 0 :]))
    else:
        first = line + statement.lineno - node.lineno
        end = line + (node.end_lineno or node.lineno) - node.lineno
        body = textwrap.dedent("\n".join(lines[first - 1 : end]))
    doc = ast.get_docstring(node) or "" if text else ""
    return Definition(node.name, [argument.arg for argument in node.args.args], body, doc)
