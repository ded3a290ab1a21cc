"""Tests that pass although the shared vectors are empty, or halves: `python -m tests.support.emptied [--half]`.

Finds the tests (of these FILES, or all) that read the shared folder, by the names that they reach, and runs them on
a copy of it in which every file is valid and empty. A test that does not fail there compares nothing when it passes; 0
must be left. `--half` gives the first half of each file's lines instead; `--digests` writes what tells whole files from
such ones.
"""

from __future__ import annotations

import argparse
import ast
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeGuard
from xml.etree import ElementTree

from tests.support.shared import DIGESTS, digest_of, read_shared, shared_folder

ROOT = Path(__file__).resolve().parent.parent.parent
READERS = "tests.support.shared"
POOL = b"metadata:\n  runtimeSchemaVersion: cind-a-scm-runtime-v2\nproblems: []\n"
PARTS = ("blickets", "bnlearn", "causalab", "causim", "family", "frontier", "replayscm")  # read by tests
SPEED_TEXT = "REFERENCE_SPEED.md"  # the only prose that tests read
EMPTY = {".json": b"{}", ".yaml": POOL, ".gz": gzip.compress(b"\n"), ".jsonl": b"\n"}  # others: no byte


def write_emptied(source: Path, target: Path) -> None:
    """Write a copy of a folder in which every file is empty."""
    for path in sorted(source.rglob("*")):
        copy = target / path.relative_to(source)
        if path.is_dir():
            copy.mkdir(parents=True, exist_ok=True)
        else:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(EMPTY.get(path.suffix, b""))


def write_halves(source: Path, target: Path) -> None:
    """Write a copy of a folder in which each file has the first half of its lines, or of its bytes if it has one."""
    for path in (path for path in sorted(source.rglob("*")) if path.is_file()):
        text = read_shared(path)
        lines = text.splitlines(keepends=True)
        half = b"".join(lines[: len(lines) // 2]) or text[: len(text) // 2]
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(gzip.compress(half) if path.suffix == ".gz" else half)


def write_digests(source: Path) -> None:
    """Write the digests of the shared data files, by which a whole file is known."""
    files = (
        path
        for part in PARTS
        for path in (source / part).rglob("*")
        if {path.name, *path.suffixes} & {*EMPTY, SPEED_TEXT}
    )
    paths = sorted(path for path in files if path.is_file())
    lines = (
        f"{json.dumps(str(path.relative_to(source)))}: {json.dumps(digest_of(read_shared(path)))}" for path in paths
    )
    DIGESTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def vector_tests(path: Path) -> list[str]:
    """Return the tests of a file that reach a reader of the shared folder: their names, as pytest has them."""
    return [name for name in sorted(_reaching(path)) if name.rpartition("::")[2].startswith("test_")]


@cache
def _reaching(path: Path) -> frozenset[str]:
    """Return the names at the top of a file, and tests of its classes, that reach a reader, fixtures included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    reaching = set(_imported(tree))
    bodies = list(_bodies(tree))
    before = -1
    while before != len(reaching):
        before = len(reaching)
        reaching |= {name for name, used in bodies if used & reaching}
    return frozenset(reaching)


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the imported names that reach a reader; of an imported module its own name."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tests"):
            continue
        for alias in node.names:
            name = alias.asname or alias.name
            module, below = _file_of(node.module or ""), _file_of(f"{node.module}.{alias.name}")
            if node.module == READERS or (module and alias.name in _reaching(module)) or (below and _reaching(below)):
                yield name


def _file_of(module: str) -> Path | None:
    path = ROOT / f"{module.replace('.', '/')}.py"
    return path if path.is_file() else None


def _bodies(tree: ast.Module) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each name that the file binds at its top, and each method of its tests, with the names that it uses."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}::{part.name}", _used(part)) for part in node.body if _is_function(part))
        if _is_function(node) or isinstance(node, ast.ClassDef):
            yield node.name, _used(node)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, _used(node)) for target in targets if isinstance(target, ast.Name))


def _is_function(node: ast.stmt) -> TypeGuard[ast.FunctionDef | ast.AsyncFunctionDef]:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)


def _used(node: ast.AST) -> frozenset[str]:
    """Return the names that occur in a definition, those of its parameters too, which may be fixtures."""
    nodes = list(ast.walk(node))
    names = {part.id for part in nodes if isinstance(part, ast.Name)}
    return frozenset(names | {part.arg for part in nodes if isinstance(part, ast.arg)})


def passing(files: Sequence[Path], folder: Path) -> list[str]:
    """Return the vector tests of these files that do not fail with this shared folder."""
    ids = [f"{path.relative_to(ROOT)}::{name}" for path in files for name in vector_tests(path)]
    if not ids:
        return []
    report = folder / "report.xml"
    line = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", f"--junitxml={report}", *ids]
    variables = {**os.environ, "CALIBRANT_SHARED": str(folder / "shared"), "CI": "true"}
    done = subprocess.run(line, cwd=ROOT, env=variables, capture_output=True, text=True, check=False)
    if not report.is_file():
        raise SystemExit(done.stdout + done.stderr)
    cases = ElementTree.parse(report).getroot().iter("testcase")  # our own file
    return [
        f"{case.get('classname')}::{case.get('name')}"
        for case in cases
        if case.find("failure") is None and case.find("error") is None
    ]


def main() -> int:
    """Print the tests that do not fail; exit code 1 if there is one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--half", action="store_true")
    parser.add_argument("--digests", action="store_true")
    source = shared_folder()
    if source is None:
        parser.error("no shared folder; set CALIBRANT_SHARED")
    options = parser.parse_args()
    if options.digests:
        write_digests(source)
        return 0
    files = [path.resolve() for path in options.files] or sorted((ROOT / "tests").rglob("test_*.py"))
    # test_shared.py makes folders of its own
    files = [path for path in files if "integrations" not in path.parts and path.name != "test_shared.py"]
    with TemporaryDirectory() as name:
        (write_halves if options.half else write_emptied)(source, Path(name) / "shared")
        tests = passing(files, Path(name))
    number, vectors = sum(len(vector_tests(path)) for path in files), "halves of" if options.half else "empty"
    print(*tests, f"{len(tests)} cases do not fail on {vectors} vectors; {number} tests read vectors", sep="\n")
    return int(bool(tests))


if __name__ == "__main__":
    sys.exit(main())
