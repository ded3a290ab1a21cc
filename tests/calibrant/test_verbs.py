"""Public verbs on every benchmark, text episodes among them."""

from __future__ import annotations

import gzip
import json
import pydoc
from inspect import signature
from pathlib import Path
from types import MappingProxyType
from typing import Any, assert_type

import pytest

import calibrant
from calibrant.bench.core.names import TITLES
from calibrant.bench.core.registry import benchmark, bundled_pool
from calibrant.dsl import records
from calibrant.dsl.records import file_digest
from calibrant.dsl.replayscm.generation.problems import sample_problem
from calibrant.dsl.replayscm.generation.strata import stratum
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.solvers.outcome import BestSoFar
from tests.support.shared import shared_file

# --- The public verbs: pools, verdicts, solutions, spaces, audits, separation, hardening, generation, runs ------------
ORDERED = bundled_pool("ordered")


@pytest.fixture(scope="module")
def pool() -> calibrant.Pool[calibrant.Problem]:
    return calibrant.load_pool(ORDERED, of="replayscm")


@pytest.fixture(scope="module")
def item(pool: calibrant.Pool[calibrant.Problem]) -> calibrant.Problem:
    return pool[0]


def _gold_answer(item: calibrant.Problem) -> dict[str, Any]:
    """Gold as the file has it, in the form of an answer."""
    lines = [json.loads(line) for line in ORDERED.read_text(encoding="utf-8").splitlines()[1:]]
    (gold,) = [line["sealed"]["gold"] for line in lines if line["id"] == item.id]
    return {"mechanisms": gold}


# --- pools --------------------------------------------------------------------------------------------------------


def test_a_pool_is_a_sequence_with_names(pool: calibrant.Pool[calibrant.Problem]) -> None:
    ids = [json.loads(line)["id"] for line in ORDERED.read_text(encoding="utf-8").splitlines()[1:]]
    assert [item.id for item in pool] == ids
    assert len(pool) == len(ids) == 24
    assert pool[-1].id == ids[-1]
    assert pool[ids[5]] is pool[5]
    assert [item.id for item in pool[2:5]] == ids[2:5]
    assert isinstance(pool[2:5], calibrant.Pool)
    with pytest.raises(IndexError):
        _ = pool[24]
    with pytest.raises(calibrant.CalibrantError, match="has no item 'nope'; there is 'CAL_"):
        _ = pool["nope"]
    with pytest.raises(KeyError):
        _ = pool["nope"]
    assert all(item.benchmark == "replayscm" for item in pool)


def test_a_compressed_pool_is_the_same_pool(tmp_path: Path, pool: calibrant.Pool[calibrant.Problem]) -> None:
    packed = tmp_path / "pool.jsonl.gz"
    packed.write_bytes(gzip.compress(ORDERED.read_bytes(), mtime=0))
    assert calibrant.load_pool(packed) == pool
    assert file_digest(packed) == file_digest(ORDERED)


def test_an_official_file_is_a_pool_too(tmp_path: Path) -> None:
    official = shared_file("pool_dev_ordered.runtime.yaml")
    read = calibrant.load_pool(official)
    packed = tmp_path / "pool.yaml.gz"
    packed.write_bytes(gzip.compress(official.read_bytes(), mtime=0))
    assert len(read) == 80
    assert [item.id for item in calibrant.load_pool(packed)] == [item.id for item in read]


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path, pool: calibrant.Pool[calibrant.Problem]) -> None:
    marked = tmp_path / "pool.jsonl"
    marked.write_bytes(b"\xef\xbb\xbf" + ORDERED.read_bytes())
    assert calibrant.load_pool(marked) == pool


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gzip.compress(b"{}" * 1000, mtime=0)[:-9], "not a complete gzip file"),
        (b"\x1f\x8bnonsense", "not a complete gzip file"),
        (gzip.compress(b" " * 5000, mtime=0), "larger than 4096 bytes"),
        (b" " * 5000, "larger than 4096 bytes"),
        (
            b'{"format":"calibrant-pool","version":1,"benchmark":"chess"}',
            "a pool of 'chess'; this program knows",
        ),
        (b'{"format":"calibrant-pool","version":1,"benchmark":7}', "a pool of 7; this program knows"),
        (b"", "pool.jsonl: "),
    ],
)
def test_files_that_are_no_pools_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes, said: str
) -> None:
    monkeypatch.setattr(records, "MAX_BYTES", 4096)
    path = tmp_path / "pool.jsonl"
    path.write_bytes(content)
    with pytest.raises(calibrant.CalibrantError) as refused:
        calibrant.load_pool(path)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


