"""What accounts for a step afterwards: waits that change along with a count, and bubbles."""

import math

import pytest

from made_up_work import work
from warplog.analysis.mechanisms.accounts import Account, accounts, best

NO_BUBBLES = (math.nan, math.nan)


def state(quantity, saved_us):
    times = {"before": 300.0 + saved_us, "after": 300.0, "saved_us": saved_us}
    return {"kind": "state", "quantity": quantity, **times, "of": ""}


def found(before, after, changes, bubbles=NO_BUBBLES):
    return list(accounts(work(**before), work(**after), 200.0, 160.0, changes, bubbles))


@pytest.mark.parametrize(
    ("quantity", "before", "after", "mechanism"),
    [
        ("membar", {"fences": 10}, {"fences": 0}, "fences"),
        ("barrier", {"barriers": 10}, {"barriers": 2}, "barriers"),
        ("long_scoreboard", {"overlapped": 0.1}, {"overlapped": 0.9}, "load_overlap"),
    ],
)
def test_a_wait_accounts_for_a_gain_only_if_its_count_changed_along_with_it(
    quantity, before, after, mechanism
):
    (account,) = found(before, after, [state(quantity, 30.0)])
    assert (account.mechanism, account.saved_us) == (mechanism, 30.0)
    assert account.rests_on[0] == f"changes/{quantity}"
    assert not found(before, before, [state(quantity, 30.0)])


def test_mbarriers_in_the_place_of_barriers_are_not_fewer():
    assert not found({"barriers": 10}, {"arrivals": 40}, [state("barrier", 30.0)])
    (account,) = found({"arrivals": 40}, {"barriers": 1, "arrivals": 10}, [state("barrier", 30.0)])
    assert account.rests_on == ("changes/barrier", "inst_syncs")


def test_more_fences_do_not_account_for_a_shorter_wait():
    assert not found({"fences": 10}, {"fences": 20}, [state("membar", 30.0)])
    (account,) = found({"fences": 10}, {"fences": 20}, [state("membar", -30.0)])
    assert account.saved_us == -30.0


@pytest.mark.parametrize(
    ("others", "saved_us"),
    [
        ({"barrier": 60.0, "wait": 40.0}, -70.0),  # the fence hides what was waited for before
        ({"barrier": 110.0, "wait": -10.0}, -70.0),  # noise of another wait
        ({"barrier": 110.0, "wait": -20.0}, -170.0),  # another wait became longer, too
        ({"barrier": 260.0}, -170.0),  # the step is faster: not by more fences
    ],
)
def test_a_wait_that_alone_became_longer_accounts_for_the_loss_less_what_it_hides(others, saved_us):
    changes = [state("membar", -170.0), *(state(name, us) for name, us in others.items())]
    accounted = {a.mechanism: a.saved_us for a in found({"fences": 10}, {"fences": 40}, changes)}
    assert accounted == {"fences": saved_us}


@pytest.mark.parametrize(("left", "saved_us"), [(50.0, 200.0), (75.0, 125.0)])
def test_fewer_barriers_save_at_most_their_share_of_the_wait(left, saved_us):
    """500 us of waits become 300."""
    (account,) = found({"barriers": 100.0}, {"barriers": left}, [state("barrier", 200.0)])
    assert account.saved_us == pytest.approx(saved_us)


def test_an_unknown_overlap_accounts_for_nothing():
    assert not found({}, {"overlapped": 0.9}, [state("long_scoreboard", 30.0)])


@pytest.mark.parametrize(("loads", "saved_us"), [(100.0, 60.0), (90.0, 24.0), (20.0, None), (200.0, 210.0)])
def test_waits_for_loads_that_are_gone_are_not_overlapped(loads, saved_us):
    before, after = {"overlapped": 0.1, "loads": 100.0}, {"overlapped": 0.9, "loads": loads}
    accounted = [account.saved_us for account in found(before, after, [state("long_scoreboard", 60.0)])]
    assert accounted == ([] if saved_us is None else [pytest.approx(saved_us)])


