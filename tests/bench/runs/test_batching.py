"""How many jobs are handed to a worker at a time."""

from __future__ import annotations

from calibrant.bench.runs.executors.worker import FIRST_BATCH_JOBS, MAX_BATCH_JOBS, Batcher


def handed_out(number: int, slots: int, fit: int) -> tuple[list[list[int]], list[int]]:
    """Every batch in turn, and the jobs in the order in which they are done: of a batch, so many fit into its time."""
    batches, taken, order = Batcher({job: str(job) for job in range(number)}), [], []
    while batches:
        (batch,) = batches.next(slots, 2 * slots - 1) or batches.next(slots, slots - 1)
        keys = list(batch)
        assert keys
        assert batch == {job: str(job) for job in keys}
        taken.append(keys)
        done = min(fit, len(keys))
        order += keys[:done]
        batches.requeue_rest(keys, done, early=len(keys) < fit)
    return taken, order


def test_every_job_is_done_once_and_in_order_whatever_fits() -> None:
    for number in (1, 2, 5, 20, 321):
        for slots in (1, 2, 7):
            for fit in (1, 3, 10, 1000):
                assert handed_out(number, slots, fit)[1] == list(range(number))


def test_long_jobs_go_one_by_one_after_the_first_shares() -> None:
    taken, _ = handed_out(20, 2, 1)
    assert [len(batch) for batch in taken] == [7] + [1] * 19  # 7: one and a half batches for each of two slots


def test_short_jobs_go_in_few_messages_and_the_last_ones_in_small_ones() -> None:
    sizes = [len(batch) for batch in handed_out(1000, 2, 1000)[0]]
    assert max(sizes) == MAX_BATCH_JOBS
    assert len(sizes) < 40
    assert sizes[-1] <= 8
    assert sizes[:3] == [FIRST_BATCH_JOBS, 2 * FIRST_BATCH_JOBS, 4 * FIRST_BATCH_JOBS]


def test_a_worker_that_is_handed_too_many_says_how_many_fit() -> None:
    assert FIRST_BATCH_JOBS > 6
    assert [len(batch) for batch in handed_out(200, 2, 6)[0]][:5] == [8, 6, 6, 6, 6]


def test_no_more_shares_than_there_is_room_for() -> None:
    batches = Batcher({job: job for job in range(20)})
    assert batches.next(0, 0) == batches.next(2, 4) == []
    assert [list(batch) for batch in batches.next(2, 0)] == [[0, 1, 2, 3, 4, 5, 6], [7, 8, 9, 10, 11]]
    assert [list(batch) for batch in batches.next(2, 3)] == [[12, 13, 14]]


def test_the_last_jobs_wait_for_a_slot_that_has_nothing_to_do() -> None:
    batches = Batcher({job: job for job in range(20)})
    while batches.next(3, 3):
        pass
    assert batches.next(3, 2) == [{17: 17}]
    assert batches.next(3, 1) == [{18: 18}, {19: 19}]
    assert not batches


def test_jobs_under_which_workers_died_are_tried_again_alone_and_last() -> None:
    batches = Batcher({job: job for job in range(9)})
    (first,), (second,) = batches.next(1, 0), batches.next(1, 1)
    assert batches.suspect_jobs(list(first)) == []
    assert batches.suspect_jobs(list(second)) == []
    assert batches.next(1, 0) == [{8: 8}]
    assert batches.suspect_jobs([8]) == []
    assert batches.next(1, 1) == []
    for job in range(9):
        assert batches
        assert batches.next(1, 0) == [{job: job}]
        if job == 5:
            assert batches.suspect_jobs([job]) == [job]
        else:
            batches.requeue_rest([job], 1, early=True)
    assert not batches
