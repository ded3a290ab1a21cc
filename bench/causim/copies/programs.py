"""Other programs of the same model, and programs over permuted values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from calibrant.bench.variants.contract import Record, permuted
from calibrant.dsl.causim.bundle import bundle_of, load_source, module_text, table_bundle_of
from calibrant.dsl.causim.item import load_model
from calibrant.dsl.causim.model import Model, ModelError, loose_symbol
from calibrant.solvers.causim.canonical import ModelNames, rename_model

ASSIGNMENTS = ("fixed_exogenous", "do", "observed_endogenous")  # fields with values of nodes or noise
_BLANK = "\n\n\n"  # between functions

ValueMap = Mapping[str, Mapping[str, str]]


def split_program(program: str) -> list[str]:
    """Return imports, functions and the run."""
    return program.strip().split(_BLANK)


def join_program(parts: Sequence[str]) -> str:
    return _BLANK.join(parts) + "\n"


def other_programs(program: str) -> list[str]:
    """Return programs of the same model that are written otherwise: by rules, by tables."""
    model, same = load_source(program), meaning(program)
    bundles = [bundle_of(model), table_bundle_of(model)]
    texts = [module_text(bundle, comments=False) for bundle in bundles if bundle is not None]
    return [text for text in texts if text != program and meaning(text) == same]


def meaning(program: str) -> str:
    """Return what is equal for programs of one model: its program by rules."""
    return module_text(bundle_of(load_model(program)), comments=False)


def is_within_domains(record: Record) -> bool:
    """Return whether all values of the question occur in the model; what a program does with others is its own."""
    domains = _domains(load_model(record["program"]))
    return all(
        loose_symbol(value) in domains[name] for field in ASSIGNMENTS for name, value in record.get(field, {}).items()
    )


def permuted_values(program: str, random: Random) -> dict[str, dict[str, str]]:
    """Return a permutation of the values of each node and noise variable that has two, without those that stay."""
    moved = {name: permuted(domain, random) for name, domain in _domains(load_model(program)).items()}
    return {name: values for name, values in moved.items() if values}


def map_values(record: Record, values: ValueMap) -> dict[str, Any]:
    """Return a record over other values, its program by rules; `ModelError` for values that the model lacks."""
    model = load_model(record["program"])
    domains = _domains(model)
    for name, moved in values.items():
        if not moved.keys() <= set(domains.get(name, ())):
            raise ModelError(f"{name}: it lacks a value of the map")
    names = ModelNames(
        tuple(range(len(model))), {name: name for name in domains}, {name: values.get(name, {}) for name in domains}
    )
    program = module_text(bundle_of(rename_model(model, names)), comments=False)
    assignments = {field: map_assignment(record[field], values) for field in ASSIGNMENTS if field in record}
    sealed = {**record["sealed"], "world": map_assignment(record["sealed"]["world"], values)}
    return {**record, **assignments, "program": program, "sealed": sealed}


def map_assignment(assignment: Mapping[str, Any], values: ValueMap) -> dict[str, Any]:
    """Return JSON values of nodes and noise over other values; what is no value of the model stays."""
    moved = {name: values.get(name, {}).get(loose_symbol(value)) for name, value in assignment.items()}
    return {name: value if (text := moved[name]) is None else json.loads(text) for name, value in assignment.items()}


def _domains(model: Model) -> dict[str, tuple[str, ...]]:
    """Return the values of each node, and of each noise variable."""
    return {
        key: domain
        for node, local in zip(model.nodes, model.system, strict=True)
        for key, domain in ((node.name, local.domain), (node.noise, node.support))
    }
