"""Generated pages of the site agree with the program; every command and public name has an entry there."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import calibrant
import calibrant.datasets
import calibrant.rewards
from calibrant.bench.core.registry import benchmarks, bundled_sample
from calibrant.bench.help import FAILED_CHECKS, exit_codes
from calibrant.bench.training import LABELS
from tests.support.commands import CHECKOUT
from tests.support.pages.pictures import SHOWN, gallery_page
from tests.support.pages.reference import DOCS as FOLDER
from tests.support.pages.reference import (
    EXAMPLES,
    NAMES,
    NOT_EXECUTED,
    command_pages,
    commands,
    format_pages,
    names_page,
)

OUTPUT = re.compile(r"(?<=```console\n)(\$ .*\n)(?:.*\n)*?(?=```)")
DOCS = sorted((CHECKOUT / "docs").rglob("*.md"))
PUBLIC_MODULES = {
    "calibrant",
    "calibrant.datasets",
    "calibrant.rewards",
    "calibrant.inspect",
}  # docs/names, docs/inspect.md
IMPORTED = re.compile(r"^\s*(?:from|import) ((?:calibrant|bench|dsl|solvers|audits|baselines)[\w.]*)", re.MULTILINE)
AGAIN = "`make pictures` writes it again"


def test_the_pages_of_commands_are_what_the_program_has() -> None:
    """Without what examples print: tests/test_pages.py compares that."""
    pages = command_pages(run=False)
    assert {FOLDER / "commands.md", *(FOLDER / "commands").glob("*.md")} == pages.keys()
    for file, text in pages.items():
        assert OUTPUT.sub(r"\1", file.read_text(encoding="utf-8")) == text, AGAIN


def test_every_command_has_an_entry_with_an_example_that_was_run() -> None:
    names = {name for _, name, _ in commands()}
    pages = "".join(file.read_text(encoding="utf-8") for file in command_pages(run=False))
    assert re.findall(r"^## `calibrant (.+)`$", pages, re.MULTILINE) == [name for _, name, _ in commands()]
    assert names == EXAMPLES.keys() | NOT_EXECUTED.keys()
    assert not EXAMPLES.keys() & NOT_EXECUTED.keys()
    for name, line in EXAMPLES.items():
        assert line.startswith(f"calibrant {name}")
        assert f"$ {line}\n" in pages


def test_commands_that_return_a_code_say_what_1_means() -> None:
    """Of those whose function returns an integer."""
    returned = {name: inspect.unwrap(command.callback).__annotations__.get("return") for _, name, command in commands()}
    codes = {name for name, annotation in returned.items() if "int" in str(annotation)}
    assert FAILED_CHECKS.keys() <= codes
    assert codes - FAILED_CHECKS.keys() == {"report"}  # 0 always
    assert exit_codes("verify")[1] == FAILED_CHECKS["verify"]
    assert 1 not in exit_codes("show")


def test_the_pages_of_formats_names_and_pictures_are_what_the_program_has() -> None:
    pages = format_pages() | {FOLDER / "api.md": names_page(), FOLDER / "gallery.md": gallery_page()}
    assert {*(FOLDER / "formats").glob("*.md")} < pages.keys()
    for file, text in pages.items():
        assert file.read_text(encoding="utf-8") == text, AGAIN
    assert {file.stem for file in (FOLDER / "names").glob("*.md")} == {name for part in NAMES.values() for name in part}
    assert len({shown.name for shown in SHOWN}) == len(SHOWN)


def test_no_page_of_reference_is_longer_than_one_task() -> None:
    """A page of all formats was 43,541 px high: 1,412 lines."""
    for folder in ("commands", "formats", "names"):
        for page in (FOLDER / folder).glob("*.md"):
            assert len(page.read_text(encoding="utf-8").splitlines()) <= 320, page


@pytest.mark.parametrize("page", [CHECKOUT / "README.md", *DOCS], ids=lambda page: page.name)
def test_pages_import_public_modules_alone(page: Path) -> None:
    blocks = re.findall(r"^```.*\n((?:.*\n)*?)```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for block in blocks for name in IMPORTED.findall(block)} <= PUBLIC_MODULES


def test_every_difficulty_label_says_what_it_counts() -> None:
    """Of all bundled items; and no meaning is there without a label."""
    used: set[str] = set()
    for benchmark in benchmarks():
        for pool in benchmark.bundled:
            for item in benchmark.items.read_pool(bundled_sample(pool)).items:
                used |= calibrant.datasets.difficulty(item).keys()
    assert used == LABELS.keys()
