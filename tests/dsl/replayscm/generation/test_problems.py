"""The sampler of problems and pools, and the bundled pool files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import combinations, product
from pathlib import Path
from random import Random

import pytest

from calibrant.bench.core.registry import bundled_pool, bundled_pools
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.replayscm.disclosure import Blocks, HiddenRoots, Ordered
from calibrant.dsl.replayscm.generation.problems import (
    SETTINGS,
    Evidence,
    cut_blocks,
    disclose_problem,
    rejections,
    remaining_survivors,
    sample_evidence,
    sample_pool,
    sample_problem,
    shortcut_classes,
)
from calibrant.dsl.replayscm.generation.scms import LatentScm, sample_scm
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, STRATA, T1_CLEAN_HARD, Stratum, stratum
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Intervention, World
from tests.bench.pools.sample_suites import BUNDLED_PER_STRATUM, BUNDLED_SEED, write_bundled_pools
from tests.support.replayscm.pools import dev_problems

SEEDS = (0, 1, 2)
CASES = [(s, seed) for s in STRATA for seed in SEEDS]
IDS = [f"{s.name}-{seed}" for s, seed in CASES]
EVERY_PROBLEM = pytest.mark.parametrize(("known", "seed"), CASES, ids=IDS)


@cache
def sampled(known: Stratum, seed: int) -> Problem:
    return sample_problem(known, seed)


def gold_of(problem: Problem) -> Scm:
    assert problem.sealed.gold is not None
    return problem.sealed.gold


def scored_worlds(problem: Problem, variable: str) -> list[World]:
    return [w for w in problem.task.training.worlds if variable not in w.intervention.targets]


# one problem


@EVERY_PROBLEM
def test_gold_replays_its_own_worlds(known: Stratum, seed: int) -> None:
    problem = sampled(known, seed)
    assert len(problem.worlds) == 16
    assert [w.id for w in problem.worlds] == [f"{s}_{i:02d}" for s in ("train", "heldout") for i in range(8)]
    assert replays_exactly(gold_of(problem), problem.worlds)
    assert problem.sealed.gold_size == gold_of(problem).size


@EVERY_PROBLEM
def test_roots_are_nested_over_the_worlds_that_leave_them_alone(known: Stratum, seed: int) -> None:
    """PanelSemantics: one threshold a unit, so a higher level only adds ones."""
    problem = sampled(known, seed)
    levels = problem.sealed.environments
    for root in gold_of(problem).roots:
        free = [world for world in problem.worlds if root not in world.intervention.targets]
        assert levels["train_00"][root] == 0.5
        for one, other in combinations(sorted(free, key=lambda world: levels[world.id][root]), 2):
            below, above = one.column(root), other.column(root)
            assert below & ~above == 0
            if levels[one.id][root] == levels[other.id][root]:
                assert below == above


def short_formulas(names: tuple[str, ...], max_size: int) -> list[str]:
    """Every formula of at most that many nodes, with `not` and operators of two or three arguments, as text."""
    levels: list[list[str]] = [[], list(names)]
    for size in range(2, max_size + 1):
        level = [f"(not {inner})" for inner in levels[size - 1]]
        for arity in (2, 3):
            for shape in product(range(1, size), repeat=arity):
                if sum(shape) == size - 1:
                    for arguments in product(*(levels[part] for part in shape)):
                        level += [f"({name} {' '.join(arguments)})" for name in ("and", "or", "xor", "iff")]
        levels.append(level)
    return [text for level in levels for text in level]


def test_no_shortcut_is_left() -> None:
    """No formula of at most min(5, gold - 1) nodes over the true window fits the rows (paper, B.2.3)."""
    known = stratum("hs_n6_easy_calibration")
    problem = sampled(known, 0)
    order, survivors = problem.sealed.latent_order, 0
    for variable, mechanism in gold_of(problem).mechanisms.items():
        slot = order.index(variable)
        window = order[max(0, slot - known.max_parents) : slot]
        rows = {tuple(r[v] for v in (*window, variable)) for w in scored_worlds(problem, variable) for r in w.rows()}
        patterns = sorted(rows)
        columns = {v: sum(p[i] << k for k, p in enumerate(patterns)) for i, v in enumerate((*window, variable))}
        mask = (1 << len(patterns)) - 1
        shortcuts = short_formulas(window, min(5, mechanism.size - 1))
        survivors += any(parse(t).evaluate(columns.__getitem__, mask) == columns[variable] for t in shortcuts)
    assert survivors <= known.max_survivors


@EVERY_PROBLEM
def test_every_setting_is_legal_for_gold_and_shows_the_same_worlds(known: Stratum, seed: int) -> None:
    problem = sampled(known, seed)
    gold = gold_of(problem)
    for setting in SETTINGS:
        shown = disclose_problem(problem, setting)
        assert shown.setting.lower() == setting
        assert shown.sealed == problem.sealed
        assert shown.task.training == problem.task.training
        assert shown.task.num_heldout == 8
        disclosure = shown.task.disclosure
        if isinstance(disclosure, HiddenRoots):
            assert disclosure.num_roots == 3
            assert shown.task.kind is TaskKind.ROOTS
            disclosure = disclosure.given_roots(gold.roots)
        else:
            assert shown.task.kind is TaskKind.SCM
        assert disclosure.violation(gold.mechanisms) is None


def test_ids_and_labels_of_the_settings() -> None:
    even, odd = sampled(T1_CLEAN_HARD, 2), sampled(T1_CLEAN_HARD, 1)
    assert [disclose_problem(even, setting).id for setting in SETTINGS] == [
        "CAL_t1_clean_hard_2",
        "CAL_t1_clean_hard_2__PARTIAL_ORDER_2BLOCK",
        "CAL_t1_clean_hard_2",
        "CAL_t1_clean_hard_2__ROOT_UNKNOWN",
    ]
    assert disclose_problem(odd, "block").id == "CAL_t1_clean_hard_1__PARTIAL_ORDER_3BLOCK"
    assert disclose_problem(disclose_problem(even, "hidden-roots"), "hidden-order") == even
    assert even.sealed.labels == {
        "stratum": "t1_clean_hard",
        "difficulty": "very_hard_small",
        "seed": "2",
        "latent": "CAL_t1_clean_hard_2",
    }


def test_an_unknown_setting_is_named_together_with_the_known_ones() -> None:
    expected = r"unknown setting 'Blocks'; known: ordered, block, hidden-order, hidden-roots$"
    with pytest.raises(ValueError, match=expected):
        disclose_problem(sampled(T1_CLEAN_HARD, 2), "Blocks")
    with pytest.raises(ValueError, match=expected):
        bundled_pool("Blocks")


def test_a_problem_without_latent_scm_cannot_be_disclosed() -> None:
    problem = sampled(T1_CLEAN_HARD, 2)
    with pytest.raises(ValueError, match="no latent SCM"):
        disclose_problem(replace(problem, sealed=replace(problem.sealed, gold=None)), "ordered")


def test_blocks_are_cut_as_in_the_shared_pools() -> None:
    for index, (block, ordered) in enumerate(zip(dev_problems("block"), dev_problems("ordered"), strict=True)):
        assert isinstance(block.task.disclosure, Blocks)
        assert isinstance(ordered.task.disclosure, Ordered)
        order, roots = ordered.task.disclosure.order, ordered.task.disclosure.roots
        assert cut_blocks(order, roots, 2 + index % 2) == block.task.disclosure


# acceptance


def chain() -> LatentScm:
    """X1, X2, X3 are roots, X4 = nor(X1, X2), X5 = nor(X3, X4), X6 = nor(X4, X5)."""
    texts = {"X4": "(not (or X1 X2))", "X5": "(not (or X3 X4))", "X6": "(not (or X4 X5))"}
    model = scm(("X1", "X2", "X3"), {v: parse(text) for v, text in texts.items()})
    return LatentScm(model, ("X3", "X1", "X2", "X4", "X5", "X6"))


def world(rows: str, *, intervention: Intervention | None = None, index: int = 0) -> World:
    """Rows as six characters each, X1 to X6."""
    lines = rows.split()
    columns = tuple(sum(int(line[i]) << r for r, line in enumerate(lines)) for i in range(6))
    names = tuple(f"X{i + 1}" for i in range(6))
    units = tuple(f"u{r:02d}" for r in range(len(lines)))
    return World(f"train_{index:02d}", intervention or Intervention(), names, units, columns)


def reasons(*training: World, known: Stratum = NAMED_STRATA[0]) -> list[str]:
    return list(rejections(known, chain(), Evidence(training, (), {})))


EVERY_CONTEXT = "000100 001100 010010 011001 100010 101001 110010 111001"  # what the chain gives for all root values


def test_shortcuts_that_one_world_refutes_and_those_that_it_does_not() -> None:
    latent, known = chain(), NAMED_STRATA[0]
    classes = shortcut_classes(known, latent)
    windows = latent.windows(2)
    assert windows == {"X4": ("X1", "X2"), "X5": ("X3", "X4"), "X6": ("X4", "X5")}  # X3 is a parent, X2 is nearer
    # every function of two variables with a formula of three nodes: both, their negations, 0, 1, and, or, xor, iff
    everything = {0b0000, 0b1111, 0b1010, 0b0101, 0b1100, 0b0011, 0b1000, 0b1110, 0b0110, 0b1001}
    assert {v: set(tables) for v, tables in classes.items()} == dict.fromkeys(windows, everything)
    only = world("100000 010000", intervention=Intervention({"X5": 0, "X6": 0}))
    left = remaining_survivors(only, classes, windows)
    assert set(left["X4"]) == {t for t in everything if t >> 1 & 1 == 0 and t >> 2 & 1 == 0} == {0b0000, 0b1000, 0b1001}
    assert left["X5"] == classes["X5"]
    assert left["X6"] == classes["X6"]


def test_reasons_for_rejection() -> None:
    calm = world("110010 100010 010010")
    assert reasons(calm) == [
        "shortcuts survive for X4, X5, X6",
        "X4 does not vary over its scored training rows",
        "X5 does not vary over its scored training rows",
        "X6 does not vary over its scored training rows",
        "no intervention shifts a count of the world without intervention",
    ]


def test_a_shift_needs_another_count() -> None:
    same = world(EVERY_CONTEXT, intervention=Intervention(assigned=("X1",)), index=1)
    other = world("100010 101001 110010 111001", intervention=Intervention({"X1": 1}), index=1)
    shift = "no intervention shifts a count of the world without intervention"
    assert shift in reasons(world(EVERY_CONTEXT), same)
    assert shift not in reasons(world(EVERY_CONTEXT), other)


def test_exposure_of_the_stratum_that_asks_for_it() -> None:
    rng = Random(1)
    latent = sample_scm(T1_CLEAN_HARD, rng)
    evidence = sample_evidence(T1_CLEAN_HARD, latent, rng)
    variable = latent.model.endogenous[0]
    clamped = tuple(replace(w, intervention=Intervention(assigned=(variable,))) for w in evidence.training)
    found = list(rejections(T1_CLEAN_HARD, latent, replace(evidence, training=clamped, heldout=clamped)))
    assert "0 training worlds are hard_constant, fewer than 1" in found
    assert f"{variable} is scored in 0 of 8 worlds, fewer than 3" in found
    assert f"{variable} is scored in 0 of 8 worlds, fewer than 2" in found
    clamped = tuple(replace(w, intervention=Intervention({variable: 0})) for w in evidence.training)
    found = list(rejections(T1_CLEAN_HARD, latent, replace(evidence, training=clamped)))
    assert "0 training worlds are hard_assigned, fewer than 4" in found


# pools and determinism


def test_a_problem_depends_on_its_stratum_and_seed_only() -> None:
    pool = sample_pool(NAMED_STRATA[:2], 2, 4, "hidden-order")
    assert [p.id for p in pool.problems] == [
        "CAL_hs_n6_easy_calibration_4000000",
        "CAL_hs_n6_easy_calibration_4000001",
        "CAL_hs_n7_anchor_plus_4000000",
        "CAL_hs_n7_anchor_plus_4000001",
    ]
    for problem in reversed(pool.problems):
        assert sample_problem(stratum(problem.stratum), int(problem.sealed.labels["seed"])) == problem
    assert len({gold_of(p).signature for p in pool.problems}) == 4


# the bundled files


def test_the_bundled_pools_are_what_their_seed_gives(tmp_path: Path) -> None:
    write_bundled_pools(tmp_path)
    for path in bundled_pools():
        assert path.read_bytes() == (tmp_path / path.name).read_bytes(), path.name


def test_the_bundled_pools_are_small_and_show_the_same_problems() -> None:
    assert [path.name for path in bundled_pools()] == [
        "sample_ordered.jsonl",
        "sample_block.jsonl",
        "sample_hidden_order.jsonl",
        "sample_hidden_roots.jsonl",
    ]
    assert sum(path.stat().st_size for path in bundled_pools()) < 1_000_000
    pools = [read_pool(path) for path in bundled_pools()]
    assert {pool.metadata["seed"] for pool in pools} == {BUNDLED_SEED}
    for problems in zip(*(pool.problems for pool in pools), strict=True):
        assert {problem.setting.lower() for problem in problems} == set(SETTINGS)
        assert all(problem.sealed == problems[0].sealed for problem in problems)
    expected = [s.name for s in NAMED_STRATA for _ in range(BUNDLED_PER_STRATUM)]
    assert [problem.stratum for problem in pools[0].problems] == expected
