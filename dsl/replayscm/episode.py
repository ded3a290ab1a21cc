"""Episodes of ReplaySCM: a solver requests worlds, then submits an answer; and the text protocol for models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any, TypeAlias

from calibrant.dsl.answer_text import Thoughts, read_reply_text
from calibrant.dsl.episode import Action, ActionError, Step, action_of_text, verb_of
from calibrant.dsl.errors import PoolError, in_one_line, short_repr
from calibrant.dsl.formulas.formula import OPERATORS
from calibrant.dsl.replayscm.disclosure import RootedDisclosure, natural
from calibrant.dsl.replayscm.extensions.extension import (
    Allowance,
    Contexts,
    Extension,
    MechanismClass,
    NoiseKind,
    Question,
    Renaming,
    is_flipped,
    mechanism_class,
    parse_rate,
    sampled_contexts,
)
from calibrant.dsl.replayscm.extensions.reference import EvidenceWorld, Mechanisms, replay_row
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.prompt import forecast_worlds_text, hidden_text, noise_text
from calibrant.dsl.replayscm.world import Intervention, World, columns_from_rows

# Actions: {"do": {"X3": 1, "X5": 0}} requests a world, with "contexts": ["010", ...] if contexts are chosen; {"submit":
# {"mechanisms": {..}, "noise": "1/10"}} submits an SCM, {"submit": {"forecast": [..]}} probabilities. A context is an
# assignment of the roots: root i is bit i, and character i of its text. Readings are {"world": t, "rows": [..]}.
#
# Step 0 is {"start": {}}: the observational world, number 0, free. Refusals are free, counted, and change nothing.
# --- Worlds that may be requested: all constants on at most max_targets variables, in a fixed order -------------------


def candidate_worlds(variables: Sequence[str], max_targets: int) -> list[dict[str, int]]:
    """Return all interventions on at most max_targets variables: by number of targets, then variables, then values.

    Values count up, the last variable fastest.
    """
    return [
        dict(zip(targets, values, strict=True))
        for num_targets in range(min(max_targets, len(variables)) + 1)
        for targets in combinations(variables, num_targets)
        for values in product((0, 1), repeat=num_targets)
    ]


def num_candidates(num_vars: int, max_targets: int) -> int:
    """Return the number of `candidate_worlds`."""
    return sum(comb(num_vars, j) << j for j in range(min(max_targets, num_vars) + 1))


# --- Actions of an episode, read from untrusted JSON: a world that is requested, or a submission ----------------------
Forecast: TypeAlias = list[list[dict[str, float]]]
"""[world][row][endogenous variable that is not set] -> probability of 1."""


@dataclass(frozen=True)
class WorldRequest:
    """A requested world.

    constants: variable -> bit; contexts: the chosen contexts, None if the action cannot choose them
    """

    constants: Mapping[str, int]
    contexts: tuple[int, ...] | None


def read_action(action: object, extension: Extension) -> WorldRequest | None:
    """Return the world that an action requests, None for a well-formed submission; `ActionError` for a refusal."""
    allowance = extension.allowance
    assert allowance is not None
    chosen = frozenset({"contexts"}) if allowance.contexts is Contexts.CHOSEN else frozenset()
    verb = verb_of(action, {"do": chosen, "submit": frozenset()})
    assert isinstance(action, Mapping)
    if verb == "submit":
        check_submission(action["submit"], extension)
        return None
    constants = _read_constants(action["do"], extension, allowance)
    return WorldRequest(constants, _read_contexts(action["contexts"], extension, allowance) if chosen else None)


def _read_constants(raw: Any, extension: Extension, allowance: Allowance) -> dict[str, int]:
    if not isinstance(raw, Mapping):
        raise ActionError(f"'do' takes an object of variable: 0 or 1, found {short_repr(raw)}")
    for variable, value in raw.items():
        if variable in extension.hidden:
            raise ActionError(f"{variable} is hidden and cannot be set")
        if variable not in extension.variables:
            raise ActionError(f"{short_repr(variable)} is no variable; known: {', '.join(extension.variables)}")
        if type(value) is not int or value not in (0, 1):
            raise ActionError(f"{variable} can be set to 0 or 1, found {short_repr(value)}")
    if len(raw) > allowance.max_targets:
        raise ActionError(f"{len(raw)} variables set; at most {allowance.max_targets} can be")
    return {variable: raw[variable] for variable in extension.variables if variable in raw}


def _read_contexts(raw: Any, extension: Extension, allowance: Allowance) -> tuple[int, ...]:
    num_roots = len(extension.roots)
    if not isinstance(raw, Sequence) or isinstance(raw, str) or not 1 <= len(raw) <= allowance.rows:
        raise ActionError(f"'contexts' takes 1 to {allowance.rows} texts, found {short_repr(raw)}")
    for context in raw:
        if not isinstance(context, str) or len(context) != num_roots or context.strip("01"):
            raise ActionError(f"context {short_repr(context)} is not {num_roots} characters 0 or 1")
    return tuple(int(context[::-1] or "0", 2) for context in raw)


def check_submission(raw: Any, extension: Extension) -> None:
    """Check the shape of a submission; `ActionError` if it is wrong."""
    if not isinstance(raw, Mapping):
        raise ActionError(f"'submit' takes an object, found {short_repr(raw)}")
    if extension.question is Question.FORECAST and raw.keys() == {"forecast"}:
        _check_forecast(raw["forecast"], extension)
        return
    if not {"mechanisms"} <= raw.keys() <= {"mechanisms", "noise"}:
        forecast = "'forecast', or " if extension.question is Question.FORECAST else ""
        raise ActionError(f"a submission has {forecast}'mechanisms' and if wished 'noise'; found {short_repr(raw)}")
    mechanisms = raw["mechanisms"]
    if not isinstance(mechanisms, Mapping) or not all(isinstance(text, str) for text in mechanisms.values()):
        raise ActionError(f"'mechanisms' takes an object of variable: formula, found {short_repr(mechanisms)}")
    if "noise" in raw:
        try:
            parse_rate(raw["noise"], "noise")
        except PoolError as error:
            raise ActionError(str(error)) from None


def _check_forecast(raw: Any, extension: Extension) -> None:
    worlds = extension.forecast_worlds
    if not isinstance(raw, list) or len(raw) != len(worlds):
        raise ActionError(f"'forecast' takes a list of {len(worlds)} worlds, found {short_repr(raw)}")
    for index, (rows, world) in enumerate(zip(raw, worlds, strict=True)):
        free = {v for v in extension.variables if v not in extension.roots and v not in world.constants}
        if not isinstance(rows, list) or len(rows) != len(world.contexts):
            raise ActionError(f"world {index} takes a list of {len(world.contexts)} rows, found {short_repr(rows)}")
        for row in rows:
            if not isinstance(row, Mapping) or row.keys() != free or not all(map(_is_probability, row.values())):
                names = ", ".join(sorted(free)) or "no variables"
                raise ActionError(f"a row of world {index} takes probabilities of {names}; found {short_repr(row)}")


def _is_probability(value: object) -> bool:
    return type(value) in (int, float) and isinstance(value, int | float) and 0 <= value <= 1


# --- The worlds of an episode as evidence, and as worlds of a panel ---------------------------------------------------


def steps_evidence(steps: Sequence[Step[Any]]) -> list[EvidenceWorld]:
    """Return the worlds that these steps showed, the start first."""
    return [
        EvidenceWorld(step.action.get("do", {}), tuple(step.reading["rows"]))
        for step in steps
        if step.reading is not None
    ]


def world_evidence(scm_class: MechanismClass, world: World) -> list[EvidenceWorld]:
    """Return a world as evidence; a world with targets set row by row becomes one world of constants for each row."""
    constants = {v: world.intervention.constants[v] for v in world.intervention.constants}
    rows = world.row_texts(scm_class.observed)
    if not world.intervention.assigned:
        return [EvidenceWorld(constants, tuple(rows))]
    single = []
    for text, values in zip(rows, world.rows(), strict=True):
        single.append(EvidenceWorld({v: values[v] for v in world.intervention.targets}, (text,)))
    return single


def worlds_evidence(scm_class: MechanismClass, worlds: Sequence[World]) -> list[EvidenceWorld]:
    """Return worlds as evidence, in their order."""
    return [rows for world in worlds for rows in world_evidence(scm_class, world)]


def evidence_panel_world(name: str, scm_class: MechanismClass, world: EvidenceWorld) -> World:
    """Return evidence as a world of a panel; its rows become units r0, r1, ..."""
    by_variable = dict(zip(scm_class.observed, columns_from_rows(world.rows, len(scm_class.observed)), strict=True))
    variables = natural(scm_class.observed)
    units = tuple(f"r{row}" for row in range(len(world.rows)))
    constants = {v: world.constants[v] for v in natural(world.constants)}
    return World(name, Intervention(constants), variables, units, tuple(by_variable[v] for v in variables))


def shown_worlds(scm_class: MechanismClass, steps: Sequence[Step[Any]]) -> tuple[World, ...]:
    """Return the worlds that these steps showed, named world_0, world_1, ..."""
    evidence = steps_evidence(steps)
    return tuple(evidence_panel_world(f"world_{index}", scm_class, world) for index, world in enumerate(evidence))


# --- Rows of SCMs, with the flips of noise ----------------------------------------------------------------------------


def context_values(scm_class: MechanismClass, context: int) -> dict[str, int]:
    """Return the roots' values in a context: root i has bit i."""
    return {root: context >> i & 1 for i, root in enumerate(scm_class.roots)}


