"""Classes, evidence and SCMs of the shared vectors of noise, hidden variables and episodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from calibrant.dsl.formulas.formula import STANDARD_OPERATORS
from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered
from calibrant.dsl.replayscm.extensions.extension import MechanismClass, NoiseKind, NoiseModel, Prior, known_rate
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord
from calibrant.dsl.replayscm.scm import LocalFunction
from calibrant.solvers.formulas.lookup import formula_for
from tests.support.shared import shared_records


def frontier_vectors(name: str) -> Iterator[dict[str, Any]]:
    """Yield the lines of a vector file of noise, hidden variables or episodes."""
    return shared_records(f"vectors_{name}_dev.jsonl", part="frontier")


def class_of(raw: Mapping[str, Any], noise: Any) -> MechanismClass:
    """Return the class of a vector."""
    observed, hidden = tuple(raw["variables"]), raw["hidden"]
    variables, roots = (*observed, *hidden), tuple(raw["roots"])
    disclosure = Ordered(tuple(raw["order"]), roots) if raw["order"] else HiddenOrder(variables, roots)
    return MechanismClass(
        observed,
        roots,
        disclosure,
        raw["max_parents"],
        Prior(raw["prior"]),
        noise_of(noise),
        {name: None if parents is None else tuple(parents) for name, parents in hidden.items()},
    )


def noise_of(noise: Any) -> NoiseModel:
    if isinstance(noise, str):
        return known_rate(Fraction(noise))
    pairs = noise["each"] if isinstance(noise, dict) else noise
    kind = NoiseKind.EACH if isinstance(noise, dict) else NoiseKind.SHARED
    return NoiseModel(kind, tuple((Fraction(rate), Fraction(prior)) for rate, prior in pairs))


def evidence_of(worlds: list[dict[str, Any]]) -> tuple[EvidenceWorld, ...]:
    return tuple(EvidenceWorld(world["do"], tuple(world["rows"])) for world in worlds)


def mechanisms_of(raw: Mapping[str, Any]) -> dict[str, LocalFunction]:
    """Functions written as parents and a table whose character r is the value in row r."""
    return {
        v: LocalFunction(
            tuple(f["parents"]), TruthTable(len(f["parents"]), sum(int(b) << r for r, b in enumerate(f["table"])))
        )
        for v, f in raw.items()
    }


def record_of(line: Mapping[str, Any], **changes: Any) -> ProblemRecord:
    """Return the native record of an episode vector."""
    item = line["item"]
    raw = item["class"]
    disclosure: Any = {"type": "hidden_order", "roots": raw["roots"]}
    if raw["order"]:
        disclosure = {"type": "ordered", "order": raw["order"], "roots": raw["roots"]}
    gold = {v: _formula(f["parents"], f["table"], raw["roots"]) for v, f in item["gold"].items()}
    record = {
        "id": line["id"],
        "kind": "CAL_A_SCM_EPISODE",
        "variables": raw["variables"],
        "units": [],
        "disclosure": disclosure,
        "training": [],
        "sealed": {"gold": gold, "seed": item["seed"]},
        "max_parents": raw["max_parents"],
        "prior": raw["prior"],
        "hidden": raw["hidden"],
        "allowance": item["allowance"],
    }
    if item["noise"] != "0":
        record["noise"] = item["noise"]
    return msgspec.convert(record | changes, ProblemRecord)


def _formula(parents: list[str], table: str, roots: list[str]) -> str:
    if not parents:
        return f"(iff {roots[0]} {roots[0]})" if table == "1" else f"(xor {roots[0]} {roots[0]})"
    bits = TruthTable(len(parents), sum(int(b) << r for r, b in enumerate(table)))
    return render(formula_for(bits, parents, STANDARD_OPERATORS))


def problem_of(line: Mapping[str, Any], **changes: Any) -> Problem:
    return problem_from_record(record_of(line, **changes))
