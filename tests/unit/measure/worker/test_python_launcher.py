"""Launchers that are Python modules: checked and timed like compiled ones, and their failures have a reason."""

import ctypes
from dataclasses import replace
from pathlib import Path

import pytest

from host_family import PYTHON_RIGHT, make_job, make_python_family, make_python_job, make_timer
from one_variant import check_variant, time_variant, write_record
from warplog.core.errors import WarplogError
from warplog.measure.results import LaunchFailed
from warplog.measure.worker.backend import NumpyBackend
from warplog.measure.worker.problem import Problem
from warplog.measure.worker.python.launcher import PythonLauncher, failure_of, first_message
from warplog.records.config import TimeSettings

TIMING = TimeSettings(processes=1, most_processes=1, max_seconds=0.2, timeout_s=20.0)
TRITON_MESSAGE = (
    "at 3:49:\ndef bad(x, y, n, BLOCK: tl.constexpr):\n    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n"
    "    tl.store(y + i, tl.load(x + i, mask=i < n) * factr, mask=i < n)\n"
    "                                                 ^\nNameError('factr is not defined')"
)
NVRTC_MESSAGE = (
    '/tmp/x/cuda.cu(3): warning #177-D: variable "a" was declared\n\n'
    '/tmp/x/cuda.cu(5): error: identifier "blockId" is undefined\n\n1 error detected in the compilation\n'
)


class CompilationError(Exception):
    """Named like Triton's."""


class CompileException(Exception):
    """Named like CuPy's."""


def launcher_of(folder: Path, module: str, options: str = "") -> tuple[PythonLauncher, Problem]:
    family, backend = make_python_family(folder, {"right": module}, options), NumpyBackend()
    problem = Problem(backend.xp, family, family.case("odd"))
    return PythonLauncher(family.variants[0], backend), problem


def test_a_right_module_passes_all_cases(tmp_path: Path) -> None:
    record = check_variant(make_python_job(tmp_path, PYTHON_RIGHT))
    assert (record.status, record.reason) == ("ok", "")
    assert [c.case for c in record.cases] == ["odd", "one", "even"]
    assert record.library_sha256 == "a" * 64


@pytest.mark.parametrize(
    ("statement", "status", "words"),
    [
        ("y[:-1] = (x * factor)[:-1]", "wrong", "1 of 127 elements were never written"),
        ("y[:] = x * factor * 1.0001", "wrong", "outside the tolerance"),
        ("y[:] = x * factor; x[0] = 7", "wrong", "changed its input x"),
        ("y[:] = x * factr", "crashed", "NameError: name 'factr' is not defined (right.py:4)"),
        ("import os; os.abort()", "crashed", "SIGABRT"),
        ('raise MemoryError("no room")', "out_of_memory", "no room"),
    ],
)
def test_a_wrong_module_is_refused_with_the_reason(
    tmp_path: Path, statement: str, status: str, words: str
) -> None:
    module = f"""
def launch(arrays, scalars, stream):
    x, y, factor = arrays["x"], arrays["y"], scalars["factor"]
    {statement}
"""
    record = check_variant(make_python_job(tmp_path, module))
    assert record.status == status
    assert words in record.reason


def test_the_module_gets_arrays_scalars_and_the_stream(tmp_path: Path) -> None:
    launcher, problem = launcher_of(
        tmp_path, "def launch(*arguments):\n    seen.append(arguments)\nseen = []\n"
    )
    launcher.prepare(problem, 1)
    launcher.function(None, 77)
    (_, _, first), (arrays, scalars, stream) = launcher._module.seen
    assert (first, stream) == (0, 77)
    assert {name: (a.shape, str(a.dtype)) for name, a in arrays.items()} == {
        "x": ((127,), "float32"),
        "y": ((127,), "float32"),
    }
    assert scalars == {"N": 127, "factor": 3.0}
    assert (type(scalars["N"]), type(scalars["factor"])) == (int, float)


def test_modules_beside_it_and_in_the_include_folder_can_be_imported(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "warplog_test_shared.py").write_text("def times(x, by):\n    return x * by\n")
    (tmp_path / "scale").mkdir()
    (tmp_path / "scale" / "beside.py").write_text(
        "import warplog_test_shared\n\ntimes = warplog_test_shared.times\n"
    )
    module = "from .beside import times\n" + PYTHON_RIGHT.replace(
        'arrays["x"] * scalars["factor"]', 'times(arrays["x"], scalars["factor"])'
    )
    launcher, problem = launcher_of(tmp_path, module)
    launcher.prepare(problem, 1)
    problem.fill(1)
    launcher(problem.arguments)
    assert problem.verdict().reason == ""


def test_parameters_set_constants_of_the_module(tmp_path: Path) -> None:
    module = "BLOCK = 1\n" + PYTHON_RIGHT
    launcher, _ = launcher_of(tmp_path, module, ", parameters: {BLOCK: 256}")
    assert launcher._module.BLOCK == 256
    with pytest.raises(LaunchFailed, match="has no constant BLOK"):
        launcher_of(tmp_path, module, ", parameters: {BLOK: 256}")


