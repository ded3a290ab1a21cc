"""One contract over the benchmarks: truth, outcomes, exact rows, counts, replays, files and bytes.

Two points have an exception, both of unreliable detectors. Their truth is a member of the class that knows the noise;
and a member of that class can give either reading where its rule is satisfied, so that outcomes overlap. A detector
that has both a switch and noise is in no class: nothing is claimed of its truth. A ReplaySCM item has no actions; its
evidence grows world by world, and it has neither outcomes nor transcripts.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from audits.replayscm.ambiguity import gold_class
from baselines.blickets.replies import read_reply
from bench.benchmarks.registry import benchmark, benchmark_of
from bench.pools.bundled import bundled_pools
from dsl.blickets import records as blicket_records
from dsl.blickets.episode import BlicketEpisode
from dsl.blickets.grading import grade
from dsl.blickets.item import BlicketItem, Condition, Count
from dsl.blickets.readings import readings
from dsl.blickets.reference import is_active
from dsl.blickets.rule import Form
from dsl.blickets.sampling import EASY, SUITES, Later, Plan, drawn
from dsl.episode import Step, TranscriptError, verified
from dsl.errors import CalibrantError
from dsl.replayscm.pools import files as replayscm_files
from dsl.replayscm.problem import Problem
from dsl.replayscm.reference import first_mismatch
from dsl.replayscm.sampling.problems import SETTINGS, sample_pool
from dsl.replayscm.sampling.strata import NAMED_STRATA
from dsl.replayscm.score import Evaluator
from solvers.blickets.families import knowing_space
from solvers.blickets.noise import RELIABILITIES
from solvers.blickets.switch import MAX_SWITCH, Switching
from solvers.outcome import Found
from solvers.replayscm.exact import solve
from solvers.replayscm.version_space import ModelClass, VersionSpace
from tests.support.blickets.all_detectors import Names, all_orders, lights, lights_in_order, named_rules, switchers
from tests.support.blickets.items import actions
from tests.support.replayscm import brute_force
from tests.support.replayscm.small_problems import small_problems

BLICKETS = benchmark("blickets")
OVERLAPPING = (Condition.STOCHASTIC, Condition.NOISY_MODERATOR)
PLANS: dict[str, Plan] = {
    **{name: SUITES[name] for name in ("conjunctive", "disjunctive", "graded", "easy-3", "hard-3", "order")},
    "stochastic": SUITES["stochastic"],
    "edge": replace(SUITES["easy-3"], count=Count.EDGE),
    "start": replace(SUITES["hard-3"], random_start=True),
}
KNOWN = [item for plan in PLANS.values() for item in islice(drawn(plan, 3), 3)]
EVERY = [item for plan in SUITES.values() for item in islice(drawn(plan, 3), 2)]
SMALL_PLANS = (
    Plan(Condition.CONJUNCTIVE, n=3),
    Plan(Condition.DISJUNCTIVE, n=3),
    Plan(Condition.MODERATOR, n=3, later=(EASY,)),
    Plan(Condition.MODERATOR, n=3, later=(Later(Form.DISJUNCTIVE, 2, 2, shared=1),), count=Count.EDGE),
    Plan(Condition.ORDER, n=3),
    Plan(Condition.ORDER, n=3, blickets=3),
    Plan(Condition.STOCHASTIC, n=3, p=0.7),
)
SMALL = [item for plan in SMALL_PLANS for item in islice(drawn(plan, 4), 2)]


def _truth(item: BlicketItem) -> Any:
    """The mechanism of an item in the form that members of its class have."""
    first, *others = item.sealed.mechanisms
    match item.condition:
        case Condition.MODERATOR:
            return Switching(first.rule.canonical, others[0].rule.canonical, item.sealed.switches[0])
        case Condition.ORDER:
            return first.order
        case Condition.STOCHASTIC:
            return first.rule.canonical, item.sealed.p
        case _:
            return first.rule.canonical


def _toggled(item: BlicketItem, choices: Sequence[int]) -> BlicketEpisode:
    """An episode after legal moves, each of the object of a number."""
    episode = BlicketEpisode(item)
    for index in choices:
        verb = "remove" if index % item.task.n in episode.placed else "place"
        episode.act({verb: item.task.objects[index % item.task.n]})
    return episode


MOVES = st.lists(st.integers(0, 4), max_size=25)


# --- 1: the truth is a member ------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.sampled_from(KNOWN), MOVES)
def test_the_truth_is_a_member_after_any_moves(item: BlicketItem, choices: list[int]) -> None:
    space = knowing_space(item.task, item.condition)
    for placed, reading in readings(item.task, _toggled(item, choices).steps):
        space = space.after(placed, reading)
        assert space.fits(_truth(item))
        assert space.count >= 1


def _problems() -> Iterator[Problem]:
    for path in bundled_pools():
        yield from replayscm_files.read_pool(path).problems[:2]


def test_gold_is_a_member_after_any_number_of_worlds() -> None:
    seen = 0
    for problem in _problems():
        gold = problem.sealed.gold
        assert gold is not None
        assert first_mismatch(gold, problem.worlds) is None
        space = VersionSpace(problem.task, gold_class(problem))
        count = space.count
        for world in problem.sealed.heldout.worlds[:3]:
            space = space.with_worlds([world])
            assert 1 <= space.count <= count
            count = space.count
        given_roots = space.given_roots(gold.roots)
        for variable, local in gold.local_functions.items():
            assert given_roots.parent_set_marginals(variable).get(local.parents, 0) > 0, problem.id
        seen += 1
    assert seen == 8


# --- 2: outcomes partition ---------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.sampled_from([*KNOWN, *islice(drawn(SUITES["noisy-switch"], 3), 1)]), MOVES)
def test_outcomes_partition_and_nothing_grows(item: BlicketItem, choices: list[int]) -> None:
    space = knowing_space(item.task, item.condition)
    episode = _toggled(item, choices)
    for placed, reading in readings(item.task, episode.steps):
        before = space.count
        space = space.after(placed, reading)
        assert space.count <= before
    assert sum(space.verdicts().values()) == space.count
    for index in range(item.task.n):
        placed = tuple(i for i in episode.placed if i != index)
        placed = placed if index in episode.placed else (*placed, index)
        outcomes = space.outcomes(placed)
        assert {reading: space.after(placed, reading).count for reading in outcomes} == outcomes
        if item.condition in OVERLAPPING:
            assert max(outcomes.values()) <= space.count <= sum(outcomes.values())
        else:
            assert sum(outcomes.values()) == space.count


# --- 3: the exact row ----------------------------------------------------------------------------------------------


def test_the_exact_row_submits_the_one_answer_that_is_left_and_is_right() -> None:
    exact = BLICKETS.protocols["exact"]()
    rng = random.Random(1)
    decided: dict[str, int] = {}
    for item in (replace(one, task=replace(one.task, condition=one.condition)) for one in KNOWN):
        for length in (0, 8, 20):
            episode = _toggled(item, [rng.randrange(item.task.n) for _ in range(length)])
            answer = exact.answer(episode).answer
            space = knowing_space(item.task, item.condition)
            for placed, reading in readings(item.task, episode.steps):
                space = space.after(placed, reading)
            verdicts = list(space.verdicts())
            if len(verdicts) == 1:
                found = grade(item, episode.steps)
                assert found.answer is not None
                assert (found.answer.canonical, found.correct) == (verdicts[0], True), item.id
                assert answer is not None
                decided[item.condition] = decided.get(item.condition, 0) + 1
    assert decided.keys() >= {"conjunctive", "disjunctive", "order"}, decided
    assert sum(decided.values()) >= 30, decided


def test_exact_search_gives_the_one_scm_that_is_left() -> None:
    seen = 0
    for problem in small_problems(61, 80):
        task = problem.task
        found = [
            member
            for family in brute_force.families(task, 3, brute_force.root_hypotheses(task))
            for member in islice(brute_force.members(family), 2)
        ]
        if len(found) == 1:
            outcome = solve(task)
            assert isinstance(outcome, Found)
            scm = outcome.value.model
            roots, mechanisms = found[0]
            assert tuple(scm.roots) == roots
            assert {v: (f.parents, f.table.bits) for v, f in scm.local_functions.items()} == {
                v: (parents, bits) for v, parents, bits in mechanisms
            }
            answer = benchmark("replayscm").protocols["exact"]().answer(task).answer
            assert answer is not None
            assert Evaluator(problem).score_answer(answer).train_exact
            seen += 1
    assert seen >= 5


# --- 4: counts -------------------------------------------------------------------------------------------------------


def _still(item: BlicketItem, steps: Sequence[Step[str]]) -> int:
    """How many detectors of the item's condition give the readings; by listing them all."""
    objects: Names = item.task.objects
    edge = item.task.count is Count.EDGE
    seen = [(tuple(objects[i] for i in placed), is_active(reading)) for placed, reading in readings(item.task, steps)]
    match item.condition:
        case Condition.ORDER:
            orders = all_orders(objects)
            return sum(all(lights_in_order(o, p, contiguous=False) == lit for p, lit in seen) for o in orders)
        case Condition.STOCHASTIC:
            heard = [placed for placed, lit in seen if lit]
            return len(RELIABILITIES) * sum(all(lights(r, p) for p in heard) for r in named_rules(objects))
        case Condition.MODERATOR:
            numbers = _activations_before(seen, edge=edge)
            return sum(
                all(lights(s.rule(k), p) == lit for k, (p, lit) in zip(numbers, seen, strict=True))
                for s in switchers(objects, MAX_SWITCH)
            )
        case _:
            return sum(all(lights(r, p) == lit for p, lit in seen) for r in named_rules(objects))


