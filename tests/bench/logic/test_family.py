"""`calibrant family` and `pool convert PKN MIDAS`: a family counted by hand, files, lists, series, refusals."""

from __future__ import annotations

import json
import re
import shlex
import time
from pathlib import Path

import pytest

from calibrant.solvers.logic.data import logic_family
from calibrant.solvers.outcome import Found
from tests.bench.commands.lines import COMMANDS
from tests.support.accessibility import DESKTOP, PHONE, THEMES, measure, needs_axe
from tests.support.browser import needs_chromium, pressed
from tests.support.commands import called
from tests.support.packages import needs

# one hidden node c between two stimuli and a readout: compressed to a -> d and b -> d
PRIOR = "a 1 c\nb 1 c\nc 1 d\n"
DATA = "TR:a,TR:b,DA:ALL,DV:d\n1,0,30,0.6\n0,1,30,0.5\n0,0,30,0\n1,1,30,1\n"
# misfits on the four readings, in hundredths squared: a 40^2 + 50^2, b 60^2 + 50^2, a or b 40^2 + 50^2 (size 2),
# a and b 60^2 + 50^2 (size 2); the limit is floor(4100 * 1.5) = 6150, the sizes at most 1 + 5: all four
MISFITS = {"d<-a": 4_100, "d<-b": 6_100, "d<-a d<-b": 4_100, "d<-a+b": 6_100}
LIMITS = ("--time", "30", "--fit", "0.5", "--size", "5")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    prior, data = tmp_path / "prior.sif", tmp_path / "cells.csv"
    prior.write_text(PRIOR, encoding="utf-8")
    data.write_text(DATA, encoding="utf-8")
    return prior, data


def test_the_first_screen_has_class_optimum_members_edges_and_next(files: tuple[Path, Path]) -> None:
    result = called("family", *files, *LIMITS)
    assert result.returncode == 0, result.stderr
    lines = {line[:10].strip(): line[10:] for line in result.stdout.splitlines()[:10]}
    assert lines["optimum"] == "misfit 4,100, proven least, and size 1 at it; 1 model has both"
    assert lines["MSE"].endswith(" of the first optimal model, over values as measured")
    assert lines["members"] == "4 of 5 models of the class"  # the empty one is the fifth
    assert lines["edges"] == "0 always, 2 open, 0 never, of 2"
    assert "no probabilities of nature" in result.stdout


