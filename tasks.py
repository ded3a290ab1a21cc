"""Set-up and the two main jobs, with nothing but Python 3.11+: `python3 tasks.py demo` and `python3 tasks.py test`.

Both make a virtual environment in .venv, install the tested versions of requirements.lock and the project itself, and
skip that when nothing has changed since; the tests add the libraries of requirements-rivals.lock. `make demo` and
`make test` call this file.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent
ENVIRONMENT = Path(os.environ.get("CALIBRANT_VENV", ROOT / ".venv"))
PYTHON = ENVIRONMENT / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
STAMP = ENVIRONMENT / "installed"
RIVALS_STAMP = ENVIRONMENT / "rivals-installed"

TESTS = (
    ("ruff", "format", "--check", "."),
    ("ruff", "check", "."),
    ("mypy",),
    ("pytest", "-q", "-n", "2", "--dist", "worksteal"),
)


def run(*command: str) -> None:
    """Run a module of the environment's Python from the project's root; stop with its exit code if it fails."""
    print("$ python -m", *command, flush=True)
    code = subprocess.call([str(PYTHON), "-m", *command], cwd=ROOT)
    if code:
        sys.exit(code)


PIP = ("pip", "install", "--quiet", "--disable-pip-version-check")


def install() -> None:
    """Make the environment agree with requirements.lock and pyproject.toml."""
    wanted = digest("requirements.lock", "pyproject.toml")
    if PYTHON.exists() and installed(STAMP, wanted):
        return
    print(f"setting up {ENVIRONMENT} (once; about 700 MB)", flush=True)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    run(*PIP, "-r", "requirements.lock")
    run(*PIP, "--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(wanted)


def install_rivals() -> None:
    """Add the libraries that rows and benchmarks compare with."""
    wanted = digest("requirements-rivals.lock")
    if not installed(RIVALS_STAMP, wanted):
        print("adding the libraries that are compared with (once; about 500 MB)", flush=True)
        run(*PIP, "--no-deps", "-r", "requirements-rivals.lock")
        RIVALS_STAMP.write_text(wanted)


def digest(*names: str) -> str:
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in names)).hexdigest()


def installed(stamp: Path, wanted: str) -> bool:
    return stamp.exists() and stamp.read_text() == wanted


def main() -> None:
    task = sys.argv[1] if len(sys.argv) == 2 else ""
    if sys.version_info < (3, 11):  # noqa: UP036  # this file is what an older Python meets first
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
    if task not in ("demo", "test", "install"):
        sys.exit("usage: python3 tasks.py demo | test | install")
    install()
    if task == "demo":
        run("bench.cli", "demo")
    if task == "test":
        install_rivals()
        for command in TESTS:
            run(*command)


if __name__ == "__main__":
    main()