# --- verdicts -----------------------------------------------------------------------------------------------------


def test_texts_and_objects_get_the_same_verdict(item: calibrant.Problem) -> None:
    answer = _gold_answer(item)
    text = f"I think:\n```json\n{json.dumps(answer)}\n```"
    for given in (answer, MappingProxyType(answer), json.dumps(answer), text):
        verdict = calibrant.score(item, given)
        assert verdict.correct
        assert verdict.heldout_exact
        assert verdict.to_dict()["trainExact"] is True


@pytest.mark.parametrize(
    "value", [None, True, 0, 1.5, [], [{"mechanisms": {}}], (), "", "nothing", {}, {"mechanisms": 3}]
)
def test_every_other_value_of_json_is_an_answer_that_is_not_valid(item: calibrant.Problem, value: object) -> None:
    verdict = calibrant.score(item, value)
    assert not verdict.valid
    assert not verdict.correct
    assert verdict.failure
    assert verdict.to_dict()["valid"] is False


_CIRCLE: dict[str, Any] = {}
_CIRCLE["mechanisms"] = _CIRCLE
_DEEP: dict[str, Any] = {}
for _ in range(100_000):
    _DEEP = {"mechanisms": _DEEP}


@pytest.mark.parametrize(
    "value",
    [b"{}", object(), {"mechanisms": {"X4": object()}}, {"mechanisms": {1, 2}}, {(1, 2): 3}, _CIRCLE, _DEEP, 1j],
    ids=["bytes", "object", "inner", "set", "key", "circle", "deep", "complex"],
)
def test_what_is_no_json_is_one_clear_line(item: calibrant.Problem, value: object) -> None:
    with pytest.raises(calibrant.CalibrantError, match="answer") as refused:
        calibrant.score(item, value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("mechanisms", [{1: "X1"}, {None: "X1", "X2": "X1"}, {True: 1, "a": 2}])
def test_keys_that_are_no_texts_are_judged_as_json_writes_them(
    item: calibrant.Problem, mechanisms: dict[Any, Any]
) -> None:
    verdict = calibrant.score(item, {"mechanisms": mechanisms})
    assert verdict.rejection is not None
    assert verdict.rejection.stage == "keys"


def test_what_cannot_be_evaluated_is_one_clear_line(pool: calibrant.Pool[calibrant.Problem]) -> None:
    task: Any = pool[0].task
    alone: Any = {"X2": "X1"}
    with pytest.raises(calibrant.CalibrantError, match=r"not a list of SCMs; of one SCM it is \[scm\]"):
        calibrant.evaluate(alone, task.training)
    with pytest.raises(calibrant.CalibrantError, match=r"worlds are a Panel such as item\.task\.training"):
        calibrant.evaluate([alone], task)


@pytest.mark.parametrize("stranger", ["an id", None, 3, calibrant.Problem, {"id": "x"}])
def test_what_is_no_item_is_one_clear_line(stranger: Any) -> None:
    for verb in (calibrant.solve, calibrant.version_space, calibrant.audit, calibrant.separate, calibrant.harden):
        with pytest.raises(calibrant.CalibrantError, match="is no item; `load_pool"):
            verb(stranger)
    with pytest.raises(calibrant.CalibrantError, match="is no item; `load_pool"):
        calibrant.score(stranger, "x")


def test_many_answers_are_scored_in_order_one_at_a_time(pool: calibrant.Pool[calibrant.Problem]) -> None:
    items = [pool[0], pool[0], pool[1]]
    answers = [_gold_answer(pool[0]), "nothing", _gold_answer(pool[1])]
    assert [verdict.correct for verdict in calibrant.score_many(items, answers)] == [True, False, True]
    endless = calibrant.score_many(iter(lambda: pool[0], None), iter(lambda: "nothing", None))
    assert not next(endless).valid
    for unequal in (answers[:2], [*answers, "one more"]):
        with pytest.raises(calibrant.CalibrantError, match=r"after . pairs there is an item or an answer without"):
            list(calibrant.score_many(items, unequal))


def test_lines_name_the_instances_of_a_pool(pool: calibrant.Pool[calibrant.Problem]) -> None:
    right = {"instanceId": pool[1].id, "model": "m", "response": _gold_answer(pool[1])}
    several = {"id": pool[0].id, "choices": [{"text": "nothing"}, {"text": json.dumps(_gold_answer(pool[0]))}]}
    right["extractedAnswer"] = right.pop("response")
    lines: list[str | bytes] = [json.dumps(right), "", json.dumps(several).encode(), json.dumps(right) + "\n"]
    failed = [
        {"id": pool[0].id, "response": None, "error": "HTTP 503"},
        {"custom_id": pool[0].id, "response": {"status_code": 429}},
    ]
    lines += map(json.dumps, failed)
    with pytest.raises(calibrant.CalibrantError, match="lines: nothing was run: infrastructure_error 2"):
        list(calibrant.score_many(pool, lines[-2:]))
    found = list(calibrant.score_many(pool, lines))
    assert [(verdict.problem.id, verdict.correct) for verdict in found] == [
        (pool[1].id, True),
        (pool[0].id, False),
        (pool[0].id, True),
        (pool[1].id, True),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[]", "line 2: not a JSON object"),
        (b"\xff", "line 2: not a JSON object"),
        ('{"id": "other", "text": ""}', "line 2: .* no instance 'other'"),
        ('{"id": "%s", "text": "", "steps": []}', "line 2: it has steps"),
        (3, "line 2 is 'int'"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(pool: calibrant.Pool[calibrant.Problem], line: Any, said: str) -> None:
    good = json.dumps({"id": pool[0].id, "text": "nothing"})
    verdicts = calibrant.score_many(pool, [good, line.replace("%s", pool[0].id) if isinstance(line, str) else line])
    assert not next(verdicts).valid
    with pytest.raises(calibrant.CalibrantError, match=said):
        next(verdicts)


def test_samples_of_one_item_share_an_evaluator(item: calibrant.Problem) -> None:
    from calibrant.bench.replayscm.api import FUNCTIONS

    before = len(FUNCTIONS._evaluators)
    for _ in calibrant.score_many([item] * 100, ["{}"] * 100):
        pass
    assert len(FUNCTIONS._evaluators) <= before + 1


# --- options ------------------------------------------------------------------------------------------------------


def test_unknown_options_and_values_out_of_range_are_one_clear_line(item: calibrant.Problem) -> None:
    bad: list[tuple[Any, dict[str, Any], str]] = [
        (calibrant.solve, {"speed": 3}, "solve has no option 'speed'; its options: max_parents, nested_roots, states"),
        (calibrant.solve, {"max_parents": 7}, "solve: max_parents: expected a whole number of at most 6"),
        (calibrant.solve, {"max_parents": "4"}, "solve: max_parents: expected a whole number or nothing, found"),
        (
            calibrant.version_space,
            {"max_parents": 0},
            "version_space: max_parents: expected a whole number of",
        ),
        (calibrant.version_space, {"terms": 0}, "version_space: terms: expected a whole number of at least 1"),
        (calibrant.solve, {"states": -1}, "solve: states: expected a whole number of at least 0"),
        (
            calibrant.solve,
            {"engine": "x"},
            "solve: engine: 'x' is none of auto, integer_program, sat, smt, subset_dp",
        ),
        (calibrant.solve, {"seconds": 5}, "solve: seconds are for the engine integer_program; 'auto' has"),
        (calibrant.harden, {"goal": "none"}, "harden: goal: 'none' is none of"),
        (calibrant.harden, {"seed": "x"}, "a seed is a whole number, not str"),
        (calibrant.separate, {"members": 1}, "separate: members: expected a whole number of at least 2"),
    ]
    for verb, options, said in bad:
        with pytest.raises(calibrant.CalibrantError) as refused:
            verb(item, **options)
        assert str(refused.value).startswith(said)
    with pytest.raises(calibrant.CalibrantError, match="generate: unknown stratum 'x'; known: hs_n6"):
        calibrant.generate(0, stratum="x")
    with pytest.raises(calibrant.CalibrantError, match="unknown benchmark 'chess'; known: replayscm"):
        calibrant.generate(0, of="chess")  # type: ignore[call-overload]


# --- the verbs themselves -----------------------------------------------------------------------------------------


def test_a_solution_fits_and_its_answer_can_be_scored(item: calibrant.Problem) -> None:
    outcome = calibrant.solve(item, max_parents=4)
    assert_type(
        outcome, calibrant.Found[calibrant.Solution[calibrant.Scm]] | calibrant.Impossible | calibrant.OutOfBudget
    )
    assert isinstance(outcome, calibrant.Found)
    solution = outcome.value
    assert replays_exactly(solution.model, item.task.training.worlds)
    assert solution.size == solution.model.size
    assert calibrant.score(item, json.dumps(solution.answer)).train_exact


def test_counts_of_space_and_audit_agree_and_hardening_lowers_them(item: calibrant.Problem) -> None:
    count = calibrant.version_space(item, max_parents=3).count
    findings = calibrant.audit(item, max_parents=3)
    assert_type(findings, calibrant.Findings)
    assert findings.members(3) == count
    hardened = calibrant.harden(item, seed=1)
    assert isinstance(hardened.outcome, calibrant.Found)
    assert calibrant.version_space(hardened.problem, max_parents=hardened.model_class.max_parents).count == 1
    assert hardened.problem.sealed.heldout == item.sealed.heldout


def test_where_a_budget_ends_the_gap_is_said() -> None:
    """Seventeen variables of unknown order: the limits of search and of sums are options."""
    item = sample_problem(stratum("large_n20"), 0)
    best = calibrant.solve(item, states=0)
    proven = calibrant.solve(item)
    assert isinstance(best, BestSoFar)
    assert isinstance(proven, calibrant.Found)
    assert best.lower_bound is not None
    assert best.lower_bound <= (proven.value.size or 0) <= best.upper_bound == best.incumbent.size
    # versions of the SAT solver differ in whether the first model is a smallest one: 87 and 87, or 87 and more
    is_open = best.lower_bound < best.upper_bound
    gap = (
        f"the best one found has {best.upper_bound}" if is_open else "as the one found has, which may not be the first"
    )
    assert f"at least {best.lower_bound}, {gap}" in best.reached
    whole, part = calibrant.version_space(item), calibrant.version_space(item, terms=100)
    assert whole.counted() == calibrant.Found(whole.count)
    assert whole.estimate(0) == (whole.count, 0, "exact", ())
    assert whole.count_method == "sums over what can come first, up to 17 variables"
    bounded, about = part.counted(), part.estimate(0, particles=100, runs=4)
    assert isinstance(bounded, calibrant.OutOfBudget)
    gap = f"{part.bounds.lower} to {part.bounds.upper} members"
    number = "17 variables that may lie on a cycle together"
    assert bounded.reached == f"{number}, in more than 100 partial orders; {gap}"
    assert bounded.lower_bound == part.bounds.lower <= whole.count <= part.bounds.upper
    low, high = about.interval
    assert low <= whole.count <= high != low
    assert part.with_worlds(item.sealed.heldout.worlds).terms == part.within(3).terms == 100


def test_what_separates_answers_is_found_and_equal_ones_are_not_separated(item: calibrant.Problem) -> None:
    gold = _gold_answer(item)
    assert calibrant.separate(item, gold)[0].separating == ()
    (two,) = calibrant.separate(item, gold, json.dumps(gold))
    assert two.names == ("answer 1", "answer 2")
    assert len(calibrant.separate(item, members=3)) == 3
    with pytest.raises(calibrant.CalibrantError, match="not a valid answer"):
        calibrant.separate(item, "nothing")


def test_generated_items_are_items(tmp_path: Path) -> None:
    made = calibrant.generate(3, setting="ordered")
    assert made.problem.setting == "Ordered"
    assert made.problem == calibrant.generate(3, setting="ordered").problem
    assert calibrant.version_space(made.problem).count == made.audit.final.counts[4]


def test_a_run_records_scores_and_goes_on_where_it_stopped(
    pool: calibrant.Pool[calibrant.Problem], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    first = calibrant.run("exact", pool[:2], out)
    assert [record.instance for record in first] == [pool[0].id, pool[1].id]
    whole = calibrant.run(calibrant.protocols()["exact"](), str(ORDERED), out)
    assert len(whole) == 24
    assert whole[:2] == first
    assert calibrant.run("exact", pool[:0], out) == []
    assert {record.protocol for record in calibrant.run("copy-parent", pool[3:4], out)} == {"copy-parent"}


def test_a_run_says_what_it_cannot_run(tmp_path: Path) -> None:
    nowhere: calibrant.Pool[calibrant.Problem] = calibrant.Pool("made", "replayscm", ())
    with pytest.raises(calibrant.CalibrantError, match="not read from a file"):
        calibrant.run("exact", nowhere, tmp_path)
    with pytest.raises(calibrant.CalibrantError, match="a protocol or its name is expected, not int"):
        calibrant.run(3, ORDERED, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(calibrant.CalibrantError, match="unknown protocol 'fastest'"):
        calibrant.run("fastest", ORDERED, tmp_path)


# --- `text_episode`: the options of each benchmark reach the conversation, and what has no episode is refused ---------
DETECTOR = calibrant.generate(1, of="blickets", suite="conjunctive")
LAB = calibrant.generate(1, of="causalab", suite="4nodes")
LOOSE: Any = calibrant.text_episode  # without the types of its options


def opening(item: Any, **options: Any) -> str:
    episode: calibrant.TextEpisode = LOOSE(item, **options)
    return "\n".join(message["content"] for message in episode.reset())


@pytest.mark.parametrize(
    ("item", "options", "words"),
    [
        (DETECTOR, {"prompting": "cg"}, "Transitions open to you"),
        (DETECTOR, {"prompting": "cg+db"}, "Transitions open to you"),
        (DETECTOR, {"actions": "numbered"}, "1. place A"),
        (LAB, {"aid": "members"}, "289"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_an_option_changes_what_the_agent_starts_from(item: Any, options: dict[str, str], words: str) -> None:
    assert words in opening(item, **options)
    assert words not in opening(item)


def test_a_laboratory_repeats_the_notebook_and_returns_a_broken_schema() -> None:
    reply = '{"set": "ph", "value": 20, "hypothesis": {"edges": [{"from": "mass", "to": "ph"}]}}'
    texts = {}
    ways: dict[str, dict[str, Any]] = {"plain": {}, "carry": {"carry": True}, "paper": {"schema": "paper"}}
    for name, options in ways.items():
        episode = LOOSE(LAB, **options)
        episode.reset()
        texts[name] = episode.reply(reply).text
    assert "Your previous state" in texts["carry"]
    assert "The hypothesis was not taken" in texts["paper"]
    assert "Settings left: 11." in texts["plain"]


@pytest.mark.parametrize(
    ("item", "options", "reason"),
    [
        (calibrant.generate(1, of="causim", suite="chain"), {}, "`text_episode` does not support CauSim"),
        (next(iter(calibrant.load_pool(bundled_pool("ordered")))), {}, "no episode: it is answered at once"),
        (DETECTOR, {"prompting": "loud"}, "is none of base, cg, cg\\+db"),
        (DETECTOR, {"aid": "members"}, "text_episode has no option 'aid'; its options: prompting, actions"),
        (3, {}, "is no item"),
    ],
    ids=["causim", "answered at once", "value", "option", "no item"],
)
def test_what_has_no_episode_and_wrong_options_are_refused(item: Any, options: dict[str, str], reason: str) -> None:
    with pytest.raises(calibrant.CalibrantError, match=reason):
        LOOSE(item, **options)


def test_help_names_every_option() -> None:
    checked = 0
    verbs = ("score", "solve", "version_space", "audit", "separate", "harden", "generate", "text_episode")
    for name in verbs:
        of = [getattr(benchmark(known).functions, name, None) for known in TITLES]
        named = {
            parameter
            for function in of
            if function is not None
            for parameter, kind in signature(function).parameters.items()
            if kind.kind is kind.KEYWORD_ONLY and parameter != "steps"
        }
        text = pydoc.render_doc(getattr(calibrant, name))
        assert {option for option in named if f"{option}: " not in text} == set(), name
        checked += len(named)
    assert checked > 20
