"""Files of the program's own: complete or not there, and compiled kernels where nobody else could put code."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import tempfile
import threading
from errno import ENOSPC
from pathlib import Path

import platformdirs
import pytest
from filelock import FileLock

from calibrant.bench.cli import EVERY, CompilingLines
from calibrant.bench.terminal import refuse_existing
from calibrant.dsl.atomic_write import open_atomically, write_atomically
from calibrant.dsl.kernel_cache import CompileLock, cache_folder, cache_name, is_private, kernel_files, private_folder
from tests.support.commands import CHECKOUT as SOURCES
from tests.support.commands import program

# --- Where compiled kernels are kept: never where somebody else could put code ----------------------------------------
CHECKOUT = Path(__file__).resolve().parents[2]


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return a folder that is private: what pytest makes is closed to others, and its own folder is too."""
    folder = tmp_path.resolve() / "own"
    folder.mkdir(mode=0o700)
    assert is_private(folder)
    return folder


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_folder_that_others_can_write_to_is_not_private(own: Path, mode: int) -> None:
    own.chmod(mode)
    assert not is_private(own)


@pytest.mark.parametrize("mode", [0o777, 0o775])
def test_a_folder_below_one_that_others_can_write_to_is_not_private(own: Path, mode: int) -> None:
    inner = own / "a" / "b"
    inner.mkdir(mode=0o700, parents=True)
    assert is_private(inner)
    own.chmod(mode)
    assert not is_private(inner)
    own.chmod(0o1777)  # as /tmp: entries of others cannot be exchanged there
    assert is_private(inner)


def test_what_lies_in_it_counts_too(own: Path) -> None:
    code = own / "sub" / "code.nbi"
    code.parent.mkdir()
    code.write_bytes(b"")
    code.chmod(0o666)
    assert is_private(own)  # nobody else reaches it
    own.chmod(0o755)
    assert not is_private(own)
    code.chmod(0o644)
    assert is_private(own)
    code.unlink()
    code.symlink_to(own.parent)
    assert not is_private(own)


def test_a_folder_or_a_file_of_somebody_else_is_not_private(own: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: real + 1)
    assert not is_private(own)


@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "NUMBA_CACHE_DIR"])
def test_compiled_code_is_not_loaded_from_a_cache_that_others_can_write_to(own: Path, variable: str) -> None:
    """In a fresh interpreter, as the cache is chosen when the compiler is imported."""
    program = "import calibrant.dsl._jit\nfrom numba.core import config\nprint(config.CACHE_DIR)"
    temporary, closed, everybody = own / "tmp", own / "closed", own / "everybody"
    for folder in (temporary, closed, everybody):
        folder.mkdir(mode=0o700)
    everybody.chmod(0o777)
    for named, expected in ((everybody, temporary), (closed, closed)):
        environment = {**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(everybody), variable: str(named)}
        if variable == "XDG_CACHE_HOME":
            environment.pop("NUMBA_CACHE_DIR", None)
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, cwd=CHECKOUT, env=environment, capture_output=True, text=True, timeout=60, check=True
        )
        assert Path(done.stdout.strip()).is_relative_to(expected)


@pytest.mark.parametrize("place", ["dsl", "solvers/replayscm", "baselines/structure_learning/inner"])
def test_an_edit_of_a_kernel_in_any_folder_names_another_cache(tmp_path: Path, place: str) -> None:
    kernel = tmp_path / place / "_kernels_search.py"
    kernel.parent.mkdir(parents=True)
    kernel.write_text("x = 1", encoding="utf-8")
    before = cache_name("1.0", tmp_path)
    assert cache_name("1.0", tmp_path) == before
    (kernel.parent / "search.py").write_text("no kernel", encoding="utf-8")
    assert cache_name("1.0", tmp_path) == before
    kernel.write_text("x = 2", encoding="utf-8")
    assert cache_name("1.0", tmp_path) != before
    assert cache_name("2.0", tmp_path) != cache_name("1.0", tmp_path)


def test_every_kernel_of_the_project_counts() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "*_kernels*.py"], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    known = {str(path.relative_to(CHECKOUT)) for path in kernel_files()}
    assert len(known) >= 8
    assert known >= {name for name in listed.stdout.split() if not name.startswith("tests/")}