def _activations_before(seen: Sequence[tuple[Names, bool]], *, edge: bool) -> list[int]:
    numbers, activations, last = [], 0, False
    for _, lit in seen:
        numbers.append(activations)
        activations += lit and not (edge and last)
        last = lit
    return numbers


@settings(max_examples=60)
@given(st.sampled_from(SMALL), MOVES)
def test_counts_equal_enumeration_on_small_items(item: BlicketItem, choices: list[int]) -> None:
    steps = _toggled(item, choices).steps
    space = knowing_space(item.task, item.condition)
    for placed, reading in readings(item.task, steps):
        space = space.after(placed, reading)
    assert space.count == _still(item, steps)


def test_counts_of_scms_equal_enumeration_on_small_items() -> None:
    for problem in small_problems(62, 40):
        task = problem.task
        listed = brute_force.families(task, 3, brute_force.root_hypotheses(task))
        assert VersionSpace(task, ModelClass(3)).count == sum(family.num_members for family in listed)


# --- 5: replays, records, seeds ------------------------------------------------------------------------------------


def _seen(step: Step[str]) -> tuple[Any, ...]:
    """A step but for the wording of a refusal, which may speak of the action as it was given."""
    return dict(step.action), step.reading, bool(step.refused), step.cost


@settings(max_examples=60)
@given(st.data())
def test_a_transcript_replays_to_the_same_steps_and_a_false_reading_is_found(data: st.DataObject) -> None:
    item = data.draw(st.sampled_from(EVERY))
    episode = BLICKETS.episode(item)
    for action in data.draw(actions(item.task.n)):
        episode.act(action)
    steps = list(episode.steps)
    again = verified(BLICKETS.episode(item), steps).steps
    assert [_seen(step) for step in again] == [_seen(step) for step in steps]
    read = [number for number, step in enumerate(steps) if step.reading is not None]
    if read:
        number = data.draw(st.sampled_from(read))
        said = "INACTIVE" if is_active(steps[number].reading) else "ACTIVE"
        forged = [*steps[:number], replace(steps[number], reading=said), *steps[number + 1 :]]
        with pytest.raises(TranscriptError) as caught:
            verified(BLICKETS.episode(item), forged)
        assert caught.value.number == number


