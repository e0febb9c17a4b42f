"""Why a step is faster or slower, in one of three words, and what would help next: rows by the tables of a campaign."""

import math
from dataclasses import replace

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms import campaign as of_campaign
from warplog.analysis.mechanisms import steps
from warplog.analysis.mechanisms.campaign import Campaign
from warplog.analysis.mechanisms.model import Calibration, calibration
from warplog.analysis.verdicts import Noise, Timed
from warplog.tables.conclusions import Forecast, Reason, UnitTime

MODEL = Calibration(4.0, 0.2)
QUIET = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12)
CONFLICTS = work(l1_wavefronts=1e8, shared_wavefronts=1e8, conflicts=6e7)
PADDED = work(l1_wavefronts=4e7, shared_wavefronts=4e7)
BASE, CHILD = ("f", "base", "1"), ("f", "child", "1")


def campaign(before=CONFLICTS, after=PADDED, us=(1002.0, 402.0), **given):
    """A campaign of a variant and its parent."""
    times = {key: Timed(each, Noise(0.001)) for key, each in zip((BASE, CHILD), us, strict=True)}
    empty = ("changes", "lines", "instructions", "accesses", "bubbles_pct", "compulsory_bytes")
    nothing = {name: {} for name in empty}
    return Campaign(
        **{
            "gpu": QUIET,
            "launches": {BASE: (before,), CHILD: (after,)},
            "times": times,
            "parents": {("f", "base"): "", ("f", "child"): "base"},
            "files": {("f", "base"): ["a.cu"]},
            **nothing,
            **given,
        }
    )


def reason(found, model=MODEL):
    ((row, units),) = steps.reasons(found, model)
    return row, {unit.unit: unit for unit in units}


def test_a_measured_gain_in_the_predicted_interval_is_predicted_with_its_mechanism():
    row, units = reason(campaign())
    assert (row.variant, row.parent, row.mechanism, row.word) == (
        "child",
        "base",
        "bank_conflicts",
        "predicted",
    )
    assert (row.predicted_us, row.measured_us) == (pytest.approx(600), 600)
    assert row.low_us < 500
    assert row.high_us == pytest.approx(1002 - 402 / 1.2), "not much faster than its busiest unit"
    assert row.rests_on == "shared_wavefronts_excess"
    assert (units["l1"].parent_us, units["l1"].us, units["l1"].saved_us) == pytest.approx((1000, 400, 600))


def test_a_loss_has_its_mechanism_as_well():
    row, _ = reason(campaign(PADDED, CONFLICTS, (402.0, 1002.0)))
    assert (row.mechanism, row.word, row.measured_us) == ("bank_conflicts", "predicted", -600)


@pytest.mark.parametrize(("after", "mechanism"), [(1e6, "shared_accesses"), (4e7, "none")])
def test_noise_that_is_a_factor_hides_a_saving_only_if_that_is_a_smaller_one(after, mechanism):
    """Twice the time may be noise: a hundredth of it is not, and two fifths of it are."""
    fewer = replace(CONFLICTS, conflicts=0.0)
    given = campaign(fewer, replace(fewer, l1_wavefronts=after, shared_wavefronts=after), (1002.0, 12.0))
    noisy = {BASE: Timed(1002.0, Noise(0.4)), CHILD: given.times[CHILD]}
    row, _ = reason(replace(given, times=noisy), Calibration(4.0, 0.7))
    assert row.mechanism == mechanism


def test_the_childs_time_does_not_enter_the_prediction():
    near, far = (reason(campaign(us=(1002.0, us)))[0] for us in (402.0, 970.0))
    assert (near.predicted_us, near.low_us, near.high_us) == (far.predicted_us, far.low_us, far.high_us)
    assert (far.mechanism, far.word) == ("none", "not_in_evidence")


