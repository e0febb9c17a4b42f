"""Measuring jobs: each is one stage of one variant on this machine's GPU; a family's jobs share a worker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant, load_family
from warplog.core import paths
from warplog.core.errors import WarplogError, progress
from warplog.core.files import state_of
from warplog.core.hashing import sha256_of
from warplog.core.numbers import rate_unit
from warplog.core.records import SCHEMA_VERSION, FamilyRecord, Record, read_json
from warplog.measure import provenance
from warplog.measure.family_board import board_of
from warplog.measure.supervise import Task, group_of
from warplog.measure.worker.case_data import SHARED_DATA
from warplog.measure.worker.main import parts_of
from warplog.records.campaign import Gpu

Refusal = tuple[str, str]  # status and reason


def refuse_build(build: Record) -> Refusal | None:
    """Returns status and reason for not running a build; None if it can be run."""
    if build["status"] == "ok":
        return None
    status = "unsupported" if build["status"] == "unsupported" else "skipped"
    return status, f"its build has status {build['status']}: {build['reason']}"


def refuse_unproven(check: Record, build: Record) -> Refusal | None:
    """Returns status and reason for not timing or capturing a variant; None if this build passed its check."""
    if check["status"] in ("unsupported", "skipped"):
        return check["status"], check["reason"]
    if check["status"] != "ok":
        return "skipped", f"its check has status {check['status']}: {check['reason']}"
    if check["library_sha256"] != build.get("library_sha256"):
        return "skipped", "its check belongs to another build; run the check again"
    return refuse_build(build)


def proofs(check: Path, jobs: Sequence["Job"]) -> list[Record]:
    """Returns the check record of each job's variant, from the family's check record; status 'missing' if it has none.

    Raises:
        WarplogError: The file is missing or damaged.
    """
    checked = FamilyRecord.read(check).variants
    missing: Record = {"status": "missing", "reason": f"not in {check}"}
    return [checked.get(job.variant.name, missing) for job in jobs]


@dataclass(frozen=True)
class Job:
    """One stage of one variant on one GPU.

    Attributes:
        build_folder: contains the variant's kernel.so and build record.
        record: file with the family's records of this stage; the jobs of all its variants share it.
        scratch: folder of the journal while the job runs.
        settings: the stage's settings: check, time, profile, timeline, sanitize or tune of the configuration.
        tools: versions by tool, for the provenance.
        commit: commit of the checkout, for the provenance.
        campaign: name of the campaign.
        content_sha256: hash of code, kernels and configuration, for the provenance.
        backend: array library of the worker, see worker.backend.
        inputs_sha256: hash of the inputs besides the build; "" if unknown: then the variant is always measured.
    """

    family: Family
    variant: Variant
    gpu: Gpu
    build_folder: Path
    record: Path
    scratch: Path
    settings: Mapping[str, Any]
    tools: dict[str, str]
    commit: str
    content_sha256: str
    backend: str = "cupy"
    inputs_sha256: str = ""
    campaign: str = ""

    @cached_property
    def build(self) -> Record:
        """The build record.

        Raises:
            WarplogError: It is missing or invalid.
        """
        record: Record = read_json(self.build_folder / "record.json", "record")
        return record

    @property
    def library(self) -> Path:
        """What the worker loads: the compiled library, or the module of a Python variant.

        Raises:
            WarplogError: The module differs from the one that was built.
        """
        if not self.variant.is_python:
            return self.build_folder / "kernel.so"
        if self.build["source_sha256"] != self.variant.fingerprint():
            raise WarplogError(f"{self.variant.file}: it or a module that it imports changed; run again")
        return self.variant.file

    def task(self, mode: str, cases: tuple[str, ...], settings: Mapping[str, Any], **more: Any) -> Task:
        """Returns the task for a worker; `more` adds or replaces fields of Task."""
        fields: dict[str, Any] = {
            "mode": mode,
            "backend": self.backend,
            "family_file": self.family.file,
            "library": self.library,
            "library_sha256": self.build["library_sha256"],
            "cases": cases,
            "folder": self.scratch,
            "settings": settings,
            "environment": self.gpu.environment,
            "gpu_lock": self.gpu.uuid,
            "memory": {"": self.variant.memory},
        }
        return Task(**{**fields, **more})

    def misfit(self, case: str) -> str:
        """Returns why the variant does not support a case; '' if it does."""
        return self.variant.requires.why_not_case(self.family.case(case))

    def fitting(self, cases: tuple[str, ...]) -> tuple[str, ...]:
        """Returns the cases that the variant supports."""
        return tuple(c for c in cases if not self.misfit(c))

    def entry(self, case: str, results: Mapping[str, Record], refusal: Refusal | None) -> Record:
        """Returns the record's entry for a case: its result, or the reason why it has none."""
        if refusal is not None:
            return {"case": case, "status": refusal[0], "reason": refusal[1]}
        if misfit := self.misfit(case):
            limits = self.variant.requires.own_limits(self.family.case(case))
            beyond = {"own_limits": limits} if limits else {}
            return {"case": case, "status": "unsupported", "reason": misfit, **beyond}
        return dict(results[case])

    @property
    def former(self) -> Record:
        """The variant's existing record; {} if there is none."""
        return _records(self.record, state_of(self.record)).get(self.variant.name, {})

    def is_fresh(self, inputs_sha256: str, any_board: bool = False) -> bool:
        """Returns whether the existing record has these inputs and, unless `any_board`, is from this job's board.

        It is not if the job's inputs are unknown. Since a family's ratios must not compare two boards, a family that
        moves to another board is measured again as a whole.
        """
        former = self.former
        moved = former.get("provenance", {}).get("gpu_uuid") != self.gpu.uuid
        same = bool(self.inputs_sha256) and former.get("inputs_sha256") == inputs_sha256
        return same and (any_board or not moved)

    def head(self, stage: str, build: Record, session: Record) -> Record:
        """Returns the keys that the records of all measuring stages share; `session` holds the worker's versions."""
        return {
            "schema": SCHEMA_VERSION,
            "stage": stage,
            "family": self.family.name,
            "variant": self.variant.name,
            "gpu": self.gpu.slug,
            "origin": "live",
            "source_sha256": build["source_sha256"],
            "library_sha256": build.get("library_sha256", ""),
            "provenance": provenance.of_job(self.gpu, self.tools, self.commit, self.content_sha256, session),
        }

    def progress(self, mode: str, total: int) -> Callable[[Record], None]:
        """Returns a function that prints a line per finished case: `check   sgemm/naive  4096  ok  ...  (6/7)`."""
        done = 0

        def show(result: Record) -> None:
            nonlocal done
            done += 1
            outcome = result["reason"] if result["status"] != "ok" else self._headline(mode, result)
            variant, case = parts_of(result["case"])
            label = f"{self.family.name}/{variant or self.variant.name}"
            line = f"  {mode:7} {label}  {case}  {result['status']}  {outcome}"
            progress(f"{line.rstrip()}  ({done}/{total})", result["status"])

        return show

    def _headline(self, mode: str, result: Record) -> str:
        if mode == "check":
            return f"error {result['max_error_over_tolerance']:.2f} of the tolerance"
        if mode == "sustain":
            return f"{result['sustained']['mean_us']:.4g} us sustained"
        if mode == "timeline":
            return f"overhead of the marks {result['overhead']['overhead_pct']:.2f} %"
        if mode != "time":
            return f"{result['launches']} launch{'es' if result['launches'] > 1 else ''}"
        rest_us = result["cold"]["median_us"]
        hot = f", {result['hot']['median_us']:.4g} us hot" if "hot" in result else ""
        case = self.family.cases[parts_of(result["case"])[1]]
        flops = self.family.value(self.family.flops, case)
        work, unit = (
            (flops, "GFLOP/s") if flops else (self.family.value(self.family.bytes_moved, case), "GB/s")
        )
        rate = work / max(rest_us, 1e-3) / 1e3
        unit, factor = rate_unit(unit, [rate])
        return f"{rest_us:.4g} us at rest{hot}, {rate * factor:.4g} {unit}"


