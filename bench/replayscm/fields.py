"""The fields of a line of `calibrant score` for ReplaySCM: the published scorer's keys, then pool and item.

The published scorer's keys that do not apply to an answer are absent.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, field

from calibrant.bench.core import verdict
from calibrant.bench.replayscm.appendix.metrics import Overlap

# UNSET: the key does not apply and is absent. None: null in JSON, for an undefined value, such as a share of no cells,
# or a comparison with gold where the file has none.
Flag: TypeAlias = bool | UnsetType
FlagIfKnown: TypeAlias = bool | UnsetType | None
Share: TypeAlias = float | UnsetType | None
Names: TypeAlias = list[str] | UnsetType


class Mismatch(Struct, rename="camel", forbid_unknown_fields=True):
    """The first cell that is replayed wrongly, in the order of worlds, rows and evaluation."""

    world_id: Annotated[str, Meta(description="the world")]
    row_index: Annotated[int, Meta(description="its row, from 0")]
    variable: Annotated[str, Meta(description="the column")]
    predicted: Annotated[int, Meta(description="the value that the answer computes")]
    expected: Annotated[int, Meta(description="the value in the file")]


class MechanismStats(Struct, rename="camel", forbid_unknown_fields=True):
    """One submitted mechanism."""

    ast_size: Annotated[int, Meta(description="nodes of the formula, an n-ary operator counts once")]
    max_depth: Annotated[int, Meta(description="levels of the formula")]
    parent_count: Annotated[int, Meta(description="how many variables it mentions")]
    operator_counts: Annotated[dict[str, int], Meta(description="operator -> how often it occurs")]
    contains_if: Annotated[bool, Meta(description="whether `if` does")]
    # variables: those that it mentions; contains_if: whether the operator `if` occurs
    variables: Annotated[list[str], Meta(description="which ones, natural order")]


class CandidateStats(Struct, rename="camel", forbid_unknown_fields=True):
    """The submitted mechanisms together."""

    # all are sums over mechanisms, but the depth is that of the deepest one
    ast_size: Annotated[int, Meta(description="sums over mechanisms")]
    max_depth: Annotated[int, Meta(description="the largest")]
    parent_count: Annotated[int, Meta(description="sums over mechanisms")]
    operator_counts: Annotated[dict[str, int], Meta(description="operator -> how often it occurs")]
    equation_count: Annotated[int, Meta(description="how many mechanisms")]
    per_variable: Annotated[dict[str, MechanismStats], Meta(description="variable -> its mechanism")]
    parents_by_var: Annotated[dict[str, list[str]], Meta(description="variable -> what its mechanism mentions")]


class Funnel(Struct, forbid_unknown_fields=True):
    """The stages of validity that the answer passed (paper, Table C.1)."""

    extracted: Annotated[bool, Meta(description="an object was found")]
    schema: Annotated[bool, Meta(description="of the task's shape")]
    keys: Annotated[bool, Meta(description="mechanisms for exactly the right variables")]
    parse: Annotated[bool, Meta(description="every mechanism is a formula")]
    legal: Annotated[bool, Meta(description="it mentions admissible parents only")]
    acyclic: Annotated[bool, Meta(description="mentions form no circle")]


class Structure(Struct, forbid_unknown_fields=True):
    """Functional parents and local functions against gold."""

    # functional parents are those that the truth table depends on; a formula may mention others
    precision: Annotated[float, Meta(description="over directed edges")]
    recall: Annotated[float, Meta(description="over directed edges")]
    f1: Annotated[float, Meta(description="over directed edges")]
    shd: Annotated[int, Meta(description="additions, deletions and reversals")]
    variable_exact: Annotated[float, Meta(description="share of endogenous variables with exactly gold's parents")]
    # true if variable_exact is 1: the graph is exact, the functions need not be
    exact_map: Annotated[bool, Meta(description="all of them")]
    local_match: Annotated[float, Meta(description="share of endogenous variables with gold's local function")]


class Regret(Struct, rename="camel", forbid_unknown_fields=True):
    """The loss of a world that was asked for, against the best candidate."""

    value: Annotated[float, Meta(description="its expected share left, under noise its expected bits")]
    best: Annotated[float, Meta(description="that of the best candidate")]
    regret: Annotated[float, Meta(description="the difference, at least 0")]
    exact: Annotated[bool, Meta(description="by listing; otherwise estimated from draws")]
    standard_error: Annotated[float | None, Meta(description="of an estimated difference; null where it is exact")]


class AttributionFields(Struct, forbid_unknown_fields=True):
    """Whether the evidence decided the clean held-out behaviour."""

    kind: Annotated[str, Meta(description="earned, missed, lucky or short")]
    decided: Annotated[bool, Meta(description="all members agree; under noise, a behaviour has at least 0.99")]
    fits: Annotated[bool | None, Meta(description="the answer agrees with all evidence; null under noise")]
    members: Annotated[str, Meta(description="SCMs of positive posterior")]
    class_: Annotated[str, Meta(description="the class")] = field(name="class")
    posterior: Annotated[
        float | UnsetType, Meta(description="of the top behaviour, under noise: exact, or the lower end of an interval")
    ] = UNSET
    posterior_upper: Annotated[
        float | UnsetType, Meta(description="its upper end, where a more probable behaviour is not excluded")
    ] = UNSET
    top_true: Annotated[
        bool | UnsetType | None,
        Meta(description="whether that behaviour is gold's, under noise; null without gold, and beside an interval"),
    ] = UNSET


class VerdictLine(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """The verdict on one prediction: the published scorer's keys, then where it belongs."""

    instance_id: Annotated[str, Meta(description="id of the item")]
    model: Annotated[str | None, Meta(description="who answered; null if the prediction names no model")] = None
    sample: Annotated[int | UnsetType, Meta(description="number among that model's answers to the item")] = UNSET
    template: verdict.Template = UNSET
    valid: Annotated[bool, Meta(description="the answer can be replayed")]
    correct: Annotated[
        bool | None,
        Meta(
            description="published task success: train-exact, with the root set where roots are hidden; joint success"
            " of Alternative-SCM; not what is called right (docs/metrics.md); of extended items what is called right,"
            " null where nothing is held out"
        ),
    ]
    task_name: Annotated[str, Meta(description="what was asked, the benchmark's name of it")]
    failure_explanation: Annotated[
        str | None,
        Meta(description="why not valid, or in which respect a valid answer fails beyond a wrong map; null otherwise"),
    ]
    parse_error: Annotated[str | None, Meta(description="what is wrong with the first mechanism that is no formula")]
    stage: Annotated[str | UnsetType, Meta(description="the stage of validity that it failed")] = UNSET
    unknown_mechanism_keys: Annotated[Names, Meta(description="of an answer with the wrong keys")] = UNSET
    missing_mechanism_keys: Annotated[Names, Meta(description="of an answer with the wrong keys")] = UNSET
    expected_keys: Annotated[Names, Meta(description="of an answer with the wrong keys")] = UNSET
    cycle_variables: Annotated[Names, Meta(description="the variables that no order can place")] = UNSET
    # in the order of the latent SCM's variables, not that of the answer
    predicted_roots: Annotated[Names, Meta(description="latent order")] = UNSET
    gold_roots: Annotated[Names, Meta(description="latent order")] = UNSET
    train_exact: Annotated[Flag, Meta(description="every scored training cell is right, and there is one")] = UNSET
    train_accuracy: Annotated[Share, Meta(description="right cells over scored cells")] = UNSET
    train_world_exact_accuracy: Annotated[Share, Meta(description="exact worlds over worlds with scored cells")] = UNSET
    train_worlds: Annotated[int | UnsetType, Meta(description="worlds with scored cells")] = UNSET
    train_world_exact_count: Annotated[int | UnsetType, Meta(description="how many of them are exact")] = UNSET
    # null of extended items without held-out worlds
    heldout_exact: Annotated[FlagIfKnown, Meta(description="train-exact, and every scored held-out cell is right")] = (
        UNSET
    )
    # heldout_exact without the condition train-exact
    heldout_all_worlds_exact: Annotated[FlagIfKnown, Meta(description="the latter alone")] = UNSET
    heldout_accuracy: Annotated[Share, Meta(description="right cells over scored cells")] = UNSET
    heldout_world_exact_accuracy: Annotated[Share, Meta(description="exact worlds over worlds with scored cells")] = (
        UNSET
    )
    heldout_worlds: Annotated[int | UnsetType, Meta(description="worlds with scored cells")] = UNSET
    nothing_held_out: Annotated[
        bool | UnsetType, Meta(description="no cell of the item is held out: no answer to it is right or wrong")
    ] = UNSET
    heldout_world_exact_count: Annotated[int | UnsetType, Meta(description="how many of them are exact")] = UNSET
    first_train_mismatch: Annotated[
        Mismatch | UnsetType | None, Meta(description="the first wrong cell; null where none is")
    ] = UNSET
    first_heldout_mismatch: Annotated[
        Mismatch | UnsetType | None, Meta(description="the first wrong cell; null where none is")
    ] = UNSET
    per_variable_train_accuracy: Annotated[
        dict[str, float | None] | UnsetType, Meta(description="variable -> right cells over scored cells")
    ] = UNSET
    per_variable_heldout_accuracy: Annotated[
        dict[str, float | None] | UnsetType, Meta(description="variable -> right cells over scored cells")
    ] = UNSET
    gold_ast_size: Annotated[
        int | UnsetType | None, Meta(description="total formula size of gold as the file states it")
    ] = UNSET
    acc_gold_plus: Annotated[
        dict[str, bool] | UnsetType | None,
        Meta(description="`delta_d` -> train-exact with a size of at most gold's plus d"),
    ] = UNSET
    bloat: Annotated[FlagIfKnown, Meta(description="train-exact and larger than gold by more than 25")] = UNSET
    candidate_stats: Annotated[CandidateStats | UnsetType, Meta(description="sizes of the answer")] = UNSET
    # whether the sets are equal, then precision and recall of the predicted one
    root_set_exact: Annotated[
        Flag, Meta(description="the predicted root set against the true one, where roots are hidden")
    ] = UNSET
    root_precision: Annotated[
        Share, Meta(description="the predicted root set against the true one, where roots are hidden")
    ] = UNSET
    root_recall: Annotated[
        Share, Meta(description="the predicted root set against the true one, where roots are hidden")
    ] = UNSET
    mechanism_train_exact: Annotated[Flag, Meta(description="whatever the root set is")] = UNSET
    mechanism_heldout_exact: Annotated[Flag, Meta(description="whatever the root set is")] = UNSET
    mechanism_heldout_all_worlds_exact: Annotated[Flag, Meta(description="whatever the root set is")] = UNSET
    alt_valid: Annotated[Flag, Meta(description="of the alternative, where one is asked for")] = UNSET
    alt_train_exact: Annotated[Flag, Meta(description="of the alternative, where one is asked for")] = UNSET
    alt_heldout_exact: Annotated[Flag, Meta(description="of the alternative, where one is asked for")] = UNSET
    alt_train_world_exact_accuracy: Annotated[Share, Meta(description="of the alternative")] = UNSET
    alt_heldout_world_exact_accuracy: Annotated[Share, Meta(description="of the alternative")] = UNSET
    alt_semantically_distinct: Annotated[Flag, Meta(description="it means something else than the reference")] = UNSET
    # alt_semantically_distinct and train-exact
    alt_success: Annotated[Flag, Meta(description="that, and train-exact")] = UNSET
    experiment_valid: Annotated[Flag, Meta(description="the experiment is a single-variable intervention")] = UNSET
    # the experiment as parsed; what was submitted where it is malformed
    experiment: Annotated[Any, Meta(description="which")] = UNSET
    # witness_provided: an object was given; witness_valid: it also shows a difference under the experiment
    witness_provided: Annotated[Flag, Meta(description="a root assignment was given, and it shows the difference")] = (
        UNSET
    )
    witness_valid: Annotated[
        FlagIfKnown, Meta(description="a root assignment was given, and it shows the difference")
    ] = UNSET
    # the published scorer states one value under two keys
    pair_separates: Annotated[Flag, Meta(description="the experiment tells the two apart")] = UNSET
    experiment_resolves: Annotated[Flag, Meta(description="the experiment tells the two apart")] = UNSET
    pair_disagreement_rate: Annotated[
        float | UnsetType, Meta(description="share of root assignments on which they differ")
    ] = UNSET
    # differing cells over compared ones (non-target endogenous variables under all root assignments)
    cell_difference_rate: Annotated[float | UnsetType, Meta(description="share of cells")] = UNSET
    experiment_optimality: Annotated[Share, Meta(description="rate of the experiment over rate of the best")] = UNSET
    best_pairwise_experiment: Annotated[
        dict[str, Any] | UnsetType, Meta(description="the intervention that separates most")
    ] = UNSET
    # the two rates above, of the best experiment instead of the submitted one
    best_pairwise_disagreement_rate: Annotated[float | UnsetType, Meta(description="its rates")] = UNSET
    best_pairwise_cell_difference_rate: Annotated[float | UnsetType, Meta(description="its rates")] = UNSET
    train_match: Annotated[
        Share, Meta(description="under noise, share of free training cells that agree, by observed parents")
    ] = UNSET
    ast_size: Annotated[int | UnsetType, Meta(description="of an extended item: total formula size")] = UNSET
    brier: Annotated[Share, Meta(description="Brier score of a forecast against gold's exact law")] = UNSET
    log_loss: Annotated[Share, Meta(description="logarithmic score of a forecast, bits a cell")] = UNSET
    excess_brier: Annotated[Share, Meta(description="the former above that of the law itself")] = UNSET
    excess_log_loss: Annotated[Share, Meta(description="the latter above that of the law itself")] = UNSET
    favoured: Annotated[
        Flag, Meta(description="of a forecast: of every cell the more probable value has more than 1/2")
    ] = UNSET
    worlds: Annotated[int | UnsetType, Meta(description="of an episode: that were asked for")] = UNSET
    refusals: Annotated[int | UnsetType, Meta(description="of an episode: refused actions")] = UNSET
    members_left: Annotated[
        str | UnsetType | None, Meta(description="of an episode: SCMs of positive posterior; null out of budget")
    ] = UNSET
    bits_left: Annotated[Share, Meta(description="of an episode without noise: logarithm of membersLeft")] = UNSET
    premature: Annotated[
        FlagIfKnown,
        Meta(description="submitted with worlds left, while one split the members; under noise, while undecided"),
    ] = UNSET
    excess: Annotated[
        int | UnsetType, Meta(description="worlds above the clairvoyant minimum, where the floor was reached")
    ] = UNSET
    short_of_floor: Annotated[str | UnsetType, Meta(description="members above the floor, where it was not")] = UNSET
    regret: Annotated[list[Regret] | UnsetType, Meta(description="of each world, where it is asked for")] = UNSET
    joint_success: Annotated[Flag, Meta(description="alternative, experiment, witness")] = UNSET
    pool: Annotated[str, Meta(description="name of the pool")]
    pool_digest: Annotated[str, Meta(description="SHA-256 of what the pool's file holds, decompressed")]
    pool_size: Annotated[int, Meta(description="how many items the pool has")]
    setting: Annotated[
        str, Meta(description="row group of tables: the disclosure, or the published table that the pool belongs to")
    ]
    stratum: Annotated[str, Meta(description="the finer group of the generator; empty if there is none")]
    # digest of roots, functions, experiment and witness: equal for answers that differ only in how they are written
    meaning: Annotated[
        str | UnsetType | None,
        Meta(description="the same for answers of one meaning, by which samples are put together"),
    ] = UNSET
    seconds: Annotated[Share, Meta(description="what the answer took")] = UNSET
    problem: Annotated[str | UnsetType, Meta(description="of an extended item: why nothing was submitted")] = UNSET
    attribution: Annotated[
        AttributionFields | UnsetType | None, Meta(description="of an extended item: what the evidence decided")
    ] = UNSET
    correct_published: verdict.PublishedFlag = None
    correct_lenient: verdict.LenientFlag = None
    reason: verdict.Reason = ""
    source: verdict.Source = ""
    stop: verdict.Stop = ""
    warnings: verdict.Warnings = []
    repairs: verdict.Repairs = []
    strict_json: Annotated[
        bool | None, Meta(description="the response was one JSON object on one line; null if no text was given")
    ]
    funnel: Annotated[Funnel, Meta(description="the stages of validity")]
    structure: Annotated[
        Structure | UnsetType | None, Meta(description="metrics against gold, where they are asked for and defined")
    ] = UNSET
    overlap: Annotated[
        Overlap | UnsetType, Meta(description="a valid alternative against its reference, where structure is asked for")
    ] = UNSET
