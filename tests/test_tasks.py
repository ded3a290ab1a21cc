"""Tasks of tasks.py: what each runs, where, what continuous integration runs of them, and the soak."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import stat
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

from tests.support import effort, soak
from tests.support.commands import CHECKOUT
from tests.support.packages import needs


# --- The tasks of tasks.py: what each runs, where, and all that continuous integration runs ---------------------------
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
    monkeypatch.delenv("CALIBRANT_SHARED", raising=False)
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
    actions = [line for file in files for line in file.read_text(encoding="utf-8").splitlines() if "uses:" in line]
    assert len(actions) > 10
    unpinned = [line for line in actions if not re.fullmatch(r" +- uses: [\w./-]+@[0-9a-f]{40}  # v[\d.]+", line)]
    assert unpinned == []  # a tag can be moved to other code


# --- Continuous integration runs `tasks.py test-ci`; on a bare machine the browser is installed, or something fails ---
MAX_SECONDS = 240  # of an inner pytest, which takes 2 s on a quiet machine; five others may run beside it
RECORDED = '#!{bash}\necho "{name} $* [${{DEBIAN_FRONTEND:-}}]" >> "{log}"\n{more}\n'


class BareMachine:
    """A folder of commands that is all of PATH: those a script may use, and stubs that record how they were called."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "bin"
        self.folder.mkdir()
        self.log = folder / "log"
        self.log.touch()
        for name in ("bash", "dirname", "env"):
            found = shutil.which(name)
            assert found is not None
            (self.folder / name).symlink_to(found)
        self.stub("python3")

    def stub(self, name: str, more: str = "") -> None:
        path = self.folder / name
        path.write_text(
            RECORDED.format(bash=shutil.which("bash"), name=name, log=self.log, more=more), encoding="utf-8"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, **environment: str) -> tuple[int, str, list[str]]:
        """Return exit code, standard error, and the recorded calls."""
        bare = {"PATH": str(self.folder), **environment}
        done = subprocess.run(
            [CHECKOUT / ".ci" / "run"], env=bare, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr, self.log.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> BareMachine:
    return BareMachine(tmp_path)


FEW = """import os, pytest

def _cases():
    return ["a]", "b c"] if os.environ.get("VECTORS") else [pytest.param("", marks=pytest.mark.skip)]

@pytest.mark.parametrize("case", _cases())
def test_vector(case): print("ran", repr(case))

@pytest.mark.parametrize("case", [1, 2])
def test_half(case):
    if case == 2 and not os.environ.get("VECTORS"): pytest.skip("none")
    print("ran", case)

def test_both(): print("ran both")

@pytest.mark.xfail(strict=False)
def test_expected_to_fail(): assert False
"""


def test_what_does_not_pass_in_one_place_runs_in_the_other(tmp_path: Path) -> None:
    """Cases that come with the shared vectors, and those that are skipped without them; nothing twice."""
    hooks = "pytest_addoption, pytest_collection_modifyitems, pytest_configure, pytest_ignore_collect"
    (tmp_path / "conftest.py").write_text(f"from tests.conftest import {hooks}\n", encoding="utf-8")
    (tmp_path / "test_few.py").write_text(FEW, encoding="utf-8")
    whole = "with open('imports', 'a') as file: file.write('1')\ndef test_one(): pass\n"
    (tmp_path / "test_whole.py").write_text(whole, encoding="utf-8")
    passed = tmp_path / "passed"
    options = ("-n", "1", "-rA", ".")
    here = _pytest(tmp_path, *options, f"--passed-to={passed}", VECTORS="")
    assert "3 passed, 2 skipped, 1 xfailed in" in here
    written = ["test_few.py::test_both", "test_few.py::test_half[1]", "test_whole.py", "test_whole.py::test_one"]
    assert passed.read_text(encoding="utf-8").splitlines() == written
    there = _pytest(tmp_path, *options, f"--but={passed}", VECTORS="1")
    assert "3 passed" in there
    assert "1 xfailed in" in there
    for name in ("test_vector[a]]", "test_vector[b c]", "test_half[2]"):
        assert f"PASSED test_few.py::{name}" in there
    assert "test_both" not in there
    assert (tmp_path / "imports").read_text() == "1"  # a file in which all passed is not imported again


TESTS = ("python3 tasks.py test-ci []",)
UPDATE = "apt-get update -qq [noninteractive]"
INSTALL = "apt-get install -y -qq --no-install-recommends chromium [noninteractive]"


ASKED = ["id -u []"]
BARE: dict[str, tuple[dict[str, str], dict[str, str], list[str], list[str]]] = {
    # stubs beside python3, variables, calls before the tests, lines of standard error
    "as root": (
        {"id": "echo 0", "apt-get": ""},
        {"CI": "true"},
        [*ASKED, UPDATE, INSTALL],
        ["chromium is missing: installing it from the distribution's packages"],
    ),
    "without rights": (
        {"id": "echo 1000", "sudo": "exit 1", "apt-get": ""},
        {"CI": "true"},
        [*ASKED, "sudo -n true []"],
        ["only root can install it", "the browser tests will fail"],
    ),
    "where the installation fails": (
        {"id": "echo 0", "apt-get": "exit 100"},
        {"CI": "true"},
        [*ASKED, UPDATE],
        ["chromium could not be installed: the browser tests will fail"],
    ),
    "with a browser": ({"chromium-browser": ""}, {"CI": "true"}, [], []),
    "without continuous integration": ({}, {}, [], []),
}


@pytest.mark.parametrize("name", BARE)
def test_a_missing_browser_is_installed_before_the_tests_or_what_will_fail_is_said(
    machine: BareMachine, name: str
) -> None:
    stubs, variables, expected, lines = BARE[name]
    for command, more in stubs.items():
        machine.stub(command, more)
    code, said, calls = machine.run(**variables)
    assert (code, calls) == (0, [*expected, *TESTS])
    assert all(line in said for line in lines)
    assert bool(said) == bool(lines)


def test_what_fails_ends_the_run(machine: BareMachine) -> None:
    machine.stub("python3", "exit 3")
    assert machine.run() == (3, "", [*TESTS])


def test_browser_tests_are_required_in_continuous_integration(tmp_path: Path) -> None:
    (tmp_path / "test_page.py").write_text(
        "from tests.support.browser import needs_chromium, pressed\n"
        "@needs_chromium\n"
        "def test_page(tmp_path):\n"
        "    pressed('<body></body>', '', tmp_path)\n",
        encoding="utf-8",
    )
    for ci, outcome in (("true", "1 failed"), ("", "1 skipped")):
        assert f"{outcome} in" in _pytest(tmp_path, "test_page.py", CI=ci, PATH=str(tmp_path))


def _temporary(folder: Path) -> str:
    """Return the option that keeps an inner pytest's temporary folder within a folder.

    In the common place it would delete the folders of sessions that have ended before it exits: gigabytes in a
    continuous integration, which took more than 60 s there while other tests were running.
    """
    return f"--basetemp={folder / 'temporary'}"


def _inherited() -> dict[str, str]:
    """Return this process's variables without the options of the outer pytest, which the inner one does not know."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}


def _pytest(folder: Path, *arguments: str, **environment: str) -> str:
    """Return the output of pytest in a folder that has the project's settings; the checkout is importable."""
    (folder / "pyproject.toml").write_bytes((CHECKOUT / "pyproject.toml").read_bytes())
    line = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-rs",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:hypothesispytest",
        _temporary(folder),
        *(arguments if "-n" in arguments else ("-p", "no:xdist", *arguments)),
    ]
    settings = {**_inherited(), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "300", **environment}
    done = subprocess.run(
        line, env=settings, cwd=folder, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )
    return done.stdout


