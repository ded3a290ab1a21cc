"""Native blicket pools and traces: written and read back, and refused in one line with item and field."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.dsl.blickets.episode import (
    Monitor,
    Notes,
    Transition,
    check_trace,
    sealed_view,
    trace_from_line,
    trace_line,
    trace_of,
)
from calibrant.dsl.blickets.item import BlicketItem, Form, Rule, all_rules
from calibrant.dsl.blickets.prompt import instructions, observation
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.blickets.reference import ACTIVE
from calibrant.dsl.blickets.score import grade
from calibrant.dsl.blickets.text_game import text_runs
from calibrant.dsl.episode import Step, TranscriptError
from calibrant.dsl.errors import CalibrantError, PoolError
from tests.support.benchmarks.blickets import (
    JUNK,
    actions,
    items,
    opened,
    static_item,
    text_game_expected,
    text_game_lines,
)


# --- Native blicket pools: written and read back, and refused in one line with item and field -------------------------
@settings(deadline=None)
@given(items())
def test_an_item_survives_its_record_as_json(item: BlicketItem) -> None:
    line = msgspec.json.encode(record_from_item(item))
    assert item_from_record(msgspec.json.decode(line, type=ItemRecord)) == item


def test_a_pool_survives_its_file(tmp_path: Path) -> None:
    made = [static_item(rule, 3) for rule in all_rules(3)]
    path = tmp_path / "pool.jsonl"
    write_pool(path, "all rules", made)
    with pytest.raises(PoolError, match=r"pool.jsonl: line 3 \('static'\): id: a second item"):
        read_pool(path)
    write_pool(path, "one rule", made[:1], {"seed": 3})
    pool = read_pool(path)
    assert (pool.name, pool.benchmark, pool.items, pool.metadata) == ("one rule", "blickets", (made[0],), {"seed": 3})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"n": 4}, "n: 4, but 3 objects are listed"),
        ({"objects": ["A"], "n": 1}, "objects: 1 objects; 2 to 8 are allowed"),
        ({"objects": ["A", "B", "B"]}, "objects: a name occurs twice"),
        ({"objects": ["A", "B", "\n"]}, "objects: .* is no name"),
        ({"budget": 0}, "budget: 0; 1 to 100000 moves are allowed"),
        ({"budget": True}, "budget"),
        ({"condition": "gravity"}, "condition"),
        ({"start": "random"}, "start: random goes with sealed.start_on"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": []}}}, "sealed.rule1: expected a non-empty list"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["Z"]}}}, "sealed.rule1: unknown object 'Z'"),
        ({"sealed": {"rule1": {"rule": "both", "blickets": ["A"]}}}, "rule1.rule"),
        (
            {"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A", "B"], "order": ["A", "C"]}}},
            "sealed.rule1.order: is not an order of the blickets",
        ),
        (
            {"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "switch": 3}},
            "rule2 and switch go together",
        ),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "p": 0}}, "sealed.p: 0"),
        ({"sealed": {"rule1": {"rule": "conjunctive", "blickets": ["A"]}, "draws": [1.0]}}, "sealed.draws"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_record_that_cannot_be_meant_is_refused(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    record = msgspec.to_builtins(record_from_item(static_item(Rule(Form.CONJUNCTIVE, 3), 3)))
    path = tmp_path / "pool.jsonl"
    header = {"format": "calibrant-pool", "version": 1, "benchmark": "blickets"}
    path.write_text(f"{json.dumps(header)}\n{json.dumps({**record, **change})}\n")
    with pytest.raises(PoolError, match=says) as refused:
        read_pool(path)
    assert str(refused.value).startswith("pool.jsonl: line 2")
    assert str(refused.value).isprintable()


def test_the_prompt_tells_the_task_and_nothing_that_is_sealed() -> None:
    text = instructions(static_item(Rule(Form.CONJUNCTIVE, 3), 3, 41).task)
    assert "A, B, C" in text
    assert "41 moves" in text
    assert "order" not in text
    assert "fail" not in text
    assert "change" not in text


def test_an_observation_says_reading_detector_and_moves_left() -> None:
    assert observation(Step({"place": "A"}, "ACTIVE", "", 1), ["A"], 3) == (
        "The detector is ACTIVE. On the detector: A. Moves left: 3."
    )
    assert observation(Step({"remove": "A"}, None, "A is not on the detector", 1), [], 3) == (
        "Refused: A is not on the detector. The detector is empty. Moves left: 3."
    )


# --- Traces of our own, checked step by step; and the public text game's, read as they are ----------------------------
@settings(deadline=None)
@given(st.data())
def test_a_trace_survives_its_line_and_is_checked(data: st.DataObject) -> None:
    item = data.draw(items())
    steps = opened(item, data.draw(actions(item.task.n).filter(_is_json))).steps
    note = Notes(Transition("VERIFICATION", None), (Monitor("DB1", 6.5, True),), "look again")
    trace = trace_of(item, "tester", steps, {0: note} if steps else {})
    again = trace_from_line(trace_line(trace))
    assert again == trace
    assert check_trace(again, item) == grade(item, steps)
    assert "rule_in_force" not in trace_line(trace)
    assert trace_line(sealed_view(trace, item)).count("rule_in_force") == len(steps)


def _is_json(actions: list[Any]) -> bool:
    try:
        return bool(json.dumps(actions, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return False


@settings(deadline=None)
@given(st.data())
def test_a_changed_trace_is_refused_by_step_or_field(data: st.DataObject) -> None:
    item = data.draw(items())
    trace = trace_of(item, "tester", opened(item, data.draw(actions(item.task.n).filter(_is_json))).steps)
    raw = msgspec.to_builtins(trace)
    flip = {"ACTIVE": "INACTIVE", "INACTIVE": None, None: "ACTIVE"}
    if raw["steps"] and data.draw(st.booleans()):
        number = data.draw(st.integers(0, len(raw["steps"]) - 1))
        step = raw["steps"][number]
        field = data.draw(st.sampled_from(["t", "reading", "activations", "state"]))
        change = {
            "t": step["t"] + 1,
            "reading": flip.get(step["reading"], ACTIVE),
            "activations": step["activations"] + 1,
        }
        step[field] = change.get(field, [*step["state"], "Q"])
        with pytest.raises(TranscriptError, match=f"^step {number}: "):
            check_trace(msgspec.convert(raw, type(trace)), item)
        return
    field = data.draw(st.sampled_from(["item", "answer", "class", "verdict"]))
    raw[field] = {"item": "other", "answer": {"rule": "?"}, "class": "post"}.get(
        field, {"correct": not raw["verdict"]["correct"], "errors": []}
    )
    with pytest.raises(PoolError, match=field):
        check_trace(msgspec.convert(raw, type(trace)), item)


def test_a_long_number_makes_no_long_message() -> None:
    item = static_item(Rule(Form.CONJUNCTIVE, 0b11), 3)
    trace = trace_of(item, "a", opened(item, [{"place": "A"}]).steps)
    for field in ("t", "activations"):
        odd = msgspec.structs.replace(trace, steps=[msgspec.structs.replace(trace.steps[0], **{field: 10**4000})])
        with pytest.raises(TranscriptError) as refused:
            check_trace(odd, item)
        assert len(str(refused.value)) < 500


def test_every_public_run_is_read_and_none_contradicts_its_truth() -> None:
    expected = text_game_expected()
    runs = list(text_runs(text_game_lines()))
    assert len(runs) == expected["rows"]
    assert Counter(run.setting for run in runs) == {
        setting: sum(counts.values()) for setting, counts in expected["counts"].items()
    }
    assert sum(len(run.steps) - 1 for run in runs) == expected["moves"]
    assert sum(bool(step.refused) for run in runs for step in run.steps) == expected["refused_moves"]
    contradicted = 0
    for run in runs:
        present = [(sum(1 << i for i in placed), active) for placed, active in run.readings()]
        contradicted += any(run.rule.active(placed) != active for placed, active in present)
    assert contradicted == expected["rows_contradicting_truth"] == 0


TRIAL: dict[str, Any] = {
    "metric_type": "trial",
    "obj_name_list": ["object 0", "object 1"],
    "blicket_indices": [0, 1],
    "num_questions": 2,
    "num_correct": 2,
    "expl_traj_config": {"env_kwargs": {"rule": "conjunctive", "transition_noise": 0.0}},
    "qa_config": {"model": "m"},
    "history_obs": "\n".join(
        [
            "You observe them: object 0 is on the floor, object 1 is on top of the machine. \n",
            "The light on the machine is currently off. You wonder.",
            "> put object 0 on machine",
            "You put object 0 on the machine. The light on the machine is now on.",
            "> take 3 off machine",
            "3 is not a recognized object. The light on the machine is now on.",
            "> put object 0 and object 1 on the machine",
            "object 0 is already on the machine. The light on the machine is now on.",
            "> dance",
            "What?",
            "> take object 1 off the machine",
            "You took object 1 off of the machine.",
            " The light on the machine is currently off.",
        ]
    ),
}


def test_the_other_spelling_is_read_too() -> None:
    (run,) = text_runs(["", json.dumps(TRIAL), json.dumps({**TRIAL, "metric_type": "summary"})])
    assert [dict(step.action) for step in run.steps] == [
        {"start": ["object 1"]},
        {"place": "object 0"},
        {"remove": "3"},
        {"place": "object 0 and object 1"},
        {"unreadable": "'dance'"},
        {"remove": "object 1"},
    ]
    assert list(run.readings()) == [((1,), False), ((1, 0), True), ((0,), False)]
    assert (run.setting, run.right, run.answered_by) == ("2 objects, conjunctive", True, "m")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"obj_name_list": ["a", "a"]}, "obj_name_list"),
        ({"obj_name_list": "ab"}, "obj_name_list"),
        ({"blicket_indices": [2]}, "blicket_indices"),
        ({"blicket_indices": [True]}, "blicket_indices"),
        ({"num_correct": 3}, "num_correct"),
        ({"num_questions": None}, "num_correct"),
        ({"qa_config": 3}, "qa_cfg or qa_config"),
        ({"expl_traj_config": {"env_kwargs": {"rule": "xor"}}}, "env_kwargs.rule"),
        ({"expl_traj_config": {"env_kwargs": {"rule": "conjunctive", "transition_noise": 0.2}}}, "transition_noise"),
        ({"history_obs": "nothing"}, "does not say where each object is"),
        ({"history_obs": TRIAL["history_obs"].replace("currently off. You", "broken. You")}, "before the first move"),
        ({"history_obs": TRIAL["history_obs"] + "\n> x\nYou put object 0 on the machine. The light"}, "move 6"),
    ],
)
def test_a_line_that_cannot_be_read_is_refused_in_one_line(change: dict[str, Any], says: str) -> None:
    with pytest.raises(PoolError, match=says) as refused:
        list(text_runs([json.dumps({**TRIAL, **change})], "results.jsonl"))
    assert str(refused.value).startswith("results.jsonl: line 1")
    assert str(refused.value).isprintable()


@settings(deadline=None)
@given(JUNK, st.sampled_from([*TRIAL, "x"]), st.text(alphabet='{}[]":,a1\n> ', max_size=30))
def test_junk_is_a_run_or_one_line(junk: Any, field: str, text: str) -> None:
    cut = len(text) * 9
    history = TRIAL["history_obs"][:cut] + text + TRIAL["history_obs"][cut:]
    messages = []
    for line in (text, json.dumps({**TRIAL, field: junk}), json.dumps({**TRIAL, "history_obs": history})):
        for reader in (lambda line=line: list(text_runs([line])), lambda line=line: trace_from_line(line)):
            try:
                reader()
            except CalibrantError as error:
                messages.append(str(error))
    assert [message for message in messages if len(message.splitlines()) != 1] == []
