"""What traced addresses show of variants and steps, by kernels whose accesses are known."""

from dataclasses import replace

import pandas as pd
import pytest

from made_up_traces import ACCESSES, CASE, KERNELS, access, kernel, with_traces
from small_campaign import FOLDER
from warplog.analysis.conclude import conclude
from warplog.tables import conclusions, view


@pytest.fixture(scope="module")
def transpose():
    """Returns the tables of transpose in the small campaign."""
    return view.load(FOLDER / "tables", "transpose")


def said_of(concluded, variant):
    """What traces say of a step: (role, quantity, array) with the values before and after."""
    return {
        (change.role, change.quantity, change.of): (change.before, change.after)
        for change in concluded.changes
        if change.variant == variant and change.kind == "access"
    }


def explained(concluded):
    return {step.variant: step.explained for step in concluded.steps}


def test_a_line_has_its_sectors_or_wavefronts_per_request_beside_the_ideal(transpose):
    parts = [
        {
            **ACCESSES[1],
            "requests": 1024,
            "traced_sectors": 32768,
            "sectors_ideal": 4096,
            "distinct_bytes": 131072,
        }
    ]
    again = [{**row, "launch": 1} for row in parts]  # the kernel is launched twice
    rows = [ACCESSES[0], *parts, *again, *ACCESSES[2:]]
    lines = {
        (line.variant, line.line, line.kind, line.array): line
        for line in conclude(with_traces(transpose, rows), {}).access_lines
    }
    store = lines["naive", 23, "store", "out"]
    assert (store.requests, store.per_request, store.ideal, store.used_bytes) == (2048, 32, 4, 4)
    assert (store.finding, store.unit, store.ways, store.case) == ("scattered", "sector/request", -1, CASE)
    load = lines["smem_conflict", 32, "load", ""]
    assert (load.per_request, load.ideal, load.ways, load.finding) == (32, 1, 32, "conflicts")
    ideal = [line for line in lines.values() if not line.finding]
    assert len(lines) - len(ideal) == 2
    assert all(line.per_request == line.ideal for line in ideal)


def test_without_counters_accesses_that_changed_as_the_time_did_are_causes_and_others_costs(transpose):
    concluded = conclude(with_traces(transpose), {})
    assert explained(concluded) == {
        "smem_conflict": "accesses", "padded": "accesses",
        "xor_swizzled": "", "vectorized": "", "written_in_order": "",
    }  # fmt: skip
    assert said_of(concluded, "smem_conflict") == {
        ("cause", "sectors_per_write", "out"): (32, 4),
        ("cause", "traced_sectors", ""): (36 * 2048, 8 * 2048),
        ("cost", "shared_read_ways", ""): (1, 32),
    }
    assert said_of(concluded, "padded") == {
        ("cause", "shared_read_ways", ""): (32, 1),
        ("cause", "traced_wavefronts", ""): (33 * 2048, 2 * 2048),
    }
    first = next(
        c for c in concluded.changes if (c.variant, c.quantity) == ("smem_conflict", "sectors_per_write")
    )
    assert (first.case, first.wait_line, first.parent_wait_line) == (
        CASE,
        "smem_conflict.cu:32",
        "naive.cu:23",
    )


def test_better_accesses_are_no_cause_of_a_slower_step(transpose):
    slow = transpose.measurements.assign(
        median_us=transpose.measurements["median_us"].where(
            transpose.measurements["variant"] != "padded", 1e6
        )
    )
    said = said_of(conclude(with_traces(replace(transpose, measurements=slow)), {}), "padded")
    assert {role for role, *_ in said} == {"cost"}


def test_with_counters_these_explain_the_step_and_traces_are_details(transpose):
    counted, traced = conclude(transpose, {}), conclude(with_traces(transpose, is_counted=True), {})
    assert traced.steps == counted.steps
    assert {role for role, *_ in said_of(traced, "padded")} == {"detail"}
    assert [c for c in traced.changes if c.kind != "access"] == list(counted.changes)


def test_the_number_of_requests_changes_nothing_that_is_said_per_request(transpose):
    more = [
        {name: 10 * value if name.startswith(("requests", "traced", "sectors", "wavefronts", "distinct")) else value
         for name, value in row.items()}
        for row in ACCESSES
    ]  # fmt: skip
    once, tenfold = (conclude(with_traces(transpose, rows), {}) for rows in (ACCESSES, more))
    assert [replace(line, requests=0) for line in tenfold.access_lines] == [
        replace(line, requests=0) for line in once.access_lines
    ]
    assert {key: ends for key, ends in said_of(tenfold, "padded").items() if "traced" not in key[1]} == {
        key: ends for key, ends in said_of(once, "padded").items() if "traced" not in key[1]
    }


