"""The records of a campaign as the tables read them: live or recorded, and some of them missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplog import layout
from warplog.device import Gpu
from warplog.provenance import gpu_of
from warplog.records import Record, read_json

if TYPE_CHECKING:
    from warplog.plan import Plan

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

    @classmethod
    def of(cls, plan: "Plan") -> "Source":
        """The campaign that a plan measures or shows.

        Raises:
            WarplogError: its record is missing or not readable.
        """
        origin = "live" if plan.live else "recorded"
        return cls(plan.root, plan.gpu, plan.arch, origin, read_json(Path(plan.campaign()), "record"))

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


def read_records(source: Source, family: str, variant: str, build: Path) -> VariantRecords:
    """The records of a variant from its files, `build` among them; missing ones say so."""
    origin = {"origin": source.origin} if source.root in build.parents else {}
    stages = {
        s: _read(layout.record(source.root, s, source.gpu, family, variant), source)
        for s in ("check", "time", "extract")
    }
    return VariantRecords(build=_read(build, source) | origin, **stages)


def read_captures(source: Source, family: str, variant: str) -> dict[str, Record]:
    """What the profilers said of their sessions with a variant, by tool."""
    where = (source.root, "profile", source.gpu, family, variant)
    return {tool: _read(layout.record(*where, f".{tool}.json"), source) for tool in ("ncu", "nsys")}


def _read(path: Path, source: Source) -> Record:
    if path.is_file():
        record: Record = read_json(path, "record")
        return record
    where = f"the {source.origin} campaign {source.campaign['campaign']}"
    return {
        "status": "missing",
        "reason": f"not in {where}",
        "cases": [],
        "rows": [],
        "timeline": [],
        "kernels": [],
    }
