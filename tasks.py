"""Set-up and the two main jobs, with nothing but Python 3.11+: `python3 tasks.py demo` and `python3 tasks.py test`.

Both make a virtual environment in .venv, install the tested versions of requirements.lock and the project itself, and
skip that when nothing has changed since. `make demo` and `make test` call this file.
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


def install() -> None:
    """Make the environment agree with requirements.lock and pyproject.toml."""
    wanted = hashlib.sha256()
    for name in ("requirements.lock", "pyproject.toml"):
        wanted.update((ROOT / name).read_bytes())
    if PYTHON.exists() and STAMP.exists() and STAMP.read_text() == wanted.hexdigest():
        return
    print(f"setting up {ENVIRONMENT} (once; about 400 MB)", flush=True)
    venv.create(ENVIRONMENT, clear=True, with_pip=True)
    pip = ("pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "-r", "requirements.lock")
    run(*pip, "--no-deps", "--no-build-isolation", "--editable", ".")
    STAMP.write_text(wanted.hexdigest())


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
        for command in TESTS:
            run(*command)


if __name__ == "__main__":
    main()
