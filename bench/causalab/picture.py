"""The graph that a run stated, beside what its evidence proves: a picture made from the run's attribution."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from bench.answers.causalab import GRAPH
from bench.pages.graph import GraphPicture, Standing
from dsl.causalab.mechanism import FREQUENCY


def lab_picture(title: str, said: Mapping[str, Any], nodes: Iterable[str] = ()) -> GraphPicture | None:
    """None if the attribution was recorded without edges.

    said: the attribution as records keep it; nodes: all there are, where they are known, else those of the edges
    """
    graph = said[GRAPH]
    if any(str(kind) not in graph for kind in Standing):
        return None
    edges = {kind: tuple((str(parent), str(child)) for parent, child in graph[str(kind)]) for kind in Standing}
    settings = tuple((str(name), float(value)) for name, value in said["set"])
    named = {
        *nodes,
        *(name for name, _ in settings),
        *(end for kind in edges.values() for edge in kind for end in edge),
    }
    ordered = (*sorted(named - {FREQUENCY}), FREQUENCY)
    return GraphPicture(title, _remark(said, graph), ordered, edges, settings)


def _remark(said: Mapping[str, Any], graph: Mapping[str, Any]) -> str:
    members = said["members"]
    left = "1 mechanism left" if members == "1" else f"{_shortened(members)} mechanisms left"
    foreign = f"; {graph['foreign']} stated edges name something else" if graph["foreign"] else ""
    return f"frequency {said['kind']}, graph {graph['kind']}; {left}{foreign}"


def _shortened(number: str) -> str:
    return f"{int(number):,}" if len(number) <= 7 else f"{Decimal(number):.1e}".replace("e+", "e")
