"""Separations of SCMs and splits of version spaces against enumeration; Alternative-SCM items."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calibrant.audits.replayscm.alternative_items import KnownPair, alternative_item, known_pair
from calibrant.audits.replayscm.ambiguity import (
    Truths,
    best_split,
    best_split_for,
    candidate_worlds,
    expected_remaining,
    removed_share,
)
from calibrant.audits.replayscm.bounded import latent_scm
from calibrant.audits.replayscm.ceiling import distinct_contexts, simulate
from calibrant.audits.replayscm.findings import PairAudit
from calibrant.audits.replayscm.generation.generate import generate
from calibrant.dsl.errors import CycleError
from calibrant.dsl.formulas.table import permute
from calibrant.dsl.formulas.text import STANDARD, parse, render
from calibrant.dsl.replayscm.disclosure import HiddenOrder
from calibrant.dsl.replayscm.evaluator import TablePrograms
from calibrant.dsl.replayscm.generation.problems import disclose_problem
from calibrant.dsl.replayscm.generation.strata import STRATA, Stratum
from calibrant.dsl.replayscm.item import Pool, Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.score import Evaluator, Score
from calibrant.dsl.replayscm.world import Intervention, Panel, World, pack_rows
from calibrant.dsl.text import natural_key
from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
from calibrant.solvers.replayscm.alternative import AlternativeAnswer, find_alternative
from calibrant.solvers.replayscm.conditioned_space import ConditionedSpace, Members, ParentSets
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import examples
from tests.support.replayscm.brute_force import Member, all_members, assignments, does, observed, replay
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import SETTINGS, Shape, gold_problem, normal_form
from tests.support.replayscm.strategies import legal_maps, scms
from tests.support.replayscm.written import written_problem, written_scm

# --- Separation by up to three targets, and splits of version spaces, against enumeration row by row ------------------
Draw = st.DrawFn

# --- two SCMs ---------------------------------------------------------------------------------------------------------


@st.composite
def pairs(draw: Draw) -> tuple[Scm, Scm]:
    """Two SCMs over the same roots; often one mechanism apart, so that little separates them."""
    one = draw(scms(max_roots=2, max_endogenous=3))
    other = draw(legal_maps(HiddenOrder(one.variables, one.roots), one.variables))
    if draw(st.booleans()):
        keep = one.order[: draw(st.integers(0, len(one.order)))]
        with suppress(CycleError):
            return one, scm(one.roots, {**other, **{v: one.mechanisms[v] for v in keep}})
    return one, scm(one.roots, other)


def differing(
    one: Scm, other: Scm, targets: tuple[str, ...]
) -> Iterator[tuple[dict[str, int], dict[str, int], list[str]]]:
    """Every assignment of the targets and of the other roots, with the variables on which the two disagree there."""
    free = tuple(root for root in one.roots if root not in targets)
    for values in assignments(targets):
        for roots in assignments(free):
            rows = [replay(model, Intervention(values), roots.__getitem__) for model in (one, other)]
            yield values, roots, [v for v in one.endogenous if rows[0][v] != rows[1][v]]


@settings(max_examples=examples(60), deadline=None)
@given(pairs())
def test_separations_equal_enumeration(pair: tuple[Scm, Scm]) -> None:
    audit = PairAudit(*pair)
    names = sorted(pair[0].variables, key=natural_key)
    expected = {}
    for number in range(4):
        for targets in combinations(names, number):
            rows = list(differing(*pair, targets))
            by_values = Counter(tuple(values.values()) for values, _, variables in rows if variables)
            contexts = len(rows) >> len(targets)
            share = sum(by_values.values()) / len(rows)
            best = max(by_values.values(), default=0) / contexts
            if share:
                expected[targets] = share, best
            separation = next(audit.separations([targets]))
            assert (separation.disagreement_rate, separation.constants_rate) == (share, best)
            assert by_values[tuple(separation.constants.values())] / contexts == best
    listed = audit.any_targets
    assert {s.targets: (s.disagreement_rate, s.constants_rate) for s in listed} == expected
    keys = [(len(s.targets), -s.disagreement_rate) for s in listed]
    assert keys == sorted(keys)
    if expected:
        assert audit.best is not None
        assert audit.best.disagreement_rate == max(share for share, _ in expected.values())
    else:
        assert audit.best is None


@settings(max_examples=examples(60), deadline=None)
@given(pairs())
def test_witnesses_show_a_difference(pair: tuple[Scm, Scm]) -> None:
    for separation in PairAudit(*pair).any_targets:
        witness = separation.witness
        assert witness is not None
        values = witness["assignments"]
        roots = witness["rootAssignment"]
        assert values.keys() == set(separation.targets)
        rows = [replay(model, Intervention(values), roots.__getitem__) for model in pair]
        shown = {d["variable"]: (d["reference"], d["alternative"]) for d in witness["differences"]}
        assert shown == {v: (rows[0][v], rows[1][v]) for v in pair[0].endogenous if rows[0][v] != rows[1][v]}
        assert shown


@settings(max_examples=examples(60), deadline=None)
@given(pairs())
def test_single_variable_interventions_are_listed_best_first(pair: tuple[Scm, Scm]) -> None:
    audit = PairAudit(*pair)
    expected = {}
    for variable, value in product(pair[0].variables, (0, 1)):
        found = [v for values, _, v in differing(*pair, (variable,)) if values == {variable: value}]
        if any(found):
            expected[variable, value] = sum(map(bool, found)) / len(found)
    assert {(s.experiment.variable, s.experiment.value): s.disagreement_rate for s in audit.single} == expected
    rates = [(s.disagreement_rate, s.cell_rate) for s in audit.single]
    assert rates == sorted(rates, reverse=True)
    assert (audit.witness is not None) == bool(expected)


def test_a_pair_that_only_three_targets_separate() -> None:
    """B to H copy A; the two differ where B, C, D are 1 and F, G, H are 0: three clamps from all equal."""
    copies = dict.fromkeys("BCDFGH", "(not (not A))")
    one = written_scm("A", **copies, Z="B")
    other = written_scm("A", **copies, Z="(xor B (and B C D (not F) (not G) (not H)))")
    audit = PairAudit(one, other)
    assert [(s.targets, s.constants, s.disagreement_rate, s.constants_rate) for s in audit.any_targets] == [
        (("B", "C", "D"), {"B": 1, "C": 1, "D": 1}, 1 / 16, 1 / 2),
        (("F", "G", "H"), {"F": 0, "G": 0, "H": 0}, 1 / 16, 1 / 2),
    ]
    assert audit.single == ()
    assert audit.witness is None
    assert PairAudit(one, other, max_targets=2).best is None


def test_models_over_other_roots_are_refused() -> None:
    with pytest.raises(ValueError, match="same roots"):
        PairAudit(written_scm("A", B="(not A)"), written_scm("B", A="(not B)")).pair.menu()


# --- version spaces ---------------------------------------------------------------------------------------------------

SHAPES = (Shape(), Shape(roots=1, endogenous=3, units=5, training=4))


def spaces() -> Iterator[tuple[Problem, VersionSpace, list[Member]]]:
    for shape in SHAPES:
        for seed in range(12):
            problem = gold_problem(seed, SETTINGS[seed % 3], shape)
            yield problem, VersionSpace(problem.task, ModelClass(3)), all_members(problem.task, 3)


def hidden_roots_spaces() -> Iterator[tuple[Problem, VersionSpace, list[Member]]]:
    for seed in range(12):
        problem = gold_problem(seed, "Hidden-roots", SHAPES[seed % 2])
        space = VersionSpace(problem.task, ModelClass(3, nested_roots=False))
        yield problem, space, all_members(problem.task, 3)


def as_scm(member: Member) -> Scm | None:
    """None for a member with a constant mechanism, which would have to mention something."""
    if not all(parents for _, parents, _ in member[1]):
        return None
    return scm(member[0], {v: normal_form(parents, bits) for v, parents, bits in member[1]})


def test_the_expected_share_left_equals_enumeration() -> None:
    several = 0
    for problem, space, members in spaces():
        for world in candidate_worlds(problem.task, Random(problem.id), 3):
            counts = Counter(does(member, [world]) for member in members)
            squares = Fraction(sum(n * n for n in counts.values()), len(members) ** 2)
            left = expected_remaining(space, world, Random(0), max_counts=100_000)
            assert left.is_exact
            assert (left.lower, left.upper, left.outcomes) == (squares, squares, len(counts))
            several += len(counts) > 3
    assert several >= 10


def test_bounds_hold_and_the_estimate_has_its_expectation_when_the_budget_is_short() -> None:
    cut = 0
    for problem, space, members in spaces():
        (world,) = candidate_worlds(problem.task, Random(problem.id), 1)
        counts = Counter(does(member, [world]) for member in members)
        squares = Fraction(sum(n * n for n in counts.values()), len(members) ** 2)
        left = expected_remaining(space, world, Random(0), max_counts=3, num_draws=5)
        assert left.lower <= squares <= left.upper
        cut += not left.is_exact
    assert cut >= 8


def as_drawn(space: VersionSpace, models: Sequence[Scm]) -> Members:
    """SCMs as if they had been drawn: their local functions over the variables by column."""
    imagined = ConditionedSpace(ParentSets(space, None), models[0].roots)
    order, masks, tables = [], [], []
    for model in models:
        order.append([space.index[v] for v in model.order])
        functions = [model.local_functions[v] for v in model.order]
        masks.append([sum(1 << space.index[parent] for parent in function.parents) for function in functions])
        places = [np.argsort([space.index[parent] for parent in function.parents]).tolist() for function in functions]
        tables.append([permute(f.table, place).bits for f, place in zip(functions, places, strict=True)])
    return Members(imagined, TablePrograms(np.array(order), np.array(masks), np.array(tables, np.uint64)))


def test_over_all_truths_the_estimate_is_the_exact_share() -> None:
    compared = 0
    for problem, space, members in spaces():
        models = [as_scm(member) for member in members]
        complete = [model for model in models if model is not None]
        if len(complete) < len(members):
            continue
        (world,) = candidate_worlds(problem.task, Random(problem.id), 1)
        counts = Counter(does(member, [world]) for member in members)
        ((mean, error),) = Truths(as_drawn(space, complete)).remaining([world])
        assert mean == pytest.approx(sum(n * n for n in counts.values()) / len(members) ** 2)
        assert error is not None
        compared += len(counts) > 1
    assert compared >= 4


@pytest.mark.parametrize("hidden", [False, True])
def test_for_a_known_truth_the_best_world_is_found_and_its_share_exact(hidden: bool) -> None:
    for problem, space, members in hidden_roots_spaces() if hidden else spaces():
        gold = latent_scm(problem)
        candidates = list(candidate_worlds(problem.task, Random(problem.id), 6, roots=gold.roots))
        removed = []
        for world in candidates:
            rows = [replay(gold, world.intervention, row.__getitem__) for row in world.rows()]
            columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in world.variables)
            shown = replace(world, columns=columns)
            removed.append(Fraction(sum(does(one, [shown]) != observed([shown]) for one in members), len(members)))
        world, share = best_split_for(space, gold, candidates)
        assert share == max(removed) == removed_share(space, world)
        assert world.id == candidates[removed.index(max(removed))].id


def test_a_world_that_shows_something_beats_one_that_shows_nothing() -> None:
    """A training world splits nothing; with enough draws the other one is seen to."""
    find_separation = 0
    for problem, space, members in spaces():
        (useful,) = candidate_worlds(problem.task, Random(problem.id), 1)
        useless = problem.task.training.worlds[0]
        if len({does(member, [useful]) for member in members}) > 1:
            chosen = best_split(space, [useless, useful], Random(1), num_draws=64)
            assert chosen.world == useful
            assert best_split(space, [useless], Random(1)).remaining.lower == 1
            find_separation += 1
    assert find_separation >= 10


def test_candidates_are_worlds_of_the_kind_that_was_asked_for() -> None:
    problem = gold_problem(1, shape=Shape(roots=2, endogenous=3))
    modes: Counter[str] = Counter()
    roots = latent_scm(problem).roots
    for world in candidate_worlds(problem.task, Random(0), 60, max_targets=2):
        targets = world.intervention.targets
        assert 1 <= len(targets) <= 2
        assert world.num_rows == 4
        free = [root for root in roots if root not in targets]
        assert len({tuple(row[root] for root in free) for row in world.rows()}) == 2 ** len(free)
        for target, bit in world.intervention.constants.items():
            assert world.column(target) == (0b1111 if bit else 0)
        modes[world.intervention.mode] += 1
    assert set(modes) == {"hard_constant", "hard_assigned"}
    assert {w.num_rows for w in candidate_worlds(problem.task, Random(0), 5, contexts_per_world=3)} == {3}


def test_hidden_roots_are_refused() -> None:
    problem = gold_problem(3, "Hidden-roots")
    space = VersionSpace(problem.task, ModelClass(2))
    with pytest.raises(ValueError, match="hidden"):
        next(candidate_worlds(problem.task, Random(0), 1))
    for call in (expected_remaining, lambda s, w, r: best_split(s, [w], r)):
        with pytest.raises(ValueError, match="known roots"):
            call(space, problem.task.training.worlds[0], Random(0))
    with pytest.raises(ValueError, match="no candidate"):
        best_split(VersionSpace(gold_problem(0).task, ModelClass(2)), [], Random(0))


def test_rows_with_one_context_are_one() -> None:
    """A = 0 twice, A = 1, do(B = 0) with A = 0 twice, do(C = 0) with A = 0; the last row computes nothing."""
    variables = ("A", "B", "C")
    worlds = [
        World("w0", Intervention(), variables, ("u0", "u1", "u2"), (0b010, 0b101, 0b110)),
        World("w1", Intervention({"B": 0}), variables, ("u0", "u1"), (0b00, 0b00, 0b01)),
        World("w2", Intervention({"C": 0}), variables, ("u0",), (0, 1, 0)),
        World("w3", Intervention({"B": 0, "C": 1}), variables, ("u0",), (0, 0, 1)),
    ]
    found = distinct_contexts(pack_rows(worlds, variables), 0b001, 3)
    contexts = [(targets, word & 0b001) for word, targets in zip(*map(np.ndarray.tolist, found), strict=True)]
    assert contexts == [(0b000, 0), (0b000, 1), (0b010, 0), (0b100, 0)]


def test_simulated_worlds_equal_the_oracle() -> None:
    for problem, _, _ in spaces():
        gold = latent_scm(problem)
        for world in candidate_worlds(problem.task, Random(problem.id), 4):
            shown = simulate(gold, world)
            assert list(shown.rows()) == [replay(gold, world.intervention, row.__getitem__) for row in world.rows()]


# --- Alternative-SCM items: both members fit, they differ, an experiment separates them, and the protocol solves
# them
BLOCK_SETTINGS = ("ordered", "block", "hidden-order")
CASES = [(s, setting, 0) for s in STRATA for setting in BLOCK_SETTINGS]
EVERY_ITEM = pytest.mark.parametrize(
    ("known", "setting", "seed"), CASES, ids=[f"{s.name}-{setting}-{seed}" for s, setting, seed in CASES]
)


@cache
def source(known: Stratum, setting: str, seed: int) -> Problem:
    return disclose_problem(generate(known, seed).problem, setting)


@cache
def pair(known: Stratum, setting: str, seed: int) -> KnownPair:
    found = known_pair(source(known, setting, seed), seed)
    assert found is not None
    return found


def submitted(answer: AlternativeAnswer) -> dict[str, object]:
    return {
        "alternative": {"mechanisms": {v: render(mechanism) for v, mechanism in answer.model.mechanisms.items()}},
        "experiment": answer.separation.experiment.to_dict(),
        "witness": dict(answer.witness),
    }


def assert_joint_and_best(score: Score) -> None:
    assert score.alternative is not None
    assert (score.failure, score.correct, score.alternative.optimality) == (None, True, 1.0)


@EVERY_ITEM
def test_gold_is_one_of_two_members_that_differ(known: Stratum, setting: str, seed: int) -> None:
    found, problem = pair(known, setting, seed), source(known, setting, seed)
    gold = problem.sealed.gold
    assert gold is not None
    assert {"gold": found.reference, "alternative": found.counterpart}[found.reference_role] is gold
    assert any(found.reference.local_functions[v] != found.counterpart.local_functions[v] for v in gold.endogenous)
    for member in (found.reference, found.counterpart):
        assert replays_exactly(member, problem.task.training.worlds)
        assert problem.task.disclosure.violation(member.mechanisms) is None


@EVERY_ITEM
def test_the_known_answer_and_the_protocols_answer_succeed_jointly(known: Stratum, setting: str, seed: int) -> None:
    found = pair(known, setting, seed)
    evaluator = Evaluator(found.problem)
    assert_joint_and_best(evaluator.score_answer(found.answer))
    answer = find_alternative(found.problem.task)
    assert isinstance(answer, Found)
    assert_joint_and_best(evaluator.score_answer(submitted(answer.value)))


@EVERY_ITEM
def test_an_item_is_its_source_with_a_reference(known: Stratum, setting: str, seed: int) -> None:
    problem = source(known, setting, seed)
    item = alternative_item(problem, seed)
    assert item == pair(known, setting, seed).problem
    assert item is not None
    assert item.id == f"{problem.id}__ALT_EXP"
    assert item.setting == f"Alt-{problem.setting}"
    assert replace(item.task, kind=TaskKind.SCM, reference=None) == problem.task
    assert replace(item.sealed, labels=problem.sealed.labels) == problem.sealed
    assert_joint_and_best(Evaluator(item).score_answer(json.loads(item.sealed.labels["known_answer"])))


def test_both_roles_occur_and_the_seed_decides() -> None:
    roles = Counter(pair(*case).reference_role for case in CASES)
    assert roles.keys() == {"gold", "alternative"}
    assert min(roles.values()) > len(CASES) / 4
    problem = source(STRATA[4], "ordered", 0)
    made = [known_pair(problem, seed) for seed in range(12)]
    assert made == [known_pair(problem, seed) for seed in range(12)]
    assert len({found.reference_role for found in made if found}) == 2
    assert len({str(found.answer) for found in made if found}) > 4


def test_items_of_the_shared_pool_survive_their_file(tmp_path: Path) -> None:
    problems = dev_problems("ordered")[::9]
    items = tuple(item for item in (alternative_item(problem, 1) for problem in problems) if item)
    assert len(items) == len(problems)
    write_pool(Pool("alternatives", items), tmp_path / "items.jsonl")
    assert read_pool(tmp_path / "items.jsonl").problems == items


def determined() -> Problem:
    """X4 = xor(X1, X2, X3), shown for all values of the roots: no second SCM fits."""
    names = ("X1", "X2", "X3", "X4")
    columns = (0b10101010, 0b11001100, 0b11110000, 0b10010110)
    world = World("train_00", Intervention(), names, tuple(f"u{i:02d}" for i in range(8)), columns)
    gold = scm(("X1", "X2", "X3"), {"X4": parse("(xor X1 X2 X3)")})
    task = Task(TaskKind.SCM, HiddenOrder(names, names[:3]), STANDARD, Panel(names, (world,)), True, 0)
    return Problem("determined", task, Sealed(gold, gold.size, Panel(names, ()), names))


def test_no_item_where_gold_is_the_only_member() -> None:
    assert alternative_item(determined(), 0) is None


def test_problems_that_can_have_no_pair_are_refused() -> None:
    problem = determined()
    item = pair(STRATA[1], "ordered", 0).problem
    hidden = disclose_problem(generate(STRATA[1], 0).problem, "hidden-roots")
    for wrong in (replace(problem, sealed=replace(problem.sealed, gold=None)), item, hidden):
        with pytest.raises(ValueError, match="has no gold SCM, hides its roots or has a reference"):
            known_pair(wrong, 0)


def test_none_is_claimed_only_where_no_other_member_fits() -> None:
    """One SCM of one-parent mechanisms fits, D differs from the reference's only at A, B, C = 1, 0, 1.

    No intervention on a single variable leads there, so it is no answer; but it is a second SCM that fits.
    """
    reference = written_scm("A", B="A", C="B", D="(and A (or B (not C)))")
    interventions = [Intervention({v: bit}) for v in "ABCD" for bit in (0, 1)]
    worlds = [
        World(f"train_{i:02d}", do, reference.variables, ("u0", "u1"), columns_of(reference, do))
        for i, do in enumerate([Intervention(), *interventions])
    ]
    disclosure = HiddenOrder(reference.variables, reference.roots)
    problem = written_problem(disclosure, reference, worlds, kind=TaskKind.ALTERNATIVE, reference=reference)
    assert VersionSpace(problem.task, ModelClass(1)).count == 1
    assert isinstance(find_alternative(problem.task, max_parents=1), OutOfBudget)
    twin = written_scm("A", B="A", C="B", D="A")
    problem = written_problem(disclosure, twin, worlds, kind=TaskKind.ALTERNATIVE, reference=twin)
    assert isinstance(find_alternative(problem.task, max_parents=1), Impossible)


def columns_of(model: Scm, intervention: Intervention) -> tuple[int, ...]:
    """Return packed columns of two units, A = 0 and A = 1."""
    rows = [replay(model, intervention, {"A": a}.__getitem__) for a in (0, 1)]
    return tuple(sum(row[v] << unit for unit, row in enumerate(rows)) for v in model.variables)
