"""The law of the house, read from the sources: who may import whom, where the compiler is, sizes, folders and names."""

from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.solvers.blickets.conditions import NoiseSpace, OrderSpace, SwitchSpace
from calibrant.solvers.blickets.exact import UniversalSpace
from calibrant.solvers.blickets.space import StaticSpace
from calibrant.solvers.space import Space
from tests.support.import_walk import file_of, is_climb, nodes_of

# --- The law of the house, read from the sources: who may import whom, where the compiler is, sizes, folders and
# names
#
# Two files in one folder share no prefix (the word before the first underscore): one of them named after the other, or
# both after the same thing, is a folder that is missing. So `score.py` beside `score_rows.py` is against the law too.
CHECKOUT = Path(__file__).resolve().parent.parent
MAY_IMPORT: dict[str, set[str]] = {
    "dsl": set(),
    "solvers": {"dsl"},
    "audits": {"dsl", "solvers"},
    "baselines": {"dsl", "solvers"},
    "bench": {"dsl", "solvers", "audits", "baselines"},
    "calibrant": {"dsl", "solvers", "audits", "baselines", "bench"},
    "calibrant_tasks": {"dsl", "solvers", "audits", "baselines", "bench"},
}
OURS = {*MAY_IMPORT, "tests"}
FOLDERS = ("dsl", "solvers", "audits", "baselines", "bench")  # importable below calibrant alone
BENCHMARKS = {"replayscm", "causalab", "causim", "blickets", "logic"}
BENCHMARK_FOLDERS = tuple(f"bench/{name}/" for name in sorted(BENCHMARKS))
REGISTRY = ("bench/core/names.py", "bench/core/registry.py")
SEES_ALL = (
    *REGISTRY,
    "calibrant/item_types.py",
    "tests/",
)  # types of overloads, and tests
MAX_FOLDER_FILES = 20
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 70


class Size(NamedTuple):
    """Files of a package, their lines, files below 60 lines, and lines of imports."""

    files: int
    lines: int
    small_files: int
    import_lines: int


# may only fall, except in a commit that adds a feature and says so; `python -m tests.test_layout` prints today's
SIZES = {
    "dsl": Size(files=100, lines=32281, small_files=2, import_lines=1466),
    "solvers": Size(files=92, lines=30204, small_files=5, import_lines=1502),
    "audits": Size(files=58, lines=20040, small_files=1, import_lines=1111),
    "baselines": Size(files=28, lines=10059, small_files=2, import_lines=446),
    "bench": Size(files=264, lines=83826, small_files=11, import_lines=6224),
    "calibrant": Size(files=14, lines=2127, small_files=3, import_lines=300),
    "calibrant_tasks": Size(files=2, lines=187, small_files=1, import_lines=28),
    "tests": Size(files=374, lines=101533, small_files=20, import_lines=8553),
}
SLACK = 400  # lines that mends may add to a package before its number has to be stated anew
SMALL = 60

Imports = tuple[tuple[int, str], ...]


def _sources(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (CHECKOUT / folder).rglob("*.py"))


class Source(NamedTuple):
    """What the laws ask of a file: its imports, the names of benchmarks among its literals, what is too long in it."""

    imports: Imports
    literals: frozenset[object]
    too_long: tuple[str, ...]
    lines: int
    import_lines: int


@cache
def _source(path: Path) -> Source:
    """Return what the laws ask of a file of the checkout, which is parsed and walked once.

    Expressions are walked where one may name a benchmark or import a module: they take two thirds of the time.
    """
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text, str(path)), len(text.splitlines())
    nodes = [*(nodes_of(tree) if IN_EXPRESSIONS.search(text) else _statements(tree.body))]
    literals = frozenset(node.value for node in nodes if isinstance(node, ast.Constant))
    imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
    import_lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports)
    too_long = tuple(_too_long(nodes, lines))
    return Source(tuple(_full_imports(nodes)), literals & BENCHMARKS, too_long, lines, import_lines)


IN_EXPRESSIONS = re.compile(rf"import_module|__import__|['\"](?:{'|'.join(sorted(BENCHMARKS))})['\"]")


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Yield statements and those within them, without expressions."""
    for node in body:
        yield node
        for part in ("body", "handlers", "orelse", "finalbody", "cases"):
            yield from _statements(getattr(node, part, ()))


def _called(function: ast.expr) -> str:
    """Return the last name of what is called, if it has one."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _without_prefix(line_and_name: tuple[int, str]) -> tuple[int, str]:
    line, name = line_and_name
    package = name.partition(".")[2].partition(".")[0]
    return line, name.removeprefix("calibrant.") if package in FOLDERS else name


