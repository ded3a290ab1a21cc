"""A short slice of the fuzzers, and that they notice what they are for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from calibrant.bench.core.names import TITLES
from calibrant.dsl import lenient_json
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import RootScore, Scm
from calibrant.dsl.replayscm.score import Evaluator, Score
from calibrant.dsl.replayscm.world import Panel
from tests.fuzz import (
    blickets,
    causalab,
    causim,
    episodes,
    formats,
    logic,
    networks,
    papers,
    pools,
    readings,
    responses,
    submissions,
)
from tests.fuzz.campaign import CampaignPlan, CampaignTally, run, run_chunk
from tests.fuzz.corruption import CHARACTER_DAMAGE, LINE_DAMAGE, LONGEST, damaged
from tests.fuzz.submissions import answer, response
from tests.oracles.independent import Judge, WrongVerdictError, spelled
from tests.support.effort import effort

# about a second of each kind; `python -m tests.fuzz` and a soak have as many as one likes
EPISODES, LOGIC_FILES, NETWORK_FILES, READINGS, FORMAT_FILES = 1_000, 2_000, 1_000, 1_500, 750
SUBMISSIONS, RESPONSES, POOLS, BLICKETS, LABORATORIES, QUESTIONS = 1_000, 250, 100, 2_000, 2_000, 700


@pytest.fixture(scope="module")
def scored() -> CampaignTally:
    return run_chunk(submissions.case, 11, 0, SUBMISSIONS)


@pytest.fixture(scope="module")
def read() -> CampaignTally:
    return run_chunk(pools.case, 11, 0, POOLS)


def test_every_answer_gets_a_verdict_and_no_wrong_one(scored: CampaignTally) -> None:
    assert scored.failures == []
    assert scored.num_cases == SUBMISSIONS
    stages = {"not extracted", "not schema", "not keys", "not parse", "not legal", "not acyclic"}
    assert scored.outcomes.keys() == stages | {"valid", "train exact", "correct"}  # answers of every kind were made
    assert min(scored.outcomes[stage] for stage in ("correct", "valid", "not parse", "not legal")) > SUBMISSIONS / 50


def test_files_of_logic_models_are_read_or_refused_in_a_line() -> None:
    tally = run_chunk(logic.case, 5, 0, LOGIC_FILES)
    assert tally.failures == []
    kinds = ("prior", "measurements", "setup", "networks", "series", "item", "clause")
    assert tally.outcomes.keys() == {f"{kind} {outcome}" for kind in kinds for outcome in ("read", "refused")}


def test_files_of_networks_are_read_or_refused_in_a_line() -> None:
    tally = run_chunk(networks.case, 5, 0, NETWORK_FILES)
    assert tally.failures == []
    expected = {f"{name} {outcome}" for name in (*networks.TEXTS, "zginml") for outcome in ("read", "refused")}
    assert expected <= tally.outcomes.keys()
    with pytest.raises(MemoryError), networks.bounded_memory(1 << 24):
        bytearray(1 << 26)


def test_actions_answers_and_records_of_episodes_get_a_reading_or_a_line() -> None:
    tally = run_chunk(episodes.case, 3, 0, EPISODES)
    assert tally.failures == []
    kinds = {outcome.partition(":")[0] for outcome in tally.outcomes}
    assert kinds == {"actions", "replies", "answer", "transcript", "record"}
    assert {
        "answer: correct",
        "transcript: replayed",
        "transcript: refused",
        "record: refused",
    } <= tally.outcomes.keys()


def test_every_line_of_predictions_gets_the_plain_verdict() -> None:
    tally = run_chunk(responses.case, 11, 0, RESPONSES)
    assert tally.failures == []
    stages = {"not extracted", "not schema", "not keys", "not parse", "not legal", "not acyclic"}
    assert stages | {"valid", "correct", "no line"} <= tally.outcomes.keys()


@pytest.mark.soak
def test_readers_of_answers_agree_where_they_must() -> None:
    """150,000 texts in a soak, else a hundredth: thoughts, other forms, damaged answers and noise of each benchmark."""
    tally = run_chunk(readings.case, 11, 0, effort(READINGS, 100 * READINGS))
    assert tally.failures == []
    kinds = {tuple(outcome.split(": ")[:2]) for outcome in tally.outcomes}
    assert kinds >= {(name, kind) for name in TITLES for kind in readings.KINDS}
    assert {"marks: unclosed", "marks: outside", "marks: nothing", "logic: form: wrong_format"} <= tally.outcomes.keys()


@pytest.mark.soak
def test_a_draft_is_never_paid_and_changes_no_verdict() -> None:
    """150,000 pairs of a draft and a text in a soak, each in three wrappings."""
    tally = run_chunk(readings.unpaid_case, 11, 0, effort(READINGS, 200 * READINGS) // 2)
    assert tally.failures == []
    assert tally.outcomes.keys() == {f"{name}: {outcome}" for name in TITLES for outcome in ("right", "not right")}


@pytest.mark.soak
def test_the_lenient_reader_gets_right_what_the_papers_rule_gets_right() -> None:
    """100,000 mutated answers of each benchmark in a soak."""
    tally = run_chunk(readings.superset_case, 11, 0, effort(READINGS, 680 * READINGS) // 2)
    assert tally.failures == []
    outcomes = ("both", "lenient alone", "neither")
    assert tally.outcomes.keys() == {f"{name}: {outcome}" for name in TITLES for outcome in outcomes}


@pytest.mark.soak
def test_files_of_predictions_are_read_or_refused_in_a_line() -> None:
    tally = run_chunk(formats.case, 7, 0, effort(FORMAT_FILES, 100 * FORMAT_FILES))
    assert tally.failures == []
    kinds = {outcome.rpartition(": ")[0].partition(": ")[0] for outcome in tally.outcomes}
    assert kinds == set(formats.DOCUMENTS)
    assert {outcome.rpartition(": ")[2] for outcome in tally.outcomes} == {"read", "refused", "skipped some"}


def test_a_reader_that_changes_a_value_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = lenient_json._Decoder._scalar
    monkeypatch.setattr(lenient_json._Decoder, "_scalar", lambda self, text, place: (0, decode(self, text, place)[1]))
    assert run_chunk(readings.case, 11, 0, 300).failures


def test_a_verdict_that_differs_from_the_plain_one_in_a_key_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = "calibrant.dsl.replayscm.score._cell"
    monkeypatch.setattr(cell, lambda cell: None)
    responses.forget_scores()  # verdicts that are kept from other tests are right, and those of this one are not
    found = run_chunk(responses.case, 11, 0, 60).failures
    responses.forget_scores()
    assert found
    assert all("Mismatch" in what for _, what in found)


def test_every_damaged_pool_is_read_as_it_is_or_refused(read: CampaignTally) -> None:
    assert read.failures == []
    assert read.num_cases == POOLS
    for kind in ("official", "native"):
        assert min(read.outcomes[f"{kind} {outcome}"] for outcome in ("read", "refused")) > POOLS / 100


def test_whatever_is_said_done_or_filed_about_blickets_gets_a_verdict_or_a_line() -> None:
    tally = run_chunk(blickets.case, 11, 0, BLICKETS)
    assert tally.failures == []
    kinds = {"reply acted", "reply no action", "actions open", "actions answered"}
    kinds |= {f"{kind} {outcome}" for kind in ("trace", "log", "item") for outcome in ("read", "refused")}
    assert kinds <= tally.outcomes.keys()
    assert min(tally.outcomes[kind] for kind in kinds) > BLICKETS / 500


def test_whatever_is_said_done_or_filed_about_laboratories_gets_a_verdict_or_a_line() -> None:
    tally = run_chunk(causalab.case, 11, 0, LABORATORIES)
    assert tally.failures == []
    kinds = {"reply read", "reply without an object", "hypothesis scored", "formula computed", "formula refused"}
    kinds |= {"actions open", "actions submitted"}
    kinds |= {f"{kind} {outcome}" for kind in ("config", "item") for outcome in ("read", "refused")}
    assert kinds <= tally.outcomes.keys()


def test_odd_values_anywhere_in_answers_and_records_of_questions_get_a_verdict_or_a_line() -> None:
    tally = run_chunk(causim.case, 11, 0, QUESTIONS)
    assert tally.failures == []
    kinds = {"object right", "object wrong", "object odd", "reply right", "reply wrong", "reply wrapped"}
    kinds |= {"completion rewarded", "record read", "record refused"}
    assert min(tally.outcomes[kind] for kind in kinds) > 0


def test_every_odd_value_at_every_key_of_a_question_gets_its_verdict() -> None:
    """Of two items of every type with at least four nodes; a key of a node that has children among them."""
    kinds: dict[str, int] = {}
    outcomes = set()
    for target in causim.targets():
        kind = target.item.task.question.type
        if len(target.item.task.model) < 4 or kinds.get(kind, 0) >= 2:
            continue
        kinds[kind] = kinds.get(kind, 0) + 1
        for key in target.keys:
            for value in causim.ODD_VALUES:
                outcomes.add(causim.check_answer(target, {**target.base, key: value}))
    assert kinds == dict.fromkeys(("deduction", "intervention", "abduction", "counterfactual"), 2)
    assert outcomes >= {"odd", "wrong"}


# --- the same cases whoever runs them ----------------------------------------------------------------------------


def test_the_number_of_workers_does_not_matter() -> None:
    plan = CampaignPlan(seed=5, count=30, first=7, chunk=10)
    here, apart = run(submissions.case, plan), run(submissions.case, replace(plan, workers=2))
    assert (here.digest, here.outcomes, here.num_cases) == (apart.digest, apart.outcomes, 30)
    assert run(submissions.case, replace(plan, seed=6)).digest != here.digest
    again = [run_chunk(submissions.case, 5, number, 1).outcomes for number in range(7, 37)]
    assert sum(again, start=type(here.outcomes)()) == here.outcomes


def test_a_plan_covers_its_cases_and_stops_in_time() -> None:
    assert list(CampaignPlan(1, 25, first=3, chunk=10).chunks()) == [(3, 10), (13, 10), (23, 5)]
    assert run(lambda _: "x", CampaignPlan(1, 25, first=3, chunk=10)).num_cases == 25
    assert run(lambda _: "x", CampaignPlan(1, 25, seconds=0)).num_cases == 0


def test_a_failing_case_is_told_by_its_number() -> None:
    def case(rng: random.Random) -> str:
        if rng.random() < 0.2:
            raise KeyError("planted")
        return "fine"

    numbers = [number for number in range(50) if random.Random(9 << 40 | number).random() < 0.2]
    tally = run(case, CampaignPlan(seed=9, count=50, chunk=7))
    assert tally.failures == [(number, "KeyError: 'planted'") for number in numbers]
    assert tally.outcomes == {"failure": len(numbers), "fine": 50 - len(numbers)}


# --- planted faults ----------------------------------------------------------------------------------------------


def _target(kind: TaskKind, setting: str = "") -> submissions.Target:
    return next(t for t in submissions.targets() if t.problem.task.kind is kind and t.problem.setting.endswith(setting))


def _claims(target: submissions.Target, answer: dict[str, Any], **claims: Any) -> Score:
    """Return the score of an answer in which some parts are exchanged for those of the right answer."""
    good = target.paper.score_answer(target.good)
    made = target.paper.score_answer(answer)
    return replace(made, **{name: getattr(good, name) if value == "good" else value for name, value in claims.items()})


def _wrong_map(target: submissions.Target) -> dict[str, Any]:
    last = list(target.good["mechanisms"])[-1]
    return target.good | {"mechanisms": target.good["mechanisms"] | {last: f"(not {target.good['mechanisms'][last]})"}}


def test_the_judge_accepts_what_is_right() -> None:
    for target in submissions.targets():
        score = target.paper.score_answer(target.good)
        assert score.correct
        assert score.heldout_exact
        Judge(target.problem).check(score, thorough=True)


def test_an_exactness_that_is_none_is_noticed() -> None:
    target = _target(TaskKind.SCM)
    wrong = _wrong_map(target)
    Judge(target.problem).check(target.paper.score_answer(wrong), thorough=True)
    with pytest.raises(WrongVerdictError, match="train exact True"):
        Judge(target.problem).check(_claims(target, wrong, train="good"), thorough=False)
    problem, heldout = target.problem, target.problem.sealed.heldout.worlds
    inverted = [replace(w, columns=tuple(~column & 2**w.num_rows - 1 for column in w.columns)) for w in heldout]
    changed = replace(problem, sealed=replace(problem.sealed, heldout=Panel(problem.task.variables, tuple(inverted))))
    with pytest.raises(WrongVerdictError, match="held-out exact True"):
        Judge(changed).check(target.paper.score_answer(target.good), thorough=False)


def test_an_inexactness_that_is_none_is_noticed() -> None:
    target = _target(TaskKind.SCM)
    wrong = target.paper.score_answer(_wrong_map(target))
    score = replace(target.paper.score_answer(target.good), train=wrong.train)
    with pytest.raises(WrongVerdictError, match="train exact False"):
        Judge(target.problem).check(score, thorough=True)


def test_an_illegal_map_is_noticed() -> None:
    target = _target(TaskKind.SCM, "Ordered")
    task = target.problem.task
    assert isinstance(task.disclosure, Ordered)
    backwards = Ordered(tuple(reversed(task.disclosure.order)), task.disclosure.roots)
    strict = replace(target.problem, task=replace(task, disclosure=backwards))
    with pytest.raises(WrongVerdictError, match="admissible parents"):
        Judge(strict).check(target.paper.score_answer(target.good), thorough=False)


def test_another_map_than_the_submitted_one_is_noticed() -> None:
    target = _target(TaskKind.SCM)
    with pytest.raises(WrongVerdictError, match="another map"):
        Judge(target.problem).check(_claims(target, _wrong_map(target), submission="good"), thorough=False)


def test_wrong_roots_called_correct_are_noticed() -> None:
    target = _target(TaskKind.ROOTS)
    problem = target.problem
    assert isinstance(problem.task.disclosure, HiddenRoots)
    gold = problem.sealed.gold
    assert gold is not None
    other = Scm(gold.endogenous[: len(gold.roots)], {})
    score = target.paper.score_answer(target.good)
    assert isinstance(score.roots, RootScore)
    with pytest.raises(WrongVerdictError, match="other roots"):
        Judge(replace(problem, sealed=replace(problem.sealed, gold=other))).check(score, thorough=False)


def test_a_witness_that_shows_nothing_is_noticed() -> None:
    target = _target(TaskKind.ALTERNATIVE)
    claims = [claim | {"reference": claim["alternative"]} for claim in target.good["witness"]["differences"]]
    lying = target.good | {"witness": target.good["witness"] | {"differences": claims}}
    assert not target.paper.score_answer(lying).correct
    with pytest.raises(WrongVerdictError, match="difference that is shown"):
        Judge(target.problem).check(_claims(target, lying, alternative="good"), thorough=False)


def _without_last_row(problem: Problem) -> Problem:
    world, *others = problem.task.training.worlds
    rows = world.num_rows - 1
    short = replace(world, units=world.units[:rows], columns=tuple(c & 2**rows - 1 for c in world.columns))
    return _with_training(problem, [short, *others])


def _with_training(problem: Problem, worlds: list[Any]) -> Problem:
    return replace(problem, task=replace(problem.task, training=Panel(problem.task.variables, tuple(worlds))))


def _other_cell(problem: Problem) -> Problem:
    world, *others = problem.task.training.worlds
    return _with_training(problem, [replace(world, columns=(world.columns[0] ^ 1, *world.columns[1:])), *others])


FAULTS: dict[str, Callable[[Pool], Pool]] = {
    "an instance is missing": lambda pool: replace(pool, problems=pool.problems[1:]),
    "a row is missing": lambda pool: replace(pool, problems=tuple(map(_without_last_row, pool.problems))),
    "a cell is wrong": lambda pool: replace(pool, problems=tuple(map(_other_cell, pool.problems))),
    "a world is missing": lambda pool: replace(
        pool, problems=tuple(_with_training(p, list(p.task.training.worlds[1:])) for p in pool.problems)
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_reader_drops_or_changes_is_noticed(fault: str, tmp_path: Any) -> None:
    for base in pools.bases()[:4]:  # every form once
        path = tmp_path / "pool"
        path.write_text(base.text, encoding="utf-8")
        pool = read_pool(path)
        pools.check_content(pool, base.text)
        with pytest.raises(WrongVerdictError):
            pools.check_content(FAULTS[fault](pool), base.text)


def test_results_of_another_record_are_noticed(tmp_path: Any) -> None:
    base = next(base for base in pools.bases() if base.form == "compact")
    path = tmp_path / "pool"
    path.write_text(base.text, encoding="utf-8")
    pool = read_pool(path)
    silent = replace(pool, problems=tuple(replace(p, results=tuple) for p in pool.problems))
    with pytest.raises(WrongVerdictError, match="responses"):
        pools.check_content(silent, base.text)


def test_too_many_steps_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "PROFILED", 1)
    monkeypatch.setattr(submissions, "STEPS", 10)
    monkeypatch.setattr(submissions, "STEPS_PER_CHARACTER", 0)
    tally = run_chunk(submissions.case, 3, 0, 5)
    assert len(tally.failures) == 5
    assert all("steps for" in what for _, what in tally.failures)


# --- the damage itself -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("damage", [*CHARACTER_DAMAGE, *LINE_DAMAGE], ids=lambda damage: damage.__name__)
def test_damage_changes_texts_and_survives_empty_ones(damage: Callable[[random.Random, str], str]) -> None:
    text = "one: 1\n  two: [0, 1]\nthree\n"
    found = {damage(random.Random(seed), text) for seed in range(30)}
    assert len(found - {text}) >= 3
    assert all(len(made) <= LONGEST for made in found)
    assert all(isinstance(damage(random.Random(seed), ""), str) for seed in range(30))


def test_damaged_values_are_others_and_the_original_stays() -> None:
    value = {"a": [1, "x", {"b": True}], "c": {}}
    made = [damaged(random.Random(seed), value) for seed in range(200)]
    assert value == {"a": [1, "x", {"b": True}], "c": {}}
    assert sum(other != value for other in made) > 150
    assert len({repr(other) for other in made}) > 60


def test_answers_are_right_and_wrong_in_many_ways() -> None:
    target = _target(TaskKind.ROOTS)
    variables = target.problem.task.variables
    made = [answer(random.Random(seed), target.good, variables) for seed in range(300)]
    assert len({repr(one) for one in made}) > 200
    texts = {response(random.Random(seed), [target.good]) for seed in range(300)}
    assert len(texts) > 100
    evaluator = Evaluator(target.problem)
    assert 50 < sum(evaluator.score_text(text).correct is True for text in texts) < len(texts)


@pytest.mark.parametrize("text", ["X1", "(X1)", " ( not\u2003( X1)) ", "(and(or X1 X2)(not X3)X1)", "(iff X1 X2 X3)"])
def test_the_second_reader_reads_what_is_written(text: str) -> None:
    assert spelled(text) == parse(text)


def test_the_second_reader_sees_what_follows() -> None:
    with pytest.raises(WrongVerdictError, match="after its end"):
        spelled("X1 X2")
    assert spelled("(and X1 X2)") != spelled("(or X1 X2)")


def test_the_papers_formats_are_read_or_refused_and_nothing_is_executed() -> None:
    """A slice of the campaign: all kinds of input, each of them both taken and refused."""
    tally = run_chunk(papers.case, 11, 0, 300)
    assert tally.failures == []
    outcomes = " ".join(tally.outcomes)
    for word in ("program ok", "program syntax", "prose read", "prose refused", "options read", "options refused"):
        assert word in outcomes, word
    for word in ("notebook read", "notebook with a problem", "state", "queries"):
        assert word in outcomes, word


def test_execution_inside_a_reader_is_noticed() -> None:
    with pytest.raises(WrongVerdictError, match="executed"), papers.nothing_executed():
        exec("1")
