"""Public verbs on blickets, CausaLab and CauSim; rewards of every benchmark."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any, assert_type

import pytest
from msgspec import UnsetType, to_builtins

import calibrant
from calibrant.audits.blickets.attribution import attribute_episode
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import NAMES, benchmark
from calibrant.bench.pools.generated import write_drawn
from calibrant.bench.training import in_turns
from calibrant.datasets import bundled_pool, item_record, item_records
from calibrant.dsl.blickets.item import Condition, Form, Sealed, Task
from calibrant.dsl.blickets.item import Mechanism as DetectorMechanism
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causim.model import plain, run
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.formulas.text import parse, render
from calibrant.dsl.replayscm.reference import replay_world
from calibrant.dsl.replayscm.scm import Scm
from calibrant.item_types import (
    BlicketItem,
    CausimItem,
    DetectorSpace,
    LabItem,
    LabSpace,
    Mechanism,
    Rule,
    WorkedSolution,
    WorldSpace,
)
from calibrant.rewards import attributed, shaped, verdict
from calibrant.solvers.causalab.space import WeightedDags
from tests.support.commands import called, program

# --- The public verbs on blickets, CausaLab and CauSim: what they give, what they cost, what they refuse --------------
SIBLINGS = ("blickets", "causalab", "causim")
SUITES = {"blickets": "conjunctive", "causalab": "4nodes", "causim": "chain"}
DETECTOR = calibrant.generate(1, of="blickets", suite="conjunctive")
LAB = calibrant.generate(1, of="causalab", suite="4nodes")
QUESTION = calibrant.generate(1, of="causim", suite="chain")
NO_ANSWERS: tuple[Any, ...] = ("", "nothing", "{}", None, 3, [], True, {}, {"rule": 3}, "{" * 600, "\ud800")
ITEMS: tuple[calibrant.Item, ...] = (DETECTOR, LAB, QUESTION)


def _pool(of: str, folder: Path, count: int = 2) -> Path:
    path = folder / f"{of}.jsonl"
    write_drawn(benchmark(of), path, [SUITES[of]], 3, count)
    return path


def _rule(item: BlicketItem) -> dict[str, Any]:
    rule = item.sealed.mechanisms[0].rule
    named = [name for index, name in enumerate(item.task.objects) if rule.blickets >> index & 1]
    return {"rule": str(rule.form), "blickets": named}


def _worked_out(item: CausimItem) -> dict[str, Any]:
    """Return the answer of the world that the question was drawn from, by running the program."""
    question, model = item.task.question, item.task.model
    values = {**run(model, item.sealed.world, question.do), **item.sealed.world}
    return plain({key: values[key] for key in question.required_keys(model)})


# --- pools --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("of", SIBLINGS)
def test_pools_are_sequences_of_the_items_of_their_benchmark(of: Any, tmp_path: Path) -> None:
    path = _pool(of, tmp_path)
    pool = calibrant.load_pool(path)
    assert pool.file == path
    assert pool.benchmark == of
    assert len(pool) == 2
    assert pool[pool[1].id] is pool[1]
    assert {item.benchmark for item in pool} == {of}
    assert all(isinstance(item, calibrant.Item) for item in pool)
    assert calibrant.load_pool(path, of=of) == pool
    with pytest.raises(calibrant.CalibrantError, match=f"{of}.jsonl: a pool of '{of}'; 'replayscm' was expected"):
        calibrant.load_pool(path, of="replayscm")


def test_a_pool_of_a_named_benchmark_has_its_type(tmp_path: Path) -> None:
    assert_type(calibrant.load_pool(_pool("blickets", tmp_path), of="blickets"), calibrant.Pool[BlicketItem])
    assert_type(calibrant.load_pool(_pool("causalab", tmp_path), of="causalab"), calibrant.Pool[LabItem])
    assert_type(calibrant.load_pool(_pool("causim", tmp_path), of="causim"), calibrant.Pool[CausimItem])


@pytest.mark.parametrize("of", [*SIBLINGS, "replayscm"])
def test_scoring_imports_no_audit_no_yaml_and_no_solver_but_that_of_the_answer_set(of: str, tmp_path: Path) -> None:
    pool = bundled_pool("ordered") if of == "replayscm" else _pool(of, tmp_path)
    compiler = () if of == "replayscm" else ("numba",)
    source = f"""
