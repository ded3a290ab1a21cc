"""Blocks of the pages that need a package of an integration, in the pages' order and with what stands before them."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tests.support.pages.blocks import PAGES, page_name, page_units
from tests.support.pages.declared import NOT_RUN, SETUPS, PageSetup
from tests.support.pages.sessions import session

TOOLS = ("inspect", "vf-validate", "vf-eval", "lm_eval")
pytestmark = pytest.mark.filterwarnings("ignore")  # of torch, transformers and trl
NEEDING_PACKAGES = [entry for entry in NOT_RUN if entry.packages]


PAGES_RUN = ("docs/hub.md",)  # those of Inspect, TRL and verifiers have tests of their own in this folder


@pytest.mark.parametrize("page", PAGES_RUN)
def test_the_blocks_of_a_page_run_with_their_packages(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {name for entry in NEEDING_PACKAGES if entry.page == page for name in entry.packages}
    missing = {name for name in missing if importlib.util.find_spec(name) is None}
    assert not missing, "python3 tasks.py test-integrations has an environment with all of them"
    monkeypatch.chdir(tmp_path)
    (path,) = (path for path in PAGES if page_name(path) == page)
    left_out = [entry for entry in NOT_RUN if not entry.packages]
    units = [unit for unit in page_units(page, path.read_text("utf-8")) if not any(e.matches(unit) for e in left_out)]
    with session(tmp_path, SETUPS.get(page, PageSetup()), units, TOOLS) as running:
        for unit in units:
            running.run(unit)
