"""Set-up and the main jobs, with nothing but Python 3.11+: `python3 tasks.py demo` and `python3 tasks.py test`.

Both make a virtual environment in .venv, install the tested versions of requirements.lock and the project itself, and
skip that when nothing has changed since; the tests add the libraries of requirements-rivals.lock, and like the site
(`python3 tasks.py docs`) those of requirements-docs.lock. The tools that the project has adapters for are large:
`python3 tasks.py test-integrations` has an environment of its own for them, .venv-integrations, with
requirements-integrations.lock added. `lock-integrations` resolves that file anew from pyproject.toml; versions that it
has stay. `test-newcomer` runs the tests in a fresh clone as on a new machine, in a random order; `test-ci` does too,
and then runs here, with the shared vectors, the tests that did not pass there. `test-lowest` runs the command and a
tenth of the test files with the lowest versions that pyproject.toml allows; `lock-lowest` writes that list. `coverage`
measures which lines the tests run, `release-check` what a release needs.
`make demo`, `make test` and so on call this file.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent
LOCK, RIVALS, INTEGRATIONS = "requirements.lock", "requirements-rivals.lock", "requirements-integrations.lock"
DOCS, LOWEST, QUALITY = "requirements-docs.lock", "requirements-lowest.lock", "requirements-quality.lock"
ADAPTERS = ("inspect", "verifiers", "lm-eval", "integrations")  # extras of requirements-integrations.lock
SITE = "docs/_build/html"

CHECKS = (("ruff", "format", "--check", "."), ("ruff", "check", "."))
TYPES = ("mypy",)  # one process, which would leave a core idle: it works while the tests are collected
# three workers on two cores: tests of processes, browsers and servers wait for a fifth of their time
TESTS = ("pytest", "-q", "-n", "3", "--dist", "worksteal")
# with the types of the packages that there are adapters for
TYPED = ("calibrant", "calibrant_tasks", "tests.integrations")
INTEGRATION_TESTS = (
    ("mypy", *(part for package in TYPED for part in ("-p", package))),
    ("pytest", "-q", "-n", "2", "--dist", "worksteal", "tests/integrations"),
)
LIBRARY_TESTS = (  # of libraries that a tenth of the files does not import
    "tests/audits/blickets/test_statistics.py",
    "tests/bench/runs/test_other_servers.py",
    "tests/bench/test_structure_rivals.py",
    "tests/solvers/acyclic/integer_program/test_relaxation.py",
    "tests/solvers/replayscm/test_engines.py::test_small_problems_against_brute_force",
)
LOWEST_TESTS = (
    ("pip", "check"),
    ("calibrant.bench.cli", "--version"),
    ("calibrant.bench.cli", "pool", "check", "bench/data/sample_ordered.jsonl"),
    ("pytest", "-q", "-n", "2", "--dist", "worksteal", "--one-in", "10"),
    ("pytest", "-q", "-n", "2", "--dist", "worksteal", *LIBRARY_TESTS),
)
FLOORS = {"dsl": 94}  # percent of lines that the tests of a package have to run
RELEASE_TESTS = ("pytest", "-q", "tests/test_release.py", "tests/test_wheel.py", "tests/test_readme.py")
SPEED_HISTORY = "bench/lab/speed/history.jsonl"
BUILD = ("hatchling", "editables", "pathspec", "trove-classifiers", "tomlkit")  # with which `pip install .` builds
MACHINE = re.compile(r"CI|(?:CALIBRANT|NUMBA)_\w+")  # variables that a newcomer does not have
PIP = ("pip", "install", "--quiet", "--disable-pip-version-check")


@dataclass(frozen=True)
class Process:
    """A module to run, where and with which variables; what is said should it fail."""

    command: tuple[str, ...]
    folder: Path = ROOT
    variables: Mapping[str, str] | None = None  # None: those of this process
    advice: str = ""


@dataclass(frozen=True)
class Environment:
    """A virtual environment; a stamp in it says what it was made from."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def run(
        self,
        *command: str,
        folder: Path = ROOT,
        variables: Mapping[str, str] | None = None,
        advice: str = "",
    ) -> None:
        """Run a module of its Python in the folder; stop with its exit code if it fails."""
        self.run_together(Process(command, folder, variables, advice))

    def run_together(self, *processes: Process) -> None:
        """Run modules at the same time; stop with the exit code of the first that fails once all have ended."""
        started = []
        for process in processes:
            print("$ python -m", *process.command, flush=True)
            line = [str(self.python), "-m", *process.command]
            started.append(subprocess.Popen(line, cwd=process.folder, env=process.variables or _variables()))
        codes = [running.wait() for running in started]
        for process, code in zip(processes, codes, strict=True):
            if code and process.advice:
                print(process.advice, flush=True)
        if any(codes):
            sys.exit(next(code for code in codes if code))

    def install(self, size: str, lock: str = LOCK, options: tuple[str, ...] = ()) -> None:
        """Make it agree with a lock file, which pip installs with these options, and pyproject.toml."""
        if self.python.exists() and self._stamped("installed", lock, "pyproject.toml"):
            return
        print(f"setting up {self.folder} (once; about {size})", flush=True)
        venv.create(self.folder, clear=True, with_pip=True)
        self.run(*PIP, *options, "-r", lock)
        self.run(*PIP, "--no-deps", "--no-build-isolation", "--editable", ".")
        self._stamp("installed", lock, "pyproject.toml")

    def add(self, lock: str, what: str) -> None:
        """Add the packages of a lock file that names all that they need beside requirements.lock."""
        if not self._stamped(lock, lock):
            print(f"adding {what}", flush=True)
            self.run(*PIP, "--no-deps", "-r", lock)
            self._stamp(lock, lock)

    def _stamp(self, stamp: str, *files: str) -> None:
        (self.folder / stamp).write_text(_digest(*files))

    def _stamped(self, stamp: str, *files: str) -> bool:
        path = self.folder / stamp
        return path.exists() and path.read_text() == _digest(*files)


def _variables() -> dict[str, str]:
    """Those of this process, but compiled modules are kept: each of hundreds of processes would compile them anew."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _digest(*names: str) -> str:
    return hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in names)).hexdigest()


def environment() -> Environment:
    """Of the command and the tests."""
    made = Environment(Path(os.environ.get("CALIBRANT_VENV", ROOT / ".venv")))
    made.install("700 MB")
    return made


def integrations_environment() -> Environment:
    """Of the tests with the packages that there are adapters for."""
    made = Environment(Path(os.environ.get("CALIBRANT_INTEGRATIONS_VENV", ROOT / ".venv-integrations")))
    made.install("700 MB")
    made.add(INTEGRATIONS, "the packages that there are adapters for (once; about 2 GB)")
    return made


def lock_integrations(resolver: Environment) -> None:
    """Write what the extra `integrations` needs beside requirements.lock, or in other versions than that has.

    Versions that the file has stay, so a package that cannot be had in the version of requirements.lock is put there
    by hand first.
    """
    base = _pinned((ROOT / LOCK).read_text().splitlines())
    needed = _resolved(resolver, base | _pinned((ROOT / INTEGRATIONS).read_text().splitlines()), ["integrations"])
    _write_lock(INTEGRATIONS, [line for name, line in needed.items() if line.lower() != base.get(name, "").lower()])


def lowest_versions() -> dict[str, str]:
    """Return a pin of the lower bound of each requirement in pyproject.toml, extras of adapters excepted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(line for name in extras if name not in ADAPTERS for line in extras[name])]
    return _pinned(re.sub(r"\s*>=\s*([^,\s]+).*", r"==\1", line) for line in needed)


def lock_lowest(resolver: Environment) -> None:
    """Write the lower bounds of pyproject.toml, and what they need: versions that the file has of that stay."""
    held = _pinned((ROOT / LOWEST).read_text().splitlines())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = _resolved(resolver, held | lowest_versions(), [name for name in extras if name not in ADAPTERS])
    build = {name: line for name, line in held.items() if name in BUILD}
    _write_lock(LOWEST, [line for _, line in sorted((needed | build).items())])


def _resolved(resolver: Environment, constraints: dict[str, str], extras: list[str]) -> dict[str, str]:
    """Return the pins of all that the project and extras of it need under these constraints, by name."""
    with tempfile.TemporaryDirectory() as folder:
        report, wanted = Path(folder, "report.json"), Path(folder, "constraints.txt")
        wanted.write_text("\n".join(constraints.values()))
        resolve = (*PIP, "--dry-run", "--ignore-installed", "--report", str(report), "-c", str(wanted))
        resolver.run(*resolve, "--editable", f".[{','.join(extras)}]")
        packages = [package["metadata"] for package in json.loads(report.read_text())["install"]]
    # an index adds a label of its own to a version: 2.0+cpu
    public = {package["name"]: package["version"].partition("+")[0] for package in packages}
    pins = _pinned(f"{name}=={version}" for name, version in public.items() if name != "calibrant")
    return dict(sorted(pins.items()))


def _write_lock(name: str, pins: list[str]) -> None:
    """Write the pins below the comments at the head of the file."""
    comments = [line for line in (ROOT / name).read_text().splitlines() if line.startswith("#")]
    (ROOT / name).write_text("\n".join([*comments, *pins]) + "\n")


def _pinned(lines: Iterable[str]) -> dict[str, str]:
    """The lines of a lock file by the names of the distributions, as indices compare them."""
    return {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower(): line for line in lines if "==" in line}


def demo() -> None:
    environment().run("calibrant.bench.cli", "demo")


def tests_environment() -> Environment:
    """Of all tests but those in tests/integrations."""
    made = environment()
    made.add(RIVALS, "the libraries of extras that the tests use (once; about 550 MB)")
    _add_docs(made)
    return made


def test() -> None:
    made = tests_environment()
    for command in CHECKS:
        made.run(*command)
    made.run_together(Process(TYPES), Process(TESTS))


def test_newcomer() -> None:
    """Test this checkout in a fresh clone: no shared vectors, no caches, CI unset, tests in a random order.

    ORDER_SEED repeats the order of a run that failed: the command is printed.
    """
    made = tests_environment()
    with newcomer() as run:
        made.run(*run.command, folder=run.folder, variables=run.variables, advice=run.advice)


def test_ci() -> None:
    """Each test once, in the harder of two places: as a newcomer, and here what did not pass there.

    That is what needs shared vectors, whose cases are tests of their own, or needs CI=true.
    """
    made = tests_environment()
    for command in CHECKS:
        made.run(*command)
    with newcomer() as run:
        passed = run.folder.parent / "passed"
        types = Process(TYPES)
        tests = Process((*run.command, f"--passed-to={passed}"), run.folder, run.variables, run.advice)
        made.run_together(types, tests)
        print(f"{len(passed.read_text(encoding='utf-8').splitlines())} tests passed there; the others here:")
        made.run(
            *TESTS,
            f"--but={passed}",
            variables=_variables() | {"XDG_CACHE_HOME": str(run.folder.parent / "cache")},  # its compiled kernels
            advice="`python3 tasks.py test` has these tests and all others",
        )


@contextmanager
def newcomer() -> Iterator[Process]:
    """The tests in a fresh clone that has what is changed and new in this checkout."""
    seed = os.environ.get("ORDER_SEED") or str(random.SystemRandom().randrange(1_000_000))
    with tempfile.TemporaryDirectory(prefix="calibrant-newcomer-", ignore_cleanup_errors=True) as folder:
        clone, cache = Path(folder).resolve() / "calibrant", Path(folder).resolve() / "cache"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        for name in _uncommitted():
            (clone / name).unlink(missing_ok=True)
            if (ROOT / name).exists():
                (clone / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, clone / name)
        # the environment has this checkout installed: the clone goes before it
        variables = {"PYTHONPATH": str(clone), "XDG_CACHE_HOME": str(cache)}
        kept = {name: value for name, value in _variables().items() if not MACHINE.fullmatch(name)}
        advice = f"the same order again: ORDER_SEED={seed} python3 tasks.py test-newcomer"
        yield Process((*TESTS, f"--order-seed={seed}"), clone, kept | variables, advice)


def _uncommitted() -> list[str]:
    """The files of this checkout that differ from its last commit, and new ones that git would not ignore."""
    lists = (["diff", "HEAD", "--name-only"], ["ls-files", "--others", "--exclude-standard"])
    git = ("git", "-C", str(ROOT))
    texts = [subprocess.run([*git, *line, "-z"], check=True, capture_output=True, text=True).stdout for line in lists]
    return [name for text in texts for name in text.split("\0") if name]


def lowest_environment() -> Environment:
    """Of the tests with the lowest versions that pyproject.toml allows."""
    made = Environment(Path(os.environ.get("CALIBRANT_LOWEST_VENV", ROOT / ".venv-lowest")))
    # the lock names every package, which `pip check` verifies
    made.install("1 GB", LOWEST, ("--no-deps",))
    return made


def install_others() -> None:
    """Set up the environment that `test` does not use, so that it can run meanwhile."""
    integrations_environment()