def _full_imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield line and full name of each import anywhere in a file, inside functions and `if`s too."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            yield from ((node.lineno, f"{module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node.func) in ("import_module", "__import__"):
            yield from ((node.lineno, str(name.value)) for name in node.args[:1] if isinstance(name, ast.Constant))


def _imports_in(path: Path) -> Imports:
    """Return line and name of each import of a file, the five packages without `calibrant.` before them."""
    return tuple(map(_without_prefix, _source(path).imports))


def _upward(imports: Imports, package: str) -> list[tuple[int, str]]:
    """List imports that a file of the package may not have: against the direction, or relative."""
    legal = MAY_IMPORT[package] | {package}
    roots = [(line, name, name.partition(".")[0]) for line, name in imports]
    return [(line, name) for line, name, root in roots if root == "" or (root in OURS and root not in legal)]


def _compiler(imports: Imports, path: Path) -> list[tuple[int, str]]:
    """List imports of numba outside dsl/_jit.py, and of dsl._jit outside kernel files."""
    jit, kernels = path.parts[-2:] == ("dsl", "_jit.py"), path.name.startswith("_kernels")
    return [
        (line, name)
        for line, name in imports
        if (name.partition(".")[0] == "numba" and not jit)
        or ((name == "dsl._jit" or name.startswith("dsl._jit.")) and not kernels)
    ]


def _strangers(imports: Imports, where: str) -> list[str]:
    """Benchmarks that a file may not know, by where it stands.

    A benchmark's folder knows its own. What stands outside those folders serves all, and knows none; in calibrant, and
    in developers' measurements, a file may serve one.
    """
    if where.startswith(SEES_ALL):  # of those a test of their own
        return []
    known = {part for _, name in imports if name.partition(".")[0] in MAY_IMPORT for part in name.split(".")}
    met, own = known & BENCHMARKS, BENCHMARKS.intersection(Path(where).with_suffix("").parts)
    if own or not where.startswith(("bench/lab/", "calibrant/")):
        return sorted(met - own)
    return sorted(met) if len(met) > 1 else []


def _mentions_benchmark(path: Path) -> bool:
    """Return whether a file imports a benchmark's module, has its name as a literal, or asks for the default one."""
    imported = {part for _, name in _imports_in(path) for part in name.split(".")}
    return not BENCHMARKS.isdisjoint(imported | _source(path).literals) or "DEFAULT" in imported