def test_what_is_not_in_evidence_names_what_would_decide():
    asked = (
        ("accesses", replace(CONFLICTS, same_address=1e6)),
        ("instructions", replace(PADDED, loads=1.0)),
        ("launches", replace(CONFLICTS, pipe_cycles={"tensor": 9e5})),
        ("", replace(CONFLICTS, instructions=4e8)),
        ("", replace(CONFLICTS, instructions=4e8, same_address=1.0, traced=True)),
    )
    for rests_on, after in asked:
        row, _ = reason(campaign(after=after, us=(1002.0, 970.0)))
        assert (row.word, row.rests_on) == ("not_in_evidence", rests_on)


def test_the_addresses_would_decide_where_the_work_of_memory_changed_most():
    """Rows of device memory take longer in some orders; how long each of several kernels takes is known."""
    near, apart = work(dram_read=3e8), work(dram_read=3e9, instructions=1e7)
    row, _ = reason(campaign(near, apart, (102.0, 3002.0)))
    assert (row.word, row.rests_on) == ("not_in_evidence", "accesses")
    row, _ = reason(campaign(near, apart, (102.0, 3002.0), launches={BASE: (near,), CHILD: (apart, near)}))
    assert row.rests_on == "accesses"
    for traced, rests_on in (([BASE], "accesses"), ([BASE, CHILD], "dram_rows")):
        known = {key[:2]: [{"traced_sectors": 4.0}] for key in traced}
        assert reason(campaign(near, apart, (102.0, 3002.0), accesses=known))[0].rests_on == rests_on


@pytest.mark.parametrize(
    ("shape", "rests_on"),
    [
        ({"resident": 6.0}, "dram_rows"),
        ({"resident": 5.0}, ""),  # half the warps
        (
            {"resident": 1.0, "block_warps": 64.0},
            "",
        ),  # nothing else loads while its warps wait for each other
    ],
)
def test_rows_of_device_memory_do_not_decide_where_sms_hold_too_little(shape, rests_on):
    near, emptier = work(dram_read=3e8), work(dram_read=3e9, **shape)
    known = {key[:2]: [{"traced_sectors": 4.0}] for key in (BASE, CHILD)}
    row, _ = reason(campaign(near, emptier, (102.0, 3002.0), accesses=known))
    assert (row.word, row.rests_on) == ("not_in_evidence", rests_on)


@pytest.mark.parametrize(("kernels", "word"), [(2, "accounted"), (1, "not_in_evidence")])
def test_kernels_that_are_added_account_for_what_they_take(kernels, word):
    """Ten microseconds of launches and blocks were not predicted; profiled, the second kernel takes eight of them."""
    adds = {CHILD: (CONFLICTS, work())[:kernels], BASE: (CONFLICTS,)}
    row, _ = reason(campaign(us=(102.0, 112.0), launches=adds, others_us={CHILD: -8.0}))
    assert row.word == word
    assert row.mechanism == ("launches" if kernels > 1 else "none")


def test_the_kernel_beside_the_longest_accounts_for_a_loss_that_it_has_alone():
    two = (CONFLICTS, work())
    row, _ = reason(campaign(us=(102.0, 112.0), launches={BASE: two, CHILD: two}, others_us={CHILD: -9.0}))
    assert (row.word, row.rests_on) == ("accounted", "steps/others_us")


@pytest.mark.parametrize(
    ("ahead", "word"), [((), "predicted"), ((BASE,), "not_in_evidence"), ((CHILD,), "predicted")]
)
def test_memory_is_no_reason_for_a_kernel_whose_data_are_there_before_their_use(ahead, word):
    far, near = work(dram_read=6e9), work(dram_read=3e9)
    row, _ = reason(campaign(far, near, (2002.0, 1002.0), ahead=ahead))
    assert (row.word, row.mechanism == "dram_bytes") == (word, word == "predicted")


