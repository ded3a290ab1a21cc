"""Items of every kind solved in headless Chromium by keys alone; nothing for axe-core to object to."""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest

from calibrant.bench.play.study.config import Study
from calibrant.bench.play.study.static import static_page
from calibrant.bench.runs.records import folder_records
from tests.bench.play.test_studies import study_file
from tests.support.accessibility import needs_axe
from tests.support.browser import needs_chromium
from tests.support.commands import called, jsonl
from tests.support.play.keyboard import KeyboardPage
from tests.support.play.right_lines import first_item, pool_file, right_lines
from tests.support.play.served import participant_url, served
from tests.support.play.solved_by_keys import solve

KINDS = (
    "logic",
    "blickets",
    "causalab",
    "causim",
    "replayscm",
    "hidden roots",
    "episode",
    "noisy episode",
    "hidden episode",
)


@needs_chromium
@needs_axe
def test_all_kinds_are_solved_by_keys_alone_and_give_the_records_of_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page and one participant for all."""
    pools = [pool_file(kind, tmp_path) for kind in KINDS]
    items = [first_item(pool) for pool in pools]
    out = tmp_path / "out"
    with served(out, pools) as service, KeyboardPage() as page:
        page.open(participant_url(service, "p1"))
        assert page.violations() == []
        page.reach('[data-key="begin"]')
        page.press("Enter")
        for number, item in enumerate(items):
            page.wait(f"state.phase === 'item' && state.item.id.startsWith('item-') && state.number === {number + 1}")
            page.width(360, dark=bool(number % 2))
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, item.benchmark
            assert (page.violations(), item.benchmark) == ([], item.benchmark)
            solve(page, item)
            assert (page.violations(), item.benchmark) == ([], item.benchmark)
            assert page.evaluate("document.querySelector('.ended h2').textContent").startswith("\u2713") or (
                "lucky" in page.evaluate("document.querySelector('.ended h2').textContent")
            )
            page.reach('[data-key="next"]')
            page.press("Enter")
        page.wait("state.phase === 'end'")
        assert page.violations() == []
        assert f"{len(items)} of {len(items)} right" in page.evaluate("document.querySelector('h1').textContent")
        page.reach('[data-key="review"]')
        page.press("Enter")
        page.wait("document.readyState === 'complete' && document.querySelectorAll('.reviewed').length > 0")
        page.width(360, dark=True)
        page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
        assert page.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        assert page.evaluate(
            "performance.getEntriesByType('resource').every((e) => e.name.startsWith(location.origin))"
        )
    records = {(record.pool_digest, record.instance): record for record in folder_records(out)}
    for pool, item in zip(pools, items, strict=True):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in right_lines(item))))
        typed = tmp_path / "typed" / pool.stem / item.id
        assert called("play", pool, "--out", typed, "--participant", "p1").returncode == 0
        (expected,) = folder_records(typed)
        record = records[expected.pool_digest, item.id]
        same = {"timing": expected.timing, "config": expected.config}
        assert msgspec.structs.replace(record, **same) == expected


@needs_chromium
@needs_axe
def test_a_questionnaire_without_a_server_saves_what_was_answered(tmp_path: Path) -> None:
    path = study_file(tmp_path, ids=1)
    page_file = tmp_path / "page.html"
    page_file.write_text(static_page(Study(path)), encoding="utf-8")
    pool = Study(path).pools[0]
    with KeyboardPage() as page:
        page.open(page_file.as_uri())
        page.reach('[data-key="participant"]')
        page.type("p02")
        page.press("Enter")
        page.wait("state?.phase === 'start'")
        page.reach('[data-key="agreed"]')
        page.press("Space")
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'item'")
        assert page.violations() == []
        for field in page.evaluate("state.item.view.fields"):
            page.reach(f'[data-key="field-{field["name"]}"]')
            page.press("ArrowDown")
            page.wait("!waiting && pendingDraft === null")
        page.press("Enter", 2)
        page.wait("state.phase === 'questions'")
        page.open(page_file.as_uri())  # a reload goes on
        page.wait("state.phase === 'questions'")
        page.reach('[data-key="question-sure-1"]')
        page.press("Space")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait("state.phase === 'end'")
        stops = page.evaluate("Object.values(saved.stops)")
        chosen = page.evaluate("EMBEDDED.plan.stops[0].item.view.fields.map((f) => f.choices[0].value)")
    data = {"participant": "p02", "agreed": True, "digests": [pool.digest], "stops": stops}
    assert "1 recorded" in called("play", "--study", path, "--import", jsonl(tmp_path / "p02.json", data)).stdout
    (record,) = folder_records(tmp_path / "pilot")
    assert list(record.answer.values()) == chosen