def test_the_lines_that_access_an_array_are_one_change_at_the_line_that_takes_most(transpose):
    rows = [access("naive", 9, "store", "out", 2048, 4, 4), *ACCESSES]
    concluded = conclude(with_traces(transpose, rows), {})
    assert said_of(concluded, "smem_conflict")["cause", "sectors_per_write", "out"] == (18, 4)
    (change,) = (c for c in concluded.changes if c.quantity == "sectors_per_write")
    assert change.parent_wait_line == "naive.cu:23"


def test_wider_accesses_take_more_sectors_for_more_bytes_and_are_not_worse(transpose):
    wide = [
        access("naive", 23, "load", "in", 2048, 4, 4),
        access("smem_conflict", 26, "load", "in", 512, 16, 16),
    ]
    assert said_of(conclude(with_traces(transpose, wide), {}), "smem_conflict") == {}


@pytest.mark.parametrize(("taken", "ratio"), [(8, 2), (16, 4)])
def test_wider_accesses_that_use_their_sectors_better_are_compared_with_the_ideal(transpose, taken, ratio):
    rows = [
        access("naive", 23, "load", "in", 2048, taken, 4),
        access("smem_conflict", 26, "load", "in", 512, 16, 16),
    ]
    assert said_of(conclude(with_traces(transpose, rows), {}), "smem_conflict") == {
        ("cause", "read_sectors_per_ideal", "in"): (ratio, 1),
        ("cause", "traced_sectors", ""): (taken * 2048, 16 * 512),
    }


def test_accesses_that_take_little_of_the_launch_are_not_told(transpose):
    """Of 2048 cycles for sectors, 62 and 124 are lost to bank conflicts."""
    reads = [access(name, 9, "load", "in", 2048, 4, 4) for name in ("naive", "smem_conflict")]
    for requests, said in ((2, set()), (4, {("cost", "shared_read_ways", "")})):
        conflict = access("smem_conflict", 32, "load", "", requests, 32, 1)
        assert (
            said_of(conclude(with_traces(transpose, [*reads, conflict]), {}), "smem_conflict").keys() == said
        )


@pytest.mark.parametrize(
    "kernels",
    [
        [kernel("naive"), kernel("smem_conflict", untraced="UTMASTG.2D 1")],
        [kernel("naive"), kernel("smem_conflict", traced_blocks=8)],
    ],
)
def test_totals_are_compared_only_if_nothing_is_missing(transpose, kernels):
    concluded = conclude(with_traces(transpose, kernels=kernels), {})
    assert said_of(concluded, "smem_conflict").keys() == {
        ("cause", "sectors_per_write", "out"),
        ("cost", "shared_read_ways", ""),
    }


@pytest.mark.parametrize("change", [{"case": "512"}, {"source_sha256": "0" * 64}])
def test_a_parent_of_another_case_or_source_is_not_compared(transpose, change):
    rows = [{**row, **change} if row["variant"] == "naive" else row for row in ACCESSES]
    concluded = conclude(with_traces(transpose, rows), {})
    assert said_of(concluded, "smem_conflict") == {}
    assert explained(concluded)["padded"] == "accesses"


def test_of_several_cases_the_one_of_most_variants_comes_first_and_steps_compare_one_that_both_have(
    transpose,
):
    """Of naive, only 512 is there, where its stores take half of the sectors; of padded, the trace of 512 failed."""
    again = [{**row, "case": "512"} for row in ACCESSES]
    naive = [{**row, "traced_sectors": 16 * 2048} if row["kind"] == "store" else row for row in again[:2]]
    failed = {
        "family": "transpose",
        "variant": "padded",
        "case": "512",
        "status": "timeout",
        "reason": "60 s",
    }
    another = access("xor_swizzled", 26, "load", "in", 2048, 4, 4)
    concluded = conclude(with_traces(transpose, [failed, *naive, *again[2:6], *ACCESSES[2:], another]), {})
    assert [(row.variant, row.case, row.status) for row in concluded.traced] == [
        ("padded", "256", "ok"), ("padded", "512", "timeout"), ("naive", "512", "ok"),
        ("smem_conflict", "256", "ok"), ("smem_conflict", "512", "ok"), ("xor_swizzled", "256", "ok"),
    ]  # fmt: skip
    assert said_of(concluded, "smem_conflict")["cause", "sectors_per_write", "out"] == (16, 4)
    cases = {change.variant: change.case for change in concluded.changes if change.kind == "access"}
    assert cases == {"smem_conflict": "512", "padded": "256", "xor_swizzled": "256"}


