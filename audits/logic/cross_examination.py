"""Claims about logic models, proved a second time by SMT search over sets of clauses.

Literals are the clauses, the precedence of each two nodes, and the value of each node in each experiment. Misfit and
size are weighted sums, which only SMT encodes. First the optimum is proved: no model has less misfit, and none of that
misfit is smaller. Then up to `MAX_LISTED` members are listed: each is evaluated by the reference and excluded, until
the search proves that there is no other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import combinations, permutations
from typing import Any, Final

import msgspec

from calibrant.audits.claims import Certificate, EngineName, NotExaminedError, Refused
from calibrant.audits.logic.verify import VERIFIERS, BetterData, Case, CountData, Limits, model_from_texts
from calibrant.audits.search import MAX_LISTED, BooleanSearch, Examiner, Key, proved_by
from calibrant.dsl.logic import reference
from calibrant.dsl.logic.item import Clause, Model, edges_by_target, model_size
from calibrant.dsl.logic.item import clause as clause_of
from calibrant.dsl.text import plural

MAX_CLAUSES: Final = 2_000
MAX_NODES: Final = 60  # transitivity of their order takes n (n - 1) (n - 2) clauses


class Models:
    """Search over the models of a class, with their misfit and size as sums."""

    def __init__(self, case: Case, engine: EngineName) -> None:
        self.case, self.engine = case, engine
        by_target = edges_by_target(case.task.edges)
        self.clauses: list[Clause] = []
        for edges in by_target.values():
            longest = case.task.options.max_clause or len(edges)
            for size in range(1, min(longest, len(edges)) + 1):
                for chosen in combinations(sorted(edges), size):
                    if len({edge.source for edge in chosen}) == size:
                        literals = [(edge.source, edge.sign) for edge in chosen]
                        self.clauses.append(clause_of(chosen[0].target, literals))
                if len(self.clauses) > MAX_CLAUSES:
                    raise NotExaminedError(f"the class has more than {MAX_CLAUSES:,} clauses")
        self.targets = sorted({clause.target for clause in self.clauses})
        if len(self.targets) > MAX_NODES:
            raise NotExaminedError(f"the class has more than {MAX_NODES} nodes")
        self.constant = 0
        self.search = self.new_search(None, None)

    def new_search(self, max_misfit: int | None, max_size: int | None) -> BooleanSearch:
        """Return a search over the models within limits; None for no limit."""
        search, setup = BooleanSearch(self.engine), self.case.setup
        into: dict[str, list[Clause]] = {name: [] for name in self.targets}
        occurring: dict[str, list[int]] = {}
        for clause in self.clauses:
            chosen = search.literal("clause", clause)
            into[clause.target].append(clause)
            for source in clause.sources:
                occurring.setdefault(source, []).append(chosen)
        for clause in self.clauses:
            chosen = search.literal("clause", clause)
            for source in clause.sources:
                if source not in setup.stimuli:  # it has a formula
                    search.add(-chosen, *(search.literal("clause", formula) for formula in into.get(source, ())))
                if source in into:
                    search.add(-chosen, self._before(search, source, clause.target))
            if clause.target not in setup.readouts:
                search.add(-chosen, *occurring.get(clause.target, ()))
        for clauses in into.values():
            for first, second in permutations(clauses, 2):
                if set(first.literals) < set(second.literals):
                    search.add(-search.literal("clause", first), -search.literal("clause", second))
        for u, v, w in permutations(self.targets, 3):
            search.add(-self._before(search, u, v), -self._before(search, v, w), self._before(search, u, w))
        self._add_values(search, into)
        costs = self._costs(search)
        if max_misfit is not None:
            search.add_at_most(costs, max_misfit - self.constant)
        if max_size is not None:
            sizes = [(search.literal("clause", clause), len(clause.literals)) for clause in self.clauses]
            search.add_at_most(sizes, max_size)
        return search

    def _before(self, search: BooleanSearch, u: str, v: str) -> int:
        return search.literal("before", u, v) if u < v else -search.literal("before", v, u)

    def _add_values(self, search: BooleanSearch, into: Mapping[str, list[Clause]]) -> None:
        """Require the value of each node in each experiment to be that of its formula."""
        stimuli = set(self.case.setup.stimuli)
        for j, experiment in enumerate(self.case.experiments):
            for name in stimuli:
                value = search.literal("value", name, j)
                search.add(value if name in experiment.on else -value)
            for name, clauses in into.items():
                if name in stimuli:
                    continue
                value = search.literal("value", name, j)
                if name in experiment.inhibited:
                    search.add(-value)
                    continue
                fires = []
                for clause in clauses:
                    fire = search.literal("fires", clause, j)
                    literals = [sign * search.literal("value", source, j) for source, sign in clause.literals]
                    parts = [search.literal("clause", clause), *literals]
                    for part in parts:
                        search.add(-fire, part)
                    search.add(fire, *(-part for part in parts))
                    search.add(-fire, value)
                    fires.append(fire)
                search.add(-value, *fires)

    def _costs(self, search: BooleanSearch) -> list[tuple[int, int]]:
        """Set `constant` to the misfit of predicting 0; return (literal of a prediction of 1, misfit that it adds)."""
        terms, self.constant = [], 0
        for j, row in enumerate(self.case.values):
            for name, value in zip(self.case.setup.readouts, row, strict=True):
                if value is not None:
                    self.constant += value**2
                    if name in self.targets or name in self.case.setup.stimuli:
                        terms.append((search.literal("value", name, j), (self.case.factor - value) ** 2 - value**2))
        return terms

    def model(self, true: Iterable[Key]) -> Model:
        """Return the model of a solution; `AssertionError` if the reference finds it outside the class."""
        model: Model = frozenset(key[1] for key in true if key[0] == "clause")  # type: ignore[misc]
        if rule := reference.class_violation(model, self.case.task):
            raise AssertionError(f"the encoding gives a model outside the class ({rule}): {model_words(model)}")
        return model

    def require_optimum(self, limits: Limits) -> int:
        """Prove the optimum, else `Refused` with a better model; return the number of search steps."""
        steps = 0
        goals = ((limits.least_misfit - 1, None), (limits.least_misfit, limits.least_size - 1))
        for max_misfit, max_size in goals:
            search = self.new_search(max_misfit, max_size)
            true = search.find()
            steps += search.steps
            if true is not None:
                model = self.model(true)
                raise Refused(f"{model_words(model)} has misfit {self.case.misfit(model)} and size {model_size(model)}")
        search = self.new_search(limits.least_misfit, limits.least_size)
        if search.find() is None:
            stated = f"misfit {limits.least_misfit} and size {limits.least_size}"
            raise Refused(f"{search.engine} proves that no model has {stated}")
        return steps + search.steps


def model_words(model: Iterable[Clause]) -> str:
    """Return a model as clause texts."""
    return " ".join(sorted(map(str, model))) or "the empty model"


def _require_tolerances(case: Case, limits: Limits) -> None:
    if (limits.fit, limits.size) != (case.task.tolerance.fit, case.task.tolerance.size):
        raise Refused("it states other tolerances than the item has")


def _count(evidence: Any, certificate: Certificate, engine: EngineName) -> str:
    data = msgspec.convert(certificate.data, CountData, strict=True)
    case, limits = Case(evidence), data.limits
    _require_tolerances(case, limits)
    models = Models(case, engine)
    steps = models.require_optimum(limits)
    search = models.new_search(limits.misfit_limit, limits.size_limit)
    claimed = int(data.count) if data.count.isdecimal() and len(data.count) < 1_000 else -1
    members: list[Model] = []
    while (true := search.find()) is not None:
        members.append(models.model(true))
        if len(members) > MAX_LISTED:
            break
        chosen = {clause: search.literal("clause", clause) for clause in models.clauses}
        search.add(*(-literal if clause in members[-1] else literal for clause, literal in chosen.items()))
    if true is not None and claimed > MAX_LISTED:
        raise NotExaminedError(
            f"{search.engine} proves the optimum, and shows more than {MAX_LISTED} members, which it does not count"
        )
    if len(members) > claimed:
        raise Refused(f"it claims {data.count} members; {search.engine} finds another one: {model_words(members[-1])}")
    if len(members) < claimed:
        last = f" than {model_words(members[-1])}" if members else ""
        proof = f"{search.engine} finds {len(members)}, and proves that there is no other{last}"
        raise Refused(f"it claims {claimed:,} members; {proof}")
    spectrum = Counter((case.misfit(model), model_size(model)) for model in members)
    if [(misfit, size, str(n)) for (misfit, size), n in sorted(spectrum.items())] != data.spectrum:
        raise Refused("the spectrum is another one")
    for text, stated in data.clauses.items():
        having = sum(text in map(str, model) for model in members)
        if str(having) != stated:
            raise Refused(f"{having} members have {text}")
    search.steps += steps
    return f"{plural(claimed, 'members')}, and their optimum, {proved_by(search)}"


def _optimum_of_members(evidence: Any, certificate: Certificate, engine: EngineName) -> str:
    """Prove the optimum that a claim about members is relative to; check the members by the verifier."""
    if reason := VERIFIERS[certificate.claim](evidence, certificate):
        raise Refused(reason)
    limits = msgspec.convert(certificate.data["limits"], Limits, strict=True)
    models = Models(Case(evidence), engine)
    models.search.steps = models.require_optimum(limits)
    return f"the members by replay; their optimum, {proved_by(models.search)}"


def _better(evidence: Any, certificate: Certificate, engine: EngineName) -> str:
    """Prove that the better model is of the class and has less misfit; else `Refused`, with one that is and has."""
    data = msgspec.convert(certificate.data, BetterData, strict=True)
    case = Case(evidence)
    model, better = model_from_texts(data.model), model_from_texts(data.better)
    if not reference.is_acyclic(model):
        raise Refused("the first model has a cycle")
    misfit = case.misfit(model)
    models = Models(case, engine)
    search = models.new_search(misfit - 1, None)
    has_clauses = better <= set(models.clauses)
    for clause in models.clauses if has_clauses else ():
        chosen = search.literal("clause", clause)
        search.add(chosen if clause in better else -chosen)
    if has_clauses and search.find() is not None:
        return f"misfit {case.misfit(better)}, less than {misfit}, {proved_by(search)}"
    free = models.new_search(misfit - 1, None)
    if (true := free.find()) is None:
        raise Refused(f"{free.engine} proves that no model of the class has misfit below {misfit}")
    right = models.model(true)
    raise Refused(
        f"{model_words(better)} is no model of the class with misfit below {misfit}; "
        f"{model_words(right)} has misfit {case.misfit(right)}"
    )


EXAMINERS: Final[Mapping[str, Examiner]] = {
    "logic-better": _better,
    "logic-count": _count,
    "logic-open": _optimum_of_members,
    "logic-missing": _optimum_of_members,
}
