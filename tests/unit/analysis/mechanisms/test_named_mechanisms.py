"""Which mechanism makes the difference between two kernels."""

import pytest

from made_up_work import gpu, work
from warplog.analysis.mechanisms import causes
from warplog.analysis.mechanisms.model import Calibration, predict
from warplog.analysis.verdicts import EXACT, Timed
from warplog.core.columns import TABLES, TRACED_KERNELS
from warplog.metrics import METRICS

LOADS = {"loads": 1e7, "load_bytes": 4.0, "stores": 0.0, "in_flight": 1}
WORDS = {**LOADS, "load_sectors": 4e7}
PAIRS = {
    "bank_conflicts": (
        {"l1_wavefronts": 2e9, "shared_wavefronts": 2e9, "conflicts": 1e9},
        {"l1_wavefronts": 1e9, "shared_wavefronts": 1e9},
    ),
    "shared_accesses": (
        {"l1_wavefronts": 2e9, "shared_wavefronts": 2e9, "shared_accesses": 2e9, "instructions": 3e9},
        {"l1_wavefronts": 1e9, "shared_wavefronts": 1e9, "shared_accesses": 1e9, "instructions": 2e9},
    ),
    "coalescing": (
        {
            **LOADS,
            "load_sectors": 32e7,
            "l1_wavefronts": 32e7,
            "l2_requests": 32e7,
            "l2_bytes": 1e10,
            "dram_read": 32e8,
        },
        {**WORDS, "l1_wavefronts": 1e7, "l2_requests": 1e7, "l2_bytes": 1.3e9, "dram_read": 12e8},
    ),
    "l2_bytes": (
        {**WORDS, "l2_requests": 1e9, "l2_bytes": 2e11},
        {**WORDS, "l2_requests": 5e8, "l2_bytes": 1e11},
    ),
    "multicast": (
        {"l2_requests": 1e9, "l2_sectors": 8e9, "l2_bytes": 2e11},
        {"l2_requests": 5e8, "l2_sectors": 4e9, "l2_bytes": 1e11, "multicasts": True},
    ),
    "dram_bytes": ({**WORDS, "dram_read": 6e9}, {**WORDS, "dram_read": 3e9}),
    "instructions": ({"instructions": 8e9}, {"instructions": 4e9}),
    "spills": (
        {"instructions": 8e9, "spills": 3e9, "l1_wavefronts": 3e9},
        {"instructions": 5e9},
    ),
    "faster_unit": ({"pipe_cycles": {"fma": 4e6}}, {"pipe_cycles": {"tensor": 1e6}}),
    "wide_accesses": (
        {**WORDS, "blocks": 80_000.0},
        {**WORDS, "loads": 25e5, "load_bytes": 16.0, "blocks": 20_000.0},
    ),
    "loads_in_flight": ({**WORDS, "dram_read": 1e9}, {**WORDS, "in_flight": 8, "dram_read": 1e9}),
    "occupancy": ({**WORDS, "resident": 1.0}, {**WORDS, "resident": 8.0}),
    "memory_level": ({**WORDS, "dram_read": 128e7}, WORDS),
    "load_overlap": ({"copies": 8e6, "overlapped": 0.0}, {"copies": 8e6, "overlapped": 0.9}),
    "independent_instructions": ({"dependent": 8e9}, {"dependent": 2e9}),
    "barriers": ({"barriers": 8e6}, {"barriers": 2e6}),
    "fences": ({"fences": 8e4}, {"fences": 2e4}),
    "atomics": ({"same_address": 1e6}, {"same_address": 1e4}),
    "block_starts": ({"blocks": 1e5, "block_warps": 1.0}, {"blocks": 2.5e4, "block_warps": 4.0}),
    "tail": (
        {"instructions": 4e9, "blocks": 101.0, "resident": 1.0},
        {"instructions": 4e9, "blocks": 100.0, "resident": 1.0},
    ),
    "idle_sms": (
        {"instructions": 4e9, "blocks": 50.0, "resident": 1.0},
        {"instructions": 4e9, "blocks": 100.0, "resident": 1.0},
    ),
}


def found(before, after, us=100_000.0):
    prediction = predict(before, after, Timed(us, EXACT), gpu(), Calibration(4.0, 0.2))
    parts = causes.by_mechanism(before, after, prediction, gpu())
    return causes.named(parts, prediction.saved_us), prediction.saved_us


@pytest.mark.parametrize("mechanism", PAIRS)
def test_the_count_that_changed_names_the_mechanism_of_gain_and_loss(mechanism):
    before, after = ([work(**counts)] for counts in PAIRS[mechanism])
    (gain, saved_us), (loss, lost_us) = found(before, after), found(after, before)
    assert (gain, loss) == (mechanism, mechanism)
    assert saved_us > 0.05 * 100_000
    assert lost_us < 0


