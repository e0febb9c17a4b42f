"""What is read from the tables of a campaign: ceilings, kernels with their counts, times, machine code."""

import math
from dataclasses import replace

import pytest

from host_family import make_family
from warplog.analysis.mechanisms import campaign, ceilings
from warplog.analysis.mechanisms.code import UNKNOWN
from warplog.analysis.mechanisms.work import work_of

GPU = {"sms": 100, "dram_gbytes_per_s_peak": 3000.0}
COUNTED = {
    "grid_blocks": 400.0,
    "block_threads": 250.0,
    "gpu_cycles": 1e6,
    "instructions_executed": 5e7,
    "occupancy_limit_warps_blocks": 8.0,
    "occupancy_limit_registers_blocks": 3.0,
}
KEY = ("sgemm", "tiled", "1024")


def row(key=KEY, **cells):
    return dict(zip(("family", "variant", "case"), key, strict=True)) | cells


def metrics(launch=0, key=KEY, **values):
    return [
        row(key, tool="ncu", status="ok", launch=launch, metric=name, value=value, kernel="k")
        for name, value in (COUNTED | values).items()
    ]


def measured(key=KEY, us=50.0, status="ok"):
    return row(key, status=status, median_us=us, sm_mhz=1800.0)


def ceiling(name, value, word="met"):
    return {
        "ceiling": name,
        "value": value,
        "value_low": 0.9 * value,
        "value_high": 1.1 * value,
        "word": word,
    }


def test_a_ceiling_that_is_out_of_range_is_not_used():
    gpu = ceilings.read(
        [
            ceiling("fence_ns", 500.0),
            ceiling("launch_us", 2.0, "within_noise"),
            ceiling("barrier_ns", 9.0, "missed"),
        ],
        GPU,
    )
    assert (gpu.us("fence_ns"), gpu.us("launch_us")) == (0.5, 2.0)
    assert math.isnan(gpu.us("barrier_ns"))
    assert set(gpu.spread()) == {"fence_ns", "launch_us"}
    assert gpu.spread()["launch_us"].us("launch_us") == pytest.approx(2.2)


def test_ceilings_of_another_campaign_stand_in_for_those_that_this_one_lacks():
    others = [
        ceiling(name, 500.0) | {"campaign": "older"} for name in ("fence_ns", "barrier_ns", "launch_us")
    ]
    own = [ceiling("fence_ns", 600.0), ceiling("barrier_ns", 9.0, "missed")]
    gpu = ceilings.read([*others, *own], GPU)
    assert (gpu.value("fence_ns"), gpu.value("barrier_ns"), gpu.value("launch_us")) == (600.0, 500.0, 500.0)
    assert {name for name, measured in gpu.ceilings.items() if measured.campaign} == {
        "barrier_ns",
        "launch_us",
    }


def test_rates_are_per_microsecond_and_the_peak_stands_in_for_device_memory():
    gpu = ceilings.read([ceiling("l2_gbytes_per_s", 5000.0), ceiling("block_starts_per_us", 1600.0)], GPU)
    assert gpu.per_us("l2_gbytes_per_s") == 5e6
    assert gpu.per_us("block_starts_per_us") == 1600
    assert gpu.per_us("dram_gbytes_per_s") == 3e6
    assert ceilings.read([ceiling("dram_gbytes_per_s", 2700.0)], GPU).per_us("dram_gbytes_per_s") == 2.7e6
    assert (gpu.share("issue_pct"), ceilings.read([ceiling("issue_pct", 90.0)], GPU).share("issue_pct")) == (
        1.0,
        0.9,
    )