def test_a_folder_that_others_can_write_to_is_not_used(tmp_path: Path) -> None:
    first = private_folder(tmp_path, "kernels")
    first.chmod(0o777)
    second = private_folder(tmp_path, "kernels")
    assert second != first
    assert second.stat().st_mode & 0o777 == 0o700


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    planted = private_folder(tmp_path, "kernels")
    planted.rmdir()
    planted.symlink_to(tmp_path / "elsewhere")
    assert private_folder(tmp_path, "kernels") != planted


def test_without_a_writable_home_the_folder_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "file" / name)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    folder = cache_folder("1.0")
    assert folder.parent == tmp_path
    assert folder.stat().st_mode & 0o777 == 0o700
    assert cache_folder("2.0") != folder


# --- Kernels are compiled by one process, and it says so --------------------------------------------------------------
ONE_KERNEL = """
import numpy as np
from calibrant.bench.cli import tell_compiling
from calibrant.solvers.replayscm._kernels_parents import next_combination
tell_compiling()
chosen = np.array([0, 1])
print(bool(next_combination(chosen, 2, 3)), chosen.tolist(), len(next_combination.signatures))
"""


def test_two_processes_compile_a_kernel_once(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", ONE_KERNEL],
            cwd=SOURCES,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    done = [process.communicate(timeout=200) for process in both]
    assert [printed for printed, _ in done] == ["True [0, 2] 1\n"] * 2
    assert sorted(said.count("compiling kernels: once") for _, said in done) == [0, 1]


SHIPPED = """
import sys
from pathlib import Path
import numpy as np
from calibrant.dsl import _jit
from calibrant.dsl.kernel_cache import CompileListener
compiled = []
CompileListener.listener = compiled.append
path = Path(sys.argv[1])
_jit.shipped_file = lambda: path
from calibrant.solvers.replayscm._kernels_parents import next_combination
chosen = np.array([0, 1])
print(bool(next_combination(chosen, 2, 3)), chosen.tolist(), compiled, "numba.np.arraymath" in sys.modules)
if not path.exists():
    print(_jit.write_compiled(path))
"""


def test_kernels_of_a_wheel_are_loaded_where_the_processor_has_what_they_need(tmp_path: Path) -> None:
    """One process writes what it compiled; the next, with an empty cache, compiles nothing, and imports no compiler."""
    path = tmp_path / "kernels.pickle"

    def run(number: int) -> list[str]:
        cache = tmp_path / f"cache{number}"
        cache.mkdir(mode=0o700)
        settings = {"NUMBA_CACHE_DIR": str(cache), "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
        line = [sys.executable, "-c", SHIPPED, str(path)]
        return subprocess.run(
            line, cwd=SOURCES, env=os.environ | settings, capture_output=True, text=True, timeout=200, check=True
        ).stdout.splitlines()

    assert run(1) == ["True [0, 2] ['next_combination'] True", "1"]
    assert run(2) == ["True [0, 2] [] False"]
    needed, kernels = pickle.loads(path.read_bytes())
    assert needed == ()
    assert [name for name, _ in kernels] == ["calibrant.solvers.replayscm._kernels_parents.next_combination"]
    path.write_bytes(pickle.dumps((("a-unit-of-tomorrow",), kernels)))
    assert run(3) == ["True [0, 2] ['next_combination'] True"]


# --- What a command imports at its start ------------------------------------------------------------------------------
FEW_ITEMS = "bench/replayscm/data/sample_hidden_order.jsonl"
STARTS = dict(
    re.findall(
        r"^\| `([a-z -]+)`, [^|]*\| (\d+) \|", (CHECKOUT / "docs/speed.md").read_text(encoding="utf-8"), re.MULTILINE
    )
)
NOT_WITHOUT_PAGES = ("jinja2", "pebble", "asyncio", "ssl", "rich.console")  # 40 to 60 ms each; rich for terminals


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("run exact", [FEW_ITEMS, "--limit", "8", "--out", "OUT"]),
        ("audit", [FEW_ITEMS, "--limit", "3", "--out", "OUT"]),
        ("list --why", [FEW_ITEMS, "--limit", "1"]),
        ("fit", ["OUT.csv"]),
        ("generate", ["--seed", "1", "--per-stratum", "1", "--strata", "hs_n6_easy_calibration", "--out", "OUT"]),
    ],
)
def test_a_start_imports_what_the_page_on_speed_states(command: str, arguments: list[str], tmp_path: Path) -> None:
    """Our modules within a tenth of that page's figure, and none that only pages and worker processes need."""
    out = tmp_path / "out"
    Path(f"{out}.csv").write_text("A,B,C\n0,0,0\n0,1,0\n1,0,0\n1,1,1\n", encoding="utf-8")
    line = [*command.split(), *(argument.replace("OUT", str(out)) for argument in arguments)]
    source = f"""
import sys
from calibrant.bench.cli import main
code = main({line!r})
loaded = [name for name in {NOT_WITHOUT_PAGES!r} if name in sys.modules]
print(code, sum(name.startswith("calibrant.") for name in sys.modules), *loaded)
"""
    code, num_modules, *loaded = program("-c", source).stdout.splitlines()[-1].split()
    assert (code, loaded) == ("0", [])
    assert STARTS.keys() == {"run exact", "audit", "list --why", "fit", "generate"}
    assert 0.9 * int(STARTS[command]) <= int(num_modules) <= 1.1 * int(STARTS[command])


