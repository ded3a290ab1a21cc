"""Sets of consistent SCMs: to score answers that are sets, and to list them for readers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from random import Random
from typing import Any

from calibrant.audits.replayscm.ambiguity import headline_parents, sized_class
from calibrant.audits.replayscm.extended.items import item_evidence
from calibrant.baselines.replayscm.posterior.latent_orders import Local
from calibrant.baselines.replayscm.posterior.posterior import Member, Posterior
from calibrant.bench.core.attribution import Hypotheses, Prior
from calibrant.bench.replayscm.api import FUNCTIONS
from calibrant.bench.replayscm.verdict import MEANING
from calibrant.bench.report.capabilities import Hypothesis, Remaining, first_entries
from calibrant.dsl.episode import Step
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.formulas.formula import Formula
from calibrant.dsl.formulas.text import STANDARD, infix, parse
from calibrant.dsl.replayscm.disclosure import natural
from calibrant.dsl.replayscm.episode import task_class
from calibrant.dsl.replayscm.extensions.extension import Extension, MechanismClass, Question
from calibrant.dsl.replayscm.extensions.reference import Mechanisms
from calibrant.dsl.replayscm.extensions.scores import check_map
from calibrant.dsl.replayscm.item import Problem, Task, TaskKind
from calibrant.dsl.replayscm.scm import LocalFunction, Scm, local_function
from calibrant.dsl.replayscm.submission import Rejection
from calibrant.solvers.formulas.catalogue import synthesis_operators
from calibrant.solvers.formulas.synthesis import formula_for
from calibrant.solvers.outcome import BudgetSpent, Found
from calibrant.solvers.replayscm.canonical import canonical_task, rename_problem, rename_scm, unchanged_order
from calibrant.solvers.replayscm.hidden.mass import count_members, exact_mass, first_members, posterior_sampler
from calibrant.solvers.replayscm.members import members_by_size, sample_members
from calibrant.solvers.replayscm.noise.best_map import best_map
from calibrant.solvers.replayscm.noise.posterior import Posterior as MemberPosterior
from calibrant.solvers.replayscm.space import ModelClass, VersionSpace

# --- Sets of SCMs that fit the training worlds ------------------------------------------------------------------------
NUM_DRAWS = 100  # posterior samples that estimate the share which k samples cover
MAX_PARENTS = 5  # functional parents of a mechanism: no valid answer has more


def hypotheses(item: Problem) -> Hypotheses:
    """Return the SCMs of the task's language that replay every training world, with their exact number.

    They weigh the same; `prior` is the prior of the published generator.
    """
    if item.task.extension is not None:
        return _extended_hypotheses(item, item.task.extension)
    space = FUNCTIONS.version_space(item, max_parents=MAX_PARENTS)
    counted = space.counted()
    if not isinstance(counted, Found):
        raise CalibrantError(f"the SCMs that fit {in_one_line(item.id)} are not counted: {counted.reached}")
    words = f"SCMs with at most {MAX_PARENTS} functional parents that replay the training worlds"
    return Hypotheses(
        noun="SCMs",
        in_words=words,
        count=counted.value,
        key=_meaning_of,
        fits=lambda score, key: score.get("trainExact") is True,
        prior=_generator_posterior(item.task),
    )


def _extended_hypotheses(item: Problem, extension: Extension) -> Hypotheses:
    """Return the SCMs of the stated class with positive posterior probability, hidden variables included."""
    if extension.is_episode or extension.question is Question.FORECAST:
        request = "worlds to ask for" if extension.is_episode else "a forecast to make"
        raise CalibrantError(f"{in_one_line(item.id)} has {request}; sets are of passive items that ask for an SCM")
    training_order, heldout_order = unchanged_order(item.task.training), unchanged_order(item.sealed.heldout)
    names = canonical_task(item.task).canonical_names  # so that draws do not depend on names
    renamed = rename_problem(item, names, training_order, heldout_order)
    canonical_class = task_class(renamed.task)
    posterior = MemberPosterior(canonical_class).condition(*item_evidence(renamed, ()))
    try:
        count, mass = count_members(posterior), exact_mass(posterior)
        sampler, rng = posterior_sampler(posterior), Random(0)
        draws = [posterior.likelihood(sampler.draw(rng)) / mass for _ in range(NUM_DRAWS)] if mass else []
    except BudgetSpent as spent:
        raise CalibrantError(f"the SCMs that fit {in_one_line(item.id)} are not counted: {spent}") from None
    item_class = task_class(item.task)
    probabilities: dict[str, Fraction] = {}  # filled by `key`, which is called before `fits` and `probability`

    def key(answer: Mapping[str, Any]) -> str | None:
        mechanisms = class_member(item_class, item.task, answer)
        if mechanisms is None:
            return None
        text = repr(sorted(mechanisms.items()))
        if text not in probabilities:
            image = {names[v]: _rename_parents(function, names) for v, function in mechanisms.items()}
            probabilities[text] = posterior.likelihood(image) / mass if mass else Fraction(0)
        return text

    prior = Prior(
        f"the item's {canonical_class.prior.value} prior",
        lambda answer: float(probabilities[key(answer) or ""]),
        [(1 / NUM_DRAWS, float(share)) for share in draws],
    )
    hidden = ", with the functions of hidden variables" if canonical_class.hidden_parents else ""
    return Hypotheses(
        noun="SCMs",
        in_words=f"SCMs of positive posterior probability{hidden}: {item_class.describe()}",
        count=count,
        key=_meaning_of,
        fits=lambda score, text: probabilities[text] > 0,
        prior=prior if draws else None,
        answer_key=key,
    )


def class_member(scm_class: MechanismClass, task: Task, answer: Mapping[str, Any]) -> Mechanisms | None:
    """Return the functions of an answer; None unless it is an SCM of the class that states the hidden variables too."""
    submitted = check_map(scm_class, task.grammar, answer)
    if isinstance(submitted, Rejection) or submitted.formulas.keys() != {
        *scm_class.endogenous,
        *scm_class.hidden_parents,
    }:
        return None
    mechanisms = {v: local_function(formula) for v, formula in submitted.formulas.items()}
    for v, function in mechanisms.items():
        stated_parents = scm_class.hidden_parents.get(v)
        if stated_parents is None:
            in_class = len(function.parents) <= scm_class.max_parents
        else:
            in_class = set(function.parents) == set(stated_parents)
        if not in_class:
            return None
    return mechanisms


def _rename_parents(function: LocalFunction, names: Mapping[str, str]) -> LocalFunction:
    return LocalFunction(tuple(names[parent] for parent in function.parents), function.table)


def _generator_posterior(task: Task) -> Prior | None:
    """Return posterior probabilities under the published generator's prior; None if it cannot generate the item."""
    if task.grammar != STANDARD or task.kind is TaskKind.ALTERNATIVE:
        return None
    canonical = canonical_task(task)  # so that draws do not depend on names
    names = canonical.canonical_names
    try:
        posterior = Posterior(canonical.task)
    except BudgetSpent:
        return None
    if not posterior.components:
        return None
    rng = Random(0)
    draws = [posterior.probability(posterior.sample(rng)) for _ in range(NUM_DRAWS)]
    return Prior(
        "the published generator",
        lambda answer: posterior.probability(member_of(rename_scm(_scm(task, answer), names), canonical.task)),
        [(1 / NUM_DRAWS, probability) for probability in draws],
    )


