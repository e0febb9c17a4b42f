"""Gives the entries of the version before their keys of this one, so that nothing is measured anew; goes with the next.

The key of an entry used to hash the code that measured it, and now hashes the version of its stage. An entry gets the
new key if its job had the parameters that it has now, which Snakemake noted, and its build, reference and profiler are
the same.
"""

import base64
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from msgspec import structs

from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.machine import toolchain
from warplog.measure.building.job import inputs_sha256
from warplog.measure.job import make_jobs
from warplog.measure.stages.capture import NcuStage, NsysStage
from warplog.measure.stages.check import CheckStage
from warplog.measure.stages.family_stage import FamilyStage
from warplog.measure.stages.sanitize import SanitizeStage
from warplog.measure.stages.timeline import TimelineStage
from warplog.measure.stages.timing import TimeStage
from warplog.plan.files import Files
from warplog.plan.jobs import (
    BuildParameters,
    CheckJob,
    FamilyJob,
    ProfileJob,
    SanitizeJob,
    TimeJob,
    TimelineJob,
)
from warplog.plan.parameters import Parameters
from warplog.plan.plan import Plan
from warplog.records import door, stages
from warplog.records.build import Build
from warplog.records.campaign import Campaign
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import Recorded

_NOTES = Path(".snakemake", "metadata")


def rekey(say: Callable[[str], None]) -> None:
    """Writes the new keys of the live campaign in results/ of the working directory; says how many, by stage.

    The campaign is what the last run planned, as results/plan.json holds it.

    Raises:
        WarplogError: the plan or a record is damaged, or a file cannot be written.
    """
    plan = Plan.read(paths.PLAN) if paths.PLAN.is_file() else None
    if plan is None or not plan.live:
        return
    files, campaign = Files(plan), plan.source().campaign
    if count := _rekeyed_builds(files):
        say(f"  {stages.BUILD.word:9} {count} builds are kept")
    for family in plan.chosen:
        for stage, measuring, job in _stages(files, family):
            if count := _rekeyed(files, campaign, family, stage, measuring, job):
                say(f"  {stage.word:9} {family}: {count} entries keep their measurements")


def _rekeyed_builds(files: Files) -> int:
    """Writes the keys of builds, with and without marks, and returns how many there are."""
    plan, parameters, count = files.plan, Parameters(files), 0
    tools = {name: toolchain.find(name).version or "" for name in ("nvcc", "cuobjdump")}
    for stage, given in ((stages.BUILD, parameters.build), (stages.MARKED, parameters.marked)):
        for family, name in plan.pairs():
            names = SimpleNamespace(arch=plan.arch, family=family, variant=name)
            path = stage.at(paths.RESULTS, arch=plan.arch, family=family, variant=name)
            job = given(names)
            if not path.is_file() or repr(job) not in _noted(path):
                continue
            record, decoded = door.read(path, Build), door.decode(job, BuildParameters, str(path))
            variant = structs.replace(plan.families[family].variant(name), parameters=decoded.parameters)
            if record.inputs_sha256 or record.source_sha256 != variant.fingerprint():
                continue
            if all(record.tools.get(tool, version) == version for tool, version in tools.items()):
                build = decoded.job(name, plan.arch, path.parent, stage.version)
                door.write(path, structs.replace(record, inputs_sha256=inputs_sha256(build, variant)))
                count += 1
    return count


def _stages(
    files: Files, family: str
) -> Iterator[tuple[Recorded, FamilyStage[Any, Any, Any], FamilyJob[Any]]]:
    """Yields the measuring stages that have records of the family, with what measures and the parameters of its job."""
    names, parameters, plan = SimpleNamespace(family=family), Parameters(files), files.plan
    check, timer = stages.CHECK.at(plan.root, gpu=plan.gpu, family=family), Path(files.timer())
    marked = {
        v.name: Path(build)
        for v, build in zip(
            plan.family_plan(family).with_marks().variants, files.marked_builds(names), strict=True
        )
    }
    made: dict[
        Recorded, tuple[Callable[[Any], object], type[Any], Callable[[Any], FamilyStage[Any, Any, Any]]]
    ] = {
        stages.CHECK: (parameters.check, CheckJob, lambda job: CheckStage()),
        stages.TIME: (parameters.time, TimeJob, lambda job: TimeStage(check, timer, job.cases)),
        stages.NCU: (
            parameters.ncu,
            ProfileJob,
            lambda job: NcuStage(check, toolchain.find("ncu"), job.cases),
        ),
        stages.NSYS: (
            parameters.nsys,
            ProfileJob,
            lambda job: NsysStage(check, toolchain.find("nsys"), job.cases),
        ),
        stages.SANITIZE: (
            parameters.sanitize,
            SanitizeJob,
            lambda job: SanitizeStage(toolchain.find("compute-sanitizer")),
        ),
        stages.TIMELINE: (parameters.timeline, TimelineJob, lambda job: TimelineStage(check, timer, marked)),
    }
    for stage, (given, kind, measuring) in made.items():
        record = stage.at(plan.root, gpu=plan.gpu, family=family)
        job = given(names)
        if record.is_file() and repr(job) in _noted(record):
            decoded = door.decode(job, kind, str(record))
            yield stage, measuring(decoded), decoded


def _noted(record: Path) -> list[str]:
    """Returns the parameters of the job that wrote a record, as Snakemake noted them; [] if it has no note."""
    note = _NOTES / base64.urlsafe_b64encode(str(record).encode()).decode()
    try:
        found = door.read_json(note)["params"] if note.is_file() else []
    except (WarplogError, KeyError, TypeError):
        return []
    return [text for text in found if isinstance(text, str)]


def _rekeyed(
    files: Files,
    campaign: Campaign,
    family: str,
    stage: Recorded,
    measuring: FamilyStage[Any, Any, Any],
    job: FamilyJob[Any],
) -> int:
    """Writes the new keys of a family's entries and returns how many there are."""
    plan, names = files.plan, SimpleNamespace(family=family)
    record = FamilyRecord.read(stage.at(plan.root, gpu=plan.gpu, family=family), stage.record)
    uses = [] if stage in (stages.TIME, stages.NCU, stages.NSYS) else [Path(files.reference(names))]
    if any(file.stat().st_mtime > record.path.stat().st_mtime for file in uses):
        return 0
    marked = stage is stages.TIMELINE
    jobs = make_jobs(
        family=plan.families[family],
        variants=job.variants,
        gpu=campaign.device,
        builds=[Path(build) for build in (files.builds_with_timeline if marked else files.builds)(names)],
        campaign=Path(files.campaign()),
        settings=job.settings,
        record=record.path,
        inputs_sha256=job.inputs_sha256(stage.version, [Path(files.campaign()), *uses]),
    )
    count = 0
    for part in map(measuring.part, jobs):
        entry = record.variants.get(part.variant)
        if entry is not None and entry.inputs_sha256 != part.inputs_sha256 and measuring.is_of(part, entry):
            record.put(structs.replace(entry, inputs_sha256=part.inputs_sha256))
            count += 1
    if count:
        record.write()
    return count
