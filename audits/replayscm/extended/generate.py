"""Generation of extended items by stratum: with noise, hidden variables or episodes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random

from calibrant.dsl.formulas.table import TruthTable
from calibrant.dsl.formulas.text import STANDARD
from calibrant.dsl.replayscm.disclosure import HiddenOrder, Ordered, RootedDisclosure, natural
from calibrant.dsl.replayscm.episode import context_values
from calibrant.dsl.replayscm.extensions.extension import (
    NOISE_FREE,
    Allowance,
    Contexts,
    Extension,
    MechanismClass,
    Prior,
    is_flipped,
    known_rate,
    mechanism_class,
)
from calibrant.dsl.replayscm.extensions.reference import Mechanisms, evaluation_order, replay_row
from calibrant.dsl.replayscm.generation.problems import sample_assigned, sample_intervention, sample_problem
from calibrant.dsl.replayscm.generation.scms import sample_labels
from calibrant.dsl.replayscm.generation.strata import NAMED_STRATA, NUM_ROOTS, NUM_WORLDS, Stratum
from calibrant.dsl.replayscm.item import Problem, Sealed, Task, TaskKind
from calibrant.dsl.replayscm.scm import LocalFunction, Scm
from calibrant.dsl.replayscm.world import Intervention, Panel, World
from calibrant.solvers.replayscm.experiments.policies import member_formulas
from calibrant.solvers.replayscm.hidden.mass import posterior_sampler, reduced_function
from calibrant.solvers.replayscm.noise.posterior import Posterior

# --- The strata of extended items: shapes of published strata, noise rates, hidden variables --------------------------
RATES = (Fraction(0), Fraction(1, 50), Fraction(1, 20), Fraction(1, 10), Fraction(1, 5))
NUM_ROWS = 8  # of a world of an episode
MAX_TARGETS = 3  # of a world of an episode
HIDDEN_PARENTS = {0: 0, 1: 3, 2: 3}  # num. of hidden variables -> parents of each
NOISY_HIDDEN_PARENTS = {0: 0, 1: 3, 2: 2}  # the same, with noise
HIDDEN_MAX_PARENTS = 3  # most parents of a variable in items with hidden variables


@dataclass(frozen=True)
class ExtendedShape:
    """A published stratum, with the parent limit of the class and the number of worlds of an item."""

    base: Stratum
    max_parents: int
    num_worlds: int


def _base(name: str) -> Stratum:
    return next(stratum for stratum in NAMED_STRATA if stratum.name == name)


SHAPES = (
    ExtendedShape(_base("hs_n6_easy_calibration"), 3, 24),
    ExtendedShape(_base("hs_n8_bridge"), 4, 24),
    ExtendedShape(_base("vhs_n10_anchor_m10"), 4, 40),
)


@dataclass(frozen=True)
class ExtendedStratum:
    """A shape with a noise rate and a number of hidden variables."""

    shape: ExtendedShape
    rate: Fraction
    num_hidden: int

    @property
    def name(self) -> str:
        noise = f"_noise{self.rate.numerator}in{self.rate.denominator}" if self.rate else ""
        hidden = f"_hidden{self.num_hidden}" if self.num_hidden else ""
        return f"{self.shape.base.name}{noise}{hidden}"

    @property
    def max_parents(self) -> int:
        return HIDDEN_MAX_PARENTS if self.num_hidden else self.shape.max_parents

    @property
    def num_hidden_parents(self) -> int:
        return (NOISY_HIDDEN_PARENTS if self.rate else HIDDEN_PARENTS)[self.num_hidden]

    @property
    def is_plain(self) -> bool:
        return not self.rate and not self.num_hidden


def extended_strata() -> Iterator[ExtendedStratum]:
    """Yield all strata: shapes, then rates, then numbers of hidden variables."""
    for shape in SHAPES:
        for rate in RATES:
            for num_hidden in (0, 1, 2):
                yield ExtendedStratum(shape, rate, num_hidden)


# --- Extended items from a seed: gold from the published process or from the stated prior, clean held-out worlds ------
# Without noise and hidden variables, gold is sampled by the published process. Otherwise it is sampled from the stated
# prior, because only then is calibration a theorem. With hidden variables, gold is sampled again until each hidden
# variable has two children whose visible function changes if it is held constant. Labels state that condition, and
# calibration is claimed only for items without it.
SETTINGS = ("hidden-order", "ordered")
MIN_HIDDEN_CHILDREN = 2
MAX_DRAWS = 2_000  # draws from one class; in some orders too few variables come after a hidden one
SEED_BITS = 40


def sample_extended(
    stratum: ExtendedStratum, seed: int, *, setting: str = "hidden-order", is_episode: bool = True
) -> Problem:
    """Return the item of a stratum and seed; the same arguments give the same item.

    setting: one of SETTINGS; is_episode: if False, the stratum's worlds are given, with the flips of an episode
    """
    if setting not in SETTINGS:
        raise ValueError(f"unknown setting '{setting}'; known: {', '.join(SETTINGS)}")
    rng = Random(f"{stratum.name}:{setting}:{is_episode}:{seed}")
    if stratum.is_plain:
        latent = sample_problem(stratum.shape.base, seed).sealed
        assert latent.gold is not None
        gold, order = latent.gold, latent.latent_order
        scm_class = _class(stratum, order, {}, setting, Prior.UNIFORM)
    else:
        scm_class, gold, order = _from_prior(stratum, setting, rng)
    item_seed = rng.getrandbits(SEED_BITS)
    name = f"CAL_{stratum.name}_{'episode' if is_episode else 'passive'}_{setting}_{seed}"
    return _problem(stratum, scm_class, gold, order, name, item_seed, rng, is_episode=is_episode)


def _class(
    stratum: ExtendedStratum,
    order: Sequence[str],
    hidden: dict[str, tuple[str, ...] | None],
    setting: str,
    prior: Prior,
) -> MechanismClass:
    observed = natural(v for v in order if v not in hidden)
    roots = natural(order[:NUM_ROOTS])
    disclosure: RootedDisclosure = HiddenOrder(natural(order), roots)
    if setting == "ordered":
        disclosure = Ordered(tuple(order), roots)
    noise = known_rate(stratum.rate) if stratum.rate else NOISE_FREE
    return MechanismClass(observed, roots, disclosure, stratum.max_parents, prior, noise, hidden)


def _from_prior(stratum: ExtendedStratum, setting: str, rng: Random) -> tuple[MechanismClass, Scm, tuple[str, ...]]:
    while True:
        order = list(sample_labels(stratum.shape.base.num_variables, rng))
        hidden: dict[str, tuple[str, ...] | None] = {}
        for index in range(stratum.num_hidden):
            name = f"H{index + 1}"
            # the parents come early, so that in Ordered items there are variables left to be children
            early = [v for v in order[: NUM_ROOTS + 2] if v not in hidden]
            parents = tuple(sorted(rng.sample(early, stratum.num_hidden_parents), key=order.index))
            order.insert(order.index(parents[-1]) + 1 if order.index(parents[-1]) >= NUM_ROOTS else NUM_ROOTS, name)
            hidden[name] = natural(parents)
        scm_class = _class(stratum, order, hidden, setting, Prior.BY_PARENTS)
        sampler = posterior_sampler(Posterior(scm_class))
        members = (sampler.draw(rng) for _ in range(MAX_DRAWS))
        accepted = (m for m in members if all(_num_affected(m, name) >= MIN_HIDDEN_CHILDREN for name in hidden))
        member = next(accepted, None)
        if member is not None:
            break
    gold = Scm(scm_class.roots, member_formulas(scm_class.roots, member))
    latent = tuple(order) if setting == "ordered" else (*scm_class.roots, *(evaluation_order(member) or ()))
    return scm_class, gold, latent


def _num_affected(member: Mechanisms, hidden: str) -> int:
    """Count the children whose visible function changes if the hidden variable is held constant."""
    affected = 0
    for v, function in member.items():
        if hidden in function.parents:
            hidden_functions = {h: f for h, f in member.items() if h in function.parents and h.startswith("H")}
            before = reduced_function(function, tuple(sorted(hidden_functions.items())))
            constants = [hidden_functions | {hidden: LocalFunction((), TruthTable(0, bit))} for bit in (0, 1)]
            affected += before not in [reduced_function(function, tuple(sorted(held.items()))) for held in constants]
            assert v != hidden
    return affected


def _problem(
    stratum: ExtendedStratum,
    scm_class: MechanismClass,
    gold: Scm,
    order: Sequence[str],
    name: str,
    seed: int,
    rng: Random,
    *,
    is_episode: bool,
) -> Problem:
    num_worlds = stratum.shape.num_worlds
    allowance = Allowance(num_worlds, NUM_ROWS, MAX_TARGETS, contexts=Contexts.ALL) if is_episode else None
    extension = Extension(
        scm_class.observed,
        scm_class.roots,
        scm_class.max_parents,
        scm_class.prior,
        scm_class.noise,
        dict(scm_class.hidden_parents),
        allowance,
    )
    assert mechanism_class(extension, scm_class.disclosure) == scm_class
    rates = dict.fromkeys(scm_class.endogenous, stratum.rate) if stratum.rate else {}
    training: list[World] = []
    if not is_episode:
        interventions = [Intervention(), *_interventions(stratum, scm_class, num_worlds - 1, rng)]
        training = [
            _world(f"train_{index}", scm_class, gold, intervention, seed, index, rates, rng)
            for index, intervention in enumerate(interventions)
        ]
    heldout = [
        _world(f"heldout_{index}", scm_class, gold, intervention, seed, index, {}, rng)
        for index, intervention in enumerate(_interventions(stratum, scm_class, NUM_WORLDS, rng))
    ]
    panels = [Panel(natural(scm_class.observed), tuple(worlds)) for worlds in (training, heldout)]
    kind = TaskKind.EPISODE if is_episode else TaskKind.SCM
    task = Task(kind, scm_class.disclosure, STANDARD, panels[0], False, len(heldout), None, extension)
    labels = {"stratum": stratum.name, "difficulty": stratum.shape.base.difficulty, "seed": str(name.rsplit("_", 1)[1])}
    if stratum.num_hidden:
        labels["hidden_children"] = f"at least {MIN_HIDDEN_CHILDREN} of each hidden variable"
    sealed = Sealed(gold, gold.size, panels[1], tuple(order), labels=labels, seed=seed, rates=rates)
    return Problem(name, task, sealed)


def _interventions(stratum: ExtendedStratum, scm_class: MechanismClass, count: int, rng: Random) -> list[Intervention]:
    """Sample interventions of distinct signatures on observed variables, by the published sampler."""
    chosen: dict[object, Intervention] = {}
    while len(chosen) < count:
        intervention = sample_intervention(stratum.shape.base, scm_class.observed, rng)
        chosen.setdefault(intervention.signature, intervention)
    return list(chosen.values())


def _world(
    name: str,
    scm_class: MechanismClass,
    gold: Scm,
    intervention: Intervention,
    seed: int,
    index: int,
    rates: dict[str, Fraction],
    rng: Random,
) -> World:
    """Return a world of all contexts, with the flips that an episode has for its world of this index."""
    num_rows = 1 << len(scm_class.roots)
    assigned = sample_assigned(intervention.assigned, num_rows, rng)
    rows = []
    for row in range(num_rows):
        clamped = {**intervention.constants, **{v: column >> row & 1 for v, column in assigned.items()}}
        flipped = frozenset(
            v for v, rate in rates.items() if v not in clamped and is_flipped(seed, index, row, v, rate)
        )
        rows.append(replay_row(scm_class, gold.local_functions, context_values(scm_class, row), clamped, flipped))
    variables = natural(scm_class.observed)
    columns = tuple(sum(row[v] << r for r, row in enumerate(rows)) for v in variables)
    return World(name, intervention, variables, tuple(f"u{r:02d}" for r in range(num_rows)), columns)
