"""Files of logic models: what is read, and what is refused in one line that names file and place."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from calibrant.dsl.errors import PoolError
from calibrant.dsl.logic.files.midas import (
    Normalisation,
    candidate_experiments,
    parse_clamps,
    parse_midas,
    parse_setup,
    read_candidates,
    read_midas,
)
from calibrant.dsl.logic.files.networks import (
    bnet_text,
    networks_pieces,
    parse_networks,
    parse_sif,
    read_networks,
    read_sif,
)
from calibrant.dsl.logic.item import Edge, Experiment, Model, Setup, class_edges, parse_clause
from calibrant.dsl.networks.edge_tables import MAX_EDGES
from tests.support.effort import examples
from tests.support.shared import shared_file, shared_records

PRIOR = (Edge("a", 1, "b"), Edge("b", -1, "r"), Edge("abci", 1, "r"))
MIDAS = """TR:Cell:CellLine, TR:a , TR:bi,ID:x,DA:r,DV:r
1,0,0,z,0,0
1,1,0,z,30,.7
1,1,1,z,30,NA
1,0,1,z,30,.25
"""


@pytest.mark.parametrize("end", ["\r", "\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_marks(tmp_path: Path, end: str, mark: bytes) -> None:
    path = tmp_path / "p.sif"
    path.write_bytes(mark + f"a\t1 b  c{end}{end}b -1 r{end}a 1 b{end}".encode())
    assert read_sif(path) == (Edge("a", 1, "b"), Edge("a", 1, "c"), Edge("b", -1, "r"))
    assert parse_sif("\n".join(map(str, read_sif(path)))) == read_sif(path)
    assert parse_midas(MIDAS.replace("\n", end), 30) == parse_midas(MIDAS, 30)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a binds b", "line 1: sign 'binds'; allowed: 1 +"),
        ("a 1 b\nand1 1 c", "line 2: 'and1' is a gate of a model"),
        ("a 1", "line 1: 2 fields"),
        ("", "no edge"),
        ("a 1 b+c", "is no name of a node"),
        ("a 1 b, c", "line 1: 'b,' is no name of a node"),
        ("a repressor b", "line 1: sign 'repressor'; allowed: 1 +"),
    ],
)
def test_a_sif_that_is_refused(text: str, problem: str) -> None:
    with pytest.raises(PoolError, match=problem):
        parse_sif(text, "p.sif")


@pytest.mark.parametrize(
    ("line", "targets"),
    [
        ("a, 1, b", "b"),
        ("a ; 1 ; b", "b"),
        ("a,up-regulates activity,b", "b"),
        ("a\tUp-regulates quantity by expression\tb\tc", "bc"),
        ("a\t1\tb c", "bc"),
        ("a\t\t1 b", "b"),
    ],
)
def test_what_separates_the_fields_of_a_sif(line: str, targets: str) -> None:
    assert parse_sif(line) == tuple(Edge("a", 1, target) for target in targets)


@pytest.mark.parametrize("line", ["a{0} 1 b{0}\n", "a{0} 1 a{1}\n"])
def test_a_large_sif_is_read_and_merged_at_once_or_refused(line: str) -> None:
    """As many edges as are allowed, apart or in a chain: all but those of two names go, in either order of names."""
    text = "".join(line.format(i, i + 1) for i in range(MAX_EDGES))
    kept_names = line.format(0, MAX_EDGES).split()[::2]
    started = time.process_time()
    prior = parse_sif(text, "p.sif")
    merged = [class_edges(prior, ["a0"], kept_names, compress=True, reverse=reverse) for reverse in (False, True)]
    assert time.process_time() - started < 3
    assert len(prior) == MAX_EDGES
    assert [len(edges) for edges in merged] == [1, 1]
    with pytest.raises(PoolError, match=r"line 50001: over 50,000 edges; keep those on paths from stimuli to readouts"):
        parse_sif(text + "x 1 y\nno line", "p.sif")


def test_comments_of_a_sif() -> None:
    assert parse_sif("# 1 comment\na 1 b\n#\n") == (Edge("a", 1, "b"),)
    with pytest.raises(PoolError, match=r"line 1: .#b. is no name of a node; allowed: .*the first not #"):
        parse_sif("a 1 #b", "p.sif")


def test_what_spreadsheets_write_around_a_table() -> None:
    """Quoted fields, empty columns behind the header's, lines of empty fields."""
    quoted = "".join(",".join(f'"{f.strip()}"' for f in line.split(",")) + ",,\n" for line in MIDAS.splitlines())
    assert parse_midas(quoted + ",,,,,,,\n", 30) == parse_midas(MIDAS, 30)
    with pytest.raises(PoolError, match="line 4: 8 fields; the header has 6"):
        parse_midas(quoted.replace('"NA",,', '"NA",,7'), 30, file="m.csv")
    for separator, name in ((";", "semicolons"), ("\t", "tabs")):
        with pytest.raises(PoolError, match=f"line 1: fields are separated by {name}; save the file with commas"):
            parse_midas(MIDAS.replace(",", separator), 30)


