"""The shared vectors of logic models as tasks, and small random problems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from calibrant.dsl.logic.item import Edge, Experiment, Model, Options, Setup, Task, Tolerance, parse_clause
from tests.support.shared import matching, shared_records

Vector = dict[str, Any]


@cache
def read_vectors() -> tuple[Vector, ...]:
    return tuple(shared_records("vectors_logic_dev.jsonl", part="frontier"))


def vectors_of(kind: str) -> Iterator[Vector]:
    return matching(read_vectors(), kind=kind)


def experiment_of(record: Mapping[str, Any]) -> Experiment:
    return Experiment(frozenset(record["stimuli"]), frozenset(record["inhibited"]))


def task_of(vector: Vector) -> Task:
    return Task(
        tuple(Edge(*edge) for edge in vector["pkn"]),
        Setup(*(tuple(vector[role]) for role in ("stimuli", "inhibitors", "readouts"))),
        tuple(map(experiment_of, vector["experiments"])),
        tuple(map(tuple, vector["values"])),
        Options(vector["factor"], vector["rounding"], vector["compress"], vector["max_clause"]),
        Tolerance(vector["fit"], vector["size"]),
    )


def model_of(texts: list[str]) -> Model:
    return frozenset(map(parse_clause, texts))
