"""What the solvers and spaces of every benchmark give. Importing it loads all of them: it is for type checkers."""

from __future__ import annotations

from audits.causalab.spaces import LabSpace
from audits.replayscm.findings import Findings
from audits.replayscm.generation.generate import Generated
from audits.replayscm.hardening.harden import Hardening
from bench.audit.separations import SeparatedPair
from dsl.blickets.rule import Rule
from dsl.causalab.mechanism import Mechanism
from dsl.replayscm.scm import Scm
from solvers.blickets.families import DetectorSpace
from solvers.causim.solution import WorkedSolution
from solvers.causim.space import WorldSpace
from solvers.replayscm.version_space import VersionSpace

__all__ = [
    "DetectorSpace",
    "Findings",
    "Generated",
    "Hardening",
    "LabSpace",
    "Mechanism",
    "Rule",
    "Scm",
    "SeparatedPair",
    "VersionSpace",
    "WorkedSolution",
    "WorldSpace",
]
