"""What is released: the wheel in an empty environment, lowest versions, what several places state."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import calibrant
from calibrant.audits.replayscm.certificates import certificate
from calibrant.bench.replayscm.audit import records as audits
from calibrant.bench.runs import records as runs
from calibrant.bench.version import __version__, program_version
from calibrant.dsl.replayscm.pools import records as pools
from tests.support.commands import CHECKOUT

# --- The wheel in an empty environment, beside folders named like ours ------------------------------------------------
PACKAGES = ("calibrant", "calibrant_tasks")
FOLDERS = ("dsl", "solvers", "audits", "baselines", "bench")  # beside calibrant in a checkout, below it in a wheel
OFFLINE = ("--quiet", "--disable-pip-version-check", "--no-deps", "--no-index")
PAGE = (CHECKOUT / "docs" / "own_rows.md").read_text(encoding="utf-8")


class Environment(NamedTuple):
    """A virtual environment that has the wheel, and sees the libraries of this one; a folder of the user's."""

    folder: Path
    wheel: Path
    home: Path

    def run(
        self, *command: object, tool: str = "python", where: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        line = [str(self.folder / "bin" / tool), *map(str, command)]
        return subprocess.run(
            line, cwd=where or self.home, env=clean, capture_output=True, text=True, timeout=120, check=False
        )


def _pip(*arguments: object) -> None:
    line = [sys.executable, "-m", "pip", *map(str, arguments)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    root = tmp_path_factory.mktemp("wheel")
    _pip("wheel", "--no-build-isolation", *OFFLINE, "--wheel-dir", root, CHECKOUT)
    (wheel,) = root.glob("*.whl")
    folder, home = root / "environment", root / "home"
    home.mkdir()
    venv.create(folder)
    (site,) = (folder / "lib").glob("python*/site-packages")
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    rows = root / "rows"
    rows.mkdir()
    example = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)[0]
    (project,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    (rows / "my_search.py").write_text(example, encoding="utf-8")
    (rows / "pyproject.toml").write_text(project, encoding="utf-8")
    _pip("--python", folder / "bin" / "python", "install", "--no-build-isolation", *OFFLINE, wheel, rows)
    return Environment(folder, wheel, home)


def test_the_wheel_has_our_packages_and_nothing_else(installed: Environment) -> None:
    names = zipfile.ZipFile(installed.wheel).namelist()
    assert installed.wheel.name == f"calibrant-{__version__}-py3-none-any.whl"
    assert {name.partition("/")[0] for name in names} == {*PACKAGES, f"calibrant-{__version__}.dist-info"}
    for package in PACKAGES:
        assert f"{package}/py.typed" in names
    listed = subprocess.run(["git", "ls-files"], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    roots = {**{name: f"calibrant/{name}" for name in FOLDERS}, **{name: name for name in PACKAGES}}
    sources = {
        f"{roots[package]}/{rest}"
        for package, _, rest in (line.partition("/") for line in listed.splitlines())
        if package in roots and (CHECKOUT / package / rest).is_file() and f"{package}/{rest}"[:10] != "bench/lab/"
    }
    assert {name for name in names if not name.startswith("calibrant-")} == sources


def test_the_import_is_the_wheels(installed: Environment) -> None:
    """In an environment that has the wheel alone, beside no checkout: a module that the wheel lacks shows here."""
    done = installed.run(
        "-c",
        "import calibrant, calibrant.bench; print(calibrant.__version__, calibrant.__file__, calibrant.bench.__file__)",
    )
    assert done.returncode == 0, done.stderr
    version, *files = done.stdout.split()
    assert version == __version__
    assert all(file.startswith(str(installed.folder)) for file in files)


@pytest.mark.parametrize("shadow", ["bench", "dsl"])
def test_a_folder_named_like_a_package_does_not_matter(installed: Environment, tmp_path: Path, shadow: str) -> None:
    (tmp_path / shadow).mkdir()
    (tmp_path / shadow / "__init__.py").write_text("raise RuntimeError('the user has this')\n", encoding="utf-8")
    for arguments, tool in ((("--version",), "calibrant"), (("-m", "calibrant", "--version"), "python")):
        done = installed.run(*arguments, tool=tool, where=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, f"calibrant {__version__}\n", "")
    done = installed.run("-c", f"import calibrant.{shadow} as ours; print(ours.__name__)", where=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"calibrant.{shadow}\n", "")


def test_an_import_of_a_former_name_is_refused_by_a_line_that_has_the_new_one(
    installed: Environment, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("from bench.protocols import Protocol\n", encoding="utf-8")
    done = installed.run("protocols", "mine.py", tool="calibrant", where=tmp_path)
    assert (done.returncode, done.stderr) == (2, "error  mine.py: import calibrant.bench, not bench\n")


def test_a_row_of_an_installed_package_runs_beside_ours_in_workers(installed: Environment, tmp_path: Path) -> None:
    (tmp_path / "dsl").mkdir()
    (tmp_path / "dsl" / "__init__.py").touch()
    made = installed.run(
        *("sample", "--seed", "1", "--per-stratum", "1", "--strata", "hs_n6_easy_calibration", "--out", "pool.jsonl"),
        tool="calibrant",
        where=tmp_path,
    )
    assert made.returncode == 0, made.stderr
    line = ("run", "two-roots,majority", "pool.jsonl", "--out", "runs", "--workers", "2")
    done = installed.run(*line, tool="calibrant", where=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {row.split()[1] for row in done.stdout.splitlines()[1:]} == {"two-roots", "majority"}
    assert '"code":"my-rows 1.2"' in (tmp_path / "runs" / "records.jsonl").read_text(encoding="utf-8")
    listed = installed.run("protocols", tool="calibrant", where=tmp_path).stdout
    assert "two-roots: Each mechanism is the formula of two roots that is wrong in the fewest" in listed
    assert "[my-rows 1.2]" in listed


def test_what_a_package_index_shows_has_no_link_that_needs_a_checkout(installed: Environment) -> None:
    (metadata,) = (name for name in zipfile.ZipFile(installed.wheel).namelist() if name.endswith("/METADATA"))
    _, _, shown = zipfile.ZipFile(installed.wheel).read(metadata).decode().partition("\n\n")
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    assert readme.splitlines()[0] == shown.splitlines()[0] == "# Calibrant"
    relative = re.compile(r"\]\((?!https?:|#)[^)]*\)")
    assert relative.search(readme)
    assert not relative.search(shown)
    for path in re.findall(r"\]\((docs/[^)#]*)", readme):
        assert f"`{path}" in shown


def test_links_are_absolute_once_there_is_an_address() -> None:
    spec = importlib.util.spec_from_file_location("hatch_build", CHECKOUT / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    hook = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hook)
    text = "[a](docs/a.md#b), ![c d](docs/images/c.svg), [e](https://e.org/f), [g](#h)"
    kept = "[e](https://e.org/f), [g](#h)"
    at = "https://x.org/o/n"
    page, file = f"{at}/blob/main", f"{at}/raw/main"
    assert hook.for_index(text, at) == f"[a]({page}/docs/a.md#b), ![c d]({file}/docs/images/c.svg), {kept}"
    link = '<a href="docs/a.md">a</a>'
    assert hook.for_index(link, at) == f'<a href="{page}/docs/a.md">a</a>'
    picture = '<picture>\n<source srcset="b.svg">\n<img src="c.svg" alt="A lamp."></picture>'
    assert hook.for_index(picture) == "*A lamp.*"
    absolute = picture.replace('"b.svg', f'"{file}/b.svg').replace('"c.svg', f'"{file}/c.svg')
    assert hook.for_index(picture, at) == absolute
    assert hook.for_index(text) == f"a (`docs/a.md#b`), c d: `docs/images/c.svg`, {kept}"


def test_the_source_distribution_has_the_tests_and_builds_the_same_wheel(
    installed: Environment, tmp_path: Path
) -> None:
    line = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path), "-t"]
    done = subprocess.run([*line, "sdist"], cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (source,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(source) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
        # Python 3.11.0 to 3.11.3 have no filters, and later ones warn without
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(tmp_path / "source")
    assert {
        "README.md",
        "LICENSE",
        "pyproject.toml",
        "docs/api.md",
        "bench/cli.py",
        "tests/conftest.py",
        "requirements.lock",
    } <= set(names)
    assert not [name for name in names if name.startswith((".ci", ".git/"))]
    (folder,) = (tmp_path / "source").iterdir()
    done = subprocess.run([*line, "wheel"], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    (again,) = tmp_path.glob("*.whl")
    assert _digests(again) == _digests(installed.wheel)


def _digests(wheel: Path) -> dict[str, int]:
    return {one.filename: one.CRC for one in zipfile.ZipFile(wheel).infolist()}


# --- The lowest versions that pyproject.toml allows are those that `python3 tasks.py test-lowest` installs ------------
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
ELSEWHERE = {"inspect", "verifiers", "lm-eval", "integrations", "oracles"}
"""Extras whose tests, and so whose packages, are those of `make test-integrations`, or are run by hand."""


def _pins(name: str) -> dict[str, Version]:
    """Return the versions of a lock file by name of the distribution."""
    lines = (CHECKOUT / name).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if line and not line.startswith("#"))
    return {canonicalize_name(package): Version(version) for package, version in pairs}


def _lower_bounds(lines: list[str]) -> dict[str, Version]:
    """Return the lower bound of each requirement; a requirement has exactly one, or is one version."""
    bounds: dict[str, Version] = {}
    for requirement in map(Requirement, lines):
        (bound,) = (Version(part.version) for part in requirement.specifier if part.operator in (">=", "=="))
        bounds[canonicalize_name(requirement.name)] = bound
    return bounds


def test_each_lower_bound_is_the_version_that_is_tested() -> None:
    needed = [*PROJECT["dependencies"], *(line for name in EXTRAS.keys() - ELSEWHERE for line in EXTRAS[name])]
    bounds, pins = _lower_bounds(needed), _pins("requirements-lowest.lock")
    assert len(bounds) >= 25
    assert {name: pins.get(name) for name in bounds} == bounds


def test_demo_and_tests_install_what_is_required_and_smt() -> None:
    pins, needed = _pins("requirements.lock"), [*PROJECT["dependencies"], *EXTRAS["smt"]]
    assert len(needed) > len(PROJECT["dependencies"]) > 10
    for requirement in map(Requirement, needed):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)], prereleases=True)


@pytest.mark.parametrize("extra", ["verifiers", "lm-eval"])
def test_adapters_are_tested_with_their_lowest_versions(extra: str) -> None:
    bounds, pins = _lower_bounds(EXTRAS[extra]), _pins("requirements-integrations.lock")
    assert {name: pins.get(name) for name in bounds} == bounds


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-rivals.lock", "requirements-docs.lock"])
def test_each_locked_version_installs_on_the_first_python_that_is_supported(lock: str) -> None:
    """A package may need a later bug-fix release of Python, which distributions such as Debian 12 do not have."""
    first = PROJECT["requires-python"].removeprefix(">=") + ".0"
    if not _is_installed(lock):
        pytest.skip(f"{lock} is not installed here")
    needed = {name: _required_python(name) for name in _pins(lock)}
    assert {name: python for name, python in needed.items() if not SpecifierSet(python).contains(first)} == {}


def _required_python(name: str) -> str:
    """Return the versions of Python that a package states, empty for none."""
    # all values: of a field that is missing the backport of importlib.metadata, once imported, raises KeyError
    return next(iter(distribution(name).metadata.get_all("Requires-Python") or ()), "")


def _is_installed(lock: str) -> bool:
    try:
        return all(Version(distribution(name).version) == version for name, version in _pins(lock).items())
    except PackageNotFoundError:
        return False


# --- What a release states in several places, stated alike: the version, the formats, how to cite ---------------------
CITATION = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (CHECKOUT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)[0]
    assert "version" in PROJECT["dynamic"]  # read from bench/version.py, tests/test_release.py sees it in the wheel
    assert newest == CITATION["version"] == program_version() == calibrant.__version__


def test_the_changelog_names_the_formats_versions() -> None:
    numbers = re.search(r"pool files (\d+), run records (\d+), audit records (\d+), certificates (\d+)", CHANGELOG)
    assert numbers is not None
    stated = [int(number) for number in numbers.groups()]
    assert stated == [pools.VERSION, runs.RECORD_VERSION, audits.RECORD_VERSION, certificate.VERSION]


def test_software_and_benchmark_can_be_cited() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert CITATION["type"] == "software"
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["title"].lower() == PROJECT["name"]
    (benchmark,) = CITATION["references"]
    assert benchmark["identifiers"][0]["value"] == "arXiv:2605.08197"


SOUND = {
    "tags": ["v0.1.0"],
    "status": "",
    "changelog": "# Changelog\n\n## 0.2.0 (2027-01-31)\n\n## 0.1.0 (2026-12-01)\n",
    "history": '{"machine": {"calibrant": "0.2.0"}, "ratios": {}}\n',
}


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({}, None),
        ({"tags": ["v0.1.0", "v0.2.0"]}, "the tag v0.2.0 exists"),
        ({"status": " M README.md\n"}, "not committed"),
        ({"changelog": "## 0.2.0 (unreleased)\n"}, r"no heading '## 0\.2\.0 \(YYYY-MM-DD\)'"),
        ({"changelog": "## 0.2.01 (2027-01-31)\n"}, r"no heading '## 0\.2\.0 \(YYYY-MM-DD\)'"),
        ({"history": '{"machine": {"calibrant": "0.1.0"}, "ratios": {}}\n'}, "has no line of 0.2.0"),
        ({"history": ""}, "has no line of 0.2.0"),
    ],
)
def test_each_problem_of_a_release_is_named(changed: dict[str, Any], reason: str | None) -> None:
    problems = list(tasks_module().release_problems("0.2.0", **(SOUND | changed)))
    assert len(problems) == (reason is not None)
    assert reason is None or re.search(reason, problems[0])


def tasks_module() -> ModuleType:
    specification = importlib.util.spec_from_file_location("release_tasks", CHECKOUT / "tasks.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module


# --- The README's worked problem needs public names alone, and its links lead somewhere -------------------------------
README = (CHECKOUT / "README.md").read_text(encoding="utf-8")


def test_the_worked_problem_needs_only_public_names() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert re.findall(r"^(?:import|from) .*", code, re.MULTILINE) == ["import calibrant"]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:docs|dsl|solvers|audits|bench)/[\w/.]+)`", README))))
def test_files_that_are_named_exist(name: str) -> None:
    assert (CHECKOUT / name).exists()
