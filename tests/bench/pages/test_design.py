"""The design system: colours stand in one file, text is readable in both themes, pages keep to the tokens."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest

from calibrant.bench.pages.tokens import GROUNDS, TEXT, TOKENS, contrast, token_rules
from tests.support.accessibility import THEMES, measure, needs_axe
from tests.support.commands import CHECKOUT

HEX = re.compile(r"(?<![\w&])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b(?![-\w])")
SUFFIXES = (".py", ".css", ".html", ".js")
EXCEPTIONS: dict[str, int] = {  # file: colours that are still written there; a number may only fall
}


def hex_colours() -> dict[str, int]:
    """Return the colours that are written as numbers, by file."""
    files = (path for package in ("bench", "calibrant") for path in sorted((CHECKOUT / package).rglob("*")))
    texts = {
        path.relative_to(CHECKOUT).as_posix(): path.read_text(encoding="utf-8")
        for path in files
        if path.suffix in SUFFIXES and path.name != "tokens.py"
    }
    return {name: number for name, text in texts.items() if (number := len(HEX.findall(text)))}


def test_no_file_writes_colours_but_the_tokens() -> None:
    assert hex_colours() == EXCEPTIONS, "use var(--token); where a count fell, lower it in EXCEPTIONS"


@pytest.mark.parametrize("theme", THEMES)
def test_text_has_a_contrast_of_4_5_on_every_ground(theme: str) -> None:
    worst = min(
        contrast(getattr(TOKENS[text], theme), getattr(TOKENS[ground], theme))
        for text, ground in product(TEXT, GROUNDS)
    )
    assert worst >= 4.5
    pairs = [("good", "good-ground"), ("bad", "bad-ground"), ("warn", "warn-ground"), ("ink", "warn-ground")]
    assert all(contrast(getattr(TOKENS[a], theme), getattr(TOKENS[b], theme)) >= 4.5 for a, b in pairs)
    assert all(
        contrast(getattr(TOKENS[name], theme), getattr(TOKENS["paper"], theme)) >= 3 for name in ("edge", "focus")
    )


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the known case just below 4.5


def test_the_rules_have_every_token_in_both_themes_and_print_in_light() -> None:
    rules = token_rules()
    for name, token in TOKENS.items():
        assert rules.count(f"--{name}:{token.dark};") == 2
        assert rules.count(f"--{name}:{token.light};") == 2
    assert rules.index("@media print") > rules.index("data-theme=dark")


def test_every_token_that_templates_name_exists() -> None:
    names = set()
    for path in (CHECKOUT / "bench" / "pages" / "templates" / "design").iterdir():
        names |= set(re.findall(r"var\(--([\w-]+)\)", path.read_text(encoding="utf-8")))
    assert names
    assert names <= TOKENS.keys()


@needs_axe
def test_the_measure_notices_what_is_not_accessible(tmp_path: Path) -> None:
    page = (
        "<!DOCTYPE html><html lang='en'><head><title>x</title></head><body><main><h1>x</h1>"
        "<p style='color:#999;background:#fff'>pale</p><div style='width:900px'>wide</div></main></body></html>"
    )
    found = measure(page, tmp_path, width=390)
    assert any(line.startswith("color-contrast") for line in found.violations)
    assert found.scroll_width >= 900
