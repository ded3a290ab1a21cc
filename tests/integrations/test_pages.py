"""The environment of integrations: versions of the lock files, and code blocks of pages that need its packages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import requires, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.commands import CHECKOUT
from tests.support.packages import needs
from tests.support.pages.blocks import page_units
from tests.support.pages.declared import NOT_RUN, SETUPS, PageSetup
from tests.support.pages.sessions import session
from tests.support.pages.typed import write_page_modules

needs("inspect_ai")


pytestmark = pytest.mark.filterwarnings("ignore")  # of the packages themselves


# --- The code blocks of pages that need a package of an integration, after those blocks of the page that need none ----
GROUPS = sorted({(entry.page, entry.packages) for entry in NOT_RUN if entry.packages})
TOOLS = ("inspect", "lm_eval", "vf-validate", "vf-eval")


@pytest.mark.parametrize(("page", "packages"), GROUPS, ids=[f"{page} {packages[-1]}" for page, packages in GROUPS])
def test_the_blocks_of_a_page_run(
    page: str, packages: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(*packages)
    monkeypatch.chdir(tmp_path)
    if "datasets" in packages:
        monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    left_out = [entry for entry in NOT_RUN if entry.packages != packages]
    units = page_units(page, (CHECKOUT / page).read_text(encoding="utf-8"))
    units = [unit for unit in units if not any(entry.matches(unit) for entry in left_out)]
    setup = SETUPS.get(page, PageSetup())
    with session(tmp_path, setup, units, TOOLS) as running:
        for unit in units:
            running.run(unit)
    setup.after(tmp_path)


def test_the_editors_type_checker_accepts_the_python_of_every_page(tmp_path: Path) -> None:
    needs("basedpyright")
    files = write_page_modules(tmp_path)
    assert len(files) > 20
    settings = {"include": ["."], "extraPaths": [str(CHECKOUT)], "typeCheckingMode": "standard"}
    foreign = dict.fromkeys(
        ("reportMissingImports", "reportPrivateImportUsage"), False
    )  # TRL re-exports without __all__
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings | foreign))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "0 errors" in checked.stdout, checked.stdout + checked.stderr


# --- The tests here run with what the lock files say, and that satisfies the extra `integrations` ---------------------
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
