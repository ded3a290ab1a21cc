"""Refused pools say which item it is, what is allowed there, and what to do; the documented items are read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from calibrant.bench.core.registry import benchmark_of
from calibrant.dsl.errors import PoolError
from calibrant.dsl.replayscm.pools.files import read_pool
from tests.support.commands import CHECKOUT, called, jsonl
from tests.support.replayscm.lamp import HEADER, lamp_record


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"sealed": {"gold": {"X3": {"a": 1}}}}, ("'lamp'", "line 2", "prefix form", '{"X3": "(and X1 X2)"}')),
        ({"sealed": {"gold": {"X3": "X1 and X2", "X4": "X3"}}}, ("lamp", "sealed.gold.X3", "such as (and X1 X2)")),
        ({"sealed": {"heldout": ["000"]}}, ("'lamp'", '"rows": ["000", "111"]')),
        ({"disclosure": {"type": "hidden-order", "roots": []}}, ("ordered, blocks, hidden_order, hidden_roots",)),
        ({"knd": "x"}, ("unknown field `knd`", "did you mean 'kind'?")),
    ],
)
def test_a_refusal_names_the_item_and_what_is_allowed(
    changes: dict[str, Any], parts: tuple[str, ...], tmp_path: Path
) -> None:
    pool = jsonl(tmp_path / "mine.jsonl", HEADER, lamp_record() | changes)
    with pytest.raises(PoolError) as refused:
        read_pool(pool)
    assert all(part in str(refused.value) for part in parts), refused.value


def test_a_pool_without_a_header_is_told_to_add_one(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match=r'begins with a header: .*"format": "calibrant-pool", "version": 1'):
        benchmark_of(jsonl(tmp_path / "mine.jsonl", lamp_record()))


def test_documented_items_are_pools_whose_gold_replays(tmp_path: Path) -> None:
    text = (CHECKOUT / "docs" / "pools.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```json\n(.*?)```", text, re.S)
    assert len(blocks) == 3
    for block in blocks:
        (tmp_path / "documented.jsonl").write_text(block, encoding="utf-8")
        done = called("pool", "check", tmp_path / "documented.jsonl")
        assert (done.returncode, done.stderr) == (0, "")
    assert '"gold"' in blocks[1]
    assert '"heldout"' in blocks[1]
