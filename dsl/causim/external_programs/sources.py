"""Programs from elsewhere: files of them, their equations, statements with few arguments, and their bundle.

`language.driver` refuses a program whose noise is shared or whose calls are out of order, without a graph. Here every
variable of the driver stands for the call that it is assigned from, wherever that call is, so that the fault itself
can be named: a noise in two equations, an equation without noise, a cycle.

`a + b + c` becomes three statements, `sum([a, b, c])` too, a loop over a list of names one statement a turn. What is
returned, and whether the function raises, stays the same. The steps of a call do not: limits of a call are those of
the text as it is written.
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

# --- The equations of a program as its driver states them, sound or not: which noise and which parents each one
# is given


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


# --- Sums and loops over written-out lists taken apart into statements, so that each reads few arguments --------------
MAX_STATEMENTS = 2_000  # statements of a function that is taken apart
SUM = "sum"


def lower_function(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return a definition with long expressions taken apart; as it is where it becomes too long."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    names |= {argument.arg for argument in node.args.args}
    if SUM in names & {argument.arg for argument in node.args.args} | _assigned(node):
        return node
    fresh = (name for k in count() if (name := f"part{k}") not in names)
    lists = _written_lists(node)
    body: list[ast.stmt] = []
    for statement in node.body:
        if isinstance(statement, ast.Assign) and _single_target(statement) in lists:
            continue  # it stands where it is used
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
    """Return the elements of a written list of constants and of names that never change; None for anything else."""
    if not isinstance(value, ast.List | ast.Tuple):
        return None
    plain = all(
        isinstance(part, ast.Constant) or (isinstance(part, ast.Name) and part.id not in changing)
        for part in value.elts
    )
    return value.elts if plain else None


def _written_lists(node: ast.FunctionDef) -> dict[str, ast.expr]:
    """Return the lists that are assigned once, in the body itself, and only ever gone through or added up."""
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

    def visit_Name(self, node: ast.Name) -> ast.expr:  # the name that ast asks for
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
    """Return the statements of a loop over a written list, turn by turn; None for any other loop."""
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
    """Return the terms of a sum from the left; of anything else itself."""
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
    """Return the terms that a comprehension over a written list gives, 0 where its condition fails."""
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
MAX_HEAD_BYTES = 65_536  # in which a state file has its key
MAX_MODULE_BYTES = 2_000_000  # the reader of programs refuses texts of over 200,000 characters itself
_COPY = re.compile(r"scm_.*?(_nocomments|(?<!_v\d)(?<!_v\d\d))\.py")


@dataclass(frozen=True, slots=True)
class ProgramSource:
    """The text of a program.

    label: file, and id or version, as reports name it
    scm_id, version, topology: as a state file states them; empty, None elsewhere
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
    """Yield the programs of a path, those of a folder by name; `PoolError` names file and line of what is none.

    Of a folder with a state file that is read, else the modules and the files of lines; a module without comments
    beside the one with comments, and a copy of the latest version, are not read a second time.
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
            place = path.relative_to(folder).as_posix()
            yield ProgramSource(source.label.replace(path.name, place, 1), source.text)
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
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    record = decode_line(line, ProgramLine, where=f"line {number}")
                except PoolError as error:
                    raise error.with_location(file=path.name) from None
                yield ProgramSource(f"{path.name}:{number}: {in_one_line(record.id)[:80]}", record.source)
    except OSError as error:
        raise PoolError(error.strerror or "cannot be read", file=path.name) from None
    except UnicodeError as error:
        raise PoolError(f"no UTF-8 text: {in_one_line(str(error))}", file=path.name) from None


# --- The bundle of a module that is given as text, so that state files can hold it ------------------------------------


def bundle_of_source(source: str, model: Model, topology: str = "") -> Bundle:
    """Return a bundle with the texts of a module, whose model is `model`.

    Where taking the module apart would change what it means, the bundle is rendered from the model.
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
