"""Simulated participants, a server that is killed, and questions of other kinds.

`python -m tests.people` has 40 of them, kills the server twice and opens 1,000 connections; here nothing is killed.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark
from calibrant.bench.core.typed_moves import Act, Draft, Edit, Position, WordsError
from calibrant.bench.play.game import PlayPool, Terms
from calibrant.bench.replayscm.play import WORDS
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.formulas.text import infix, render
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.replayscm.alternative import AlternativeAnswer
from tests.people.__main__ import KilledServer, check_sealed, content, write_study
from tests.people.study import check_tables, play_study
from tests.support.browser import needs_chromium
from tests.support.commands import called
from tests.support.play.right_lines import (
    EPISODES,
    POOLS,
    alternative_lines,
    alternative_of,
    detector_rule,
    extended_item,
    first_item,
    forecast_of,
    solved_alternative,
)
from tests.support.play.served import SimulatedParticipant, participant_url, served
from tests.support.play.solved_by_keys import SETTLED, KeyboardPage, solve

# --- Participants who are programs, at once, with reloads: their records are those of the protocol that they follow


def test_people_who_follow_a_protocol_have_its_records(tmp_path: Path) -> None:
    pool = POOLS["blickets"]
    called("run", "static", pool, "--limit", 2, "--out", tmp_path / "run", "--workers", 1)
    expected = {record.instance: record for record in folder_records(tmp_path / "run")}
    public = PlayPool(pool).public.ids.public
    moves = {
        public(name): [step.action for step in record.steps]
        for name, record in expected.items()
        if isinstance(record.steps, list)
    }
    with served(tmp_path / "out", [pool], Terms("pilot", reveal=False), num_items=2) as service:
        port = service.address.port
        paths = [participant_url(service, f"s{k}").partition(str(port))[2] for k in range(4)]
        people = [
            SimulatedParticipant(lambda: port, path, lambda item: iter(moves[item]), Random(k), reload_rate=0.3)
            for k, path in enumerate(paths)
        ]
        threads = [threading.Thread(target=person.play) for person in people]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    records = list(folder_records(tmp_path / "out"))
    assert len({record.key for record in records}) == len(records) == 4 * 2
    assert all(content(record) == content(expected[record.instance]) for record in records)
    check_sealed([body for person in people for body in person.bodies], pool, list(expected))
    rows = [json.loads(called("table", tmp_path / name, "--json").stdout)["rows"] for name in ("out", "run")]
    accuracies = [{row["accuracy"] for row in side} for side in rows]
    assert accuracies[0] == accuracies[1]


def test_a_study_of_two_groups_in_two_languages_loses_nothing_when_its_server_is_killed(tmp_path: Path) -> None:
    """`python -m tests.people.study` has 40 people and four kills, and reads the tables with pandas and R."""
    people, players = play_study(tmp_path, 3, 1)
    figures = check_tables(tmp_path, people, players)
    assert figures["people"] == 3 * 3
    assert {figures["quiet"], figures["told"]} == {1, 2}


# --- A server that is killed while somebody plays in the browser: the page goes on, nothing is lost or made twice -----


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


# --- Alternatives and forecasts in words: what is typed is the answer that a solver sends as JSON, and what is missing
SCORING = benchmark("replayscm").scoring


def typed(item: Problem, lines: Sequence[str]) -> tuple[Draft, dict[str, Any]]:
    """Return the draft that lines state, which the page's check leaves as it is, and the answer that is sent."""
    draft: Draft = {}
    for line in lines:
        stated = WORDS.read(item, Position((), 0, draft), line)
        assert isinstance(stated, Edit), line
        draft = WORDS.check_draft(item, stated.draft)
        assert draft == {key: value for key, value in stated.draft.items() if value}
    sent = WORDS.read(item, Position((), 0, draft), "submit")
    assert isinstance(sent, Act)
    return draft, dict(sent.action["submit"])


@pytest.fixture(scope="module")
def alternative() -> tuple[Problem, AlternativeAnswer]:
    item = alternative_of(first_item(POOLS["replayscm"]))
    return item, solved_alternative(item)