def test_items_come_back_from_their_records(tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    items = [replace(item, id=f"{place}") for place, item in enumerate(EVERY)]
    blicket_records.write_pool(path, "pool", items)
    assert list(benchmark_of(path).read_pool(path).items) == items
    for given_pool in bundled_pools():
        pool = replayscm_files.read_pool(given_pool)
        replayscm_files.write_pool(pool, path)
        assert path.read_bytes() == given_pool.read_bytes()
        assert replayscm_files.read_pool(path).problems == pool.problems


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    one, two, other = (tmp_path / name / "pool.jsonl" for name in ("one", "two", "other"))
    for path in (one, two, other):
        path.parent.mkdir()
    for path, seed in ((one, 7), (two, 7), (other, 8)):
        assert BLICKETS.write_drawn(path, list(SUITES), seed, 1) == len(SUITES)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()
    for path, seed in ((one, 7), (two, 7), (other, 8)):
        replayscm_files.write_pool(sample_pool(NAMED_STRATA[:2], 1, seed, SETTINGS[0]), path)
    assert one.read_bytes() == two.read_bytes() != other.read_bytes()


# --- 6: any bytes ----------------------------------------------------------------------------------------------------

REPLIES = st.text() | st.binary().map(lambda raw: raw.decode("utf-8", "surrogateescape"))
FRAGMENTS = st.sampled_from(
    [
        "ACTION: place A\n",
        "ACTION: check {",
        '{"rule": "conjunctive", "blickets": ["A"]}',
        '{"mechanisms": {"X3": "(and X1"}}',
        "{" * 600,
        "[",
        "\\",
        "\x00",
        "\ud800",
        "9" * 5000,
    ]
)
ANY_REPLY = st.lists(REPLIES | FRAGMENTS, max_size=5).map("".join)


@settings(max_examples=150)
@given(st.sampled_from(EVERY), ANY_REPLY)
def test_any_reply_leads_to_a_verdict(item: BlicketItem, text: str) -> None:
    episode = BLICKETS.episode(item)
    action = read_reply(text).action
    if action is not None:
        episode.act(action)
    score = BLICKETS.score(item, {}, episode.steps)
    assert score["correct"] in (True, False, None)
    assert BLICKETS.score(item, {"text": text}, ())["correct"] is not True


@settings(max_examples=100)
@given(ANY_REPLY)
def test_any_response_to_a_replayscm_item_gets_a_verdict(text: str) -> None:
    for problem in PROBLEMS[::3]:
        assert Evaluator(problem).score_text(text).correct in (True, False)


PROBLEMS = list(_problems())


def _pool_bytes() -> st.SearchStrategy[bytes]:
    """Whole files of both benchmarks with bytes cut out, put in or doubled; and bytes of no meaning."""
    originals = [bundled_pools()[0].read_bytes()[:6000], BLICKET_BYTES]
    places = st.integers(0, 6000)

    def damaged(original: bytes, start: int, length: int, put: bytes) -> bytes:
        at = start % len(original)
        return original[:at] + put + original[at + length :]

    return st.binary() | st.builds(damaged, st.sampled_from(originals), places, st.integers(0, 40), st.binary())


def _blicket_bytes() -> bytes:
    header = b'{"benchmark":"blickets","format":"calibrant-pool","name":"p","version":1}'
    lines = [msgspec.json.encode(blicket_records.record_from_item(item)) for item in EVERY[:6]]
    return b"\n".join([header, *lines, b""])


BLICKET_BYTES = _blicket_bytes()


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=_pool_bytes())
def test_any_file_is_a_pool_or_one_line(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "pool.jsonl"
    path.write_bytes(content)
    told = ""
    try:
        benchmark_of(path).read_pool(path)
    except CalibrantError as error:
        told = str(error) or "\n"
    assert "\n" not in told
