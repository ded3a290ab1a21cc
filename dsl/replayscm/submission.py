"""From an answer object to a candidate: checks in the published order, and mechanism texts that are met again.

Samples of a model repeat each other's mechanisms far more often than each other's answers. What is kept depends on the
text, the variable and the problem alone, so that a verdict is the same whether anything was kept or not.

The first failure decides; nothing is repaired. Each check is a stage of the validity funnel of the paper's Table C.1.
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

# --- Mechanism texts that are met again: each is read once, and what is worked out about it is kept beside it ---------
READ = CacheBudget(1 << 15, longest=400)  # about 700 bytes each
COUNT_BITS = 10  # for the number of an operator in a mechanism of which compiled code tells
AS_OBSERVED = 1  # of such a mechanism: all that it mentions was as observed
MANY, SHARE = 20_000, 0.25


class Novelty:
    """The share of new mechanisms among those that a process has judged.

    Compiled code judges an answer in half the time if all of its mechanisms are new, in two thirds if two of six are,
    but takes a third of a second and 120 MB to be there: it is used once MANY were new, and at least SHARE of all.
    """

    def __init__(self) -> None:
        self.asked = self.new = 0

    @property
    def is_usual(self) -> bool:
        return self.new >= MANY and self.new >= SHARE * self.asked


NOVELTY = Novelty()


class OperatorCounts:
    """The number of occurrences of each operator, in order of appearance; one object for all mechanisms that agree.

    has_if: the ternary one is among them
    """

    __slots__ = ("by_name", "has_if")

    def __init__(self, by_name: dict[str, int]) -> None:
        self.by_name = by_name
        self.has_if = "if" in by_name


class MechanismStats(NamedTuple):
    """Nodes, longest path, variables in natural order, and operators. Many have variables and operators in common."""

    size: int
    depth: int
    variables: tuple[str, ...]
    operators: OperatorCounts


class Mechanism:
    """The mechanism of one variable in answers to one problem.

    bit: that of its variable, mentions: those of the variables that occur, in a numbering of the problem's variables
    error: the rows of the problem in which it is wrong while all that it mentions is right; None until it is asked for
    variables: those that occur, in natural order
    described: its statistics, if they have been asked for
    table: what it computes, if that is known and they are at most MAX_WORD_VARS; higher bits mean nothing
    function: the same in a spelling of its own (bench.replayscm.scoring); None until it is asked for
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

    facts: nodes, longest path, variables as bits, two words of operators, AS_OBSERVED, truth table
    wrong: the rows in which it was wrong there
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
        """Return the formula, when it is first asked for, which costs nothing ever after."""
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
    """Return the variables that occur, as bits."""
    mask = 0
    for node in formula.nodes:
        if isinstance(node, str):
            mask |= bit(node)
    return mask


def mechanism_stats(mechanism: Formula) -> MechanismStats:
    """All of them in one pass."""
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
    """Return the variables among nodes in natural order; the same few are met again and again."""
    return tuple(sorted([node for node in nodes if isinstance(node, str)], key=natural_key))


@lru_cache(maxsize=1 << 12)
def _intern_counts(counts: tuple[tuple[str, int], ...]) -> OperatorCounts:
    return OperatorCounts(dict(counts))


@lru_cache(maxsize=1 << 12)
def _unpack_counts(counts: int, order: int) -> OperatorCounts:
    """From two words: COUNT_BITS for each operator by its code; four bits for each that occurs, its code and 1."""
    counted_operators: list[tuple[str, int]] = []
    while order:
        code = (order & 15) - 1
        counted_operators.append((BY_CODE[code].name, counts >> COUNT_BITS * code & (1 << COUNT_BITS) - 1))
        order >>= 4
    return _intern_counts(tuple(counted_operators))


@lru_cache(maxsize=1 << 12)
def sum_counts(*counts: OperatorCounts) -> Mapping[str, int]:
    """Together, in order of appearance; answers of one shape have it in common."""
    total: dict[str, int] = {}
    for operator_counts in counts:
        for name, count in operator_counts.by_name.items():
            total[name] = total.get(name, 0) + count
    return total


# --- From an answer object to a candidate: schema, keys, parse, legality, acyclicity, in the published order of checks
STAGES = ("extracted", "schema", "keys", "parse", "legal", "acyclic")
"""What a submission has to pass, in this order; one that passes all is valid."""


