"""SAT and SMT search examine counts again: brute force agrees, and false counts are refuted by what they leave out."""

from __future__ import annotations

import json
import re
from importlib.util import find_spec
from typing import cast

import pytest

from calibrant.audits.claims import EngineName, NotExaminedError, RecountLimitError, Refused
from calibrant.audits.replayscm.certificates import cross_examination
from calibrant.audits.replayscm.certificates.certificate import build_certificate, to_json
from calibrant.audits.replayscm.certificates.cross_examination import (
    ENGINES,
    Claim,
    SatSearch,
    examine,
    examine_certificate,
)
from calibrant.audits.search import MAX_LISTED
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replays_exactly
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import cases
from tests.support.packages import needs
from tests.support.replayscm.brute_force import all_members
from tests.support.replayscm.pools import dev_problems
from tests.support.replayscm.random_problems import small_problems

SMALL = [problem.task for problem in small_problems(29, cases(40))]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> EngineName:
    """Return each engine that is installed."""
    if request.param == "smt":
        needs("z3")
    return cast(EngineName, request.param)


def claim(task: Task, max_parents: int, count: int) -> Claim:
    return Claim(task, max_parents, task.variables, count)


@pytest.mark.parametrize("index", range(len(SMALL)))
def test_true_counts_are_proved_and_false_ones_refuted(engine: EngineName, index: int) -> None:
    """Of four disclosures with at most one, two and three parents, by brute force."""
    task, max_parents = SMALL[index], 1 + index % 3
    count = len(all_members(task, max_parents))
    if count > MAX_LISTED and (engine == "smt" or find_spec("pyganak") is None):
        with pytest.raises(NotExaminedError, match=f"shows more than {MAX_LISTED} members"):
            examine(claim(task, max_parents, count), engine)
    else:
        assert examine(claim(task, max_parents, count), engine).startswith(f"{count:,} member")
    if 0 < count <= MAX_LISTED:
        with pytest.raises(Refused, match="finds another one: ") as refused:
            examine(claim(task, max_parents, count - 1), engine)
        assert replays_exactly(read_map(str(refused.value), task), task.training.worlds)
    if count < MAX_LISTED:
        with pytest.raises(Refused, match=re.escape(f"claims {count + 1:,} member")):
            examine(claim(task, max_parents, count + 1), engine)


def read_map(refusal: str, task: Task) -> Scm:
    """Return the counterexample that a refusal prints."""
    parts = refusal.partition("finds another one: ")[2].split("; ")
    roots = task.disclosure.roots
    if roots is None:
        roots = tuple(parts.pop(0).removeprefix("roots ").split())
    mechanisms = dict(part.split(" = ") for part in parts)
    return Scm(roots, {v: parse(text, ALL_OPERATORS) for v, text in mechanisms.items()})


@pytest.mark.parametrize("setting", ["ordered", "block", "hidden_order", "hidden_roots"])
def test_counts_of_shared_pools_hold(engine: EngineName, setting: str) -> None:
    """Of 6 to 10 variables; the counts are the dynamic programme's."""
    listed = 0
    for problem in dev_problems(setting)[::20]:
        for max_parents in (2, 3):
            count = VersionSpace(problem.task, ModelClass(max_parents)).count
            if count <= MAX_LISTED:
                examine(claim(problem.task, max_parents, count), engine)
                listed += count > 0
    assert listed


def test_ganak_counts_what_is_not_listed() -> None:
    problems, compared = dev_problems("hidden_roots")[:40:7], 0
    pytest.importorskip("pyganak")
    for problem in problems:
        count = VersionSpace(problem.task, ModelClass(4)).count
        assert SatSearch(claim(problem.task, 4, count), 10**6).count() == count
        if count > MAX_LISTED:
            compared += 1
            with pytest.raises(Refused, match=f"Ganak counts {count:,} models"):
                examine(claim(problem.task, 4, count + 1), "sat")
    assert compared


def test_searches_stop_after_their_steps(engine: EngineName) -> None:
    task = dev_problems("hidden_roots")[70].task
    with pytest.raises(RecountLimitError, match=r"^by (sat|smt) .*: .* steps are over"):
        examine(claim(task, 4, 10**9), engine, max_steps=2)


# counts by excluding one assignment of the projection after another, where Ganak is not installed
PLAIN_COUNTER = """
import json, sys
from pysat.solvers import Cadical153
task = json.load(sys.stdin)
solver, count = Cadical153(bootstrap_with=task["clauses"]), 0
while solver.solve():
    count += 1
    values = solver.get_model()
    solver.add_clause([-values[number - 1] for number in task["projection"]])
print(count)
"""


def test_models_of_the_encoding_are_counted_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cross_examination, "find_spec", lambda name: name == "pyganak")
    monkeypatch.setattr(cross_examination, "GANAK", PLAIN_COUNTER)
    compared = 0
    for index, task in enumerate(SMALL):
        max_parents = 1 + index % 3
        count = len(all_members(task, max_parents))
        if MAX_LISTED < count <= 300 and compared < 3:
            compared += 1
            assert examine(claim(task, max_parents, count), "sat").startswith(f"{count:,} members, counted again")
            with pytest.raises(Refused, match=f"Ganak counts {count:,} models"):
                examine(claim(task, max_parents, count + 1), "sat")
    assert compared


def test_the_one_member_is_the_one_that_a_certificate_states(engine: EngineName) -> None:
    problem = next(p for p in small_problems(29, cases(40)) if VersionSpace(p.task, ModelClass(2)).count == 1)
    document = json.loads(to_json(build_certificate(problem, ModelClass(2))))
    assert examine_certificate(document, problem, engine).startswith(f"{problem.id}: 1 member, proved again")
    mechanisms = document["unique"]["mechanisms"]
    changed = next(iter(mechanisms))
    mechanisms[changed] = f"(not {mechanisms[changed]})"
    with pytest.raises(Refused, match="the only member is another one than it states"):
        examine_certificate(document, problem, engine)
    del document["unique"]
    with pytest.raises(Refused, match="without the member"):
        examine_certificate(document, problem, engine)
