"""Generated instances of ten, 20 and 40 variables: filters, audits, files, and the same bytes from a seed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from functools import cache
from itertools import combinations, pairwise, product
from math import comb, prod
from pathlib import Path

import pytest

from calibrant.audits.replayscm.bounded import LOCAL, BoundedAudit
from calibrant.audits.replayscm.generation.generate import Generated, generate
from calibrant.audits.replayscm.generation.published import PLANS, plan_for
from calibrant.dsl.replayscm.disclosure import HiddenRoots
from calibrant.dsl.replayscm.generation.problems import SETTINGS, sample_problem
from calibrant.dsl.replayscm.generation.scms import shortest_sizes
from calibrant.dsl.replayscm.generation.strata import (
    LARGE_STRATA,
    NAMED_STRATA,
    STRATA,
    T1_CLEAN_HARD,
    Stratum,
    stratum,
)
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import native_lines, read_pool, write_pool
from calibrant.dsl.replayscm.prompt import prompt
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Panel, World
from tests.support.replayscm.brute_force import is_acyclic
from tests.support.replayscm.pools import generate_pool

# --- Generated instances: filters hold, audits say what is there, and a seed gives the same bytes everywhere ----------
SEEDS = (0, 1)
CASES = [(s, seed) for s in STRATA for seed in SEEDS]
EVERY_INSTANCE = pytest.mark.parametrize(("known", "seed"), CASES, ids=[f"{s.name}-{seed}" for s, seed in CASES])
EASY, DENSE = stratum("hs_n6_easy_calibration"), stratum("vhs_n8_dense")


@cache
def generated(known: Stratum, seed: int) -> Generated:
    return generate(known, seed)


def gold_of(problem: Problem) -> Scm:
    assert problem.sealed.gold is not None
    return problem.sealed.gold


def training_of(problem: Problem) -> tuple[World, ...]:
    return problem.task.training.worlds


def with_training(problem: Problem, worlds: tuple[World, ...]) -> Problem:
    return replace(problem, task=replace(problem.task, training=Panel(problem.task.variables, worlds)))


# one instance


@EVERY_INSTANCE
def test_gold_replays_eight_worlds_and_those_that_were_added(known: Stratum, seed: int) -> None:
    problem = generated(known, seed).problem
    names = [world.id for world in training_of(problem)]
    added = len(names) - 8
    assert 0 <= added <= 3
    assert names == [f"train_{i:02d}" for i in range(8)] + [f"train_aug_{i + 1:02d}" for i in range(added)]
    assert [world.id for world in problem.sealed.heldout.worlds] == [f"heldout_{i:02d}" for i in range(8)]
    assert replays_exactly(gold_of(problem), problem.worlds)
    assert {world.num_rows for world in problem.worlds} == {known.num_units}
    assert len({world.intervention.signature for world in problem.worlds}) == len(problem.worlds)


@EVERY_INSTANCE
def test_every_world_obeys_the_rules_of_simulation(known: Stratum, seed: int) -> None:
    """PanelSemantics holds in added worlds as well: over worlds that leave a root alone its sets of ones are nested."""
    problem = generated(known, seed).problem
    rows = (1 << known.num_units) - 1
    for world in problem.worlds:
        assert all(world.column(target) == rows * bit for target, bit in world.intervention.constants.items())
        assert all(world.column(target) not in (0, rows) for target in world.intervention.assigned)
    levels = problem.sealed.environments
    for root in gold_of(problem).roots:
        free = [world for world in problem.worlds if root not in world.intervention.targets]
        for one, other in combinations(sorted(free, key=lambda world: levels[world.id][root]), 2):
            assert one.column(root) & ~other.column(root) == 0


@EVERY_INSTANCE
def test_shortcuts_are_gone_and_as_the_survivors_say(known: Stratum, seed: int) -> None:
    """Counted anew, by the audit that searches formulas, with the seed worlds and with all of the first eight."""
    made = generated(known, seed)
    training = training_of(made.problem)
    found = []
    for number in (3, 8, len(training)):
        shortcuts = BoundedAudit(with_training(made.problem, training[:number])).shortcuts(floor=known.shortcut_floor)
        found.append(sum(shortcut.size is not None for shortcut in shortcuts))
    assert made.audit.variables_with_shortcut[0] == found[0]
    assert made.audit.variables_with_shortcut[-1] == found[1]
    assert found[2] <= found[1] <= known.max_survivors


@EVERY_INSTANCE
def test_added_worlds_rule_out_local_alternatives(known: Stratum, seed: int) -> None:
    """The numbers before the first and after each agree with the bounded search on the training worlds so far."""
    made = generated(known, seed)
    training = training_of(made.problem)
    left = made.audit.alternatives
    assert len(left) == len(training) - 7
    for number, expected in enumerate(left, 8):
        findings = BoundedAudit(with_training(made.problem, training[:number])).local_alternatives(LOCAL)
        assert sum(finding.found for finding in findings) == expected
    assert all(after <= before / 2 for before, after in pairwise(left))
    assert sum(finding.found for finding in made.audit.final.local) == left[-1]


@pytest.mark.parametrize("seed", range(6))
def test_filters_of_the_strict_stratum_hold_with_added_worlds(seed: int) -> None:
    """As the records of the official sample say it; the paper's Table B.2 has the ranges."""
    problem = generated(T1_CLEAN_HARD, seed).problem
    training, heldout = training_of(problem), problem.sealed.heldout.worlds
    modes = [world.intervention.mode for world in training[:8]]
    assert modes.count("hard_assigned") >= 4
    assert modes.count("hard_constant") >= 1
    for variable in gold_of(problem).endogenous:
        hit = sum(variable in world.intervention.targets for world in training)
        assert hit <= 5
        assert len(training) - hit >= 3
        assert sum(variable not in world.intervention.targets for world in heldout) >= 2
    for world in heldout:
        own = world.intervention.targets
        others = [other.intervention.targets for other in training]
        novelty = 1 - max(len(own & other) / len(own | other) for other in others)
        assert 0.25 <= novelty <= 0.72


