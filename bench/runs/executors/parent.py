"""A process of ours ends with the one that started it, however that one ended."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from multiprocessing.connection import wait
from threading import Thread

PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Called first in a spawned process.

    On Linux the kernel kills it, in the middle of compiled code too. Elsewhere a thread does, once the job lets it run.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # nobody started it
        return
    if sys.platform == "linux":
        ask_the_kernel()
        if os.getppid() != parent.pid:  # it ended before the kernel was asked
            os._exit(1)
    else:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def ask_the_kernel() -> None:
    """Linux: kill this process, whatever it runs from now on, when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: int) -> None:
    wait([parent])
    os._exit(1)
