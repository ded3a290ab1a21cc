"""The interpreter of CauSim programs, of a subset of Python that Python never executes: from text to functions.

Method: closure generation (Feeley and Lapalme, "Using closures for code generation", 1987). `ast.parse` runs once for
each top-level statement; every node becomes a Python closure `frame -> value`, so a call walks no tree. Samplers run
once per path of random choices (exhaustive enumeration with exact fractions); the table of a mechanism is a forward
dynamic programme over its statements, which merges runs that agree on the live variables.
Invariants: only nodes on an allow list become closures, all others raise `Unsupported`; a bound on size precedes
each allocation; no result depends on the hash seed, the clock or the machine.
Bounds: MAX_STEPS a call, MAX_WORK steps and MAX_ENTRIES table entries a program, MAX_SIZE a string or container,
MAX_DEPTH of nesting (all in `execution_limits`); a table costs one run per distinct live state and statement.

The driver goes from source text to functions and the data flow of `run_once`, module statement by module statement.
Parsed as a whole file, a text with a syntax error makes Python try to open the file of its name, to show the line; a
single statement does not. A statement begins at a line without indentation outside strings and brackets; what a form
feed has before it is no indentation.
"""

from __future__ import annotations

import ast
import re
import unicodedata  # noqa: F401  # the parser imports it at the first name that is not ASCII; better now than then
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from calibrant.dsl.causim.language.execution_limits import check_name
from calibrant.dsl.causim.language.randomness import Unsupported
from calibrant.dsl.causim.language.statements import Function, function
from calibrant.dsl.parse_limits import possessive

# --- The statements of a module, parsed one by one so that nothing but the text is ever looked at ---------------------
MAX_SOURCE: Final = 200_000
MAX_CACHED_CHARS: Final = 2_000  # longest statement whose tree is cached; trees are never modified

# Tokens that decide where a statement ends: strings, comments, brackets, continued lines, line ends.
_PIECES: Final = re.compile(
    r'"{3}(?:[^\\]|\\.)*?(?:"{3}|\Z)|'  # an unclosed one extends to the end, so that no text is scanned twice
    r"'{3}(?:[^\\]|\\.)*?(?:'{3}|\Z)|"
    r'"(?:[^"\\\n]|\\.)*"?|'
    r"'(?:[^'\\\n]|\\.)*'?|"
    r"#[^\n]*|\\\n|[()\[\]{}]|\n",
    re.DOTALL,
)
_EMPTY_LINES: Final = re.compile(possessive(r"[ \t\f]*(?:#[^\n]*)?\n", "*"))
# A form feed at the beginning of a line resets the indentation to 0 (Python reference, 2.1.8).
_BEGINNING: Final = re.compile(r"(?:[ \t\f]*+(?<=\f))?(?![ \t\f\n#])")


class InvalidSyntax(Unsupported):
    """The source is no Python text. line: line of the fault, counted from 1; None if the parser names none."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.line = line


def statements(source: str) -> list[ast.stmt]:
    """Return the statements at the top of a module; `Unsupported` in one line if the source does not parse."""
    return [statement for _, statement in located_statements(source)]


def located_statements(source: str) -> list[tuple[int, ast.stmt]]:
    """Return each statement at the top of a module with its line, counted from 1; `Unsupported` as `statements`."""
    if len(source) > MAX_SOURCE:
        raise Unsupported(f"the source is longer than {MAX_SOURCE} characters")
    if "\0" in source:
        raise InvalidSyntax("the source has a null character")
    text = source.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n") + "\n"
    body: list[tuple[int, ast.stmt]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # such as an invalid escape in a string
        for line, part in _parts(text):
            body.extend((line + statement.lineno, statement) for statement in _parse_part(part, line))
    return body


def _parts(text: str) -> Iterator[tuple[int, str]]:
    """Yield each statement with the number of lines before it.

    Blank lines and comments belong to the statement before them; those before the first statement are dropped.
    """
    start = _EMPTY_LINES.match(text).end()  # type: ignore[union-attr]  # the pattern also matches the empty string
    line = lines_before = text.count("\n", 0, start)
    depth = 0
    for piece in _PIECES.finditer(text, start):
        token = piece.group()
        if token == "\n":
            line += 1
            if depth <= 0 and _BEGINNING.match(text, piece.end()):
                if text[start : piece.end()].strip():
                    yield lines_before, text[start : piece.end()]
                start, lines_before = piece.end(), line
        elif token in "([{":
            depth += 1
        elif token in ")]}":
            depth -= 1
        else:
            line += token.count("\n")
    if text[start:].strip():
        yield lines_before, text[start:]


def _parse_part(part: str, lines_before: int) -> Sequence[ast.stmt]:
    try:
        return _cached_tree(part) if len(part) <= MAX_CACHED_CHARS else _tree(part)
    except SyntaxError as error:
        line = lines_before + (error.lineno or 1)
        raise InvalidSyntax(f"the source does not parse, line {line}", line) from None
    except (ValueError, RecursionError, MemoryError):
        line = lines_before + 1
        raise InvalidSyntax(f"the source does not parse, from line {line}", line) from None


def _tree(part: str) -> tuple[ast.stmt, ...]:
    tree = compile(part, "<program>", "single", ast.PyCF_ONLY_AST, dont_inherit=True)
    assert isinstance(tree, ast.Interactive)
    return tuple(tree.body)


_cached_tree = lru_cache(maxsize=512)(_tree)  # versions of a program have most of their functions in common


# --- From source text to functions and the data flow of `run_once`: the noise and parents that each mechanism is given
DRIVER: Final = "run_once"
SAMPLER, MECHANISM = "U_", "f_"  # prefixes of function names


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a mechanism; sources: for each parameter the function whose result it gets, U_* or f_*."""

    mechanism: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Parsed:
    """A module in the language.

    steps: the mechanisms in the order in which the driver calls them
    returned: the key of the returned dict for each mechanism
    """

    functions: Mapping[str, Function]
    steps: tuple[Call, ...]
    returned: Mapping[str, str]


