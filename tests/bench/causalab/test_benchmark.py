"""CausaLab pools and released suites under the commands, and text episodes of stub agents."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.causalab.benchmark import BENCHMARK
from calibrant.bench.causalab.dialogues import DialogueOptions, LabChat, text_episode
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.lab.causalab import main as causalab
from calibrant.bench.protocols import protocols_of
from calibrant.bench.runs.records import Record, folder_records
from calibrant.datasets import bundled_pool
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import BENCHMARK as CAUSALAB
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism
from calibrant.dsl.causalab.records import write_pool
from calibrant.dsl.causalab.replies import schema_fault
from calibrant.dsl.item import Pool
from tests.support.benchmarks.causalab import released_suite
from tests.support.commands import called, jsonl, refused
from tests.support.shared import shared_file

# --- CausaLab pools and released suites under the commands: drawn, run, tabled, played, audited, refused in one
# line
DRAWN = ("3nodes", "4nodes_quad_hard", "4nodes_hidden_n1", "4nodes_freqparent", "4nodes_golden")
LINE = ["generate", "--benchmark", "causalab", "--seed", "5", "--strata", ",".join(DRAWN), "--per-stratum", "2"]
CONFIG = {
    "graph_id": "small_0",
    "nodes": {"ph": {}, "density": {"computation": "base_density + w * ph"}, FREQUENCY: {"computation": "f + v * ph"}},
    "edges": [{"from": "ph", "to": "density"}, {"from": "ph", "to": FREQUENCY}],
    "params": {"base_density": 1, "w": 2, "f": 20, "v": 3},
    "budget": 8,
}


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("causalab") / "pool.jsonl"
    assert main([*LINE, "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def items(pool: Path) -> tuple[LabItem, ...]:
    return tuple(BENCHMARK.items.read_pool(pool).items)


def test_a_system_is_told_that_a_try_of_the_reactor_leaves_no_setting(items: tuple[LabItem, ...]) -> None:
    episode = BENCHMARK.play.open(items[0])
    first = episode.act({"set": items[0].task.settable[0], "value": 1})
    assert BENCHMARK.play.describe(episode, first).endswith(f"}} Settings left: {items[0].task.allowance - 1}.")
    assert BENCHMARK.play.describe(episode, episode.act({"reactor": 0})) == "The reactor stays off. Settings left: 0."


def test_runs_keep_steps_and_attributions_and_do_not_depend_on_workers(
    pool: Path, tmp_path: Path, items: tuple[LabItem, ...]
) -> None:
    for workers, rows in (("1", "exact,abstain"), ("2", "exact")):
        assert main(["run", rows, str(pool), "--out", str(tmp_path / workers), "--workers", workers]) == 0
    one, two = (sorted(folder_records(tmp_path / name), key=lambda r: r.key) for name in "12")
    assert {record.benchmark for record in one} == {"causalab"}
    exact = {record.instance: record for record in one if record.protocol == "exact"}
    assert [_kept(record) for record in exact.values()] == [_kept(record) for record in two]
    assert all(record.outcome == "found" and record.score["correct"] for record in exact.values())
    for item in items[:2]:  # three nodes, no noise
        record = exact[item.id]
        assert record.answer is not None
        stated, expected = record.answer["hypothesis"], state_mechanism(item.sealed.mechanism)
        assert record.answer == {"frequency": item.sealed.target, "hypothesis": stated}
        assert (stated.keys(), _unordered(stated)) == (expected.keys(), _unordered(expected))
        assert isinstance(record.attribution, dict)
        assert (record.attribution["kind"], record.attribution["graph"]["kind"]) == ("earned", "earned")
    nothing = [r for r in one if r.protocol == "abstain" and r.setting == "4nodes_quad_hard"]
    assert [(r.outcome, r.answer, r.score["correct"]) for r in nothing] == [
        ("out_of_budget", {"hypothesis": {}}, False)
    ] * 2


def _unordered(stated: dict[str, Any]) -> Any:
    """Return a hypothesis without the order of its edges, weights and summands, which follows canonical names."""
    head, *summands = stated["freq_equation"].split(" + ")
    parts = {key: sorted(stated[key], key=repr) for key in ("edges", "weights")}
    return {**stated, **parts, "freq_equation": (head, sorted(summands))}


def _kept(record: Record) -> tuple[Any, ...]:
    return record.key, record.outcome, record.answer, record.score, record.steps, record.attribution


def test_a_run_goes_on_and_its_table_counts_by_suite(
    pool: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ["run", "abstain", str(pool), "--out", str(tmp_path / "out"), "--workers", "1"]
    assert main([*line, "--limit", "3"]) == 0
    capsys.readouterr()
    assert main([*line, "--json"]) == 0
    printed = capsys.readouterr()
    assert "7 instances answered, 3 had a record already" in printed.err
    rows = {row["setting"]: row for row in json.loads(printed.out)["rows"]}
    assert set(rows) == set(DRAWN)
    assert [(row["n"], row["coverage"], row["benchmark"]) for row in rows.values()] == [(2, 1.0, "causalab")] * 5
    small = rows["3nodes"]
    assert (small["accuracy"], small["edge_precision"], small["settings_used"], small["earned"]) == (1, 1, 0, 1)
    assert main(["table", str(tmp_path / "out"), "--attribution"]) == 0
    headings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Setting")]
    assert "Earned" in headings[0]
    assert any("Graph short" in heading for heading in headings)


def test_the_seed_of_a_row_that_draws_is_an_option(items: tuple[LabItem, ...]) -> None:
    drawn = protocols_of(BENCHMARK)["random"]
    answers = [drawn(**options).answer(BENCHMARK.play.open(items[0])) for options in ({}, {"seed": 0}, {"seed": 1})]
    assert answers[0] == answers[1] != answers[2]


def test_an_answer_without_a_transcript_is_dialled_and_submitted(items: tuple[LabItem, ...]) -> None:
    item = items[0]
    answer = {"frequency": item.sealed.target, "hypothesis": state_mechanism(item.sealed.mechanism)}
    score = BENCHMARK.scoring.score(item, answer, ())
    assert (score["correct"], score["graph_correct"], score["settings"], score["all_weight_f1"]) == (True, True, 0, 1.0)
    attribution = BENCHMARK.attribution(item, answer, (), score)
    assert attribution is not None
    assert attribution["graph"]["kind"] in ("lucky", "earned")
    assert BENCHMARK.attribution(item, {}, (), score) is None
    missed = BENCHMARK.scoring.score(item, BENCHMARK.scoring.no_answer(item), ())
    assert (missed["correct"], missed["frequency"], missed["shd"]) == (False, None, len(item.sealed.mechanism.edges))


def test_a_released_suite_is_run_as_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = jsonl(tmp_path / "small.jsonl", CONFIG, CONFIG)
    assert benchmark_of(suite) is BENCHMARK
    items = BENCHMARK.items.read_pool(suite).items
    assert [item.id for item in items] == ["small/0/0", "small/1/0"]
    assert items[0].sealed.mechanism.weights(FREQUENCY) == {"ph": 3}
    assert items[0].sealed.bases != items[1].sealed.bases
    assert main(["run", "exact", str(suite), "--out", str(tmp_path / "out"), "--workers", "1", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["setting"], row["n"], row["accuracy"], row["shd"]) == ("small", 2, 1.0, 0.0)


def test_a_released_suite_is_converted_and_may_be_compressed(tmp_path: Path) -> None:
    suite = jsonl(tmp_path / "small.jsonl", CONFIG, CONFIG)
    packed, native = tmp_path / "small.jsonl.gz", tmp_path / "native.jsonl"
    packed.write_bytes(gzip.compress(suite.read_bytes()))
    items = BENCHMARK.items.read_pool(suite).items
    assert BENCHMARK.items.read_pool(packed) == BENCHMARK.items.read_pool(suite)
    assert main(["pool", "convert", str(packed), str(native)]) == 0
    assert BENCHMARK.items.read_pool(native).items == items
    assert json.loads(native.read_text(encoding="utf-8").splitlines()[0])["benchmark"] == "causalab"


def test_the_released_files_are_of_this_benchmark(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    suite = shared_file("data/4nodes.jsonl", part="causalab")
    line = ["run", "abstain", str(suite), "--out", str(tmp_path), "--workers", "1", "--json"]
    assert main(line) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["setting"], row["n"], row["accuracy"]) == ("4nodes", len(released_suite("4nodes")), 1.0)
    assert (f"{row['edge_f1']:.3f}", f"{row['shd']:.2f}") == ("0.648", "2.30")  # the specification's table


def test_the_released_rows_are_rebuilt_by_one_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = shared_file("data", part="causalab")
    assert causalab(["rows", str(data), "--seeds", "1", "--jobs", "1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {line[0]: line[1:] for line in reversed(lines) if line}
    unwinnable = {line[0]: line[1] for line in lines[-9:]}
    assert rows["abstain"] == ["100/0.795/0.84", "100/0.648/2.30", "100/0.565/4.38", "100/0.471/6.06", "100/0.398/7.66"]
    assert rows["exact"] == ["100/1.000/0.00"] * 5
    printed = {"5nodes": 2.0, "6nodes": 10.6, "7nodes": 7.1, "6nodes_freqparent": 2.1}  # measured on drawn episodes
    assert {suite: abs(float(unwinnable[suite]) - share) < 0.25 for suite, share in printed.items()} == dict.fromkeys(
        printed, True
    )
    solved = {tuple(line[:2]): line[-2:] for line in lines if len(line) > 10 and line[1] == "exact"}
    assert len(solved) == 19
    assert all(imperfect == undecided for imperfect, undecided in solved.values())
    assert {suite for (suite, _), (imperfect, _) in solved.items() if imperfect != "0"} <= {
        "4nodes_freqparent",
        "6nodes_freqparent",
        "6nodes_golden",
    }
    assert solved["6nodes_golden", "exact"] == ["14", "14"]
    (fine,) = [line for line in lines if line[1:2] == ["exact-weights"]]
    assert (fine[0], fine[9], float(fine[11]) <= 12) == ("4nodes_quad_hard", "1.000", True)
    assert causalab(["rows", str(tmp_path)]) == 2
    assert capsys.readouterr().err == "bench.lab.causalab: 3nodes.jsonl: cannot be read: No such file or directory\n"


def test_findings_on_the_released_files_and_the_printed_rows_are_listed_by_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert causalab(["findings", str(shared_file("data", part="causalab")), "--seeds", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    kinds = [line.partition(": ")[0] for line in lines]
    assert kinds.count("abstention, proved") == 5
    assert kinds.count("misprint, proved") == 8
    assert kinds.count("duplicate, proved") == 1
    assert sum("look like perfect and empty records mixed" in line for line in lines) == 6
    assert "ambiguous, proved: 6nodes_freqparent: 2.50 mechanisms are left on average after all settings" in "\n".join(
        lines
    )
    chances = {line.split(": ")[1]: line.rpartition("drawn ")[2] for line in lines if line.startswith("unwinnable")}
    assert chances["6nodes"] == "10.82%, in 15 graphs"
    assert causalab(["findings", str(tmp_path)]) == 2
    assert "cannot be read" in capsys.readouterr().err


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Any:
    return lambda *lines: monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))


def test_an_episode_is_played_in_lines_of_json(
    pool: Path, items: tuple[LabItem, ...], typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    item = items[1]
    name = item.task.settable[0]
    typed(
        json.dumps({"set": name, "value": 20}),
        "what?",
        json.dumps({"set": FREQUENCY, "value": 1}),
        json.dumps({"reactor": item.sealed.target}),
        json.dumps({"submit": {"hypothesis": state_mechanism(item.sealed.mechanism)}}),
    )
    assert main(["play", str(pool), item.id, "--jsonl"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [event["event"] for event in events] == ["task", "step", "unreadable", "step", "step", "step", "verdict"]
    assert (events[1]["reading"][name], events[1]["left"]) == (20, item.task.allowance - 1)
    assert events[3]["refused"] != ""
    assert events[4]["reading"]["activated"]
    assert (events[-1]["score"]["correct"], events[-1]["score"]["shd"]) == (True, 0)
    assert events[-1]["attribution"]["kind"] == "earned"


def test_an_episode_that_ends_with_the_input_is_not_right(
    pool: Path, typed: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    typed('{"set": "resonanceFreq", "value": 1}')
    assert main(["play", str(pool)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "not right: no answer was given; what you saw left one answer"
    typed()
    assert main(["play", str(pool)]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "not right; nothing was read"
    assert "no instance 'nobody'" in refused(capsys, "play", pool, "nobody")


def test_a_config_that_cannot_be_meant_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = jsonl(tmp_path / "small.jsonl", CONFIG, CONFIG | {"edges": []})
    said = refused(capsys, "run", "exact", suite, "--out", tmp_path / "out")
    assert said == "small.jsonl: line 2: edges: 'ph' -> 'density' is in an equation but not in edges"


# --- Text episodes of CausaLab: stub agents that take each path of the paper's options once ---------------------------
@pytest.fixture(scope="module")
def item() -> LabItem:
    return next(iter(generate_items(PLANS["4nodes"], 3, 1)))


def play(item: LabItem, replies: Sequence[Any], **options: Any) -> LabChat:
    chat = LabChat(item, DialogueOptions(**options))
    for reply in replies:
        assert not chat.closed
        chat.take_text(json.dumps(reply) if isinstance(reply, dict) else reply)
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
    chat.take_text(json.dumps(dial))
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
    chat.take_text(json.dumps(broken))
    assert told(chat).startswith("Not understood: ")
    assert (chat.totals.returned, chat.totals.malformed, chat.totals.unread) == (2, 1, 1)
    assert not chat.episode.steps
    chat.take_text(json.dumps({"set": item.task.properties[0], "value": 5, "hypothesis": truth(item)}))
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
        chat.take_text("")
    assert chat.totals.unread == chat.totals.replies == 2 * 12 + 8


# --- prompts of two phases --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phase", "words"), [("experiment", "the value to set target_prop to"), ("reactor", "to dial")]
)
def test_prompts_of_a_phase_have_its_actions_and_the_digest_of_the_item(
    item: LabItem, phase: str, words: str, tmp_path: Path
) -> None:
    pool = tmp_path / "pool.jsonl"
    write_pool(Pool("lab", CAUSALAB, (item,), {}), pool)
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
    write_pool(Pool("lab", CAUSALAB, (item,), {}), pool)
    (usual,) = map(json.loads, called("prompts", str(pool)).stdout.splitlines())
    (aided,) = map(json.loads, called("prompts", str(pool), "--aid", "members").stdout.splitlines())
    assert aided["prompt"].removeprefix(usual["prompt"]).startswith("\n\nMechanisms that fit all readings: ")
    assert (aided["aid"], aided["promptDigest"]) == ("members", usual["promptDigest"])
    assert "aid" not in usual
    missing = called("prompts", str(pool), "--aid", "no-such-file.jsonl")
    assert missing.returncode == 2
    assert "no-such-file.jsonl: cannot be read" in missing.stderr
    assert "`--aid`" in called("prompts", str(bundled_pool("causim")), "--aid", "members").stderr
