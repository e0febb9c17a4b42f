"""Compares warplog's timing core with NVBench (PyPI: cuda-bench), ncu and nsys on kernels with known traffic.

Run it by hand on a machine with a GPU. NVBench, warplog's cold time and ncu start from a flushed L2; warplog's
hot time and nsys time back-to-back launches. Writes timers.csv and timers.md into DIR, and all records, reports and
samples beside them. If cuda.bench, ncu, nsys or the permission for counters is missing, the table states it.
"""

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.insert(0, str(Path(__file__).parents[2] / "workflow"))

from benchmarks.timer_table import Row, Timing, as_csv, as_markdown, make_row

from one_variant import check_variant, time_variant
from warplog.catalog.family import Family, Variant, load_family
from warplog.core import process
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.locks import hold
from warplog.extract.stage import extract_family
from warplog.machine import device, toolchain
from warplog.measure import provenance
from warplog.measure.building import build
from warplog.measure.job import Job, Settings
from warplog.measure.stages import capture
from warplog.measure.stages.timing import TimeStage
from warplog.records.campaign import Gpu
from warplog.records.config import CheckSettings, ProfileSettings, TimeSettings
from warplog.records.door import read_json, write
from warplog.records.extract import Extract, MetricRow
from warplog.records.family_file import FamilyRecord
from warplog.records.time import Statistics, TimeCase

PROJECT = Path(__file__).parents[2]
HERE = Path(__file__).parent
FAMILY = HERE / "kernels" / "timing_probe" / "family.yaml"
NVBENCH = {"min_time_s": 0.05, "timeout_s": 2.0}  # the default timeout is 15 s per case
START_S, CASE_S = 120.0, 30.0  # time limits of the child: to start, and per case


