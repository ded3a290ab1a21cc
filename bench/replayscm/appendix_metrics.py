"""Metrics that only the tables of the paper's appendices read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.reference_overlap import NUM_DEPTHS

Value: TypeAlias = Callable[[Any], float | None]


def _if_wrong_roots(value: Value) -> Value:
    return lambda v: value(v) if v.root_exact is False else None


def _if_valid_exact_roots(value: Value) -> Value:
    return lambda v: value(v) if v.valid and v.root_exact else None


def _overlap(verdict: Any) -> Mapping[str, Any] | None:
    """Return the overlap with the reference; None for answers to other tasks, and for invalid ones."""
    stored: Mapping[str, Any] | None = verdict.score.get("overlap")
    return stored


def _of_overlap(key: str) -> Value:
    return lambda v: None if (overlap := _overlap(v)) is None else overlap[key]


def _edit(holds: Callable[[int, int], bool]) -> Value:
    """Return whether this holds of the numbers of variables with other parents and with another function alone."""

    def value(verdict: Any) -> float | None:
        overlap = _overlap(verdict)
        if overlap is None or not verdict.alternative("altSuccess"):
            return None
        return holds(sum(overlap["changed_parents"]), sum(overlap["changed_function"]))

    return value


def _at_depth(key: str, place: int) -> Value:
    def value(verdict: Any) -> float | None:
        overlap = _overlap(verdict)
        if overlap is None or not verdict.alternative("altSuccess"):
            return None
        return float(overlap[key][place])

    return value


DEPTH_KEYS = ("variables", "changed_parents", "changed_function")
ROOTS_APPENDIX = (
    Metric(
        "mechanism_train_exact",
        "Mechanism TE",
        "TrainExact of the mechanisms, where roots are hidden",
        lambda v: None if v.root_exact is None else v.train_exact,
    ),
    Metric(
        "mechanism_heldout_exact",
        "Mechanism HE",
        "HeldoutExact of the mechanisms, where roots are hidden",
        lambda v: None if v.root_exact is None else v.heldout_exact,
    ),
    Metric("root_exact_valid", "RE valid", "valid, with the true root set", _if_valid_exact_roots(lambda v: 1.0)),
    Metric(
        "train_exact_given_root_wrong",
        "TE|wrong",
        "TrainExact of answers with another root set",
        _if_wrong_roots(lambda v: v.train_exact),
        True,
    ),
    Metric(
        "heldout_world_given_root_wrong",
        "HW|wrong",
        "HeldoutWorld of answers with another root set",
        _if_wrong_roots(lambda v: v.world_rate("heldout")),
        True,
    ),
    Metric(
        "train_failure",
        "train failures",
        "true root set, not train-exact",
        lambda v: None if v.root_exact is None else bool(v.root_exact and not v.train_exact),
    ),
    Metric(
        "heldout_failure",
        "held-out failures",
        "true root set, train-exact, not held-out exact",
        lambda v: None if v.root_exact is None else bool(v.root_exact and v.train_exact and not v.heldout_exact),
    ),
    Metric(
        "parent_f1_given_root_exact_valid",
        "F1|RE,valid",
        "F1 of valid answers with the true root set",
        _if_valid_exact_roots(lambda v: v.structure.get("f1")),
        True,
    ),
    Metric(
        "parent_map_exact_given_root_exact_valid",
        "MapExact|RE,valid",
        "MapExact of valid answers with the true root set",
        _if_valid_exact_roots(lambda v: v.structure.get("exact_map")),
        True,
    ),
    Metric(
        "train_exact_given_root_exact_valid",
        "TE|RE,valid",
        "TrainExact of valid answers with the true root set",
        _if_valid_exact_roots(lambda v: v.train_exact),
        True,
    ),
    Metric(
        "heldout_world_given_root_exact_train_exact",
        "HW|RE,TE",
        "HeldoutWorld of train-exact answers with the true root set",
        lambda v: v.world_rate("heldout") if v.root_exact and v.train_exact else None,
        True,
    ),
)
ALTERNATIVE_APPENDIX = (
    Metric(
        "experiment_valid",
        "Exp valid",
        "the experiment is a single-variable intervention",
        lambda v: v.alternative("experimentValid"),
    ),
    Metric("separates", "Separates", "the experiment separates the two", lambda v: v.alternative("pairSeparates")),
    Metric("reference_f1", "F1", "F1 of functional parents against the reference", _of_overlap("f1"), True),
    Metric("reference_map_exact", "MapExact", "the reference's parents throughout", _of_overlap("exact_map"), True),
    Metric("reference_match", "LocalMatch", "share of the reference's functions", _of_overlap("local_match"), True),
    Metric("one_variable", "One variable", "one variable has another function", _edit(lambda p, f: p + f == 1), True),
    Metric(
        "one_variable_same_parents",
        "same parents",
        "one variable has another function of the same parents",
        _edit(lambda p, f: (p, f) == (0, 1)),
        True,
    ),
    Metric(
        "one_variable_changed_parents",
        "changed parents",
        "one variable has other parents",
        _edit(lambda p, f: (p, f) == (1, 0)),
        True,
    ),
    *(
        Metric(f"{key}_{place + 1}", f"{key} {place + 1}", f"{key} at depth {place + 1}", _at_depth(key, place))
        for key in DEPTH_KEYS
        for place in range(NUM_DEPTHS)
    ),
)
APPENDIX_METRICS = (*ROOTS_APPENDIX, *ALTERNATIVE_APPENDIX)
