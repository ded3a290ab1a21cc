"""Rows that learn structure first: of off-the-shelf discovery libraries, bnlearn+dsl and exact-mbde+dsl."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import log
from pathlib import Path
from random import Random

import numpy as np
import pytest

from calibrant.audits.replayscm.alternative_items import alternative_item
from calibrant.baselines.replayscm.discovery import adjacency_proposal, dag_proposal, library
from calibrant.baselines.replayscm.fit import (
    FittedModel,
    RootedDag,
    all_root_sets,
    best_supported,
    by_score,
    disclosed_constraints,
    frame_from_panel,
    root_hypotheses,
)
from calibrant.baselines.replayscm.structure import (
    NoisyWeightScores,
    bnlearn_candidates,
    exact_mbde_candidates,
    proposed_sets,
    random_dag,
)
from calibrant.baselines.structure_learning.constraints import Frame, is_acyclic, root_constraints
from calibrant.baselines.structure_learning.levels import ScoreOptimum
from calibrant.baselines.structure_learning.search import HillClimbing, learn
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.protocols import Protocol, chosen_protocols, left_out, make_protocol, protocols_of
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.rows import listed
from calibrant.bench.replayscm.rows.structures import (
    DISCOVERY,
    BnlearnThenFit,
    Discovery,
    ExactMbdeThenFit,
    GesThenFit,
    GiesThenFit,
    PcThenFit,
    PgmpyThenFit,
)
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.formulas.text import STANDARD, parse
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, Prior, known_rate
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.replayscm.noise.posterior import Posterior
from calibrant.solvers.replayscm.roots_and_parents import nested_variables
from tests.support.effort import effort
from tests.support.replayscm.brute_force import can_be_root, optimum, replay_world_row
from tests.support.replayscm.brute_force import root_hypotheses as every_root_set
from tests.support.replayscm.extensions import random_member, random_worlds
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import small_problems
from tests.support.replayscm.written import answered, written_problem, written_scm, written_world

# --- The rows bnlearn+dsl and exact-mbde+dsl: legal, exact, repeatable, and complete where they say so ----------------
SMALL = [problem.task for problem in small_problems(2811, 48)]
SCORE_ROWS: tuple[Protocol, ...] = (BnlearnThenFit(), ExactMbdeThenFit())
PUBLISHED = {"ordered": 0.996, "block": 1.0, "hidden_order": 0.996, "hidden_roots": 0.9}  # TrainExact, Table H.2
BNLEARN_STAGES = ("initial", "ensemble", "proposals", "residual dags", "residual proposals")
EXACT_STAGES = ("optimum", "k best", "parent sets", "widening")


def replayed_by_oracle(task: Task, candidate: FittedModel) -> bool:
    """Every training row, by the tests' own replay."""
    worlds = task.training.worlds
    return all(
        replay_world_row(candidate.model, world, row)
        == {v: bits >> row & 1 for v, bits in zip(world.variables, world.columns, strict=True)}
        for world in worlds
        for row in range(world.num_rows)
    )


def is_legal(task: Task, candidate: FittedModel) -> bool:
    """Roots as disclosed, and every mention admitted; an SCM is acyclic by construction."""
    model, disclosure = candidate.model, task.disclosure
    if disclosure.roots is None:
        rooted = len(model.roots) == disclosure.num_roots
    else:
        rooted = set(model.roots) == set(disclosure.roots)
    mentions = all(f.mentioned <= disclosure.admissible_parents(v) for v, f in model.mechanisms.items())
    return rooted and mentions and set(model.roots) | set(model.mechanisms) == set(task.variables)


@pytest.mark.soak
@pytest.mark.parametrize("index", effort([0, 3, 30, 33], range(len(SMALL))))
def test_every_candidate_is_legal_and_train_exact_and_comes_in_stage_order(index: int) -> None:
    """Four tasks, one of each setting, reach every stage; all 48 in a soak."""
    task = SMALL[index]
    for candidates, stages in (
        (list(bnlearn_candidates(task, seed=index)), BNLEARN_STAGES),
        (list(exact_mbde_candidates(task)), EXACT_STAGES),
    ):
        assert all(is_legal(task, one) and replayed_by_oracle(task, one) for one in candidates)
        places = [stages.index(one.stage) for one in candidates]
        assert places == sorted(places)