def test_the_first_launch_tunes_and_its_results_do_not_count(tmp_path: Path) -> None:
    """A tuned kernel runs several times at first, so that the arrays hold anything."""
    tuning = PYTHON_RIGHT.replace("    arrays", "    calls.append(1)\n    arrays") + (
        '    arrays["y"] += len(calls) == 1\n\n\ncalls = []\n'
    )
    assert check_variant(make_python_job(tmp_path / "first", tuning)).status == "ok"
    prepared = (
        "def warm_up(arrays, scalars, stream):\n"
        '    arrays["y"][:] = arrays["x"] * scalars["factor"]\n\n\ndef launch(arrays, scalars, stream):\n    pass\n'
    )
    record = check_variant(make_python_job(tmp_path / "second", prepared))
    assert (record.status, record.reason) == (
        "wrong",
        "case odd: y: 127 of 127 elements were never written or come from reads outside an input",
    )


def test_a_module_is_timed_through_the_timing_core_with_the_host_part_apart(tmp_path: Path) -> None:
    job = make_python_job(tmp_path, PYTHON_RIGHT)
    check = write_record(tmp_path / "check.json", check_variant(job))
    record = time_variant(replace(job, settings=TIMING), check, make_timer(tmp_path), ["64", "1000"])
    assert (record.status, record.reason) == ("ok", "")
    for case in record.cases:
        assert 0 < case.launch_host_us < case.cold.median_us, "without the way from C to Python"
        assert case.first_launch_us > 0
    assert record.cases[0].hot is not None


def test_compiled_launchers_have_a_host_time_too(tmp_path: Path) -> None:
    job = make_job(tmp_path, "for (int i = 0; i < a->N; ++i) a->y[i] = a->factor * a->x[i];")
    check = write_record(tmp_path / "check.json", check_variant(job))
    (case,) = time_variant(replace(job, settings=TIMING), check, make_timer(tmp_path), ["64"]).cases
    assert case.launch_host_us == pytest.approx(case.cold.median_us, rel=0.5, abs=1)


def test_an_exception_ends_in_the_c_function_with_an_error(tmp_path: Path) -> None:
    launcher, problem = launcher_of(tmp_path, "def launch(*_):\n    raise ValueError('no')\n")
    with pytest.raises(LaunchFailed, match=r"ValueError: no \(right.py:2\)"):
        launcher.prepare(problem, 1)
    assert launcher.function(ctypes.addressof(problem.arguments), 0) != 0
    failed = launcher.failure()
    assert failed is not None
    assert (failed.status, failed.reason) == ("crashed", "ValueError: no (right.py:2)")


def test_a_module_that_changed_after_its_build_is_not_measured(tmp_path: Path) -> None:
    job = make_python_job(tmp_path, PYTHON_RIGHT)
    job.variant.file.write_text(PYTHON_RIGHT + "\n# another comment\n")
    with pytest.raises(WarplogError, match=r"right\.py: it or a module that it imports changed; run again"):
        check_variant(job)


def test_the_compilers_first_message_is_the_reason(tmp_path: Path) -> None:
    try:
        try:
            raise NameError("factr")
        except NameError as cause:
            raise CompilationError(TRITON_MESSAGE) from cause
    except CompilationError as error:
        failed = failure_of(error, tmp_path / "x.py")
    assert failed.status == "compile_error"
    assert failed.reason == (
        "NameError('factr is not defined'), in line 3 of the function:"
        " tl.store(y + i, tl.load(x + i, mask=i < n) * factr, mask=i < n)"
    )
    failed = failure_of(CompileException(NVRTC_MESSAGE), tmp_path / "x.py")
    assert failed.reason == '/tmp/x/cuda.cu(5): error: identifier "blockId" is undefined'
    assert first_message("") == ""


def test_the_reason_is_not_the_code_that_nvrtc_fails_with(tmp_path: Path) -> None:
    class NVRTCError(Exception):
        pass

    code = NVRTCError("NVRTC_ERROR_COMPILATION (6)")
    message = CompileException(NVRTC_MESSAGE)
    message.__context__ = code
    assert (
        failure_of(message, tmp_path / "x.py").reason
        == failure_of(CompileException(NVRTC_MESSAGE), tmp_path).reason
    )
    assert failure_of(code, tmp_path / "x.py").reason == "NVRTC_ERROR_COMPILATION (6)"


def test_a_module_that_cannot_be_imported_says_why(tmp_path: Path) -> None:
    with pytest.raises(LaunchFailed) as caught:
        launcher_of(tmp_path, "import warplog_no_such_module\n" + PYTHON_RIGHT)
    assert caught.value.status == "compile_error"
    assert "cannot be imported: ModuleNotFoundError: No module named" in caught.value.reason
    assert "(right.py:1)" in caught.value.reason