def _scm(task: Task, answer: Mapping[str, Any]) -> Scm:
    """Return the SCM of a valid answer."""
    mechanisms = {
        variable: parse(text, task.grammar, frozenset(task.variables) - {variable})
        for variable, text in answer["mechanisms"].items()
    }
    return Scm(tuple(variable for variable in task.variables if variable not in mechanisms), mechanisms)


def member_of(model: Scm, task: Task) -> Member:
    """Return an SCM as a member of a posterior."""
    index = {variable: i for i, variable in enumerate(task.variables)}
    return Member(
        natural(model.roots),
        {
            index[variable]: Local(sum(1 << index[parent] for parent in parents), table.bits)
            for variable, (parents, table) in model.local_functions.items()
        },
    )


def _meaning_of(score: Mapping[str, Any]) -> str | None:
    """Return the text that equivalent answers share; None for an invalid answer."""
    meaning = score.get(MEANING)
    return meaning if score.get("valid") is True and isinstance(meaning, str) else None


# --- SCMs consistent with the worlds of an item or an episode, as text ------------------------------------------------
SCMS = ("SCM", "SCMs")
SIZED_PARENTS = 4  # largest number of parents for which all functions are listed by size
MAX_DRAWN = 10  # entries up to which sampled SCMs with wider mechanisms complete the list
DRAWN = "Those with a mechanism of more than 4 parents were drawn at random."
NOISY = "With errors in the readings no SCM is ruled out; the most probable one is listed."


