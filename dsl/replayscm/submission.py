"""From an answer object to a candidate: checks in the published order, and a cache of mechanism texts.

Samples of a model repeat mechanisms far more often than whole answers. A cached result depends on text, variable and
problem alone, so the cache never changes a verdict.

The first failure decides; nothing is repaired. Each check is a stage of validity of the paper's Table C.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeAlias

from calibrant.dsl.errors import CycleError, ParseError, short_repr
from calibrant.dsl.formulas.formula import BY_CODE, Apply, Formula, Node
from calibrant.dsl.formulas.text import Grammar, parse, render
from calibrant.dsl.memory import CacheBudget, TextCache
from calibrant.dsl.replayscm.disclosure import Disclosure, RootedDisclosure, key_violation, natural
from calibrant.dsl.replayscm.evaluator import MAX_WORD_VARS, Candidate, Judge
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.dsl.replayscm.scm import Scm, topological_order
from calibrant.dsl.replayscm.world import Column, Panel
from calibrant.dsl.text import natural_key

# --- Cached mechanisms: each text is parsed once, and its statistics and errors are stored with it --------------------
MECHANISM_BUDGET = CacheBudget(1 << 15, max_chars=400)  # mechanisms of about 700 bytes each
COUNT_BITS = 10  # bits of an operator's count in the facts of compiled code
AS_OBSERVED = 1  # flag in these facts: all mentioned values were as observed
MIN_NEW, MIN_NEW_SHARE = 20_000, 0.25  # mechanisms, and share of them: see Novelty


class Novelty:
    """Numbers of checked and of new (not cached) mechanisms in this process, which decide on the use of compiled code.

    Compiled code takes half the time for an answer whose mechanisms are all new, two thirds if two of six are, but
    needs a third of a second and 120 MB to load: it is used once MIN_NEW were new, and at least MIN_NEW_SHARE of all.
    """

    def __init__(self) -> None:
        self.num_checked = self.num_new = 0

    @property
    def justifies_compiling(self) -> bool:
        return self.num_new >= MIN_NEW and self.num_new >= MIN_NEW_SHARE * self.num_checked


NOVELTY = Novelty()


class OperatorCounts:
    """The number of occurrences of each operator, in order of appearance; equal counts share one object.

    has_if: whether the ternary operator occurs
    """

    __slots__ = ("by_name", "has_if")

    def __init__(self, by_name: dict[str, int]) -> None:
        self.by_name = by_name
        self.has_if = "if" in by_name


class MechanismStats(NamedTuple):
    """Number of nodes, depth, mentioned variables in natural order, and operator counts of a mechanism."""

    size: int
    depth: int
    variables: tuple[str, ...]
    operators: OperatorCounts


class Mechanism:
    """The mechanism of one variable in answers to one problem.

    bit: of its variable; mentions: bits of the mentioned variables; variables: their names in natural order
    error: rows of the problem in which it is wrong although all mentioned values are right; None if not computed yet
    described: its statistics; None if not computed yet
    table: its truth table, if known and of at most MAX_WORD_VARS variables, with undefined bits beyond its rows
    function: text of its function (bench.replayscm.scoring); None if not computed yet
    """

    __slots__ = ("bit", "described", "error", "formula", "function", "mentions", "table")

    formula: Formula

    def __init__(self, bit: int, mentions: int, formula: Formula) -> None:
        self.formula = formula
        self.bit = bit
        self.mentions = mentions
        self.described: MechanismStats | None = None
        self.error: Column | None = None
        self.table: int | None = None
        self.function: str | None = None

    @property
    def stats(self) -> MechanismStats:
        if self.described is None:
            self.described = self._stats()
        return self.described

    @property
    def variables(self) -> tuple[str, ...]:
        return _names(frozenset(self.formula.nodes))

    def _stats(self) -> MechanismStats:
        return mechanism_stats(self.formula)


class JudgedMechanism(Mechanism):
    """A mechanism that compiled code has read (dsl.replayscm.evaluator.Judge); its formula is parsed on use.

    facts: see `Judge.facts`
    wrong: the rows in which it was wrong in that answer
    """

    __slots__ = ("_facts", "_grammar", "_text", "_variables")

    def __init__(
        self, text: str, grammar: Grammar, bit: int, variables: tuple[str, ...], facts: Sequence[int], wrong: Column
    ) -> None:
        self._text, self._grammar, self._variables, self._facts = text, grammar, variables, facts
        self.bit, self.mentions = bit, facts[2]
        self.described = self.function = None
        self.error = wrong if facts[5] & AS_OBSERVED else None
        self.table = facts[6] if len(variables) <= MAX_WORD_VARS else None

    def __getattr__(self, name: str) -> Any:
        """Parse the formula at its first access; later ones are plain attribute reads."""
        if name != "formula":
            raise AttributeError(name)
        self.formula = parse(self._text, self._grammar, self._variables)
        return self.formula

    @property
    def variables(self) -> tuple[str, ...]:
        return self._variables

    def _stats(self) -> MechanismStats:
        facts = self._facts
        return MechanismStats(facts[0], facts[1], self._variables, _unpack_counts(facts[3], facts[4]))


def mentions(formula: Formula, bit: Callable[[str], int]) -> int:
    """Return the mentioned variables, as bits."""
    mask = 0
    for node in formula.nodes:
        if isinstance(node, str):
            mask |= bit(node)
    return mask


def mechanism_stats(mechanism: Formula) -> MechanismStats:
    """Return the statistics of a formula, in one pass."""
    counts: dict[str, int] = {}
    depths: list[int] = []
    for node in mechanism.nodes:
        if isinstance(node, Apply):
            operator, arity = node
            counts[operator] = counts.get(operator, 0) + 1
            if arity > 1:
                deepest = max(depths[-arity:])
                del depths[1 - arity :]
                depths[-1] = deepest
            depths[-1] += 1
        else:
            depths.append(1)
    variables = _names(frozenset(mechanism.nodes))
    return MechanismStats(len(mechanism.nodes), depths[0], variables, _intern_counts(tuple(counts.items())))


@lru_cache(maxsize=1 << 14)
def _names(nodes: frozenset[Node]) -> tuple[str, ...]:
    """Return the variables among nodes in natural order; cached, as few sets recur often."""
    return tuple(sorted([node for node in nodes if isinstance(node, str)], key=natural_key))


@lru_cache(maxsize=1 << 12)
def _intern_counts(counts: tuple[tuple[str, int], ...]) -> OperatorCounts:
    return OperatorCounts(dict(counts))


@lru_cache(maxsize=1 << 12)
def _unpack_counts(counts: int, order: int) -> OperatorCounts:
    """Unpack two words: COUNT_BITS for each operator's count, by code; four bits for each that occurs, its code + 1."""
    counted_operators: list[tuple[str, int]] = []
    while order:
        code = (order & 15) - 1
        counted_operators.append((BY_CODE[code].name, counts >> COUNT_BITS * code & (1 << COUNT_BITS) - 1))
        order >>= 4
    return _intern_counts(tuple(counted_operators))


