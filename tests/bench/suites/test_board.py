"""A board believes nothing: what it reads of submissions, and forged ones that stay out."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from calibrant.bench.cli import main
from calibrant.bench.commands.suites import list_next_commands
from calibrant.bench.core.registry import benchmark_of
from calibrant.bench.protocols import chosen_protocols, protocols_of
from calibrant.bench.runs.executors import Execution
from calibrant.bench.runs.records import folder_records
from calibrant.bench.runs.runner import run
from calibrant.bench.suites.board import BoardSummary, build_board
from calibrant.bench.suites.eee import check_aggregate
from calibrant.bench.suites.manifest import (
    SUMS,
    differences,
    read_manifest,
    read_specification,
    sha256_of,
    tree_digests,
    write_sums,
)
from calibrant.bench.suites.release import draft_release
from calibrant.bench.suites.rescoring import PoolJudge, open_suite, pool_path
from calibrant.bench.suites.submissions import RefusedSubmission, Submission, read_submissions, skeleton
from calibrant.dsl.errors import CalibrantError
from tests.support.accessibility import DESKTOP, PHONE, THEMES, measure, needs_axe
from tests.support.browser import Tab, needs_chromium
from tests.support.commands import NEXT, called, refusal, refused
from tests.support.suites import FORGERIES, honest, read, write, write_card, write_lines

# --- A board believes nothing: forged submissions and damaged suites are red with their reason and stay out -----------
SITE = "two-pools-1.0"
POOLS = ("detectors", "questions")


@pytest.fixture(scope="module")
def submissions(suite: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write an honest submission to both pools, one that states its own verdict, and all forgeries."""
    folder = tmp_path_factory.mktemp("submissions")
    first = honest(suite, folder / "honest", "static")
    shutil.copyfile(suite / "gold" / "rows" / "exact" / "questions.jsonl", first / "questions.jsonl")
    write_card(first, cost="1.5", currency='"USD"', more='[settings]\ntemperature = "0"\n[tokens]\ninput=1\noutput=2')
    file = honest(suite, folder / "boasts", "copy") / "questions.jsonl"
    write(file, [line | {"answer": {}, "correct": True, "score": 1, "valid": True} for line in read(file)])
    for name, (forge, _) in FORGERIES.items():
        forge(suite, folder / name)
    (folder / "linked").symlink_to(folder / "honest")
    return folder


