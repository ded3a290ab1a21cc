"""The page of many items: list, filter, pages inside, keys; sizes at 100,000 items."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from time import process_time

from markupsafe import Markup

from calibrant.audits.why import Count, Why, spans
from calibrant.bench.pages.why.index import MAX_EMBEDDED, index_page
from calibrant.bench.pools.bundled import bundled_pool
from tests.support.accessibility import PHONE, measure, needs_axe
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import called


def reasons(number: int) -> Iterator[tuple[Why, Markup | None]]:
    for k in range(number):
        why = Why(
            benchmark="x",
            item=f"item {k} <b>",
            title="t",
            state="open" if k % 2 else "decided",
            reason=spans("No row shows ", (f"X{k}",), "</script> & so on."),
            facts=(),
            open=(),
            decided=(),
            count=Count(lower=str(k + 1), upper=str(k + 1)),
            class_in_words="c",
        )
        yield why, Markup(f'<h1 id="i{k}-head">Page of {k}</h1>')


def rows(page: str) -> list[list[object]]:
    packed = re.search(r'<script type="application/json" id="rows">(.*?)</script>', page, re.DOTALL)
    assert packed is not None
    listed: list[list[object]] = json.loads(packed[1])
    return listed


def test_each_item_has_its_row_and_the_first_have_their_page() -> None:
    page = index_page("p.jsonl", reasons(250))
    assert len(rows(page)) == 250
    assert rows(page)[3] == ["item 3 <b>", "open", "4", "No row shows X3</script> & so on.", 3]
    assert [row[4] for row in rows(page)] == [*range(MAX_EMBEDDED), *[None] * 50]
    assert page.count("<template id=") == MAX_EMBEDDED
    assert "calibrant show p.jsonl ID --why --html FILE" in page


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


@needs_axe
def test_the_list_is_accessible_on_a_phone(tmp_path: Path) -> None:
    found = measure(index_page("p.jsonl", reasons(40)), tmp_path, theme="dark", width=PHONE)
    assert (found.violations, found.requests) == ([], [])
    assert found.scroll_width <= PHONE


def test_100_000_items_are_a_file_of_few_megabytes() -> None:
    """Four seconds of a loaded machine: what is quadratic would take minutes."""
    started = process_time()
    page = index_page("p.jsonl", reasons(100_000))
    assert len(page) < 20_000_000
    assert process_time() - started < 20


def test_list_writes_one_page_and_prints_reasons(tmp_path: Path) -> None:
    pool = bundled_pool("hidden-order")
    done = called("list", pool, "--html", tmp_path / "index.html", "--limit", 2)
    assert done.returncode == 0
    page = (tmp_path / "index.html").read_text(encoding="utf-8")
    printed = [json.loads(line) for line in called("list", pool, "--why", "--limit", 2, "--json").stdout.splitlines()]
    assert [(row[0], row[2], row[3]) for row in rows(page)] == [
        (one["id"], one["fit"], one["reason"]) for one in printed
    ]
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<template id=") == 2