@pytest.mark.parametrize("order", [("256", "512"), ("512", "256")])
def test_of_two_cases_that_as_many_variants_have_the_first_is_that_of_the_family(order, transpose):
    rows = [{**row, "case": order[row["variant"] == "padded"]} for row in (*ACCESSES[:2], *ACCESSES[6:])]
    tables = with_traces(transpose, rows)
    concluded = [conclusions.cells(row) for row in conclude(tables, {}).traced]
    tables = replace(tables, traced=pd.DataFrame(concluded))
    assert tables.traced_case == order[0]
    assert list(tables.shown_traces["case"]) == list(order)


def test_of_atomics_the_most_on_one_address_is_told_by_line_and_of_the_kernel(transpose):
    add = access("naive", 30, "atomic", "out", 64, 1, 1, same_address=64, same_address_lanes=1)
    unknown = {**add, "launch": 1, "same_address": None, "same_address_lanes": None}
    rows = [*ACCESSES, {**add, "same_address": 48, "same_address_lanes": 32}, add, unknown]
    kernels = [kernel("naive", same_address=112), kernel("naive", launch=1), *KERNELS[1:]]
    concluded = conclude(with_traces(transpose, rows, kernels), {})
    most = {
        (line.variant, line.line): (line.same_address, line.same_address_lanes)
        for line in concluded.access_lines
        if line.kind == "atomic" or line.variant == "padded"
    }
    assert most == {("naive", 30): (64, 32), ("padded", 26): (-1, -1), ("padded", 32): (-1, -1)}
    assert {row.variant: row.same_address for row in concluded.traced} == {
        "naive": 112,
        "smem_conflict": -1,
        "padded": -1,
    }


def test_what_was_not_traced_has_a_row_with_its_reason(transpose):
    failed = {
        "family": "transpose",
        "variant": "cublas",
        "case": CASE,
        "status": "unsupported",
        "reason": "a library",
    }
    concluded = conclude(with_traces(transpose, [*ACCESSES, failed]), {})
    (row,) = (row for row in concluded.traced if row.variant == "cublas")
    assert (row.status, row.reason) == ("unsupported", "a library")
    assert {line.variant for line in concluded.access_lines} == {"naive", "smem_conflict", "padded"}


def test_a_launch_of_which_the_trace_sees_no_access_has_no_lines(transpose):
    bare = {name: row for name, row in ACCESSES[0].items() if name in ("family", "case", "status", "reason")}
    rows = [*ACCESSES, {**bare, "variant": "cublas"}]
    concluded = conclude(
        with_traces(transpose, rows, [*KERNELS, kernel("cublas", untraced="UTMALDG.2D 2")]), {}
    )
    (row,) = (row for row in concluded.traced if row.variant == "cublas")
    assert (row.status, row.untraced, row.counted) == ("ok", "UTMALDG.2D 2", 0)
    assert "cublas" not in {line.variant for line in concluded.access_lines}


def test_a_variant_has_its_sectors_ways_and_reuse_and_how_often_ncu_differs(transpose):
    counted = [
        {**row, "agreement": "differs" if row["variant"] == "naive" and row["kind"] == "store" else "equal"}
        for row in ACCESSES
    ]
    writes = {"wave_blocks": None, "wave_bytes": None, "wave_bytes_of_blocks": None}  # and reads nothing
    kernels = kernel("naive", **writes), kernel("naive", launch=1, wave_bytes_of_blocks=4 * 262144)
    reused = [*KERNELS[1:], *kernels]
    rows = {row.variant: row for row in conclude(with_traces(transpose, counted, reused), {}).traced}
    naive, conflict = rows["naive"], rows["smem_conflict"]
    assert (naive.load_sectors_per_request, naive.store_sectors_per_request, naive.store_sectors_ideal) == (
        4,
        32,
        4,
    )
    assert (naive.counted, naive.differing, naive.wave_reuse, naive.wave_blocks) == (2, 1, 4.0, 64)
    assert (conflict.shared_ways, conflict.differing) == (16.5, 0)
