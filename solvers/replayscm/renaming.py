"""Tasks and problems over other names, with worlds, rows and columns in another order: the same item in other words."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from calibrant.dsl.formulas.formula import rename
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.extensions.extension import Extension, ForecastWorld, Spelling
from calibrant.dsl.replayscm.item import Problem, Sealed, Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, Panel, World


@dataclass(frozen=True)
class PanelOrder:
    """Order of the worlds of a panel, and of the rows of each.

    worlds: indices of the worlds; rows: of each world of the panel, in its old order, the indices of its rows
    units: new name of each unit
    """

    worlds: tuple[int, ...]
    rows: tuple[tuple[int, ...], ...]
    units: Mapping[str, str]


def unchanged_order(panel: Panel) -> PanelOrder:
    """Return the order in which worlds, rows and units stay as they are."""
    rows = tuple(tuple(range(world.num_rows)) for world in panel.worlds)
    return PanelOrder(
        tuple(range(len(panel.worlds))), rows, {unit: unit for world in panel.worlds for unit in world.units}
    )


def rename_task(task: Task, names: Mapping[str, str], order: PanelOrder) -> Task:
    """Return a task over other names; columns are in natural order, wherever an order would say something."""
    reference, extension = task.reference, task.extension
    return replace(
        task,
        disclosure=rename_disclosure(task.disclosure, names),
        training=rename_panel(task.training, names, order),
        reference=None if reference is None else rename_scm(reference, names),
        extension=None if extension is None else rename_extension(extension, names),
    )


def rename_problem(problem: Problem, names: Mapping[str, str], training: PanelOrder, heldout: PanelOrder) -> Problem:
    """Return a problem over other names; its id stays, and the flips and contexts of an episode."""
    sealed, extension = problem.sealed, problem.task.extension
    spelling = sealed.spelling
    if extension is not None and extension.is_episode:
        hashed = spelling or Spelling({v: v for v in (*extension.variables, *extension.hidden)}, extension.roots)
        spelling = Spelling(
            {names[v]: hashed.names[v] for v in hashed.names}, tuple(names[root] for root in hashed.roots)
        )
    renamed = Sealed(
        gold=None if sealed.gold is None else rename_scm(sealed.gold, names),
        gold_size=sealed.gold_size,
        heldout=rename_panel(sealed.heldout, names, heldout),
        latent_order=tuple(names[v] for v in sealed.latent_order),
        max_predecessors=sealed.max_predecessors,
        budget_deltas=sealed.budget_deltas,
        environments={w: {names[v]: level for v, level in levels.items()} for w, levels in sealed.environments.items()},
        labels=sealed.labels,
        seed=sealed.seed,
        rates={names[v]: rate for v, rate in sealed.rates.items()},
        spelling=spelling,
    )
    return Problem(problem.id, rename_task(problem.task, names, training), renamed)


def rename_disclosure(disclosure: Disclosure, names: Mapping[str, str]) -> Disclosure:
    """Return a disclosure over other names. Fields that are `order` keep their order, all others are natural."""

    def renamed(value: Any, *, keeps_order: bool) -> Any:
        if isinstance(value, str):
            return names.get(value, value)
        if not isinstance(value, tuple):
            return value
        if all(isinstance(part, str) for part in value):
            new = tuple(names[part] for part in value)
            return new if keeps_order else natural(new)
        return tuple(renamed(part, keeps_order=keeps_order) for part in value)

    fields = dataclasses.fields(disclosure)  # type: ignore[arg-type]  # disclosures are dataclasses
    values = {f.name: renamed(getattr(disclosure, f.name), keeps_order=f.name == "order") for f in fields}
    return dataclasses.replace(disclosure, **values)  # type: ignore[type-var]  # the same


def rename_scm(model: Scm, names: Mapping[str, str]) -> Scm:
    """Return an SCM over other names."""
    mechanisms = {names[v]: rename(formula, names.__getitem__) for v, formula in model.mechanisms.items()}
    return Scm(tuple(names[v] for v in model.roots), mechanisms)


def rename_panel(panel: Panel, names: Mapping[str, str], order: PanelOrder) -> Panel:
    """Return a panel over other names, its worlds and rows in this order, its columns in natural order."""
    worlds = (_rename_world(panel.worlds[i], f"w{k}", names, order, i) for k, i in enumerate(order.worlds))
    return Panel(natural(names[v] for v in panel.variables), tuple(worlds))


def _rename_world(world: World, name: str, names: Mapping[str, str], order: PanelOrder, index: int) -> World:
    rows = order.rows[index]
    columns = {names[v]: permute_bits(c, rows) for v, c in zip(world.variables, world.columns, strict=True)}
    variables = natural(columns)
    clamped = world.intervention
    constants = {names[v]: clamped.constants[v] for v in clamped.constants}
    intervention = Intervention(
        {v: constants[v] for v in natural(constants)}, natural(names[v] for v in clamped.assigned)
    )
    units = tuple(order.units[world.units[row]] for row in rows)
    return World(name, intervention, variables, units, tuple(columns[v] for v in variables))


def permute_bits(column: Column, rows: Sequence[int]) -> Column:
    """Return the column whose row k is row `rows[k]` of this one."""
    text = f"{column:0{max(1, len(rows))}b}"[::-1]
    return int("".join([text[row] for row in reversed(rows)]) or "0", 2)


def rename_extension(extension: Extension, names: Mapping[str, str]) -> Extension:
    """Return the fields of an extended item over other names; columns and roots in natural order."""
    variables, roots = natural(names[v] for v in extension.variables), natural(names[v] for v in extension.roots)
    places = [extension.roots.index(old) for new in roots for old in extension.roots if names[old] == new]
    worlds = tuple(
        ForecastWorld(
            {names[v]: value for v, value in world.constants.items()},
            tuple("".join(context[place] for place in places) for context in world.contexts),
        )
        for world in extension.forecast_worlds
    )
    hidden = {
        names[v]: None if parents is None else natural(names[u] for u in parents)
        for v, parents in extension.hidden.items()
    }
    return replace(
        extension,
        variables=variables,
        roots=roots,
        hidden={v: hidden[v] for v in natural(hidden)},
        forecast_worlds=worlds,
    )