@pytest.mark.parametrize("generic", [0.0, 5e7])
def test_accesses_to_shared_memory_that_fill_the_queue_come_before_bytes_that_wait_in_it(generic):
    far, near = work(dram_read=6e9, generic=generic), work(dram_read=3e9)
    waits = {"kind": "state", "quantity": "lg_throttle", "before": 950.0, "after": 50.0, "saved_us": 900.0}
    row, _ = reason(campaign(far, near, (2002.0, 1002.0), changes={CHILD: [waits]}))
    named = ("accounted", "shared_accesses") if generic else ("predicted", "dram_bytes")
    assert (row.word, row.mechanism) == named


def test_samples_that_were_taken_would_not_decide():
    computing = replace(PADDED, loads=1.0)
    sampled = {key: [{"text": "FFMA R1, R1, R2, R3"}] for key in (BASE, CHILD)}
    row, _ = reason(campaign(after=computing, us=(1002.0, 970.0), instructions=sampled))
    assert (row.word, row.rests_on) == ("not_in_evidence", "accesses")


def test_a_gain_that_is_not_predicted_may_be_accounted_for():
    fenced = replace(CONFLICTS, fences=10.0), replace(CONFLICTS, fences=5.0)
    wait = {"kind": "state", "quantity": "membar", "saved_us": 210.0, "of": ""}
    row, _ = reason(campaign(*fenced, (1002.0, 802.0), changes={CHILD: [wait]}))
    assert (row.mechanism, row.word, row.rests_on) == ("fences", "accounted", "changes/membar,inst_membar")
    row, _ = reason(campaign(*fenced, (1002.0, 802.0), changes={CHILD: [wait | {"saved_us": 400.0}]}))
    assert row.word == "not_in_evidence"


def test_bubbles_are_those_of_the_nearest_ancestor_with_a_timeline_if_its_blocks_are_alike():
    given = {"parents": {("f", "base"): "old", ("f", "child"): "base", ("f", "old"): "old"}}
    old = ("f", "old", "1")
    bubbles = {old: 20.0, CHILD: 0.0}
    for others, mechanism in (
        ({}, "store_overlap"),
        ({"resident": 8.0}, "none"),
        ({"block_warps": 4.0}, "none"),
        ({"block_shared_bytes": 4e4}, "none"),
    ):
        launches = {BASE: (CONFLICTS,), CHILD: (CONFLICTS,), old: (replace(CONFLICTS, **others),)}
        found = campaign(us=(1002.0, 802.0), bubbles_pct=bubbles, launches=launches, **given)
        row, _ = reason(found)
        assert (row.mechanism, row.word == "accounted") == (mechanism, mechanism != "none")
    row, _ = reason(campaign(CONFLICTS, CONFLICTS, (1002.0, 802.0), bubbles_pct={CHILD: 0.0}, **given))
    assert row.word == "not_in_evidence"


@pytest.mark.parametrize(("after", "asked"), [(22.0, ""), (5.0, "launches"), (None, "launches")])
def test_a_timeline_would_not_decide_where_bubbles_before_and_after_are_alike(after, asked):
    parents = {("f", "base"): "old", ("f", "child"): "base", ("f", "next"): "child", ("f", "old"): "old"}
    bubbles = {("f", "old", "1"): 20.0} | ({("f", "next", "1"): after} if after else {})
    computing = replace(CONFLICTS, pipe_cycles={"tensor": 9e5})
    row, _ = reason(campaign(after=computing, us=(1002.0, 970.0), parents=parents, bubbles_pct=bubbles))
    assert (row.word, row.rests_on) == ("not_in_evidence", asked)


def test_a_look_alike_without_effect_has_no_mechanism():
    beside = [
        replace(each, dram_read=3e9, l1_wavefronts=each.l1_wavefronts / 20) for each in (CONFLICTS, PADDED)
    ]
    row, _ = reason(campaign(*beside, (1002.0, 1002.5)))
    assert (row.mechanism, row.word, row.rests_on) == ("none", "predicted", "")