def row_text(scm_class: MechanismClass, values: Mapping[str, int]) -> str:
    """Return the observed values as a row string."""
    return "".join(str(values[v]) for v in scm_class.observed)


def noisy_rows(
    scm_class: MechanismClass,
    mechanisms: Mechanisms,
    constants: Mapping[str, int],
    contexts: Sequence[int],
    *,
    seed: int,
    world: int,
    rates: Mapping[str, Fraction],
    renaming: Renaming | None = None,
    row_numbers: Sequence[int] | None = None,
) -> tuple[str, ...]:
    """Return the rows of a world with the flips that the seed fixes.

    contexts: one for each row; world: its number, the start being 0; rates: variable -> noise rate, empty without noise
    renaming: of a renamed item, for the names that seed flips; row_numbers: seed the flips of rows, 0, 1, .. if None
    """
    rows = []
    for row_number, context in zip(row_numbers or range(len(contexts)), contexts, strict=True):
        flipped = frozenset(
            variable
            for variable in scm_class.endogenous
            if variable in rates
            and variable not in constants
            and is_flipped(
                seed, world, row_number, renaming.flip_name(variable) if renaming else variable, rates[variable]
            )
        )
        values = replay_row(scm_class, mechanisms, context_values(scm_class, context), constants, flipped)
        rows.append(row_text(scm_class, values))
    return tuple(rows)