def list_remaining(item: Problem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    """List consistent SCMs, smallest first; under noise the most probable one. None: no SCM, or budget spent."""
    try:
        if item.task.extension is not None:
            return _list_extended(item, steps, limit)
        return _list_plain(item, limit)
    except BudgetSpent:
        return None


def _list_plain(item: Problem, limit: int) -> Remaining:
    parents = headline_parents(item)
    space = VersionSpace(item.task, ModelClass(parents))
    narrow = min(parents, SIZED_PARENTS)
    sized = space.within(narrow, sized_class(item.task, narrow).max_size)
    show_roots = item.task.disclosure.roots is None
    listed = first_entries((Hypothesis(_scm_text(m, show_roots)) for m in members_by_size(sized)), limit)
    num_missing = min(limit, MAX_DRAWN, space.count) - len(listed)
    sampled: dict[str, None] = {}
    if num_missing > 0:
        # 10: some samples repeat, or are listed already
        texts = (_scm_text(m, show_roots) for m in sample_members(space, Random(0), 10 * MAX_DRAWN))
        sampled = dict.fromkeys(text for text in texts if Hypothesis(text) not in listed)
    entries = (*listed, *map(Hypothesis, [*sampled][: max(0, num_missing)]))
    return Remaining(SCMS, space.count, entries, note=DRAWN if sampled else "")


def _list_extended(item: Problem, steps: Sequence[Step[Any]], limit: int) -> Remaining | None:
    scm_class = task_class(item.task)
    posterior = MemberPosterior(scm_class).condition(*item_evidence(item, steps))
    count = count_members(posterior)
    if not count:
        return None
    if not scm_class.noise.is_noiseless:
        best = best_map(posterior, item.task.grammar)
        entry = Hypothesis(_formulas_text(best.formulas), number=1, posterior=float(best.share))
        return Remaining(SCMS, count, (entry,), note=NOISY)
    operators = synthesis_operators(item.task.grammar)
    members = (  # a constant is written over the first root: the grammar has no constants
        {name: formula_for(f.table, f.parents or (scm_class.roots[0],), operators) for name, f in member.items()}
        for member in first_members(posterior, limit)
    )
    return Remaining(SCMS, count, tuple(_by_size(members)))


def _by_size(members: Iterator[Mapping[str, Formula]]) -> Iterator[Hypothesis]:
    for formulas in sorted(members, key=lambda formulas: sum(f.size for f in formulas.values())):
        yield Hypothesis(_formulas_text(formulas))


def _scm_text(model: Scm, show_roots: bool) -> str:
    roots = f"roots {' '.join(natural(model.roots))}; " if show_roots else ""
    return roots + _formulas_text(model.mechanisms)


def _formulas_text(formulas: Mapping[str, Formula]) -> str:
    return "; ".join(f"{name} = {_formula_text(formulas[name])}" for name in natural(formulas))


def _formula_text(formula: Formula) -> str:
    """Return a formula in infix; "always 0" or "always 1" for a constant, whatever variable it mentions."""
    function = local_function(formula)
    return infix(formula) if function.parents else f"always {function.table.bits & 1}"
