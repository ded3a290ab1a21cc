"""Problems: the public task for solvers, and separately the sealed part for the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fractions import Fraction
from functools import cached_property
from typing import Any

from calibrant.dsl.errors import in_one_line
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.knowledge import Knowledge
from calibrant.dsl.pictures import MAX_PICTURE_ROWS, Picture, Pictured
from calibrant.dsl.replayscm.disclosure import Disclosure
from calibrant.dsl.replayscm.extensions.extension import Extension, Renaming
from calibrant.dsl.replayscm.scm import Scm
from calibrant.dsl.replayscm.world import Panel, World
from calibrant.dsl.text import Wording, plural

BENCHMARK = "replayscm"


class TaskKind(Enum):
    """The kind of answer to submit; the value is the benchmark's task name."""

    SCM = "CIND_A_SCM"
    ROOTS = "CIND_A_SCM_ROOT_UNKNOWN"
    ALTERNATIVE = "CIND_A_SCM_ALT_EXP"
    EPISODE = "CAL_A_SCM_EPISODE"


@dataclass(frozen=True)
class Task(Pictured):
    """The public part of a problem: everything that a solver may read, and nothing else.

    kind: the kind of answer to submit
    disclosure: what is known about roots and order; names are in natural order where another order would leak
    grammar: allowed operators and whether constants are
    training: the training worlds, as bit columns
    shares_units: whether the same unit keeps its latent root thresholds in every world (PanelSemantics)
    num_heldout: number of held-out worlds; nothing else about them is disclosed
    reference: the SCM that an Alternative-SCM answer has to differ from; None for other tasks
    extension: class, noise, hidden variables and allowance of an extended item; None for all others
    wording: variant of the prompt's wording
    assumption: further statements that an answer has to satisfy, from `--assume`; never in files
    """

    kind: TaskKind
    disclosure: Disclosure
    grammar: Grammar
    training: Panel
    shares_units: bool
    num_heldout: int
    reference: Scm | None = None
    extension: Extension | None = None
    wording: Wording = "standard"
    assumption: Knowledge | None = None

    @property
    def variables(self) -> tuple[str, ...]:
        """All observed variables, natural order (the column order of the training panel)."""
        return self.training.variables

    def picture(self) -> Picture:
        """Return the rows of the training worlds; cells set by an intervention are striped."""
        panel, roots = self.training, self.disclosure.roots
        rows, striped = list[tuple[str, ...]](), set[tuple[int, int]]()
        for world in panel.worlds:
            targets = {column for column, name in enumerate(panel.variables) if name in world.intervention.targets}
            for unit, text in zip(
                world.units, world.row_texts(panel.variables)[: MAX_PICTURE_ROWS - len(rows)], strict=False
            ):
                striped.update((len(rows), 2 + column) for column in targets)
                rows.append((world.id, unit, *text))
        facts = [plural(len(panel.variables), "variables"), plural(len(panel.worlds), "training worlds")]
        facts += [f"{self.num_heldout} held out", "roots not told" if roots is None else f"roots {', '.join(roots)}"]
        columns = ("world", "unit", *panel.variables)
        caption = "Training worlds; striped: set by the intervention"
        return Picture(
            f"Task: {self.disclosure.label}",
            tuple(facts),
            caption=caption,
            columns=columns,
            rows=tuple(rows),
            num_rows=panel.num_rows,
            striped=frozenset(striped),
        )

    def __repr__(self) -> str:
        worlds = f"{len(self.training.worlds)} training worlds"
        return f"<Task {self.kind.name}: {self.disclosure.label}, {len(self.variables)} variables, {worlds}>"


