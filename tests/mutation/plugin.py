"""Pytest plug-in that loads one module with a mutant's code: `MUTATED_FILE` and `MUTANT` name it.

It is loaded before any conftest, so before the module is imported; files are never changed.
"""

from __future__ import annotations

import os
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from tests.mutation.mutants import list_mutants

_file = Path(os.environ["MUTATED_FILE"]).resolve()
_mutant = list_mutants(_file.read_text(encoding="utf-8"))[int(os.environ["MUTANT"])]
_get_code = SourceFileLoader.get_code


def _get_mutated_code(self: SourceFileLoader, fullname: str) -> CodeType | None:
    if Path(self.get_filename(fullname)).resolve() == _file:
        return compile(_mutant.tree, str(_file), "exec")
    return _get_code(self, fullname)


SourceFileLoader.get_code = _get_mutated_code  # type: ignore[method-assign, assignment]
