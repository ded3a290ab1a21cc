"""The paper's tables that have one row per pool and system: which columns each has.

A table listed in `SPECS` is part of every report; its id says where.
"""

from __future__ import annotations

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, BASE
from calibrant.bench.core.metrics import Metric
from calibrant.bench.replayscm.tables.spec import Count, KnownCount, TableSpec
from calibrant.bench.replayscm.verdict import METRICS

_KNOWN = {column.key: column for column in (*METRICS.columns, *METRICS.hidden)}


def _columns(keys: str) -> tuple[Metric, ...]:
    return tuple(_KNOWN[key] for key in keys.split())


def _is_hidden_roots(setting: str) -> bool:
    return setting in ("Hidden-roots", "Hid-Roots")


CORE = TableSpec(
    "1",
    "Replay",
    "Valid: executable submissions. TrainExact: every scored training cell is right. HeldoutWorld: mean share of"
    " held-out worlds replayed exactly, over valid answers unless invalid ones count as 0 (--means paper)."
    " HeldoutExact: train-exact, and every held-out world too. HW|TE, HE|TE: among train-exact answers.",
    _columns(
        "valid train_exact heldout_world heldout_exact heldout_world_given_train_exact heldout_exact_given_train_exact"
    ),
)
STRUCTURE = TableSpec(
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
HIDDEN_ROOTS = TableSpec(
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
FUNNEL = TableSpec(
    "C.1",
    "Stages of validity",
    "Share of answers that pass each stage of the evaluator, in its order; an answer that fails one fails all after it."
    " StrictJSON is known of texts only.",
    _columns("strict_json extracted schema keys parse legal acyclic valid"),
    lambda setting: True,
)
DISTANCE = TableSpec(
    "C.3",
    "Structural distance",
    "Valid is over all answers; the next columns are among executable answers (Hidden-roots: those with the right root"
    " set). AllMatch: every mechanism means the same as gold.",
    _columns("valid parent_f1 parent_shd parent_map_exact local_match local_map_exact train_exact heldout_world"),
)
RETENTION = TableSpec(
    "C.4",
    "Held-out replay among train-exact answers",
    "What fitting the training worlds is worth on the held-out ones.",
    (
        *_columns("train_exact heldout_world heldout_world_given_train_exact heldout_exact_given_train_exact"),
        Count("num_train_exact", "n train-exact", "train_exact"),
    ),
)
ATTRIBUTION = TableSpec(
    "attribution",
    "What the evidence had decided",
    "Decided: every SCM of the class that fits the training worlds replays the held-out worlds alike. Earned, missed:"
    " decided and held-out exact, not; lucky, short: undecided and held-out exact, not. Fits: train-exact. Wrong"
    " answers are none, refused, not train-exact, or fit where several do (NoAnswer, Invalid, Misfit, OpenError)."
    " Chance, Best: expected rate of a draw from the SCMs that fit, by the generator's prior, and of the best answer;"
    " Skill: rate less chance, over best less chance; Uniform: chance with all SCMs alike. The class is the smallest"
    " number of functional parents that has gold; answers to items where it cannot be counted are left out. " + BASE,
    ATTRIBUTION_METRICS,
)
CALIBRATION = TableSpec(
    "H.2",
    "Calibration rows",
    "TaskCorrect: correct in everything the task asks for; on Hidden-roots that includes the root set.",
    _columns("task_correct train_exact heldout_world heldout_exact"),
    searches_only=True,
)
PER_SYSTEM = TableSpec(
    "F.12",
    "Alternatives discovered, by system",
    "How many train-exact answers differ in meaning from gold, per answer and per train-exact answer. These are"
    " discoveries: what no system found may still be there.",
    (
        Count("num_train_exact", "Train-exact", "train_exact"),
        KnownCount("num_alternatives", "Alternatives", "alternative"),
        *_columns("alternative alternative_given_train_exact"),
    ),
)
SPECS = (CORE, STRUCTURE, HIDDEN_ROOTS, FUNNEL, DISTANCE, RETENTION, PER_SYSTEM, CALIBRATION)
