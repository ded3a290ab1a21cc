"""The verdict on a ReplaySCM answer: the score of a record, and the metrics of tables. Fields are in `fields.py`.

Conventions are those of the published analysis; where the paper's text differs, `InvalidHandling` has both:
- valid, train-exact and held-out-exact rates are over all scored instances; an absent value counts as false;
- HeldoutWorld and TrainWorld: see `InvalidHandling`;
- a conditional rate whose denominator is 1 to 5 is shown as *, a rate without any instance as –;
- Hidden-roots: TrainExact and HeldoutExact are those of the mechanisms, whatever the root set;
- Alternative-SCM: `alt_train_exact` also needs the alternative to be distinct; optimality of experiments is a mean
  over joint successes (paper, Table G.3); structure metrics do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from math import fsum
from typing import Any

import msgspec

from calibrant.bench.core.attribution import ATTRIBUTION_METRICS, KEY
from calibrant.bench.core.metrics import InvalidHandling, Metric, MetricSet, Right, Sample, Success, View
from calibrant.bench.replayscm.appendix.metrics import APPENDIX_METRICS, reference_overlap
from calibrant.dsl.replayscm.item import TaskKind
from calibrant.dsl.replayscm.pools.official import latent_of, table_setting
from calibrant.dsl.replayscm.scm import StructureMetrics
from calibrant.dsl.replayscm.score import NOTHING_HELD_OUT, Score

MEANING = "meaning"  # key of the digest of an answer's semantics, beside the verdict
HIDDEN_ROOTS = ("Hidden-roots", "Hid-Roots")  # settings in which an answer names the roots
_ALTERNATIVES = "Alt-"  # prefix of the settings of Alternative-SCM
_BULKY = ("perVariableTrainAccuracy", "perVariableHeldoutAccuracy")  # keys that records leave out for their size
_BULKY_STATS = ("perVariable", "parentsByVar")  # the same below `candidateStats`


def score_record(score: Score) -> dict[str, Any]:
    """Return the score of a record: published keys without those by variable, stages of validity, structure metrics."""
    record = {key: value for key, value in score.to_dict().items() if key not in _BULKY}
    if "candidateStats" in record:
        record["candidateStats"] = {k: v for k, v in record["candidateStats"].items() if k not in _BULKY_STATS}
    return record | funnel(score) | structure(score)


def funnel(score: Score) -> dict[str, Any]:
    """Return the fields on the stages of validity that an answer passed, which are not among the published keys."""
    return {"strictJson": score.strict_json, "funnel": score.funnel}


def structure(score: Score) -> dict[str, Any]:
    """Return `structure`, None if undefined; for Alternative-SCM also `overlap` with the reference SCM, if defined."""
    if score.problem.task.kind is TaskKind.ALTERNATIVE:
        overlap = reference_overlap(score)
        return {"structure": None} | ({} if overlap is None else {"overlap": msgspec.to_builtins(overlap)})
    metrics = score.structure
    fields = StructureMetrics.__slots__  # all plain: `dataclasses.asdict` takes six times as long
    return {"structure": None if metrics is None else {name: getattr(metrics, name) for name in fields}}


def bulk_key(score: Score) -> Hashable | None:
    """Return a key that is equal for scores with equal metrics; None for Alternative-SCM, which it does not cover."""
    if score.alternative is not None:
        return None
    replayed = [
        (split.all_exact, split.num_exact_worlds, split.num_worlds)
        for split in (score.train, score.heldout)
        if split is not None
    ]
    rejection, roots = score.rejection, score.roots
    stage = None if rejection is None else (rejection.stage, *rejection.fields)
    kind = score.problem.task.kind.value
    is_bare = not score.problem.has_heldout_cells
    return kind, stage, is_bare, score.strict_json, None if roots is None else (roots.exact, roots.precision), *replayed


# --- metrics ----------------------------------------------------------------------------------------------------------


class MetricReader:
    """Reader of the quantities of tables from a score: published keys, `funnel`, `structure` and `strictJson`."""

    def __init__(self, score: Mapping[str, Any], setting: str, means: InvalidHandling) -> None:
        self.score = score
        self.valid = score.get("valid") is True
        roots = "mechanism" if setting in HIDDEN_ROOTS else ""
        self.train_exact = score.get("mechanismTrainExact" if roots else "trainExact") is True
        self.heldout_exact = score.get("mechanismHeldoutExact" if roots else "heldoutExact") is True
        self.has_heldout = has_heldout(score, setting)
        self.root_exact = score.get("rootSetExact") is True if roots else None
        self.is_noisy = "+noise" in setting  # under noise no mechanism has to agree with every row
        self.is_forecast = "favoured" in score
        self.is_alternative = setting.startswith(_ALTERNATIVES)
        self.structure: Mapping[str, Any] = score.get("structure") or {}
        self._zero_filled = means is InvalidHandling.PAPER or setting.endswith("-CEx")

    def world_rate(self, split: str) -> float | None:
        """Return the share of exact worlds of a split; for an invalid submission, 0 or None by `InvalidHandling`."""
        rate = self.score.get(f"{split}WorldExactAccuracy")
        if rate is None and not self.valid and self._zero_filled:
            return 0.0
        return rate

    def alternative(self, key: str) -> bool | None:
        return self.score.get(key) is True if self.is_alternative else None


def _conditional(
    condition: Callable[[MetricReader], bool | None], value: Callable[[MetricReader], float | None]
) -> Any:
    return lambda verdict: value(verdict) if condition(verdict) else None


def _structure(key: str) -> Callable[[MetricReader], float | None]:
    return lambda verdict: verdict.structure.get(key)


def _stage(name: str) -> Callable[[MetricReader], float | None]:
    return lambda verdict: verdict.score.get("funnel", {}).get(name)


def _train(v: MetricReader) -> bool | None:
    return None if v.is_noisy or v.is_forecast else v.train_exact


def _heldout(v: MetricReader) -> bool | None:
    return None if v.is_forecast or not v.has_heldout else v.heldout_exact


def _heldout_world(v: MetricReader) -> float | None:
    return v.world_rate("heldout")


def _root(v: MetricReader) -> bool | None:
    return v.root_exact


def _joint(v: MetricReader) -> bool | None:
    return v.alternative("jointSuccess")


def _map(v: MetricReader) -> bool | None:
    return v.structure.get("exact_map")


REPLAY_METRICS = (
    Metric("valid", "Valid", "the answer can be replayed", lambda v: v.valid),
    Metric("train_exact", "TrainExact", "every scored training cell is right", _train),
    Metric("train_world", "TrainWorld", "share of training worlds that are exact", lambda v: v.world_rate("train")),
    Metric("heldout_world", "HeldoutWorld", "share of held-out worlds that are exact", _heldout_world),
    Metric("heldout_exact", "HeldoutExact", "train-exact, and every scored held-out cell is right", _heldout),
    Metric(
        "heldout_world_given_train_exact",
        "HW|TE",
        "HeldoutWorld of the train-exact answers",
        _conditional(_train, _heldout_world),
        True,
    ),
    Metric(
        "heldout_exact_given_train_exact",
        "HE|TE",
        "HeldoutExact of the train-exact answers",
        _conditional(_train, _heldout),
        True,
    ),
)
ROOT_METRICS = (
    Metric("root_exact", "RootExact", "the root set is the true one, where roots are hidden", _root),
    Metric(
        "train_exact_given_root_exact",
        "TE|RE",
        "TrainExact of answers with the true root set",
        _conditional(_root, _train),
        True,
    ),
    Metric(
        "heldout_world_given_root_exact",
        "HW|RE",
        "HeldoutWorld of answers with the true root set",
        _conditional(_root, _heldout_world),
        True,
    ),
    Metric(
        "heldout_exact_given_root_exact",
        "HE|RE",
        "HeldoutExact of answers with the true root set",
        _conditional(_root, _heldout),
        True,
    ),
)
ALTERNATIVE_METRICS = (
    Metric(
        "alt_scm_joint",
        "Joint",
        "alternative, experiment and witness succeed together",
        lambda v: v.alternative("jointSuccess"),
    ),
    Metric(
        "alt_train_exact",
        "AltTrain",
        "a distinct alternative that is train-exact",
        lambda v: v.alternative("altSuccess"),
    ),
    Metric(
        "experiment_witness",
        "Exp+Witness",
        "a root assignment shows the difference of the experiment",
        lambda v: v.alternative("witnessValid"),
    ),
    Metric(
        "experiment_optimality",
        "Optimality",
        "the experiment's disagreement over that of the best, of joint successes",
        _conditional(_joint, lambda v: v.score.get("experimentOptimality")),
        True,
    ),
)
STRUCTURE_METRICS = (
    Metric("parent_precision", "Precision", "of functional parents", _structure("precision"), True),
    Metric("parent_recall", "Recall", "of functional parents", _structure("recall"), True),
    Metric("parent_f1", "F1", "of functional parents", _structure("f1"), True),
    Metric(
        "parent_shd",
        "SHD",
        "structural Hamming distance of functional parents",
        _structure("shd"),
        True,
        2,
        is_share=False,
    ),
    Metric(
        "parent_exact",
        "ParentExact",
        "share of variables with exactly gold's parents",
        _structure("variable_exact"),
        True,
    ),
    Metric("parent_map_exact", "MapExact", "all variables have exactly gold's parents", _structure("exact_map"), True),
    Metric(
        "local_match", "LocalMatch", "share of variables with gold's local function", _structure("local_match"), True
    ),
    Metric(
        "train_exact_given_parent_map_exact",
        "TE|Map",
        "TrainExact of answers with gold's parents",
        _conditional(_map, _train),
        True,
    ),
    Metric(
        "heldout_exact_given_parent_map_exact",
        "HE|Map",
        "HeldoutExact of answers with gold's parents",
        _conditional(_map, _heldout),
        True,
    ),
)
FUNNEL_METRICS = (
    Metric(
        "strict_json", "StrictJSON", "the response was one JSON object on one line", lambda v: v.score.get("strictJson")
    ),
    Metric("extracted", "Extracted", "an object was extracted", _stage("extracted")),
    Metric("schema", "Schema", "the object is of the task's shape", _stage("schema")),
    Metric("keys", "Keys", "mechanisms for exactly the right variables", _stage("keys")),
    Metric("parse", "Parse", "every mechanism is a formula", _stage("parse")),
    Metric("legal", "Legal", "mechanisms mention admissible parents only", _stage("legal")),
    Metric("acyclic", "Acyclic", "mentions form no cycle", _stage("acyclic")),
)


def _number(key: str) -> Callable[[MetricReader], float | None]:
    """Return a reader of a number, which is stored as text if it is large."""

    def value(verdict: MetricReader) -> float | None:
        number = verdict.score.get(key)
        return None if number is None else float(number)

    return value


def _mean_regret(verdict: MetricReader) -> float | None:
    regrets = verdict.score.get("regret")
    return fsum(step["regret"] for step in regrets) / len(regrets) if regrets else None


EPISODE_METRICS = (
    Metric("worlds", "Worlds", "worlds that were asked for", _number("worlds"), decimals=1, is_share=False),
    Metric("refusals", "Refusals", "refused actions", _number("refusals"), decimals=2, is_share=False),
    Metric(
        "bits_left",
        "BitsLeft",
        "logarithm of the SCMs left, without noise",
        _number("bitsLeft"),
        decimals=1,
        is_share=False,
    ),
    Metric("premature", "Premature", "submitted while a world was worth asking for", _number("premature"), True),
    Metric(
        "excess",
        "Excess",
        "worlds above the clairvoyant minimum at the floor",
        _number("excess"),
        True,
        1,
        is_share=False,
    ),
    Metric("regret", "Regret", "mean loss of a world against the best candidate", _mean_regret, True, is_share=False),
)
FORECAST_METRICS = (
    Metric("train_match", "TrainMatch", "share of free training cells that agree", _number("trainMatch")),
    Metric("favoured", "Favoured", "forecasts that favour the right value of every cell", _number("favoured")),
    Metric("brier", "Brier", "Brier score against gold's exact law", _number("brier")),
    Metric(
        "log_loss",
        "LogLoss",
        "logarithmic score against gold's exact law, bits a cell",
        _number("logLoss"),
        is_share=False,
    ),
    Metric("excess_brier", "Brier+", "Brier score above that of the law", _number("excessBrier"), is_share=False),
    Metric(
        "excess_log_loss",
        "LogLoss+",
        "logarithmic score above that of the law",
        _number("excessLogLoss"),
        is_share=False,
    ),
)


def is_alternative(verdict: MetricReader) -> bool | None:
    """Return whether an answer is an alternative to gold; None if unknown."""
    if not (verdict.valid and verdict.train_exact):
        return False
    if verdict.root_exact is False:
        return True
    matched = verdict.structure.get("local_match")
    return None if matched is None else bool(matched != 1)


def _all_match(verdict: MetricReader) -> bool | None:
    matched = verdict.structure.get("local_match")
    return None if matched is None else bool(matched == 1)


def _gold_size(verdict: MetricReader) -> int | None:
    size = verdict.score.get("goldAstSize")
    return size if isinstance(size, int) else None  # scores of invalid answers lack it


def _size(verdict: MetricReader) -> int | None:
    size = (verdict.score.get("candidateStats") or {}).get("astSize")
    return size if verdict.valid and isinstance(size, int) else None


HIDDEN_METRICS = (
    Metric("task_correct", "TaskCorrect", "the published field `correct`", lambda v: v.score.get("correct", False)),
    Metric("local_map_exact", "AllMatch", "all local functions are gold's", _all_match, True),
    Metric("alternative", "per answer", "answers that differ in meaning from gold", is_alternative),
    Metric(
        "alternative_given_train_exact",
        "per train-exact",
        "train-exact answers that do",
        lambda v: is_alternative(v) if v.train_exact else None,
        True,
    ),
    Metric("gold_size", "Gold size", "nodes of gold's formulas", _gold_size, decimals=0, is_share=False),
    *APPENDIX_METRICS,
    Metric("candidate_size", "Size", "nodes of the answer's formulas", _size, decimals=0, is_share=False),
)
RIGHTS: tuple[tuple[str, str, Right], ...] = (
    ("task_correct", "TaskCorrect", lambda sample: sample.correct),
    ("train_exact", "TrainExact", lambda sample: sample.train_exact),
    ("heldout_exact", "HeldoutExact", lambda sample: sample.heldout_exact),
)


def sample_of(verdict: MetricReader) -> Sample:
    meaning = verdict.score.get(MEANING)
    correct = verdict.score.get("correct") is True
    text = meaning if isinstance(meaning, str) else None
    return Sample(verdict.valid, correct, verdict.train_exact, verdict.heldout_exact, text)


def is_right(score: Mapping[str, Any], setting: str) -> bool:
    """Return whether an answer is right on held-out worlds; the published field `correct` is about training worlds."""
    if setting.startswith(_ALTERNATIVES):
        return score.get("jointSuccess") is True
    return score.get("heldoutExact", score.get("favoured")) is True  # a forecast replays nothing


def has_heldout(score: Mapping[str, Any], setting: str) -> bool:
    """Return whether an item has scored held-out cells; without them no answer is right or wrong.

    True for Alternative-SCM, which is scored by joint success. If roots are hidden, a count of 0 worlds is ignored,
    because it may come from the answer's roots.
    """
    if score.get("heldoutExact", False) is None:
        return False
    if score.get(NOTHING_HELD_OUT) is True and not setting.startswith(_ALTERNATIVES):
        return False
    return setting.startswith((*HIDDEN_ROOTS, _ALTERNATIVES)) or score.get("heldoutWorlds") != 0


METRICS = MetricSet(
    benchmark="replayscm",
    success=Success(
        "held-out exact: train-exact, and every held-out world too, with the root set where roots are hidden;"
        " under noise the clean held-out worlds alone; of Alternative-SCM items joint success; a forecast that favours"
        " the right value of every cell",
        is_right,
        has_heldout,
    ),
    views={
        "replay": View((*REPLAY_METRICS, *ROOT_METRICS, *ALTERNATIVE_METRICS)),
        "structure": View(STRUCTURE_METRICS, applies=lambda v: bool(v.structure)),
        "funnel": View(FUNNEL_METRICS),
        "episodes": View(
            EPISODE_METRICS, optional=True, applies=lambda v: "worlds" in v.score or "bitsLeft" in v.score
        ),
        "forecasts": View(
            FORECAST_METRICS, optional=True, applies=lambda v: "brier" in v.score or "trainMatch" in v.score
        ),
        "attribution": View(ATTRIBUTION_METRICS, applies=lambda v: KEY in v.score),
    },
    about_correct="Correct is here the published scorer's (TaskCorrect): train-exact, with the root set where roots are"
    " hidden; right is, elsewhere in this report, held-out exact too.",
    first=(
        *("n", "train_exact", "heldout_exact", "alt_scm_joint", "heldout_world", "valid", "root_exact"),
        *("alt_train_exact", "experiment_witness", "samples", "coverage", "out_of_budget"),
        *("parent_f1", "parent_map_exact", "local_match"),
    ),
    verdict=MetricReader,
    sample=sample_of,
    rights=RIGHTS,
    unit=latent_of,
    item_unit=lambda item: item.sealed.labels.get("latent"),  # the latent SCM that the pool file states
    row_group=lambda setting, pool_digest: table_setting(pool_digest, setting),  # the published table of the pool
    hidden=HIDDEN_METRICS,
    unread=(*_BULKY, *(f"candidateStats.{part}" for part in _BULKY_STATS)),
    settings=(
        *("Ordered", "Ord-", "Block", "Hidden-order", "Hid-", "Hidden-roots", "Hid-Roots", "Alt-", "Episode "),
    ),  # the disclosure ladder
)
