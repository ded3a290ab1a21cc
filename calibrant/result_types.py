"""Results of the solvers and spaces of every benchmark. Importing it loads all of them: it is for type checkers."""

from __future__ import annotations

from calibrant.audits.causalab.attribution import LabSpace
from calibrant.audits.replayscm.findings import Findings
from calibrant.audits.replayscm.generation.generate import Generated
from calibrant.audits.replayscm.hardening.harden import Hardening
from calibrant.bench.replayscm.audit.separations import SeparatedPair
from calibrant.dsl.blickets.item import Rule
from calibrant.dsl.causalab.mechanism import Mechanism
from calibrant.dsl.logic.item import Model as LogicModel
from calibrant.dsl.replayscm.scm import Scm
from calibrant.solvers.blickets.exact import DetectorSpace
from calibrant.solvers.causim.space import WorkedSolution, WorldSpace
from calibrant.solvers.logic.family import LogicFamily
from calibrant.solvers.replayscm.space import VersionSpace

__all__ = [
    "DetectorSpace",
    "Findings",
    "Generated",
    "Hardening",
    "LabSpace",
    "LogicFamily",
    "LogicModel",
    "Mechanism",
    "Rule",
    "Scm",
    "SeparatedPair",
    "VersionSpace",
    "WorkedSolution",
    "WorldSpace",
]
