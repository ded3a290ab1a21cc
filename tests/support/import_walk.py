"""Folders that a reader enters from a command, and imports that climb: `python -m tests.support.import_walk`.

Imports are followed from the sources, inside functions too, but not into the folders of benchmarks, which commands ask
for by capability. A climb is an import from an inner layer of bench to an outer one.
"""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from calibrant.bench.core.names import TITLES

CHECKOUT = Path(__file__).resolve().parents[2]
STARTS = {
    "score": "bench/commands/score.py",
    "audit": "bench/commands/audit.py",
    "run": "bench/commands/run.py",
    "cluster job": "bench/runs/executors.py",
}
LAYERS = (
    ("core",),
    ("protocols", "scoring", "runs", "pages"),
    ("report", "pools", "hub", "training", "variants"),
    ("suites", "play"),
    ("commands",),
)
LEVEL = {folder: level for level, folders in enumerate(LAYERS) for folder in folders}


def nodes_of(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree and what it consists of, without contexts and operators: a third of the time of `ast.walk`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        for field in node._fields:
            if field in ("ctx", "op", "ops"):
                continue
            value = getattr(node, field, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [part for part in value if isinstance(part, ast.AST)]


def imported_files(file: Path) -> Iterator[Path]:
    """Yield the files of the checkout that a file imports, for types too."""
    for node in nodes_of(ast.parse(file.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            if target := file_of(name):
                yield target


def file_of(name: str) -> Path | None:
    """Return the file of the checkout that a module has, None if it has none."""
    target = CHECKOUT.joinpath(*name.removeprefix("calibrant.").split(".")).with_suffix(".py")
    return target if target.is_file() else None


def walk(start: str) -> tuple[set[Path], list[tuple[Path, Path]]]:
    """Return the files reached from one file, and the imports among them that climb."""
    first = CHECKOUT / start
    reached, waiting, climbs = {first}, deque([first]), []
    while waiting:
        file = waiting.popleft()
        for target in dict.fromkeys(imported_files(file)):
            if is_climb(file, target):
                climbs.append((file, target))
            if target not in reached and not TITLES.keys() & set(target.relative_to(CHECKOUT).parts):
                reached.add(target)
                waiting.append(target)
    return reached, climbs


def is_climb(source: Path, target: Path) -> bool:
    """Return whether an import leads from an inner layer of bench to an outer one."""
    levels = [LEVEL.get(path.relative_to(CHECKOUT / "bench").parts[0]) for path in (source, target) if _in_bench(path)]
    return len(levels) == 2 and None not in levels and levels[0] < levels[1]  # type: ignore[operator]  # no None


def _in_bench(path: Path) -> bool:
    return path.is_relative_to(CHECKOUT / "bench")


def main() -> None:
    """Print files, folders and climbs by command."""
    for name, start in STARTS.items():
        reached, climbs = walk(start)
        folders = {path.parent.relative_to(CHECKOUT).as_posix() for path in reached}
        print(f"{name}: {len(reached)} files in {len(folders)} folders, {len(climbs)} climbs")
        for source, target in climbs:
            print(f"  {source.relative_to(CHECKOUT)} -> {target.relative_to(CHECKOUT)}")


if __name__ == "__main__":
    main()
