"""The page of many items: list, filter, pages inside, keys; sizes at 100,000 items."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from markupsafe import Markup

from calibrant.audits.why import number_text
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.pages.why import MAX_EMBEDDED, IndexItem, IndexText, index_page
from calibrant.bench.runs.audits import ReasonRecord
from tests.support.accessibility import PHONE, measure, needs_axe
from tests.support.browser import Tab, needs_chromium, pressed
from tests.support.commands import called


def reasons(number: int) -> Iterator[IndexItem]:
    for k in range(number):
        text = f"No row shows X{k}</script> & so on, with X{k % 7} = 1 and X{k % 11} = 0 while it is free; SCMs fit."
        reason = ReasonRecord("open" if k % 2 else "decided", text, number_text((k + 1) ** (1 + 9 * (k % 3))), "", "")
        yield IndexItem(
            f"item {k} <b>", reason, Markup(f'<h1 id="i{k}-head">Page of {k}</h1>'), cells=(f"{k % 5}.5", "-")
        )


COLUMNS = IndexText("Items", "Audit", "calibrant audit p.jsonl --only ID --html FILE", columns=("share", "nothing"))


def rows(page: str) -> list[list[object]]:
    """Return the packed rows, decoded by this file's own code."""
    packed = re.search(r'<script type="([a-z/]+)" id="rows">(.*?)</script>', page, re.DOTALL)
    assert packed is not None
    text = packed[2] if packed[1] == "application/json" else zlib.decompress(base64.b64decode(packed[2]), 31).decode()
    listed: list[list[object]] = json.loads(text)
    return listed


def test_each_item_has_its_row_and_the_first_have_their_page() -> None:
    page = index_page("p.jsonl", reasons(250))
    assert len(rows(page)) == 250
    assert rows(page)[3][:4] == [3, "item 3 <b>", "open", "4"]
    assert str(rows(page)[3][4]).startswith("No row shows X3</script> & so on")
    assert [row[0] for row in rows(page)] == [*range(MAX_EMBEDDED), *[None] * 50]
    assert page.count("<template id=") == MAX_EMBEDDED
    assert "calibrant show p.jsonl ID --why --html FILE" in page
    assert "calibrant audit p.jsonl --only ID --html FILE" in index_page("p.jsonl", reasons(250), COLUMNS)


@needs_chromium
def test_filter_pages_links_and_keys(tmp_path: Path) -> None:
    presses = """
    const lines = () => document.querySelectorAll("#index tbody tr").length;
    const wait = () => dispatchEvent(new HashChangeEvent("hashchange"));
    const key = (name) => { document.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true})); wait(); };
    said.push(lines());
    document.getElementById("later").click(); said.push(lines());
    const filter = document.getElementById("filter");
    filter.value = "x119"; filter.dispatchEvent(new Event("input")); said.push(lines());
    location.hash = encodeURIComponent("item 7 <b>"); wait();
    said.push(document.querySelector("#view h1").textContent, document.getElementById("list").hidden);
    key("j"); said.push(document.querySelector("#view h1").textContent);
    key("k"); key("k"); said.push(document.querySelector("#view h1").textContent);
    key("Escape"); said.push(document.getElementById("list").hidden);
    """
    expected = ["100", "25", "1", "Page of 7", "true", "Page of 8", "Page of 6", "false"]
    assert pressed(index_page("p.jsonl", reasons(125)), presses, tmp_path) == expected


@needs_chromium
def test_columns_are_sorted_as_the_numbers_that_they_show(tmp_path: Path) -> None:
    """Counts such as 1,024 and 3.6 x 10^9 stand in one column; the expected order is of the numbers themselves."""
    presses = """
    const heads = document.querySelectorAll("#index thead button");
    const names = () => [...document.querySelectorAll("#index tbody th")].map((head) => head.textContent);
    const ids = () => names().map((name) => name.split(" ")[1]).join(" ");
    heads[2].click(); said.push(ids()); heads[2].click(); said.push(ids());
    said.push(document.querySelector("[aria-sort]").getAttribute("aria-sort"));
    heads[4].click(); said.push(ids());
    """
    number = 12
    up = sorted(range(number), key=lambda k: (k + 1) ** (1 + 9 * (k % 3)))
    share = sorted(range(number), key=lambda k: (k % 5, k))
    expected = [" ".join(map(str, order)) for order in (up, up[::-1], share)]
    answers = pressed(index_page("p.jsonl", reasons(number), COLUMNS), presses, tmp_path)
    assert answers == [*expected[:2], "descending", expected[2]]


@needs_chromium
def test_a_long_list_is_unpacked_by_the_browser(tmp_path: Path) -> None:
    page = index_page("p.jsonl", reasons(20_000))
    assert 'type="text/plain" id="rows"' in page
    file = tmp_path / "long.html"
    file.write_text(page, encoding="utf-8")
    with Tab() as tab:
        tab.open(file.as_uri())
        tab.wait("document.body.textContent.includes('1 to 100 of 20000')", seconds=60)
    assert len(rows(page)) == 20_000


@needs_axe
def test_the_list_is_accessible_on_a_phone(tmp_path: Path) -> None:
    found = measure(index_page("p.jsonl", reasons(40)), tmp_path, theme="dark", width=PHONE)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= PHONE


def test_100_000_items_are_a_file_of_few_megabytes() -> None:
    """Seconds of a loaded machine: what is quadratic would take minutes."""
    started = process_time()
    page = index_page("p.jsonl", reasons(100_000), COLUMNS)
    assert len(page) < 20_000_000
    assert len(rows(page)) == 100_000
    assert process_time() - started < 20


def test_list_writes_one_page_and_prints_reasons(tmp_path: Path) -> None:
    pool = bundled_pool("hidden-order")
    done = called("list", pool, "--html", tmp_path / "index.html", "--limit", 2)
    assert done.returncode == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    printed = [json.loads(line) for line in called("list", pool, "--why", "--limit", 2, "--json").stdout.splitlines()]
    assert [(row[1], row[3], row[4]) for row in rows(page)] == [
        (one["id"], one["fit"], one["reason"]) for one in printed
    ]
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<template id=") == 2