def test_an_alternative_is_typed_as_a_solver_sends_it(alternative: tuple[Problem, AlternativeAnswer]) -> None:
    item, answer = alternative
    lines = [*alternative_lines(answer)]
    draft, sent = typed(item, lines)
    mechanisms = {name: render(formula) for name, formula in answer.model.mechanisms.items()}
    assert sent["alternative"] == {"mechanisms": mechanisms}
    assert sent["experiment"] == answer.separation.experiment.to_dict()
    assert sent["witness"]["rootAssignment"] == dict(answer.witness["rootAssignment"])
    assert {d["variable"] for d in sent["witness"]["differences"]} == {
        d["variable"] for d in answer.witness["differences"]
    }
    assert SCORING.score(item, SCORING.extract(item, sent), ())["correct"]
    again, _ = typed(item, WORDS.draft_lines(item, draft))
    assert again == draft
    verbs = {verb.form.split()[0] for verb in WORDS.verbs(item)}
    assert {"experiment", "witness", "differs", "submit"} <= verbs
    for without in ("experiment", "witness", "differs"):
        kept = [line for line in lines if not line.startswith(without)]
        with pytest.raises(WordsError, match=f"type for example {without}"):
            typed(item, kept)


@pytest.mark.parametrize(
    "line",
    [
        "experiment",
        "experiment X1=1 X2=1",
        "experiment X1=2",
        "witness X9=1",
        "differs X4",
        "differs X4 1 1",
        "chance X4 = 1",
    ],
)
def test_a_mistake_in_an_alternative_is_no_edit(line: str, alternative: tuple[Problem, AlternativeAnswer]) -> None:
    with pytest.raises(WordsError):
        WORDS.read(alternative[0], Position((), 0, {}), line)


@pytest.fixture(scope="module")
def forecast() -> Problem:
    item = extended_item(EPISODES["noisy episode"], is_episode=False)
    return forecast_of(item, item.sealed.heldout.worlds[:2])


def test_probabilities_are_typed_for_all_rows_for_a_world_and_for_a_row(forecast: Problem) -> None:
    extension = forecast.task.extension
    assert extension is not None
    free = [v for v in extension.variables if v not in extension.roots]
    lines = [f"chance {name} = 0.5" for name in free if any(name not in w.constants for w in extension.forecast_worlds)]
    name = next(v for v in free if v not in extension.forecast_worlds[1].constants)
    draft, sent = typed(forecast, [*lines, f"chance 2 {name.lower()} = 0.25", f"chance 2.1 {name} = 1"])
    chances = [row[name] for row in sent["forecast"][1]]
    assert chances == [1, *[0.25] * (len(chances) - 1)]
    cells = [value for world in sent["forecast"] for row in world for value in row.values()]
    assert cells.count(0.5) == len(cells) - len(chances)
    score = SCORING.score(forecast, SCORING.extract(forecast, sent), ())
    assert score["valid"]
    assert typed(forecast, WORDS.draft_lines(forecast, draft))[0] == draft
    with pytest.raises(WordsError, match=r"probabilities are missing; type for example chance 1\.1"):
        typed(forecast, [f"chance 2.1 {name} = 1"])


def test_formulas_may_stand_in_place_of_probabilities(forecast: Problem) -> None:
    gold: Any = forecast.sealed.gold
    lines = [f"{name} = {infix(formula)}" for name, formula in gold.mechanisms.items()]
    name = next(iter(gold.mechanisms))
    _, sent = typed(forecast, [*lines, f"chance {name} = 1", "chance nothing"])
    assert sent == {
        "mechanisms": {v: render(gold.mechanisms[v]) for v in forecast.task.variables if v in gold.mechanisms}
    }
    for line in ("chance X1 = 2", "chance", f"chance 9 {name} = 1", f"chance {name} = soon", "chance Q = 1"):
        with pytest.raises(WordsError):
            WORDS.read(forecast, Position((), 0, {}), line)
