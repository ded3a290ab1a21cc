"""Items as Inspect's samples, and back: a sample holds its item, so that its log can be scored without the pool.

The id of a sample is the public one. Metadata: benchmark, pool, poolDigest, setting, stratum, cluster (items that share
it are drawn together) and record, the item's native record. The record holds what is sealed; models are sent the
messages only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple, overload

import msgspec
from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.model import ChatMessage, ChatMessageSystem, ChatMessageUser

from calibrant.bench.core.benchmark import Benchmark, PublicIds
from calibrant.bench.core.registry import benchmark, benchmark_of
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.item import Item
from calibrant.dsl.records import StoredItems, pool_digest

CLUSTER = "cluster"
_KEPT = 4_096  # cached items, because the epochs of a sample need the same item


class SampleItem(NamedTuple):
    """An item and its benchmark."""

    benchmark: Benchmark[Any]
    item: Any


def pool_dataset(path: Path, wanted: str) -> Dataset:
    """Return the samples of a pool; `CalibrantError` if it is not one of the requested benchmark."""
    bench = benchmark_of(path)
    if bench.name != wanted:
        raise CalibrantError(f"{path.name}: a pool of '{bench.name}'; the task is calibrant/{bench.name}")
    pool, digest = bench.items.read_pool(path), pool_digest(path)
    sample = partial(_sample, bench, {"pool": pool.name, "poolDigest": digest}, PublicIds.of_pool(path, pool.items))
    if isinstance(pool.items, StoredItems):
        return StoredSamples(pool.items, range(len(pool)), sample, DatasetLabels(pool.name, str(path)))
    return MemoryDataset([sample(item) for item in pool.items], name=pool.name, location=str(path))


class DatasetLabels(NamedTuple):
    """Name, location and order of a dataset, as Inspect requires them."""

    name: str
    location: str
    shuffled: bool = False


class StoredSamples(Dataset):
    """Samples of a large pool, each created from its item at every access; changes to a sample are lost.

    order: which items, one after the other
    """

    def __init__(
        self, items: Sequence[Any], order: Sequence[int], sample: Callable[[Any], Sample], labels: DatasetLabels
    ) -> None:
        self._items, self._order, self._sample, self._labels = items, order, sample, labels

    @property
    def name(self) -> str:
        return self._labels.name

    @property
    def location(self) -> str:
        return self._labels.location

    @property
    def shuffled(self) -> bool:
        return self._labels.shuffled

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Dataset: ...
    def __getitem__(self, index: int | slice) -> Sample | Dataset:
        if isinstance(index, slice):
            return StoredSamples(self._items, self._order[index], self._sample, self._labels)
        return self._sample(self._items[self._order[index]])

    def __len__(self) -> int:
        return len(self._order)

    def sort(self, reverse: bool = False, key: Callable[[Sample], Any] | None = None) -> None:
        keys = {index: (key or _length)(sample) for index, sample in zip(self._order, self, strict=True)}
        self._order = sorted(self._order, key=keys.__getitem__, reverse=reverse)

    def filter(self, predicate: Callable[[Sample], bool], name: str | None = None) -> Dataset:
        order = [index for index, sample in zip(self._order, self, strict=True) if predicate(sample)]
        return StoredSamples(self._items, order, self._sample, self._labels._replace(name=name or self.name))

    def shuffle(self, seed: int | None = None) -> None:
        order = list(self._order)
        (random if seed is None else random.Random(seed)).shuffle(order)
        self._order, self._labels = order, self._labels._replace(shuffled=True)

    def shuffle_choices(self, seed: int | None = None) -> None:
        """Do nothing, because samples have no choices."""


def _length(sample: Sample) -> int:
    """Return the number of characters of the messages, Inspect's default sort key."""
    prompt = sample.input
    return len(prompt) if isinstance(prompt, str) else sum(len(message.text) for message in prompt)


def _sample(bench: Benchmark[Any], pool: Mapping[str, str], public: PublicIds, item: Item[Any, Any]) -> Sample:
    metadata = {
        "benchmark": bench.name,
        **pool,
        "setting": item.setting,
        "stratum": item.stratum,
        CLUSTER: bench.metrics.unit_of(item),
        "record": bench.items.record(item),
    }
    return Sample(input=_messages(bench, item), id=public.public(item.id), metadata=metadata)


def _messages(bench: Benchmark[Any], item: Item[Any, Any]) -> list[ChatMessage]:
    """Return the prompt and, for an interactive item, the messages before the first action."""
    messages: list[ChatMessage] = [
        (ChatMessageSystem if message["role"] == "system" else ChatMessageUser)(content=message["content"])
        for message in bench.items.messages(item)
    ]
    if bench.is_interactive(item) and not bench.play.prompts_show_opening:
        episode = bench.play.open(item)
        messages[-1].content = "\n\n".join(
            [messages[-1].text, *(bench.play.describe(episode, step) for step in episode.steps)]
        )
    return messages


def item_of(metadata: Mapping[str, Any]) -> SampleItem:
    """Return the item of a sample; `CalibrantError` if the sample is of another task or has no valid record."""
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
    bench = benchmark(name)
    return SampleItem(bench, bench.items.item_of_record(msgspec.json.decode(record)))
