"""What a pool file says of worlds and rows, read off its parsed text without any of the checks.

Only files that the project's reader has accepted are read in this way: it may assume what that has checked.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

import yaml


class SeenWorld(NamedTuple):
    """One world: its rows as bits per variable, unit by unit."""

    name: str
    units: list[str]
    rows: list[dict[str, int]]
    constants: dict[str, int]
    assigned: set[str]


Instance: TypeAlias = tuple[str, list[SeenWorld], list[SeenWorld]]
"""Id, training worlds, held-out worlds."""


def native_instances(text: str) -> list[Instance]:
    instances = []
    for line in [line for line in text.split("\n") if line.strip()][1:]:
        record = json.loads(line)
        splits = (record["training"], record["sealed"].get("heldout", []))
        training, heldout = ([_native_world(world, record) for world in worlds] for worlds in splits)
        instances.append((record["id"], training, heldout))
    return instances


def _native_world(world: dict[str, Any], record: dict[str, Any]) -> SeenWorld:
    rows = [_bits(row, record["variables"]) for row in world["rows"]]
    units = world.get("units")
    return SeenWorld(
        world["id"],
        record["units"] if units is None else units,
        rows,
        world.get("constants", {}),
        set(world.get("assigned", [])),
    )


def _bits(row: str, variables: list[str]) -> dict[str, int]:
    return {variable: int(bit) for variable, bit in zip(variables, row, strict=True)}


def official_instances(text: str) -> list[Instance]:
    instances = []
    for record in yaml.load(text, Loader=yaml.CSafeLoader)["problems"]:
        problem = record["problem"]
        splits: dict[str, list[SeenWorld]] = {"train": [], "heldout": []}
        for world in problem["worlds"]:
            seen = _official_world(world, problem)
            extra = world.get("extra") or {}
            split = world.get("split", extra.get("split"))
            held_out = seen.name.startswith(("heldout", "test"))
            splits[split or ("heldout" if held_out else "train")].append(seen)
        instances.append((problem["instanceId"], splits["train"], splits["heldout"]))
    return instances


def _official_world(world: dict[str, Any], problem: dict[str, Any]) -> SeenWorld:
    extra, summary = world.get("extra") or {}, world.get("interventionSummary") or {}
    variables = problem["signature"]["variables"]
    if world.get("rows") is not None:
        rows = [_bits(row, variables) for row in world["rows"]]
        units = world.get("domain", problem.get("panelUnits"))
    else:
        verbose = world["rowsVerbose"] if "rowsVerbose" in world else extra["rows"]
        rows = [row["values"] for row in verbose]
        units = [row["unitId"] for row in verbose]
    structured = summary if "InterventionMode" in summary else extra
    if "InterventionMode" in structured:
        constants = structured.get("InterventionTargetsConstant", {})
        targets = structured.get("InterventionTargetsAll", [])
    else:
        older = world["interventions"] if "interventions" in world else [world.get("intervention", {})]
        constants, targets = (older[0].get(key, {}) if older else {} for key in ("assignments", "targets"))
    return SeenWorld(world["worldId"], units or [], rows, constants, set(targets) - set(constants))


def official_responses(text: str) -> list[dict[str, Any] | None]:
    """Per record what each embedded result calls its raw response; None where they are not results at all."""
    records = yaml.load(text, Loader=yaml.CSafeLoader)["problems"]
    return [_responses(record.get("modelResults") or {}) for record in records]


def _responses(results: Any) -> dict[str, Any] | None:
    if not isinstance(results, dict) or not all(isinstance(result, dict) for result in results.values()):
        return None
    return {str(model): result.get("rawResponse") for model, result in results.items()}