def family_task(
    parts: Sequence[tuple[Job, tuple[str, ...]]], mode: str, settings: Mapping[str, Any], **more: Any
) -> Task:
    """Returns one task for the given cases of several variants of a family.

    Variants that passed their checks (mode capture) run case by case, so that they share the inputs of a case. In
    other modes, a variant's cases run one after the other.
    """
    family = parts[0][0].family
    pairs = [(job.variant.name, case) for job, cases in parts for case in cases]
    if mode in SHARED_DATA:
        order = [*family.cases, *family.check_cases]
        pairs.sort(key=lambda pair: order.index(pair[1]))
    names = [f"{variant}:{case}" for variant, case in pairs]
    return task_of([job for job, _ in parts], names, mode, settings, **more)


def task_of(
    jobs: Sequence[Job], names: Sequence[str], mode: str, settings: Mapping[str, Any], **more: Any
) -> Task:
    """Returns one task for several variants of a family.

    Args:
        jobs: the variants' jobs.
        names: the cases to run, in order: `[<process>/]<variant>:<case>`, see worker/main.py.
        mode: what the worker does: check, time, sustain, capture, timeline or sanitize.
        settings: settings of the worker.
        more: further fields of Task.
    """
    first = jobs[0]
    of_variants = {job.variant.name: job.library for job in jobs}
    libraries = {name: of_variants[parts_of(name)[0]] for name in names}
    hashes = {job.variant.name: job.build["library_sha256"] for job in jobs}
    more |= {"memory": {job.variant.name: job.variant.memory for job in jobs}, "libraries": libraries}
    scratch = first.scratch.with_name(f".{first.family.name}.{mode}.work")
    task = first.task(mode, tuple(names), settings, folder=scratch, **more)
    return replace(task, library_sha256=sha256_of(hashes))


