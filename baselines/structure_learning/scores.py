"""Decomposable scores of a DAG on binary rows, and a cache of local scores for one frame.

The local score of a child is a sum over the parent configurations j that occur, with n_j rows, in n_jk of which the
child is k, as bnlearn computes it (Scutari 2010; the package's versions 4.9 and 5.2.1). Sources of the formulas:
Heckerman, Geiger and Chickering 1995 (BDe, K2 after Cooper and Herskovits 1992), Cooper and Yoo 1999 (rows in which
the child was set do not count: mbde), Scutari 2016 (BDs), Suzuki 2017 (BDJ), Schwarz 1978 (BIC), Akaike 1974 (AIC),
Scutari 2016 (variable selection prior).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fsum, log
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from calibrant.baselines.structure_learning import _kernels_scores as kernels
from calibrant.baselines.structure_learning.constraints import Constraints, Dag, Frame, Mask

CACHE_BITS = 12  # 4096 parent sets per child: all of them up to 12 variables, 64 kB a child beyond
MAX_TABLE_VARIABLES = 18  # 18 x 2**18 scores are 38 MB
MAX_BATCH_VARIABLES = 13  # 2**13 parent sets are scored between two reports: 2 s with 3,000 rows

F64 = npt.NDArray[np.float64]


class Terms(NamedTuple):
    """A score as a sum of tabulated terms; see Scoring for the shapes."""

    row_terms: F64
    cell_terms: F64
    by_occupied: bool
    set_terms: F64


class NetworkScore(Protocol):
    """Parameters of a local score: its terms, and whether rows with an intervention on the child are left out."""

    @property
    def interventional(self) -> bool: ...

    def terms(self, num_rows: int, num_vars: int) -> Terms: ...


@dataclass(frozen=True, slots=True)
class EquivalentSampleSize:
    """BDe with a uniform prior of `iss` imaginary rows over all configurations, or over those that occur."""

    iss: float
    over_occupied: bool
    interventional: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.iss > 0:
            raise ValueError(f"an equivalent sample size is positive, not {self.iss}")

    def terms(self, num_rows: int, num_vars: int) -> Terms:
        if self.over_occupied:
            configurations = np.maximum(1.0, np.arange(min(num_rows, 1 << (num_vars - 1)) + 1))
        else:
            configurations = np.exp2(np.arange(num_vars))
        row_prior = self.iss / configurations
        return _dirichlet(row_prior / 2, row_prior, self.over_occupied, num_rows, num_vars)


@dataclass(frozen=True, slots=True)
class SameCellPrior:
    """A Dirichlet prior with the same number of imaginary rows in every cell: 1 for K2, 1/2 for BDJ.

    cell: imaginary rows of one cell
    root_row: imaginary rows of a column without parents, over both cells: twice `cell`; bnlearn takes 2 for BDJ too,
    where that is 1
    """

    cell: float
    root_row: float
    interventional: ClassVar[bool] = False

    def terms(self, num_rows: int, num_vars: int) -> Terms:
        cell_prior = np.full(num_vars, self.cell)
        row_prior = 2 * cell_prior
        row_prior[0] = self.root_row
        return _dirichlet(cell_prior, row_prior, False, num_rows, num_vars)


@dataclass(frozen=True, slots=True)
class PenalisedLikelihood:
    """Maximum log-likelihood minus a price for each free parameter; a child has 2**parents of these.

    price_of: number of rows -> price of a parameter
    """

    price_of: Callable[[int], float]
    interventional: ClassVar[bool] = False

    def terms(self, num_rows: int, num_vars: int) -> Terms:
        counts = np.arange(num_rows + 1.0)
        entropy = counts * np.log(np.maximum(counts, 1.0))
        row_terms = np.tile(-entropy, (num_vars, 1))
        set_terms = -self.price_of(num_rows) * np.exp2(np.arange(num_vars + 1))
        return Terms(row_terms, -row_terms, False, set_terms)


@dataclass(frozen=True, slots=True)
class Interventional:
    """A score without the rows in which the child was set; rows in which only its parents were set count.

    A penalty still depends on the number of all rows.
    """

    score: NetworkScore
    interventional: ClassVar[bool] = True

    def terms(self, num_rows: int, num_vars: int) -> Terms:
        return self.score.terms(num_rows, num_vars)


@dataclass(frozen=True, slots=True)
class VariableSelection:
    """A score with the prior that each possible parent of a child is a parent with probability beta."""

    score: NetworkScore
    beta: float

    def __post_init__(self) -> None:
        if not 0 < self.beta < 1:
            raise ValueError(f"beta is a probability between 0 and 1, not {self.beta}")

    @property
    def interventional(self) -> bool:
        return self.score.interventional

    def terms(self, num_rows: int, num_vars: int) -> Terms:
        terms = self.score.terms(num_rows, num_vars)
        per_parent = log(self.beta / (1 - self.beta))
        return terms._replace(set_terms=terms.set_terms + per_parent * np.arange(num_vars + 1))


def bde(iss: float = 1.0) -> NetworkScore:
    """Return the Bayesian Dirichlet equivalent uniform score, which ignores interventions like bnlearn's; see mbde."""
    return EquivalentSampleSize(iss, over_occupied=False)


