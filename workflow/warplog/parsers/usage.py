"""Parses the output of `cuobjdump -res-usage`: the resources of each kernel in a library or cubin."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from warplog.parsers.ptxas import KernelResources, demangle

_CODE = re.compile(r"^Fatbin (elf|ptx) code:")
_ARCH = re.compile(r"^arch = (sm_\w+)")
_FUNCTION = re.compile(r"^\s*Function (\S+?):?\s*$")
_COUNT = re.compile(r"(\w+(?:\[[0-9]+\])?):([0-9]{1,18})")
# What the driver reserves in each block; cuobjdump counts it from compute capability 9 on, ptxas does not.
_RESERVED_BYTES = 1024
_LOCAL = re.compile(r"(STL|LDL)\b(.*)")
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
_WORD = 4


def parse(text: str, arch: str = "") -> tuple[KernelResources, ...]:
    """Returns the kernels of all architectures in a dump; spills are unknown, since cuobjdump does not report them.

    Args:
        text: the output of cuobjdump.
        arch: the architecture of the kernels in a dump that does not name it, such as that of a cubin.
    """
    kernels = list(_kernels(text, arch))
    names = demangle(tuple(kernel.mangled for kernel in kernels))
    return tuple(replace(kernel, kernel=name) for kernel, name in zip(kernels, names, strict=True))


def architectures(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the architectures that a dump has machine code for, and those that it has PTX for, without duplicates."""
    by_kind: dict[str, dict[str, None]] = {"elf": {}, "ptx": {}}
    kind = "elf"
    for line in text.splitlines():
        if code := _CODE.match(line):
            kind = code[1]
        elif arch := _ARCH.match(line):
            by_kind[kind][arch[1]] = None
    return tuple(by_kind["elf"]), tuple(by_kind["ptx"])


def with_spills(kernel: KernelResources, opcodes: Mapping[str, int]) -> KernelResources:
    """Returns the kernel with the spilled bytes per thread that follow from its instructions, each executed once.

    These are the bytes of all accesses to local memory, which are more if the kernel also has arrays that do not fit
    into registers.
    """
    return replace(
        kernel,
        spill_store_bytes=_local_bytes(opcodes, "STL"),
        spill_load_bytes=_local_bytes(opcodes, "LDL"),
    )


def _local_bytes(opcodes: Mapping[str, int], access: str) -> int:
    total = 0
    for opcode, count in opcodes.items():
        if (match := _LOCAL.match(opcode)) and match[1] == access:
            widths = (_WIDTHS[part] for part in match[2].split(".") if part in _WIDTHS)
            total += count * next(widths, _WORD)
    return total


def _reserved_bytes(arch: str) -> int:
    major = int(arch.removeprefix("sm_").rstrip("af")) // 10
    return _RESERVED_BYTES if major >= 9 else 0


def _kernels(text: str, arch: str) -> Iterator[KernelResources]:
    function = ""
    for line in text.splitlines():
        if named := _ARCH.match(line):
            arch = named[1]
        elif name := _FUNCTION.match(line):
            function = name[1]
        elif function and "REG:" in line:
            counts = {key: int(value) for key, value in _COUNT.findall(line)}
            yield KernelResources(
                kernel=function,
                mangled=function,
                arch=arch,
                registers_per_thread=counts["REG"],
                static_shared_bytes=max(counts.get("SHARED", 0) - _reserved_bytes(arch), 0),
                constant_bytes=sum(value for key, value in counts.items() if key.startswith("CONSTANT")),
                stack_bytes=counts.get("STACK", 0),
                spill_store_bytes=None,
                spill_load_bytes=None,
            )
            function = ""