def own_results(variant: str, results: Sequence[Record]) -> dict[str, Record]:
    """Returns a variant's results by case, from the results of a family's task."""
    mine = [r for r in results if group_of(r["case"]) == variant]
    return {name: {**r, "case": name} for r in mine if (name := r["case"].rpartition(":")[2])}


def make_jobs(
    *,
    family_file: Path,
    variants: Sequence[str],
    gpu: str,
    builds: Sequence[Path],
    campaign: Path,
    settings: Mapping[str, Any],
    record: Path,
    inputs_sha256: str = "",
) -> list[Job]:
    """Returns the jobs of one stage for variants of a family, on the board that measures it.

    Args:
        family_file: the family.yaml.
        variants: names of the variants, in the order in which they are measured.
        gpu: slug of the campaign's GPU, such as "h200"; this machine's GPU must have the same.
        builds: record.json of each variant's build, in the same order; kernel.so is beside it.
        campaign: the campaign record; provides the tools' versions, and the commit if the configuration names one or
            outside of a git checkout; the family's board is noted in its results folder.
        settings: the stage's settings, such as `check` or `time` of the configuration.
        record: the family's record file of this stage. Its records with unchanged inputs are kept. Folders for
            unfinished work are created beside it.
        inputs_sha256: hash of the inputs that all variants share, such as settings, contract, campaign and code; a
            job's hash includes its variant's memory, too. "" if unknown: then all variants are measured.

    Raises:
        WarplogError: This machine has no GPU, another one or no free one, or family.yaml or the campaign record is
            invalid.
    """
    family = load_family(family_file)
    named = read_json(campaign, "record")
    found = board_of(family.name, gpu, campaign.parents[1])
    project = paths.project()
    commit = provenance.commit_in(named, project)
    content = provenance.content_sha256(project)
    return [
        Job(
            family=family,
            variant=family.variant(variant),
            gpu=found,
            build_folder=build.parent,
            record=record,
            scratch=record.with_name(f".{family.name}.{variant}.work"),
            settings=settings,
            tools=named["tools"],
            commit=commit,
            content_sha256=content,
            campaign=named["campaign"],
            inputs_sha256=inputs_sha256 and sha256_of(inputs_sha256, dict(family.variant(variant).memory)),
        )
        for variant, build in zip(variants, builds, strict=True)
    ]


def keep(job: Job, made: Iterable[Record]) -> None:
    """Writes records of variants into the family's record file, `job.record`.

    Records of other variants stay in the file, unless the family no longer has the variant.

    Raises:
        WarplogError: A record does not fit its schema, or the file is damaged or cannot be written.
    """
    together = FamilyRecord.read_if_there(job.record)
    together.keep_only([variant.name for variant in job.family.variants])
    for one in made:
        together.put(one)
    together.write()


@lru_cache(maxsize=2)
def _records(path: Path, _state: tuple[int, int]) -> dict[str, Record]:
    """Returns the records in a file; cached until the file changes, since the jobs of all variants need it."""
    return FamilyRecord.read_if_there(path).variants
