"""The start of a study: what participants read, consent, ids that are offered, practice; in words and over HTTP."""

from __future__ import annotations

import io
import json
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.game import ItemStop
from calibrant.bench.play.service.routes import Service, open_service
from calibrant.bench.play.study.config import Study, static_page
from calibrant.bench.play.study.pages import MAX_CONSENT_CHARS, consent_html, consent_text
from tests.bench.play.test_studies import study_file
from tests.support.accessibility import needs_axe
from tests.support.browser import needs_chromium
from tests.support.commands import called
from tests.support.play.right_lines import POOLS, right_lines
from tests.support.play.served import request
from tests.support.play.solved_by_keys import KeyboardPage

CONSENT = """# Consent

You may **stop** at *any* time.

- no names
- no addresses

### Who to ask
[the lab](https://example.org/lab) or <lab@example.org> ![a picture](https://example.org/x.png)

<script>alert(1)</script>
"""
ALLOWED = {"p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "strong", "em", "code", "pre", "blockquote", "hr", "br"}


def practice_study(folder: Path, *, kind: str = "causim", minutes: int = 0) -> Path:
    """Write a study whose third item of the pool is practice."""
    path = study_file(folder, kind=kind, more=f"minutes = {minutes}")
    (folder / "consent.md").write_text(CONSENT, encoding="utf-8")
    third = json.loads(POOLS[kind].read_text(encoding="utf-8").splitlines()[3])["id"]
    text = path.read_text(encoding="utf-8")
    path.write_text(f'{text}[[practice]]\npool = "{POOLS[kind]}"\nids = ["{third}"]\n', encoding="utf-8")
    return path


@contextmanager
def served_study(path: Path) -> Iterator[Service]:
    study = Study(path)
    with (
        PlayFolder(study.out, study.pools, study.config) as folder,
        open_service(folder, study.terms, study.plan, study.names, practice=study.practice) as service,
    ):
        thread = threading.Thread(target=service.server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield service
        finally:
            service.server.shutdown()
            thread.join()


class Tags(HTMLParser):
    """Elements of a page, with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, list[str]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, [name for name, _ in attrs]))


def test_consent_is_rendered_and_has_nothing_that_loads_or_runs() -> None:
    html = consent_html(CONSENT)
    assert "<h3>Consent</h3>" in html
    assert "<h4>Who to ask</h4>" in html  # two levels deeper in the text: none is skipped in the page
    assert "You may <strong>stop</strong> at <em>any</em> time." in html
    assert "<li>no names</li>" in html
    assert "the lab (https://example.org/lab) or lab@example.org a picture" in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html


def test_an_id_with_forbidden_signs_in_the_address_is_explained_on_the_page(tmp_path: Path) -> None:
    with served_study(practice_study(tmp_path)) as service:
        status, page = request(service, "GET", f"/{service.address.token}/?participant=P%20x/../y")
        assert (status, '"participant": "P x/../y"' in page) == (200, True)
        status, answer = request(service, "POST", f"/{service.address.token}/enter", {"participant": "P x/../y"})
        assert (status, "is no participant id; it has 1 to 64 letters" in answer["problem"]) == (422, True)


@pytest.mark.parametrize("stated", ['completion = {url = "panel.example.org"}', 'origin = "panel.example.org"'])
def test_an_address_without_its_beginning_is_refused_in_words(stated: str, tmp_path: Path) -> None:
    done = called("play", "--study", study_file(tmp_path, more=stated), "--participant", "p01")
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert "must begin with https:// or http:// and have no blanks" in done.stderr
    assert "regex" not in done.stderr


@given(
    st.lists(st.sampled_from([*"#*_-`<>[]()!&\"'\n ab1.", "<img src=x onerror=a>", "](javascript:a)", "```a\n", "1. "]))
)
@settings(max_examples=80, deadline=None)
def test_consent_has_only_elements_of_text(parts: list[str]) -> None:
    for tag, attributes in Tags(consent_html("".join(parts))).elements:
        assert tag in ALLOWED
        assert set(attributes) <= {"start"}  # of a numbered list


def test_consent_in_a_terminal_has_no_marks_and_no_control_characters() -> None:
    text = consent_text(f"{CONSENT}\n\x1b[31mred\x07")
    assert "You may stop at any time." in text
    assert not set(text) & set("\x1b\x07*#")
    assert "the lab (https://example.org/lab)" in text


@pytest.mark.parametrize(
    "words", ["10\u00a0Minuten", "\u0645\u06cc\u200c\u0634\u0648\u062f", "\u540c\u610f\u3000\u3057\u307e\u3059"]
)
def test_blanks_and_joiners_of_words_stay_in_a_consent(words: str) -> None:
    assert words in consent_html(f"# A\n\n{words} b")
    assert words in consent_text(f"# A\n\n{words} b")


def test_the_mark_of_byte_order_is_no_part_of_a_consent(tmp_path: Path) -> None:
    path = study_file(tmp_path)
    (tmp_path / "consent.md").write_text("# Consent\n\nyes?\n", encoding="utf-8-sig")
    assert consent_html(Study(path).terms.consent).startswith("<h3>Consent</h3>")


@pytest.mark.parametrize("text", [" \n", "x" * (MAX_CONSENT_CHARS + 1)])
def test_a_consent_that_nobody_can_read_is_refused(text: str, tmp_path: Path) -> None:
    path = study_file(tmp_path)
    (tmp_path / "consent.md").write_text(text, encoding="utf-8")
    done = called("play", "--study", path, "--participant", "p01")
    assert (done.returncode, "consent.md" in done.stderr) == (2, True)


def _play(path: Path, *lines: str) -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return called("play", "--study", path, "--participant", "p02")


@pytest.mark.parametrize("lines", [("maybe", "N"), ("no",), ("quit",), ()])
def test_who_does_not_agree_reads_that_nothing_is_recorded(lines: tuple[str, ...], tmp_path: Path) -> None:
    path = study_file(tmp_path, more="minutes = 20")
    done = _play(path, *lines)
    assert done.returncode == 1
    assert (
        "You will solve 2 items (2 programs) and answer 1 page of questions. It takes about 20 minutes." in done.stdout
    )
    assert done.stdout.count("Please type yes or no.") == ("maybe" in lines)
    reason = "You did not agree." if "no" in lines or "N" in lines else "There was no answer about consent."
    again = f"calibrant play --study {path} --participant p02"
    assert done.stdout.splitlines()[-1] == f"{reason} Nothing is recorded; to start again: {again}"
    assert (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8") == ""


def test_practice_in_words_is_not_recorded(tmp_path: Path) -> None:
    path = practice_study(tmp_path)
    study = Study(path)
    assert study.practice is not None
    (stop,) = study.practice.stops
    assert isinstance(stop, ItemStop)
    lines = right_lines(study.practice.pools[0].item(stop.key.instance))
    done = _play(path, "Y", "practice", *lines, "b")
    assert done.returncode == 1
    assert "That was practice; nothing of it is recorded." in done.stdout
    assert "Program, item 1 of 2" in done.stdout
    assert stop.key.instance not in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8")
    assert "Program, item 2 of 2" in _play(path, "give up").stdout  # no start again


@pytest.mark.parametrize("is_copied", [False, True])
def test_an_item_of_a_block_is_no_practice(*, is_copied: bool, tmp_path: Path) -> None:
    path, pool = study_file(tmp_path), POOLS["causim"]
    if is_copied:  # another file, under another id
        header, *records = pool.read_text(encoding="utf-8").splitlines()
        pool = tmp_path / "copy.jsonl"
        lines = [header, *(json.dumps(json.loads(record) | {"id": f"copy-{k}"}) for k, record in enumerate(records))]
        pool.write_text("\n".join(lines) + "\n", encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8") + f'[[practice]]\npool = "{pool}"\n', encoding="utf-8")
    done = called("play", "--study", path, "--participant", "p01")
    assert (done.returncode, "is in [[practice]], which shows its verdict" in done.stderr) == (2, True), done.stderr


def test_the_common_address_offers_the_next_free_id_of_the_list(tmp_path: Path) -> None:
    with served_study(study_file(tmp_path)) as service:
        enter = f"/{service.address.token}/enter"

        def offered() -> str:
            return (
                str(request(service, "GET", f"/{service.address.token}/")[1])
                .partition('"offered": "')[2]
                .partition('"')[0]
            )

        assert offered() == "p01"
        assert request(service, "POST", enter, {"participant": "p01", "offered": True})[0] == 200
        request(service, "GET", f"/{service.address.participant_token('p02')}/state?tab=a")  # a link of somebody's own
        assert offered() == "p03"
        status, data = request(service, "POST", enter, {"participant": "p01", "offered": True})  # from a second page
        assert (status, data) == (422, {"problem": "p01 was taken meanwhile; p03 is free", "offered": "p03"})
        assert request(service, "POST", enter, {"participant": "p01"})[0] == 200  # whose id it is goes on
        status, data = request(service, "POST", enter, {"participant": "p99"})
        assert (status, data["problem"]) == (
            422,
            "p99 does not take part in this study; enter the id that you were given",
        )
        for name in ("p03", "p04"):
            request(service, "POST", enter, {"participant": name, "offered": True})
        assert offered() == ""
        assert (
            "taken meanwhile; enter the id"
            in request(service, "POST", enter, {"participant": "p04", "offered": True})[1]["problem"]
        )
    with served_study(tmp_path / "study.toml") as service:  # who entered and did not begin left nothing
        assert '"offered": "p01"' in request(service, "GET", f"/{service.address.token}/")[1]


def test_a_questionnaire_knows_its_ids_without_listing_them(tmp_path: Path) -> None:
    path = study_file(tmp_path)
    text = path.read_text(encoding="utf-8").replace('"p01-p04"', '["anna1", "ben2"]')
    path.write_text(text, encoding="utf-8")
    page = static_page(Study(path))
    assert "anna1" not in page
    assert '"names": [3606615334, ' in page  # CRC-32 of anna1
    done = called("play", "--study", path, "--static", tmp_path / "page.html", "--participant", "p01")
    assert (done.returncode, "does not take part" in done.stderr) == (2, True)


def test_a_study_in_place_of_a_pool_is_hinted_at(tmp_path: Path) -> None:
    path = study_file(tmp_path)
    done = called("play", path)
    assert (done.returncode, f"calibrant play --study {path}" in " ".join(done.stderr.split())) == (2, True), (
        done.stderr
    )


@needs_chromium
@needs_axe
def test_the_start_page_has_practice_and_a_display_to_choose(tmp_path: Path) -> None:
    """Large type and contrast hold in the study too; practice shows its verdict, and leaves no trace in the folder."""
    path = practice_study(tmp_path, kind="blickets", minutes=1)
    with served_study(path) as service, KeyboardPage() as page:
        page.open(service.url)
        page.reach('[data-key="participant"]')
        page.press("Enter")
        page.wait("typeof state !== 'undefined' && state?.phase === 'start'")
        text = page.evaluate("document.getElementById('main').textContent")
        assert "You will solve 2 items (2 detectors) and answer 1 page of questions. It takes about 1 minute." in text
        assert "in pilot/records.jsonl" in text
        assert str(tmp_path) not in text
        for box in ("#contrast", "#large"):
            page.reach(box)
            page.press("Space")
        for dark in (False, True):
            page.width(360, dark=dark)
            assert page.violations() == []
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.reach('[data-key="practice"]')
        page.press("Enter")
        page.wait("typeof state !== 'undefined' && state?.phase === 'item'")
        assert page.evaluate("document.documentElement.dataset.contrast + document.body.className") == "highlarge"
        page.press("a")
        page.wait("state.item.moves === 1 && !waiting")
        pressed = "document.querySelector('[data-key=object-A]').getAttribute('aria-pressed')"
        assert page.evaluate(pressed) == "true"
        page.reach('[data-key="quit"]')
        page.evaluate("window.confirm = () => true")
        page.press("Enter")
        page.wait("state.item.closed")
        assert page.violations() == []
        assert page.evaluate("document.querySelector('.ended h2').textContent") != "Your answer is recorded."
        page.reach('[data-key="next"]')
        page.press("Enter")
        page.wait("state.phase === 'end'")
        page.reach('[data-key="leave"]')
        page.press("Enter")
        page.wait("typeof state !== 'undefined' && state?.phase === 'start'")
    assert (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8") == ""