@EVERY_INSTANCE
def test_every_world_has_a_reason(known: Stratum, seed: int) -> None:
    made = generated(known, seed)
    stages = made.audit.stages
    training = training_of(made.problem)
    endogenous = set(gold_of(made.problem).endogenous)
    assert list(stages) == [world.id for world in training]
    assert [stages[world.id] for world in training[:3]] == ["none", "focus", "focus"]
    assert all(world.intervention.targets & endogenous for world in training[1:3])
    steps = list(stages.values()).count("survivors")
    assert len(made.audit.survivors) == steps + 2
    assert (steps == 0) <= (made.audit.survivors[0] == 0)
    assert all(stages[world.id] == "disambiguation" for world in training[8:])


# audits


def functions_by_parents(problem: Problem, variable: str, most: int) -> dict[frozenset[str], int]:
    """How many functions that depend on all of a parent set agree with the rows, by inclusion and exclusion."""
    agreeing: dict[frozenset[str], int] = {}
    for number in range(most + 1):
        for parents in combinations([v for v in problem.task.variables if v != variable], number):
            rows = {
                (tuple(row[u] for u in parents), row[variable])
                for world in training_of(problem)
                if variable not in world.intervention.targets
                for row in world.rows()
            }
            unseen = 2**number - len({pattern for pattern, _ in rows})
            agreeing[frozenset(parents)] = 2**unseen if 2**number - unseen == len(rows) else 0
    exactly: dict[frozenset[str], int] = {}
    for among in sorted(agreeing, key=len):
        exactly[among] = agreeing[among] - sum(exactly[other] for other in exactly if other < among)
    return exactly


@pytest.mark.parametrize("seed", [0, 3])
def test_exact_counts_are_sums_over_all_structures(seed: int) -> None:
    """Three endogenous variables: every choice of three parent sets is looked at."""
    made = generated(EASY, seed)
    endogenous = gold_of(made.problem).endogenous
    options = [functions_by_parents(made.problem, v, 3) for v in endogenous]
    total = 0
    for choice in product(*([(p, n) for p, n in option.items() if n] for option in options)):
        if is_acyclic({v: tuple(p) for v, (p, _) in zip(endogenous, choice, strict=True)}):
            total += prod(n for _, n in choice)
    assert made.audit.final.counts[3] == total > 0


@EVERY_INSTANCE
def test_counts_grow_with_the_class_and_shrink_with_evidence(known: Stratum, seed: int) -> None:
    audit = generated(known, seed).audit
    most_parents = max(len(m.variables) for m in gold_of(generated(known, seed).problem).mechanisms.values())
    for evidence in (audit.base, audit.final):
        assert evidence.counts[3] <= evidence.counts[4] <= evidence.counts[5]
        assert evidence.counts[max(3, most_parents)] >= 1  # gold
    assert all(audit.final.counts[k] <= audit.base.counts[k] for k in (3, 4, 5))
    assert audit.base.num_worlds == 8
    assert audit.base.coverage <= audit.final.coverage <= 1


@pytest.mark.parametrize("known", [DENSE, T1_CLEAN_HARD], ids=["dense", "t1"])
def test_coverage_counts_patterns_of_three_predecessors(known: Stratum) -> None:
    made = generated(known, 1)
    order, seen, total = made.problem.sealed.latent_order, 0, 0
    for variable in gold_of(made.problem).endogenous:
        slot = order.index(variable)
        window = order[max(0, slot - known.max_parents) : slot]
        for causes in combinations(window, 3):
            rows = [
                row for w in training_of(made.problem) if variable not in w.intervention.targets for row in w.rows()
            ]
            seen += len({tuple(row[u] for u in causes) for row in rows})
        total += 8 * comb(len(window), 3)
    assert made.audit.final.coverage == seen / total


