"""No option is ignored: every option of every command, on a pool of every benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.core.names import TITLES
from bench.core.options import declared_options
from tests.bench.commands.lines import BENCHMARKS, COMMANDS, Files, base_line, outcome

HOW = {
    "--workers": ["1"],
    "--budget": ["600"],
    "--retry-crashed": [],  # without a crash
}
"""Options that say how the work is done, not what comes of it: they are taken, and the outcome is the same."""

VALUES: dict[str, list[str]] = {
    "--limit": ["1"],
    "--only": ["ID"],
    "--cluster": ["nonsense"],
    "--max-parents": ["2"],
    "--option": ["max_parents=2"],
    "--out": ["OUT/given"],
    "--seed": ["7"],
    "--per-stratum": ["2"],
    "--strata": ["nothing"],
    "--setting": ["block"],
    "--max-added": ["0"],
    "--audits": ["OUT/given.jsonl"],
    "--benchmark": ["OTHER"],
    "--html": ["OUT/page.html"],
    "--certificates": ["OUT/certificates"],
    "--report": ["OUT/report.jsonl"],
    "--max-size": ["3", "--certificates", "OUT/certificates"],
    "--fail-on": ["ambiguous"],
    "--runs": ["RUN"],
    "--run": ["RUN"],
    "--system": ["nobody"],
    "--mode": ["extra-worlds"],
    "--goal": ["heldout-agreement"],
    "--extractor": ["published"],
    "--id-field": ["model"],
    "--text-field": ["nothing"],
    "--model-field": ["id"],
    "--official": ["POOL"],
    "--by": ["setting"],
    "--means": ["paper"],
    "--columns": ["all"],
    "--pool": ["POOL"],
    "--predictions": ["PREDICTIONS"],
    "--format": ["csv"],
    "--table": ["samples"],
    "--against": ["nobody"],
    "--plots": ["OUT/plots"],
    "--name": ["Title"],
    "--license": ["cc-by-4.0"],
    "--order": ["nothing"],
    "--against-file": ["ANSWER"],
    "--members": ["3"],
    "--targets": ["2"],
    "--sweep": ["POOL"],
    "--seeds": ["2"],
}
GIVEN_WITH = {
    ("alternatives", "--seeds"): ["--sweep", "POOL"],
    ("harden", "--goal"): [],
    ("show", "--system"): ["--run", "RUN"],
    ("show", "--id-field"): ["--run", "PREDICTIONS"],
    ("show", "--text-field"): ["--run", "PREDICTIONS"],
    ("show", "--model-field"): ["--run", "PREDICTIONS"],
}


def cases() -> Iterator[Any]:
    for command, found in COMMANDS.items():
        for option in found.params:
            if option.param_type_name == "option" and command != "demo":  # which is on all benchmarks
                yield pytest.param(command, option, id=f"{command}:{option.opts[0]}")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Files]:
    return {name: Files.made(name, tmp_path_factory.mktemp(name)) for name in BENCHMARKS}


def words(command: str, option: Any, files: Files, out: Path) -> list[str]:
    """The option with a value that is not its default, and what it needs beside it."""
    flag = option.opts[0]
    value = HOW.get(flag, VALUES.get(flag, []))
    if option.is_flag:
        value, flag = [], option.secondary_opts[0] if option.default is True else flag
    places = {
        "ID": files.ids[1],
        "POOL": str(files.pool),
        "RUN": str(files.run),
        "PREDICTIONS": str(files.predictions),
        "OTHER": BENCHMARKS[BENCHMARKS.index(files.benchmark) - 1],
    }
    given = [flag, *value, *GIVEN_WITH.get((command, flag), [])]
    return [places.get(word, word.replace("OUT/", f"{out}/")) for word in given]


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize(("command", "option"), cases())
def test_no_option_is_ignored(
    command: str,
    option: Any,
    benchmark: str,
    files: dict[str, Files],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "out"
    line = base_line(command, files[benchmark], out)
    before = outcome(line, out, monkeypatch)
    after = outcome([*line, *words(command, option, files[benchmark], out)], out, monkeypatch)
    print(command, option.opts, benchmark, before.code, after.code, after.err.strip()[:150], before == after)
    declared = declared_options(command).get(option.name)
    if declared and benchmark not in declared.benchmarks:
        assert (after.code, after.out, after.files) == (2, "", {})
        assert after.err.count("\n") == 1
        assert declared.flag in after.err
        assert f"not to {TITLES[benchmark]}" in after.err
    elif before.code == 2:
        assert after.code == 2  # the command is not for this benchmark
    elif option.opts[0] in HOW:
        assert after == before
    else:
        assert after != before
        assert after.code != 2 or option.opts[0] in after.err or declared is None
