"""Generated items of CausaLab, and variants of items."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

from calibrant.bench import variants
from calibrant.bench.causalab.options import ConvertedItems, GeneratedItems
from calibrant.bench.core.capabilities import Drawable
from calibrant.bench.pools.generated import SuiteGenerator
from calibrant.bench.pools.item_options import ItemOptions, refused_plan
from calibrant.bench.variants import Variant as ItemVariant
from calibrant.dsl.causalab.configs import NUM_RECORDS, Variant, View
from calibrant.dsl.causalab.generation import PLANS, NoisePlan, Plan, Trace
from calibrant.dsl.causalab.item import LabItem, Weights
from calibrant.dsl.causalab.mechanism import TRIES, Draw
from calibrant.dsl.causalab.reference import SettingMeaning
from calibrant.dsl.errors import CalibrantError

# --- Generation of pools of CausaLab, suite by suite, and the options of their items ----------------------------------
MIN_PART_ITEMS, MAX_PARTS = 8, 8  # parts share the labelling of a suite's items; each samples all topologies


class LabSuites(Drawable[LabItem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        return tuple(PLANS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[LabItem]:
        """Sample the items of suites, with their sealed difficulty labels."""
        return tuple(item for suite in suites for item in self.draw_part(suite, seed, range(count)))

    def draw_part(self, suite: str, seed: int, indices: range) -> Sequence[LabItem]:
        """Sample the items at these indices. Topologies of earlier items are sampled too, but labels take the time."""
        from calibrant.audits.causalab.items import generate_labelled

        return tuple(generate_labelled(PLANS[suite], seed, indices.stop, indices.start))

    def parts(self, count: int) -> Sequence[range]:
        size = max(MIN_PART_ITEMS, -(-count // MAX_PARTS))
        return [range(first, min(first + size, count)) for first in range(0, count, size)]


def plan_with_options(suite: str, options: GeneratedItems) -> Plan:
    """Return the plan of a suite under options; `OptionError` for options that do not fit the suite."""
    plan = PLANS[suite]
    changes: dict[str, Any] = {
        "records": options.records,
        "allowance": options.allowance,
        "tries": options.tries,
        "fixed": options.fixed,
        "reading": None if options.reading is None else SettingMeaning(options.reading),
        "view": None if options.view is None else View(options.view),
        "weights": None if options.weights is None else Weights(options.weights),
        "trace": None if options.trace is None else Trace(options.trace),
    }
    try:
        noise = _noise_plan(plan.noise, options)
        return replace(plan, noise=noise, **{name: value for name, value in changes.items() if value is not None})
    except ValueError as error:
        raise refused_plan(ValueError(f"suite {suite}: {error}")) from None


def _noise_plan(noise: NoisePlan | None, options: GeneratedItems) -> NoisePlan | None:
    details = {
        "affected": options.noise,
        "frequency": options.noise_frequency,
        "scale": options.noise_scale,
        "draw": None if options.noise_draw is None else Draw(options.noise_draw),
    }
    stated: dict[str, Any] = {name: value for name, value in details.items() if value is not None}
    if (noise is None and not options.noise) or options.noise == 0:
        if stated.keys() - {"affected"}:
            raise ValueError("noise_frequency, noise_scale and noise_draw belong to items with noise; give noise=NODES")
        return None
    return replace(noise or NoisePlan(options.noise or 1), **stated)


def draw_with_options(suite: str, seed: int, indices: range, options: GeneratedItems) -> Sequence[LabItem]:
    """Sample the items of a suite at these indices, with their labels."""
    from calibrant.audits.causalab.items import generate_labelled

    return tuple(generate_labelled(plan_with_options(suite, options), seed, indices.stop, indices.start))


def variant_of(options: ConvertedItems) -> Variant:
    """Return the variant of items on a released suite: records, allowance, reading and the like."""
    return Variant(
        NUM_RECORDS if options.records is None else options.records,
        bool(options.released),
        options.allowance,
        options.fixed or 0,
        View(options.view or View.ALL),
        options.tries or TRIES,
        SettingMeaning(options.reading or SettingMeaning.VALUE),
    )


class SuiteConverter:
    """Implements ItemConvertible: released suites under options, which the pool's header records."""

    def convert_with_options(self, source: Path, target: Path, options: ItemOptions) -> int:
        from calibrant.dsl.causalab.configs import is_suite, suite_pool
        from calibrant.dsl.causalab.records import write_pool

        if not is_suite(source):
            raise CalibrantError(f"{source.name} is no released suite; options of items apply to those alone")
        values: ConvertedItems = options.values
        pool = suite_pool(source, values.seed or 0, variant_of(values))
        write_pool(replace(pool, metadata={**pool.metadata, "options": dict(options.stated)}), target)
        return len(pool)


