"""CauSim by definition: printed rows, networks and labels, probabilities of nodes, counts of worlds, running sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from math import lcm, prod

from calibrant.audits.causim.verify import vacuous_edge
from calibrant.audits.claims import Certificate, ClaimStatus, Finding
from calibrant.dsl.causim.bundle import bundle_of, module_text
from calibrant.dsl.causim.generated_functions import vacuity
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.model import Assignment, Model, Node, Symbol, symbol
from calibrant.dsl.causim.networks import _NO_NOISE, NETWORKS, TOTAL, _item, items, network, points
from calibrant.dsl.causim.reference import work_out
from calibrant.solvers.causim.elimination import equation_factor, restrict, sum_of_products
from calibrant.solvers.causim.exact import AnswerSet, Compiled

# --- Claims of docs/causim.md about the paper's printed rows, its networks, and labels, computed from the definitions


def labels_by_running(item: CausimItem, max_worlds: int = 20_000) -> Finding | None:
    """Compare the labels with running every world; None if they agree or there are too many worlds."""
    if AnswerSet(item.task.model, item.task.question).worlds > max_worlds:
        return None
    worked, labels = work_out(item.task.model, item.task.question), item.labels
    stated = (labels.size, labels.trivial, labels.effect_all, labels.effect_some, labels.copy)
    computed = (len(worked.answers), worked.trivial, worked.effect_all, worked.effect_some, worked.copy)
    if stated == computed and item.task.scenario == worked.scenario:
        return None
    return Finding("wrong_label", ClaimStatus.PROVED, item.id, f"labels {stated}; running every world gives {computed}")


def vacuous_network_edges(name: str) -> tuple[Finding, list[Certificate]]:
    """Return the edges of a built-in network that the printed grid makes vacuous, beside those of the exact cells."""
    grid, cells = (vacuity(network(name, mode)).edges for mode in ("grid", "cells"))
    source = module_text(bundle_of(network(name, "grid")), comments=False)
    edges = ", ".join(f"{parent} -> {child}" for parent, child in grid) or "none"
    finding = Finding(
        "vacuous",
        ClaimStatus.PROVED if grid else ClaimStatus.REFUTED,
        name,
        f"vacuous edges on the grid of 20 noise values: {edges}; with exact cells: {len(cells) or 'none'}",
        {"grid": len(grid), "cells": len(cells), "edges": edges},
    )
    return finding, [vacuous_edge(source, parent, child) for parent, child in grid]


def network_findings() -> Iterator[Finding]:
    """Return one for each of asia, cancer and survey."""
    return (vacuous_network_edges(name)[0] for name in NETWORKS)


NOISE = "printed_noise"


GRAIN = "grain"


def repeated_rows(
    untrained: Sequence[str], untrained_again: Sequence[str], gains: Sequence[Sequence[str]], where: str
) -> Finding:
    """Return the distance of two prints of one untrained model on one test, beside the largest gain over it.

    untrained, untrained_again: the two rows; gains: rows of trained models in the first table
    """
    first = [float(cell) for cell in untrained]
    apart = max(abs(a - float(b)) for a, b in zip(first, untrained_again, strict=True))
    gain = max(float(cell) - base for row in gains for cell, base in zip(row, first, strict=True))
    return Finding(
        NOISE,
        ClaimStatus.PROVED,
        where,
        f"two prints of one system differ by up to {apart:.3f}; the largest gain over it is {gain:.3f}",
        {"apart": round(apart, 6), "gain": round(gain, 6)},
    )


def hundredths(rows: Mapping[str, Sequence[str]], where: str) -> Finding:
    """Return whether every cell is a multiple of .01, as means over 100 questions are."""
    cells = [cell for row in rows.values() for cell in row]
    all_coarse = all(round(float(cell) * 1000) % 10 == 0 for cell in cells)
    return Finding(
        GRAIN,
        ClaimStatus.PROVED if all_coarse else ClaimStatus.REFUTED,
        where,
        f"{'all' if all_coarse else 'not all'} of {len(cells)} cells are multiples of .01",
        {"cells": len(cells)},
    )


# --- Exact probabilities of nodes, counts of worlds, running sums, and an answer set by elimination alone -------------


def marginal(model: Model, name: str, do: Assignment) -> dict[Symbol, Fraction]:
    """Return P(name = value) for every value of the node's domain under `do`, zeros included."""
    system = model.under(do)
    i = model.position[name]
    factors, denominators = [], []
    for k, (node, local) in enumerate(zip(model.nodes, system, strict=True)):
        # whole numbers over a common denominator: sums are exact, with one Fraction at the end
        common = lcm(*(weight.denominator for weight in node.weights))
        weights = [int(weight * common) for weight in node.weights]
        factors.append(equation_factor(local, k, weights, range(len(weights))))
        denominators.append(common)
    bound = prod(denominators)
    return {
        value: Fraction(sum_of_products([restrict(factor, {i: k}) for factor in factors], bound), bound)
        for k, value in enumerate(system[i].domain)
    }


def count_worlds(model: Model, name: str) -> dict[Symbol, int]:
    """Count the worlds in which the node has each value of its domain."""
    i, system = model.position[name], model.system
    factors = [
        equation_factor(local, k, [1] * len(node.support), range(len(node.support)))
        for k, (node, local) in enumerate(zip(model.nodes, system, strict=True))
    ]
    return {
        value: sum_of_products([restrict(factor, {i: k}) for factor in factors], model.worlds)
        for k, value in enumerate(system[i].domain)
    }


def running_sums(n: int) -> Model:
    """Return a variant with a partial sum after each item, so that no table is large; the last sum is the total."""
    return Model(list(_with_sums(n)))


def _with_sums(n: int) -> Iterator[Node]:
    def add(parents: tuple[Symbol, ...], noise: Symbol) -> Symbol:
        return symbol(sum(map(points, parents)))

    score_items = items(n)
    before: tuple[str, ...] = ()
    for number, (name, values) in enumerate(score_items.items(), start=1):
        yield _item(name, values)
        sum_name = TOTAL if number == len(score_items) else f"sum_{name}"
        yield Node(sum_name, f"U_{sum_name}", (*before, name), (_NO_NOISE,), (Fraction(1),), add)
        before = (sum_name,)


class TwinAnswerSet(AnswerSet):
    """Answer set that always uses elimination and search, as if the fitting worlds never formed a product."""

    def _compile(self) -> Compiled:
        compiled = Compiled(self.model, self.question, self._work)
        if compiled.evidence is not None and all(compiled.allowed):
            compiled.product = None
        return compiled
