"""Sides that name a toolkit are built by its compiler; the compilers are scripts that call that of the host."""

import ctypes
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path

import pytest

from host_family import make_family
from made_up_records import gpu
from warplog.cli.duelling import NO_VERDICT, USAGE
from warplog.cli.main import main
from warplog.core.errors import WarplogError
from warplog.duel import bout, making
from warplog.duel.making import Made, Target
from warplog.duel.match import Match, Options
from warplog.duel.sides import Corner
from warplog.duel.task import DuelTask, Failed, SideTask
from warplog.machine import device, toolchain, wheels
from warplog.measure.worker import backend

NVCC = """#!/bin/sh
test "$1" = --version && echo "Cuda compilation tools, release {version}, V{version}.88" && exit
while [ $# -gt 0 ]; do case $1 in -o) library=$2;; -MF) listing=$2;; esac; shift; done
echo call >> {calls}
echo "launcher.o: " > "$listing"
echo 'int warplog_launch(void) {{ return {code}; }}' | {cc} -shared -fPIC -x c - -o "$library"
"""
CUOBJDUMP = '#!/bin/sh\ntest "$1" = --version && echo V13.2.86 || printf \'identifier = %s\\ncode\' "$2"\n'


def script(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns the root of a machine with nvcc 13.0 on the PATH and 13.1 in its default folder."""
    monkeypatch.setattr(toolchain, "_ROOT", tmp_path)
    monkeypatch.setattr(wheels, "_entries", lambda: [])
    for name in ("CUDA_HOME", "CUDA_PATH", "UV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    made = {"cc": shutil.which("cc"), "calls": tmp_path / "calls"}
    for folder, version, code in (("bin", "13.0", 130), ("usr/local/cuda-13.1/bin", "13.1", 131)):
        script(tmp_path / folder / "nvcc", NVCC.format(version=version, code=code, **made))
    script(tmp_path / "bin" / "cuobjdump", CUOBJDUMP)
    return tmp_path


def pair(machine: Path) -> list[Made]:
    family = make_family(machine / "kernels")
    corners = [
        Corner(f"nvcc:{name}", family, family.variant("right"), toolkit=name) for name in ("13.0", "13.1")
    ]
    return [making.make(corner, Target("sm_90"), machine) for corner in corners]


def test_each_side_is_built_by_its_own_compiler_once(machine: Path) -> None:
    sides = pair(machine)
    assert [ctypes.CDLL(str(side.file)).warplog_launch() for side in sides] == [130, 131]
    assert [side.nvcc for side in pair(machine)] == ["13.0.88", "13.1.88"]
    assert (machine / "calls").read_text().split() == ["call"] * 2
    of_the_project = making.make(
        Corner("right", sides[0].corner.family, sides[0].corner.variant), Target("sm_90"), machine
    )
    assert of_the_project.file == sides[0].file


def test_the_record_says_that_the_same_code_was_compiled_by_two_compilers(machine: Path) -> None:
    sides = pair(machine)
    match = Match(machine, Options("64", 9.0, 0.005), gpu(), sides)
    duel = match.record([Failed(status="crashed", reason="no GPU here")], 0.0)
    assert (duel.a.nvcc, duel.b.nvcc, duel.differs) == ("13.0.88", "13.1.88", ("compiler",))
    assert duel.a.source_sha256 == duel.b.source_sha256
    assert duel.a.library_sha256 != duel.b.library_sha256
    assert making.differences(sides[0], sides[0]) == ()


def test_a_toolkit_that_is_nowhere_is_an_error(machine: Path) -> None:
    family = make_family(machine / "kernels")
    corner = Corner("nvcc:12.9", family, family.variant("right"), toolkit="12.9")
    with pytest.raises(
        WarplogError, match=r"no nvcc 12\.9: .* have 13\.0\.88, 13\.1\.88, and .*; install CUDA 12\.9"
    ):
        making.make(corner, Target("sm_90"), machine)


def test_the_command_takes_two_compilers_and_the_variant_that_they_compile(
    machine: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make_family(machine / "kernels")
    monkeypatch.chdir(machine)
    monkeypatch.setattr(device, "boards", list)
    for words, status, why in (
        (("ab", "nvcc:13.0", "nvcc:13.1", "--variant", "scale/right"), NO_VERDICT, "no GPU"),
        (("ab", "nvcc:13.0", "nvcc:13.1"), USAGE, "must name a variant or the file of one, or --variant"),
        (("watch", "nvcc:13.1:scale/right"), USAGE, "no commit, compiler or Python variant can be watched"),
    ):
        assert main(words) == status
        assert why in capsys.readouterr().err


def test_a_sides_own_copy_of_cublas_serves_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the one of the environment would, which is loaded for everybody."""
    files = [tmp_path / place / "libstandin.so.13" for place in ("own", "environment")]
    for value, file in enumerate(files, 1):
        file.parent.mkdir()
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-", f"-Wl,-soname,{file.name}", "-o", file]
        subprocess.run(command, input=f"int stand_in(void) {{ return {value}; }}", text=True, check=True)
    monkeypatch.setattr(toolchain, "library", lambda _: files[1])
    numpy = backend.NumpyBackend()
    monkeypatch.setattr(bout, "make_backend", lambda _: backend._preload_cublas() or numpy)
    family = make_family(tmp_path)
    side = SideTask(
        family_file=str(family.file), variant="right", file="", libraries=(str(files[0]),), memory={}
    )
    task = DuelTask(
        backend="numpy",
        sides=(side, side),
        apart=True,
        case="64",
        timer="",
        default_mhz=0.0,
        gpu_lock="",
        seed=1,
        window_s=0.1,
        margin=0.005,
        looks=1,
        sustained=False,
        journal=str(tmp_path / "journal"),
    )
    with ExitStack() as open_:
        bout.Bout(task, 1, (0, 0), open_)
    assert ctypes.CDLL(None).stand_in() == 1
    assert str(files[1]) not in Path("/proc/self/maps").read_text()
