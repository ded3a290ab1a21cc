"""Comparison of `posterior` with `exact`, and the drawing of the weights of its functions.

`python -m calibrant.bench.lab.posterior POOL...` prints for each pool HeldoutExact and HeldoutWorld of `exact`, of the
most probable and of the most agreeing member, the paired difference to `exact` with its 95 per cent bootstrap interval
over problems, what the posterior itself expected, and two ceilings: of the posterior, and of audits.replayscm.ceiling
with weights 4**-size. A ceiling may look at the held-out worlds but for the endogenous values; it is the expected share
of the best possible answer if its prior is right.

`python -m calibrant.bench.lab.posterior weights` writes baselines/replayscm/posterior/data/formula_weights.bin: how
often the generator's random formulas mean which function. Baselines may not import the generator, so the package has
these frequencies as data. Ten minutes on one core.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np

from calibrant.audits.replayscm.ceiling import ceiling
from calibrant.baselines.replayscm.posterior import prior
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.baselines.replayscm.posterior.prior import ANY_SIZE, Drawn, pack
from calibrant.bench.protocols import Protocol
from calibrant.bench.replayscm.rows.exact import Exact, no_answer
from calibrant.bench.replayscm.rows.listed import MostPosterior
from calibrant.dsl.formulas.table import TruthTable, from_formula, permute
from calibrant.dsl.replayscm.generation.scms import sample_mechanism
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.pools.files import read_pool
from calibrant.dsl.replayscm.score import Evaluator
from calibrant.solvers.replayscm.canonical import canonical_problem
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

ROWS: tuple[Protocol, ...] = (Exact(), MostPosterior(choose="probable"), MostPosterior(choose="agreeing"))
RESAMPLES = 10_000
DRAWS = 400  # members whose held-out behaviour is compared
SIZE_CLASS = ModelClass(4, max_size=14, nested_roots=True)
SIZE_PENALTY = 2


class Outcome(NamedTuple):
    """Results on one problem: HeldoutExact and HeldoutWorld per method, the posterior's expectation, both ceilings."""

    exact: tuple[float, ...]
    world: tuple[float, ...]
    expected: float
    ceiling: float
    size_ceiling: float


def outcome(problem: Problem) -> Outcome:
    results = [row.answer(problem.task) for row in ROWS]
    evaluator, nothing = Evaluator(problem), no_answer(problem.task.kind)
    scores = [evaluator.score_answer(nothing if result.answer is None else result.answer) for result in results]
    world = [s.heldout.world_accuracy or 0.0 if s.heldout is not None and s.train_exact else 0.0 for s in scores]
    return Outcome(
        tuple(float(score.heldout_exact) for score in scores),
        tuple(world),
        results[-1].provenance.get("value", 0.0),
        _ceiling(problem),
        _size_ceiling(problem),
    )


def _ceiling(problem: Problem) -> float:
    """Return the share of the most frequent held-out behaviour among sampled members; biased upwards as a maximum."""
    posterior = Posterior(problem.task)
    if not posterior.components:
        return 0.0
    rng = Random(0)
    behaviours = Counter(_behaviour(problem, posterior.sample(rng)) for _ in range(DRAWS))
    return max(behaviours.values()) / DRAWS


def _behaviour(problem: Problem, member: Member) -> tuple[object, ...]:
    """Return the member's values in the held-out rows, given those of its parents there; and its roots."""
    panel = problem.sealed.heldout
    columns = [panel.columns[v] for v in panel.variables]
    values: list[object] = [member.roots]
    for variable, mechanism in sorted(member.mechanisms.items()):
        parents = [column for i, column in enumerate(columns) if mechanism.parents >> i & 1]
        scored = panel.scored_rows(panel.variables[variable])
        places = (sum((p >> row & 1) << i for i, p in enumerate(parents)) for row in range(panel.num_rows))
        predicted = sum((mechanism.bits >> place & 1) << row for row, place in enumerate(places))
        values.append(predicted & scored)
    return tuple(values)