def test_each_mechanism_that_can_be_named_rests_on_metrics_and_columns_that_exist():
    assert {*PAIRS, "launches"} == set(causes.RESTS_ON)
    for rests_on in causes.RESTS_ON.values():
        for name in rests_on:
            table, _, column = name.rpartition("/")
            assert column in ({**TABLES, "traced_kernels": TRACED_KERNELS}[table] if table else METRICS), name


def test_fewer_kernels_save_launches():
    mechanism, saved_us = found([work(dram_read=3e6)] * 4, [work(dram_read=12e6)], 12.8)
    assert mechanism == "launches"
    assert 6 < saved_us < 8, "three launches, and starts of blocks"


@pytest.mark.parametrize(
    "decoy",
    [
        {"l1_wavefronts": 1e8, "shared_wavefronts": 1e8, "conflicts": 7e7},
        {"instructions": 8e8},
        {"l2_requests": 2e7},
        {"barriers": 1e6},
    ],
)
def test_what_takes_no_time_beside_device_memory_saves_none(decoy):
    mechanism, saved_us = found([work(dram_read=3e10, **decoy)], [work(dram_read=3e10)])
    assert saved_us < 0.002 * 100_000, mechanism


def test_copies_to_several_blocks_save_no_bytes_of_a_kernel_without_them():
    shared, alone = (
        {"l2_requests": 1e9, "l2_bytes": 2e11, "multicasts": True},
        {"l2_requests": 5e8, "l2_bytes": 1e11},
    )
    assert found([work(**shared)], [work(**alone)])[0] == "l2_bytes"


def test_blocks_on_every_sm_share_the_port_to_l2_that_one_had_alone():
    """Ports of ten times as many SMs, against two thirds of the requests."""
    loads = {"loads": 1e6, "load_bytes": 4.0, "block_warps": 1.0}
    few = work(**loads, load_sectors=6e6, l2_requests=3e6, l2_bytes=2e8, blocks=10.0, resident=1.0)
    many = work(**loads, load_sectors=4e6, l2_requests=2e6, l2_bytes=13e7, blocks=100.0, resident=1.0)
    assert found([few], [many])[0] == "idle_sms"


FULL = {"l2_requests": 3e8, "l2_sectors": 12e8, "l2_bytes": 384e8}


@pytest.mark.parametrize(
    ("before", "after", "mechanism"),
    [
        ({"l2_requests": 1e9}, {}, "coalescing"),
        (
            {"l2_requests": 1e9, "loads": 75e7, "load_sectors": 15e8, "load_bytes": 2.0},
            {"loads": 3e8, "load_sectors": 12e8, "load_bytes": 4.0},
            "wide_accesses",
        ),
        (
            {"l2_requests": 1e9, "stores": 4e6, "store_sectors": 8e6, "store_bytes": 2.0},
            {"stores": 2e6, "store_sectors": 8e6, "store_bytes": 4.0},
            "coalescing",  # the few stores are wider, but not the copies
        ),
        ({"l2_requests": 35e7}, {}, "l2_bytes"),
    ],
)
def test_requests_to_l2_that_carry_more_are_no_fewer_bytes(before, after, mechanism):
    """A fifth of the bytes is gone, which is a small part of the change where two thirds of the requests are."""
    parent, child = work(l2_sectors=15e8, l2_bytes=48e9, **before), work(**FULL, **after)
    assert found([parent], [child])[0] == found([child], [parent])[0] == mechanism


def test_coalescing_rests_on_accesses_whose_lanes_lie_less_apart_and_on_requests():
    apart, near = work(**WORDS | {"load_sectors": 32e7}), work(**WORDS)
    full, scattered = work(**FULL), work(**FULL | {"l2_requests": 1e9})
    for before, after, us, moved in (
        (apart, near, 1.0, ("global_load_sectors_per_request",)),
        (near, apart, -1.0, ("global_load_sectors_per_request",)),
        (scattered, full, 1.0, ("l2_requests_from_sms",)),
        (full, scattered, 1.0, ()),
    ):
        assert causes.rests_on("coalescing", [before], [after], us, gpu()) == moved


@pytest.mark.parametrize(("accesses", "mechanism"), [(0.0, "atomics"), (1e6, "memory_level")])
def test_fewer_atomics_in_l2_are_fewer_or_on_a_nearer_level(accesses, mechanism):
    adds = {"l2_requests": 64e7, "l2_sectors": 64e7, "l2_bytes": 2e10, "atomics": 2e7, "atomic_sectors": 64e7}
    before, after = [work(**adds)], [work(l2_sectors=1e6, l2_bytes=32e6, shared_accesses=accesses)]
    assert found(before, after)[0] == found(after, before)[0] == mechanism


