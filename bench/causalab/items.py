"""Items of CausaLab as pool files, records, prompts and pictures, and statistics of a pool.

The picture of an item shows the edges that its records prove before any step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from math import comb
from pathlib import Path
from statistics import fmean, pvariance
from typing import Any

import msgspec

from calibrant.bench.causalab.scoring import GRAPH, attributions_record
from calibrant.bench.core.capabilities import PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread, tally
from calibrant.bench.pages.graphs import EdgeStatus, GraphPicture, graph_text
from calibrant.dsl.causalab.configs import is_suite, suite_pool
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY, state_mechanism, winnable
from calibrant.dsl.causalab.prompt import TEMPLATE_FIELDS, Phase, messages, phase_messages, template_fields
from calibrant.dsl.causalab.records import LabRecord, item_of_record, read_pool, record_of_item, write_pool
from calibrant.dsl.episode import replay_actions
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.item import Message, Pool
from calibrant.dsl.records import Header, convert_object
from calibrant.solvers.outcome import BudgetSpent

# --- Items as pool files, records and prompts -------------------------------------------------------------------------


class LabItems(ItemFormats[LabItem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "family",
        "properties",
        "freq_parent",
        "noise",
        "weights",
        "settable",
        "records",
        "trace",
        "baseline",
        "reactor",
        "allowance",
        "tries",
        "reading",
        "wording",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        return Header, LabRecord

    def read_pool(self, path: Path) -> Pool[LabItem]:
        """Read a native pool, or a released suite, whose configs get new crystals, sampled with seed 0."""
        return suite_pool(path, seed=0) if is_suite(path) else read_pool(path)

    def write_pool(self, pool: Pool[LabItem], path: Path) -> None:
        write_pool(pool, path)

    def record(self, item: LabItem) -> dict[str, Any]:
        return dict(msgspec.to_builtins(record_of_item(item)))

    def item_of_record(self, record: Mapping[str, Any]) -> LabItem:
        return item_of_record(convert_object(record, LabRecord))

    def prompt(self, item: LabItem) -> str:
        return "\n\n".join(message["content"] for message in self.messages(item))

    def messages(self, item: LabItem) -> list[Message]:
        return messages(item.task)

    def drawing(self, item: LabItem, *, reveal_sealed: bool) -> str:

        return drawing(item, reveal_sealed=reveal_sealed)


PROMPT_FIELDS = PromptFields(
    TEMPLATE_FIELDS,
    template_fields,
    Path(__file__).parent / "data" / "prompt.j2",
)

ITEMS = LabItems()


def phase_prompt(item: LabItem, phase: Phase) -> list[Message]:
    """Return the messages of one phase of the paper's protocol."""
    return phase_messages(item.task, phase)


# --- Statistics of laboratories: nodes, edges, allowances, visible parts, noise and labels ----------------------------


def _label(name: str) -> PoolStatistic[LabItem]:
    return PoolStatistic(lambda item: (item.sealed.labels[name],) if name in item.sealed.labels else (), spread)


def _mean(numbers: Sequence[float]) -> float | None:
    return fmean(numbers) if numbers else None


def _variance(numbers: Sequence[float]) -> float | None:
    """Return the population variance, as Table 1 has it."""
    return pvariance(numbers) if numbers else None


def _num_edges(item: LabItem) -> tuple[int]:
    return (len(item.sealed.mechanism.edges),)


def _motifs(end: int) -> PoolStatistic[LabItem]:
    """Return the mean number of pairs of edges that share an end; end 0: forks, end 1: colliders.

    Pairs whose other ends are adjacent count too.
    """

    def num_pairs(item: LabItem) -> tuple[int]:
        degrees = Counter(edge[end] for edge in item.sealed.mechanism.edges)
        return (sum(comb(degree, 2) for degree in degrees.values()),)

    return PoolStatistic(num_pairs, _mean)


