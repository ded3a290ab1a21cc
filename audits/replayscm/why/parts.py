"""Parts of the reason why an item is open: data of a page, values of two SCMs, and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import combinations, islice, product
from typing import Any, NamedTuple

import msgspec

from calibrant.audits.why import Fact, Span, State, Why, listed, number_text, spans
from calibrant.dsl.formulas.table import projection
from calibrant.dsl.formulas.text import ALL_OPERATORS, parse, render
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.evaluator import MAX_LAID_ROWS, Candidate, lay_out
from calibrant.dsl.replayscm.item import Task
from calibrant.dsl.replayscm.reference import replay_row
from calibrant.dsl.replayscm.scm import Scm, scm
from calibrant.dsl.replayscm.world import Column, Intervention, World

# --- Values of a variable, row by row over the parents of two SCMs; and a row in which the two differ -----------------
MAX_ROOTS = 12  # roots whose assignments are all simulated
MAX_TARGETS = 3  # targets of an intervention of a witness, unless it sets all parents
MAX_UNION = 8  # parents of both SCMs together up to which every row is listed


def union_parents(variable: str, *models: Scm) -> tuple[str, ...]:
    """Return the functional parents of a variable in at least one of the models, in natural order."""
    return natural({u for model in models for u in model.local_functions[variable].parents})


def table_rows(task: Task, variable: str, first: Scm, second: Scm) -> tuple[TableRow, ...]:
    """Return a row for each assignment of the parents in either model; beyond MAX_UNION parents, for those shown."""
    parents = union_parents(variable, first, second)
    visible, clamped = _rows_by_assignment(task, variable, parents)
    lists_all = len(parents) <= MAX_UNION
    keys = list(product((0, 1), repeat=len(parents))) if lists_all else sorted({*visible, *clamped})
    rows = []
    for key in keys:
        values = dict(zip(parents, key, strict=True))
        visible_rows = visible.get(key, [])
        rows.append(
            TableRow(
                values=values,
                observed=visible_rows[0][1] if visible_rows else None,
                first=local_value(first, variable, values),
                second=local_value(second, variable, values),
                where=tuple(row_name for row_name, _ in visible_rows),
                set_in=tuple(clamped.get(key, [])),
            )
        )
    return tuple(rows)


def local_value(model: Scm, variable: str, values: Mapping[str, int]) -> int:
    """Return the value of a mechanism, given the values of its functional parents."""
    local = model.local_functions[variable]
    row = sum(values[u] << i for i, u in enumerate(local.parents))
    return local.table.bits >> row & 1


Key = tuple[int, ...]  # values of the parents


def _rows_by_assignment(
    task: Task, variable: str, parents: Sequence[str]
) -> tuple[dict[Key, list[tuple[str, int]]], dict[Key, list[str]]]:
    """Return the training rows, as "world unit", by assignment of the parents.

    First the rows in which the variable is free, with its value; then those in which it is set.
    """
    visible: dict[Key, list[tuple[str, int]]] = {}
    clamped: dict[Key, list[str]] = {}
    for world in task.training.worlds:
        for unit, row in zip(world.units, world.rows(), strict=True):
            key, row_name = tuple(row[u] for u in parents), f"{world.id} {unit}"
            if variable in world.intervention.targets:
                clamped.setdefault(key, []).append(row_name)
            else:
                visible.setdefault(key, []).append((row_name, row[variable]))
    return visible, clamped


class Context(NamedTuple):
    """Values of the variables that are set, and of the roots that are not set."""

    targets: dict[str, int]
    roots: dict[str, int]


def differing_contexts(
    variable: str, first: Scm, second: Scm, menu: Sequence[Mapping[str, int]], limit: int = 1
) -> Iterator[list[Context] | None]:
    """Yield, for each intervention of the menu, up to `limit` contexts in which the variable differs between two SCMs.

    Roots that are ancestors of the variable in neither SCM are 0; None if more than MAX_ROOTS roots are ancestors.
    """
    parents: dict[str, frozenset[str]] = dict.fromkeys(first.variables, frozenset())
    for model in (first, second):
        parents |= {v: parents[v] | mechanism.mentioned for v, mechanism in model.mechanisms.items()}
    ancestors = _ancestors(variable, parents, {})
    models = [Candidate(m.mechanisms, tuple(v for v in m.order if v in ancestors)) for m in (first, second)]
    needed_roots = [u for u in first.roots if u in ancestors]
    length = MAX_LAID_ROWS >> len(needed_roots) if len(needed_roots) <= MAX_ROOTS else 1
    for start in range(0, len(menu), length):
        chunk = menu[start : start + length]
        needed = [
            [u for u in needed_roots if u not in cut and u in _ancestors(variable, parents, cut)] for cut in chunk
        ]
        roots = needed_roots if length > 1 else needed[0]
        if len(roots) > MAX_ROOTS:
            yield None
            continue
        layout = lay_out(first.variables, roots, chunk)
        columns = [layout.simulate(model)[variable] for model in models]
        for index, (targets, names) in enumerate(zip(chunk, needed, strict=True)):
            rows = layout.block(columns[0] ^ columns[1], index)
            for i, u in enumerate(roots):
                if u not in names:
                    rows &= ~projection(i, len(roots)).bits
            yield [_context(first, targets, roots, row) for row in islice(_ones(rows), limit)]


def _context(model: Scm, targets: Mapping[str, int], roots: Sequence[str], row: int) -> Context:
    values = {u: row >> i & 1 for i, u in enumerate(roots)}
    return Context(dict(targets), {u: values.get(u, 0) for u in model.roots if u not in targets})


def _ones(rows: Column) -> Iterator[int]:
    while rows:
        yield (rows & -rows).bit_length() - 1
        rows &= rows - 1


def _ancestors(variable: str, parents: Mapping[str, Set[str]], cut: Mapping[str, int]) -> set[str]:
    """Return the variable and its ancestors; targets (`cut`) have none, except the variable itself."""
    waiting, reached = [variable], {variable}
    while waiting:
        name = waiting.pop()
        if name not in cut or name == variable:
            waiting += parents[name] - reached
            reached |= parents[name]
    return reached


def target_menu(variable: str, first: Scm, second: Scm) -> list[dict[str, int]]:
    """Return interventions to try, fewest targets first: none, each variable, sets of the parents of both SCMs."""
    names = [u for u in natural(first.variables) if u != variable]
    parents = union_parents(variable, first, second)
    menu: list[dict[str, int]] = [{}, *({u: bit} for u in names for bit in (0, 1))]
    for num_targets in range(2, min(MAX_TARGETS, len(parents)) + 1):
        menu += [
            dict(zip(chosen, bits, strict=True))
            for chosen in combinations(parents, num_targets)
            for bits in product((0, 1), repeat=num_targets)
        ]
    if len(parents) > MAX_TARGETS:
        table = table_rows_that_differ(variable, first, second)
        menu += [dict(zip(parents, key, strict=True)) for key in table[:1]]
    return menu


def table_rows_that_differ(variable: str, first: Scm, second: Scm) -> list[Key]:
    """Return the rows over the union of the parents in which two SCMs give different values."""
    parents = union_parents(variable, first, second)
    keys = product((0, 1), repeat=len(parents))
    return [
        key
        for key in keys
        if local_value(first, variable, values := dict(zip(parents, key, strict=True)))
        != local_value(second, variable, values)
    ]


def values_at(model: Scm, context: Context) -> dict[str, int]:
    """Return the values of all variables by the reference: targets as set, roots as given, the rest computed."""
    world = World("context", Intervention(context.targets), model.variables, (), ())
    return replay_row(model, world, context.roots)


def witness(variable: str, context: Context, first: Scm, second: Scm) -> Witness:
    """Return the row of a context as a witness that two SCMs differ in a variable."""
    first_values, second_values = values_at(first, context), values_at(second, context)
    differing = tuple(u for u in natural(first.variables) if first_values[u] != second_values[u])
    needs_set = bool(context.targets) and not _differs_untouched(variable, first, second)
    return Witness(context.targets, context.roots, differing, needs_set)


def _differs_untouched(variable: str, first: Scm, second: Scm) -> bool:
    contexts = next(differing_contexts(variable, first, second, [{}]))
    return contexts is None or bool(contexts)  # too many roots: claim nothing


# --- Facts about the gold SCM, added to a reason ----------------------------------------------------------------------


def with_truth(why: ReplayWhy, gold: Scm) -> ReplayWhy:
    """Return the reason with the gold SCM, the SCMs that its readings leave, and which of the pair has its function."""
    facts = [Fact(_pair_words(why, gold), "gold")] if why.pair is not None else []
    mechanisms = {name: render(gold.mechanisms[name]) for name in gold.order}
    deciders = tuple(_with_reading(decider, why.columns, gold) for decider in why.deciders)
    return msgspec.structs.replace(why, true_mechanisms=mechanisms, sealed=tuple(facts), deciders=deciders)


def _pair_words(why: ReplayWhy, gold: Scm) -> str:
    assert why.pair is not None
    variable = why.pair.differing[0]
    equal = [
        letter
        for letter, model in (("A", why.pair.first), ("B", why.pair.second))
        if _has_function(model, variable, gold)
    ]
    return f"true {variable}: that of {equal[0]}" if equal else f"true {variable}: neither A nor B"


def _has_function(model: FittingScm, variable: str, gold: Scm) -> bool:
    if variable not in model.mechanisms or variable not in gold.mechanisms:
        return variable not in model.mechanisms and variable not in gold.mechanisms
    fitting = scm(model.roots, {name: parse(text, ALL_OPERATORS) for name, text in model.mechanisms.items()})
    return fitting.local_functions[variable] == gold.local_functions[variable]


def _with_reading(decider: Decider, variables: Sequence[str], gold: Scm) -> Decider:
    """Return a decider with the number of SCMs that the gold SCM's reading leaves."""
    targets = decider.world.get("constants", {})
    (pattern,) = decider.world["rows"]
    roots = {name: int(bit) for name, bit in zip(variables, pattern, strict=True) if bit != "?" and name not in targets}
    if not set(gold.roots) <= roots.keys() | targets.keys():
        return decider
    values = values_at(gold, Context(dict(targets), roots))
    row = "".join(str(values[name]) for name in variables)
    remaining = next((reading.remaining for reading in decider.readings if reading.row == row), None)
    return msgspec.structs.replace(decider, sealed=remaining)


