"""Small items with the mechanisms that the ReplaySCM paper prints in Appendix I, and worlds made for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

from calibrant.dsl.formulas.reference import evaluate
from calibrant.dsl.formulas.text import parse
from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record

CASES = {
    "case 1, Hidden-order": (
        "X2",
        "(xor X5 (and (iff X7 X8) (xor X3 X7)))",
        "(or (xor X1 X5 X7 X8) (and X5 X8 (not X1)))",
    ),
    "case 1, Ordered": (
        "X2",
        "(xor X5 (and (iff X7 X8) (xor X3 X7)))",
        "(or (and X5 (or (iff X3 X7) (iff X3 X8))) (and X7 X8 (not X3) (not X5)) (and X3 (not X5) (not X7) (not X8)))",
    ),
    "case 2": (
        "X5",
        "(iff (and X3 X6) (or X4 X7))",
        "(or (and X3 (or X4 (iff X6 X7))) (and X6 (not (or X3 X4 X7))))",
    ),
    "case 4": ("X2", "(xor X1 X4 (and X4 (xor X1 X4 X7)))", "(or X6 X7)"),
    "case 5": ("X1", "(xor X2 X5)", "(or (and (not X2) X5) X6)"),
    "case 6": (
        "X3",
        "(xor (and X5 X7) (or X4 X6))",
        "(or (and X7 (not (or (and X5 X4) (and X5 X6) (not (or X5 X4 X6))))) (and (not X7) (or X4 X6)))",
    ),
}
"""Case -> variable, its mechanism in gold, its mechanism in the answer."""


def case_record(name: str, hidden_assignments: Sequence[str] = ()) -> dict[str, Any]:
    """Return the native record of a case; its parents are roots, the training world has every other assignment of them.

    hidden_assignments: of the parents of both mechanisms, in natural order, that only the held-out world has
    """
    variable, gold, answer = CASES[name]
    parents = natural({*parse(gold).mentioned, *parse(answer).mentioned})
    every = ["".join(bits) for bits in product("01", repeat=len(parents))]
    training = [bits for bits in every if bits not in hidden_assignments]
    repeated = training + training[: len(every) - len(training)]
    return record(parents, {variable: gold}, repeated, every, name)


def record(
    roots: Sequence[str], gold: Mapping[str, str], training: Sequence[str], heldout: Sequence[str], name: str
) -> dict[str, Any]:
    """Return a native record. training, heldout: assignments of the roots, one a row, both equally long."""
    variables = [*natural((*roots, *gold))]

    def rows(assignments: Sequence[str]) -> list[str]:
        texts = []
        for bits in assignments:
            values = dict(zip(roots, map(int, bits), strict=True))
            for variable, text in gold.items():  # in an order in which parents come first
                values[variable] = int(evaluate(parse(text), values))
            texts.append("".join(str(values[v]) for v in variables))
        return texts

    return {
        "id": name,
        "kind": "CIND_A_SCM",
        "variables": variables,
        "units": [f"u{k}" for k in range(len(training))],
        "disclosure": {"type": "hidden_order", "roots": [*natural(roots)]},
        "training": [{"id": "train_00", "rows": rows(training)}],
        "sealed": {
            "gold": dict(gold),
            "heldout": [{"id": "heldout_00", "rows": rows(heldout), "assigned": [roots[0]]}],
            "latent_order": [*roots, *gold],
        },
    }


def problem_of(content: Mapping[str, Any]) -> Problem:
    return problem_from_record(convert_object(dict(content), ProblemRecord))
