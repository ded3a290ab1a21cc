"""Pools as the benchmark's official runtime YAML, in its compact form, so that they go back to the official scorer.

Written is what a scorer or a prompt reads: signature, task, worlds, gold, reference, results. What the generator's own
diagnostics say is not known here and is left out. Every record is read back before a byte is written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from calibrant.dsl.atomic_write import whole_file
from calibrant.dsl.errors import PoolError
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.item import ModelResult, Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.official import OWN_LABELS, problem_from_official
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.dsl.yaml_text import load_yaml

SUFFIXES = (".yaml", ".yml")
_METADATA = {
    "runtimeSchemaVersion": "cind-a-scm-runtime-v2",
    "problemEncoding": "scm-panel-binary-rows-v1",
    "resultEncoding": "scm-current-model-results-v1",
}
_NUMBER = re.compile(r"0|-?[1-9]\d{0,17}")


class _Dumper(yaml.CSafeDumper):
    """Writes equal objects twice instead of once and a reference: official files have no references."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def write_official(pool: Pool, path: Path) -> None:
    """Write the official runtime YAML; the file appears complete or not at all.

    `PoolError` names an instance that official files cannot say: several results of one model
    """
    try:
        with whole_file(path) as file:
            for text in _texts_of(pool):
                file.write(text.encode())
    except OSError as error:
        raise PoolError(f"cannot be written: {error.strerror or error}", file=path.name) from None
    except yaml.YAMLError as error:  # metadata and results hold whatever their file held
        raise PoolError(f"does not fit YAML: {' '.join(str(error).split())}", file=path.name) from None


def _texts_of(pool: Pool) -> Iterator[str]:
    yield _dump({"metadata": {**pool.metadata, **_METADATA}})
    yield "problems:\n" if pool.problems else "problems: []\n"
    for index, problem in enumerate(pool.problems):
        record = official_record(problem)
        text = _dump([record])
        (parsed_record,) = load_yaml(text)
        if problem_from_official(parsed_record, index) != problem:
            raise PoolError("official files have no way to say all of it", instance=problem.id)
        yield text


def _dump(value: Any) -> str:
    return str(yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**31 - 1))


def official_record(problem: Problem) -> dict[str, Any]:
    """Return the record that reads as this problem."""
    task, sealed, labels = problem.task, problem.sealed, problem.sealed.labels
    splits = {
        "train": [world.id for world in task.training.worlds],
        "heldout": [world.id for world in sealed.heldout.worlds],
    }
    units = task.training.worlds[0].units
    are_shared = all(world.units == units for world in problem.worlds)
    lists = _lists(problem)
    record: dict[str, Any] = {
        "problem": {
            "instanceId": problem.id,
            "schemaVersion": "fol-causal-reasoning-v1",
            "scenario": "CIND_A_SCM",
            "signature": {
                "variables": list(task.variables),
                "domains": "binary",
                "observationStructure": "panel_same_units_across_worlds",
                "PanelSemantics": task.shares_units,
                **lists,
            },
            "task": {
                "taskName": task.kind.value,
                "taskVersion": "0.3.0",
                "parameters": _parameters(problem, lists, splits),
            },
            "problemEncoding": _METADATA["problemEncoding"],
            **({"panelUnits": list(units)} if are_shared else {}),
            "worlds": [
                _world(world, split, sealed.environments.get(world.id, {}), has_units=not are_shared)
                for split, panel in (("train", task.training), ("heldout", sealed.heldout))
                for world in panel.worlds
            ],
            "goldAnswer": {
                "budgetDeltas": list(sealed.budget_deltas),
                "worldSplits": splits,
                "scm": _gold(problem, lists),
                **({"scm_alt_exp": {"referenceMechanisms": _texts(task.reference)}} if task.reference else {}),
            },
        },
        "problemDescription": {"difficulty": labels.get("difficulty"), "seed": _number(labels.get("seed"))},
        "problemType": "foCausalReasoning",
        "subslice": labels.get("stratum"),
        "modelResults": _results(problem),
    }
    if task.kind is TaskKind.ALTERNATIVE:
        record["problemDescription"]["scenarioType"] = task.kind.value
    extra: dict[str, Any] = {"pairedSourceInstanceId": labels["latent"]} if "latent" in labels else {}
    record["problemDescription"]["extra"] = extra
    if problem_from_official(record, 0).sealed.labels != labels:
        extra[OWN_LABELS] = dict(labels)
    return record


