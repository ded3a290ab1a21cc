"""Certificates of counts and of uniqueness, as JSON that a third party can check.

A certificate holds the class, the digest of the evidence, the number of functions for every variable and parent set,
and the sum over DAGs by root set. For a unique member it also holds a CNF that states "there is a second one" and a
DRUP proof that it has no model. audits.replayscm.certificates.verify recomputes all of it and shares no code with this
module or the solvers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.formulas.synthesis import MAX_SIZE_OF_FOUR
from calibrant.solvers.replayscm.members import sample_members, smallest_members
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

FORMAT = "calibrant-certificate"
VERSION = 2


def evidence_digest(problem: Problem) -> str:
    """Return the SHA-256 of the visible task: the native record without id, sealed part and results, keys sorted."""
    record = msgspec.to_builtins(record_from_problem(problem))
    visible = {key: value for key, value in record.items() if key not in ("id", "sealed", "results")}
    for world in visible["training"]:
        world.pop("environment", None)
    return hashlib.sha256(json.dumps(visible, sort_keys=True).encode()).hexdigest()


def build_certificate(problem: Problem, model_class: ModelClass) -> dict[str, Any]:
    """Return the certificate of an instance's count in a class."""
    space = VersionSpace(problem.task, model_class)
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "instance": problem.id,
        "evidence": evidence_digest(problem),
        "class": {
            "max_parents": model_class.max_parents,
            "max_size": model_class.max_size,
            "nested_roots": model_class.nested_roots and problem.task.disclosure.roots is None,
            "in_words": model_class.describe(problem.task),
        },
        "functions": {v: _functions(space, v) for v in problem.task.variables if _can_be_endogenous(space, v)},
        "by_roots": {" ".join(roots): str(count) for roots, count in space.counts_by_roots.items()},
        "count": str(space.count),
    }
    if space.count == 1:
        document["unique"] = _unique_claim(space)
    return document


def _can_be_endogenous(space: VersionSpace, variable: str) -> bool:
    return any(variable not in roots for roots in space.root_sets)


def _functions(space: VersionSpace, variable: str) -> dict[str, str]:
    counts = space.local(space.index[variable]).counts
    return {" ".join(space.names(mask)): str(count) for mask, count in sorted(counts.items())}


def _unique_claim(space: VersionSpace) -> dict[str, Any]:
    """Return the member, and the refutation of a second one over the same root set."""
    (roots,) = space.counts_by_roots
    model = _only_member(space)
    numbered, clauses = second_member_cnf(space, model)
    return {
        "roots": list(roots),
        "mechanisms": {v: render(mechanism) for v, mechanism in model.mechanisms.items()},
        "variables": numbered,
        "cnf": clauses,
        "proof": refutation(clauses),
    }


def _only_member(space: VersionSpace) -> Scm:
    """Return the only member, with least formulas if the class has a cap or at most four parents."""
    if space.model_class.max_size is not None:
        return smallest_members(space, 1).models[0]
    if space.model_class.max_parents <= 4:
        capped_class = ModelClass(space.model_class.max_parents, MAX_SIZE_OF_FOUR, space.model_class.nested_roots)
        return smallest_members(VersionSpace(space.task, capped_class), 1).models[0]
    from random import Random

    return sample_members(space, Random(0), 1)[0]


def second_member_cnf(space: VersionSpace, model: Scm) -> tuple[dict[str, int], list[list[int]]]:
    """Encode "a second member with the same roots exists", given that every parent set of the member has one function.

    Variables: selectors `V <- S` for every parent set with functions, and precedence `U < V` of endogenous variables.
    Clauses: at least one selector per variable; precedence is total and transitive; a selected parent precedes; not all
    of the member's own selectors. Return the numbers of the variables by name, and the clauses.
    """
    endogenous = list(model.mechanisms)
    numbered: dict[str, int] = {}

    def number(name: str) -> int:
        return numbered.setdefault(name, len(numbered) + 1)

    def before(u: str, v: str) -> int:
        return number(f"{u} < {v}") if endogenous.index(u) < endogenous.index(v) else -number(f"{v} < {u}")

    clauses: list[list[int]] = []
    for v in endogenous:
        masks = [m for m in sorted(space.local(space.index[v]).counts) if _are_variables(space.names(m), model)]
        clauses.append([number(_selector(v, space.names(mask))) for mask in masks])
        for mask in masks:
            for u in space.names(mask):
                if u in model.mechanisms:
                    clauses.append([-number(_selector(v, space.names(mask))), before(u, v)])
    for u, v, w in combinations(endogenous, 3):
        clauses.append([-before(u, v), -before(v, w), before(u, w)])
        clauses.append([before(u, v), before(v, w), -before(u, w)])
    member_selectors = [number(_selector(v, local.parents)) for v, local in model.local_functions.items()]
    clauses.append([-selector for selector in member_selectors])
    return numbered, clauses


def _are_variables(parents: Iterable[str], model: Scm) -> bool:
    return all(u in model.mechanisms or u in model.roots for u in parents)


def _selector(variable: str, parents: Sequence[str]) -> str:
    return f"{variable} <- {' '.join(parents)}"


def refutation(clauses: Sequence[Sequence[int]]) -> list[str]:
    """Return CaDiCaL's DRUP proof of unsatisfiability, empty clause included; `ValueError` if there is a model."""
    from pysat.solvers import Cadical153

    with Cadical153(bootstrap_with=[list(clause) for clause in clauses], with_proof=True) as solver:
        if solver.solve():
            raise ValueError("the clauses have a model: there is a second member")
        proof = [line for line in solver.get_proof() or [] if line.strip()]
        return proof if "0" in proof else [*proof, "0"]


def to_json(document: Mapping[str, Any]) -> str:
    """Serialize with sorted keys, so that equal certificates are equal bytes."""
    return json.dumps(document, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
