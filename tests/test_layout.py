"""The shape of the project, read from its sources: which package may import which, where the compiler is, sizes."""

from __future__ import annotations

import ast
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parent.parent
MAY_IMPORT: dict[str, set[str]] = {
    "dsl": set(),
    "solvers": {"dsl"},
    "audits": {"dsl", "solvers"},
    "baselines": {"dsl", "solvers"},
    "bench": {"dsl", "solvers", "audits", "baselines"},
    "calibrant": {"dsl", "solvers", "audits", "baselines", "bench"},
}
OURS = {*MAY_IMPORT, "tests"}
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 70


def _sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (CHECKOUT / folder).rglob("*.py"))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def _imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full name of everything that is imported anywhere in a file, inside functions and `if`s too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in (
            "import_module",
            "__import__",
        ):
            yield from ((node.lineno, str(name.value)) for name in node.args[:1] if isinstance(name, ast.Constant))


def _upward(tree: ast.Module, package: str) -> list[tuple[int, str]]:
    """Imports that a file of the package may not have: against the direction, or relative."""
    legal = MAY_IMPORT[package] | {package}
    roots = [(line, name, name.partition(".")[0]) for line, name in _imports(tree)]
    return [(line, name) for line, name, root in roots if root == "" or (root in OURS and root not in legal)]


def _compiler(tree: ast.Module, path: Path) -> list[tuple[int, str]]:
    """Imports of numba outside dsl/_jit.py, and of dsl._jit outside kernel files."""
    jit, kernels = path.parts[-2:] == ("dsl", "_jit.py"), path.name.startswith("_kernels")
    return [
        (line, name)
        for line, name in _imports(tree)
        if (name.partition(".")[0] == "numba" and not jit)
        or ((name == "dsl._jit" or name.startswith("dsl._jit.")) and not kernels)
    ]


def _for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _needed(tree: ast.Module) -> set[str]:
    """Full names of what is imported when the file runs, inside functions too; not what only types need."""
    for node in ast.walk(tree):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                block[:] = [item for item in block if not _for_types(item)] or [ast.Pass()]
    return {name for _, name in _imports(tree)}


def _circle(needed: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, if there are any."""
    graph = {
        module: {other for name in names for other in (name, name.rpartition(".")[0]) if other in needed} - {module}
        for module, names in needed.items()
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        return circle
    return []


def _too_long(tree: ast.Module, num_lines: int) -> list[str]:
    long = [f"file of {num_lines} lines"] if num_lines > MAX_FILE_LINES else []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            length = node.end_lineno - first + 1
            if length > MAX_FUNCTION_LINES:
                long.append(f"function {node.name} of {length} lines at line {first}")
    return long


def _where(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_down(package: str) -> None:
    offenders = {_where(path): bad for path in _sources(package) if (bad := _upward(_tree(path), package))}
    assert offenders == {}


def test_no_file_needs_one_that_needs_it() -> None:
    modules = {".".join(path.relative_to(CHECKOUT).with_suffix("").parts): path for path in _sources(*MAY_IMPORT)}
    assert _circle({module: _needed(_tree(path)) for module, path in modules.items()}) == []


def test_numba_is_imported_in_one_file_and_that_by_kernels_only() -> None:
    offenders = {_where(path): bad for path in _sources(*MAY_IMPORT) if (bad := _compiler(_tree(path), path))}
    assert offenders == {}


def test_files_and_functions_fit_the_budget() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in _sources(*OURS)}
    offenders = {_where(path): long for path, n in lines.items() if (long := _too_long(_tree(path), n))}
    assert offenders == {}


def test_importing_the_packages_compiles_nothing() -> None:
    """In a fresh interpreter: neither numba nor any kernel module is loaded by a package's __init__."""
    program = f"""
import sys
import {", ".join(MAY_IMPORT)}
print([name for name in sys.modules if name.partition(".")[0] == "numba" or "._kernels" in name or name == "dsl._jit"])
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_each_package_is_the_one_of_this_checkout_and_typed(package: str) -> None:
    found = importlib.util.find_spec(package)
    assert found is not None
    assert found.origin is not None
    assert Path(found.origin).resolve() == CHECKOUT / package / "__init__.py"
    assert (CHECKOUT / package / "py.typed").is_file()


# --- the checks themselves notice what they are for --------------------------------------------------------------


@pytest.mark.parametrize(
    ("package", "source", "name"),
    [
        ("dsl", "import solvers", "solvers"),
        ("dsl", "def f():\n    from bench.runs.records import Record", "bench.runs.records.Record"),
        ("dsl", "if TYPE_CHECKING:\n    import audits.coverage as c", "audits.coverage"),
        ("solvers", "from baselines.replayscm import fit", "baselines.replayscm.fit"),
        ("audits", "import json, baselines", "baselines"),
        ("baselines", "from audits import coverage", "audits.coverage"),
        ("bench", "import tests.support.strategies", "tests.support.strategies"),
        ("bench", "from . import cli", "..cli"),
        ("dsl", "importlib.import_module('solvers.replayscm.exact')", "solvers.replayscm.exact"),
    ],
)
def test_an_import_against_the_direction_is_noticed(package: str, source: str, name: str) -> None:
    assert [found for _, found in _upward(ast.parse(source), package)] == [name]


@pytest.mark.parametrize(
    ("file", "source", "names"),
    [
        ("dsl/_jit.py", "import numba\nfrom numba.core import config", []),
        ("dsl/replayscm/_kernels_replay.py", "from dsl._jit import kernel", []),
        ("solvers/_kernels_search.py", "import dsl._jit", []),
        ("solvers/_jit.py", "import numba", ["numba"]),
        ("dsl/replayscm/_kernels_replay.py", "def f():\n    from numba import prange", ["numba.prange"]),
        ("dsl/replayscm/replay.py", "from dsl import _jit", ["dsl._jit"]),
        ("dsl/replayscm/replay.py", "from dsl._jit import kernel", ["dsl._jit.kernel"]),
        ("bench/cli.py", "import numbers, dsl.replayscm._kernels_replay", []),
    ],
)
def test_a_stray_compiler_is_noticed(file: str, source: str, names: list[str]) -> None:
    assert [name for _, name in _compiler(ast.parse(source), CHECKOUT / file)] == names


def test_a_circle_is_noticed_unless_it_is_only_for_types() -> None:
    late = "def f():\n    from solvers.replayscm.exact import solve"
    needed = {"solvers.replayscm.exact": {"solvers.fit.fitted"}, "solvers.fit": _needed(ast.parse(late))}
    assert set(_circle(needed)) == {"solvers.replayscm.exact", "solvers.fit"}
    needed["solvers.fit"] = _needed(ast.parse("if TYPE_CHECKING:\n    from solvers.replayscm.exact import solve"))
    assert _circle(needed) == []


def test_excess_length_is_noticed() -> None:
    body = "@given(x)\ndef f():\n" + "    pass\n" * (MAX_FUNCTION_LINES - 2)
    assert _too_long(ast.parse(body), MAX_FILE_LINES) == []
    assert _too_long(ast.parse(body + "    pass\n"), MAX_FILE_LINES + 1) == [
        f"file of {MAX_FILE_LINES + 1} lines",
        f"function f of {MAX_FUNCTION_LINES + 1} lines at line 1",
    ]