CONVERT = SuiteConverter()
SUITES = LabSuites()
GENERATE = SuiteGenerator("causalab", draw_with_options)


# --- Variants of laboratories: other names, orders and wordings, and a repeated record --------------------------------
class LabVariants(variants.Variable):
    """Implements Variable (bench.variants)."""

    kinds = ("rename", "rows", "equivalent", "words")
    fixed = frozenset({"id", "labels", "suite", "family", variants.WORDING})

    def vary(self, record: variants.Record, kind: str, random: Random) -> ItemVariant | None:
        if kind == "rename":
            names = variants.permuted(record["properties"], random)
            renamed = variants.rename_json(record, names, self.fixed)
            return ItemVariant(renamed | {"properties": sorted(renamed["properties"])}, names) if names else None
        if kind == "words":
            return variants.rephrase(record)
        if kind == "equivalent":
            return _repeat_record(record, random)
        places = variants.shuffled(range(len(record["records"])), random)
        if len(places) < 2:
            return None
        bases = record["sealed"].get("bases")
        sealed = dict(record["sealed"])
        if isinstance(bases, dict) and "records" in bases:
            sealed["bases"] = {**bases, "records": [bases["records"][k] for k in places]}
        return ItemVariant({**record, "records": [record["records"][k] for k in places], "sealed": sealed})

    def normal_form(self, record: variants.Record, kind: str) -> Any:
        sealed = dict(record["sealed"])
        bases = dict(sealed.get("bases") or {})
        hidden = bases.pop("records", None) or [None] * len(record["records"])
        pairs = sorted(json.dumps(pair, sort_keys=True) for pair in zip(record["records"], hidden, strict=True))
        if kind == "equivalent":
            pairs = sorted(set(pairs))
        equations = {
            name: {**equation, "terms": sorted(map(json.dumps, equation.get("terms", ())))}
            for name, equation in sealed.get("equations", {}).items()
        }
        hidden_part = {key: value for key, value in sealed.items() if key not in ("labels", "bases", "equations")}
        return self.other_fields(record, kind, ("id", "records", "properties", "sealed")) | {
            "properties": sorted(record["properties"]),
            "pairs": pairs,
            "bases": bases,
            "equations": equations,
            "hidden": hidden_part,
        }

    def map_answer(self, answer: Any, copy_map: variants.CopyMap) -> Any:
        coefficients = {f"{c}_{old}": f"{c}_{new}" for c in ("c", "c2") for old, new in copy_map.names.items()}
        return variants.rename_json(answer, {**copy_map.names, **coefficients})


def _repeat_record(record: variants.Record, random: Random) -> ItemVariant | None:
    """Return the item with one of its records (earlier crystals) shown twice; None without records."""
    if not record["records"]:
        return None
    index, new_index = random.randrange(len(record["records"])), random.randint(0, len(record["records"]))
    bases = record["sealed"]["bases"]
    sealed = {**record["sealed"], "bases": {**bases, "records": _repeated(bases["records"], index, new_index)}}
    return ItemVariant({**record, "records": _repeated(record["records"], index, new_index), "sealed": sealed})


def _repeated(entries: Sequence[Any], index: int, new_index: int) -> list[Any]:
    return [*entries[:new_index], entries[index], *entries[new_index:]]


VARIANTS = LabVariants()
