"""What a release states in several places, stated alike: the version, the formats, how to cite."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

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
