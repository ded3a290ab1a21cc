"""Programs from elsewhere: files of them, and the bundle of a module that is given as text."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from calibrant.dsl.causim.bundle import Bundle, Definition, bundle_of, graph_record, load_source, module_text
from calibrant.dsl.causim.language.driver import DRIVER, SAMPLER, is_text, located_statements
from calibrant.dsl.causim.model import Model, ModelError
from calibrant.dsl.causim.prose import same_model
from calibrant.dsl.causim.records import read_states
from calibrant.dsl.errors import PoolError, in_one_line
from calibrant.dsl.parse_limits import TooLargeError, decode_json
from calibrant.dsl.records import decode_line, pool_head

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