def test_a_prior_without_signs_needs_both(tmp_path: Path) -> None:
    prior, data = tmp_path / "prior.csv", tmp_path / "data.csv"
    prior.write_text("source,target\na,b\n", encoding="utf-8")
    data.write_text("TR:x:CellLine,TR:a,DA:b,DV:b\n1,0,30,1\n1,1,30,0\n", encoding="utf-8")
    refused = called("family", prior, data)
    assert refused.returncode == 2
    assert "--sign both makes two edges of each" in refused.stderr
    counted = called("family", prior, data, "--sign", "both", "--out", tmp_path / "out")
    assert counted.returncode == 0, counted.stderr
    assert "note      edges of either sign, read as two: a b" in counted.stdout
    assert "always    a -| b\nnever     a -> b\n" in counted.stdout
    assert (tmp_path / "out" / "predicted.csv").read_text().splitlines()[1:] == [
        "1,no stimulus,30,b,1,100,1,1,0",
        "2,a,30,b,0,0,0,0,0",
    ]
    series = tmp_path / "series.csv"
    series.write_text("series,a,b\n1,0,1\n1,0,1\n", encoding="utf-8")
    assert called("family", prior, series).returncode == 2
    assert called("family", prior, series, "--sign", "both").returncode == 0
    assert called("pool", "convert", prior, data, tmp_path / "item.jsonl", "--sign", "both").returncode == 0
    for name, text in (("prior.sif", "a 1 b\n"), ("signed.csv", "source,target,sign\na,b,+\n"), ("p.bnet", "b, a\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        assert "its edges have signs" in called("family", tmp_path / name, data, "--sign", "both").stderr


def test_json_lists_every_member_with_its_misfit(files: tuple[Path, Path]) -> None:
    result = called("family", *files, *LIMITS, "--list", "10", "--json")
    record = json.loads(result.stdout)
    assert {" ".join(entry["clauses"]): entry["misfit"] for entry in record["listed"]} == MISFITS
    assert record["members"] == "4"
    assert record["edges"] == {"a 1 d": "3", "b 1 d": "3"}
    # of a alone two members answer 1 (a; a or b), two do not; of b too; of both all four; of none none
    squares = {"+".join(entry["stimuli"]): int(entry["squares"]) for entry in record["predictions"]}
    assert squares == {"": 16, "a": 8, "b": 8, "a+b": 16}


def test_each_reading_counts_at_its_own_time(tmp_path: Path) -> None:
    """In the third row b is measured at 30 and c at 60: b follows a, and nothing is known of c."""
    prior, data, page = tmp_path / "prior.sif", tmp_path / "data.csv", tmp_path / "page.html"
    prior.write_text("a 1 b\na 1 c\n", encoding="utf-8")
    data.write_text("TR:x:CellLine,TR:a,DA:b,DA:c,DV:b,DV:c\n1,0,30,30,0,0\n1,1,30,60,1,1\n", encoding="utf-8")
    result = called("family", prior, data, "--time", "30", "--html", page)
    assert result.stdout.splitlines()[:2] == [
        "rows      2 of 2 used, at time 30",
        "readings  3 of 4 used; left out: 1 reading at 60",
    ]
    assert "always    a -> b" in result.stdout
    text = page.read_text(encoding="utf-8")
    chart = text[text.index("<h2>Measured and predicted</h2>") :]
    assert 'aria-label="Measured and predicted values by readout"' in chart
    assert re.sub(r"(?:\s*<[^>]+>\s*)+", " ", chart).count(" a b 1 1 100 % 0.0000 ") == 1  # b under a; c was not read
    assert text.index("3 of 4 used; left out: 1 reading at 60") < text.index("<h2>The network</h2>")
    printed = called("family", prior, data, "--time", "30", "--json").stdout
    record = json.loads(printed)
    assert next(iter(record)) == "data"
    assert record["edges"] == {"a 1 b": "1"}
    entry = record["data"]
    assert (entry["experiments"], entry["rows_in_file"], entry["values"], entry["values_in_file"]) == (2, 2, 3, 4)
    assert entry["values_at_other_times"] == {"60": 1}
    converted = called("pool", "convert", prior, data, tmp_path / "item.jsonl", "--time", "30")
    assert "readings  3 of 4 used; left out: 1 reading at 60" in converted.stderr


def test_raw_readings_are_refused_and_scaled_when_asked(tmp_path: Path) -> None:
    """The reading falls from 900 to 512 as a is added: within 0 to 1 the empty model is the best."""
    prior, data = tmp_path / "prior.sif", tmp_path / "data.csv"
    prior.write_text("a 1 b\n", encoding="utf-8")
    data.write_text("TR:x:CellLine,TR:a,DA:ALL,DV:b\n1,0,30,900\n1,1,30,512\n", encoding="utf-8")
    refused = called("family", prior, data)
    assert refused.returncode == 2
    assert "data.csv: line 2: column 'DV:b': 900; values are from 0 to 1" in refused.stderr
    assert "--normalise minmax" in refused.stderr
    scaled = called("family", prior, data, "--normalise", "minmax")
    assert scaled.stdout.splitlines()[2] == "scaled    minmax: b 512 to 900 became 0 to 1"
    assert "misfit 10,000, proven least, and size 0" in scaled.stdout
    assert "MSE       0.5000 of the first optimal model, over values scaled by minmax" in scaled.stdout.splitlines()
    ranges = json.loads(called("family", prior, data, "--normalise", "minmax", "--json").stdout)["data"]["ranges"]
    assert ranges == {"b": {"measured": [512.0, 900.0], "normalised": [0.0, 1.0]}}


def test_a_list_is_compressed_as_the_prior_is(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Node c is merged: `d, c` with `c, a | b` is the member d<-a d<-b, and with `c, a & b` the member d<-a+b."""
    page, models = tmp_path / "page.html", tmp_path / "models.csv"
    models.write_text("d<-c,c<-a,c<-b,c<-a+b\n1,1,1,0\n1,0,0,1\n1,0,0,0\n", encoding="utf-8")
    result = called("family", *files, *LIMITS, "--of", models, "--html", page)
    assert "3 models, 3 different; members among them: 2, 50.0 % of the family; others: 1" in result.stdout
    merged = "merged in the list as in the prior: c"
    assert merged in result.stdout
    assert merged in page.read_text(encoding="utf-8")
    assert "model 3 of the list: misfit 16,100, size 0: beyond the limits" in result.stdout  # c is 0: nothing drives it
    comparison = json.loads(called("family", *files, *LIMITS, "--of", models, "--json").stdout)["comparison"]
    assert (comparison["members"], comparison["merged_nodes"], comparison["unknown_edges"]) == (2, ["c"], [])
    apart = called("family", *files, *LIMITS, "--no-compress", "--of", models).stdout
    assert "merged in the list" not in apart
    bnet = tmp_path / "model.bnet"
    bnet.write_text("d, c\nc, !a\n", encoding="utf-8")  # a sign that the prior lacks
    result = called("family", *files, "--of", bnet, "--fail-on", "outside")
    assert "merged and helper nodes, put into those that read them: c" in result.stdout
    assert (
        "The model: not of the class, whose edge from a to d has another sign; misfit 26,100, MSE 0.6525"
        in result.stdout
    )
    assert (result.returncode, result.stderr) == (1, "outside: the model is none of the class (sign a d)\n")


@pytest.mark.parametrize(
    ("prior", "problem"),
    [
        (
            "A 1 D\n",
            "no stimulus of cells.csv is a node of the prior (a, b);"
            " names must be equal, case included; the prior has A, D",
        ),
        (
            "a 1 D\n",
            "no readout of cells.csv is a node of the prior (d);"
            " names must be equal, case included; the prior has D, a",
        ),
        ("d 1 a\nb 1 a\n", "no edge is left between stimuli and readouts of cells.csv: every model is empty"),
    ],
)
def test_a_prior_without_a_model_of_the_data_is_refused(
    files: tuple[Path, Path], tmp_path: Path, prior: str, problem: str
) -> None:
    files[0].write_text(prior, encoding="utf-8")
    for line in (("family", *files), ("pool", "convert", *files, tmp_path / "item.jsonl")):
        result = called(*line)
        assert result.returncode == 2
        assert result.stderr == f"error  prior.sif: {problem}\n"
        assert not result.stdout


def test_a_long_list_is_compared_in_time(files: tuple[Path, Path], tmp_path: Path) -> None:
    """50,000 clauses that the class lacks: a witness for each by a sweep of its own took 27 s."""
    models = tmp_path / "models.csv"
    clauses = ["d<-a", *(f"d<-x{k}" for k in range(50_000))]
    models.write_text(",".join(clauses) + "\n" + ",".join("1" for _ in clauses) + "\n", encoding="utf-8")
    started = time.process_time()
    result = called("family", *files, *LIMITS, "--of", models)
    assert time.process_time() - started < 5
    assert "and 99985 more that the list calls certain" in result.stdout  # 50,003 clauses, 50,002 edges, less 20


def test_clauses_that_are_given_restrict_the_family(files: tuple[Path, Path]) -> None:
    having = json.loads(called("family", *files, *LIMITS, "--given", "d<-a", "--json").stdout)
    assert having["members"] == "2"
    assert having["members_of_whole_family"] == "4"
    neither = called("family", *files, *LIMITS, "--given", "d<-a", "--given", "d<-a+b", "--draw", "1")
    assert neither.returncode == 2
    assert "there is none to list or draw" in neither.stderr


def test_written_files_are_read_back(files: tuple[Path, Path], tmp_path: Path) -> None:
    needs("networkx", "pydot")
    out, certificates = tmp_path / "out", tmp_path / "certificates"
    result = called(
        "family",
        *files,
        *LIMITS,
        "--list",
        "3",
        "--out",
        out,
        "--certificates",
        certificates,
        "--html",
        tmp_path / "p.html",
    )
    assert result.returncode == 0, result.stderr
    compared = called("family", *files, *LIMITS, "--of", out / "members.csv", "--fail-on", "missing")
    assert compared.returncode == 1
    assert "the list has 3 of 4 members" in compared.stderr
    one = called("family", *files, *LIMITS, "--of", out / "members-1.bnet", "--fail-on", "overclaimed", "--json")
    assert one.returncode == 1  # d<-a is in the one model, and not in all members
    comparison = json.loads(one.stdout)["comparison"]
    assert comparison["members"] == 1
    assert comparison["share"] == 0.25
    checked = called("verify", *sorted(certificates.glob("*.claim.json")), certificates / "item.jsonl")
    assert checked.returncode == 0, checked.stdout
    assert checked.stdout.count("ok ") == 4  # the count, and three clauses of which none is in all members
    assert "cells: logic-count: 4 models fit, counted again; class: " in checked.stdout
    assert "cells: logic-open: d<-a+b is in a model that fits, and not in another; class: " in checked.stdout
    claim = certificates / "0001.claim.json"
    record = json.loads(claim.read_text(encoding="utf-8"))
    del record["certificate"]["version"]
    claim.write_text(json.dumps(record), encoding="utf-8")
    unversioned = called("verify", claim, certificates / "item.jsonl")
    assert unversioned.returncode == 1
    assert "version" in unversioned.stdout
    assert "share=" in (out / "union.dot").read_text(encoding="utf-8")


def test_the_page_has_the_candidates_of_the_file_alone(files: tuple[Path, Path], tmp_path: Path) -> None:
    """After these two readings a, b, both and either fit; two answer 1 to a alone, two to b alone."""
    files[1].write_text("TR:a,TR:b,DA:ALL,DV:d\n0,0,30,0\n1,1,30,1\n", encoding="utf-8")
    candidates, page = tmp_path / "candidates.csv", tmp_path / "page.html"
    for rows, best in (("0,1\n", "b"), ("1,0\n0,1\n", "a")):
        candidates.write_text(f"TR:a,TR:b\n{rows}", encoding="utf-8")
        assert called("family", *files, *LIMITS, "--predict", candidates, "--html", page).returncode == 0
        assert f"<mark>{best}</mark> was never measured" in page.read_text(encoding="utf-8")


def test_times_of_one_treatment_stand_together(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Values of a at 10 and at 30: one number of an experiment, two times of its values; c was merged."""
    files[1].write_text("TR:a,TR:b,DA:ALL,DV:d\n1,0,10,0.6\n0,1,10,0\n1,0,30,1\n", encoding="utf-8")
    page, out = tmp_path / "page.html", tmp_path / "out"
    result = called("family", *files, "--time", "10,30", "--html", page, "--out", out)
    assert "merged    1 node, neither clamped nor measured: c" in result.stdout.splitlines()
    rows = [line.split(",")[1:5] for line in (out / "predicted.csv").read_text("utf-8").splitlines()[1:]]
    assert rows == [["a", "10", "d", "0.6"], ["b", "10", "d", "0"], ["a", "30", "d", "1"]]
    assert json.loads((out / "family.json").read_text("utf-8"))["merged_nodes"] == ["c"]
    text = page.read_text("utf-8")
    assert "MSE 0.0533 of the first optimal model" in text  # .4**2 of three values
    chart = text[text.index("<h2>Measured and predicted</h2>") :]
    places = {}
    for circle, points, value in re.findall(
        r'<(?:circle[^>]* cx="([0-9.]+)"|polygon[^>]* points="([^"]+)")[^>]*><title>a: ([0-9.]+)</title>', chart
    ):
        corners = [float(corner.split(",")[0]) for corner in (points or circle).split()]
        places[value] = round(sum(corners) / len(corners))
    assert places.keys() == {"0.6", "1"}
    assert len({*places.values()}) == 1
    assert "measured at 10" in chart
    assert "measured at 30" in chart


@needs_axe
@pytest.mark.parametrize("theme", THEMES)
def test_the_page_is_read_by_everybody(theme: str, files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert called("family", *files, *LIMITS, "--html", page).returncode == 0
    for width in (PHONE, DESKTOP):
        measured = measure(page.read_text("utf-8"), tmp_path, theme=theme, width=width)
        assert measured.violations == []
        assert measured.scroll_width <= width
        assert measured.requests == []


@needs_chromium
def test_pictures_of_the_page_grow_and_are_saved(files: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert called("family", *files, *LIMITS, "--html", page).returncode == 0
    presses = """
        const picture = document.querySelector("svg"), before = picture.getBoundingClientRect().width;
        document.querySelector("button[data-zoom='1.25']").click();
        said.push(Math.round(100 * picture.getBoundingClientRect().width / before));
        URL.createObjectURL = (file) => { said.push(file.type.replace("/", " "), file.size > 1000); return "#"; };
        HTMLAnchorElement.prototype.click = function () { said.push(this.download); };
        document.querySelectorAll("button[data-save]").forEach((button) => button.click());
    """
    names = ["network.svg", "spectrum.svg", "measured.svg"]
    assert pressed(page.read_text("utf-8"), presses, tmp_path) == [
        "125",
        *(said for name in names for said in ("image svg+xml", "true", name)),
    ]


def test_lines_are_solid_where_all_members_have_the_edge(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Two members, a and `a and b`: the edge from a is in both, though neither of its clauses is."""
    files[1].write_text("TR:a,TR:b,DA:ALL,DV:d\n1,0,30,0.5\n0,1,30,0\n0,0,30,0\n1,1,30,1\n", encoding="utf-8")
    page = tmp_path / "page.html"
    assert called("family", *files, *LIMITS, "--html", page).returncode == 0
    lines = re.findall(r'<path d="[^"]*" style="([^"]*)"[^>]*><title>([^<]*)</title>', page.read_text("utf-8"))
    dashed = {(title, "dasharray" in style) for style, title in lines}
    assert dashed == {
        ("d&lt;-a: 50.0 % of the members; a → d: all members", False),
        ("d if a and b: 50.0 % of the members; a → d: all members", False),
        ("d if a and b: 50.0 % of the members", True),  # from b to the gate, and from the gate on
    }


def test_any_and_none_lift_both_limits(files: tuple[Path, Path]) -> None:
    printed = {word: called("family", *files, "--fit", word, "--size", word).stdout for word in ("any", "none")}
    assert "any misfit, any size" in printed["any"]
    assert printed["none"] == printed["any"]


def test_no_experiment_that_was_done_is_proposed(files: tuple[Path, Path], tmp_path: Path) -> None:
    """Of the models over a -> d and b -> d two answer 1 to a alone, which was done, and two to b alone.

    `e`, which the prior lacks, changes no prediction: a with e inhibited is a.
    """
    prior, data = files
    data.write_text("TR:a,TR:b,TR:ei,DA:ALL,DV:d\n1,0,0,30,0.5\n", encoding="utf-8")
    page, limits = tmp_path / "page.html", ("--fit", "any", "--size", "any")
    printed = called("family", *files, *limits, "--next", "--html", page).stdout
    lines = {line[:10].strip(): line[10:] for line in printed.splitlines()}
    assert "inhibitors that the prior lacks, so that inhibiting them changes no prediction: e" in printed
    assert lines["next"].startswith("b: expected to leave ")
    assert re.findall(r"(?m)^(\S.*?)  +[0-9.]+ %  +\d+(  done)?$", printed) == [
        *(("b", ""), ("a + b", ""), ("no stimulus", "")),
        *(("a", "  done"), ("a, e inhibited", "  done")),
    ]
    record = json.loads(called("family", *files, *limits, "--json").stdout)
    assert record["next"]["stimuli"] == ["b"]
    assert "repeat" not in record
    assert "<mark>b</mark> was never measured" in page.read_text("utf-8")
    outcome = logic_family(prior, data, fit="any", size=None)
    assert isinstance(outcome, Found)
    best = outcome.value.best_next()
    assert best is not None
    assert best.experiment.on == {"b"}
    data.write_text("TR:a,TR:b,DA:ALL,DV:d\n0,0,30,0\n1,0,30,0.5\n0,1,30,0.5\n1,1,30,0.5\n", encoding="utf-8")
    printed = called("family", *files, *limits, "--html", page).stdout
    assert "nothing new among 4 candidates tells members apart; repeating a, which was done" in printed
    record = json.loads(called("family", *files, *limits, "--json").stdout)
    assert (record["next"], record["repeat"]["stimuli"]) == (None, ["a"])
    assert "most in <mark>a</mark>: repeat that one" in page.read_text("utf-8")


def test_a_model_with_feedback_is_named_with_commands_that_run(files: tuple[Path, Path], tmp_path: Path) -> None:
    model = tmp_path / "its model.bnet"
    model.write_text("a, a\nc, a & !e\ne, d\nd, c\n", encoding="utf-8")
    printed = called("family", *files, *LIMITS, "--of", model).stdout
    assert "stimuli that the model lacks, so that they change nothing in it: b" in printed
    assert "it has the cycle c -> d -> e -| c" in printed
    commands = dict(re.findall(r"(?m)^  ([^:]+): calibrant (network .*)$", printed))
    assert commands.keys() == {"a", "b"}  # a + b clamps what a does, for the model lacks b
    assert "a = 1" in called(*shlex.split(commands["a"])).stdout
    record = json.loads(called("family", *files, "--of", model, "--json").stdout)["model"]
    assert [(edge["source"], edge["sign"], edge["target"]) for edge in record["cycle"]] == [
        *(("c", "+", "d"), ("d", "+", "e"), ("e", "-", "c")),
    ]
    # with a three nodes negate one another in turn, for ever; without it all are 0 in the end
    assert record["reached"] == [["01"], ["0"], ["0"], ["01"]]
    assert "measured values (1 above 1/2): 2 that all states of attractors have, 2 some, 0 none" in printed
    table = printed[printed.index("Measured values and what the model has in attractors") :].splitlines()
    assert [line.split()[-1] for line in table[2:]] == ["1", "0", "0", "1"]


def test_a_model_with_feedback_and_a_wide_function_is_named_without_attractors(
    files: tuple[Path, Path], tmp_path: Path
) -> None:
    model, names = tmp_path / "model.bnet", [f"s{k}" for k in range(20)]
    model.write_text(f"c, d & ({' | '.join(names)})\nd, c\n", encoding="utf-8")
    files[1].write_text(f"TR:a,{','.join(f'TR:{n}' for n in names)},DA:ALL,DV:d\n1,{'0,' * 20}30,1\n", encoding="utf-8")
    result = called("family", *files, "--of", model)
    assert result.returncode == 0, result.stderr
    assert "it has the cycle c -> d -> c" in result.stdout
    assert "attractors have" not in result.stdout
    assert "--attractors --clamp s0=0,s1=0" in result.stdout


def test_a_model_is_shown_beside_what_was_measured(files: tuple[Path, Path], tmp_path: Path) -> None:
    """`d, b` misses the reading 0.6 of a; the optimum d <- a predicts it."""
    model, page = tmp_path / "model.bnet", tmp_path / "page.html"
    model.write_text("d, b & x\nx, b\n", encoding="utf-8")
    printed = called("family", *files, *LIMITS, "--of", model, "--html", page).stdout
    table = printed[printed.index("Measured values and what the model predicts") :].splitlines()
    assert table[1].split() == ["experiment", "readout", "value", "model"]  # scaled with --normalise, so not `measured`
    assert [re.split(r"  +", line) for line in table[2:]] == [
        ["1", "a", "d", "0.6", "0", "missed", "otherwise than every optimal model"],
        ["2", "b", "d", "0.5", "1", "otherwise than every optimal model"],
        ["3", "no stimulus", "d", "0", "0"],
        ["4", "a + b", "d", "1", "1"],
    ]
    assert "The model beside all members: it is one of them, 25.0 % of the family" in printed
    assert "clause d<-b: the model has it, 2 members have it" in printed
    text = page.read_text("utf-8")
    assert "<h2>The model model.bnet</h2>" in text
    assert re.sub(r"(?:\s*<[^>]+>\s*)+", " ", text).count(" a d 0.6 1 50.0 % 0.1600 0 ") == 1
    record = json.loads(called("family", *files, *LIMITS, "--of", model, "--json").stdout)
    assert [record["data"]["conditions"][number] for number, _ in record["model"]["differs"]] == ["a", "b"]
    assert record["model"]["lacks"] == {"stimuli": ["a"], "inhibitors": [], "readouts": []}


def test_edges_of_no_member_end_as_their_sign_says(tmp_path: Path) -> None:
    prior, data, page = tmp_path / "prior.sif", tmp_path / "data.csv", tmp_path / "page.html"
    prior.write_text("a 1 c\na -1 d\n", encoding="utf-8")
    data.write_text("TR:a,DA:ALL,DV:c,DV:d\n0,30,0,0\n1,30,1,0.2\n", encoding="utf-8")
    printed = called("family", prior, data, "--html", page).stdout
    assert "never     a -| d" in printed
    assert "          by readout: d 0.0200, c 0.0000" in printed
    record = json.loads(called("family", prior, data, "--json").stdout)
    assert record["mse_by_readout"] == pytest.approx({"c": 0, "d": 0.02})
    text = page.read_text("utf-8")
    assert re.findall(r'url\(#why-tip-([a-z-]+)\)"><title>([^:]*):', text) == [
        ("none-minus", "a -1 d"),
        ("plus", "c&lt;-a"),
    ]
    assert 'id="why-tip-none-minus"' in text


def test_measurements_become_an_item_without_a_sealed_part(files: tuple[Path, Path], tmp_path: Path) -> None:
    pool = tmp_path / "item.jsonl"
    assert called("pool", "convert", *files, "--time", "30", "--fit", "0.5", "--size", "5", "-o", pool).returncode == 0
    assert "sealed" not in json.loads(pool.read_text(encoding="utf-8").splitlines()[1])
    again = tmp_path / "again.jsonl"
    assert called("pool", "convert", *files, again, "--time", "30", "--fit", "0.5", "--size", "5").returncode == 0
    assert again.read_bytes().splitlines()[1] == pool.read_bytes().splitlines()[1]
    audit = called("audit", pool)
    assert audit.returncode == 0
    assert "4 models fit" in audit.stdout


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--size", "x"), "a whole number from 0, or any"),
        (("--fit", "-1"), "a decimal of 0 or more"),
        (("--time", "31"), "no time '31'; there are: 30"),
        (("--given", "d<-q"), "--given: d<-q is no clause of the class; clauses of d are of a, b"),
        (("--given", "q<-a"), "--given: q<-a is no clause of the class; nodes with clauses, known: d"),
        (("--given", "d=2"), "--given: 'd=2' is no clause; write it as v<-a+!b"),
        (("--without", "d<-a+a"), "--without: clause of 'd': one literal or more, and no source twice"),
        (("--given", "d<-c"), "d<-c is no clause of the class; c: merged into what reads it, neither clamped nor meas"),
        (
            ("--without", "c<-a"),
            "c: merged into what reads it, neither clamped nor measured; nodes with clauses, known: d",
        ),
        (("--given", "d<-a+b", "--max-clause", "1"), "clauses of d are of a, b, at most 1 of them"),
        (("--seed", "1"), "give --draw"),
        (("--draw", "1", "--list", "1"), "give one of --draw and --list"),
        (("--fail-on", "missing"), "give --of"),
        (("--max-parents", "2"), "about series"),
        (("--updates", "asynchronous"), "about series"),
        (("--certificates", "certificates", "--given", "d<-a"), "about the whole family"),
    ],
)
def test_each_wrong_option_is_refused_in_one_line(
    files: tuple[Path, Path], options: tuple[str, ...], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = called("family", *files, *options)
    error = result.stderr.splitlines()
    assert result.returncode == 2
    assert error[0].startswith("error")
    assert reason in error[0]
    assert {path.name for path in tmp_path.iterdir()} == {"prior.sif", "cells.csv"}


def test_an_input_is_never_the_output(files: tuple[Path, Path]) -> None:
    prior, data = files
    for arguments in ((prior, data, "-o", prior), (prior, data, data), (prior, data, "-o", data)):
        result = called("pool", "convert", *arguments, "--time", "30")
        assert result.returncode == 2, arguments
    assert prior.read_text(encoding="utf-8") == PRIOR
    assert data.read_text(encoding="utf-8") == DATA


def test_series_are_counted_gene_by_gene(tmp_path: Path) -> None:
    prior, series = tmp_path / "prior.sif", tmp_path / "series.csv"
    prior.write_text("a 1 b\na 1 a\n", encoding="utf-8")
    # a stays, b follows a: both formulas are without an error, and each of the two others has at least one
    series.write_text("series,a,b\n1,1,0\n1,1,1\n2,0,1\n2,0,0\n3,1,1\n", encoding="utf-8")
    record = json.loads(called("family", prior, series, "--max-parents", "1", "--json").stdout)
    assert record["data"] == {"rows": 4, "rows_in_file": 5, "steps": 2, "readings": 4}
    assert record["least_errors"] == 0
    assert record["members"] == "1"
    assert record["edges"] == {"a 1 a": "1", "a 1 b": "1"}
    assert record["functions"][1]["parents"] == {"a": "1", "b": "1"}  # b after is a before, or not b before
    assert record["mean_fixed_points"] == "2"  # a stays: 00 and 11
    assert [(gene["gene"], gene["readings"]) for gene in record["genes"]] == [("a", 2), ("b", 2)]
    printed = called("family", prior, series).stdout.splitlines()
    assert printed[0] == "rows      4 of 5 used; a series of one row has no step"
    assert printed[1] == "readings  4 used: 2 steps of 2 genes"
    assert "fixed     2 fixed points of a member, on average" in printed
    refused = called("family", prior, series, "--fit", "0.1")
    assert refused.returncode == 2
    assert "it is about MIDAS data" in refused.stderr


def test_series_with_gaps_and_held_genes(tmp_path: Path) -> None:
    prior, series = tmp_path / "prior.sif", tmp_path / "series.csv"
    prior.write_text("a 1 a\na 1 b\n", encoding="utf-8")
    series.write_text("series,a,b\n1,1,0\n1,1,NA\n1,1,1\n", encoding="utf-8")
    record = json.loads(called("family", prior, series, "--fixed", "11", "--fixed", "10", "--json").stdout)
    assert (record["members"], record["least_errors"], record["unknown_cells"], record["joint"]) == ("1", 0, 1, "1")
    assert record["witness"] == ["a<-a", "b<-a"]
    assert record["fixed"] == {"11": "1", "10": "0"}
    # each gene completes the unknown cell as it likes: b = 0 before c = 0, b = 1 after a = 1
    prior.write_text("a 1 a\na 1 b\nb 1 c\n", encoding="utf-8")
    series.write_text(
        "series,set,a,b,c\n1,a,1,0,0\n1,,,NA,0\n1,,,1,0\n2,,1,1,1\n2,,1,1,1\n3,a=0,,0,1\n3,,,0,0\n", encoding="utf-8"
    )
    printed = called("family", prior, series).stdout
    assert "held in some series, which give no reading of them: a" in printed
    assert "optimum   0 wrong readings" in printed
    assert "joint     0 without a wrong reading" in printed
    assert "no model fits all genes at once" in printed
    refused = called("family", prior, series, "--updates", "asynchronous")
    assert refused.returncode == 2
    assert "line 3: column 'b': unknown; asynchronous series have no gaps" in refused.stderr
    refused = called("family", prior, series, "--fixed", "01")
    assert refused.returncode == 2
    assert "'01'; a 0 or 1 for each of 3 genes" in refused.stderr


INHIBITED = (
    "TR:a,TR:b,TR:ci,DA:ALL,DV:d\n1,0,0,30,0.6\n0,1,0,30,0.5\n0,0,0,30,0\n1,1,0,30,1\n1,1,1,30,0.1\n"  # c is inhibited
)
CHANGES: dict[str, list[str]] = {
    "--time": ["60"],
    "--cell-line": ["A"],
    "--sign": ["both"],
    "--normalise": ["minmax"],
    "--fit": ["0"],
    "--size": ["0"],
    "--max-clause": ["1"],
    "--no-compress": [],
    "--rounding": ["floor"],
    "--factor": ["10"],
    "--max-stimuli": ["1"],
    "--max-inhibitors": ["0"],
    "--predict": ["no-such-file.csv"],
    "--draw": ["2"],
    "--seed": ["3"],
    "--list": ["2"],
    "--of": ["no-such-file.csv"],
    "--given": ["d<-a"],
    "--without": ["d<-a"],
    "--extra-errors": ["1"],
    "--max-parents": ["2"],
    "--updates": ["asynchronous"],
    "--fixed": ["01"],
    "--next": [],
    "--fail-on": ["missing"],
    "--out": ["OUT/tables"],
    "--html": ["OUT/page.html"],
    "--certificates": ["OUT/certificates"],
    "--json": [],
}
BESIDE = {"--rounding": ["--factor", "1"], "--seed": ["--draw", "2"]}


OPTIONS = {p.opts[0] for p in COMMANDS["family"].params if p.param_type_name == "option"}
SILENT = {"--quiet"}  # leaves lines on compiled kernels out, of which a small model has none


@pytest.mark.parametrize("option", sorted(OPTIONS - SILENT))
def test_no_option_is_ignored(option: str, files: tuple[Path, Path], tmp_path: Path) -> None:
    files[1].write_text(INHIBITED, encoding="utf-8")
    line = ("family", *files, *LIMITS, *BESIDE.get(option, []))
    assert option in CHANGES, f"{option} is new: give it a value here that changes the output"
    given = [value.replace("OUT/", f"{tmp_path}/") for value in CHANGES[option]]
    before, after = called(*line), called(*line, option, *given)
    assert before.returncode == 0
    assert (after.returncode, after.stdout, after.stderr) != (before.returncode, before.stdout, before.stderr)