def mbde(iss: float = 1.0) -> NetworkScore:
    """Return BDe without the rows in which the child was set."""
    return Interventional(bde(iss))


def bds(iss: float = 1.0) -> NetworkScore:
    """Return BDe with the prior over the configurations that occur; it ignores interventions."""
    return EquivalentSampleSize(iss, over_occupied=True)


def bdj() -> NetworkScore:
    """Return the Bayesian Dirichlet score with Jeffreys' prior, also for a root; it ignores interventions."""
    return SameCellPrior(0.5, root_row=1.0)


def k2() -> NetworkScore:
    """Return the Bayesian Dirichlet score with one imaginary row per cell; it ignores interventions."""
    return SameCellPrior(1.0, root_row=2.0)


def loglik() -> NetworkScore:
    """Return the maximum log-likelihood; it ignores interventions."""
    return PenalisedLikelihood(_free)


def aic() -> NetworkScore:
    """Return log-likelihood minus 1 per parameter (larger is better); it ignores interventions."""
    return PenalisedLikelihood(_akaike)


def bic() -> NetworkScore:
    """Return log-likelihood minus log(rows)/2 per parameter; it ignores interventions."""
    return PenalisedLikelihood(_schwarz)


def _free(num_rows: int) -> float:
    return 0.0


def _akaike(num_rows: int) -> float:
    return 1.0


def _schwarz(num_rows: int) -> float:
    return log(num_rows) / 2 if num_rows else 0.0


def _dirichlet(cell_prior: F64, row_prior: F64, by_occupied: bool, num_rows: int, num_vars: int) -> Terms:
    row_terms, cell_terms = np.empty((2, len(cell_prior), num_rows + 1))
    kernels.dirichlet_terms(cell_prior, row_prior, row_terms, cell_terms)
    return Terms(row_terms, cell_terms, by_occupied, np.zeros(num_vars + 1))


class LocalScores:
    """Local scores of one frame under one score, cached by (child, parent set); not thread-safe."""

    def __init__(self, frame: Frame, score: NetworkScore) -> None:
        self.frame = frame
        self.score = score
        self.scoring = scoring(frame, score.terms(frame.num_rows, frame.num_vars), counted_rows(frame, score))

    def local(self, child: int, parents: Mask) -> float:
        """Return the score of one variable given its parents."""
        if parents >> child & 1 or parents >> self.frame.num_vars:
            raise ValueError(f"{self.frame.variables[child]} cannot have the parent set {parents:#b}")
        return float(self.of_families([child], [parents])[0])

    def total(self, dag: Dag) -> float:
        """Return the score of a network: the sum over its variables."""
        return fsum(self.local(child, parents) for child, parents in enumerate(dag))

    def of_families(self, children: Sequence[int], parents: Sequence[Mask]) -> F64:
        """Return the local scores of (child, parents) pairs, without checks of the arguments."""
        out = np.empty(len(children))
        kernels.scores_of(self.scoring, np.array(children, np.int64), np.array(parents, np.int64), out)
        return out

    def table(self, constraints: Constraints, listen: Callable[[int, int], None] = lambda done, total: None) -> F64:
        """Return the local scores that the constraints admit, [variables, 2**variables]; minus infinity elsewhere.

        listen: called with (batches of parent sets done, all batches)
        """
        num_vars = self.frame.num_vars
        if num_vars > MAX_TABLE_VARIABLES:
            raise ValueError(f"a table over {num_vars} variables; at most {MAX_TABLE_VARIABLES} fit")
        table = np.full((num_vars, 1 << num_vars), -np.inf)
        allowed, required = constraints.arrays()
        first = max(0, num_vars - MAX_BATCH_VARIABLES)
        for prefix in range(1 << first):
            listen(prefix, 1 << first)
            kernels.score_table(self.scoring, allowed, required, constraints.max_parents, first, prefix, table)
        listen(1 << first, 1 << first)
        return table


def counted_rows(frame: Frame, score: NetworkScore) -> npt.NDArray[np.uint64]:
    """Return, for each row, the mask of the variables whose scores count it."""
    everything = np.full(frame.num_rows, (1 << frame.num_vars) - 1, np.uint64)
    return everything & ~frame.clamped if score.interventional else everything


def scoring(frame: Frame, terms: Terms, counted: npt.NDArray[np.uint64]) -> kernels.Scoring:
    """Return the kernels' data of a frame, with an empty cache; counted: as from `counted_rows`."""
    num_vars, num_rows = frame.num_vars, frame.num_rows
    columns, masks = np.empty((2, num_vars, max(1, -(-num_rows // 64))), np.uint64)
    kernels.pack_rows(frame.values, columns)
    kernels.pack_rows(counted, masks)
    slots = 1 << min(num_vars, CACHE_BITS)
    return kernels.Scoring(
        columns,
        masks,
        terms.row_terms,
        terms.cell_terms,
        terms.by_occupied,
        terms.set_terms,
        np.full((num_vars, slots), kernels.EMPTY, np.int64),
        np.empty((num_vars, slots)),
        np.empty((2, num_rows + 1, columns.shape[1]), np.uint64),
    )
