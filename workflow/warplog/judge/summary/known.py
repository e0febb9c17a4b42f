"""What the records of the stages say about each variant, whether or not the run came to its end."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from warplog.catalog.family import Variant
from warplog.core import paths, store
from warplog.core.records import FamilyRecord, Record, read_json
from warplog.judge.summary.rows import Trouble
from warplog.tables.records import build_record

# Stages of a variant, with the folder and the end of the name of their record; build has one record per variant.
_STAGES = {
    "check": ("check", ".json"),
    "time": ("time", ".json"),
    "ncu": ("profile", ".ncu.json"),
    "nsys": ("profile", ".nsys.json"),
    "sanitize": ("sanitize", ".json"),
}
# A case with such a status is as it should be: the variant, or its family, leaves it out.
_WELL = ("ok", "skipped", "unsupported", "missing")


@dataclass(frozen=True)
class Known:
    """What is known of so many variants: how many are ok with their present source, by stage, and what failed."""

    variants: int
    done: Mapping[str, int]
    troubles: tuple[Trouble, ...]


def known(root: Path, arch: str, gpu: str, chosen: Mapping[str, Sequence[Variant]]) -> Known:
    """Returns what the records say about the chosen variants; a record of another source says nothing.

    `root` is the folder of the records: `results`, or a recorded campaign.

    Raises:
        WarplogError: a file of records is damaged.
    """
    done: Counter[str] = Counter()
    troubles: list[Trouble] = []
    for family, variants in chosen.items():
        stored = {
            stage: FamilyRecord.inspect_if_there(
                paths.family_record(root, folder, gpu, family, suffix)
            ).variants
            for stage, (folder, suffix) in _STAGES.items()
        }
        for variant in variants:
            own = {stage: records.get(variant.name, {}) for stage, records in stored.items()}
            for stage, record in _present(build_record(root, arch, variant), variant, own):
                done[stage] += record["status"] == "ok"
                log = _log(arch, gpu, variant, stage)
                troubles += (
                    Trouble(family, variant.name, code, stage, reason, log, case)
                    for code, reason, case in _faults(record)
                )
    return Known(sum(map(len, chosen.values())), done, tuple(troubles))


def _present(build: Path, variant: Variant, records: Mapping[str, Record]) -> Iterator[tuple[str, Record]]:
    """Yields stage and record of those that belong to the variant's present source."""
    made = read_json(build, "record") if store.is_file(build) else {}
    if made.get("source_sha256") != variant.fingerprint():
        return
    yield "build", made
    library = made.get("library_sha256", "")
    yield from ((s, r) for s, r in records.items() if r and r.get("library_sha256") == library != "")


def _faults(record: Record) -> Iterator[tuple[str, str, str]]:
    """Yields status, reason and case of what is not ok in a record; the case is "" if it is all of them."""
    if record["status"] not in ("ok", "skipped"):
        yield record["status"], record["reason"], ""
    elif record["status"] == "ok" and record["stage"] != "sanitize":  # whose cases are names
        for case in record.get("cases", ()):
            if case["status"] not in _WELL:
                yield case["status"], case["reason"], case["case"]


def _log(arch: str, gpu: str, variant: Variant, stage: str) -> str:
    """Returns the file with what the compiler said, or with what the job said; "" if this run has none."""
    family, logs = variant.family, paths.RESULTS / "logs"
    if stage == "build":
        folder = paths.build_folder(paths.RESULTS, arch, family, variant.name)
        places = [folder / "compile.log", logs / "build" / arch / family / f"{variant.name}.log"]
    else:
        folder_name, suffix = _STAGES[stage]
        places = [logs / folder_name / gpu / f"{family}{suffix.replace('.json', '.log')}"]
    return next((str(place) for place in places if place.is_file()), "")
