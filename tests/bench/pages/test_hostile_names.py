"""No page that is written holds what acts on a terminal, whatever ids and names the files give."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.bench.core.registry import benchmark
from calibrant.dsl.item import Pool
from tests.bench.terminal.test_streams import NAME, acting
from tests.support.replayscm.pool_texts import native_file, native_record


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    return native_file([native_record(NAME), native_record("plain")], tmp_path)


PAGES = [
    ("causim", ["show", "POOL", NAME, "--html", "OUT"]),
    ("causim", ["show", "POOL", NAME, "--gold", "--html", "OUT"]),
    ("causalab", ["show", "POOL", NAME, "--html", "OUT"]),
    ("blickets", ["play", "POOL", NAME, "--html", "OUT"]),
    ("blickets", ["show", "POOL", NAME, "--run", "RUN", "--html", "OUT"]),
    ("causalab", ["show", "POOL", NAME, "--run", "RUN", "--html", "OUT"]),
    ("replayscm", ["audit", "POOL", "--workers", "1", "--html", "OUT"]),
    *[("replayscm", ["report", "RUN", "--out", f"OUT.{form}"]) for form in ("html", "md", "csv", "tex")],
    *[(of, ["report", "RUN", "--out", "OUT.html"]) for of in ("blickets", "causalab", "causim", "logic")],
    ("logic", ["show", "POOL", NAME, "--html", "OUT"]),
]
ROW = {"replayscm": "exact", "blickets": "static", "causalab": "abstain", "causim": "copy", "logic": "greedy"}


def _hostile_pool(of: str, pool: Path, folder: Path) -> Path:
    if of == "replayscm":
        return pool
    path = folder / f"{of}.jsonl"
    item = replace(calibrant.generate(1, of=of), id=NAME)  # type: ignore[call-overload]
    benchmark(of).items.write_pool(Pool(NAME, of, (item,), {}), path)
    return path


@pytest.mark.parametrize(("of", "line"), PAGES)
def test_no_page_holds_what_acts_on_a_terminal(
    of: str,
    line: list[str],
    pool: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path, out, run = _hostile_pool(of, pool, tmp_path), tmp_path / "page", tmp_path / "run"
    monkeypatch.setattr("sys.stdin", io.StringIO("place A\n"))
    if "RUN" in line:
        assert main(["run", ROW[of], str(path), "--out", str(run), "--workers", "1"]) == 0
    capsys.readouterr()
    words = [str(path) if w == "POOL" else str(run) if w == "RUN" else w.replace("OUT", str(out)) for w in line]
    assert main(words) in (0, 1)
    assert acting("".join(capsys.readouterr())) == set()
    (page,) = tmp_path.glob("page*")
    text = page.read_text(encoding="utf-8")
    assert acting(text) == set()
    assert "I1" in text or "item-" in text or line[0] == "report"
