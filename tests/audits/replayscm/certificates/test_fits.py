"""Certificates of fits of tables: true ones hold, forged ones are refused, and figures are those of a plain listing."""

from __future__ import annotations

import csv
import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from functools import cache
from itertools import combinations_with_replacement
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from calibrant.audits.claims import RecountLimitError, limited_recount
from calibrant.audits.replayscm.fits.catalogue import NUM_FUNCTIONS, Measure, catalogue, column_bits
from calibrant.bench.cli import main
from calibrant.bench.replayscm.fitting.results import check_against
from calibrant.solvers.formulas.least_formulas import formula_book, least_sizes
from tests.bench.commands.lines import COMMANDS
from tests.support.commands import called

assert COMMANDS  # the commands of `called`
HEAD = ["smoke", "sex", "c", "d", "e x", "set"]
NUM_ROWS = 30


# --- The catalogue ----------------------------------------------------------------------------------------------------
def listed_formulas(max_size: int, *, has_parity: bool) -> dict[int, tuple[int, int]]:
    """Return function -> its least size and number of least formulas, by listing all formulas of four columns.

    A formula is a text whose arguments are in order, so that those that differ in order alone are one.
    """
    operators = ("and", "or", "xor", "iff") if has_parity else ("and", "or")
    by_size: dict[int, dict[str, int]] = {1: {f"x{k}": column_bits(k) for k in range(4)}}
    full = NUM_FUNCTIONS - 1
    for size in range(2, max_size + 1):
        formulas = {f"(not {text})": full ^ word for text, word in by_size[size - 1].items()}
        for parts in partitions(size - 1, size - 1):
            if len(parts) < 2:
                continue
            for chosen in choose(parts, by_size):
                texts, words = zip(*chosen, strict=True)
                conjunction, some = full, 0
                parity = 0
                for word in words:
                    conjunction, some, parity = conjunction & word, some | word, parity ^ word
                results = {"and": conjunction, "or": some, "xor": parity, "iff": conjunction | full ^ some}
                for operator in operators:
                    formulas[f"({operator} {' '.join(sorted(texts))})"] = results[operator]
        by_size[size] = formulas
    least: dict[int, tuple[int, int]] = {0: (1, 1), full: (1, 1)}
    for size in range(1, max_size + 1):
        for word in by_size[size].values():
            if word not in least:
                least[word] = size, 0
            if least[word][0] == size and word not in (0, full):
                least[word] = size, least[word][1] + 1
    return least


def partitions(total: int, largest: int) -> Iterator[tuple[int, ...]]:
    if not total:
        yield ()
    for part in range(min(total, largest), 0, -1):
        for rest in partitions(total - part, part):
            yield (part, *rest)


def choose(parts: Sequence[int], by_size: dict[int, dict[str, int]]) -> Iterator[tuple[tuple[str, int], ...]]:
    """Yield multisets of formulas of these sizes."""
    if not parts:
        yield ()
        return
    same = parts.count(parts[0])
    for chosen in combinations_with_replacement(sorted(by_size[parts[0]].items()), same):
        for others in choose(parts[same:], by_size):
            yield (*chosen, *others)


@pytest.mark.parametrize("measure", ["all", "and-or-not"])
def test_small_formulas_are_those_of_a_listing(measure: Measure) -> None:
    has_parity = measure == "all"
    expected = listed_formulas(5 if has_parity else 6, has_parity=has_parity)
    plain = catalogue(measure)
    assert len(expected) > 200
    assert {word: (int(plain.sizes[word]), int(plain.counts[word])) for word in expected} == expected


@pytest.mark.parametrize("measure", ["all", "and-or-not", "sop", "pos"])
def test_the_catalogue_of_the_verifier_is_that_of_the_solver(measure: Measure) -> None:
    plain, of_solver = catalogue(measure), least_sizes(measure)
    order = np.argsort(of_solver.words)
    assert len(order) == NUM_FUNCTIONS
    ranks = [np.unique(sizes, return_inverse=True)[1] for sizes in (plain.sizes, of_solver.sizes[order])]
    assert (ranks[0] == ranks[1]).all()
    book, rng = formula_book(measure), Random(3)
    for word in (rng.randrange(NUM_FUNCTIONS) for _ in range(60)):
        assert book.count(word) == plain.counts[word], word


