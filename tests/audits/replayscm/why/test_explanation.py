"""Reasons why an item is open or an answer fails, against brute force and the paper's Appendix I."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.replayscm.why.explanation import explain
from calibrant.audits.replayscm.why.failure import FailureWhy, explain_failure
from calibrant.audits.replayscm.why.parts import FittingScm, ReplayWhy
from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.item import Pool, Problem, Task
from calibrant.dsl.replayscm.pools.files import file_record, read_pool, record_from_problem, write_pool
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record
from calibrant.dsl.replayscm.reference import first_mismatch, replay_row, replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from tests.audits.replayscm.why.appendix_cases import CASES, case_record, problem_of, record
from tests.support.commands import called, jsonl
from tests.support.replayscm.brute_force import Member, families, member_size, members, root_hypotheses, world_rows
from tests.support.replayscm.random_problems import Limits, small_problems
from tests.support.replayscm.strategies import answer_of as submission
from tests.support.replayscm.strategies import legal_maps, problems
from tests.support.replayscm.written import HEADER, lamp

# --- The reason, the pair, the witness and what would settle an item, against brute force and the reference alone -----
NUMBER = 60  # problems, fifteen of each disclosure
MAX_MEMBERS = 3_000  # SCMs that are listed one by one

PROBLEMS = list(small_problems(26, NUMBER, Limits(variables=4, endogenous=2, rows=10)))


@cache
def fitting(number: int) -> list[Member]:
    """Every SCM that fits a problem, by brute force."""
    task = PROBLEMS[number].task
    return [member for family in families(task, 4, root_hypotheses(task)) for member in members(family)]


@cache
def why(number: int) -> ReplayWhy:
    return explain(PROBLEMS[number].task, PROBLEMS[number].id)


def numbers(*states: str) -> Iterator[int]:
    return (n for n in range(NUMBER) if why(n).state in states)


def role(member: Member, variable: str) -> object:
    return next(((parents, bits) for name, parents, bits in member[1] if name == variable), "root")


def model_of(task: Task, fitted: FittingScm) -> Scm:
    return scm(fitted.roots, {name: parse(text, task.grammar) for name, text in fitted.mechanisms.items()})


def observed_row(member: Member, given: Mapping[str, int], targets: Mapping[str, int], names: tuple[str, ...]) -> str:
    """Return the row of a member in a context, by its tables; given: values of roots."""
    functions = {name: (parents, bits) for name, parents, bits in member[1]}
    values = {**given, **targets}

    def value(name: str) -> int:
        if name not in values:
            parents, bits = functions[name]
            values[name] = bits >> sum(value(p) << i for i, p in enumerate(parents)) & 1
        return values[name]

    return "".join(str(value(name)) for name in names)


def test_the_problems_have_all_states() -> None:
    assert {why(n).state for n in range(NUMBER)} >= {"open", "decided", "empty"}
    assert sum(why(n).state == "open" and len(fitting(n)) <= MAX_MEMBERS for n in range(NUMBER)) >= 15


def test_the_count_and_what_is_open_are_those_of_brute_force() -> None:
    for n in range(NUMBER):
        if why(n).state == "empty":
            assert fitting(n) == []
            continue
        if why(n).max_parents > 4:
            continue
        assert why(n).count.lower == str(len(fitting(n)))
        roles = {v: {str(role(m, v)) for m in fitting(n)} for v in PROBLEMS[n].task.variables}
        assert set(why(n).open) == {v for v, different in roles.items() if len(different) > 1}
        functions = {one.name: int(one.functions) + one.may_be_root for one in why(n).variables}
        assert functions == {v: len(roles[v]) for v in why(n).open}


def test_both_scms_of_a_pair_replay_every_world_and_differ_where_they_say() -> None:
    for n in numbers("open"):
        pair, task = why(n).pair, PROBLEMS[n].task
        assert pair is not None
        models = [model_of(task, one) for one in (pair.first, pair.second)]
        assert all(replays_exactly(model, task.training.worlds) for model in models)
        functions = [{**dict.fromkeys(m.roots, "root"), **m.local_functions} for m in models]
        assert set(pair.differing) == {v for v in task.variables if functions[0][v] != functions[1][v]}


def test_no_two_scms_that_fit_differ_in_fewer_variables_or_have_less_size() -> None:
    for n in numbers("open"):
        pair, listed = why(n).pair, fitting(n)
        assert pair is not None
        if len(listed) > 200:
            continue
        task = PROBLEMS[n].task
        pairs = list(combinations(listed, 2))
        differing = [{v for v in task.variables if role(a, v) != role(b, v)} for a, b in pairs]
        assert len(pair.differing) == min(map(len, differing))
        sizes = {member: member_size(member, task.grammar) for member in listed}
        same = [
            sizes[a] + sizes[b] for (a, b), where in zip(pairs, differing, strict=True) if where == {*pair.differing}
        ]
        assert pair.least
        assert pair.first.size + pair.second.size == min(same)


def test_the_marked_row_is_absent_from_the_evidence() -> None:
    for n in numbers("open"):
        pair, task = why(n).pair, PROBLEMS[n].task
        assert pair is not None
        for row in pair.rows:
            variable = pair.differing[0]
            free = [
                (world, shown)
                for world in task.training.worlds
                for shown in world_rows(world)
                if variable not in world.intervention.targets and all(shown[u] == bit for u, bit in row.values.items())
            ]
            assert {shown[variable] for _, shown in free} == ({row.observed} if row.observed is not None else set())
            assert len(row.where) == len(free)
            if row.differs:
                assert free == []


def test_the_pair_differs_at_the_witness() -> None:
    for n in numbers("open"):
        pair, witness, task = why(n).pair, why(n).witness, PROBLEMS[n].task
        assert pair is not None
        if witness is None:
            continue
        given = witness.roots | witness.intervention
        world = World(
            "w",
            Intervention(witness.intervention),
            task.variables,
            ("u",),
            tuple(given.get(v, 0) for v in task.variables),
        )
        values = [replay_row(model_of(task, one), world, world.row(0)) for one in (pair.first, pair.second)]
        assert [pair.first.values, pair.second.values] == values
        assert set(witness.differs) == {v for v in task.variables if values[0][v] != values[1][v]}
        assert pair.differing[0] in witness.differs


def test_each_reading_of_an_offered_world_leaves_what_is_promised_and_no_other_reading_is_possible() -> None:
    checked = 0
    for n in numbers("open"):
        listed, names = fitting(n), PROBLEMS[n].task.variables
        for decider in why(n).deciders if len(listed) <= MAX_MEMBERS else ():
            targets = decider.world.get("constants", {})
            (pattern,) = decider.world["rows"]
            given = {v: int(bit) for v, bit in zip(names, pattern, strict=True) if bit != "?" and v not in targets}
            promised = {reading.row: int(reading.remaining) for reading in decider.readings}
            if decider.complete:
                rows = [observed_row(member, given, targets, names) for member in listed]
                assert promised == {row: rows.count(row) for row in rows}
                assert decider.expected == pytest.approx(sum(k * k for k in promised.values()) / len(listed))
            else:
                for row, number in promised.items():
                    values = dict(zip(names, map(int, row), strict=True))
                    roots = [{r: values[r] for r in member[0]} for member in listed]
                    shown = [observed_row(m, r, targets, names) for m, r in zip(listed, roots, strict=True)]
                    assert shown.count(row) == number
            checked += 1
    assert checked >= 40


@pytest.mark.parametrize("row", ["1010", "1001"])
def test_without_a_world_as_many_fit_as_brute_force_lists(row: str) -> None:
    problem = lamp({"id": "w3", "rows": [row], "units": ["u4"]})
    without = {one.world: int(one.remaining) for one in explain(problem.task, "lamp").without}
    worlds = problem.task.training.worlds
    assert without == {world.id: _num_fitting(problem, [w for w in worlds if w is not world]) for world in worlds}


def _num_fitting(problem: Problem, worlds: list[World]) -> int:
    task = replace(problem.task, training=Panel(problem.task.variables, tuple(worlds)))
    return sum(family.num_members for family in families(task, 4, root_hypotheses(task)))


def test_the_contradiction_is_one() -> None:
    for n in numbers("empty"):
        clash, task = why(n).contradiction, PROBLEMS[n].task
        if clash is None:
            continue
        places = dict(_places(task))
        first, second = places[clash.first], places[clash.second]
        parents = task.disclosure.admissible_parents(clash.variable)
        assert all(first[u] == second[u] for u in parents)
        assert first[clash.variable] != second[clash.variable]


def _places(task: Task) -> Iterator[tuple[str, dict[str, int]]]:
    for world in task.training.worlds:
        for unit, row in zip(world.units, world_rows(world), strict=True):
            yield f"{world.id} {unit}", row


@cache
def decided() -> tuple[tuple[Task, ReplayWhy], ...]:
    """Problems that one SCM fits, of more than the others: few of a draw are decided."""
    problems = small_problems(27, 300, Limits(variables=4, endogenous=2, rows=16))
    reasons = ((problem.task, explain(problem.task, problem.id)) for problem in problems)
    return tuple((task, reason) for task, reason in reasons if reason.state == "decided")


def test_decided_mechanisms_are_those_of_the_only_member_row_by_row() -> None:
    num_rows = 0
    for task, reason in decided():
        (member,) = (one for family in families(task, 4, root_hypotheses(task)) for one in members(family))
        assert reason.model is not None
        model = model_of(task, reason.model)
        assert [entry.name for entry in reason.mechanisms] == list(model.order)
        assert all(replays_exactly(model, [world]) for world in task.training.worlds)
        shown = dict(_places(task))
        for entry in reason.mechanisms:
            parents, bits = next((parents, bits) for name, parents, bits in member[1] if name == entry.name)
            assert entry.parents == parents
            for k, row in enumerate(sorted(entry.rows, key=lambda row: [row.values[u] for u in reversed(parents)])):
                assert (row.first, row.second) == (bits >> k & 1,) * 2
                assert all(shown[place].items() >= row.values.items() for place in row.where)
                assert all(shown[place][entry.name] == row.first for place in row.where)
                num_rows += len(row.where)
    assert num_rows > 20


def test_what_a_decided_mechanism_excludes_is_every_set_without_one_of_its_parents() -> None:
    """By plain comparison of all pairs of rows; sets that rows admit are in no member but make a cycle."""
    num_by_rows, num_cycles = 0, 0
    for task, reason in decided():
        places = dict(_places(task))
        set_in = {world.id: world.intervention.targets for world in task.training.worlds}
        for entry in reason.mechanisms:
            free = {place: row for place, row in places.items() if entry.name not in set_in[place.split(" ")[0]]}
            candidates = task.disclosure.admissible_parents(entry.name)
            by_rows = {
                names
                for size in range(5)
                for names in combinations(sorted(candidates), size)
                if any(
                    all(one[u] == other[u] for u in names) and one[entry.name] != other[entry.name]
                    for one, other in combinations(free.values(), 2)
                )
            }
            assert not any(set(entry.parents) <= set(names) for names in by_rows)
            assert entry.num_excluded is not None
            assert entry.num_excluded >= len(by_rows)
            assert len(entry.excluded) == min(6, entry.num_excluded)
            for exclusion in entry.excluded:
                assert (tuple(sorted(exclusion.parents)) in by_rows) == bool(exclusion.first)
                if exclusion.first:
                    first, second = free[exclusion.first], free[exclusion.second]
                    assert all(first[u] == second[u] for u in exclusion.parents)
                    assert first[entry.name] != second[entry.name]
                    num_by_rows += 1
                else:
                    num_cycles += 1
    assert num_by_rows > 10
    assert num_cycles > 0


def test_the_reason_of_the_lamp_names_the_row_that_is_never_shown() -> None:
    reason = explain(lamp().task, "lamp")
    assert reason.reason_text == (
        "No row shows X3 with X1 = 1, X2 = 0 while X3 is free. Two SCMs fit everything else and disagree there."
    )
    assert [span.text for span in reason.reason if span.marked] == ["X3", "X1 = 1, X2 = 0"]
    assert (reason.open, reason.decided) == (("X3",), ("X4",))
    assert reason.deciders[0].decides


@pytest.mark.parametrize("row", ["1010", "1001"])
def test_adding_the_offered_world_with_either_value_decides_the_lamp(row: str) -> None:
    (offered, *_) = explain(lamp().task, "lamp").deciders
    after = explain(lamp(offered.world | {"rows": [row]}).task, "lamp")
    assert (after.state, after.count.lower) == ("decided", "1")


def test_names_of_variables_do_not_choose_the_pair() -> None:
    """The evidence of the lamp under other names gives the same sentences under these names."""
    names = {"X1": "b", "X2": "d", "X3": "a", "X4": "c"}
    task = lamp().task
    worlds = tuple(
        replace(
            world,
            variables=("a", "b", "c", "d"),
            columns=tuple(world.column(v) for v in ("X3", "X1", "X4", "X2")),
            intervention=Intervention({names[v]: bit for v, bit in world.intervention.constants.items()}),
        )
        for world in task.training.worlds
    )
    renamed = replace(
        task, training=Panel(("a", "b", "c", "d"), worlds), disclosure=HiddenOrder(("a", "b", "c", "d"), ("b", "d"))
    )
    assert explain(renamed, "lamp").reason_text == (
        "No row shows a with b = 1, d = 0 while a is free. Two SCMs fit everything else and disagree there."
    )


# --- Worlds to copy are in the order of the variables in the item's file, whatever that is ----------------------------
ROWS = ({"Tank": 0, "Power": 0, "Pump": 0, "Flow": 0}, {"Tank": 0, "Power": 1, "Pump": 0, "Flow": 0})
ALL_ON = dict.fromkeys(ROWS[0], 1)


def pump_record(columns: tuple[str, ...], *more: dict[str, Any]) -> dict[str, Any]:
    """Return the item with its rows in this order of the variables."""
    rows = ["".join(str(row[name]) for name in columns) for row in (*ROWS, ALL_ON)]
    return {
        "id": "pump",
        "kind": "CIND_A_SCM",
        "variables": list(columns),
        "units": ["u0", "u1", "u2"],
        "disclosure": {"type": "hidden_order", "roots": ["Tank", "Power"]},
        "training": [{"id": "w0", "rows": rows}, *more],
        "sealed": {},
    }


def problem(record: dict[str, Any]) -> Problem:
    return problem_from_record(convert_object(record, ProblemRecord))


def reason(item: Problem) -> ReplayWhy:
    return explain(item.task, item.id, columns=item.columns)


@pytest.mark.parametrize("columns", list(permutations(ROWS[0]))[5::4])
def test_a_world_pasted_with_any_reading_leaves_as_many_scms_as_stated(columns: tuple[str, ...]) -> None:
    decider = reason(problem(pump_record(columns))).deciders[0]
    natural = {tuple(sorted(zip(columns, entry.row, strict=True))) for entry in decider.readings}
    for entry in decider.readings:
        (pattern,) = decider.world["rows"]
        assert all(a in ("?", b) for a, b in zip(pattern, entry.row, strict=True))
        after = reason(problem(pump_record(columns, decider.world | {"rows": [entry.row]})))
        assert after.count.lower == entry.remaining
    alphabetical = reason(problem(pump_record(tuple(sorted(columns))))).deciders[0]
    assert natural == {tuple(sorted(zip(sorted(columns), entry.row, strict=True))) for entry in alphabetical.readings}


def test_the_alphabetical_row_is_another_one_than_the_files() -> None:
    """Without this the test above could pass on items whose rows are alike in every order."""
    columns = ("Tank", "Power", "Pump", "Flow")
    patterns = [
        reason(problem(pump_record(names))).deciders[0].world["rows"] for names in (columns, tuple(sorted(columns)))
    ]
    assert patterns == [["100?"], ["?001"]]


def test_files_keep_their_order_and_what_solvers_see_stays_natural(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    item = problem(pump_record(columns))
    write_pool(Pool("mine", (item,)), tmp_path / "again.jsonl")
    line = json.loads((tmp_path / "again.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert tuple(line["variables"]) == columns
    assert line["training"][0]["rows"] == pump_record(columns)["training"][0]["rows"]
    assert read_pool(tmp_path / "again.jsonl").problems[0] == item
    assert record_from_problem(item).variables == sorted(columns) != file_record(item).variables


def test_terminal_page_and_json_have_the_world_in_the_files_order(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    pool = jsonl(tmp_path / "mine.jsonl", HEADER, pump_record(columns))
    printed = called("show", pool, "pump", "--why").stdout
    assert '"rows": ["100?"]' in printed
    assert "Tank Power Pump Flow" in printed
    world = json.loads(called("show", pool, "pump", "--why", "--json").stdout)["deciders"][0]["world"]
    assert world["rows"] == ["100?"]
    assert called("show", pool, "pump", "--html", tmp_path / "why.html").returncode == 0
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "[&#34;100?&#34;]" in page
    assert "in the order Tank Power Pump Flow" in page


def test_hardened_items_keep_the_files_order(tmp_path: Path) -> None:
    columns = ("Tank", "Power", "Pump", "Flow")
    record = pump_record(columns) | {"sealed": {"gold": {"Pump": "(and Tank Power)", "Flow": "Pump"}}}
    pool, out = jsonl(tmp_path / "mine.jsonl", HEADER, record), tmp_path / "hard.jsonl"
    assert called("harden", pool, "--out", out, "--workers", "1").returncode == 0
    hardened = json.loads(out.read_text(encoding="utf-8").splitlines()[1])
    assert tuple(hardened["variables"]) == columns
    assert hardened["training"][0] == record["training"][0]
    assert len(hardened["training"]) > 1


# --- Why an answer fails: the six cases of the paper's Appendix I with its figures, and the command that shows them ---
CASES_HEADER = {"format": "calibrant-pool", "version": 1, "name": "cases", "metadata": {}}
SHOWN = {
    "case 1, Hidden-order": (14, 32),
    "case 1, Ordered": (0, 16),
    "case 2": (3, 16),
    "case 4": (6, 16),
    "case 5": (3, 8),
    "case 6": (0, 16),
}


def explained(problem: Problem, answer: dict[str, Any]) -> FailureWhy:
    return explain_failure(problem, Evaluator(problem, compiles=False).score_answer(answer), "m")


def answer_of(name: str) -> dict[str, Any]:
    variable, _, text = CASES[name]
    return {"mechanisms": {variable: text}}


@pytest.mark.parametrize("name", CASES)
def test_differing_assignments_of_the_printed_cases(name: str) -> None:
    (compared,) = explained(problem_of(case_record(name)), answer_of(name)).variables
    assert compared.assignments is not None
    assert (len(compared.assignments), compared.num_assignments) == SHOWN[name]
    assert compared.relation == (
        "same"
        if SHOWN[name][0] == 0
        else "other function"
        if compared.gold_parents == compared.answer_parents
        else "other parents"
    )


@pytest.mark.parametrize(
    ("name", "expected"), [("case 2", ["0000", "1100", "1101"]), ("case 5", ["001", "100", "111"])]
)
def test_the_printed_assignments_are_never_shown_where_training_lacks_them(name: str, expected: list[str]) -> None:
    """Case 2: X3 X4 X6 X7; the item's training world has all other assignments, so the answer is train-exact."""
    why = explained(problem_of(case_record(name, expected)), answer_of(name))
    (compared,) = why.variables
    assert compared.assignments is not None
    assert ["".join(map(str, row.values.values())) for row in compared.assignments] == expected
    assert [(row.train, row.heldout) for row in compared.assignments] == [(0, 1)] * len(expected)
    assert not compared.contradicted
    assert why.totals.train_world == 1
    assert why.totals.heldout_world == 0
    assert why.mismatch is not None
    assert (why.mismatch.row, why.mismatch.is_own_fault) == (int(expected[0], 2), True)
    assert "No scored training row has an assignment at which they differ." in why.reason_text


