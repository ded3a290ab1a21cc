"""Records of pools for tests: official and native ones, as plain objects that a test changes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.item import Pool
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.shared import shared_file

# Official runtime records for tests: read from the shared pools as plain objects, changed, written as YAML again
Record = dict[str, Any]
POOLS = {
    "Ordered": "pool_dev_ordered.runtime.yaml",
    "Block": "pool_dev_block.runtime.yaml",
    "Hidden-order": "pool_dev_hidden_order.runtime.yaml",
    "Hidden-roots": "pool_dev_hidden_roots.runtime.yaml",
    "Alt-Ordered": "official_sample.runtime.yaml",
}


class _Dumper(yaml.CSafeDumper):
    """Writes equal objects twice instead of once and a reference: official files have no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


@cache
def _beginning(file: str, length: int) -> Any:
    """Return the first records of a file; cut off as text, because parsing a whole pool takes seconds."""
    text = shared_file(file).read_text(encoding="utf-8")
    records = text.split("\n  - problem:")
    return yaml.load("\n  - problem:".join(records[: length + 1]), Loader=yaml.CSafeLoader)


def official_records(setting: str, number: int) -> list[Record]:
    """Fresh copies of the first records of a setting's pool, without their model results."""
    records: list[Record] = copy.deepcopy(_beginning(POOLS[setting], number)["problems"])
    assert len(records) == number
    return [record | {"modelResults": {}} for record in records]


def written_file(records: Sequence[Record], path: Path) -> Path:
    """Return a runtime file of these records."""
    document = {"metadata": {"runtimeSchemaVersion": "cind-a-scm-runtime-v2"}, "problems": list(records)}
    path.write_text(yaml.dump(document, Dumper=_Dumper, sort_keys=False), encoding="utf-8")
    return path


def read_records(records: Sequence[Record], folder: Path) -> Pool:
    """Return the pool that the loader makes of these records."""
    return read_pool(written_file(records, folder / "records.yaml"))


# One small problem written down twice: as an official record and as a native one. Every call gives fresh objects
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


# --- Changes to pool records by dotted path, and the check that a changed file is refused where it was changed --------
Change = Callable[[Record], object]


def put(path: str, value: Any) -> Change:
    """Replace what stands at a dotted path; numbers are positions in lists."""

    def change(record: Record) -> None:
        inner: Any = record
        *parents, last = path.split(".")
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        inner[int(last) if isinstance(inner, list) else last] = copy.deepcopy(value)

    return change


def drop(path: str) -> Change:
    def change(record: Record) -> None:
        inner: Any = record
        *parents, last = path.split(".")
        for key in parents:
            inner = inner[int(key) if isinstance(inner, list) else key]
        del inner[int(last) if isinstance(inner, list) else last]

    return change


def both(*changes: Change) -> Change:
    return lambda record: [change(record) for change in changes]


def check_refused(path: Path, instance: str, field: str, words: str) -> None:
    with pytest.raises(PoolError) as caught:
        read_pool(path)
    error = caught.value
    assert (error.file, error.field) == (path.name, field)
    assert words in error.problem
    if field.startswith("line "):  # the line is no instance yet
        assert str(error).startswith(f"{path.name}: {field}: ")
    else:
        assert str(error).startswith(f"{path.name}: {instance}: {field}: ")
    assert str(error).isprintable()
