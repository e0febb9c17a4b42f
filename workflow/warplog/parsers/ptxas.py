"""Parses the output of `nvcc -Xptxas -v`: registers, shared memory, stack and spills of each kernel."""

import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from warplog.core.errors import WarplogError

_ENTRY = re.compile(r"ptxas info\s*: Compiling entry function '([^']+)' for '(sm_[0-9]{2,4}[a-z]?)'\s*")
_PROPERTIES = re.compile(r"ptxas info\s*: Function properties for '?([^'\s]+)'?\s*")
_STACK = re.compile(
    r"\s*([0-9]{1,9}) bytes stack frame, ([0-9]{1,9}) bytes spill stores, ([0-9]{1,9}) bytes spill loads\s*"
)
_PART = (
    r", (?:used [0-9]{1,9} barriers|[0-9]{1,9}(?:\+[0-9]{1,9})? bytes (?:[gls]mem|cmem\[[0-9]+\]|cumulative stack size)"
    r"|[0-9]{1,9} (?:texture|sampler|surface)s?)"
)
_USED = re.compile(rf"ptxas info\s*: Used ([0-9]{{1,9}}) registers((?:{_PART})*)\s*")
_FORMS = (_ENTRY, _PROPERTIES, _STACK, _USED)
# A line with one of these that has none of the forms is a damaged one, whose values would be taken for zero.
_WORDS = re.compile(
    r".*(?:Compiling entry|entry function '.*' for 'sm_)"
    r"|(?:ptxas\b(?! *(?:warning|error|fatal)).*|\s*[0-9]+ bytes )"
    r"(?:entry function|for 'sm_|properties for|stack frame|spill|registers)"
)
_BARRIERS = re.compile(r"used ([0-9]+) barriers")
_SHARED = re.compile(r"([0-9]+)(?:\+[0-9]+)? bytes smem")
_CONSTANT = re.compile(r"([0-9]+)(?:\+[0-9]+)? bytes cmem\[[0-9]+\]")
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
    kernels = list(_kernels(log.splitlines()))
    names = demangle(tuple(k.mangled for k in kernels))
    return tuple(replace(k, kernel=name) for k, name in zip(kernels, names, strict=True))


def check_whole(log: str) -> None:
    """Checks that the log does not stop inside a kernel, and that no line about a kernel is damaged.

    A log that stops between two kernels is not detected.

    Raises:
        WarplogError: if the last line has no line end, a kernel lacks its stack frame, or its registers although ptxas
            did not fail, or a line is not as ptxas prints it.
    """
    if not log.endswith("\n"):
        raise WarplogError("is truncated: its last line has no line end; compile again")
    lines, failed = log.splitlines(), _FAILED.search(log)
    for number, line in enumerate(lines, 1):
        if _WORDS.match(line) and not any(form.fullmatch(line) for form in _FORMS):
            raise WarplogError(
                f"line {number} is damaged, or of a newer ptxas ({line.strip()[:200]!r}); compile again"
            )
    begun = [entry[1] for line in lines if (entry := _ENTRY.fullmatch(line))]
    finished = sum(_USED.fullmatch(line) is not None for line in lines)
    if not begun or (finished < len(begun) and not failed):
        last = f"the registers of kernel {begun[-1][:200]} are missing" if begun else "it names no kernel"
        raise WarplogError(f"is truncated: {last}; compile again")
    frames = [(_PROPERTIES.fullmatch(line), _STACK.fullmatch(below)) for line, below in pairwise(lines)]
    bare = Counter(begun) - Counter(properties[1] for properties, stack in frames if properties and stack)
    if (
        (bare and not failed)
        or finished > len(begun)
        or any(stack and not properties for properties, stack in frames)
    ):
        which = (
            f"the stack frame of kernel {next(iter(bare))[:200]} is missing"
            if bare
            else "a kernel has no name"
        )
        raise WarplogError(f"is damaged: {which}; compile again")


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
        if entry := _ENTRY.fullmatch(line):
            mangled, arch = entry[1], entry[2]
            stack = (0, 0, 0)
        elif properties := _PROPERTIES.fullmatch(line):
            owner = properties[1]
        elif (sizes := _STACK.fullmatch(line)) and owner == mangled:
            stack = (int(sizes[1]), int(sizes[2]), int(sizes[3]))
        elif (used := _USED.fullmatch(line)) and mangled:
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
