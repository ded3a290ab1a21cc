"""`calibrant network`: shown, compared, simulated, written and refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

import calibrant
from calibrant.bench.cli import main
from calibrant.dsl.networks.formulas import NetworkError
from tests.support.commands import refused
from tests.support.shared import shared_folder

MODEL = "targets, factors\na, a\nb, !a | (a & c)\nc, b & (d | !d)\n"
SIGNED = "a -> b\nc -> b\nb -> c\n$b: !a | (a & c)\n$c: b\n"


def _run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in ("network", *arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.bnet"
    path.write_text(MODEL)
    return path


def test_functions_and_what_changes_nothing_are_shown(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = _run(capsys, model)
    assert code == 0
    assert out.splitlines() == [
        "file         model.bnet: bnet",
        "network      4 nodes, 4 edges (3 +, 1 -, 0 both)",
        "inputs       a, d",
        "no rule      d",
        "inessential  d in c",
        "",
        "a, a",
        "b, c | !a",
        "c, b",
        "d, d",
    ]
    assert "--out network.xml" in err  # it is bnet
    assert "--attractors" in err
    assert _run(capsys, model, "--fail-on", "inessential")[0] == 1
    assert _run(capsys, model, "--fail-on", "declared")[0] == 0


HEADED = "a table of edges, which `family` reads, has a first line of names: source, target, sign"
UNSIGNED = HEADED.replace("reads,", "reads, with --sign both,").removesuffix(", sign")
MIDAS = "TR:a,DA:c,DV:c\n1,0,0\n1,10,1\n"


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("a,b,+\nb,c,-\n", HEADED),
        ("a\tb\tactivates\nb\tc\t-1\n", HEADED),
        ("a\tb\tActivation\t123\nb\tc\tRepression\t45;6\n", f"{HEADED}, column_4"),
        ("Source Node,Target Node,Type\na,b,1\n", HEADED),
        ("a,b\na,c\n", UNSIGNED),
        ("a b\na c\n", UNSIGNED),
        ("source,target,sign\na,b,1\n", "it looks like a table of edges; what reads it: calibrant family FILE DATA"),
        ("a activates b\n", "it looks like a prior network as SIF; what reads it: calibrant family FILE DATA"),
        ("a,b,c\n0,0,1\n0,1,-\n", "it looks like a table of values; what reads it: calibrant fit FILE --target NAME"),
        ("b<-a,c<-b,c<-!a\n1,1,0\n", "a list of logic models; what reads it: calibrant family PRIOR DATA --of FILE"),
        ('"","a","b"\n"1",0,1\n', "it looks like a table of values; what reads it: calibrant fit FILE --target NAME"),
        ("node a\n{\n logic = b;\n}\n", "MaBoSS (`Node A {`); what reads it: MaBoSS; its rates are not read here"),
    ],
)
def test_tables_of_edges_are_refused_with_the_head_that_they_lack(
    text: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "edges.csv").write_text(text)
    (tmp_path / "data.csv").write_text(MIDAS)
    assert refused(capsys, "network", tmp_path / "edges.csv").endswith(advice)
    if advice.startswith((HEADED, UNSIGNED)):
        assert refused(capsys, "family", tmp_path / "edges.csv", tmp_path / "data.csv").endswith(advice)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize(
    "head", [["targets", "factors"], ["Targets", " functions"], ["targets", "functions", "probabilities"]]
)
def test_heads_of_boolnet_are_no_nodes(head: list[str], separator: str, tmp_path: Path) -> None:
    """BoolNet takes two words, and other separators (`bodySeparator`); commas inside of counts stay."""
    rows = [head, *([*row, "1"][: len(head)] for row in (["a", "!b | maj(a, b, c)"], ["b", "a"]))]
    (tmp_path / "model.txt").write_text("".join(separator.join(row) + "\n" for row in rows))
    network = calibrant.read_network(tmp_path / "model.txt")
    assert (network.format, sorted(network.nodes), sorted(network.no_rule)) == ("bnet", ["a", "b", "c"], ["c"])
    # a and b at 1: 1 if a or c, for the majority; b at 0: always 1
    assert network.functions["a"] == calibrant.read_network(_bnet(tmp_path, "a, !b | a | c\nb, a\n")).functions["a"]


def test_a_comment_behind_a_formula_says_nothing_of_the_format(tmp_path: Path) -> None:
    network = calibrant.read_network(_bnet(tmp_path, "a, b # was a *= b\nb, a # $b: a\n"))
    assert (network.format, network.nodes) == ("bnet", ("a", "b"))


def _bnet(folder: Path, text: str) -> Path:
    (folder / "plain.bnet").write_text(text)
    return folder / "plain.bnet"


@pytest.mark.parametrize(
    ("text", "marked", "others"),
    [
        ("a* = b;\nb* = a;\n", ("a;", "b;"), ("a", "b")),
        ("a* = b and not c.\nb* = a\nc* = b\n", ("c.",), ("c",)),
        ("a, ~b & c\nb, a\nc, c\n", ("~b",), ("b",)),
        ("a, Ca2+ & c\nc, c\n", (), ()),
    ],
)
def test_names_with_marks_of_another_syntax_are_named(
    text: str, marked: tuple[str, ...], others: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "model.txt").write_text(text)
    code, out, _ = _run(capsys, tmp_path / "model.txt")
    lines = [line for line in out.splitlines() if "has no rule and is a node of its own" in line]
    assert code == 0
    assert len(lines) == len(marked)
    for line, name, other in zip(lines, marked, others, strict=True):
        assert f" {name} has no rule and is a node of its own, beside {other};" in line


PRIOR, SERIES, SBML = "a\t1\tc\n", "series,a,c\n1,0,1\n1,1,0\n", '<?xml version="1.0"?>\n<sbml level="3"/>\n'


@pytest.mark.parametrize(
    ("prior", "data", "advice"),
    [
        (
            MIDAS,
            MIDAS,
            "prior.txt: line 1: it looks like MIDAS measurements; what reads it: calibrant family PRIOR FILE",
        ),
        (
            SERIES,
            MIDAS,
            "prior.txt: line 1: it looks like a table of series; what reads it: calibrant family PRIOR FILE",
        ),
        (
            "a,b\n0,1\n".replace("b", "b,c").replace("1", "1,1"),
            MIDAS,
            "a table of values; what reads it: calibrant fit",
        ),
        ("digraph {\na -> b;\n}\n", MIDAS, "prior.txt: line 1: it looks like a DOT graph; what reads it: Graphviz"),
        ('{"edges": []}\n', MIDAS, "prior.txt: line 1: it looks like a JSON text; what reads it: no reader here"),
        (
            PRIOR,
            PRIOR,
            "data.txt: line 1: it looks like a prior network as SIF; what reads it: calibrant family FILE DATA",
        ),
        (PRIOR, MODEL, "it looks like a network (bnet); what reads it: calibrant network FILE"),
        (PRIOR, SBML, "it looks like a network (sbml-qual); what reads it: calibrant network FILE"),
        (
            PRIOR,
            "source,target,sign\na,c,1\n",
            "it looks like a table of edges; what reads it: calibrant family FILE DATA",
        ),
        (PRIOR, "time,a,c\n0,1,0\n5,1,1\n", "states in the order of time have a column series"),
        (PRIOR, "series\ta\tc\n1\t1\t0\n", "data.txt: line 1: fields are separated by tabs; save the file with commas"),
        (PRIOR, "TR:a;DA:c;DV:c\n1;10;1\n", "data.txt: line 1: fields are separated by semicolons; save the file"),
    ],
)
def test_priors_and_data_that_are_other_files_are_named(
    prior: str, data: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "prior.txt").write_text(prior)
    (tmp_path / "data.txt").write_text(data)
    assert advice in refused(capsys, "family", tmp_path / "prior.txt", tmp_path / "data.txt")


def test_rows_of_a_table_of_edges_longer_than_its_head_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.csv").write_text(MIDAS)
    for row, reason in (("a,c,1,x", "line 2: 4 fields; the head has 3"), ("a,c,1,,", "")):
        (tmp_path / "edges.csv").write_text(f"source,target,sign\n{row}\n")
        code = main(["family", str(tmp_path / "edges.csv"), str(tmp_path / "data.csv"), "--time", "10"])
        assert (code, reason in capsys.readouterr().err) == (2 if reason else 0, True)


def test_a_list_of_edges_that_is_bnet_too_is_read_as_bnet_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, data, note = tmp_path / "edges.csv", tmp_path / "data.csv", "the line `a, b` is an edge from b to a;"
    data.write_text(MIDAS)
    for text, is_noted in (
        ("a,b\nb,c\n", True),
        ("targets,factors\na,b\nb,c\n", False),
        ("a,b\n", False),
        ("a,!b\nb,c\n", False),
        ("a,1\nb,b\n", False),
    ):
        path.write_text(text)
        assert (note in _run(capsys, path)[1]) == is_noted, text
    path.write_text("c,a\na,b\n")
    assert main(["family", str(path), str(data), "--time", "10"]) == 0
    assert "the line `a, b` is an edge from b to a;" in capsys.readouterr().out
    assert note not in _run(capsys, path.rename(tmp_path / "edges.bnet"))[1]


def test_a_refuted_sign_is_shown_with_rows_that_prove_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.aeon"
    path.write_text(SIGNED)
    code, out, _ = _run(capsys, path, "--fail-on", "declared")
    assert code == 1
    assert "declared     a of b is declared -> and is -\n               a = 0: 1, a = 1: 0, with c = 0\n" in out


def test_two_files_are_compared_and_differ_in_a_row(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.txt"
    other.write_text("c *= b\nb *= a and c\na *= a\nd *= d\n")
    code, out, _ = _run(capsys, model, other, "--fail-on", "differ")
    assert code == 1
    assert "compared     different networks: other.txt\ndiffers      b: 1 and 0 for a = 0, c = 0\n" in out
    other.write_text("c = b\nb = not a or c\n")
    code, out, _ = _run(capsys, model, other, "--fail-on", "differ")
    assert (code, "only in model.bnet: d" in out) == (1, True)
    other.write_text("c = b\nb = not a or c\nd = d\n")
    code, out, _ = _run(capsys, model, other, "--fail-on", "differ")
    assert (code, "compared     the same network: other.txt" in out) == (0, True)


def test_attractors_are_listed_with_clamps(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(_run(capsys, model, "--clamp", "a=1,d=0", "--json")[1])
    assert document["fixed_points"] == {"states": ["1000", "1110"], "complete": True}
    assert document["attractors"] == [
        {"period": 1, "basin": 1, "state": "1000"},
        {"period": 1, "basin": 1, "state": "1110"},
        {"period": 2, "basin": 2, "state": "1010"},
    ]
    out = _run(capsys, model, "--attractors")[1]
    assert "attractors   8: period, basin, least state" in out


@pytest.mark.parametrize("ending", [".bnet", ".xml"])
def test_what_is_written_is_the_same_network(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], ending: str
) -> None:
    out = tmp_path / f"written{ending}"
    assert _run(capsys, model, "--out", out)[0] == 0
    assert calibrant.read_network(model).compare(calibrant.read_network(out)).is_equal
    assert _run(capsys, model, "--out", out)[0] == 2, "an existing file stays"


def test_graphml_has_the_signs(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    networkx = pytest.importorskip("networkx")
    out = tmp_path / "model.graphml"
    assert _run(capsys, model, "--out", out)[0] == 0
    graph = networkx.read_graphml(out)
    expected = {("a", "a", "+"), ("a", "b", "-"), ("c", "b", "+"), ("b", "c", "+")}
    assert {(a, b, sign) for a, b, sign in graph.edges(data="sign")} == expected


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Node A {\n logic = B;\n}\n", "MaBoSS"),
        ("A&^C -> B\n", "boolSim"),
        ("A&C -| B\nB -> B\n", "boolSim"),
        (".v 3\n.n 1 1 2\n1 1\n", "cnet"),
        ("A : A\n1:1\n\nA B : D\n1-:1\n", "implicant tables"),
        ("A B\n# states\n00 10\n01 11\n", "a truth table"),
        (".i 2\n.o 1\n11 1\n.e\n", "calibrant fit"),
        (".model m\n.inputs a\n", "BLIF"),
        ('{"Model": {"Variables": []}}', "BMA"),
        ("TR:a,DA:ALL,DV:b\n1,10,1\n", "MIDAS"),
        ("a 1 b\nb -1 c\n", "SIF"),
        ("series,a,b\n1,0,1\n1,1,1\n", "series"),
        ("<html></html>", "SBML-qual begins with <sbml>"),
        ("some text\nof a letter\n", "name one with --format"),
    ],
)
def test_other_files_are_named_in_one_line(
    content: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "file.txt"
    path.write_text(content)
    code, out, err = _run(capsys, path)
    assert (code, out) == (2, "")
    assert err.startswith("error  file.txt: ")
    assert err.count("\n") == 1
    assert words in err


def test_a_fault_in_a_formula_of_xml_names_its_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.ginml"
    node = '<node id="B"><value val="1"><exp str="!A &amp;"/></value></node>'
    path.write_text(f'<gxl><graph class="regulatory"><node id="A" input="true"/>{node}</graph></gxl>')
    code, _, err = _run(capsys, path)
    assert (code, err) == (
        2,
        "error  model.ginml: formula of 'B': a formula ends where a name, a constant or ( is expected\n",
    )


def test_an_archive_of_ginsim_is_read_and_others_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = (
        '<gxl><graph class="regulatory"><node id="A" input="true"/><node id="B"><value val="1"><exp str="!A"/></value>'
        '</node><edge id="e" from="A" to="B" sign="negative"/></graph></gxl>'
    )
    path = tmp_path / "model.zginml"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("GINsim-data/regulatoryGraph.ginml", graph)
    assert "B, !A" in _run(capsys, path)[1]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("other", graph)
    with pytest.raises(NetworkError, match=r"no \.zginml archive"):
        calibrant.read_network(path)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--clamp", "a"),
        ("--clamp", "a=2"),
        ("--clamp", "a=0,a=1"),
        ("--clamp", "z=1"),
        ("--format", "sif"),
        ("--out", "model.txt"),
        ("--fail-on", "differ"),
        ("--fail-on", "nothing"),
    ],
)
def test_bad_options_are_refused(model: Path, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...]) -> None:
    code, out, err = _run(capsys, model, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("error  ")


def test_all_published_files_that_are_shared_are_read_or_refused_by_name() -> None:
    folder = shared_folder()
    if folder is None:
        pytest.skip("no shared folder")
    outcomes: dict[str, int | str] = {}
    for path in sorted((folder / "frontier" / "networks").iterdir()):
        try:
            outcomes[path.name] = len(calibrant.read_network(path).nodes)
        except NetworkError as error:
            outcomes[path.name] = error.reason
    assert outcomes["cell_cycle_2016.txt"] == 21
    assert outcomes["MODEL1611230001.xml"] == "multi-level"
    refused = {name for name, outcome in outcomes.items() if not isinstance(outcome, int)}
    assert refused == {
        "LICENCES.md",
        "MD-TCellPCB2007.csv",
        "MD-ToyMMB.csv",
        "MODEL1611230001.xml",
        "PKN-TCellPCB2007.sif",
        "PKN-ToyMMB.sif",
    }


def test_a_mistyped_node_gets_a_hint(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.bnet"
    path.write_text("Raf, Ras\nErk, Raf\n")
    assert "clamp of 'Raff', which is no node; did you mean Raf" in refused(
        capsys, "network", path, "--clamp", "Raff=1"
    )
    assert "did you mean" not in refused(capsys, "network", path, "--clamp", "zzz=1")
