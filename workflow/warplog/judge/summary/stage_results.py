"""What the records of the stages say about each variant, whether or not the run came to its end."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.catalog.family import Variant
from warplog.core import paths, store
from warplog.judge.summary.rows import Trouble
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.requested.sanitize import Sanitize
from warplog.records.time import Time
from warplog.tables.verified_records import build_record

_Record = Build | Check | Time | Profile | Sanitize
_STAGES = (stages.CHECK, stages.TIME, stages.NCU, stages.NSYS, stages.SANITIZE)
# A case with such a status is as it should be: the variant, or its family, leaves it out.
_WELL = ("ok", "skipped", "unsupported", "missing")


@dataclass(frozen=True)
class StageResults:
    """Of so many variants, how many are ok with their present source, by stage, and what failed."""

    variants: int
    done: Mapping[str, int]
    troubles: tuple[Trouble, ...]


def stage_results(root: Path, arch: str, gpu: str, chosen: Mapping[str, Sequence[Variant]]) -> StageResults:
    """Returns what the records say about the chosen variants; a record of another source says nothing.

    `root` is the folder of the records: `results`, or a recorded campaign.

    Raises:
        WarplogError: a file of records is damaged.
    """
    done: Counter[str] = Counter()
    troubles: list[Trouble] = []
    for family, variants in chosen.items():
        stored: dict[str, Mapping[str, _Record]] = {}
        for made in _STAGES:
            path = made.at(root, gpu=gpu, family=family)
            stored[made.word] = FamilyRecord.inspect_if_there(path, made.record).variants
        for variant in variants:
            for stage, record in _present(build_record(root, arch, variant), variant, stored):
                done[stage] += record.status == "ok"
                log = _log(arch, gpu, variant, stage)
                troubles += (
                    Trouble(family, variant.name, code, stage, reason, log, case)
                    for code, reason, case in _faults(record)
                )
    return StageResults(sum(map(len, chosen.values())), done, tuple(troubles))


def _present(
    build: Path, variant: Variant, stored: Mapping[str, Mapping[str, _Record]]
) -> Iterator[tuple[str, _Record]]:
    """Yields stage and record of those that belong to the variant's present source."""
    made = door.read(build, Build) if store.is_file(build) else None
    if made is None or made.source_sha256 != variant.fingerprint():
        return
    yield "build", made
    for stage, records in stored.items():
        record = records.get(variant.name)
        if record and made.library_sha256 and record.library_sha256 == made.library_sha256:
            yield stage, record


def _faults(record: _Record) -> Iterator[tuple[str, str, str]]:
    """Yields status, reason and case of what is not ok in a record; the case is "" if it is all of them."""
    if record.status not in ("ok", "skipped"):
        yield record.status, record.reason, ""
    elif record.status == "ok" and isinstance(record, (Check, Time, Profile)):
        for case in record.cases:
            if case.status not in _WELL:
                yield case.status, case.reason, case.case


def _log(arch: str, gpu: str, variant: Variant, stage: str) -> str:
    """Returns the file with what the compiler said, or with what the job said; "" if this run has none."""
    family, logs = variant.family, paths.RESULTS / "logs"
    if stage == "build":
        record = stages.BUILD.at(paths.RESULTS, arch=arch, family=family, variant=variant.name)
        places = [record.with_name("compile.log"), logs / "build" / arch / family / f"{variant.name}.log"]
    else:
        (made,) = (recorded for recorded in _STAGES if recorded.word == stage)
        places = [made.at(logs, gpu=gpu, family=family).with_suffix(".log")]
    return next((str(place) for place in places if place.is_file()), "")