def test_the_first_corner_of_case_2_is_the_printed_one() -> None:
    why = explained(problem_of(case_record("case 2", ["0000", "1100", "1101"])), answer_of("case 2"))
    mismatch = why.mismatch
    assert mismatch is not None
    assert mismatch.values == {"X3": 0, "X4": 0, "X6": 0, "X7": 0}
    assert (mismatch.expected, mismatch.predicted) == (1, 0)


def test_a_shown_assignment_contradicts_and_case_6_is_right_though_long() -> None:
    why = explained(problem_of(case_record("case 4")), answer_of("case 4"))
    assert [c.contradicted for c in why.variables] == [True]
    assert (why.totals.gold_size, why.totals.answer_size) == (9, 3)  # nodes of the two printed formulas
    assert (why.totals.gold_references, why.totals.answer_references) == (3, 2)
    right = explained(problem_of(case_record("case 6")), answer_of("case 6"))
    assert (right.state, right.mismatch, right.totals.heldout_cells) == ("decided", None, 1.0)


REFERENCE = {
    "X1": "(xor X3 X8)",
    "X2": "(xor X3 X8)",
    "X6": "(xor X1 X2)",
    "X7": "(xor X1 X2)",
    "X5": "(iff X4 (xor (and X1 X6) (or X2 X4)))",
}


