"""Continuous integration on a bare machine: the browser is installed, and without one nothing passes quietly."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.commands import CHECKOUT

OTHERS = "python3 tasks.py install-others []"
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
        self.stub_python()

    def stub_python(self, failing: str = "none") -> None:
        """Tasks of which one fails; the tests end when the installation beside them has begun."""
        begun = f'[[ $2 != test ]] || until [[ "$(<"{self.log}")" == *install-others* ]]; do :; done'
        self.stub("python3", f"{begun}\n[[ $2 != {failing} ]] || exit 3")

    def stub(self, name: str, more: str = "") -> None:
        path = self.folder / name
        path.write_text(
            RECORDED.format(bash=shutil.which("bash"), name=name, log=self.log, more=more), encoding="utf-8"
        )
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, **environment: str) -> tuple[int, str, list[str]]:
        """Return exit code, standard error, and the recorded calls.

        The installation that goes on beside the first tests is left out: it has no place in their order.
        """
        bare = {"PATH": str(self.folder), **environment}
        done = subprocess.run(
            [CHECKOUT / ".ci" / "run"], env=bare, capture_output=True, text=True, timeout=60, check=False
        )
        calls = self.log.read_text(encoding="utf-8").splitlines()
        assert calls.count(OTHERS) == 1
        return done.returncode, done.stderr, [call for call in calls if call != OTHERS]


@pytest.fixture
def machine(tmp_path: Path) -> BareMachine:
    return BareMachine(tmp_path)


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
    python = tasks.Environment(Path(sys.prefix))
    fine = [tasks.Process(("platform", *more), advice="not said") for more in ((), ("--terse",))]
    python.run_together(*fine)
    with pytest.raises(SystemExit) as stopped:
        python.run_together(tasks.Process(("json.tool", "no such file"), advice="to repeat it"), fine[0])
    assert stopped.value.code in (1, 2)
    printed = capfd.readouterr()
    assert "no such file" in printed.err
    assert printed.out.endswith("to repeat it\n")
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
    with tasks.newcomer() as run:
        files = {str(path.relative_to(run.folder)): path for path in run.folder.rglob("*") if path.is_file()}
        texts = {name: path.read_text(encoding="utf-8") for name, path in files.items() if ".git/" not in name}
        assert not {"CI", "CALIBRANT_SHARED", "NUMBA_CACHE_DIR"} & run.variables.keys()
        assert not (run.folder.parent / "shared").exists()
        assert not Path(run.variables["XDG_CACHE_HOME"]).exists()
        assert "--order-seed=7" in run.command
        assert run.advice.endswith("ORDER_SEED=7 python3 tasks.py test-newcomer")
    assert texts == {".gitignore": "ignored.py", "kept.py": "old", "changed.py": "new", "tests/new one.py": "new"}
    assert not run.folder.exists()


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
    hooks = "from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_configure\n"
    (tmp_path / "conftest.py").write_text(hooks, encoding="utf-8")
    (tmp_path / "test_few.py").write_text(FEW, encoding="utf-8")
    passed = tmp_path / "passed"
    options = ("-n", "1", "-rA", "test_few.py")
    here = _pytest(tmp_path, *options, f"--passed-to={passed}", VECTORS="")
    assert "2 passed, 2 skipped, 1 xfailed in" in here
    assert passed.read_text(encoding="utf-8").splitlines() == ["test_few.py::test_both", "test_few.py::test_half[1]"]
    there = _pytest(tmp_path, *options, f"--but={passed}", VECTORS="1")
    assert "3 passed" in there
    assert "1 xfailed in" in there
    for name in ("test_vector[a]]", "test_vector[b c]", "test_half[2]"):
        assert f"PASSED test_few.py::{name}" in there
    assert "test_both" not in there


TASKS = ("test", "docs", "test-integrations")
TESTS = tuple(f"python3 tasks.py {task} []" for task in TASKS)
UPDATE = "apt-get update -qq [noninteractive]"
INSTALL = "apt-get install -y -qq --no-install-recommends chromium [noninteractive]"


def test_a_missing_browser_is_installed_before_the_tests(machine: BareMachine) -> None:
    machine.stub("id", "echo 0")
    machine.stub("apt-get")
    code, said, calls = machine.run(CI="true")
    assert (code, calls) == (0, ["id -u []", UPDATE, INSTALL, *TESTS])
    assert said == "chromium is missing: installing it from the distribution's packages\n"


def test_without_rights_it_says_what_will_fail_and_goes_on(machine: BareMachine) -> None:
    machine.stub("id", "echo 1000")
    machine.stub("sudo", "exit 1")
    machine.stub("apt-get")
    code, said, calls = machine.run(CI="true")
    assert (code, calls) == (0, ["id -u []", "sudo -n true []", *TESTS])
    assert "only root can install it" in said
    assert "the browser tests will fail" in said


def test_an_installation_that_fails_is_said(machine: BareMachine) -> None:
    machine.stub("id", "echo 0")
    machine.stub("apt-get", "exit 100")
    code, said, calls = machine.run(CI="true")
    assert (code, calls) == (0, ["id -u []", UPDATE, *TESTS])
    assert said.endswith("chromium could not be installed: the browser tests will fail\n")


@pytest.mark.parametrize(("failing", "ran"), [("install-others", 1), ("test", 1), ("docs", 2)])
def test_what_fails_ends_the_run(machine: BareMachine, failing: str, ran: int) -> None:
    """So does an installation beside the first tests, when these have ended."""
    machine.stub_python(failing)
    code, _, calls = machine.run()
    assert code == 3
    assert calls == [*TESTS[:ran]]


@pytest.mark.parametrize(("browser", "environment"), [("chromium-browser", {"CI": "true"}), (None, {})])
def test_nothing_is_installed_where_it_is_not_needed(
    machine: BareMachine, browser: str | None, environment: dict[str, str]
) -> None:
    if browser:
        machine.stub(browser)
    assert machine.run(**environment) == (0, "", [*TESTS])


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 failed"), ("", "1 skipped")])
def test_browser_tests_are_required_in_continuous_integration(tmp_path: Path, ci: str, outcome: str) -> None:
    test = tmp_path / "test_page.py"
    test.write_text(
        "from tests.support.browser import needs_chromium, pressed\n"
        "@needs_chromium\n"
        "def test_page(tmp_path):\n"
        "    pressed('<body></body>', '', tmp_path)\n",
        encoding="utf-8",
    )
    environment = {**_inherited(), "PATH": str(tmp_path), "CI": ci, "PYTHONPATH": str(CHECKOUT)}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path)]
    line = [sys.executable, "-m", "pytest", *options, str(test)]
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert f"{outcome} in" in done.stdout


def _inherited() -> dict[str, str]:
    """Return this process's variables without the options of the outer pytest, which the inner one does not know."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}


