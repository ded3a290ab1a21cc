"""The rates of calibration tables: how each is read off a score, what its denominator is, how it is printed.

Conventions (those of the published analysis; where the paper's text differs, `InvalidHandling` names both):
- valid, train-exact and held-out-exact rates are over all scored instances; what is absent counts as false;
- HeldoutWorld and TrainWorld: see `InvalidHandling`;
- a conditional rate whose denominator is 1 to 5 is shown as *, a rate without any instance as –;
- Hidden-roots: TrainExact and HeldoutExact are those of the mechanisms, whatever the root set;
- Alternative-SCM: `alt_train_exact` also needs the alternative to be distinct; optimality of experiments is a mean
  over joint successes (paper, Table G.3); structure metrics do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from calibrant.bench.core.metrics import InvalidHandling, Metric


class Verdict:
    """A score under the published keys (with `funnel`, `structure` and `strictJson`), asked in a table's terms."""

    def __init__(self, score: Mapping[str, Any], setting: str, means: InvalidHandling) -> None:
        self.score = score
        self.valid = score.get("valid") is True
        roots = "mechanism" if setting in ("Hidden-roots", "Hid-Roots") else ""
        self.train_exact = score.get("mechanismTrainExact" if roots else "trainExact") is True
        self.heldout_exact = score.get("mechanismHeldoutExact" if roots else "heldoutExact") is True
        self.root_exact = score.get("rootSetExact") is True if roots else None
        self.is_alternative = setting.startswith("Alt-")
        self.structure: Mapping[str, Any] = score.get("structure") or {}
        self._zero_filled = means is InvalidHandling.PAPER or setting.endswith("-CEx")

    def world_rate(self, split: str) -> float | None:
        """Share of exact worlds, or what stands for it where the submission is not valid."""
        rate = self.score.get(f"{split}WorldExactAccuracy")
        if rate is None and not self.valid and self._zero_filled:
            return 0.0
        return rate

    def alternative(self, key: str) -> bool | None:
        return self.score.get(key) is True if self.is_alternative else None


def _given(condition: Callable[[Verdict], bool | None], value: Callable[[Verdict], float | None]) -> Any:
    return lambda verdict: value(verdict) if condition(verdict) else None


def _structure(key: str) -> Callable[[Verdict], float | None]:
    return lambda verdict: verdict.structure.get(key)


def _stage(name: str) -> Callable[[Verdict], float | None]:
    return lambda verdict: verdict.score.get("funnel", {}).get(name)


def _train(v: Verdict) -> bool:
    return v.train_exact


def _heldout(v: Verdict) -> bool:
    return v.heldout_exact


def _heldout_world(v: Verdict) -> float | None:
    return v.world_rate("heldout")


def _root(v: Verdict) -> bool | None:
    return v.root_exact


def _joint(v: Verdict) -> bool | None:
    return v.alternative("jointSuccess")


def _map(v: Verdict) -> bool | None:
    return v.structure.get("exact_map")


REPLAY_COLUMNS = (
    Metric("valid", "Valid", lambda v: v.valid),
    Metric("train_exact", "TrainExact", _train),
    Metric("train_world", "TrainWorld", lambda v: v.world_rate("train")),
    Metric("heldout_world", "HeldoutWorld", _heldout_world),
    Metric("heldout_exact", "HeldoutExact", _heldout),
    Metric("heldout_world_given_train_exact", "HW|TE", _given(_train, _heldout_world), True),
    Metric("heldout_exact_given_train_exact", "HE|TE", _given(_train, _heldout), True),
)
ROOT_COLUMNS = (
    Metric("root_exact", "RootExact", _root),
    Metric("train_exact_given_root_exact", "TE|RE", _given(_root, _train), True),
    Metric("heldout_world_given_root_exact", "HW|RE", _given(_root, _heldout_world), True),
    Metric("heldout_exact_given_root_exact", "HE|RE", _given(_root, _heldout), True),
)
ALTERNATIVE_COLUMNS = (
    Metric("alt_scm_joint", "Joint", lambda v: v.alternative("jointSuccess")),
    Metric("alt_train_exact", "AltTrain", lambda v: v.alternative("altSuccess")),
    Metric("experiment_witness", "Exp+Witness", lambda v: v.alternative("witnessValid")),
    Metric("experiment_optimality", "Optimality", _given(_joint, lambda v: v.score.get("experimentOptimality")), True),
)
STRUCTURE_COLUMNS = (
    Metric("parent_precision", "Precision", _structure("precision"), True),
    Metric("parent_recall", "Recall", _structure("recall"), True),
    Metric("parent_f1", "F1", _structure("f1"), True),
    Metric("parent_shd", "SHD", _structure("shd"), True, 2),
    Metric("parent_exact", "ParentExact", _structure("variable_exact"), True),
    Metric("parent_map_exact", "MapExact", _structure("exact_map"), True),
    Metric("local_match", "LocalMatch", _structure("local_match"), True),
    Metric("train_exact_given_parent_map_exact", "TE|Map", _given(_map, _train), True),
    Metric("heldout_exact_given_parent_map_exact", "HE|Map", _given(_map, _heldout), True),
)
FUNNEL_COLUMNS = (
    Metric("strict_json", "StrictJSON", lambda v: v.score.get("strictJson")),
    Metric("extracted", "Extracted", _stage("extracted")),
    Metric("schema", "Schema", _stage("schema")),
    Metric("keys", "Keys", _stage("keys")),
    Metric("parse", "Parse", _stage("parse")),
    Metric("legal", "Legal", _stage("legal")),
    Metric("acyclic", "Acyclic", _stage("acyclic")),
)
COLUMNS = (*REPLAY_COLUMNS, *ROOT_COLUMNS, *ALTERNATIVE_COLUMNS, *STRUCTURE_COLUMNS, *FUNNEL_COLUMNS)
