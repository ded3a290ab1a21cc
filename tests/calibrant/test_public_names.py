"""Public names: typed, lazy, documented; their keywords, and one line for whatever is wrong with an argument."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, cast, get_overloads, get_type_hints

import msgspec
import pytest

import calibrant
from calibrant import options, verbs
from calibrant.bench.core.options import keyword_struct
from calibrant.bench.core.registry import benchmark, bundled_pool, bundled_sample
from calibrant.bench.version import __version__
from calibrant.solvers.outcome import BestSoFar
from tests.support.commands import CHECKOUT, program

# --- The public names: what is there, what importing costs, and how values show themselves ----------------------------
SOURCE = ast.parse((CHECKOUT / "calibrant" / "__init__.py").read_text(encoding="utf-8"))


def _static_names() -> set[str]:
    """Return the names that a type checker sees: those imported for types, and the dunders that are defined."""
    (block,) = [node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    return {
        alias.asname or alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


def test_every_public_name_is_there_for_programs_and_for_type_checkers() -> None:
    assert set(calibrant.__all__) == _static_names() == set(dir(calibrant))
    for name in calibrant.__all__:
        assert getattr(calibrant, name) is not None
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = calibrant.nonsense


def test_the_static_face_imports_each_name_from_where_it_is_loaded() -> None:
    (block,) = [node for node in SOURCE.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"]
    static = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    loaded = {name: (home, name) for name, home in calibrant._MODULE_OF_NAME.items()}
    assert static == loaded


@pytest.mark.parametrize("name", ["datasets", "rewards"])
def test_a_module_of_the_public_names_is_loaded_when_it_is_first_used(name: str) -> None:
    module: Any = calibrant.__getattr__(name)  # type: ignore[operator,unused-ignore]
    assert module.__name__ == f"calibrant.{name}"
    page = (CHECKOUT / "docs" / "names" / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# `calibrant.{name}`")


def test_importing_imports_nothing_heavy() -> None:
    source = """
import sys
import calibrant
others = ("numpy", "numba", "msgspec", "yaml", "rich", "typer", "z3", "pysat", "pebble", "matplotlib")
print(sorted(name for name in sys.modules if name.partition(".")[0] in ("calibrant", *others)))
"""
    assert program("-c", source).stdout == "['calibrant']\n"


def test_scoring_imports_no_solver_of_replay_problems_and_no_yaml() -> None:
    source = f"""
