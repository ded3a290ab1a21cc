"""The page, the drawing and the terminal's text of why a ReplaySCM item is open; and the command that writes them."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.why import expected_text
from calibrant.bench.pages.why import why_page
from calibrant.bench.replayscm.why.page import body
from calibrant.bench.scoring.ids import PublicIds
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.accessibility import DESKTOP, PHONE, measure, needs_axe
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import CHECKOUT, called
from tests.support.replayscm.lamp import lamp, write_classroom

REASON = "No row shows X3 with X1 = 1, X2 = 0 while X3 is free. Two SCMs fit everything else and disagree there."


class Texts(HTMLParser):
    """Texts of elements with a class, and of all cells, in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.by_class: dict[str, list[str]] = {}
        self._open: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        kind = dict(attributes).get("class") or tag
        self._open.append((tag, kind))
        self.by_class.setdefault(kind, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, text: str) -> None:
        for _, kind in self._open:
            self.by_class[kind][-1] += text


def lamp_page(name: str = "lamp") -> str:
    why = explain(lamp().task, name)
    return why_page(why, body(why, "why"), "classroom.jsonl")


def wide_page() -> str:
    """Return an item of nine variables and 80 rows."""
    pool = read_pool(CHECKOUT / "bench/replayscm/data/sample_hidden_order.jsonl", keep_results=False)
    why = explain(pool.problems[13].task, pool.problems[13].id)
    return why_page(why, body(why, "why"), "sample_hidden_order.jsonl")


def test_the_page_has_the_reason_of_the_terminal_and_marks_the_row(tmp_path: Path) -> None:
    page = Texts(lamp_page())
    assert page.by_class["reason"] == [REASON]
    assert {"X3", "X1 = 1, X2 = 0"} <= set(page.by_class["mark"])
    terminal = called("show", write_classroom(tmp_path), "lamp", "--why")
    assert REASON in terminal.stdout.splitlines()
    assert len(page.by_class["chips"][0].strip().splitlines()) <= 6


def test_the_command_writes_page_drawing_and_json_of_one_object(tmp_path: Path) -> None:
    pool = write_classroom(tmp_path)
    done = called("show", pool, "lamp", "--html", tmp_path / "why.html", "--svg", tmp_path / "why.svg")
    files = f"page written to {tmp_path / 'why.html'}\npicture written to {tmp_path / 'why.svg'}\n"
    public = PublicIds.of_pool(pool, [lamp()]).public("lamp")
    files += f"lamp is {public} there, an id that tells nothing of it\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", files)
    assert (tmp_path / "why.html").read_text(encoding="utf-8") == lamp_page(public)
    svg = (tmp_path / "why.svg").read_text(encoding="utf-8")
    assert svg.startswith("<svg ")
    assert all(
        text in svg for text in ("X3 = X1<", "X3 = X1 and X2<", "never seen with X3 free", "prefers-color-scheme:dark")
    )
    printed = json.loads(called("show", pool, "lamp", "--why", "--json").stdout)
    assert printed == json.loads(json.dumps(explain(lamp().task, public).to_dict()))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("--html", "a.html", "--json"), "writes a page"),
        (("--svg", "a.svg", "--json"), "writes a page"),
    ],
)
def test_contradictory_options_are_refused(arguments: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    done = called("show", write_classroom(tmp_path), "lamp", *arguments)
    assert done.returncode == 2
    assert reason in done.stderr


def test_names_in_a_page_are_text(tmp_path: Path) -> None:
    why = explain(lamp().task, "<script>alert(1)</script>")
    page = why_page(why, body(why, "why"), "<img src=x>")
    assert "<script>alert" not in page
    assert "<img" not in page


def test_ids_of_a_page_are_unique_and_every_copy_button_has_its_text() -> None:
    page = lamp_page()
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert {*re.findall(r'data-copy="([^"]+)"', page)} <= {*ids}


@needs_chromium
def test_keys_open_the_list_and_escape_returns_the_focus(tmp_path: Path) -> None:
    presses = """
    const key = (name) => document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true}));
    const theme = document.getElementById("theme"); theme.focus();
    key("?"); said.push(document.getElementById("keys").hidden);
    key("Escape"); said.push(document.getElementById("keys").hidden, document.activeElement.id);
    theme.click(); said.push(document.documentElement.dataset.theme, theme.getAttribute("aria-pressed"));
    theme.click(); said.push(document.documentElement.dataset.theme);
    dispatchEvent(new Event("beforeprint")); said.push(document.querySelectorAll("details:not([open])").length);
    dispatchEvent(new Event("afterprint")); said.push(document.querySelectorAll("details:not([open])").length > 0);
    said.push(document.querySelector("a").className);
    """
    assert pressed(lamp_page(), presses, tmp_path) == [
        "false",
        "true",
        "theme",
        "dark",
        "true",
        "light",
        "0",
        "true",
        "skip",
    ]


@needs_axe
@pytest.mark.parametrize(("theme", "width"), [("light", PHONE), ("dark", DESKTOP)])
def test_the_page_is_accessible_loads_nothing_and_does_not_scroll_sideways(
    theme: str, width: int, tmp_path: Path
) -> None:
    found = measure(lamp_page(), tmp_path, theme=theme, width=width)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= width


@needs_axe
def test_a_wide_item_on_a_phone_is_accessible_too(tmp_path: Path) -> None:
    """Wide tables and graphs scroll in boxes of their own, which a small item has none of."""
    found = measure(wide_page(), tmp_path, theme="dark", width=PHONE)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= PHONE


@pytest.mark.parametrize(("number", "text"), [(2.0, "2"), (10.5, "10.5"), (2.04, "2.0"), (1999.6, "2,000"), (0.0, "0")])
def test_whole_expected_numbers_have_no_decimals(number: float, text: str) -> None:
    assert expected_text(number) == text


def test_a_decided_item_names_the_world_without_which_others_would_fit(tmp_path: Path) -> None:
    path = tmp_path / "hardened.jsonl"
    assert called("harden", CHECKOUT / "docs" / "examples" / "switches.jsonl", "--out", path).returncode == 0
    printed = called("show", path, "lamp", "--why").stdout
    assert "One SCM fits: every mechanism is decided. Without w0, 4 SCMs would fit.\n" in printed