# --- True certificates ------------------------------------------------------------------------------------------------
def drawn_table(seed: int, *, gaps: float = 0.0) -> list[list[str]]:
    """Return rows of two causes, a noisy mechanism and its effect, some rows with an intervention."""
    rng = Random(seed)
    rows = []
    for _ in range(NUM_ROWS):
        a, b, c = (rng.randrange(2) for _ in range(3))
        target = rng.choice(["", "", "", "d"])
        d = rng.randrange(2) if target else (a & b) ^ (rng.random() < 0.1)
        cells = [("no", "yes")[a], ("f", "m")[b], str(c), str(int(d)), str(int(bool(c or d)))]
        rows.append([*("NA" if rng.random() < gaps else cell for cell in cells), target])
    return rows


FITS: dict[str, tuple[float, list[str]]] = {
    "all": (0, ["--target", "d", "--errors", "front"]),
    "and-or-not": (0, ["--target", "d", "--errors", "front", "--operators", "and-or-not", "--max-parents", "2"]),
    "sop": (0, ["--target", "e x", "--errors", "front", "--operators", "sop"]),
    "pos": (0, ["--target", "e x", "--errors", "4", "--operators", "pos", "--one", "sex=f"]),
    "scm": (0, ["--roots", "smoke,sex,c", "--errors", "front"]),
    "gaps": (0.15, ["--target", "d"]),
    "gap-scms": (0.08, ["--roots", "smoke,sex,c", "--max-parents", "2"]),
    "bde": (0, ["--score", "bde"]),
    "bds": (0, ["--score", "bds", "--iss", "2"]),
    "knowledge": (0, ["--score", "bic", "--tiers", "smoke,sex,c < d < e x", "--max-parents", "2"]),
    "dropped": (0.02, ["--score", "k2", "--gaps", "drop", "--require", "c -> e x"]),
}


