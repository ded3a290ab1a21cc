"""Help of commands that take options of items: it lists those of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from calibrant.bench.help_groups import GroupedOptions

_BENCHMARK = "--benchmark"


class ItemOptionsCommand(GroupedOptions):
    """A command with `-o NAME=VALUE`; its help lists the options of --benchmark, or says how to see them."""

    command_name = "generate"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[_BENCHMARK] = _stated_benchmark(args)  # help is shown before options are read
        return super().parse_args(ctx, args)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        super().format_options(ctx, formatter)
        for title, lines in _listed_options(self.command_name, ctx.meta.get(_BENCHMARK)):
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, _, text in (line.partition(": ") for line in lines)])


class ConvertCommand(ItemOptionsCommand):
    """`pool convert`, which has no --benchmark."""

    command_name = "pool convert"


def _stated_benchmark(args: list[str]) -> str | None:
    for place, word in enumerate(args):
        if word == _BENCHMARK and place + 1 < len(args):
            return args[place + 1]
        if word.startswith(f"{_BENCHMARK}="):
            return word.removeprefix(f"{_BENCHMARK}=")
    return None


def _listed_options(command: str, benchmark: str | None) -> Iterator[tuple[str, list[str]]]:
    from calibrant.bench.core.names import TITLES
    from calibrant.bench.pools.item_options import item_option_struct, option_lines

    having = [name for name in TITLES if item_option_struct(command, name)]
    if command == "generate" and benchmark not in having:
        names = ", ".join(having)
        yield "Item options (-o)", [f"NAME=VALUE: Listed by `generate {_BENCHMARK} NAME --help` for {names}."]
        return
    for name in having:
        if benchmark in (None, name):
            yield f"Item options (-o) of {TITLES[name]}", option_lines(command, name)
