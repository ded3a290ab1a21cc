"""Which protocols a command's argument names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import ClassVar

import pytest

from calibrant.bench.cli import main
from calibrant.bench.protocols import Protocol, chosen_protocols, describe_protocol, protocols_of
from calibrant.bench.replayscm.benchmark import BENCHMARK
from calibrant.bench.replayscm.rows import listed
from calibrant.bench.runs.records import folder_records
from calibrant.dsl.errors import CalibrantError, MissingExtraError
from calibrant.dsl.replayscm.pools.files import write_pool
from tests.support.stub_protocols import Stub, small_pool

REAL = protocols_of(BENCHMARK)


class Other(Stub, frozen=True):
    """Answers like the stub under another name."""

    name = "other"


class Unavailable(Protocol, frozen=True):
    """Needs what nobody has."""

    name: ClassVar[str] = "unavailable"

    def require(self) -> None:
        raise MissingExtraError("unavailable", "nothing")


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROWS", "PLAIN"):
        monkeypatch.setattr(listed, name, (Stub, Unavailable, Other))


def test_one_protocol_takes_options_several_do_not() -> None:
    assert chosen_protocols(protocols_of(BENCHMARK), "stub", {"pause": "0.5"}) == [Stub(pause=0.5)]
    assert chosen_protocols(protocols_of(BENCHMARK), "other, stub", {}) == [Other(), Stub()]
    with pytest.raises(CalibrantError, match="options are for one protocol at a time, not for 'other,stub'"):
        chosen_protocols(protocols_of(BENCHMARK), "other,stub", {"pause": "0.5"})
    with pytest.raises(CalibrantError, match="unknown protocol 'nope'; known: stub, unavailable, other"):
        chosen_protocols(protocols_of(BENCHMARK), "stub,nope", {})


def test_all_are_those_whose_libraries_are_there() -> None:
    assert chosen_protocols(protocols_of(BENCHMARK), "all", {}) == [Stub(), Other()]
    assert chosen_protocols(protocols_of(BENCHMARK), "unavailable", {}) == [Unavailable()]


def test_several_protocols_fill_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pool, out = tmp_path / "pool.jsonl", tmp_path / "out"
    write_pool(small_pool(["good", "or"]), pool)
    assert main(["run", "stub,other", str(pool), "--out", str(out), "--workers", "1"]) == 0
    printed = capsys.readouterr()
    assert printed.err.splitlines()[:2] == [
        "stub: 2 instances answered, 0 had a record already",
        "other: 2 instances answered, 0 had a record already",
    ]
    assert {(r.protocol, r.instance) for r in folder_records(out)} == {
        (p, i) for p in ("stub", "other") for i in ("I0", "I1")
    }


def test_protocols_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["protocols", "static"]) == 0
    assert capsys.readouterr().out.startswith("[Extended blickets]\nstatic: Exact, for a detector with one rule")
    assert main(["protocols"]) == 0
    text = capsys.readouterr().out
    assert "stub: Answers X3 = (and X1 X2) everywhere after a pause.\n" in text
    assert main(["protocols", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(one["name"], bool(one["missing"])) for one in listed[:3]] == [
        ("stub", False),
        ("unavailable", True),
        ("other", False),
    ]
    assert listed[0]["options"] == {"pause": 0.0, "warm_up_pause": 0.0}


@pytest.mark.parametrize("name", REAL)
def test_every_real_protocol_says_what_it_does_in_one_line(name: str) -> None:
    says = describe_protocol(REAL[name])["says"]
    assert says.endswith(".")
    assert len(says) < 250