def test_the_work_of_a_kernel_is_counted_without_its_time():
    counts = COUNTED | {
        "pipe_fma_pct": 40.0,
        "pipe_xu_instructions": 1e6,
        "inst_ldg": 3e6,
        "global_load_sectors_per_request": 16.0,
        "inst_ldl": 2.0,
        "inst_stl": 3.0,
        "global_reduction_requests": 7.0,
    }
    work = work_of(counts, 100.0, 1800.0, UNKNOWN)
    assert (work.block_warps, work.resident, work.lives) == (8, 3, pytest.approx(4 / 3))
    assert work.pipe_cycles == pytest.approx({"fma": 4e5, "xu": 2e4})
    assert (work.load_sectors, work.spills, work.same_address) == (48e6, 5, 7)
    assert not work.is_clean
    assert work_of(
        counts | {"l1_wavefronts": 1.0, "l2_requests_from_sms": 1.0}, 100.0, 1800.0, UNKNOWN
    ).is_clean
    assert work_of({}, 100.0, 1800.0, UNKNOWN) is None
    assert work_of(counts, 100.0, math.nan, UNKNOWN) is None


@pytest.mark.parametrize(("sectors", "added"), [(10.0, 10), (15.0, 10), (40.0, 0)])
def test_atomics_whose_lanes_add_to_several_sectors_are_not_on_one_address(sectors, added):
    for kind in ("reduction", "atomic"):
        counts = COUNTED | {f"global_{kind}_requests": 10.0, f"l2_{kind}_sectors": sectors}
        assert work_of(counts, 100.0, 1800.0, UNKNOWN).same_address == added


@pytest.mark.parametrize(
    ("of_l1", "conflicts"), [(450.0, 300.0), (250.0, 150.0), (100.0, 0.0), (math.nan, 300.0)]
)
def test_bank_conflicts_are_at_most_what_l1_did_beyond_accesses_without_them(of_l1, conflicts):
    counts = COUNTED | {"shared_wavefronts": 400.0, "shared_wavefronts_excess": 300.0, "l1_wavefronts": of_l1}
    work = work_of(counts, 100.0, 1800.0, UNKNOWN)
    assert (work.conflicts, work.shared_wavefronts - work.conflicts) == (conflicts, 100.0)


def test_wavefronts_of_global_memory_are_no_bank_conflicts():
    of_l1 = {"l1_wavefronts": 400.0, "l1_shared_wavefronts": 105.0}
    counts = COUNTED | {"shared_wavefronts": 400.0, "shared_wavefronts_excess": 300.0} | of_l1
    assert work_of(counts, 100.0, 1800.0, UNKNOWN).conflicts == 5.0
    fewer = work_of(counts | {"l1_shared_wavefronts": 80.0}, 100.0, 1800.0, UNKNOWN)
    assert (fewer.conflicts, fewer.shared_wavefronts) == (0.0, 80.0)


@pytest.mark.parametrize(
    ("sectors", "lane_bytes", "excess"),
    [(32, 4.0, 28), (32, math.nan, 28), (16, 16.0, 0), (16, math.nan, 0), (16, 4.0, 12), (1, 4.0, 0)],
)
def test_excess_sectors_are_those_beyond_what_lanes_ask_for(sectors, lane_bytes, excess):
    counts = COUNTED | {"inst_ldg": 10.0, "global_load_sectors_per_request": float(sectors)}
    work = work_of(counts, 100.0, 1800.0, UNKNOWN)
    assert replace(work, load_bytes=lane_bytes).excess_sectors == 10 * excess


def test_the_kernels_of_a_launch_are_read_in_their_order():
    rows = [*metrics(launch=1, gpu_cycles=5.0, inst_bar=2.0), *metrics(inst_bar=1.0)]
    found = campaign.launches(rows, [measured()], {}, {}, {}, 100.0)
    assert [work.barriers for work in found[KEY]] == [1, 2]
    assert {work.mhz for work in found[KEY]} == {1800}


def test_a_launch_with_a_kernel_of_unknown_shape_is_left_out():
    partial = [each for each in metrics(launch=1) if each["metric"] != "grid_blocks"]
    assert campaign.launches([*metrics(), *partial], [measured()], {}, {}, {}, 100.0) == {}
    failed = [each | {"status": "missing"} for each in metrics()]
    assert campaign.launches(failed, [measured()], {}, {}, {}, 100.0) == {}


def test_only_cases_that_ran_have_a_time():
    bad = ("sgemm", "tiled", "2048")
    floors = [
        row(regime="rest", deviation=0.01, freedom=5.0, groups=0.0),
        row(regime="sustained", deviation=0.5),
    ]
    found = campaign.times([measured(), measured(bad, status="wrong")], floors)
    assert set(found) == {KEY}
    assert (found[KEY].us, found[KEY].noise.deviation) == (50.0, 0.01)


