"""Variants of questions about programs: other names, values, orders of functions, programs and texts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from calibrant.bench.variants import CopyMap, Record, Variable, Variant, permuted, rename_json, shuffled
from calibrant.dsl.causim.bundle import bundle_of, load_source, module_text, table_bundle_of
from calibrant.dsl.causim.item import load_model
from calibrant.dsl.causim.model import Model, ModelError, loose_symbol
from calibrant.dsl.causim.prompt import prose
from calibrant.solvers.causim.canonical import ModelNames, rename_model

# --- Other programs of the same model, and programs over permuted values ----------------------------------------------
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


_SORTED = ("unknown_exogenous",)
_TEXTS = (("code", "sentences"), ("prose", "sentences"), ("prose", "rules"))  # view and style of prose


class ProgramVariants(Variable):
    """A renamed node changes the names of its noise, function and local variables too.

    values: the program is written again by rules, over values that are permuted for each node and noise variable
    equivalent: another program of the same model; words: the program, or one of two styles of prose
    """

    kinds = ("rename", "columns", "values", "equivalent", "words")
    fixed = frozenset({"id", "labels", "type", "scenario", "scm_id", "topology", "view", "vocabulary"})
    worded_by = ("view", "prose")

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return _reorder(record, random)
        if kind == "rename":
            return self._rename(record, random)
        try:
            return _write_again(record, kind, random)
        except ModelError:  # a table that is too large
            return None

    def _rename(self, record: Record, random: Random) -> Variant | None:
        names = {
            old: new
            for node, new_node in permuted(_nodes(record), random).items()
            for old, new in zip(_tokens(node), _tokens(new_node), strict=True)
        }
        if not names:
            return None
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {key: sorted(renamed[key]) for key in _SORTED if key in renamed}, names)

    def normal_form(self, record: Record, kind: str) -> Any:
        program = str(record["program"])
        is_by_meaning = kind in ("values", "equivalent") and is_within_domains(record)
        return self.other_fields(record, kind, ("id", "program", "sealed")) | {
            "program": meaning(program) if is_by_meaning else sorted(split_program(program)),
            "world": record["sealed"].get("world"),
            **{key: sorted(record[key]) for key in _SORTED if key in record},
        }

    def map_record(self, record: Record, stated: CopyMap) -> dict[str, Any]:
        renamed: dict[str, Any] = rename_json(record, stated.names, self.fixed)
        return map_values(renamed, stated.values) if stated.values else renamed

    def map_answer(self, answer: Any, stated: CopyMap) -> Any:
        renamed = rename_json(answer, stated.names)
        return map_assignment(renamed, stated.values) if isinstance(renamed, Mapping) else renamed


def _reorder(record: Record, random: Random) -> Variant | None:
    """Return the program with its functions in another order, imports first and the run last."""
    first, *functions, last = split_program(str(record["program"]))
    if len(functions) < 2 or not all(text.startswith("def ") for text in functions):
        return None
    return Variant({**record, "program": join_program([first, *shuffled(functions, random), last])})


def _write_again(record: Record, kind: str, random: Random) -> Variant | None:
    """Return the question about prose, over other values, or about another program; `ModelError` for large tables."""
    if kind == "words":
        return _rephrase(record, random)
    if not is_within_domains(record):
        return None
    if kind == "values":
        values = permuted_values(record["program"], random)
        return Variant(map_values(record, values), values=values) if values else None
    programs = other_programs(record["program"])
    return Variant({**record, "program": random.choice(programs)}) if programs else None


def _rephrase(record: Record, random: Random) -> Variant:
    present = record.get("view", "code"), record.get("prose", "sentences")
    _ = prose(load_model(record["program"]))  # raises where prose cannot be written
    others = [text for text in _TEXTS if text != present and not text[0] == present[0] == "code"]
    return Variant({**record, **dict(zip(ProgramVariants.worded_by, random.choice(others), strict=True))})


def _nodes(record: Record) -> list[str]:
    """Return the nodes whose function has the usual name, in the order of the program."""
    starts = (text.partition("(")[0] for text in str(record["program"]).split("def ")[1:])
    return [name.removeprefix("f_") for name in starts if name.startswith("f_")]


def _tokens(node: str) -> tuple[str, ...]:
    return node, f"U_{node}", f"f_{node}", node.lower(), f"u_{node.lower()}"


VARIANTS = ProgramVariants()