def test_who_has_to_compile_waits_for_who_does(tmp_path: Path) -> None:
    other = FileLock(tmp_path / "compiling.lock")
    turn, waited = CompileLock(tmp_path), threading.Event()

    def compile_something() -> None:
        with turn, turn:
            turn.wait()
            waited.set()

    with other:
        thread = threading.Thread(target=compile_something, daemon=True)
        thread.start()
        assert not waited.wait(0.2)
    thread.join(20)
    assert waited.is_set()
    with FileLock(tmp_path / "compiling.lock", timeout=0):  # given back
        pass


def test_a_line_at_once_and_then_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([10.0, 11.0, *(10.0 + factor * EVERY for factor in (1, 1.9, 2.5, 4.9, 5))])
    lines = CompilingLines(lambda: next(times))
    for kernel in "abcdefg":
        lines.say(kernel)
    printed = capsys.readouterr()
    assert printed.out == ""
    first, second, *rest = printed.err.splitlines()
    assert first.startswith("compiling kernels: once for each version")
    assert second == f"compiling kernels: c is number 3, after {EVERY:.0f} s"
    assert [line.split()[2] for line in rest] == ["e", "g"]  # after twice the time of the line before


# --- Files are complete or not there ----------------------------------------------------------------------------------
needs_proc = pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open files have no names here")


def test_a_file_takes_its_name_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old", encoding="utf-8")
    with open_atomically(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_text(encoding="utf-8") == "old"
    assert path.read_text(encoding="utf-8") == "new"
    assert path.stat().st_mode & 0o777 == 0o644
    assert [one.name for one in tmp_path.iterdir()] == ["a.txt"]


def test_a_full_disk_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with pytest.raises(OSError, match="No space left") as caught, open_atomically(path):
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    assert caught.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


@needs_proc
@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_an_open_file_is_appended_to_and_not_replaced(folder: str, tmp_path: Path) -> None:
    """As `--out /dev/stdout >> all.jsonl`; replaced would be the link of the system, for a user who may."""
    path = tmp_path / "all.jsonl"
    path.write_bytes(b"before\n")
    with path.open("ab") as stream:
        name = Path(folder) / str(stream.fileno())
        write_atomically(name, "after\n")
        refuse_existing([name], "--out", name)
    assert path.read_bytes() == b"before\nafter\n"


@needs_proc
def test_a_link_like_that_of_standard_output_stays_one(tmp_path: Path) -> None:
    path, link = tmp_path / "all.jsonl", tmp_path / "stdout"
    with path.open("wb") as stream:
        link.symlink_to(f"/proc/self/fd/{stream.fileno()}")
        write_atomically(link, "text\n")
    assert path.read_bytes() == b"text\n"
    assert link.is_symlink()


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_atomically(pipe, "é\n")
    reader.join(timeout=10)
    assert read == ["é\n"]
    assert pipe.is_fifo()
