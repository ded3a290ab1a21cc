"""The methods `exact` and `staged-exact-search`, answer objects that methods share, and canonical presentations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from random import Random
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict

import msgspec
from msgspec import Meta

from calibrant.bench.protocols import Presentation, Protocol, ProtocolResult, Ties, nothing_found, replace_words
from calibrant.bench.replayscm.rows.episodes import answer_extended, is_extended
from calibrant.dsl.errors import require_extra
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import render
from calibrant.dsl.replayscm.episode import ScmEpisode, shown_worlds, task_class
from calibrant.dsl.replayscm.extensions.extension import Contexts, Extension
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel
from calibrant.solvers.replayscm.canonical import (
    PanelOrder,
    canonical_task,
    rename_problem,
    unchanged_order,
    variable_colours,
)

if TYPE_CHECKING:
    from calibrant.solvers.replayscm.alternative import AlternativeAnswer
    from calibrant.solvers.replayscm.exact import ExactAnswer

# --- Answer objects of ReplaySCM tasks --------------------------------------------------------------------------------


def scm_answer(kind: TaskKind, model: Scm) -> dict[str, Any]:
    """Return a model as the answer object of a task that asks for one."""
    mechanisms = {variable: _text(mechanism) for variable, mechanism in model.mechanisms.items()}
    if kind is TaskKind.ROOTS:
        return {"roots": list(model.roots), "mechanisms": mechanisms}
    return {"mechanisms": mechanisms}


@lru_cache(maxsize=1 << 12)  # equally good answers share nearly all mechanisms
def _text(mechanism: Formula) -> str:
    return render(mechanism)


def alternative_answer(alternative: AlternativeAnswer) -> dict[str, Any]:
    """Return an Alternative-SCM answer object: the alternative, its experiment and the witness."""
    return {
        "alternative": scm_answer(TaskKind.SCM, alternative.model),
        "experiment": alternative.separation.experiment.to_dict(),
        "witness": dict(alternative.witness),
    }


def no_answer(kind: TaskKind) -> dict[str, Any]:
    """Return an empty answer in the task's schema; it scores as invalid."""
    match kind:
        case TaskKind.SCM | TaskKind.EPISODE:
            return {"mechanisms": {}}
        case TaskKind.ROOTS:
            return {"roots": [], "mechanisms": {}}
        case TaskKind.ALTERNATIVE:
            return {"alternative": {"mechanisms": {}}, "experiment": {}, "witness": {}}


# --- Base of methods for plain items: they refuse episodes and hidden variables with a reason -------------------------


class PlainRow(Protocol, frozen=True):
    """Base of methods for plain items; under noise they treat the rows as noise-free."""

    reads_canonical = True

    def refusal(self, handout: object) -> str:
        if not isinstance(handout, Task):
            return f"{self.name} answers no episodes"
        if handout.extension is not None and handout.extension.hidden:
            return f"{self.name} answers no items with hidden variables"
        return ""


# --- The protocol `exact`: the train-exact SCM of least total formula size --------------------------------------------
MAX_PARENTS = 6  # the solver's own limit


class EngineArguments(TypedDict, total=False):
    """Arguments of solvers.replayscm.exact.solve."""

    engine: str
    seconds: float | None


class Exact(PlainRow, frozen=True):
    """The smallest formulas that reproduce every row shown, with proof; rates are means over all least ones.

    With noise or hidden variables the most probable SCM, of several the smallest; an episode is given greedy's worlds.

    max_parents: how many variables a mechanism may mention
    """

    name = "exact"
    max_parents: int = 5

    def __post_init__(self) -> None:
        if not 1 <= self.max_parents <= MAX_PARENTS:
            raise ValueError(f"max_parents is {self.max_parents}; it has to be 1 to {MAX_PARENTS}")

    @property
    def engine_arguments(self) -> EngineArguments:
        """The engine that chooses parent sets, and its time limit."""
        return {}

    def warm_up(self) -> None:
        self.answer(warming_task())

    def refusal(self, handout: object) -> str:
        return ""

    def answer(self, task: Task) -> ProtocolResult:
        if is_extended(task):
            return answer_extended(self.name, task)
        from calibrant.solvers.outcome import Found
        from calibrant.solvers.replayscm.alternative import find_alternative  # imports the compiler
        from calibrant.solvers.replayscm.exact import solve

        if task.kind is TaskKind.ALTERNATIVE:
            alternative = find_alternative(task, max_parents=min(self.max_parents, 4))
            if isinstance(alternative, Found):
                return ProtocolResult(
                    "found",
                    alternative_answer(alternative.value),
                    alternative.value.size,
                    dict(alternative.value.provenance),
                )
            return nothing_found(alternative)
        outcome = solve(task, max_parents=self.max_parents, **self.engine_arguments)
        if isinstance(outcome, Found):
            solution = outcome.value
            ties = least_ties(task, solution, self.max_parents)
            answer = scm_answer(task.kind, solution.model)
            return ProtocolResult("found", answer, solution.size, dict(solution.provenance), ties)
        return nothing_found(outcome)


