"""Reads the records of a campaign for the tables; live or recorded, and possibly incomplete."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.catalog.family import Variant
from warplog.core import paths
from warplog.core.records import FamilyRecord, Record, read_json
from warplog.machine.device import Gpu, gpu_of

_STAGES = ("build", "check", "time")


@dataclass(frozen=True)
class Source:
    """Where the records of a campaign are, and the labels of their rows in the tables.

    Attributes:
        root: results (live) or results/recorded/<name>.
        gpu: slug of the GPU; arch: the architecture of the builds.
        origin: 'live' or 'recorded', for everything below `root`.
        campaign: the campaign record.
    """

    root: Path
    gpu: str
    arch: str
    origin: str
    campaign: Record

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

    def verdict(self) -> tuple[str, str]:
        """Returns status and reason of the variant's rows: those of the first stage that failed, else of timing."""
        for stage in _STAGES:
            record: Record = getattr(self, stage)
            if record["status"] not in ("ok", "skipped"):
                return record["status"], record["reason"]
        return self.time["status"], self.time["reason"]


def build_record(root: Path, arch: str, variant: Variant) -> Path:
    """Returns the path of a variant's build record: the recorded one if its source is unchanged, else that in results.

    `root` is results or results/recorded/<name>.

    Raises:
        WarplogError: the recorded build record is not readable.
    """
    live, recorded = (
        paths.build_folder(place, arch, variant.family, variant.name) / "record.json"
        for place in (paths.RESULTS, root)
    )
    if recorded != live and recorded.is_file():
        same = read_json(recorded, "record")["source_sha256"] == variant.fingerprint()
        return recorded if same else live
    return live


class FamilyRecords:
    """The records of a family: one file per stage, each read once."""

    def __init__(self, source: Source, family: str) -> None:
        """Reads the files that exist.

        Raises:
            WarplogError: a file is damaged.
        """
        self._source = source
        self._stages = {
            stage: FamilyRecord.read_if_there(
                paths.family_record(source.root, folder, source.gpu, family, suffix)
            ).variants
            for stage, folder, suffix in (
                ("check", "check", ".json"),
                ("time", "time", ".json"),
                ("extract", "extract", ".json"),
                ("ncu", "profile", ".ncu.json"),
                ("nsys", "profile", ".nsys.json"),
            )
        }

    def of(self, variant: str, build: Path) -> VariantRecords:
        """Returns the records of a variant; its build record is read from the file `build`.

        Raises:
            WarplogError: the build record is damaged.
        """
        origin = {"origin": self._source.origin} if self._source.root in build.parents else {}
        made: Record = read_json(build, "record") if build.is_file() else self._missing()
        stages = {stage: self._record(stage, variant) for stage in ("check", "time", "extract", "nsys")}
        return VariantRecords(build=made | origin, **stages)

    def captures(self, variant: str) -> dict[str, Record]:
        """Returns the profile records of a variant, by tool (ncu, nsys)."""
        return {tool: self._record(tool, variant) for tool in ("ncu", "nsys")}

    def _record(self, stage: str, variant: str) -> Record:
        return self._stages[stage].get(variant) or self._missing()

    def _missing(self) -> Record:
        where = f"the {self._source.origin} campaign {self._source.campaign['campaign']}"
        lists: Record = {name: [] for name in ("cases", "rows", "timeline", "kernels")}
        return {"status": "missing", "reason": f"not in {where}", **lists}
