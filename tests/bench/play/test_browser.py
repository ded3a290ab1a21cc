"""Items of every kind solved in headless Chromium by keys alone and by clicks; nothing for axe-core to object to."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.play.game import Terms
from calibrant.bench.play.results import move_rows, person_rows
from calibrant.bench.play.study.config import Study, static_page
from calibrant.bench.play.study.pages import missing_texts, read_language
from calibrant.bench.runs.records import Record, Timing, folder_records
from calibrant.dsl.errors import CalibrantError
from tests.bench.play.test_start import served_study
from tests.bench.play.test_studies import study_file
from tests.bench.play.test_terms import bilingual_study, full_study, limited_study
from tests.support.accessibility import needs_axe
from tests.support.browser import needs_chromium
from tests.support.commands import called, jsonl
from tests.support.play.clicks import MousePage, solve_by_clicks
from tests.support.play.right_lines import POOLS, first_item, pool_file, right_lines
from tests.support.play.served import participant_url, served
from tests.support.play.solved_by_keys import KeyboardPage, solve, submit_by_key

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
    "alternative",
    "forecast",
)


@pytest.fixture(scope="module")
def pools(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pools")
    return [pool_file(kind, folder) for kind in KINDS]


@pytest.fixture(scope="module")
def items(pools: list[Path]) -> list[Any]:
    return [first_item(pool) for pool in pools]


@pytest.fixture(scope="module")
def typed(
    pools: list[Path], items: list[Any], tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Record]:
    """Return the records of the same moves typed in the terminal."""
    records: dict[tuple[str, str], Record] = {}
    for pool, item in zip(pools, items, strict=True):
        folder = tmp_path_factory.mktemp("typed")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in right_lines(item))))
            assert called("play", pool, "--out", folder, "--participant", "p1").returncode == 0
        records |= _answers(folder)
    return records


@needs_chromium
@needs_axe
def test_all_kinds_are_solved_by_keys_alone_and_give_the_records_of_words(
    pools: list[Path], items: list[Any], typed: dict[tuple[str, str], Record], tmp_path: Path
) -> None:
    """One page and one participant for all."""
    out = tmp_path / "out"
    with served(out, pools) as service, KeyboardPage() as page:
        page.open(participant_url(service, "p1"))
        assert page.violations() == []
        page.reach('[data-key="begin"]')
        page.press("Enter")
        for index, item in enumerate(items):
            page.wait(f"state.phase === 'item' && state.item.id.startsWith('item-') && state.number === {index + 1}")
            page.width(360, dark=bool(index % 2))
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
    assert _answers(out) == typed


@needs_chromium
def test_all_kinds_are_solved_by_clicks_and_give_the_records_of_words(
    pools: list[Path], items: list[Any], typed: dict[tuple[str, str], Record], tmp_path: Path
) -> None:
    """Typed and sent moves are compared in test_words; formulas are clicked together from tokens, as on a phone.

    The page is in German, the texts of items too: what is left in English are names, formulas and programs.
    """
    out = tmp_path / "out"
    terms = Terms("pilot", feedback="cells", langs=(read_language("de", tmp_path),))
    with served(out, pools, terms) as service, MousePage() as page:
        page.width(360)
        page.open(participant_url(service, "p1"))
        page.click("begin")
        for number, item in enumerate(items, 1):
            page.wait(f"state.phase === 'item' && state.number === {number}")
            facts = " ".join(page.evaluate("JSON.stringify(state.item)").replace("\\n", " ").split())
            solve_by_clicks(page, item)
            english = page.evaluate("[...untranslated]")
            assert [text for text in english if not _is_of_item(text, facts)] == []
            assert [text for text in english if SENTENCE.search(text)] == []
            page.evaluate("untranslated.clear()")
            page.click("next")
        page.wait("state.phase === 'end'")
        assert "Fertig: 11 von 11 richtig" in page.evaluate("screen_.textContent")
        assert [text for text in page.evaluate("[...untranslated]") if not text.startswith("item-")] == []
        assert page.evaluate("document.documentElement.lang") == "de"
    assert _answers(out) == typed


SENTENCE = re.compile(r"[a-z]{2,} (?:are|may|has|the|of|one|every) [a-z]{2,}")  # in no program of a pool


def _is_of_item(text: str, facts: str) -> bool:
    """Return whether a text is from the item: its facts, its names with numbers and signs, or keys of a pad."""
    plain = " ".join(text.split())
    words = re.findall(r"\w{2,}", re.sub(r"World \d+ \(", "(", plain))
    return plain in facts or plain == "abc" or all(re.fullmatch(r"[\d.]+", w) or f'"{w}"' in facts for w in words)


def _answers(folder: Path) -> dict[tuple[str, str], Record]:
    """Return the records of a folder by item, without times and terms."""
    same = {"timing": Timing(0.0, "", []), "config": {}}
    return {(r.pool_digest, r.instance): msgspec.structs.replace(r, **same) for r in folder_records(folder)}


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
        submit_by_key(page)
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


# --- Page kinds of studies --------------------------------------------------------------------------------------------


@needs_chromium
@needs_axe
@pytest.mark.parametrize("dark", [False, True])
def test_pages_of_a_study_in_the_browser(tmp_path: Path, *, dark: bool) -> None:
    """Instructions, bounds, an error in the page's words, a limit, a window that is handed over, and the code."""
    path = full_study(tmp_path, tries=2, limit=600, more="minutes = 5")
    width = 390 if dark else 1280
    with served_study(path) as service, KeyboardPage() as page, KeyboardPage() as second:
        page.width(width, dark=dark)
        url = participant_url(service, "w1")

        check = partial(_check_page, page, width)
        page.open(url)
        check("start")
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        check("instructions")
        assert "step 1 of 3" in page.evaluate("screen_.textContent")
        page.reach("[name=question-glows]")
        page.press("ArrowDown")  # the second answer
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait(
            "problemBox.textContent.includes('read the page again') && problemBox.textContent.includes('1 try left')"
        )
        check("instructions answered wrongly")
        page.evaluate("screen_.querySelector('[data-key=\"question-glows-it glows\"]').click()")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait("state.phase === 'item'")
        check("limited item")
        assert page.evaluate("document.getElementById('left').textContent") in ("10:00", "9:59", "9:58", "9:57")
        page.press("s")
        page.press("Enter")
        page.wait("problemBox.textContent === 'choose a rule first'")
        _hand_over(page, second, url, check)
        page.evaluate("window.confirm = () => true")
        page.reach('[data-key="quit"]')
        page.press("Enter")
        page.wait("state.item.closed")
        page.reach('[data-key="next"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        check("questions")
        _answer_ages(page, check)
        page.wait("state.phase === 'end'")
        assert "CODE-C1X9" in page.evaluate("screen_.textContent")
        check("end with a code")
    (row,) = person_rows(Study(path).out)
    assert (row.answers["about.age"], row.failed_checks) == (20, "")
    events = [
        json.loads(line) for line in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    clocks = [event["clock"] for event in events if "clock" in event]
    assert len(clocks) == 5  # begin, two answers about the instructions, no answer, the page of questions
    assert all(0 <= clock["seconds"] < 120 for clock in clocks)


def _check_page(page: KeyboardPage, width: int, kind: str) -> None:
    assert (kind, page.violations()) == (kind, [])
    assert page.evaluate("document.documentElement.scrollWidth") <= width, kind


def _hand_over(page: KeyboardPage, second: KeyboardPage, url: str, check: Callable[[str], None]) -> None:
    """Go on in another browser, then in the first again."""
    second.open(url)  # the same person's other device: another browser context; the window that was opened last goes on
    second.wait("state?.writer === true && banner.textContent === ''")
    page.wait("state.writer === false && document.title.startsWith('Out of date')")
    check("handed over")
    assert page.evaluate("screen_.inert")
    page.evaluate("banner.querySelector('button').click()")
    page.wait("state.writer === true && !screen_.inert && document.title === state.title")


def _answer_ages(page: KeyboardPage, check: Callable[[str], None]) -> None:
    """Type ages of which the last alone is allowed."""
    for age, is_allowed in (("-5", False), ("17.5", False), ("20", True)):
        page.reach('[data-key="question-age"]')
        page.type(age)
        page.evaluate("screen_.querySelector('[data-key=\"question-attention-2\"]').click()")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        if not is_allowed:
            page.wait("problemBox.textContent.includes('a whole number from 18 to 99')")
            assert page.evaluate("state.phase") == "questions"
            check("refused number")


@needs_chromium
@needs_axe
def test_a_limit_ends_an_item_on_the_page_and_a_reload_is_flagged(tmp_path: Path) -> None:
    path = full_study(tmp_path, kind="causim", limit=3)
    text = path.read_text(encoding="utf-8")
    address = '{url = "https://study.example/done?p={participant}"}'
    path.write_text(text.replace('{code = "CODE-C1X9"}', address), encoding="utf-8")
    with served_study(path) as service, KeyboardPage() as page:
        page.open(participant_url(service, "w1"))
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        page.reload()
        page.wait("state?.phase === 'questions'")
        page.evaluate("screen_.querySelector('[data-key=\"question-glows-it glows\"]').click()")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait("state.item?.closed")
        assert "The time is up" in page.evaluate("document.querySelector('.ended').textContent")
        assert page.violations() == []
        page.reach('[data-key="next"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        page.evaluate("clock.beat -= 60_000")  # as after a minute in which the device slept
        page.wait("clock.causes.has('sleep')")
        page.evaluate("screen_.querySelector('[data-key=\"question-attention-3\"]').click()")
        page.reach('[data-key="question-age"]')
        page.type("40")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait("state.phase === 'end'")
        assert page.violations() == []
        assert page.evaluate("document.querySelector('[data-key=finish]').href") == "https://study.example/done?p=w1"
    moves = list(move_rows(tmp_path / "pilot"))
    assert [(move.event, move.interrupted) for move in moves if move.page_seconds is not None] == [
        *(("answers", ""), ("answers", "reload"), ("time_up", ""), ("answers", "sleep")),
    ]
    (record,) = folder_records(tmp_path / "pilot")
    assert record.provenance == {"reason": "the time was up"}


@needs_chromium
@needs_axe
def test_limits_of_a_page_and_of_a_study_are_counted_down_and_announced_in_german(tmp_path: Path) -> None:
    path = limited_study(tmp_path, page=62, study=3_000, kind="causim")
    path.write_text(path.read_text(encoding="utf-8").replace("[study]", '[study]\nlang = "de"'), encoding="utf-8")
    with served_study(path) as service, KeyboardPage() as page:
        page.width(390, dark=True)
        page.open(participant_url(service, "w1"))
        page.wait("state?.phase === 'start'")
        text = page.evaluate("screen_.innerText")
        assert "Die Studie endet 50 Minuten, nachdem Sie beginnen" in text
        assert "Die Zeit läuft weiter" in text
        assert "geht nichts verloren" not in text
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'item'")
        page.evaluate("window.confirm = () => true")
        page.evaluate("screen_.querySelector('[data-key=quit]').click()")
        page.wait("state.item?.closed")
        assert re.match(r"(4\d|50):\d\d", page.evaluate("document.getElementById('study-left').textContent"))
        page.evaluate("clock.since -= 100_000; 0")  # the page of an ended item is read for a while
        page.reach('[data-key="next"]')
        page.press("Enter")
        page.wait("state.phase === 'questions' && document.activeElement.id === 'main'")
        assert page.evaluate("performance.now() - clock.since") < 60_000  # since the page of questions was shown
        page.reach('[data-key="question-age"]')
        page.type("3")
        page.wait("news.textContent === 'noch 60 Sekunden'")  # while somebody types
        page.press("9")
        assert page.evaluate("document.activeElement.dataset.key") == "question-age"
        while '"age": 39' not in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8").replace(":3", ": 3"):
            assert page.evaluate("timeLeft(timers.left)") > 0
        page.reload()
        page.wait("state?.phase === 'questions'")
        assert page.evaluate("screen_.querySelector('[data-key=question-age]').value") == "39"
        shown = page.evaluate("[...document.querySelectorAll('.limit')].map((line) => line.innerText)")
        assert [re.sub(r"\d", "0", text) for text in shown] == [
            "Verbleibende Zeit: 0:00",
            "Verbleibende Zeit der Studie: 00:00",
        ]
        assert page.violations() == []
        page.evaluate("timers.left.deadline = 0")  # a page whose clock runs ahead: the server decides
        page.wait("timers.left.deadline > performance.now() + 30_000")
        assert page.evaluate("state.phase") == "questions"
        page.evaluate("timers['study-left'].deadline = performance.now() + 9_500")
        page.wait("news.textContent === 'noch 10 Sekunden der Studie'")
        assert page.evaluate("[...untranslated]") == []
    moves = [move for move in move_rows(tmp_path / "pilot") if move.item == "questions:2-about"]
    assert [(move.event, move.content) for move in moves[-1:]] == [("draft", '{"age": 39}')]


@needs_chromium
@needs_axe
def test_a_page_whose_time_is_up_goes_on_and_says_so(tmp_path: Path) -> None:
    path = limited_study(tmp_path, page=3, kind="causim")
    with served_study(path) as service, KeyboardPage() as page:
        page.open(participant_url(service, "w1"))
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'item'")
        page.evaluate("window.confirm = () => true")
        page.evaluate("screen_.querySelector('[data-key=quit]').click()")
        page.wait("state.item?.closed")
        page.reach('[data-key="next"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        page.evaluate("screen_.querySelector('[data-key=\"question-attention-2\"]').click()")
        page.wait("state.phase === 'end'")
        assert "The time of the page before is up." in page.evaluate("screen_.innerText")
        assert "What you had answered until then is recorded." in page.evaluate("news.innerText")
        assert page.violations() == []
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.answers, row.time_up, row.finished[:1].isdigit()) == ({"about.attention": 2}, "about", True)


@needs_chromium
@needs_axe
def test_participants_choose_one_of_two_languages(tmp_path: Path) -> None:
    """Texts are in German, values that are recorded are those of the first language; a reload stays German."""
    path = bilingual_study(tmp_path)
    pool = POOLS["blickets"]
    third = json.loads(pool.read_text(encoding="utf-8").splitlines()[3])["id"]
    more = f'[[practice]]\npool = "{POOLS["blickets"]}"\nids = ["{third}"]\n'
    text = path.read_text(encoding="utf-8")
    text = text.replace("[study]", '[study]\ntitles = {de = "Zwei Gruppen"}')
    path.write_text(f'{text}[[block]]\ninstructions = "hint.md"\ngroups = ["told"]\n{more}', encoding="utf-8")
    for name in ("hint.md", "hint.de.md"):
        (tmp_path / name).write_text("Ende\n", encoding="utf-8")
    with served_study(path) as service, KeyboardPage() as page:
        page.width(390, dark=True)
        url = participant_url(service, "w1")
        page.open(url)
        page.reach('[data-key="lang"]')
        page.press("ArrowDown")
        page.wait("state.lang === 'de' && document.documentElement.lang === 'de'")
        assert page.violations() == []
        text = page.evaluate("document.body.innerText")
        assert "Ich bin einverstanden mit allem." in text
        assert "2 Seiten Anleitung lesen; 1 Aufgabe (1 Detektor) lösen; 1 Seite mit Fragen beantworten." in text
        assert "Es kann weniger sein" in text
        assert page.evaluate("[...untranslated]") == []
        page.evaluate("location.href = state.practice; 0")
        page.wait("state?.phase === 'item' && document.documentElement.lang === 'de'")
        assert page.evaluate("document.title") == "Zwei Gruppen: Übung"
        page.press("a")
        page.wait("state.item.moves === 1")
        assert re.fullmatch(
            r"Der Detektor ist (NICHT )?AKTIV. Auf dem Detektor: A. Noch \d+ Schritte.",
            page.evaluate("news.textContent"),
        )
        assert page.evaluate("[...untranslated]") == []
        page.open(url)
        page.wait("state?.phase === 'start' && state.lang === 'de'")
        titles = "[document.title, document.querySelector('.crumbs .here').textContent]"
        assert page.evaluate(titles) == ["Zwei Gruppen", "Zwei Gruppen"]
        page.evaluate("screen_.querySelector('[data-key=agreed]').click()")
        page.reach('[data-key="begin"]')
        page.press("Enter")
        page.wait("state.phase === 'questions'")
        page.evaluate("localStorage.clear()")
        page.reload()
        page.wait("state?.phase === 'questions'")
        assert "Ein Detektor leuchtet." in page.evaluate("screen_.innerText")
        assert "er leuchtet" in page.evaluate("screen_.innerText")
        assert page.violations() == []
        page.evaluate("screen_.querySelector('[data-key=\"question-glows-it glows\"]').click()")
        page.reach('[data-key="go-on"]')
        page.press("Enter")
        page.wait("state.phase === 'item'")
        page.press("s")
        page.press("Enter")
        page.wait("problemBox.textContent === 'Wählen Sie zuerst eine Regel'")
        assert page.evaluate("[...untranslated]") == []
    (row,) = person_rows(Study(path).out)
    assert (row.lang, row.answers["check.glows"]) == ("de", "it glows")


def test_a_study_in_two_languages_has_each_file_in_both(tmp_path: Path) -> None:
    path = bilingual_study(tmp_path)
    study = Study(path)
    assert study.terms.consent_in("de") != study.terms.consent_in("en") == study.terms.consent
    german = tmp_path / "check.de.toml"
    text = german.read_text(encoding="utf-8")
    for wrong, problem in (
        (text.replace('"glows"', '"glimmers"'), "its questions have the ids glows"),
        (text.replace('"er leuchtet", ', '"a", "b", '), "another kind or number of options"),
    ):
        german.write_text(wrong, encoding="utf-8")
        with pytest.raises(CalibrantError, match=problem):
            Study(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("[study]", '[study]\ntitles = {fr = "Deux"}'), encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"study\.titles has fr, which is no further language"):
        Study(path)
    path.write_text(text, encoding="utf-8")
    german.unlink()
    with pytest.raises(CalibrantError, match=r"there is no file 'check\.de\.toml'"):
        Study(path)


@pytest.mark.parametrize(
    ("lang", "problem"),
    [
        ('"tlh"', "no language 'tlh'; there are en, de, or give a file of texts such as fr.toml"),
        ('["en", "en"]', "each once"),
        ("[]", "needs a language"),
        ('"../fr.toml"', "fr.toml"),
        ('"fr.toml"', "has no {name}, its translation has"),
    ],
)
def test_a_language_that_is_none_is_refused(lang: str, problem: str, tmp_path: Path) -> None:
    path = full_study(tmp_path, more=f"lang = {lang}")
    (tmp_path / "fr.toml").write_text('name = "français"\n[texts]\n"set {n}" = "mettre {name}"\n', encoding="utf-8")
    with pytest.raises(CalibrantError, match=re.escape(problem)):
        Study(path)


def test_what_a_language_of_ones_own_lacks_is_named(tmp_path: Path) -> None:
    text = 'name = "français"\n[texts]\n"Go on" = "Continuer"\n'
    (tmp_path / "fr.toml").write_text(text, encoding="utf-8")
    language = read_language("fr.toml", tmp_path)
    missing = missing_texts(language)
    assert "Go on" not in missing
    assert "Begin" in missing
    assert missing_texts(read_language("de", tmp_path)) == []


@needs_chromium
@needs_axe
@pytest.mark.parametrize("is_stopped", [True, False])
def test_the_end_goes_back_by_itself_announces_it_and_can_be_stopped(is_stopped: bool, tmp_path: Path) -> None:
    """Port 9 has no server: what matters is that the page is left, with the id of who took part."""
    path = full_study(tmp_path, tries=1, more='screen_out = {url = "http://127.0.0.1:9/back?p={participant}"}')
    with served_study(path) as service, KeyboardPage() as page:
        page.open(participant_url(service, "w1"))
        page.evaluate("send('begin')")
        page.wait("state.phase === 'questions'")
        page.evaluate("send('answers', {name: state.name, answers: {glows: 'it sings-secretly-wrong'}, tries: 0})")
        page.wait("state.phase === 'end'")
        assert page.evaluate("news.textContent") == "This page soon goes back by itself; Stay here stops that."
        text = page.evaluate("screen_.innerText")
        assert "It then knows that the study ended here for you." in text
        assert "close this window" not in text
        assert page.evaluate("document.getElementById('leaving').getAttribute('role')") == "timer"
        assert page.evaluate("document.querySelector('[data-key=finish]').href") == "http://127.0.0.1:9/back?p=w1"
        assert page.violations() == []
        if is_stopped:
            page.reach('[data-key="stay"]')
            page.press("Enter")
            page.wait("!document.getElementById('leaving')")
            assert page.evaluate("news.textContent") == ""
            assert page.evaluate("[leaveAt === Infinity, state.phase]") == [True, "end"]
            return
        before = page.evaluate("location.href")
        page.evaluate("leaveAt = performance.now() + 1000; 0")
        page.wait("/1 second[.]/.test(document.getElementById('leaving')?.textContent)")
        page.wait(f"location.href !== {json.dumps(before)}")