def least_ties(task: Task, solution: ExactAnswer, max_parents: int) -> Ties:
    """Return all smallest SCMs of a task, or a sample of them."""
    from calibrant.solvers.outcome import Found
    from calibrant.solvers.replayscm.members import least_models

    least = least_models(task, solution, max_parents=max_parents)
    if not isinstance(least, Found):
        return Ties(None, note=least.reached)
    answers = [scm_answer(task.kind, model) for model in least.value.models]
    return Ties(least.value.count, answers, least.value.unlisted)


class _PlainExact(Exact, frozen=True):
    """`exact` with a fixed engine for the choice of parent sets; for plain items alone."""

    engine: ClassVar[str]

    def refusal(self, handout: object) -> str:
        return f"{self.name} answers plain items alone" if is_extended(handout) else ""

    @property
    def engine_arguments(self) -> EngineArguments:
        return {"engine": self.engine}


class ExactSat(_PlainExact, frozen=True):
    """Answer of `exact`, its parent sets chosen by MaxSAT search."""

    name = "exact-sat"
    engine = "sat"


class ExactSmt(_PlainExact, frozen=True):
    """Answer of `exact`, its parent sets chosen by optimisation modulo theories (z3, extra `smt`)."""

    name = "exact-smt"
    engine = "smt"

    def require(self) -> None:
        require_extra("smt", "z3")


class ExactDp(_PlainExact, frozen=True):
    """Answer of `exact`, its parent sets chosen by dynamic programming over up to 16 variables on a cycle."""

    name = "exact-dp"
    engine = "subset_dp"


class ExactIntegerProgram(_PlainExact, frozen=True):
    """The same answer as `exact`, its parent sets chosen by an integer program.

    Out of time its record has the bound and the size of the best model met, which may differ between two runs.

    seconds: of the clock, for an instance's integer programs together; null means no limit
    """

    name = "exact-integer-program"
    engine = "integer_program"
    seconds: Annotated[float, Meta(ge=0)] | None = None

    def require(self) -> None:
        require_extra("large", "highspy")

    @property
    def engine_arguments(self) -> EngineArguments:
        return {"engine": self.engine, "seconds": self.seconds}


def warming_task() -> Task:
    """Return a task of mechanisms with 3 to 5 parents and all rows, which uses every table and compiled kernel."""
    from calibrant.dsl.formulas.text import STANDARD, parse
    from calibrant.dsl.replayscm.disclosure import HiddenOrder
    from calibrant.dsl.replayscm.world import Intervention, Panel, World

    roots = ("X1", "X2", "X3", "X4", "X5")
    texts = {
        "X6": "(not (xor X1 X2 X3))",
        "X7": "(xor X1 (and X2 (or X3 X4)))",
        "X8": "(iff (xor X1 X2) (and X3 X4) (or X1 X5))",
        "X9": "(iff X1 X2 (and X3 X4))",
        "X10": "(iff (and X1 X2) (or X3 (xor X4 X5)))",
    }
    num_rows = 1 << len(roots)
    columns = {root: sum((row >> i & 1) << row for row in range(num_rows)) for i, root in enumerate(roots)}
    for variable, text in texts.items():
        columns[variable] = parse(text, STANDARD, frozenset(roots)).evaluate(columns.__getitem__, (1 << num_rows) - 1)
    variables = tuple(columns)
    units = tuple(f"u{row}" for row in range(num_rows))
    world = World("w0", Intervention(), variables, units, tuple(columns.values()))
    disclosure = HiddenOrder(variables, roots)
    return Task(TaskKind.SCM, disclosure, STANDARD, Panel(variables, (world,)), shares_units=False, num_heldout=0)


# --- The protocol `staged-exact-search`: the paper's symbolic exact-search with its caps ------------------------------
Count = Annotated[int, msgspec.Meta(ge=1)]


