"""Vectors on tables, by kind; their number is the one that the shared file states."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

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
