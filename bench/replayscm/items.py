"""Items of ReplaySCM as pool files, records and prompts; statistics and suites of pools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from calibrant.bench.core.capabilities import Assumable, Drawable, PromptFields
from calibrant.bench.core.items import ItemFormats, PoolStatistic, PoolStatistics, share, span, spread
from calibrant.bench.replayscm.options import ConvertOptions
from calibrant.bench.replayscm.play import PLAY
from calibrant.dsl.errors import CalibrantError, in_one_line
from calibrant.dsl.item import Message
from calibrant.dsl.knowledge import Knowledge
from calibrant.dsl.replayscm.item import Pool, Problem, TaskKind
from calibrant.dsl.replayscm.prompt import TEMPLATE_FIELDS, template_fields

# --- Items of ReplaySCM as pool files, records and prompts ------------------------------------------------------------


class ReplayScmItems(ItemFormats[Problem]):
    """Implements ItemFormats (bench.core.items)."""

    public_fields = (
        "id",
        "kind",
        "variables",
        "units",
        "disclosure",
        "training",  # without environments, whose keys would reveal the roots
        "operators",
        "allow_constants",
        "shares_units",
        "reference",
        "setting",  # the name of the disclosure
        "num_heldout",
        "max_parents",
        "prior",
        "noise",
        "hidden",
        "allowance",
        "question",
        "asked",
        "wording",
    )

    @property
    def pool_records(self) -> tuple[type[msgspec.Struct], ...]:
        from calibrant.dsl.replayscm.pools.records import HeaderRecord, ProblemRecord

        return HeaderRecord, ProblemRecord

    @property
    def pool_schema(self) -> dict[str, Any]:
        from calibrant.dsl.replayscm.pools.records import schema

        return schema()

    def read_pool(self, path: Path) -> Pool:
        from calibrant.dsl.replayscm.pools.files import read_pool

        return read_pool(path, keep_results=False)

    def write_pool(self, pool: Any, path: Path) -> None:
        from calibrant.dsl.replayscm.pools.files import write_pool

        write_pool(Pool(pool.name, tuple(pool.items), pool.metadata), path)

    def convert(self, source: Path, target: Path, options: ConvertOptions) -> int:
        """Write a pool in the native format, or in the official one for .yaml and .yml; return the number of items."""
        from calibrant.dsl.replayscm.pools.files import read_pool, write_pool
        from calibrant.dsl.replayscm.pools.runtime_yaml import SUFFIXES, write_official

        pool = read_pool(source, keep_results=not options.drop_results)
        if target.suffix.lower() in SUFFIXES:
            require_plain(pool.problems, "the official format")
        write = write_official if target.suffix.lower() in SUFFIXES else write_pool
        write(pool, target)
        return len(pool)

    def find(self, pool: Any, instance: str | None) -> Problem:
        from calibrant.bench.replayscm.pages import find_instance

        return super().find(pool, None) if instance is None else find_instance(pool, instance)

    def record(self, item: Problem) -> dict[str, Any]:
        """Return the native record without embedded results, which are answers and not part of the item."""
        from calibrant.dsl.replayscm.pools.files import record_from_problem

        record = record_from_problem(item)
        record.results = []
        return dict(msgspec.to_builtins(record))

    def item_of_record(self, record: Mapping[str, Any]) -> Problem:
        from calibrant.dsl.records import convert_object
        from calibrant.dsl.replayscm.pools.records import ProblemRecord, problem_from_record

        parsed = convert_object(record, ProblemRecord)
        parsed.results = []
        return problem_from_record(parsed)

    def shown_record(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.pages import instance_record

        return instance_record(item)

    def revealed_record(self, item: Problem) -> dict[str, Any]:
        from calibrant.bench.replayscm.pages import sealed_record

        return self.shown_record(item) | {"sealed": sealed_record(item)}

    def prompt(self, item: Problem) -> str:
        return "\n\n".join(message["content"] for message in self.messages(item))

    def system_and_prompt(self, item: Problem) -> tuple[str, str]:
        from calibrant.dsl.replayscm.prompt import SYSTEM, prompt

        if PLAY.is_played(item):
            from calibrant.bench.replayscm.episodes import opening_prompt

            return "", opening_prompt(item)
        return SYSTEM, prompt(item.task)

    def messages(self, item: Problem) -> list[Message]:
        system, prompt = self.system_and_prompt(item)
        user: Message = {"role": "user", "content": prompt}
        return [{"role": "system", "content": system}, user] if system else [user]

    def text(self, item: Problem, *, reveal_sealed: bool) -> str:
        from calibrant.bench.replayscm.pages import instance_text, sealed_text

        return "\n\n".join([instance_text(item), *([sealed_text(item)] if reveal_sealed else [])])


PROMPT_FIELDS = PromptFields(
    TEMPLATE_FIELDS,
    lambda task, phase: template_fields(task),
    Path(__file__).parent / "data" / "prompt.j2",
)

ITEMS = ReplayScmItems()


# --- Statistics of ReplaySCM problems: sizes, worlds, intervention modes, gold ----------------------------------------
MODES = ("none", "hard_constant", "hard_assigned")


def _mode_share(mode: str) -> PoolStatistic[Problem]:
    return PoolStatistic(
        lambda problem: [world.intervention.mode == mode for world in problem.task.training.worlds], share
    )


def _gold_sizes(problem: Problem) -> Iterable[int]:
    return () if problem.sealed.gold is None else (problem.sealed.gold.size,)


def _mechanism_sizes(problem: Problem) -> Iterable[int]:
    gold = problem.sealed.gold
    return () if gold is None else [mechanism.size for mechanism in gold.mechanisms.values()]


def _parents(problem: Problem) -> Iterable[int]:
    gold = problem.sealed.gold
    return () if gold is None else [len(local.parents) for local in gold.local_functions.values()]


def _parent_counts(parents: Sequence[int]) -> dict[str, float] | None:
    """Return number of functional parents -> number of gold mechanisms; None if there are none."""
    counts = Counter(parents)
    return {str(num_parents): counts[num_parents] for num_parents in sorted(counts)} or None


COLUMNS: Mapping[str, PoolStatistic[Problem]] = {
    "n": PoolStatistic(lambda problem: (True,), len),
    "variables": PoolStatistic(lambda problem: (len(problem.task.variables),), span),
    "training_worlds": PoolStatistic(lambda problem: (len(problem.task.training.worlds),), span),
    "heldout_worlds": PoolStatistic(lambda problem: (problem.task.num_heldout,), span),
    "rows": PoolStatistic(lambda problem: [world.num_rows for world in problem.task.training.worlds], span),
    **{f"mode_{mode}": _mode_share(mode) for mode in MODES},
    "gold_size": PoolStatistic(_gold_sizes, spread),
    "mechanism_size": PoolStatistic(_mechanism_sizes, spread),
    "gold_parents": PoolStatistic(_parents, _parent_counts),
}
STATISTICS = PoolStatistics(COLUMNS, lambda problem: problem.stratum)


# --- Suites: pairs of a stratum and a disclosure ----------------------------------------------------------------------


class ReplayScmSuites(Drawable[Problem]):
    """Implements Drawable (bench.core.capabilities)."""

    @property
    def names(self) -> Sequence[str]:
        """Names of suites, STRATUM/DISCLOSURE; `calibrant generate`, which also filters items, takes both apart."""
        from calibrant.dsl.replayscm.generation.problems import SETTINGS
        from calibrant.dsl.replayscm.generation.strata import STRATA

        return tuple(f"{stratum.name}/{setting}" for stratum in STRATA for setting in SETTINGS)

    def draw(self, suites: Sequence[str], seed: int, count: int) -> Sequence[Problem]:
        """Draw items as `calibrant sample` does."""
        from calibrant.dsl.replayscm.generation.problems import sample_pool
        from calibrant.dsl.replayscm.generation.strata import stratum

        parts = [suite.partition("/") for suite in suites]
        pools = [sample_pool([stratum(name)], count, seed, setting) for name, _, setting in parts]
        return tuple(problem for pool in pools for problem in pool.problems)


SUITES = ReplayScmSuites()


# --- Items under statements that an SCM has to satisfy ----------------------------------------------------------------


class ReplayScmAssumptions:
    """Implements Assumable (bench.core.capabilities)."""

    def assume(self, item: Problem, knowledge: Knowledge) -> Problem:
        return replace(item, task=replace(item.task, assumption=knowledge))

    def check(self, item: Problem, knowledge: Knowledge) -> None:
        require_plain([item], "`--assume`")
        if item.task.kind is TaskKind.ALTERNATIVE:
            raise CalibrantError(
                f"{in_one_line(item.id)} asks for an alternative, which an assumption does not restrict"
            )
        try:
            knowledge.check(item.task.variables)
        except CalibrantError as error:
            raise CalibrantError(f"{in_one_line(item.id)}: {error}") from None


ASSUME: Assumable = ReplayScmAssumptions()


# --- Refusal of extended items where only plain ones are supported ----------------------------------------------------


def require_plain(items: Iterable[Problem], subject: str) -> None:
    """Raise `CalibrantError` for an extended item; subject: the command or feature that the message names."""
    for item in items:
        if item.task.extension is not None:
            kind = f"{in_one_line(item.id)} is of the setting {item.setting} with a stated class"
            raise CalibrantError(f"{subject} does not support extended items; {kind}")