def test_lowest() -> None:
    """Run the command, and a fixed tenth of the test files, with the lowest versions that pyproject.toml allows."""
    made = lowest_environment()
    for command in LOWEST_TESTS:
        made.run(*command)


def soak() -> None:
    """The long versions of the tests and the fuzzers; SOAK_MINUTES is their time in all."""
    made = tests_environment()
    made.run("tests.support.soak", "--minutes", os.environ.get("SOAK_MINUTES", "30"))


def coverage() -> None:
    """Run the tests of the packages in FLOORS and compare the share of lines that they run with these.

    It takes five minutes of a processor for dsl, so it is run by hand and is no part of `test`. Kernels are compiled,
    which hides their lines; their tests compare them with plain code instead.
    """
    made = tests_environment()
    made.add(QUALITY, "the library that measures coverage")
    made.run("coverage", "run", "-m", "pytest", "-q", *(f"tests/{package}" for package in FLOORS))
    for package, floor in FLOORS.items():
        made.run("coverage", "report", f"--include={package}/*", "--skip-covered", f"--fail-under={floor}")


def release_problems(version: str, *, tags: Iterable[str], status: str, changelog: str, history: str) -> Iterator[str]:
    """Yield what keeps a checkout from being released.

    tags: of the repository; status: of git, empty where all is committed; history: of speed, a line a run
    """
    if status:
        yield "the checkout has changes that are not committed"
    if f"v{version}" in tags:
        yield f"the tag v{version} exists; raise the version in bench/version.py, CITATION.cff and CHANGELOG.md"
    if not re.search(rf"^## {re.escape(version)} \(\d{{4}}-\d\d-\d\d\)$", changelog, re.MULTILINE):
        yield f"CHANGELOG.md has no heading '## {version} (YYYY-MM-DD)'"
    versions = [json.loads(line)["machine"]["calibrant"] for line in history.splitlines()]
    if version not in versions:
        yield f"{SPEED_HISTORY} has no line of {version}: python -m calibrant.bench.lab.speed --append {SPEED_HISTORY}"


def release_check() -> None:
    """Check what a release states and contains, then print the commands that remain; 1 if anything is missing."""
    made = tests_environment()
    version = re.findall(r'^__version__ = "(.+)"', (ROOT / "bench/version.py").read_text(), re.MULTILINE)[0]
    git = ("git", "-C", str(ROOT))
    tags, status = (
        subprocess.run([*git, *line], check=True, capture_output=True, text=True).stdout
        for line in (("tag",), ("status", "--porcelain"))
    )
    problems = list(
        release_problems(
            version,
            tags=tags.split(),
            status=status,
            changelog=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
            history=(ROOT / SPEED_HISTORY).read_text(encoding="utf-8"),
        )
    )
    for command in (*CHECKS, TYPES, RELEASE_TESTS):
        made.run(*command)
    print(*problems, sep="\n")
    if problems:
        sys.exit(1)
    print("still to run: make test-ci test-integrations test-lowest coverage docs")
    print(f"then: git tag -a v{version} -m 'Calibrant {version}' && git push --tags")


def docs() -> None:
    made = environment()
    _add_docs(made)
    made.run("sphinx", "-W", "--keep-going", "-q", "-b", "html", "docs", SITE)
    print(f"the site begins at {SITE}/index.html")


def _add_docs(made: Environment) -> None:
    made.add(DOCS, "what the site is built with (once; about 150 MB)")


def test_integrations() -> None:
    made = integrations_environment()
    for command in INTEGRATION_TESTS:
        made.run(*command)


TASKS = {
    "demo": demo,
    "test": test,
    "soak": soak,
    "coverage": coverage,
    "release-check": release_check,
    "docs": docs,
    "test-integrations": test_integrations,
    "test-ci": test_ci,
    "test-newcomer": test_newcomer,
    "test-lowest": test_lowest,
    "install": environment,
    "install-others": install_others,
    "lock-integrations": lambda: lock_integrations(environment()),
    "lock-lowest": lambda: lock_lowest(environment()),
}


def main() -> None:
    task = sys.argv[1] if len(sys.argv) == 2 else ""
    if sys.version_info < (3, 11):  # noqa: UP036  # this file is what an older Python meets first
        sys.exit(f"Python 3.11 or newer is needed; this is {sys.version.split()[0]}")
    if task not in TASKS:
        sys.exit(f"usage: python3 tasks.py {' | '.join(TASKS)}")
    TASKS[task]()


if __name__ == "__main__":
    main()
