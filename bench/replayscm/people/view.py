"""View of a ReplaySCM item for pages: worlds or the allowance of an episode, and the formulas to write."""

from __future__ import annotations

from typing import Any

from calibrant.bench.replayscm.people.draft import formula_names, hidden_names, noise_rates
from calibrant.bench.replayscm.people.questions import part_view
from calibrant.dsl.replayscm.episodes.text_protocol import episode_facts
from calibrant.dsl.replayscm.problem import Problem, TaskKind
from calibrant.dsl.replayscm.prompt import facts
from calibrant.dsl.replayscm.world import World


def worlds_view(item: Problem) -> dict[str, Any]:
    """Return the public part of an item for its page, ready for JSON; made from the task alone."""
    task, extension = item.task, item.task.extension
    is_episode = task.kind is TaskKind.EPISODE
    disclosure = task.disclosure
    view: dict[str, Any] = {
        "view": "worlds",
        "variables": list(task.variables if extension is None else extension.variables),
        "names": list(formula_names(item)),
        "operators": list(task.grammar.operators),
        "roots": None if disclosure.roots is None else [v for v in task.variables if v in disclosure.roots],
        "num_roots": disclosure.num_roots,
        "rules": [episode_facts(task)] if is_episode else list(facts(task)),
        "worlds": [_world(world) for world in task.training.worlds],
        "noise": list(noise_rates(item)),
        "hidden": list(hidden_names(item)),
    } | part_view(item)
    if extension is not None and extension.allowance is not None:
        allowance = extension.allowance
        view["episode"] = {
            "worlds": allowance.worlds,
            "rows": allowance.rows,
            "max_targets": allowance.max_targets,
            "contexts": allowance.contexts.value,
            "roots": list(extension.roots),
        }
    return view


def _world(world: World) -> dict[str, Any]:
    """Return a world: rows as texts of bits in the order of its variables; `set` in the order of its columns."""
    rows = ["".join(str(row[v]) for v in world.variables) for row in world.rows()]
    targets = [v for v in world.variables if v in world.intervention.targets]
    return {"id": world.id, "units": list(world.units), "rows": rows, "set": targets}
