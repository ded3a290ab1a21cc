"""Programs in `pool check`, `pool convert` and `pool unpack`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.dsl.text import plural

if TYPE_CHECKING:
    from calibrant.bench.causim.programs.checking import ProgramReport
    from calibrant.bench.pools.item_options import ItemOptions


class CausimPrograms:
    """Implements ProgramFiles (bench.pools.capabilities)."""

    benchmark = "causim"

    def recognizes(self, path: Path) -> bool:
        from calibrant.dsl.causim.external_programs.sources import holds_programs

        return holds_programs(path)

    def check(self, paths: Sequence[Path], options: Any) -> ProgramReport:
        from calibrant.bench.causim.programs.checking import check_programs

        return check_programs(paths, options)

    def convert(self, source: Path, target: Path, options: ItemOptions | None) -> list[str]:
        from calibrant.bench.causim.programs.conversion import convert_programs

        conversion = convert_programs(source, target, options)
        return [*conversion.lines, f"{plural(conversion.number, 'instances')} written to {target}"]

    def unpack(self, pool: Path, folder: Path) -> list[str]:
        from calibrant.bench.causim.programs.unpacking import unpack_pool

        return unpack_pool(pool, folder)


PROGRAMS = CausimPrograms()
