"""The main path of a ladder."""

import math

from hypothesis import given
from hypothesis import strategies as st

from warplog.analysis.main_path import main_path


def row(parent, us, baseline=False, status="ok"):
    return {"parent": parent, "median_us": us, "status": status, "is_baseline": baseline}


LADDER = {
    "first": row(None, 100.0),
    "second": row("first", 20.0),
    "wrong": row("second", 1.0, status="wrong"),
    "dead_end": row("second", 40.0),
    "deeper": row("dead_end", 39.0),
    "third": row("second", 10.0),
    "library": row(None, 5.0, baseline=True),
}


def test_it_leads_from_the_first_step_to_the_fastest_variant_that_is_no_baseline():
    assert main_path(LADDER) == ("first", "second", "third")
    assert main_path(LADDER, "deeper") == ("first", "second", "dead_end", "deeper"), "the best one is known"


def test_it_runs_through_a_baseline_that_is_a_step():
    transpose = {
        "naive": row(None, 7.8),
        "smem_conflict": row("naive", 2.4),
        "padded": row("smem_conflict", 1.25, baseline=True),
        "vectorized": row("padded", 1.1),
        "written_in_order": row("vectorized", 1.0),
        "swizzled": row("padded", 1.2),
    }
    assert main_path(transpose) == ("naive", "smem_conflict", "padded", "vectorized", "written_in_order")


def test_it_may_begin_at_the_baseline_but_does_not_end_there():
    rows = {"plain": row(None, 9.0, baseline=True), "better": row("plain", 3.0)}
    assert main_path(rows) == ("plain", "better")
    assert main_path({**rows, "better": row("plain", 30.0)}) == ("plain", "better")


def test_without_a_time_there_is_no_path_and_an_ancestor_without_one_ends_it():
    assert main_path({}) == ()
    assert main_path({"wrong": LADDER["wrong"], "library": LADDER["library"]}) == ()
    assert main_path({**LADDER, "first": row(None, math.nan)}) == ("second", "third")
    assert main_path({"child": row("left_out", 1.0)}) == ("child",)


def test_ancestors_in_a_circle_end():
    assert main_path({"a": row("b", 2.0), "b": row("a", 1.0)}) == ("a", "b")


@given(st.lists(st.tuples(st.integers(-1, 30), st.floats(0.5, 1e6)), min_size=1, max_size=12))
def test_the_unit_of_the_times_and_a_slower_variant_beside_it_do_not_change_it(steps):
    def rows(factor):
        return {
            str(n): row(str(up) if 0 <= up < n else None, factor * us) for n, (up, us) in enumerate(steps)
        }

    path = main_path(rows(1.0))
    assert main_path(rows(1024.0)) == path
    assert main_path({**rows(1.0), "beside": row(path[0], 1e9)}) == path
