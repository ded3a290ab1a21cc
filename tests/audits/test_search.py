"""Search by SAT and SMT: solutions against enumeration, steps, true and false claims of three benchmarks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.audits.claims import EngineName, NotExaminedError, RecountLimitError
from calibrant.audits.search import BooleanSearch
from calibrant.bench.core.registry import bundled_sample
from tests.oracles.engines import compare_forgeries, compare_items, item_differences
from tests.support.commands import called, refused
from tests.support.effort import cases
from tests.support.packages import needs

NAMES = "abcde"


@pytest.fixture(params=["sat", "smt"])
def engine(request: pytest.FixtureRequest) -> EngineName:
    if request.param == "smt":
        needs("z3")
    return "smt" if request.param == "smt" else "sat"


def _random_clauses(rng: Random) -> list[list[tuple[str, bool]]]:
    return [
        [(rng.choice(NAMES), rng.random() < 0.5) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(0, 9))
    ]


def _solutions(
    search: BooleanSearch, names: Iterable[str], holds: Callable[[dict[str, bool]], bool]
) -> tuple[set[frozenset[str]], set[frozenset[str]]]:
    """Return the solutions that a search lists, and those by trying all."""
    listed = set()
    while (true := search.find()) is not None:
        chosen = frozenset(str(key[0]) for key in true)
        assert chosen not in listed
        listed.add(chosen)
        search.add(*(-search.literal(name) if name in chosen else search.literal(name) for name in names))
    tried = (dict(zip(names, bits, strict=True)) for bits in product((False, True), repeat=len(list(names))))
    return listed, {frozenset(name for name in names if values[name]) for values in tried if holds(values)}


def test_solutions_are_those_of_enumeration(engine: EngineName) -> None:
    rng = Random(5)
    for _ in range(20):
        search, clauses = BooleanSearch(engine), _random_clauses(rng)
        for name in NAMES:
            search.literal(name)
        for clause in clauses:
            search.add(*(search.literal(name) if sign else -search.literal(name) for name, sign in clause))

        def holds(values: dict[str, bool], clauses: list[list[tuple[str, bool]]] = clauses) -> bool:
            return all(any(values[name] == sign for name, sign in clause) for clause in clauses)

        listed, expected = _solutions(search, NAMES, holds)
        assert listed == expected


def test_an_empty_clause_leaves_nothing_and_a_choice_one(engine: EngineName) -> None:
    search = BooleanSearch(engine)
    search.add_choice([search.literal(name) for name in NAMES])
    listed, expected = _solutions(search, NAMES, lambda values: sum(values.values()) == 1)
    assert listed == expected
    search = BooleanSearch(engine)
    search.add()
    assert search.find() is None


def test_weighted_sums_are_limited_by_smt_alone() -> None:
    needs("z3")
    rng = Random(6)
    for _ in range(20):
        weights, limit = [rng.randint(-4, 4) for _ in NAMES], rng.randint(-8, 8)
        search = BooleanSearch("smt")
        search.add_at_most([(search.literal(name), weight) for name, weight in zip(NAMES, weights, strict=True)], limit)

        def is_within(values: dict[str, bool], weights: list[int] = weights, limit: int = limit) -> bool:
            return sum(weight for name, weight in zip(NAMES, weights, strict=True) if values[name]) <= limit

        listed, expected = _solutions(search, NAMES, is_within)
        assert listed == expected
    with pytest.raises(NotExaminedError, match="take smt"):
        BooleanSearch("sat").add_at_most([], 3)


def _find_twice(search: BooleanSearch) -> None:
    search.find()
    search.find()


def test_steps_have_a_limit(engine: EngineName) -> None:
    search = BooleanSearch(engine, max_steps=1)
    pigeons = [[search.literal(i, j) for j in range(6)] for i in range(7)]
    for holes in pigeons:
        search.add(*holes)
    for column in zip(*pigeons, strict=True):
        for k, first in enumerate(column):
            for second in column[:k]:
                search.add(-first, -second)
    with pytest.raises(RecountLimitError, match="steps are over"):
        _find_twice(search)


@pytest.mark.soak
def test_engines_agree_on_random_items() -> None:
    """Answers, sizes and counts; `python -m tests.oracles.engines items` compares 300."""
    needs("z3")
    totals, differences = compare_items(cases(100))
    assert differences == []
    assert 0 < totals["items without an SCM"] < totals["items"]
    assert totals["counts of at most 20, by both engines"] > totals["items"] / 3


def test_a_wrong_engine_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    needs("z3")
    from tests.support.replayscm.random_problems import Limits, small_problems

    def find_nothing(part: object, budget: object, **limits: object) -> None:
        return None

    monkeypatch.setattr("calibrant.solvers.acyclic.optimum.least_by_maxsat", find_nothing)
    problems = small_problems(4600, 12, Limits(variables=5, endogenous=4, rows=20))
    assert any(list(item_differences(problem.task, 2)) for problem in problems)


@pytest.mark.soak
def test_forged_claims_are_refuted_with_a_counterexample_that_replays() -> None:
    """Of every kind in three benchmarks; `python -m tests.oracles.engines forgeries` has 120."""
    needs("z3")
    totals, differences = compare_forgeries(cases(150))
    assert differences == []
    kinds = {name.partition(":")[0].partition(", ")[2] for name in totals}
    assert kinds == {"uniqueness", "minimality", "emptiness", "k fit"}


@pytest.mark.parametrize("benchmark", ["causim", "blickets", "logic"])
def test_bundled_certificates_are_proved_again(benchmark: str, engine: EngineName, tmp_path: Path) -> None:
    pool = bundled_sample(benchmark)
    audit = ("audit", pool, "--certificates", tmp_path / "certs", "--out", tmp_path / "audit")
    assert called(*audit).returncode == 0
    done = called("verify", tmp_path / "certs", pool, "--engine", engine)
    lines = done.stdout.splitlines()
    assert lines
    assert not [line for line in lines if line.startswith("refused")]
    unread = [line for line in lines if line.startswith("open")]
    if benchmark == "blickets":  # scripts are replayed, not searched
        assert all("counting-decides" in line or "full-marks-before-the-switch" in line for line in unread)
        assert 0 < len(unread) < len(lines)
    else:
        assert (len(unread) == len(lines)) == (benchmark == "logic" and engine == "sat")
        assert not unread or all("take smt" in line for line in unread)


def test_causalab_says_why_it_has_no_encoding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool = bundled_sample("causalab")
    assert called("audit", pool, "--certificates", tmp_path / "certs", "--out", tmp_path / "audit").returncode == 0
    reason = refused(capsys, "verify", tmp_path / "certs", pool, "--engine", "sat")
    assert "certificates of CausaLab have no encoding for it: they are about equations over integers" in reason


def test_a_changed_certificate_is_refused(engine: EngineName, tmp_path: Path) -> None:
    import json

    pool = bundled_sample("causim")
    assert called("audit", pool, "--certificates", tmp_path / "certs", "--out", tmp_path / "audit").returncode == 0
    changes: list[Callable[[dict[str, Any]], object]] = [
        lambda certificate: certificate.update(evidence="0" * 64),
        lambda certificate: certificate.update(in_words="all worlds"),
        lambda certificate: certificate["data"].update(answer={}),
        lambda certificate: certificate.update(claim="no-such-claim"),
    ]
    source = next(p for p in sorted((tmp_path / "certs").glob("*.json")) if "unique_answer" in p.read_text("utf-8"))
    for k, change in enumerate(changes):
        document = json.loads(source.read_text("utf-8"))
        change(document["certificate"])
        forged = tmp_path / f"{k}.json"
        forged.write_text(json.dumps(document), "utf-8")
        done = called("verify", forged, pool, "--engine", engine)
        assert (done.returncode, done.stdout.partition(" ")[0]) == (1, "refused"), done.stdout


def test_smt_without_z3_names_the_extra(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = bundled_sample("causim")
    assert called("audit", pool, "--certificates", tmp_path / "certs", "--out", tmp_path / "audit").returncode == 0
    monkeypatch.setitem(sys.modules, "z3", None)
    assert "pip install 'calibrant[smt]'" in refused(capsys, "verify", tmp_path / "certs", pool, "--engine", "smt")
    assert called("verify", tmp_path / "certs", pool, "--engine", "sat").returncode == 0
