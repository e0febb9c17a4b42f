"""Finding programs and their versions, and installing missing ones; the programs are small scripts."""

import os
import sys
from pathlib import Path

import pytest

from warplog.core.errors import WarplogError
from warplog.machine import toolchain, wheels
from warplog.machine.toolchain import Tool, compiler, ensure, find, host_compiler, nvcc_command, snapshot

SAYS = {
    "nvcc": "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release {0}, V{0}.88",
    "cuobjdump": "cuobjdump: NVIDIA (R) fat binary utility\nCuda compilation tools, release {0}, V{0}.86",
    "ncu": "NVIDIA (R) Nsight Compute Command Line Profiler\nVersion {0}.1.0 (build 36424714)",
    "nsys": "NVIDIA Nsight Systems version {0}.1.367-253536367v0",
    "compute-sanitizer": "NVIDIA (R) Compute Sanitizer\nVersion {0}.1.0 (build 36424714)",
    "g++": "g++ (Debian {0}.0-14) {0}.0",
}


def program(folder: Path, name: str, version: str = "", *, script: str = "") -> Path:
    """Creates an executable that prints its version like the real program."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script or f'echo {SAYS[name].format(version)!r}'}\n".replace("\\n", "\n"))
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path, monkeypatch):
    """A machine without CUDA; returns its root. Its PATH is <root>/bin and a folder with the shell."""
    for name in ("CUDA_HOME", "CUDA_PATH", "NVCC_CCBIN", "LD_LIBRARY_PATH", "UV"):
        monkeypatch.delenv(name, raising=False)
    shell = tmp_path / "shell"
    shell.mkdir()
    (shell / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{shell}")
    monkeypatch.setattr(toolchain, "_ROOT", tmp_path)
    monkeypatch.setattr(wheels, "_entries", lambda: [tmp_path / "site"])
    return tmp_path


@pytest.mark.parametrize(
    ("name", "given", "version"),
    [
        ("nvcc", "13.0", "13.0.88"),
        ("cuobjdump", "13.2", "13.2.86"),
        ("ncu", "2025.3", "2025.3.1.0"),
        ("nsys", "2025.5", "2025.5.1.367"),
        ("compute-sanitizer", "2025.3", "2025.3.1.0"),
    ],
)
def test_the_version_is_read_off_the_program_on_the_path(bare, name, given, version):
    path = program(bare / "bin", name, given)
    assert find(name) == Tool(name, path, version, "")


def test_a_missing_program_has_a_remedy_and_no_version(bare):
    for name in toolchain.TOOLS:
        tool = find(name)
        assert (tool.path, tool.version, tool.ok) == (None, None, False)
        assert len(tool.remedy) > 10


def test_profilers_are_found_where_installers_put_them_the_newest_first(bare):
    for version in ("2024.1", "2025.10", "2025.9"):
        program(bare / "opt/nvidia/nsight-compute" / f"{version}.1", "ncu", version)
    assert find("ncu").version == "2025.10.1.0"
    program(bare / "opt/nvidia/nsight-systems/2025.5.1/target-linux-x64", "nsys", "2025.5")
    assert find("nsys").version == "2025.5.1.367"


def test_a_start_script_that_fails_does_not_hide_a_program_that_works(bare):
    program(bare / "bin", "ncu", script="echo 'ERROR : nsight-compute is not found' >&2; exit 1")
    assert find("ncu").path == bare / "bin" / "ncu"
    assert "does not run" in find("ncu").remedy
    works = program(bare / "opt/nvidia/nsight-compute/2025.3.1", "ncu", "2025.3")
    assert find("ncu") == Tool("ncu", works, "2025.3.1.0", "")


def test_cuda_home_serves_where_the_path_has_no_nvcc_or_an_old_one(bare, monkeypatch):
    newer = program(bare / "cuda" / "bin", "nvcc", "13.0")
    monkeypatch.setenv("CUDA_HOME", str(bare / "cuda"))
    assert find("nvcc").path == newer
    program(bare / "bin", "nvcc", "11.8")
    assert find("nvcc").path == newer
    monkeypatch.delenv("CUDA_HOME")
    old = find("nvcc")
    assert (old.version, old.ok) == ("11.8.88", False)
    assert "too old" in old.remedy
    with pytest.raises(WarplogError, match="too old"):
        nvcc_command(old)


def wheel_compiler(site: Path) -> Path:
    """Creates nvcc in the layout of NVIDIA's wheels: one folder with `lib` instead of `lib64`."""
    home = site / "nvidia" / "cu13"
    for part in wheels._COMPILER_PARTS:
        (home / part).parent.mkdir(parents=True, exist_ok=True)
        (home / part).touch()
    program(home / "bin", "nvcc", "13.0")
    return home