# --- The parts of the reason why a ReplaySCM item is open -------------------------------------------------------------


class EvidenceWorld(msgspec.Struct, frozen=True):
    """A training world: intervention in words, variables it sets, and for each unit its row as a text of 0 and 1."""

    id: str
    intervention: str
    targets: tuple[str, ...]
    units: tuple[str, ...]
    rows: tuple[str, ...]


class Evidence(msgspec.Struct, frozen=True):
    """The training worlds; `roots`: None if they are hidden."""

    variables: tuple[str, ...]
    roots: tuple[str, ...] | None
    worlds: tuple[EvidenceWorld, ...]

    @property
    def num_rows(self) -> int:
        return sum(len(world.rows) for world in self.worlds)


class FittingScm(msgspec.Struct, frozen=True):
    """An SCM that replays every training world.

    mechanisms: variable -> prefix text, parents before children; parents: variable -> functional parents
    size: total formula size; values: variable -> value at the witness, {} without a witness
    """

    roots: tuple[str, ...]
    mechanisms: dict[str, str]
    parents: dict[str, tuple[str, ...]]
    size: int
    values: dict[str, int]


class TableRow(msgspec.Struct, frozen=True):
    """A row over the union of the pair's parents.

    values: of the parents; observed: value of the variable in rows in which it is free, None if no such row is shown
    first, second: value by each SCM of the pair
    where: rows ("world unit") that show it with the variable free; set_in: with the variable set
    """

    values: dict[str, int]
    observed: int | None
    first: int
    second: int
    where: tuple[str, ...]
    set_in: tuple[str, ...]

    @property
    def differs(self) -> bool:
        return self.first != self.second


