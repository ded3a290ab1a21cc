"""Where the rows stand on the released suites: means over every config, with crystals and noise of several seeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from baselines.causalab.figures import Figures, figures
from baselines.causalab.rows import ROWS
from bench.pages.aligned import aligned
from dsl.causalab.configs import item_of_config, read_configs
from dsl.causalab.generation import PLANS

LINEAR = tuple(f"{k}nodes" for k in range(3, 8))
OTHERS = tuple(suite for suite in PLANS if suite not in LINEAR)
SOLVERS = ("exact", "greedy")

Standing: TypeAlias = Mapping[tuple[str, str], Figures]  # by suite and row


def standing(folder: Path, suites: Iterable[str], rows: Sequence[str], seeds: int) -> Standing:
    """Figures of each row on each suite; the seeds are 0, 1, ... `PoolError` names a file that is not there."""
    found = {}
    for suite in suites:
        configs = read_configs(folder / f"{suite}.jsonl")
        for row in rows:
            drawn = (item_of_config(made, seed) for seed in range(seeds) for made in configs)
            found[suite, row] = figures(ROWS[row], drawn)
    return found


def linear_table(found: Standing) -> str:
    """A line a row: accuracy in percent / F1 / SHD, suite by suite."""
    suites, rows = _keys(found)
    lines = [[row, *(_triple(found[suite, row]) for suite in suites)] for row in rows]
    return aligned(["Row", *suites], lines)


def solver_table(found: Standing) -> str:
    """A line for each suite and row, with what the first table has no room for."""
    headings = ["Suite", "Row", "Episodes", "Answered", "Accuracy", "Activated", "F1", "SHD", "Root F1"]
    return aligned([*headings, "Weights 1e-6", "Weights .01", "Settings"], [list(_line(found, key)) for key in found])


def _keys(found: Standing) -> tuple[list[str], list[str]]:
    return list(dict.fromkeys(suite for suite, _ in found)), list(dict.fromkeys(row for _, row in found))


def _triple(of: Figures) -> str:
    means = of.means
    return f"{100 * means['accuracy']:.0f}/{means['all_edge_f1']:.3f}/{means['shd']:.2f}"


def _line(found: Standing, key: tuple[str, str]) -> Iterator[str]:
    of = found[key]
    yield from key
    yield from (str(of.items), str(of.answered))
    yield from (f"{100 * of.means[name]:.1f}" for name in ("accuracy", "activated"))
    names = ("all_edge_f1", "shd", "root_f1", "freq_weight_f1", "freq_weight_display_f1", "settings")
    yield from (f"{of.means[name]:.3f}" for name in names)
