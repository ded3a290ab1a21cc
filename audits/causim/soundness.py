"""Whether a causal question is what its record says, and has an answer."""

from __future__ import annotations

import msgspec

from calibrant.audits.causim.examined import UNCOUNTED, examined
from calibrant.audits.soundness import Soundness
from calibrant.dsl.causim.item import CausimItem
from calibrant.dsl.causim.question import scenario_of
from calibrant.dsl.causim.topology import TOPOLOGIES, satisfies
from calibrant.dsl.causim.verifier import graph_of
from calibrant.dsl.errors import short_repr
from calibrant.solvers.causim.items import BUILT_IN
from calibrant.solvers.causim.space import WorldSpace


def world_fits(item: CausimItem) -> str | None:
    """The world that the question was drawn from agrees with all that it gives."""
    if not item.sealed.world:
        return None
    fits = WorldSpace(item.task.model, item.task.question).fits(item.sealed.world)
    return "" if fits else "the fixed noise or the evidence is of another world"


def labels_hold(item: CausimItem) -> str | None:
    """Size and flags from the answer set; None where all that could be worked out holds, and something could not."""
    labels, known = item.labels, examined(item)
    stated = [labels.trivial, labels.effect_all, labels.effect_some, labels.copy]
    found = [item.task.question.is_trivial(item.task.model), *(known.effect or (None, None)), known.copy]
    names = ["trivial", "effect_all", "effect_some", "copy"]
    wrong = [
        f"{name} {told}, found {true}"
        for name, told, true in zip(names, stated, found, strict=True)
        if told is not None and told != true and name.partition("_")[0] not in known.not_checked
    ]
    if known.size is not None and known.size != labels.size:
        wrong.insert(0, f"size {labels.size}, found {known.size}")
    elif known.least > labels.size:
        wrong.insert(0, f"size {labels.size}, found at least {known.least}")
    return "; ".join(wrong) if wrong or not known.not_checked else None


def scenario_holds(item: CausimItem) -> str | None:
    """Deterministic, stochastic or impossible, by the number of answers; two are enough to tell."""
    known = examined(item)
    if known.size is None and known.least < 2:
        return None
    number = known.least if known.size is None else known.size
    found = scenario_of(number)
    return "" if found == item.task.scenario else f"said to be {item.task.scenario}, with {number} answers {found}"


def version_holds(item: CausimItem) -> str:
    """v is the number of nodes."""
    nodes = len(item.task.model)
    return "" if item.version == nodes else f"v {item.version}, but the program has {nodes} nodes"


def topology_holds(item: CausimItem) -> str | None:
    """The topology is one of the six and that of the graph, or the name of a built-in model."""
    if not item.topology or item.topology in BUILT_IN:
        return None
    if item.topology not in TOPOLOGIES:
        return f"unknown topology {short_repr(item.topology)}; known: {', '.join((*TOPOLOGIES, *BUILT_IN))}"
    return "" if satisfies(graph_of(item.task.model), item.topology) else f"the graph is no {item.topology}"


def undecided(item: CausimItem) -> str | None:
    """No answer is right, or none could be counted; any member counts, so several are no obstacle."""
    known = examined(item)
    if known.not_checked:
        return f"{UNCOUNTED}; not checked: {', '.join(known.not_checked)}"
    return "" if known.size else "no answer is right"


def same(item: CausimItem) -> bytes | None:
    """Program, question and what is said of it."""
    return msgspec.json.encode((item.task.source, item.task.question, item.task.scenario, item.task.view))


SOUNDNESS = Soundness(
    {
        "the sealed world fits the question": world_fits,
        "stated labels are those of the question": labels_hold,
        "the scenario is that of its answers": scenario_holds,
        "v is the number of nodes": version_holds,
        "the topology is that of the graph": topology_holds,
    },
    undecided,
    same,
)
