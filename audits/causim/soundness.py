"""Soundness of a causal question: its record is true of it, and it has an answer."""

from __future__ import annotations

from functools import lru_cache

import msgspec

from calibrant.audits.causim.answer_summary import UNCOUNTED, summarize_answers
from calibrant.audits.soundness import ItemIdentity, Soundness
from calibrant.dsl.causim.item import CausimItem, load_model
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.prompt import ProseStyle
from calibrant.dsl.causim.prose import prose, read_prose, read_uniform_prose, same_model, uniform_prose
from calibrant.dsl.causim.question import scenario_of
from calibrant.dsl.causim.topology import TOPOLOGIES, graph_of, satisfies
from calibrant.dsl.errors import short_repr
from calibrant.solvers.causim.canonical import model_keys
from calibrant.solvers.causim.generation import BUILT_IN
from calibrant.solvers.causim.space import WorldSpace


def world_fits(item: CausimItem) -> str | None:
    """Return why the sealed world does not fit the question; "" if it does, None without one."""
    if not item.sealed.world:
        return None
    fits = WorldSpace(item.task.model, item.task.question).fits(item.sealed.world)
    return "" if fits else "the fixed noise or the evidence is of another world"


def labels_hold(item: CausimItem) -> str | None:
    """Compare size and flags with the answer set; None if all that was computed holds and something was not."""
    labels, summary = item.labels, summarize_answers(item)
    stated = [labels.trivial, labels.effect_all, labels.effect_some, labels.copy]
    computed = [item.task.question.is_trivial(item.task.model), *(summary.effect or (None, None)), summary.copy]
    names = ["trivial", "effect_all", "effect_some", "copy"]
    wrong = [
        f"{name} {label}, found {value}"
        for name, label, value in zip(names, stated, computed, strict=True)
        if label is not None and label != value and name.partition("_")[0] not in summary.not_checked
    ]
    if summary.size is not None and summary.size != labels.size:
        wrong.insert(0, f"size {labels.size}, found {summary.size}")
    elif summary.min_size > labels.size:
        wrong.insert(0, f"size {labels.size}, found at least {summary.min_size}")
    return "; ".join(wrong) if wrong or not summary.not_checked else None


def scenario_holds(item: CausimItem) -> str | None:
    """Compare the scenario (deterministic, stochastic, impossible) with the number of answers."""
    summary = summarize_answers(item)
    if summary.size is None and summary.min_size < 2:
        return None
    number = summary.min_size if summary.size is None else summary.size
    scenario = scenario_of(number)
    return (
        "" if scenario == item.task.scenario else f"said to be {item.task.scenario}, with {number} answers {scenario}"
    )


def version_holds(item: CausimItem) -> str:
    """Compare v with the number of nodes."""
    nodes = len(item.task.model)
    return "" if item.version == nodes else f"v {item.version}, but the program has {nodes} nodes"


def topology_holds(item: CausimItem) -> str | None:
    """Return why the graph does not have the stated topology; None for built-in models and without a topology."""
    if not item.topology or item.topology in BUILT_IN:
        return None
    if item.topology not in TOPOLOGIES:
        return f"unknown topology {short_repr(item.topology)}; known: {', '.join((*TOPOLOGIES, *BUILT_IN))}"
    return "" if satisfies(graph_of(item.task.model), item.topology) else f"the graph is no {item.topology}"


def prose_holds(item: CausimItem) -> str | None:
    """Return why the prose that a prompt shows is not read back as the program; None for prompts with the program."""
    return None if item.task.view == "code" else _prose_fault(item.task.source, item.task.style)


@lru_cache(maxsize=512)  # items about one program follow one another
def _prose_fault(source: str, style: ProseStyle) -> str:
    model = load_model(source)
    try:
        read = read_prose(prose(model)) if style == "sentences" else read_uniform_prose(uniform_prose(model))
    except ModelError as error:
        return str(error)
    return "" if same_model(read, model) else "its prose means another model"


def explain_undecided(item: CausimItem) -> str | None:
    """Return why no right answer is certain to exist; several right answers are no obstacle."""
    summary = summarize_answers(item)
    if summary.not_checked:
        return f"{UNCOUNTED}; not checked: {', '.join(summary.not_checked)}"
    return "" if summary.size else "no answer is right"


def duplicate_key(item: CausimItem) -> bytes:
    """Encode program, question, scenario, view and style."""
    return msgspec.json.encode((item.task.source, item.task.question, item.task.scenario, _look(item)))


def _look(item: CausimItem) -> str:
    return item.task.view if item.task.view == "code" else f"{item.task.view} {item.task.style}"


IDENTITY = ItemIdentity(
    "programs",
    duplicate_key,
    lambda item: model_keys(item.task.model)[:1],
    lambda item: model_keys(item.task.model)[1],
)
SOUNDNESS = Soundness(
    {
        "the sealed world fits the question": world_fits,
        "stated labels are those of the question": labels_hold,
        "the scenario is that of its answers": scenario_holds,
        "v is the number of nodes": version_holds,
        "the topology is that of the graph": topology_holds,
        "prose is read back as the program": prose_holds,
    },
    explain_undecided,
    IDENTITY,
)