def test_files_of_a_submission_are_bounded_together(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = honest(suite, tmp_path / "submissions" / "honest", "static")
    manifest, total = read_manifest(suite), sum(file.stat().st_size for file in folder.glob("*.jsonl"))
    for index, (limit, is_read) in enumerate({total: True, total - 1: False}.items()):
        monkeypatch.setattr(f"{read_submissions.__module__}.MAX_SUBMISSION_BYTES", limit)
        scratch = tmp_path / str(index)
        scratch.mkdir()
        (entry,) = read_submissions(folder.parent, manifest, scratch)
        assert isinstance(entry, Submission) is is_read
        if isinstance(entry, RefusedSubmission):
            assert entry.reason == f"its files have more than {limit} bytes together"
            assert not list(scratch.iterdir())  # copies of refused files are no load
    monkeypatch.setattr(f"{read_submissions.__module__}.MAX_SUBMISSION_BYTES", total)
    monkeypatch.setattr(f"{read_submissions.__module__}.MAX_BOARD_BYTES", total - 1)
    (tmp_path / "all").mkdir()
    with pytest.raises(CalibrantError, match=f"submissions of more than {total - 1} bytes together"):
        list(read_submissions(folder.parent, manifest, tmp_path / "all"))


@pytest.fixture(scope="module")
def board(suite: Path, submissions: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[BoardSummary, Path]:
    out = tmp_path_factory.mktemp("board") / "site"
    return build_board(suite, submissions, out), out / SITE


def test_every_forgery_is_red_with_its_reason(board: tuple[BoardSummary, Path]) -> None:
    reasons = {entry.name: entry.reason for entry in board[0].refused}
    assert {*FORGERIES} - {"bad name"} <= reasons.keys()
    assert len(reasons) == len(FORGERIES) + 1 >= 50
    assert reasons.pop("linked") == "not a folder with a card"
    number = next(name for name in reasons if name.startswith("entry "))
    reasons["bad name"] = reasons.pop(number)
    for name, (_, reason) in FORGERIES.items():
        assert reason in reasons[name], name


def test_no_reason_names_an_option_that_boards_lack(board: tuple[BoardSummary, Path]) -> None:
    assert [entry.reason for entry in board[0].refused if "--" in entry.reason] == []


def test_folders_that_differ_in_case_alone_are_not_both_read(suite: Path, tmp_path: Path) -> None:
    """On some file systems their pages would be the same files."""
    for name in ("A", "a"):
        honest(suite, tmp_path / "all" / name, system=f'"{name}b"')
    summary = build_board(suite, tmp_path / "all", tmp_path / "out")
    reason = "its folder is that of A where case is ignored"
    assert [(entry.name, entry.reason) for entry in summary.refused] == [("a", reason)]
    assert summary.num_ranked == 1


def test_a_submission_that_is_red_for_its_answers_takes_no_names(suite: Path, tmp_path: Path) -> None:
    """The corrected one is ranked; of two good ones the first folder stays."""
    file = honest(suite, tmp_path / "all" / "pub") / "detectors.jsonl"
    write(file, [*read(file), {"id": "unknown", "answer": {}}])
    write_card(file.parent, system='"one"')
    for name in ("pub3", "pub4"):
        honest(suite, tmp_path / "all" / name, system='"one"')
    summary = build_board(suite, tmp_path / "all", tmp_path / "out")
    reasons = {entry.name: entry.reason for entry in summary.refused}
    assert [*reasons] == ["pub", "pub4"]
    assert "unknown" in reasons["pub"]
    assert reasons["pub4"].startswith("the same system and version as pub3")
    assert summary.num_ranked == 1


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("exact", ["Exact", "\u0435\u0445\u0430\u0441t", "e\u0301xact", "\uff45xact"]),
        ("o1\u2013x", ["0l-x", "oI-x", "\u03bf1-x"]),
    ],
)
def test_names_that_read_alike_have_one_skeleton(name: str, others: list[str]) -> None:
    assert {skeleton(other) for other in others} == {skeleton(name)}
    assert len({skeleton(text) for text in ("gpt-4", "gpt-4.1", "gpt-41", "gpt 4", "gpt-4o")}) == 5


def test_reasons_name_no_folder_of_this_machine(board: tuple[BoardSummary, Path], suite: Path) -> None:
    texts = [entry.reason for entry in board[0].refused] + [(board[1] / "index.html").read_text()]
    assert [text for text in texts if str(suite.parent.parent) in text or "scratch" in text] == []


def test_only_honest_submissions_are_ranked_and_are_scored_again(board: tuple[BoardSummary, Path]) -> None:
    summary, site = board
    assert (summary.num_ranked, summary.damage) == (2, {})
    rows = {row["name"]: row for row in json.loads((site / "board.json").read_text())["rows"]}
    assert [name for name, row in rows.items() if not row["is_row"]] == ["honest", "boasts"]
    assert rows["honest"]["pools"]["questions"] == rows["exact"]["pools"]["questions"] | {
        "shard": "systems/honest/questions.json"
    }
    assert rows["honest"]["mean"] == pytest.approx(
        (rows["static"]["pools"]["detectors"]["rate"] + rows["exact"]["pools"]["questions"]["rate"]) / 2
    )
    assert rows["boasts"]["pools"]["questions"]["rate"] == 0.0
    assert rows["boasts"]["mean"] is None


