"""The rates of calibration tables: how each is read off a score, what its denominator is, how it is printed.

Conventions (those of the published analysis; where the paper's text differs, `Means` names both):
- valid, train-exact and held-out-exact rates are over all scored instances; what is absent counts as false;
- HeldoutWorld and TrainWorld: see `Means`;
- a conditional rate whose denominator is 1 to 5 is shown as *, a rate without any instance as –;
- Hidden-roots: TrainExact and HeldoutExact are those of the mechanisms, whatever the root set;
- Alternative-SCM: `alt_train_exact` also needs the alternative to be distinct; optimality of experiments is a mean
  over joint successes (paper, Table G.3); structure metrics do not apply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any, NamedTuple, TypeAlias

UNDEFINED = "\N{EN DASH}"
SUPPRESSED = "*"
MAX_SUPPRESSED = 5  # conditional rates over 1 to 5 instances are not shown (paper, captions of Tables 1 and C.3)


class Means(Enum):
    """What an invalid submission counts in the means of HeldoutWorld and TrainWorld.

    PUBLISHED: it is left out, as behind the published tables; except in the counterexample audit pools, where it is 0
    PAPER: it is 0 everywhere, as the paper's text says
    """

    PUBLISHED = "published"
    PAPER = "paper"


class Verdict:
    """A score under the published keys (with `funnel`, `structure` and `strictJson`), asked in a table's terms."""

    def __init__(self, score: Mapping[str, Any], setting: str, means: Means) -> None:
        self.score = score
        self.valid = score.get("valid") is True
        roots = "mechanism" if setting in ("Hidden-roots", "Hid-Roots") else ""
        self.train_exact = score.get("mechanismTrainExact" if roots else "trainExact") is True
        self.heldout_exact = score.get("mechanismHeldoutExact" if roots else "heldoutExact") is True
        self.root_exact = score.get("rootSetExact") is True if roots else None
        self.is_alternative = setting.startswith("Alt-")
        self.structure: Mapping[str, Any] = score.get("structure") or {}
        self._zero_filled = means is Means.PAPER or setting.endswith("-CEx")

    def world_rate(self, split: str) -> float | None:
        """Share of exact worlds, or what stands for it where the submission is not valid."""
        rate = self.score.get(f"{split}WorldExactAccuracy")
        if rate is None and not self.valid and self._zero_filled:
            return 0.0
        return rate

    def alternative(self, key: str) -> bool | None:
        return self.score.get(key) is True if self.is_alternative else None


class Column(NamedTuple):
    """A rate or mean. `value` is asked of its benchmark's verdict; None where an answer is not in its denominator."""

    key: str
    heading: str
    value: Callable[[Any], float | None]
    conditional: bool = False
    decimals: int = 3


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
    Column("valid", "Valid", lambda v: v.valid),
    Column("train_exact", "TrainExact", _train),
    Column("train_world", "TrainWorld", lambda v: v.world_rate("train")),
    Column("heldout_world", "HeldoutWorld", _heldout_world),
    Column("heldout_exact", "HeldoutExact", _heldout),
    Column("heldout_world_given_train_exact", "HW|TE", _given(_train, _heldout_world), True),
    Column("heldout_exact_given_train_exact", "HE|TE", _given(_train, _heldout), True),
)
ROOT_COLUMNS = (
    Column("root_exact", "RootExact", _root),
    Column("train_exact_given_root_exact", "TE|RE", _given(_root, _train), True),
    Column("heldout_world_given_root_exact", "HW|RE", _given(_root, _heldout_world), True),
    Column("heldout_exact_given_root_exact", "HE|RE", _given(_root, _heldout), True),
)
ALTERNATIVE_COLUMNS = (
    Column("alt_scm_joint", "Joint", lambda v: v.alternative("jointSuccess")),
    Column("alt_train_exact", "AltTrain", lambda v: v.alternative("altSuccess")),
    Column("experiment_witness", "Exp+Witness", lambda v: v.alternative("witnessValid")),
    Column("experiment_optimality", "Optimality", _given(_joint, lambda v: v.score.get("experimentOptimality")), True),
)
STRUCTURE_COLUMNS = (
    Column("parent_precision", "Precision", _structure("precision"), True),
    Column("parent_recall", "Recall", _structure("recall"), True),
    Column("parent_f1", "F1", _structure("f1"), True),
    Column("parent_shd", "SHD", _structure("shd"), True, 2),
    Column("parent_exact", "ParentExact", _structure("variable_exact"), True),
    Column("parent_map_exact", "MapExact", _structure("exact_map"), True),
    Column("local_match", "LocalMatch", _structure("local_match"), True),
    Column("train_exact_given_parent_map_exact", "TE|Map", _given(_map, _train), True),
    Column("heldout_exact_given_parent_map_exact", "HE|Map", _given(_map, _heldout), True),
)
FUNNEL_COLUMNS = (
    Column("strict_json", "StrictJSON", lambda v: v.score.get("strictJson")),
    Column("extracted", "Extracted", _stage("extracted")),
    Column("schema", "Schema", _stage("schema")),
    Column("keys", "Keys", _stage("keys")),
    Column("parse", "Parse", _stage("parse")),
    Column("legal", "Legal", _stage("legal")),
    Column("acyclic", "Acyclic", _stage("acyclic")),
)
COLUMNS = (*REPLAY_COLUMNS, *ROOT_COLUMNS, *ALTERNATIVE_COLUMNS, *STRUCTURE_COLUMNS, *FUNNEL_COLUMNS)
OUTCOMES = ("found", "impossible", "out_of_budget", "crashed")


Weighted: TypeAlias = Mapping[float, int | Fraction]
"""How often each value occurs; an answer that is one of k samples of its item occurs 1/k times."""


def weighted_mean(values: Weighted) -> float | None:
    """The mean of a multiset of values, the same however they came in; None if there is none."""
    if len(values) < 2:
        return next(iter(values), None)
    count = sum(values.values(), Fraction(0))
    total = sum((Fraction(value) * times for value, times in values.items()), Fraction(0))
    return float(total / count)


def rate_text(values: Weighted, *, conditional: bool, decimals: int = 3, num_items: int | None = None) -> str:
    """The mean as tables print it. num_items: how many items it is over, if not one for each time a value occurs"""
    mean = weighted_mean(values)
    if mean is None:
        return UNDEFINED
    if conditional and is_suppressed(sum(values.values()) if num_items is None else num_items):
        return SUPPRESSED
    return f"{mean:.{decimals}f}"


def is_suppressed(num_items: int | Fraction) -> bool:
    """Whether a conditional rate over so many items is not shown."""
    return 0 < num_items <= MAX_SUPPRESSED