def test_packages_are_required_in_continuous_integration(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {"true": pytest.fail.Exception, "": pytest.skip.Exception}
    for ci, outcome in outcomes.items():
        monkeypatch.setenv("CI", ci)
        with pytest.raises(outcome, match="no no_such_package in this environment"):
            needs("no_such_package")
        needs("json")


def test_integrations_are_collected_only_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "tests" / "integrations" / "tool").mkdir(parents=True)
    (tmp_path / "tests" / "test_plain.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    adapter = "def test_adapter(): assert False\n"
    (tmp_path / "tests" / "integrations" / "tool" / "test_adapter.py").write_text(adapter, encoding="utf-8")
    assert "1 passed in" in _pytest(tmp_path)
    assert "1 failed in" in _pytest(tmp_path, "tests/integrations")


# --- The soak: one line for each part, what failed is shown and decides the exit code, nothing begins after the end ---
REPORT = """<testsuites><testsuite tests="7" failures="1" errors="2" skipped="3"/><testsuite tests="2"/></testsuites>"""


def test_what_was_skipped_is_no_case_and_errors_are_failures(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT, encoding="utf-8")
    assert soak.counted(report) == (6, 3)


@pytest.mark.parametrize("failures", [0, 2])
def test_each_part_has_its_line_and_failures_are_shown(
    failures: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shares: list[float] = []

    def part(tally: soak.Tally, until: float) -> None:
        shares.append(until)
        tally.add(1_200, failures if len(shares) == 1 else 0, "what failed")

    clock = iter([0.0, 0.0, 10.0, 10.0, 40.0])
    monkeypatch.setattr("tests.support.soak.time.time", lambda: next(clock))
    monkeypatch.setattr(soak, "PARTS", {"first": part, "second": part})
    monkeypatch.setattr(sys, "argv", ["soak", "--minutes", "1"])
    assert soak.main() == (failures > 0)
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].split() == ["first", "1,200", "cases", str(failures), "failures", "10", "s"]
    assert printed[1:-1] == ["what failed"] * (failures > 0)
    assert printed[-1].split() == ["second", "1,200", "cases", "0", "failures", "30", "s"]
    assert shares == [30.0, 60.0]  # half of a minute, then all that is left


def test_a_process_that_fails_without_a_count_is_a_failure() -> None:
    tally = soak.Tally()
    soak.fuzzing("no such target")(tally, 0.0)
    assert (tally.cases, tally.failures) == (0, 1)
    assert "invalid choice: 'no such target'" in tally.reports[0]


def test_few_cases_are_those_of_all_other_runs() -> None:
    assert effort.effort(3, 50) == (50 if effort.SOAKING else 3)


def test_only_files_that_have_something_to_run_are_collected() -> None:
    long, drawn = soak.files_with("mark.soak"), soak.files_with("given(")
    assert "tests/solvers/replayscm/test_exact.py" in long
    assert "tests/test_layout.py" not in long
    assert "tests/dsl/formulas/test_text.py" in drawn
    assert not any("integrations" in file for file in [*long, *drawn])


def test_tests_and_properties_have_most_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ends: dict[str, float] = {}
    parts = {name: lambda tally, until, name=name: ends.update({name: until}) for name in soak.PARTS}
    monkeypatch.setattr("tests.support.soak.time.time", lambda: 0.0)
    monkeypatch.setattr(soak, "PARTS", parts)
    monkeypatch.setattr(sys, "argv", ["soak", "--minutes", "16"])
    assert soak.main() == 0
    assert (ends["long versions"], ends["fuzz submissions"]) == (300.0, 160.0)  # on a clock that stands still
    assert ends["properties"] == 16 * 60 * 5 / 11
