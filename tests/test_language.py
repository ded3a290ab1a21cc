"""The language of the code, counted: CONTRIBUTING.md has the rules, `EXCEPTIONS` what is still to be reworded.

A count may only fall: a package that has fewer exceptions than are listed fails too, until the list is lowered.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.support.import_walk import nodes_of

CHECKOUT = Path(__file__).resolve().parent.parent
PACKAGES = ("dsl", "solvers", "audits", "baselines", "bench", "calibrant", "calibrant_tasks")

WORD_WITHOUT_A_NOUN = re.compile(
    r"_*(found|made|one|other|own|left|said|told|asked|shown|wanted|kept|given|seen|known|drawn|here|there|each|what|whose"
    r"|neither|both|theirs|ours)_*"
)
CLAUSE_WITHOUT_A_HEAD = re.compile(r"(What|Whose|Of|Where|How|The same)\b")
LIMITS_WITHOUT_A_UNIT = re.compile(r"_?(MOST|LARGEST|LONGEST)_|_?KEPT$")
HOUSE_PHRASES = re.compile(r"no such thing|cannot be meant|\bnobody\b|\bsays\b")

DOTTED = re.compile(rf"(?<![\w./-])(?:(?:{'|'.join((*PACKAGES, 'tests'))})(?:\.[A-Za-z_]\w*)+)(?![\w/-])")
QUOTED = re.compile(r'"""(.*?)"""', re.DOTALL)  # docstrings are quoted so: ruff, D300
STORED = {"dsl.reference", "baselines.generator_prior"}  # values of fields of records, which stay
FILE_ENDINGS = {"py", "md", "json", "jsonl", "toml", "txt", "yaml", "html", "csv", "zip", "inspect_ai"}

EXCEPTIONS: dict[str, dict[str, int]] = {
    "dsl": {"names": 12},
    "audits": {"names": 6, "phrases": 1},
    "baselines": {"phrases": 1},
    "bench": {"names": 19, "phrases": 9, "docstrings": 7},
    "calibrant": {"phrases": 1, "names": 1, "constants": 1},
}


def _names(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names that a file gives to functions, classes, parameters and variables."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def _docstrings(nodes: Iterable[ast.AST]) -> Iterator[ast.Constant]:
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            value = first.value if isinstance(first, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value


def _messages(nodes: Iterable[ast.AST], docstrings: Iterable[ast.Constant]) -> Iterator[str]:
    """Yield the literals of a file that are no docstrings: messages and help among them."""
    excluded = set(map(id, docstrings))
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in excluded:
            yield node.value


def count_exceptions(tree: ast.Module, stem: str) -> Counter[str]:
    """Count what a file has against each rule."""
    nodes = [*nodes_of(tree)]  # once for all rules: four walks take longer than parsing
    names, docstrings = [stem, *_names(nodes)], [*_docstrings(nodes)]
    counts: Counter[str] = Counter()
    counts["names"] = sum(bool(WORD_WITHOUT_A_NOUN.fullmatch(name)) for name in names)
    counts["docstrings"] = sum(bool(CLAUSE_WITHOUT_A_HEAD.match(str(node.value))) for node in docstrings)
    counts["constants"] = sum(bool(LIMITS_WITHOUT_A_UNIT.match(name)) for name in names if name.isupper())
    counts["phrases"] = sum(bool(HOUSE_PHRASES.search(text)) for text in _messages(nodes, docstrings))
    return counts


def count_package(package: str) -> dict[str, int]:
    """Count what the files of a package have against each rule, rules that hold left out."""
    counts: Counter[str] = Counter()
    for path in sorted((CHECKOUT / package).rglob("*.py")):
        counts += count_exceptions(ast.parse(path.read_text(encoding="utf-8")), path.stem)
    return {rule: count for rule, count in counts.items() if count}


@pytest.mark.parametrize("package", PACKAGES)
def test_exceptions_only_fall(package: str) -> None:
    counts, listed = count_package(package), EXCEPTIONS.get(package, {})
    more = {rule: count for rule, count in counts.items() if count > listed.get(rule, 0)}
    assert not more, f"more than the {listed} that are listed: reword what was added"
    assert counts == listed, "fewer than are listed: lower EXCEPTIONS"


@pytest.mark.parametrize(
    ("source", "rule"),
    [
        ("def found(x): ...", "names"),
        ("def f(own): ...", "names"),
        ("for left in x: ...", "names"),
        ("class _Kept: ...", ""),
        ("class kept: ...", "names"),
        ('def f():\n    """What is left."""', "docstrings"),
        ('"""The same, sorted."""', "docstrings"),
        ('def f():\n    """Return the whole."""', ""),
        ("MOST_ITEMS = 3", "constants"),
        ("_KEPT = 3", "constants"),
        ("MAX_ITEMS = 3", ""),
        ("raise ValueError('there is no such thing here')", "phrases"),
        ("x = f'{y} says so'", "phrases"),
        ('"""Nobody: there is no such thing."""', ""),
    ],
)
def test_an_exception_is_noticed(source: str, rule: str) -> None:
    assert +count_exceptions(ast.parse(source), "file") == Counter([rule] if rule else [])


def test_no_package_ignores_docstring_rules() -> None:
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ruff"]["lint"]
    assert {"D2", "D3", "D400", "D401", "D403", "D404", "D415"} <= set(settings["extend-select"])
    ignored = {pattern: rules for pattern, rules in settings["per-file-ignores"].items() if str(rules).count("'D")}
    assert not ignored
    assert not [rule for rule in settings["ignore"] if rule.startswith("D")]


@cache
def resolves(name: str) -> bool:
    """Return whether a dotted name is a package, a module, or a name that one binds, with a method of it or not."""
    parts = name.removeprefix("calibrant.").split(".") if name.split(".")[1] in PACKAGES else name.split(".")
    for number in range(len(parts), 0, -1):
        path = CHECKOUT.joinpath(*parts[:number])
        for file in (path.with_suffix(".py"), path / "__init__.py"):
            if file.is_file():
                return number == len(parts) or tuple(parts[number:]) in bound_names(file)
        if path.is_dir() and number == len(parts):
            return True
    return False


@cache
def bound_names(file: Path) -> frozenset[tuple[str, ...]]:
    """Return the names at the top of a file, and those of its classes."""
    return frozenset(_bound(ast.parse(file.read_text(encoding="utf-8")).body))


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, ...]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield (node.name,)
            if isinstance(node, ast.ClassDef):
                yield from ((node.name, *names) for names in _bound(node.body))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((alias.asname or alias.name,) for alias in node.names)
        elif isinstance(node, ast.If | ast.Try):
            yield from _bound(node.body)
        else:
            yield from ((part.id,) for part in ast.walk(node) if isinstance(part, ast.Name) and _is_stored(part))


def _is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


def texts(path: Path) -> Iterator[str]:
    """Yield the docstrings and comments of a file of code; of any other file all."""
    source = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield source
        return
    lines = [line for line in source.splitlines() if not line.lstrip().startswith(("from ", "import "))]
    quoted = QUOTED.findall(source)
    if all(resolves(name) for text in quoted for name in dotted_names(text)):  # parsing takes most of the time
        yield from quoted
    else:  # of a docstring, or of another text
        yield from (str(node.value) for node in _docstrings(nodes_of(ast.parse(source))))
    yield from (line.partition("#")[2] for line in lines)


def dotted_names(text: str) -> Iterator[str]:
    """Yield the dotted names of the project in a text; names of files are none."""
    for match in DOTTED.finditer(text):
        ending = match[0].rpartition(".")[2]
        if ending not in FILE_ENDINGS and match[0] not in STORED and "__" not in match[0] and ending != "NAME":
            yield match[0]


def named_files() -> list[Path]:
    """Return the files whose words name code: sources, tests, docs and the pages at the top."""
    folders = [CHECKOUT / folder for folder in (*PACKAGES, "tests", "docs")]
    below = [path for folder in folders for suffix in ("*.py", "*.md") for path in folder.rglob(suffix)]
    top = [path for path in CHECKOUT.glob("*.md") if path.name != "CHANGELOG.md"]  # which names what is gone
    return sorted({path.resolve() for path in [*below, *top]})


def test_every_dotted_name_exists() -> None:
    number, missing = 0, []
    for path in named_files():
        for name in (name for text in texts(path) for name in dotted_names(text)):
            number += 1
            if not resolves(name):
                missing.append(f"{path.relative_to(CHECKOUT)}: {name}")
    assert number > 100
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("see solvers.outcome.Budget.spend", []),
        ("see calibrant.solvers.outcome", []),
        ("`dsl.replayscm` is a package, bench/cli.py a file", []),
        ("solvers.outcome.NoBudget, calibrant.dsl.gone", ["solvers.outcome.NoBudget", "calibrant.dsl.gone"]),
        ("the public calibrant.fit and calibrant.vanish", ["calibrant.vanish"]),
    ],
)
def test_a_name_that_is_gone_is_noticed(text: str, gone: list[str]) -> None:
    assert [name for name in dotted_names(text) if not resolves(name)] == gone


if __name__ == "__main__":  # what EXCEPTIONS should list
    for name in PACKAGES:
        print(f'    "{name}": {count_package(name)},')