@cache
def written(name: str, folder: Path) -> tuple[Path, dict[str, dict[str, Any]]]:
    """Return the table of a fit and its certificates by stem."""
    gaps, options = FITS[name]
    place = folder / name
    place.mkdir()
    table = place / "table.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([HEAD, *drawn_table(len(name), gaps=gaps)])
    called("fit", table, "--do", "set", *options, "--certificates", place / "proof")
    return table, {path.stem: json.loads(path.read_text("utf-8")) for path in (place / "proof").glob("*.json")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("certificates")


EXPECTED = {
    "gaps": {"front-d", "front-d-possible", "gap-functions-d"},
    "gap-scms": {"gap-scms"},
    "scm": {"scm-front"},
}


@pytest.mark.parametrize("name", FITS)
def test_certificates_of_fits_hold(name: str, folder: Path) -> None:
    table, certificates = written(name, folder)
    networks = {"network-optimum", "class-size"} if "--score" in FITS[name][1] else set()
    front = {f"front-{FITS[name][1][1].replace(' ', '-')}"}
    assert certificates.keys() == EXPECTED.get(name, networks or front)
    check = check_against(table)
    for stem, content in certificates.items():
        holds, reason = check(content)
        assert holds, (stem, reason)


@pytest.mark.parametrize("instance", [None, 1, ["table.csv"]])
def test_the_name_of_the_table_is_a_text(instance: object, folder: Path) -> None:
    table, certificates = written("bde", folder)
    holds, reason = check_against(table)({**certificates["class-size"], "instance": instance})
    assert not holds
    assert reason == "instance is no text, the name of a table"


# scores far from 0 and near it, from terms of up to 1e8: the rounding of a sum follows from its terms
@pytest.mark.parametrize("num_rows", [3, 1_000, 200_000])
@pytest.mark.parametrize("score", ["bde", "bic", "aic", "k2"])
def test_a_score_is_recounted_to_the_rounding_of_its_terms(num_rows: int, score: str, tmp_path: Path) -> None:
    table = tmp_path / "copies.csv"
    table.write_text("a,b\n" + "0,0\n1,1\n0,0\n" * num_rows + "1,0\n", "utf-8")
    called("fit", table, "--score", score, "--certificates", tmp_path / "proof")
    content = json.loads((tmp_path / "proof" / "network-optimum.json").read_text("utf-8"))
    assert check_against(table)(content)[0]


def test_a_score_that_is_lost_in_rounding_is_refused(folder: Path) -> None:
    """With ever more imaginary rows every cell is as likely: -n log 2 a column, not 0."""
    table, certificates = written("bde", folder)
    forged = deepcopy(certificates["network-optimum"])
    forged["certificate"]["data"] |= {"iss": 1e30, "arcs": [], "best_score": 0.0, "optimal_networks": None}
    words = forged["certificate"]["in_words"]
    forged["certificate"]["in_words"] = words.replace("1 imaginary row)", "1e+30 imaginary rows)")
    assert words != forged["certificate"]["in_words"]
    assert not check_against(table)(forged)[0]


def test_verify_reads_tables(folder: Path) -> None:
    table, certificates = written("gaps", folder)
    done = called("verify", table.parent / "proof", table)
    assert (done.returncode, done.stdout.count("ok ")) == (0, len(certificates)), done.stdout
    altered = table.parent / "other.csv"
    altered.write_text(table.read_text("utf-8").replace("yes", "no", 1), encoding="utf-8")
    done = called("verify", table.parent / "proof", altered)
    assert (done.returncode, done.stdout.count("made for other evidence")) == (1, len(certificates))


def test_the_next_commands_check_the_certificates_and_write_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, _ = written("gaps", folder)
    options = "--do", "set", "--target", "d", "--certificates", str(tmp_path / "c")
    main(["fit", str(table), *options])
    following = [line for line in capsys.readouterr().err.splitlines() if "  calibrant " in line]
    files = [str(tmp_path / "c" / f"{stem}.json") for stem in sorted(EXPECTED["gaps"], key="{}.json".format)]
    assert shlex.split(following[0].partition("  calibrant ")[2]) == ["verify", *files, str(table)]
    assert len(following) > 1
    assert not any("--certificates" in line for line in following[1:])


def test_a_count_belongs_to_its_pool(folder: Path, tmp_path: Path) -> None:
    table, _ = written("all", folder)
    files = "--out", tmp_path / "t.jsonl", "--certificates", tmp_path / "c"
    called("fit", table, "--do", "set", "--target", "d", "--errors", "front", *files)
    counts = [path for path in (tmp_path / "c").glob("*.json") if not path.stem.startswith("front")]
    done = called("verify", tmp_path / "c", table)
    assert done.stdout.count("open ") == len(counts)
    if counts:
        assert called("verify", *counts, tmp_path / "t.jsonl").returncode == 0


def test_a_recount_stops_at_its_budget(folder: Path) -> None:
    table, certificates = written("all", folder)
    with pytest.raises(RecountLimitError), limited_recount(0):
        check_against(table)(certificates["front-d"])


# --- Forgeries --------------------------------------------------------------------------------------------------------
Path_ = tuple[Any, ...]


def leaves(value: Any, path: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Yield every place of a JSON value, containers too."""
    yield path, value
    if isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(part, (*path, key))


def changed(content: dict[str, Any], path: Path_, value: Any) -> dict[str, Any]:
    copy = deepcopy(content)
    inside = copy
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return copy


# a weaker claim, or another statement of the same class
NO_LIE = {"missing", "instance", "optimal_networks", "purpose", "do_flags", "gaps"}


def forgeries(content: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a certificate with every single number, word and list changed."""
    for path, value in leaves(content):
        where = "/".join(map(str, path))
        if not path or NO_LIE & set(map(str, path)):
            continue
        if isinstance(value, bool) or value is None:
            continue
        if isinstance(value, int):
            yield f"{where} + 1", changed(content, path, value + 1)
            yield f"{where} negative", changed(content, path, -value - 1)
            if value in (0, 1):
                yield f"{where} as a truth value", changed(content, path, bool(value))
        elif isinstance(value, float):
            yield f"{where} + 1e-9", changed(content, path, value + 1e-9)
            yield f"{where} - 1e-9", changed(content, path, value - 1e-9)
            yield f"{where} not a number", changed(content, path, float("nan"))
        elif isinstance(value, str):
            yield f"{where} other text", changed(content, path, value + "x")
        elif isinstance(value, list) and value:
            yield f"{where} shorter", changed(content, path, value[:-1])
            yield f"{where} with one twice", changed(content, path, [*value, value[-1]])
        elif isinstance(value, dict):
            yield f"{where} with a field", changed(content, path, {**value, "more": 1})


def is_true_still(name: str, change: str) -> bool:
    """Return whether a change makes no false claim: imaginary rows of a score without, knowledge stated twice."""
    is_unused = change.startswith("certificate/data/iss") and name in ("knowledge", "dropped")
    is_repeated = "/reading/" in change and change.endswith("with one twice")
    return is_unused or is_repeated


@pytest.mark.parametrize("name", FITS)
def test_every_single_change_is_refused(name: str, folder: Path) -> None:
    table, certificates = written(name, folder)
    check, tried = check_against(table), 0
    for stem, content in certificates.items():
        for change, forged in forgeries(content):
            if is_true_still(name, change):
                continue
            with limited_recount(60):
                try:
                    holds, reason = check(forged)
                except Exception as error:  # a refusal, or data that break the check: `check_file` refuses both
                    holds, reason = False, str(error)
            assert not holds, (stem, change, reason)
            tried += 1
    assert tried >= 25


Forge = Callable[[dict[str, Any]], object]


def reading(**changes: list[str]) -> Forge:
    """Return a forgery of how the table was read."""
    return lambda made: made["data"]["reading"].update(changes)


def data(**changes: Any) -> Forge:
    return lambda made: made["data"].update(changes)


def deep_formula(made: dict[str, Any]) -> None:
    formula: Any = 0
    for _ in range(100_000):
        formula = ["not", formula]
    made["data"]["points"][-1]["formula"] = formula


def better_formula(made: dict[str, Any]) -> None:
    made["data"]["points"][-1]["formula"] = "1"


CLASHING = [
    {"word": word, "arcs": [["c", "d"]], "tiers": [], "names": [], "limits": []} for word in ("require", "forbid")
]


def statement(word: str, **fields: Any) -> Forge:
    """Return a forgery of the knowledge, in the words that follow from it: fields that no check reads are in them."""

    def forge(made: dict[str, Any]) -> None:
        data(knowledge=[{"word": word, **fields}])(made)
        parts = [f"{a} -> {b}" for a, b in fields.get("arcs", [])] + [" < ".join(t) for t in fields.get("tiers", [])]
        parts += [*fields.get("names", []), *(f"{a}={n}" if a else str(n) for a, n in fields.get("limits", []))]
        score, semicolon, rows = made["in_words"].partition("; ")
        made["in_words"] = f"{score} that keep: {word} {', '.join(parts)}{semicolon}{rows}"

    return forge


def many_points(made: dict[str, Any]) -> None:
    made["data"]["points"] = made["data"]["points"][:1] * 100_000


BOTH: tuple[Forge, ...] = (
    reading(ones=["smoke=no"]),
    reading(drop=["c"]),
    reading(do=[], drop=["set"]),
    lambda made: made.update(claim="true"),
)
FRONTS: tuple[Forge, ...] = (
    *BOTH,
    better_formula,
    deep_formula,
    many_points,
    lambda made: made["data"]["points"].reverse(),
    lambda made: made.update(claim="class-size"),
    data(max_parents=10**9),
    data(points=[]),
)
NETWORKS: tuple[Forge, ...] = (
    *BOTH,
    lambda made: made["data"]["arcs"].append(made["data"]["arcs"].pop(0)[::-1]),
    lambda made: made["data"]["arcs"].append(made["data"]["arcs"][0][::-1]),
    data(knowledge=CLASHING),
    data(score="aic"),
    data(best_score="1e999"),
    statement("forbid", names=["sex"]),
    statement("forbid", arcs=[["e x", "sex"]], names=["sex"]),
    statement("order", limits=[["sex", 3]]),
    statement("max-parents", limits=[["", 4]], names=["sex"]),
    statement("max-parents", limits=[["", 4], ["", 4]]),
    statement("max-parents"),
    statement("require"),
)
FORGED = [
    *(("all", "front-d", forge) for forge in FRONTS),
    ("sop", "front-e-x", better_formula),
    ("gaps", "front-d-possible", better_formula),
    *(("bde", "network-optimum", forge) for forge in NETWORKS),
    ("knowledge", "network-optimum", data(knowledge=[])),
    ("knowledge", "network-optimum", data(knowledge=CLASHING)),
    ("bde", "class-size", lambda made: made["data"]["arcs"].append(made["data"]["arcs"][0][::-1])),
    ("bde", "class-size", lambda made: made["data"]["undirected"].append(["smoke", "sex"])),
    ("gap-scms", "gap-scms", data(joint=[0, 10**6])),
    ("gap-scms", "gap-scms", data(max_parents=10**9)),
    ("scm", "scm-front", data(points=[])),
    ("scm", "scm-front", data(max_parents=10**9)),
]


@pytest.mark.parametrize(("name", "stem", "forge"), FORGED)
def test_forgeries_are_refused(name: str, stem: str, forge: Forge, folder: Path, tmp_path: Path) -> None:
    table, certificates = written(name, folder)
    forged = deepcopy(certificates[stem])
    forge(forged["certificate"])
    assert forged != certificates[stem] or forge is deep_formula
    file = tmp_path / "forged.json"
    try:
        file.write_text(json.dumps(forged), encoding="utf-8")
    except RecursionError:  # the encoder of the test; the text is plain
        text = json.dumps(certificates[stem])
        assert '"formula": ' in text
        file.write_text(text.replace('"formula": ', f'"formula": {"[" * 100_000}{"]" * 100_000}, "x": ', 1), "utf-8")
    done = called("verify", file, table)
    assert done.returncode == 1
    assert done.stdout.startswith("refused"), done.stdout