@pytest.mark.parametrize(
    ("ideal", "also"), [(2e7, "shared_accesses"), (3e7, ""), (5e7, "")]
)  # two eighths of the saving, a seventh, and a loss beside it
def test_other_mechanisms_with_a_fifth_of_the_saving_are_named_beside_the_first(ideal, also):
    row, _ = reason(
        campaign(after=work(l1_wavefronts=ideal, shared_wavefronts=ideal), us=(1002.0, ideal / 1e5 + 2))
    )
    assert (row.word, row.mechanism, row.also) == ("predicted", "bank_conflicts", also)
    assert row.rests_on == "shared_wavefronts_excess"


def test_the_largest_of_the_other_mechanisms_is_named_first_and_what_no_count_shows_is_none(monkeypatch):
    parts = {
        "bank_conflicts": 420.0,
        "none": 400.0,
        "spills": -390.0,
        "instructions": 125.0,
        "barriers": 121.0,
    }
    monkeypatch.setattr(steps.causes, "by_mechanism", lambda *_: parts | {"tail": 119.0})
    assert reason(campaign())[0].also == "instructions,barriers"
    row, _ = reason(campaign(us=(1002.0, 1002.0)))
    assert (row.word, row.also) == ("not_in_evidence", "")


def conflicts_less(share):
    """The launch in which conflicts are fewer by a share of all wavefronts, of which its time is."""
    return work(
        l1_wavefronts=1e8 * (1 - share), shared_wavefronts=1e8 * (1 - share), conflicts=6e7 - 1e8 * share
    )


@pytest.mark.parametrize(
    ("predicted", "measured", "word", "least_pct"),
    [
        (0.03, 0.032, "predicted", 5.0),
        (-0.03, -0.032, "predicted", 5.0),
        (0.001, 0.005, "not_in_evidence", math.nan),  # the predicted difference is none, given noise
        (0.03, 0.045, "not_in_evidence", math.nan),  # beyond the interval
        (0.046, 0.054, "not_in_evidence", math.nan),  # large enough to be named
    ],
)
def test_a_difference_that_is_too_small_to_name_its_mechanism_may_be_as_predicted(
    predicted, measured, word, least_pct
):
    row, _ = reason(campaign(after=conflicts_less(predicted), us=(1002.0, 1002.0 * (1 - measured))))
    assert (row.mechanism, row.word) == ("none", word)
    assert row.least_pct == pytest.approx(least_pct, nan_ok=True)


def test_what_accounts_for_a_small_difference_that_was_predicted_is_its_mechanism():
    fenced = replace(CONFLICTS, fences=10.0), replace(conflicts_less(0.03), fences=5.0)
    wait = {"kind": "state", "quantity": "membar", "saved_us": 32.0, "of": ""}
    for changes, told in (
        ({}, ("none", "predicted", True)),
        ({CHILD: [wait]}, ("fences", "accounted", False)),
    ):
        row, _ = reason(campaign(*fenced, (1002.0, 970.0), changes=changes))
        assert (row.mechanism, row.word, row.least_pct > 0) == told


@pytest.mark.parametrize(("noise", "word"), [(0.003, "predicted"), (0.002, "not_in_evidence")])
def test_a_difference_that_noise_hides_in_prediction_and_measurement_is_as_predicted(noise, word):
    """One percent less was predicted and 0.8 percent more measured, where noise is 1.3 or 0.9 percent."""
    found = campaign(after=conflicts_less(0.01), us=(1002.0, 1010.0))
    noisy = {key: replace(timed, noise=Noise(noise)) for key, timed in found.times.items()}
    row, _ = reason(replace(found, times=noisy))
    assert row.predicted_us > 0 > row.measured_us
    assert (row.mechanism, row.word, math.isnan(row.least_pct)) == ("none", word, True)


def test_a_gain_that_was_predicted_and_did_not_come_is_not_in_evidence():
    row, _ = reason(campaign(us=(1002.0, 1002.0)))
    assert (row.mechanism, row.word) == ("none", "not_in_evidence")


