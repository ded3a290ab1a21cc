"""Pages in the design system, hostile names in them, and JSON that is written piece by piece."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pages.tokens import BACKGROUNDS, TEXT, TOKENS, contrast, token_rules
from calibrant.bench.runs.audits import list_pieces, object_pieces
from calibrant.bench.terminal import json_text
from calibrant.dsl.item import Pool
from tests.bench.terminal.test_terminal import NAME, acting
from tests.support.accessibility import THEMES, measure, needs_axe
from tests.support.commands import CHECKOUT
from tests.support.replayscm.records import native_file, native_record

# --- The design system: colours stand in one file, text is readable in both themes, pages keep to the tokens ----------
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
        for text, ground in product(TEXT, BACKGROUNDS)
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
    assert names <= {*TOKENS, "least"}  # a figure states its least width itself


@needs_axe
def test_the_measure_notices_what_is_not_accessible(tmp_path: Path) -> None:
    page = (
        "<!DOCTYPE html><html lang='en'><head><title>x</title></head><body><main><h1>x</h1>"
        "<p style='color:#999;background:#fff'>pale</p><div style='width:900px'>wide</div></main></body></html>"
    )
    found = measure(page, tmp_path, width=390)
    assert any(line.startswith("color-contrast") for line in found.violations)
    assert found.scroll_width >= 900


# --- No page that is written holds what acts on a terminal, whatever ids and names the files give ---------------------


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return native_file([native_record(NAME), native_record("plain")], tmp_path)


PAGES = [
    ("causim", ["show", "POOL", NAME, "--html", "OUT"]),
    ("causim", ["show", "POOL", NAME, "--gold", "--html", "OUT"]),
    ("causalab", ["show", "POOL", NAME, "--html", "OUT"]),
    ("blickets", ["play", "POOL", NAME, "--html", "OUT"]),
    ("blickets", ["show", "POOL", NAME, "--run", "RUN", "--html", "OUT"]),
    ("causalab", ["show", "POOL", NAME, "--run", "RUN", "--html", "OUT"]),
    ("replayscm", ["audit", "POOL", "--workers", "1", "--html", "OUT"]),
    *[("replayscm", ["report", "RUN", "--out", f"OUT.{form}"]) for form in ("html", "md", "csv", "tex")],
    *[(of, ["report", "RUN", "--out", "OUT.html"]) for of in ("blickets", "causalab", "causim", "logic")],
    ("logic", ["show", "POOL", NAME, "--html", "OUT"]),
]
ROW = {"replayscm": "exact", "blickets": "static", "causalab": "abstain", "causim": "copy", "logic": "greedy"}


def _hostile_pool(of: str, pool: Path, folder: Path) -> Path:
    if of == "replayscm":
        return pool
    path = folder / f"{of}.jsonl"
    item = replace(calibrant.generate(1, of=of), id=NAME)  # type: ignore[call-overload]
    benchmark(of).items.write_pool(Pool(NAME, of, (item,), {}), path)
    return path


@pytest.mark.parametrize(("of", "line"), PAGES)
def test_no_page_holds_what_acts_on_a_terminal(
    of: str,
    line: list[str],
    pool: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out, run = _hostile_pool(of, pool, tmp_path), tmp_path / "page", tmp_path / "run"
    monkeypatch.setattr("sys.stdin", io.StringIO("place A\n"))
    if "RUN" in line:
        assert main(["run", ROW[of], str(path), "--out", str(run), "--workers", "1"]) == 0
    capsys.readouterr()
    words = [str(path) if w == "POOL" else str(run) if w == "RUN" else w.replace("OUT", str(out)) for w in line]
    assert main(words) in (0, 1)
    assert acting("".join(capsys.readouterr())) == set()
    (page,) = tmp_path.glob("page*")
    text = page.read_text(encoding="utf-8")
    assert acting(text) == set()
    assert "I1" in text or "item-" in text or line[0] == "report"


# --- JSON written in pieces is what is written at once ----------------------------------------------------------------
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
LISTS = st.lists(VALUES, max_size=4)


@given(LISTS)
@example([["\x80"], {"\x7f": None}])
def test_lists(elements: list[object]) -> None:
    assert "".join(list_pieces(iter(elements))) == json_text(elements)


@given(st.dictionaries(st.text(max_size=3), LISTS, max_size=2), st.dictionaries(st.integers(), VALUES, max_size=2))
def test_objects(lists: dict[str, list[object]], others: dict[int, object]) -> None:
    named = {f"other {name}": value for name, value in others.items()}
    made = "".join(object_pieces({name: iter(elements) for name, elements in lists.items()}, named))
    assert made == json_text(lists | named)
