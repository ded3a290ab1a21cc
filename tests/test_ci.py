"""Continuous integration on a bare machine: the browser is installed, and without one nothing passes quietly."""

from __future__ import annotations

import importlib.util
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import CHECKOUT

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
        """Exit code, standard error, and the recorded calls."""
        bare = {"PATH": str(self.folder), **environment}
        done = subprocess.run(
            [CHECKOUT / ".ci" / "run"], env=bare, capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stderr, self.log.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> BareMachine:
    return BareMachine(tmp_path)


def test_what_runs_together_ends_with_the_code_of_what_fails(capfd: pytest.CaptureFixture[str]) -> None:
    """When all have ended: `make test` says what is wrong with types and what is wrong with tests."""
    spec = importlib.util.spec_from_file_location("tasks", CHECKOUT / "tasks.py")
    assert spec is not None
    assert spec.loader is not None
    tasks = importlib.util.module_from_spec(spec)
    sys.modules["tasks"] = tasks
    spec.loader.exec_module(tasks)
    python = tasks.Environment(Path(sys.prefix))
    python.run_together(("platform",), ("platform", "--terse"))
    with pytest.raises(SystemExit) as stopped:
        python.run_together(("json.tool", "no such file"), ("platform", "--terse"))
    del sys.modules["tasks"]
    assert stopped.value.code in (1, 2)
    assert "no such file" in capfd.readouterr().err


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
    environment = {**os.environ, "PATH": str(tmp_path), "CI": ci, "PYTHONPATH": str(CHECKOUT)}
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path)]
    line = [sys.executable, "-m", "pytest", *options, str(test)]
    done = subprocess.run(line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert f"{outcome} in" in done.stdout


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
        "no:xdist",
        "-p",
        "no:hypothesispytest",
        *arguments,
    ]
    settings = {**os.environ, "PYTHONPATH": str(CHECKOUT), "COLUMNS": "300", **environment}
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
