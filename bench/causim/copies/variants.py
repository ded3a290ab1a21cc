"""Variants of questions about programs: other names, values, orders of functions, programs and texts."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from calibrant.bench.causim.copies.programs import (
    is_within_domains,
    join_program,
    map_assignment,
    map_values,
    meaning,
    other_programs,
    permuted_values,
    split_program,
)
from calibrant.bench.variants.contract import CopyMap, Record, Variable, Variant, permuted, rename_json, shuffled
from calibrant.dsl.causim.item import load_model
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.prose import prose

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