def test_a_shorter_wait_for_memory_is_no_overlap_of_a_kernel_that_overlaps_less():
    ahead, behind = {"overlapped": 1.0}, {"overlapped": 0.0}
    assert not found(ahead, behind, [state("long_scoreboard", 30.0)])
    (account,) = found(ahead, behind, [state("long_scoreboard", -30.0)])
    assert account.saved_us == -30.0


@pytest.mark.parametrize(("before", "after", "saved_us"), [(64, 1, 30), (1, 64, -30)])
def test_barriers_of_fewer_warps_are_not_fewer(before, after, saved_us):
    """Half as many warps, each of which comes to as many barriers."""
    assert not found({"barriers": 64.0}, {"barriers": 32.0, "blocks": 500.0}, [state("barrier", 30.0)])
    (account,) = found({"barriers": before}, {"barriers": after}, [state("barrier", saved_us)])
    assert account.saved_us == saved_us


@pytest.mark.parametrize(
    ("before", "after", "saved_us"),
    [(20e6, 4e6, 30.0), (8e6, 4e6, 10.0), (4e6, 20e6, None), (4e6, 4e6, None), (math.nan, 0.0, None)],
)
def test_register_ports_save_at_most_the_cycles_of_their_conflicts(before, after, saved_us):
    """Four schedulers of a hundred SMs at a thousand cycles per microsecond."""
    sides = ({"port_conflicts": conflicts} for conflicts in (before, after))
    accounted = [account.saved_us for account in found(*sides, [state("dispatch_stall", 30.0)])]
    assert accounted == ([] if saved_us is None else [pytest.approx(saved_us)])


@pytest.mark.parametrize(
    ("after", "mechanism"),
    [
        ({"in_flight": 8}, "loads_in_flight"),
        ({"resident": 20.0}, "occupancy"),
        ({"resident": 20.0, "in_flight": 1}, None),  # an SM has fewer loads in flight
        ({"in_flight": 2}, None),
        ({"in_flight": 8, "loads": 200.0}, "loads_in_flight"),
        ({"in_flight": 8, "loads": 50.0}, None),  # loads that are gone are not hidden
    ],
)
def test_waits_for_no_fewer_loads_are_shorter_with_more_of_them_in_flight(after, mechanism):
    loads = {"loads": 100.0, "in_flight": 4}
    accounted = [
        account.mechanism for account in found(loads, loads | after, [state("long_scoreboard", 30.0)])
    ]
    assert accounted == ([mechanism] if mechanism else [])


@pytest.mark.parametrize(("left", "accounted"), [((0, 3), [30.0]), ((3, 3), []), ((3, 0), [])])
def test_waits_for_bulk_stores_account_for_a_gain_only_if_more_of_them_stay_in_flight(left, accounted):
    before, after = (
        {"stores_left": n, "store_waits": share} for n, share in zip(left, (0.19, 0.05), strict=True)
    )
    accounts_of = found(before, after, [])
    assert [account.saved_us for account in accounts_of] == pytest.approx(accounted)
    assert {account.mechanism for account in accounts_of} <= {"store_overlap"}


def test_bubbles_at_the_end_of_tiles_account_for_overlapped_stores():
    (account,) = found({}, {}, [], bubbles=(9.0, 2.0))
    assert (account.mechanism, account.saved_us) == ("store_overlap", pytest.approx(14.0))


def test_other_states_and_changes_account_for_nothing():
    assert not found({"fences": 1}, {}, [state("wait", 30.0), state("membar", 30.0) | {"kind": "counter"}])


def test_the_nearest_account_is_taken_if_it_is_near_enough():
    near, far = Account("fences", 28.0, ()), Account("barriers", 60.0, ())
    assert best([far, near], 30.0, 0.1) is near
    assert best([far], 30.0, 0.1) is None
    assert best([Account("fences", -28.0, ())], 30.0, 0.4) is None
    assert best([], 30.0, 0.1) is None
