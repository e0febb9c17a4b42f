"""What traced addresses show: how each source line accesses memory, and which accesses a step changes.

The trace is of one launch on a small case, so only numbers per request, and the ratio of two variants at that case, say
something about other cases. Where counters were captured they explain a step; without them, accesses that changed as
the time did stand in. Addresses do not tell how much of the time an access takes.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from warplog.analysis.decomposition import Step
from warplog.core.columns import Row, number, text
from warplog.tables.conclusions import NAN, AccessLine, Change, Traced
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables

EXPLAINED = "accesses"
_LEAST = 1.05  # from which ratio to the ideal on an access is worth a remark
_LEAST_CHANGE = 1.5  # by which the ratio to the ideal changes, to be told
_COMPARED = ("equal", "differs")
_READS, _WRITES = ("load", "ldmatrix", "wgmma"), ("store", "stmatrix")
Access = Literal["read", "write", "atomic", ""]


@dataclass(frozen=True)
class Traces:
    """The traced accesses of a family: a row per variant, and a row per source line and array."""

    variants: tuple[Traced, ...]
    lines: tuple[AccessLine, ...]


def traces(tables: FigureTables) -> Traces:
    """Returns what was traced of the present sources of a family."""
    sources = {row["variant"]: row.get("source_sha256") for row in as_rows(tables.variants)}
    kept = [
        row
        for row in as_rows(tables.accesses)
        if row["status"] != "ok" or row["source_sha256"] == sources.get(row["variant"])
    ]
    kernels = _by_variant(as_rows(tables.traced_kernels))
    accesses = _by_variant(kept)
    return Traces(
        tuple(_variant(tables.family, name, rows, kernels.get(name, ())) for name, rows in accesses.items()),
        tuple(line for rows in accesses.values() if _is_ok(rows) for line in _lines(rows)),
    )


def changes(step: Step, found: Traces, rank: int) -> list[Change]:
    """Returns the accesses that differ between a variant and its parent, both traced at one case.

    Without counters they are causes and costs of a difference in time; otherwise details. The largest comes first, as
    number `rank` of the step's changes.
    """
    own, parents = ({v.variant: v for v in found.variants}.get(name) for name in (step.variant, step.parent))
    if own is None or parents is None or own.case != parents.case or step.same_kernel:
        return []
    before, after = (_groups(found.lines, name) for name in (step.parent, step.variant))
    moved = [*_per_request(before, after), *_totals((parents, own), before, after)]
    return [
        Change(
            step.family, step.variant, order, step.parent, own.case, _role(step, change), "access", change.quantity,
            change.before, change.after, change.unit, NAN, NAN, change.of, "", change.line, "", change.parent_line,
        )
        for order, change in enumerate(sorted(moved, key=lambda change: -abs(change.log)), rank)
    ]  # fmt: skip


@dataclass(frozen=True)
class _Moved:
    """A quantity of the accesses before and after; `log` is by how much it became worse, as a logarithm."""

    quantity: str
    of: str
    before: float
    after: float
    unit: str
    log: float
    parent_line: str = ""
    line: str = ""


@dataclass(frozen=True)
class _Sum:
    """Sums over instructions: `taken` are sectors, or wavefronts of shared memory; `line` takes most of them."""

    requests: float
    taken: float
    ideal: float
    line: str

    @property
    def excess(self) -> float:
        """How many times as many sectors or wavefronts are taken as needed; 1 without accesses."""
        return self.taken / self.ideal if self.ideal > 0 else 1.0


_NONE = _Sum(0.0, 0.0, 0.0, "")
_Groups = Mapping[tuple[str, Access, str], _Sum]  # by space, access and array


def _role(step: Step, moved: _Moved) -> str:
    if step.gap != "no_counters" or step.tied:
        return "detail"
    return "cause" if (moved.log < 0) == (step.ratio > 1) else "cost"


def _per_request(before: _Groups, after: _Groups) -> Iterator[_Moved]:
    for key in dict.fromkeys((*before, *after)):
        space, access, array = key
        old, new = before.get(key, _NONE), after.get(key, _NONE)
        log = math.log(new.excess / old.excess)
        if not access or not abs(log) >= math.log(_LEAST_CHANGE):
            continue
        if space == "shared":
            quantity = f"shared_{access}_ways"
            yield _Moved(quantity, "", old.excess, new.excess, "ratio", log, old.line, new.line)
        elif space == "global" and old.requests and new.requests:
            ends = old.taken / old.requests, new.taken / new.requests
            yield _Moved(f"sectors_per_{access}", array, *ends, "sector/request", log, old.line, new.line)


def _totals(pair: tuple[Traced, Traced], before: _Groups, after: _Groups) -> Iterator[_Moved]:
    """Yields all sectors of global memory, and all wavefronts, if all accesses of both launches were traced."""
    if any(side.untraced or side.traced_blocks != side.blocks for side in pair):
        return
    for space, quantity, unit in (("global", "sectors", "sector"), ("shared", "wavefronts", "wavefront")):
        old, new = (
            sum(own.taken for key, own in side.items() if key[0] == space) for side in (before, after)
        )
        if old > 0 and new > 0 and abs(log := math.log(new / old)) >= math.log(_LEAST_CHANGE):
            yield _Moved(f"traced_{quantity}", "", old, new, unit, log)


def _groups(lines: Iterable[AccessLine], variant: str) -> _Groups:
    groups: dict[tuple[str, Access, str], _Sum] = {}
    own = [line for line in lines if line.variant == variant and not math.isnan(line.per_request)]
    for line in sorted(own, key=lambda line: -line.requests * line.per_request):
        key = (line.space, _access(line), line.array if line.space == "global" else "")
        so_far = groups.get(key, replace(_NONE, line=f"{line.file}:{line.line}" if line.line else ""))
        groups[key] = replace(
            so_far,
            requests=so_far.requests + line.requests,
            taken=so_far.taken + line.requests * line.per_request,
            ideal=so_far.ideal + line.requests * line.ideal,
        )
    return groups


def _access(line: AccessLine) -> Access:
    """Returns what an access does to its space; "" for a bulk copy, of which the trace does not say it."""
    if line.kind == "async_copy":
        return "write" if line.space == "shared" else "read"
    if line.kind == "atomic":
        return "atomic"
    return "read" if line.kind in _READS else "write" if line.kind in _WRITES else ""


def _variant(family: str, name: str, rows: Sequence[Row], kernels: Sequence[Row]) -> Traced:
    first = rows[0]
    summary = Traced(family, name, text(first, "case"), text(first, "status"), text(first, "reason"))
    if not _is_ok(rows):
        return summary
    passes = [row for row in rows if number(row, "traced_wavefronts") >= 0]  # those of wgmma are not known
    shared = [_total(passes, column) for column in ("traced_wavefronts", "wavefronts_ideal")]
    loads, stores = (
        [
            _total(rows, column, "global", kind) / requests if requests else NAN
            for column in ("traced_sectors", "sectors_ideal")
        ]
        for kind in ("load", "store")
        for requests in [_total(rows, "requests", "global", kind)]
    )
    compared = _compared(rows)
    untraced = (text(kernel, "untraced") for kernel in kernels)
    return replace(
        _with_reuse(summary, kernels),
        blocks=int(sum(number(kernel, "blocks") for kernel in kernels)),
        traced_blocks=int(sum(number(kernel, "traced_blocks") for kernel in kernels)),
        untraced=", ".join(dict.fromkeys(filter(None, untraced))),
        load_sectors_per_request=loads[0],
        load_sectors_ideal=loads[1],
        store_sectors_per_request=stores[0],
        store_sectors_ideal=stores[1],
        shared_wavefronts=shared[0],
        shared_wavefronts_ideal=shared[1],
        shared_ways=shared[0] / shared[1] if shared[1] else NAN,
        counted=len(compared),
        differing=compared.count("differs"),
    )


def _with_reuse(summary: Traced, kernels: Sequence[Row]) -> Traced:
    """Returns the row with what blocks of the kernel that reads most have in common."""
    most = max(kernels, key=lambda kernel: max(number(kernel, "wave_bytes_of_blocks"), -1.0), default={})
    whole, distinct = number(most, "wave_bytes_of_blocks"), number(most, "wave_bytes")
    if not distinct > 0:
        return summary
    return replace(
        summary,
        block_bytes=number(most, "block_bytes"),
        wave_blocks=int(number(most, "wave_blocks")),
        wave_bytes=distinct,
        wave_bytes_of_blocks=whole,
        wave_reuse=whole / distinct,
    )


def _lines(rows: Sequence[Row]) -> Iterator[AccessLine]:
    places: dict[tuple[float, str, float, str, str, str], list[Row]] = {}
    for row in rows:
        space, kind, array = (text(row, name) for name in ("space", "kind", "array"))
        place = number(row, "launch"), text(row, "file"), number(row, "line"), space, kind, array
        places.setdefault(place, []).append(row)
    for (launch, file, line, space, kind, array), own in sorted(places.items(), key=lambda item: item[0]):
        is_shared = space == "shared"
        column = "wavefronts" if is_shared else "sectors"
        requests, taken, ideal = (
            _total(own, name) for name in ("requests", f"traced_{column}", f"{column}_ideal")
        )
        ways = max(number(row, "ways") for row in own)
        yield AccessLine(
            text(own[0], "family"),
            text(own[0], "variant"),
            text(own[0], "case"),
            int(launch),
            file,
            int(line),
            text(own[0], "text").strip(),
            space,
            kind,
            array,
            int(requests),
            taken / requests,
            ideal / requests,
            "wavefront/request" if is_shared else "sector/request",
            NAN if is_shared or not taken else _total(own, "distinct_bytes") / taken,
            -1 if math.isnan(ways) else int(ways),
            ("conflicts" if is_shared else "scattered") if taken >= _LEAST * ideal > 0 else "",
            max(_compared(own), key=_COMPARED.index, default=""),
        )


def _compared(rows: Iterable[Row]) -> list[str]:
    """Returns "equal" or "differs" for each instruction that Nsight Compute counted in full."""
    return [code for row in rows if (code := text(row, "agreement")) in _COMPARED]


def _total(rows: Iterable[Row], column: str, space: str = "", kind: str = "") -> float:
    kept = [row for row in rows if (not space or row["space"] == space) and (not kind or row["kind"] == kind)]
    return sum((number(row, column) for row in kept), 0.0)


def _is_ok(rows: Sequence[Row]) -> bool:
    return text(rows[0], "status") == "ok"


def _by_variant(rows: Iterable[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(text(row, "variant"), []).append(row)
    return grouped
