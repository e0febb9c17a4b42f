"""Readable kernel names, and the kernel that represents a launch of several kernels."""

import math
import re
from collections.abc import Iterable, Sequence
from typing import Protocol, TypeVar

from warplog.core.columns import Row

SPLIT_K = re.compile(r"split_?k", re.IGNORECASE)
_XMMA = re.compile(
    r"^(sm\d+)_xmma_gemm_(\w+?)_([nt]{2})_n_tilesize(\w+?)_(stage\d+)_warpsize(\w+?)_(.*?)_?execute_(.*)$"
)
# CUTLASS wrappers: their first template argument is the actual kernel.
_WRAPPERS = ("Kernel", "Kernel2", "device_kernel")


def bare_name(kernel: str) -> str:
    """Returns the function name without return type, namespaces, template arguments and parameters."""
    name = _without_prefixes(kernel)
    return re.split(r"[<(]", name, maxsplit=1)[0].rsplit("::", 1)[-1].strip() or kernel


def short_name(kernel: str) -> str:
    """Returns a short name for display.

    For kernels generated for cuBLAS it is architecture, layout, tile, stages and warps; for CUTLASS wrappers the
    wrapped kernel; otherwise the bare name.
    """
    if generated := _XMMA.match(kernel):
        arch, _, layout, tile, stages, warps, _, rest = generated.groups()
        part = " split_k" if SPLIT_K.search(rest) else ""
        return f"{arch}_xmma_gemm_{layout} {tile} {stages} warps{warps}{part}"
    name = bare_name(kernel)
    inner = re.match(r"[^<]*<\s*([\w:]+)", _without_prefixes(kernel))
    return inner[1].rsplit("::", 1)[-1] if name in _WRAPPERS and inner else name


def _without_prefixes(kernel: str) -> str:
    """Returns the name without result and anonymous namespaces, which c++filt and Nsight print in different ways."""
    return re.sub(r"(?:\(anonymous namespace\)|<unnamed>)::", "", kernel.removeprefix("void "))


_LEAST_REGISTERS = 16
# ncu and nsys print template arguments with their type, "(int)128" and "(bool)1"; c++filt "128", "128u" and "true".
_CAST = re.compile(r"\([a-zA-Z][\w: ]*\)(?=[-\w])")
_SUFFIX = re.compile(r"\b(\d+)(?:u|l|ul|ll|ull)\b")


class _Named(Protocol):
    """A kernel of a build."""

    @property
    def kernel(self) -> str: ...


class _Built(_Named, Protocol):
    """What tells the kernels of a build apart."""

    @property
    def registers_per_thread(self) -> int: ...
    @property
    def sass_instructions(self) -> float: ...


_Code = TypeVar("_Code", bound=_Built)
_OfName = TypeVar("_OfName", bound=_Named)


def of_name(kernels: Sequence[_OfName], launched: str) -> list[_OfName]:
    """Returns the kernels of a build with the name of the launched one, of a template those with the same arguments.

    Args:
        kernels: those of the build.
        launched: name of the kernel as ncu or nsys prints it; "" if there is no capture, so that all are returned.
    """
    left = [code for code in kernels if not launched or bare_name(code.kernel) == bare_name(launched)]
    return [code for code in left if not launched or _arguments(code.kernel) == _arguments(launched)] or left


def compiled_kernel(kernels: Sequence[_Code], launched: str, registers: float | None) -> _Code | None:
    """Returns the kernel of a build that was launched; None if it is not among them, as for kernels of a library.

    Of several instances of a template, those with the same arguments count, then those with as many registers.
    Whatever remains is decided by the number of instructions, as it is without a capture.

    Args:
        kernels: those of the build.
        launched: name of the kernel as ncu or nsys prints it; "" if there is no capture.
        registers: its registers per thread, if they are known.
    """
    left = of_name(kernels, launched)
    left = [
        code  # ncu rounds the registers up to the least that is allocated
        for code in left
        if registers in (code.registers_per_thread, max(code.registers_per_thread, _LEAST_REGISTERS))
    ] or left
    return max(left, key=lambda code: code.sass_instructions, default=None)


def _arguments(kernel: str) -> str:
    """Returns the template arguments in a common form; "" for a function that has none."""
    template = re.match(r"[^<(]*<(.*)>\(", _without_prefixes(kernel))
    plain = _CAST.sub("", template[1]) if template else ""
    plain = re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", plain))
    return _SUFFIX.sub(r"\1", plain).replace(" ", "")


Key = tuple[str, int]


def kernel_key(row: Row) -> Key:
    """Returns the kernel name and launch number of a row of the table `metrics`."""
    return str(row["kernel"]), int(row["launch"] or 0)


def longest_kernel(rows: Iterable[Row]) -> Key | None:
    """Returns the kernel with the longest duration among rows of one variant, case and tool; None without rows.

    The duration is `duration_us` for ncu and `nsys_kernel_duration_us` for nsys. If no duration is known, or
    several are equal, the first kernel is returned.
    """
    times: dict[Key, float] = {}
    for row in rows:
        value = row["value"] if str(row["metric"]).endswith("duration_us") else None
        time = value if isinstance(value, (int, float)) and not math.isnan(value) else -1.0
        times[kernel_key(row)] = max(times.get(kernel_key(row), -1.0), time)
    return max(times, key=lambda key: times[key], default=None)
