"""Grammars that cannot express every function: what they express is counted, or the class says that it is not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from pathlib import Path

import pytest

from calibrant.audits.replayscm.ambiguity import restrict_to_grammar
from calibrant.audits.replayscm.certificates.certificate import build_certificate
from calibrant.audits.replayscm.certificates.counting import MAX_CAP
from calibrant.audits.replayscm.certificates.verify import _is_complete, verify
from calibrant.audits.replayscm.items import AuditOptions, audit_instance
from calibrant.bench.cli import main
from calibrant.dsl.formulas.formula import OPERATORS, STANDARD_OPERATORS
from calibrant.dsl.formulas.text import STANDARD, Grammar
from calibrant.dsl.replayscm.disclosure import Ordered
from calibrant.dsl.replayscm.item import Problem
from calibrant.solvers.formulas.catalogue import expresses_everything
from calibrant.solvers.replayscm.members import smallest_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace
from tests.support.effort import effort
from tests.support.replayscm.written import written_problem, written_scm, written_world
from tests.support.shared import shared_file

ROWS = tuple(product((0, 1), repeat=2))


def subsets(names: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for number in range(len(names) + 1):
        yield from combinations(names, number)


@cache
def closure(operators: tuple[str, ...], *, constants: bool = False) -> frozenset[tuple[int, ...]]:
    """Return the functions of two variables that formulas of these operators express, applied to a fixed point.

    Two variables suffice to tell completeness: all functions follow from not-and.
    """
    found = {tuple(row[i] for row in ROWS) for i in range(2)} | ({(0,) * 4, (1,) * 4} if constants else set())
    while True:
        new = set(found)
        for operator in (OPERATORS[name] for name in operators):
            for arity in range(operator.min_arity, (operator.max_arity or 3) + 1):
                truth = {bits: int(operator.truth([*map(bool, bits)])) for bits in product((0, 1), repeat=arity)}
                for arguments in product(found, repeat=arity):
                    new.add(tuple(truth[bits] for bits in zip(*arguments, strict=True)))
        if new == found or len(new) == 2 ** len(ROWS):
            return frozenset(new)
        found = new


@pytest.mark.parametrize("constants", [False, True])
def test_which_grammars_express_everything(constants: bool) -> None:
    """By closure; the verifier of certificates decides it by other means."""
    kinds = set()
    for operators in subsets((*STANDARD_OPERATORS, "if")):
        complete = len(closure(operators, constants=constants)) == 16
        assert expresses_everything(Grammar(operators, constants)) == complete, operators
        assert _is_complete(operators, constants=constants) == complete, operators
        kinds.add(complete)
    assert kinds == {True, False}


def problem_over(operators: tuple[str, ...], shown: str) -> Problem:
    """X3 = X1, of which these rows are shown."""
    order = Ordered(("X1", "X2", "X3"), ("X1", "X2"))
    rows = " ".join(f"{a}{b}{a}" for a, b in (map(int, text) for text in shown.split()))
    worlds = [written_world(name, "X1 X2 X3", rows) for name in ("train", "heldout")]
    return written_problem(
        order, written_scm("X1 X2", X3="X1"), worlds[:1], worlds[1:], grammar=Grammar(operators, False)
    )


FEW = [(), *((name,) for name in STANDARD_OPERATORS), ("not", "and"), ("or", "xor"), STANDARD_OPERATORS]


@pytest.mark.soak
@pytest.mark.parametrize("shown", ["00", "10 01"])
def test_an_audit_counts_what_the_grammar_expresses(shown: str) -> None:
    """Compare counts and verified certificates for no operator, one, two pairs, and all; in a soak for every set.

    The smallest members are as many.
    """
    fewer = 0
    for operators in effort(FEW, subsets(STANDARD_OPERATORS)):
        problem = problem_over(operators, shown)
        seen = [tuple(map(int, row)) for row in shown.split()]
        fitting = [f for f in closure(operators) if all(f[ROWS.index(row)] == row[0] for row in seen)]
        every = VersionSpace(problem.task, ModelClass(4)).count
        for one in audit_instance(problem, AuditOptions()).classes:
            named = "whether or not" in one.in_words  # of five parents not all that they express is listed
            assert int(one.members) == (every if named else len(fitting)), operators
            assert not (named and one.max_parents <= 4)
        chosen = restrict_to_grammar(ModelClass(4), problem.task.grammar)
        assert (chosen == ModelClass(4)) == (len(closure(operators)) == 16)
        listed = smallest_members(VersionSpace(problem.task, ModelClass(4, 15)), 20)
        assert len(listed.models) == len(fitting)
        if (chosen.max_size or 0) <= MAX_CAP[4]:
            assert f" {len(fitting)} members " in verify(build_certificate(problem, chosen), problem)
        fewer += len(fitting) < every
        if chosen != ModelClass(4):
            assert "whether or not" in ModelClass(4).describe(problem.task)
            assert f" {every} members " in verify(build_certificate(problem, ModelClass(4)), problem)
    assert fewer


def test_the_published_grammar_names_its_classes_as_before() -> None:
    problem = problem_over(STANDARD_OPERATORS, "00 11")
    assert restrict_to_grammar(ModelClass(5), STANDARD) == ModelClass(5)
    assert ModelClass(5).describe(problem.task) == "functional parents <= 5, any formula size, Ordered"


def test_audit_and_separate_agree_where_only_xor_is_allowed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pool = shared_file("ops.jsonl", part="replayscm/adversarial")
    assert main(["audit", str(pool), "--fail-on", "ambiguous", "--workers", "1"]) == 0
    assert "With at most 4 functional parents, one SCM fits 1 of 1 instance." in capsys.readouterr().out
    assert main(["separate", str(pool), "ops1"]) == 0
    assert "1 only members" in capsys.readouterr().out
    assert main(["harden", str(pool), "--out", str(tmp_path / "hard.jsonl"), "--workers", "1"]) == 0