MAX_CACHED_LISTS = 256  # lists of roots, well formed, in any order, that are known again


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a submission is not valid.

    stage: the first stage it failed
    reason: one line that names the culprit and what was allowed
    fields: the keys that the published scorer reports beside the verdict, where they apply
    """

    stage: str
    reason: str
    fields: Mapping[str, Any] = field(default_factory=dict)


class Submission(NamedTuple):
    """A valid answer: its mechanisms in latent order, in which order they are evaluated, and the roots it leaves.

    wrong: the mismatches, where reading the texts has computed them; else None
    """

    mechanisms: Mapping[str, Mechanism]
    order: tuple[str, ...]
    roots: tuple[str, ...]
    wrong: Mapping[str, Column] | None = None

    @property
    def candidate(self) -> Candidate:
        """The map to replay."""
        return Candidate({variable: mechanism.formula for variable, mechanism in self.mechanisms.items()}, self.order)


_Shelves: TypeAlias = dict[tuple[str, frozenset[str]], TextCache["Mechanism | Rejection"]]


class MapChecker:
    """Checks mechanism maps against one disclosure with known roots. Made once per problem, used for every answer.

    shelves: what was read of texts, by variable and admissible parents; one for all root sets of a problem
    panel: all worlds of the problem, for compiled code to judge the map at once
    """

    def __init__(
        self,
        disclosure: RootedDisclosure,
        grammar: Grammar,
        latent: Sequence[str],
        shelves: _Shelves,
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
        self._shelves = {v: shelves.setdefault((v, self._allowed[v]), READ.shelf()) for v in self.endogenous}
        self._bits = {variable: 1 << index for index, variable in enumerate(natural(disclosure.variables))}
        self._fixed_order = None if disclosure.order is None else self.endogenous
        # evaluation follows the latent order wherever the mentions leave a choice; within blocks, block by block
        self._key = {v: (disclosure.group_index(v), position[v]) for v in self.endogenous}
        self._first_order = tuple(sorted(self.endogenous, key=self._key.__getitem__))
        self._all = sum(self._bits[v] for v in self.endogenous)
        self._spelled: dict[int, tuple[str, ...]] = {}  # variables by their bits

    def check(self, mechanisms: Any) -> Submission | Rejection:
        """Return the candidate, or the first reason why the map is not one."""
        if not isinstance(mechanisms, dict):
            return Rejection("schema", f"'mechanisms' is {short_repr(mechanisms)}, not an object of variable: formula")
        if mechanisms.keys() != self._keys:
            return _wrong_keys(mechanisms, self.endogenous)
        checked: dict[str, Mechanism] = {}
        NOVELTY.asked += len(self._keys)
        is_untried = self._panel is not None
        for variable, shelf in self._shelves.items():
            text = mechanisms[variable]
            mechanism = shelf.made.get(text) if isinstance(text, str) else None
            if mechanism is None:
                mechanism = READ.again(shelf, text) if isinstance(text, str) else None
            if mechanism is None:
                if is_untried and NOVELTY.is_usual:
                    is_untried = False
                    judged = self._judge_plain(mechanisms)
                    if judged is not None:
                        return judged
                NOVELTY.new += 1
                mechanism = self._mechanism(variable, text)
                if isinstance(text, str):
                    READ.store(shelf, text, mechanism)
            if isinstance(mechanism, Rejection):
                return mechanism
            checked[variable] = mechanism
        try:
            order = self._fixed_order or self._order(checked)
        except CycleError as error:
            return Rejection("acyclic", str(error), {"cycleVariables": list(error.variables)})
        return Submission(checked, order, self.roots)

    def _judge_plain(self, mechanisms: Mapping[str, Any]) -> Submission | None:
        """Judge a plain map by compiled code, mismatches included; None for any other map."""
        order, judge = self._least_order, self._judge
        try:
            verdict = judge.judge([mechanisms[variable] for variable in order])
        except TypeError:  # not all of them are texts
            return None
        if verdict is None:
            return None
        wrong, places = verdict
        facts = judge.facts()
        checked: dict[str, Mechanism] = {}
        for place, (variable, shelf) in zip(self._places, self._shelves.items(), strict=True):
            text = mechanisms[variable]
            mechanism = shelf.made.get(text)
            if not isinstance(mechanism, Mechanism):
                NOVELTY.new += 1
                mechanism_facts = facts[place]
                names = self._spelled.get(mechanism_facts[2]) or self._names(mechanism_facts[2])
                rows = 0 if wrong is None else wrong[place]
                mechanism = JudgedMechanism(text, self.grammar, self._bits[variable], names, mechanism_facts, rows)
                READ.store(shelf, text, mechanism)
            checked[variable] = mechanism
        if places is not None:
            order = tuple([order[place] for place in places])
        if wrong is None:
            return Submission(checked, order, self.roots, dict.fromkeys(order, 0))
        rows_of = wrong if places is None else [wrong[place] for place in places]
        return Submission(checked, order, self.roots, dict(zip(order, rows_of, strict=True)))

    @property
    def _least_order(self) -> tuple[str, ...]:
        """In which mechanisms are evaluated wherever what they mention leaves that choice."""
        return self._fixed_order or self._first_order

    @cached_property
    def _judge(self) -> Judge:
        assert self._panel is not None
        return Judge(natural(self._variables), self._least_order, self.grammar, self._allowed, self._panel)

    @cached_property
    def _places(self) -> list[int]:
        """Return the position of each endogenous variable, in latent order, in the judged order."""
        return [*map(self._least_order.index, self.endogenous)]

    def _names(self, mentions: int) -> tuple[str, ...]:
        """Return the variables with these bits."""
        if len(self._spelled) >= MAX_CACHED_LISTS:
            self._spelled.clear()
        names = self._spelled[mentions] = tuple(v for v, bit in self._bits.items() if bit & mentions)
        return names

    def _order(self, mechanisms: Mapping[str, Mechanism]) -> tuple[str, ...]:
        """Return the smallest topological order.

        Most answers admit the smallest order of all, which is quickly seen.
        """
        later = self._all
        for variable in self._first_order:
            mechanism = mechanisms[variable]
            if mechanism.mentions & later:
                formulas = {name: checked.formula for name, checked in mechanisms.items()}
                return topological_order(formulas, self._key.__getitem__)
            later ^= mechanism.bit
        return self._first_order

    def _mechanism(self, variable: str, text: Any) -> Mechanism | Rejection:
        if not isinstance(text, str):
            return _unreadable(variable, f"is {short_repr(text)}, not a text")
        text = text.strip()
        if not text:
            return _unreadable(variable, "is blank")
        if "\n" in text or "\r" in text or "\t" in text:
            return _unreadable(variable, "contains a line break or tab")
        try:
            formula = parse(text, self.grammar, self._allowed[variable])
        except ParseError as error:
            is_variable = error.kind == "variable_not_allowed" and error.token in self._variables
            fields = {"variable": variable, "parseError": str(error)}
            return Rejection("legal" if is_variable else "parse", f"mechanism of '{variable}': {error}", fields)
        return Mechanism(self._bits[variable], mentions(formula, self._bits.__getitem__), formula)


def _unreadable(variable: str, problem: str) -> Rejection:
    return Rejection("parse", f"mechanism of '{variable}' {problem}", {"variable": variable})


def _wrong_keys(mechanisms: Mapping[str, Any], endogenous: Sequence[str]) -> Rejection:
    violation = key_violation(mechanisms, endogenous)
    assert violation is not None
    unknown = violation.kind == "unknown_keys"
    key = "unknownMechanismKeys" if unknown else "missingMechanismKeys"
    culprits = ", ".join(map(short_repr, violation.variables[:5]))
    reason = f"{violation.reason}; found {culprits}" if unknown else violation.reason
    return Rejection("keys", reason, {key: list(violation.variables), "expectedKeys": list(endogenous)})


class SubmissionChecker:
    """Checks answers of any task kind for one problem.

    panel: all worlds of the problem; without it nothing is judged by compiled code
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
        """Ordered, Block, Hidden-order: `{"mechanisms": {...}}`."""
        return self.map.check(answer.get("mechanisms"))

    def alternative(self, answer: Mapping[str, Any]) -> Submission | Rejection:
        """Alternative-SCM: `{"alternative": {"mechanisms": {...}}, ...}`."""
        inner = answer.get("alternative")
        if not isinstance(inner, dict) or not isinstance(inner.get("mechanisms"), dict):
            return Rejection("schema", "expected a top-level key 'alternative' with a 'mechanisms' object")
        return self.map.check(inner["mechanisms"])

    def roots(self, answer: Mapping[str, Any]) -> tuple[str, ...] | Rejection:
        """Hidden-roots: the predicted root set, in latent order, if it is well formed."""
        listed, mechanisms = answer.get("roots"), answer.get("mechanisms")
        named_before = self._met_before(listed, mechanisms)
        if named_before is not None:
            return named_before
        if not isinstance(listed, list):
            return Rejection("schema", f"'roots' is {short_repr(listed)}, not a list")
        if not isinstance(mechanisms, dict):
            return Rejection("schema", f"'mechanisms' is {short_repr(mechanisms)}, not an object of variable: formula")
        root_names = [entry if isinstance(entry, str) else str(entry) for entry in listed]
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
        if root_names == listed and len(self._named) < MAX_CACHED_LISTS:
            self._named[" ".join(root_names)] = roots, frozenset(endogenous)
        return roots

    def _met_before(self, listed: Any, mechanisms: Any) -> tuple[str, ...] | None:
        """Return the roots of a list that was well formed before, with the keys that it asks for; None for all others.

        A kept spelling has a space between names and none in them, so as many entries that come to it are these names.
        """
        if type(listed) is not list or type(mechanisms) is not dict or len(listed) != self.disclosure.num_roots:
            return None
        try:
            cached_roots = self._named.get(" ".join(listed))
        except TypeError:  # not all of them are texts
            return None
        return cached_roots[0] if cached_roots is not None and mechanisms.keys() == cached_roots[1] else None

    def given_roots(self, roots: tuple[str, ...], mechanisms: Any) -> Submission | Rejection:
        """Hidden-roots: the map, judged as Hidden-order under the predicted roots."""
        if roots not in self._maps:
            self._maps[roots] = self._map(roots)
        return self._maps[roots].check(mechanisms)

    def _map(self, roots: tuple[str, ...]) -> MapChecker:
        disclosure = self.disclosure.given_roots(roots)
        return MapChecker(disclosure, self.grammar, self.latent, self._shelves, self._panel)


def illegality(task: Task, model: Scm) -> str | None:
    """Why an SCM is no answer to a task whatever the evidence: its roots, its parents, its operators; None if legal."""
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