# name -> (values of an item, then their summary over the items of a group)
COLUMNS: Mapping[str, PoolStatistic[LabItem]] = {
    "n": PoolStatistic(lambda item: (True,), len),
    "nodes": PoolStatistic(lambda item: (len(item.task.nodes),), span),
    "edges": PoolStatistic(_num_edges, spread),
    "edge_mean": PoolStatistic(_num_edges, _mean),
    "edge_variance": PoolStatistic(_num_edges, _variance),
    "fork_mean": _motifs(0),
    "collider_mean": _motifs(1),
    "allowance": PoolStatistic(lambda item: (item.task.allowance,), span),
    "settable": PoolStatistic(lambda item: (len(item.task.settable),), span),
    "records": PoolStatistic(lambda item: (len(item.task.records),), span),
    "traced": PoolStatistic(lambda item: (len(item.task.trace),), span),
    "family": PoolStatistic(lambda item: (item.task.family,), tally),
    "noise": PoolStatistic(lambda item: (item.task.noise,), share),
    "freq_parent": PoolStatistic(lambda item: (item.task.freq_parent,), share),
    "target": PoolStatistic(lambda item: (item.sealed.target,), spread),
    "winnable": PoolStatistic(lambda item: (winnable(item.sealed.target, item.task.tries),), share),
    "members": _label("members"),
    "fewest_settings": _label("fewest_settings"),
}
STATISTICS = PoolStatistics(COLUMNS, lambda item: item.stratum)


# --- The graph that a run stated, beside the edges that its evidence proves, from the run's attribution ---------------


def run_picture(title: str, item: LabItem, steps: Sequence[LabStep]) -> GraphPicture:
    """Return the picture of a run's stated graph; `BudgetSpent` if the consistent mechanisms are too many to count."""
    from calibrant.audits.causalab.attribution import attribute_run  # scoring answers of a pool needs no audit

    attribution = attributions_record(attribute_run(item, steps), item.task.nodes)
    picture = lab_picture(title, attribution, item.task.nodes)
    assert picture is not None
    return picture


def item_picture(item: LabItem, *, reveal_sealed: bool) -> GraphPicture:
    """Return the picture of the edges that are certain before any intervention; `BudgetSpent` as for `run_picture`.

    reveal_sealed: whether to draw the true edges, as if a run had stated them
    """
    title = f"{item.id}, {'the true edges' if reveal_sealed else 'edges'} beside what the first measurements prove"
    truth = {"submit": {"hypothesis": state_mechanism(item.sealed.mechanism)}}
    picture = run_picture(title, item, replay_actions(LabEpisode(item), [truth] if reveal_sealed else []).steps)
    remainder = picture.remark.split("; ")[1]  # without the attribution kinds, which need a run
    return replace(picture, remark=f"{'the truth' if reveal_sealed else 'nothing'} stated; {remainder}")


def lab_picture(title: str, attribution: Mapping[str, Any], nodes: Iterable[str] = ()) -> GraphPicture | None:
    """Return the picture of a recorded attribution; None if it was recorded without edges.

    nodes: all nodes if known; else those of the edges are drawn
    """
    graph = attribution[GRAPH]
    if any(str(status) not in graph for status in EdgeStatus):
        return None
    edges = {status: tuple((str(parent), str(child)) for parent, child in graph[str(status)]) for status in EdgeStatus}
    settings = tuple((str(name), float(value)) for name, value in attribution["set"])
    names = {
        *nodes,
        *(name for name, _ in settings),
        *(end for same_status in edges.values() for edge in same_status for end in edge),
    }
    ordered = (*sorted(names - {FREQUENCY}), FREQUENCY)
    return GraphPicture(title, _remark(attribution, graph), ordered, edges, settings)


def _remark(attribution: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    members = attribution["members"]  # a decimal text: the count may be arbitrarily large
    count_text = "1 mechanism left" if members == "1" else f"{_shorten_number(members)} mechanisms left"
    foreign = f"; {graph['foreign']} stated edges name something else" if graph["foreign"] else ""
    return f"frequency {attribution['kind']}, graph {graph['kind']}; {count_text}{foreign}"


def _shorten_number(number: str) -> str:
    return f"{int(number):,}" if len(number) <= 7 else f"{Decimal(number):.1e}".replace("e+", "e")


# --- Laboratories as text: the graph that their records prove, and the true one if it is revealed ---------------------


def drawing(item: LabItem, *, reveal_sealed: bool) -> str:
    """Return the graph as text; empty if the consistent mechanisms are too many to count."""
    try:
        return graph_text(item_picture(item, reveal_sealed=reveal_sealed))
    except BudgetSpent:
        return ""


@contextmanager
def refuse_uncounted(item: LabItem) -> Iterator[None]:
    """Turn `BudgetSpent` into a `CalibrantError` about the item."""
    try:
        yield
    except BudgetSpent as spent:
        raise CalibrantError(f"{in_one_line(item.id)}: no picture: {spent}") from None
