"""What nvcc makes of the steps of `costs`: one of the instructions whose cost is measured, and little beside it."""

import re

import pytest
from sass_loops import opcodes_of_loops

from sass_builds import builder, check
from shipped_families import FAMILIES

COSTS = FAMILIES["costs"]
# Opcodes of a step, by variant; each loop takes eight steps, and another one the rest.
STEP = {
    "nothing": (), "one_block_per_sm": (), "launches": (), "barrier": ("BAR",), "mbarrier": ("SYNCS.ARRIVE",),
    "mbarrier_all_lanes": ("SYNCS.ARRIVE",), "fence": ("STG", "MEMBAR"), "shared_add": ("ATOMS",),
    "global_add": ("REDG",), "global_add_float": ("REDG",),
}  # fmt: skip
MEASURED = sorted({opcode for step in STEP.values() for opcode in step} - {"STG"})


@pytest.mark.nvcc
def test_a_step_has_one_instruction_of_its_kind_and_none_of_the_others(kept_builds):
    made = builder(COSTS, kept_builds)("sm_90")
    assert set(made) == set(STEP)
    for variant in COSTS.variants:
        folder, record = made[variant.name]
        check(variant, folder, record)
        loops = opcodes_of_loops((folder / "kernel.sass").read_text())
        found = [
            loop for loop in loops if all(len(re.findall(rf"\b{o}\b", loop)) == 8 for o in STEP[variant.name])
        ]
        assert found or variant.name == "launches", variant.name
        others = [opcode for opcode in MEASURED if opcode not in STEP[variant.name]]
        assert not [o for loop in found[:1] for o in others if re.search(rf"\b{o}\b", loop)], variant.name