def _shared_prefixes(names: Iterable[str]) -> list[list[str]]:
    """Files of one folder that share the word before the first underscore; kernels and the `test_` of tests apart."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        if not name.startswith(("_kernels", "__")):
            groups.setdefault(name.removeprefix("test_").lstrip("_").partition("_")[0], []).append(name)
    return [group for group in groups.values() if len(group) > 1]


def _needed(imports: Imports) -> set[str]:
    """Full names of what is imported, inside functions and for types too."""
    return {name for _, name in imports}


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


def _too_long(nodes: Iterable[ast.AST], num_lines: int) -> list[str]:
    long = [f"file of {num_lines} lines"] if num_lines > MAX_FILE_LINES else []
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            length = node.end_lineno - first + 1
            if length > MAX_FUNCTION_LINES:
                long.append(f"function {node.name} of {length} lines at line {first}")
    return long


def _size(package: str) -> Size:
    files = [_source(path) for path in _sources(package)]
    lines = [file.lines for file in files]
    import_lines = sum(file.import_lines for file in files)
    return Size(len(files), sum(lines), sum(number < SMALL for number in lines), import_lines)


def _where(path: Path) -> str:
    return path.relative_to(CHECKOUT).as_posix()


def _folders(*packages: str) -> dict[str, list[str]]:
    """Return the names of the modules in each folder, without `__init__` and `__main__`."""
    folders: dict[str, list[str]] = {}
    for path in _sources(*packages):
        if not path.stem.startswith("__"):
            folders.setdefault(_where(path.parent), []).append(path.stem)
    return folders


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_imports_point_down(package: str) -> None:
    offenders = {_where(path): bad for path in _sources(package) if (bad := _upward(_imports_in(path), package))}
    assert offenders == {}


def test_no_file_needs_one_that_needs_it() -> None:
    modules = {".".join(path.relative_to(CHECKOUT).with_suffix("").parts): path for path in _sources(*MAY_IMPORT)}
    assert _circle({module: _needed(_imports_in(path)) for module, path in modules.items()}) == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_benchmarks_stay_apart(package: str) -> None:
    offenders = {
        _where(path): bad for path in _sources(package) if (bad := _strangers(_imports_in(path), _where(path)))
    }
    assert offenders == {}


def test_shared_files_of_bench_name_no_benchmark() -> None:
    """Neither by an import nor in a literal: what differs between benchmarks is asked for as a capability."""
    shared = [path for path in _sources("bench") if not _where(path).startswith(("bench/lab/", *BENCHMARK_FOLDERS))]
    assert {_where(path) for path in shared if _mentions_benchmark(path)} - {*REGISTRY} == set()


def test_imports_among_folders_of_bench_point_inwards() -> None:
    """Core serves scoring, runs and pages; these serve reports and pools; benchmarks and commands are outermost."""
    climbs = [
        f"{_where(path)} -> {_where(target)}"
        for path in _sources("bench")
        for target in _targets(path)
        if is_climb(path, target)
    ]
    assert climbs == []


def test_the_top_of_the_checkout_has_what_is_expected_there() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    top = {name.partition("/")[0] for name in tracked.split("\0") if name}
    assert {name for name in top if not re.fullmatch(r"[\w.-]+\.(?:md|cff|lock|toml|py|yaml)", name)} == {
        *OURS,
        *("docs", "Makefile", "LICENSE", ".ci", ".github", ".gitignore"),
    }


def test_no_folder_is_crowded() -> None:
    assert {folder: len(names) for folder, names in _folders(*OURS).items() if len(names) > MAX_FOLDER_FILES} == {}


def test_no_file_is_empty() -> None:
    """A folder below a package needs no `__init__.py` to be imported; one that is there states or holds something."""
    assert [_where(path) for path in _sources(*OURS) if path.stat().st_size == 0 and path.parent.name != "tests"] == []


def test_no_two_files_of_a_folder_share_a_prefix() -> None:
    offenders = {folder: bad for folder, names in _folders(*OURS).items() if (bad := _shared_prefixes(names))}
    assert offenders == {}


def test_the_five_packages_are_imported_below_calibrant_alone() -> None:
    bare = {
        f"{_where(path)}:{line}": name
        for path in _sources(*OURS)
        for line, name in _source(path).imports
        if name.partition(".")[0] in FOLDERS
    }
    assert bare == {}


@pytest.mark.parametrize("name", FOLDERS)
def test_a_package_is_one_module_under_one_name(name: str) -> None:
    link = CHECKOUT / "calibrant" / name
    assert link.is_symlink(), "editors and type checkers follow it"
    assert link.readlink() == Path("..") / name
    with pytest.raises(ImportError, match=rf"import calibrant\.{name}, not {name}"):
        importlib.import_module(name)


def test_numba_is_imported_in_one_file_and_that_by_kernels_only() -> None:
    offenders = {_where(path): bad for path in _sources(*MAY_IMPORT) if (bad := _compiler(_imports_in(path), path))}
    assert offenders == {}


def test_files_and_functions_fit_the_budget() -> None:
    offenders = {_where(path): long for path in _sources(*OURS) if (long := _source(path).too_long)}
    assert offenders == {}


@pytest.mark.parametrize("package", SIZES)
def test_packages_do_not_grow(package: str) -> None:
    """More files than are stated fail at once, more lines beyond the slack: merge or delete, or state the new size."""
    size, limit = _size(package), SIZES[package]
    assert size.files <= limit.files
    assert size.small_files <= limit.small_files
    assert size.lines <= limit.lines + SLACK
    assert size.import_lines <= limit.import_lines + SLACK // 10


PATHS = {
    heading: re.findall(r"^\d+\. `(.+)`$", text, re.MULTILINE)
    for heading, text in re.findall(
        r"^## (Path of .+)\n((?:\d+\. .+\n)+)", (CHECKOUT / "docs/architecture.md").read_text("utf-8"), re.MULTILINE
    )
}


@cache
def _targets(path: Path) -> frozenset[Path]:
    names = [name for _, name in _source(path).imports if not name.startswith(".")]
    modules = [name.rpartition(".")[0] for name in names if "." in name]
    return frozenset(target for name in (*names, *modules) if (target := file_of(name)))


def _reached(start: Path) -> set[Path]:
    """Return the files that a file imports, and what these import; capabilities of benchmarks are not followed."""
    reached, waiting = {start}, [start]
    while waiting:
        for target in _targets(waiting.pop()) - reached:
            reached.add(target)
            waiting.append(target)
    return reached


@cache
def _key_places() -> set[str]:
    """Return the modules that keys of capabilities state."""
    texts = (path.read_text(encoding="utf-8") for path in _sources("bench"))
    return {name for text in texts for name in re.findall(r'Capability\([^)]*, "(\w+):\w+"', text)}


def test_three_paths_are_stated() -> None:
    assert [*PATHS] == ["Path of an answer", "Path of an audit", "Path of an episode"]
    assert min(map(len, PATHS.values())) >= 6


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_files_of_a_stated_path_lead_to_each_other(path: list[str]) -> None:
    """By imports; into a folder of a benchmark by its capabilities: `provides` or a key names the file."""
    for first, second in pairwise(path):
        assert (CHECKOUT / first).is_file()
        assert (CHECKOUT / second).is_file()
        if second.startswith(BENCHMARK_FOLDERS) and not first.startswith(BENCHMARK_FOLDERS):
            provider = CHECKOUT / Path(second).parent / "benchmark.py"
            places = _key_places() | {*re.findall(r'"(\w+):', provider.read_text(encoding="utf-8"))}
            assert Path(second).stem in places, second
        elif first == "bench/command_tree.py":
            assert Path(second).stem in (CHECKOUT / first).read_text(encoding="utf-8")
        else:
            assert CHECKOUT / second in _reached(CHECKOUT / first), f"{first} -> {second}"


def test_importing_the_packages_compiles_nothing() -> None:
    """In a fresh interpreter: neither numba nor any kernel module is loaded by a package's __init__."""
    program = f"""
import sys
import {", ".join(f"calibrant.{name}" if name in FOLDERS else name for name in MAY_IMPORT)}
print([name for name in sys.modules if name.startswith("numba") or "._kernels" in name or name.endswith("._jit")])
"""
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("[]\n", "", 0)


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_each_package_is_the_one_of_this_checkout_and_typed(package: str) -> None:
    module = importlib.import_module(f"calibrant.{package}" if package in FOLDERS else package)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve() == CHECKOUT / package / "__init__.py"
    assert (CHECKOUT / package / "py.typed").is_file()


