"""Exact symbolic solvers, ambiguity audits and calibration baselines for executable causal-mechanism benchmarks.

Every public name is here and loaded when it is first used; docs/names has an example of each.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

_HERE = Path(__file__).resolve().parent
if (_HERE / "dsl").is_symlink() or not (_HERE / "dsl").is_dir():  # a checkout: the packages lie beside this folder
    __path__.insert(0, str(_HERE.parent))

if TYPE_CHECKING:
    from calibrant.audits.claims import Finding
    from calibrant.audits.replayscm.findings import Findings
    from calibrant.audits.replayscm.generation.generate import Generated
    from calibrant.audits.replayscm.hardening.harden import Hardening
    from calibrant.baselines.structure_learning.classes import NetworkClass, network_class
    from calibrant.bench.core.capabilities import Solution
    from calibrant.bench.episodes import TextEpisode
    from calibrant.bench.protocols import Protocol, ProtocolResult
    from calibrant.bench.replayscm.audit.separations import SeparatedPair
    from calibrant.bench.replayscm.fitting.claimed_graph import GraphFit
    from calibrant.bench.replayscm.fitting.fit import Fit, fit
    from calibrant.bench.replayscm.fitting.missing import GapFit
    from calibrant.bench.replayscm.fitting.network_fit import NetworkFit
    from calibrant.bench.replayscm.fitting.networks import learn_networks, rank_graph
    from calibrant.bench.replayscm.fitting.reading import read_table
    from calibrant.bench.replayscm.fitting.table import Table
    from calibrant.bench.report.tidy import RateTable, Records, Verdicts
    from calibrant.bench.runs.records import Record
    from calibrant.bench.version import __version__
    from calibrant.dsl.episode import Step
    from calibrant.dsl.errors import CalibrantError, PoolError
    from calibrant.dsl.item import Pool
    from calibrant.dsl.replayscm.evaluator import Evaluation
    from calibrant.dsl.replayscm.item import Problem, Task
    from calibrant.dsl.replayscm.replay import evaluate
    from calibrant.dsl.replayscm.scm import Scm
    from calibrant.dsl.replayscm.score import Score
    from calibrant.estimator import BooleanSCM
    from calibrant.item_types import (
        BlicketItem,
        BlicketScore,
        CausimItem,
        CausimScore,
        Item,
        LabItem,
        LabScore,
        LogicFamily,
        LogicItem,
        LogicScore,
        Verdict,
        logic_family,
    )
    from calibrant.solvers.networks.network import BooleanNetwork, read_network
    from calibrant.solvers.outcome import Found, Impossible, OutOfBudget
    from calibrant.solvers.replayscm.space import VersionSpace
    from calibrant.verbs import (
        audit,
        generate,
        harden,
        load_pool,
        open_episode,
        protocols,
        run,
        score,
        score_many,
        separate,
        solve,
        table,
        text_episode,
        version_space,
    )

__all__ = [
    "BlicketItem",
    "BlicketScore",
    "BooleanNetwork",
    "BooleanSCM",
    "CalibrantError",
    "CausimItem",
    "CausimScore",
    "Evaluation",
    "Finding",
    "Findings",
    "Fit",
    "Found",
    "GapFit",
    "Generated",
    "GraphFit",
    "Hardening",
    "Impossible",
    "Item",
    "LabItem",
    "LabScore",
    "LogicFamily",
    "LogicItem",
    "LogicScore",
    "NetworkClass",
    "NetworkFit",
    "OutOfBudget",
    "Pool",
    "PoolError",
    "Problem",
    "Protocol",
    "ProtocolResult",
    "RateTable",
    "Record",
    "Records",
    "Scm",
    "Score",
    "SeparatedPair",
    "Solution",
    "Step",
    "Table",
    "Task",
    "TextEpisode",
    "Verdict",
    "Verdicts",
    "VersionSpace",
    "__version__",
    "audit",
    "evaluate",
    "fit",
    "generate",
    "harden",
    "learn_networks",
    "load_pool",
    "logic_family",
    "network_class",
    "open_episode",
    "protocols",
    "rank_graph",
    "read_network",
    "read_table",
    "run",
    "score",
    "score_many",
    "separate",
    "solve",
    "table",
    "text_episode",
    "version_space",
]

_MODULE_OF_NAME = {
    "BlicketItem": "calibrant.item_types",
    "BlicketScore": "calibrant.item_types",
    "BooleanSCM": "calibrant.estimator",
    "BooleanNetwork": "calibrant.solvers.networks.network",
    "CalibrantError": "calibrant.dsl.errors",
    "CausimItem": "calibrant.item_types",
    "CausimScore": "calibrant.item_types",
    "Evaluation": "calibrant.dsl.replayscm.evaluator",
    "Finding": "calibrant.audits.claims",
    "Findings": "calibrant.audits.replayscm.findings",
    "Fit": "calibrant.bench.replayscm.fitting.fit",
    "Found": "calibrant.solvers.outcome",
    "GapFit": "calibrant.bench.replayscm.fitting.missing",
    "GraphFit": "calibrant.bench.replayscm.fitting.claimed_graph",
    "Generated": "calibrant.audits.replayscm.generation.generate",
    "Hardening": "calibrant.audits.replayscm.hardening.harden",
    "Impossible": "calibrant.solvers.outcome",
    "Item": "calibrant.item_types",
    "LabItem": "calibrant.item_types",
    "LabScore": "calibrant.item_types",
    "LogicFamily": "calibrant.item_types",
    "LogicItem": "calibrant.item_types",
    "LogicScore": "calibrant.item_types",
    "NetworkClass": "calibrant.baselines.structure_learning.classes",
    "NetworkFit": "calibrant.bench.replayscm.fitting.network_fit",
    "OutOfBudget": "calibrant.solvers.outcome",
    "Pool": "calibrant.dsl.item",
    "PoolError": "calibrant.dsl.errors",
    "Problem": "calibrant.dsl.replayscm.item",
    "Protocol": "calibrant.bench.protocols",
    "ProtocolResult": "calibrant.bench.protocols",
    "RateTable": "calibrant.bench.report.tidy",
    "Records": "calibrant.bench.report.tidy",
    "Record": "calibrant.bench.runs.records",
    "Scm": "calibrant.dsl.replayscm.scm",
    "Score": "calibrant.dsl.replayscm.score",
    "SeparatedPair": "calibrant.bench.replayscm.audit.separations",
    "Solution": "calibrant.bench.core.capabilities",
    "Step": "calibrant.dsl.episode",
    "Table": "calibrant.bench.replayscm.fitting.table",
    "Task": "calibrant.dsl.replayscm.item",
    "TextEpisode": "calibrant.bench.episodes",
    "Verdict": "calibrant.item_types",
    "Verdicts": "calibrant.bench.report.tidy",
    "VersionSpace": "calibrant.solvers.replayscm.space",
    "__version__": "calibrant.bench.version",
    "audit": "calibrant.verbs",
    "evaluate": "calibrant.dsl.replayscm.replay",
    "fit": "calibrant.bench.replayscm.fitting.fit",
    "generate": "calibrant.verbs",
    "harden": "calibrant.verbs",
    "learn_networks": "calibrant.bench.replayscm.fitting.networks",
    "load_pool": "calibrant.verbs",
    "logic_family": "calibrant.item_types",
    "network_class": "calibrant.baselines.structure_learning.classes",
    "open_episode": "calibrant.verbs",
    "protocols": "calibrant.verbs",
    "read_network": "calibrant.solvers.networks.network",
    "rank_graph": "calibrant.bench.replayscm.fitting.networks",
    "read_table": "calibrant.bench.replayscm.fitting.reading",
    "run": "calibrant.verbs",
    "score": "calibrant.verbs",
    "score_many": "calibrant.verbs",
    "separate": "calibrant.verbs",
    "solve": "calibrant.verbs",
    "table": "calibrant.verbs",
    "text_episode": "calibrant.verbs",
    "version_space": "calibrant.verbs",
}


def __getattr__(name: str) -> Any:
    if name in ("datasets", "rewards"):  # modules with pages of their own in docs/names
        return import_module(f"calibrant.{name}")
    if name not in _MODULE_OF_NAME:
        raise AttributeError(f"module 'calibrant' has no attribute '{name}'")
    value = getattr(import_module(_MODULE_OF_NAME[name]), name)
    import_module("calibrant.dsl.pictures").set_painter(_draw_picture)
    globals()[name] = value  # later look-ups find it there, and do not call this function
    return value


def _draw_picture(picture: Any) -> str:
    """Return a picture as HTML for a notebook; the module that draws is imported when the first one is shown."""
    html: str = import_module("calibrant.bench.pages.notebook").draw_picture(picture)
    return html


def __dir__() -> list[str]:
    return list(__all__)
