"""Mutated records, reports and tables are refused in one line, or read as they are written: no traceback, no hang.

What turns a value into another one that could have been written cannot be seen in a file without checksums: there, the
manifest of the campaign must show it.
"""

import json
import math
import os
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import mutators
import pytest
from unit.parsers.printed_pages import SPEED, details_page, raw_page, text_page

from recorded_campaigns import unpacked
from report_files import Launch, Nsys, write_ncu
from warplog.catalog import family as catalog
from warplog.core import store
from warplog.core.columns import TABLES
from warplog.core.errors import WarplogError
from warplog.judge import samples
from warplog.machine import device
from warplog.parsers.reports import read_any
from warplog.parsers.rows import Row
from warplog.records import door
from warplog.records.campaign import Campaign
from warplog.records.verification import campaign_folder, manifest
from warplog.tables.files import as_frame, as_parquet, read_table
from warplog.tables.rows import make_rows
from warplog.tables.verified_records import Source

PROJECT = Path(__file__).parents[2]
RECORDED = unpacked("h200")
SEED = int(os.environ.get("WARPLOG_FUZZ_SEED", "2026"))  # another one finds others
FAMILY, VARIANTS = "scan", ("cub", "decoupled_lookback")
MOST = 20  # metrics, lines and events of a variant
TRACKS = 3
counts = pytest.mark.parametrize(
    "count", [pytest.param(15, id="sample"), pytest.param(600, id="all", marks=pytest.mark.faults)]
)


def refused_or_read(read: Callable[[], Any]) -> Any:
    """Returns what is read, or the error, which is one line of bounded length."""
    try:
        return read()
    except WarplogError as error:
        found = error
    assert 0 < len(str(found)) < 10_000
    assert "\n" not in str(found)
    return found


def changed(
    folder: Path, path: Path, kinds: Sequence[mutators.Mutator], count: int, read: Callable[[], Any]
) -> list[tuple[bytes, Any]]:
    """Returns the mutations that are read otherwise than the file, and what is read; each breaks the manifest."""
    data, whole = path.read_bytes(), read()
    assert not isinstance(whole, WarplogError)
    manifest.write(folder, "fuzzed", "")
    found = []
    for mutated in mutators.mutations(kinds, data, SEED, count):
        path.write_bytes(mutated)
        got = refused_or_read(read)
        if not isinstance(got, WarplogError) and got != whole:
            found.append((mutated, got))
            with pytest.raises(WarplogError, match="was changed after it was written"):
                manifest.check(folder)
    path.write_bytes(data)
    return found


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """Returns a folder with the records of all stages of two variants, shortened."""
    for path in RECORDED.rglob("*.json"):
        stage, *rest = path.relative_to(RECORDED).parts
        of_family = FAMILY in rest or path.name.startswith(f"{FAMILY}.")
        if (
            not rest
            or (stage != "campaign" and not of_family)
            or (stage == "build" and rest[2] not in VARIANTS)
        ):
            continue
        data = json.loads(path.read_text())
        if "variants" in data:
            data["variants"] = {
                name: shortened(data["variants"][name]) for name in VARIANTS if name in data["variants"]
            }
        target = tmp_path / stage / Path(*rest)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(data))
    return tmp_path


def shortened(record: dict[str, Any]) -> dict[str, Any]:
    for name in {"rows", "lines", "timeline"} & set(record):
        record[name] = record[name][:MOST]
    for case in record.get("cases", ()):
        if isinstance(case, dict) and case.get("launch"):
            case["launch"]["tracks"] = case["launch"]["tracks"][:TRACKS]
    return record


