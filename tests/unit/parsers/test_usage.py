"""Resources of kernels from `cuobjdump -res-usage`, and spilled bytes from their instructions, added up by hand."""

import pytest

from warplog.parsers import usage
from warplog.parsers.ptxas import KernelResources

USED = "REG:32 STACK:16 SHARED:{} LOCAL:0 CONSTANT[0]:536 CONSTANT[2]:8 TEXTURE:0 SURFACE:0 SAMPLER:0"


def dump(kind, arch, *functions):
    """Returns the part of a dump about one architecture: name and shared bytes of each function."""
    lines = [
        f"Fatbin {kind} code:",
        "================",
        f"arch = {arch}",
        "Resource usage:",
        " Common:",
        "  GLOBAL:0",
    ]
    for name, shared in functions:
        lines += [f" Function {name}:", f"  {USED.format(shared)}"]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("arch", "printed", "shared"),
    [
        ("sm_89", 5120, 5120),
        ("sm_90", 5120, 4096),
        ("sm_90a", 1024, 0),
        ("sm_100f", 1025, 1),
        ("sm_120", 0, 0),
    ],
)
def test_from_sm_90_on_a_kilobyte_of_shared_memory_is_the_drivers(arch, printed, shared):
    (kernel,) = usage.parse(dump("elf", arch, ("k", printed)))
    assert (kernel.kernel, kernel.arch, kernel.static_shared_bytes) == ("k", arch, shared)
    assert (kernel.registers_per_thread, kernel.stack_bytes, kernel.constant_bytes) == (32, 16, 544)
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes) == (None, None)


def test_each_architecture_has_its_kernels_and_machine_code_is_told_from_ptx():
    text = dump("elf", "sm_80", ("k", 0), ("j", 0)) + dump("elf", "sm_90", ("k", 2048)) + dump("ptx", "sm_90")
    found = [(one.kernel, one.arch, one.static_shared_bytes) for one in usage.parse(text)]
    assert found == [("k", "sm_80", 0), ("j", "sm_80", 0), ("k", "sm_90", 1024)]
    assert usage.architectures(text) == (("sm_80", "sm_90"), ("sm_90",))


def test_spilled_bytes_are_those_of_each_access_by_its_width():
    opcodes = {"STL": 2, "STL.64": 3, "STL.128": 1, "LDL.LU.64": 2, "LDL.U8": 1, "LDL.S16": 1, "LDG.E.128": 9}
    kernel = usage.with_spills(KernelResources("k", "k", "sm_90", 32), opcodes)
    assert kernel.spill_store_bytes == 2 * 4 + 3 * 8 + 1 * 16
    assert kernel.spill_load_bytes == 2 * 8 + 1 * 1 + 1 * 2
