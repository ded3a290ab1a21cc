"""Variants of questions about programs: other names of the nodes, another order of the functions."""

from __future__ import annotations

from random import Random
from typing import Any

from calibrant.bench.variants.contract import Record, Variant, permuted, rename_json, shuffled

_BLANK = "\n\n\n"  # between functions
_SORTED = ("unknown_exogenous",)


class ProgramVariants:
    """Implements Variable (bench.variants.contract).

    A renamed node changes the names of its noise, function and local variables too.
    """

    kinds = ("rename", "columns")
    fixed = frozenset({"id", "labels", "type", "scenario", "scm_id", "topology", "view", "vocabulary"})

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return _reorder(record, random)
        nodes = _nodes(record)
        names = {
            old: new
            for node, new_node in permuted(nodes, random).items()
            for old, new in zip(_tokens(node), _tokens(new_node), strict=True)
        }
        if not names:
            return None
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {key: sorted(renamed[key]) for key in _SORTED if key in renamed}, names)

    def normal_form(self, record: Record) -> Any:
        rest = {key: value for key, value in record.items() if key not in ("id", "program", "sealed")}
        return rest | {
            "program": sorted(str(record["program"]).strip().split(_BLANK)),
            "world": record["sealed"].get("world"),
            **{key: sorted(rest[key]) for key in _SORTED if key in rest},
        }


def _reorder(record: Record, random: Random) -> Variant | None:
    """Return the program with its functions in another order, imports first and the run last."""
    first, *functions, last = str(record["program"]).strip().split(_BLANK)
    if len(functions) < 2 or not all(text.startswith("def ") for text in functions):
        return None
    return Variant({**record, "program": _BLANK.join([first, *shuffled(functions, random), last]) + "\n"}, {})


def _nodes(record: Record) -> list[str]:
    """Return the nodes whose function has the usual name, in the order of the program."""
    starts = (text.partition("(")[0] for text in str(record["program"]).split("def ")[1:])
    return [name.removeprefix("f_") for name in starts if name.startswith("f_")]


def _tokens(node: str) -> tuple[str, ...]:
    return node, f"U_{node}", f"f_{node}", node.lower(), f"u_{node.lower()}"


VARIANTS = ProgramVariants()
