"""Set-up and the main jobs, with nothing but Python 3.11+: `python3 tasks.py demo` and `python3 tasks.py test`.

Both make a virtual environment in .venv, install the tested versions of requirements.lock (what is required, the extra
`smt`, the tools of the tests) and the project itself, and skip that when nothing has changed since; the tests add the
libraries of requirements-rivals.lock, and like the site (`python3 tasks.py docs`) those of requirements-docs.lock. The
tools that the project has adapters for are large: `python3 tasks.py test-integrations` has an environment of its own
for them, .venv-integrations, with requirements-integrations.lock added. `lock-integrations` resolves that file anew
from pyproject.toml; versions that it has stay. `test-newcomer` runs the tests in a fresh clone as on a new machine, in
a random order; `test-lowest` runs the command and a twentieth of the test files with the lowest versions that
pyproject.toml allows; `lock-lowest` writes that list. `test-ci` is all of continuous integration: the newcomer's tests;
in the same clone, with the shared vectors, the tests that did not pass there; the integrations, the lowest versions.
`coverage` measures which lines the tests run, `release-check` what a release needs.
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
import time
import tomllib
import venv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

ROOT = Path(__file__).resolve().parent
LOCK, RIVALS, INTEGRATIONS = "requirements.lock", "requirements-rivals.lock", "requirements-integrations.lock"
DOCS, LOWEST, QUALITY = "requirements-docs.lock", "requirements-lowest.lock", "requirements-quality.lock"
ADAPTERS = ("inspect", "verifiers", "lm-eval", "integrations")  # extras of requirements-integrations.lock
BY_HAND = ("oracles",)  # extras of tests/oracles, which no task runs
SITE = ("tests.support.pages.site", "-W", "--keep-going", "-q", "-b", "html", "docs", "docs/_build/html")

CHECKS = (("ruff", "format", "--check", "."), ("ruff", "check", "."))
TYPES = ("mypy",)  # one process, which would leave a core idle: it works beside the tests
# three workers on two cores: tests of processes, browsers and servers wait for a fifth of their time
TESTS = ("pytest", "-q", "-n", "3", "--dist", "worksteal")
# imports all modules and rewrites the assertions of all tests once: each worker would for itself, in 15 s instead of 7
COMPILATION = ("pytest", "-qq", "--collect-only")
FEWER_TESTS = ("pytest", "-q", "-n", "2", "--dist", "worksteal")
# with the types of the packages that there are adapters for
TYPED = ("calibrant", "calibrant_tasks", "tests.integrations")
INTEGRATION_TYPES = ("mypy", *(part for package in TYPED for part in ("-p", package)))
INTEGRATION_TESTS = (*FEWER_TESTS, "tests/integrations")
LIBRARY_TESTS = (  # of libraries that so few of the files do not import
    "tests/audits/blickets/test_printed.py",
    "tests/bench/runs/test_cluster.py",
    "tests/bench/test_structure_rivals.py",
    "tests/solvers/acyclic/test_integer_program.py",
    "tests/solvers/replayscm/test_members.py::test_small_problems_against_brute_force",
)
LOWEST_TESTS = (
    ("pip", "check"),
    ("calibrant.bench.cli", "--version"),
    ("calibrant.bench.cli", "pool", "check", "bench/replayscm/data/sample_ordered.jsonl"),
    (*FEWER_TESTS, "--one-in", "20"),
    (*FEWER_TESTS, *LIBRARY_TESTS),  # a process of its own: pytest 8.3 drops the others beside named files
)
FLOORS = {"dsl": 94, "solvers": 93, "audits": 93}  # percent of lines that the tests of a package have to run
RELEASE_TESTS = ("pytest", "-q", "tests/test_release.py", "tests/test_pages.py")
SPEED_HISTORY = "bench/lab/speed/history.jsonl"
BUILD = ("hatchling", "editables", "pathspec", "trove-classifiers", "tomlkit")  # with which `pip install .` builds
MACHINE = re.compile(r"CI|(?:CALIBRANT|NUMBA)_\w+")  # variables that a newcomer does not have
# compiled when installed: an invalid escape warns when its module is first compiled, and warnings are errors in tests
PIP = ("pip", "install", "-qq", "--disable-pip-version-check")  # errors alone: warnings drown what follows


def _print_line(text: str) -> None:
    """Print a line at once: print writes its end apart, and lines of two chains ran into each other."""
    print(f"{text}\n", end="", flush=True)


@dataclass(frozen=True)
class Process:
    """A module to run with a Python, where and with which variables; what is said should it fail."""

    python: Path
    command: tuple[str, ...]
    folder: Path = ROOT
    variables: Mapping[str, str] | None = None  # None: those of this process
    advice: str = ""
    is_preparation: bool = False  # what fails of it fails again, and is shown, in what follows: it is silent

    def start(self) -> subprocess.Popen[bytes]:
        _print_line(f"$ python -m {' '.join(self.command)}")
        output = subprocess.DEVNULL if self.is_preparation else None
        line = [str(self.python), "-m", *self.command]
        return subprocess.Popen(line, cwd=self.folder, env=self.variables or _variables(), stdout=output, stderr=output)

    def run(self) -> int:
        """Return the exit code, 0 of a preparation; print how long it took, for whoever wonders where the time goes."""
        start = time.monotonic()
        code = self.start().wait()
        _print_line(f"# {time.monotonic() - start:.0f} s: {' '.join(self.command)[:80]}")
        if self.is_preparation:
            return 0
        if code and self.advice:
            _print_line(self.advice)
        return code


class Step(Protocol):
    """A part of a chain; `run` returns its exit code."""

    def run(self) -> int: ...


@dataclass(frozen=True)
class Wait:
    """The end of a process that another part started."""

    process: subprocess.Popen[bytes]

    def run(self) -> int:
        return self.process.wait()


def run_together(*chains: Sequence[Step]) -> None:
    """Run chains of processes at the same time, each up to the first that fails.

    Once all have ended: stop with the exit code of the first chain that failed.
    """

    def run_chain(chain: Sequence[Step]) -> int:
        return next(filter(None, (step.run() for step in chain)), 0)

    with ThreadPoolExecutor(len(chains)) as threads:
        codes = list(threads.map(run_chain, chains))
    if any(codes):
        sys.exit(next(filter(None, codes)))


@dataclass(frozen=True)
class Environment:
    """A virtual environment; a stamp in it says what it was made from."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def process(self, *command: str) -> Process:
        """Return a module of its Python, to be run in this checkout."""
        return Process(self.python, command)

    def run(self, *command: str) -> None:
        """Run a module of its Python in this checkout; stop with its exit code if it fails."""
        run_together([self.process(*command)])

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


