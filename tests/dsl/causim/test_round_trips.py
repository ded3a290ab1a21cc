"""Program, canonical model, program; model, sentences, model; files written and read; prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from calibrant.dsl.causim.bundle import Bundle, bundle_of, load_bundle, load_source, module_text
from calibrant.dsl.causim.model import ModelError
from calibrant.dsl.causim.prompt import prompt, prose, read_prose, same_model
from calibrant.dsl.causim.question import QuestionRecord, question_from_record, record_of
from calibrant.dsl.causim.records import (
    ExpectedOutput,
    Instance,
    QueryFile,
    QueryMeta,
    Scm,
    query_path,
    read_queries,
    read_states,
    write_queries,
    write_states,
)
from calibrant.dsl.errors import PoolError
from tests.support.causim.models import bundles, models, questions, vectors


def test_a_program_written_from_the_canonical_model_has_that_model() -> None:
    for model in models().values():
        assert same_model(load_bundle(bundle_of(model)), model)


def test_sentences_are_read_back_to_the_same_model() -> None:
    for model in models().values():
        assert same_model(read_prose(prose(model)), model)


def test_different_models_are_told_apart() -> None:
    one, other = load_source(_coin("1, 2")), load_source(_coin("1, 3"))
    assert same_model(one, one)
    assert not same_model(one, other)


def test_values_that_python_takes_for_equal_stay_apart_in_a_written_program() -> None:
    source = _coin("1, 1.0, True, '1'").replace("return u_a", "return str([u_a])")
    model = load_source(source)
    assert len(model.system[0].domain) == 4
    assert same_model(load_source(module_text(bundle_of(model))), model)


def _coin(values: str) -> str:
    return (
        f"import random\ndef U_A():\n    return random.choice([{values}])\ndef f_A(u_a):\n    return u_a\n"
        "def run_once(seed=None):\n    u = U_A()\n    a = f_A(u)\n    return {'A': a}\n"
    )


NOISE = 'The noise "U_A" is 1 with probability 1.\n'


@pytest.mark.parametrize(
    "text",
    [
        'The noise "U_A" is 1 with probability 1/2.',
        'The noise "U_A" is 1 with probability 1/1',
        'The variable "A" follows from its noise "U_A": it is always 1.',
        NOISE + 'The variable "A" follows from "B" and its noise "U_A": it is always 1.',
        NOISE + 'The variable "A" follows from its noise "U_A": it is 2 if "C" is 1, and 1 otherwise.',
        "Something else.",
        'The noise "U_A" is ' + "[" * 100_000,
    ],
)
def test_other_sentences_are_refused_in_one_line(text: str) -> None:
    with pytest.raises(ModelError) as refusal:
        read_prose(text)
    assert "\n" not in str(refusal.value)


def test_bundles_that_contradict_their_programs_are_refused() -> None:
    bundle = bundles()["paper-b"]
    load_bundle(bundle)
    for changed in (
        {"v": 4},
        {"graph": bundles()["paper-a"].graph},
    ):
        fields = {name: getattr(bundle, name) for name in Bundle.__struct_fields__}
        with pytest.raises(ModelError):
            load_bundle(Bundle(**(fields | changed)))


def test_state_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    scms = [Scm("one", [bundles()["paper-a"], bundles()["paper-b"]]), Scm("two", [bundles()["paper-cancer"]])]
    write_states(tmp_path / "states.json", scms)
    assert read_states(tmp_path / "states.json") == scms


def test_query_files_lie_where_the_paper_puts_them_and_are_read_as_written(tmp_path: Path) -> None:
    record = next(record for record in vectors("question") if record["type"] == "counterfactual")
    _, question = questions()[record["id"]]
    given = record_of(question)
    expected = ExpectedOutput(record["expect"]["answers"], record["required_keys"], record["expect"]["size"], True)
    instance = Instance(
        7, given.fixed_exogenous, given.unknown_exogenous, given.do, given.observed_endogenous, expected
    )
    queries = QueryFile(QueryMeta("0001", 3, "counterfactual", "stochastic"), [instance])
    path = write_queries(tmp_path, queries)
    place = "scm_0001/causal_queries/counterfactual/stochastic/causal_queries_v3.json"
    assert path == tmp_path / place
    assert read_queries(path) == queries


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", '{"scms": 3}', '{"scms": [{"scm_id": "../x", "history": []}]}', "[" * 10**5]
)
def test_other_files_are_refused_with_their_name(tmp_path: Path, content: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(content)
    with pytest.raises(PoolError, match=r"^state\.json: "):
        read_states(path)


def test_no_id_leads_out_of_the_folder(tmp_path: Path) -> None:
    with pytest.raises(PoolError, match="scm_id"):
        query_path(tmp_path, QueryMeta("../../x", 1, "deduction", "deterministic"))


def test_prompts_hold_everything_that_is_given_and_nothing_of_the_answer() -> None:
    for record in vectors("question"):
        model, question = questions()[record["id"]]
        if record["program"] == "paper-cancer":
            continue
        source = module_text(bundles()[record["program"]], comments=False)
        for view in ("code", "prose"):
            text = prompt(model, question, record["scenario"], source=source, view=view)
            for name, value in {**question.fixed, **question.do, **question.observed}.items():
                assert f'"{name}":{value}' in text
            assert (source.rstrip() in text) is (view == "code")
            assert text.rstrip().endswith("one JSON object with exactly these keys.")


def test_names_of_questions_count_in_any_case_that_fits_one_name() -> None:
    model = models()["paper-a"]
    given = QuestionRecord({}, ["u_zy"], {"zy": "x"}, {"Zy": True})
    question = question_from_record(given, "counterfactual", model)
    assert (question.unknown, question.do, question.observed) == (("U_ZY",), {"ZY": '"x"'}, {"ZY": "true"})
    with pytest.raises(ModelError, match=r"do: .*two cases"):
        question_from_record(QuestionRecord({}, ["U_ZY"], {"zy": 1, "ZY": 1}, {}), "intervention", model)
    twins = next(model for model in models().values() if len({name.lower() for name in model.names}) < len(model))
    name = next(one for one in twins.names if sum(one.lower() == other.lower() for other in twins.names) == 2)
    with pytest.raises(ModelError, match="do"):
        question_from_record(QuestionRecord({}, list(twins.noises), {_other_case(name): 1}, {}), "intervention", twins)


def _other_case(name: str) -> str:
    """Return the name in a case that is neither all small nor all capital letters, nor capitalised."""
    return "".join(letter.upper() if k % 2 else letter.lower() for k, letter in enumerate(name))
