"""The paper's tables that have one row per pool and system: which columns each has."""

from __future__ import annotations

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS
from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.tables.rates import Count, RateTable
from calibrant.bench.replayscm.verdict import (
    ALTERNATIVE_METRICS,
    FUNNEL_METRICS,
    REPLAY_METRICS,
    ROOT_METRICS,
    STRUCTURE_METRICS,
    MetricReader,
)

_KNOWN = {
    column.key: column
    for column in (*REPLAY_METRICS, *ROOT_METRICS, *ALTERNATIVE_METRICS, *STRUCTURE_METRICS, *FUNNEL_METRICS)
}


def _all_match(verdict: MetricReader) -> bool | None:
    matched = verdict.structure.get("local_match")
    return None if matched is None else bool(matched == 1)


_KNOWN["task_correct"] = Metric(
    "task_correct", "TaskCorrect", "full task success", lambda v: v.score.get("correct") is True
)
_KNOWN["local_map_exact"] = Metric("local_map_exact", "AllMatch", "all local functions are gold's", _all_match, True)


def _columns(keys: str) -> tuple[Metric, ...]:
    return tuple(_KNOWN[key] for key in keys.split())


def _is_hidden_roots(setting: str) -> bool:
    return setting in ("Hidden-roots", "Hid-Roots")


CORE = RateTable(
    "1",
    "Replay",
    "Valid: executable submissions. TrainExact: every scored training cell is right. HeldoutWorld: mean share of"
    " held-out worlds replayed exactly, over valid answers unless invalid ones count as 0 (--means paper)."
    " HeldoutExact: train-exact, and every held-out world too. HW|TE, HE|TE: among train-exact answers.",
    _columns(
        "valid train_exact heldout_world heldout_exact heldout_world_given_train_exact heldout_exact_given_train_exact"
    ),
)
STRUCTURE = RateTable(
    "2",
    "Parents and mechanisms",
    "Functional parents against gold, among executable answers (Hidden-roots: those with the right root set). SHD:"
    " structural Hamming distance, lower is better. ParentExact: share of variables with the right parents. MapExact:"
    " all of them. LocalMatch: share of mechanisms that mean the same. TE|Map, HE|Map: among answers with MapExact.",
    _columns(
        "parent_recall parent_f1 parent_shd parent_exact parent_map_exact local_match"
        " train_exact_given_parent_map_exact heldout_exact_given_parent_map_exact"
    ),
)
HIDDEN_ROOTS = RateTable(
    "3B",
    "Hidden-roots",
    "RootExact: the predicted root set is the true one. TrainExact and HeldoutExact are those of the mechanisms,"
    " whatever the root set; |RE: among answers with the right root set.",
    _columns(
        "root_exact train_exact heldout_world heldout_exact train_exact_given_root_exact"
        " heldout_world_given_root_exact heldout_exact_given_root_exact"
    ),
    _is_hidden_roots,
)
ALTERNATIVE_SCM = RateTable(
    "3A",
    "Alternative-SCM",
    "Joint: a train-exact, semantically distinct alternative with a working experiment and witness. AltTrain: the"
    " alternative alone. Exp+Witness: the experiment and its witness.",
    _columns("alt_scm_joint alt_train_exact experiment_witness"),
    lambda setting: setting.startswith("Alt-"),
)
FUNNEL = RateTable(
    "C.1",
    "Stages of validity",
    "Share of answers that pass each stage of the evaluator, in its order; an answer that fails one fails all after it."
    " StrictJSON is known of texts only.",
    _columns("strict_json extracted schema keys parse legal acyclic valid"),
    lambda setting: True,
)
DISTANCE = RateTable(
    "C.3",
    "Structural distance",
    "Valid is over all answers; the next columns are among executable answers (Hidden-roots: those with the right root"
    " set). AllMatch: every mechanism means the same as gold.",
    _columns("valid parent_f1 parent_shd parent_map_exact local_match local_map_exact train_exact heldout_world"),
)
RETENTION = RateTable(
    "C.4",
    "Held-out replay among train-exact answers",
    "What fitting the training worlds is worth on the held-out ones.",
    (
        *_columns("train_exact heldout_world heldout_world_given_train_exact heldout_exact_given_train_exact"),
        Count("num_train_exact", "n train-exact", lambda v: v.train_exact),
    ),
)
ATTRIBUTION = RateTable(
    "attribution",
    "What the evidence had decided",
    "Decided: every SCM of the class that fits the training worlds replays the held-out worlds alike. Earned, missed:"
    " decided and held-out exact, not; lucky, short: undecided and held-out exact, not. Fits: train-exact. The class is"
    " the smallest number of functional parents that has gold; answers to items where it cannot be counted are left"
    " out.",
    ATTRIBUTION_METRICS,
)
CALIBRATION = RateTable(
    "H.2",
    "Calibration rows",
    "TaskCorrect: correct in everything the task asks for; on Hidden-roots that includes the root set.",
    _columns("task_correct train_exact heldout_world heldout_exact"),
    searches_only=True,
)
