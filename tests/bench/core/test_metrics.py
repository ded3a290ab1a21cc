"""The metrics of every benchmark: each with a meaning, on the page of metrics."""

from __future__ import annotations

from typing import Any

import pytest

from calibrant.bench.core.benchmark import Benchmark
from calibrant.bench.core.metrics import Metric, View
from calibrant.bench.core.registry import benchmarks
from tests.support.pages.metric_tables import PAGE, page_text


def test_the_page_of_metrics_is_written_from_the_declarations() -> None:
    assert PAGE.read_text("utf-8") == page_text(), "python -m tests.support.pages.metric_tables"


@pytest.mark.parametrize("benchmark", benchmarks(), ids=lambda benchmark: benchmark.name)
def test_every_metric_has_a_meaning_and_a_key_of_its_own(benchmark: Benchmark[Any]) -> None:
    metrics = [metric for view in benchmark.metrics.views.values() for metric in view.metrics]
    assert len({metric.key for metric in metrics}) == len(metrics)
    for metric in metrics:
        assert len(metric.meaning) >= 10
        assert not metric.meaning.endswith(".")


def test_a_caption_explains_what_is_shown() -> None:
    metrics = [Metric(key, key.upper(), f"means {key}", lambda verdict: None) for key in ("a", "b", "c")]
    assert View(tuple(metrics), note="Of all.").caption({"a", "c"}) == "Of all. A: means a. C: means c."
    assert View(tuple(metrics)).caption(()) == ""