@pytest.mark.parametrize("index", range(len(SMALL)))
def test_the_exact_portfolio_finds_a_model_whenever_there_is_one(index: int) -> None:
    """Up to four variables, so three parents are all; the oracle tries every acyclic choice."""
    task = SMALL[index]
    least = optimum(task, 3, every_root_set(task))
    sizes = [one.model.size for one in exact_mbde_candidates(task)]
    assert bool(sizes) == (least is not None)
    if least is not None:
        assert min(sizes) == least.size  # the last stage proposes everything and chooses least total size


@pytest.mark.soak
@pytest.mark.parametrize("name", POOLS)
def test_shared_pools_are_explained_at_least_as_often_as_published(name: str) -> None:
    """Explain every sixth problem, some of each stratum; all of them in a soak.

    One that is lost shows where all but one in 250 are explained.
    """
    problems = dev_problems(name)[:: effort(6, 1)]
    for protocol, least in zip(SCORE_ROWS, (PUBLISHED[name], 1.0), strict=True):
        scores = [Evaluator(p).score_answer(answered(p.task, protocol.answer(p.task))) for p in problems]
        assert sum(score.train_exact for score in scores) >= least * len(problems)


def parity_task() -> Task:
    """X4 is the parity of three roots in all eight rows: no proper subset of them tells anything about it."""
    rows = list(product((0, 1), repeat=3))
    columns = [sum(row[i] << r for r, row in enumerate(rows)) for i in range(3)]
    parity = sum(sum(row) % 2 << r for r, row in enumerate(rows))
    variables = ("X1", "X2", "X3", "X4")
    units = tuple(f"u{r}" for r in range(8))
    world = World("w", Intervention(), variables, units, (*columns, parity))
    disclosure = Ordered(variables, variables[:3])
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(variables, (world,)), False, 0)


def test_a_parity_is_found_by_both() -> None:
    for protocol in SCORE_ROWS:
        result = protocol.answer(parity_task())
        assert result.outcome == "found"
        assert parse(answered(parity_task(), result)["mechanisms"]["X4"], STANDARD).mentioned == {"X1", "X2", "X3"}
        assert result.size == 4


def contradiction() -> Task:
    """X2 has both values where X1 has one: no mechanism says that."""
    world = World("w", Intervention(), ("X1", "X2"), ("a", "b"), (0b00, 0b01))
    return Task(TaskKind.SCM, HiddenOrder(("X1", "X2"), ("X1",)), STANDARD, Panel(("X1", "X2"), (world,)), False, 0)


def test_what_is_not_found_is_no_answer() -> None:
    for protocol in (*SCORE_ROWS, BnlearnThenFit(states=0), ExactMbdeThenFit(states=0)):
        result = protocol.answer(contradiction())
        assert (result.outcome, result.answer, result.size) == ("out_of_budget", None, None)
    for starved in (BnlearnThenFit(states=0), ExactMbdeThenFit(states=0)):
        assert starved.answer(parity_task()).answer is None
        hidden = next(problem for problem in dev_problems("hidden_roots"))
        assert starved.answer(hidden.task).answer is None


def test_one_seed_gives_one_answer_and_seeds_differ() -> None:
    tasks = [problem.task for problem in dev_problems("hidden_order")[::8]]
    by_seed = [[BnlearnThenFit(seed=seed).answer(task) for task in tasks] for seed in (0, 1, 2, 3)]
    again = [BnlearnThenFit(seed=2).answer(task) for task in reversed(tasks)]
    assert by_seed[2] == again[::-1]
    assert any(first.answer != other.answer for first, *others in zip(*by_seed, strict=True) for other in others)


def test_options_arrive_as_text() -> None:
    known = protocols_of(BENCHMARK)
    assert make_protocol(known, "bnlearn+dsl", {"seed": "7"}) == BnlearnThenFit(seed=7)
    assert make_protocol(protocols_of(BENCHMARK), "exact-mbde+dsl", {"iss": "10", "networks": "5"}) == ExactMbdeThenFit(
        iss=10.0, networks=5
    )


# --- alternatives ----------------------------------------------------------------------------------------------------


def alternative_problems() -> list[Problem]:
    made = [alternative_item(problem, 0) for problem in dev_problems("hidden_order")[:24:3]]
    return [problem for problem in made if problem is not None]


