"""Parses the output of `nvcc -Xptxas -v`: registers, shared memory, stack and spills of each kernel."""

import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from warplog.core.errors import WarplogError

_ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"^ptxas info\s*: Function properties for '?([^'\s]+)'?")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"^ptxas info\s*: Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+)(?:\+\d+)? bytes cmem\[\d+\]")
_FAILED = re.compile(r"^ptxas (?:error|fatal)", re.MULTILINE)
_DEMANGLE_S = 20


@dataclass(frozen=True)
class KernelResources:
    """Resources of one kernel for one architecture; stack and spill bytes are per thread.

    `constant_bytes` is None if ptxas prints none (CUDA 13 for sm_90 and later), spills are None if they are unknown.
    Spills in functions that the compiler did not inline belong to those functions and are not included.
    """

    kernel: str
    mangled: str
    arch: str
    registers_per_thread: int
    static_shared_bytes: int = 0
    constant_bytes: int | None = None
    stack_bytes: int = 0
    spill_store_bytes: int | None = 0
    spill_load_bytes: int | None = 0
    barriers: int = 0


def parse(log: str) -> tuple[KernelResources, ...]:
    """Returns the kernels of a compiler log in the order of compilation; unrelated lines are skipped.

    A kernel that is compiled for several architectures appears once per architecture. Kernels without a
    "Used … registers" line, which ptxas omits if it fails, do not appear.
    """
    found = list(_kernels(log.splitlines()))
    names = demangle(tuple(k.mangled for k in found))
    return tuple(replace(k, kernel=name) for k, name in zip(found, names, strict=True))


def check_whole(log: str) -> None:
    """Checks that the log does not stop inside a kernel; a log that stops between two kernels is not detected.

    Raises:
        WarplogError: if the last line has no line end, or a kernel lacks its registers although ptxas did not fail.
    """
    if not log.endswith("\n"):
        raise WarplogError("is truncated: its last line has no line end; compile again")
    begun = [entry[1] for line in log.splitlines() if (entry := _ENTRY.match(line))]
    finished = sum(_USED.match(line) is not None for line in log.splitlines())
    if not begun or (finished < len(begun) and not _FAILED.search(log)):
        last = f"the registers of kernel {begun[-1]} are missing" if begun else "it names no kernel"
        raise WarplogError(f"is truncated: {last}; compile again")


def demangle(names: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the demangled C++ names; unchanged if c++filt is missing or fails."""
    tool = shutil.which("c++filt")
    if tool is None or not any(name.startswith("_Z") for name in names):
        return names
    try:
        done = subprocess.run(
            [tool], input="\n".join(names), capture_output=True, text=True, timeout=_DEMANGLE_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return names
    lines = done.stdout.splitlines()
    return tuple(lines) if len(lines) == len(names) else names


def _kernels(lines: Iterable[str]) -> Iterator[KernelResources]:
    mangled, arch = "", ""
    owner = ""
    stack = (0, 0, 0)
    for line in lines:
        if entry := _ENTRY.match(line):
            mangled, arch = entry[1], entry[2]
            stack = (0, 0, 0)
        elif properties := _PROPERTIES.match(line):
            owner = properties[1]
        elif (sizes := _STACK.search(line)) and owner == mangled:
            stack = (int(sizes[1]), int(sizes[2]), int(sizes[3]))
        elif (used := _USED.match(line)) and mangled:
            yield _kernel(mangled, arch, stack, int(used[1]), used[2])
            mangled = ""


def _kernel(
    mangled: str, arch: str, stack: tuple[int, int, int], registers: int, rest: str
) -> KernelResources:
    barriers, shared = _BARRIERS.search(rest), _SHARED.search(rest)
    constants = [int(size) for size in _CONSTANT.findall(rest)]
    return KernelResources(
        kernel=mangled,
        mangled=mangled,
        arch=arch,
        registers_per_thread=registers,
        static_shared_bytes=int(shared[1]) if shared else 0,
        constant_bytes=sum(constants) if constants else None,
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
        barriers=int(barriers[1]) if barriers else 0,
    )
