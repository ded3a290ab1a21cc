"""Generated pages of the site agree with the program; every command and public name has an entry there."""

from __future__ import annotations

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
from tests.support.pages.reference import (
    COMMANDS_PAGE,
    EXAMPLES,
    FORMATS_PAGE,
    GALLERY_PAGE,
    NOT_EXECUTED,
    commands,
    commands_page,
    formats_page,
)

OUTPUT = re.compile(r"(?<=```console\n)(\$ .*\n)(?:.*\n)*?(?=```)")
DOCS = sorted((CHECKOUT / "docs").rglob("*.md"))
PUBLIC_MODULES = {
    "calibrant",
    "calibrant.datasets",
    "calibrant.rewards",
    "calibrant.inspect",
}  # docs/api.md, docs/inspect.md
IMPORTED = re.compile(r"^\s*(?:from|import) ((?:calibrant|bench|dsl|solvers|audits|baselines)[\w.]*)", re.MULTILINE)
AGAIN = "`make pictures` writes it again"


def test_the_page_of_commands_is_what_the_program_has() -> None:
    """Without what examples print: tests/test_pages.py compares that."""
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    assert OUTPUT.sub(r"\1", page) == commands_page(run=False), AGAIN


def test_every_command_has_an_entry_with_an_example_that_was_run() -> None:
    names = {name for _, name, _ in commands()}
    page = COMMANDS_PAGE.read_text(encoding="utf-8")
    assert re.findall(r"^### `calibrant (.+)`$", page, re.MULTILINE) == [name for _, name, _ in commands()]
    assert names == EXAMPLES.keys() | NOT_EXECUTED.keys()
    assert not EXAMPLES.keys() & NOT_EXECUTED.keys()
    for name, line in EXAMPLES.items():
        assert line.startswith(f"calibrant {name}")
        assert f"$ {line}\n" in page


def test_commands_that_return_a_code_say_what_1_means() -> None:
    """Of those whose function returns an integer."""
    codes = {name for _, name, command in commands() if "int" in str(command.callback.__annotations__.get("return"))}
    assert FAILED_CHECKS.keys() <= codes
    assert codes - FAILED_CHECKS.keys() == {"report"}  # 0 always
    assert exit_codes("verify")[1] == FAILED_CHECKS["verify"]
    assert 1 not in exit_codes("show")


def test_the_pages_of_formats_and_pictures_are_what_the_program_has() -> None:
    assert FORMATS_PAGE.read_text(encoding="utf-8") == formats_page(), AGAIN
    assert GALLERY_PAGE.read_text(encoding="utf-8") == gallery_page(), AGAIN
    assert len({shown.name for shown in SHOWN}) == len(SHOWN)


@pytest.mark.parametrize("page", [CHECKOUT / "README.md", *DOCS], ids=lambda page: page.name)
def test_pages_import_public_modules_alone(page: Path) -> None:
    blocks = re.findall(r"^```.*\n((?:.*\n)*?)```", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {name for block in blocks for name in IMPORTED.findall(block)} <= PUBLIC_MODULES


@pytest.mark.parametrize("name", ["rewards", "datasets"])
def test_public_modules_have_all_their_names_on_the_page_of_names(name: str) -> None:
    api = (CHECKOUT / "docs" / "api.md").read_text(encoding="utf-8")
    for public in getattr(calibrant, name).__all__:
        assert f"`{public}`" in api or f"`{public}(" in api, public


def test_every_difficulty_label_says_what_it_counts() -> None:
    """Of all bundled items; and no meaning is there without a label."""
    used: set[str] = set()
    for benchmark in benchmarks():
        for pool in benchmark.bundled:
            for item in benchmark.items.read_pool(bundled_sample(pool)).items:
                used |= calibrant.datasets.difficulty(item).keys()
    assert used == LABELS.keys()
