"""Building Python variants: what is compiled by a launch on a GPU, and the reasons where that is not possible."""

import shutil
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import structs

import made_up_records
from host_family import PYTHON_RIGHT, make_python_family
from warplog.catalog.family import Family
from warplog.core.errors import WarplogError
from warplog.machine import device, packages, toolchain
from warplog.measure.building import python_build
from warplog.measure.results import Compiled, LaunchFailed, Result
from warplog.measure.task import CaseRun, Task
from warplog.measure.worker.python import compile_case as compiling
from warplog.parsers import sass, usage
from warplog.plan.parameters import attempt
from warplog.records import door
from warplog.records.build import Build
from warplog.records.campaign import Gpu
from warplog.records.fields import Status
from warplog.records.measured import Session

CUBIN = Path(__file__).parents[2] / "data" / "parsers" / "triton_scale.cubin"  # by Triton 3.6, for sm_90
GPU = made_up_records.gpu(memory_bytes=1 << 37, driver="580", cuda_driver="13.0")


@pytest.fixture
def family(tmp_path: Path) -> Family:
    return make_python_family(tmp_path / "kernels", {"right": PYTHON_RIGHT}, language="triton")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    versions = {"triton": "3.6.0", "torch": "2.11.0", "cupy": "14.2.0"}
    monkeypatch.setattr(packages, "version", lambda module: versions.get(module, ""))
    return versions


def build(family: Family, folder: Path, gpu: Gpu | None = GPU) -> Build:
    tool = toolchain.find("cuobjdump")
    return python_build.build_variant(family, family.variants[0], "sm_90", tool, folder, 1, gpu)


def pretend(
    monkeypatch: pytest.MonkeyPatch, cupy: bytes = b"", status: Status = "ok", reason: str = ""
) -> list[Task]:
    """Replaces the worker: it finishes with a status, and Triton's and CuPy's compilers leave their files."""
    tasks: list[Task] = []

    def run_cases(task: Task, *_: object) -> Any:
        tasks.append(task)
        cache = Path(task.environment["TRITON_CACHE_DIR"]) / "KEY"
        cache.mkdir(parents=True)
        shutil.copy(CUBIN, cache / "scale.cubin")
        (cache / "scale.ptx").write_text("// PTX\n")
        (cache / "scale.json").write_text('{"shared": 16}')
        files = tuple(str(cache / f"scale.{suffix}") for suffix in ("cubin", "json", "ptx"))
        other = Path(task.environment["CUPY_CACHE_DIR"])
        other.mkdir()
        if cupy:
            (other / "0123_2.cubin").write_bytes(cupy)
        found = Compiled(launched=(files,)) if status == "ok" else None
        return [Result(run=task.runs[0], status=status, reason=reason, found=found)], Session()

    monkeypatch.setattr(python_build, "run_cases", run_cases)
    return tasks


def test_without_a_gpu_the_record_says_what_is_missing(
    family: Family, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "why_not", lambda: "no driver")
    monkeypatch.setattr(packages, "version", lambda module: "")
    record = build(family, tmp_path / "out", None)
    assert record == door.read(tmp_path / "out" / "record.json", Build)
    assert (record.status, record.language) == ("missing", "triton")
    assert record.reason == (
        "language triton is compiled by its first launch, which requires a GPU: no driver; language triton requires the"
        " packages triton and torch: uv pip install triton torch"
    )
    assert (tmp_path / "out" / "kernel.so").read_bytes() == b""


def test_a_missing_package_is_named_with_the_remedy(
    family: Family, tmp_path: Path, installed: dict[str, str]
) -> None:
    del installed["triton"]
    record = build(family, tmp_path / "out")
    assert record.status == "missing"
    assert record.reason == "language triton requires the package triton: uv pip install triton"


def test_another_gpu_than_the_campaigns_is_named(
    family: Family, tmp_path: Path, installed: dict[str, str]
) -> None:
    record = build(family, tmp_path / "out", structs.replace(GPU, arch="sm_80"))
    assert record.reason == "language triton compiles for this GPU's sm_80 only, not for sm_90"


def test_the_kernels_of_a_launch_have_their_resources_code_and_versions(
    family: Family, tmp_path: Path, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = pretend(monkeypatch)
    record = build(family, tmp_path / "out")
    assert (record.status, record.reason) == ("ok", "")
    (kernel,) = record.kernels
    assert (kernel.kernel, kernel.registers_per_thread) == ("scale", 24)
    assert (kernel.static_shared_bytes, kernel.dynamic_shared_bytes) == (0, 16)
    assert kernel.opcodes["EXIT"] >= 1
    assert kernel.sass_instructions == sum(kernel.opcodes.values())
    assert record.tools["triton"] == "3.6.0"
    assert [Path(file).name for file in record.dependencies] == ["right.py"]
    assert "Function : scale" in (tmp_path / "out" / "kernel.sass").read_text()
    assert (tmp_path / "out" / "kernel.ptx").read_text() == "// PTX\n"
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "kernel.ptx",
        "kernel.sass",
        "kernel.so",
        "record.json",
    ]
    (task,) = tasks
    assert (task.work.mode, task.backend) == ("compile", "driver")
    assert task.runs == (CaseRun(variant="right", case="64"),)
    assert task.gpu_lock == "GPU-1"