def _size_ceiling(problem: Problem) -> float:
    space = VersionSpace(problem.task, SIZE_CLASS)
    if not space.count:
        return 0.0
    return float(ceiling(space, problem.sealed.heldout.worlds, Random(0), size_penalty=SIZE_PENALTY).lower)


def table_row(name: str, outcomes: list[Outcome]) -> str:
    exact, world = (np.array([getattr(outcome_, field) for outcome_ in outcomes]) for field in ("exact", "world"))
    resamples = np.random.default_rng(0).integers(len(outcomes), size=(RESAMPLES, len(outcomes)))
    cells = [name, str(len(outcomes)), f"{exact[:, 0].mean():.3f}"]
    for place in range(1, len(ROWS)):
        difference = exact[:, place] - exact[:, 0]
        low, high = np.percentile(difference[resamples].mean(axis=1), (2.5, 97.5))
        cells.append(f"{exact[:, place].mean():.3f} ({difference.mean():+.3f}, {low:+.3f} to {high:+.3f})")
    cells.append(" / ".join(f"{share:.3f}" for share in world.mean(axis=0)))
    for field in ("expected", "ceiling", "size_ceiling"):
        cells.append(f"{np.mean([getattr(outcome_, field) for outcome_ in outcomes]):.3f}")
    return f"| {' | '.join(cells)} |"


# --- Weights of functions: drawn from the published grammar as the generator restates it, with fixed seeds ------------
CHUNK = 2_000  # formulas of one seed, so that a part can be drawn again and compared
CHUNKS = {2: 10, 3: 50, 4: 150, 5: 40}


def draw_chunk(num_parents: int, chunk: int) -> Counter[tuple[int, int]]:
    """Return (bits of the truth table, size) -> number of mechanisms drawn in one chunk, with a size in ANY_SIZE.

    With these sizes the sampler never needs its fallback.
    """
    parents = tuple(f"X{i + 1}" for i in range(num_parents))
    stratum = replace(NAMED_STRATA[0], sizes=ANY_SIZE)
    rng = Random(f"formula weights:{num_parents}:{chunk}")
    formulas = (sample_mechanism(stratum, parents, rng) for _ in range(CHUNK))
    return Counter((from_formula(formula, parents).bits, formula.size) for formula in formulas)


def representative(bits: int, num_vars: int) -> int:
    """Return the smallest table among those that a permutation of the variables gives."""
    table = TruthTable(num_vars, bits)
    return min(permute(table, order).bits for order in permutations(range(num_vars)))


def by_class(counts: Counter[tuple[int, int]], num_parents: int) -> Counter[tuple[int, int]]:
    """Sum the counts over classes of functions equal up to a permutation of the parents."""
    names: dict[int, int] = {}
    classes: Counter[tuple[int, int]] = Counter()
    for (bits, size), number in counts.items():
        if bits not in names:
            names[bits] = representative(bits, num_parents)
        classes[names[bits], size] += number
    return classes


def drawn_classes(num_parents: int) -> Drawn:
    """Return the counts of all chunks for one number of parents, summed over classes of functions."""
    counts = sum((draw_chunk(num_parents, chunk) for chunk in range(CHUNKS[num_parents])), Counter[tuple[int, int]]())
    return Drawn(num_parents, dict(by_class(counts, num_parents)))


def write_weights() -> None:
    path = Path(prior.__file__).parent / prior.SHIPPED
    path.write_bytes(pack(map(drawn_classes, CHUNKS)))


def main(paths: list[str]) -> None:
    if paths == ["weights"]:
        write_weights()
        return
    head = ("pool", "n", "exact", "most probable", "most agreeing", "HeldoutWorld", "expected", "ceiling", "by size")
    print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    for row in ROWS:
        row.warm_up()
    for path in map(Path, paths):
        problems = map(canonical_problem, read_pool(path, keep_results=False).problems)  # names decide no tie or draw
        print(table_row(path.name.split(".")[0], list(map(outcome, problems))), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