class Pair(msgspec.Struct, frozen=True):
    """Two SCMs that fit, differ in as few variables as possible, and then have the least total size.

    differing: variables whose function differs; rows: table of the first of them
    least: whether the total size is proven least among such pairs
    """

    differing: tuple[str, ...]
    first: FittingScm
    second: FittingScm
    rows: tuple[TableRow, ...]
    least: bool


class Witness(msgspec.Struct, frozen=True):
    """A row in which the pair differs: variables set, values of the roots, variables that differ.

    needs_set: whether the pair differs in no row without an intervention
    """

    intervention: dict[str, int]
    roots: dict[str, int]
    differs: tuple[str, ...]
    needs_set: bool


class Reading(msgspec.Struct, frozen=True):
    """A row that a world may show, and the number of SCMs consistent with it, in decimal."""

    row: str
    remaining: str


class Decider(msgspec.Struct, frozen=True):
    """A world of one row that splits the SCMs that fit.

    in_words: the world as part of a sentence
    world: a line of `training` in the pool format, with ? for values to observe, in the order of `ReplayWhy.columns`
    readings: every possible one; only those of the pair if `complete` is false, because the roots are hidden
    least, most, expected: numbers of SCMs left; `expected` if those that fit are equally probable, None if not complete
    table_line: the world as a line of the table that the item was made of, "" for other items
    table_hint: what to replace in that line if its values are not 0 and 1, or it cannot name what it sets
    sealed: number of SCMs that the reading of the gold SCM leaves; None unless gold is revealed
    """

    in_words: str
    world: dict[str, Any]
    readings: tuple[Reading, ...]
    least: str
    most: str
    expected: float | None
    complete: bool = True
    sealed: str | None = None
    table_line: str = ""
    table_hint: str = ""

    @property
    def decides(self) -> bool:
        return self.complete and self.most == "1"


