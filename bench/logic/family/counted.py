"""A counted family with what was asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from calibrant.bench.logic.options import FamilyOptions
from calibrant.dsl.errors import CalibrantError
from calibrant.dsl.logic.clause import Model
from calibrant.dsl.logic.files.bnet import read_bnet
from calibrant.dsl.logic.files.midas import Dataset
from calibrant.dsl.logic.files.networks import ListedModel, read_networks
from calibrant.dsl.logic.task import Experiment, Task
from calibrant.solvers.logic.comparison import Comparison
from calibrant.solvers.logic.elimination.lattice import LatticeLimitError
from calibrant.solvers.logic.family import LogicFamily
from calibrant.solvers.logic.next_experiment import NextExperiment


@dataclass(frozen=True)
class CountedModels:
    """Members in a row. is_drawn: drawn uniformly with replacement, else listed by ascending misfit and size."""

    models: Sequence[Model]
    is_drawn: bool


@dataclass(frozen=True)
class Ranking:
    """Candidates of the next experiment; best: None without members or candidates, or where `reason` says why not."""

    best: NextExperiment | None
    num_candidates: int
    reason: str = ""


@dataclass(frozen=True)
class Counted:
    """A counted family.

    prior, data: the files; dataset: what was read from the latter; options: as they were given
    whole: all models within the tolerances; family: those of them that have and lack the clauses asked for
    listed: another tool's models, in the order of its file; comparison: None if no list was given
    total: all models of the class whatever the data, None where they are too many to count
    """

    prior: Path
    data: Path
    dataset: Dataset
    options: FamilyOptions
    task: Task
    notes: tuple[str, ...]
    whole: LogicFamily
    family: LogicFamily
    total: int | None
    ranking: Ranking
    members: CountedModels | None
    listed: Sequence[ListedModel]
    comparison: Comparison | None

    @property
    def is_restricted(self) -> bool:
        """Whether clauses were asked for."""
        return self.family is not self.whole


def rank_candidates(family: LogicFamily, candidates: Sequence[Experiment]) -> Ranking:
    """Return the best of the candidates, or why there is none."""
    try:
        return Ranking(family.best_next(candidates), len(candidates))
    except LatticeLimitError as error:
        return Ranking(None, len(candidates), f"{error}; try a smaller --fit or --size")


def drawn_members(family: LogicFamily, number: int, seed: int) -> Sequence[Model]:
    """Return so many members, drawn uniformly with replacement."""
    return family.draw(np.random.default_rng(seed), number)


def listed_members(family: LogicFamily, number: int) -> Sequence[Model]:
    """Return the first members by ascending misfit and size."""
    return list(islice(family.models(), number))


def item_name(data: Path) -> str:
    """Return the id of the item that a file of data becomes."""
    return data.name.partition(".")[0] or data.name


def read_list(path: Path) -> Sequence[ListedModel]:
    """Return the models of networks.csv, or the one of a bnet file."""
    return [ListedModel(read_bnet(path))] if path.suffix == ".bnet" else read_networks(path)


def require_members(family: LogicFamily) -> None:
    """`CalibrantError` if no member has and lacks the clauses asked for."""
    if not family.count:
        raise CalibrantError("no member has and lacks these clauses: there is none to list or draw")