def test_the_wheels_nvcc_is_used_when_complete_and_is_told_where_its_libraries_are(bare):
    home = wheel_compiler(bare / "site")
    assert nvcc_command(find("nvcc")) == [str(home / "bin" / "nvcc"), f"-L{home / 'lib'}"]
    (home / "nvvm" / "bin" / "cicc").unlink()  # as during the installation of the wheels
    assert find("nvcc").path is None


def test_a_named_version_is_the_one_that_is_installed_wherever_it_is(bare, monkeypatch):
    on_path = program(bare / "bin", "nvcc", "13.0")
    later = program(bare / "later" / "bin", "nvcc", "13.1")
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}:{later.parent}")
    home = program(bare / "home" / "bin", "nvcc", "13.30")
    monkeypatch.setenv("CUDA_HOME", str(home.parents[1]))
    default = program(bare / "usr/local/cuda-12.8/bin", "nvcc", "12.8")
    in_wheels = program(wheel_compiler(bare / "site") / "bin", "nvcc", "13.3")
    found = {"13.0": on_path, "13.0.88": on_path, "13.1": later, "13.30": home, "12.8": default}
    for version, path in (found | {"13.3": in_wheels}).items():
        tool = compiler(version, bare / "cache")
        assert (tool.path, tool.ok) == (path, True)
        assert f"{tool.version}.".startswith(f"{version}.")
    assert find("nvcc").path == on_path
    assert not (bare / "cache").exists()
    with pytest.raises(WarplogError, match=r"nvcc 11\.8 is too old"):
        compiler("11.8", bare / "cache")


