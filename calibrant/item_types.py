"""Types of every benchmark that the public names take and give, and their unions."""

from __future__ import annotations

from typing import TypeAlias

from calibrant.bench.blickets.api import BlicketScore
from calibrant.bench.causalab.api import LabScore
from calibrant.bench.causim.api import CausimScore
from calibrant.bench.logic.api import LogicScore
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.score import Score

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
    "LogicItem",
    "LogicScore",
    "Problem",
    "ScmEpisode",
    "Score",
    "Verdict",
]

Item: TypeAlias = Problem | BlicketItem | LabItem | CausimItem | LogicItem
"""An item of any benchmark: `id`, `benchmark`, `setting`, `stratum`, `task` (all a solver may read), `sealed`."""

Verdict: TypeAlias = Score | BlicketScore | LabScore | CausimScore | LogicScore
"""What an answer scores on any benchmark: `valid`, `correct`, `failure` (why not, in a line), `to_dict()`."""
