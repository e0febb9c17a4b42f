"""Rows of the tables `accesses` and `traced_kernels`: the memory accesses of a traced launch, beside its counters."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from math import prod

from msgspec import structs

from warplog.core.columns import ACCESSES, TRACED_KERNELS, Cell, Column, Row
from warplog.records.measured import Absent
from warplog.records.requested.accesses import AccessCase, Accesses, Instruction, Kernel

TABLES: Mapping[str, Mapping[str, Column]] = {"accesses": ACCESSES, "traced_kernels": TRACED_KERNELS}
_SAME = (
    *("launch", "offset", "opcode", "file", "line", "text", "space", "kind", "array", "requests", "lanes"),
    *("bytes", "distinct_bytes", "lines", "sectors_ideal", "wavefronts_ideal", "ways"),
    *("same_address", "same_address_lanes"),
)
_COMPARED = {  # with the counters, by space
    "global": ("sectors", "lines"),
    "local": ("sectors", "lines"),
    "shared": ("wavefronts", "wavefronts_ideal"),
}
_MOST_SHOWN = 20


def rows(record: Accesses | Absent) -> Iterator[tuple[str, Row]]:
    """Yields table and row of a variant; a variant that was not traced has one row, and none without a record."""
    if isinstance(record, Absent):
        if record.status != "missing":
            yield "accesses", {"status": record.status, "reason": record.reason}
        return
    about: Row = {"source_sha256": record.source_sha256}
    if not record.cases:
        yield "accesses", {**about, "status": record.status, "reason": record.reason}
    for case in record.cases:
        row = {**about, "case": case.case, "status": case.status, "reason": case.reason}
        if not case.instructions:
            yield "accesses", row
        kernels = {kernel.launch: kernel for kernel in case.kernels or ()}
        for kernel in kernels.values():
            yield "traced_kernels", {**about, "case": case.case, **_kernel(kernel)}
        for one in case.instructions or ():
            yield "accesses", {**row, **_instruction(one, case, kernels[one.launch])}


def _kernel(kernel: Kernel) -> Row:
    return {
        "launch": kernel.launch,
        "kernel": kernel.kernel,
        "blocks": prod(kernel.grid),
        "threads": prod(kernel.block),
        "traced_blocks": kernel.traced_blocks,
        "entries": kernel.entries,
        "lost": kernel.lost,
        "traced_share": traced_share(kernel),
        "same_address": kernel.same_address,
        "untraced": ", ".join(f"{opcode} {count}" for opcode, count in kernel.untraced),
        **(structs.asdict(kernel.reuse) if kernel.reuse else {}),
    }


def _instruction(one: Instruction, case: AccessCase, kernel: Kernel) -> Row:
    counted = structs.asdict(one.ncu) if one.ncu else {}
    excess = None
    if one.wavefronts is not None and one.wavefronts_ideal is not None:
        excess = one.wavefronts - one.wavefronts_ideal
    return {
        **{name: getattr(one, name) for name in _SAME},
        "kernel": kernel.kernel,
        "traced_share": traced_share(kernel),
        "agreement": agreement(one, kernel),
        "traced_sectors": one.sectors,
        "traced_wavefronts": one.wavefronts,
        "wavefronts_excess": excess,
        "sectors_per_request": None if one.sectors is None else one.sectors / one.requests,
        "bytes_per_sector": one.distinct_bytes / one.sectors if one.sectors else None,
        **{f"ncu_{name}": value for name, value in counted.items()},
        "counted": case.counted or "",
        "counted_reason": case.counted_reason,
    }


def traced_share(kernel: Kernel) -> float:
    """Returns the share of a kernel's accesses that is in the counts, as far as its blocks access as much."""
    kept = kernel.entries / (kernel.entries + kernel.lost) if kernel.lost else 1.0
    return kernel.traced_blocks / prod(kernel.grid) * kept


def agreement(one: Instruction, kernel: Kernel) -> str:
    """Returns a code for how the trace of an instruction agrees with its counters."""
    names = _COMPARED[one.space] if one.ncu else ()
    pairs = [(getattr(one, name), getattr(one.ncu, name)) for name in names]
    counted = [(seen, counted) for seen, counted in pairs if counted is not None]
    if not counted:
        return "not_counted"
    if all(seen is None for seen, _ in counted):
        return "not_traced"
    if traced_share(kernel) < 1:
        return "partly_traced"
    if all(seen == counted for seen, counted in counted):
        return "equal"
    if one.ncu and one.ncu.lanes not in (None, one.lanes):
        return "ran_differently"
    fewer = one.kind == "async_copy" and all(seen >= counted for seen, counted in counted if seen is not None)
    return "undercounted" if fewer else "differs"


def summary(rows: Sequence[Mapping[str, Cell]]) -> str:
    """Returns a text about the rows of `accesses`: what was not traced or differs from the counters, and totals."""
    variants = {(row["family"], row["variant"]) for row in rows}
    traced = {(row["family"], row["variant"]) for row in rows if row["status"] == "ok"}
    if not variants:
        return "accesses: no records; requires a GPU, or a recorded campaign that contains some"
    lines = [
        f"{row['family']}/{row['variant']}  {row['status']}  {row['reason']}"
        for row in rows
        if row["status"] != "ok"
    ]
    differing = [row for row in rows if row.get("agreement") == "differs"]
    lines += [
        f"{row['family']}/{row['variant']}  {row['opcode']} {row['file']}:{row['line']}  {_numbers(row)}"
        for row in differing[:_MOST_SHOWN]
    ]
    lines += [f"... and {len(differing) - _MOST_SHOWN} more"] if len(differing) > _MOST_SHOWN else []
    counts = Counter(str(row["agreement"]) for row in rows if row.get("agreement"))
    counted = ", ".join(f"{count} {code.replace('_', ' ')}" for code, count in counts.most_common())
    totals = f"{len(traced)} of {len(variants)} variants traced"
    lines.append(f"accesses: {totals}; instructions: {counted or 'none'}")
    return "\n".join(lines)


def _numbers(row: Mapping[str, Cell]) -> str:
    """Returns the numbers that differ from the counters."""
    names = _COMPARED[str(row["space"])]
    seen = {name: row[name if name in row else f"traced_{name}"] for name in names}
    return "; ".join(
        f"{name.replace('_', ' ')}: traced {value}, counted {counted}"
        for name, value in seen.items()
        if (counted := row[f"ncu_{name}"]) not in (None, value)
    )
