"""Sets of SCMs that fit the training worlds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.bench.replayscm.solve import FUNCTIONS
from calibrant.bench.replayscm.verdict import MEANING
from calibrant.bench.sets.capabilities import Hypotheses
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.replayscm.problem import Problem
from calibrant.solvers.outcome import Found

MAX_PARENTS = 5  # of a mechanism: every SCM that an answer may state


def hypotheses(item: Problem) -> Hypotheses:
    """Return the SCMs of the task's language that replay every training world; they weigh the same."""
    if item.task.extension is not None:
        raise CalibrantError(
            f"{in_one_line(item.id)} has noise, hidden variables or worlds to ask for; sets are of plain items"
        )
    space = FUNCTIONS.version_space(item, max_parents=MAX_PARENTS)
    counted = space.counted()
    if not isinstance(counted, Found):
        raise CalibrantError(f"the SCMs that fit {in_one_line(item.id)} are not counted: {counted.reached}")
    words = f"SCMs with at most {MAX_PARENTS} functional parents that replay the training worlds"
    return Hypotheses("SCMs", words, counted.value, _key, lambda score, key: score.get("trainExact") is True)


def _key(score: Mapping[str, Any]) -> str | None:
    meaning = score.get(MEANING)
    return meaning if score.get("valid") is True and isinstance(meaning, str) else None
