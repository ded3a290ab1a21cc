"""Boolean SCMs as an estimator of scikit-learn (extra `sklearn`), which predicts under interventions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from calibrant.bench.replayscm.fitting.fit import Fit, fit
from calibrant.dsl.errors import CalibrantError, require_extra, short_repr
from calibrant.dsl.text import known_names
from calibrant.solvers.formulas.least_formulas import Measure
from calibrant.solvers.outcome import Found

if TYPE_CHECKING:
    from calibrant.dsl.replayscm.scm import Scm

try:
    from sklearn.base import BaseEstimator
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError:  # the name is there without the extra, and refuses when an estimator is made
    BaseEstimator = object

Bits = npt.NDArray[np.int8]


class BooleanSCM(BaseEstimator):
    """The least structural causal model of a table of zeros and ones, with proof.

    Every column that is no root is a function of others, exactly, in each row in which it was not set. Rows that
    contradict each other are an error: noisy columns are for `calibrant.learn_networks`.

    roots: names or positions of columns that need no explanation; None: as few as possible
    max_parents: largest number of columns that one depends on, 1 to 6
    operators: what sizes of formulas count: all, and-or-not, sop or pos

    After `fit`: `fit_` (the `Fit`, with all that else fits), `formulas_` (by column), `roots_` and `order_` (columns,
    causes first), `n_features_in_`, and `feature_names_in_` of a data frame.
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

        interventions: for each row the columns that were set, names or positions; or flags in the shape of X. None
            where nothing was set. A column is not explained by its own mechanism in rows in which it was set.
        """
        bits = self._check_rows(X, reset=True, least=2)
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
        """Return each column as its mechanism gives it from the other columns of the row; roots as they are."""
        check_is_fitted(self)
        bits = self._check_rows(X, reset=False)
        return self._run(bits, {}, from_data=True)

    def predict_interventional(self, X: Any, do: Mapping[Any, int]) -> Bits:  # noqa: N803
        """Return the rows as they would be under an intervention: roots as in X, all other columns computed again.

        do: values of columns that are set, by name or position
        """
        check_is_fitted(self)
        bits = self._check_rows(X, reset=False)
        values: dict[int, int] = {}
        for column, value in do.items():
            if value not in (0, 1):
                raise ValueError(f"do: {short_repr(column)} is set to {short_repr(value)}; allowed: 0, 1")
            values[self._position(column)] = int(value)
        return self._run(bits, values, from_data=False)

    def score(self, X: Any, y: object = None, interventions: Any = None) -> float:  # noqa: N803
        """Return the share of cells that mechanisms give rightly, of columns that are no roots and were not set.

        1.0 where there is no such cell; y is ignored; interventions: as of `fit`
        """
        check_is_fitted(self)
        bits = self._check_rows(X, reset=False)
        counted = np.ones(bits.shape, np.bool_)
        counted[:, [self._position(root) for root in self.roots_]] = False
        if interventions is not None:
            for row, names in enumerate(self._set_columns(interventions, bits.shape)):
                counted[row, [self._position(name) for name in names]] = False
        right = self._run(bits, {}, from_data=True) == bits
        return float(right[counted].mean()) if counted.any() else 1.0

    # --- checks, and evaluation of the mechanisms on columns of bits -------------------------------------------------

    def _check_rows(self, X: Any, *, reset: bool, least: int = 1) -> Bits:  # noqa: N803
        """Return rows of zeros and ones; least: fewest rows and columns."""
        rows = validate_data(self, X, reset=reset, ensure_min_samples=least, ensure_min_features=least)
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

    def _run(self, bits: Bits, do: Mapping[int, int], *, from_data: bool) -> Bits:
        """Return the columns that mechanisms give; from_data: from the values of parents in the data."""
        names = self._names()
        legal = dict(zip(self.fit_.table.names, self.fit_.table.legal_names, strict=True))
        num_rows = len(bits)
        mask = (1 << num_rows) - 1
        packed = {
            legal[name]: int.from_bytes(np.packbits(column, bitorder="little").tobytes(), "little")
            for name, column in zip(names, bits.T, strict=True)
        }
        stated = {legal[names[k]]: mask * value for k, value in do.items()}
        model = self.fit_.outcome.value.model
        values = packed | stated
        results = dict(values)
        for variable in model.order:
            if variable in model.mechanisms and variable not in stated:
                results[variable] = model.mechanisms[variable].evaluate(values.__getitem__, mask)
                if not from_data:
                    values[variable] = results[variable]
        size = (num_rows + 7) // 8
        unpacked = [
            np.unpackbits(np.frombuffer(results[legal[name]].to_bytes(size, "little"), np.uint8), bitorder="little")
            for name in names
        ]
        return np.stack([column[:num_rows] for column in unpacked], axis=1).astype(np.int8)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags
