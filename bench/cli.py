"""The command `calibrant`: exit codes, and errors as one line each.

Exit codes: 0 done, 1 a check failed, 2 bad usage or bad input (a line `error` on standard error and, if another command
would work, a line `hint` with it), 130 interrupted.
`--help` imports neither the compiler nor any solver. The command ends quietly if a reader closes the pipe.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from io import TextIOWrapper
from typing import Any

from calibrant.bench.terminal import is_quiet, printable_streams
from calibrant.dsl.kernel_cache import CompileListener
from calibrant.dsl.memory import collect_rarely, rare_collections

# --- Messages of a command while kernels are compiled, once for each version of the program ---------------------------
EVERY = 5.0  # seconds until the second line; the wait doubles with each line, so that a slow machine prints few


class CompilingLines:
    """Lines on compilation: one at once, then further ones at doubling intervals."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started = 0.0
        self._due = EVERY
        self._count = 0

    def say(self, kernel: str) -> None:
        now = self._clock()
        self._count += 1
        if self._count == 1:
            self._started = now
            self._line("once for each version, 5 to 20 s of processor time in all")
        elif now - self._started >= self._due:
            self._due = 2 * (now - self._started)
            self._line(f"{kernel} is number {self._count}, after {now - self._started:.0f} s")

    def _line(self, text: str) -> None:
        print(f"compiling kernels: {text}", file=sys.stderr, flush=True)


_lines = CompilingLines()


def say_compiling(kernel: str) -> None:
    """Report the compilation of a kernel on standard error; processes started by this one report theirs through it."""
    _lines.say(kernel)


def tell_compiling() -> None:
    """Report this process's compilations on standard error from now on."""
    CompileListener.listener = say_compiling


# A sum in a matrix product may depend on the number of threads, and several threads take more processor time.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "1")
# typer's pydantic would read the metadata of every installed package for plug-ins, which takes .03 s.
NO_PLUGINS = ("PYDANTIC_DISABLE_PLUGINS", "__all__")
OK, BAD_INPUT, INTERRUPTED = 0, 2, 130  # 1, a failed check, is what a command returns


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit code."""
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # an ASCII terminal shows a dash as a question mark
    tell_compiling()
    os.environ.setdefault(*ONE_THREAD)  # read when numpy is imported
    os.environ.setdefault(*NO_PLUGINS)  # read when typer converts the first option
    token = is_quiet.set(False)
    try:
        with printable_streams():
            if arguments is None:  # of the console script: nothing else lives in this process
                collect_rarely()  # saves 0.1 s at the start
                return _run(sys.argv[1:] or ["--help"])
            with rare_collections():
                return _run(list(arguments) or ["--help"])
    finally:
        is_quiet.reset(token)


def _run(arguments: list[str]) -> int:
    import typer

    from calibrant.bench.commands.guard import StoppedError
    from calibrant.bench.terminal import invocation
    from calibrant.dsl.errors import CalibrantError

    usage_error: Any = typer.BadParameter.__mro__[1]  # of typer's own click or the installed click, by version
    invocation.set(tuple(arguments))
    try:
        code = _command(_chosen(arguments))(args=arguments, prog_name="calibrant", standalone_mode=False)
        sys.stdout.flush()
    except CalibrantError as error:
        return _refused(str(error), _hint(error, arguments))
    except usage_error as error:
        return _refused(_usage_message(error), _hint(error, arguments, or_help=True))
    except (BrokenPipeError, SystemExit):  # typer exits for a broken pipe only
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except OSError as error:
        reason = f"{error.filename or 'input or output'}: {error.strerror or error}"
        return _refused(reason, _hint(error, arguments))
    except (KeyboardInterrupt, typer.Abort, StoppedError) as stop:
        is_resumable = isinstance(stop, StoppedError) and stop.is_resumable
        print("calibrant: interrupted" + "; the same command goes on from here" * is_resumable, file=sys.stderr)
        return INTERRUPTED
    return code if isinstance(code, int) else OK


@cache
def _command(chosen: str | None = None) -> Any:
    """Return the tree of commands with the signature of one command, by default of all; each tree is built once."""
    from calibrant.bench.command_tree import command_tree

    return command_tree(chosen)


def _chosen(arguments: Sequence[str]) -> str | None:
    """Return the command that arguments name, empty if none; None if a shell completes a line of any command."""
    from calibrant.bench.command_tree import COMMANDS

    if "_CALIBRANT_COMPLETE" in os.environ:
        return None
    word = next((word for word in arguments if not word.startswith("-")), "")
    return word if word in COMMANDS else ""


def _hint(error: Exception, arguments: list[str], *, or_help: bool = False) -> str:
    """Return a command that would work instead, else the one that prints the help if `or_help`, else empty."""
    from calibrant.bench.terminal import help_command, hint_for

    hint = hint_for(error, arguments, _command())
    return hint or (help_command(arguments, _command()) if or_help else "")


def _usage_message(error: Any) -> str:
    """Return the error of the arguments, completed by the value if typer's message lacks it."""
    from calibrant.dsl.errors import short_repr

    message = str(error.format_message()).replace("Value error, ", "").partition(", unable to parse")[0]
    faults = getattr(error.__cause__ or error.__context__, "errors", None)
    if faults is None or not message.partition("Input should be")[1]:
        return message
    value = faults()[0].get("input")
    return message.replace("Input", short_repr(value) if isinstance(value, str) else str(value), 1)


def _refused(reason: str, hint: str) -> int:
    print(f"error  {' '.join(reason.split())}", file=sys.stderr)
    if hint:
        print(f"hint   {hint}", file=sys.stderr)
    return BAD_INPUT


if __name__ == "__main__":
    sys.exit(main())