def clean_rows(
    scm_class: MechanismClass, mechanisms: Mechanisms, constants: Mapping[str, int], contexts: Sequence[int]
) -> tuple[str, ...]:
    """Return the noise-free rows of a world."""
    values = (context_values(scm_class, context) for context in contexts)
    return tuple(row_text(scm_class, replay_row(scm_class, mechanisms, v, constants)) for v in values)


# --- An episode: worlds are requested one by one, then an SCM or a forecast is submitted ------------------------------
Reading: TypeAlias = dict[str, Any]
"""{"world": number, "rows": row strings}"""

START: Mapping[str, Any] = {"start": {}}


def task_class(task: Task) -> MechanismClass:
    """Return the class of an extended item; `ValueError` for a plain one."""
    if task.extension is None or task.disclosure.roots is None:
        raise ValueError("the item has no extension")
    disclosure: RootedDisclosure = task.disclosure  # type: ignore[assignment]  # its roots are disclosed
    return mechanism_class(task.extension, disclosure)


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
        """The item's id, with which policies seed their samples."""
        return self._problem.id

    @property
    def task(self) -> Task:
        return self._problem.task

    @property
    def steps(self) -> list[Step[Reading]]:
        return self._steps

    @property
    def left(self) -> int:
        """Number of worlds that may still be requested."""
        return self._allowance.worlds - self._worlds + 1

    @property
    def closed(self) -> bool:
        return self._closed

    @property
    def refusals(self) -> int:
        """Number of refused actions."""
        return self._refusals

    def act(self, action: Action) -> Step[Reading]:
        """Carry out an action or refuse it; never raises, whatever the action is."""
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
        if request is None:  # a submission
            self._closed = True
            return Step(_record_action(action), None, "", 0)
        if not self.left:
            raise ActionError(f"all {self._allowance.worlds} worlds are spent; submit an answer")
        return Step(_record_action(action), self._read(request), "", 1)

    def _read(self, request: WorldRequest) -> Reading:
        world_number, seed, renaming = self._worlds, self._problem.sealed.seed, self._problem.sealed.renaming
        assert seed is not None
        contexts = request.contexts or episode_contexts(self._extension, world_number, seed, renaming)
        row_numbers = None
        if renaming is not None and self._allowance.contexts is Contexts.ALL:
            # flips are seeded by the row number, which is the original context if all contexts are shown
            row_numbers = [renaming.original_context(context, self._extension.roots) for context in contexts]
        rows = noisy_rows(
            self._class,
            self._gold,
            request.constants,
            contexts,
            seed=seed,
            world=world_number,
            rates=self._problem.sealed.rates,
            renaming=renaming,
            row_numbers=row_numbers,
        )
        self._worlds += 1
        return {"world": world_number, "rows": list(rows)}

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
    extension: Extension, world: int, seed: int | None, renaming: Renaming | None = None
) -> tuple[int, ...]:
    """Return the contexts of a world's rows if the action does not list them.

    All contexts; or those that the seed samples for this world; or, if contexts are chosen, the first `rows` (the
    start). seed: needed for sampled contexts alone; renaming: None unless the item was renamed
    """
    allowance = extension.allowance
    assert allowance is not None
    num_contexts = 1 << len(extension.roots)
    if allowance.contexts is Contexts.SAMPLED:
        assert seed is not None
        contexts = sampled_contexts(seed, world, len(extension.roots), allowance.rows)
    else:
        contexts = tuple(range(min(num_contexts, allowance.rows)))
    if renaming is None or allowance.contexts is Contexts.ALL:
        return contexts
    return tuple(renaming.context_of(context, extension.roots) for context in contexts)