@counts
def test_a_mutated_record_is_refused_or_its_manifest_shows_it(campaign: Path, count: int) -> None:
    families = catalog.load([PROJECT / "kernels"])
    family = families[FAMILY]
    variants = tuple(one for one in family.variants if one.name in VARIANTS)
    known = device.known_gpus(PROJECT)

    def use() -> Any:
        """What `warplog verify`, the tables and `warplog compare` make of the records."""
        if problems := campaign_folder.record_problems(campaign):
            return WarplogError(problems[0])
        record = door.read(campaign / "campaign" / "h200.json", Campaign)
        peaks = device.peaks(record.device, known)
        source = Source(campaign, "recorded", record, campaign)
        rows = make_rows(source, families, {FAMILY: tuple(family.cases)}, {FAMILY: variants}, peaks)
        for name, columns in TABLES.items():
            as_frame(rows[name], columns, name)
        return repr(rows), samples.load(campaign)

    files = sorted(campaign.rglob("*.json"))
    for path in files:
        changed(campaign, path, mutators.JSON, max(1, count // len(files)), use)


def rows(path: Path) -> list[Row]:
    """Returns the rows of a report; each value is a number from 0, or missing with a reason."""
    found = [row._replace(source="") for row in read_any(path)]
    for row in found:
        if row.status == "ok":
            assert math.isfinite(row.value)
            assert row.value >= 0
        else:
            assert row.value is None
            assert row.reason
    return found


def values(found: Sequence[Row]) -> list[tuple[str, str, Any]]:
    return [(row.kernel, row.metric, row.value) for row in found if row.status == "ok"]


@counts
def test_a_mutated_trace_of_nsys_is_refused_or_holds_whole_numbers_from_0(tmp_path: Path, count: int) -> None:
    export = Nsys(tmp_path / "trace.sqlite")
    export.range("warplog", 0, 10_000)
    for number in range(6):
        export.kernel("scale", 100 * number + 1, 100 * number + 20, 30 + number)
        export.copy(100 * number + 3, 100 * number + 40, 50, 1, 4096)
        export.memset(100 * number + 5, 100 * number + 41, 7, 64)
    changed(tmp_path, export.write(), mutators.BYTES, count, lambda: rows(export.path))


@counts
def test_a_mutated_cell_of_nsys_is_refused_or_read(tmp_path: Path, count: int) -> None:
    export = Nsys(tmp_path / "trace.sqlite")
    export.kernel("scale", 1, 20, 30)
    export.copy(3, 40, 50, 1, 4096)
    export.write()
    assert not changed(tmp_path, export.path, [mutators.cell], count, lambda: values(rows(export.path)))


@counts
def test_a_mutated_log_of_ptxas_is_refused_or_read_number_by_number(tmp_path: Path, count: int) -> None:
    path = tmp_path / "ptxas.log"
    text = (PROJECT / "tests" / "data" / "parsers" / "ptxas_sm90.log").read_bytes()
    path.write_bytes(text)
    whole = {(row.kernel, row.metric): row.value for row in rows(path)}
    for mutated, found in changed(tmp_path, path, mutators.TEXT, count, lambda: values(rows(path))):
        numbers = set(map(int, re.findall(rb"[0-9]+", b" ".join(new_lines(text, mutated)))))
        for kernel, metric, value in found:  # of all kernels, or of the first ones, if it ends between two
            assert value in {whole[kernel, metric]} | numbers


def new_lines(old: bytes, new: bytes) -> list[bytes]:
    """Returns the lines of `new` that differ from those of `old`."""
    before, after = old.splitlines(), new.splitlines()
    parts = SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [line for kind, _, _, start, end in parts if kind != "equal" for line in after[start:end]]


@counts
def test_a_mutated_dump_of_sass_is_refused_or_holds_as_many_instructions(tmp_path: Path, count: int) -> None:
    path = tmp_path / "dump.sass"
    path.write_bytes((PROJECT / "tests" / "data" / "parsers" / "sass_sm90.txt").read_bytes())
    whole = instructions(rows(path))
    for _, found in changed(tmp_path, path, mutators.TEXT, count, lambda: rows(path)):
        for kernel, number in instructions(found).items():
            # The dump may end behind a function. A damaged NOP or branch to itself is no padding.
            assert number >= whole.get(kernel, 0) - 2


def instructions(found: Sequence[Row]) -> dict[str, float]:
    return {row.kernel: row.value for row in found if row.metric == "sass_instructions"}


DURATION = "gpu__time_duration.sum"
COUNTERS = {DURATION: "2,000", "launch__registers_per_thread": "32", "dram__bytes.sum": "1,024"}
PRINTED = [
    (SPEED, "Duration", "us", "12.5"),
    ("Launch Statistics", "Registers Per Thread", "register/thread", "32"),
    ("Occupancy", "Achieved Occupancy", "%", "50.5"),
]
PAGES = {
    "raw": raw_page([("k", COUNTERS), ("k2", COUNTERS)], {DURATION: "ns", "dram__bytes.sum": "byte"}),
    "details": details_page([("k", PRINTED), ("k2", PRINTED)]),
    "text": text_page([("k", PRINTED), ("k2", PRINTED)]),
}


@counts
@pytest.mark.parametrize("page", PAGES)
def test_a_mutated_page_of_ncu_is_refused_or_read(tmp_path: Path, page: str, count: int) -> None:
    path = tmp_path / "page.txt"
    path.write_text(PAGES[page])
    for _, found in changed(tmp_path, path, mutators.TEXT, count, lambda: rows(path)):
        # A page may end after its first launch, and a row with another number is a launch of its own.
        assert len({row.launch for row in found}) in (1, 2, 3)


@counts
def test_a_mutated_report_of_ncu_is_refused_or_read(tmp_path: Path, count: int) -> None:
    path = write_ncu(
        tmp_path / "a.ncu-rep", [Launch("k", {DURATION: 2000.0}), Launch("k2", {DURATION: 3000.0})]
    )
    changed(tmp_path, path, mutators.BYTES, count, lambda: rows(path))


@counts
@pytest.mark.parametrize("name", ["measurements", "metrics", "timeline", "gpus"])
def test_a_mutated_table_is_refused_or_the_same(tmp_path: Path, name: str, count: int) -> None:
    path = tmp_path / f"{name}.parquet"
    path.write_bytes(as_parquet(read_table(RECORDED / "tables", name).head(200)))

    def table() -> Any:
        found = read_table(tmp_path, name)
        return found.to_dict("list").__repr__(), list(map(str, found.dtypes))

    assert not changed(tmp_path, path, mutators.BYTES, count, table)


@counts
def test_a_mutated_archive_is_refused_or_the_same(tmp_path: Path, count: int) -> None:
    path = tmp_path / "records" / "check.tar.xz"
    path.parent.mkdir()
    path.write_bytes(
        store.pack({f"check/h200/{name}.json": name.encode() * 500 for name in ("sgemm", "scan")})
    )

    def members() -> dict[str, bytes]:
        store._unpacked.cache_clear()  # a file system may give two writes the same time
        return dict(store.members(path))

    assert not changed(tmp_path, path, mutators.BYTES, count, members)


@counts
def test_a_mutated_family_is_refused_or_read(tmp_path: Path, count: int) -> None:
    for path in (PROJECT / "kernels" / "vector_add").iterdir():
        if path.is_file():
            (tmp_path / "vector_add" / path.name).parent.mkdir(exist_ok=True)
            (tmp_path / "vector_add" / path.name).write_bytes(path.read_bytes())
    file = tmp_path / "vector_add" / "family.yaml"
    changed(tmp_path, file, [*mutators.TEXT, mutators.yaml_value], count, lambda: catalog.load([tmp_path]))
