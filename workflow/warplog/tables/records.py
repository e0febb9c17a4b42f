"""The records of a campaign as the tables read them: live or recorded, and some of them missing."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.catalog.family import Variant
from warplog.core import paths
from warplog.core.records import Record, read_json
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
    """Path of the build record that speaks for a variant: the recorded one if it has the same source, else the live one.

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


def read_records(source: Source, family: str, variant: str, build: Path) -> VariantRecords:
    """The records of a variant from its files, `build` among them; missing ones say so."""
    origin = {"origin": source.origin} if source.root in build.parents else {}
    stages = {
        s: _read(paths.record(source.root, s, source.gpu, family, variant), source)
        for s in ("check", "time", "extract")
    }
    return VariantRecords(build=_read(build, source) | origin, **stages)


def read_captures(source: Source, family: str, variant: str) -> dict[str, Record]:
    """What the profilers said of their sessions with a variant, by tool."""
    where = (source.root, "profile", source.gpu, family, variant)
    return {tool: _read(paths.record(*where, f".{tool}.json"), source) for tool in ("ncu", "nsys")}


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
