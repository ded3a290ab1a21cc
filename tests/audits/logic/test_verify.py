"""Certificates of families: those that solvers make hold, and no forged one does."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from calibrant.audits.claims import Certificate, evidence_digest, verify
from calibrant.audits.logic.items import better_certificate, count_certificate, missing_certificate, open_certificate
from calibrant.audits.logic.verify import VERIFIERS, evidence_of
from calibrant.dsl.logic.item import Edge, Task, Tolerance
from calibrant.solvers.logic.family import LogicFamily, solve_family
from calibrant.solvers.outcome import Found
from tests.support.benchmarks.logic import random_tasks, task_of, vectors_of
from tests.support.effort import effort


def _family(task: Task) -> LogicFamily:
    outcome = solve_family(task)
    assert isinstance(outcome, Found)
    return outcome.value


def _reason(certificate: Certificate | None, task: Task) -> str:
    assert certificate is not None
    sent = msgspec.json.decode(msgspec.json.encode(certificate), type=Certificate)
    return verify(sent, evidence_of(task), VERIFIERS).reason


@pytest.mark.soak
def test_counts_of_vectors_and_random_problems_are_recounted() -> None:
    """Every third vector and 40 random problems, half of them cyclic, by an elimination of another kind."""
    tasks = [task_of(vector) for vector in list(vectors_of("family"))[:: effort(3, 1)]]
    tasks += random_tasks(7, effort(40, 1_000))
    for task in tasks:
        family = _family(task)
        assert _reason(count_certificate(family, family.open_clauses()[:2]), task) == ""


def _example() -> LogicFamily:
    """Return a cyclic vector with open clauses and edges."""
    for vector in vectors_of("family"):
        if vector["expected"]["cyclic"] and vector["size"] is not None:
            family = _family(task_of(vector))
            if 5 < family.count < 100 and family.open_clauses():
                return family
    raise AssertionError("no such vector")


def test_open_better_and_missing() -> None:
    family = _example()
    clause = family.open_clauses()[0]
    edge = next(edge for edge, number in family.edges().items() if number < family.count)
    assert _reason(open_certificate(family, clause), family.task) == ""
    assert _reason(open_certificate(family, edge), family.task) == ""
    members = list(family.models())
    assert open_certificate(family, Edge("absent", 1, "absent")) is None
    worse = members[-1]
    assert _reason(better_certificate(family, worse), family.task) == ""
    assert _reason(missing_certificate(family, members[1:]), family.task) == ""
    assert missing_certificate(family, members) is None


def _bump(text: str) -> str:
    return str(int(text) + 1)


Forge = Callable[[dict[str, Any]], object]
FORGERIES: list[tuple[str, Forge]] = [
    ("count", lambda data: data.update(count=_bump(data["count"]))),
    ("count", lambda data: data["spectrum"].pop()),
    ("count", lambda data: data["spectrum"][0].__setitem__(2, _bump(data["spectrum"][0][2]))),
    ("count", lambda data: data["limits"].update(least_misfit=data["limits"]["least_misfit"] - 1)),
    ("count", lambda data: data["limits"].update(least_misfit=data["limits"]["least_misfit"] + 1)),
    ("count", lambda data: data["limits"].update(least_size=data["limits"]["least_size"] + 1)),
    ("count", lambda data: data["limits"].update(fit="9")),
    ("count", lambda data: data["limits"].update(size=None)),
    ("count", lambda data: data["limits"].update(fit="-1")),
    ("count", lambda data: data["clauses"].update({k: _bump(v) for k, v in data["clauses"].items()})),
    ("count", lambda data: data["clauses"].update({"x<-y": "1"})),
    ("count", lambda data: data["clauses"].update({"no clause": "0"})),
    ("count", lambda data: data.update(more=1)),
    ("count", lambda data: data.pop("count")),
    ("open", lambda data: data.update(having=data["lacking"], lacking=data["having"])),
    ("open", lambda data: data.update(lacking=data["having"])),
    ("open", lambda data: data.update(part="x<-y")),
    ("open", lambda data: data["lacking"].append("x<-y")),
    ("open", lambda data: data["limits"].update(least_misfit=0, fit="0")),
    ("better", lambda data: data.update(better=data["model"])),
    ("better", lambda data: data["better"].append("x<-y")),
    ("better", lambda data: data["model"].extend(["x<-y", "y<-x"])),
    ("missing", lambda data: data["listed"].append(data["member"])),
    ("missing", lambda data: data.update(member=["x<-y"])),
    ("missing", lambda data: data["limits"].update(least_misfit=10**9)),
]


@pytest.mark.parametrize("number", range(len(FORGERIES)))
def test_a_forged_certificate_does_not_hold(number: int) -> None:
    claim, forge = FORGERIES[number]
    family = _example()
    members = list(family.models())
    certificates = {
        "count": count_certificate(family, family.open_clauses()[:1]),
        "open": open_certificate(family, family.open_clauses()[0]),
        "better": better_certificate(family, members[-1]),
        "missing": missing_certificate(family, members[1:]),
    }
    certificate = certificates[claim]
    assert certificate is not None
    assert _reason(certificate, family.task) == ""
    data = msgspec.json.decode(msgspec.json.encode(certificate.data))
    forge(data)
    assert data != certificate.data
    assert _reason(msgspec.structs.replace(certificate, data=data), family.task) != ""


@pytest.mark.parametrize(("fit", "size"), [("9", 0), ("0", 40), ("0", None), ("any", 0)])
def test_a_certificate_of_other_tolerances_is_refused(fit: str, size: int | None) -> None:
    """Each of the four kinds: as it was made, and bound anew to the item whose tolerances it does not have."""
    family = _example()
    task = family.task
    assert task.tolerance not in (Tolerance(fit, size), Tolerance("0", 0))
    other = _family(replace(task, tolerance=Tolerance(fit, size)))
    members = list(family.models())
    certificates = [
        count_certificate(family),
        open_certificate(family, family.open_clauses()[0]),
        missing_certificate(family, members[1:]),
        better_certificate(family, members[-1]),
    ]
    for certificate in certificates:
        assert _reason(certificate, task) == ""
        assert _reason(certificate, other.task) == "made for other evidence"
    for certificate in certificates[:3]:
        assert certificate is not None
        bound = msgspec.structs.replace(certificate, evidence=evidence_digest(evidence_of(other.task)))
        assert f"the item has fit {fit} and size {'none' if size is None else size}" in _reason(bound, other.task)


def test_other_evidence_and_another_class_are_noticed() -> None:
    family = _example()
    certificate = count_certificate(family)
    other_task = Task(family.task.prior, family.task.setup, (), ())
    assert _reason(certificate, other_task) == "made for other evidence"
    assert "another class" in _reason(msgspec.structs.replace(certificate, in_words="all models"), family.task)
    with pytest.raises(ValueError, match="whole family"):
        count_certificate(family.condition(family.open_clauses()[0]))


def test_the_verifier_imports_no_solver() -> None:
    source = Path(__file__).parents[3] / "audits" / "logic" / "verify.py"
    modules = [node.module for node in ast.walk(ast.parse(source.read_text())) if isinstance(node, ast.ImportFrom)]
    assert "calibrant.dsl.logic.item" in modules
    assert not [module for module in modules if module and ".solvers" in module]
