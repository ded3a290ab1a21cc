"""The graph that a run stated, beside what its evidence proves: a picture made from the run's attribution.

Before anything is done the picture is of the item: what its records alone prove.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from calibrant.audits.causalab.attribution import attribute_run
from calibrant.bench.causalab.fields import GRAPH
from calibrant.bench.causalab.verdict import attributions_record
from calibrant.bench.pages.graphs import EdgeStatus, GraphPicture
from calibrant.dsl.causalab.episode import LabEpisode, LabStep
from calibrant.dsl.causalab.hypothesis import state_mechanism
from calibrant.dsl.causalab.item import LabItem
from calibrant.dsl.causalab.mechanism import FREQUENCY
from calibrant.dsl.episode import replay_actions


def run_picture(title: str, item: LabItem, steps: Sequence[LabStep]) -> GraphPicture:
    """Return what a run stated and did; `BudgetSpent` where the mechanisms left are not counted."""
    attribution = attributions_record(attribute_run(item, steps), item.task.nodes)
    picture = lab_picture(title, attribution, item.task.nodes)
    assert picture is not None
    return picture


def item_picture(item: LabItem, *, reveal_sealed: bool) -> GraphPicture:
    """Return what is certain before anything is set; `BudgetSpent` as above.

    reveal_sealed: with the true edges as if they were stated
    """
    title = f"{item.id}, {'the true edges' if reveal_sealed else 'edges'} beside what the first measurements prove"
    truth = {"submit": {"hypothesis": state_mechanism(item.sealed.mechanism)}}
    picture = run_picture(title, item, replay_actions(LabEpisode(item), [truth] if reveal_sealed else []).steps)
    remainder = picture.remark.split("; ")[1]  # of a run there would be kinds before it
    return replace(picture, remark=f"{'the truth' if reveal_sealed else 'nothing'} stated; {remainder}")


def lab_picture(title: str, attribution: Mapping[str, Any], nodes: Iterable[str] = ()) -> GraphPicture | None:
    """None if the attribution was recorded without edges.

    said: the attribution as records keep it; nodes: all there are, where they are known, else those of the edges
    """
    graph = attribution[GRAPH]
    if any(str(kind) not in graph for kind in EdgeStatus):
        return None
    edges = {kind: tuple((str(parent), str(child)) for parent, child in graph[str(kind)]) for kind in EdgeStatus}
    settings = tuple((str(name), float(value)) for name, value in attribution["set"])
    names = {
        *nodes,
        *(name for name, _ in settings),
        *(end for kind in edges.values() for edge in kind for end in edge),
    }
    ordered = (*sorted(names - {FREQUENCY}), FREQUENCY)
    return GraphPicture(title, _remark(attribution, graph), ordered, edges, settings)


def _remark(attribution: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    members = attribution["members"]
    count_text = "1 mechanism left" if members == "1" else f"{_shorten_number(members)} mechanisms left"
    foreign = f"; {graph['foreign']} stated edges name something else" if graph["foreign"] else ""
    return f"frequency {attribution['kind']}, graph {graph['kind']}; {count_text}{foreign}"


def _shorten_number(number: str) -> str:
    return f"{int(number):,}" if len(number) <= 7 else f"{Decimal(number):.1e}".replace("e+", "e")
