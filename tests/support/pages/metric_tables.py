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

## One rate, one interval
Each rate has one value and one interval wherever it is printed: by `table`, in every table and on the first screen of
a report, in printed papers' tables beside the paper's own rows, on boards, in lists and in Inspect's means.

- `n` counts the items of the row that were answered. `Coverage`, shown where it is below 1, is that number over all
  items of the row's pools, those of other settings and strata included.
- The unit is the item. Of several answers to an item their mean counts; of equally good answers of a method (ties)
  the mean over all of them, and what the tie rule chose stands beside it, named "chosen".
- A conditional rate is a ratio of sums over items: an item of whose two answers one is in the denominator counts
  half.
- Of people the unit is the participant: the mean over participants of their own means.
- Intervals are of 95 %. *share*: Wilson's, at as many items as the denominator has. *mean*: Student's t. Where items
  share a latent model (an SCM, a program) both are clustered by it: variance G/(G-1) sum (s_u - rate n_u)^2 / n^2 for
  G models with sums s_u over n_u items, Student's t with G-1 degrees; a share within .1 of 0 or 1 has Wilson's at G.
  One model has no interval. *ratio*: percentile bootstrap over models, numerator and denominator drawn together. Of
  people: participants and items are drawn again.

Coverage of 95 % intervals, simulated with 6, 12, 24 and 60 models of 1 to 4 items, rates .5, .2 and .05 (600 samples
each): clustered .92 to 1.00, percentile bootstrap .87 to .99.
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
        interval = "ratio" if metric.skill_of else "share" if metric.is_share else "mean"
        heading = metric.heading.replace("|", "\\|")
        rows.append(f"| `{metric.key}` | {heading} | {metric.meaning}{conditional} | {interval} |")
    return "\n".join(["| key | heading | meaning | interval |", "|---|---|---|---|", *rows])


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
