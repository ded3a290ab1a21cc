"""An episode of ReplaySCM: worlds are asked for one by one, then a map or a forecast is submitted.

Step 0 is {"start": {}}: the observational world, number 0, free. Refusals are free, counted, and change nothing.
Readings are {"world": t, "rows": [..]}.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from calibrant.dsl.episode import Action, ActionError, Step
from calibrant.dsl.errors import short_repr
from calibrant.dsl.replayscm.disclosure import RootedDisclosure
from calibrant.dsl.replayscm.episodes.actions import WorldRequest, read_action
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts, Extension
from calibrant.dsl.replayscm.extensions.local_functions import noisy_rows
from calibrant.dsl.replayscm.extensions.model_class import MechanismClass, model_class
from calibrant.dsl.replayscm.extensions.randomness import Spelling, sampled_contexts
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.dsl.replayscm.problem import Problem, Task

Reading: TypeAlias = dict[str, Any]
"""{"world": number, "rows": row strings}"""

START: Mapping[str, Any] = {"start": {}}


def task_class(task: Task) -> MechanismClass:
    """Return the class of an extended item; `ValueError` for a plain one."""
    if task.extension is None or task.disclosure.roots is None:
        raise ValueError("the item has no extension")
    disclosure: RootedDisclosure = task.disclosure  # type: ignore[assignment]  # its roots are disclosed
    return model_class(task.extension, disclosure)


class ScmEpisode:
    """One run of an item. Gold and seed are private; readings are in `steps`."""

    __slots__ = ("_class", "_closed", "_gold", "_problem", "_refusals", "_steps", "_worlds")

    def __init__(self, problem: Problem) -> None:
        """`ValueError` for an item that is no episode."""
        gold = problem.sealed.gold
        if problem.task.extension is None or not problem.task.extension.is_episode or gold is None:
            raise ValueError(f"'{problem.id}' is no episode")
        self._problem = problem
        self._class = task_class(problem.task)
        self._gold: Mechanisms = gold.local_functions
        self._worlds = 0
        self._refusals = 0
        self._closed = False
        self._steps: list[Step[Reading]] = [Step(START, self._read(WorldRequest({}, None)), "", 0)]

    @property
    def id(self) -> str:
        """The item's id, by which policies seed their draws."""
        return self._problem.id

    @property
    def task(self) -> Task:
        return self._problem.task

    @property
    def steps(self) -> list[Step[Reading]]:
        return self._steps

    @property
    def left(self) -> int:
        """Worlds that may still be asked for."""
        return self._allowance.worlds - self._worlds + 1

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def refusals(self) -> int:
        """Return how many actions were refused."""
        return self._refusals

    def act(self, action: Action) -> Step[Reading]:
        """Carry out an action, or refuse it; never raises because of what the action is."""
        try:
            step = self._step(action)
        except ActionError as error:
            self._refusals += 1
            step = Step(_record_action(action), None, str(error), 0)
        self._steps.append(step)
        return step

    def _step(self, action: Action) -> Step[Reading]:
        if self._closed:
            raise ActionError("the episode is over")
        request = read_action(action, self._extension)
        if request is None:
            self._closed = True
            return Step(_record_action(action), None, "", 0)
        if not self.left:
            raise ActionError(f"all {self._allowance.worlds} worlds are spent; submit an answer")
        return Step(_record_action(action), self._read(request), "", 1)

    def _read(self, request: WorldRequest) -> Reading:
        number, seed, spelling = self._worlds, self._problem.sealed.seed, self._problem.sealed.spelling
        assert seed is not None
        contexts = request.contexts or episode_contexts(self._extension, number, seed, spelling)
        row_numbers = None
        if spelling is not None and self._allowance.contexts is Contexts.ALL:
            # the row of a context has the number of the context
            row_numbers = [spelling.hashed_context(context, self._extension.roots) for context in contexts]
        rows = noisy_rows(
            self._class,
            self._gold,
            request.constants,
            contexts,
            seed=seed,
            world=number,
            rates=self._problem.sealed.rates,
            spelling=spelling,
            row_numbers=row_numbers,
        )
        self._worlds += 1
        return {"world": number, "rows": list(rows)}

    @property
    def _extension(self) -> Extension:
        extension = self._problem.task.extension
        assert extension is not None
        return extension

    @property
    def _allowance(self) -> Allowance:
        allowance = self._extension.allowance
        assert allowance is not None
        return allowance


def episode_contexts(
    extension: Extension, world: int, seed: int | None, spelling: Spelling | None = None
) -> tuple[int, ...]:
    """Return the contexts of a world's rows where the action does not list them.

    All contexts; or those that the seed fixes for this world; or, of a start under chosen contexts, the first by
    number. seed: needed for sampled contexts alone; spelling: of an item that was renamed
    """
    allowance = extension.allowance
    assert allowance is not None
    num_contexts = 1 << len(extension.roots)
    if allowance.contexts is Contexts.SAMPLED:
        assert seed is not None
        contexts = sampled_contexts(seed, world, len(extension.roots), allowance.rows)
    else:
        contexts = tuple(range(min(num_contexts, allowance.rows)))
    if spelling is None or allowance.contexts is Contexts.ALL:
        return contexts
    return tuple(spelling.context_of(context, extension.roots) for context in contexts)


def _record_action(action: object) -> Action:
    """Return an action for the record; one that is not even an object becomes text."""
    return dict(action) if isinstance(action, Mapping) else {"unreadable": short_repr(action)}
