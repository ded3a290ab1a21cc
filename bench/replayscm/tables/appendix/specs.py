"""Appendix tables with one row per pool and system."""

from __future__ import annotations

from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.tables.spec import Count, NumDefined, TableSpec
from calibrant.bench.replayscm.verdict import METRICS

KNOWN = {column.key: column for column in (*METRICS.columns, *METRICS.hidden)}


def columns(keys: str) -> tuple[Metric, ...]:
    """Return the metrics with these keys, in their order."""
    return tuple(KNOWN[key] for key in keys.split())


def is_hidden_roots(setting: str) -> bool:
    return setting in ("Hidden-roots", "Hid-Roots")


def is_support_audit(setting: str) -> bool:
    """Return whether a setting is a later level of the support-audit ladder."""
    return setting.endswith(("-Ext", "-CEx"))


def is_alternative(setting: str) -> bool:
    return setting.startswith("Alt-")


ALL_SETTINGS = TableSpec(
    "C.2",
    "Semantic parents and mechanisms, all settings",
    "Scored: executable answers, of Hidden-roots those with the right root set; the next columns are over them."
    " AllMatch: every mechanism means the same as gold. TE|Map: among answers with gold's parents.",
    (
        NumDefined("num_structure_scored", "Scored", "parent_f1"),
        *columns(
            "parent_recall parent_f1 parent_exact parent_map_exact local_match local_map_exact"
            " train_exact_given_parent_map_exact"
        ),
    ),
)
SUPPORT_AUDIT = TableSpec(
    "E.1",
    "Support-audit subsets",
    "Ext: Extra Worlds. CEx: Counterexample Audit, where an invalid answer counts as 0 in TrainWorld and HeldoutWorld."
    " A hardened pool given by --pool is a row of its level.",
    columns("valid train_exact train_world heldout_world heldout_exact heldout_world_given_train_exact"),
    is_support_audit,
)
INTERVENTION_QUALITY = TableSpec(
    "G.3",
    "Quality of separating interventions",
    "Optimality: the experiment's disagreement over that of the best experiment, of joint successes.",
    columns("alt_scm_joint experiment_optimality"),
    is_alternative,
)
REFERENCE_OVERLAP = TableSpec(
    "G.4",
    "Overlap of alternatives with the reference",
    "F1, MapExact, LocalMatch: of valid alternatives against the supplied reference. The last three columns are over"
    " successful alternatives: exactly one variable has another local function, of the same or of other functional"
    " parents.",
    (
        Count("num_valid", "Valid", "valid"),
        Count("num_success", "Successful", "alt_train_exact"),
        *columns(
            "reference_f1 reference_map_exact reference_match one_variable one_variable_same_parents"
            " one_variable_changed_parents"
        ),
    ),
    is_alternative,
)
ROOTS_BREAKDOWN = TableSpec(
    "G.6",
    "Hidden-roots",
    "TaskCorrect includes the root set; TrainExact and HeldoutExact are those of the mechanisms, whatever the roots.",
    columns("task_correct root_exact mechanism_train_exact mechanism_heldout_exact"),
    is_hidden_roots,
)
GIVEN_ROOTS = TableSpec(
    "G.7A",
    "Hidden-roots given exact roots",
    "|RE: among answers with the right root set, valid or not.",
    (
        *columns("root_exact"),
        Count("num_root_exact", "n RootExact", "root_exact"),
        *columns("train_exact_given_root_exact heldout_world_given_root_exact heldout_exact_given_root_exact"),
    ),
    is_hidden_roots,
)
WRONG_ROOTS = TableSpec(
    "G.7B",
    "Hidden-roots with wrong roots, and failures",
    "|wrong: among answers with another root set. Train failures: right root set, not train-exact. Held-out failures:"
    " right root set, train-exact, not held-out exact.",
    (
        *columns("train_exact_given_root_wrong heldout_world_given_root_wrong"),
        Count("num_train_failures", "Train failures", "train_failure"),
        Count("num_heldout_failures", "Held-out failures", "heldout_failure"),
    ),
    is_hidden_roots,
)
GIVEN_VALID_ROOTS = TableSpec(
    "G.8A",
    "Hidden-roots given exact roots and validity",
    "|RE,valid: among valid answers with the right root set.",
    (
        *columns("valid root_exact"),
        Count("num_root_exact_valid", "n RE, valid", "root_exact_valid"),
        *columns("parent_f1_given_root_exact_valid parent_map_exact_given_root_exact_valid"),
    ),
    is_hidden_roots,
)
GIVEN_VALID_ROOTS_REPLAY = TableSpec(
    "G.8B",
    "Hidden-roots replay given exact roots",
    "|RE,valid: among valid answers with the right root set; |RE,TE: among those of them that are train-exact.",
    columns("train_exact_given_root_exact_valid heldout_world_given_root_exact_train_exact"),
    is_hidden_roots,
)
APPENDIX_SPECS = (
    ALL_SETTINGS,
    SUPPORT_AUDIT,
    INTERVENTION_QUALITY,
    REFERENCE_OVERLAP,
    ROOTS_BREAKDOWN,
    GIVEN_ROOTS,
    WRONG_ROOTS,
    GIVEN_VALID_ROOTS,
    GIVEN_VALID_ROOTS_REPLAY,
)