def _lists(problem: Problem) -> dict[str, list[str]]:
    """Roots and endogenous variables in latent order, as far as they are known."""
    order = list(problem.sealed.latent_order)
    gold, disclosed = problem.sealed.gold, problem.task.disclosure.roots
    roots = gold.roots if gold is not None else disclosed
    if roots is None:
        return {"topologicalOrder": order}
    return {
        "topologicalOrder": order,
        "rootVariables": [v for v in order if v in roots],
        "endogenousVariables": [v for v in order if v not in roots],
    }


def _parameters(problem: Problem, lists: Mapping[str, Any], splits: Mapping[str, Any]) -> dict[str, Any]:
    task, sealed = problem.task, problem.sealed
    parameters: dict[str, Any] = {
        "family": "IMS_CIND_A",
        "variant": "A_SCM",
        "variables": list(task.variables),
        "inputVariables": list(task.variables),
        **lists,
        **_disclosure_fields(task.disclosure),
        "promptVariableOrder": list(task.variables),
        "allowedOperators": list(task.grammar.operators),
        "allowConstants": task.grammar.allow_constants,
        "budgetDeltas": list(sealed.budget_deltas),
        "worldSplits": dict(splits),
        "PanelSemantics": task.shares_units,
        "scmEvaluationMode": "simulate_endogenous_nonintervened",
    }
    if sealed.max_predecessors is not None:
        parameters["maxPredecessorsPerMechanism"] = sealed.max_predecessors
    if "difficulty" in sealed.labels:
        parameters["difficulty"] = sealed.labels["difficulty"]
    return parameters


def _disclosure_fields(disclosure: Disclosure) -> dict[str, Any]:
    if disclosure.order is not None:
        return {"scmPromptVariant": "with_topological_order"}
    if disclosure.blocks is not None:
        layers = [list(block) for block in disclosure.blocks]
        return {"scmPromptVariant": "partial_topological_order", "topologicalLayers": layers}
    hidden = {"scmPromptVariant": "no_topological_order"}
    return hidden if disclosure.roots is not None else {**hidden, "rootCount": disclosure.num_roots}


def _world(world: World, split: str, levels: Mapping[str, float], *, has_units: bool) -> dict[str, Any]:
    constants, assigned = dict(world.intervention.constants), list(world.intervention.assigned)
    targets = [*constants, *assigned]
    mode = world.intervention.mode
    says = [f"{v}={constants[v]}" for v in constants] + [f"{v}=assigned_per_row" for v in assigned]
    plain = "hard_constant" if mode == "none" else mode  # the field with a small letter has no "none"
    world_record: dict[str, Any] = {
        "worldId": world.id,
        "observationMode": "panel_full",
        "intervention": {"type": "hard_do", "mode": plain, "assignments": constants, "targets": targets},
        "split": split,
        "envProfile": dict(levels),
        "rows": world.row_texts(),
        "interventionSummary": {
            "do": f"do({', '.join(says)})" if says else "none",
            "interventionMode": plain,
            "InterventionMode": mode,
            "InterventionTargetsAssigned": assigned,
            "InterventionTargetsConstant": constants,
            "InterventionTargetsAll": targets,
        },
    }
    return world_record | ({"domain": list(world.units), "domainSize": len(world.units)} if has_units else {})


def _gold(problem: Problem, lists: Mapping[str, Any]) -> dict[str, Any]:
    gold, size = problem.sealed.gold, problem.sealed.gold_size
    gold_record: dict[str, Any] = dict(lists)
    if gold is not None:
        parents = {variable: sorted(mechanism.mentioned) for variable, mechanism in gold.mechanisms.items()}
        gold_record |= {"mechanisms": _texts(gold), "parentsByVar": parents}
        gold_record["totalEdges"] = sum(map(len, parents.values()))
    return gold_record | ({} if size is None else {"totalAst": size})


def _texts(model: Scm) -> dict[str, str]:
    return {variable: render(mechanism) for variable, mechanism in model.mechanisms.items()}


def _number(text: str | None) -> int | str | None:
    return int(text) if text is not None and _NUMBER.fullmatch(text) else text


def _results(problem: Problem) -> dict[str, Any]:
    results = problem.results()
    by_model = {result.model: _result(result) for result in results}
    if len(by_model) != len(results):
        raise PoolError("several results of one model", instance=problem.id, field="results")
    return by_model


def _result(result: ModelResult) -> dict[str, Any]:
    result_record = {
        "model": result.model,
        "rawResponse": result.raw_response,
        "extractedAnswer": result.extracted_answer,
    }
    result_record |= dict(result.verdict)
    return result_record | ({"evaluation": dict(result.evaluation)} if result.evaluation else {})