def test_a_draft_has_the_items_rows_and_board_of_the_release(suite: Path, specification: Path, tmp_path: Path) -> None:
    for pool in read_specification(specification).pools:
        file = pool_path(suite, pool.name)
        for protocol in chosen_protocols(protocols_of(benchmark_of(file)), ",".join(pool.rows), {}):
            run(protocol, [file], tmp_path / "run")
    answered = {record.key: record for record in folder_records(tmp_path / "run")}
    draft_release(specification, tmp_path / "draft", answered)
    whole, draft = tree_digests(suite), tree_digests(tmp_path / "draft")
    differing = {name for name, digest in draft.items() if whole[name] != digest}
    assert differing == {f"public/{name}" for name in ("suite.json", SUMS)} | {f"gold/{SUMS}", "gold/certificates.json"}
    assert {name.split("/")[-2] for name in whole.keys() - draft.keys()} == {"public", "certificates", *POOLS}
    (tmp_path / "none").mkdir()
    for name, folder in (("whole", suite), ("drafted", tmp_path / "draft")):
        build_board(folder, tmp_path / "none", tmp_path / name)
    boards = [tree_digests(tmp_path / name) for name in ("whole", "drafted")]
    assert {name for name in boards[0] | boards[1] if boards[0].get(name) != boards[1].get(name)} == {
        f"{SITE}/{name}" for name in ("index.html", "board.json", SUMS)
    }
    del answered[next(iter(answered))]
    with pytest.raises(KeyError):
        draft_release(specification, tmp_path / "less", answered)


def test_a_board_is_the_same_by_other_processes(suite: Path, submissions: Path, tmp_path: Path) -> None:
    """With a limit of time, which is of a worker that can be killed."""
    some = tmp_path / "some"
    for name in ("honest", "boasts", "reading"):
        shutil.copytree(submissions / name, some / name)
    build_board(suite, some, tmp_path / "first")
    build_board(suite, some, tmp_path / "second", execution=Execution(1, 60.0))
    assert tree_digests(tmp_path / "first") == tree_digests(tmp_path / "second")
    assert differences(tmp_path / "first" / SITE) == {}


def test_every_cell_has_its_items_and_nothing_else(board: tuple[BoardSummary, Path]) -> None:
    site = board[1]
    index = (site / "index.html").read_text()
    for page in sorted(site.glob("*/*/*.html")):
        assert f'href="{page.relative_to(site).as_posix()}"' in index
        shard = json.loads(page.with_suffix(".json").read_text())
        assert len(shard["items"]) == {"detectors": 4, "questions": 3}[page.stem]
        assert all(f'id="{item["id"]}"' in page.read_text() for item in shard["items"])


def test_items_without_a_line_count_as_wrong(suite: Path, tmp_path: Path) -> None:
    lines = read(suite / "gold" / "rows" / "exact" / "questions.jsonl")
    file = tmp_path / "x.jsonl"
    judge = PoolJudge(suite / "gold" / "questions" / "questions.jsonl")
    write_lines(file, lines)
    assert judge.score_file(file).rate == 1
    write_lines(file, lines[:1])
    cell = judge.score_file(file)
    assert cell.rate == pytest.approx(1 / 3)
    assert (cell.num_answered, len(cell.items)) == (1, 3)
    two: list[dict[str, object]] = [lines[0], lines[0] | {"answer": {}}]
    write_lines(file, two)
    assert judge.score_file(file).rate == pytest.approx(1 / 6)
    failed = [{"instanceId": line["instanceId"], "error": {"code": "batch_expired"}} for line in lines]
    write_lines(file, [lines[0], *failed[1:]])
    assert judge.score_file(file).rate == pytest.approx(1 / 3)
    write_lines(file, failed)
    with pytest.raises(CalibrantError, match=r"nothing was run: not_run 3$"):
        judge.score_file(file)


def test_chance_and_best_are_those_of_the_table(board: tuple[BoardSummary, Path], suite: Path, tmp_path: Path) -> None:
    """Of episodes from a run, of questions from scored lines: both as the table prints them beside the same rates."""
    detectors, questions = (suite / "gold" / name / f"{name}.jsonl" for name in ("detectors", "questions"))
    scored, runs = tmp_path / "scored.jsonl", tmp_path / "runs"
    done = called("score", questions, suite / "gold/rows/copy/questions.jsonl", "--out", scored, "--workers", 1)
    assert done.returncode == 0, done.stderr
    assert called("run", "quiet", detectors, "--out", runs, "--workers", 1).returncode == 0
    rows = {row["name"]: row["pools"] for row in json.loads((board[1] / "board.json").read_text())["rows"]}
    for answers, pool, cell in (
        (scored, questions, rows["copy"]["questions"]),
        (runs, detectors, rows["quiet"]["detectors"]),
    ):
        table = json.loads(called("table", answers, "--attribution", "--pool", pool, "--json").stdout)["rows"]
        for name in ("chance", "best"):
            levels = [(row[name], row["answers"]) for row in table]
            assert cell[name] == pytest.approx(
                sum(level * number for level, number in levels) / sum(n for _, n in levels)
            )


