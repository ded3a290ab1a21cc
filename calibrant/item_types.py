"""Types of the items, scores and results that the public functions take and return, of every benchmark.

Importing this module loads the solvers of all benchmarks: other modules import it for type checkers alone.
"""

from __future__ import annotations

from typing import TypeAlias

from calibrant.audits.causalab.attribution import LabSpace
from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.generation.generate import Generated
from calibrant.audits.replayscm.hardening.harden import Hardening
from calibrant.bench.blickets.api import BlicketScore
from calibrant.bench.causalab.api import LabScore
from calibrant.bench.causim.api import CausimScore
from calibrant.bench.logic.api import LogicScore
from calibrant.bench.replayscm.audit.separations import SeparatedPair
from calibrant.dsl.blickets.episode import BlicketEpisode
from calibrant.dsl.blickets.item import BlicketItem, Rule
from calibrant.dsl.causalab.episode import LabEpisode
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.logic.item import LogicItem
from calibrant.dsl.logic.item import Model as LogicModel
from calibrant.dsl.replayscm.episode import ScmEpisode
from calibrant.dsl.replayscm.item import Problem
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.score import Score
from calibrant.solvers.blickets.exact import DetectorSpace
from calibrant.solvers.causim.space import WorkedSolution, WorldSpace
from calibrant.solvers.logic.data import logic_family
from calibrant.solvers.logic.family import LogicFamily
from calibrant.solvers.replayscm.space import VersionSpace

__all__ = [
    "BlicketEpisode",
    "BlicketItem",
    "BlicketScore",
    "CausimItem",
    "CausimScore",
    "DetectorSpace",
    "Findings",
    "Generated",
    "Hardening",
    "Item",
    "LabEpisode",
    "LabItem",
    "LabScore",
    "LabSpace",
    "LogicFamily",
    "LogicItem",
    "LogicModel",
    "LogicScore",
    "Mechanism",
    "Problem",
    "Rule",
    "Scm",
    "ScmEpisode",
    "Score",
    "SeparatedPair",
    "Verdict",
    "VersionSpace",
    "WorkedSolution",
    "WorldSpace",
    "logic_family",
]

Item: TypeAlias = Problem | BlicketItem | LabItem | CausimItem | LogicItem
"""An item of any benchmark: `id`, `benchmark`, `setting`, `stratum`, `task` (all a solver may read), `sealed`."""

Verdict: TypeAlias = Score | BlicketScore | LabScore | CausimScore | LogicScore
"""The score of an answer on any benchmark: `valid`, `correct`, `failure` (why not, in a line), `to_dict()`."""
