"""Pages of the documentation: code is run, links lead somewhere, named tests and pictures are those of today."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.generated import write_drawn
from tests.support.commands import CHECKOUT, called
from tests.support.models import served
from tests.support.pages.blocks import PAGES, cell_count, is_as_promised, page_name, page_units, promised_lines
from tests.support.pages.declared import NOT_RUN, SETUPS, NotRun, PageSetup
from tests.support.pages.pictures import GALLERY, IMAGES, SHOWN, THEMES, drawings, page_text, write_pages
from tests.support.pages.sessions import session
from tests.support.pages.typed import write_page_modules
from tests.support.tutorials import cells

# --- Every code block of every page is run, or declared in tests/support/pages/declared.py with the reason why not ----
# Blocks that need a package of an integration are run by tests/integrations/test_pages.py, cells of tutorials by
# tests/test_site.py, the preparations of docs/papers.md before the commands of its tables by tests/test_papers_page.py.
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
UNFOLLOWED = ("IPython", "PIL", "jinja2", "llvmlite", "markdown_it", "numba", "pydantic", "pyparsing", "rich")
"""Packages that code of the project uses and no page: to read their sources is two fifths of checking types."""
NEEDED_EXTRAS = {
    "calibrant export": "hub",
    "--cluster ": "cluster",
    "inspect ": "inspect",
}


@pytest.mark.parametrize("page", [page for page, units in UNITS.items() if units and page != "docs/papers.md"])
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
    """As a user has mypy: its defaults, with packages that are missing here left out.

    With a cache in the checkout, as a user's: without one it takes 17 s of the processor.
    """
    files = write_page_modules(tmp_path)
    assert len(files) > 20
    imported = rf"^ *(?:from|import) .*\b(?:{'|'.join(UNFOLLOWED)})\b"
    assert not [file.name for file in files if re.search(imported, file.read_text("utf-8"), re.MULTILINE)]
    settings = tmp_path / "mypy.ini"
    settings.write_text(f"[mypy]\n[mypy-{'.*,'.join(UNFOLLOWED)}.*]\nfollow_imports = skip\n", encoding="utf-8")
    options = ["--config-file", str(settings), "--cache-dir", str(CHECKOUT / ".mypy_cache" / "pages")]
    options += [
        "--check-untyped-defs",
        "--allow-redefinition",
        "--ignore-missing-imports",
    ]  # a page is one story, which takes up names again
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


# --- The example of docs/models.md, as it stands there: from prompts to scores, against a model on the loopback -------
MODELS_PAGE = (CHECKOUT / "docs" / "models.md").read_text(encoding="utf-8")
(PROGRAM,) = re.findall(r"```python\n(.*?)```", MODELS_PAGE, re.DOTALL)


def _ask(folder: Path, url: str, check: bool = True) -> int:
    settings = {**os.environ, "MODEL_URL": url, "MODEL_KEY": "none", "no_proxy": "*"}
    line = [sys.executable, "-c", PROGRAM, "prompts.jsonl", "my-model", "answers.jsonl"]
    return subprocess.run(line, cwd=folder, env=settings, check=check, timeout=60, capture_output=True).returncode


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, str]:
    """Prompts of a pool in a folder, and a right answer to each."""
    bench = benchmark("causim")
    write_drawn(bench, tmp_path / "pool.jsonl", ["chain"], 1, 6)
    called("prompts", tmp_path / "pool.jsonl", "--out", tmp_path / "prompts.jsonl")
    items = bench.items.read_pool(tmp_path / "pool.jsonl").items
    return {bench.items.prompt(item): json.dumps(bench.training.gold(item)) for item in items}


def test_it_is_as_short_as_it_says() -> None:
    assert len(PROGRAM.splitlines()) <= 25


def test_from_prompts_to_scores(tmp_path: Path, asked: dict[str, str]) -> None:
    with served(lambda messages: asked[messages[-1]["content"]]) as url:
        _ask(tmp_path, url)
    called("score", tmp_path / "pool.jsonl", tmp_path / "answers.jsonl", "--out", tmp_path / "scores.jsonl")
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert [(score["model"], score["correct"]) for score in scores] == [("my-model", True)] * 6


def test_it_goes_on_from_what_is_written(tmp_path: Path, asked: dict[str, str]) -> None:
    """After three answers, of which one was cut off in the middle of its line."""
    with served(lambda messages: asked[messages[-1]["content"]]) as url:
        _ask(tmp_path, url)
        whole = (tmp_path / "answers.jsonl").read_text().splitlines(keepends=True)
        (tmp_path / "answers.jsonl").write_text("".join(whole[:2]) + whole[2][:20])
    calls: list[list[dict[str, Any]]] = []
    with served(lambda messages: asked[messages[-1]["content"]], calls) as url:
        _ask(tmp_path, url)
    again = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
    assert len(calls) == 4
    assert [(line["instanceId"], line["response"]) for line in again] == [
        (line["instanceId"], line["response"]) for line in map(json.loads, whole)
    ]


def test_an_endpoint_that_is_not_there_is_an_error(tmp_path: Path, asked: dict[str, str]) -> None:
    assert _ask(tmp_path, "http://127.0.0.1:9/v1", check=False) != 0
    assert (tmp_path / "answers.jsonl").read_text() == ""


# --- Pictures of README and site are those that the program draws now -------------------------------------------------
AGAIN = "`make pictures` draws it again"
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
IMAGE_DIRECTIVE = re.compile(r"```\{image\} (\S+)\n((?::.*\n)*)")
HTML_IMAGE = re.compile(r"<img [^>]*>")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    write_pages(folder)
    return folder


def test_drawings_are_the_same_bytes() -> None:
    for name, svg in drawings():
        assert (IMAGES / name).read_text(encoding="utf-8") == svg, AGAIN


@pytest.mark.parametrize("name", [shown.name for shown in SHOWN])
def test_a_screenshot_is_of_a_page_with_this_text(name: str, pages: Path) -> None:
    text = page_text((pages / f"{name}.html").read_text(encoding="utf-8"))
    assert (GALLERY / f"{name}.txt").read_text(encoding="utf-8") == text, AGAIN


def test_the_folder_has_these_pictures_and_nothing_else() -> None:
    pictures = {shown.picture(part, theme) for shown in SHOWN for part in shown.parts for theme in THEMES}
    assert {path.name for path in GALLERY.iterdir()} == pictures | {f"{shown.name}.txt" for shown in SHOWN}
    for name in pictures:
        assert (GALLERY / name).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    "page", [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_picture_is_there_and_is_described(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    described = [(path, alt) for alt, path in MARKDOWN_IMAGE.findall(text)]
    for path, options in IMAGE_DIRECTIVE.findall(text):
        described.append((path, "".join(re.findall(r":alt: (.*)", options))))
    for tag in HTML_IMAGE.findall(text):
        described.append((re.findall(r'src="([^"]+)"', tag)[0], "".join(re.findall(r'alt="([^"]*)"', tag))))
    for path, alt in described:
        assert (page.parent / path).is_file(), path
        assert len(alt) > 10, path


# --- The findings that need nothing but the project come out as docs/findings.md says ---------------------------------
FINDINGS = (CHECKOUT / "docs" / "findings.md").read_text(encoding="utf-8")


def test_tests_that_are_named_exist() -> None:
    for path in re.findall(r"pytest (tests/[\w/.]+)", FINDINGS):
        assert (CHECKOUT / path).exists()
    (name,) = re.findall(r"`(test_\w+)`", FINDINGS)
    assert f"def {name}(" in (CHECKOUT / "tests/baselines/structure_learning/test_search.py").read_text("utf-8")
