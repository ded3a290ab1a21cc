"""Records of the R package bnlearn, as values of this project: frames, constraints, scores, methods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from calibrant.baselines.structure_learning.graph import Constraints, Dag, Frame, arc_constraints, frame_from_rows
from calibrant.baselines.structure_learning.scores import (
    LocalScores,
    NetworkScore,
    VariableSelection,
    aic,
    bde,
    bds,
    bic,
    k2,
    loglik,
    mbde,
)
from calibrant.baselines.structure_learning.search import UNLIMITED, ArcStrengths, HillClimbing, Method, Tabu
from tests.support.bnlearn import compatible as bnlearn_compatible
from tests.support.shared import matching, shared_records

Record: TypeAlias = dict[str, Any]

WITH_SAMPLE_SIZE = {"bde": bde, "mbde": mbde, "bds": bds}
WITHOUT = {"bdj": bnlearn_compatible.bdj, "k2": k2, "bic": bic, "aic": aic, "loglik": loglik}


@cache
def _all_records() -> tuple[Record, ...]:
    return tuple(shared_records("bnlearn_vectors.jsonl", part="bnlearn"))


def records(kind: str, **wanted: object) -> Iterator[Record]:
    """Return the records of a kind whose fields have the given values."""
    return matching(_all_records(), kind=kind, **wanted)


@cache
def _datasets() -> Mapping[str, Record]:
    return {record["id"]: record for record in records("dataset")}


def dataset_with(num_vars: int) -> str:
    """Return the id of the first data set of so many variables."""
    return next(name for name, record in _datasets().items() if len(record["nodes"]) == num_vars)


@cache
def frame_of(dataset: str) -> Frame:
    """Return the rows of a data set; the records count intervened rows from 1."""
    record = _datasets()[dataset]
    clamped = {variable: [row - 1 for row in rows] for variable, rows in record["exp"].items()}
    return frame_from_rows(record["nodes"], record["rows"], clamped)


def dag_of(dataset: str, tag: str) -> Dag:
    parents = next(dag["parents"] for dag in _datasets()[dataset]["score_dags"] if dag["tag"] == tag)
    return frame_of(dataset).dag(parents)


def constraints_of(record: Record) -> Constraints:
    """Of a search record: 'order+wl' means both lists."""
    listed = _datasets()[record["ds"]]["constraints"]
    lists = {name: [(u, v) for u, v in listed[name]] for name in record["constraint"].split("+") if name != "none"}
    whitelist = lists.pop("wl", [])
    blacklist = [arc for arcs in lists.values() for arc in arcs]
    return arc_constraints(
        frame_of(record["ds"]).variables, blacklist=blacklist, whitelist=whitelist, max_parents=record["maxp"]
    )


def score_named(name: str, iss: float | str | None, beta: float | None = None) -> NetworkScore:
    if name in WITH_SAMPLE_SIZE:
        score = WITH_SAMPLE_SIZE[name](1.0 if iss in ("default", None) else float(iss))
    else:
        score = WITHOUT[name]()
    return score if beta is None else VariableSelection(score, beta)


@cache
def scores_of(dataset: str, name: str, iss: float | str | None, beta: float | None = None) -> LocalScores:
    """Local scores of a data set; one cache for all the searches on it."""
    return LocalScores(frame_of(dataset), score_named(name, iss, beta))


def method_of(record: Record) -> Method:
    steps = record.get("max_iter") or UNLIMITED
    if record["algo"] == "hc":
        return HillClimbing(steps)
    return Tabu(record.get("tabu") or 10, steps)


def recorded_strengths(record: Record, variables: Sequence[str]) -> ArcStrengths:
    strength, direction = np.zeros((2, len(variables), len(variables)))
    for start, end, strong, pointing in record["strength"]:
        arc = variables.index(start), variables.index(end)
        strength[arc], direction[arc] = strong, pointing
    return ArcStrengths(tuple(variables), strength, direction)


def arcs_of(frame: Frame, dag: Dag) -> list[list[str]]:
    """[from, to] by name, sorted."""
    return sorted([u, child] for child, parents in zip(frame.variables, dag, strict=True) for u in frame.names(parents))