# --- the checks themselves notice what they are for --------------------------------------------------------------


def _of(source: str) -> Imports:
    return tuple(map(_without_prefix, _full_imports(ast.walk(ast.parse(source)))))


@pytest.mark.parametrize(
    ("package", "source", "name"),
    [
        ("dsl", "import solvers", "solvers"),
        ("solvers", "from calibrant.bench import cli", "bench.cli"),
        ("bench", "from calibrant.running import run", "calibrant.running.run"),
        ("dsl", "def f():\n    from bench.runs.records import Record", "bench.runs.records.Record"),
        ("dsl", "if TYPE_CHECKING:\n    import audits.coverage as c", "audits.coverage"),
        ("bench", "import tests.support.replayscm.strategies", "tests.support.replayscm.strategies"),
        ("bench", "from . import cli", "..cli"),
        ("dsl", "importlib.import_module('solvers.replayscm.exact')", "solvers.replayscm.exact"),
    ],
)
def test_an_import_against_the_direction_is_noticed(package: str, source: str, name: str) -> None:
    assert [found for _, found in _upward(_of(source), package)] == [name]


@pytest.mark.parametrize(
    ("file", "source", "names"),
    [
        ("dsl/_jit.py", "import numba\nfrom numba.core import config", []),
        ("dsl/replayscm/_kernels_evaluator.py", "from dsl._jit import kernel", []),
        ("solvers/_jit.py", "import numba", ["numba"]),
        ("dsl/replayscm/_kernels_evaluator.py", "def f():\n    from numba import prange", ["numba.prange"]),
        ("dsl/replayscm/replay.py", "from dsl._jit import kernel", ["dsl._jit.kernel"]),
        ("bench/cli.py", "import numbers, dsl.replayscm._kernels_evaluator", []),
    ],
)
def test_a_stray_compiler_is_noticed(file: str, source: str, names: list[str]) -> None:
    assert [name for _, name in _compiler(_of(source), CHECKOUT / file)] == names


@pytest.mark.parametrize(
    ("where", "source", "strangers"),
    [
        ("dsl/causim/scope.py", "from dsl.replayscm.scm import Scm", ["replayscm"]),
        ("dsl/replayscm/pools/files.py", "from dsl.replayscm.scm import Scm\nfrom dsl.formulas import text", []),
        ("solvers/formulas/synthesis.py", "def f():\n    from dsl.replayscm import reference", ["replayscm"]),
        ("audits/claims.py", "if TYPE_CHECKING:\n    import dsl.causalab.world", ["causalab"]),
        ("bench/pages/graphs.py", "from dsl.replayscm.scm import Scm", ["replayscm"]),
        ("bench/lab/limits/sweep.py", "from dsl.replayscm.scm import Scm", []),
        ("bench/lab/limits/sweep.py", "import dsl.replayscm.scm, audits.blickets.printed", ["blickets", "replayscm"]),
        ("bench/causim/rows.py", "from dsl.replayscm.scm import Scm", ["replayscm"]),
        ("calibrant/item_types.py", "import dsl.replayscm.scm, audits.blickets.printed", []),
        ("calibrant/verbs.py", "import dsl.replayscm.scm, audits.blickets.printed", ["blickets", "replayscm"]),
        ("solvers/outcome.py", "from elsewhere.replayscm import x", []),
    ],
)
def test_an_import_of_another_benchmark_is_noticed(where: str, source: str, strangers: list[str]) -> None:
    assert _strangers(_of(source), where) == strangers


