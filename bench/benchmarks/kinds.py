"""The types of every benchmark that the public names take and give, and their unions."""

from __future__ import annotations

from typing import TypeAlias

from bench.verbs.blickets import BlicketScore
from bench.verbs.causalab import LabScore
from bench.verbs.causim import CausimScore
from dsl.blickets.episode import BlicketEpisode
from dsl.blickets.item import BlicketItem
from dsl.causalab.episode import LabEpisode
from dsl.causalab.item import LabItem
from dsl.causim.item import CausimItem
from dsl.replayscm.problem import Problem
from dsl.replayscm.score import Score

__all__ = [
    "BlicketEpisode",
    "BlicketItem",
    "BlicketScore",
    "CausimItem",
    "CausimScore",
    "Item",
    "LabEpisode",
    "LabItem",
    "LabScore",
    "Problem",
    "Score",
    "Verdict",
]

Item: TypeAlias = Problem | BlicketItem | LabItem | CausimItem
"""An item of any benchmark: `id`, `benchmark`, `setting`, `stratum`, `task` (all a solver may read), `sealed`."""

Verdict: TypeAlias = Score | BlicketScore | LabScore | CausimScore
"""What an answer scores on any benchmark: `valid`, `correct`, `failure` (why not, in a line), `to_dict()`."""
