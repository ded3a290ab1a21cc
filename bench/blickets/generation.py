"""Generated items of blickets, and variants of items."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from random import Random
from typing import Any

from calibrant.bench.blickets.options import GeneratedItems
from calibrant.bench.core.capabilities import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.bench.pools.item_options import refused_plan
from calibrant.bench.variants import WORDING, Record, Variable, Variant, permuted, rename_json, rephrase, shuffled
from calibrant.dsl.blickets.generation import SUITES as SUITE_PLANS
from calibrant.dsl.blickets.generation import Plan, sample_items
from calibrant.dsl.blickets.item import BlicketItem, Condition, Count, OrderReading, SwitchBy

# --- Generation of pools of extended blickets, suite by suite, and the options of their items -------------------------
PART_ITEMS = 64  # items of a part, which are sampled in 20 ms


class BlicketSuites(Drawable[BlicketItem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(SUITE_PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[BlicketItem]:
        return tuple(item for name in suites for item in self.iterate_part(name, seed, range(count)))

    def parts(self, count: int) -> Sequence[range]:
        return [range(first, min(first + PART_ITEMS, count)) for first in range(0, count, PART_ITEMS)]

    def iterate_part(self, suite: str, seed: int, indices: range) -> Iterator[BlicketItem]:
        return _draw(SUITE_PLANS[suite], suite, seed, indices)


def _draw(plan: Plan, suite: str, seed: int, indices: range) -> Iterator[BlicketItem]:
    items = islice(sample_items(plan, seed, indices.start), len(indices))
    for index, item in zip(indices, items, strict=True):
        yield replace(item, id=f"{suite}-{seed}-{index}", labels={**item.labels, "stratum": suite})


def plan_with_options(suite: str, options: GeneratedItems) -> Plan:
    """Return the plan of a suite under options; `OptionError` for options that do not fit the suite."""
    plan = SUITE_PLANS[suite]
    changes: dict[str, Any] = {
        "n": options.objects,
        "budget": options.budget,
        "count": None if options.count is None else Count(options.count),
        "order_reading": None if options.order_reading is None else OrderReading(options.order_reading),
        "random_start": None if options.start is None else options.start == "random",
        "informed": options.informed,
        "graded": options.graded,
        "strict_singleton": options.strict_singleton,
        "switch_by": None if options.switch_by is None else SwitchBy(options.switch_by),
        "p": options.p,
        "conjunctive_share": options.conjunctive_share,
        "series": options.series,
    }
    stated = {name: value for name, value in changes.items() if value is not None}
    try:
        return replace(plan, **stated, **_mechanism_changes(plan, options))
    except ValueError as error:
        raise refused_plan(ValueError(f"suite {suite}: {error}")) from None


def _mechanism_changes(plan: Plan, options: GeneratedItems) -> dict[str, Any]:
    """Return the changes of rules, switches and exposure."""
    changes: dict[str, Any] = {}
    ordered = plan.condition is Condition.ORDER
    if options.blickets is not None and ordered:
        raise ValueError("blickets are ordered there; give order_length")
    if options.order_length is not None and not ordered:
        raise ValueError("order_length needs a suite with an order")
    size = options.order_length if ordered else options.blickets
    if size is not None:
        changes["blickets"] = size
    if options.order_reading is not None and not ordered:
        raise ValueError("order_reading needs a suite with an order")
    if options.switch is not None or options.switch_by is not None:
        if not plan.later:
            raise ValueError("switch and switch_by need a suite with a switch")
        shift = 0 if options.switch is None else options.switch - plan.later[0].switch
        changes["later"] = tuple(replace(later, switch=later.switch + shift) for later in plan.later)
    exposure = {"after_switch": options.forced_after_switch, "moves": options.forced_moves}
    stated: dict[str, Any] = {name: value for name, value in exposure.items() if value is not None}
    if options.forced_after_switch and not plan.later:
        raise ValueError("forced_after_switch needs a suite with a switch")
    if stated:
        changes["exposure"] = replace(plan.exposure, **stated)
    return changes


def draw_with_options(suite: str, seed: int, indices: range, options: GeneratedItems) -> Iterator[BlicketItem]:
    """Sample the items of a suite at these indices."""
    return _draw(plan_with_options(suite, options), suite, seed, indices)


SUITES = BlicketSuites()
GENERATE = SuiteGenerator("blickets", draw_with_options)


# --- Variants of detectors: renamed or reordered objects, other wordings, a first reading of the empty detector -------
#
# A system chooses its evidence, except a reading before the first move. An empty detector is INACTIVE under every
# rule, order, switch and noise, so an item that shows this reading has the same consistent hypotheses.
class BlicketVariants(Variable):
    """Implements Variable (bench.variants)."""

    kinds = ("rename", "columns", "equivalent", "words")
    fixed = frozenset(
        {"id", "labels", "condition", "rule", "count", "order_reading", "start", "prompt", "format", "view", WORDING}
    )

    def vary(self, record: Record, kind: str, random: Random) -> Variant | None:
        if kind == "columns":
            return Variant({**record, "objects": shuffled(record["objects"], random)})
        if kind == "words":
            return rephrase(record)
        if kind == "equivalent":
            return _with_empty_start(record)
        names = permuted(record["objects"], random)
        renamed = rename_json(record, names, self.fixed)
        return Variant(renamed | {"objects": list(record["objects"])}, names)

    def normal_form(self, record: Record, kind: str) -> Any:
        sealed = {key: _sorted_rule(value) for key, value in record["sealed"].items()}
        form = self.other_fields(record, kind, ("id", "labels")) | {"objects": sorted(record["objects"])}
        if kind == "equivalent" and sealed.get("start_on") == []:
            del sealed["start_on"]
            form["start"] = "empty"
        return form | {"sealed": sealed}


def _with_empty_start(record: Record) -> Variant | None:
    """Return the item with a reading of the empty detector at the start, or without it; None if objects are on it."""
    sealed = dict(record["sealed"])
    if sealed.get("start_on"):
        return None
    if "start_on" in sealed:
        del sealed["start_on"]
        return Variant({**record, "start": "empty", "sealed": sealed})
    return Variant({**record, "start": "random", "sealed": {**sealed, "start_on": []}})


def _sorted_rule(value: Any) -> Any:
    return (
        {**value, "blickets": sorted(value["blickets"])} if isinstance(value, dict) and "blickets" in value else value
    )


VARIANTS = BlicketVariants()
