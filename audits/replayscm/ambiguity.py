"""The classes in which an audit counts what the evidence leaves open.

Classes without a size cap admit every function of at most k parents. Capped classes bound the formula size of each
mechanism; they are complete enumerations, so a cap is only used up to the number of parents for which every function of
at most that size is listed: `CAPS`. A count of 0 means that the class has no train-exact SCM at all, for instance
because a gold mechanism is too wide for it.
"""

from __future__ import annotations

from dataclasses import replace

from calibrant.audits.replayscm.patterns import latent_scm
from calibrant.dsl.formulas.text import Grammar
from calibrant.dsl.replayscm.item import Problem, Task
from calibrant.solvers.formulas.catalogue import (
    COMPLETE,
    MAX_SIZES,
    essential_functions,
    expresses_everything,
    synthesis_operators,
)
from calibrant.solvers.formulas.lookup import MAX_SIZE_OF_FOUR
from calibrant.solvers.replayscm.space import MAX_PARENTS, ModelClass

PARENTS = (2, 3, 4, 5)  # bounds of functional parents that every audit counts
MIN_PARENTS = 4  # most published records draw at most four parents; smaller classes would say little
CAPS = {
    MAX_SIZE_OF_FOUR: 4,
    **{size: parents for parents, size in MAX_SIZES.items()},
}  # cap -> most parents it is complete for
SIZE_PENALTY = 1  # a weight by size is 2**-(total formula size)


def gold_parents(problem: Problem) -> int:
    """Return the most functional parents of a mechanism of gold; `ValueError` if that is more than are counted."""
    widest = max((len(f.parents) for f in latent_scm(problem).local_functions.values()), default=0)
    if widest > MAX_PARENTS:
        raise ValueError(f"gold has {widest} functional parents; at most {MAX_PARENTS} are counted")
    return widest


def gold_class(problem: Problem) -> ModelClass:
    """Return the smallest class of at least MIN_PARENTS parents that has gold as a member, of any formula size."""
    return restrict_to_grammar(ModelClass(max(MIN_PARENTS, gold_parents(problem))), problem.task.grammar)


def restrict_to_grammar(model_class: ModelClass, grammar: Grammar) -> ModelClass:
    """Return the part of an uncapped class that the grammar can express, as a class whose cap excludes none of it.

    Return the class itself where the grammar expresses every function, and where the expressible functions are not
    listed completely; its description then mentions functions that no formula expresses.
    """
    if model_class.max_size is not None or "if" in grammar.operators or expresses_everything(grammar):
        return model_class
    if grammar.allow_constants:  # a literal inside a formula could express more than is listed
        return model_class
    functions = essential_functions(model_class.max_parents, synthesis_operators(grammar))
    if set(functions.complete_to[1:].tolist()) != {COMPLETE}:
        return model_class
    return replace(model_class, max_size=int(functions.sizes.max()))


def headline_parents(problem: Problem) -> int:
    """Return the bound of parents of the headline class: the smallest countable class with gold.

    Without gold MIN_PARENTS: only a class without members would show that it is too narrow.
    """
    gold = problem.sealed.gold
    widest = max((len(f.parents) for f in gold.local_functions.values()), default=0) if gold else 0
    return min(max(MIN_PARENTS, widest), MAX_PARENTS)


def add_size_cap(model_class: ModelClass) -> ModelClass:
    """Return the same class with the largest cap on formula size that is complete for its number of parents."""
    largest = max(cap for cap, parents in CAPS.items() if parents >= model_class.max_parents)
    return replace(model_class, max_size=largest)


def sized_class(task: Task, max_parents: int, *, nested_roots: bool = False) -> ModelClass:
    """Return the class with a size cap that stands for one without: up to four parents the cap excludes no function."""
    parents = min(max_parents, 4)
    complete = essential_functions(parents, synthesis_operators(task.grammar)).complete_to[1:].tolist()
    cap = min((size for size in complete if size != COMPLETE), default=MAX_SIZE_OF_FOUR)
    return ModelClass(parents, min(cap, MAX_SIZE_OF_FOUR), nested_roots)


def profile_classes() -> tuple[ModelClass, ...]:
    """Return the classes of a profile: k = 2 to 5 without a cap, then under each cap as far as it is complete."""
    sized = [ModelClass(k, cap) for cap, max_parents in CAPS.items() for k in range(PARENTS[0], max_parents + 1)]
    return (*(ModelClass(k) for k in PARENTS), *sized)
