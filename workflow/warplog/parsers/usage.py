"""Parses the output of `cuobjdump -res-usage`: the resources of each kernel in a library that is compiled already."""

import re
from collections.abc import Iterator
from dataclasses import replace

from warplog.parsers.ptxas import KernelResources, demangle

_CODE = re.compile(r"^Fatbin (elf|ptx) code:")
_ARCH = re.compile(r"^arch = (sm_\w+)")
_FUNCTION = re.compile(r"^\s*Function (\S+):$")
_COUNT = re.compile(r"(\w+(?:\[\d+\])?):(\d+)")


def parse(text: str) -> tuple[KernelResources, ...]:
    """Returns the kernels of all architectures in a dump; spills are unknown, since cuobjdump does not report them."""
    found = list(_kernels(text))
    names = demangle(tuple(kernel.mangled for kernel in found))
    return tuple(replace(kernel, kernel=name) for kernel, name in zip(found, names, strict=True))


def architectures(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Returns the architectures that a dump has machine code for, and those that it has PTX for, without duplicates."""
    found: dict[str, dict[str, None]] = {"elf": {}, "ptx": {}}
    kind = "elf"
    for line in text.splitlines():
        if code := _CODE.match(line):
            kind = code[1]
        elif arch := _ARCH.match(line):
            found[kind][arch[1]] = None
    return tuple(found["elf"]), tuple(found["ptx"])


def _kernels(text: str) -> Iterator[KernelResources]:
    arch = function = ""
    for line in text.splitlines():
        if found := _ARCH.match(line):
            arch = found[1]
        elif name := _FUNCTION.match(line):
            function = name[1]
        elif function and "REG:" in line:
            counts = {key: int(value) for key, value in _COUNT.findall(line)}
            yield KernelResources(
                kernel=function,
                mangled=function,
                arch=arch,
                registers_per_thread=counts["REG"],
                static_shared_bytes=counts.get("SHARED", 0),
                constant_bytes=sum(value for key, value in counts.items() if key.startswith("CONSTANT")),
                stack_bytes=counts.get("STACK", 0),
                spill_store_bytes=None,
                spill_load_bytes=None,
            )
            function = ""
