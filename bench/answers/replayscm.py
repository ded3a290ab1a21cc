"""ReplaySCM's answers: what they mean, what counts of several samples, and which columns tables have.

The conventions of the columns are in bench.answers.columns.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import lru_cache

from calibrant.bench.answers.attribution import ATTRIBUTION_COLUMNS
from calibrant.bench.answers.columns import (
    ALTERNATIVE_COLUMNS,
    FUNNEL_COLUMNS,
    REPLAY_COLUMNS,
    ROOT_COLUMNS,
    STRUCTURE_COLUMNS,
    Verdict,
)
from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.samples import Right, Sample
from calibrant.dsl.formulas.table import MAX_TABLE_VARS, TruthTable, full_mask, projection, shrink
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.mechanisms import Mechanism
from calibrant.dsl.replayscm.pools.published_files import latent_of
from calibrant.dsl.replayscm.problem import TaskKind
from calibrant.dsl.replayscm.replay import compute
from calibrant.dsl.replayscm.score import Score

MEANING = "meaning"  # the key of that digest beside a verdict

RIGHTS: tuple[tuple[str, str, Right], ...] = (
    ("task_correct", "TaskCorrect", lambda sample: sample.correct),
    ("train_exact", "TrainExact", lambda sample: sample.train_exact),
    ("heldout_exact", "HeldoutExact", lambda sample: sample.heldout_exact),
)


def sample_of(verdict: Verdict) -> Sample:
    meant = verdict.score.get(MEANING)
    correct = verdict.score.get("correct") is True
    known = meant if isinstance(meant, str) else None
    return Sample(verdict.valid, correct, verdict.train_exact, verdict.heldout_exact, known)


def _function(mechanism: Mechanism) -> str:
    """What a mechanism computes, as text; of more variables than a table has, the formula."""
    if mechanism.function is None:
        variables = mechanism.variables
        if mechanism.table is not None:
            mechanism.function = _spelled(variables, mechanism.table & full_mask(len(variables)))
        elif len(variables) <= MAX_TABLE_VARS:
            table = compute(mechanism.formula, _projections(variables), full_mask(len(variables)))
            mechanism.function = _spelled(variables, table)
        else:
            mechanism.function = render(mechanism.formula)
    return mechanism.function


@lru_cache(maxsize=1 << 12)
def _projections(variables: tuple[str, ...]) -> Mapping[str, int]:
    return {name: projection(index, len(variables)).bits for index, name in enumerate(variables)}


@lru_cache(maxsize=1 << 14)  # many formulas are one function
def _spelled(variables: tuple[str, ...], bits: int) -> str:
    table, kept = shrink(TruthTable(len(variables), bits))
    return repr((tuple(variables[i] for i in kept), table))


def meaning(score: Score) -> str | None:
    """A digest of what a valid answer means: roots, functional parents and truth tables; experiment and witness too."""
    submission = score.submission
    if submission is None:
        return None
    functions = tuple([(variable, _function(one)) for variable, one in sorted(submission.mechanisms.items())])
    asked = "{}"
    if score.problem.task.kind is TaskKind.ALTERNATIVE and score.answer is not None:
        asked = json.dumps({key: score.answer.get(key) for key in ("experiment", "witness")}, sort_keys=True)
    return _digest(submission.roots, functions, asked)


@lru_cache(maxsize=1 << 12)
def _digest(roots: tuple[str, ...], functions: tuple[tuple[str, str], ...], asked: str) -> str:
    text = repr((sorted(roots), list(functions), asked))
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]


MEASURES = MetricSet(
    benchmark="replayscm",
    views={
        "replay": (*REPLAY_COLUMNS, *ROOT_COLUMNS, *ALTERNATIVE_COLUMNS),
        "structure": STRUCTURE_COLUMNS,
        "funnel": FUNNEL_COLUMNS,
        "attribution": ATTRIBUTION_COLUMNS,
    },
    first=(
        *("n", "train_exact", "heldout_exact", "alt_scm_joint", "heldout_world", "valid", "root_exact"),
        *("alt_train_exact", "experiment_witness", "samples", "coverage", "out_of_budget"),
        *("parent_f1", "parent_map_exact", "local_match"),
    ),
    verdict=Verdict,
    sample=sample_of,
    rights=RIGHTS,
    unit=latent_of,
    settings=(
        *("Ordered", "Ord-", "Block", "Hidden-order", "Hid-", "Hidden-roots", "Hid-Roots", "Alt-"),
    ),  # the disclosure ladder
)
