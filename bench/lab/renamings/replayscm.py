"""Problems of ReplaySCM over other names, with worlds, rows and columns in another order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from random import Random

from calibrant.bench.lab.renamings.measure import RenamedItem, permuted_names, shuffled
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.replayscm.canonical import PanelOrder, rename_problem, unchanged_order


def rename(problem: Problem, random: Random) -> RenamedItem:
    """Return a problem with other names of variables, and worlds, rows and columns in another order."""
    task = problem.task
    names = permuted_names(task.variables, random)
    if task.extension is not None:
        names |= permuted_names(tuple(task.extension.hidden), random)
    panels = [task.training, problem.sealed.heldout]
    units = tuple(dict.fromkeys(unit for panel in panels for world in panel.worlds for unit in world.units))
    new_units = permuted_names(units, random)
    training, heldout = (_panel_order(panel, new_units, random) for panel in panels)
    if task.extension is not None and task.extension.forecast_worlds:
        # the worlds to forecast are the held-out ones, in their order
        heldout = replace(unchanged_order(problem.sealed.heldout), units=new_units)
    renamed = rename_problem(problem, names, training, heldout)
    return RenamedItem(renamed, names, exchanges=_hidden_exchanges(renamed))


def _hidden_exchanges(problem: Problem) -> tuple[Mapping[str, str], ...]:
    """Return the exchange of two hidden variables of which the same is disclosed."""
    extension, disclosure = problem.task.extension, problem.task.disclosure
    if extension is None or len(extension.hidden) != 2:
        return ()
    roles = {name: (parents, disclosure.group_index(name)) for name, parents in extension.hidden.items()}
    first, second = extension.hidden
    return ({first: second, second: first},) if roles[first] == roles[second] else ()


def _panel_order(panel: Panel, units: Mapping[str, str], random: Random) -> PanelOrder:
    worlds = tuple(shuffled(range(len(panel.worlds)), random))
    rows = tuple(tuple(shuffled(range(world.num_rows), random)) for world in panel.worlds)
    return PanelOrder(worlds, rows, units)
