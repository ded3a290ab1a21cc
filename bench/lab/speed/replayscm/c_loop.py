"""Rival: the replay loop in C, compiled on the spot and called through ctypes on the kernel's own arrays."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.bench.lab.speed.replayscm.rowwise import Counts
from calibrant.dsl.replayscm.evaluator import Programs
from calibrant.dsl.replayscm.world import PackedPanels

SOURCE = Path(__file__).with_name("replay_loop.c")
FLAGS = ("-std=c99", "-O3", "-march=native", "-shared", "-fPIC")


class NoCompilerError(Exception):
    """There is no C compiler, or it cannot make a shared library here; the text says why."""


class CLoop:
    """The compiled loop; `replay` has the contract of `Programs.compare` and gives its counts as one array."""

    def __init__(self, library: Path) -> None:
        self._function = ctypes.CDLL(str(library)).replay_candidates
        self._function.restype = None

    def replay(self, programs: Programs, packed: PackedPanels) -> Counts:
        """[candidates, panels, 4]: scored cells, wrong cells, scored worlds, exact worlds."""
        num_vars, num_words = packed.observed.shape
        num_panels = len(packed.panel_masks)
        counts = np.empty((len(programs), num_panels, 4), np.int64)
        scratch = [np.empty((rows, num_words), np.uint64) for rows in (programs.max_stack, num_vars, 1, 1)]
        self._function(
            _pointer(programs.code),
            _pointer(programs.starts),
            ctypes.c_int64(len(programs)),
            _pointer(packed.observed),
            _pointer(packed.scored),
            _pointer(packed.scored_cells),
            ctypes.c_int64(num_vars),
            ctypes.c_int64(num_words),
            _pointer(packed.world_words),
            _pointer(packed.world_masks),
            _pointer(packed.world_panel),
            ctypes.c_int64(len(packed.world_panel)),
            _pointer(packed.panel_masks),
            ctypes.c_int64(num_panels),
            *map(_pointer, scratch),
            _pointer(counts),
        )
        return counts


def _pointer(array: npt.NDArray[Any]) -> ctypes.c_void_p:
    assert array.flags.c_contiguous
    return ctypes.c_void_p(array.ctypes.data)


@contextmanager
def compiled_loop(compiler: str = "cc") -> Iterator[CLoop]:
    """Compile the loop for this processor; `NoCompilerError` if that is not possible."""
    compiler_path = shutil.which(compiler)
    if compiler_path is None:
        raise NoCompilerError(f"no C compiler '{compiler}' on the path")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        library = Path(folder) / "replay_loop.so"
        done = subprocess.run(
            [compiler_path, *FLAGS, "-o", library, SOURCE], capture_output=True, text=True, check=False
        )
        if done.returncode:
            reason = " ".join(done.stderr.split())[:200]
            raise NoCompilerError(f"'{compiler} {' '.join(FLAGS)}' failed: {reason}")
        yield CLoop(library)
