"""Results of the methods on the released suites: means over configs, with crystals and noise of several seeds.

Records are the released ones by default, which have one fixed seed: the specification's table was measured on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import repeat
from math import sqrt
from multiprocessing import get_context
from pathlib import Path
from statistics import mean, stdev
from typing import Literal, TypeAlias

from calibrant.audits.causalab.attribution import attribute_run
from calibrant.audits.causalab.suites import unwinnable_chance
from calibrant.baselines.causalab.rows import ROWS, run
from calibrant.bench.pages.aligned import aligned
from calibrant.dsl.causalab.configs import Config, item_of_config, read_configs
from calibrant.dsl.causalab.episode import LabStep
from calibrant.dsl.causalab.generation import PLANS
from calibrant.dsl.causalab.item import LabItem
from calibrant.solvers.budget import BudgetSpent

LINEAR = tuple(f"{k}nodes" for k in range(3, 8))
OTHERS = tuple(suite for suite in PLANS if suite not in LINEAR)
SOLVERS = ("exact", "greedy")
QUADRATIC, TO_SIX_DECIMALS = "4nodes_quad_hard", "exact-weights"  # elsewhere that row is `exact`
Records: TypeAlias = Literal["released", "fresh"]


@dataclass(frozen=True)
class MethodResult:
    """One row on one suite.

    episodes: how many; answered: in how many the row had an answer of its own
    by_seed: for each seed the means over the configs, by flat name
    imperfect: episodes with an edge wrong or missing; undecided: in how many of them the readings left several graphs
    """

    episodes: int
    answered: int
    by_seed: Sequence[Mapping[str, float]]
    imperfect: int
    undecided: int

    def mean(self, name: str) -> float:
        return mean(means[name] for means in self.by_seed)

    def error(self, name: str) -> float:
        """Return the standard error of the mean over seeds; 0 for one seed."""
        values = [means[name] for means in self.by_seed]
        return stdev(values) / sqrt(len(values)) if len(values) > 1 else 0.0


MethodResults: TypeAlias = dict[tuple[str, str], MethodResult]  # by suite and row


def method_results(
    folder: Path, suites: Iterable[str], rows: Sequence[str], seeds: int, records: Records, jobs: int = 1
) -> MethodResults:
    """Each row on each suite; the seeds are 0, 1, ... `PoolError` names a file that is not there."""
    configs = {suite: read_configs(folder / f"{suite}.jsonl") for suite in suites}
    keys = [(suite, row) for suite in configs for row in rows]
    slowest_first = sorted(keys, key=lambda key: (key[1] not in SOLVERS, -PLANS[key[0]].nodes))
    arguments = ([configs[suite] for suite, _ in slowest_first], [row for _, row in slowest_first])
    if jobs == 1:
        results = list(map(_stands, *arguments, repeat(seeds), repeat(records)))
    else:
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as workers:
            results = list(workers.map(_stands, *arguments, repeat(seeds), repeat(records)))
    by_key = dict(zip(slowest_first, results, strict=True))
    return {key: by_key[key] for key in keys}


def _stands(configs: Sequence[Config], row: str, seeds: int, records: Records) -> MethodResult:
    by_seed, answered, imperfect, undecided = [], 0, 0, 0
    for seed in range(seeds):
        flats = []
        for config in configs:
            item = item_of_config(config, seed, records=records)
            played = run(ROWS[row], item)
            answered += played.answered
            flats.append(played.score.flat())
            if row in SOLVERS and played.score.hypothesis.distance.shd:
                imperfect += 1
                undecided += _is_undecided(item, played.steps)
        by_seed.append({name: mean(flat[name] for flat in flats) for name in flats[0]})
    return MethodResult(seeds * len(configs), answered, by_seed, imperfect, undecided)


def _is_undecided(item: LabItem, steps: Sequence[LabStep]) -> bool:
    """Return whether the run's readings left several graphs, of mechanisms with any bases."""
    try:
        return not attribute_run(item, steps).graph.decided
    except BudgetSpent:
        return False


def linear_table(results: MethodResults) -> str:
    """Return a line a row: accuracy in percent / F1 / SHD by suite; where draws decide, with its standard error."""
    suites, rows = _keys(results)
    lines = [[row, *(_triple(results[suite, row]) for suite in suites)] for row in rows]
    return aligned(["Row", *suites], lines)


def solver_table(results: MethodResults) -> str:
    """Return a line for each suite and row with the columns that the first table has no room for."""
    headings = ["Suite", "Row", "Episodes", "Answered", "Accuracy", "Activated", "F1", "SHD", "Root F1"]
    headings += ["Weights 1e-6", "Weights .01", "Settings", "Imperfect", "Undecided"]
    return aligned(headings, [list(_line(results, key)) for key in results])


def reach_table(folder: Path, suites: Iterable[str]) -> str:
    """Return the exact chance, by suite, that a drawn target is beyond the dial, which no prediction activates."""
    lines = []
    for suite in suites:
        chances = [unwinnable_chance(config.mechanism) for config in read_configs(folder / f"{suite}.jsonl")]
        num_graphs = sum(chance > 0 for chance in chances)
        share = float(100 * sum(chances) / len(chances))
        lines.append([suite, f"{share:.2f}", f"{100 - share:.2f}", str(num_graphs), f"{float(max(chances)):.2f}"])
    return aligned(["Suite", "Unwinnable %", "Activated % at most", "Graphs", "Highest chance"], lines)


def _keys(results: MethodResults) -> tuple[list[str], list[str]]:
    return list(dict.fromkeys(suite for suite, _ in results)), list(dict.fromkeys(row for _, row in results))


def _triple(of: MethodResult) -> str:
    error = f"\N{PLUS-MINUS SIGN}{100 * of.error('accuracy'):.1f}" if 0 < of.mean("accuracy") < 1 else ""
    return f"{100 * of.mean('accuracy'):.0f}{error}/{of.mean('all_edge_f1'):.3f}/{of.mean('shd'):.2f}"


def _line(results: MethodResults, key: tuple[str, str]) -> Iterator[str]:
    of = results[key]
    yield from key
    yield from (str(of.episodes), str(of.answered))
    yield f"{100 * of.mean('accuracy'):.1f}"
    yield _with_error(100 * of.mean("activated"), 100 * of.error("activated"), 1)
    yield _with_error(of.mean("all_edge_f1"), of.error("all_edge_f1"), 3)
    names = ("shd", "root_f1", "freq_weight_f1", "freq_weight_display_f1", "settings")
    yield from (f"{of.mean(name):.3f}" for name in names)
    yield from (str(of.imperfect), str(of.undecided))


def _with_error(value: float, error: float, decimals: int) -> str:
    return f"{value:.{decimals}f}" + (f" \N{PLUS-MINUS SIGN}{error:.{decimals}f}" if error else "")