def test_answers_to_alternative_tasks_succeed_jointly_or_are_no_answers() -> None:
    problems = alternative_problems()
    for protocol in SCORE_ROWS:
        results = [protocol.answer(problem.task) for problem in problems]
        scores = [
            Evaluator(p).score_answer(answered(p.task, r)).to_dict() for p, r in zip(problems, results, strict=True)
        ]
        found = [score for score, result in zip(scores, results, strict=True) if result.outcome == "found"]
        assert found
        assert all(score["jointSuccess"] and score["experimentOptimality"] == 1.0 for score in found)
        lost = [result.answer for result in results if result.outcome != "found"]
        assert all(answer is None for answer in lost)


# --- parts -----------------------------------------------------------------------------------------------------------


def test_hypotheses_are_the_nested_root_sets_or_all() -> None:
    for task in SMALL:
        everything = set(every_root_set(task))
        assert {tuple(sorted(r)) for r in all_root_sets(task)} == {tuple(sorted(r)) for r in everything}
        possible = {v for v in task.variables if can_be_root(task, v)}
        nested = {roots for roots in everything if set(roots) <= possible}
        expected = nested or everything if task.shares_units else everything
        assert {frozenset(roots) for roots in root_hypotheses(task)} == {frozenset(roots) for roots in expected}


def test_structures_come_once_by_falling_score() -> None:
    one, other, same = (RootedDag(("X1",), (0, mask), score) for mask, score in ((0, -3.0), (1, -2.0), (0, -3.0)))
    tied = RootedDag(("X2",), (0, 1), -3.0)
    assert by_score([one, other, same, tied]) == [other, one, tied]


def test_support_ranks_parents_and_leaves_out_what_has_none() -> None:
    assert best_supported([0.0, 2.0, 5.0, 2.0], 2) == 0b0110
    assert best_supported([0.0, 2.0, 5.0, 2.0], None) == 0b1110
    assert proposed_sets([(0, 0b1, 0b01), (0, 0b1, 0b10), (0, 0, 0b10)], 1)[2] == [0b01, 0b10, 0b10, 0b10]


@pytest.mark.parametrize("name", POOLS)
def test_random_starts_are_legal_and_differ(name: str) -> None:
    task = dev_problems(name)[0].task
    frame = frame_from_panel(task.training)
    known = disclosed_constraints(task.disclosure, frame.variables, max_parents=5)
    made = [random_dag(known, Random(seed)) for seed in range(20)]
    assert all(known.admits(dag) for dag in made)
    assert len(set(made)) > 10


def test_the_exact_optimum_over_many_variables_is_out_of_reach_and_says_so() -> None:
    names = tuple(f"X{i}" for i in range(1, 20))
    world = World("w", Intervention(), names, ("u",), (0,) * 19)
    panel = Panel(names, (world,))
    hidden = Task(TaskKind.SCM, HiddenOrder(names, names[:2]), STANDARD, panel, False, 0)
    result = ExactMbdeThenFit().answer(hidden)
    assert result.outcome == "out_of_budget"
    assert result.provenance["reached"] == "19 variables; exact mbde optima are for at most 18"


# --- Noisy weights as a score: optimum and search against all graphs --------------------------------------------------
RATE = Fraction(1, 10)


def _posterior(num_vars: int, seed: int) -> Posterior:
    observed = tuple(f"X{i}" for i in range(num_vars))
    roots = observed[:2]
    scm_class = MechanismClass(observed, roots, HiddenOrder(observed, roots), 2, Prior.BY_PARENTS, known_rate(RATE))
    rng = Random(seed)
    return Posterior(scm_class).condition(*random_worlds(rng, scm_class, random_member(rng, scm_class), 6, 4))


def _scores(posterior: Posterior) -> NoisyWeightScores:
    words = np.array([row.word for row in posterior.rows], np.uint64)
    clamped = np.array([row.clamped for row in posterior.rows], np.uint64)
    frame = Frame(posterior.scm_class.observed, words, clamped)
    return NoisyWeightScores(frame, RATE, roots=0b11, max_parents=2)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_optimum_is_the_most_probable_graph(seed: int) -> None:
    posterior = _posterior(5, seed)
    scores = _scores(posterior)
    constraints = root_constraints(posterior.scm_class.observed, posterior.scm_class.roots, max_parents=2)
    optimum = ScoreOptimum(scores, constraints)
    (term,) = posterior.terms()
    names = posterior.scm_class.observed
    orders = optimum.posteriors().arcs().frequency()
    for (parent, child), share in posterior.edges.items():  # the same but for the number of orders of a graph
        assert abs(orders[names.index(parent), names.index(child)] - float(share)) < 0.15
    scale = log(term.factor.numerator) - log(term.factor.denominator)
    totals = []
    for choice in product(*(options.items() for options in term.weights.options)):
        masks = dict(zip(term.weights.endogenous, (mask for mask, _ in choice), strict=True))
        if is_acyclic(tuple(masks.get(v, 0) for v in range(len(names)))):
            totals.append(sum(log(weight) for _, weight in choice) + scale)
    best = optimum.best()
    climbed = learn(scores, constraints, HillClimbing())
    assert climbed.score <= best.score + 1e-9
    assert scores.total(best.dag) == pytest.approx(best.score)
    assert best.score == pytest.approx(max(totals), abs=1e-9)