def _pytest(folder: Path, *arguments: str, **environment: str) -> str:
    """What pytest prints in a folder that has the project's settings; the checkout is importable."""
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
        *(arguments if "-n" in arguments else ("-p", "no:xdist", *arguments)),
    ]
    settings = {**_inherited(), "PYTHONPATH": str(CHECKOUT), "COLUMNS": "300", **environment}
    done = subprocess.run(line, env=settings, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    return done.stdout


@pytest.mark.parametrize(("ci", "outcome"), [("true", "1 error in"), ("", "1 skipped in")])
def test_packages_are_required_in_continuous_integration(tmp_path: Path, ci: str, outcome: str) -> None:
    needing = "from tests.support.packages import needs\nneeds('no_such_package')\nimport no_such_package\n"
    (tmp_path / "test_adapter.py").write_text(needing, encoding="utf-8")
    said = _pytest(tmp_path, "test_adapter.py", CI=ci)
    assert "no no_such_package in this environment" in said
    assert outcome in said


def test_integrations_are_collected_only_where_they_are_named(tmp_path: Path) -> None:
    (tmp_path / "tests" / "integrations" / "tool").mkdir(parents=True)
    (tmp_path / "tests" / "test_plain.py").write_text("def test_plain(): pass\n", encoding="utf-8")
    adapter = "def test_adapter(): assert False\n"
    (tmp_path / "tests" / "integrations" / "tool" / "test_adapter.py").write_text(adapter, encoding="utf-8")
    assert "1 passed in" in _pytest(tmp_path)
    assert "1 failed in" in _pytest(tmp_path, "tests/integrations")