def _record_action(action: object) -> Action:
    """Return an action for the record; one that is no object is recorded as text."""
    return dict(action) if isinstance(action, Mapping) else {"unreadable": short_repr(action)}


# --- Episodes by text, for models: a prompt, one action a reply, worlds as tables with names --------------------------
# A reply acts by its last line that begins with `ACTION:`, followed by one JSON object; other replies get one line and
# count as refused. After 2 * worlds + 10 replies the episode ends without an answer.
MARK = "ACTION:"
MAX_REPLY_CHARS = 1_000_000
MAX_REFUSAL_CHARS = 300
NO_ACTION = f"No action found. End your reply with a line such as {MARK} {{...}} with one JSON object."


class TextDialogue:
    """An episode played by text replies; closed after a submission, or when max_replies are spent."""

    def __init__(self, episode: ScmEpisode, thoughts: Thoughts = "strip") -> None:
        self.episode = episode
        self._thoughts = thoughts
        extension = episode.task.extension
        assert extension is not None
        assert extension.allowance is not None
        self.max_replies = 2 * extension.allowance.worlds + 10
        self.num_replies = 0

    @property
    def closed(self) -> bool:
        return self.episode.closed or self.num_replies >= self.max_replies

    @property
    def refusals(self) -> int:
        """Number of refused replies, including those without an action."""
        return self.episode.refusals

    def prompt(self) -> str:
        """Return the first message: the rules, and the start world."""
        return episode_prompt(self.episode.task) + "\n" + self._world_text(self.episode.steps[0])

    def reply(self, text: str) -> str:
        """Carry out a reply's action; return the next message. Never raises, whatever the reply is."""
        if self.closed:
            return "The episode is over."
        self.num_replies += 1
        try:
            action = read_reply(read_reply_text(text, self._thoughts))
        except ActionError as error:
            # recorded as a step, so that transcripts count it
            self.episode.act({"unreadable": short_repr(text)})
            return in_one_line(str(error))[:MAX_REFUSAL_CHARS]
        step = self.episode.act(action)
        if step.refused:
            return f"Refused: {in_one_line(step.refused)[:MAX_REFUSAL_CHARS]}"
        if step.reading is None:
            return "Submitted. The episode is over."
        return self._world_text(step)

    def _world_text(self, step: Step[Reading]) -> str:
        assert step.reading is not None
        lines = world_table(self.episode.task, step)
        return "\n".join([*lines, f"{self.episode.left} worlds left."])


def read_reply(text: str) -> dict[str, Any]:
    """Return the action of a reply; `ActionError` in one line if there is none."""
    if len(text) > MAX_REPLY_CHARS:
        raise ActionError(f"a reply of {len(text):,} characters; at most {MAX_REPLY_CHARS:,} are read")
    marked = [line for line in text.splitlines() if line.startswith(MARK)]
    if not marked:
        raise ActionError(NO_ACTION)
    return action_of_text(marked[-1].removeprefix(MARK))


