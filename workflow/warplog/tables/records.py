"""Reads the records of a campaign for the tables; live or recorded, and possibly incomplete."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.catalog.family import Variant
from warplog.core import paths, store
from warplog.core.records import FamilyRecord, Record, misplaced, read_json
from warplog.core.verification.invariants import believed, unproven
from warplog.machine.device import Gpu, gpu_of

_STAGES = ("build", "check", "time")


@dataclass(frozen=True)
class Source:
    """Where the records of a campaign are, and the labels of their rows in the tables.

    Attributes:
        root: `results` (live) or results/recorded/<name>.
        gpu: slug of the GPU; arch: the architecture of the builds.
        origin: 'live' or 'recorded', for everything below `root`.
        campaign: the campaign record.
        results: folder of the builds of this run.
    """

    root: Path
    gpu: str
    arch: str
    origin: str
    campaign: Record
    results: Path = paths.RESULTS

    @property
    def device(self) -> Gpu:
        """The GPU of the measurements, as described in the campaign record."""
        return gpu_of(self.campaign)

    def labels(self) -> dict[str, Any]:
        """Returns the columns that state the origin of a row."""
        return {
            "gpu": self.gpu,
            "gpu_name": self.campaign["gpu_name"],
            "origin": self.origin,
            "campaign": self.campaign["campaign"],
        }


@dataclass(frozen=True)
class VariantRecords:
    """The records of one variant; a missing one has status 'missing'."""

    build: Record
    check: Record
    time: Record
    extract: Record
    nsys: Record
    ncu: Record = field(default_factory=dict)

    def board(self, stage: str) -> str:
        """Returns the UUID of the board that ran a stage: check, time, ncu or nsys; "" if it did not run."""
        record: Record = getattr(self, stage)
        return str(record.get("provenance", {}).get("gpu_uuid", ""))

    def verdict(self) -> tuple[str, str]:
        """Returns status and reason of the variant's rows: those of the first stage that failed, else of timing."""
        for stage in _STAGES:
            record: Record = getattr(self, stage)
            if record["status"] not in ("ok", "skipped"):
                return record["status"], record["reason"]
        return self.time["status"], self.time["reason"]


def build_record(root: Path, arch: str, variant: Variant, results: Path = paths.RESULTS) -> Path:
    """Returns the path of a variant's build record: the recorded one if its source is unchanged, else in `results`.

    `root` is `results` or results/recorded/<name>.

    Raises:
        WarplogError: the recorded build record is not readable.
    """
    live, recorded = (
        paths.build_folder(place, arch, variant.family, variant.name) / "record.json"
        for place in (results, root)
    )
    if recorded != live and store.is_file(recorded):
        same = read_json(recorded, "record")["source_sha256"] == variant.fingerprint()
        return recorded if same else live
    return live


class FamilyRecords:
    """The records of a family: one file per stage, each read once and verified.

    A record that does not fit its schema, its place or its samples, or that has results without the passed check of the
    same library, has the status "error", and no results.
    """

    def __init__(self, source: Source, family: str) -> None:
        """Reads the files that exist.

        Raises:
            WarplogError: a file is damaged.
        """
        self._source = source
        self._stages = {
            stage: self._read(paths.family_record(source.root, folder, source.gpu, family, suffix))
            for stage, folder, suffix in (
                ("check", "check", ".json"),
                ("time", "time", ".json"),
                ("extract", "extract", ".json"),
                ("timeline", "timeline", ".json"),
                ("ncu", "profile", ".ncu.json"),
                ("nsys", "profile", ".nsys.json"),
            )
        }

    def of(self, variant: str, build: Path) -> VariantRecords:
        """Returns the records of a variant; its build record is read from the file `build`.

        Raises:
            WarplogError: the build record is damaged.
        """
        own = self._source.root in build.parents
        made = self._build(build) | ({"origin": self._source.origin} if own else {})
        check, extract = self._record("check", variant), self._record("extract", variant)
        time = believed(self._record("time", variant), check, made if own else None)
        captures = self.captures(variant)
        bad = {tool: why for tool in captures if (why := unproven(self._record(tool, variant), check))}
        return VariantRecords(
            made, check, time, _without_rows(extract, bad), captures["nsys"], captures["ncu"]
        )

    def captures(self, variant: str) -> dict[str, Record]:
        """Returns the profile records of a variant, by tool (ncu, nsys)."""
        check = self._record("check", variant)
        return {tool: believed(self._record(tool, variant), check) for tool in ("ncu", "nsys")}

    def timeline(self, variant: str) -> Record:
        """Returns the timeline record of a variant."""
        return believed(self._record("timeline", variant), self._record("check", variant))

    def _read(self, path: Path) -> dict[str, Record]:
        found = FamilyRecord.inspect_if_there(path)
        faults = {
            name: self._without_results("error", f"{path}: {why}") for name, why in found.faults.items()
        }
        others = {name: self._of_gpu(path, name, record) for name, record in found.variants.items()}
        return {**others, **faults}

    def _of_gpu(self, path: Path, name: str, record: Record) -> Record:
        """Returns the record; one without results if another GPU than that of the campaign made it."""
        gpu, own = record.get("provenance", {}).get("gpu_name"), self._source.campaign["gpu_name"]
        if not gpu or gpu == own:
            return record
        return self._without_results(
            "error", f"{path}: variants.{name}: measured on {gpu}, the campaign on {own}"
        )

    def _build(self, path: Path) -> Record:
        """Returns a build record; one without kernels if it is that of another variant."""
        if not store.is_file(path):
            return self._missing()
        record: Record = read_json(path, "record")
        place = dict(zip(("arch", "family", "variant"), path.parts[-4:-1], strict=True))
        why = misplaced(record, place)
        return {**self._without_results("error", f"{path}: {why}"), "seconds": 0.0} if why else record

    def _record(self, stage: str, variant: str) -> Record:
        return self._stages[stage].get(variant) or self._missing()

    def _missing(self) -> Record:
        where = f"the {self._source.origin} campaign {self._source.campaign['campaign']}"
        return self._without_results("missing", f"not in {where}")

    def _without_results(self, status: str, reason: str) -> Record:
        lists: Record = {name: [] for name in ("cases", "rows", "timeline", "lines", "kernels")}
        return {"status": status, "reason": reason, **lists}


def _without_rows(extract: Record, bad: Mapping[str, str]) -> Record:
    """Returns the extract record; the metrics of the tools in `bad` have no value, and the reason that `bad` states."""
    rows = [
        {**row, "value": None, "status": "error", "reason": bad[row["tool"]]} if row["tool"] in bad else row
        for row in extract["rows"]
    ]
    return {**extract, "rows": rows, **({"timeline": []} if "nsys" in bad else {})}