def test_the_libraries_of_a_named_toolkit_are_linked_before_those_of_the_environment(bare):
    program(bare / "usr/local/cuda-13.1/bin", "nvcc", "13.1")
    files = [bare / "usr/local/cuda-13.1/lib64/libcublas.so", bare / "site/nvidia/cu13/lib/libcublas.so.13"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.touch()
    (files[1].parent / "libcufft.so.12").touch()
    own = compiler("13.1", bare / "cache").libraries
    assert toolchain.linkable("cublas", own) == files[0]
    assert toolchain.linkable("cufft", own) == files[1].parent / "libcufft.so.12"
    assert toolchain.linkable("cublas", find("nvcc").libraries) == files[1]


def test_a_toolkits_nvcc_needs_no_library_path(bare):
    program(bare / "bin", "nvcc", "13.0")
    (bare / "lib").mkdir()
    (bare / "lib" / "libcudadevrt.a").touch()
    (bare / "lib64").symlink_to(bare / "lib")
    assert nvcc_command(find("nvcc")) == [str(bare / "bin" / "nvcc")]


def test_the_locked_disassembler_comes_before_an_older_one_on_the_path(bare):
    program(bare / "bin", "cuobjdump", "11.8")
    assert find("cuobjdump").version == "11.8.86"
    locked = program(bare / "site/nvidia/cu13/bin", "cuobjdump", "13.2")
    assert find("cuobjdump").path == locked


def test_cublas_is_found_in_wheels_in_the_environment_and_in_the_toolkit(bare, monkeypatch):
    assert toolchain.library("cublas") is None
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{bare}/nowhere::{bare}/elsewhere")
    for place in ("usr/local/cuda/lib64", "elsewhere", "site/nvidia/cu13/lib"):
        (bare / place).mkdir(parents=True)
        (bare / place / "libcublas.so.12").touch()
        (bare / place / "libcublas.so.13").touch()
        assert toolchain.library("cublas") == bare / place / "libcublas.so.13"


def test_the_sanitizer_api_is_found_in_the_toolkit_of_nvcc_and_before_that_in_the_wheels(bare):
    program(bare / "opt" / "bin", "nvcc", "13.0")
    (bare / "bin").symlink_to(bare / "opt" / "bin")
    assert toolchain.sanitizer_api() is None
    for headers, libraries in (
        ("usr/local/cuda/compute-sanitizer/include", "usr/local/cuda/compute-sanitizer"),
        ("opt/compute-sanitizer/include", "opt/compute-sanitizer"),
        ("site/nvidia/cu13/include", "site/nvidia/cu13/lib"),
    ):
        (bare / headers).mkdir(parents=True)
        (bare / headers / "sanitizer.h").touch()
        (bare / libraries).mkdir(exist_ok=True)
        library = bare / libraries / "libsanitizer-public.so"
        library.touch()
        assert toolchain.sanitizer_api() == toolchain.SanitizerApi(bare / headers, library)


def test_the_host_compiler_is_the_one_that_nvcc_will_call(bare, monkeypatch):
    assert not host_compiler().ok
    program(bare / "bin", "g++", "12.2")
    assert host_compiler().version == "12.2.0"
    other = program(bare / "gcc-13", "g++", "13.3")
    for setting in (other, other.parent):
        monkeypatch.setenv("NVCC_CCBIN", str(setting))
        assert (host_compiler().version, host_compiler().path) == ("13.3.0", other)


def test_the_snapshot_names_every_tool_and_is_empty_for_missing_ones(bare):
    program(bare / "bin", "nvcc", "13.0")
    versions = snapshot()
    assert versions["nvcc"] == "13.0.88"
    assert (versions["ncu"], versions["nsys"], versions["host_compiler"]) == ("", "", "")
    assert versions["python"].startswith("3.")
    assert all(isinstance(value, str) for value in versions.values())


@pytest.fixture
def project(bare, monkeypatch):
    """A project with a virtual environment; uv is a script that records its call and installs nvcc."""
    for name in ("pyproject.toml", "uv.lock", "env/pyvenv.cfg"):
        (bare / name).parent.mkdir(exist_ok=True)
        (bare / name).touch()
    monkeypatch.setattr(sys, "prefix", str(bare / "env"))
    program(bare / "stock", "nvcc", "13.0")
    script = f"""\
echo "$UV_PROJECT_ENVIRONMENT|$*" >> {bare}/calls
while read line; do echo "$line"; done < {bare}/stock/nvcc > {bare}/bin/nvcc
/bin/chmod +x {bare}/bin/nvcc"""
    program(bare / "bin", "uv", script=script)
    return bare


def calls(project: Path) -> list[str]:
    path = project / "calls"
    return path.read_text().splitlines() if path.exists() else []


def test_a_missing_compiler_is_fetched_once_as_locked_and_nothing_is_removed(project, capsys):
    ensure("cuda", project)
    ensure("cuda", project)
    (call,) = calls(project)
    environment, _, arguments = call.partition("|")
    assert environment == sys.prefix
    assert arguments.startswith(f"sync --project {project} --python {sys.executable}")
    assert {"--frozen", "--inexact", "--no-install-project"} <= set(arguments.split())
    assert arguments.endswith("--extra cuda")
    assert find("nvcc").ok
    assert "installing" in capsys.readouterr().err


def test_nothing_is_fetched_where_a_compiler_is_there(project, capsys):
    program(project / "bin", "nvcc", "12.8")
    ensure("cuda", project)
    assert calls(project) == []
    assert capsys.readouterr().err == ""


def test_without_network_the_error_has_uvs_words_and_the_next_job_does_not_try_again(project):
    words = "error: Failed to download x\\n  cause: dns error: https://files.example.org/x.whl\\nhint: y"
    program(project / "bin", "uv", script=f"echo call >> {project}/calls; echo '{words}'; exit 2")
    for _ in range(3):
        with pytest.raises(WarplogError) as caught:
            ensure("cuda", project)
        text = str(caught.value)
        assert "Failed to download x cause: dns error" in text
        assert "uv sync --inexact --extra cuda" in text
        assert "\n" not in text
    assert calls(project) == ["call"]
    failure = next((project / "env").glob(".warplog-fetch-cuda-failed"))
    os.utime(failure, (0, 0))
    with pytest.raises(WarplogError):
        ensure("cuda", project)
    assert calls(project) == ["call", "call"]


@pytest.mark.parametrize(
    ("gone", "remedy"),
    [
        ("bin/uv", "uv, which would install it, was not found"),
        ("uv.lock", "has no uv.lock"),
        ("env/pyvenv.cfg", "is not a writable virtual environment"),
    ],
)
def test_where_nothing_can_be_fetched_the_remedy_is_told(project, gone, remedy):
    (project / gone).unlink()
    with pytest.raises(WarplogError, match=remedy) as caught:
        ensure("cuda", project)
    assert "nvcc is on the PATH" in str(caught.value)
    assert calls(project) == []


def test_a_fetch_that_brings_nothing_is_an_error_and_the_next_job_does_not_try_again(project):
    program(project / "bin", "uv", script=f"echo call >> {project}/calls; exit 0")
    for _ in range(2):
        with pytest.raises(WarplogError, match="nvcc: still missing after uv installed it") as caught:
            ensure("cuda", project)
        assert "nvcc is on the PATH" in str(caught.value)
    assert calls(project) == ["call"]
    program(project / "bin", "nvcc", "13.0")
    ensure("cuda", project)


@pytest.fixture
def index(bare):
    """A uv that records its call and installs the wheels of nvcc 13.3 into the folder that it is given."""
    home = wheel_compiler(bare / "index")
    program(home / "bin", "nvcc", "13.3")
    script = f"""echo "$*" >> {bare}/calls; while [ "$1" != --target ]; do shift; done; /bin/cp -r {bare}/index "$2\""""
    program(bare / "bin", "uv", script=script)
    return bare


def test_a_version_that_is_not_here_is_fetched_once_and_its_parts_are_of_one_release(index, capsys):
    program(index / "usr/local/cuda-13.0/bin", "nvcc", "13.0")
    for _ in range(2):
        tool = compiler("13.3", index / "cache")
        assert (tool.path, tool.version) == (index / "cache/13.3/nvidia/cu13/bin/nvcc", "13.3.88")
    (call,) = calls(index)
    assert call.startswith(f"pip install --python {sys.executable} --target {index / 'cache'}/")
    assert call.endswith("--only-binary :all: cuda-toolkit[nvcc,cudart,crt,nvvm,cccl]==13.3.*")
    assert capsys.readouterr().err.count("installing the CUDA 13.3 compiler") == 1
    assert find("nvcc").version == "13.0.88"  # the compiler of the project stays as it is


def test_a_patch_is_pinned_and_the_libraries_that_are_linked_come_with_the_compiler(index):
    tool = compiler("13.3.88", index / "cache", ["cublasLt", "cublas", "cuda", "own"])
    assert tool.path == index / "cache/13.3.88+cublas/nvidia/cu13/bin/nvcc"
    wanted = "cuda-toolkit[nvcc,cudart,crt,nvvm,cccl,cublas]==13.3.* nvidia-cuda-nvcc==13.3.88"
    assert calls(index)[0].endswith(wanted)


def test_a_version_that_cannot_be_had_is_an_error_with_what_is_here_and_the_remedy(index):
    program(index / "bin", "nvcc", "13.0")
    remedy = "install CUDA {0} and set CUDA_HOME to its folder"
    with pytest.raises(WarplogError) as caught:
        compiler("12.4", index / "cache")
    assert "/usr/local/cuda* and the installed wheels have 13.0.88" in str(caught.value)
    assert "wheels on PyPI have nvcc from CUDA 13.0 on" in str(caught.value)
    assert str(caught.value).endswith(remedy.format("12.4"))
    assert calls(index) == []
    words = "error: No solution found\\n  cause: only cuda-toolkit<=13.5.0 is available"
    program(index / "bin", "uv", script=f"echo '{words}'; exit 1")
    with pytest.raises(WarplogError, match=r"No solution found cause: only cuda-toolkit<=13\.5\.0") as caught:
        compiler("13.9", index / "cache")
    assert str(caught.value).endswith(remedy.format("13.9"))
    program(index / "bin", "uv", script="exit 0")
    with pytest.raises(WarplogError, match="still missing after uv installed it"):
        compiler("13.9", index / "cache")
    (index / "bin" / "uv").unlink()
    with pytest.raises(WarplogError, match="uv, which would install it, was not found"):
        compiler("13.9", index / "cache")
    assert [path for path in (index / "cache").iterdir() if path.suffix != ".lock"] == []
