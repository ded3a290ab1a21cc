"""Continuous integration runs `tasks.py test-ci`; on a bare machine the browser is installed, or something fails."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import CHECKOUT

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


TESTS = ("python3 tasks.py test-ci []",)
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


def test_what_fails_ends_the_run(machine: BareMachine) -> None:
    machine.stub("python3", "exit 3")
    assert machine.run() == (3, "", [*TESTS])


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
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--rootdir", str(tmp_path), _temporary(tmp_path)]
    line = [sys.executable, "-m", "pytest", *options, str(test)]
    done = subprocess.run(
        line, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=MAX_SECONDS, check=False
    )
    assert f"{outcome} in" in done.stdout


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
