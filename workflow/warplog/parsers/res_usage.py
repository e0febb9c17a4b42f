"""Parses the output of `cuobjdump -res-usage`: registers, shared memory and stack of each kernel of a cubin."""

import re
from collections.abc import Mapping

from warplog.parsers.ptxas import KernelResources, demangle

_FUNCTION = re.compile(r"^\s*Function (\S+?):?\s*$")
_NUMBER = re.compile(r"\b([A-Z]+)(?:\[\d+\])?:(\d+)")
# What the driver reserves in each block; cuobjdump counts it from compute capability 9 on, ptxas does not.
_RESERVED_BYTES = 1024
_LOCAL = re.compile(r"(STL|LDL)\b(.*)")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WORD = 4


def parse(text: str, arch: str, opcodes: Mapping[str, Mapping[str, int]]) -> tuple[KernelResources, ...]:
    """Returns the kernels of a cubin in order.

    A cubin does not say what was spilled: spilled bytes are those of the instructions that access local memory, which
    are more if the kernel also has arrays that do not fit into registers.

    Args:
        text: the output of cuobjdump.
        arch: the architecture of the code, such as sm_90.
        opcodes: the instruction counts of each kernel by its mangled name, see warplog.parsers.sass.
    """
    found: list[tuple[str, dict[str, int]]] = []
    name = ""
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            name = function[1]
        elif name and "REG:" in line:
            found.append((name, {key: int(value) for key, value in _NUMBER.findall(line)}))
            name = ""
    names = demangle(tuple(mangled for mangled, _ in found))
    reserved = _RESERVED_BYTES if _major(arch) >= 9 else 0
    return tuple(
        KernelResources(
            kernel=kernel,
            mangled=mangled,
            arch=arch,
            registers_per_thread=numbers["REG"],
            static_shared_bytes=max(numbers.get("SHARED", 0) - reserved, 0),
            stack_bytes=numbers.get("STACK", 0),
            spill_store_bytes=local_bytes(opcodes.get(mangled, {}), "STL"),
            spill_load_bytes=local_bytes(opcodes.get(mangled, {}), "LDL"),
        )
        for kernel, (mangled, numbers) in zip(names, found, strict=True)
    )


def local_bytes(opcodes: Mapping[str, int], access: str) -> int:
    """Returns the bytes per thread that stores to (STL) or loads from (LDL) local memory access, each executed once."""
    total = 0
    for opcode, count in opcodes.items():
        if (found := _LOCAL.match(opcode)) and found[1] == access:
            widths = (_WIDTHS[part] for part in found[2].split(".") if part in _WIDTHS)
            total += count * next(widths, _WORD)
    return total


def _major(arch: str) -> int:
    return int(arch.removeprefix("sm_").rstrip("af")) // 10
