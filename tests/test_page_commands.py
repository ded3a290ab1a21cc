"""What the pages print runs: docs/hub.md from its commands to its items; every name that a page imports exists."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import re
import shlex
from pathlib import Path

import pytest

from tests.support.commands import CHECKOUT, called

HUB = (CHECKOUT / "docs" / "hub.md").read_text(encoding="utf-8")
IMPORTED = re.compile(r"^\s*from ((?:bench|calibrant|dsl|solvers|audits|baselines)[\w.]*) import (.+)$", re.MULTILINE)
PAGES = [CHECKOUT / "README.md", *sorted((CHECKOUT / "docs").glob("*.md"))]


def test_the_page_on_the_hub_leads_from_a_pool_to_a_data_set_and_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if importlib.util.find_spec("pyarrow") is None:
        pytest.skip("no pyarrow in this environment; `make test-integrations` and `make test-lowest` have it")
    monkeypatch.chdir(tmp_path)
    (console,) = re.findall(r"```console\n(.*?)```", HUB, re.DOTALL)
    lines = console.splitlines()
    for line, printed in zip(lines[::2], lines[1::2], strict=True):
        done = called(*shlex.split(line.removeprefix("$ calibrant ")))
        assert (done.returncode, (done.stdout + done.stderr).splitlines()[-1]) == (0, printed)
    code = re.findall(r"```python\n(.*?)```", HUB, re.DOTALL)[-1]
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "hub.md", "exec"), {"__name__": "page"})
    assert out.getvalue().splitlines() == re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_that_a_page_imports_from_the_project_exists(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for module, names in IMPORTED.findall(block):
            if module != "calibrant.inspect":  # its tests are in tests/integrations
                for name in names.split(","):
                    assert hasattr(importlib.import_module(module), name.strip()), f"{module}.{name}"
