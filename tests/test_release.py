"""What a release states in several places, stated alike: the version, the formats, how to cite."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

import calibrant
from calibrant.audits.replayscm.certificates import certificate
from calibrant.bench.replayscm.audit import records as audits
from calibrant.bench.runs import records as runs
from calibrant.bench.version import program_version
from calibrant.dsl.replayscm.pools import records as pools

ROOT = Path(__file__).resolve().parent.parent
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_the_version_is_the_same_everywhere() -> None:
    newest = re.findall(r"^## (\S+)", CHANGELOG, re.MULTILINE)[0]
    assert "version" in PROJECT["dynamic"]  # read from bench/version.py, tests/test_wheel.py sees it in the wheel
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
    specification = importlib.util.spec_from_file_location("release_tasks", ROOT / "tasks.py")
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module  # dataclasses look their module up
    specification.loader.exec_module(module)
    return module
