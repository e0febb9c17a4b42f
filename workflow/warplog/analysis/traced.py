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
from warplog.tables.view import FigureTables, ranked

EXPLAINED = "accesses"
_LEAST = 1.05  # from which ratio to the ideal on an access is worth a remark
_LEAST_CHANGE = 1.5  # by which the ratio to the ideal changes, to be told
_LEAST_SHARE = 0.05  # of the cycles that all accesses of a launch take, likewise
_PER_CYCLE = {"global": 4.0, "local": 4.0, "shared": 1.0}  # L1 moves 128 bytes: four sectors, or a wavefront
_COMPARED = ("equal", "differs")
_READS, _WRITES = ("load", "ldmatrix", "wgmma"), ("store", "stmatrix")
Access = Literal["read", "write", "atomic", ""]


@dataclass(frozen=True)
class Traces:
    """The traced accesses of a family: a row per variant and case, and a row per source line and array.

    Of the cases of a variant, the one that most variants of the family were traced at comes first.
    """

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
    kernels, launches = _launches(as_rows(tables.traced_kernels)), _launches(kept)
    cases = ranked(case for (_, case), rows in launches.items() if _is_ok(rows))
    names = list(dict.fromkeys(name for name, _ in launches))

    def place(launch: tuple[tuple[str, str], Sequence[Row]]) -> tuple[int, int]:
        (name, case), rows = launch
        return names.index(name), cases.index(case) if _is_ok(rows) else len(cases)

    shown = sorted(launches.items(), key=place)
    return Traces(
        tuple(_variant(tables.family, key, rows, kernels.get(key, ())) for key, rows in shown),
        tuple(line for _, rows in shown if _is_ok(rows) for line in _lines(rows)),
    )


def changes(step: Step, found: Traces, rank: int) -> list[Change]:
    """Returns the accesses that differ between a variant and its parent, at the first case at which both were traced.

    Without counters they are causes and costs of a difference in time; otherwise details. The largest comes first, as
    number `rank` of the step's changes.
    """
    own, parents = (
        {row.case: row for row in found.variants if row.variant == name and row.status == "ok"}
        for name in (step.variant, step.parent)
    )
    case = next((case for case in own if case in parents), None)
    if case is None or step.same_kernel:
        return []
    before, after = (_groups(found.lines, name, case) for name in (step.parent, step.variant))
    least = _LEAST_SHARE * max(map(_cycles, (before, after)))
    moved = [*_per_request(before, after), *_totals((parents[case], own[case]), before, after)]
    large = sorted(
        (change for change in moved if abs(change.cost) >= least), key=lambda change: -abs(change.cost)
    )
    return [
        Change(
            step.family, step.variant, order, step.parent, case, _role(step, change), "access", change.quantity,
            change.before, change.after, change.unit, NAN, NAN, change.of, "", change.line, "", change.parent_line,
        )
        for order, change in enumerate(large, rank)
    ]  # fmt: skip


@dataclass(frozen=True)
class _Moved:
    """A quantity of the accesses before and after; `cost` is how many cycles of L1 it takes more than before."""

    quantity: str
    of: str
    before: float
    after: float
    unit: str
    cost: float
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
    def ratio(self) -> float:
        """How many times as many sectors or wavefronts are taken as needed; 1 without accesses."""
        return self.taken / self.ideal if self.ideal > 0 else 1.0

    @property
    def excess(self) -> float:
        """How many more are taken than needed."""
        return self.taken - self.ideal


_NONE = _Sum(0.0, 0.0, 0.0, "")
_Groups = Mapping[tuple[str, Access, str], _Sum]  # by space, access and array


def _role(step: Step, moved: _Moved) -> str:
    if step.gap != "no_counters" or step.tied:
        return "detail"
    return "cause" if (moved.cost < 0) == (step.ratio > 1) else "cost"


def _cycles(groups: _Groups) -> float:
    return sum(own.taken / _PER_CYCLE[space] for (space, *_), own in groups.items())


def _per_request(before: _Groups, after: _Groups) -> Iterator[_Moved]:
    for key in dict.fromkeys((*before, *after)):
        space, access, array = key
        old, new = before.get(key, _NONE), after.get(key, _NONE)
        ends = old.ratio, new.ratio
        if not access or not max(ends) >= _LEAST_CHANGE * min(ends):
            continue
        cost, lines = (new.excess - old.excess) / _PER_CYCLE[space], (old.line, new.line)
        if space == "shared":
            yield _Moved(f"shared_{access}_ways", "", *ends, "ratio", cost, *lines)
        elif space == "global" and old.requests and new.requests:
            sectors = old.taken / old.requests, new.taken / new.requests
            if (sectors[1] - sectors[0]) * (ends[1] - ends[0]) > 0:
                yield _Moved(f"sectors_per_{access}", array, *sectors, "sector/request", cost, *lines)
            else:  # wider accesses take more sectors per request, and fewer for their bytes
                yield _Moved(f"{access}_sectors_per_ideal", array, *ends, "ratio", cost, *lines)