class StagedExactSearch(PlainRow, frozen=True):
    """The first train-exact SCM of three stages of growing caps, as the paper's symbolic exact-search.

    stages: how many of the three stages are run
    nodes_per_second: how many choices stand for a second of the published budgets
    """

    name = "staged-exact-search"
    stages: Annotated[int, msgspec.Meta(ge=1, le=3)] = 3
    nodes_per_second: Count = 50_000

    def warm_up(self) -> None:
        self.answer(warming_task())

    def answer(self, task: Task) -> ProtocolResult:
        from calibrant.baselines.replayscm.fit import NODES_PER_SECOND, STAGES, NotFound, staged_search

        if task.kind is TaskKind.ALTERNATIVE:  # the published search has no row there
            return ProtocolResult("impossible", provenance={"reason": "no Alternative-SCM row"})
        stages = [
            stage._replace(nodes=stage.nodes // NODES_PER_SECOND * self.nodes_per_second)
            for stage in STAGES[: self.stages]
        ]
        result = staged_search(task, stages)
        if isinstance(result, NotFound):
            provenance = {"without_candidates": list(result.without), "out_of_nodes": result.out_of_nodes}
            return ProtocolResult("out_of_budget", provenance=provenance)
        return ProtocolResult("found", scm_answer(task.kind, result.model), result.model.size, {"stage": result.stage})


# --- Canonical presentation of episodes: the order of variables depends on neither their names nor their columns ------
_NAME = re.compile(r"\bV[0-9]+\b")


def present_episode(problem: Problem) -> Presentation:
    """Return an episode over the variables V1, V2, ... of its presentation."""
    names = {variable: f"V{number}" for number, variable in enumerate(_presented_order(problem), start=1)}
    renamed = rename_problem(problem, names, PanelOrder((), (), {}), unchanged_order(problem.sealed.heldout))
    extension, renamed_extension = problem.task.extension, renamed.task.extension
    assert extension is not None
    assert renamed_extension is not None
    return Presentation(renamed, _Restorer(names, extension, renamed_extension).restore)


def _presented_order(problem: Problem) -> list[str]:
    """Return all variables, hidden ones too, by their role at the start; ties in an order seeded by the whole item."""
    task, sealed, extension = problem.task, problem.sealed, problem.task.extension
    assert extension is not None
    assert extension.allowance is not None
    start = shown_worlds(task_class(task), ScmEpisode(problem).steps[:1])
    start_colours = variable_colours(replace(task, training=Panel(task.variables, start), shares_units=False))
    colours: dict[str, object] = dict(start_colours)
    if not extension.noise.is_noiseless or extension.allowance.contexts is not Contexts.ALL:
        # flips and contexts depend on the original names
        original_names = {} if sealed.renaming is None else sealed.renaming.names
        colours = {
            variable: (colour, original_names.get(variable, variable)) for variable, colour in start_colours.items()
        }
    everything = Panel(task.variables, (*start, *sealed.heldout.worlds))
    whole = canonical_task(replace(task, training=everything, reference=sealed.gold, shares_units=False), colours)
    assert whole.task.reference is not None
    worlds = [(world.intervention.signature, world.columns) for world in whole.task.training.worlds]
    mechanisms = sorted((variable, render(formula)) for variable, formula in whole.task.reference.mechanisms.items())
    content = repr((whole.task.disclosure, worlds, mechanisms, sealed.seed))
    order = list(whole.names.values())
    Random(sha256(content.encode()).hexdigest()).shuffle(order)
    return sorted(order, key=start_colours.__getitem__)


@dataclass(frozen=True)
class _Restorer:
    """Translates JSON about a presentation back to the pool's names, columns and rows.

    names: name in the pool -> name in the presentation; old, new: extension of the item and of its presentation
    """

    names: Mapping[str, str]
    old: Extension
    new: Extension

    def restore(self, content: Any) -> Any:
        """Translate actions, readings and answers to the names of the pool."""
        if isinstance(content, Mapping):
            if content.keys() == {"world", "rows"}:
                return {"world": content["world"], "rows": self._restore_rows(content["rows"])}
            restored = {self._restore_names(key): self.restore(value) for key, value in content.items()}
            if "do" in content and "contexts" in content:
                restored["contexts"] = [_pick_characters(text, self._root_indices) for text in content["contexts"]]
            return restored
        if isinstance(content, list | tuple):
            return [self.restore(part) for part in content]
        return self._restore_names(content)

    def _restore_names(self, content: Any) -> Any:
        return replace_words(content, _NAME, self._names_in_pool)

    @cached_property
    def _names_in_pool(self) -> dict[str, str]:
        return {new: old for old, new in self.names.items()}

    @cached_property
    def _root_indices(self) -> list[int]:
        return [self.new.roots.index(self.names[root]) for root in self.old.roots]

    def _restore_rows(self, rows: list[str]) -> list[str]:
        columns = [self.new.variables.index(self.names[variable]) for variable in self.old.variables]
        assert self.old.allowance is not None
        numbers = range(len(rows))
        if self.old.allowance.contexts is Contexts.ALL:
            root_indices = self._root_indices
            order = [sum((context >> i & 1) << bit for i, bit in enumerate(root_indices)) for context in numbers]
            rows = [rows[row_index] for row_index in order]
        return [_pick_characters(row, columns) for row in rows]


def _pick_characters(text: str, indices: list[int]) -> str:
    return "".join(text[index] for index in indices)


# --- Canonical presentation of ReplaySCM tasks and episodes -----------------------------------------------------------


def present(content: Task | Problem) -> Presentation:
    """Return a task or an episode in canonical form."""
    if isinstance(content, Problem):
        return present_episode(content)
    canonical = canonical_task(content)
    return Presentation(canonical.task, canonical.restore)
