"""Every code block of every page is run, or declared in tests/support/pages/declared.py with the reason why not.

Blocks that need a package of an integration are run by tests/integrations/test_pages.py, cells of tutorials by
tests/test_site.py.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.support.commands import CHECKOUT
from tests.support.pages.blocks import PAGES, cell_count, page_name, page_units
from tests.support.pages.declared import NOT_RUN, SETUPS, NotRun, PageSetup
from tests.support.pages.programs import is_as_promised, promised_lines
from tests.support.pages.sessions import session
from tests.support.pages.typed import write_page_modules
from tests.support.tutorials import cells

TEXTS = {page_name(path): path.read_text(encoding="utf-8") for path in PAGES}
UNITS = {page: page_units(page, text) for page, text in TEXTS.items()}
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED = re.compile(r"^\s*from ((?:bench|calibrant|dsl|solvers|audits|baselines)[\w.]*) import (.+)$", re.MULTILINE)
NAMED = re.compile(r"(?<!`)`(calibrant(?:\.\w+)+)(?:\([^`]*\))?`(?!`)")
FILED = re.compile(
    r"(?<!`)`((?:bench|dsl|solvers|audits|baselines|tests|calibrant)/[\w./]*(?:/|\.(?:py|c|json)))`(?!`)"
)
PLACEHOLDERS = re.compile(r"NAME|TOOL|/b[/.]")  # what the reader fills in
INSTALLED = re.compile(r"pip install ['\"]calibrant\[([\w,-]+)\]['\"]")
NEEDED_EXTRAS = {
    "calibrant export": "hub",
    "--cluster ": "cluster",
    "inspect ": "inspect",
}


@pytest.mark.parametrize("page", [page for page, units in UNITS.items() if units])
def test_the_blocks_of_a_page_run_and_print_what_it_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order and in one folder. A block that is neither run nor declared fails: nothing else is known to be text."""
    monkeypatch.chdir(tmp_path)
    setup = SETUPS.get(page, PageSetup())
    units = [unit for unit in UNITS[page] if not any(entry.matches(unit) for entry in NOT_RUN)]
    with session(tmp_path, setup, units) as running:
        for unit in units:
            running.run(unit)
    setup.after(tmp_path)


@pytest.mark.parametrize("entry", NOT_RUN, ids=lambda entry: f"{entry.page}: {entry.start[:30]}")
def test_an_entry_of_what_is_not_run_is_about_one_block(entry: NotRun) -> None:
    assert len([unit for units in UNITS.values() for unit in units if entry.matches(unit)]) == 1


def test_the_cells_of_tutorials_are_all_run() -> None:
    """By the site's tests, which read them otherwise: as many as there are."""
    for path in PAGES:
        text = TEXTS[page_name(path)]
        if cell_count(text):
            assert len(cells(path)) == cell_count(text), path.name


@pytest.mark.parametrize(
    ("printed", "promised", "same"), [("1", "1", True), ("1", "1; a count", True), ("1", "10", False), ("", "1", False)]
)
def test_what_is_printed_is_compared_as_a_whole(printed: str, promised: str, same: bool) -> None:
    assert is_as_promised(printed, promised) is same


def test_a_print_without_its_output_is_refused() -> None:
    assert promised_lines("print(1)  # 1\nfor x in y:\n    print(x)  # a\n    # b\n") == ["1", "a", "b"]
    with pytest.raises(AssertionError, match="does not show"):
        promised_lines("print(1)\n")


@pytest.mark.parametrize("page", TEXTS)
def test_every_name_that_a_page_imports_from_the_project_exists(page: str) -> None:
    """In blocks that are not run here, too."""
    for unit in UNITS[page]:
        for module, names in IMPORTED.findall(unit.text if unit.kind == "python" else ""):
            if module != "calibrant.inspect":  # needs its package: tests/integrations
                for name in names.split(","):
                    assert hasattr(importlib.import_module(module), name.strip()), f"{module}.{name}"


@pytest.mark.parametrize("page", TEXTS)
def test_every_name_and_file_of_the_project_that_a_page_mentions_exists(page: str) -> None:
    for name in NAMED.findall(TEXTS[page]):
        assert PLACEHOLDERS.search(name) or is_name_of_the_project(name), name
    for name in FILED.findall(TEXTS[page]):
        assert PLACEHOLDERS.search(name) or (CHECKOUT / name).exists(), name


@pytest.mark.parametrize(
    ("name", "exists"),
    [("calibrant.rewards", True), ("calibrant.dsl.item", True), ("calibrant.dsl.itme", False), ("calibrant.a", False)],
)
def test_a_name_is_a_module_or_in_one(name: str, exists: bool) -> None:
    assert is_name_of_the_project(name) is exists


def test_a_type_checker_accepts_the_python_of_every_page(tmp_path: Path) -> None:
    """As a user has mypy: its defaults, with packages that are missing here left out; 8 s of the processor."""
    files = write_page_modules(tmp_path)
    assert len(files) > 20
    options = ["--config-file=", "--cache-dir", str(tmp_path / "cache"), "--check-untyped-defs"]
    options += ["--allow-redefinition", "--ignore-missing-imports"]  # a page is one story, which takes up names again
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *map(str, files)], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def is_name_of_the_project(name: str) -> bool:
    try:
        pkgutil.resolve_name(name)
    except (ImportError, AttributeError):
        return False
    return True


@pytest.mark.parametrize("page", TEXTS)
def test_an_installation_that_a_page_prints_has_what_its_commands_need(page: str) -> None:
    for extras in INSTALLED.findall(TEXTS[page]):
        assert set(extras.split(",")) <= PROJECT["optional-dependencies"].keys()
        needed = {extra for start, extra in NEEDED_EXTRAS.items() if start in TEXTS[page]} & {
            "hub",
            "cluster",
            "inspect",
        }
        assert page != "docs/inspect.md" or needed <= set(extras.split(","))