class OpenVariable(msgspec.Struct, frozen=True):
    """An open variable: numbers of its functions and parent sets in SCMs that fit, and whether it may be a root.

    total: number of rows over the union of the parents of a pair that differs in it; None without such a pair
    never: number of these rows that no training world shows with the variable free
    """

    name: str
    functions: str
    parent_sets: int
    may_be_root: bool
    never: int | None = None
    total: int | None = None


class WithoutWorld(msgspec.Struct, frozen=True):
    """Number of SCMs that would fit without a training world."""

    world: str
    remaining: str


class Contradiction(msgspec.Struct, frozen=True):
    """Two rows ("world unit") that agree in all variables that may be parents, and differ in the variable."""

    variable: str
    first: str
    second: str


class Exclusion(msgspec.Struct, frozen=True):
    """A parent set that the evidence excludes: rows `first` and `second` agree in it and differ in the variable.

    first, second: "" if the rows admit the set, but every SCM with it has a cycle
    """

    parents: tuple[str, ...]
    first: str = ""
    second: str = ""


class DecidedVariable(msgspec.Struct, frozen=True):
    """A mechanism of the only SCM that fits.

    parents: functional parents; rows: its table over them, `first` and `second` are equal
    excluded: the smallest parent sets that lack one of the parents; num_excluded: number of all, None if too many
    """

    name: str
    parents: tuple[str, ...]
    rows: tuple[TableRow, ...]
    excluded: tuple[Exclusion, ...]
    num_excluded: int | None


class ReplayWhy(Why, frozen=True, kw_only=True):
    """The reason for a ReplaySCM item; `max_parents`: parent limit of the class that was counted.

    columns: order of the variables in rows of the item's file; deciders: best first; variables: the open ones
    model, mechanisms, without: if exactly one SCM fits; contradiction: if none of any class fits
    true_mechanisms: prefix texts of the gold SCM; None unless it is revealed
    """

    max_parents: int
    evidence: Evidence
    columns: tuple[str, ...]
    pair: Pair | None = None
    witness: Witness | None = None
    deciders: tuple[Decider, ...] = ()
    variables: tuple[OpenVariable, ...] = ()
    model: FittingScm | None = None
    mechanisms: tuple[DecidedVariable, ...] = ()
    without: tuple[WithoutWorld, ...] = ()
    contradiction: Contradiction | None = None
    true_mechanisms: dict[str, str] | None = None
    certificate: dict[str, Any] | None = None


# --- Title, reason and facts in words; the same for pages, JSON and the terminal --------------------------------------
TITLES: dict[State, str] = {
    "open": "Why is \u201c{}\u201d ambiguous?",
    "uncounted": "Why is \u201c{}\u201d ambiguous?",
    "decided": "Which SCM fits \u201c{}\u201d?",
    "empty": "Why does nothing fit \u201c{}\u201d?",
}


def title(item: str, state: State) -> str:
    """Return the question that the page of an item answers."""
    return TITLES[state].format(item)


def target_title(variable: str, state: State) -> str:
    """Return the question that the page of one variable of a table answers."""
    return f"Which formula gives \u201c{variable}\u201d?" if state == "decided" else title(variable, state)


def reason(why: ReplayWhy, asked_parents: int) -> tuple[Span, ...]:
    """Return the reason in at most two sentences, with the important parts marked."""
    if why.state == "empty":
        return _nothing_fits(why, asked_parents)
    wider = f"No SCM with at most {asked_parents} parents fits. " if why.max_parents > asked_parents else ""
    if why.state == "decided":
        decision = f"With at most {why.max_parents}, one SCM fits" if wider else "One SCM fits"
        return spans(f"{wider}{decision}: every mechanism is decided", *_what_decides(why), ".")
    num_fit = _fit(why, f"With at most {why.max_parents}, " if wider else "")
    if why.pair is None:
        return (
            spans(
                f"{wider}{num_fit}; ", (listed(list(why.open)),), f" {'stays' if len(why.open) == 1 else 'stay'} open."
            )
            if why.open
            else spans(f"{wider}{num_fit}.")
        )
    variable = why.pair.differing[0]
    row = witness_row(why)
    if row is None:
        difference = f"differ in {listed(list(why.pair.differing))}"
        return spans(f"{wider}{num_fit}. Two of them {difference}: ", ("what is a root",), " is not told.")
    values = ", ".join(f"{name} = {bit}" for name, bit in row.values.items())
    visible = "No row shows " if row.values else "No row leaves "
    never = (
        spans(wider, visible, (variable,), " with ", (values,), f" while {variable} is free")
        if row.values
        else spans(wider, visible, (variable,), " free")
    )
    unset = unset_parents(why, row)
    because = f", and no world sets {listed(unset)}" if unset else ""
    is_pair = why.count.is_exact and why.count.lower == "2"
    fit = (
        f"{num_fit} everything else and disagree there"
        if is_pair
        else f"{num_fit} what is shown; two of them disagree there"
    )
    return (*never, *spans(f"{because}. {fit}."))


