"""The public verbs on blickets, CausaLab and CauSim: what they give, what they cost, what they refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, assert_type

import pytest
from msgspec import UnsetType, to_builtins

import calibrant
from calibrant.audits.blickets.attribution import attribute_episode
from calibrant.bench.core.capabilities import FINDINGS
from calibrant.bench.core.registry import benchmark
from calibrant.bench.pools.generated import write_drawn
from calibrant.datasets import bundled_pool, item_record, item_records
from calibrant.dsl.causalab.item import Weights
from calibrant.dsl.causim.model import plain, run
from calibrant.item_types import BlicketItem, CausimItem, LabItem
from calibrant.result_types import DetectorSpace, LabSpace, Mechanism, Rule, WorkedSolution, WorldSpace
from calibrant.solvers.causalab.space import WeightedDags
from tests.support.commands import called, program

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
    named = [name for place, name in enumerate(item.task.objects) if rule.blickets >> place & 1]
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


@pytest.mark.parametrize("of", SIBLINGS)
def test_scoring_imports_no_audit_no_yaml_and_no_solver_but_that_of_the_answer_set(of: str, tmp_path: Path) -> None:
    source = f"""
import sys
import calibrant
pool = calibrant.load_pool({str(_pool(of, tmp_path))!r})
calibrant.score(pool[0], "{{}}")
solvers = [f"solvers.{{of}}" for of in ("replayscm", "blickets", "causalab")]
heavy = ("yaml", "numba", *(f"calibrant.{{package}}" for package in ("audits", "baselines", *solvers)))
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