@lru_cache(maxsize=1 << 12)
def sum_counts(*counts: OperatorCounts) -> Mapping[str, int]:
    """Return the summed counts, in order of appearance; cached, as answers of one shape share them."""
    total: dict[str, int] = {}
    for operator_counts in counts:
        for name, count in operator_counts.by_name.items():
            total[name] = total.get(name, 0) + count
    return total


# --- From an answer object to a candidate: schema, keys, parse, legality, acyclicity, in the published order of checks
STAGES = ("extracted", "schema", "keys", "parse", "legal", "acyclic")
"""The stages of validity, in their order; a submission that passes all is valid."""


MAX_CACHED_LISTS = 256  # well-formed lists of roots that are cached


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a submission is not valid.

    stage: the first failed stage
    reason: one line that names the fault and what is allowed
    fields: keys that the published scorer reports beside the verdict
    """

    stage: str
    reason: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Submission(NamedTuple):
    """A valid answer: its mechanisms in latent order, their evaluation order, and its roots.

    wrong: variable -> wrong rows, if compiled code computed them while reading the texts; else None
    """

    mechanisms: Mapping[str, Mechanism]
    order: tuple[str, ...]
    roots: tuple[str, ...]
    wrong: Mapping[str, Column] | None = None

    @property
    def candidate(self) -> Candidate:
        """Formulas and evaluation order, for replay."""
        return Candidate({variable: mechanism.formula for variable, mechanism in self.mechanisms.items()}, self.order)


_Shelves: TypeAlias = dict[tuple[str, frozenset[str]], TextCache["Mechanism | Rejection"]]


class MapChecker:
    """Checks mechanism maps (variable -> text) against one disclosure with known roots; one serves all answers.

    caches: (variable, admissible parents) -> cache of parsed texts; shared by all root sets of a problem
    panel: all worlds of the problem, for compiled code; None: it is not used
    """

    def __init__(
        self,
        disclosure: RootedDisclosure,
        grammar: Grammar,
        latent: Sequence[str],
        caches: _Shelves,
        panel: Panel | None = None,
    ) -> None:
        self.grammar = grammar
        self._panel = panel
        self.roots = disclosure.roots
        position = {variable: index for index, variable in enumerate(latent)}
        self.endogenous = tuple(sorted(disclosure.endogenous, key=position.__getitem__))
        self._keys = frozenset(self.endogenous)
        self._variables = frozenset(disclosure.variables)
        self._allowed = {v: disclosure.admissible_parents(v) for v in self.endogenous}
        self._shelves = {
            v: caches.setdefault((v, self._allowed[v]), MECHANISM_BUDGET.new_cache()) for v in self.endogenous
        }
        self._bits = {variable: 1 << index for index, variable in enumerate(natural(disclosure.variables))}
        self._fixed_order = None if disclosure.order is None else self.endogenous
        # evaluation follows the latent order wherever the mentions leave a choice; within blocks, block by block
        self._key = {v: (disclosure.group_index(v), position[v]) for v in self.endogenous}
        self._first_order = tuple(sorted(self.endogenous, key=self._key.__getitem__))
        self._all = sum(self._bits[v] for v in self.endogenous)
        self._names_by_bits: dict[int, tuple[str, ...]] = {}  # variables by their bits

    def check(self, mechanisms: Any) -> Submission | Rejection:
        """Return the submission, or the first reason why the map is not valid."""
        if not isinstance(mechanisms, dict):
            return Rejection("schema", f"'mechanisms' is {short_repr(mechanisms)}, not an object of variable: formula")
        if mechanisms.keys() != self._keys:
            return _wrong_keys(mechanisms, self.endogenous)
        checked: dict[str, Mechanism] = {}
        NOVELTY.num_checked += len(self._keys)
        may_compile = self._panel is not None
        for variable, text_cache in self._shelves.items():
            text = mechanisms[variable]
            mechanism = text_cache.newer.get(text) if isinstance(text, str) else None
            if mechanism is None:
                mechanism = MECHANISM_BUDGET.promote(text_cache, text) if isinstance(text, str) else None
            if mechanism is None:
                if may_compile and NOVELTY.justifies_compiling:
                    may_compile = False
                    judged = self._judge_plain(mechanisms)
                    if judged is not None:
                        return judged
                NOVELTY.num_new += 1
                mechanism = self._parse_mechanism(variable, text)
                if isinstance(text, str):
                    MECHANISM_BUDGET.store(text_cache, text, mechanism)
            if isinstance(mechanism, Rejection):
                return mechanism
            checked[variable] = mechanism
        try:
            order = self._fixed_order or self._order(checked)
        except CycleError as error:
            return Rejection("acyclic", str(error), {"cycleVariables": list(error.variables)})
        return Submission(checked, order, self.roots)

    def _judge_plain(self, mechanisms: Mapping[str, Any]) -> Submission | None:
        """Read and replay a map of plain texts by compiled code; None for any other map."""
        order, judge = self._preferred_order, self._judge
        try:
            verdict = judge.judge([mechanisms[variable] for variable in order])
        except TypeError:  # not all of them are texts
            return None
        if verdict is None:
            return None
        wrong, judged_order = verdict
        facts = judge.facts()
        checked: dict[str, Mechanism] = {}
        for index, (variable, text_cache) in zip(self._judged_indices, self._shelves.items(), strict=True):
            text = mechanisms[variable]
            mechanism = text_cache.newer.get(text)
            if not isinstance(mechanism, Mechanism):
                NOVELTY.num_new += 1
                mechanism_facts = facts[index]
                names = self._names_by_bits.get(mechanism_facts[2]) or self._names(mechanism_facts[2])
                rows = 0 if wrong is None else wrong[index]
                mechanism = JudgedMechanism(text, self.grammar, self._bits[variable], names, mechanism_facts, rows)
                MECHANISM_BUDGET.store(text_cache, text, mechanism)
            checked[variable] = mechanism
        if judged_order is not None:
            order = tuple([order[index] for index in judged_order])
        if wrong is None:
            return Submission(checked, order, self.roots, dict.fromkeys(order, 0))
        rows_of = wrong if judged_order is None else [wrong[index] for index in judged_order]
        return Submission(checked, order, self.roots, dict(zip(order, rows_of, strict=True)))

    @property
    def _preferred_order(self) -> tuple[str, ...]:
        """Evaluation order, unless mentions require another one."""
        return self._fixed_order or self._first_order

    @cached_property
    def _judge(self) -> Judge:
        assert self._panel is not None
        return Judge(natural(self._variables), self._preferred_order, self.grammar, self._allowed, self._panel)

    @cached_property
    def _judged_indices(self) -> list[int]:
        """Index of each endogenous variable, in latent order, among the judged texts."""
        return [*map(self._preferred_order.index, self.endogenous)]

    def _names(self, mentions: int) -> tuple[str, ...]:
        """Return the variables with these bits."""
        if len(self._names_by_bits) >= MAX_CACHED_LISTS:
            self._names_by_bits.clear()
        names = self._names_by_bits[mentions] = tuple(v for v, bit in self._bits.items() if bit & mentions)
        return names

    def _order(self, mechanisms: Mapping[str, Mechanism]) -> tuple[str, ...]:
        """Return the smallest topological order; `CycleError` without one. Most answers admit the preferred order."""
        later = self._all
        for variable in self._first_order:
            mechanism = mechanisms[variable]
            if mechanism.mentions & later:
                formulas = {name: checked.formula for name, checked in mechanisms.items()}
                return topological_order(formulas, self._key.__getitem__)
            later ^= mechanism.bit
        return self._first_order

    def _parse_mechanism(self, variable: str, text: Any) -> Mechanism | Rejection:
        if not isinstance(text, str):
            return _parse_rejection(variable, f"is {short_repr(text)}, not a text")
        text = text.strip()
        if not text:
            return _parse_rejection(variable, "is blank")
        if "\n" in text or "\r" in text or "\t" in text:
            return _parse_rejection(variable, "contains a line break or tab")
        try:
            formula = parse(text, self.grammar, self._allowed[variable])
        except ParseError as error:
            is_variable = error.kind == "variable_not_allowed" and error.token in self._variables
            fields = {"variable": variable, "parseError": str(error)}
            return Rejection("legal" if is_variable else "parse", f"mechanism of '{variable}': {error}", fields)
        return Mechanism(self._bits[variable], mentions(formula, self._bits.__getitem__), formula)


def _parse_rejection(variable: str, problem: str) -> Rejection:
    return Rejection("parse", f"mechanism of '{variable}' {problem}", {"variable": variable})


def _wrong_keys(mechanisms: Mapping[str, Any], endogenous: Sequence[str]) -> Rejection:
    violation = key_violation(mechanisms, endogenous)
    assert violation is not None
    unknown = violation.kind == "unknown_keys"
    key = "unknownMechanismKeys" if unknown else "missingMechanismKeys"
    offending = ", ".join(map(short_repr, violation.variables[:5]))
    reason = f"{violation.reason}; found {offending}" if unknown else violation.reason
    return Rejection("keys", reason, {key: list(violation.variables), "expectedKeys": list(endogenous)})


class SubmissionChecker:
    """Checks answers of any task kind for one problem.

    panel: all worlds of the problem; None: compiled code is not used
    """

    def __init__(self, problem: Problem, panel: Panel | None = None) -> None:
        task = problem.task
        self._panel = panel
        self.disclosure: Disclosure = task.disclosure
        self.grammar = task.grammar
        self.latent = problem.sealed.latent_order
        self._maps: dict[tuple[str, ...], MapChecker] = {}
        self._shelves: _Shelves = {}
        self._named: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {}  # by well-formed lists
        if task.disclosure.roots is not None:
            self.map = self._map(task.disclosure.roots)

    def mechanisms(self, answer: Mapping[str, Any]) -> Submission | Rejection:
        """Check an answer under Ordered, Block or Hidden-order: `{"mechanisms": {...}}`."""
        return self.map.check(answer.get("mechanisms"))

    def alternative(self, answer: Mapping[str, Any]) -> Submission | Rejection:
        """Check an Alternative-SCM answer: `{"alternative": {"mechanisms": {...}}, ...}`."""
        inner = answer.get("alternative")
        if not isinstance(inner, dict) or not isinstance(inner.get("mechanisms"), dict):
            return Rejection("schema", "expected a top-level key 'alternative' with a 'mechanisms' object")
        return self.map.check(inner["mechanisms"])

    def roots(self, answer: Mapping[str, Any]) -> tuple[str, ...] | Rejection:
        """Return the predicted roots of a Hidden-roots answer, in latent order, if roots and keys are well formed."""
        stated_roots, mechanisms = answer.get("roots"), answer.get("mechanisms")
        cached_roots = self._find_cached_roots(stated_roots, mechanisms)
        if cached_roots is not None:
            return cached_roots
        if not isinstance(stated_roots, list):
            return Rejection("schema", f"'roots' is {short_repr(stated_roots)}, not a list")
        if not isinstance(mechanisms, dict):
            return Rejection("schema", f"'mechanisms' is {short_repr(mechanisms)}, not an object of variable: formula")
        root_names = [entry if isinstance(entry, str) else str(entry) for entry in stated_roots]
        if len(set(root_names)) < len(root_names):
            return Rejection("keys", "a root is listed twice", {"predictedRoots": root_names})
        strangers = [name for name in root_names if name not in self.disclosure.variables]
        if strangers:
            observed = ", ".join(self.disclosure.variables)
            return Rejection("keys", f"roots {short_repr(strangers)} are not observed variables; these are {observed}")
        if len(root_names) != self.disclosure.num_roots:
            return Rejection("keys", f"{len(root_names)} roots; exactly {self.disclosure.num_roots} are expected")
        endogenous = [v for v in self.latent if v not in root_names]
        if mechanisms.keys() != set(endogenous):
            unknown = sorted(key for key in mechanisms if key not in endogenous)
            missing = sorted(v for v in endogenous if v not in mechanisms)
            reason = "mechanism keys are not exactly the complement of the roots"
            return Rejection("keys", reason, {"unknownMechanismKeys": unknown, "missingMechanismKeys": missing})
        roots = tuple(v for v in self.latent if v in root_names)
        if root_names == stated_roots and len(self._named) < MAX_CACHED_LISTS:
            self._named[" ".join(root_names)] = roots, frozenset(endogenous)
        return roots

    def _find_cached_roots(self, stated_roots: Any, mechanisms: Any) -> tuple[str, ...] | None:
        """Return the roots of a list that was well formed before, if the keys match; None otherwise.

        Names have no spaces, so a list of num_roots entries with the cached joined text has the cached names.
        """
        if (
            type(stated_roots) is not list
            or type(mechanisms) is not dict
            or len(stated_roots) != self.disclosure.num_roots
        ):
            return None
        try:
            cached_roots = self._named.get(" ".join(stated_roots))
        except TypeError:  # not all of them are texts
            return None
        return cached_roots[0] if cached_roots is not None and mechanisms.keys() == cached_roots[1] else None

    def given_roots(self, roots: tuple[str, ...], mechanisms: Any) -> Submission | Rejection:
        """Check the map of a Hidden-roots answer, as in Hidden-order with the predicted roots."""
        if roots not in self._maps:
            self._maps[roots] = self._map(roots)
        return self._maps[roots].check(mechanisms)

    def _map(self, roots: tuple[str, ...]) -> MapChecker:
        disclosure = self.disclosure.given_roots(roots)
        return MapChecker(disclosure, self.grammar, self.latent, self._shelves, self._panel)


def illegality(task: Task, model: Scm) -> str | None:
    """Return why an SCM is no legal answer to a task (roots, parents, operators), or None; evidence is ignored."""
    if len(model.roots) != task.disclosure.num_roots:
        return f"{len(model.roots)} roots where {task.disclosure.num_roots} are disclosed"
    violation = task.disclosure.violation(model.mechanisms)
    if violation:
        return violation.reason
    for variable, mechanism in model.mechanisms.items():
        try:
            parse(render(mechanism), task.grammar, frozenset(task.variables))
        except ParseError as error:
            return f"mechanism of {variable}: {error}"
    return None
