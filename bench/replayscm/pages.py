"""One instance as text: disclosure and worlds, and separately its sealed part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from calibrant.bench.core.items import unknown_item
from calibrant.bench.pages.terminal_tables import aligned
from calibrant.bench.runs.runner import Selection
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.formulas.text import render
from calibrant.dsl.records import item_ids
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.extensions.extension import Extension, NoiseKind
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.pools.files import record_from_problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import World
from calibrant.dsl.text import plural

# --- Extensions of an item as `show` prints them ----------------------------------------------------------------------


def extension_lines(extension: Extension) -> Iterator[str]:
    """Yield the lines of class, noise, hidden variables, allowance and question."""
    yield f"class       at most {extension.max_parents} functional parents, prior {extension.prior.value}"
    noise = extension.noise
    if not noise.is_noiseless:
        rates = ", ".join(f"{rate} ({prior})" for rate, prior in noise.grid)
        unknown = "one unknown rate of" if noise.kind is NoiseKind.SHARED else "a rate for each variable of"
        yield f"noise       {noise.grid[0][0] if noise.kind is NoiseKind.RATE else f'{unknown} {rates}'}"
    for name, parents in extension.hidden.items():
        yield f"hidden      {name} of {'any observed variables' if parents is None else ' '.join(parents)}"
    allowance = extension.allowance
    if allowance is not None:
        rows = f"{allowance.rows} rows, contexts {allowance.contexts.value}"
        yield f"allowance   {allowance.worlds} worlds of {rows}, up to {allowance.max_targets} targets"
    if extension.forecast_worlds:
        yield f"forecast    {plural(len(extension.forecast_worlds), 'worlds')}"
        for world in extension.forecast_worlds:
            setting = " ".join(f"{v}={bit}" for v, bit in world.constants.items()) or "none"
            yield f"  do({setting}) contexts {' '.join(world.contexts)}"


_QUESTION_TEXTS = {
    TaskKind.SCM: "a mechanism for every endogenous variable",
    TaskKind.EPISODE: "a mechanism for every endogenous variable, after worlds that are asked for",
    TaskKind.ROOTS: "the roots, and a mechanism for every other variable",
    TaskKind.ALTERNATIVE: "an SCM that fits but means something else than the reference, an experiment, a witness",
}


def find_instance(pool: Pool, instance: str) -> Problem:
    """Return the problem with that id; `UnknownItemError` names similar ids, or the first ones."""
    ids = item_ids(pool.problems)
    if instance in ids:
        return pool.problems[ids.index(instance)]
    raise unknown_item(pool.name, instance, ids)


def selected_ids(pool: Pool, selection: Selection) -> dict[int, str]:
    """Return index in the pool -> id of the selected problems; `CalibrantError` for an unknown id."""
    for instance in sorted(selection.only):
        find_instance(pool, instance)
    return selection.ids_by_index(pool)


def instance_text(problem: Problem) -> str:
    """Return the public part of an instance as text."""
    task = problem.task
    lines = [
        in_one_line(f"{problem.id}   {problem.setting}"),
        f"asked       {_QUESTION_TEXTS[task.kind]}",
        *_disclosure_lines(task.disclosure),
        f"operators   {' '.join(task.grammar.operators)}" + ("; constants 0 1" if task.grammar.allow_constants else ""),
        f"units       {'shared by all worlds' if task.shares_units else 'not said to be shared between worlds'}",
    ]
    if task.reference is not None:
        lines += ["", "reference", *_mechanism_lines(task.reference)]
    if task.extension is not None:
        lines += extension_lines(task.extension)
    worlds = task.training.worlds
    if task.kind is TaskKind.EPISODE:
        return "\n".join(lines)
    lines += ["", f"{len(worlds)} training worlds ({task.num_heldout} more are held out); clamped cells in brackets"]
    return "\n".join([*lines, *_world_lines(worlds)])


def sealed_text(problem: Problem) -> str:
    """Return the sealed part as text: gold, the latent order, the held-out worlds."""
    sealed = problem.sealed
    sealed_facts = [in_one_line(f"stratum       {problem.stratum}")] if problem.stratum else []
    sealed_facts += [] if sealed.seed is None else [f"seed          {sealed.seed}"]
    sealed_facts += [in_one_line(f"rate          {v} {rate}") for v, rate in sealed.rates.items()]
    lines = ["sealed", *sealed_facts, f"latent order  {' < '.join(sealed.latent_order)}"]
    if sealed.gold is None:
        lines.append("gold          not in the file")
    else:
        lines += [f"gold          total size {sealed.gold.size}", *_mechanism_lines(sealed.gold)]
    lines += ["", f"{len(sealed.heldout.worlds)} held-out worlds"]
    return "\n".join([*lines, *_world_lines(sealed.heldout.worlds)])


def instance_record(problem: Problem) -> dict[str, Any]:
    """Return the public part of the native record, ready for JSON."""
    record = msgspec.to_builtins(record_from_problem(problem))
    for hidden in ("sealed", "results"):
        record.pop(hidden, None)
    for world in record["training"]:
        world.pop("environment", None)  # its keys are the roots
    return {**record, "setting": problem.setting, "num_heldout": problem.task.num_heldout}


def sealed_record(problem: Problem) -> dict[str, Any]:
    """Return the sealed part of the native record, ready for JSON."""
    return dict(msgspec.to_builtins(record_from_problem(problem).sealed))


def _disclosure_lines(disclosure: Disclosure) -> Iterator[str]:
    if disclosure.roots is None:
        yield f"variables   {' '.join(disclosure.variables)}"
        yield f"roots       {disclosure.num_roots}, not told which"
    else:
        yield f"roots       {' '.join(disclosure.roots)}"
        yield f"endogenous  {' '.join(disclosure.endogenous)}"
    if disclosure.order is not None:
        yield f"order       {' < '.join(disclosure.order)}"
    elif disclosure.blocks is not None:
        yield f"blocks      {' < '.join('{' + ' '.join(block) + '}' for block in disclosure.blocks)}"
    else:
        yield "order       hidden"


def _mechanism_lines(model: Scm) -> Iterator[str]:
    yield f"  roots {' '.join(model.roots)}"
    for variable, mechanism in model.mechanisms.items():
        parents = " ".join(model.local_functions[variable].parents) or "none"
        yield f"  {variable} = {render(mechanism)}   parents {parents}"


def _world_lines(worlds: Sequence[World]) -> Iterator[str]:
    for world in worlds:
        yield ""
        yield f"{world.id}   {world.intervention}"
        targets = world.intervention.targets
        rows = [
            [unit, *(f"[{bit}]" if v in targets else f" {bit} " for v, bit in row.items())]
            for unit, row in zip(world.units, world.rows(), strict=True)
        ]
        text = aligned(["unit", *(f" {v}" for v in world.variables)], rows)
        yield "\n".join(f"  {line}" for line in text.split("\n"))
