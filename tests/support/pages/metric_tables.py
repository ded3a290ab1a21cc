"""Tables of the metrics of each benchmark, for docs/metrics.md: `python -m tests.support.pages.metric_tables`."""

from __future__ import annotations

from calibrant.bench.core.metrics import MetricSet
from calibrant.bench.core.registry import benchmarks
from tests.support.commands import CHECKOUT

PAGE = CHECKOUT / "docs" / "metrics.md"
HEAD = """# Metrics

The rates and means that `calibrant table` and `calibrant report` show, by benchmark and view. `--columns` takes a view
or keys; `--json` has all keys. A conditional one is over some of the answers: over 1 to 5 of them it is shown as *.
The tables are written from `METRICS` in `verdict.py` of each benchmark: `python -m tests.support.pages.metric_tables`.
"""


def metric_table(metrics: MetricSet, view: str) -> str:
    """Return a Markdown table of a view's metrics."""
    rows = []
    for metric in metrics.views[view].metrics:
        conditional = ", conditional" if metric.conditional else ""
        heading = metric.heading.replace("|", "\\|")
        rows.append(f"| `{metric.key}` | {heading} | {metric.meaning}{conditional} |")
    return "\n".join(["| key | heading | meaning |", "|---|---|---|", *rows])


def page_text() -> str:
    """Return the page."""
    parts = [HEAD]
    for benchmark in benchmarks():
        parts.append(f"\n## {benchmark.title}\n")
        for name in benchmark.metrics.views:
            parts.append(f"\nView `{name}`:\n\n{metric_table(benchmark.metrics, name)}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