def _fit(why: ReplayWhy, start: str) -> str:
    """Return how many SCMs fit, as the beginning of a sentence; `start`: a clause before it, or ""."""
    words = "two" if why.count.is_exact and why.count.lower == "2" else why.count.in_words()
    text = f"{start}{words} SCMs fit"
    return f"{text[0].upper()}{text[1:]}"


def _what_decides(why: ReplayWhy) -> Iterator[str | tuple[str]]:
    """Yield the world without which most SCMs would fit."""
    remaining_by_world = [(int(entry.remaining), entry.world) for entry in why.without if entry.remaining.isdecimal()]
    if remaining_by_world:
        remaining, world = max(remaining_by_world, key=lambda entry: entry[0])
        if remaining > 1:
            yield ". Without "
            yield (world,)
            yield f", {number_text(remaining)} SCMs would fit"
        else:
            yield ", and any one world can be left out"


def _nothing_fits(why: ReplayWhy, asked_parents: int) -> tuple[Span, ...]:
    if why.contradiction is not None:
        clash = why.contradiction
        return spans(
            "No SCM of any class fits: ",
            (f"{clash.first} and {clash.second}",),
            f" agree in everything that {clash.variable} may depend on, and differ in {clash.variable}.",
        )
    return spans(f"No SCM with at most {asked_parents} parents fits, nor any with at most {why.max_parents}.")


def witness_row(why: ReplayWhy) -> TableRow | None:
    """Return the row of the pair's table that the witness shows; without a witness, the first that differs."""
    if why.pair is None:
        return None
    parting = [row for row in why.pair.rows if row.differs]
    values = why.pair.first.values
    return next((row for row in parting if all(values.get(u) == bit for u, bit in row.values.items())), None) or next(
        iter(parting), None
    )


def unset_parents(why: ReplayWhy, row: TableRow) -> list[str]:
    """Return the parents that the witness has to set, as mechanisms never give these values, and that no world sets."""
    if why.witness is None or not why.witness.needs_set:
        return []
    set_somewhere = {name for world in why.evidence.worlds for name in world.targets}
    return [name for name in why.witness.intervention if name in row.values and name not in set_somewhere]


def facts(why: ReplayWhy) -> tuple[Fact, ...]:
    """Return at most six facts: how many SCMs fit, open and decided variables, the class, the best world to add."""
    parts = [_count_fact(why)]
    if why.open:
        parts.append(Fact(f"open: {listed(list(why.open))}"))
    if why.decided and why.state != "decided":
        parts.append(Fact(f"decided: {listed(list(why.decided))}"))
    count_words = (
        "counted exactly" if why.count.is_exact else f"at most {number_text(int(why.count.upper or why.count.lower))}"
    )
    parts.append(Fact(f"{count_words}; each variable depends on at most {why.max_parents} others"))
    if why.state == "open":
        parts.append(Fact(cost(why.deciders)))
    return tuple(parts)


def _count_fact(why: ReplayWhy) -> Fact:
    if why.state == "empty":
        return Fact("no SCM fits", "bad")
    if why.state == "decided":
        return Fact("1 SCM fits", "good")
    return Fact(f"{why.count.in_words()} SCMs fit", "warn")


def cost(deciders: tuple[Decider, ...]) -> str:
    """Return how many SCMs the best world of one row leaves, as text."""
    if not deciders:
        return "no single row was measured"
    best = deciders[0]
    if best.decides:
        return "one row would settle it"
    if not best.complete:
        return f"the pair's readings of one row leave {range_text(best)}"
    return f"one row leaves {range_text(best)}"


def range_text(decider: Decider) -> str:
    """Return "least to most" SCMs that a world leaves; one number if they are equal."""
    least, most = number_text(int(decider.least)), number_text(int(decider.most))
    return least if decider.least == decider.most else f"{least} to {most}"
