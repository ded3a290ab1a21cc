"""Commands that try candidates call the evaluator, and no other module replays plain SCMs."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool
from calibrant.dsl.replayscm import evaluator
from tests.support.commands import CHECKOUT

POOL = bundled_pool("hidden-order")


def _entries(action: Callable[[], object]) -> Counter[str]:
    """Count the calls of each function of the evaluator."""
    calls: Counter[str] = Counter()

    def count(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename == evaluator.__file__:
            calls[frame.f_code.co_name] += 1

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


def _listed() -> None:
    assert main(["list", str(POOL), "--why", "--limit", "1"]) == 0


def _item() -> calibrant.Problem:
    return calibrant.load_pool(POOL, of="replayscm")[0]


def _scored() -> None:
    gold = _item().sealed.gold
    assert gold is not None
    calibrant.score(_item(), {"mechanisms": {v: str(formula) for v, formula in gold.mechanisms.items()}})


@pytest.mark.parametrize(
    ("command", "entries"),
    [
        ("score", {"known_mismatches", "compute"}),
        ("audit", {"replay", "lay_out", "simulate"}),
        ("run", {"replays", "known_mismatches"}),
        ("harden", {"simulate"}),
        ("generate", {"simulate"}),
        ("list --why", {"lay_out", "simulate", "replays"}),
    ],
)
def test_commands_that_try_candidates_call_the_evaluator(command: str, entries: set[str], tmp_path: Path) -> None:
    actions: dict[str, Callable[[], object]] = {
        "score": _scored,
        "audit": lambda: calibrant.audit(_item()),
        "run": lambda: calibrant.run("exact", calibrant.load_pool(POOL)[:1], tmp_path / "runs"),
        "harden": lambda: calibrant.harden(_item(), seed=1),
        "generate": lambda: calibrant.generate(3),
        "list --why": _listed,
    }
    assert entries <= _entries(actions[command]).keys()


# files that replay by the reference, one SCM at a time, or one row
BY_REFERENCE = {
    "audits/replayscm/hardening/harden.py": "gold of the written item",
    "audits/replayscm/certificates/cross_examination.py": "each member that an engine lists, one at a time",
    "audits/replayscm/certificates/verify.py": "a verifier, which imports no solver and no fast path",
    "audits/replayscm/why/failure.py": "the first wrong row of an answer that is shown",
    "audits/replayscm/why/table_rows.py": "the row that is shown of a pair",
    "bench/replayscm/audit/separations.py": "a pair that is shown",
    "bench/replayscm/pools/check.py": "where the evaluator finds a mistake, to name the cell",
    "bench/replayscm/hardening.py": "alternatives that are supplied, to name the cell",
    "dsl/replayscm/extensions/scores.py": "maps of extended items, in one row",
    "solvers/replayscm/certified.py": "SCMs that solvers return",
}
REFERENCES = {"calibrant.dsl.replayscm.reference", "calibrant.dsl.formulas.reference"}
KERNELS = {
    "dsl/replayscm/_kernels_evaluator.py": {"replay_tables"},
    "solvers/replayscm/experiments/_kernels_members.py": {"reading_keys", "count_mismatches"},
}


def _sources() -> dict[str, ast.Module]:
    folders = ("dsl", "solvers", "audits", "baselines", "bench")
    paths = [path for folder in folders for path in (CHECKOUT / folder / "replayscm").rglob("*.py")]
    return {path.relative_to(CHECKOUT).as_posix(): ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def test_no_other_module_replays_candidates() -> None:
    """By the reference only where one SCM is shown; by kernels of their own only those that the evaluator names."""
    by_reference: set[str] = set()
    kernels: dict[str, set[str]] = {}
    for name, tree in _sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in REFERENCES:
                imported = {alias.name for alias in node.names} - {"Cell"}
                by_reference |= {name} if imported else set()
            if isinstance(node, ast.FunctionDef) and {"order", "masks", "tables"} <= {a.arg for a in node.args.args}:
                kernels.setdefault(name, set()).add(node.name)
    assert by_reference - {"dsl/replayscm/reference.py"} == BY_REFERENCE.keys()
    assert kernels == KERNELS
    assert evaluator.__doc__ is not None
    for name in KERNELS["solvers/replayscm/experiments/_kernels_members.py"]:
        assert f"`{name}`" in evaluator.__doc__