def test_case_3_has_the_printed_experiment_rates() -> None:
    """Without an intervention X6 and X7 are equal, so the alternative X6 = X7 fits."""
    content = record(("X3", "X4", "X8"), REFERENCE, ["000", "101", "110"], ["001", "010", "111"], "case 3")
    problem = problem_of(content | {"kind": "CIND_A_SCM_ALT_EXP", "reference": REFERENCE})
    claims = [
        {"variable": "X6", "reference": 0, "alternative": 1},
        {"variable": "X5", "reference": 1, "alternative": 0},
    ]
    answer = {
        "alternative": {"mechanisms": {**REFERENCE, "X6": "X7"}},
        "experiment": {"type": "hard_do", "assignments": {"X7": 1}},
        "witness": {"rootAssignment": {"X3": 1, "X4": 1, "X8": 0}, "differences": claims},
    }
    why = explained(problem, answer)
    assert why.target == "reference"
    assert why.open == ("X6",)
    assert why.experiment is not None
    assert (why.experiment.disagreement_rate, why.experiment.cell_difference_rate) == (1.0, 0.375)
    assert (why.experiment.witness_valid, why.experiment.failure) == (True, "")


def test_an_ancestors_fault_is_told_from_the_mechanisms_own() -> None:
    """Y copies X; the answer negates X in the row that training lacks."""
    content = record(("A", "B"), {"X": "(and A B)", "Y": "(not X)"}, ["00", "01", "10", "00"], ["00", "11"] * 2, "item")
    answer = {"mechanisms": {"X": "(and A (not A))", "Y": "(not X)"}}
    mismatch = explained(problem_of(content), answer).mismatch
    assert mismatch is not None
    assert (mismatch.variable, mismatch.is_own_fault) == ("X", True)
    late = content | {"sealed": content["sealed"] | {"latent_order": ["A", "B", "Y", "X"]}}
    mismatch = explained(problem_of(late), answer).mismatch
    assert mismatch is not None
    assert (mismatch.variable, mismatch.is_own_fault, mismatch.inherited) == ("Y", False, ("X",))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_comparisons_agree_with_evaluation_of_every_assignment_and_with_the_replay(data: st.DataObject) -> None:
    problem = data.draw(problems(settings=("Ordered", "Hidden-order", "Block")))
    score = Evaluator(problem, compiles=False).score_answer(
        submission(problem, data.draw(legal_maps(problem.task.disclosure, problem.sealed.latent_order)))
    )
    gold, model = problem.sealed.gold, score.model
    if model is None or gold is None:
        with pytest.raises(ValueError, match=r"."):
            explain_failure(problem, score, "m")
        return
    why = explain_failure(problem, score, "m")
    for compared in why.variables:
        assert compared.assignments is not None
        first, second = gold.mechanisms[compared.name], model.mechanisms[compared.name]
        for row in compared.assignments:
            rest = dict.fromkeys((*first.mentioned, *second.mentioned), 0)
            assert (evaluate(first, rest | row.values), evaluate(second, rest | row.values)) == (row.gold, row.answer)
        assert bool(compared.assignments) == (compared.relation != "same")
        rows = [
            row
            for world in problem.task.training.worlds
            if compared.name not in world.intervention.targets
            for row in world.rows()
        ]
        assert compared.contradicted == any(evaluate(second, row) != row[compared.name] for row in rows)
    cell = first_mismatch(model, problem.sealed.heldout.worlds)
    assert (why.mismatch is None) == (cell is None)
    if cell is not None and why.mismatch is not None:
        assert (why.mismatch.world, why.mismatch.row) == (cell.world, cell.row)
