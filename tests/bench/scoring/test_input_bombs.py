"""Small files that hold more than memory: one line on standard error, exit code 2, bounded memory and time.

Each is refused before what it holds is made. On the code before the limits: 4.7 GB for the line of empty lists,
5.1 GB for the log, a MemoryError with its traceback for the line without end.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from calibrant.bench.core.registry import benchmark, bundled_pools
from calibrant.dsl.parse_limits import MAX_JSON_BYTES
from tests.support.peak_memory import MEGABYTE, command_cost, repeated_gzip

POOL = bundled_pools()[0]
INSTANCE = benchmark("replayscm").items.read_pool(POOL).items[0].id
MAX_PEAK = 700  # megabytes; a line of the largest size, decoded, beside the 150 of the program
MAX_SECONDS = 60.0  # of the processor; 3 to 25
HANGING = 400.0  # seconds of the clock
LISTS = b"[]," * MEGABYTE
NESTED = json.dumps({"id": INSTANCE}).encode()[:-1]

Bomb = Callable[[Path], list[object]]


def _line_without_end(folder: Path) -> list[object]:
    file = repeated_gzip(folder / "said.jsonl.gz", NESTED + b', "response": "', b"x" * (64 * MEGABYTE), 64, b'"}\n')
    return ["score", POOL, file]


def _empty_lists(folder: Path) -> list[object]:
    file = repeated_gzip(folder / "said.jsonl.gz", NESTED + b', "answer": [', LISTS, 70, b"[]]}\n")
    return ["score", POOL, file]


def _empty_lists_within_the_bytes(folder: Path) -> list[object]:
    file = repeated_gzip(folder / "said.jsonl.gz", NESTED + b', "answer": [', LISTS, 20, b"[]]}\n")
    return ["score", POOL, file]


def _objects_in_a_response(folder: Path) -> list[object]:
    block = b"{{{" * MEGABYTE
    return ["score", POOL, repeated_gzip(folder / "said.gz", NESTED + b', "response": "', block, 20, b'"}\n')]


def _table_of_verdicts(folder: Path) -> list[object]:
    return ["table", repeated_gzip(folder / "verdicts.gz", b'{"x": [', LISTS, 20, b"[]]}\n")]


def _log(folder: Path, blocks: int) -> list[object]:
    log = folder / "log.eval"
    with zipfile.ZipFile(log, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps({"eval": {"model": "m", "dataset": {"sample_ids": [INSTANCE]}}}))
        with archive.open(f"samples/{INSTANCE}_epoch_1.json", "w", force_zip64=True) as sample:
            sample.write(NESTED + b', "events": [')
            for _ in range(blocks):
                sample.write(LISTS)
            sample.write(b"[]]}")
    return ["score", POOL, log]


def _log_of_lists(folder: Path) -> list[object]:
    return _log(folder, 63)


def _log_of_lists_within_the_bytes(folder: Path) -> list[object]:
    return _log(folder, 20)


def _native_pool(folder: Path) -> list[object]:
    header = b'{"format": "calibrant-pool", "version": 1, "benchmark": "blickets", "metadata": {"x": ['
    return ["pool", "stats", repeated_gzip(folder / "pool.jsonl", header, LISTS, 20, b"[]]}}\n")]


def _native_pool_of_one_line(folder: Path) -> list[object]:
    header = b'{"format": "calibrant-pool", "version": 1, "benchmark": "blickets", "name": "'
    return ["pool", "stats", repeated_gzip(folder / "pool.jsonl", header, b"x" * MEGABYTE, 200, b'"}\n')]


def _yaml_pool(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.yaml", b"problems: [", LISTS, 70, b"[]]\n")]


def _yaml_pool_with_an_anchor(folder: Path) -> list[object]:
    return ["pool", "stats", repeated_gzip(folder / "pool.yaml", b"a: &a 1\nproblems: [", LISTS, 2, b"[]]\n")]


def _records(folder: Path) -> list[object]:
    (folder / "run").mkdir()
    (folder / "run" / "records.jsonl").write_bytes(b'{"pool": "p", "x": [' + LISTS * 20 + b"[]]}\n")
    return ["table", folder / "run"]


BOMBS: list[Bomb] = [
    _line_without_end,
    _empty_lists,
    _empty_lists_within_the_bytes,
    _objects_in_a_response,
    _table_of_verdicts,
    _log_of_lists,
    _log_of_lists_within_the_bytes,
    _native_pool,
    _native_pool_of_one_line,
    _yaml_pool,
    _yaml_pool_with_an_anchor,
    _records,
]


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_one_line(tmp_path: Path, bomb: Bomb) -> None:
    cost = command_cost(*bomb(tmp_path), limit=HANGING)
    assert cost.code == 2, cost
    assert cost.error.startswith("error  "), cost
    assert cost.error.count("\n") == 1, cost
    assert cost.peak < MAX_PEAK, cost
    assert cost.seconds < MAX_SECONDS, cost


def test_a_certificate_of_lists_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "certificate.json"
    file.write_bytes(b'{"x": [' + LISTS * 20 + b"[]]}")
    cost = command_cost("verify", file, POOL, limit=HANGING)
    assert (cost.code, cost.error) == (1, ""), cost
    assert cost.peak < MAX_PEAK, cost
    assert cost.seconds < MAX_SECONDS, cost


def test_a_long_honest_line_is_scored(tmp_path: Path) -> None:
    """Commas, quotes and brackets of prose are no structure: 40 MB of it stay a response."""
    text = 'He said: "a, b, c", and then [d]. ' * (40 * MEGABYTE // 34)
    assert MAX_JSON_BYTES // 2 < len(text) < MAX_JSON_BYTES
    file = tmp_path / "said.jsonl"
    file.write_text(json.dumps({"id": INSTANCE, "response": text}) + "\n", encoding="utf-8")
    cost = command_cost("score", POOL, file, limit=HANGING)
    assert cost.code == 0, cost
