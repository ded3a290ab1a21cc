"""ReplaySCM for people: typed moves, the view of pages, and how episodes are opened and submitted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from calibrant.bench.core.capabilities import Playable
from calibrant.bench.core.typed_moves import Act, Draft, Edit, Position, Reader, Verb, Words, WordsError, match_name
from calibrant.bench.episodes import Chat
from calibrant.bench.replayscm import drafts
from calibrant.dsl.answer_text import Thoughts
from calibrant.dsl.episode import Action, Episode, Step
from calibrant.dsl.errors import CalibrantError, in_one_line, short_repr
from calibrant.dsl.formulas.text import infix
from calibrant.dsl.replayscm.episode import ScmEpisode, episode_facts
from calibrant.dsl.replayscm.extensions.extension import Allowance, Contexts
from calibrant.dsl.replayscm.item import Problem, TaskKind
from calibrant.dsl.replayscm.prompt import facts
from calibrant.dsl.replayscm.world import World

# --- View of an item for pages: worlds or the allowance of an episode, and the formulas to write ----------------------


def worlds_view(item: Problem) -> dict[str, Any]:
    """Return the public part of an item for its page, ready for JSON; it reads the task alone."""
    task, extension = item.task, item.task.extension
    is_episode = task.kind is TaskKind.EPISODE
    disclosure = task.disclosure
    view: dict[str, Any] = {
        "view": "worlds",
        "variables": list(task.variables if extension is None else extension.variables),
        "names": list(drafts.formula_names(item)),
        "operators": list(task.grammar.operators),
        "roots": None if disclosure.roots is None else [v for v in task.variables if v in disclosure.roots],
        "num_roots": disclosure.num_roots,
        "brief": list(_brief(item)),
        "rules": [episode_facts(task)] if is_episode else list(facts(task)),
        "worlds": [_world(world) for world in task.training.worlds],
        "noise": list(drafts.noise_rates(item)),
        "hidden": list(drafts.hidden_names(item)),
    } | drafts.part_view(item)
    if extension is not None and extension.allowance is not None:
        allowance = extension.allowance
        view["episode"] = {
            "worlds": allowance.worlds,
            "rows": allowance.rows,
            "max_targets": allowance.max_targets,
            "contexts": allowance.contexts.value,
            "roots": list(extension.roots),
        }
    return view


def _brief(item: Problem) -> Iterator[str]:
    """Yield the task in a few sentences; the rules have all of it."""
    task, roots = item.task, item.task.disclosure.roots
    if task.kind is TaskKind.EPISODE:
        yield "Ask for worlds, in which you may set variables, until you know what each variable follows."
    if task.reference is not None:
        formulas = "; ".join(f"{name} = {infix(formula)}" for name, formula in task.reference.mechanisms.items())
        yield f"One model that fits: {formulas}. Write another one that fits all rows and means something else."
        return
    names = "every variable that is no root"
    if roots is not None:
        names = ", ".join(name for name in task.variables if name not in roots)
    has_noise = task.extension is not None and not task.extension.noise.is_noiseless
    errors = ", up to errors of the stated rate" if has_noise else ""
    yield (
        f"Write a formula for {names}: it has to give the variable's value in every row in which it was not set by hand"
        f"{errors}. Formulas have no loops."
    )


def _world(world: World) -> dict[str, Any]:
    """Return a world for JSON: rows as strings of bits in the order of its variables; `set`: its targets."""
    rows = ["".join(str(row[v]) for v in world.variables) for row in world.rows()]
    targets = [v for v in world.variables if v in world.intervention.targets]
    return {"id": world.id, "units": list(world.units), "rows": rows, "set": targets}


# --- Typed moves: X3 = X1 and not X2, roots X1 X2, do X3=1, submit ----------------------------------------------------
_SETTING = re.compile(r"([^\s=]{1,80})\s*=\s*([^\s=]{1,8})")


class ScmWords(Words[Problem]):
    """Implements Words (bench.core.typed_moves).

    A draft has `formulas`, variable -> text as typed; `roots` if they are hidden; `noise` if the item asks for it; and
    the parts of other questions (bench.replayscm.drafts).
    """

    kind = ("table of worlds", "tables of worlds")

    def opening(self, item: Problem) -> str:
        if item.task.kind is TaskKind.EPISODE:
            return f"{episode_facts(item.task)}\n{_INFIX}"
        return "\n\n".join([*facts(item.task), _INFIX, *map(_world_table, item.task.training.worlds)])

    def verbs(self, item: Problem) -> Sequence[Verb]:
        verbs = [*_world_verbs(item)]
        names = drafts.variables_to_explain(item, {})
        if item.task.disclosure.roots is None:
            roots = " ".join(item.task.variables[: item.task.disclosure.num_roots])
            verbs.append(Verb(f"roots {roots}", "write down which variables are the roots"))
        verbs.append(
            Verb(f"{names[-1]} = {item.task.variables[0]}", "write down a formula: and, or, not, xor, iff, ( )")
        )
        if hidden := drafts.hidden_names(item):
            verbs.append(
                Verb(f"{hidden[0]} = {item.task.variables[0]}", "the same for what is never shown, if you use it")
            )
        verbs += drafts.part_verbs(item)
        if rates := drafts.noise_rates(item):
            verbs.append(Verb(f"noise {rates[0]}", "write down the rate of errors"))
        return (*verbs, Verb("submit", "send the answer that is written; it ends the item"))

    def readers(self, item: Problem) -> Mapping[str, Reader]:
        readers: dict[str, Reader] = {"submit": _read_submit, **drafts.part_readers(item)}
        if item.task.kind is TaskKind.EPISODE:
            readers["do"] = _read_do
        if item.task.disclosure.roots is None:
            readers["roots"] = _read_roots
        if drafts.noise_rates(item):
            readers["noise"] = _read_noise
        return readers

    def read_form(self, item: Problem, position: Position, line: str) -> Act | Edit | None:
        if item.task.kind is TaskKind.EPISODE and line.lower().startswith("do("):  # the notation of `list --why`
            return _read_do(item, position, line[2:])
        name, sign, text = line.partition("=")
        if not sign or " " in name.strip():
            return None
        names = (*drafts.variables_to_explain(item, position.draft), *drafts.hidden_names(item))
        variable = match_name(name.strip(), names, "variable to explain")
        drafts.read_formula(item, variable, text.strip())
        formulas = {**position.draft.get("formulas", {}), variable: text.strip()}
        return Edit({**position.draft, "formulas": formulas})

    def read_json(self, item: Problem, line: str) -> Act:
        """Return the action of a line of JSON; for an item that is no episode, the answer alone is accepted too."""
        act = super().read_json(item, line)
        if item.task.kind is TaskKind.EPISODE or act.action.keys() == {"submit"}:
            return act
        return Act({"submit": dict(act.action)})

    def answer(self, item: Problem, draft: Draft) -> dict[str, Any]:
        return drafts.answer_of_draft(item, draft)

    def draft_lines(self, item: Problem, draft: Draft) -> Sequence[str]:
        lines = [f"roots {' '.join(draft['roots'])}"] if draft.get("roots") else []
        lines += [f"{name} = {text}" for name, text in draft.get("formulas", {}).items()]
        lines += drafts.part_lines(item, draft)
        return lines + ([f"noise {draft['noise']}"] if draft.get("noise") else [])

    def check_draft(self, item: Problem, draft: object) -> Draft:
        return drafts.check_draft(item, draft)

    def problems(self, item: Problem, draft: Draft) -> Mapping[str, str]:
        return drafts.draft_problems(item, draft)

    def graph(self, item: Problem, draft: Draft) -> Mapping[str, Sequence[str]] | None:
        return drafts.draft_graph(item, draft)

    def cells(self, item: Problem, position: Position) -> Mapping[str, Any]:
        return drafts.draft_cells(item, position)

    def check_answer(self, item: Problem, answer: Mapping[str, Any]) -> None:
        """Raise `WordsError` for an object that is no answer; the scorer checks formulas, as it does for models."""
        mechanisms = answer.get("mechanisms", answer.get("alternative", answer.get("forecast")))
        if mechanisms is None:
            raise WordsError(f"an answer has mechanisms; its keys are {short_repr(', '.join(map(str, answer)))}")

    def view(self, item: Problem) -> dict[str, Any]:
        return worlds_view(item)


_INFIX = "Formulas may be typed as X1 and not (X2 or X3), or as (and X1 (not (or X2 X3)))."


def _world_verbs(item: Problem) -> Sequence[Verb]:
    extension = item.task.extension
    allowance = extension.allowance if extension is not None else None
    if extension is None or allowance is None:
        return ()
    form = f"do {extension.variables[0]}=1" if allowance.max_targets else "do nothing"
    if allowance.contexts is Contexts.CHOSEN:
        form += f" with {'0' * len(extension.roots)}"
    roots = f"; after `with` root values, in the order {', '.join(extension.roots)}" if " with " in form else ""
    return (Verb(form, f"ask for a world in which variables are set{roots}"), Verb("do nothing", "ask for one without"))


def _world_table(world: World) -> str:
    """Return a world as a table; values that were set are marked with a star."""
    targets = world.intervention.targets
    cells = [["", *world.variables]]
    for unit, row in zip(world.units, world.rows(), strict=True):
        cells.append([unit, *(f"{bit}*" if v in targets else f"{bit} " for v, bit in row.items())])
    widths = [max(len(row[column]) for row in cells) for column in range(len(cells[0]))]
    lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in cells]
    marked = " (* set by hand)" if targets else ""
    return "\n".join([f"World {world.id}{marked}", *lines])


def _read_do(item: Problem, position: Position, text: str) -> Act:
    extension = item.task.extension
    assert extension is not None
    allowance = extension.allowance
    assert allowance is not None
    if position.num_left <= 0:
        raise WordsError("no worlds are left; write formulas and type `submit`")
    settings, _, contexts = text.partition(" with ")
    if text.startswith("with "):
        settings, contexts = "nothing", text.removeprefix("with ")
    action: dict[str, Any] = {"do": _read_settings(item, allowance, settings)}
    if allowance.contexts is Contexts.CHOSEN:
        root_values = contexts.replace(",", " ").split()
        num_roots = len(extension.roots)
        if not 1 <= len(root_values) <= allowance.rows or any(
            len(c) != num_roots or c.strip("01") for c in root_values
        ):
            raise WordsError(
                f"expected 1 to {allowance.rows} groups of {num_roots} root values (of {', '.join(extension.roots)}); "
                f"type for example do {settings.strip() or 'nothing'} with {'0' * num_roots}"
            )
        action["contexts"] = root_values
    elif contexts:
        raise WordsError("root values cannot be chosen in this item; leave out `with`")
    return Act(action)


def _read_settings(item: Problem, allowance: Allowance, text: str) -> dict[str, int]:
    extension = item.task.extension
    assert extension is not None
    text = text.strip().strip("()")
    if text.lower() == "nothing":
        return {}
    if not text:
        raise WordsError(f"name what is set, as in do {extension.variables[0]}=1, or type do nothing")
    parts = re.sub(r"\s*=\s*", "=", text).replace(",", " ").split()
    constants: dict[str, int] = {}
    for part in parts:
        match = _SETTING.fullmatch(part)
        if match is None or match[2] not in ("0", "1"):
            raise WordsError(
                f"expected settings such as {extension.variables[0]}=1, found {short_repr(part)}; or `do nothing`"
            )
        name = match_name(match[1], extension.variables, "variable")
        if name in constants:
            raise WordsError(f"{name} is set twice")
        constants[name] = int(match[2])
    if len(constants) > allowance.max_targets:
        raise WordsError(f"{len(constants)} variables are set; at most {allowance.max_targets} can be")
    return {name: constants[name] for name in extension.variables if name in constants}


def _read_roots(item: Problem, position: Position, rest: str) -> Edit:
    names = [match_name(name, item.task.variables, "variable") for name in rest.replace(",", " ").split()]
    num_roots = item.task.disclosure.num_roots
    if len(set(names)) != num_roots:
        raise WordsError(f"there are {num_roots} roots, {len(set(names))} are named")
    formulas = {name: text for name, text in position.draft.get("formulas", {}).items() if name not in names}
    roots = [name for name in item.task.variables if name in names]
    return Edit({**position.draft, "roots": roots, "formulas": formulas})


def _read_noise(item: Problem, position: Position, rest: str) -> Edit:
    rates = drafts.noise_rates(item)
    if rest not in rates:
        raise WordsError(f"expected one of {', '.join(rates)}, found {short_repr(rest)}")
    return Edit({**position.draft, "noise": rest})


def _read_submit(item: Problem, position: Position, rest: str) -> Act:
    return Act({"submit": drafts.answer_of_draft(item, position.draft)})


WORDS = ScmWords()


# --- Episodes of ReplaySCM: how they are opened, acted in and submitted -----------------------------------------------
TYPED_WORLD = re.compile(r"do((?:[\s,]+\w+=\d{1,9})*)", re.ASCII)


class ScmPlay(Playable[Problem]):
    """Implements Playable (bench.core.capabilities); items of other kinds are answered at once."""

    prompts_show_opening = True

    def is_played(self, item: Problem) -> bool:
        return item.task.kind is TaskKind.EPISODE

    def open(self, item: Problem) -> ScmEpisode:
        if not self.is_played(item):
            raise CalibrantError(f"{in_one_line(item.id)} is no episode: it is answered at once")
        return ScmEpisode(item)

    def chat(self, item: Problem, instructions: str = "", thoughts: Thoughts = "strip") -> Chat:
        from calibrant.bench.replayscm.episodes import ScmChat

        return ScmChat(self.open(item), instructions, thoughts)

    def parse_action(self, item: Problem, text: str) -> Action:
        from calibrant.bench.replayscm.episodes import read_action_text

        # by hand: do X1=1 X5=0
        typed = TYPED_WORLD.fullmatch(text.strip())
        if typed is not None:
            pairs = (pair.split("=") for pair in typed[1].replace(",", " ").split())
            return {"do": {name: int(bit) for name, bit in pairs}}
        return read_action_text(text)

    def describe(self, episode: Episode[Any, Any], step: Step[Any]) -> str:
        from calibrant.bench.replayscm.episodes import describe_step

        return describe_step(episode, step)


PLAY = ScmPlay()