import sys
import calibrant
pool = calibrant.load_pool({str(pool)!r})
calibrant.score(pool[0], "{{}}")
solvers = [f"solvers.{{of}}" for of in ("replayscm", "blickets", "causalab")]
heavy = ("yaml", *{compiler}, *(f"calibrant.{{package}}" for package in ("audits", "baselines", *solvers)))
print(sorted(name for name in sys.modules if name.startswith(heavy)))
"""
    assert program("-c", source).stdout == "[]\n"


# --- verdicts -----------------------------------------------------------------------------------------------------


def test_right_answers_are_right_as_objects_and_as_texts() -> None:
    for item, answer in (
        (DETECTOR, _rule(DETECTOR)),
        (LAB, {"frequency": LAB.sealed.target}),
        (QUESTION, _worked_out(QUESTION)),
    ):
        for given in (answer, json.dumps(answer), f"So I say: {json.dumps(answer)}"):
            verdict = calibrant.score(item, given)
            assert (verdict.valid, verdict.correct, verdict.failure) == (True, True, None), (item, verdict)


def test_wrong_answers_say_what_is_wrong() -> None:
    other = {**_rule(DETECTOR), "blickets": list(DETECTOR.task.objects)}
    wrong = calibrant.score(DETECTOR, other)
    assert_type(wrong, calibrant.BlicketScore)
    assert (wrong.valid, wrong.correct, wrong.failure) == (True, False, "wrong: over")
    assert wrong.details.answer is not None
    far = calibrant.score(LAB, {"frequency": LAB.sealed.target + 5})
    assert_type(far, calibrant.LabScore)
    assert (far.valid, far.correct, far.failure) == (
        True,
        False,
        "wrong: the frequency is not within 5 of the crystal's",
    )
    assert far.details.frequency == LAB.sealed.target + 5
    strange = calibrant.score(QUESTION, dict.fromkeys(_worked_out(QUESTION), "no such value"))
    assert_type(strange, calibrant.CausimScore)
    assert (strange.valid, strange.correct) == (True, False)
    assert strange.failure == "wrong: no world that fits the question gives this"
    assert strange.details.nodes is not None


def test_whatever_is_no_answer_is_a_verdict_or_one_line() -> None:
    for item in ITEMS:
        for given in NO_ANSWERS:
            verdict = calibrant.score(item, given)
            assert not verdict.correct
            assert not verdict.valid, (item, given)
            assert verdict.failure
            assert "\n" not in verdict.failure
        for beyond in (object(), {"a": object()}, {"a": float}):
            with pytest.raises(calibrant.CalibrantError):
                calibrant.score(item, beyond)


@pytest.mark.parametrize(
    ("of", "rows"), [("blickets", "exact quiet"), ("causalab", "exact prior"), ("causim", "exact run_once")]
)
def test_verdicts_are_those_that_records_keep(of: str, rows: str, tmp_path: Path) -> None:
    path = _pool(of, tmp_path, 1)
    (item,) = calibrant.load_pool(path)
    for protocol in rows.split():
        (record,) = calibrant.run(protocol, path, tmp_path / protocol)
        assert record.outcome == "found"
        if isinstance(item, BlicketItem | LabItem):
            assert not isinstance(record.steps, UnsetType)
            kept = calibrant.score(item, record.answer, steps=record.steps).to_dict()
            made = [to_builtins(step) for step in record.steps]
            assert calibrant.score(item, record.answer, steps=made).to_dict() == kept
        else:
            kept = calibrant.score(item, record.answer).to_dict()
        assert kept == record.score
        assert json.loads(json.dumps(kept)) == kept


def test_steps_are_replayed_before_the_answer_and_a_false_one_is_named() -> None:
    episode = calibrant.open_episode(LAB)
    name = LAB.task.settable[0]
    episode.act({"set": name, "value": 20})
    episode.act({"set": "nothing of the kind", "value": 1})
    steps = list(episode.steps)
    scored = calibrant.score(LAB, {"frequency": LAB.sealed.target}, steps=steps)
    assert (scored.correct, scored.details.settings, scored.details.refused) == (True, 1, 1)
    assert steps[0].reading is not None
    forged = [replace(steps[0], reading={**steps[0].reading, name: 21.0}), steps[1]]
    with pytest.raises(calibrant.CalibrantError, match=r"^step 0: reading .* recorded, was"):
        calibrant.score(LAB, {"frequency": 1}, steps=forged)
    detector = calibrant.open_episode(DETECTOR)
    first = detector.act({"place": DETECTOR.task.objects[0]})
    detector.act({"check": {"rule": "disjunctive", "blickets": [DETECTOR.task.objects[0]]}})
    assert not calibrant.score(DETECTOR, None, steps=detector.steps).correct
    with pytest.raises(calibrant.CalibrantError, match="is not what the steps submit"):
        calibrant.score(DETECTOR, _rule(DETECTOR), steps=detector.steps)
    with pytest.raises(calibrant.CalibrantError, match="step 0"):
        calibrant.score(DETECTOR, _rule(DETECTOR), steps=[replace(first, reading="BRIGHT")])


# --- solvers, spaces, audits --------------------------------------------------------------------------------------


def test_solutions_have_types_and_score() -> None:
    rule, mechanism, worked = calibrant.solve(DETECTOR), calibrant.solve(LAB), calibrant.solve(QUESTION)
    refused = calibrant.Impossible | calibrant.OutOfBudget
    assert not isinstance(rule, refused)
    assert not isinstance(mechanism, refused)
    assert not isinstance(worked, refused)
    assert_type(rule, calibrant.Found[calibrant.Solution[Rule]])
    assert_type(mechanism, calibrant.Found[calibrant.Solution[Mechanism]])
    assert_type(worked, calibrant.Found[calibrant.Solution[WorkedSolution]])
    assert calibrant.score(DETECTOR, rule.value.answer, steps=rule.value.steps).correct
    scored = calibrant.score(LAB, mechanism.value.answer, steps=mechanism.value.steps)
    assert scored.correct
    assert scored.details.hypothesis.distance.shd == 0
    assert calibrant.score(QUESTION, worked.value.answer).correct
    assert worked.value.model.text.endswith(json.dumps(worked.value.answer, separators=(",", ":")) + "\n")


def test_a_detector_that_tells_its_condition_is_decided_and_a_silent_one_is_not() -> None:
    told = replace(DETECTOR, task=replace(DETECTOR.task, condition=DETECTOR.condition))
    for item, decided in ((told, True), (DETECTOR, False)):
        found = calibrant.solve(item)
        assert isinstance(found, calibrant.Found)
        assert found.value.provenance["decided"] is decided
        space = calibrant.version_space(item, steps=found.value.steps, family="told")
        assert (len(space.verdicts()) == 1) is decided
        assert found.value.provenance["members"] == str(space.count)


def test_spaces_hold_the_truth_and_shrink_with_what_was_read() -> None:
    labs = calibrant.version_space(LAB)
    assert_type(labs, LabSpace)
    detectors = calibrant.version_space(DETECTOR)
    assert_type(detectors, DetectorSpace)
    worlds = calibrant.version_space(QUESTION)
    assert_type(worlds, WorldSpace)
    assert detectors.count == 57
    mechanism = calibrant.solve(LAB)
    assert isinstance(mechanism, calibrant.Found)
    left = calibrant.version_space(LAB, steps=mechanism.value.steps)
    assert isinstance(labs, WeightedDags)  # without noise
    assert isinstance(left, WeightedDags)
    assert labs.fits(LAB.sealed.mechanism)
    assert left.fits(LAB.sealed.mechanism)
    assert left.count == 1 < labs.count
    assert calibrant.version_space(LAB, bounded=True).count <= labs.count
    assert worlds.fits(QUESTION.sealed.world)
    unknown = [node for node in QUESTION.task.model.nodes if node.noise in QUESTION.task.question.unknown]
    assert worlds.count == prod(len(node.support) for node in unknown)
    rule = calibrant.solve(DETECTOR)
    assert isinstance(rule, calibrant.Found)
    assert calibrant.version_space(DETECTOR, steps=rule.value.steps).count == 1


def test_a_space_that_is_not_enumerated_says_so() -> None:
    lab = replace(LAB, task=replace(LAB.task, weights=Weights.HUNDREDTHS))
    with pytest.raises(calibrant.CalibrantError, match=r"^the hypotheses that fit .* are not enumerated: "):
        calibrant.version_space(lab)


def test_audits_are_the_findings_of_the_command() -> None:
    for item in ITEMS:
        found: Sequence[calibrant.Finding] = calibrant.audit(item)  # type: ignore[assignment]
        assert list(found) == list(benchmark(item.benchmark).require(FINDINGS).findings(item))
    assert [finding.kind for finding in calibrant.audit(LAB)] == ["vacuous", "trivial", "ambiguous"]


@pytest.mark.parametrize("of", SIBLINGS)
def test_the_same_seed_gives_the_same_item(of: Any) -> None:
    for suite in (SUITES[of], benchmark(of).suites.names[-1]):
        made = calibrant.generate(7, of=of, suite=suite)
        assert made == calibrant.generate(7, of=of, suite=suite)
        assert made != calibrant.generate(8, of=of, suite=suite)
    assert calibrant.generate(7, of=of) == calibrant.generate(7, of=of, suite=benchmark(of).suites.names[0])
    with pytest.raises(calibrant.CalibrantError, match="unknown suite 'chess'; "):
        calibrant.generate(7, of=of, suite="chess")


# --- refusals -----------------------------------------------------------------------------------------------------


def test_what_a_benchmark_does_not_have_is_one_clear_line() -> None:
    verbs: list[tuple[Any, calibrant.Item, dict[str, Any], str]] = [
        (calibrant.solve, DETECTOR, {"max_parents": 3}, "solve has no option 'max_parents'; on Extended blickets it"),
        (calibrant.score, QUESTION, {"steps": []}, "score has no option 'steps'; on CauSim it has none"),
        (calibrant.score, LAB, {"structure": True}, "score has no option 'structure'; its options: steps"),
        (calibrant.score, LAB, {"steps": "abc"}, "steps is 'abc', not a list of steps"),
        (calibrant.score, LAB, {"steps": [{"action": 1}]}, "step 0: Expected `object`, got `int`"),
        (calibrant.version_space, LAB, {"steps": 5}, "steps is 5, not a list of steps"),
        (
            calibrant.version_space,
            LAB,
            {"bounded": 3},
            "version_space: bounded: expected true or false, found a whole number",
        ),
        (calibrant.version_space, DETECTOR, {"family": "all"}, "version_space: family: 'all' is none of"),
        (calibrant.separate, LAB, {}, "`separate` does not support CausaLab"),
        (calibrant.harden, DETECTOR, {}, "`harden` does not support Extended blickets"),
        (calibrant.open_episode, QUESTION, {}, "`open_episode` does not support CauSim"),
    ]
    for verb, item, options, said in verbs:
        with pytest.raises(calibrant.CalibrantError) as refused:
            verb(item, *(["{}"] if verb is calibrant.score else []), **options)
        assert str(refused.value).startswith(said)


@pytest.mark.parametrize("item", ITEMS, ids=SIBLINGS)
def test_reprs_fit_a_line_and_never_show_what_is_sealed(item: Any) -> None:
    solved = calibrant.solve(item)
    assert isinstance(solved, calibrant.Found)
    shown = [item, item.task, item.sealed, solved, solved.value, calibrant.score(item, solved.value.answer)]
    shown += [calibrant.version_space(item), *calibrant.audit(item), calibrant.score(item, "no")]
    for value in shown:
        text = repr(value)
        assert "\n" not in text
        assert len(text) <= 200, text
        assert not re.search(r"Sealed\(|mechanisms=|world=\{|target=|equations=|bases=", text)


@pytest.mark.parametrize("suite", ["easy-3", "several-switches", "switch-by-steps", "noisy-switch", "order", "graded"])
def test_the_space_of_a_detector_knows_how_its_item_switches(suite: str) -> None:
    item = calibrant.generate(2, of="blickets", suite=suite)
    episode = calibrant.open_episode(item)
    for verb in ("place", "remove"):
        for name in item.task.objects:
            episode.act({verb: name})
    space = calibrant.version_space(item, steps=episode.steps)
    found = attribute_episode(item, episode.steps).attribution
    assert (str(space.count), space.in_words) == (str(found.members), found.in_words)
    assert space.count >= 1


def test_records_of_a_pool_are_found_by_the_ids_of_pool_and_prompts() -> None:
    path = bundled_pool("causim")
    items = calibrant.load_pool(path)
    records = item_records(path)
    assert [records[item.id] for item in items] == [item_record(item) for item in items]
    public = [json.loads(line)["instanceId"] for line in called("prompts", path).stdout.splitlines()]
    assert [records[name] for name in public] == [item_record(item) for item in items]
    assert not set(public) & {item.id for item in items}


# --- Rewards: right, wrong and half right answers of every benchmark, and what cannot be scored -----------------------
Reward = Callable[..., list[float | None]]
REWARDS = (verdict, shaped, attributed)
BOTH_OF_THREE = BlicketItem(
    "both of three",
    Condition.CONJUNCTIVE,
    Task(("A", "B", "C"), 50),
    Sealed((DetectorMechanism(Rule(Form.CONJUNCTIVE, 0b011)),)),
)
RIGHT = {"rule": "conjunctive", "blickets": ["A", "B"]}


def _record(item: Any) -> str:
    return json.dumps(benchmark(item.benchmark).items.record(item))


def _of(reward: Reward, item: Any, *completions: Any) -> list[float | None]:
    number = len(completions)
    return reward(completions, record=[_record(item)] * number, benchmark=[item.benchmark] * number)


@cache
def _drawn(name: str, number: int) -> list[Any]:
    bench = benchmark(name)
    return [drawn.item for drawn in islice(in_turns(bench, bench.training.stages[:2], 5), number)]


def _messages(*said: object) -> list[dict[str, str]]:
    return [{"role": "assistant", "content": json.dumps(one)} for one in said]


@pytest.mark.parametrize("name", NAMES)
def test_gold_is_right_and_nothing_is_not(name: str) -> None:
    bench = benchmark(name)
    for item in _drawn(name, 4):
        gold = json.dumps(bench.training.gold(item))
        given: tuple[Any, ...] = (gold, _messages(bench.training.gold(item)), "", "no idea", [], "{}")
        assert _of(verdict, item, *given) == [1, 1, 0, 0, 0, 0]
        assert _of(shaped, item, *given) == [1, 1, 0, 0, 0, 0]
        assert _of(attributed, item, *given)[2:] == [0, 0, 0, 0]


def test_shape_of_replayscm_is_the_share_of_cells() -> None:
    """Against a count with the reference interpreter, one mechanism negated at a time."""
    for problem in _drawn("replayscm", 2):
        gold = problem.sealed.gold
        texts = {variable: render(mechanism) for variable, mechanism in gold.mechanisms.items()}
        worlds = (*problem.task.training.worlds, *problem.sealed.heldout.worlds)
        for changed, text in texts.items():
            answer = {**texts, changed: text[5:-1] if text.startswith("(not ") else f"(not {text})"}
            model = Scm(gold.roots, {variable: parse(one) for variable, one in answer.items()})
            cells = [cell for world in worlds for cell in replay_world(model, world)]
            share = sum(cell.predicted == cell.expected for cell in cells) / len(cells)
            assert share < 1
            assert _of(shaped, problem, json.dumps({"mechanisms": answer})) == [pytest.approx(share)]


def test_shape_of_blickets_is_the_share_of_sets() -> None:
    """Both of A and B against one of them: they differ on {A}, {B}, {A, C} and {B, C}, four of eight sets."""
    either = {"rule": "disjunctive", "blickets": ["A", "B"]}
    assert _of(shaped, BOTH_OF_THREE, json.dumps(either), json.dumps(RIGHT)) == [0.5, 1.0]
    assert _of(verdict, BOTH_OF_THREE, json.dumps(either), json.dumps(RIGHT)) == [0.0, 1.0]


def test_shape_of_causalab_is_half_frequency_half_edges() -> None:
    item = _drawn("causalab", 4)[0]
    frequency, edges = item.sealed.target, sorted(item.sealed.mechanism.edges)
    stated = [{"from": parent, "to": child} for parent, child in edges]
    reversed_edges = [{"from": child, "to": parent} for parent, child in edges]
    given = [
        {"frequency": frequency, "hypothesis": {"edges": reversed_edges}},
        {"frequency": frequency + 50, "hypothesis": {"edges": stated}},
        {"frequency": frequency + 50, "hypothesis": {"edges": reversed_edges}},
    ]
    assert _of(shaped, item, *map(json.dumps, given)) == [0.5, 0.5, 0.0]


def test_shape_of_causim_is_the_share_of_nodes() -> None:
    bench = benchmark("causim")
    item = next(item for item in _drawn("causim", 24) if item.task.question.type == "intervention")
    gold = bench.training.gold(item)
    assert gold is not None
    last = item.task.model.names[-1]  # nothing depends on it
    nodes = len(item.task.model)
    assert _of(shaped, item, json.dumps(gold | {last: "no such value"})) == [pytest.approx((nodes - 1) / nodes)]


def test_an_answer_is_worth_more_once_the_evidence_decides_it() -> None:
    """A dark and A, B lit leave the rules {B}, {B, C} and {A and B}; B dark leaves the last."""
    undecided = _messages({"place": "A"}, {"place": "B"}, {"check": RIGHT})
    decided = _messages({"place": "A"}, {"place": "B"}, {"remove": "A"}, {"check": RIGHT})
    missed = _messages({"place": "A"}, {"place": "B"}, {"remove": "A"}, {"check": {**RIGHT, "rule": "disjunctive"}})
    excluded = _messages({"place": "A"}, {"place": "B"}, {"check": {"rule": "disjunctive", "blickets": ["A"]}})
    assert _of(attributed, BOTH_OF_THREE, undecided, decided, missed, excluded) == [0.5, 1, 0, 0]
    assert _of(verdict, BOTH_OF_THREE, undecided, decided, missed, excluded) == [1, 1, 0, 0]


def test_a_conversation_that_is_cut_off_has_no_answer() -> None:
    cut = _messages({"place": "A"}, {"place": "B"})
    told = [cut[0], {"role": "user", "content": "The detector is INACTIVE."}, cut[1]]
    assert _of(verdict, BOTH_OF_THREE, cut, told) == [0, 0]
    assert _of(attributed, BOTH_OF_THREE, cut, told) == [0, 0]


@pytest.mark.parametrize("name", ["blickets", "causim"])
def test_thoughts_in_the_arguments_of_a_call_are_not_paid(name: str) -> None:
    item = BOTH_OF_THREE if name == "blickets" else _drawn("causim", 1)[0]
    right = json.dumps(benchmark(name).training.gold(item))

    def call(arguments: str) -> list[dict[str, Any]]:
        function = {"name": "submit", "arguments": arguments}
        return [{"role": "assistant", "content": None, "tool_calls": [{"type": "function", "function": function}]}]

    texts = (right, f"<think>{right}</think>", f"{right}</think>", f"<think>{{}}</think>{right}")
    assert _of(verdict, item, *map(call, texts)) == [1, 0, 0, 1]


@pytest.mark.parametrize("message", [{"role": "assistant"}, {"role": "model"}, {"type": "ai"}])
def test_messages_of_the_assistant_by_any_name_are_rewarded(message: dict[str, Any]) -> None:
    assert _of(verdict, BOTH_OF_THREE, [{**message, "content": json.dumps(RIGHT)}]) == [1]


@pytest.mark.parametrize("reward", REWARDS)
def test_what_cannot_be_scored_is_none(reward: Reward) -> None:
    record, completion = _record(BOTH_OF_THREE), json.dumps(RIGHT)
    rows: list[tuple[Any, str | None, str | None]] = [
        (None, record, "blickets"),
        (3, record, "blickets"),
        (completion, None, "blickets"),
        (completion, "", "blickets"),
        (completion, record, None),
    ]
    completions, records, names = zip(*rows, strict=True)
    assert reward(completions, records, names) == [None] * 5
    assert reward([], [], []) == []


def test_what_the_evidence_decides_is_not_known_where_any_of_several_answers_is_right() -> None:
    item = next(item for item in _drawn("causim", 24) if item.task.scenario == "stochastic")
    gold = json.dumps(benchmark("causim").training.gold(item))
    assert _of(attributed, item, gold) == [None]
    assert _of(verdict, item, gold) == [1.0]


@pytest.mark.parametrize(
    ("record", "name", "problem"),
    [
        ("{", "blickets", "entry 1: record is '{', not JSON"),
        ("[]", "blickets", r"entry 1: record is \[\]"),
        ("{}", "blickets", "entry 1: a record without an id: .*id"),
        ("{}", "nothing", "entry 1: unknown benchmark 'nothing'; known: replayscm"),
        (_record(BOTH_OF_THREE), "causim", "entry 1: record of 'both of three': .*"),
    ],
)
def test_a_record_that_cannot_be_meant_is_one_line(record: str, name: str, problem: str) -> None:
    with pytest.raises(CalibrantError, match=problem) as caught:
        verdict(["", ""], [_record(BOTH_OF_THREE), record], ["blickets", name])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("record", "name"), [({"id": "x"}, "causim"), ("{}", ["causim"])])
def test_an_entry_that_is_no_text_is_one_line(record: Any, name: Any) -> None:
    """A record that is parsed already, as from a data set with JSON columns."""
    for reward in (verdict, shaped, attributed):
        with pytest.raises(
            CalibrantError, match=r"entry 0: (record|benchmark): expected a text, as `calibrant export`"
        ):
            reward([""], [record], [name])


def test_columns_of_unequal_length() -> None:
    with pytest.raises(CalibrantError, match="2 completions, 1 records, 2 names of benchmarks"):
        verdict(["", ""], [_record(BOTH_OF_THREE)], ["blickets", "blickets"])


def test_other_columns_are_not_read_and_metrics_are_logged() -> None:
    logged: list[tuple[str, float]] = []
    given = [json.dumps(RIGHT), "no idea", None]
    found = verdict(
        given,
        [_record(BOTH_OF_THREE)] * 3,
        ["blickets"] * 3,
        lambda name, value: logged.append((name, value)),
        prompts=["p"] * 3,
        trainer_state=object(),
    )
    assert found == [1.0, 0.0, None]
    assert logged == [("calibrant/answered", 0.5)]


def test_an_unknown_policy_for_thoughts_is_refused() -> None:
    for reward in (verdict, shaped, attributed):
        with pytest.raises(CalibrantError, match=r"^thoughts is 'all'; known: strip, opened, keep$"):
            reward(["a"], [item_record(BOTH_OF_THREE)], ["blickets"], thoughts="all")  # type: ignore[arg-type]


def test_rewards_load_no_trainer() -> None:
    code = "import sys, calibrant.rewards; print({'torch', 'trl', 'verifiers', 'numba', 'z3'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_conversation_in_a_laboratory() -> None:
    """Set, dial and submit, action by action; the same answer without the dial has half of the shape."""
    item = _drawn("causalab", 4)[0]
    gold: Any = benchmark("causalab").training.gold(item)
    first = {"set": item.task.settable[0], "value": 20}
    submitted = {"submit": {"hypothesis": gold["hypothesis"]}}
    whole = _messages(first, {"reactor": gold["frequency"]}, submitted)
    assert _of(verdict, item, whole, _messages(first, submitted), _messages(first)) == [1, 0, 0]
    assert _of(shaped, item, whole, _messages(first, submitted), _messages(first)) == [1, 0.5, 0]


def test_an_odd_value_in_a_completion_costs_its_own_reward_alone() -> None:
    """In an answer that is right but for it, at every key; other completions of the batch keep theirs."""
    item = next(item for item in _drawn("causim", 12) if item.task.question.type == "counterfactual")
    gold: dict[str, Any] = benchmark("causim").training.gold(item) or {}
    assert gold
    for key in gold:
        odd = [json.dumps(gold | {key: value}) for value in ([1], {"a": 1}, float("nan"), ["tuple", ["x"]])]
        assert _of(verdict, item, json.dumps(gold), *odd, json.dumps(gold)) == [1.0, *[0.0] * len(odd), 1.0]
        assert all(share < 1 for share in _of(shaped, item, *odd) if share is not None)
