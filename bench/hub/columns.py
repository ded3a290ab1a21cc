"""The columns of an export, and the rows of a pool under them.

The public part is what may be published: what a model is shown, and nothing that depends on what is sealed. So a digest
there is one of the prompt: one of a record with few possible truths would give them away. Gold has all of it.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, TypeAlias

from calibrant.bench.training.difficulty import LABELS

Row: TypeAlias = dict[str, Any]
DIFFICULTY = "difficulty_"
CANARY = "Benchmark data; it should never appear in training corpora of models that are evaluated on it. canary GUID "
_NAMESPACE = uuid.UUID("5a3d3c0e-1c1b-5f0e-9d55-3c7c1fb1a0c4")


@dataclass(frozen=True)
class Column:
    """Column of a dataset.

    sealed: only the part with gold has it; kind: of its values, of which those of labels may be missing
    """

    name: str
    means: str
    sealed: bool = False
    kind: Literal["text", "number"] = "text"


COLUMNS = (
    Column("id", "public id of the item; it tells nothing of it, and `calibrant score` with its pool knows it"),
    Column("benchmark", "which of the benchmarks it is of"),
    Column("system", "system message, empty if there is none"),
    Column("prompt", "user message; of an interactive item what is said before the first action"),
    Column("digest", "SHA-256 of system and prompt, a zero byte between them"),
    Column("canary", "a text to find leaked copies by, the same in every row of an export"),
    Column("item", "the item's id in its pool", sealed=True),
    Column("salt", "key of the public ids of its pool", sealed=True),
    Column("pool", "name of its pool", sealed=True),
    Column("setting", "row group of the benchmark's tables", sealed=True),
    Column("stratum", "finer group of its generator, empty if there is none", sealed=True),
    Column("record", "the native record as JSON, the sealed part too; rewards and `calibrant` read it", sealed=True),
    Column("answer", "a right answer as JSON, empty where none can be handed in at once", sealed=True),
    Column("record_digest", "SHA-256 of the record", sealed=True),
    Column("pool_digest", "SHA-256 of the pool's file, by which records of runs name it", sealed=True),
)


def columns_of(rows: Iterable[Mapping[str, Any]], *, with_gold: bool) -> list[Column]:
    """Return the columns that these rows need; with gold also one for each difficulty label that occurs."""
    if not with_gold:
        return [column for column in COLUMNS if not column.sealed]
    labels = sorted({name for row in rows for name in row if name.startswith(DIFFICULTY)})
    columns = [
        Column(n, f"number of {LABELS[n.removeprefix(DIFFICULTY)]}; null where there is none", True, "number")
        for n in labels
    ]
    return [*COLUMNS, *columns]


def canary_of(digests: Iterable[str]) -> str:
    """Return the canary of an export with rows of these digests: it depends on what is shown, and on nothing else."""
    return f"{CANARY}{uuid.uuid5(_NAMESPACE, ''.join(digests))}"


def record_text(record: Mapping[str, Any]) -> str:
    """Return a record as the column has it: the same text for the same record."""
    return json.dumps(record, sort_keys=True, separators=(",", ":"))


def prompt_digest(system: str, prompt: str) -> str:
    return text_digest(f"{system}\0{prompt}")


def text_digest(text: str) -> str:
    """SHA-256 in hexadecimal."""
    return sha256(text.encode()).hexdigest()