def test_midas() -> None:
    data = parse_midas(MIDAS, "30", PRIOR)
    assert data.setup == Setup(("a",), ("b",), ("r",))
    assert data.values == ((0.7,), (None,), (0.25,))
    assert data.experiments[1] == Experiment(frozenset("a"), frozenset("b"))
    assert data.notes == ()
    renamed = MIDAS.replace("TR:bi", "TR:bi:Stimuli").replace("TR:a ", "TR:a:Inhibitors").replace("DA:r", "DA:ALL")
    assert parse_midas(renamed, 30.0).setup == Setup(("bi",), ("a",), ("r",))


@pytest.mark.parametrize(
    ("old", "new", "time", "problem"),
    [
        ("", "", 10, "no time 10; there are: 0, 30"),
        ("", "", None, "several times: 0, 30; name one (--time 30) or several (--time 0,30)"),
        ("1,1,0,z,30", "1,2,0,z,30", 30, "line 3: column 'TR:a': '2'; a TR cell is 0 or 1"),
        ("TR:bi", "TR:ai", 30, "'a' is a stimulus and an inhibitor"),
        ("ID:x", "DA:r", 30, "column 'DA:r': occurs twice"),
        ("TR:bi", "TR:a:Stimuli", 30, "stimulus 'a' has two columns"),
        (".7", "inf", 30, "line 3: column 'DV:r': 'inf'; a value is a finite number"),
        (".7", "x", 30, "line 3: column 'DV:r': 'x'; a value is a finite number"),
        ("DA:r", "ID:r", 30, "column 'DV:r': no time; add a column DA:r or DA:ALL"),
        ("ID:x", "TR:y:CellLine", 30, "several cell lines: Cell, y"),
        ("TR:bi", "TR:abci", 30, "write TR:abci:Stimuli"),
        ("ID:x", "x", 30, "column 'x': columns begin with TR:, DA:, DV: or ID:"),
        ("ID:x", "CellType", 30, "or ID: (ID: is not read); cell line HeLa is a column TR:HeLa:CellType of 0 and 1"),
        ("ID:x", "TR:CellType", 30, "'z'; a TR cell is 0 or 1, cell line HeLa is a column TR:HeLa:CellType of 0 and 1"),
        ("ID:x", "TR:y", 30, "column 'TR:y': 'z'; a TR cell is 0 or 1, doses are not read"),
        ("1,1,1,z,30,NA", "1,1,1,z,30", 30, "line 4: 5 fields; the header has 6"),
        ("DV:r", "ID:r", 30, "no DV column"),
        ("1,1,0,z,30", "1,1,0,z,x", 30, "line 3: column 'DA:r': 'x'; a DA cell is a finite number"),
        ("TR:bi", "TR:b:Other", 30, "allowed after the name: Stimuli, Inhibitors, CellLine, CellType"),
    ],
)
def test_a_midas_that_is_refused(old: str, new: str, time: float | None, problem: str) -> None:
    with pytest.raises(PoolError) as refused:
        parse_midas(MIDAS.replace(old, new, 1) if old else MIDAS, time, PRIOR, "d.csv")
    assert str(refused.value).startswith("d.csv: ")
    assert problem in str(refused.value)


