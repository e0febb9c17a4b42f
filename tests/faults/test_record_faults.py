"""Records and tables on disk: a file is the old or the new one in full after any fault; writing again completes it."""

import random
import re

import pytest

SEED = 20261122
FEW, MANY = 2, 10_000


@pytest.fixture(params=["records", "tables"])
def task(request):
    return request.param


def sample(most: int, count: int, task: str) -> list[int]:
    return sorted(random.Random(f"{SEED}/{task}").sample(range(1, most + 1), min(count, most)))


def disturbed(faults, task, place, count):
    """Kills the task, or fills its disk, at `count` of its calls; what is wrong afterwards, by fault."""
    whole = faults.do(task, place / "whole")
    assert not whole.error, whole.error
    expected = faults.well(f"read_{task}", place / "whole")
    tries = [{"kill": n} for n in sample(whole.changes, count, task)]
    tries += [{"full": n} for n in sample(whole.writes, count, task)]
    wrong = {}
    for number, fault in enumerate(tries):
        folder = place / str(number)
        outcome = faults.do(task, folder, **fault)
        assert outcome.killed or outcome.error[:1] == ("WarplogError",), (fault, outcome)
        assert outcome.killed or re.search(rf"^{folder}/.*\({folder}.*: \d+ MiB free\)", outcome.error[1]), (
            outcome
        )
        found = faults.well(f"read_{task}", folder)  # raises if a file is not complete
        if not (
            dict(found).items() <= expected.items() if task == "tables" else found == expected[: len(found)]
        ):
            wrong[str(fault)] = found
        faults.well(task, folder)
        if faults.well(f"read_{task}", folder) != expected:
            wrong[str(fault)] = "not complete after writing again"
    return wrong


def test_a_file_is_complete_or_missing_and_writing_again_completes_it(faults, task, tmp_path):
    assert disturbed(faults, task, tmp_path, FEW) == {}


@pytest.mark.faults
@pytest.mark.timeout(1800)
def test_a_file_is_complete_after_a_fault_at_each_single_call(faults, task, tmp_path):
    assert disturbed(faults, task, tmp_path, MANY) == {}