def test_results_of_every_eval_ever_agree_and_bounds_are_kept(board: tuple[BoardSummary, Path]) -> None:
    (file,) = (board[1] / "every_eval_ever").rglob("honest/*.json")
    aggregate = json.loads(file.read_text())
    check_aggregate(aggregate)
    samples = board[1] / "every_eval_ever" / aggregate["detailed_evaluation_results"]["file_path"]
    assert samples.parent == file.parent  # its validator wants both in data/COLLECTION/DEVELOPER/MODEL
    assert sha256_of(samples) == aggregate["detailed_evaluation_results"]["checksum"]
    assert len(read(samples)) == aggregate["detailed_evaluation_results"]["total_rows"] == 7
    scores = {result["evaluation_name"]: result["score_details"]["score"] for result in aggregate["evaluation_results"]}
    assert scores[f"{SITE} questions rate"] == 1
    assert scores[f"{SITE} questions cost"] == 1.5
    for details in ({"score": 1.5}, {"details": {"a": 1}}):
        forged = json.loads(file.read_text())
        forged["evaluation_results"][0]["score_details"] |= details
        with pytest.raises(CalibrantError, match="Every Eval Ever"):
            check_aggregate(forged)
    with pytest.raises(CalibrantError, match="unknown field"):
        check_aggregate(aggregate | {"more": 1})


def _swap_gold(suite: Path) -> None:
    file = suite / "gold" / "detectors" / "detectors.jsonl"
    header, *lines = file.read_text().splitlines()
    records = [json.loads(line) for line in lines]
    records[0]["sealed"], records[1]["sealed"] = records[1]["sealed"], records[0]["sealed"]
    file.write_text("\n".join([header, *map(json.dumps, records)]) + "\n")


def _edit(pattern: str, before: str, after: str) -> Callable[[Path], None]:
    def change(suite: Path) -> None:
        file = min(suite.glob(pattern))
        text = file.read_text()
        assert before in text
        file.write_text(text.replace(before, after, 1))

    return change