def test_data_without_a_value_are_refused() -> None:
    with pytest.raises(PoolError, match="no value at time 30"):
        parse_midas("TR:a,DA:r,DV:r\n1,30,\n0,30,NaN\n", 30)
    with pytest.raises(PoolError, match="no DA cell has a time"):
        parse_midas("TR:a,DA:r,DV:r\n1,,\n0,NA,NaN\n", 30)


def test_each_reading_counts_at_its_own_time() -> None:
    """DA:r beats DA:ALL; a row with one reading at the time is an experiment, and the others' readings are counted."""
    data = parse_midas("TR:a,DA:r,DA:ALL,DV:r,DV:q\n1,30,0,1,1\n0,0,30,1,0\n1,0,60,1,\n0,,30,,0.5\n", 30)
    assert [list(row) for row in data.values] == [[1, None], [None, 0], [None, 0.5]]
    assert [sorted(x.on) for x in data.experiments] == [["a"], [], []]
    assert (data.use.num_rows, data.use.num_values, data.num_values) == (4, 6, 3)
    assert data.use.other_times == ((0.0, 3),)  # nothing was measured at 60


def test_midas_vectors() -> None:
    """Every field of listed files, or the line and column of what is refused."""
    num_fields = num_refused = 0
    for vector in shared_records("vectors_networks_dev.jsonl", part="frontier", kind="midas"):
        options, expected = vector["options"], vector["expected"]
        text = vector["text"] if "text" in vector else shared_file(vector["file"], part="frontier").read_text("utf-8")
        prior = (
            read_sif(shared_file(vector["prior_file"], part="frontier"))
            if "prior_file" in vector
            else tuple(Edge(*edge) for edge in vector["prior"])
        )
        chosen = (options.get("time"), prior, "d.csv", options.get("normalise"), options.get("cell_line"))
        if "refused" in expected:
            with pytest.raises(PoolError) as refused:
                parse_midas(text, *chosen)
            if expected["line"] not in (None, 1):
                assert f"line {expected['line']}: column '{expected['name']}'" in str(refused.value), vector["id"]
            num_refused += 1
            continue
        data = parse_midas(text, *chosen)
        answer = {
            "stimuli": [*data.setup.stimuli],
            "inhibitors": [*data.setup.inhibitors],
            "readouts": [*data.setup.readouts],
            "experiments": [{"stimuli": sorted(x.on), "inhibited": sorted(x.inhibited)} for x in data.experiments],
            "values": [[*row] for row in data.values],
            "rows": [len(data.experiments), data.use.num_rows],
            "times": [*data.use.times],
            "other_times": {f"{time:g}": number for time, number in data.use.other_times},
            "notes": {**data.counts},
        }
        assert answer.keys() == expected.keys()
        for field, value in expected.items():
            assert answer[field] == value, (vector["id"], field)
            num_fields += 1
    assert num_fields >= 9 * 17
    assert num_refused >= 9


