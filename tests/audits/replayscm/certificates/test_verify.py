"""Certificates hold, and forged ones are refused with the reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path
from random import Random
from typing import Any

import pytest

from calibrant.audits.claims import Refused
from calibrant.audits.replayscm.certificates.certificate import build_certificate, refutation, to_json
from calibrant.audits.replayscm.certificates.counting import (
    MAX_CAP,
    MAX_GROUP,
    LargeGroupError,
    count_dags,
    essential_functions,
    least_sizes,
)
from calibrant.audits.replayscm.certificates.verify import ProofError, check_refutation, verify
from calibrant.bench.cli import main
from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable, depends_on, full_mask, projection
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import Ordered
from calibrant.dsl.replayscm.item import Pool, Problem
from calibrant.dsl.replayscm.pools.files import write_pool
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.commands import refused
from tests.support.effort import effort
from tests.support.forgery.replayscm import KINDS, forgeries, genuine, is_true
from tests.support.replayscm.brute_force import all_members, is_acyclic
from tests.support.replayscm.brute_force import least_sizes as by_multisets
from tests.support.replayscm.pools import POOLS, dev_problems
from tests.support.replayscm.random_problems import Limits, small_problems
from tests.support.replayscm.written import written_problem, written_scm, written_world
from tests.support.shared import shared_file

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
    for problem in dev_problems(setting)[:30:15]:
        model_class = ModelClass(max_parents, nested_roots=setting == "hidden_roots")
        made = as_read(build_certificate(problem, model_class))
        assert str(VersionSpace(problem.task, model_class).count) in verify(made, problem)


def test_a_certificate_of_uniqueness_holds_and_carries_a_proof() -> None:
    made = as_read(build_certificate(unique_problem(), ModelClass(3)))
    assert made["count"] == "1"
    assert made["unique"]["proof"]
    assert " 1 members " in verify(made, unique_problem())


Forge = Callable[[dict[str, Any]], object]


def first_counts(made: dict[str, Any]) -> dict[str, str]:
    counts: dict[str, str] = next(iter(made["functions"].values()))
    return counts


def one_count_off(made: dict[str, Any]) -> None:
    parents, count = next(iter(first_counts(made).items()))
    first_counts(made)[parents] = str(int(count) + 1)


def another_member(made: dict[str, Any]) -> None:
    variable, text = next(iter(made["unique"]["mechanisms"].items()))
    made["unique"]["mechanisms"][variable] = f"(not {text})"


FORGERIES: list[tuple[str, Forge, str]] = [
    ("one count off", one_count_off, "plain counting finds"),
    ("missing parent set", lambda made: first_counts(made).popitem(), "claims none"),
    ("another total", lambda made: made.update(count="2"), "claims 2 members; plain counting finds 1"),
    ("another sum", lambda made: made.update(by_roots=dict.fromkeys(made["by_roots"], "2")), "by_roots"),
    ("wider class", lambda made: made["class"].update(max_parents=4), "plain counting finds"),
    ("claim without proof", lambda made: made.pop("unique"), "claim of uniqueness"),
    ("weaker cnf", lambda made: made["unique"]["cnf"].pop(0), "CNF does not encode"),
    (
        "added clause",
        lambda made: made["unique"].update(cnf=[*made["unique"]["cnf"], [1]], proof=["0"]),
        "CNF does not encode",
    ),
    ("garbled proof", lambda made: made["unique"].update(proof=["1 x 0"]), "not a clause"),
    ("another member", another_member, "does not replay"),
    ("empty proof", lambda made: made["unique"].update(proof=[]), "does not end with the empty clause"),
    (
        "roots rule for told roots",
        lambda made: made["class"].update(nested_roots=True),
        "a rule for root sets, but the instance tells the roots",
    ),
    ("version as a fraction", lambda made: made.update(version=2.0), "version is not an integer"),
    ("malformed", lambda made: made.update(functions=[1, 2]), "malformed"),
]


@pytest.mark.parametrize(("forge", "reason"), [entry[1:] for entry in FORGERIES], ids=[entry[0] for entry in FORGERIES])
def test_a_forged_certificate_is_refused_with_the_reason(forge: Forge, reason: str) -> None:
    made = as_read(build_certificate(unique_problem(), ModelClass(3)))
    forge(made)
    with pytest.raises(Refused, match=reason):
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
    changes: list[tuple[str, Forge]] = [
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


# --- Certificates of classes with a cap on formula size: recounted from a list of functions that is made anew ---------
OPERATOR_SETS = (STANDARD_OPERATORS, ("not", "and", "or"), ("iff", "or"), ("xor",), ("not", "iff"))


@pytest.mark.parametrize("operators", OPERATOR_SETS)
@pytest.mark.parametrize(("num_vars", "max_size"), [(1, 7), (2, 7), (3, 6), (4, 5), (5, 5)])
def test_sizes_are_those_of_naive_enumeration(operators: tuple[str, ...], num_vars: int, max_size: int) -> None:
    atoms = [projection(i, num_vars).bits for i in range(num_vars)]
    expected = by_multisets(atoms, full_mask(num_vars), operators, max_size)
    assert dict(least_sizes(num_vars, max_size, operators)) == expected
    listed = {int(bits) for bits in essential_functions(num_vars, max_size, frozenset(operators))}
    tables = (TruthTable(num_vars, bits) for bits in expected)
    assert listed == {t.bits for t in tables if all(depends_on(t, i) for i in range(num_vars))}


@cache
def small(operators: tuple[str, ...]) -> tuple[Problem, ...]:
    return tuple(small_problems(9, 40, Limits(operators=operators)))


@pytest.mark.soak
@pytest.mark.parametrize("index", range(effort(8, 40)))
def test_counts_of_small_problems_are_those_of_brute_force(index: int) -> None:
    """Two problems of each disclosure, in two sets of operators; ten in a soak."""
    problem = small(OPERATOR_SETS[index % 2])[index]
    for max_size in (1, 3, 5):
        made = as_read(build_certificate(problem, ModelClass(2, max_size)))
        assert made["count"] == str(len(all_members(problem.task, 2, max_size)))
        assert f"{problem.id}: {made['count']} members" in verify(made, problem)


CAPPED = [ModelClass(3, 7), ModelClass(4, 9), ModelClass(5, 8)]


@pytest.mark.soak
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("model_class", [*CAPPED, *effort([], [ModelClass(4, 12)])])
def test_counts_of_pools_hold(pool: str, model_class: ModelClass) -> None:
    """Recount two problems of each pool, of six and of nine variables; in a soak nine.

    In a soak also under the largest cap, which lists all functions of four variables of up to twelve nodes.
    """
    for problem in dev_problems(pool)[:: effort(47, 9)]:
        made = as_read(build_certificate(problem, model_class))
        assert made["count"] == str(VersionSpace(problem.task, model_class).count)
        assert f"formula size <= {model_class.max_size}" in verify(made, problem)


def unique() -> tuple[Problem, ModelClass]:
    """Return an instance with one member under a cap, but not without it."""
    for problem in dev_problems("hidden_order"):
        for max_size in range(5, 10):
            counts = [VersionSpace(problem.task, ModelClass(4, cap)).count for cap in (max_size, None)]
            if counts[0] == 1 < counts[1]:
                return problem, ModelClass(4, max_size)
    raise AssertionError("no such instance")


def test_a_claim_of_uniqueness_under_a_cap_holds_and_carries_a_proof() -> None:
    problem, model_class = unique()
    made = as_read(build_certificate(problem, model_class))
    assert made["unique"]["proof"]
    assert " 1 members " in verify(made, problem)
    made["class"]["max_size"] = model_class.max_size + 1 if model_class.max_size else None
    with pytest.raises(Refused):
        verify(made, problem)


def test_forgeries_are_refused_with_the_reason() -> None:
    problem = dev_problems("ordered")[0]
    made = as_read(build_certificate(problem, ModelClass(3, 9)))
    variable, counts = next((v, c) for v, c in made["functions"].items() if c)
    parents = next(iter(counts))
    counts[parents] = str(int(counts[parents]) + 1)
    with pytest.raises(Refused, match=f"functions of {variable} over"):
        verify(made, problem)
    del counts[parents]
    with pytest.raises(Refused, match="it claims none"):
        verify(made, problem)
    uncapped = as_read(build_certificate(problem, ModelClass(3)))
    uncapped["class"]["max_size"] = 4
    with pytest.raises(Refused, match="functions of"):
        verify(uncapped, problem)
    renamed = as_read(build_certificate(problem, ModelClass(3, 9)))
    renamed["class"]["in_words"] = "functional parents <= 3, any formula size, Ordered"
    with pytest.raises(
        Refused, match="its class is called 'functional parents <= 3, any formula size, Ordered', but is"
    ):
        verify(renamed, problem)


@pytest.mark.parametrize("claimed", [MAX_CAP[4] + 1, 0, "9", True, 9.0])
def test_sizes_that_cannot_be_recounted_are_refused_in_one_line(claimed: object) -> None:
    problem = dev_problems("ordered")[0]
    made = as_read(build_certificate(problem, ModelClass(4, 5)))
    made["class"]["max_size"] = claimed
    with pytest.raises(Refused, match="with 4 parents sizes up to 12 can be recounted"):
        verify(made, problem)
    made["class"] |= {"max_parents": 6, "max_size": 5}
    with pytest.raises(Refused, match="with 6 parents sizes up to 0 can be recounted"):
        verify(made, problem)


def test_the_command_refuses_sizes_that_cannot_be_verified(capsys: pytest.CaptureFixture[str]) -> None:
    pool = shared_file("pool_dev_t1_ordered.runtime.yaml")
    line = refused(capsys, "audit", pool, "--max-parents", 5, "--max-size", 10, "--certificates", "c")
    assert "with 5 parents, `calibrant verify` recounts sizes up to 9" in line


def three_rows(grammar: Grammar = STANDARD) -> Problem:
    """C is 1 where A and B are 0, and 0 where one of them is 1: (iff A B) of 3 nodes, (not (or A B)) of 4."""
    gold = written_scm("A B", C="(iff A B)")
    world = written_world("w", "A B C", "001 010 100")
    return written_problem(Ordered(("A", "B", "C"), ("A", "B")), gold, [world], grammar=grammar)


def test_a_member_outside_the_cap_is_not_the_unique_one() -> None:
    problem = three_rows()
    made = as_read(build_certificate(problem, ModelClass(2, 3)))
    assert made["unique"]["mechanisms"] == {"C": "(iff A B)"}
    assert " 1 members " in verify(made, problem)
    made["unique"]["mechanisms"]["C"] = "(not (or A B))"
    with pytest.raises(Refused, match="the unique member's C has no formula of at most 3 nodes"):
        verify(made, problem)


def test_sizes_are_of_the_operators_that_the_class_names() -> None:
    """Where `if` is allowed no least formulas are made of it, and the class says so."""
    problem = three_rows(Grammar((*STANDARD_OPERATORS, "if"), False))
    made = as_read(build_certificate(problem, ModelClass(2, 3)))
    words = "functional parents <= 2, formula size <= 3 over not and or xor iff, Ordered"
    assert made["class"]["in_words"] == words
    assert words in verify(made, problem)
    made["class"]["in_words"] = "functional parents <= 2, formula size <= 3, Ordered"
    with pytest.raises(Refused, match="its class is called"):
        verify(made, problem)


# --- Forged certificates of counts, capped counts and unique members: none that is false verifies ---------------------
ENOUGH = 50


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_no_false_certificate_verifies(kind: str) -> None:
    """Of each certificate six changes at drawn places beside those that know the claim; 200 in a soak."""
    assert len(genuine(kind)) > 1
    for problem, file in genuine(kind):
        assert verify(file, problem)
        assert is_true(problem, file)
    false = 0
    for problem, forged in forgeries(kind, Random(kind), effort(6, 200)):
        if not isinstance(forged, dict) or is_true(problem, forged):
            continue
        false += 1
        with pytest.raises(Refused) as refusal:
            verify(forged, problem)
        assert len(str(refusal.value)) < 1_000
        assert str(refusal.value).isprintable()
    assert false >= ENOUGH


# --- The plain count of DAGs: against published numbers, against all choices, and its limits --------------------------


def every_set(names: list[str]) -> dict[str, dict[frozenset[str], int]]:
    return {
        name: {frozenset(own): 1 for k in range(len(names)) for own in combinations([n for n in names if n != name], k)}
        for name in names
    }


@pytest.mark.parametrize(("number", "dags"), [(1, 1), (2, 3), (3, 25), (4, 543), (5, 29_281), (6, 3_781_503)])
def test_labelled_dags_are_as_many_as_published(number: int, dags: int) -> None:
    """OEIS A003024."""
    names = [f"X{i}" for i in range(number)]
    assert count_dags(every_set(names), (), names) == dags


def test_weighted_sums_with_roots_are_those_of_all_choices() -> None:
    """Five variables, one or two of them roots, with parent sets that fall into several groups."""
    rng, several = Random(3), 0
    for _ in range(60):
        names = [f"X{i}" for i in range(5)]
        roots = names[: rng.randint(1, 2)]
        functions = {
            name: {
                frozenset(own): rng.randint(1, 9) for own in rng.sample(list(every_set(names)[name]), rng.randint(1, 4))
            }
            for name in names
        }
        free = [name for name in names if name not in roots]
        expected = sum(
            prod(functions[name][own] for name, own in zip(free, chosen, strict=True))
            for chosen in product(*(functions[name] for name in free))
            if is_acyclic(dict(zip(free, map(tuple, chosen), strict=True)))
        )
        assert count_dags(functions, roots, names) == expected
        several += expected > 0
    assert several > 20


def test_a_group_that_is_too_large_is_left_and_a_long_chain_is_not() -> None:
    names = [f"X{i}" for i in range(MAX_GROUP + 1)]
    ring = {name: {frozenset({names[i - 1]}): 1, frozenset(): 1} for i, name in enumerate(names)}
    with pytest.raises(LargeGroupError, match=f"{MAX_GROUP + 1} variables can reach each other"):
        count_dags(ring, (), names)
    chain = {**ring, names[0]: {frozenset[str](): 1}}
    assert count_dags(chain, (), names) == 2**MAX_GROUP