CERTIFICATES = "gold/detectors/certificates/*"
DAMAGE: dict[str, tuple[Callable[[Path], object], set[str]]] = {
    "swapped gold": (_swap_gold, {"detectors"}),
    "edited certificate": (_edit(CERTIFICATES, "evidence", "evidence "), {"detectors"}),
    "missing certificate": (lambda suite: min(suite.glob(CERTIFICATES)).unlink(), {"detectors", "questions"}),
    "more certificates": (lambda suite: (suite / "gold/questions/certificates/x.json").write_text("{}"), {"questions"}),
    "changed item": (_edit("public/questions/items.jsonl", "item-", "item-0"), {"questions"}),
    "changed commitment": (_edit("public/commitments.json", '"root": "', '"root": "0'), {"detectors", "questions"}),
    "changed manifest": (_edit("public/suite.json", "Items for tests", "Items of tests"), {"detectors", "questions"}),
    "another master": (_edit("gold/master.key", "ab", "ac"), {"detectors", "questions"}),
    "changed audit": (_edit("gold/questions/audits.jsonl", "decided", "open"), {"questions"}),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("repaired", [False, True], ids=["as it is", "with new digests"])
def test_a_damaged_suite_is_not_ranked_by(name: str, repaired: bool, suite: Path, tmp_path: Path) -> None:
    """Also where the lists of digests were written anew: the commitments are in the manifest, which the list covers."""
    change, pools = DAMAGE[name]
    copy = tmp_path / "suite"
    shutil.copytree(suite, copy)
    change(copy)
    if repaired:
        write_sums(copy / "public")
        write_sums(copy / "gold")
    if repaired and name in ("changed item", "changed commitment", "changed manifest"):
        with pytest.raises(CalibrantError, match="another release"):  # whose digest differs from the published one
            open_suite(copy, expected=sha256_of(suite / "public" / "SHA256SUMS"))
        return
    opened = open_suite(copy)
    assert set(opened.damage) == pools
    assert {pool.name for pool in opened.sound_pools} == {"detectors", "questions"} - pools


def test_a_board_without_systems_says_why(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").mkdir()
    (tmp_path / "bad" / "empty").mkdir(parents=True)
    ends = {"none": (0, "There is no submission"), "bad": (1, "All that was submitted is refused, 1 in number")}
    for name, (code, reason) in ends.items():
        assert main(["board", str(suite), str(tmp_path / name), "--out", str(tmp_path / f"{name}-site")]) == code
        assert f"no system is ranked. {reason}" in capsys.readouterr().err
        assert reason in (tmp_path / f"{name}-site" / SITE / "index.html").read_text()


def test_a_damaged_row_is_red_and_a_damaged_pool_has_no_cells(suite: Path, submissions: Path, tmp_path: Path) -> None:
    copy, some = tmp_path / "suite", tmp_path / "some"
    shutil.copytree(suite, copy)
    shutil.copytree(submissions / "honest", some / "honest")
    _swap_gold(copy)
    (copy / "gold/rows/copy/questions.jsonl").write_text("")
    summary = build_board(copy, some, tmp_path / "out")
    assert set(summary.damage) == {"detectors"}
    assert [entry.name for entry in summary.refused] == ["copy"]
    rows = {row["name"]: row for row in json.loads((tmp_path / "out" / SITE / "board.json").read_text())["rows"]}
    assert {name: list(row["pools"]) for name, row in rows.items()} == {
        "honest": ["questions"],
        "exact": ["questions"],
        "quiet": [],
        "static": [],
    }
    assert (summary.num_ranked, summary.unscored) == (1, [])


def test_answers_to_damaged_pools_alone_are_not_ranked(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, submitted = tmp_path / "suite", honest(suite, tmp_path / "all" / "other", "static")
    shutil.copytree(suite, copy)
    _edit("public/suite.json", "Items for tests", "Items of tests")(copy)
    write(submitted / "questions.jsonl", [{"id": "of another benchmark", "answer": "x"}])
    write_card(submitted)
    assert main(["board", str(copy), str(tmp_path / "all"), "--out", str(tmp_path / "out")]) == 1
    reason = "Answers to damaged pools are not scored: other."
    assert f"0 systems ranked, 0 refused, 1 not scored\nno system is ranked. {reason}" in capsys.readouterr().err
    site = tmp_path / "out" / SITE
    rows = json.loads((site / "board.json").read_text())["rows"]
    assert {row["status"] for row in rows} == {"not scored"}
    page = (site / "index.html").read_text()
    assert reason in page
    assert "<td>rescored</td>" not in page
    assert "0 submitted systems" in page


def test_the_command_fails_where_something_is_red(suite: Path, submissions: Path, tmp_path: Path) -> None:
    some = tmp_path / "some"
    shutil.copytree(submissions / "reading", some / "reading")
    line = ["board", suite, some, "--out", tmp_path / "site", "--workers", "1", "--budget", "100"]
    done = called(*line, "--digest", sha256_of(suite / "public" / "SHA256SUMS"))
    assert done.returncode == 1
    assert done.stdout.startswith("red  reading: detectors.jsonl: line 1: step 0")
    assert called(*line).returncode == 2  # there already
    assert called(*line[:3], "--out", tmp_path / "x", "--digest", "0" * 64).returncode == 2


@needs_axe
def test_pages_are_accessible_and_fit_a_phone(board: tuple[BoardSummary, Path], suite: Path, tmp_path: Path) -> None:
    site = board[1]
    pages = [site / "index.html", site / "detectors.html", site / "systems/honest/detectors.html"]
    for index, page in enumerate([*pages, suite / "public" / "index.html"]):
        width = (DESKTOP, PHONE)[index % 2]
        measured = measure(page.read_text(), tmp_path, theme=THEMES[index // 2], width=width)
        assert (measured.violations, measured.requests) == ([], [])
        assert measured.scroll_width <= width


@needs_chromium
def test_a_board_is_in_order_sorts_by_every_column_and_shows_rate_and_status_on_a_phone(
    board: tuple[BoardSummary, Path],
) -> None:
    """Systems and rows of the suite are in the order of their rates; what has none stays last when sorted."""
    column = "((n) => [...document.querySelectorAll('.sortable tbody tr')].map((row) => row.cells[n].innerText.trim()))"
    with Tab() as tab:
        for page in ("index.html", "detectors.html"):
            tab.emulate(PHONE)
            tab.open((board[1] / page).as_uri())
            texts = tab.evaluate(f"{column}(1)")
            order = [(" of " in text, -float(text.split()[0])) for text in texts]  # 1.000 1 of 2 pools: below
            assert order == sorted(order)
            heads = tab.evaluate("document.querySelectorAll('.sortable thead th').length")
            assert heads == tab.evaluate("document.querySelectorAll('.sortable thead th > button').length") > 8
            for place in range(heads - 1):  # but the digest
                tab.evaluate(f"document.querySelectorAll('.sortable thead th > button')[{place}].click()")
                texts = [text for text in tab.evaluate(f"{column}({place})") if text != "\N{EN DASH}"]
                assert len(texts) == 0 or _is_sorted(texts), (page, place, texts)
        tab.emulate(DESKTOP)
        for page in ("detectors.html", "questions.html", "index.html"):
            tab.open((board[1] / page).as_uri())
            if page == "index.html":  # as of a suite of six pools
                tab.evaluate(
                    "document.querySelectorAll('.sortable tr').forEach((row) => row.cells[3].after("
                    "...[3, 4, 3, 4].map((place) => row.cells[place].cloneNode(true))))"
                )
            part = "document.querySelector('.scroll')"
            assert tab.evaluate(f"{part}.scrollWidth") <= tab.evaluate(f"{part}.clientWidth"), page
        tab.emulate(PHONE)
        tab.open((board[1] / "index.html").as_uri())
        ends = tab.evaluate(
            "[...document.querySelectorAll('.sortable tbody tr')].map((r) => r.cells[2].getBoundingClientRect().right)"
        )
        assert max(ends) <= PHONE
        assert tab.evaluate("document.querySelectorAll('.anchor').length") >= 2
        tab.evaluate("document.querySelector('.anchor').click()")
        assert tab.evaluate("location.hash") == "#systems"


def _is_sorted(texts: Sequence[str]) -> bool:
    numbers = [float(match[0]) for text in texts if (match := re.match(r"[\d.]+(?![\w.-])", text))]
    if len(numbers) == len(texts):
        return numbers == sorted(numbers)
    return [text.casefold() for text in texts] == sorted(text.casefold() for text in texts)


# --- A submission that the command writes is one that a board reads; what a release names as next works when pasted ---
STATED = ("--system", 'gr\u00f6\u00dfer "5" \\\\', "--system-version", "1", "--submitter", "A. Submitter")


def _line(suite: Path, out: Path, *more: object) -> list[str]:
    answers = suite / "gold" / "rows" / "exact" / "questions.jsonl"
    return list(map(str, ["submission", suite, answers, *STATED, "--date", "2026-03-04", "--out", out, *more]))


def test_what_a_release_names_as_next_works(
    suite: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """As its user types it: a folder of certificates, and the line after the submission."""
    monkeypatch.chdir(tmp_path)
    manifest = read_manifest(suite)
    commands = list_next_commands(suite, manifest)
    assert [command.words[0] for command in commands] == ["verify", "verify", "submission"]
    for command in commands[1:]:
        assert main(list(map(str, command.words))) == 0
    assert "ok       " in capsys.readouterr().out
    (submission,) = read_submissions(tmp_path / "submissions", manifest, _folder(tmp_path / "scratch"))
    assert isinstance(submission, Submission)
    assert submission.card.system == "my-system"
    capsys.readouterr()
    for number in (2, 3):  # a board is not red after what the one before named
        assert main(["board", str(suite), "submissions", "--out", f"site-{number}"]) == 0
        pasted = [line.partition("calibrant ")[2] for line in NEXT.findall(capsys.readouterr().err)]
        assert [line.split()[0] for line in pasted] == ["verify", "verify", "submission"]
        for line in pasted[1:]:
            assert main(shlex.split(line)) == 0
        card = tmp_path / "submissions" / "my-system-2" / "card.toml"
        assert tomllib.loads(card.read_text("utf-8"))["version"] == str(number)
        card.parent.rename(tmp_path / "submissions" / f"folder-{number}")
        capsys.readouterr()
    assert main(["board", str(suite), "submissions", "--out", "site-4"]) == 0


def test_the_card_says_what_was_stated(suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "all" / "mine"
    assert main(_line(suite, out, "--cost", "1.5", "--currency", "USD", "--relationship", "first_party")) == 0
    assert f"board {suite} {out.parent} --out site" in " ".join(capsys.readouterr().err.split())
    _, hint = refusal(capsys, *_line(suite, out))
    assert shlex.split(hint)[-1] == str(tmp_path / "all" / "mine-2")
    answers = (out / "questions.jsonl").read_bytes()
    assert answers == (suite / "gold" / "rows" / "exact" / "questions.jsonl").read_bytes()
    card = tomllib.loads((out / "card.toml").read_text(encoding="utf-8"))
    assert (card["system"], card["version"], card["submitter"]) == STATED[1::2]
    assert (card["suite"], card["suite_version"]) == ("two-pools", "1.0")
    assert (str(card["date"]), card["cost"], card["currency"]) == ("2026-03-04", 1.5, "USD")
    assert card["relationship"] == "first_party"
    assert card["files"] == {"questions.jsonl": sha256(answers).hexdigest()}


def test_what_no_board_would_take_is_refused_and_nothing_is_left(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "mine"
    other = tmp_path / "answers.jsonl"
    shutil.copyfile(suite / "gold" / "rows" / "exact" / "questions.jsonl", other)
    line = _line(suite, out)
    twice = [*line[:3], line[2], *line[3:]]
    assert "the pool that it answers: detectors.jsonl or questions.jsonl" in refused(
        capsys, *line[:2], other, *line[3:]
    )
    assert "a second file for the same pool" in refused(capsys, *twice)
    mixed = _folder(tmp_path / "mixed") / "questions.jsonl"
    first, second, *_ = map(json.loads, other.read_text("utf-8").splitlines())
    batch = {"result": {"type": "succeeded", "message": {"role": "assistant", "model": "n", "content": []}}}
    for lines in (
        [first | {"model": "m"}, second | {"model": "n"}],
        [first | {"model": "m"}, {"custom_id": "x", **batch}],
    ):
        mixed.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        said = refused(capsys, *line[:2], mixed, *line[3:])
        assert "questions.jsonl: line 2: lines of several models: 'm', 'n'; a submission is of one" in said
    shutil.rmtree(mixed.parent)
    assert "are given together" in refused(capsys, *line, "--cost", "1")
    assert "three capital letters" in refused(capsys, *line, "--cost", "1", "--currency", "dollars")
    assert "spaces or characters that are not shown" in refused(capsys, *line, "--developer", " \n")
    assert "is not called" in refused(capsys, *line, "--submitter", "row of the suite")
    assert "no public/suite.json in it" in refused(capsys, line[0], tmp_path, *line[2:])
    assert [path.name for path in tmp_path.iterdir()] == [other.name]
    out.mkdir()
    (out / "mine").touch()
    assert "there already" in refused(capsys, *line)


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_a_folder_without_certificates_is_refused(
    suite: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pool = suite / "gold" / "detectors" / "detectors.jsonl"
    assert "no certificate in it" in refused(capsys, "verify", tmp_path, pool)
