"""Every command that writes, one after another in this process: `python -m tests.support.every_writer FOLDER POOL`.

In a fresh process with another hash seed the files have to be the same, but for times.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from calibrant.bench.cli import main
from calibrant.bench.core.registry import bundled_pool


def lines(folder: Path, pool: Path) -> Iterator[list[object]]:
    """Command lines; what one writes, later ones read. pool: for the audits, where hash seeds once showed."""
    small = folder / "small.jsonl"
    yield ["pool", "convert", bundled_pool("hidden-order"), folder / "converted.jsonl"]
    small.write_text("".join((folder / "converted.jsonl").read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8")
    roots = folder / "roots.jsonl"
    roots.write_text("".join(bundled_pool("hidden-roots").read_text("utf-8").splitlines(keepends=True)[:2]), "utf-8")
    for index, one in enumerate((pool, small, roots)):
        written = ["--out", folder / f"audit{index}", "--html", folder / f"audit{index}.html"]
        yield [
            "audit",
            one,
            *written,
            "--certificates",
            folder / f"certificates{index}",
            "--workers",
            "1",
            "--details",
        ]
        yield [
            "harden",
            one,
            "--out",
            folder / f"hard{index}.jsonl",
            "--report",
            folder / f"hard{index}.report.jsonl",
            "--workers",
            "1",
        ]
    yield ["harden", small, "--out", folder / "extra.jsonl", "--mode", "extra-worlds", "--workers", "1"]
    yield ["sample", "--seed", "1", "--per-stratum", "1", "--out", folder / "sample.jsonl"]
    line = ["generate", "--seed", "1", "--per-stratum", "1", "--strata", "hs_n6_easy_calibration,vhs_n8_dense"]
    yield [*line, "--out", folder / "generated.jsonl", "--workers", "1"]
    protocols = "exact,staged-exact-search,bnlearn+dsl,posterior,first-found"
    yield ["run", protocols, small, roots, "--out", folder / "run", "--workers", "1"]
    yield ["alternatives", folder / "run", "--out", folder / "alternatives.jsonl"]
    yield ["pool", "alternatives", small, folder / "items.jsonl", "--seed", "1"]
    yield ["prompts", small, "--out", folder / "prompts.jsonl"]
    yield ["separate", small, "CAL_hs_n6_easy_calibration_20000000", "--targets", "2"]


def codes(folder: Path, pool: Path) -> Iterator[str]:
    """Run them; each with its exit code."""
    for line in lines(folder, pool):
        yield f"{line[0]}: {main([str(word) for word in line])}"


if __name__ == "__main__":
    for said in codes(Path(sys.argv[1]), Path(sys.argv[2])):
        print(said)
