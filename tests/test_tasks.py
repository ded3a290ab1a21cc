"""The tasks of tasks.py: what each runs, where, and all that continuous integration runs."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Self

import pytest
import yaml

from tests.support.commands import CHECKOUT


@pytest.fixture
def tasks() -> Iterator[ModuleType]:
    """tasks.py, which is no part of a package."""
    spec = importlib.util.spec_from_file_location("tasks", CHECKOUT / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tasks"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["tasks"]


def test_what_runs_together_ends_with_the_code_of_what_fails(
    tasks: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    """When all have ended: `make test` says what is wrong with types and what is wrong with tests."""
    python = Path(sys.executable)
    fine = [tasks.Process(python, ("platform", *more), advice="not said") for more in ((), ("--terse",))]
    failing = tasks.Process(python, ("json.tool", "no such file"), advice="to repeat it")
    tasks.run_together([fine[0]], [fine[1], replace(failing, is_preparation=True)])
    lines = capfd.readouterr().out.splitlines()
    assert len(lines) == 8
    ended = [line.partition(": ")[2] for line in lines if re.match(r"# \d+ s: ", line)]
    # two chains, of which either may end first
    assert sorted(ended) == ["json.tool no such file", "platform", "platform --terse"]
    assert ended.index("platform --terse") < ended.index("json.tool no such file")
    never = tasks.Process(python, ("platform", "--nonaliased"))
    with pytest.raises(SystemExit) as stopped:
        tasks.run_together([failing, never], fine)
    assert stopped.value.code in (1, 2)
    printed = capfd.readouterr()
    assert "no such file" in printed.err
    assert "to repeat it\n" in printed.out
    assert "$ python -m platform --terse\n" in printed.out
    assert "--nonaliased" not in printed.out
    assert "not said" not in printed.out


def _git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_a_newcomer_has_this_checkout_and_nothing_of_this_machine(
    tasks: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what is changed, new or deleted since the last commit, without what git ignores."""
    checkout = tmp_path / "checkout"
    (checkout / "tests").mkdir(parents=True)
    for name in ("kept.py", "changed.py", "deleted.py"):
        (checkout / name).write_text("old", encoding="utf-8")
    (checkout / ".gitignore").write_text("ignored.py", encoding="utf-8")
    _git(tmp_path, "init", str(checkout))
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-m", "all of it")
    (checkout / "deleted.py").unlink()
    for name in ("changed.py", "tests/new one.py", "ignored.py"):
        (checkout / name).write_text("new", encoding="utf-8")
    monkeypatch.setattr(tasks, "ROOT", checkout)
    for name, value in (("CI", "true"), ("CALIBRANT_SHARED", "here"), ("NUMBA_CACHE_DIR", "here"), ("ORDER_SEED", "7")):
        monkeypatch.setenv(name, value)
    with tasks.newcomer(tasks.Environment(tmp_path)) as run:
        files = {str(path.relative_to(run.folder)): path for path in run.folder.rglob("*") if path.is_file()}
        texts = {name: path.read_text(encoding="utf-8") for name, path in files.items() if ".git/" not in name}
        assert not {"CI", "CALIBRANT_SHARED", "NUMBA_CACHE_DIR"} & run.variables.keys()
        assert not (run.folder.parent / "shared").exists()
        assert not Path(run.variables["XDG_CACHE_HOME"]).exists()
        assert "--order-seed=7" in run.command
        assert run.advice.endswith("ORDER_SEED=7 python3 tasks.py test-newcomer")
    assert texts == {".gitignore": "ignored.py", "kept.py": "old", "changed.py": "new", "tests/new one.py": "new"}
    assert not run.folder.exists()


