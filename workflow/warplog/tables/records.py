"""The records of a campaign as the tables read them: live or recorded, and some of them missing."""

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
    """Where the records of a campaign lie and what they are called in the tables.

    Attributes:
        root: results (live) or results/recorded/<name>.
        origin: 'live' or 'recorded', for all that comes from `root`.
    """

    root: Path
    gpu: str
    arch: str
    origin: str
    campaign: Record

    @property
    def device(self) -> Gpu:
        """The GPU that measured, as the campaign record describes it."""
        return gpu_of(self.campaign)

    def labels(self) -> dict[str, Any]:
        """The columns that say where a row comes from."""
        return {
            "gpu": self.gpu,
            "gpu_name": self.campaign["gpu_name"],
            "origin": self.origin,
            "campaign": self.campaign["campaign"],
        }


@dataclass(frozen=True)
class VariantRecords:
    """All records of one variant; a stage without one has status 'missing'."""

    build: Record
    check: Record
    time: Record
    extract: Record

    def verdict(self) -> tuple[str, str]:
        """Status and reason of the first stage that is not ok: what the variant's rows must say."""
        for stage in _STAGES:
            record: Record = getattr(self, stage)
            if record["status"] not in ("ok", "skipped"):
                return record["status"], record["reason"]
        return self.time["status"], self.time["reason"]


def build_record(root: Path, arch: str, variant: Variant) -> Path:
    """The build record of a variant: the recorded one if its source is unchanged, else the one made here.

    `root` is results or results/recorded/<name>.

    Raises:
        WarplogError: the recorded one is not readable.
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
    """The records of a family as the tables read them: one file per stage, each read once."""

    def __init__(self, source: Source, family: str) -> None:
        """Reads what is there.

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
        """The records of a variant, its build from the file `build`; missing ones have that status.

        Raises:
            WarplogError: the build record is damaged.
        """
        origin = {"origin": self._source.origin} if self._source.root in build.parents else {}
        made: Record = read_json(build, "record") if build.is_file() else self._missing()
        stages = {stage: self._record(stage, variant) for stage in ("check", "time", "extract")}
        return VariantRecords(build=made | origin, **stages)

    def captures(self, variant: str) -> dict[str, Record]:
        """The profilers' records of their sessions with a variant, by tool."""
        return {tool: self._record(tool, variant) for tool in ("ncu", "nsys")}

    def _record(self, stage: str, variant: str) -> Record:
        return self._stages[stage].get(variant) or self._missing()

    def _missing(self) -> Record:
        where = f"the {self._source.origin} campaign {self._source.campaign['campaign']}"
        lists: Record = {name: [] for name in ("cases", "rows", "timeline", "kernels")}
        return {"status": "missing", "reason": f"not in {where}", **lists}