import sys
import calibrant
pool = calibrant.load_pool({str(bundled_pool("ordered"))!r})
calibrant.score(pool[0], "nothing")
heavy = ("yaml", *(f"calibrant.{{package}}" for package in ("solvers.replayscm", "audits", "baselines")))
print(sorted(name for name in sys.modules if name.startswith(heavy)))
"""
    assert program("-c", source).stdout == "[]\n"


def test_the_module_is_the_command() -> None:
    done = program("-m", "calibrant", "--version")
    assert (done.returncode, done.stdout) == (0, f"calibrant {__version__}\n")


def _foreign(folder: Path, name: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("raise RuntimeError('not yours')\n", encoding="utf-8")


@pytest.mark.parametrize("name", ["bench", "dsl"])
def test_a_folder_of_the_users_with_the_name_of_a_package_does_not_matter(tmp_path: Path, name: str) -> None:
    _foreign(tmp_path, name)
    search = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        [sys.executable, "-c", "import calibrant.bench.cli, calibrant.dsl.errors; print(calibrant.bench.__name__)"],
        cwd=tmp_path,
        env=search,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "calibrant.bench\n", "")
    command = [sys.executable, "-m", "calibrant", "--version"]
    done = subprocess.run(command, cwd=tmp_path, env=search, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"calibrant {__version__}\n", "")


# --- reprs --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", ["ordered", "block", "hidden-order", "hidden-roots"])
def test_reprs_fit_a_line_and_never_show_what_is_sealed(setting: str) -> None:
    pool = calibrant.load_pool(bundled_pool(setting), of="replayscm")
    item = pool[0]
    found = calibrant.solve(item)
    assert isinstance(found, calibrant.Found)
    score = calibrant.score(item, found.value.answer)
    gold = item.sealed.gold
    assert gold is not None
    shown = [
        *(pool, item, item.task, item.sealed, item.sealed.heldout, gold, found, found.value, found.value.model),
        *(score, score.train, score.heldout, score.roots, calibrant.score(item, "no")),
        *(calibrant.version_space(item), calibrant.audit(item), *calibrant.separate(item, found.value.answer)),
        *(calibrant.separate(item), calibrant.harden(item)),
    ]
    texts = [str(mechanism) for mechanism in gold.mechanisms.values()]
    for value in shown:
        text = repr(value)
        assert "\n" not in text
        assert len(text) <= 200
        assert not any(secret in text for secret in texts)
        assert not re.search(r"\bgold=|latent_order|columns=|mechanisms=|\(and |\(or |\(not |\(xor ", text)


LONG = "a reason\nof many words " * 40
COLUMNS = {"A": [0, 0, 1, 1], "B": [0, 1, 0, 1], "Y": [0, 0, 0, 1]}


@pytest.mark.parametrize(
    ("value", "start"),
    [
        (lambda: calibrant.Impossible(LONG), "<Impossible: a reason of many"),
        (lambda: calibrant.OutOfBudget(LONG, 3), "<OutOfBudget: a reason of many"),
        (lambda: BestSoFar(LONG, 3, incumbent=LONG, upper_bound=4), "<BestSoFar: a reason of many"),
        (lambda: calibrant.Step({"do": LONG}, [LONG], LONG), "<Step {'do': 'a reason"),
        (lambda: calibrant.TextEpisode(cast(Any, None), cast(Any, None), cast(Any, None)), "<TextEpisode: not begun>"),
        (lambda: calibrant.learn_networks(COLUMNS), "<NetworkFit: 3 columns, score bde, best "),
        (
            lambda: calibrant.evaluate(
                [], calibrant.load_pool(bundled_pool("ordered"), of="replayscm")[0].task.training
            ),
            "<Evaluation: 0 of 0 SCMs exact>",
        ),
        (lambda: calibrant.read_network(CHECKOUT / "docs/examples/feedback.bnet"), "<Network: "),
        (lambda: calibrant.fit(COLUMNS, target="Y"), "<Fit of Y: size 3, proven least, 1 fit>"),
        (lambda: calibrant.fit(COLUMNS, target="Y", max_parents=1), "<Fit of Y: Impossible>"),
        (
            lambda: calibrant.fit(COLUMNS, graph="A -> B, A -> Y"),
            "<GraphFit: 2 columns with parents, refuted>",
        ),
        (lambda: calibrant.fit({"A": [0, 1, None], "Y": [0, 1, 1]}, target="Y"), "<GapFit of Y: 1 gap, some may fit>"),
        (
            lambda: calibrant.network_class(("A", "B"), [("A", "B")]),
            "<NetworkClass: 2 columns, 0 directed and 1 undirected edges, 2 members>",
        ),
    ],
)
def test_results_fit_a_line_and_their_text_is_whole(value: Callable[[], Any], start: str) -> None:
    result = value()
    assert repr(result).startswith(start)
    assert "\n" not in repr(result)
    assert len(repr(result)) <= 200
    assert not isinstance(result, calibrant.Impossible | calibrant.OutOfBudget) or LONG in str(result)


def test_the_text_of_a_fit_has_the_result_or_the_reason_first() -> None:
    assert str(calibrant.fit(COLUMNS, target="Y")).startswith("Y = A and B\n")
    assert str(calibrant.fit(COLUMNS, target="Y", max_parents=1)).startswith(
        "nothing fits: Y is no function of at most 1"
    )
    with pytest.raises(calibrant.CalibrantError, match=r"nofile\.csv: No such file"):
        calibrant.fit("nofile.csv")


def test_a_generated_item_and_a_record_fit_a_line(tmp_path: Path) -> None:
    (record,) = calibrant.run("copy-parent", calibrant.load_pool(bundled_pool("ordered"))[:1], tmp_path / "run")
    made = calibrant.generate(3)
    records = calibrant.run("copy-parent", calibrant.load_pool(bundled_pool("ordered"))[:1], tmp_path / "run")
    rates = calibrant.table(tmp_path / "run")
    for value in (
        record,
        records,
        rates,
        calibrant.score_many([], []),
        made,
        calibrant.ProtocolResult("found", {"mechanisms": {"X1": "(not X2)"}}, 2),
    ):
        assert "\n" not in repr(value)
        assert len(repr(value)) <= 200
        assert "mechanisms" not in repr(value)
    assert (repr(records), repr(rates)) == ("<Records: 1 answer: 1 found>", "<RateTable: 1 row of replayscm>")
    assert repr(made).startswith("<Generated <Problem GEN_hs_n6_easy_calibration_3: Hidden-order, 6 variables")


ELSEWHERE = {  # classes of which tests above have a value
    *(
        "BooleanNetwork",
        "BooleanSCM",
        "Evaluation",
        "Findings",
        "Fit",
        "Found",
        "GapFit",
        "Generated",
        "GraphFit",
        "Hardening",
        "Impossible",
        "NetworkClass",
        "NetworkFit",
        "OutOfBudget",
        "Problem",
    ),
    *(
        "ProtocolResult",
        "RateTable",
        "Record",
        "Records",
        "Scm",
        "Score",
        "SeparatedPair",
        "Solution",
        "Step",
        "Task",
        "TextEpisode",
    ),
    *("Table", "Verdicts", "VersionSpace"),
}
WITHOUT_VALUES = {"CalibrantError", "PoolError", "Protocol"}  # errors, and a base that users derive from


def test_every_public_class_has_a_repr_of_a_line() -> None:
    shown: set[str] = set()
    for name in ("blickets", "causalab", "causim", "logic"):
        pool = calibrant.load_pool(bundled_sample(name))
        values: list[Any] = [pool, pool[0], calibrant.score(pool[0], "no"), *cast(Any, calibrant.audit(pool[0]))[:1]]
        if name == "logic":
            values.append(calibrant.version_space(pool[0]))
        for value in values:
            assert "\n" not in repr(value)
            assert len(repr(value)) <= 200
            assert "object at 0x" not in repr(value)
        shown |= {type(value).__name__ for value in values}
    classes = {name for name in calibrant.__all__ if isinstance(getattr(calibrant, name), type)}
    assert classes - WITHOUT_VALUES - ELSEWHERE == shown & classes


def test_hostile_names_do_not_break_a_line() -> None:
    pool: calibrant.Pool[calibrant.Item] = calibrant.Pool("a\nb\x1b[31m", "replayscm", ())
    assert repr(pool) == "<Pool a b [31m: 0 items of replayscm>"


# --- docs/names: every public name once, each with an example (tests/test_pages.py runs them) -------------------------
PAGES = [page.read_text(encoding="utf-8") for page in sorted((CHECKOUT / "docs" / "names").glob("*.md"))]
SECTIONS = [
    section
    for page in PAGES
    for section in re.findall(r"^##? `(\w+)`\n(.*?)(?=^##? `|\Z)", page, re.MULTILINE | re.DOTALL)
]


def test_every_public_name_has_a_section_with_an_example_of_it() -> None:
    assert sorted(name for name, _ in SECTIONS) == sorted(calibrant.__all__)
    assert all("```python\n" in text for _, text in SECTIONS)


# --- The keywords of the public functions are those of the Structs that check them, in name, type and default ---------
FUNCTIONS = ("score", "score_many", "solve", "version_space", "audit", "separate", "harden", "generate", "text_episode")
ITEMS = {
    "Problem": "replayscm",
    "BlicketItem": "blickets",
    "LabItem": "causalab",
    "CausimItem": "causim",
    "LogicItem": "logic",
}


SHARED = {"score": {"extractor", "thoughts"}}
"""Keywords that the public name itself takes, of every benchmark alike."""


def typed_calls() -> Iterator[Any]:
    """Yield each function on each benchmark with the TypedDict of its keywords, None where it takes none."""
    for name in FUNCTIONS:
        function = getattr(verbs, name)
        for overload in get_overloads(function) or [function]:
            hints = overload.__annotations__
            named = re.findall(
                "|".join([*ITEMS, *ITEMS.values()]), f"{hints.get('item')}{hints.get('items')}{hints.get('of')}"
            )
            for word in named:
                keywords = re.fullmatch(r"Unpack\[(\w+)\]", hints.get("options", ""))
                yield pytest.param(name, ITEMS.get(word, word), keywords and keywords[1], id=f"{name}:{word}")


def keywords_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Return the default of each keyword but the steps of an episode, which are replayed and not converted."""
    parameters = inspect.signature(function).parameters.values()
    return {one.name: one.default for one in parameters if one.kind is one.KEYWORD_ONLY and one.name != "steps"}