def _totals(pair: tuple[Traced, Traced], before: _Groups, after: _Groups) -> Iterator[_Moved]:
    """Yields all sectors of global memory, and all wavefronts, if all accesses of both launches were traced."""
    if any(side.untraced or side.traced_blocks != side.blocks for side in pair):
        return
    for space, quantity, unit in (("global", "sectors", "sector"), ("shared", "wavefronts", "wavefront")):
        old, new = (
            sum(own.taken for key, own in side.items() if key[0] == space) for side in (before, after)
        )
        if min(old, new) > 0 and max(old, new) >= _LEAST_CHANGE * min(old, new):
            yield _Moved(f"traced_{quantity}", "", old, new, unit, (new - old) / _PER_CYCLE[space])


def _groups(lines: Iterable[AccessLine], variant: str, case: str) -> _Groups:
    groups: dict[tuple[str, Access, str], _Sum] = {}
    launch = [line for line in lines if (line.variant, line.case) == (variant, case)]
    own = [line for line in launch if not math.isnan(line.per_request)]
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


def _variant(family: str, key: tuple[str, str], rows: Sequence[Row], kernels: Sequence[Row]) -> Traced:
    summary = Traced(family, *key, text(rows[0], "status"), text(rows[0], "reason"))
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
        same_address=_most(kernels, "same_address"),
    )


def _with_reuse(summary: Traced, kernels: Sequence[Row]) -> Traced:
    """Returns the row with what blocks of the kernel that reads most have in common."""
    known = [kernel for kernel in kernels if number(kernel, "wave_bytes") > 0]
    if not known:
        return summary
    most = max(known, key=lambda kernel: number(kernel, "wave_bytes_of_blocks"))
    whole, distinct = number(most, "wave_bytes_of_blocks"), number(most, "wave_bytes")
    return replace(
        summary,
        block_bytes=number(most, "block_bytes"),
        wave_blocks=int(number(most, "wave_blocks")),
        wave_bytes=distinct,
        wave_bytes_of_blocks=whole,
        wave_reuse=whole / distinct,
    )


def _lines(rows: Sequence[Row]) -> Iterator[AccessLine]:
    places: dict[tuple[str, float, str, str, str], list[Row]] = {}
    for row in rows:
        if not number(row, "requests") > 0:  # the only row of a launch of which the trace sees no access
            continue
        space, kind, array = (text(row, name) for name in ("space", "kind", "array"))
        place = text(row, "file"), number(row, "line"), space, kind, array
        places.setdefault(place, []).append(row)
    for (file, line, space, kind, array), own in sorted(places.items(), key=lambda item: item[0]):
        is_shared = space == "shared"
        column = "wavefronts" if is_shared else "sectors"
        requests, taken, ideal = (
            _total(own, name) for name in ("requests", f"traced_{column}", f"{column}_ideal")
        )
        yield AccessLine(
            text(own[0], "family"),
            text(own[0], "variant"),
            text(own[0], "case"),
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
            _most(own, "ways"),
            ("conflicts" if is_shared else "scattered") if taken >= _LEAST * ideal > 0 else "",
            max(_compared(own), key=_COMPARED.index, default=""),
            _most(own, "same_address"),
            _most(own, "same_address_lanes"),
        )


def _most(rows: Iterable[Row], column: str) -> int:
    """Returns the largest number; -1 if none is known."""
    return max((int(value) for row in rows if (value := number(row, column)) >= 0), default=-1)


def _compared(rows: Iterable[Row]) -> list[str]:
    """Returns "equal" or "differs" for each instruction that Nsight Compute counted in full."""
    return [code for row in rows if (code := text(row, "agreement")) in _COMPARED]


def _total(rows: Iterable[Row], column: str, space: str = "", kind: str = "") -> float:
    kept = [row for row in rows if (not space or row["space"] == space) and (not kind or row["kind"] == kind)]
    return sum((number(row, column) for row in kept), 0.0)


def _is_ok(rows: Sequence[Row]) -> bool:
    return text(rows[0], "status") == "ok"


def _launches(rows: Iterable[Row]) -> dict[tuple[str, str], list[Row]]:
    """Returns the rows of each launch by variant and case, in their order."""
    grouped: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        grouped.setdefault((text(row, "variant"), text(row, "case")), []).append(row)
    return grouped
