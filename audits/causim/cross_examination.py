"""Claims about CauSim questions, proved a second time by SAT or SMT search over worlds.

A world is a value for each noise variable. Literals are the values of each noise, of each node without the intervention
("factual") and under it ("asked"); each row of a node's table is a clause. Up to `MAX_LISTED` answers are listed: each
is computed by the program's own mechanisms and then excluded. A false claim is refuted by a world or an answer. An edge
is vacuous unless two rows of the child's table differ in the parent, in no other argument, and in the value.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Final

from calibrant.audits.causim.verify import Evidence
from calibrant.audits.claims import Certificate, EngineName, NotExaminedError, Refused
from calibrant.audits.search import MAX_LISTED, BooleanSearch, Examiner, Key, proved_by
from calibrant.dsl.causim.bundle import load_source
from calibrant.dsl.causim.model import Assignment, Model, Node, assignment_text, run, symbols
from calibrant.dsl.causim.question import Question, copy_evidence, project, question_from_record
from calibrant.dsl.errors import short_repr
from calibrant.dsl.text import plural

MAX_TABLE_ROWS: Final = 20_000  # clauses of one node
MAX_SMALLER_SETS: Final = 1_000  # smaller sets of observations, each refuted by one search


def _rows(node: Node, domains: Sequence[Sequence[str]]) -> list[tuple[tuple[str, ...], str]]:
    """Return (values of the parents and noise, value) of each row of a table over domains of the parents."""
    if prod(map(len, domains)) * len(node.support) > MAX_TABLE_ROWS:
        raise NotExaminedError(f"the table of {node.name} has more than {MAX_TABLE_ROWS:,} rows")
    return [((*row, noise), node.value(row, noise)) for row in product(*domains) for noise in node.support]


def _domains(model: Model) -> dict[str, tuple[str, ...]]:
    """Return the values that each node can have, parents first."""
    domains: dict[str, tuple[str, ...]] = {}
    for node in model.nodes:
        rows = _rows(node, [domains[parent] for parent in node.parents])
        domains[node.name] = tuple(sorted({value for _, value in rows}))
    return domains


class Worlds:
    """The worlds that agree with noise and evidence of a question, as a search."""

    def __init__(self, evidence: Evidence, engine: EngineName) -> None:
        self.model: Model = load_source(evidence.program)
        if evidence.question is None:
            raise ValueError("the evidence has no question")
        record, kind, with_noise = evidence.question, evidence.type, evidence.with_noise
        self.question: Question = question_from_record(record, kind, self.model, with_noise=with_noise)  # type: ignore[arg-type]
        self.engine = engine
        self.domains: dict[str, tuple[str, ...]] = {}
        self.search = self.new_search()

    def new_search(self) -> BooleanSearch:
        """Return a search over the worlds without any further requirement."""
        search = BooleanSearch(self.engine)
        for node in self.model.nodes:
            search.add_choice([search.literal("noise", node.noise, value) for value in node.support])
            rows = _rows(node, [self.domains[parent] for parent in node.parents])
            is_set = node.name in self.question.do
            values = {value for _, value in rows} | ({self.question.do[node.name]} if is_set else set())
            self.domains[node.name] = tuple(sorted(values))
            for copy in ("factual", "asked"):
                search.add_choice([search.literal(copy, node.name, value) for value in self.domains[node.name]])
                if copy == "asked" and is_set:
                    search.add(search.literal(copy, node.name, self.question.do[node.name]))
                    continue
                for (*row, noise), value in rows:
                    parents = zip(node.parents, row, strict=True)
                    unmet = [-search.literal(copy, parent, symbol) for parent, symbol in parents]
                    search.add(
                        *unmet, -search.literal("noise", node.noise, noise), search.literal(copy, node.name, value)
                    )
        for name, value in self.question.fixed.items():
            self.require(search, "noise", name, value)
        for name, value in self.question.observed.items():
            self.require(search, "factual", name, value)
        return search

    def require(self, search: BooleanSearch, kind: str, name: str, value: str) -> None:
        """Require a value; if the variable cannot have it, no world remains."""
        values = self._support(name) if kind == "noise" else self.domains[name]
        search.add(*([search.literal(kind, name, value)] if value in values else []))

    def _support(self, noise: str) -> tuple[str, ...]:
        return next(node.support for node in self.model.nodes if node.noise == noise)

    def kind_of(self, key: str) -> str:
        """Return the kind of the literals of an answer's key: "asked" for a node, "noise" for noise."""
        return "asked" if key in self.model.position else "noise"

    def exclude(self, search: BooleanSearch, answer: Mapping[str, str]) -> None:
        """Require another answer."""
        search.add(*(-search.literal(self.kind_of(key), key, value) for key, value in answer.items()))

    def world(self, true: Iterable[Key]) -> dict[str, str]:
        """Return the noise of a solution; `AssertionError` if the program, run on it, gives other values."""
        true = list(true)
        values = {
            kind: {str(key[1]): str(key[2]) for key in true if key[0] == kind} for kind in ("noise", "factual", "asked")
        }
        noise = values["noise"]
        if (
            run(self.model, noise, {}) != values["factual"]
            or run(self.model, noise, self.question.do) != values["asked"]
        ):
            raise AssertionError(f"the encoding gives a world that the program does not: {assignment_text(noise)}")
        return noise

    def answer(self, world: Assignment) -> dict[str, str]:
        """Return the answer in a world."""
        return dict(project(self.question, self.model, world, run(self.model, world, self.question.do)))


