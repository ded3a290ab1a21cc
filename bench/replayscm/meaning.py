"""A digest of what a ReplaySCM answer means, equal for answers that compute the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from calibrant.dsl.formulas.table import MAX_TABLE_VARS, TruthTable, full_mask, projection, shrink
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.evaluator import compute
from calibrant.dsl.replayscm.item import TaskKind
from calibrant.dsl.replayscm.score import Score
from calibrant.dsl.replayscm.submission import Mechanism


def _function(mechanism: Mechanism) -> str:
    """Return the function of a mechanism as text; of more variables than a table has, the formula."""
    if mechanism.function is None:
        variables = mechanism.variables
        if mechanism.table is not None:
            mechanism.function = _spell(variables, mechanism.table & full_mask(len(variables)))
        elif len(variables) <= MAX_TABLE_VARS:
            table = compute(mechanism.formula, _projections(variables), full_mask(len(variables)))
            mechanism.function = _spell(variables, table)
        else:
            mechanism.function = render(mechanism.formula)
    return mechanism.function


@lru_cache(maxsize=1 << 12)
def _projections(variables: tuple[str, ...]) -> Mapping[str, int]:
    return {name: projection(index, len(variables)).bits for index, name in enumerate(variables)}


@lru_cache(maxsize=1 << 14)  # many formulas are one function
def _spell(variables: tuple[str, ...], bits: int) -> str:
    table, places = shrink(TruthTable(len(variables), bits))
    return repr((tuple(variables[i] for i in places), table))


def meaning_digest(score: Score) -> str | None:
    """Return a digest of a valid answer: roots, functional parents and truth tables; experiment and witness too."""
    submission = score.submission
    if submission is None:
        return None
    functions = tuple(
        [(variable, _function(mechanism)) for variable, mechanism in sorted(submission.mechanisms.items())]
    )
    experiment = "{}"
    if score.problem.task.kind is TaskKind.ALTERNATIVE and score.answer is not None:
        experiment = json.dumps({key: score.answer.get(key) for key in ("experiment", "witness")}, sort_keys=True)
    return _digest(submission.roots, functions, experiment)


@lru_cache(maxsize=1 << 12)
def _digest(roots: tuple[str, ...], functions: tuple[tuple[str, str], ...], experiment: str) -> str:
    text = repr((sorted(roots), list(functions), experiment))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
