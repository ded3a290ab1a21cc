"""Native blicket pools and traces, sampled items, and the conditions that decide them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.blickets.episode import (
    BlicketEpisode,
    Monitor,
    Notes,
    Transition,
    check_trace,
    sealed_view,
    trace_from_line,
    trace_line,
    trace_of,
)
from calibrant.dsl.blickets.generation import EASY, HARD, SUITES, Later, Plan, sample_items
from calibrant.dsl.blickets.item import (
    BlicketItem,
    Condition,
    Exposure,
    Form,
    Mechanism,
    Rule,
    Sealed,
    Task,
    all_rules,
    contradiction,
)
from calibrant.dsl.blickets.prompt import instructions, observation
from calibrant.dsl.blickets.records import ItemRecord, item_from_record, read_pool, record_from_item, write_pool
from calibrant.dsl.blickets.reference import ACTIVE
from calibrant.dsl.blickets.replies import text_runs
from calibrant.dsl.blickets.score import grade
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


# --- Drawn items: by seed and number alone, roles drawn evenly, every suite readable and playable ---------------------
def _some(plan: Plan, number: int, seed: int = 7) -> list[BlicketItem]:
    return list(islice(sample_items(plan, seed), number))


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_is_drawn_by_seed_and_number_alone(name: str, tmp_path: Path) -> None:
    items = _some(SUITES[name], 12)
    assert next(sample_items(SUITES[name], 7, first=11)) == items[11]
    assert _some(SUITES[name], 12, seed=8) != items
    for item in items:
        assert item_from_record(record_from_item(item)) == item
        assert BlicketEpisode(item).act({"place": item.task.objects[0]}).reading is not None
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        write_pool(path, name, items)
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert read_pool(paths[0]).items == tuple(items)


def test_every_assignment_of_roles_is_drawn_about_equally_often() -> None:
    seen = Counter(tuple(m.rule for m in item.sealed.mechanisms) for item in _some(SUITES["easy-3"], 3_000))
    assert len(seen) == 30  # 10 pairs, 3 singletons each
    assert sum((k - 100) ** 2 / 100 for k in seen.values()) < 58  # chi-square, 29 degrees of freedom, p about .001


def test_the_second_rule_is_as_planned() -> None:
    for item in _some(SUITES["hard-3-AC"], 50):
        first, second = (mechanism.rule for mechanism in item.sealed.mechanisms)
        assert (second.form, second.blickets.bit_count()) == (Form.CONJUNCTIVE, 2)
        assert (first.blickets & second.blickets).bit_count() == 1
    for item in _some(SUITES["hard-3"], 50):
        first, second = (mechanism.rule for mechanism in item.sealed.mechanisms)
        assert first.blickets | second.blickets == 0b11111
        assert first.blickets & second.blickets == 0


def test_budgets_are_those_of_the_paper() -> None:
    assert [
        _some(SUITES[name], 1)[0].task.budget for name in ("three-objects", "hard-3", "hard-3-short", "order-2-of-4")
    ] == [
        50,
        75,
        50,
        100,
    ]


def test_unequal_priors_draw_the_condition() -> None:
    conditions = Counter(item.condition for item in _some(SUITES["unequal-priors"], 1_000))
    assert set(conditions) == {Condition.CONJUNCTIVE, Condition.DISJUNCTIVE}
    assert 150 < conditions[Condition.CONJUNCTIVE] < 250


def test_no_two_items_of_a_series_share_a_name() -> None:
    items = _some(SUITES["series"], 15)
    for at in range(0, 15, 5):
        names = [name for item in items[at : at + 5] for name in item.task.objects]
        assert len(set(names)) == 25
        assert {item.labels["series"] for item in items[at : at + 5]} == {str(at // 5)}


def test_an_informed_item_tells_its_condition_and_no_more() -> None:
    (item,) = _some(Plan(Condition.MODERATOR, later=(HARD,), informed=True), 1)
    (uninformed,) = _some(Plan(Condition.MODERATOR, later=(HARD,)), 1)
    assert item.task.condition is Condition.MODERATOR
    assert uninformed.task.condition is None
    assert item.sealed == uninformed.sealed


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"n": 9}, "n = 9; 2 to 8"),
        ({"blickets": 0}, "blickets = 0; 1 to n = 5"),
        ({"condition": Condition.MODERATOR}, "0 later rules with condition moderator"),
        ({"later": (EASY,)}, "1 later rules with condition conjunctive"),
        ({"condition": Condition.STOCHASTIC}, "p = 1.0 with condition stochastic"),
        ({"p": 0.5}, "p = 0.5 with condition conjunctive"),
        ({"condition": Condition.MODERATOR, "later": (EASY, HARD)}, r"switch points \[3, 3\] are not ascending"),
        (
            {"condition": Condition.MODERATOR, "later": (Later(Form.CONJUNCTIVE, 4, 3),)},
            "cannot be drawn from 5 objects",
        ),
        ({"conjunctive_share": 1.5}, "no probability"),
        ({"series": 6}, "series = 6; 1 to 5"),
        ({"budget": 0}, "budget = 0"),
    ],
)
def test_a_plan_that_cannot_be_drawn_is_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        Plan(**{"condition": Condition.CONJUNCTIVE, "exposure": Exposure(), **options})


# --- Condition and mechanism: the whole relation in both directions, and what is done where they contradict each
# other
CONJUNCTIVE, DISJUNCTIVE = Mechanism(Rule(Form.CONJUNCTIVE, 3)), Mechanism(Rule(Form.DISJUNCTIVE, 3))
ORDERED, ORDER_OF_ONE = replace(CONJUNCTIVE, order=(1, 0)), Mechanism(Rule(Form.CONJUNCTIVE, 1), (0,))
SINGLE, SAME_SINGLE = Mechanism(Rule(Form.DISJUNCTIVE, 4)), Mechanism(Rule(Form.CONJUNCTIVE, 4))
C = Condition


def _item(
    condition: Condition, mechanisms: tuple[Mechanism, ...], p: float = 1.0, *, strict: bool = False
) -> BlicketItem:
    switches = tuple(3 * k for k in range(1, len(mechanisms)))
    sealed = Sealed(mechanisms, switches, p=p, strict_singleton=strict)
    return BlicketItem("x", condition, Task(tuple("ABCDE"), 75), sealed)


# Mechanisms without p, the condition of each with p = 1 and with p = .7; None where the specification has none.
RELATION: list[tuple[tuple[Mechanism, ...], set[Condition], set[Condition]]] = [
    ((CONJUNCTIVE,), {C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((DISJUNCTIVE,), {C.DISJUNCTIVE}, {C.STOCHASTIC}),
    ((SINGLE,), {C.DISJUNCTIVE, C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((SAME_SINGLE,), {C.DISJUNCTIVE, C.CONJUNCTIVE}, {C.STOCHASTIC}),
    ((ORDERED,), {C.ORDER}, set()),
    ((ORDER_OF_ONE,), set(), set()),
    ((CONJUNCTIVE, SINGLE), {C.MODERATOR}, {C.NOISY_MODERATOR}),
    ((CONJUNCTIVE, DISJUNCTIVE, CONJUNCTIVE), {C.MODERATOR}, {C.NOISY_MODERATOR}),
    ((CONJUNCTIVE, CONJUNCTIVE), set(), set()),
    ((SINGLE, SAME_SINGLE), set(), set()),
    ((CONJUNCTIVE, SINGLE, SAME_SINGLE), set(), set()),
    ((ORDERED, SINGLE), set(), set()),
    ((CONJUNCTIVE, ORDERED), set(), set()),
]


def _cases() -> Iterator[tuple[BlicketItem, bool]]:
    for (mechanisms, certain, noisy), condition in product(RELATION, Condition):
        yield _item(condition, mechanisms), condition in certain
        yield _item(condition, mechanisms, 0.7), condition in noisy


def test_every_condition_goes_with_its_mechanisms_and_with_no_others() -> None:
    for item, holds in _cases():
        assert (contradiction(item) == "") is holds, contradiction(item)
        assert "\n" not in contradiction(item)


def test_a_singleton_that_must_be_called_by_its_word_is_of_one_condition() -> None:
    for mechanism, condition in product((SINGLE, SAME_SINGLE), (C.CONJUNCTIVE, C.DISJUNCTIVE)):
        holds = mechanism.rule.form.value == condition.value
        assert (contradiction(_item(condition, (mechanism,), strict=True)) == "") is holds


@pytest.mark.parametrize("suite", sorted(SUITES))
def test_items_of_every_suite_are_of_their_condition_and_of_no_other(suite: str) -> None:
    for item in islice(sample_items(SUITES[suite], 8), 5):
        assert contradiction(item) == ""
        single = item.sealed.mechanisms[0].rule.blickets.bit_count() == 1
        for condition in set(Condition) - {item.condition}:
            assert contradiction(replace(item, condition=condition)) or single


def test_pool_check_refuses_what_contradicts_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [(replace(item, id=f"{index}"), holds) for index, (item, holds) in enumerate(_cases())][::5]
    items = [item for item, _ in cases]
    wrong = {item.id for item, holds in cases if not holds}
    assert len(wrong) < len(items)
    pool = tmp_path / "pool.jsonl"
    write_pool(pool, "made", items)
    assert main(["pool", "check", str(pool), "--json"]) == 1
    (report,) = json.loads(capsys.readouterr().out)
    name = "the condition is that of the mechanism"
    assert {failure["instance"] for failure in report["failures"] if failure["check"] == name} == wrong


def test_attribution_is_of_the_class_that_has_the_mechanism_or_there_is_none() -> None:
    """The class of a mechanism is that of the item with its own condition, whatever condition the item names."""
    bench = benchmark("blickets")
    for (mechanisms, certain, noisy), condition in product(RELATION, Condition):
        for p, conditions in ((1.0, certain), (0.7, noisy)):
            item = _item(condition, mechanisms, p)
            steps = bench.play.open(item).steps
            said = bench.attribution(item, {}, steps, bench.scoring.score(item, {}, steps))
            if not conditions:
                assert said is None
                continue
            right = replace(item, condition=min(conditions))
            expected = bench.attribution(right, {}, steps, bench.scoring.score(right, {}, steps))
            assert said is not None
            assert expected is not None
            assert said["class"] == expected["class"]