class UnsupportedAt(Unsupported):
    """A construct outside the language. line: counted from 1; function_name: where it is, empty for the module."""

    def __init__(self, message: str, line: int, function_name: str = "") -> None:
        super().__init__(message)
        self.line = line
        self.function_name = function_name


def parse(source: str) -> Parsed:
    """Read a module without running any of it; `Unsupported` in one line for what is not in the language."""
    definitions = read_definitions(source)
    if DRIVER not in definitions:
        raise Unsupported(f"the module has no {DRIVER}")
    functions = read_functions(definitions)
    try:
        steps, returned = _Flow(functions).read_driver(definitions[DRIVER][1])
    except Unsupported as error:
        raise Unsupported(f"{DRIVER}: {error}") from None
    return Parsed(functions, steps, returned)


def read_definitions(source: str) -> dict[str, tuple[int, ast.FunctionDef]]:
    """Return each function of a module with its line, counted from 1, by its name."""
    definitions: dict[str, tuple[int, ast.FunctionDef]] = {}
    for line, node in located_statements(source):
        if isinstance(node, ast.Import | ast.ImportFrom) or is_text(node):
            continue
        if not isinstance(node, ast.FunctionDef):
            raise UnsupportedAt(f"{type(node).__name__} at the top of the module", line)
        try:
            name = check_name(node.name)
        except Unsupported as error:
            raise UnsupportedAt(str(error), line) from None
        if name in definitions:
            raise UnsupportedAt(f"{name} is defined twice", line, name)
        definitions[name] = line, node
    return definitions


def read_functions(definitions: Mapping[str, tuple[int, ast.FunctionDef]]) -> dict[str, Function]:
    """Read the samplers and mechanisms among the functions of a module."""
    functions = {}
    for name, (line, node) in definitions.items():
        if name == DRIVER:
            continue
        if not name.startswith((SAMPLER, MECHANISM)):
            raise UnsupportedAt(f"the function {name!a} is neither {SAMPLER} nor {MECHANISM} nor {DRIVER}", line)
        try:
            functions[name] = function(node, random=name.startswith(SAMPLER))
        except Unsupported as error:
            raise UnsupportedAt(f"{name}: {error}", line, name) from None
        if name.startswith(SAMPLER) and functions[name].parameters:
            raise UnsupportedAt(f"{name}: a sampler has no parameters", line, name)
    return functions


