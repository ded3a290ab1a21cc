"""Pool files read off their parsed text without any check, and problems in the official runtime form."""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeAlias

import yaml

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World


# --- What a pool file says of worlds and rows, read off its parsed text without any of the checks ---------------------
# Only files that the project's reader has accepted are read in this way: it may assume what that has checked.
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


# --- Problems in the official runtime form, compact, expanded or with interventions told the older way ----------------
FORMS = ("compact", "expanded", "older")


def official_record(problem: Problem, form: str) -> dict[str, Any]:
    """Return the record that reads as this problem; its gold must be known."""
    task, sealed, gold = problem.task, problem.sealed, problem.sealed.gold
    assert gold is not None
    variables = list(task.variables)
    endogenous = [v for v in sealed.latent_order if v not in gold.roots]
    lists = {"rootVariables": list(gold.roots), "endogenousVariables": endogenous}
    lists["topologicalOrder"] = list(sealed.latent_order)
    parameters: dict[str, Any] = {
        "variables": variables,
        **lists,
        **_disclosed(task.disclosure),
        "allowedOperators": list(task.grammar.operators),
        "allowConstants": task.grammar.allow_constants,
        "budgetDeltas": list(sealed.budget_deltas),
        "maxPredecessorsPerMechanism": sealed.max_predecessors,
    }
    units = list(task.training.worlds[0].units)
    answer: dict[str, Any] = {"scm": {"mechanisms": _texts(gold), "totalAst": sealed.gold_size, **lists}}
    if task.reference is not None:
        answer["scm_alt_exp"] = {"referenceMechanisms": _texts(task.reference)}
    split = {world.id: "train" for world in task.training.worlds}
    return {
        "problem": {
            "instanceId": problem.id,
            "signature": {"variables": variables, "domains": "binary", "PanelSemantics": task.shares_units, **lists},
            "task": {"taskName": task.kind.value, "parameters": parameters},
            **({} if form == "expanded" else {"panelUnits": units}),
            "worlds": [_world(world, split.get(world.id, "heldout"), form) for world in problem.worlds],
            "goldAnswer": answer,
        },
        "problemDescription": {"seed": 7},
        "modelResults": {"m": {"rawResponse": "an\n answer: *x*", "extractedAnswer": {"mechanisms": _texts(gold)}}},
    }


def _disclosed(disclosure: Disclosure) -> dict[str, Any]:
    if disclosure.order is not None:
        return {"scmPromptVariant": "with_topological_order"}
    if disclosure.blocks is not None:
        layers = [list(block) for block in disclosure.blocks]
        return {"scmPromptVariant": "partial_topological_order", "topologicalLayers": layers}
    hidden = {"scmPromptVariant": "no_topological_order"}
    return hidden if disclosure.roots is not None else {**hidden, "rootCount": disclosure.num_roots}


def _texts(model: Scm) -> dict[str, str]:
    return {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}


def _world(world: World, split: str, form: str) -> dict[str, Any]:
    constants, assigned = dict(world.intervention.constants), list(world.intervention.assigned)
    targets = [*constants, *assigned]
    summary = {
        "InterventionMode": world.intervention.mode,
        "InterventionTargetsAssigned": assigned,
        "InterventionTargetsConstant": constants,
        "InterventionTargetsAll": targets,
    }
    made: dict[str, Any] = {"worldId": world.id, "observationMode": "panel_full"}
    if form == "expanded":
        rows = [{"unitId": unit, "values": world.row(r)} for r, unit in enumerate(world.units)]
        made |= {"domain": list(world.units), "domainSize": world.num_rows}
        return made | {"extra": {"split": split, "envProfile": {}, **summary, "rows": rows}}
    made |= {"split": split, "envProfile": {"X1": 0.5}, "rows": world.row_texts()}
    if form == "older":
        return made | {"interventions": [{"type": "hard_do", "assignments": constants, "targets": targets}]}
    return made | {"interventionSummary": summary}