def test_an_audit_is_json_without_large_numbers() -> None:
    made = generated(stratum("vhs_n10_extreme_near_impossible"), 0)
    read = json.loads(json.dumps(made.audit.to_dict()))
    assert read["final"]["counts"] == {str(k): str(n) for k, n in made.audit.final.counts.items()}
    assert read["base"]["mix"]["by_targets"]["0"] == 1
    assert read["alternatives"] == list(made.audit.alternatives)
    assert [f["variable"] for f in read["final"]["stronger"]] == list(gold_of(made.problem).endogenous)
    assert all(isinstance(f["exact"], str) and f["budget_hit"] in (True, False) for f in read["final"]["stronger"])


# seeds, settings, pools


def test_without_added_worlds_the_rest_is_the_same() -> None:
    known = next(s for s in STRATA if len(training_of(generated(s, 1).problem)) > 8)
    full, base = generated(known, 1), generate(known, 1, max_added=0)
    assert training_of(base.problem) == training_of(full.problem)[:8]
    assert base.problem.sealed.heldout == full.problem.sealed.heldout
    assert base.audit.final == base.audit.base == full.audit.base


def test_settings_are_matched_and_audited_for_what_they_disclose() -> None:
    known = stratum("vhs_n9_anchor")
    made = {setting: generate(known, 5, setting=setting, max_added=0) for setting in SETTINGS}
    reference = made["hidden-order"].problem
    for setting, one in made.items():
        assert one.problem.setting.lower() == setting
        assert one.problem.task.training == reference.task.training
        assert one.problem.sealed == reference.sealed
    assert isinstance(made["hidden-roots"].problem.task.disclosure, HiddenRoots)
    members = [made[setting].audit.final.counts[5] for setting in SETTINGS]
    assert members == sorted(members)  # each setting tells less than the one before
    assert members[0] < members[-1]


def test_a_plan_replaces_the_budgets_of_the_stratum() -> None:
    plain = generate(DENSE, 2, max_added=0, plan=replace(plan_for(DENSE), support_candidates=0))
    assert "support" not in plain.audit.stages.values()
    assert "support" in generated(DENSE, 2).audit.stages.values()
    with pytest.raises(
        ValueError, match=r"no plan for stratum 'own'; known: hs_n6_easy_calibration, .*, t1_clean_hard, .*, large_n40$"
    ):
        generate(replace(DENSE, name="own"), 0)
    assert PLANS.keys() == {s.name for s in STRATA}


def test_pools_do_not_depend_on_the_number_of_workers_or_on_hashing() -> None:
    """Bytes of a hardened pool and its audits; nothing else would show an order of a set or of workers in them."""
    program = (
        "import sys; from tests.support.replayscm.pools import generate_pool;"
        "from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA;"
        "from calibrant.dsl.replayscm.pools.files import native_lines\n"
        "if __name__ == '__main__':\n"
        "    made = generate_pool(NAMED_STRATA[2:4], 1, 9, 'block', workers=2)\n"
        "    sys.stdout.buffer.writelines(native_lines(made.pool))\n"
        "    print(*made.audit_lines(), sep='\\n')"
    )
    path = os.pathsep.join(p for p in sys.path if p)
    environment = {**os.environ, "PYTHONHASHSEED": "7", "PYTHONPATH": path}
    command = [sys.executable, "-c", program]
    printed = subprocess.run(command, env=environment, capture_output=True, check=True, timeout=120).stdout
    here = generate_pool(NAMED_STRATA[2:4], 1, 9, "block")
    expected = b"".join(native_lines(here.pool)) + "".join(f"{line}\n" for line in here.audit_lines()).encode()
    assert printed == expected


def test_a_pool_and_its_parts() -> None:
    small, large = (generate_pool(NAMED_STRATA[:2], number, 4, "ordered") for number in (1, 2))
    names = [f"GEN_{s.name}_{4_000_000 + j}" for s in NAMED_STRATA[:2] for j in range(2)]
    assert [problem.id for problem in large.pool.problems] == list(large.audits) == names
    assert small.pool.problems == large.pool.problems[::2]
    assert large.pool.problems[3] == generate(NAMED_STRATA[1], 4_000_001, setting="ordered").problem
    assert [json.loads(line)["id"] for line in large.audit_lines()] == names
    assert large.pool.metadata["setting"] == "ordered"


