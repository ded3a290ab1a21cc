"""One small problem written down twice: as an official record and as a native one. Every call gives fresh objects."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool

Record = dict[str, Any]

_WORLDS: list[tuple[str, list[str], dict[str, int], list[str], dict[str, float]]] = [
    ("train_00", ["1110", "1001"], {}, [], {"X2": 0.5, "X1": 0.5}),
    ("train_01", ["0111", "1101"], {}, ["X3"], {"X2": 0.2, "X1": 0.8}),
    ("train_02", ["0011", "0111"], {"X1": 0}, ["X3"], {}),
    ("heldout_00", ["0000", "1001"], {"X2": 0}, [], {"X1": 0.5}),
]  # rows of X3 = (and X1 X2), X4 = (xor X3 X1), in the order X1 X2 X3 X4; unintervened ones obey it


def official_record(name: str = "I1") -> Record:
    """Return the Ordered problem in the compact official form."""
    variables = ["X1", "X2", "X3", "X4"]
    order, roots, endogenous = ["X2", "X1", "X3", "X4"], ["X2", "X1"], ["X3", "X4"]
    lists = {"rootVariables": roots, "endogenousVariables": endogenous, "topologicalOrder": order}
    parameters = {
        "variables": variables,
        **lists,
        "scmPromptVariant": "with_topological_order",
        "allowedOperators": ["not", "and", "or", "xor", "iff"],
        "allowConstants": False,
        "budgetDeltas": [0, 10, 25],
        "maxPredecessorsPerMechanism": 3,
        "difficulty": "easy",
    }
    mechanisms = {"X3": "(and X1 X2)", "X4": "(xor X3 X1)"}
    signature = {"variables": variables, "domains": "binary", "PanelSemantics": True, **lists}
    problem = {
        "instanceId": name,
        "signature": signature,
        "task": {"taskName": "CIND_A_SCM", "parameters": parameters},
        "panelUnits": ["u00", "u01"],
        "worlds": [_official_world(*world) for world in _WORLDS],
        "goldAnswer": {"scm": {"mechanisms": mechanisms, "totalAst": 6, **lists}},
    }
    made: Record = json.loads(json.dumps({"problem": problem, "problemDescription": {"seed": 7}, "modelResults": {}}))
    return made


def _official_world(
    name: str, rows: list[str], constants: dict[str, int], assigned: list[str], levels: dict[str, float]
) -> Record:
    mode = "hard_assigned" if assigned else "hard_constant" if constants else "none"
    return {
        "worldId": name,
        "split": name.partition("_")[0],
        "observationMode": "panel_full",
        "envProfile": levels,
        "rows": rows,
        "interventionSummary": {
            "InterventionMode": mode,
            "InterventionTargetsAssigned": assigned,
            "InterventionTargetsConstant": constants,
            "InterventionTargetsAll": [*constants, *assigned],
        },
    }


def native_record(name: str = "I1") -> Record:
    """Return the same problem as a line of the native format."""
    worlds = [
        {"id": n, "rows": rows, "constants": constants, "assigned": assigned, "environment": levels}
        for n, rows, constants, assigned, levels in _WORLDS
    ]
    made: Record = {
        "id": name,
        "kind": "CIND_A_SCM",
        "variables": ["X1", "X2", "X3", "X4"],
        "units": ["u00", "u01"],
        "disclosure": {"type": "ordered", "order": ["X2", "X1", "X3", "X4"], "roots": ["X1", "X2"]},
        "training": worlds[:3],
        "sealed": {
            "heldout": worlds[3:],
            "gold": {"X3": "(and X1 X2)", "X4": "(xor X3 X1)"},
            "latent_order": ["X2", "X1", "X3", "X4"],
            "max_predecessors": 3,
            "labels": {"stratum": "easy", "difficulty": "easy", "seed": "7", "latent": name},
        },
        "shares_units": True,
    }
    return json.loads(json.dumps(made))  # type: ignore[no-any-return]


HEADER = '{"format": "calibrant-pool", "version": 1, "name": "small"}'


def official_file(records: Sequence[Record], folder: Path) -> Path:
    path = folder / "pool.yaml"
    path.write_text(yaml.dump({"problems": list(records)}, sort_keys=False), encoding="utf-8")
    return path


def native_file(records: Sequence[Record], folder: Path) -> Path:
    path = folder / "pool.jsonl"
    path.write_text("\n".join([HEADER, *map(json.dumps, records)]) + "\n", encoding="utf-8")
    return path


def read_text(text: str, folder: Path) -> Pool:
    path = folder / "pool.txt"
    path.write_text(text, encoding="utf-8")
    return read_pool(path)