def is_text(node: ast.stmt) -> bool:
    """Return whether a statement is a text alone, such as a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and type(node.value.value) is str


class _Flow:
    """Follows the variables of the driver: each holds the noise of a sampler or the value of a mechanism."""

    def __init__(self, functions: Mapping[str, Function]) -> None:
        self.functions = functions
        self.holds: dict[str, str] = {}
        self.called: set[str] = set()
        self.steps: list[Call] = []
        self.dicts: dict[str, ast.Dict] = {}

    def read_driver(self, driver: ast.FunctionDef) -> tuple[tuple[Call, ...], dict[str, str]]:
        if driver.decorator_list:
            raise Unsupported("a decorator")
        signature, seeds = driver.args, seed_names(driver)
        for default in [*signature.defaults, *signature.kw_defaults]:
            if default is not None and not isinstance(default, ast.Constant):
                raise Unsupported("a default that is no constant")
        *body, last = driver.body
        for statement in body:
            if not is_text(statement) and not is_seeding(statement, seeds):
                self._assignment(statement)
        if not isinstance(last, ast.Return):
            raise Unsupported("it does not end by returning the outputs")
        value = self.dicts.get(last.value.id) if isinstance(last.value, ast.Name) else last.value
        returned = self._read_return(value)
        missing = sorted(set(self.functions) - self.called)
        if missing:
            raise Unsupported(f"{missing[0]} is never called")
        return tuple(self.steps), returned

    def _assignment(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            target, value = node.target, node.value
        else:
            raise Unsupported(f"{type(node).__name__} in the driver")
        if not isinstance(target, ast.Name):
            raise Unsupported("it assigns to something other than a name")
        name = check_name(target.id)
        if name in self.holds or name in self.dicts or name in self.functions:
            raise Unsupported(f"the name {name!a} is bound twice")
        if isinstance(value, ast.Dict):
            self.dicts[name] = value
        elif isinstance(value, ast.Name):
            self.holds[name] = self._source(value)
        elif isinstance(value, ast.Call):
            self.holds[name] = self._call(value)
        else:
            raise Unsupported(f"{type(value).__name__} in the driver")

    def _call(self, node: ast.Call) -> str:
        called = self.functions.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if called is None:
            raise Unsupported("it calls something other than U_ and f_ functions of the module")
        if called.name in self.called:
            raise Unsupported(f"{called.name} is called twice")
        self.called.add(called.name)
        sources = [self._source(argument) for argument in node.args]
        by_name = {keyword.arg or "**": self._source(keyword.value) for keyword in node.keywords}
        by_keyword = called.parameters[len(sources) :]
        if (
            len(sources) > len(called.parameters)
            or len(by_name) < len(node.keywords)
            or set(by_name) != set(by_keyword)
        ):
            raise Unsupported(f"{called.name} is not given exactly its parameters")
        if called.name.startswith(MECHANISM):
            self.steps.append(Call(called.name, (*sources, *(by_name[parameter] for parameter in by_keyword))))
        return called.name

    def _source(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name) or node.id not in self.holds:
            raise Unsupported("an argument or output is not the result of an earlier call")
        return self.holds[node.id]

    def _read_return(self, node: ast.expr | None) -> dict[str, str]:
        if not isinstance(node, ast.Dict):
            raise Unsupported("it does not return a dict of the outputs")
        returned: dict[str, str] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            source = self._source(value)
            if not isinstance(key, ast.Constant) or type(key.value) is not str or not source.startswith(MECHANISM):
                raise Unsupported("the returned dict is not from texts to outputs")
            if key.value.lower() != source[2:].lower() or source in returned or key.value in returned.values():
                raise Unsupported(f"the output of {source} is returned under another name, or twice")
            returned[source] = key.value
        lost = [step.mechanism for step in self.steps if step.mechanism not in returned]
        if lost:
            raise Unsupported(f"the output of {lost[0]} is not returned")
        return returned


def seed_names(driver: ast.FunctionDef) -> set[str]:
    """Return the parameters of the driver, any of which may be its seed."""
    signature = driver.args
    return {parameter.arg for parameter in [*signature.posonlyargs, *signature.args, *signature.kwonlyargs]}


def is_seeding(node: ast.stmt, seeds: set[str]) -> bool:
    """Return whether a statement is `random.seed(seed)`, or that behind `if seed is not None`."""
    if isinstance(node, ast.If) and len(node.body) == 1 and not node.orelse:
        test = node.test
        names = {part.id for part in ast.walk(test) if isinstance(part, ast.Name)}
        simple = isinstance(test, ast.Name) or (
            isinstance(test, ast.Compare)
            and isinstance(test.left, ast.Name)
            and all(isinstance(part, ast.Constant) for part in test.comparators)
        )
        return simple and names <= seeds and is_seeding(node.body[0], seeds)
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    call = node.value
    return (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "seed"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "random"
        and not call.keywords
        and all(isinstance(argument, ast.Name) and argument.id in seeds for argument in call.args)
    )
