"""Vectors on tables, by kind, with the number that the shared file states; fits of tables without gaps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import calibrant
from calibrant.bench.replayscm.fitting.fit import Fit
from tests.support.shared import shared_file

KINDS = {
    "reading": 42, "front": 37, "truth_table": 8, "gaps": 18, "gap_scms": 8, "scm_front": 10, "rate": 10, "forms": 12,
    "wide": 10, "network": 34, "large": 8, "class": 15, "effect": 12, "gap_network": 6,
}  # fmt: skip


@dataclass(frozen=True)
class TableVectors:
    """Vectors of a kind, read when called. number: how many there have to be."""

    kind: str

    @property
    def number(self) -> int:
        return KINDS[self.kind]

    def __call__(self) -> Iterator[dict[str, Any]]:
        path = shared_file("vectors_tables_dev.jsonl", part="frontier")
        for line in path.read_text(encoding="utf-8").splitlines():
            vector = json.loads(line)
            if vector["kind"] == self.kind:
                yield vector


table_vectors: Callable[[str], TableVectors] = TableVectors


def fit_complete(data: Any, **options: Any) -> Fit:
    """Fit a table without gaps."""
    fitted = calibrant.fit(data, **options)
    assert isinstance(fitted, Fit)
    return fitted