def _answer_count(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    return _list_answers(Worlds(evidence, engine), certificate.data["size"])


def _list_answers(worlds: Worlds, size: int) -> str:
    world: dict[str, str] = {}
    answer: dict[str, str] = {}
    for num_listed in range(min(size, MAX_LISTED) + 1):
        true = worlds.search.find()
        if true is None:
            if num_listed < size:
                answers = f"{plural(size, 'answers')}; {worlds.search.engine} finds {plural(num_listed, 'answers')}"
                raise Refused(f"it claims {answers} and proves that there is no other")
            return f"{plural(size, 'answers')}, {proved_by(worlds.search)}"
        world = worlds.world(true)
        answer = worlds.answer(world)
        worlds.exclude(worlds.search, answer)
    if size <= MAX_LISTED:
        raise Refused(
            f"it claims {plural(size, 'answers')}; {worlds.search.engine} finds another one: {assignment_text(answer)}"
            f" in the world {assignment_text(world)}"
        )
    raise NotExaminedError(f"{worlds.search.engine} shows more than {MAX_LISTED} answers, and does not count them")


def _unique_answer(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    worlds = Worlds(evidence, engine)
    stated = symbols(certificate.data["answer"])
    if set(stated) != set(worlds.question.required_keys(worlds.model)):
        raise Refused("the answer has other keys than the question asks for")
    _require_answer(worlds, stated)
    worlds.exclude(worlds.search, stated)
    if (true := worlds.search.find()) is not None:
        world = worlds.world(true)
        raise Refused(f"{assignment_text(worlds.answer(world))} is right too, in the world {assignment_text(world)}")
    return f"one answer, {proved_by(worlds.search)}"


def _require_answer(worlds: Worlds, answer: Mapping[str, str]) -> BooleanSearch:
    """Return the search that found a world with the answer; `Refused` if there is none, with a right answer if any."""
    search = worlds.new_search()
    for key, value in answer.items():
        worlds.require(search, worlds.kind_of(key), key, value)
    if search.find() is None:
        true = worlds.new_search().find()
        if true is None:
            raise Refused("no world fits, so that no answer is right")
        right = worlds.answer(worlds.world(true))
        raise Refused(f"no world gives {assignment_text(answer)}; right is {assignment_text(right)}")
    return search


def _copyable(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    worlds = Worlds(evidence, engine)
    copy = copy_evidence(worlds.question)
    if set(copy) != set(worlds.question.required_keys(worlds.model)):
        raise Refused("the question does not show a value for every key")
    return f"a world gives the copy, {proved_by(_require_answer(worlds, copy))}"


def _vacuous_intervention(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    worlds = Worlds(evidence, engine)
    search, question = worlds.search, worlds.question
    if not question.do:
        raise Refused("there is no intervention")
    if worlds.new_search().find() is None:
        raise Refused("no world fits")
    changes = []
    for name, domain in worlds.domains.items():
        if name not in question.do:
            for value in domain:
                change = search.literal("changes", name, value)
                search.add(-change, search.literal("factual", name, value))
                search.add(-change, -search.literal("asked", name, value))
                changes.append(change)
    search.add(*changes)
    if (true := search.find()) is not None:
        world = worlds.world(true)
        before, after = run(worlds.model, world, {}), run(worlds.model, world, question.do)
        name = next(name for name in before if name not in question.do and before[name] != after[name])
        raise Refused(f"{name} changes from {before[name]} to {after[name]} in the world {assignment_text(world)}")
    return f"no variable outside `do` changes, {proved_by(search)}"


def _minimal_evidence(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    worlds = Worlds(evidence, engine)
    question, data = worlds.question, certificate.data
    world, observe = symbols(data["world"]), list(data["observe"])
    if evidence.world is not None and world != symbols(evidence.world):
        raise Refused("the world is not the one that the question was drawn from")
    has_evidence = question.form.has_evidence
    nodes = [node.name for node in worlds.model.nodes if has_evidence and node.name not in question.observed]
    candidates = sorted([*question.unknown, *nodes])
    if data["candidates"] != candidates or not set(observe) <= set(candidates) or len(set(observe)) < len(observe):
        raise Refused(f"the candidates are the {len(candidates)} that the question leaves open")
    fitting = worlds.new_search()
    for name, value in world.items():
        worlds.require(fitting, "noise", name, value)
    if set(world) != set(worlds.model.noises) or fitting.find() is None:
        raise Refused("the true world does not fit")
    truth = {**world, **run(worlds.model, world, {})}
    steps = 0
    if comb(len(candidates), max(0, len(observe) - 1)) > MAX_SMALLER_SETS:
        raise NotExaminedError(f"there are more than {MAX_SMALLER_SETS:,} smaller sets, each of which is a search")
    for chosen in [observe, *(combinations(candidates, len(observe) - 1) if observe else ())]:
        search = worlds.new_search()
        for name in chosen:
            worlds.require(search, "factual" if name in worlds.model.position else "noise", name, truth[name])
        worlds.exclude(search, worlds.answer(world))
        true = search.find()
        steps += search.steps
        if chosen is observe and true is not None:
            opposing = worlds.world(true)
            raise Refused(f"observing {', '.join(observe) or 'nothing'} leaves the world {assignment_text(opposing)}")
        if chosen is not observe and true is None:
            raise Refused(f"observing {', '.join(chosen) or 'nothing'} is enough, which is less")
    worlds.search.steps = steps
    return f"{plural(len(observe), 'observations')} and no fewer, {proved_by(worlds.search)}"


def _trivial(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    worlds = Worlds(evidence, engine)
    question, search = worlds.question, worlds.search
    keys = question.required_keys(worlds.model)
    if unset := sorted(set(keys) - set(question.do)):
        raise Refused(f"{unset[0]} is not set")
    search.add(*(-search.literal("asked", key, question.do[key]) for key in keys))
    if (true := search.find()) is not None:
        raise AssertionError(f"the encoding changes what `do` sets in the world {assignment_text(worlds.world(true))}")
    return f"every required key is set, {proved_by(search)}"


def _vacuous_edge(evidence: Evidence, certificate: Certificate, engine: EngineName) -> str:
    """Search two rows of the child's table that differ in the parent, in no other argument, and in their value."""
    model, data = load_source(evidence.program), certificate.data
    parent, child = data["parent"], data["child"]
    if child not in model.position:
        raise Refused(f"the program has no variable {short_repr(child)}")
    node = model.nodes[model.position[child]]
    if parent not in node.parents:
        raise Refused(f"{short_repr(parent)} is no parent of {child}")
    every_domain = _domains(model)
    domains = {name: every_domain[name] for name in node.parents} | {node.noise: node.support}
    rows = _rows(node, [every_domain[name] for name in node.parents])
    values = sorted({value for _, value in rows})
    search = BooleanSearch(engine)
    for copy in ("before", "after"):
        for name, domain in [*domains.items(), (child, values)]:
            search.add_choice([search.literal(copy, name, value) for value in domain])
        for row, value in rows:
            unmet = [-search.literal(copy, name, symbol) for name, symbol in zip(domains, row, strict=True)]
            search.add(*unmet, search.literal(copy, child, value))
    fixed = [name for name in domains if name != parent]
    for name in fixed:
        for value in domains[name]:
            search.add(-search.literal("before", name, value), search.literal("after", name, value))
    for value in values:
        search.add(-search.literal("before", child, value), -search.literal("after", child, value))
    if (true := search.find()) is not None:
        before, after = ({str(k[1]): str(k[2]) for k in true if k[0] == copy} for copy in ("before", "after"))
        context = assignment_text({name: before[name] for name in fixed})
        raise Refused(
            f"{child} changes from {before[child]} to {after[child]} as {parent} does from {before[parent]} to "
            f"{after[parent]}, at {context}"
        )
    return f"no change of {parent} changes {child}, {proved_by(search)}"


EXAMINERS: Final[Mapping[str, Examiner]] = {
    "vacuous_edge": _vacuous_edge,
    "trivial": _trivial,
    "answer_count": _answer_count,
    "unique_answer": _unique_answer,
    "copyable": _copyable,
    "vacuous_intervention": _vacuous_intervention,
    "minimal_evidence": _minimal_evidence,
}
