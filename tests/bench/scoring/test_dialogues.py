"""Lines with the replies of a system: they are played, and the verdict has what was unread and what was copied."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.bench.blickets.scoring import BlicketVerdict
from calibrant.bench.causalab.scoring import LabVerdict
from calibrant.bench.cli import main
from calibrant.dsl.blickets.generation import SUITES, sample_items
from calibrant.dsl.blickets.records import write_pool as write_detectors
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import BENCHMARK as NAME
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism
from calibrant.dsl.causalab.records import write_pool
from calibrant.dsl.item import Pool
from tests.support.benchmarks.causalab import made_item
from tests.support.commands import called, jsonl

ITEM = made_item("4nodes", seed=3)
TRUTH = state_mechanism(ITEM.sealed.mechanism)
FIRST, SECOND = ITEM.task.settable[:2]
SEEN = [*ITEM.task.records, ITEM.task.baseline]


def entry(reading: dict[str, float], **changes: Any) -> dict[str, Any]:
    properties = {name: value for name, value in reading.items() if name != FREQUENCY}
    return {"id": "0/N", "props": properties, "freq": reading[FREQUENCY]} | changes


ENTRIES = [entry(dict(reading)) for reading in SEEN]
ALTERED = [entry(dict(SEEN[0]), freq=SEEN[0][FREQUENCY] + 1), *ENTRIES[1:]]
BROKEN = TRUTH | {"coefficients": {"base": "ten"}}
NOTEBOOK: list[Any] = [
    {"past_data": ENTRIES, "experiment": {"target_prop": FIRST.upper(), "target_value": 40}, "value": 40},
    "I do not know",
    {"past_data": ALTERED, "hypothesis": BROKEN, "experiment": {"target_prop": SECOND, "target_value": 4}, "value": 9},
    {"past_data": ALTERED, "hypothesis": TRUTH, "experiment": {}, "value": ITEM.sealed.target},
    json.dumps({"action": "SUBMIT", "hypothesis": TRUTH}),
]


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    path = tmp_path / "pool.jsonl"
    write_pool(Pool("lab", NAME, (ITEM,), {}), path)
    return path


def score(pool: Path, *lines: dict[str, Any], item: str = ITEM.id) -> list[dict[str, Any]]:
    file = jsonl(pool.parent / "predictions.jsonl", *({"id": item} | line for line in lines))
    done = called("score", str(pool), str(file), "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_replies_are_played_and_their_notebook_is_compared_with_the_readings(pool: Path) -> None:
    (verdict,) = score(pool, {"replies": NOTEBOOK})
    assert (verdict["correct"], verdict["settings"], verdict["problem"]) == (True, 2, "")
    dialogue = verdict["dialogue"]
    assert (dialogue["replies"], dialogue["unread"], dialogue["malformed"], dialogue["returned"]) == (5, 1, 0, 0)
    # three notebooks of three entries, two of them with one that is altered; the two settings were never copied
    assert dialogue["ledger"] == {
        "entries": 9,
        "right_share": pytest.approx(7 / 9),
        "altered_share": pytest.approx(2 / 9),
        "invented_share": 0.0,
        "missing": 3,
        "dropped": 1,
        "announced": 2,
        "unannounced": 1,
    }
    msgspec.convert(verdict, LabVerdict)


def test_replies_as_messages_are_those_as_texts_and_objects(pool: Path) -> None:
    texts = [reply if isinstance(reply, str) else json.dumps(reply) for reply in NOTEBOOK]
    messages: list[Any] = [{"role": "system", "content": "s"}]
    for text in texts:
        messages += [{"role": "user", "content": "what next?"}, {"role": "assistant", "content": text}]
    thinking = [[{"type": "thinking", "thinking": texts[-1]}, {"type": "text", "text": text}] for text in texts]
    plain, *others = score(pool, *({"replies": form} for form in (NOTEBOOK, texts, messages, thinking)))
    assert [other["dialogue"] for other in others] == [plain["dialogue"]] * 3
    assert [other["correct"] for other in others] == [True] * 3


@pytest.mark.parametrize("num_turns", [1, 2])
def test_conversations_of_which_the_last_message_counts_are_pointed_out(pool: Path, num_turns: int) -> None:
    turns = [{"role": "assistant", "content": json.dumps(NOTEBOOK[0])}] * (num_turns - 1)
    messages = [{"role": "user", "content": "q"}, *turns, {"role": "assistant", "content": '{"frequency": 1.0}'}]
    note = "not read: earlier messages of the assistant (`replies`, a list of all, plays them)"
    for name, is_said in (("messages", num_turns > 1), ("replies", False)):
        file = jsonl(pool.parent / "predictions.jsonl", {"id": ITEM.id, name: messages})
        done = called("score", str(pool), str(file))
        assert done.returncode == 0
        assert (note in done.stderr) is is_said


def test_the_options_of_the_dialogue_stand_in_the_line(pool: Path) -> None:
    (verdict,) = score(pool, {"replies": NOTEBOOK, "dialogue": {"schema": "paper", "verify": "once"}})
    assert verdict["dialogue"]["returned"] == 1  # the reply with "ten" came back, so its setting was not made
    assert verdict["settings"] == 1
    last = {"experiment": {}, "value": ITEM.sealed.target, "hypothesis": BROKEN}
    (verdict,) = score(pool, {"replies": [last] * 3, "dialogue": {"schema": "paper"}})
    assert (verdict["dialogue"]["malformed"], verdict["dialogue"]["malformed_share"]) == (1, pytest.approx(1 / 3))
    assert verdict["problem"]


def test_replies_without_an_action_have_a_reason_and_lines_without_replies_no_totals(pool: Path) -> None:
    unread, empty, plain = score(
        pool, {"replies": ["?", 7]}, {"replies": []}, {"response": json.dumps({"frequency": 1.0})}
    )
    assert unread["problem"] == "none of 2 replies states an action"
    assert unread["dialogue"]["unread_share"] == 1.0
    assert empty["problem"] == "none of 0 replies states an action"
    assert empty["dialogue"]["unread_share"] is None
    assert "dialogue" not in plain


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ({"replies": "text"}, "replies is 'text', not a list of texts or objects"),
        ({"replies": [], "steps": []}, "it has steps and replies; give one of them"),
        ({"replies": [], "dialogue": {"aid": "members"}}, "dialogue: Object contains unknown field `aid`"),
        ({"replies": [], "dialogue": {"schema": "strict"}}, "known: schema free or paper"),
        ({"replies": [], "dialogue": 3}, "dialogue is 3, not an object of options"),
        ({"replies": [{"submit": {}}, {"submit": {}}]}, "reply 1 of 2 comes after the end of the episode"),
    ],
)
def test_a_line_that_cannot_be_played_is_refused_by_its_number(pool: Path, line: dict[str, Any], reason: str) -> None:
    file = jsonl(pool.parent / "predictions.jsonl", {"id": ITEM.id} | line)
    done = called("score", str(pool), str(file))
    assert done.returncode == 2
    assert "line 1: " in done.stderr
    assert reason in done.stderr


def test_tables_have_unread_malformed_and_the_ledger(pool: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = jsonl(pool.parent / "predictions.jsonl", {"id": ITEM.id, "replies": NOTEBOOK})
    verdicts = pool.parent / "verdicts.jsonl"
    assert main(["score", str(pool), str(file), "--out", str(verdicts)]) == 0
    capsys.readouterr()
    assert main(["table", str(verdicts), "--columns", "replies", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["unread"], row["malformed"], row["unannounced"]) == (pytest.approx(0.2), 0, 1)
    assert main(["table", str(verdicts), "--json"]) == 0
    assert "unread" in json.loads(capsys.readouterr().out)["rows"][0]
    assert "Replies and their notebooks" in called("report", str(verdicts), "--no-paper").stdout
    file = jsonl(pool.parent / "predictions.jsonl", {"id": ITEM.id, "response": json.dumps({"frequency": 1.0})})
    assert main(["score", str(pool), str(file), "--out", str(pool.parent / "plain.jsonl")]) == 0
    assert "Replies and their notebooks" not in called("report", str(pool.parent / "plain.jsonl"), "--no-paper").stdout


def test_replies_about_a_detector_have_the_share_without_an_action(tmp_path: Path) -> None:
    item = next(sample_items(SUITES["easy-3"], 1))
    path = tmp_path / "detectors.jsonl"
    write_detectors(path, "detectors", (item,))
    answer = f"RULE_TYPE: conjunctive\nBLICKETS: {', '.join(item.task.objects[:2])}"
    replies = ["REASONING: none", f"ACTION: place {item.task.objects[0]}", answer]
    named, numbered = score(
        path,
        {"replies": replies},
        {"replies": ["ACTION: 1", replies[2]], "dialogue": {"actions": "numbered"}},
        item=item.id,
    )
    told = {"role": "user", "content": "The detector is INACTIVE."}
    messages = [{"role": "assistant", "content": [{"type": "text", "text": text}]} for text in replies]
    rule = {"rule": "conjunctive", "blickets": item.task.objects[:2]}
    call = {"role": "assistant", "content": None, "tool_calls": [{"function": {"arguments": json.dumps(rule)}}]}
    forms = [[*messages[:2], told, messages[2]], [*messages[:2], call], [*replies[:2], rule]]
    for scored in score(path, *({"replies": form} for form in forms), item=item.id):
        same = ("dialogue", "steps", "closed", "correct", "answer")
        assert [scored[key] for key in same] == [named[key] for key in same]
    assert named["dialogue"] == {"replies": 3, "unread": 1, "unread_share": pytest.approx(1 / 3)}
    assert numbered["dialogue"]["unread"] == 0
    assert (named["steps"], numbered["steps"], named["closed"]) == (1, 1, "answered")
    msgspec.convert(named, BlicketVerdict)


@pytest.mark.parametrize("name", [["a"], {"a": 1}, [[]], None, 3])
def test_a_setting_of_something_that_is_no_name_is_refused_and_scored(pool: Path, name: Any) -> None:
    action = {"set": name, "value": 5}
    step = LabEpisode(ITEM).act(action)
    recorded_step = {"action": action, "reading": None, "refused": step.refused, "cost": 0}
    replied, recorded = score(pool, {"replies": [action]}, {"steps": [recorded_step]})
    assert (replied["refused"], replied["settings"], replied["problem"]) == (1, 0, "no answer")
    assert recorded["attribution"] == replied["attribution"]