def test_what_has_no_noisy_weights() -> None:
    scores = _scores(_posterior(4, 1))
    assert scores.local(2, 0b1011) == -np.inf  # three parents of a class of two
    assert scores.local(0, 0b10) == -np.inf  # a root
    assert scores.local(0, 0) == 0
    with pytest.raises(ValueError, match="rate"):
        NoisyWeightScores(scores.frame, Fraction(0))
    wide = Frame(tuple(f"X{i}" for i in range(13)), np.zeros(1, np.uint64), np.zeros(1, np.uint64))
    with pytest.raises(ValueError, match="13 variables"):
        NoisyWeightScores(wide, RATE)


# --- Rows of off-the-shelf causal discovery, with the real libraries: what they find, say, print and need -------------
DISCOVERY_ROWS = [protocol() for protocol in DISCOVERY]
ALL = pytest.mark.parametrize("protocol", DISCOVERY_ROWS, ids=lambda p: p.name)
QUICK = {"copy-parent", "first-found"}
NEEDS = {"pc+dsl": "causallearn", "ges+dsl": "causallearn", "pgmpy-hc+dsl": "pgmpy", "gies+dsl": "gies"}


def test_the_rows_have_their_names() -> None:
    assert {p.name: protocols_of(BENCHMARK)[p.name] for p in DISCOVERY} == {
        "pc+dsl": PcThenFit,
        "ges+dsl": GesThenFit,
        "pgmpy-hc+dsl": PgmpyThenFit,
        "gies+dsl": GiesThenFit,
    }


# --- answers ----------------------------------------------------------------------------------------------------------

VARIABLES = "A B C D E"
GOLD = written_scm("A B C", D="(and A B)", E="(or B C)")
DISCLOSURES: dict[str, Disclosure] = {
    "Ordered": Ordered(("C", "B", "A", "E", "D"), ("A", "B", "C")),
    "Block": Blocks((("A", "B", "C"), ("D", "E")), ("A", "B", "C")),
    "Hidden-order": HiddenOrder(("A", "B", "C", "D", "E"), ("A", "B", "C")),
    "Hidden-roots": HiddenRoots(("A", "B", "C", "D", "E"), 3),
}


def _worlds() -> list[World]:
    """Sixteen times every value of the roots, and once each with D set to 0 and to 1."""
    combinations = ["".join(bits) for bits in product("01", repeat=3)]

    def row(roots: str, d: str | None) -> str:
        return roots + (d or "01"[roots[:2] == "11"]) + "01"["1" in roots[1:]]

    return [
        written_world("free", VARIABLES, " ".join(row(roots, None) for roots in combinations * 16)),
        written_world("low", VARIABLES, " ".join(row(roots, "0") for roots in combinations), do={"D": 0}),
        written_world("high", VARIABLES, " ".join(row(roots, "1") for roots in combinations), do={"D": 1}),
    ]


def _planted(setting: str) -> Problem:
    disclosure = DISCLOSURES[setting]
    kind = TaskKind.ROOTS if setting == "Hidden-roots" else TaskKind.SCM
    return written_problem(disclosure, GOLD, _worlds(), _worlds()[:1], kind=kind, latent="C B A E D")


@ALL
@pytest.mark.parametrize("setting", DISCLOSURES)
def test_colliders_in_plenty_of_rows_are_recovered(protocol: Discovery, setting: str) -> None:
    problem = _planted(setting)
    result = protocol.answer(problem.task)
    assert result.outcome == "found"
    assert answered(problem.task, result)["mechanisms"] == {"D": "(and A B)", "E": "(or B C)"}
    assert answered(problem.task, result).get("roots", ["A", "B", "C"]) == ["A", "B", "C"]
    assert result.size == GOLD.size
    assert result.provenance["roots"] == ["A", "B", "C"]
    assert Evaluator(problem).score_answer(answered(problem.task, result)).to_dict()["valid"]


