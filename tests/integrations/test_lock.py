"""The tests here run with what the lock files say, and that satisfies the extra `integrations`."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

from packaging.requirements import Requirement

from tests.support.packages import needs

needs("inspect_ai")

CHECKOUT = Path(__file__).resolve().parent.parent.parent


def _pinned(name: str) -> dict[str, str]:
    lines = (CHECKOUT / name).read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if not line.startswith("#"))


def _needed(extra: str) -> Iterator[Requirement]:
    """Yield the requirements of an extra of the project, through the extras that it names."""
    for requirement in map(Requirement, requires("calibrant") or ()):
        if requirement.marker and requirement.marker.evaluate({"extra": extra}):
            if requirement.name == "calibrant":
                for named in requirement.extras:
                    yield from _needed(named)
            elif "extra" in str(requirement.marker):
                yield requirement


def test_installed_versions_are_those_of_the_lock_files() -> None:
    wanted = _pinned("requirements.lock") | _pinned("requirements-integrations.lock")
    assert {name: version(name).partition("+")[0] for name in wanted} == wanted


def test_the_locked_versions_satisfy_the_extra() -> None:
    needed = list(_needed("integrations"))
    assert "inspect-ai" in {requirement.name for requirement in needed}
    assert [str(one) for one in needed if version(one.name) not in one.specifier] == []
