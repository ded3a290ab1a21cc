"""CausaLab: the space of weighted graphs before any setting, and an exact episode, against the number of nodes."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

from calibrant.bench.lab.limits.sweep import Ask, Curve, Sweep
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.generation import PLANS, generate_items
from calibrant.dsl.causalab.item import LabItem
from calibrant.solvers.causalab.evidence import evidence_of
from calibrant.solvers.causalab.exact import solve
from calibrant.solvers.causalab.space import weighted_dags
from calibrant.solvers.outcome import BudgetSpent, OutOfBudget

NODES = (3, 4, 5, 6, 7, 8, 9)


def sweeps() -> tuple[Sweep, ...]:
    curves = [Curve("graphs counted", NODES, _count), Curve("exact episode", NODES, _solve)]
    return (Sweep("causalab", "linear mechanisms", "nodes", curves),)


def _item(nodes: int, seed: int) -> LabItem:
    return next(islice(generate_items(replace(PLANS["5nodes"], nodes=nodes), seed, 1), 1))


def _count(nodes: int, seed: int) -> Ask:
    item = _item(nodes, seed)

    def ask() -> str | None:
        try:
            assert weighted_dags(evidence_of(item.task), bounded=False).count > 0  # the latent mechanism is one
        except BudgetSpent as error:
            return str(error)
        return None

    return ask


def _solve(nodes: int, seed: int) -> Ask:
    item = _item(nodes, seed)

    def ask() -> str | None:
        outcome = solve(LabEpisode(item))
        return outcome.reached if isinstance(outcome, OutOfBudget) else None

    return ask