@pytest.mark.soak
@ALL
@pytest.mark.parametrize("pool", POOLS)
def test_answers_are_train_exact_or_failure_objects(protocol: Discovery, pool: str) -> None:
    """One problem of each pool, twice; nine in a soak."""
    for index, problem in enumerate(dev_problems(pool)[:: effort(80, 9)]):
        task = problem.task
        result = protocol.answer(task)
        assert index or protocol.answer(task) == result
        score = Evaluator(problem).score_answer(answered(problem.task, result)).to_dict()
        roots = tuple(result.provenance["roots"])
        disclosure = task.disclosure
        judge = disclosure.given_roots(roots)
        assert roots == judge.roots if disclosure.roots is None else set(roots) == set(disclosure.roots)
        assert set(result.provenance["proposed"]) == set(judge.endogenous)
        for variable, proposed in result.provenance["proposed"].items():
            assert set(proposed) <= judge.admissible_parents(variable)
        if result.outcome == "found":
            assert score["valid"]
            assert score["trainExact"]
        else:
            assert result.outcome == "impossible"
            assert result.answer is None
            unfit = result.provenance.get("unfit") or result.provenance["cyclic"]
            assert unfit
            assert set(unfit) <= set(judge.endogenous)


@pytest.mark.parametrize("protocol", [PgmpyThenFit(), GiesThenFit()], ids=lambda p: p.name)
def test_some_problems_are_solved(protocol: Discovery) -> None:
    easy = [p for p in dev_problems("hidden_order") if len(p.task.variables) == 6][:8]
    assert any(protocol.answer(problem.task).outcome == "found" for problem in easy)


@ALL
def test_there_is_no_row_for_alternatives(protocol: Discovery) -> None:
    task = replace(_planted("Hidden-order").task, kind=TaskKind.ALTERNATIVE, reference=GOLD)
    result = protocol.answer(task)
    assert result.outcome == "impossible"
    assert result.answer is None


@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("pc+dsl", "alpha", "0"),
        ("pc+dsl", "alpha", "1"),
        ("pc+dsl", "test", "kci"),
        ("ges+dsl", "score", "k2"),
        ("pgmpy-hc+dsl", "imaginary_rows", "0"),
        ("gies+dsl", "max_parents", "0"),
        ("gies+dsl", "max_parents", "7"),
    ],
)
def test_options_have_their_ranges(name: str, option: str, value: str) -> None:
    with pytest.raises(CalibrantError, match=f"protocol '.*'.*{option}"):
        make_protocol(protocols_of(BENCHMARK), name, {option: value})


# --- hidden roots -----------------------------------------------------------------------------------------------------


def _graph(frame: Frame, model: Scm) -> tuple[int, ...]:
    parents = {v: mechanism.variables for v, mechanism in model.mechanisms.items()}
    return frame.dag(parents)


def test_learned_parentless_variables_are_the_roots_if_they_are_as_many() -> None:
    for problem in dev_problems("hidden_roots")[::9]:
        frame = frame_from_panel(problem.task.training)
        gold = problem.sealed.gold
        assert gold is not None
        proposal = dag_proposal(problem.task, frame, _graph(frame, gold))
        assert set(proposal.roots) == set(gold.roots)
        for variable, mechanism in gold.mechanisms.items():
            assert set(proposal.parents[variable][0]) == set(mechanism.variables)


def test_otherwise_nested_columns_decide() -> None:
    undecided = 0
    for problem in dev_problems("hidden_roots")[::9]:
        frame = frame_from_panel(problem.task.training)
        disclosure = problem.task.disclosure
        assert isinstance(disclosure, HiddenRoots)
        nested = nested_variables(problem.task)
        proposal = dag_proposal(problem.task, frame, (0,) * frame.num_vars)
        assert len(proposal.roots) == disclosure.num_roots
        assert set(proposal.roots) <= set(nested) or set(nested) <= set(proposal.roots)
        undecided += len(nested) > disclosure.num_roots
        assert set(proposal.parents) == set(problem.task.variables) - set(proposal.roots)
    assert undecided < len(dev_problems("hidden_roots")[::9])


def test_neighbours_are_proposed_after_the_parents() -> None:
    task = _planted("Hidden-order").task
    frame = frame_from_panel(task.training)
    chain = frame.dag({"D": ["A"], "E": ["D"]})
    proposal = adjacency_proposal(task, frame, chain)
    assert proposal.parents == {"D": (("A",), ("A", "E")), "E": (("D",),)}
    assert dag_proposal(task, frame, chain).parents == {"D": (("A",),), "E": (("D",),)}


