"""The lowest versions that pyproject.toml allows are those that `python3 tasks.py test-lowest` installs."""

from __future__ import annotations

import tomllib

import pytest
from packaging.requirements import Requirement
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


@pytest.mark.parametrize("extra", ["verifiers", "lm-eval"])
def test_adapters_are_tested_with_their_lowest_versions(extra: str) -> None:
    bounds, pins = _lower_bounds(EXTRAS[extra]), _pins("requirements-integrations.lock")
    assert {name: pins.get(name) for name in bounds} == bounds