@pytest.mark.parametrize(("function", "name", "keywords"), list(typed_calls()))
def test_checkers_and_structs_agree(function: str, name: str, keywords: str | None) -> None:
    verb = "score" if function == "score_many" else function
    struct = keyword_struct(verb, name)
    declared = {field.name: field.default for field in msgspec.structs.fields(struct)}
    taken = keywords_of(getattr(benchmark(name).functions, verb))
    typed = get_type_hints(getattr(options, keywords)) if keywords else {}
    typed = {key: hint for key, hint in typed.items() if key not in SHARED.get(verb, {})}
    assert typed.keys() == taken.keys() <= declared.keys()
    hints = get_type_hints(struct)
    assert {key: hints[key] for key in typed} == typed
    assert {key: declared[key] for key in taken} == taken


def test_every_public_function_with_keywords_is_compared() -> None:
    assert {name for name, of in vars(verbs).items() if "Unpack" in str(getattr(of, "__annotations__", ""))} <= set(
        FUNCTIONS
    )
    assert len(list(typed_calls())) >= 4 * 5 + 2


@pytest.mark.parametrize("name", list(ITEMS.values()))
def test_every_declared_keyword_is_one_of_a_function(name: str) -> None:
    from importlib import import_module

    for function, struct in import_module(f"calibrant.bench.{name}.options").KEYWORDS.items():
        assert {field.name for field in msgspec.structs.fields(struct)} == keywords_of(
            getattr(benchmark(name).functions, function)
        ).keys()


