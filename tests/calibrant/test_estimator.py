"""BooleanSCM beside mechanisms written by hand, and beside the checks of scikit-learn."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

import calibrant
from tests.support.commands import CHECKOUT, program
from tests.support.packages import needs

needs("sklearn")

PAGE = (CHECKOUT / "docs" / "names" / "BooleanSCM.md").read_text(encoding="utf-8")
NOT_BINARY = set(re.findall(r"^- `(check_\w+)`$", PAGE, re.MULTILINE))
ALL = np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 3)


def rows_of(roots: Any, do: dict[int, int] | None = None) -> Any:
    """Return rows a, b, a and b, (a and b) xor c, c, computed by hand, under an intervention."""
    do = do or {}
    a, b, c = (np.full(len(roots), do[k]) if k in do else roots[:, j] for j, k in enumerate((0, 1, 4)))
    both = np.full(len(roots), do[2]) if 2 in do else a * b
    last = np.full(len(roots), do[3]) if 3 in do else (both + c) % 2
    return np.stack([a, b, both, last, c], axis=1)


def fitted() -> calibrant.BooleanSCM:
    return calibrant.BooleanSCM(roots=[0, 1, 4]).fit(rows_of(ALL))


def test_the_mechanisms_are_found_and_predict() -> None:
    model = fitted()
    assert model.roots_ == ["x0", "x1", "x4"]
    assert model.formulas_["x2"] == "x0 and x1"
    assert (model.predict(rows_of(ALL)) == rows_of(ALL)).all()
    assert model.score(rows_of(ALL)) == 1.0


@pytest.mark.parametrize("do", [{2: 0}, {2: 1}, {0: 1}, {3: 0}, {0: 0, 4: 1}, {}, {0: 1, 1: 1, 2: 0, 3: 1, 4: 0}])
def test_interventions_are_predicted_as_by_hand(do: dict[int, int]) -> None:
    model = fitted()
    expected = rows_of(ALL, do)
    assert (model.predict_interventional(rows_of(ALL), do) == expected).all()
    assert (model.predict_interventional(rows_of(ALL), {f"x{k}": value for k, value in do.items()}) == expected).all()


def test_rows_that_were_set_do_not_count() -> None:
    rows = np.concatenate([rows_of(ALL), rows_of(ALL, {2: 1})])
    names = [None] * len(ALL) + [["x2"]] * len(ALL)
    flags = np.zeros(rows.shape, bool)
    flags[len(ALL) :, 2] = True
    for interventions in (names, flags, [() if name is None else (2,) for name in names]):
        model = calibrant.BooleanSCM(roots=["x0", "x1", "x4"]).fit(rows, interventions=interventions)
        assert model.formulas_ == fitted().formulas_
        assert model.score(rows, interventions=interventions) == 1.0
        wrong = int((rows_of(ALL)[:, 2] == 0).sum())
        assert model.score(rows) == pytest.approx(1 - wrong / (2 * len(rows)))


def test_frames_keep_their_names() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows_of(ALL), columns=["IL-6 <b>", "set", "both", "last", "c"])
    model = calibrant.BooleanSCM(roots=["IL-6 <b>", "set", "c"]).fit(frame, interventions=[None] * len(frame))
    assert list(model.feature_names_in_) == list(frame.columns)
    assert model.formulas_["both"] == "`IL-6 <b>` and set"
    assert (model.predict_interventional(frame, {"both": 1}) == rows_of(ALL, {2: 1})).all()


def test_wrong_input_is_a_value_error_in_words() -> None:
    rows, model = rows_of(ALL), fitted()
    calls: tuple[tuple[Any, str], ...] = (
        (lambda: calibrant.BooleanSCM().fit(rows * 2), "row 1, column x3: 2; a BooleanSCM takes 0 and 1 alone"),
        (lambda: calibrant.BooleanSCM(roots=["y"]).fit(rows), "unknown column 'y'"),
        (lambda: calibrant.BooleanSCM(max_parents=9).fit(rows), "max_parents"),
        (lambda: model.predict_interventional(rows, {"x2": 3}), "do: 'x2' is set to 3; allowed: 0, 1"),
        (lambda: model.predict_interventional(rows, {7: 1}), "unknown column 7"),
        (lambda: model.score(rows, interventions=[None]), "interventions has 1 rows; X has 24"),
        (lambda: model.score(rows, interventions=np.ones((2, 2))), r"interventions has the shape \(2, 2\)"),
        (lambda: calibrant.BooleanSCM(roots=[0]).fit([[0, 0], [0, 1], [1, 1]]), "nothing fits|differ"),
    )
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_checks_of_scikit_learn_pass_but_for_those_that_the_page_lists() -> None:
    from sklearn.utils.estimator_checks import check_estimator

    with np.errstate(all="ignore"):
        results = check_estimator(calibrant.BooleanSCM(), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= NOT_BINARY
    assert sum(result["status"] == "passed" for result in results) >= 20
    allowed = "takes 0 and 1 alone|nothing fits"
    for result in results:
        if result["status"] == "failed" and not re.search(allowed, str(result["exception"])):
            assert result["check_name"] == "check_positive_only_tag_during_fit"  # says so of that ValueError


def test_its_properties_hold_on_binary_tables() -> None:
    from sklearn.base import clone

    rows, model = rows_of(ALL), fitted()
    before, parameters = rows.copy(), model.get_params()
    again = clone(model).fit(rows)
    assert (again.formulas_, again.order_) == (model.formulas_, model.order_)
    assert model.get_params() == parameters == {"max_parents": 4, "operators": "all", "roots": [0, 1, 4]}
    assert (rows == before).all()
    order = np.random.default_rng(0).permutation(len(rows))
    whole = model.predict_interventional(rows, {0: 1})
    assert (model.predict_interventional(rows[order], {0: 1}) == whole[order]).all()
    assert (np.concatenate([model.predict_interventional(row[None], {0: 1}) for row in rows]) == whole).all()
    rows.setflags(write=False)
    for kind in (
        rows,
        np.asfortranarray(rows),
        rows.astype(bool),
        rows.astype(float),
        rows.astype(object),
        rows.tolist(),
    ):
        assert clone(model).fit(kind).formulas_ == model.formulas_
    assert pickle.loads(pickle.dumps(model)).formulas_ == model.formulas_
    assert calibrant.BooleanSCM(roots=[0, 1, 4]).fit(rows[order]).formulas_ == model.formulas_


def test_the_name_is_there_without_scikit_learn() -> None:
    source = """
import sys
sys.modules["sklearn"] = None
import importlib.util
find_spec = importlib.util.find_spec
from calibrant.dsl import errors
errors.find_spec = lambda name: None if name == "sklearn" else find_spec(name)
from calibrant import *
try:
    BooleanSCM()
except CalibrantError as error:
    print(error)
"""
    assert program("-c", source).stdout == "sklearn is missing; run: pip install 'calibrant[sklearn]'\n"
