"""Text episodes of CausaLab: stub agents that take each path of the paper's options once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causalab.dialogues import DialogueOptions, LabChat, text_episode
from calibrant.datasets import bundled_pool
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import BENCHMARK, LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.causalab.records import write_pool
from calibrant.dsl.causalab.replies import schema_fault
from calibrant.dsl.item import Pool
from tests.support.commands import called, jsonl
from tests.support.shared import shared_file


@pytest.fixture(scope="module")
def item() -> LabItem:
    return next(iter(generate_items(PLANS["4nodes"], 3, 1)))


def play(item: LabItem, replies: Sequence[Any], **options: Any) -> LabChat:
    chat = LabChat(item, DialogueOptions(**options))
    for reply in replies:
        assert not chat.closed
        chat.hear(json.dumps(reply) if isinstance(reply, dict) else reply)
    return chat


def told(chat: LabChat) -> str:
    return str(chat.messages[-1]["content"])


def truth(item: LabItem, **changes: Any) -> dict[str, Any]:
    return state_mechanism(item.sealed.mechanism) | changes


# --- verify=once ------------------------------------------------------------------------------------------------------


def test_a_dial_whose_equation_misses_readings_comes_back_once_with_them(item: LabItem) -> None:
    wrong = truth(item)
    wrong["coefficients"] = wrong["coefficients"] | {"base": 1}
    dial = {"reactor": 100, "hypothesis": wrong}
    chat = play(item, [{"set": item.task.properties[0], "value": 90}, dial], verify="once")
    assert len(chat.episode.steps) == 1
    assert "does not give these of your readings" in told(chat)
    shown = [json.loads(line) for line in told(chat).splitlines()[1:]]
    assert shown == [*item.task.records, item.task.baseline, chat.episode.steps[0].reading]  # nothing new
    chat.hear(json.dumps(dial))
    assert "reactor" in chat.episode.steps[-1].action  # once
    assert chat.totals.verified


def test_a_consistent_answer_and_one_without_settings_left_do_not_come_back(item: LabItem) -> None:
    chat = play(item, [{"submit": {"hypothesis": truth(item)}}], verify="once")
    assert chat.closed
    assert not chat.totals.verified
    (observed,) = generate_items(PLANS["4nodes_golden"], 3, 1)
    chat = play(observed, [{"submit": {"hypothesis": {}}}], verify="once")
    assert chat.closed
    chat = play(item, [{"submit": {"hypothesis": {}}}])
    assert chat.closed


def test_the_last_hypothesis_counts_where_an_answer_states_none(item: LabItem) -> None:
    first = {"set": item.task.properties[0], "value": 90, "hypothesis": truth(item)}
    assert play(item, [first, {"submit": {}}], verify="once").closed
    assert not play(item, [first | {"hypothesis": {}}, {"submit": {}}], verify="once").closed


# --- schema=paper -----------------------------------------------------------------------------------------------------


def test_a_hypothesis_that_breaks_the_schema_comes_back_twice_then_is_no_action(item: LabItem) -> None:
    broken = {"set": item.task.properties[0], "value": 5, "hypothesis": truth(item, coefficients={"base": "ten"})}
    chat = play(item, [broken, broken], schema="paper")
    assert told(chat).startswith("The hypothesis was not taken: coefficient 'base' is 'ten'")
    assert (chat.totals.returned, chat.totals.malformed) == (2, 0)
    chat.hear(json.dumps(broken))
    assert told(chat).startswith("Not understood: ")
    assert (chat.totals.returned, chat.totals.malformed, chat.totals.unread) == (2, 1, 1)
    assert not chat.episode.steps
    chat.hear(json.dumps({"set": item.task.properties[0], "value": 5, "hypothesis": truth(item)}))
    assert len(chat.episode.steps) == 1
    assert len(play(item, [broken]).episode.steps) == 1  # without the option nothing is checked


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ({"edges": [["x", FREQUENCY]]}, "'x', which is not declared"),
        ({"coefficients": {"c_x": 1}}, "of no declared name"),
        ({"coefficients": {"c_density": True}}, "neither a number nor null"),
        ({"coefficients": {"base": [1]}}, "neither a number nor null"),
        ({"coefficients": [1]}, "not an object"),
        ({"edges": [["density", FREQUENCY]], "freq_equation": "F = base"}, "from density; its equation has none"),
        (
            {"edges": [], "freq_equation": f"{FREQUENCY} = base + c_density*density"},
            "from none; its equation has density",
        ),
        ({"edges": [], "freq_equation": "resonanceFreq = 3 * unknown"}, "'unknown', which is not declared"),
        ({"edges": [], "freq_equation": 7}, "not a text"),
        ("text", "not an object"),
    ],
)
def test_the_schema_of_the_paper(raw: object, words: str) -> None:
    assert words in schema_fault(raw, ("density", "ph"))


def test_true_mechanisms_of_all_suites_keep_the_schema() -> None:
    for suite, plan in PLANS.items():
        (made,) = generate_items(plan, 1, 1)
        raw = state_mechanism(made.sealed.mechanism)
        assert schema_fault(raw, made.task.properties) == "", suite
        assert schema_fault({"edges": [], "coefficients": {"base": None}}, made.task.properties) == ""


# --- ledger -----------------------------------------------------------------------------------------------------------


def entry(values: dict[str, float], **changes: float) -> dict[str, Any]:
    numbers = values | changes
    return {"id": "0/3", "props": {k: v for k, v in numbers.items() if k != FREQUENCY}, "freq": numbers[FREQUENCY]}


def test_the_ledger_counts_right_altered_invented_missing_and_dropped(item: LabItem) -> None:
    first, second = (dict(record) for record in item.task.records)
    name = item.task.properties[0]
    invented = {node: 1000.0 + i for i, node in enumerate(item.task.nodes)}
    past = [entry(first), entry(second, **{name: -1}), entry(invented)]
    setting = {"experiment": {"target_prop": name.upper(), "target_value": 7}, "value": 7, "past_data": past}
    chat = play(item, [setting, setting | {"value": 8, "past_data": past[:1]}])
    ledger = chat.totals.ledger.as_json()
    assert (ledger["entries"], ledger["right_share"], ledger["altered_share"]) == (4, 0.5, 0.25)
    assert ledger["dropped"] == 2
    assert ledger["missing"] == 3  # the second record, the manipulator's values, the first setting
    assert (ledger["announced"], ledger["unannounced"]) == (2, 1)


def test_names_in_a_ledger_may_be_written_otherwise(item: LabItem) -> None:
    first = item.task.records[0]
    written = {"props": {f" {n.upper()}_": first[n] for n in item.task.properties}, "freq": first[FREQUENCY]}
    chat = play(item, [{"value": 5, "past_data": [written, "x", {"props": 3, "freq": True}]}])
    ledger = chat.totals.ledger
    assert {kind.value: count for kind, count in ledger.entries.items()} == {"right": 1, "altered": 0, "invented": 2}


# --- aids, carry, environment -----------------------------------------------------------------------------------------


def test_members_are_shown_after_each_reading(item: LabItem) -> None:
    chat = play(item, [{"set": name, "value": 0} for name in item.task.properties], aid="members")
    assert "Mechanisms that fit all readings: " in chat.messages[1]["content"]
    edges = ", ".join(f"{parent} -> {child}" for parent, child in sorted(item.sealed.mechanism.edges))
    assert f"Mechanisms that fit all readings: 1. Edges that all of them have: {edges}." in told(chat)


def test_candidates_are_the_configs_of_a_file_that_fit() -> None:
    from calibrant.dsl.causalab.configs import suite_pool

    path = shared_file("data/4nodes.jsonl", part="causalab")
    lab = suite_pool(path, 1).items[7]
    chat = play(lab, [{"set": name, "value": 3} for name in lab.task.properties], aid=Path(path))
    opening, last = str(chat.messages[1]["content"]), told(chat)
    assert "Candidates of 4nodes.jsonl that fit all settings: " in opening
    assert "that fit all settings: 1: 4nodes/8" in last or "that fit all settings: 1: 4nodes/7" in last


def test_the_previous_state_is_repeated_where_it_is_carried(item: LabItem) -> None:
    reply = {
        "set": item.task.properties[0],
        "value": 5,
        "hypothesis": {"edges": []},
        "past_data": [entry(dict(item.task.baseline))],
    }
    assert "Your previous state:" not in told(play(item, [reply]))
    assert '"hypothesis": {"edges": []}' in told(play(item, [reply], carry=True))


def test_an_environment_has_the_totals_in_its_score(item: LabItem) -> None:
    episode = text_episode(item)
    episode.reset()
    episode.reply("nothing")
    episode.reply(None)
    episode.reply(json.dumps({"reactor": item.sealed.target}))
    reaction = episode.reply(json.dumps({"submit": {"hypothesis": truth(item)}}))
    assert (reaction.done, reaction.reward) == (True, 1.0)
    assert reaction.info["score"]["dialogue"]["unread_share"] == 0.5
    json.dumps(reaction.info["score"], allow_nan=False)


def test_a_system_that_never_acts_comes_to_an_end(item: LabItem) -> None:
    chat = LabChat(item)
    while not chat.closed:
        chat.hear("")
    assert chat.totals.unread == chat.totals.replies == 2 * 12 + 8


# --- prompts of two phases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "words"), [("experiment", "the value to set target_prop to"), ("reactor", "to dial")]
)
def test_prompts_of_a_phase_have_its_actions_and_the_digest_of_the_item(
    item: LabItem, phase: str, words: str, tmp_path: Path
) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(Pool("lab", BENCHMARK, (item,), {}), pool)
    (usual,) = map(json.loads, called("prompts", str(pool)).stdout.splitlines())
    (prompt,) = map(json.loads, called("prompts", str(pool), "--phase", phase).stdout.splitlines())
    assert words in prompt["system"]
    assert ("You may set properties" in prompt["system"]) is (phase == "experiment")
    assert prompt["prompt"] in usual["prompt"]
    assert (prompt["instanceId"], prompt["promptDigest"]) == (usual["instanceId"], usual["promptDigest"])
    line = {"instanceId": prompt["instanceId"], "promptDigest": prompt["promptDigest"], "response": '{"frequency": 1}'}
    assert called("score", str(pool), str(jsonl(tmp_path / "p.jsonl", line))).returncode == 0
    other = called("prompts", str(bundled_pool("blickets")), "--phase", phase)
    assert other.returncode == 2
    assert "`prompts --phase`" in other.stderr


def test_prompts_with_an_aid_name_it_and_keep_the_digest_of_the_item(item: LabItem, tmp_path: Path) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(Pool("lab", BENCHMARK, (item,), {}), pool)
    (usual,) = map(json.loads, called("prompts", str(pool)).stdout.splitlines())
    (aided,) = map(json.loads, called("prompts", str(pool), "--aid", "members").stdout.splitlines())
    assert aided["prompt"].removeprefix(usual["prompt"]).startswith("\n\nMechanisms that fit all readings: ")
    assert (aided["aid"], aided["promptDigest"]) == ("members", usual["promptDigest"])
    assert "aid" not in usual
    missing = called("prompts", str(pool), "--aid", "no-such-file.jsonl")
    assert missing.returncode == 2
    assert "no-such-file.jsonl: cannot be read" in missing.stderr
    assert "`--aid`" in called("prompts", str(bundled_pool("causim")), "--aid", "members").stderr
