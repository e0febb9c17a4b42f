"""Kernels in Triton, CuPy and PyTorch on the GPU: compiled, checked, timed, profiled and sanitised, or refused."""

from pathlib import Path

import pytest
from gpu_jobs import build_timer, build_variant, gpu_job, this_gpu

from one_variant import check_variant, record_of, sanitize_variant, time_variant
from warplog.catalog.family import load_family
from warplog.catalog.languages import MODULES
from warplog.extract.stage import extract_family
from warplog.machine import packages, toolchain
from warplog.measure.job import Job, Settings
from warplog.measure.stages import capture
from warplog.records import door
from warplog.records.build import Build
from warplog.records.check import Check
from warplog.records.config import CheckSettings, ProfileSettings, SanitizeSettings, TimeSettings
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.records.profile import Profile
from warplog.records.remarks import NoGraph

FAMILY = Path(__file__).parents[1] / "data" / "wrong_kernels" / "wrong_python" / "family.yaml"
RIGHT = ("in_triton", "in_cupy", "eager")
FAULTS = {
    "leaves_one_out": ("wrong", "1 of 4097 elements were never written"),
    "writes_one_more": ("wrong", "wrote outside y: "),
    "wrong_cupy": ("wrong", "outside the tolerance"),
    "no_triton": ("skipped", "compile_error: NameError('factr is not defined'), in line 3 of the function"),
    "no_cupy": ("skipped", 'identifier "blockId" is undefined'),
    "raises": ("crashed", "KeyError: 'z' (raises.py:7)"),
}
OTHERS = ("tuned", "uncapturable")

pytestmark = pytest.mark.gpu


def job(variant: str, folder: Path, stage: str, settings: Settings) -> Job[Settings]:
    """Builds the variant in `folder` and returns the job of a stage; skips without the packages of its language."""
    family = load_family(FAMILY)
    for module in MODULES[family.variant(variant).language]:
        if module != "cupy" and not packages.version(module):
            pytest.skip(f"no {module}")
    if not (folder / variant).is_dir():
        build_variant(family, variant, folder / variant)
    # A results folder for each variant, since a stage keeps the records of the variants of a family in one file.
    place, tool = ("profile", f".{stage}") if stage in ("ncu", "nsys") else (stage, "")
    record = folder / f"{variant}.results" / place / this_gpu().slug / f"{family.name}{tool}.json"
    return gpu_job(family, variant, folder / variant, record, settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a folder with the timing core; variants are built into it."""
    place = tmp_path_factory.mktemp("python")
    build_timer(place)
    return place


def checked(variant: str, folder: Path) -> tuple[Job[CheckSettings], Check]:
    one = job(variant, folder, "check", CheckSettings(rounds=2, timeout_s=120.0))
    return one, check_variant(one)


@pytest.mark.parametrize("variant", [*RIGHT, *OTHERS])
def test_a_right_kernel_passes(variant: str, folder: Path) -> None:
    _, record = checked(variant, folder)
    assert (record.status, record.reason) == ("ok", "")


@pytest.mark.parametrize("variant", FAULTS)
def test_a_wrong_kernel_is_refused_with_the_reason(variant: str, folder: Path) -> None:
    _, record = checked(variant, folder)
    status, words = FAULTS[variant]
    assert record.status == status, record.reason
    assert words in record.reason


def test_every_variant_has_an_expectation() -> None:
    assert {v.name for v in load_family(FAMILY).variants} == {*RIGHT, *OTHERS, *FAULTS}


@pytest.mark.parametrize("variant", ["in_triton", "in_cupy", "tuned"])
def test_the_compiled_kernel_has_its_resources_and_code(variant: str, folder: Path) -> None:
    job(variant, folder, "check", CheckSettings())
    record = door.read(folder / variant / "record.json", Build)
    assert (record.status, record.reason) == ("ok", "")
    (kernel,) = record.kernels
    assert kernel.kernel.startswith("scale_add")
    assert 8 <= kernel.registers_per_thread <= 255
    assert any(opcode.startswith("LDG") for opcode in kernel.opcodes)
    assert "Function : scale_add" in (folder / variant / "kernel.sass").read_text()
    if record.language == "triton":
        assert ".entry scale_add" in (folder / variant / "kernel.ptx").read_text()


@pytest.mark.parametrize("variant", [*RIGHT, "uncapturable"])
def test_it_is_timed_without_the_host_part_which_is_recorded_apart(variant: str, folder: Path) -> None:
    one, _ = checked(variant, folder)
    settings = TimeSettings(processes=2, most_processes=1, hot_cases="all")
    timed = job(variant, folder, "time", settings)
    record = time_variant(timed, one.record, folder / "timer.so", ["1Mi"])
    assert record.status == "ok", record.reason
    (case,) = record.cases
    assert case.cold.not_blocked == 0
    assert 1 < case.launch_host_us < 2000
    assert 1 < case.cold.median_us < 50
    assert case.hot.median_us > 1
    assert bool(case.hot.uncaptured) == (variant == "uncapturable"), case.hot.uncaptured
    assert (NoGraph() in case.remarks) == (variant == "uncapturable")


def test_both_profilers_see_the_kernel_and_lines_of_triton_have_their_text(folder: Path) -> None:
    one, _ = checked("in_triton", folder)
    family = load_family(FAMILY)
    cases = {"in_triton": ("1Mi",)}
    captures = {}
    for name, tool in (("ncu", capture.capture_ncu), ("nsys", capture.capture_nsys)):
        found = toolchain.find(name)
        if found.path is None:
            pytest.skip(f"no {name}: {found.remedy}")
        captured = job("in_triton", folder, name, ProfileSettings())
        tool([captured], one.record, found, cases)
        record = record_of(captured, Profile)
        if record.status == "denied":
            pytest.skip(record.reason)
        assert record.status == "ok", record.reason
        captures[name] = captured.record
    output = folder / "extract.json"
    extract_family(
        captures["ncu"], captures["nsys"], cases, cases, output, [family.variant("in_triton").file]
    )
    record = FamilyRecord.read(output, Extract).variants["in_triton"]
    assert {row.kernel for row in record.rows if row.tool == "ncu"} == {"scale_add"}
    assert {line.file for line in record.lines} >= {"in_triton.py"}
    assert any("tl.load" in line.text for line in record.lines)


@pytest.mark.parametrize("variant", ["in_triton", "in_cupy", "writes_one_more"])
def test_compute_sanitizer_runs_over_it(variant: str, folder: Path) -> None:
    tool = toolchain.find("compute-sanitizer")
    if tool.path is None:
        pytest.skip(tool.remedy)
    settings = SanitizeSettings(tools=("memcheck",), largest_elements=1 << 20, timeout_s=300.0)
    one = job(variant, folder, "sanitize", settings)
    record = sanitize_variant(one, tool)
    if record.status == "unsupported":
        pytest.skip(record.reason)
    assert record.status == ("finding" if variant == "writes_one_more" else "ok"), record.reason