def world_table(task: Task, step: Step[Reading]) -> Iterator[str]:
    """Yield a world as lines: its number and intervention, then named values for each row."""
    assert task.extension is not None
    assert step.reading is not None
    do = step.action.get("do", {})
    setting = ", ".join(f"{v}={do[v]}" for v in natural(do)) or "nothing is set"
    yield f"World {step.reading['world']} ({setting}):"
    for row in step.reading["rows"]:
        yield "- " + " ".join(f"{v}={bit}" for v, bit in zip(task.extension.variables, row, strict=True))


def episode_prompt(task: Task) -> str:
    """Return the rules of an episode, without any world."""
    return "\n".join([episode_facts(task), *_action_lines(task)])


def episode_facts(task: Task) -> str:
    """Return the rules of an episode without the form of replies."""
    assert task.extension is not None
    parts = [
        _variables_text(task),
        _class_text(task),
        noise_text(task.extension),
        hidden_text(task.extension),
        _allowance_text(task),
    ]
    return "\n".join(filter(None, parts))


def _variables_text(task: Task) -> str:
    assert task.extension is not None
    roots = ", ".join(task.extension.roots)
    order = task.disclosure.order
    blocks = task.disclosure.blocks
    known_order = f" Causal order: {', '.join(order)}." if order else ""
    if blocks:
        known_order = " Blocks, causes in the same or an earlier one: " + " | ".join(", ".join(b) for b in blocks) + "."
    return (
        f"A causal model over the binary variables {', '.join(task.extension.variables)}. Roots: {roots}. Every other "
        f"variable is a Boolean function of other variables; there are no cycles.{known_order}"
    )


def _class_text(task: Task) -> str:
    assert task.extension is not None
    names = ", ".join(f"{name} ({OPERATORS[name].arity_text})" for name in task.grammar.operators)
    constants = "" if task.grammar.allow_constants else " The literals 0 and 1 are not allowed."
    return (
        f"A function depends on at most {task.extension.max_parents} variables. A mechanism is a variable or "
        f"(operator argument ...), operators: {names}.{constants}"
    )


def _allowance_text(task: Task) -> str:
    assert task.extension is not None
    allowance = task.extension.allowance
    assert allowance is not None
    contexts = {
        Contexts.ALL: "one for every assignment of the roots",
        Contexts.SAMPLED: "with root values that you cannot choose",
        Contexts.CHOSEN: "with the root values that you list",
    }[allowance.contexts]
    return (
        f"You may ask for {allowance.worlds} worlds. A world sets up to {allowance.max_targets} variables to constants "
        f"and shows up to {allowance.rows} rows, {contexts}."
    )


def _action_lines(task: Task) -> Iterator[str]:
    assert task.extension is not None
    extension, allowance = task.extension, task.extension.allowance
    assert allowance is not None
    yield f"End every reply with one line that begins with {MARK} and holds one JSON object:"
    example: dict[str, Any] = {"do": {extension.variables[0]: 1} if allowance.max_targets else {}}
    if allowance.contexts is Contexts.CHOSEN:
        example["contexts"] = ["0" * len(extension.roots)]
    yield f"{MARK} {json.dumps(example)}"
    if extension.question is Question.FORECAST:
        yield from _forecast_lines(extension)
    endogenous = [v for v in extension.variables if v not in extension.roots]
    shape: dict[str, Any] = {"submit": {"mechanisms": dict.fromkeys(endogenous, "...")}}
    if not extension.noise.is_noiseless and extension.noise.kind is not NoiseKind.RATE:
        shape["submit"]["noise"] = str(extension.noise.grid[0][0])
    yield f"{MARK} {json.dumps(shape)}"
    yield "The first submission ends the episode. It is scored on held-out worlds without errors."


def _forecast_lines(extension: Extension) -> Iterator[str]:
    yield from forecast_worlds_text(extension)
    rows: Sequence[Any] = [
        [
            {v: 0.5 for v in extension.variables if v not in extension.roots and v not in world.constants}
            for _ in world.contexts
        ]
        for world in extension.forecast_worlds[:1]
    ]
    yield f"{MARK} {json.dumps({'submit': {'forecast': [*rows, '...']}})}"