@dataclass(frozen=True)
class Sealed:
    """The part of a problem for the evaluator and the audits alone.

    gold: the latent SCM, if the file has one
    gold_size: its total formula size as the file states it; the metrics `accGoldPlus` and `bloat` compare with it
    heldout: the held-out worlds
    latent_order: latent topological order of all variables, in which mismatches are reported
    max_predecessors: number of predecessors from which the generator drew parents; for information only
    budget_deltas: slack values of `accGoldPlus`
    environments: world id -> root -> environment level
    labels: stratum, seed, difficulty and pairing ids, for tables and matching
    seed: of an extended item, which fixes flips and drawn contexts
    rates: true noise rate of each observed endogenous variable, under noise
    renaming: of an episode that was renamed, whose flips and contexts depend on the original names; never in files
    """

    gold: Scm | None
    gold_size: int | None
    heldout: Panel
    latent_order: tuple[str, ...]
    max_predecessors: int | None = None
    budget_deltas: tuple[int, ...] = (0, 10, 25)
    environments: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    seed: int | None = None
    rates: Mapping[str, Fraction] = field(default_factory=dict)
    renaming: Renaming | None = None

    def __repr__(self) -> str:
        return f"<Sealed: {len(self.heldout.worlds)} held-out worlds{'' if self.gold is None else ' and gold'}>"


@dataclass(frozen=True)
class ModelResult:
    """A stored model output: its raw text, and the evaluation that the file states.

    verdict: `valid` and `correct` as the file states them outside of the evaluation, if it does
    """

    model: str
    raw_response: str | None
    extracted_answer: Any
    evaluation: Mapping[str, Any]
    verdict: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<ModelResult of {in_one_line(self.model)[:60]}>"


@dataclass(frozen=True)
class Problem(Pictured):
    """One benchmark item. Solvers are handed `task`; `sealed` stays with the evaluator.

    results: function that reads the embedded model results, on demand because they are by far the largest part
    columns: order of the variables in rows of the item's file; it may be the latent order, so solvers must not see it
    """

    id: str
    task: Task
    sealed: Sealed
    results: Callable[[], tuple[ModelResult, ...]] = field(default=tuple, compare=False)
    columns: tuple[str, ...] = field(default=(), compare=False, repr=False)

    def picture(self) -> Picture:
        """Return the public part as a picture."""
        return replace(self.task.picture(), title=f"{self.id}: {self.setting}")

    def __repr__(self) -> str:
        size = f"{len(self.task.variables)} variables, {len(self.task.training.worlds)} training worlds"
        return f"<Problem {in_one_line(self.id)[:60]}: {self.setting}, {size}>"

    @property
    def benchmark(self) -> str:
        return BENCHMARK

    @property
    def setting(self) -> str:
        """Its setting in tables, such as `Alt-Ordered` or `Episode Hidden-order+noise+hidden`."""
        label = self.task.disclosure.label
        if self.task.kind is TaskKind.ALTERNATIVE:
            return f"Alt-{label}"
        extension = self.task.extension
        if extension is None:
            return label
        return f"{'Episode ' if extension.is_episode else ''}{label}{extension.label}"

    @property
    def stratum(self) -> str:
        return self.sealed.labels.get("stratum", "")

    @property
    def worlds(self) -> tuple[World, ...]:
        """Training worlds, then held-out worlds."""
        return (*self.task.training.worlds, *self.sealed.heldout.worlds)

    @cached_property  # read for every answer
    def has_heldout_cells(self) -> bool:
        """Whether held-out cells are scored for some answer; with hidden roots that depends on the answer's roots."""
        endogenous = self.task.disclosure.endogenous
        return any(
            world.num_rows and not world.intervention.targets.issuperset(endogenous)
            for world in self.sealed.heldout.worlds
        )


@dataclass(frozen=True)
class Pool:
    """The problems of one file, with its metadata.

    problems: a tuple, or for a large file a sequence that parses a problem at each access (dsl.records)
    num_extended: number of episodes and problems with noise or hidden variables; None if the reader did not count them
    """

    name: str
    problems: Sequence[Problem]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    num_extended: int | None = field(default=None, compare=False, repr=False)

    @property
    def items(self) -> Sequence[Problem]:
        """The problems, under the name that pools of all benchmarks share."""
        return self.problems

    @property
    def has_extensions(self) -> bool:
        """Whether a problem has episodes, noise or hidden variables."""
        if self.num_extended is not None:  # the fallback parses every problem of a large file
            return self.num_extended > 0
        return any(problem.task.extension is not None for problem in self.problems)

    def __len__(self) -> int:
        return len(self.problems)
