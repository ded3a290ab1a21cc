"""CauSim items: a program with one question about it; the world that the question was drawn from is sealed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal, TypeAlias

from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.model import Model, Symbol, plain
from calibrant.dsl.causim.prompt import ProseStyle, View, facts, prompt
from calibrant.dsl.causim.question import Question, Scenario
from calibrant.dsl.errors import in_one_line
from calibrant.dsl.pictures import Picture, Pictured, PictureEdge

BENCHMARK = "causim"
Vocabulary: TypeAlias = Literal["nonsense", "medical", "other"]


@lru_cache(maxsize=1536)  # holds the programs of 5,000 items of suites, 140 kB each
def load_model(source: str) -> Model:
    """Return the model of a program (cached)."""
    return load_source(source)


@dataclass(frozen=True)
class Task:
    """All that a solver may read.

    source: the program, without comments
    scenario: whether one, several or no answers are right
    view: whether the prompt shows the program or prose; style: of the prose
    """

    source: str
    question: Question
    scenario: Scenario
    view: View = "code"
    style: ProseStyle = "sentences"

    def __repr__(self) -> str:
        return f"<Task: {self.question.type}, {self.scenario}>"

    @property
    def model(self) -> Model:
        return load_model(self.source)

    @property
    def prompt(self) -> str:
        return prompt(self.model, self.question, self.scenario, source=self.source, view=self.view, style=self.style)

    @property
    def facts(self) -> tuple[str, ...]:
        """The paragraphs of the prompt before the format of replies."""
        return facts(self.model, self.question, self.scenario, source=self.source, view=self.view, style=self.style)


@dataclass(frozen=True)
class Labels:
    """The difficulty labels of a question; None where a label does not apply.

    size: number of right answers
    trivial: `do` covers every required key
    effect_all, effect_some: `do` changes a node outside `do` in all, in some worlds that fit
    copy: the evidence with `do` written over it is right
    """

    size: int
    trivial: bool
    effect_all: bool | None = None
    effect_some: bool | None = None
    copy: bool | None = None


@dataclass(frozen=True)
class Sealed:
    """world: the value of every noise variable in the world that the question was drawn from; empty if unknown."""

    world: Mapping[str, Symbol] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Sealed: {'a' if self.world else 'no'} world>"


@dataclass(frozen=True)
class CausimItem(Pictured):
    """One question.

    scm, version: id of its program, and the program's number of nodes
    topology: one of the six, or the name of a built-in model, else empty
    vocabulary: of the program's values; "other" if the program was not generated here
    """

    id: str
    task: Task
    labels: Labels
    sealed: Sealed = field(default_factory=Sealed)
    scm: str = ""
    version: int = 0
    topology: str = ""
    vocabulary: Vocabulary = "nonsense"

    def picture(self) -> Picture:
        """Return the graph of the program and the question."""
        model = self.task.model
        edges = tuple(PictureEdge(parent, node.name) for node in model.nodes for parent in node.parents)
        nodes = {node.name: node.noise for node in model.nodes}
        question = "\n".join(self.task.facts[-3:])  # type, givens and task
        return Picture(f"{self.id}: {self.setting}", (), nodes, edges, text=question, code=self.task.source)

    def __repr__(self) -> str:
        return f"<CausimItem {in_one_line(self.id)[:60]}: {self.setting}, {self.version} nodes>"

    @property
    def benchmark(self) -> str:
        return BENCHMARK

    @property
    def setting(self) -> str:
        """Type and scenario of the question."""
        return f"{self.task.question.type}-{self.task.scenario}"

    @property
    def stratum(self) -> str:
        """Topology and number of nodes."""
        return f"{self.topology or 'other'}-{self.version:02d}"


# --- Fields of a task for templates of prompts ------------------------------------------------------------------------
TEMPLATE_FIELDS: Final[Mapping[str, str]] = {
    "instance": "public id of the item",
    "view": "code or prose: what the model is shown as",
    "model": "text of the model: the program, or sentences",
    "type": "type of question: counterfactual, intervention and others",
    "scenario": "deterministic, stochastic or impossible: whether one answer is right",
    "fixed": "noise that is given, by name",
    "unknown": "names of the noise that is not",
    "do": "values that are set, by name; types with an intervention alone",
    "observed": "evidence, by name; types with evidence alone",
    "task": "sentence that asks",
    "required_keys": "keys that an answer has",
}


def template_fields(task: Task) -> dict[str, object]:
    """Return the template fields of a task; a field that does not apply is None."""
    question, model = task.question, task.model
    shown_model, sentence = task.facts[1], task.facts[-1]
    return {
        "view": task.view,
        "model": shown_model.removeprefix("```python\n").removesuffix("\n```"),
        "type": question.type,
        "scenario": task.scenario,
        "fixed": plain(question.fixed),
        "unknown": list(question.unknown),
        "do": plain(question.do) if question.form.has_do else None,
        "observed": plain(question.observed) if question.form.has_evidence else None,
        "task": sentence,
        "required_keys": list(question.required_keys(model)),
    }
