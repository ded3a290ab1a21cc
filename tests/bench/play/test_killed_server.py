"""A server that is killed while somebody plays in the browser: the page goes on, nothing is lost or made twice."""

from __future__ import annotations

from pathlib import Path

from calibrant.bench.runs.records import folder_records
from tests.people.__main__ import KilledServer, write_study
from tests.support.browser import needs_chromium
from tests.support.play.keyboard import KeyboardPage
from tests.support.play.right_lines import POOLS, detector_rule, first_item
from tests.support.play.solved_by_keys import SETTLED, solve


@needs_chromium
def test_a_page_goes_on_after_kills(tmp_path: Path) -> None:
    pool, out = POOLS["blickets"], tmp_path / "served"
    item = first_item(pool)
    server = KilledServer(write_study(tmp_path, pool, [item.id], 1), out)
    try:
        url = server.address.url(server.address.participant_token("s0001"))
        with KeyboardPage() as page:
            page.open(url)
            page.reach('[data-key="begin"]')
            page.press("Enter")
            page.wait("state.phase === 'item'")
            last = item.task.objects[-1].lower()
            page.press(last)
            page.wait(f"{SETTLED} && state.item.moves === 1")
            server.end()
            page.press(last)  # nothing answers; it is sent again until the next process does
            page.wait("banner.textContent.includes('sent again')")
            server.start()
            page.wait(f"{SETTLED} && state.item.moves === 2 && banner.textContent === ''")
            server.kill()
            page.open(url)
            page.wait("state?.item?.moves === 2")
            solve(page, item)
    finally:
        server.stop()
    (record,) = folder_records(out)
    assert isinstance(record.steps, list)
    first, last_object = item.task.objects[0], item.task.objects[-1]
    assert [step.action for step in record.steps] == [
        *({"place": last_object}, {"remove": last_object}, {"place": first}, {"remove": first}),
        {"check": detector_rule(item)},
    ]
    assert record.score["correct"] is True
