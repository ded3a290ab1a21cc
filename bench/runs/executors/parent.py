"""End a spawned process with its parent, however the parent ended."""

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
    """End this spawned process when its parent ends; called first in it.

    On Linux the kernel kills it, in the middle of compiled code too. Elsewhere a thread does, once the job lets it run.
    """
    parent = multiprocessing.parent_process()
    if parent is None:  # not started by a parent process
        return
    if sys.platform == "linux":
        end_with_starting_thread()
        if os.getppid() != parent.pid:  # the parent ended before the call
            os._exit(1)
    else:
        Thread(target=_watch, args=(parent.sentinel,), daemon=True).start()


def end_with_starting_thread() -> None:
    """Let Linux kill this process, whatever it runs, when the thread that started it ends."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _watch(parent: int) -> None:
    wait([parent])
    os._exit(1)
