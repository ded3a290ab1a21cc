"""View of a ReplaySCM item for pages: worlds or the allowance of an episode, and the formulas to write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.bench.replayscm.people.draft import formula_names, hidden_names, noise_rates
from calibrant.bench.replayscm.people.questions import part_view
from calibrant.dsl.formulas.text import infix
from calibrant.dsl.replayscm.dialogue import episode_facts
from calibrant.dsl.replayscm.item import Problem, TaskKind
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
        "brief": list(_brief(item)),
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


def _brief(item: Problem) -> Iterator[str]:
    """Yield what is asked in a few sentences; all of it is in the rules."""
    task, roots = item.task, item.task.disclosure.roots
    if task.kind is TaskKind.EPISODE:
        yield "Ask for worlds, in which you may set variables, until you know what each variable follows."
    if task.reference is not None:
        listed = "; ".join(f"{name} = {infix(formula)}" for name, formula in task.reference.mechanisms.items())
        yield f"One model that fits: {listed}. Write another one that fits all rows and means something else."
        return
    names = "every variable that is no root"
    if roots is not None:
        names = ", ".join(name for name in task.variables if name not in roots)
    has_noise = task.extension is not None and not task.extension.noise.is_silent
    errors = ", up to errors of the stated rate" if has_noise else ""
    yield (
        f"Write a formula for {names}: it has to give the variable's value in every row in which it was not set by hand"
        f"{errors}. Formulas have no loops."
    )


def _world(world: World) -> dict[str, Any]:
    """Return a world: rows as texts of bits in the order of its variables; `set` in the order of its columns."""
    rows = ["".join(str(row[v]) for v in world.variables) for row in world.rows()]
    targets = [v for v in world.variables if v in world.intervention.targets]
    return {"id": world.id, "units": list(world.units), "rows": rows, "set": targets}
