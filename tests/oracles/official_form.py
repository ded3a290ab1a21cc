"""Problems in the official runtime form, compact, expanded or with interventions told the older way."""

from __future__ import annotations

from typing import Any

from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World

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