def code(*texts, loop=0, iterates=True, iterations=800, executed=800):
    shared = {
        "loop": loop,
        "iterates": iterates,
        "iterations": iterations,
        "executed": executed,
        "samples": 10,
    }
    rest = {"sample_share": 0.5, "stall": "", "stall_samples": 0, "file": "a.cu", "line": 3}
    return [
        row(place=place, offset=16 * place, text=text, **shared, **rest) for place, text in enumerate(texts)
    ]


def test_machine_code_tells_widths_chains_and_the_loads_of_the_loop_that_loads_most():
    rows = [
        *code("LDG.E.64 R4, desc[UR4][R2.64]", "LDG.E.64 R6, desc[UR4][R2.64]", "FADD R1, R1, R6"),
        *code("FFMA R8, R8, R9, R10", "STG.E desc[UR4][R2.64], R8", loop=1, iterations=200, executed=200),
        *code("REDG.E.ADD.F32.FTZ.RN desc[UR4][R2.64], R5", loop=2),
    ]
    found = campaign.codes(rows)[KEY]
    assert found.in_flight == 2
    assert (found.load_bytes, found.store_bytes) == (8, 4)
    assert found.dependent == 800 + 200
    assert found.adds_floats
    plain = campaign.codes(code("REDG.E.ADD.STRONG.GPU desc[UR4][R2.64], R5"))[KEY]
    assert not plain.adds_floats
    assert math.isnan(plain.load_bytes)


def test_conflicts_between_registers_are_known_if_the_text_has_what_is_reused():
    delayed, reused = "FFMA R8, R2, R4, R6", "FFMA R9, R2.reuse, R5, R6"
    assert campaign.codes(code(delayed, reused))[KEY].port_conflicts == 800
    assert campaign.codes(code("FFMA R9, R2.reuse, R5, R6", delayed))[KEY].port_conflicts == 0
    assert math.isnan(campaign.codes(code(delayed))[KEY].port_conflicts)


def test_what_machine_code_tells_is_that_of_the_longest_kernel():
    known = campaign.codes(code("LDG.E R4, desc[UR4][R2.64]"))
    short, long = campaign.launches(
        [*metrics(gpu_cycles=10.0), *metrics(launch=1)], [measured()], known, {}, {}, 100.0
    )[KEY]
    assert (short.in_flight, long.in_flight) == (0, 1)


def test_one_warp_of_a_block_waits_for_its_bulk_stores():
    """Of eight warps, whose samples are as many at each instruction."""
    known = campaign.codes(code("UTMACMDFLUSH", "DEPBAR.LE SB0, 0x3", "CCTL.IVALL", *["NOP"] * 13))
    (work,) = campaign.launches(metrics(), [measured()], known, {}, {}, 100.0)[KEY]
    assert (work.stores_left, work.store_waits) == (3, 8 * 2 / 16)


def test_the_longest_kernel_of_a_variant_with_such_an_opcode_copies_to_several_blocks():
    counted = [*metrics(gpu_cycles=10.0), *metrics(launch=1)]
    opcode = row((*KEY[:2], ""), tool="cuobjdump", metric="sass_UTMALDG.2D.MULTICAST", value=1.0)
    for rows, expected in (([*counted, opcode], (False, True)), (counted, (False, False))):
        works = campaign.launches(rows, [measured()], {}, {}, {}, 100.0)[KEY]
        assert tuple(work.multicasts for work in works) == expected


def test_the_compulsory_bytes_of_every_timed_case_are_known(tmp_path):
    family = make_family(tmp_path)
    empty = dict.fromkeys(campaign.TABLES, ())
    found = campaign.read({**empty, "gpus": [GPU]}, {}, {"scale": family})
    assert found.compulsory_bytes == {
        ("scale", name): 8 * case.values["N"] for name, case in family.cases.items()
    }
    assert len(found.compulsory_bytes) > 1
