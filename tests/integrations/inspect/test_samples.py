"""Samples of a large pool, made when they are asked for, are those of a small one that are kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.packages import needs

needs("inspect_ai")

from inspect_ai.dataset import Dataset, MemoryDataset, Sample

import calibrant.dsl.records
from calibrant.bench.core.registry import bundled_files
from calibrant.inspect.samples import StoredSamples, pool_dataset


def said(samples: Any) -> list[Any]:
    """All of each sample but the names that Inspect draws for messages."""
    return [one.model_dump(exclude={"input": {"__all__": {"id"}}}) for one in samples]


def last_letters(sample: Sample) -> str:
    return str(sample.id)[::-1]


def is_wanted(sample: Sample) -> bool:
    return str(sample.id)[-1] in "02468"


@pytest.mark.parametrize("benchmark", ["replayscm", "blickets"])
def test_stored_samples_are_the_samples(benchmark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bundled_files()[benchmark][0]
    kept: Dataset = pool_dataset(path, benchmark)
    assert isinstance(kept, MemoryDataset)
    monkeypatch.setattr(calibrant.dsl.records, "MAX_CACHED_ITEMS", 1)
    stored: Dataset = pool_dataset(path, benchmark)
    assert isinstance(stored, StoredSamples)
    assert (stored.name, stored.location, stored.shuffled) == (kept.name, kept.location, False)
    assert said(stored) == said(kept)
    for dataset in (stored, kept):
        dataset.shuffle(seed=4)
        dataset.shuffle_choices(seed=4)
    assert stored.shuffled
    assert said(stored) == said(kept)
    assert said(stored[1:9:2]) == said(kept[1:9:2])
    assert said([stored[-1]]) == said([kept[-1]])
    some = stored.filter(is_wanted, name="even")
    assert some.name == "even"
    assert 0 < len(some) < len(stored)
    assert said(some) == said(kept.filter(is_wanted))
    for dataset in (stored, kept):
        dataset.sort()
    assert said(stored) == said(kept)
    for dataset in (stored, kept):
        dataset.sort(reverse=True, key=last_letters)
    assert said(stored) == said(kept)