@pytest.mark.parametrize(
    ("names", "shared"),
    [
        (["score", "scores", "_kernels_a", "_kernels_b", "__init__", "__main__"], []),
        (["score", "score_rows"], [["score", "score_rows"]]),
        (["pool_files", "pool_text", "text"], [["pool_files", "pool_text"]]),
        (["_jit", "jit_cache"], [["_jit", "jit_cache"]]),
        (["test_exact", "test_exact_claims", "test_roots"], [["test_exact", "test_exact_claims"]]),
    ],
)
def test_a_shared_prefix_is_noticed(names: list[str], shared: list[list[str]]) -> None:
    assert _shared_prefixes(names) == shared


def test_a_circle_is_noticed_even_if_it_is_only_for_types() -> None:
    late = "def f():\n    from solvers.replayscm.exact import solve"
    needed = {"solvers.replayscm.exact": {"solvers.fit.fitted"}, "solvers.fit": _needed(_of(late))}
    assert set(_circle(needed)) == {"solvers.replayscm.exact", "solvers.fit"}
    needed["solvers.fit"] = _needed(_of("if TYPE_CHECKING:\n    from solvers.replayscm.exact import solve"))
    assert set(_circle(needed)) == {"solvers.replayscm.exact", "solvers.fit"}
    needed["solvers.fit"] = _needed(_of("from solvers.replayscm import fitting"))
    assert _circle(needed) == []


def test_excess_length_is_noticed() -> None:
    body = "@given(x)\ndef f():\n" + "    pass\n" * (MAX_FUNCTION_LINES - 2)
    assert _too_long(ast.walk(ast.parse(body)), MAX_FILE_LINES) == []
    assert _too_long(ast.walk(ast.parse(body + "    pass\n")), MAX_FILE_LINES + 1) == [
        f"file of {MAX_FILE_LINES + 1} lines",
        f"function f of {MAX_FUNCTION_LINES + 1} lines at line 1",
    ]


# --- What is sealed in an episode stays behind `act`: nobody who plays names a private member of one ------------------
PLAYERS = ("solvers", "baselines")


def _foreign_private(tree: ast.AST) -> list[str]:
    """Private attributes of anything but self and cls, dunders apart, and private names asked for as text."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and _private(node.attr):
            if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                found.append(node.attr)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "object.__getattribute__", "vars"):
            found += [str(a.value) for a in node.args if isinstance(a, ast.Constant) and _private(str(a.value))]
    return found


def _private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__")


def _sealed_members() -> set[str]:
    members: set[str] = set(BlicketEpisode.__slots__)
    assert all(_private(name) for name in members)
    return members


@pytest.mark.parametrize("package", PLAYERS)
def test_no_player_names_a_private_member_of_an_episode(package: str) -> None:
    sealed = _sealed_members()
    sources = sorted((CHECKOUT / package / "blickets").rglob("*.py"))
    assert sources
    named = {path.name: _foreign_private(ast.parse(path.read_text(encoding="utf-8"))) for path in sources}
    assert {name: bad for name, some in named.items() if (bad := sorted(set(some) & sealed))} == {}


def test_a_private_name_is_noticed_in_every_spelling() -> None:
    for source in ("episode._item", "getattr(episode, '_item')", "a.b._item.sealed"):
        assert "_item" in _foreign_private(ast.parse(source))
    assert _foreign_private(ast.parse("self._item, cls._item, x.__class__")) == []


def _as_spaces() -> list[Space]:  # type: ignore[type-arg]  # the members differ
    """Return spaces of detectors as spaces, which the type checker sees."""
    return [StaticSpace.full(2), SwitchSpace.full(2), OrderSpace.full(2), NoiseSpace.full(2), UniversalSpace.full(2)]


def test_every_space_names_its_class() -> None:
    assert len({space.in_words for space in _as_spaces()}) == 5


if __name__ == "__main__":  # what SIZES should state
    for name in SIZES:
        print(f'    "{name}": {_size(name)},')