@dataclass(frozen=True)
class Bench:
    """What all variants share.

    Attributes:
        folder: where all results are written.
        tools: programs by name.
    """

    folder: Path
    family: Family
    gpu: Gpu
    tools: Mapping[str, toolchain.Tool]
    commit: str
    content_sha256: str

    def job(self, variant: Variant, stage: str, settings: Settings) -> Job[Settings]:
        """Returns the job of one stage; record, reports and scratch files are in the variant's folder."""
        place = self.folder / variant.name
        return Job(
            family=self.family,
            variant=variant,
            gpu=self.gpu,
            build_folder=place / "build",
            record=place / f"{self.family.name}.{stage}.json",
            scratch=place / f".{stage}",
            settings=settings,
            tools={name: tool.version or "" for name, tool in self.tools.items()},
            commit=self.commit,
            content_sha256=self.content_sha256,
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns 0, or prints one line and returns 1 if it cannot run."""
    options = _parser().parse_args(arguments)
    try:
        print(compare(options.output, options.commit))
    except WarplogError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def compare(folder: Path, commit: str | None) -> str:
    """Measures all variants, writes both tables into `folder`, and returns the Markdown.

    Raises:
        WarplogError: There is no GPU or compiler, or a tool does not work.
    """
    gpu = device.detect()
    if gpu is None:
        raise WarplogError(f"no GPU: {device.why_not()}; run this on a machine with a GPU")
    toolchain.ensure("cuda")
    toolchain.ensure("gpu")
    bench = Bench(
        folder=folder,
        family=load_family(FAMILY),
        gpu=gpu,
        tools={name: toolchain.find(name) for name in ("nvcc", "cuobjdump", "ncu", "nsys")},
        commit=commit if commit is not None else provenance.commit_of(PROJECT),
        content_sha256=provenance.content_sha256(PROJECT),
    )
    _show("build", "timing core")
    build.build_timer(bench.tools["nvcc"], gpu.arch, folder / "timer.so")
    rows = [row for variant in bench.family.variants for row in measure_variant(bench, variant)]
    text = as_markdown(rows, headline(bench))
    write_text(folder / "timers.csv", as_csv(rows))
    write_text(folder / "timers.md", text)
    _show("tables", f"{folder / 'timers.csv'}, {folder / 'timers.md'}")
    return text


def measure_variant(bench: Bench, variant: Variant) -> Iterator[Row]:
    """Builds and checks one variant, runs every timer on it, and yields its rows."""
    family, gpu, tools = bench.family, bench.gpu, bench.tools
    place = bench.folder / variant.name
    cases = tuple(name for name, case in family.cases.items() if not variant.requires.why_not_case(case))
    built = build.build_variant(family, variant, gpu.arch, tools["nvcc"], tools["cuobjdump"], place / "build")
    _show("build", f"{family.name}/{variant.name}  {built.status}  {built.reason}")
    check = bench.job(variant, "check", CheckSettings())
    check_variant(check)
    timer = bench.folder / "timer.so"
    timed = time_variant(
        bench.job(variant, "time", TimeSettings(hot_cases="all")), check.record, timer, cases
    )
    profiled = _profile(bench, variant, check.record, cases)
    nvbench = time_with_nvbench(bench, variant, check.record, cases)
    for case, entry in zip(cases, timed.cases, strict=True):
        found = {
            "nvbench_us": nvbench[case],
            "warplog_cold_us": _timing(entry, entry.cold),
            "ncu_us": _metric(profiled, case, "duration_us"),
            "warplog_hot_us": _timing(entry, entry.hot),
            "nsys_us": _metric(profiled, case, "nsys_duration_us"),
        }
        megabytes = family.amount(family.work.bytes, family.cases[case], 1) / 1e6
        yield make_row(variant.name, case.removeprefix(f"{variant.name}-"), megabytes, found)


def _profile(bench: Bench, variant: Variant, check: Path, cases: tuple[str, ...]) -> Sequence[MetricRow]:
    """Returns the metrics of both profilers: ncu with a cold L2, nsys over back-to-back launches."""
    settings = ProfileSettings(metrics="lean")
    ncu, nsys = bench.job(variant, "ncu", settings), bench.job(variant, "nsys", settings)
    capture.capture_ncu([ncu], check, bench.tools["ncu"], {variant.name: cases})
    capture.capture_nsys([nsys], check, bench.tools["nsys"], {variant.name: cases})
    output, of_variant = bench.folder / variant.name / "extract.json", {variant.name: cases}
    extract_family(ncu.record, nsys.record, of_variant, of_variant, output)
    return FamilyRecord.read(output, Extract).variants[variant.name].rows


def time_with_nvbench(
    bench: Bench, variant: Variant, check: Path, cases: tuple[str, ...]
) -> dict[str, Timing]:
    """Returns NVBench's cold medians by case, from a separate process with the same lock and environment."""
    job = bench.job(variant, "nvbench", NVBENCH)
    refusal = TimeStage(check, bench.folder / "timer.so", cases).refuse(job)
    if refusal is not None:
        return dict.fromkeys(cases, Timing(None, *refusal))
    task, answer = job.record.with_suffix(".task.json"), job.record
    content = {
        "family_file": str(bench.family.file.resolve()),
        "library": str(job.build_folder.resolve() / "kernel.so"),
        "backend": job.backend,
        "cases": list(cases),
        "samples": str(answer.resolve().with_suffix(".samples.json")),
        "answer": str(answer.resolve()),
        **NVBENCH,
    }
    write(task, content)
    answer.unlink(missing_ok=True)
    with hold(bench.gpu.uuid):
        done = process.run(
            [sys.executable, str(HERE / "nvbench_child.py"), str(task)],
            timeout_s=START_S + CASE_S * len(cases),
            env=_child_environment(bench.gpu),
            log=job.record.with_suffix(".log"),
        )
    found = read_nvbench(answer, done, cases)
    for number, (case, timing) in enumerate(found.items(), 1):
        outcome = timing.reason if timing.us is None else f"{timing.us:.4g} us cold"
        _show(
            "nvbench",
            f"{bench.family.name}/{variant.name}  {case}  {timing.status}  {outcome}  ({number}/{len(cases)})",
        )
    return found


def _child_environment(gpu: Gpu) -> dict[str, str]:
    path = f"{PROJECT / 'workflow'}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
    return process.minimal_env({"PYTHONPATH": path, "CUPY_ACCELERATORS": "", **gpu.environment})


def read_nvbench(answer: Path, done: process.Completed, cases: Sequence[str]) -> dict[str, Timing]:
    """Returns the child's timing of each case; if it wrote no answer, the same failure for all cases."""
    if not done.ok or not answer.is_file():
        status = "timeout" if done.timed_out else "crashed" if done.signal_name else "error"
        tail = " ".join(done.output_tail.split())[-400:]
        return dict.fromkeys(cases, Timing(None, status, f"{process.explain_exit(done)}: {tail}"))
    data = read_json(answer)
    if data["status"] != "ok":
        return dict.fromkeys(cases, Timing(None, data["status"], data["reason"]))
    timings = {c["case"]: Timing(c["median_us"], c["status"], c["reason"]) for c in data["cases"]}
    return {case: timings.get(case, Timing(None, "error", "no answer for this case")) for case in cases}


def _timing(entry: TimeCase, time: Statistics | None) -> Timing:
    return Timing(time.median_us if time else None, entry.status, entry.reason)


def _metric(rows: Sequence[MetricRow], case: str, metric: str) -> Timing:
    """Returns the single value of a metric for a case, since these variants launch one kernel."""
    row = next(r for r in rows if (r.case, r.metric) == (case, metric))
    return Timing(row.value, row.status, row.reason)


def headline(bench: Bench) -> str:
    """Returns one line about the origin of the numbers: GPU, driver, clocks, date, commit and tools."""
    versions = {name: bench.tools[name].version for name in ("ncu", "nsys", "nvcc")}
    versions = {"NVBench (cuda-bench)": _version("cuda-bench"), **versions}
    listed = ", ".join(f"{name} {version or 'missing'}" for name, version in versions.items())
    commit = bench.commit[:12] + ("-dirty" if bench.commit.endswith("-dirty") else "")
    return (
        f"{bench.gpu.name}, driver {bench.gpu.driver}, clocks unlocked, {provenance.now()[:10]},"
        f" commit {commit or 'unknown'}; {listed}. Medians in microseconds."
    )


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _show(stage: str, text: str) -> None:
    print(f"  {stage:7} {text}".rstrip(), file=sys.stderr, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    default = PROJECT / "results" / "benchmarks"
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=default, help="default: results/benchmarks"
    )
    parser.add_argument("--commit", help="commit to state in the tables (default: from git)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