# --- the same everywhere, quiet, and only on request ------------------------------------------------------------------

ANSWERS = """
import json, sys, warnings
warnings.simplefilter("error")
from calibrant.bench.replayscm.rows.structures import DISCOVERY
from calibrant.dsl.replayscm.pools.files import read_pool
problems = read_pool(sys.argv[1]).problems
heavy = {"causallearn", "pgmpy", "gies", "pandas", "sklearn", "scipy", "numba", "threadpoolctl"} & set(sys.modules)
answers = {}
for index in map(int, sys.argv[2].split(",")):
    for protocol in DISCOVERY:
        result = protocol().answer(problems[index].task)
        answers[f"{protocol.name} {index}"] = [result.outcome, result.answer, result.provenance]
with open(sys.argv[3], "w") as out:
    json.dump([sorted(heavy), answers], out, sort_keys=True)
"""


def _elsewhere(folder: Path, order: str, seed: str) -> str:
    """All answers to these problems in this order, from another process that printed nothing."""
    out = folder / f"{seed}.json"
    done = subprocess.run(
        [sys.executable, "-c", ANSWERS, str(bundled_pool("hidden-order")), order, str(out)],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return out.read_text()


def test_answers_depend_on_the_task_alone_and_nothing_is_printed(tmp_path: Path) -> None:
    """In another process, in another order, the answers are those of this one."""
    imported, answers = json.loads(_elsewhere(tmp_path, "5,0", "2"))
    assert imported == []
    problems = read_pool(bundled_pool("hidden-order")).problems
    here = {f"{row.name} {index}": row.answer(problems[index].task) for index in (0, 5) for row in DISCOVERY_ROWS}
    assert answers == {name: json.loads(json.dumps([r.outcome, r.answer, r.provenance])) for name, r in here.items()}
    assert len(answers) == 8
    assert len({json.dumps(answers[f"{p.name} 5"]) for p in DISCOVERY}) > 1


@ALL
def test_what_is_missing_is_said_in_one_line(
    protocol: Discovery, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    protocol.require()
    module = NEEDS[protocol.name]
    monkeypatch.setitem(sys.modules, module, None)
    message = f"{module} is missing; run: pip install 'calibrant[discovery]'"
    with pytest.raises(MissingExtraError, match=r"pip install 'calibrant\[discovery\]'") as refused:
        protocol.require()
    assert str(refused.value) == message
    assert main(["run", protocol.name, str(bundled_pool("ordered")), "--out", str(tmp_path / "out")]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [f"error  {message}"]
    assert protocol.name not in {chosen.name for chosen in chosen_protocols(protocols_of(BENCHMARK), "all", {})}


def test_all_says_which_protocols_it_leaves_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside two rows that are quick: what the others answer is not the matter."""
    rows = [row for name, row in protocols_of(BENCHMARK).items() if row in DISCOVERY or name in QUICK]
    monkeypatch.setattr(listed, "ROWS", rows)
    monkeypatch.setattr(listed, "PLAIN", rows)
    for module in ("causallearn", "pgmpy", "gies"):
        monkeypatch.setitem(sys.modules, module, None)
    assert set(left_out(protocols_of(BENCHMARK))) == {"pc+dsl", "ges+dsl", "pgmpy-hc+dsl", "gies+dsl"}
    line = ["run", "all", str(bundled_pool("ordered")), "--out", str(tmp_path / "out"), "--limit", "1"]
    assert main([*line, "--workers", "1"]) == 0
    told = capsys.readouterr().err.splitlines()
    assert [text.split(" ")[0] for text in told if " is left out: " in text] == list(left_out(protocols_of(BENCHMARK)))
    assert {record.protocol for record in folder_records(tmp_path / "out")} == QUICK


def test_a_library_that_is_broken_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> object:
        raise ImportError("libfoo.so:\nmissing")

    monkeypatch.setattr("calibrant.baselines.replayscm.discovery.import_module", broken)
    with pytest.raises(MissingExtraError, match=r"^gies cannot be imported \(libfoo\.so: missing\).*discovery"):
        library("gies")


def test_a_library_whose_own_dependency_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in [name for name in sys.modules if name.partition(".")[0] == "gies"]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "gies.main", None)
    with pytest.raises(MissingExtraError, match=r"^gies cannot be imported \(gies\.main is missing\).*discovery"):
        library("gies")