# --- Whatever a public function is given: one line that says what is wrong, and nothing is started or written ---------
POOL = bundled_pool("ordered")
ODD: Mapping[str, Any] = {
    "none": None,
    "list": [1, 2],
    "object": {"a": 1},
    "bytes": b"x",
    "nul": "a\0b",
    "set": {1},
    "thing": object(),
    "nan": float("nan"),
    "empty": "",
    "tuple": (1,),
}
LOOSE: Any = calibrant  # without the types of its names
POOL_FILES = {"replayscm": POOL} | {name: bundled_sample(name) for name in ("blickets", "causalab", "causim", "logic")}
CALLS: Mapping[str, Callable[[Any, Path], Any]] = {
    "load_pool": lambda odd, out: LOOSE.load_pool(odd),
    "load_pool(of)": lambda odd, out: LOOSE.load_pool(POOL, of=odd if odd is not None else 0),
    **{
        name: lambda odd, out, name=name: getattr(calibrant, name)(odd)  # type: ignore[misc]
        for name in (
            "solve",
            "version_space",
            "audit",
            "separate",
            "harden",
            "open_episode",
            "text_episode",
            "protocols",
            "generate",
        )
    },
    "score": lambda odd, out: LOOSE.score(odd, "x"),
    "score_many": lambda odd, out: list(LOOSE.score_many(odd if odd else None, ["x"])),
    "generate(of)": lambda odd, out: LOOSE.generate(1, of=odd),
    "run": lambda odd, out: LOOSE.run(odd, POOL, out),
    "run(pool)": lambda odd, out: LOOSE.run("posterior", odd, out),
    "run(out)": lambda odd, out: LOOSE.run("posterior", POOL, odd),
    "run(workers)": lambda odd, out: LOOSE.run("posterior", POOL, out, workers=odd),
    "run(budget)": lambda odd, out: LOOSE.run("posterior", POOL, out, budget=-1 if odd is None else odd),
    "run(cluster)": lambda odd, out: LOOSE.run("posterior", POOL, out, cluster=3 if odd is None else odd),
    "table": lambda odd, out: LOOSE.table(odd),
    "table(by)": lambda odd, out: LOOSE.table(out, by=odd),
    "table(pools)": lambda odd, out: LOOSE.table(out, pools=odd),
    "run(retry_crashed)": lambda odd, out: LOOSE.run("posterior", POOL, out, retry_crashed=odd),
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("call", CALLS)
def test_an_odd_argument_is_one_line(call: str, odd: str, tmp_path: Path) -> None:
    with pytest.raises((calibrant.CalibrantError, TypeError)) as error:
        CALLS[call](ODD[odd], tmp_path / "out")
    assert str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 500
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_path_is_an_error_of_ours(odd: str, tmp_path: Path) -> None:
    with pytest.raises(calibrant.CalibrantError):
        calibrant.load_pool(ODD[odd])
    with pytest.raises(calibrant.CalibrantError, match="pool must be a path"):
        calibrant.run("posterior", ODD[odd], tmp_path)


@pytest.mark.parametrize("name", POOL_FILES)
@pytest.mark.parametrize("odd", ODD)
def test_an_odd_answer_or_option_never_ends_otherwise(odd: str, name: str) -> None:
    item: Any = calibrant.load_pool(POOL_FILES[name]).items[0]
    calls: tuple[Callable[[], object], ...] = (
        lambda: calibrant.score(item, ODD[odd]),
        lambda: calibrant.score(item, "x", extractor=ODD[odd]),
        lambda: calibrant.score(item, "x", steps=ODD[odd]),
        lambda: calibrant.version_space(item, steps=ODD[odd], nonsense=1),  # type: ignore[call-overload]
    )
    for call in calls:
        said = "scored"
        try:
            call()
        except (calibrant.CalibrantError, TypeError) as error:
            said = str(error)
        assert said
        assert "\n" not in said
