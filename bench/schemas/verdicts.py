"""What a line of `calibrant score` holds. The published scorer's keys that do not apply to an answer are absent."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType


class Mismatch(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The first cell that is replayed wrongly, in the order of worlds, rows and evaluation.

    world_id: the world; row_index: its row, from 0; variable: the column
    predicted: the value that the answer computes; expected: the value in the file
    """

    world_id: str
    row_index: int
    variable: str
    predicted: int
    expected: int


class MechanismStats(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """One submitted mechanism.

    ast_size: nodes of the formula, an n-ary operator counts once; max_depth: levels of the formula
    parent_count: how many variables it mentions; variables: which ones, natural order
    operator_counts: operator -> how often it occurs; contains_if: whether `if` does
    """

    ast_size: int
    max_depth: int
    parent_count: int
    operator_counts: dict[str, int]
    contains_if: bool
    variables: list[str]


class CandidateStats(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The submitted mechanisms together.

    ast_size, parent_count: sums over mechanisms; max_depth: the largest; equation_count: how many mechanisms
    operator_counts: operator -> how often it occurs; parents_by_var: variable -> what its mechanism mentions
    per_variable: variable -> its mechanism
    """

    ast_size: int
    max_depth: int
    parent_count: int
    operator_counts: dict[str, int]
    equation_count: int
    per_variable: dict[str, MechanismStats]
    parents_by_var: dict[str, list[str]]


class Funnel(msgspec.Struct, forbid_unknown_fields=True):
    """The stages of validity that the answer passed (paper, Table C.1).

    extracted: an object was found; schema: of the task's shape; keys: mechanisms for exactly the right variables
    parse: every mechanism is a formula; legal: it mentions admissible parents only; acyclic: mentions form no circle
    """

    extracted: bool
    schema: bool
    keys: bool
    parse: bool
    legal: bool
    acyclic: bool


class Structure(msgspec.Struct, forbid_unknown_fields=True):
    """Functional parents and local functions against gold.

    precision, recall, f1: over directed edges; shd: additions, deletions and reversals
    variable_exact: share of endogenous variables with exactly gold's parents; exact_map: all of them
    local_match: share of endogenous variables with gold's local function
    """

    precision: float
    recall: float
    f1: float
    shd: int
    variable_exact: float
    exact_map: bool
    local_match: float


class VerdictLine(msgspec.Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The verdict on one prediction: the published scorer's keys, then where it belongs.

    model: who answered; null if the prediction names nobody; sample: number among that model's answers to the item
    valid: the answer can be replayed; correct: full task success; task_name: what was asked, the benchmark's name of it
    failure_explanation: why not valid, or in which respect a valid answer fails beyond a wrong map; null otherwise
    parse_error: what is wrong with the first mechanism that is no formula; stage: the stage of validity that it failed
    unknown_mechanism_keys, missing_mechanism_keys, expected_keys: of an answer with the wrong keys
    cycle_variables: the variables that no order can place; predicted_roots, gold_roots: latent order
    train_exact: every scored training cell is right, and there is one
    heldout_exact: train-exact, and every scored held-out cell is right; heldout_all_worlds_exact: the latter alone
    train_accuracy, heldout_accuracy: right cells over scored cells
    train_world_exact_accuracy, heldout_world_exact_accuracy: exact worlds over worlds with scored cells
    train_worlds, heldout_worlds: worlds with scored cells
    train_world_exact_count, heldout_world_exact_count: how many of them are exact
    first_train_mismatch, first_heldout_mismatch: the first wrong cell; null where none is
    per_variable_train_accuracy, per_variable_heldout_accuracy: variable -> right cells over scored cells
    gold_ast_size: total formula size of gold as the file states it
    acc_gold_plus: `delta_d` -> train-exact with a size of at most gold's plus d
    bloat: train-exact and larger than gold by more than 25; candidate_stats: sizes of the answer
    root_set_exact, root_precision, root_recall: the predicted root set against the true one, where roots are hidden
    mechanism_train_exact, mechanism_heldout_exact, mechanism_heldout_all_worlds_exact: whatever the root set is
    alt_valid, alt_train_exact, alt_heldout_exact: of the alternative, where one is asked for
    alt_train_world_exact_accuracy, alt_heldout_world_exact_accuracy: of the alternative
    alt_semantically_distinct: it means something else than the reference; alt_success: that, and train-exact
    experiment_valid: the experiment is a single-variable intervention; experiment: which
    witness_provided, witness_valid: a root assignment was given, and it shows the difference
    pair_separates, experiment_resolves: the experiment tells the two apart
    pair_disagreement_rate: share of root assignments on which they differ; cell_difference_rate: share of cells
    best_pairwise_experiment: the intervention that separates most
    best_pairwise_disagreement_rate, best_pairwise_cell_difference_rate: its rates
    experiment_optimality: rate of the experiment over rate of the best; joint_success: alternative, experiment, witness
    pool_digest: SHA-256 of what the pool's file holds, decompressed
    strict_json: the response was one JSON object on one line; null if no text was given
    funnel: the stages of validity; structure: metrics against gold, where they are asked for and defined
    meaning: the same for answers of one meaning, by which samples are put together; seconds: what the answer took
    """

    instance_id: str
    model: str | None = None
    sample: int | UnsetType = UNSET
    valid: bool
    correct: bool
    task_name: str
    failure_explanation: str | None
    parse_error: str | None
    stage: str | UnsetType = UNSET
    unknown_mechanism_keys: list[str] | UnsetType = UNSET
    missing_mechanism_keys: list[str] | UnsetType = UNSET
    expected_keys: list[str] | UnsetType = UNSET
    cycle_variables: list[str] | UnsetType = UNSET
    predicted_roots: list[str] | UnsetType = UNSET
    gold_roots: list[str] | UnsetType = UNSET
    train_exact: bool | UnsetType = UNSET
    train_accuracy: float | UnsetType | None = UNSET
    train_world_exact_accuracy: float | UnsetType | None = UNSET
    train_worlds: int | UnsetType = UNSET
    train_world_exact_count: int | UnsetType = UNSET
    heldout_exact: bool | UnsetType = UNSET
    heldout_all_worlds_exact: bool | UnsetType = UNSET
    heldout_accuracy: float | UnsetType | None = UNSET
    heldout_world_exact_accuracy: float | UnsetType | None = UNSET
    heldout_worlds: int | UnsetType = UNSET
    heldout_world_exact_count: int | UnsetType = UNSET
    first_train_mismatch: Mismatch | UnsetType | None = UNSET
    first_heldout_mismatch: Mismatch | UnsetType | None = UNSET
    per_variable_train_accuracy: dict[str, float | None] | UnsetType = UNSET
    per_variable_heldout_accuracy: dict[str, float | None] | UnsetType = UNSET
    gold_ast_size: int | UnsetType | None = UNSET
    acc_gold_plus: dict[str, bool] | UnsetType | None = UNSET
    bloat: bool | UnsetType | None = UNSET
    candidate_stats: CandidateStats | UnsetType = UNSET
    root_set_exact: bool | UnsetType = UNSET
    root_precision: float | UnsetType | None = UNSET
    root_recall: float | UnsetType | None = UNSET
    mechanism_train_exact: bool | UnsetType = UNSET
    mechanism_heldout_exact: bool | UnsetType = UNSET
    mechanism_heldout_all_worlds_exact: bool | UnsetType = UNSET
    alt_valid: bool | UnsetType = UNSET
    alt_train_exact: bool | UnsetType = UNSET
    alt_heldout_exact: bool | UnsetType = UNSET
    alt_train_world_exact_accuracy: float | UnsetType | None = UNSET
    alt_heldout_world_exact_accuracy: float | UnsetType | None = UNSET
    alt_semantically_distinct: bool | UnsetType = UNSET
    alt_success: bool | UnsetType = UNSET
    experiment_valid: bool | UnsetType = UNSET
    experiment: Any = UNSET
    witness_provided: bool | UnsetType = UNSET
    witness_valid: bool | UnsetType | None = UNSET
    pair_separates: bool | UnsetType = UNSET
    experiment_resolves: bool | UnsetType = UNSET
    pair_disagreement_rate: float | UnsetType = UNSET
    cell_difference_rate: float | UnsetType = UNSET
    experiment_optimality: float | UnsetType | None = UNSET
    best_pairwise_experiment: dict[str, Any] | UnsetType = UNSET
    best_pairwise_disagreement_rate: float | UnsetType = UNSET
    best_pairwise_cell_difference_rate: float | UnsetType = UNSET
    joint_success: bool | UnsetType = UNSET
    pool: str
    pool_digest: str
    pool_size: int
    setting: str
    stratum: str
    meaning: str | UnsetType | None = UNSET
    seconds: float | UnsetType | None = UNSET
    strict_json: bool | None
    funnel: Funnel
    structure: Structure | UnsetType | None = UNSET
