"""State of an item as its page shows it, ready for JSON: the public part, readings, the draft. Nothing sealed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Any

from calibrant.bench.pages.graphs import Graph, GraphNode, draw_together
from calibrant.bench.play.game import Game
from calibrant.bench.play.plan import AID


def item_state(game: Game, *, with_cells: bool, aid: Path | None = None) -> dict[str, Any]:
    """Return the state of a game for its page.

    with_cells: also which cells of the evidence the draft's formulas fit; aid: whose text is shown too
    """
    words, item = game.pool.words, game.shown
    steps = [
        {
            "action": dict(step.action),
            "reading": step.reading,
            "refused": step.refused,
            "cost": step.cost,
        }
        for step in game.steps
    ]
    described = game.step_text(game.steps[-1]) if game.steps else ""
    state: dict[str, Any] = {
        "id": item.id,
        "kind": words.kind[0].capitalize(),
        "opening": words.opening(item),
        "view": words.view(item),
        "steps": steps,
        "moves": game.num_moves,
        "left": game.num_left,
        "closed": game.closed,
        "draft": dict(game.draft),
        "can_undo": game.earlier_draft is not None,
        "problems": dict(words.problems(item, game.draft)),
        "last": described.partition("\n")[0],
    }
    graph = words.graph(item, game.draft)
    if graph is not None:
        loop = _loop(graph)
        state |= {"loop": loop} if loop else {"picture": _picture(graph)}
    if with_cells:
        state["cells"] = dict(words.cells(item, game.position))
    if aid is not None:
        state[AID] = game.aid_text(aid)
    return state


def _loop(parents: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the variables of a loop, each a cause of the next, the first again at the end; empty without one."""
    try:
        TopologicalSorter(parents).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def _picture(parents: Mapping[str, Sequence[str]]) -> str:
    """Return an SVG of the graph that a draft states."""
    edges = [f"{cause} to {effect}" for effect, causes in parents.items() for cause in causes]
    label = f"The graph that you wrote: {', '.join(edges) or 'no causes yet'}"
    graph = Graph(parents, {name: GraphNode(name) for name in parents}, label)
    (picture,) = draw_together([graph], "draft")
    return picture