class RecordedRun:
    """Processes that a task would start, in the order in which they would begin; a test says which of them fails."""

    def __init__(self, tasks: ModuleType, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        self.processes: list[Any] = []
        self.failing: tuple[str, ...] = ("nothing",)
        self.background: list[str] = []
        monkeypatch.setattr(tasks.Process, "run", lambda process: self._run(process))
        monkeypatch.setattr(tasks.Process, "start", lambda process: self._start(process))
        monkeypatch.setattr(tasks.Environment, "install", lambda *_: None)
        monkeypatch.setattr(tasks.Environment, "add", lambda *_: None)
        monkeypatch.setattr(tasks, "ThreadPoolExecutor", _InOrder)
        for name in ("", "_INTEGRATIONS", "_LOWEST"):
            monkeypatch.setenv(f"CALIBRANT{name}_VENV", str(folder / f"env{name}"))

    def _run(self, process: Any) -> int:
        self.processes.append(process)
        for option in process.command:
            if option.startswith("--passed-to="):
                Path(option.removeprefix("--passed-to=")).write_text("a test\n", encoding="utf-8")
        return 3 if set(self.failing) <= set(process.command) else 0

    def _start(self, process: Any) -> Any:
        code = 3 if set(self.failing) <= set(process.command) else 0
        self.background.append(" ".join(process.command))

        def wait() -> int:
            self.background.append("waited")
            return code

        return SimpleNamespace(wait=wait, terminate=lambda: self.background.append("ended"), returncode=code)

    def lines(self) -> list[str]:
        """Return the commands, each after the name of its environment, without what differs between runs."""
        texts = (f"{process.python.parent.parent.name}: {' '.join(process.command)}" for process in self.processes)
        return [re.sub(r"=\S*/passed|=\d+", "=X", text) for text in texts]


class _InOrder:
    """A pool of threads that does one after another."""

    def __init__(self, _: int) -> None:
        self.map = map

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture
def run(tasks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> RecordedRun:
    recorded = RecordedRun(tasks, monkeypatch, tmp_path)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "tasks.py").write_text("", encoding="utf-8")
    _git(tmp_path, "init", str(checkout))
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-m", "all of it")
    monkeypatch.setattr(tasks, "ROOT", checkout)
    return recorded


EVERYTHING = (
    "env: ruff format --check .",
    "env: ruff check .",
    "env: pytest -qq --collect-only",
    "env: pytest -q -n 3 --dist worksteal --order-seed=X --passed-to=X",
    "env: pytest -q -n 2 --dist worksteal --but=X",
    "env: mypy",
    "env_INTEGRATIONS: mypy -p calibrant -p calibrant_tasks -p tests.integrations",
    "env_LOWEST: pip check",
    "env_LOWEST: calibrant.bench.cli --version",
    "env_LOWEST: calibrant.bench.cli pool check bench/replayscm/data/sample_ordered.jsonl",
    "env_LOWEST: pytest -q -n 2 --dist worksteal --one-in 20",
    "env_LOWEST: pytest -q -n 2 --dist worksteal",
    "env_INTEGRATIONS: pytest -q -n 2 --dist worksteal tests/integrations",
)


def test_continuous_integration_runs_everything(
    tasks: ModuleType, run: RecordedRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a newcomer first, then where the same clone has the vectors and CI; beside these tests all else, in order."""
    monkeypatch.setenv("CI", "true")
    tasks.test_ci()
    lines = run.lines()
    lowest = lines[-2].removesuffix(" " + " ".join(tasks.LIBRARY_TESTS))
    assert [*lines[:-2], lowest, lines[-1]] == list(EVERYTHING)
    _, _, compilation, first, second, *_, integrations = run.processes
    assert first.folder.name == "calibrant"
    assert {process.folder for process in (compilation, second, integrations)} == {first.folder}
    assert "CI" not in first.variables
    assert "CALIBRANT_SHARED" not in first.variables
    assert compilation.variables == first.variables
    for process in run.processes:
        if "env_LOWEST" in str(process.python):  # which lacks packages that only tests need
            assert "CI" not in process.variables
    for process in (second, integrations):
        assert process.variables["CI"] == "true"
        assert process.variables["CALIBRANT_SHARED"] == str(tasks.ROOT.parent / "shared")
        for name in ("XDG_CACHE_HOME", "PYTHONPATH"):
            assert process.variables[name] == first.variables[name]
    assert run.background == ["tasks install-others", "waited", "ended", "waited"]


@pytest.mark.parametrize(
    ("failing", "num_processes"),
    [
        ("ruff format", 1),
        ("mypy", 6),
        ("pytest --order-seed=7", 12),
        ("pytest -n 2 --dist", 11),
        ("tasks install-others", 6),
        ("mypy -p", 7),
        ("pip check", 8),
        ("pytest --one-in", 11),
        ("pytest tests/integrations", 13),
    ],
)
def test_a_part_that_fails_fails_continuous_integration(
    tasks: ModuleType, run: RecordedRun, failing: str, num_processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With all that runs beside it, and nothing after it."""
    monkeypatch.setenv("ORDER_SEED", "7")
    run.failing = tuple(failing.split())
    with pytest.raises(SystemExit) as stopped:
        tasks.test_ci()
    assert stopped.value.code == 3
    assert len(run.processes) == num_processes
    assert run.background[-2:] == ["ended", "waited"]


@pytest.mark.parametrize(
    ("task", "lines"),
    [
        ("test", [*EVERYTHING[:2], "env: mypy", "env: pytest -q -n 3 --dist worksteal"]),
        ("docs", ["env: tests.support.pages.site -W --keep-going -q -b html docs docs/_build/html"]),
        ("test-integrations", [EVERYTHING[6], EVERYTHING[12]]),
        ("test-newcomer", ["env: pytest -q -n 3 --dist worksteal --order-seed=X"]),
    ],
)
def test_a_task_runs_its_part(tasks: ModuleType, run: RecordedRun, task: str, lines: list[str]) -> None:
    tasks.TASKS[task]()
    assert run.lines() == lines


def test_workflows_run_tasks_and_extras_that_there_are(tasks: ModuleType) -> None:
    files = sorted((CHECKOUT / ".github" / "workflows").iterdir())
    assert [file.stem for file in files] == ["nightly", "release", "tests"]
    commands = [
        step["run"]
        for file in files
        for job in yaml.safe_load(file.read_text(encoding="utf-8"))["jobs"].values()
        for step in job["steps"]
        if "run" in step
    ]
    named = [command.split()[-1] for command in commands if "tasks.py" in command]
    assert len(named) > 3
    assert set(named) <= tasks.TASKS.keys()
    extras = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    installed = [
        name for command in commands for group in re.findall(r"\[(.+)\]", command) for name in group.split(",")
    ]
    assert len(installed) > 5
    assert set(installed) <= extras.keys()