def integrations_place() -> Environment:
    """Return the environment of the tests with the packages that there are adapters for, installed or not."""
    return Environment(Path(os.environ.get("CALIBRANT_INTEGRATIONS_VENV", ROOT / ".venv-integrations")))


def integrations_environment() -> Environment:
    """Return that environment once it is installed."""
    made = integrations_place()
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
    """Return a pin of the lower bound of each requirement in pyproject.toml, extras of other tests excepted."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(line for name in _lowest_extras(extras) for line in extras[name])]
    return _pinned(re.sub(r"\s*>=\s*([^,\s]+).*", r"==\1", line) for line in needed)


def _lowest_extras(extras: Iterable[str]) -> list[str]:
    return [name for name in extras if name not in (*ADAPTERS, *BY_HAND)]


def lock_lowest(resolver: Environment) -> None:
    """Write the lower bounds of pyproject.toml, and what they need: versions that the file has of that stay."""
    held = _pinned((ROOT / LOWEST).read_text().splitlines())
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = _resolved(resolver, held | lowest_versions(), _lowest_extras(extras))
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
    """Return the lines of a lock file by the names of the distributions, as indices compare them."""
    return {re.sub(r"[-_.]+", "-", line.partition("==")[0]).lower(): line for line in lines if "==" in line}


def demo() -> None:
    opening = ("--open",) if sys.stdout.isatty() else ()
    environment().run("calibrant.bench.cli", "demo", *opening)
    print("the command calibrant: source .venv/bin/activate", file=sys.stderr)


def tests_environment() -> Environment:
    """Of all tests but those in tests/integrations."""
    made = environment()
    made.add(RIVALS, "the libraries of extras that the tests use (once; about 550 MB)")
    _add_docs(made)
    return made


def test() -> None:
    made = tests_environment()
    _check_style(made)
    run_together([made.process(*TYPES)], [made.process(*TESTS)])


def _check_style(made: Environment) -> None:
    for command in CHECKS:
        made.run(*command)


def test_newcomer() -> None:
    """Test this checkout in a fresh clone: no shared vectors, no caches, CI unset, tests in a random order.

    ORDER_SEED repeats the order of a run that failed: the command is printed.
    """
    made = tests_environment()
    with newcomer(made) as tests:
        run_together([tests])


def test_ci() -> None:
    """Run all of continuous integration, each test once, in the harder of two places.

    That is as a newcomer; then in the same clone, with the shared vectors and this process's CI, what did not pass
    before: cases that come with the vectors, which are tests of their own, and what needs CI=true. All else runs
    beside these tests, one after another: tests of processes, browsers and servers wait for a fifth of their time, and
    stages that waited for each other left a core idle at the end of each. The integrations are of the same clone,
    because compiled kernels are cached by path. The site is built, and its cells are run, by tests/test_site.py;
    `docs` and `soak` execute it with kernels of its own, which takes 140 s of a processor.
    """
    with _background(Process(Path(sys.executable), ("tasks", "install-others"))) as installation:
        made = tests_environment()
        _check_style(made)
        with newcomer(made) as tests:
            passed = tests.folder.parent / "passed"
            compilation = replace(tests, command=COMPILATION, advice="", is_preparation=True)
            newcomers = replace(tests, command=(*tests.command, f"--passed-to={passed}"))
            here = replace(tests, variables=_in_clone(tests), advice="`python3 tasks.py test` has these tests too")
            others = replace(here, command=(*FEWER_TESTS, f"--but={passed}"))
            integrations = integrations_place()
            run_together(
                [compilation, newcomers, others],
                [
                    made.process(*TYPES),
                    Wait(installation),
                    integrations.process(*INTEGRATION_TYPES),
                    *_lowest_processes(lowest_place()),
                    replace(here, python=integrations.python, command=INTEGRATION_TESTS, advice=""),
                ],
            )


@contextmanager
def _background(process: Process) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process, which is ended should the block end before it."""
    running = process.start()
    try:
        yield running
    finally:
        running.terminate()
        running.wait()


