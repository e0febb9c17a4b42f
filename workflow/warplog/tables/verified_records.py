"""Reads the records of a campaign for the tables; live or recorded, and possibly incomplete."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import asdict, replace

from warplog.catalog.family import Variant
from warplog.core import paths, store
from warplog.core.columns import Cell
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.check import Check
from warplog.records.extract import Extract
from warplog.records.family_file import Entry, FamilyRecord, misplaced
from warplog.records.fields import Origin, Tool
from warplog.records.measured import Absent, Measured
from warplog.records.profile import Profile
from warplog.records.requested.accesses import Accesses
from warplog.records.requested.timeline import Timeline
from warplog.records.time import Time
from warplog.records.verification.invariants import Stage, believed, unproven


@dataclass(frozen=True)
class Source:
    """Where the records of a campaign are, and the labels of their rows in the tables.

    Attributes:
        root: `results` (live) or results/recorded/<name>.
        origin: 'live' or 'recorded', for everything below `root`.
        results: folder of the builds of this run.
    """

    root: Path
    origin: Origin
    campaign: Campaign
    results: Path = paths.RESULTS

    def labels(self) -> dict[str, Cell]:
        """Returns the columns that state the origin of a row."""
        return {
            "gpu": self.campaign.gpu,
            "gpu_name": self.campaign.gpu_name,
            "origin": self.origin,
            "campaign": self.campaign.campaign,
        }


@dataclass(frozen=True)
class VariantRecords:
    """The records of one variant; `captures` are those of the profilers."""

    build: Build | Absent
    check: Check | Absent
    time: Time | Absent
    extract: Extract | Absent
    captures: Mapping[Tool, Profile | Absent]

    def verdict(self) -> tuple[str, str]:
        """Returns status and reason of the variant's rows: those of the first stage that failed, else of timing."""
        for record in (self.build, self.check, self.time):
            if record.status not in ("ok", "skipped"):
                return record.status, record.reason
        return self.time.status, self.time.reason


def board(record: Measured | Absent) -> str:
    """Returns the UUID of the board that ran a stage; "" if it did not run."""
    return "" if isinstance(record, Absent) else record.provenance.gpu_uuid


def build_record(root: Path, arch: str, variant: Variant, results: Path = paths.RESULTS) -> Path:
    """Returns the path of a variant's build record: the recorded one if its source is unchanged, else in `results`.

    `root` is `results` or results/recorded/<name>.

    Raises:
        WarplogError: the recorded build record is not readable.
    """
    live, recorded = (
        stages.BUILD.at(place, arch=arch, family=variant.family, variant=variant.name)
        for place in (results, root)
    )
    if recorded != live and store.is_file(recorded):
        return recorded if door.read(recorded, Build).source_sha256 == variant.fingerprint() else live
    return live


class FamilyRecords:
    """The records of a family: one file per stage, each read once and verified.

    A record that does not fit its type or its place is absent, with the status "error". One that contradicts its
    samples, or has results without the passed check of the same library, has that status, and no results.
    """

    def __init__(self, source: Source, family: str) -> None:
        """Reads the files that exist.

        Raises:
            WarplogError: a file is damaged.
        """
        self._source, self._family = source, family
        where = f"the {source.origin} campaign {source.campaign.campaign}"
        self._missing = Absent(status="missing", reason=f"not in {where}")
        self._checks = self._read(stages.CHECK, Check)
        self._times = self._read(stages.TIME, Time)
        self._extracts = self._read(stages.EXTRACT, Extract)
        self._timelines = self._read(stages.TIMELINE, Timeline)
        self._accesses = self._read(stages.ACCESSES, Accesses)
        self._captures: Mapping[Tool, Mapping[str, Profile | Absent]] = {
            "ncu": self._read(stages.NCU, Profile),
            "nsys": self._read(stages.NSYS, Profile),
        }

    def records_of(self, variant: str, build: Path) -> VariantRecords:
        """Returns the records of a variant; its build record is read from the file `build`.

        Raises:
            WarplogError: the build record is damaged.
        """
        made, check = self._build(build), self._checks.get(variant, self._missing)
        time, extract = self._times.get(variant, self._missing), self._extracts.get(variant, self._missing)
        of_campaign = None
        if self._source.root in build.parents and isinstance(made, Build):
            made = of_campaign = replace(made, origin=self._source.origin)
        captures = {tool: captured.get(variant, self._missing) for tool, captured in self._captures.items()}
        return VariantRecords(
            made,
            check,
            _believed(time, check, of_campaign),
            extract if isinstance(extract, Absent) else _believed_rows(extract, captures, check),
            {tool: _believed(capture, check) for tool, capture in captures.items()},
        )

    def timeline(self, variant: str) -> Timeline | Absent:
        """Returns the timeline record of a variant."""
        check = self._checks.get(variant, self._missing)
        return _believed(self._timelines.get(variant, self._missing), check)

    def accesses(self, variant: str) -> Accesses | Absent:
        """Returns the record of a variant's traced accesses."""
        check = self._checks.get(variant, self._missing)
        return _believed(self._accesses.get(variant, self._missing), check)

    def _read(self, stage: stages.Stage, kind: type[Entry]) -> Mapping[str, Entry | Absent]:
        campaign = self._source.campaign
        path = stage.at(self._source.root, gpu=campaign.gpu, family=self._family)
        stored = FamilyRecord.inspect_if_there(path, kind)
        usable: dict[str, Entry | Absent] = {}
        for name, record in stored.variants.items():
            gpu = record.provenance.gpu_name if isinstance(record, Measured) else ""
            if gpu in ("", campaign.gpu_name):
                usable[name] = record
            else:
                why = f"variants.{name}: measured on {gpu}, the campaign on {campaign.gpu_name}"
                usable[name] = Absent(status="error", reason=f"{path}: {why}")
        faults = stored.faults.items()
        return usable | {name: Absent(status="error", reason=f"{path}: {why}") for name, why in faults}

    def _build(self, path: Path) -> Build | Absent:
        if not store.is_file(path):
            return self._missing
        record = door.read(path, Build)
        place = dict(zip(("arch", "family", "variant"), path.parts[-4:-1], strict=True))
        why = misplaced(asdict(record), place)
        return Absent(status="error", reason=f"{path}: {why}") if why else record


def _believed(stage: Stage | Absent, check: Check | Absent, build: Build | None = None) -> Stage | Absent:
    return stage if isinstance(stage, Absent) else believed(stage, check, build)


def _believed_rows(
    extract: Extract, captures: Mapping[Tool, Profile | Absent], check: Check | Absent
) -> Extract:
    """Returns the extract record; metrics from a capture that is `unproven` have no value, and the reason for it."""
    bad = {
        tool: why
        for tool, capture in captures.items()
        if isinstance(capture, Profile) and (why := unproven(capture, check))
    }
    rows = tuple(
        replace(row, value=None, status="error", reason=bad[row.tool]) if row.tool in bad else row
        for row in extract.rows
    )
    return replace(extract, rows=rows, trace=() if "nsys" in bad else extract.trace)