def test_steps_without_a_parent_times_or_counts_have_no_row():
    assert not list(steps.reasons(campaign(parents={}), MODEL))
    found = campaign()
    assert not list(steps.reasons(replace(found, times={CHILD: found.times[CHILD]}), MODEL))
    assert not list(steps.reasons(replace(found, launches={CHILD: (PADDED,)}), MODEL))


@pytest.mark.parametrize(
    ("executed", "files", "argued"),
    [
        (10.0, ["child.cu", "other.cu"], False),
        (11.0, ["child.cu", "other.cu"], True),  # other work
        (10.0, ["child.cu"], True),  # code that happens to be the same
        (10.0, ["other.cu"], True),  # another setting of the same source
    ],
)
def test_a_variant_that_launches_the_kernel_of_another_is_not_argued_against_its_parent(
    executed, files, argued
):
    other = ("f", "other", "1")
    code = {BASE: 7.0, CHILD: executed, other: 10.0}
    found = campaign(
        instructions={key: [{"text": "FFMA R1, R1, R2, R3", "executed": n}] for key, n in code.items()},
        files={BASE[:2]: ["base.cu"], CHILD[:2]: files, other[:2]: ["other.cu"]},
    )
    assert len(list(steps.reasons(found, MODEL))) == argued


def test_a_variant_that_nobody_compares_with_changes_nothing():
    found = campaign()
    other = ("f", "other", "1")
    more = replace(
        found,
        launches={other: (work(dram_read=1e9),), **found.launches},
        times={other: Timed(5.0, Noise(0.01)), **found.times},
        parents={("f", "other"): "", **found.parents},
    )
    assert list(steps.reasons(more, MODEL)) == list(steps.reasons(found, MODEL))
    kept = [row for row in steps.forecast(more, MODEL) if row.variant != "other"]
    assert kept == list(steps.forecast(found, MODEL))


def test_the_parents_forecast_is_what_the_child_gets():
    given = {"lines": {BASE: [line("a.cu", 7, 1e7), line("a.cu", 9, 5e7), line("", 0, 9e7)]}}
    row = next(row for row in steps.forecast(campaign(**given), MODEL) if row.variant == "base")
    assert (row.mechanism, row.line, row.bound) == ("bank_conflicts", "a.cu:9", "l1")
    assert row.saved_us == pytest.approx(600)
    assert row.speedup == pytest.approx(1002 / 402)
    assert row.low < row.speedup < row.high


@pytest.mark.parametrize(
    ("mechanism", "line"), [("spills", "a.cu:2"), ("wide_accesses", "a.cu:1"), ("tail", ""), ("fences", "")]
)
def test_a_forecast_names_the_line_of_its_instructions(mechanism, line):
    texts = ["LDG.E R4, desc[UR4][R2.64]", "LDL R5, [R1]", "STL [R1], R5"]
    rows = [
        {"text": text, "file": "a.cu", "line": number, "executed": 10.0}
        for text, number in zip(texts, (1, 2, 2), strict=True)
    ]
    assert steps.line_of(campaign(instructions={BASE: rows}), BASE, mechanism) == line


@pytest.mark.parametrize(("loads", "line"), [(20.0, "a.cu:1"), (21.0, "")])
def test_no_line_is_named_if_most_accesses_are_elsewhere(loads, line):
    rows = [{"text": "LDG.E R4, desc[UR4][R2.64]", "file": "a.cu", "line": 1, "executed": 10.0}]
    found = campaign(before=work(loads=loads), instructions={BASE: rows})
    assert steps.line_of(found, BASE, "wide_accesses") == line


def test_traced_addresses_tell_the_line_whose_lanes_lie_apart():
    rows = [
        {"file": "a.cu", "line": 5, "traced_sectors": 90.0, "sectors_ideal": 80.0},
        {"file": "a.cu", "line": 6, "traced_sectors": 40.0, "sectors_ideal": 5.0},
    ]
    assert steps.line_of(campaign(accesses={BASE[:2]: rows}), BASE, "coalescing") == "a.cu:6"
    assert steps.line_of(campaign(), BASE, "coalescing") == ""


