"""Boolean SCMs as an estimator of scikit-learn (extra `sklearn`), which predicts under interventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.bench.replayscm.fitting.fit import Fit, fit
from calibrant.dsl.errors import CalibrantError, require_extra, short_repr
from calibrant.dsl.formulas.table import pack_bits, unpack_bits
from calibrant.dsl.replayscm.evaluator import compute, simulate
from calibrant.dsl.replayscm.world import Column
from calibrant.dsl.text import known_names
from calibrant.solvers.formulas.least_formulas import Measure
from calibrant.solvers.outcome import Found

if TYPE_CHECKING:
    from calibrant.dsl.replayscm.scm import Scm

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:  # without the extra `sklearn`, the class can be imported, and creating one is an error
    BaseEstimator = object

Bits = npt.NDArray[np.int8]


class BooleanSCM(BaseEstimator):
    """The smallest structural causal model of a table of zeros and ones, with proof that it is smallest.

    Every column that is no root is a function of others, exactly, in each row in which it was not set. Rows that
    contradict each other are an error: noisy columns are for `calibrant.learn_networks`.

    roots: names or positions of columns that need no explanation; None: as few as possible
    max_parents: largest number of columns on which a column may depend, 1 to 6
    operators: in which operators sizes of formulas are measured: all, and-or-not, sop or pos

    After `fit`: `fit_` (the `Fit`, with the other models that fit), `formulas_` (by column), `roots_`, `order_`
    (columns, causes first), `n_features_in_`, and `feature_names_in_` if X was a data frame.
    """

    def __init__(
        self, *, roots: Sequence[str | int] | None = None, max_parents: int = 4, operators: Measure = "all"
    ) -> None:
        require_extra("sklearn", "sklearn")
        self.roots = roots
        self.max_parents = max_parents
        self.operators = operators

    def fit(self, X: Any, y: object = None, interventions: Any = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Fit the SCM to rows of zeros and ones; y is ignored.

        interventions: for each row the columns that were set, by name or position, or None if none was set; or an
            array of flags in the shape of X. The mechanism of a column need not hold in rows in which it was set.
        """
        bits = self._check_rows(X, reset=True, min_size=2)
        names = self._names()
        if len(set(names)) < len(names):
            raise ValueError("two columns have the same name")
        columns: dict[str, Any] = {name: column.tolist() for name, column in zip(names, bits.T, strict=True)}
        options: dict[str, Any] = {"max_parents": self.max_parents, "operators": self.operators}
        if self.roots is not None:
            options["roots"] = [names[self._position(root)] for root in self.roots]
        if interventions is not None:
            marker = "set"
            while marker in columns:
                marker += "_"
            columns[marker] = self._set_columns(interventions, bits.shape)
            options["do"] = marker
        try:
            fitted = fit(columns, **options)
        except CalibrantError as error:
            raise ValueError(str(error)) from None
        if not isinstance(fitted, Fit) or not isinstance(fitted.outcome, Found):
            raise ValueError("\n".join(fitted.lines()).partition("\n")[0])
        self.fit_ = fitted
        model: Scm = fitted.outcome.value.model
        self.formulas_, _ = fitted.naming.graph(model, is_whole=True)
        self.order_ = [fitted.naming.to_raw(name) for name in model.order]
        self.roots_ = [fitted.naming.to_raw(name) for name in model.roots]
        return self

    def predict(self, X: Any) -> Bits:  # noqa: N803
        """Return each column as its mechanism computes it from the other columns of its row, and roots unchanged."""
        check_is_fitted(self)
        return self._computed(self._check_rows(X, reset=False))

    def predict_interventional(self, X: Any, do: Mapping[Any, int]) -> Bits:  # noqa: N803
        """Return the rows under an intervention: roots as in X, other columns computed from them, causes first.

        do: column that is set, by name or position -> its value
        """
        check_is_fitted(self)
        bits = self._check_rows(X, reset=False)
        columns, rows = self._columns(bits)
        names, clamped = self._names(), dict[str, Column]()
        for column, value in do.items():
            if value not in (0, 1):
                raise ValueError(f"do: {short_repr(column)} is set to {short_repr(value)}; allowed: 0, 1")
            name = self.fit_.naming.to_legal(names[self._position(column)])
            columns[name], clamped[name] = rows * int(value), rows
        return self._rows(simulate(self.fit_.outcome.value.model, columns, clamped, rows), len(bits))

    def score(self, X: Any, y: object = None, interventions: Any = None) -> float:  # noqa: N803
        """Return the share of cells that `predict` gets right, among columns that are no roots and were not set.

        It is 1.0 if there is no such cell; y is ignored.

        interventions: as in `fit`
        """
        check_is_fitted(self)
        bits = self._check_rows(X, reset=False)
        counted = np.ones(bits.shape, np.bool_)
        counted[:, [self._position(root) for root in self.roots_]] = False
        if interventions is not None:
            for row, names in enumerate(self._set_columns(interventions, bits.shape)):
                counted[row, [self._position(name) for name in names]] = False
        right = self._computed(bits) == bits
        return float(right[counted].mean()) if counted.any() else 1.0

    # --- checks, and rows as columns of bits -------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool, min_size: int = 1) -> Bits:  # noqa: N803
        """Return rows of zeros and ones; `ValueError` for another value.

        reset: whether the columns of X become those of the estimator; min_size: smallest number of rows and of columns
        """
        rows = validate_data(self, X, reset=reset, ensure_min_samples=min_size, ensure_min_features=min_size)
        wrong = np.argwhere((rows != 0) & (rows != 1))
        if len(wrong):
            row, column = wrong[0]
            value = short_repr(rows[row, column].item())
            raise ValueError(f"row {row}, column {self._names()[column]}: {value}; a BooleanSCM takes 0 and 1 alone")
        bits: Bits = np.asarray(rows, dtype=np.int8)
        return bits

    def _names(self) -> list[str]:
        names = getattr(self, "feature_names_in_", None)
        return [f"x{k}" for k in range(self.n_features_in_)] if names is None else [*map(str, names)]

    def _position(self, column: object) -> int:
        names = self._names()
        if isinstance(column, str) and column in names:
            return names.index(column)
        if isinstance(column, int | np.integer) and not isinstance(column, bool) and 0 <= column < len(names):
            return int(column)
        raise ValueError(f"unknown column {short_repr(column)}; {known_names(str(column), names)}")

    def _set_columns(self, interventions: Any, shape: tuple[int, ...]) -> list[list[str]]:
        """Return for each row the names of the columns that were set."""
        names = self._names()
        if isinstance(interventions, np.ndarray) and interventions.ndim == 2:
            if interventions.shape != shape:
                raise ValueError(f"interventions has the shape {interventions.shape}; X has {shape}")
            return [[names[k] for k in np.flatnonzero(row)] for row in interventions]
        rows = [*interventions]
        if len(rows) != shape[0]:
            raise ValueError(f"interventions has {len(rows)} rows; X has {shape[0]}")
        listed = [() if row is None else (row,) if isinstance(row, str | int | np.integer) else row for row in rows]
        return [[names[self._position(column)] for column in row] for row in listed]

    def _computed(self, bits: Bits) -> Bits:
        """Return the rows with each column computed by its mechanism, if it has one."""
        columns, rows = self._columns(bits)
        mechanisms = self.fit_.outcome.value.model.mechanisms
        computed = {name: compute(mechanism, columns, rows) for name, mechanism in mechanisms.items()}
        return self._rows(columns | computed, len(bits))

    def _columns(self, bits: Bits) -> tuple[dict[str, Column], Column]:
        """Return the columns by their names in formulas, each as an integer of a bit per row, and that of all ones."""
        legal = self.fit_.naming.to_legal
        columns = {legal(name): pack_bits(column) for name, column in zip(self._names(), bits.T, strict=True)}
        return columns, (1 << len(bits)) - 1

    def _rows(self, columns: Mapping[str, Column], num_rows: int) -> Bits:
        """Return the rows that these columns of bits make."""
        legal = map(self.fit_.naming.to_legal, self._names())
        return np.stack([unpack_bits(columns[name], num_rows) for name in legal], axis=1).astype(np.int8)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
