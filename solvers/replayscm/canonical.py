"""Canonical form of a task, equal for all names and orders; tasks and problems over other names.

The form depends only on what a solver may read. Variables become V1, V2, ... in canonical order. Solvers break ties by
that order, so that their answers to a task and to a renamed copy are equal up to the renaming.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from calibrant.dsl.formulas.formula import Apply, Formula, rename
from calibrant.dsl.formulas.table import unpack_bits
from calibrant.dsl.replayscm.disclosure import Disclosure, natural
from calibrant.dsl.replayscm.extensions.extension import Extension, ForecastWorld, Renaming
from calibrant.dsl.replayscm.item import Problem, Sealed, Task
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Column, Intervention, Panel, World
from calibrant.solvers.canonical import Permutation, Structure, StructureBuilder, canonical_order, refined_colours, word

# --- Tasks and problems over other names, with worlds, rows and columns in another order: renamed copies of an item ---


@dataclass(frozen=True)
class PanelOrder:
    """Order of the worlds of a panel, and of the rows of each.

    worlds: indices of the worlds in their new order; rows: for each world, in the old order, the new order of its rows
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
    """Return a task over other names; names are in natural order, so that no order carries information."""
    reference, extension = task.reference, task.extension
    return replace(
        task,
        disclosure=rename_disclosure(task.disclosure, names),
        training=rename_panel(task.training, names, order),
        reference=None if reference is None else rename_scm(reference, names),
        extension=None if extension is None else rename_extension(extension, names),
        assumption=None if task.assumption is None else task.assumption.renamed(names),
    )