def test_the_library_hash_changes_with_the_version_of_the_compiler(
    family: Family, tmp_path: Path, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch)
    first = build(family, tmp_path / "out").library_sha256
    assert build(family, tmp_path / "out").library_sha256 == first
    installed["triton"] = "3.8.0"
    assert build(family, tmp_path / "out").library_sha256 != first


@pytest.mark.parametrize("missing", [0, 1])
def test_code_that_cupy_compiled_is_read_behind_its_hash_also_without_its_last_byte(
    missing: int,
    tmp_path: Path,
    installed: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    family = make_python_family(tmp_path / "kernels", {"right": PYTHON_RIGHT})
    code = CUBIN.read_bytes()
    kept = b"0" * 40 + code[: len(code) - missing]  # CuPy 14 keeps one byte less than NVRTC makes
    pretend(monkeypatch, kept)
    kernels = build(family, tmp_path / "out").kernels
    assert [kernel.kernel for kernel in kernels] == ["scale", "scale"]
    assert kernels[1].dynamic_shared_bytes is None


def test_a_compile_error_is_a_record_and_any_other_failure_is_left_to_the_check(
    family: Family, tmp_path: Path, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, status="compile_error", reason="NameError('factr is not defined')")
    record = build(family, tmp_path / "out")
    assert (record.status, record.reason) == ("compile_error", "NameError('factr is not defined')")
    assert attempt(tmp_path / "out" / "record.json") == 2, "it is tried again"
    pretend(monkeypatch, status="crashed", reason="illegal address")
    record = build(family, tmp_path / "out")
    assert (record.status, record.reason) == ("ok", "")


def test_a_worker_that_fails_is_a_record(
    family: Family, tmp_path: Path, installed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> Any:
        raise WarplogError("the worker failed: libtorch.so: no such file")

    monkeypatch.setattr(python_build, "run_cases", broken)
    record = build(family, tmp_path / "out")
    assert (record.status, record.reason) == ("error", "the worker failed: libtorch.so: no such file")


def test_the_headline_case_is_compiled_unless_it_is_too_large(
    family: Family, monkeypatch: pytest.MonkeyPatch
) -> None:
    variant = family.variants[0]
    assert python_build._case(family, variant).name == "64"
    monkeypatch.setattr(python_build, "_MOST_ELEMENTS", 100)
    assert python_build._case(family, variant).name == "one"


def test_spills_are_the_bytes_of_instructions_on_local_memory() -> None:
    text = "\n Function k:\n  REG:255 STACK:64 SHARED:1424 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0\n"
    opcodes = {"k": {"STL": 2, "STL.64": 1, "STL.128": 1, "LDL.LU.64": 3, "LDG.E.128": 9, "LDL.U8": 1}}
    (kernel,) = (usage.with_spills(one, opcodes["k"]) for one in usage.parse(text, "sm_90"))
    assert (kernel.registers_per_thread, kernel.stack_bytes, kernel.static_shared_bytes) == (255, 64, 400)
    assert (kernel.spill_store_bytes, kernel.spill_load_bytes) == (32, 25)
    (older,) = usage.parse(text, "sm_80")
    assert older.static_shared_bytes == 1424, "cuobjdump counts the driver's share from sm_90 on"
    assert sass.targets("\tcode for sm_90a\n") == ("sm_90a",)


class Hooks(list[Any]):
    """A chain of hooks, as in triton.knobs."""

    add = list.append


@pytest.fixture
def knobs(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    runtime = SimpleNamespace(kernel_load_end_hook=Hooks(), launch_enter_hook=Hooks())
    monkeypatch.setitem(sys.modules, "triton.knobs", SimpleNamespace(runtime=runtime))
    return runtime


def compile_with(launch: Any, monkeypatch: pytest.MonkeyPatch) -> Compiled:
    monkeypatch.setattr(compiling, "sanitize_case", launch)
    launcher = SimpleNamespace(prepare=lambda problem, seed: None)
    return compiling.compile_case(None, launcher, None)  # type: ignore[arg-type]


def test_of_a_tuned_kernel_only_the_launched_setting_counts(
    knobs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = iter(((1, 2, 3), (2,)))  # the first launch tries three, the second runs the best of them

    def launch(*_: object) -> None:
        for function in next(settings):
            for hook in knobs.kernel_load_end_hook:
                hook(None, function, "scale", {"scale.cubin": f"/{function}/scale.cubin"}, "")
            for hook in knobs.launch_enter_hook:
                hook(SimpleNamespace(get=lambda found=function: {"function": found}))

    found = compile_with(launch, monkeypatch)
    assert found == Compiled(launched=(("/2/scale.cubin",),))


def test_a_launch_that_does_not_compile_says_so_and_another_failure_does_not(
    knobs: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(status: str) -> Any:
        def launch(*_: object) -> None:
            raise LaunchFailed(status, "why")

        return launch

    with pytest.raises(LaunchFailed, match="why"):
        compile_with(refuse("compile_error"), monkeypatch)
    assert compile_with(refuse("crashed"), monkeypatch) == Compiled(launched=())