@pytest.mark.parametrize(
    ("fences", "hit", "mechanism"),
    [
        ((3e3, 0.0), 0.6, "fences"),
        ((0.0, 0.0), 0.6, "l2_bytes"),
        ((0.0, 3e3), 0.6, "l2_bytes"),
        ((3e3, 0.0), 0.0, "l2_bytes"),
        ((3e3, 0.0), 0.02, "l2_bytes"),  # a few hits do not spare so many sectors
    ],
)
def test_what_hits_l1_again_without_fences_saves_no_bytes_by_itself(fences, hit, mechanism):
    moved = (
        {"l2_requests": 1e9, "l2_sectors": 4e9, "l2_bytes": 2e11},
        {"l2_requests": 5e8, "l2_sectors": 2e9, "l2_bytes": 1e11},
    )
    before, after = (
        work(stores=1e9, store_sectors=4e9, store_bytes=4.0, fences=n, l1_hit=part, **counts)
        for n, part, counts in zip(fences, (0.0, hit), moved, strict=True)
    )
    assert found([before], [after])[0] == found([after], [before])[0] == mechanism


@pytest.mark.parametrize(
    ("missed", "mechanism"), [(1.0, "shared_accesses"), (1.1, "shared_accesses"), (0.5, "memory_level")]
)
def test_accesses_to_shared_memory_in_the_place_of_hits_in_l1_are_of_no_nearer_level(missed, mechanism):
    """Three accesses become two."""
    afar = {"l2_bytes": 1e9, "dram_read": 1e8}
    before = work(**WORDS | {"loads": 3e9, "load_sectors": 12e9}, **afar, l1_wavefronts=3e9, l1_hit=0.95)
    after = work(
        **WORDS | {"loads": 1e7, "load_sectors": missed * 6e8},
        **{name: missed * count for name, count in afar.items()},
        shared_accesses=2e9,
        shared_wavefronts=2e9,
        l1_wavefronts=2e9,
    )
    assert found([before], [after])[0] == found([after], [before])[0] == mechanism


def test_spills_that_reach_device_memory_are_named_for_its_bytes():
    """A warp spills 128 bytes at a time."""
    assert found([work(dram_read=3e9)], [work(dram_read=6e9, spills=2e7)])[0] == "spills"
    assert found([work(dram_read=3e9)], [work(dram_read=6e9, spills=2e6)])[0] == "dram_bytes"


def rests_on(before, after, us=1.0):
    return causes.rests_on("memory_level", [before], [after], us, gpu())


def test_a_mechanism_rests_on_the_counts_that_moved_its_way():
    before = work(l1_wavefronts=5e9, shared_wavefronts=1e6)
    after = work(l1_wavefronts=1e9, shared_wavefronts=1e8)
    for sides, us, moved in (
        ((before, after), 1.0, ("l1_wavefronts",)),
        ((after, before), 1.0, ("l1_shared_wavefronts",)),
        ((after, before), -1.0, ("l1_wavefronts",)),
    ):
        assert causes.rests_on("shared_accesses", sides[:1], sides[1:], us, gpu()) == moved
    assert causes.rests_on("spills", [work(spills=1.0)], [work(spills=9.0)], 1.0, gpu()) == ()


def test_a_nearer_level_rests_on_what_answers_instead():
    loads, tile = (
        work(**WORDS, l1_hit=0.95),
        work(**{**WORDS, "loads": 3e5}, shared_accesses=2e7, dram_read=2e9),
    )
    assert rests_on(loads, tile) == ("inst_ldg", "inst_lds"), "more bytes are read, and fewer hit L1"
    assert rests_on(tile, loads, -1.0) == ("inst_ldg", "inst_lds")
    missed, hit = (work(**WORDS, dram_read=read, l1_hit=part) for read, part in ((2e9, 0.1), (1e9, 0.9)))
    assert rests_on(missed, hit) == ("dram_bytes_read", "l1_hit_pct")
    assert rests_on(hit, missed) == ()


@pytest.mark.parametrize("moved", [1.03, 1.08])
def test_a_count_that_hardly_moves_names_no_mechanism(moved):
    before, after = work(dram_read=3e9 * moved), work(dram_read=3e9)
    assert found([before], [after])[0] == ("dram_bytes" if moved > 1.05 else "none")


def test_what_other_kernels_of_a_launch_no_longer_read_is_seen():
    same, read = work(dram_read=3e9), work(dram_read=2e9)
    assert causes.rests_on("dram_bytes", [same, read], [same], 1.0, gpu()) == causes.RESTS_ON["dram_bytes"]


def test_a_change_that_no_count_explains_has_no_mechanism():
    assert found([work(dram_read=3e9)], [work(dram_read=3e9)])[0] == "none"