# --- Instances of 20 and 40 variables: the same gates as in ten, and files, prompts, replay and scores for them -------
TWENTY, FORTY = stratum("large_n20"), stratum("large_n40")


@cache
def twenty() -> Generated:
    return generate(TWENTY, 0)


@cache
def forty() -> Problem:
    return sample_problem(FORTY, 0)


def problems() -> list[Problem]:
    return [twenty().problem, forty()]


def test_worlds_grow_with_the_variables_and_nothing_else_does() -> None:
    ten = next(known for known in NAMED_STRATA if known.name == "vhs_n10_anchor_m10")
    assert [(s.num_variables, s.num_worlds) for s in LARGE_STRATA] == [
        (12, 10), (14, 12), (16, 13), (20, 16), (30, 24), (40, 32)
    ]  # fmt: skip
    for known in LARGE_STRATA:
        assert (known.num_units, known.max_parents, known.sizes) == (10, 4, ten.sizes)
        assert (known.max_survivors, known.exposure) == (0, ten.exposure)
        assert plan_for(known).iterations == -(-12 * known.num_worlds // 8)


def shortcuts_left(problem: Problem) -> dict[str, list[int]]:
    """Functions of a variable's window that fit all its rows and have a formula of three to five nodes, below gold's.

    Rows are read one by one; the functions are those of dsl.replayscm.generation.scms, with tests of their own.
    """
    gold, order = problem.sealed.gold, problem.sealed.latent_order
    assert gold is not None
    left: dict[str, list[int]] = {}
    for variable in gold.endogenous:
        place = order.index(variable)
        window = order[max(0, place - 4) : place]
        shown = {
            (sum(row[u] << i for i, u in enumerate(window)), row[variable])
            for world in problem.task.training.worlds
            if variable not in world.intervention.targets
            for row in world.rows()
        }
        cap = min(5, gold.mechanisms[variable].size - 1)
        small = [bits for bits, size in shortest_sizes(len(window), 5).items() if size <= cap and cap >= 3]
        left[variable] = [bits for bits in small if all(bits >> pattern & 1 == value for pattern, value in shown)]
    return left


@pytest.mark.parametrize("size", [20, 40])
def test_no_small_formula_over_the_window_explains_a_variable(size: int) -> None:
    (problem,) = (one for one in problems() if len(one.task.variables) == size)
    assert not any(shortcuts_left(problem).values())
    fewer = replace(problem.task, training=Panel(problem.task.variables, problem.task.training.worlds[:3]))
    assert any(shortcuts_left(replace(problem, task=fewer)).values())


def test_gold_replays_and_no_two_worlds_share_their_intervention() -> None:
    for problem, known in zip(problems(), (TWENTY, FORTY), strict=True):
        gold = problem.sealed.gold
        assert gold is not None
        assert replays_exactly(gold, problem.worlds)
        assert len({world.intervention.signature for world in problem.worlds}) == len(problem.worlds)
        assert len(problem.sealed.heldout.worlds) == known.num_worlds
        assert len(problem.task.training.worlds) - known.num_worlds in range(4)
        varying(problem, gold.endogenous)


def varying(problem: Problem, endogenous: tuple[str, ...]) -> None:
    def values(world: World, variable: str) -> set[int]:
        return set() if variable in world.intervention.targets else {row[variable] for row in world.rows()}

    for variable in endogenous:
        assert set().union(*(values(world, variable) for world in problem.task.training.worlds)) == {0, 1}


def test_the_audit_of_twenty_variables_counts_exactly() -> None:
    """Gold is among them; nothing had to be bounded, and the record says nothing of bounds."""
    audit = twenty().audit.final
    assert audit.counts.keys() == {3, 4, 5}
    assert 1 <= audit.counts[4] < audit.counts[5]
    assert "bounds" not in twenty().audit.to_dict()["final"]


def test_files_prompts_and_scores_of_forty_variables(tmp_path: Path) -> None:
    problem = forty()
    gold = problem.sealed.gold
    assert gold is not None
    write_pool(Pool("large", (problem,), {}), tmp_path / "pool.jsonl")
    (read,) = read_pool(tmp_path / "pool.jsonl").problems
    assert read.task == problem.task
    told = prompt(read.task)
    row = problem.task.training.worlds[-1].row(9)
    assert " ".join(f"{v}={row[v]}" for v in problem.task.variables) in told
    mechanisms = {v: str(formula) for v, formula in gold.mechanisms.items()}
    verdict = Evaluator(read).score_text(json.dumps({"mechanisms": mechanisms}))
    assert verdict.correct
    last = gold.endogenous[-1]
    wrong = Evaluator(read).score_answer({"mechanisms": {**mechanisms, last: f"(not {mechanisms[last]})"}})
    assert wrong.valid
    assert not wrong.train_exact
