"""Certificates hold, and forged ones are refused with the reason."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.audits.claims import Refused
from calibrant.audits.replayscm.certificates.certificate import build_certificate, refutation, to_json
from calibrant.audits.replayscm.certificates.rup import ProofError, check_refutation
from calibrant.audits.replayscm.certificates.verify import verify
from calibrant.bench.cli import main
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.replayscm.dev_pools import dev_problems

SETTINGS = ("ordered", "block", "hidden_order", "hidden_roots")


@cache
def unique_problem() -> Problem:
    """Return a dev instance with one member of at most three functional parents."""
    return next(p for p in dev_problems("hidden_order") if VersionSpace(p.task, ModelClass(3)).count == 1)


def as_read(made: dict[str, Any]) -> dict[str, Any]:
    """Return the certificate after a trip through its file."""
    read: dict[str, Any] = json.loads(to_json(made))
    return read


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("max_parents", [2, 4])
def test_certificates_of_counts_hold(setting: str, max_parents: int) -> None:
    for problem in dev_problems(setting)[:30:9]:
        model_class = ModelClass(max_parents, nested_roots=setting == "hidden_roots")
        made = as_read(build_certificate(problem, model_class))
        assert str(VersionSpace(problem.task, model_class).count) in verify(made, problem)


def test_a_certificate_of_uniqueness_holds_and_carries_a_proof() -> None:
    made = as_read(build_certificate(unique_problem(), ModelClass(3)))
    assert made["count"] == "1"
    assert made["unique"]["proof"]
    assert " 1 members " in verify(made, unique_problem())


def one_count_off(made: dict[str, Any]) -> None:
    counts = next(iter(made["functions"].values()))
    parents = next(iter(counts))
    counts[parents] = str(int(counts[parents]) + 1)


def missing_parent_set(made: dict[str, Any]) -> None:
    counts = next(iter(made["functions"].values()))
    del counts[next(iter(counts))]


def another_total(made: dict[str, Any]) -> None:
    made["count"] = "2"


def another_sum(made: dict[str, Any]) -> None:
    made["by_roots"] = dict.fromkeys(made["by_roots"], "2")


def wider_class(made: dict[str, Any]) -> None:
    made["class"]["max_parents"] = 4


def claim_without_proof(made: dict[str, Any]) -> None:
    del made["unique"]


def weaker_cnf(made: dict[str, Any]) -> None:
    made["unique"]["cnf"].pop(0)


def added_clause(made: dict[str, Any]) -> None:
    made["unique"]["cnf"].append([1])
    made["unique"]["proof"] = ["0"]


def garbled_proof(made: dict[str, Any]) -> None:
    made["unique"]["proof"] = ["1 x 0"]


def another_member(made: dict[str, Any]) -> None:
    variable, text = next(iter(made["unique"]["mechanisms"].items()))
    made["unique"]["mechanisms"][variable] = f"(not {text})"


def empty_proof(made: dict[str, Any]) -> None:
    made["unique"]["proof"] = []


def roots_rule_for_told_roots(made: dict[str, Any]) -> None:
    made["class"]["nested_roots"] = True


def version_as_a_fraction(made: dict[str, Any]) -> None:
    made["version"] = 2.0


def malformed(made: dict[str, Any]) -> None:
    made["functions"] = [1, 2]


FORGERIES: dict[Callable[[dict[str, Any]], None], str] = {
    one_count_off: "plain counting finds",
    missing_parent_set: "claims none",
    another_total: "claims 2 members; plain counting finds 1",
    another_sum: "by_roots",
    wider_class: "plain counting finds",
    claim_without_proof: "claim of uniqueness",
    weaker_cnf: "CNF does not encode",
    added_clause: "CNF does not encode",
    garbled_proof: "not a clause",
    another_member: "does not replay",
    empty_proof: "does not end with the empty clause",
    roots_rule_for_told_roots: "a rule for root sets, but the instance tells the roots",
    version_as_a_fraction: "version is not an integer",
    malformed: "malformed",
}


@pytest.mark.parametrize("forge", FORGERIES, ids=lambda forge: forge.__name__)
def test_a_forged_certificate_is_refused_with_the_reason(forge: Callable[[dict[str, Any]], None]) -> None:
    made = copy.deepcopy(as_read(build_certificate(unique_problem(), ModelClass(3))))
    forge(made)
    with pytest.raises(Refused, match=FORGERIES[forge]):
        verify(made, unique_problem())


def test_a_certificate_of_another_instance_is_refused() -> None:
    other = next(p for p in dev_problems("hidden_order") if p.id != unique_problem().id)
    made = as_read(build_certificate(unique_problem(), ModelClass(3)))
    with pytest.raises(Refused, match="about instance"):
        verify(made, other)
    made["instance"] = other.id
    with pytest.raises(Refused, match="other evidence"):
        verify(made, other)


def satisfiable(clauses: list[list[int]], num_vars: int) -> bool:
    return any(
        all(any((assignment[abs(lit) - 1] == 1) == (lit > 0) for lit in clause) for clause in clauses)
        for assignment in product((0, 1), repeat=num_vars)
    )


def test_proofs_of_random_clause_sets_are_accepted_iff_they_are_unsatisfiable() -> None:
    rng = Random(5)
    refuted = 0
    for _ in range(150):
        clauses = [
            [rng.choice((-1, 1)) * v for v in rng.sample(range(1, 8), rng.randint(1, 3))]
            for _ in range(rng.randint(20, 40))
        ]
        if satisfiable(clauses, 7):
            with pytest.raises(ValueError, match="model"):
                refutation(clauses)
            with pytest.raises(ProofError):
                check_refutation(clauses, ["0"])
        else:
            refuted += 1
            proof = refutation(clauses)
            added = [line for line in proof if not line.startswith("d ")]
            steps = check_refutation(clauses, proof)
            assert steps == added.index("0") + 1
    assert refuted > 20


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (["-1 0"], "line 1 of the proof does not follow"),
        (["x"], "not a clause"),
        (["1 2"], "end in 0"),
        ([], "contradiction"),
    ],
)
def test_what_is_no_proof_is_refused(proof: list[str], reason: str) -> None:
    with pytest.raises(ProofError, match=reason):
        check_refutation([[1, 2], [-1, 2], [1, -2]], proof)


def test_no_lines_are_no_proof_even_where_propagation_alone_refutes() -> None:
    clauses = [[1], [-1, 2], [-2]]
    assert check_refutation(clauses, ["0"]) == 1
    for short in ([], ["2 0"]):
        with pytest.raises(ProofError, match="does not end with the empty clause"):
            check_refutation(clauses, short)


def test_a_rule_for_root_sets_is_only_claimed_where_roots_are_hidden() -> None:
    for setting in SETTINGS:
        problem = dev_problems(setting)[0]
        made = as_read(build_certificate(problem, ModelClass(3, nested_roots=True)))
        assert made["class"]["nested_roots"] is (setting == "hidden_roots")
        verify(made, problem)


def test_a_deleted_clause_is_not_used_again() -> None:
    clauses = [[1, 2], [1, -2], [-1, 3], [-1, -3]]
    assert check_refutation(clauses, ["1 0", "0"]) == 2
    with pytest.raises(ProofError):
        check_refutation(clauses, ["d 1 2 0", "1 0", "0"])


# --- files -----------------------------------------------------------------------------------------------------------


def verdict_on(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the one line of `calibrant verify` that refuses this text."""
    (folder / "c.json").write_text(text, encoding="utf-8")
    pool = folder / "pool.jsonl"
    if not pool.exists():
        write_pool(Pool("dev", (unique_problem(),)), pool)
    assert main(["verify", str(folder / "c.json"), str(pool)]) == 1
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert line.startswith("refused  ")
    return line


def test_what_is_no_plain_certificate_is_refused_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = to_json(build_certificate(unique_problem(), ModelClass(3)))
    twice = '{"count": "9", ' + text.lstrip()[1:]
    assert "key 'count' occurs twice in one object" in verdict_on(tmp_path, twice, capsys)
    changes: list[tuple[str, Callable[[dict[str, Any]], object]]] = [
        ("no field 'claim'", lambda made: made.update(claim="unique among all")),
        ("no field 'note'", lambda made: made["class"].update(note="")),
        ("no field 'note'", lambda made: made["unique"].update(note="")),
        ("a rule for roots that is none", lambda made: made["class"].update(nested_roots=0)),
        ("a number of parents", lambda made: made["class"].update(max_parents=True)),
        ("malformed: ParseError", lambda made: made["unique"]["mechanisms"].update(X1="(and X1")),
        ("functions", lambda made: made["functions"].update({"X1\nok      all.json": {}})),
        ("no field 1", lambda made: made.update(unique=[1])),
        ("malformed", lambda made: made.update({"class": 3})),
    ]
    for reason, change in changes:
        made = json.loads(text)
        change(made)
        assert reason in verdict_on(tmp_path, json.dumps(made), capsys)
