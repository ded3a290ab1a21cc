"""Exact symbolic solvers, ambiguity audits and calibration baselines for executable causal-mechanism benchmarks.

Every public name is here and loaded when it is first used; docs/api.md has an example of each.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from audits.finding import Finding
    from audits.replayscm.findings import Findings
    from audits.replayscm.generation.generate import Generated
    from audits.replayscm.hardening.harden import Hardening
    from bench.audit.separations import SeparatedPair
    from bench.benchmarks.kinds import (
        BlicketItem,
        BlicketScore,
        CausimItem,
        CausimScore,
        Item,
        LabItem,
        LabScore,
        Verdict,
    )
    from bench.protocols.base import Protocol, ProtocolResult
    from bench.runs.records import Record
    from bench.verbs.base import Solution
    from bench.version import __version__
    from calibrant.running import protocols, run
    from calibrant.verbs import (
        audit,
        generate,
        harden,
        load_pool,
        open_episode,
        score,
        score_many,
        separate,
        solve,
        version_space,
    )
    from dsl.episode import Step
    from dsl.errors import CalibrantError, PoolError
    from dsl.item import Pool
    from dsl.replayscm.problem import Problem, Task
    from dsl.replayscm.scm import Scm
    from dsl.replayscm.score import Score
    from solvers.outcome import Found, Impossible, OutOfBudget
    from solvers.replayscm.version_space import VersionSpace

__all__ = [
    "BlicketItem",
    "BlicketScore",
    "CalibrantError",
    "CausimItem",
    "CausimScore",
    "Finding",
    "Findings",
    "Found",
    "Generated",
    "Hardening",
    "Impossible",
    "Item",
    "LabItem",
    "LabScore",
    "OutOfBudget",
    "Pool",
    "PoolError",
    "Problem",
    "Protocol",
    "ProtocolResult",
    "Record",
    "Scm",
    "Score",
    "SeparatedPair",
    "Solution",
    "Step",
    "Task",
    "Verdict",
    "VersionSpace",
    "__version__",
    "audit",
    "generate",
    "harden",
    "load_pool",
    "open_episode",
    "protocols",
    "run",
    "score",
    "score_many",
    "separate",
    "solve",
    "version_space",
]

_HOME = {
    "BlicketItem": "bench.benchmarks.kinds",
    "BlicketScore": "bench.benchmarks.kinds",
    "CalibrantError": "dsl.errors",
    "CausimItem": "bench.benchmarks.kinds",
    "CausimScore": "bench.benchmarks.kinds",
    "Finding": "audits.finding",
    "Findings": "audits.replayscm.findings",
    "Found": "solvers.outcome",
    "Generated": "audits.replayscm.generation.generate",
    "Hardening": "audits.replayscm.hardening.harden",
    "Impossible": "solvers.outcome",
    "Item": "bench.benchmarks.kinds",
    "LabItem": "bench.benchmarks.kinds",
    "LabScore": "bench.benchmarks.kinds",
    "OutOfBudget": "solvers.outcome",
    "Pool": "dsl.item",
    "PoolError": "dsl.errors",
    "Problem": "dsl.replayscm.problem",
    "Protocol": "bench.protocols.base",
    "ProtocolResult": "bench.protocols.base",
    "Record": "bench.runs.records",
    "Scm": "dsl.replayscm.scm",
    "Score": "dsl.replayscm.score",
    "SeparatedPair": "bench.audit.separations",
    "Solution": "bench.verbs.base",
    "Step": "dsl.episode",
    "Task": "dsl.replayscm.problem",
    "Verdict": "bench.benchmarks.kinds",
    "VersionSpace": "solvers.replayscm.version_space",
    "__version__": "bench.version",
    "audit": "calibrant.verbs",
    "generate": "calibrant.verbs",
    "harden": "calibrant.verbs",
    "load_pool": "calibrant.verbs",
    "open_episode": "calibrant.verbs",
    "protocols": "calibrant.running",
    "run": "calibrant.running",
    "score": "calibrant.verbs",
    "score_many": "calibrant.verbs",
    "separate": "calibrant.verbs",
    "solve": "calibrant.verbs",
    "version_space": "calibrant.verbs",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'calibrant' has no attribute '{name}'")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return list(__all__)


def _origin(name: str) -> str | None:
    try:
        found = importlib.util.find_spec(name)
    except ValueError:  # a module that somebody put there by hand
        return "not a module of a file"
    return found.origin if found else None


def _in_the_way() -> str:
    """Which of the project's packages, if any, would be imported from elsewhere: their names are common ones.

    `python -m calibrant` is the command, and the folder that it is called in is not where its packages are looked for.
    (bench.cli looks again, for a `bench` that was found: neither can ask the other.)
    """
    ours = Path(__file__).resolve().parent.parent
    command = sys.orig_argv[1:3] == ["-m", "calibrant"]
    if command and Path(sys.path[0] or ".").resolve() != ours:
        del sys.path[0]
    for name in ("dsl", "solvers", "audits", "baselines", "bench"):
        origin = _origin(name)
        if origin is None or Path(origin).resolve().parent != ours / name:
            where = f"is {origin}, not calibrant's" if origin else "is missing"
            return f"package '{name}' {where}; rename that folder, or start Python elsewhere or with -P"
    return ""


if reason := _in_the_way():
    raise ImportError(f"calibrant cannot be imported: {reason}", name=__name__, path=__file__)
