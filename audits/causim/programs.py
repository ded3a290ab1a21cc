"""Findings about programs: edges, noise and nodes that make no difference, and values that sampling misses."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from calibrant.audits.causim.certificates import vacuous_edge
from calibrant.audits.claims import Certificate, ClaimStatus, Finding
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.model import Model
from calibrant.dsl.causim.networks import NETWORKS, network
from calibrant.dsl.causim.topology import vacuity

VACUOUS = "vacuous"
MISSED = "missed_values"
DOMAIN_SAMPLES = 2_000  # samples from which the paper infers the values of noise


def vacuous_parts(model: Model, where: str) -> Iterator[Finding]:
    """Yield a finding for every edge, noise variable and node of a model that makes no difference."""
    vacuous = vacuity(model)
    parts: list[tuple[str, str, str]] = []
    parts += [("edge", f"{a} -> {b}", f"no change of {a} ever changes {b}") for a, b in vacuous.edges]
    parts += [("noise", name, f"the noise of {name} changes nothing") for name in vacuous.noise]
    parts += [("node", name, f"{name} has one value") for name in vacuous.constants]
    for part, name, claim in parts:
        yield Finding(VACUOUS, ClaimStatus.PROVED, where, claim, {"part": part, "name": name})


def vacuous_network_edges(name: str) -> tuple[Finding, list[Certificate]]:
    """Return the edges of a built-in network that the printed grid makes vacuous, beside those of the exact cells."""
    grid, cells = (vacuity(network(name, mode)).edges for mode in ("grid", "cells"))
    source = module_text(bundle_of(network(name, "grid")), comments=False)
    edges = ", ".join(f"{parent} -> {child}" for parent, child in grid) or "none"
    finding = Finding(
        VACUOUS,
        ClaimStatus.PROVED if grid else ClaimStatus.REFUTED,
        name,
        f"vacuous edges on the grid of 20 noise values: {edges}; with exact cells: {len(cells) or 'none'}",
        {"grid": len(grid), "cells": len(cells), "edges": edges},
    )
    return finding, [vacuous_edge(source, parent, child) for parent, child in grid]


def network_findings() -> Iterator[Finding]:
    """Return one for each of asia, cancer and survey."""
    return (vacuous_network_edges(name)[0] for name in NETWORKS)


def miss_probability(probability: Fraction, samples: int = DOMAIN_SAMPLES) -> float:
    """Return the chance that a value of that probability is not among so many samples."""
    return float(1 - probability) ** samples


def missed_values(
    model: Model, where: str, samples: int = DOMAIN_SAMPLES, min_chance: float = 0.01
) -> Iterator[Finding]:
    """Yield noise values that a scan of so many samples misses with a chance of at least `min_chance`."""
    for node in model.nodes:
        for value, weight in zip(node.support, node.weights, strict=True):
            chance = miss_probability(weight, samples)
            if chance >= min_chance:
                yield Finding(
                    MISSED,
                    ClaimStatus.PROVED,
                    where,
                    f"{samples} samples of {node.noise} miss its value {value} in {chance:.1%} of scans",
                    {"noise": node.noise, "probability": str(weight), "chance": chance},
                )