def _in_clone(tests: Process) -> dict[str, str]:
    """Return this process's variables, with the clone's modules and caches, and the vectors beside this checkout."""
    places = {name: (tests.variables or {})[name] for name in ("PYTHONPATH", "XDG_CACHE_HOME")}
    return {"CALIBRANT_SHARED": str(ROOT.parent / "shared")} | _variables() | places


@contextmanager
def newcomer(made: Environment) -> Iterator[Process]:
    """Run the tests in a fresh clone that has what is changed and new in this checkout."""
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
        yield Process(made.python, (*TESTS, f"--order-seed={seed}"), clone, kept | variables, advice)


def _uncommitted() -> list[str]:
    """List the files of this checkout that differ from its last commit, and new ones that git would not ignore."""
    lists = (["diff", "HEAD", "--name-only"], ["ls-files", "--others", "--exclude-standard"])
    git = ("git", "-C", str(ROOT))
    texts = [subprocess.run([*git, *line, "-z"], check=True, capture_output=True, text=True).stdout for line in lists]
    return [name for text in texts for name in text.split("\0") if name]


def lowest_place() -> Environment:
    """Return the environment of the tests with the lowest versions that pyproject.toml allows, installed or not."""
    return Environment(Path(os.environ.get("CALIBRANT_LOWEST_VENV", ROOT / ".venv-lowest")))


def lowest_environment() -> Environment:
    """Return that environment once it is installed."""
    made = lowest_place()
    # the lock names every package, which `pip check` verifies
    made.install("1 GB", LOWEST, ("--no-deps",))
    return made


def install_others() -> None:
    """Set up the environments that `test` does not use, so that it can run meanwhile."""
    integrations_environment()
    lowest_environment()


def test_lowest() -> None:
    """Run the command, and a fixed twentieth of the test files, with the lowest versions that pyproject.toml allows."""
    run_together(_lowest_processes(lowest_environment()))


def _lowest_processes(made: Environment) -> list[Process]:
    """Return the processes of LOWEST_TESTS, without CI: packages that only tests need are not in that environment."""
    variables = {name: value for name, value in _variables().items() if name != "CI"}
    return [replace(made.process(*command), variables=variables) for command in LOWEST_TESTS]


def soak() -> None:
    """Run the long versions of the tests and the fuzzers; SOAK_MINUTES is their time in all."""
    made = tests_environment()
    made.run("tests.support.soak", "--minutes", os.environ.get("SOAK_MINUTES", "30"))


def coverage() -> None:
    """Run the tests of the packages in FLOORS and compare the share of lines that they run with these.

    It takes fifteen minutes of a processor, so it is run by hand and is no part of `test`. Kernels are compiled,
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
    print("still to run: make test-ci coverage")
    print(f"then: git tag -a v{version} -m 'Calibrant {version}' && git push --tags")


def docs() -> None:
    made = environment()
    _add_docs(made)
    made.run(*SITE)
    print(f"the site begins at {SITE[-1]}/index.html")


def pictures() -> None:
    """Draw the pictures of README and site again, and write the site's generated pages: commands, formats, gallery."""
    made = environment()
    _add_docs(made)
    made.run("tests.support.pages.pictures")
    made.run("tests.support.pages.reference")


def _add_docs(made: Environment) -> None:
    made.add(DOCS, "what the site is built with (once; about 150 MB)")


def test_integrations() -> None:
    made = integrations_environment()
    run_together([made.process(*INTEGRATION_TYPES), made.process(*INTEGRATION_TESTS)])


TASKS = {
    "demo": demo,
    "test": test,
    "soak": soak,
    "coverage": coverage,
    "release-check": release_check,
    "docs": docs,
    "pictures": pictures,
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
