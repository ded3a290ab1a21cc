"""Items as Inspect's samples, and back: a sample carries its item, so that its log is scored again without the pool.

Metadata of a sample: benchmark, pool, poolDigest, setting, stratum, cluster (items that share it are drawn together)
and record, the item's native record. The record holds what is sealed; models are sent the messages only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser

from bench.benchmarks.base import Benchmark
from bench.benchmarks.registry import benchmark, benchmark_of
from dsl.errors import CalibrantError, in_one_line
from dsl.item import Item
from dsl.pool_text import pool_digest

CLUSTER = "cluster"
_KEPT = 4_096  # items; the epochs of a sample ask for the same one


class SampleItem(NamedTuple):
    """An item and its benchmark."""

    benchmark: Benchmark[Any]
    item: Any


def pool_dataset(path: Path, wanted: str) -> Dataset:
    """The samples of a pool; `CalibrantError` if it is not one of the wanted benchmark."""
    of = benchmark_of(path)
    if of.name != wanted:
        raise CalibrantError(f"{path.name}: a pool of '{of.name}'; the task is calibrant/{of.name}")
    pool, digest = of.read_pool(path), pool_digest(path)
    samples = [_sample(of, item, {"pool": pool.name, "poolDigest": digest}) for item in pool.items]
    return MemoryDataset(samples, name=pool.name, location=str(path))


def _sample(of: Benchmark[Any], item: Item[Any, Any], pool: Mapping[str, str]) -> Sample:
    metadata = {
        "benchmark": of.name,
        **pool,
        "setting": item.setting,
        "stratum": item.stratum,
        CLUSTER: of.unit(item),
        "record": of.record(item),
    }
    return Sample(input=_messages(of, item), id=item.id, metadata=metadata)


def _messages(of: Benchmark[Any], item: Item[Any, Any]) -> list[ChatMessage]:
    """The prompt, and what an episode shows before anything is done."""
    made: list[ChatMessage] = [
        (ChatMessageSystem if message["role"] == "system" else ChatMessageUser)(content=message["content"])
        for message in of.messages(item)
    ]
    if of.transcripts:
        episode = of.episode(item)
        made[-1].content = "\n\n".join([made[-1].text, *(of.told(episode, step) for step in episode.steps)])
    return made


def item_of(metadata: Mapping[str, Any]) -> SampleItem:
    """The item of a sample; `CalibrantError` if it is of another task, or has no record that can be meant."""
    name, record = metadata.get("benchmark"), metadata.get("record")
    if not isinstance(name, str) or not isinstance(record, Mapping):
        raise CalibrantError("this sample is of another task: its metadata has no benchmark and no record")
    try:
        text = msgspec.json.encode(record)
    except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise CalibrantError(f"the record of this sample is not JSON: {in_one_line(str(error))[:200]}") from None
    return _item(name, text)


@lru_cache(maxsize=_KEPT)
def _item(name: str, record: bytes) -> SampleItem:
    of = benchmark(name)
    return SampleItem(of, of.item_of_record(msgspec.json.decode(record)))
