"""Rows of off-the-shelf causal discovery, with the real libraries: what they find, say, print and need."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from calibrant.baselines.replayscm.discovery import adjacency_proposal, dag_proposal, library
from calibrant.baselines.replayscm.fit import frame_from_panel
from calibrant.baselines.structure_learning.graph import Frame
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.bench.protocols import chosen_protocols, left_out, make_protocol, protocols_of
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.rows import listed
from calibrant.bench.replayscm.rows.structures import (
    DISCOVERY,
    Discovery,
    GesThenFit,
    GiesThenFit,
    PcThenFit,
    PgmpyThenFit,
)
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.disclosure import Blocks, Disclosure, HiddenOrder, HiddenRoots, Ordered
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.dsl.replayscm.world import World
from calibrant.solvers.replayscm.parents import nested_variables
from tests.support.effort import effort
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.written import answered, written_problem, written_scm, written_world

ROWS = [protocol() for protocol in DISCOVERY]
ALL = pytest.mark.parametrize("protocol", ROWS, ids=lambda p: p.name)
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
    for place, problem in enumerate(dev_problems(pool)[:: effort(80, 9)]):
        task = problem.task
        result = protocol.answer(task)
        assert place or protocol.answer(task) == result
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
    imported, answers = json.loads(_elsewhere(tmp_path, "5,0,3", "2"))
    assert imported == []
    problems = read_pool(bundled_pool("hidden-order")).problems
    here = {f"{row.name} {index}": row.answer(problems[index].task) for index in (0, 3, 5) for row in ROWS}
    assert answers == {name: json.loads(json.dumps([r.outcome, r.answer, r.provenance])) for name, r in here.items()}
    assert len(answers) == 12
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
