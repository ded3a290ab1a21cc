"""Samples of large pools, and the names that Inspect's own command knows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

from tests.support.packages import needs

needs("inspect_ai")

from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.log import read_eval_log

import calibrant.dsl.records
from calibrant.bench.core.registry import bundled_files
from calibrant.inspect.samples import StoredSamples, pool_dataset
from tests.integrations.inspect.conftest import pool_of
from tests.integrations.inspect.logs import samples
from tests.support.commands import CHECKOUT


# --- Samples of a large pool, made when they are asked for, are those of a small one that are kept --------------------
def said(samples: Any) -> list[Any]:
    """All of each sample but the names that Inspect draws for messages."""
    return [one.model_dump(exclude={"input": {"__all__": {"id"}}}) for one in samples]


def last_letters(sample: Sample) -> str:
    return str(sample.id)[::-1]


def is_wanted(sample: Sample) -> bool:
    return str(sample.id)[-1] in "02468"


@pytest.mark.parametrize("benchmark", ["replayscm", "blickets"])
def test_stored_samples_are_the_samples(benchmark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bundled_files()[benchmark][0]
    kept: Dataset = pool_dataset(path, benchmark)
    assert isinstance(kept, MemoryDataset)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    stored: Dataset = pool_dataset(path, benchmark)
    assert isinstance(stored, StoredSamples)
    assert (stored.name, stored.location, stored.shuffled) == (kept.name, kept.location, False)
    assert said(stored) == said(kept)
    for dataset in (stored, kept):
        dataset.shuffle(seed=4)
        dataset.shuffle_choices(seed=4)
    assert stored.shuffled
    assert said(stored) == said(kept)
    assert said(stored[1:9:2]) == said(kept[1:9:2])
    assert said([stored[-1]]) == said([kept[-1]])
    some = stored.filter(is_wanted, name="even")
    assert some.name == "even"
    assert 0 < len(some) < len(stored)
    assert said(some) == said(kept.filter(is_wanted))
    for dataset in (stored, kept):
        dataset.sort()
    assert said(stored) == said(kept)
    for dataset in (stored, kept):
        dataset.sort(reverse=True, key=last_letters)
    assert said(stored) == said(kept)


# --- The names that Inspect's own command knows from a wheel; docs/inspect.md uses these ------------------------------
OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-build-isolation")


def _ran(python: Path, folder: Path, *arguments: object) -> str:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    line = [str(python), *map(str, arguments)]
    done = subprocess.run(line, cwd=folder, env=clean, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _from_wheel(folder: Path) -> Path:
    """Return the interpreter of an environment that has the wheel, and sees the libraries of this one."""
    _ran(Path(sys.executable), folder, "-m", "pip", "wheel", *OFFLINE, "--wheel-dir", folder, CHECKOUT)
    (wheel,) = folder.glob("*.whl")
    venv.create(folder / "environment")
    (site,) = (folder / "environment" / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    python = folder / "environment" / "bin" / "python"
    _ran(Path(sys.executable), folder, "-m", "pip", "--python", python, "install", *OFFLINE, wheel)
    assert str(site) in _ran(python, folder, "-c", "import calibrant; print(calibrant.__file__)")
    return python


def test_names_begin_with_calibrant(tmp_path: Path) -> None:
    """In an environment with the wheel; the commands of docs/inspect.md run in one with an editable install."""
    python = _from_wheel(tmp_path)
    pool = pool_of("causim", tmp_path)
    inspect = ("-m", "inspect_ai")
    given = ("-T", f"pool={pool.name}", "--log-dir", "logs", "--display", "none", "--epochs", 2)
    row = ("--solver", "calibrant/protocol", "-S", "name=exact", "--model", "none/none")
    _ran(python, tmp_path, *inspect, "eval", "calibrant/causim", *given, *row)
    (path,) = (tmp_path / "logs").glob("*.eval")
    log = read_eval_log(path)
    assert log.eval.task == "calibrant/causim"
    assert [step.solver for step in log.plan.steps] == ["calibrant/experiments", "calibrant/protocol"]
    pool.rename(tmp_path / "elsewhere.jsonl")
    again = ("--scorer", "calibrant/verdict", "--action", "append", "--overwrite", "--model", "mockllm/model")
    _ran(python, tmp_path, *inspect, "score", path, *again, "--display", "none")
    sample, *_ = samples(read_eval_log(path))
    assert [score.value["correct"] for score in (sample.scores or {}).values() if isinstance(score.value, dict)] == [
        1,
        1,
    ]
    scored = _ran(python, tmp_path, "-m", "calibrant", "score", "elsewhere.jsonl", path, "--json").splitlines()
    assert [json.loads(line)["correct"] for line in scored] == [True] * 8
