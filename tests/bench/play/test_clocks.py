"""Time of studies where no page is open and where a server is killed: what is over is closed, and no time is won."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from pathlib import Path

import pytest

from calibrant.bench.play.clocks import CLOCK_FILE, Elapsed, read_elapsed, ticking, write_elapsed
from calibrant.bench.play.folder import PlayFolder
from calibrant.bench.play.participants import Sitting
from calibrant.bench.play.results import move_rows, person_rows, write_results
from calibrant.bench.play.study.config import Study
from calibrant.bench.play.terminal import TerminalStudy
from calibrant.dsl.errors import CalibrantError
from tests.bench.play.test_service import Client
from tests.bench.play.test_start import served_study
from tests.bench.play.test_terms import give_up_item, limited_study, sitting_of


def limit_items(path: Path) -> None:
    """Limit each item of the study of two groups to a minute."""
    text = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r'(groups = \["\w+"\]\n)limit = 0', r"\1limit = 60", text), encoding="utf-8")


@contextmanager
def killed_sitting(path: Path, name: str, clock: Callable[[], float]) -> Iterator[Sitting]:
    """Yield a sitting whose server stores its seconds as the last thing before a kill."""
    study = Study(path)
    with PlayFolder(study.out, study.pools, study.config) as folder:
        sitting = Sitting(folder, name, study.plan, study.terms, clock)
        yield sitting
        entry = sitting.elapsed
        assert entry is not None
        folder.store_elapsed({name: entry})


# --- A killed server gives no time back -------------------------------------------------------------------------------


def test_a_terminal_that_is_left_gives_back_no_time(tmp_path: Path) -> None:
    """7 and 10 seconds of an item that `quit` leaves and 3 after them are 20; pauses do not count."""
    path, now = limited_study(tmp_path, study=200), [0.0]
    study = Study(path)

    def lines(*typed: tuple[float, str]) -> Iterator[str]:
        for seconds, line in typed:
            now[0] += seconds
            yield line

    for seconds in (7, 10):
        with PlayFolder(study.out, study.pools, study.config) as folder:
            game = TerminalStudy(study, folder, "w1", lines((seconds, "quit")), lambda text: None, lambda: now[0])
            with ticking(game.store_elapsed):
                assert game.play() == 1
        now[0] += 1000  # nobody plays
    entry = read_elapsed(study.out)["w1"]
    assert (entry.seconds, entry.study_seconds) == (10, 17)  # the 7 are in the event of the second opening
    with PlayFolder(study.out, study.pools, study.config) as folder:
        TerminalStudy(study, folder, "w1", lines((3, "give up")), lambda text: None, lambda: now[0]).play()
    last = [row for row in move_rows(study.out, study.pools) if row.event in ("open", "give_up")]
    assert sum(row.seconds for row in last) == 20
    assert last[-1].study_seconds == 20


def test_a_kill_gives_back_no_time_of_an_item_and_of_the_study(tmp_path: Path) -> None:
    path = limited_study(tmp_path, study=200)
    limit_items(path)
    now = [0.0]
    clock = partial(now.__getitem__, 0)
    with killed_sitting(path, "w1", clock) as sitting:
        sitting.begin(agreed=False)
        now[0] += 4
        item = sitting.state()["item"]["id"]
        now[0] += 1
        sitting.write(item, {"rule": "conjunctive", "blickets": []})
        now[0] += 25
    now[0] += 1000  # no server runs
    with killed_sitting(path, "w1", clock) as sitting:
        state = sitting.state()
        assert (state["item"]["seconds_left"], state["study_seconds_left"]) == (34, 170)
        now[0] += 4
    with sitting_of(path, "w1", clock) as sitting:
        state = sitting.state()
        assert (state["item"]["seconds_left"], state["study_seconds_left"]) == (30, 166)
        now[0] += 5
        give_up_item(sitting)
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.seconds, row.restarts) == (35, 2)
    events = [(row.event, row.seconds, row.interrupted) for row in move_rows(tmp_path / "pilot") if row.position]
    assert events == [
        *(("open", 0, ""), ("draft", 1, ""), ("open", 25, ""), ("open", 4, ""), ("give_up", 5, "restart")),
    ]


def test_a_kill_gives_back_no_time_of_a_page_without_a_limit(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path), [0.0]
    clock = partial(now.__getitem__, 0)
    with killed_sitting(path, "w1", clock) as sitting:
        sitting.begin(agreed=False)
        give_up_item(sitting)
        assert sitting.state()["phase"] == "questions"
        now[0] += 12
    with sitting_of(path, "w1", clock) as sitting:
        sitting.state()
        now[0] += 3
        sitting.answer_questions("2-about", {"age": 30, "attention": 2})
    rows = [row for row in move_rows(tmp_path / "pilot") if row.item == "questions:2-about"]
    assert [(row.event, row.seconds, row.interrupted) for row in rows] == [("open", 12, ""), ("answers", 3, "restart")]


def test_seconds_before_an_event_are_not_counted_twice(tmp_path: Path) -> None:
    """What was stored before the last event says nothing about the time after it."""
    path, now = limited_study(tmp_path), [0.0]
    limit_items(path)
    clock = partial(now.__getitem__, 0)
    with killed_sitting(path, "w1", clock) as sitting:
        sitting.begin(agreed=False)
        item = sitting.state()["item"]["id"]
        now[0] += 10
    with sitting_of(path, "w1", clock) as sitting:
        sitting.state()
        sitting.write(item, {"rule": "conjunctive", "blickets": []})
        now[0] += 5
    with sitting_of(path, "w1", clock) as sitting:
        assert sitting.state()["item"]["seconds_left"] == 50


def test_a_file_of_times_that_is_none_is_refused(tmp_path: Path) -> None:
    assert read_elapsed(tmp_path) == {}
    entry = Elapsed("d", "i", 2, 1.5, 3.0)
    write_elapsed(tmp_path, {"w1": entry})
    assert read_elapsed(tmp_path) == {"w1": entry}
    assert (tmp_path / CLOCK_FILE).stat().st_mode & 0o777 == 0o600
    (tmp_path / CLOCK_FILE).write_text('{"w1": {"seconds": -1}}', encoding="utf-8")
    with pytest.raises(CalibrantError, match=r"clock\.json: no times of a server"):
        read_elapsed(tmp_path)


# --- What is over is closed without its page --------------------------------------------------------------------------


def test_a_study_that_is_over_is_closed_without_its_page_at_the_time_of_the_limit(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100), [0.0]
    with sitting_of(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        now[0] += 30
        sitting.state()
        now[0] += 74  # 4 s late: answers may be on their way
        sitting.close_if_over()
        assert not sitting._folder.has_finished("w1")
        now[0] += 296
        sitting.close_if_over()
        sitting.close_if_over()  # once
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.position, row.ended_by, row.time_up, row.seconds) == (1, "no answer: the time was up", "study", 70)
    moves = [*move_rows(tmp_path / "pilot")]
    assert [(move.event, move.study_seconds) for move in moves] == [
        *(("answers", 0), ("open", 30), ("time_up", 100), ("finished", 100)),
    ]
    late = datetime.fromisoformat(moves[0].at) - datetime.fromisoformat(row.finished)
    assert 299 < late.total_seconds() < 310  # the clock of the test went ahead by 400 s, the time of the end by 100


def test_the_end_takes_the_place_of_an_ended_item_when_the_study_is_over(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100), [0.0]
    with sitting_of(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        item = sitting.state()["item"]["id"]
        now[0] += 10
        give_up_item(sitting)
        stop = sitting.expire(item)
        assert sitting.state(stay_at=stop)["study_seconds_left"] == 90
        now[0] += 90
        state = sitting.state(stay_at=sitting.expire(item))
        assert (state["phase"], state["late"]) == ("end", True)


def test_an_item_and_a_page_that_are_over_are_closed_and_the_study_goes_on(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, page=50), [0.0]
    limit_items(path)
    with sitting_of(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        sitting.state()
        now[0] += 66
        sitting.close_if_over()
        assert sitting.state()["phase"] == "questions"  # its time begins now
        sitting.write_answers("2-about", {"age": 33})
        now[0] += 56
        sitting.close_if_over()
        sitting.close_if_over()  # nothing is left: that is the end
        assert sitting._folder.has_finished("w1")
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.ended_by, row.seconds, row.time_up) == ("no answer: the time was up", 60, "about")
    assert row.answers == {"about.age": 33}


def test_a_server_closes_what_is_over_while_no_page_is_open(tmp_path: Path) -> None:
    path = limited_study(tmp_path, study=1)
    with served_study(path) as service:
        client = Client(service, "w1")
        client.get()
        client.post("begin")
        client.get()
        for _ in range(600):
            rows = person_rows(tmp_path / "pilot") if (tmp_path / "pilot" / "records.jsonl").stat().st_size else []
            if rows and rows[0].finished:
                break
            time.sleep(0.1)
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.time_up, row.position) == ("study", 1)
    assert row.finished.startswith("20")
    assert [move.study_seconds for move in move_rows(tmp_path / "pilot")][-1] == 1


def test_results_close_what_a_killed_server_could_not(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100), [0.0]
    for name, seconds in (("w1", 101), ("w2", 99)):
        with killed_sitting(path, name, lambda: now[0]) as sitting:
            sitting.begin(agreed=False)
            sitting.state()
            now[0] += seconds
    first, second = write_results(tmp_path / "people.csv", Study(path))
    assert (first.time_up, first.seconds, second.time_up, second.finished) == ("study", 100, "", "")
    assert 0 <= (first.total_seconds or -1) < 60  # by the date, which the clock of the test does not move


def test_a_server_goes_on_with_a_limit_where_the_one_before_was_killed(tmp_path: Path) -> None:
    path, now = limited_study(tmp_path, study=100), [0.0]
    with killed_sitting(path, "w1", lambda: now[0]) as sitting:
        sitting.begin(agreed=False)
        sitting.state()
        now[0] += 150  # of which the last were not closed any more
    with served_study(path) as service:
        for _ in range(600):
            if "finished" in (tmp_path / "pilot" / "moves.jsonl").read_text(encoding="utf-8"):
                break
            time.sleep(0.1)
        client = Client(service, "w1")
        client.get()
        assert (client.state["phase"], client.state["late"]) == ("end", True)
    (row,) = person_rows(tmp_path / "pilot")
    assert (row.seconds, row.restarts, row.time_up) == (100, 1, "study")