def test_published_dialects_of_midas_are_read_with_a_line() -> None:
    text = "TR:A:CellLine,TR:B:celltype,TR:a:Stimulus,TR:Rafi:Inhibitor,TR:NO-LIG,DA:p-x,DV:p-x\n"
    rows = "1,0,1,,0,10,1\n1,0,1,NA,0,30,0.5\n0,1,1,1,0,10,0\n1,0,0,1,1,60,0\n"
    prior = (Edge("a", 1, "Raf"), Edge("Raf", 1, "x"))
    data = parse_midas(text + rows, "10,30", prior, "d.csv", None, "A")
    assert data.setup == Setup(("a",), ("Raf",), ("x",))
    assert data.values == ((1.0,), (0.5,))
    assert data.use.other_times == ((60.0, 1),)
    assert any("more experiments under the same clamps" in note for note in data.notes)
    assert any(note == "rows of other cell lines, left out: 1" for note in data.notes)
    with pytest.raises(PoolError, match=r"several cell lines: A, B; name one \(--cell-line\)"):
        parse_midas(text + rows, "10,30", prior)
    with pytest.raises(PoolError, match="no cell line 'C'; there are: A, B"):
        parse_midas(text + rows, 10, prior, "d.csv", None, "C")
    with pytest.raises(PoolError, match="no time '20'; there are: 10, 30"):
        parse_midas(text + rows, "10,20", prior, "d.csv", None, "A")
    for everything in ("All", "all"):
        assert parse_midas(f"TR:a,DA:{everything},DV:x\n1,10,1\n", 10, prior).values == ((1.0,),)
    named = parse_midas("TR:a,DA:all,DA:x,DV:all,DV:x\n1,10,30,1,0\n", 10, (Edge("a", 1, "all"), Edge("a", 1, "x")))
    assert named.values == ((1.0, None),)  # a readout that is called all has a time of its own
    with pytest.raises(PoolError, match="column 1 has no name; take out names of rows, or call their column ID:row"):
        parse_midas("'',TR:a,DA:x,DV:x\n1,1,10,1\n".replace("''", '""'), 10, prior)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"PK\x03\x04\x14\0\xff", "it looks like a workbook; save the sheet as CSV in UTF-8"),
        ("TR:a,DA:x,DV:x\n".encode("utf-16"), "text in UTF-16; save it in UTF-8"),
        ("TR:a,DA:x,DV:x\n".encode("utf-16-be"), "no text in UTF-8, for it has a NUL; save it as text in UTF-8"),
        (b"TR:\xe9,DA:x,DV:x\n", "byte 3 is not UTF-8; save the file as UTF-8"),
    ],
)
def test_files_that_are_no_text_are_named(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_bytes(content)
    with pytest.raises(PoolError, match=re.escape(problem)):
        read_midas(tmp_path / "data.csv", 10, ())


@pytest.mark.parametrize(
    ("normalise", "values", "ranges"),
    [
        ("minmax", ((0.0,), (1.0,), (0.5,)), [("r", (-2, 2), (0, 1))]),
        ("clip", ((0.0,), (1.0,), (0.0,)), [("r", (-2, 2), (0, 1))]),
        ("none", ((-2.0,), (2.0,), (0.0,)), []),
    ],
)
def test_readings_outside_0_to_1(normalise: Normalisation, values: object, ranges: object) -> None:
    text = "TR:a,DA:r,DV:r\n1,30,-2\n0,30,2\n1,30,0\n"
    data = parse_midas(text, normalise=normalise)
    assert data.values == values
    assert list(data.use.ranges) == ranges
    with pytest.raises(PoolError, match="line 2: column 'DV:r': -2; values are from 0 to 1"):
        parse_midas(text)
    with pytest.raises(PoolError, match=r"line 2: column 'DV:r': -2; --normalise max .* takes none below 0"):
        parse_midas(text, normalise="max")
    with pytest.raises(PoolError, match=r"line 2: column 'DV:r': 1\.0000001; .* from 0 to 1\.0000001; scale"):
        parse_midas("TR:a,DA:r,DV:r\n1,30,1.0000001\n0,30,0\n")
    with pytest.raises(PoolError, match="normalise 'log'; one of minmax, max, clip, none"):
        parse_midas(text, normalise="log")  # type: ignore[arg-type]
    assert parse_midas(text.replace("-2", "0"), normalise="max").values == ((0.0,), (1.0,), (0.0,))
    assert parse_midas(text.replace("0,30,2", "0,30,-2").replace("1,30,0", "1,,"), normalise="clip").values == (
        (0.0,),
        (0.0,),
    )


def test_a_note_if_there_is_no_cell_line() -> None:
    assert "CellLine" in parse_midas("TR:a,DA:ALL,DV:r\n1,30,1\n").notes[0]


def test_candidates_in_their_order(tmp_path: Path) -> None:
    path = tmp_path / "setup.json"
    path.write_text('{"stimuli": ["a", "b"], "inhibitors": ["i", "j"], "readouts": ["r"]}')
    texts = [x.text(parse_setup(path.read_text())) for x in read_candidates(path)]
    assert texts[:6] == ["no stimulus", "a", "b", "no stimulus, i inhibited", "no stimulus, j inhibited", "a + b"]
    assert len(texts) == 4 * 3
    assert len(candidate_experiments(Setup(("a", "b"), ("i", "j"), ()), max_stimuli=9, max_inhibitors=9)) == 16
    assert parse_clamps("TR:a,TR:bi,DV:r\n1,1,2\n0,0,3\n") == [
        Experiment(frozenset("a"), frozenset("b")),
        Experiment(),
    ]


NETWORKS = "v<-a+!b,w<-a,networks,mse,size\n1,0,3,0.25,2\n1,1,1,,\n"


def test_networks(tmp_path: Path) -> None:
    path = tmp_path / "networks.csv"
    path.write_text(NETWORKS)
    first, second = read_networks(path)
    assert (first.weight, first.mse, first.size, first.line) == (3, 0.25, 2, 2)
    assert (second.weight, second.mse, second.size) == (1, None, None)
    assert second.model == {parse_clause("v<-!b+a"), parse_clause("w<-a")}
    columns = sorted(second.model)
    again = parse_networks("".join(networks_pieces([first.model, second.model], columns)))
    assert [entry.model for entry in again] == [first.model, second.model]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("1,0,3", "2,0,3", "line 2: column 'v<-!b+a': '2'; a clause has 0 or 1"),
        ("mse", "size", "column 'size': occurs twice"),
        ("3,0.25", "x,0.25", "line 2: column 'networks': 'x'; a number of 0 or more"),
        ("1,0,3", "1,3", "line 2: 4 fields; the header has 5"),
        ("v<-a+!b", "v<-a+!a", "no source twice"),
    ],
)
def test_networks_that_are_refused(old: str, new: str, problem: str) -> None:
    with pytest.raises(PoolError) as refused:
        parse_networks(NETWORKS.replace(old, new, 1), "n.csv")
    assert problem.replace("v<-!b+a", "v<-a+!b") in str(refused.value) or problem in str(refused.value)