def test_no_line_of_a_library_is_named_as_one_to_mend():
    rows = [
        {"file": file, "line": 5, "traced_sectors": sectors, "sectors_ideal": 10.0}
        for file, sectors in (("a.cu", 40.0), ("cuda_bf16.hpp", 90.0))
    ]
    assert steps.line_of(campaign(accesses={BASE[:2]: rows}), BASE, "coalescing") == ""


def line(file, number, excess):
    return {"file": file, "line": number, "shared_wavefronts_excess": excess}


@pytest.fixture
def rows(monkeypatch):
    """The rows of a campaign that was read from tables."""

    def of(found):
        monkeypatch.setattr(of_campaign, "read", lambda *_: found)
        return steps.rows({"variants": [{"campaign": "own"}]}, MODEL, {}, {})

    return of


def test_a_campaign_has_its_reasons_unit_times_and_forecasts(rows):
    found = campaign()
    ((reason_of, unit_times),) = steps.reasons(found, MODEL)
    made = rows(found)
    assert made[Reason] == [reason_of]
    assert made[UnitTime] == unit_times
    assert (made[Forecast][0].variant, made[Forecast][0].mechanism) == ("base", "bank_conflicts")


def test_a_step_names_the_other_campaigns_that_its_ceilings_are_of(rows):
    measured = {
        name: replace(ceiling, campaign="older" if name == "fence_ns" else "own")
        for name, ceiling in QUIET.ceilings.items()
    }
    assert rows(campaign(gpu=replace(QUIET, ceilings=measured)))[Reason][0].ceilings_of == "older"
    assert rows(campaign())[Reason][0].ceilings_of == ""


def test_a_step_whose_counts_or_ceilings_are_missing_is_not_predicted_and_names_them(rows):
    unclean = replace(PADDED, l1_wavefronts=math.nan)
    fenced = replace(PADDED, fences=10.0)
    unfenced = gpu(block_life_ns=0.0, block_starts_per_us=1e12, warp_starts_per_us=1e12, fence_ns=math.nan)
    for found, needed in (
        (campaign(after=unclean), "l1_wavefronts,l2_requests_from_sms"),
        (campaign(after=fenced, gpu=unfenced), "ceilings/fence_ns"),
    ):
        made = rows(found)
        (row,) = made[Reason]
        assert (row.mechanism, row.word, row.measured_us) == ("none", "not_in_evidence", 600)
        assert row.rests_on == needed
        assert all(map(math.isnan, (row.predicted_us, row.low_us, row.high_us)))
        assert made[UnitTime] == []
        assert {f.variant for f in made[Forecast]} == {"base"}, "the parent is known"
    (known,) = rows(campaign(gpu=unfenced))[Reason]
    assert known.word == "predicted", "without fences, nobody asks what one costs"


def test_what_would_save_less_than_the_noise_is_no_forecast():
    few = replace(PADDED, conflicts=4e6)
    noisy = {key: Timed(402.0, Noise(0.05)) for key in (BASE, CHILD)}
    found = campaign(few, few, (402.0, 402.0))
    assert "bank_conflicts" in {f.mechanism for f in steps.forecast(found, MODEL)}
    assert "bank_conflicts" not in {f.mechanism for f in steps.forecast(replace(found, times=noisy), MODEL)}


def test_power_and_error_are_in_a_file_that_says_where_they_are_from():
    fitted = calibration()
    assert fitted.power >= 1
    assert 0 < fitted.error < 1
    assert fitted.campaigns


def test_bytes_that_need_not_move_are_forecast_at_each_case_of_which_the_compulsory_ones_are_known():
    moving = work(dram_read=3e9)
    found = campaign(moving, moving, compulsory_bytes={("f", "1"): 1e9, ("f", "2"): 3e9})
    assert {(row.variant, row.mechanism) for row in steps.forecast(found, MODEL)} == {
        (variant, "dram_bytes") for variant in ("base", "child")
    }
