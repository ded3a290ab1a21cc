"""The lowest versions that pyproject.toml allows are those that `python3 tasks.py test-lowest` installs."""

from __future__ import annotations

import tomllib
from importlib.metadata import PackageNotFoundError, distribution

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.commands import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
ADAPTERS = {"inspect", "verifiers", "lm-eval", "integrations"}
"""Extras whose tests, and so whose packages, are those of `make test-integrations`."""


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
    needed = [*PROJECT["dependencies"], *(line for name in EXTRAS.keys() - ADAPTERS for line in EXTRAS[name])]
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
