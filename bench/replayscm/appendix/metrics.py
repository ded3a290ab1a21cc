"""Metrics that only the tables of the paper's appendices read, and overlap with a supplied reference (G.4 and G.5)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct

from calibrant.bench.core.metrics import Metric
from calibrant.dsl.formulas.table import MAX_TABLE_VARS
from calibrant.dsl.replayscm.scm import Scm, structure_metrics
from calibrant.dsl.replayscm.score import Score

# --- Overlap of an Alternative-SCM answer with its reference: functional parents, depth over endogenous variables -----
NUM_DEPTHS = 3  # depths are 1, 2, and 3 or deeper


class Overlap(Struct, forbid_unknown_fields=True, frozen=True):
    """An alternative against its reference. Lists have an entry for each depth in the reference: 1, 2, 3 or deeper."""

    f1: Annotated[float, Meta(description="of functional parents against the reference's")]
    exact_map: Annotated[bool, Meta(description="all variables have the reference's parents")]
    local_match: Annotated[float, Meta(description="share of variables with the reference's local function")]
    variables: Annotated[list[int], Meta(description="endogenous variables by depth in the reference")]
    changed_parents: Annotated[list[int], Meta(description="those with other functional parents")]
    changed_function: Annotated[list[int], Meta(description="those with the same parents and another function")]

    @property
    def num_changed(self) -> int:
        return sum(self.changed_parents) + sum(self.changed_function)


def reference_overlap(score: Score) -> Overlap | None:
    """Return the overlap of a valid alternative with the reference.

    None for other answers, and if a mechanism mentions more than MAX_TABLE_VARS variables.
    """
    reference, model = score.problem.task.reference, score.model
    if reference is None or model is None or model.roots != reference.roots:
        return None
    if any(len(f.mentioned) > MAX_TABLE_VARS for f in (*reference.mechanisms.values(), *model.mechanisms.values())):
        return None
    metrics = structure_metrics(reference, model)
    variables, parents, functions = ([0] * NUM_DEPTHS for _ in range(3))
    for variable, depth in depths(reference).items():
        index = min(depth, NUM_DEPTHS) - 1
        function, original = model.local_functions[variable], reference.local_functions[variable]
        variables[index] += 1
        parents[index] += function.parents != original.parents
        functions[index] += function.parents == original.parents and function != original
    return Overlap(metrics.f1, metrics.exact_map, metrics.local_match, variables, parents, functions)


def depths(model: Scm) -> Mapping[str, int]:
    """Return endogenous variable -> depth: 1 plus the largest depth of its functional parents, where roots have 0."""
    by_variable: dict[str, int] = {}
    for variable in model.order:
        parents = model.local_functions[variable].parents
        by_variable[variable] = 1 + max((by_variable.get(parent, 0) for parent in parents), default=0)
    return by_variable


# --- Metrics ----------------------------------------------------------------------------------------------------------
Value: TypeAlias = Callable[[Any], float | None]


def _if_wrong_roots(value: Value) -> Value:
    return lambda v: value(v) if v.root_exact is False else None


def _if_valid_exact_roots(value: Value) -> Value:
    return lambda v: value(v) if v.valid and v.root_exact else None


def _overlap(verdict: Any) -> Mapping[str, Any] | None:
    """Return the stored overlap of a verdict; None for answers to other tasks, and for invalid ones."""
    stored: Mapping[str, Any] | None = verdict.score.get("overlap")
    return stored


def _overlap_field(key: str) -> Value:
    return lambda v: None if (overlap := _overlap(v)) is None else overlap[key]


def _change_indicator(holds: Callable[[int, int], bool]) -> Value:
    """Return a reader: whether `holds` for (number of variables with other parents, with only another function).

    None unless the answer is a successful alternative.
    """

    def value(verdict: Any) -> float | None:
        overlap = _overlap(verdict)
        if overlap is None or not verdict.alternative("altSuccess"):
            return None
        return holds(sum(overlap["changed_parents"]), sum(overlap["changed_function"]))

    return value


def _at_depth(key: str, index: int) -> Value:
    """Return a reader of an `Overlap` list's entry; None unless the answer is a successful alternative."""

    def value(verdict: Any) -> float | None:
        overlap = _overlap(verdict)
        if overlap is None or not verdict.alternative("altSuccess"):
            return None
        return float(overlap[key][index])

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
        conditional=True,
    ),
    Metric(
        "heldout_world_given_root_wrong",
        "HW|wrong",
        "HeldoutWorld of answers with another root set",
        _if_wrong_roots(lambda v: v.world_rate("heldout")),
        conditional=True,
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
        conditional=True,
    ),
    Metric(
        "parent_map_exact_given_root_exact_valid",
        "MapExact|RE,valid",
        "MapExact of valid answers with the true root set",
        _if_valid_exact_roots(lambda v: v.structure.get("exact_map")),
        conditional=True,
    ),
    Metric(
        "train_exact_given_root_exact_valid",
        "TE|RE,valid",
        "TrainExact of valid answers with the true root set",
        _if_valid_exact_roots(lambda v: v.train_exact),
        conditional=True,
    ),
    Metric(
        "heldout_world_given_root_exact_train_exact",
        "HW|RE,TE",
        "HeldoutWorld of train-exact answers with the true root set",
        lambda v: v.world_rate("heldout") if v.root_exact and v.train_exact else None,
        conditional=True,
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
    Metric(
        "reference_f1", "F1", "F1 of functional parents against the reference", _overlap_field("f1"), conditional=True
    ),
    Metric(
        "reference_map_exact",
        "MapExact",
        "the reference's parents throughout",
        _overlap_field("exact_map"),
        conditional=True,
    ),
    Metric(
        "reference_match",
        "LocalMatch",
        "share of the reference's functions",
        _overlap_field("local_match"),
        conditional=True,
    ),
    Metric(
        "one_variable",
        "One variable",
        "one variable has another function",
        _change_indicator(lambda p, f: p + f == 1),
        conditional=True,
    ),
    Metric(
        "one_variable_same_parents",
        "same parents",
        "one variable has another function of the same parents",
        _change_indicator(lambda p, f: (p, f) == (0, 1)),
        conditional=True,
    ),
    Metric(
        "one_variable_changed_parents",
        "changed parents",
        "one variable has other parents",
        _change_indicator(lambda p, f: (p, f) == (1, 0)),
        conditional=True,
    ),
    *(
        Metric(f"{key}_{index + 1}", f"{key} {index + 1}", f"{key} at depth {index + 1}", _at_depth(key, index))
        for key in DEPTH_KEYS
        for index in range(NUM_DEPTHS)
    ),
)
APPENDIX_METRICS = (*ROOTS_APPENDIX, *ALTERNATIVE_APPENDIX)