def test_a_clause_of_several_columns() -> None:
    models = parse_networks("v<-a+b,v<-b+a,w<-a\n1,0,0\n0,1,0\n0,0,1\n")
    assert [sorted(map(str, entry.model)) for entry in models] == [["v<-a+b"], ["v<-a+b"], ["w<-a"]]


def test_bnet() -> None:
    model: Model = frozenset(map(parse_clause, ["v<-a+!b", "v<-c", "w<-!v"]))
    text = bnet_text(model, ["v", "w", "x"], ["a", "b", "c"])
    assert text.splitlines() == [
        "targets, factors",
        "a, a",
        "b, b",
        "c, c",
        "v, (a & !b) | c",
        "w, !v",
        "x, 0",
    ]


READERS: list[tuple[Callable[[str], object], str]] = [
    (parse_sif, "a 1 b c\r\nb -1 r\r"),
    (lambda text: parse_midas(text, 30, PRIOR), MIDAS),
    (parse_midas, MIDAS),
    (parse_clamps, "TR:a,TR:bi\n1,1\n"),
    (parse_setup, '{"stimuli": ["a"], "inhibitors": ["b"], "readouts": ["r"]}'),
    (parse_networks, NETWORKS),
]
PIECES = [
    "\r",
    "\n",
    ",",
    '"',
    "TR:",
    "DA:ALL",
    "DV:",
    "1",
    "-1",
    "nan",
    "1e999",
    "<-",
    "+",
    "!",
    "(",
    "\0",
    "\u2028",
    "é",
]


def problem_of(call: Callable[[], object]) -> str:
    """Return the message of a refusal, "" for a result; any other error passes through."""
    try:
        call()
    except PoolError as error:
        return str(error)
    return ""


@settings(deadline=None, max_examples=examples(400))
@given(st.sampled_from(READERS), st.randoms(use_true_random=False), st.text(max_size=40))
def test_any_text_gives_a_result_or_one_line(
    reader: tuple[Callable[[str], object], str], rng: random.Random, text: str
) -> None:
    parse, sample = reader
    damaged = sample
    for _ in range(rng.randint(0, 4)):
        start = rng.randrange(len(damaged) + 1)
        damaged = damaged[:start] + rng.choice([*PIECES, text, ""]) + damaged[start + rng.randint(0, 3) :]
    problem = problem_of(lambda: parse(damaged))
    assert problem == "" or problem.isprintable()


@settings(deadline=None, max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=60))
def test_a_file_of_any_bytes_gives_a_result_or_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(data)
    for read in (read_sif, read_networks, read_candidates):
        problem = problem_of(lambda read=read: read(path))  # type: ignore[misc]
        assert problem == "" or problem.isprintable()
