"""The smallest instructive item: three worlds that never show X3 free with X1 = 1, X2 = 0; drawn by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from calibrant.dsl.records import convert_object
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.build import problem_from_record
from calibrant.dsl.replayscm.pools.records import ProblemRecord

HEADER = {"format": "calibrant-pool", "version": 1, "name": "classroom", "metadata": {}}


def lamp_record(*more_worlds: dict[str, Any]) -> dict[str, Any]:
    """Return the native record; more_worlds: further training worlds."""
    worlds: list[dict[str, Any]] = [
        {"id": "w0", "rows": ["0000", "0100", "1110", "0000"]},
        {"id": "w1", "rows": ["0011", "0111", "1110", "1010"], "constants": {"X3": 1}},
        {"id": "w2", "rows": ["0000", "0100", "1101", "1001"], "constants": {"X3": 0}},
    ]
    return {
        "id": "lamp",
        "kind": "CIND_A_SCM",
        "variables": ["X1", "X2", "X3", "X4"],
        "units": ["u0", "u1", "u2", "u3"],
        "disclosure": {"type": "hidden_order", "roots": ["X1", "X2"]},
        "training": [*worlds, *more_worlds],
        "sealed": {},
    }


def lamp(*more_worlds: dict[str, Any]) -> Problem:
    return problem_from_record(convert_object(lamp_record(*more_worlds), ProblemRecord))


def write_classroom(folder: Path) -> Path:
    """Return a pool file with the item alone."""
    path = folder / "classroom.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in (HEADER, lamp_record())), encoding="utf-8")
    return path
