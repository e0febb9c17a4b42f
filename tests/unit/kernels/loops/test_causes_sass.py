"""What nvcc makes of planted pairs: the planted work is there, and nothing else of weight differs."""

import re
from collections import Counter

import pytest
from sass_loops import opcodes_of_loops

from sass_builds import Kind, builder, check
from shipped_families import FAMILIES

CAUSES = FAMILIES["causes"]
# What a loop of the kernel holds of these opcodes, by variant.
LOOPS = {
    **{f"lines_{n}": {"LDG.E.STRONG": 32, "STG": 0} for n in (32, 16, 8, 1)},
    **{f"passes_{n}": {"LDG.E.STRONG": 32, "STG": 0} for n in (48, 24, 12)},
    **{f"uses_{n}": {"LDS": 64 // n, "FFMA": 32} for n in (1, 2, 4)},
    **{f"conflicts_{n}": {"LDS": 32} for n in (8, 4, 2, 1)},
    **{f"integers_{n}": {"LOP3": 32, "LDG": 0} for n in (1024, 512, 256)},
    **{f"chase_{n}": {"LDG": n, "STG": n} for n in (1, 2, 4, 8)},
    **{f"warps_{n}": {"LDG": 1, "STG": 1} for n in (8, 16, 32, 64)},
    **{f"narrow_{n}": {"LDG": n, "LDG.E.128": 0, "STG": n} for n in (1, 2, 4)},
    **{f"wide_{n}": {"LDG": n, "LDG.E.128": n, "STG": n} for n in (1, 2, 4)},
    **{f"barriers_{n}": {"BAR": 4 * n, "IMAD": 5} for n in (4, 2, 1)},
    **{f"fences_{n}": {"MEMBAR": 4 * n, "STG": 16} for n in (4, 1, 0)},
    **{f"{name}wave{s}": {"IMAD": 64, "LDG": 0} for name, s in (("", ""), ("two_", "s"))},
    **{f"{name}_and_a_block": {"IMAD": 64, "LDG": 0} for name in ("wave", "two_waves")},
    **{f"load_{n}": {"LDGSTS": 1, "BAR": 1, "DEPBAR": 1} for n in ("and_wait", "ahead")},
    **{f"load_{n}_long": {"LDGSTS": 1, "BAR": 1, "DEPBAR": 1} for n in ("and_wait", "ahead")},
    **{f"store_{n}": {"UBLKCP": 2, "BAR": 2, "DEPBAR": 1, "STS": 1} for n in ("and_wait", "behind")},
    **{f"store_{n}_long": {"UBLKCP": 2, "BAR": 2, "DEPBAR": 1, "STS": 1} for n in ("and_wait", "behind")},
    "bounds_2": {"IMAD": 64, "LDL": 0, "STL": 0},
    **{f"multicast_{n}": {"UBLKCP": 4 // n, "LDS": 0} for n in (1, 2, 4)},
    **{f"chains_warps_{n}": {"FFMA": 128} for n in (8, 16)},
    **{f"products_loads_{n}": {"HMMA": 32, "LDG": n} for n in (2, 1)},
}  # fmt: skip
# What a kernel without a loop holds.
KERNELS = {
    **{f"streams_{n}": {"LDG.E.128": n, "STG.E.128": n} for n in (4, 2, 1)},
    **{f"blocks_{n}": {"LDG": 1, "STG": 1} for n in (32, 64, 128)},
    **{f"launches_{n}": {"LDG": 1, "STG": 1} for n in (8, 4, 2, 1)},
    **{f"atomics_{n}": {"LDG": 1, "STG": 1, "RED": 1, "VOTE": 0} for n in (1, 8, 64)},
    **{f"copy_conflicts_{n}": {"LDG": 4, "STG": 4, "LDS": 4, "STS": 4} for n in (4, 1)},
    "copy_work_16": {"LDG": 1, "STG": 1, "IMAD": 66},
    "copy_work_4": {"LDG": 1, "STG": 1, "IMAD": 18},
}
# Pairs of the same instructions: the number of rounds, the launch or the address is what differs.
ALIKE = (
    "passes_",
    "conflicts_",
    "integers_",
    "warps_",
    "wave",
    "two_waves",
    "blocks_",
    "launches_",
    "chains_warps_",
    "store_",  # how many stores may be under way is an operand
)
SPILLED = ("bounds_8", "bounds_5")


@pytest.fixture(scope="module")
def made(kept_builds):
    """Folder and kernel of every variant on sm_90."""
    found = {}
    for name, (folder, record) in builder(CAUSES, kept_builds)("sm_90", Kind.KERNELS).items():
        check(CAUSES.variant(name), folder, record)
        (kernel,) = record.kernels
        found[name] = folder, kernel
    return found


def count(opcodes, prefix):
    return sum(number for opcode, number in opcodes.items() if f"{opcode}.".startswith(f"{prefix}."))


def loops(folder):
    return [Counter(loop.split()) for loop in opcodes_of_loops((folder / "kernel.sass").read_text())]


@pytest.mark.nvcc
def test_the_loop_of_each_kernel_holds_what_is_planted(made):
    assert {*LOOPS, *KERNELS, *SPILLED} == set(made)
    for name, wanted in LOOPS.items():
        found = loops(made[name][0])
        assert any(all(count(loop, o) == n for o, n in wanted.items()) for loop in found), (name, found)
    for name, wanted in KERNELS.items():
        opcodes = made[name][1].opcodes
        assert {prefix: number_of(opcodes, prefix) for prefix in wanted} == wanted, name


def number_of(opcodes, prefix):
    return sum(
        number for opcode, number in opcodes.items() if re.match(rf"U?{re.escape(prefix)}(G|U)?\b", opcode)
    )


@pytest.mark.nvcc
def test_pairs_that_only_differ_in_rounds_launch_or_addresses_have_the_same_instructions(made):
    alike = [v for v in CAUSES.variants if v.planted and v.name.startswith(ALIKE)]
    assert len(alike) == 20
    for variant in alike:
        assert made[variant.name][1].opcodes == made[variant.parent][1].opcodes, variant.name


@pytest.mark.nvcc
def test_fewer_registers_spill_more_in_each_round(made):
    more, fewer = (
        max(
            count(loop, "LDL") + count(loop, "STL")
            for loop in loops(made[name][0])
            if count(loop, "IMAD") == 64
        )
        for name in SPILLED
    )
    assert more > 1.5 * fewer > 0
    assert [made[f"bounds_{n}"][1].registers_per_thread for n in (8, 5)] == [32, 48]


@pytest.mark.nvcc
def test_no_other_kernel_spills(made):
    spilling = {
        name for name, (_, kernel) in made.items() if kernel.spill_store_bytes + kernel.spill_load_bytes
    }
    assert spilling == set(SPILLED)
