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

RIGHT = """
## What is right
One meaning for lists, `play`, reports, boards, the classes earned, lucky, short and missed, and chance levels:

| benchmark | an answer is right if |
|---|---|
"""
FIELD = """
The field `correct` of a score is that, but for ReplaySCM, where it is the published scorer's: train-exact, with the
root set where roots are hidden. An answer can be `correct` and not right; `heldoutExact` of the score is what counts,
and tables name the field TaskCorrect. TrainExact and HeldoutExact of Hidden-roots are of the mechanisms, whatever the
root set, as the paper prints them.
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
    parts = [HEAD, RIGHT, *(f"| {each.title} | {each.metrics.success.meaning} |\n" for each in benchmarks()), FIELD]
    for benchmark in benchmarks():
        parts.append(f"\n## {benchmark.title}\n")
        for name in benchmark.metrics.views:
            parts.append(f"\nView `{name}`:\n\n{metric_table(benchmark.metrics, name)}\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page_text(), encoding="utf-8")