def rename_problem(problem: Problem, names: Mapping[str, str], training: PanelOrder, heldout: PanelOrder) -> Problem:
    """Return a problem over other names; the id stays, and so do an episode's flips and contexts (by `Renaming`)."""
    sealed, extension = problem.sealed, problem.task.extension
    renaming = sealed.renaming
    if extension is not None and extension.is_episode:
        previous = renaming or Renaming({v: v for v in (*extension.variables, *extension.hidden)}, extension.roots)
        renaming = Renaming(
            {names[v]: previous.names[v] for v in previous.names}, tuple(names[root] for root in previous.roots)
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
        renaming=renaming,
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
    old_indices = [extension.roots.index(old) for new in roots for old in extension.roots if names[old] == new]
    worlds = tuple(
        ForecastWorld(
            {names[v]: value for v, value in world.constants.items()},
            tuple("".join(context[index] for index in old_indices) for context in world.contexts),
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


# --- Canonical form of a task: equal for all names of variables and all orders of worlds, rows and columns ------------
_NAME = re.compile(r"\bV[0-9]+\b")
_ROW, _UNIT, _WORLD, _ONE = (word(name) for name in ("row", "unit", "world", "one"))
_ORDERED_OPERATORS = ("if",)  # operators whose arguments have an order


@dataclass(frozen=True)
class CanonicalTask:
    """A task in canonical form.

    names: canonical name -> name of the task; symmetries: generators of the symmetries of the task, on canonical names
    """

    task: Task
    names: Mapping[str, str]
    symmetries: tuple[Mapping[str, str], ...] = ()

    @cached_property
    def _texts(self) -> dict[str, str]:
        """Restored texts: answers of equal cost share nearly all."""
        return {}

    @property
    def canonical_names(self) -> dict[str, str]:
        """Return the canonical name of each variable by its name in the task."""
        return {old: new for new, old in self.names.items()}

    def restore_scm(self, model: Scm) -> Scm:
        """Return an SCM of the canonical task over the names of the task."""
        return rename_scm(model, self.names)

    def restore(self, content: Any) -> Any:
        """Return JSON over the names of the task: every canonical name in texts and keys is replaced."""
        if isinstance(content, str):
            text = self._texts.get(content)
            if text is None:
                text = self._texts[content] = _NAME.sub(lambda match: self.names.get(match[0], match[0]), content)
            return text
        if isinstance(content, Mapping):
            return {self.restore(key): self.restore(value) for key, value in content.items()}
        if isinstance(content, list | tuple):
            return [self.restore(part) for part in content]
        return content


def scm_structure(model: Scm, *, with_functions: bool = True) -> Structure:
    """Return an SCM's structure: roots, functional parents and, with_functions, the rows where each function is 1."""
    builder = StructureBuilder()
    index = {variable: builder.vertex("root", variable in model.roots) for variable in model.variables}
    for variable, (parents, table) in model.signature:
        builder.edges([index[parent] for parent in parents], index[variable], word("parent"))
        if not with_functions:
            continue
        for row in range(1 << len(parents)):
            if table[row]:
                vertex = builder.vertex_of(_ROW)
                builder.edge(vertex, index[variable], _ONE)
                builder.edges([index[p] for i, p in enumerate(parents) if row >> i & 1], vertex, _ROW)
    return builder.build(len(index))


def variable_colours(task: Task) -> dict[str, int]:
    """Return the colour of each variable, equal for variables that colour refinement does not distinguish."""
    builder, index, base, _ = _task_structure(task, {})
    colours = refined_colours(builder.build(base))
    return {variable: int(colours[vertex]) for variable, vertex in index.items()}


def canonical_task(task: Task, colours: Mapping[str, object] = {}) -> CanonicalTask:
    """Return the canonical form of a task.

    colours: further colours of variables: symmetries map a variable to one of its colour
    """
    task = _with_constants(task)
    builder, index, base, unit_vertices = _task_structure(task, colours)
    result = canonical_order(builder.build(base))
    variables, worlds, first_world = tuple(index), task.training.worlds, len(index)
    rank = result.rank
    ordered = sorted(variables, key=lambda variable: rank[index[variable]])
    names = {variable: f"V{number}" for number, variable in enumerate(ordered, start=1)}
    order = PanelOrder(
        tuple(sorted(range(len(worlds)), key=lambda world: rank[first_world + world])),
        tuple(
            tuple(sorted(range(world.num_rows), key=lambda row, units=units: rank[units[row]]))  # type: ignore[misc]
            for world, units in zip(worlds, unit_vertices, strict=True)
        ),
        _unit_names(worlds, unit_vertices, rank),
    )
    symmetries = tuple(_on_names(image, variables, names) for image in result.automorphisms)
    return CanonicalTask(rename_task(task, names, order), {new: old for old, new in names.items()}, symmetries)


def canonical_problem(problem: Problem) -> Problem:
    """Return a passive item whose task is in canonical form; held-out worlds keep their order."""
    canonical = canonical_task(problem.task)
    training, heldout = (unchanged_order(panel) for panel in (problem.task.training, problem.sealed.heldout))
    return replace(rename_problem(problem, canonical.canonical_names, training, heldout), task=canonical.task)


def _with_constants(task: Task) -> Task:
    """Return the task with assigned interventions of one value in all rows turned into the same constant ones."""
    if not any(_constant_columns(world) for world in task.training.worlds):
        return task
    return replace(
        task, training=replace(task.training, worlds=tuple(map(_world_with_constants, task.training.worlds)))
    )


def _world_with_constants(world: World) -> World:
    new_constants, clamped = _constant_columns(world), world.intervention
    if not new_constants:
        return world
    constants = {**clamped.constants, **new_constants}
    assigned = tuple(v for v in clamped.assigned if v not in new_constants)
    return replace(world, intervention=Intervention({v: constants[v] for v in natural(constants)}, assigned))


def _constant_columns(world: World) -> dict[str, int]:
    """Return assigned variable -> value, for those that have the same value in all rows of a world."""
    columns, ones = dict(zip(world.variables, world.columns, strict=True)), (1 << world.num_rows) - 1
    return {v: int(columns[v] != 0) for v in world.intervention.assigned if world.num_rows and columns[v] in (0, ones)}


def _task_structure(
    task: Task, colours: Mapping[str, object]
) -> tuple[StructureBuilder, dict[str, int], int, list[tuple[int, ...]]]:
    """Return the structure of a task, the vertex of each variable, the number of base vertices, the vertices of rows.

    Base vertices are the variables and the worlds; the others are defined by their edges to them.
    """
    builder = StructureBuilder()
    hidden = () if task.extension is None else tuple(task.extension.hidden)
    variables = (*task.variables, *hidden)
    colour_of = {variable: (colours[variable],) if variable in colours else () for variable in variables}
    index = {variable: builder.vertex(*_role(task, variable), *colour_of[variable]) for variable in variables}
    worlds = task.training.worlds
    for _ in worlds:
        builder.vertex("world")
    base = len(variables) + len(worlds)
    unit_vertices = _add_rows(builder, task, index, len(variables))
    if task.extension is not None:
        for child, parents in task.extension.hidden.items():
            builder.edges([index[parent] for parent in parents or ()], index[child], word("hidden"))
    if task.reference is not None:
        for variable, formula in task.reference.mechanisms.items():
            builder.edge(_add_formula(builder, formula, index), index[variable], word("mechanism"))
    return builder, index, base, unit_vertices


def _role(task: Task, variable: str) -> tuple[object, ...]:
    """Return the labels of what is disclosed about a variable by itself."""
    disclosure = task.disclosure
    if task.extension is not None and variable in task.extension.hidden:
        return "hidden", disclosure.group_index(variable), task.extension.hidden[variable] is None
    return "variable", disclosure.group_index(variable), variable in (disclosure.roots or ())


def _add_rows(
    builder: StructureBuilder, task: Task, index: Mapping[str, int], first_world: int
) -> list[tuple[int, ...]]:
    """Add rows, and units where worlds share them; return the vertices by which the rows of each world are sorted."""
    units: dict[str, int] = {}
    if task.shares_units:
        for name in dict.fromkeys(unit for world in task.training.worlds for unit in world.units):
            units[name] = builder.vertex_of(_UNIT)
    vertices = []
    for world_vertex, world in enumerate(task.training.worlds, start=first_world):
        for variable, value in world.intervention.constants.items():
            builder.edge(world_vertex, index[variable], word("constant", value))
        for variable in world.intervention.assigned:
            builder.edge(world_vertex, index[variable], word("assigned"))
        rows = [builder.vertex_of(_ROW) for _ in world.units]
        builder.edges(rows, world_vertex, _WORLD)
        for name, row in zip(world.units, rows, strict=True):
            if units:
                builder.edge(units[name], row, _UNIT)
        for variable, column in zip(world.variables, world.columns, strict=True) if rows else ():
            builder.edges(rows[0] + _ones(column, world.num_rows), index[variable], _ONE)
        vertices.append(tuple(units[name] for name in world.units) if units else tuple(rows))
    return vertices


def _ones(column: Column, num_rows: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the rows in which a column is 1."""
    return np.flatnonzero(unpack_bits(column, num_rows))


def _add_formula(builder: StructureBuilder, formula: Formula, index: Mapping[str, int]) -> int:
    """Add the nodes of a formula; return the vertex of its root."""
    stack: list[int] = []
    for node in formula.nodes:
        if not isinstance(node, Apply):
            stack.append(index[node] if isinstance(node, str) else builder.vertex("literal", node))
            continue
        operator = builder.vertex("operator", node.operator)
        for position, argument in enumerate(stack[-node.arity :]):
            builder.edge(argument, operator, word("argument", position if node.operator in _ORDERED_OPERATORS else 0))
        del stack[-node.arity :]
        stack.append(operator)
    return stack[0]


def _unit_names(worlds: tuple[World, ...], vertices: list[tuple[int, ...]], rank: Mapping[int, int]) -> dict[str, str]:
    """Return unit -> new name, u0, u1, ... in canonical order."""
    ranks: dict[str, int] = {}
    for world, units in zip(worlds, vertices, strict=True):
        for name, vertex in zip(world.units, units, strict=True):
            ranks.setdefault(name, rank[vertex])
    return {name: f"u{index}" for index, name in enumerate(sorted(ranks, key=ranks.__getitem__))}


def _on_names(image: Permutation, variables: tuple[str, ...], names: Mapping[str, str]) -> dict[str, str]:
    return {names[variable]: names[variables[image[i]]] for i, variable in enumerate(variables)}
