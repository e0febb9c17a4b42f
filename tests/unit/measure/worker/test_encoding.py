"""Narrow types: float8 as ml_dtypes rounds it; integers, bool and complex numbers; workspaces; bounds by output."""

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from msgspec import structs

from host_family import make_family
from sass_builds import built
from warplog.catalog.contract import Argument, Tolerance
from warplog.catalog.family import SCALARS, load_family
from warplog.measure.building.launcher import launcher_source
from warplog.measure.worker import problem
from warplog.measure.worker.case_data import CaseData
from warplog.measure.worker.encoding import decoded, encoded, rounded
from warplog.measure.worker.problem import GuardedArray, Problem

FLOAT8 = {"float8_e4m3": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}


@pytest.mark.parametrize("dtype", FLOAT8)
def test_every_code_of_float8_has_the_value_that_ml_dtypes_gives_it(dtype: str) -> None:
    codes = np.arange(256, dtype=np.uint8)
    expected = codes.view(FLOAT8[dtype]).astype(np.float64)
    np.testing.assert_array_equal(decoded(np, codes, dtype), expected)
    numbers = codes[~np.isnan(expected)]
    np.testing.assert_array_equal(encoded(np, decoded(np, numbers, dtype), dtype), numbers)


@pytest.mark.parametrize("dtype", FLOAT8)
def test_values_are_rounded_to_float8_as_by_ml_dtypes(dtype: str) -> None:
    """Every bfloat16 and every float16, among them all ties, and the float32 on both sides of each."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    exact = np.concatenate(
        [(bits.astype(np.uint32) << 16).view(np.float32), bits.view(np.float16).astype(np.float32)]
    )
    exact = exact[~np.isnan(exact)]
    around = [np.nextafter(exact, np.float32(end)) for end in (-np.inf, np.inf)]
    values = np.concatenate([exact, *around])
    expected = values.astype(FLOAT8[dtype]).astype(np.float64)
    np.testing.assert_array_equal(decoded(np, encoded(np, values, dtype), dtype), expected)
    assert np.isnan(decoded(np, encoded(np, np.float32("nan"), dtype), dtype))


@pytest.mark.parametrize(
    ("dtype", "values"),
    [
        ("int8", [-128, -1, 0, 127]),
        ("uint8", [0, 1, 254, 255]),
        ("int16", [-32768, -1, 0, 32767]),
        ("bool", [True, False, True, True]),
        ("complex64", [1 + 2j, -3.5j, 0, 4]),
        ("float8_e4m3", [448, -0.001953125, 1.125, 0]),
        ("float8_e5m2", [57344, -(2.0**-16), 1.25, 0]),
    ],
)
def test_an_array_contains_exactly_what_was_stored(dtype: str, values: list) -> None:
    array = GuardedArray(np, (2, 2), dtype)
    array.store(np.array(values).reshape(2, 2))
    assert array.load().reshape(-1).tolist() == values
    assert array.holds(np.array(values).reshape(2, 2))
    assert not array.holds(np.array(values[::-1]).reshape(2, 2))
    assert array.damage() == ""
    array.poison()
    assert array.never_written() == 4


def test_a_byte_that_is_neither_true_nor_false_is_not_true() -> None:
    array = GuardedArray(np, (2,), "bool")
    array.store(np.array([True, True]))
    array._body[0] = 2
    assert array.load().tolist() == [2, 1]


def problem_of(tmp_path: Path, *arguments: Argument, **changes) -> Problem:
    family = make_family(tmp_path)
    family = structs.replace(family, arguments=(*family.arguments, *arguments), **changes)
    return Problem(np, family, family.case("64"))


def judged(
    problem: Problem, monkeypatch: pytest.MonkeyPatch, right: dict[str, np.ndarray]
) -> problem.Verdict:
    """Fills the outputs with the right answers except those already stored; returns the verdict."""
    answers = {name: (values, np.abs(values)) for name, values in right.items()}
    monkeypatch.setattr(CaseData, "answers", lambda *_: answers)
    return problem.verdict()


def test_a_wrong_complex_number_is_shown_with_both_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    z = Argument(name="z", kind="output", element="complex64", dimensions=("N",))
    made = problem_of(tmp_path, z)
    right = {"y": np.ones(64), "z": np.full(64, 1 + 2j)}
    made.fill(1)
    made.arrays["y"].store(right["y"])
    made.arrays["z"].store(right["z"])
    assert judged(made, monkeypatch, right).reason == ""
    wrong = right["z"].copy()
    wrong[5] = 1 - 2j
    made.arrays["z"].store(wrong)
    assert judged(made, monkeypatch, right).reason == (
        "z: 1 of 64 elements are outside the tolerance; worst at [5]: 1-2i instead of 1+2i"
    )


def test_an_output_may_have_a_tolerance_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    z = Argument(name="z", kind="output", element="float32", dimensions=("N",))
    rough = Tolerance(dtype="float8_e4m3", reduction_length=1, factor=1)
    right = {"y": np.ones(64), "z": np.ones(64)}
    for tolerance, reason in ((rough, ""), (None, "z: 64 of 64 elements are outside the tolerance")):
        made = problem_of(tmp_path, structs.replace(z, tolerance=tolerance))
        made.fill(1)
        made.arrays["y"].store(np.ones(64))
        made.arrays["z"].store(np.full(64, 1 + 1 / 16))
        assert judged(made, monkeypatch, right).reason.partition(";")[0] == reason


def test_a_workspace_has_undefined_contents_in_every_round_and_is_guarded(tmp_path: Path) -> None:
    scratch = Argument(name="scratch", kind="workspace", bytes="4*ceil(N/3)")
    made = problem_of(tmp_path, scratch)
    array = made.arrays["scratch"]
    assert array.nbytes == 4 * 22
    assert made.arguments.scratch == array.pointer()
    assert made.family.shapes(made.case) == [(64,), (64,)], "it is no data of the problem"
    for seed in (1, 2):
        made.fill(seed)
        assert array.never_written() == array.nbytes
        array.store(np.zeros(array.nbytes))
    array._raw[problem.GUARD_BYTES + array.nbytes] = 0
    assert made.verdict().reason == "wrote outside scratch: 1 bytes after its end"


def test_inputs_in_float8_are_what_the_kernel_sees(tmp_path: Path) -> None:
    family = make_family(tmp_path)
    x, *others = family.arguments
    data = CaseData(
        np, structs.replace(family, arguments=(structs.replace(x, element="float8_e4m3"), *others))
    )
    inputs = data.inputs(family.case("1000"), 1)["x"]
    assert len(np.unique(inputs)) < 128
    np.testing.assert_array_equal(rounded(np, inputs, "float8_e4m3"), inputs)
    expected, _ = data.answers(family.case("1000"), 1)["y"]
    np.testing.assert_array_equal(expected, inputs.astype(np.float64) * 3.0)


def test_the_launcher_takes_each_type_as_cuda_names_it(tmp_path: Path) -> None:
    family = make_family(tmp_path)
    types = ("float8_e4m3", "float8_e5m2", "int8", "uint8", "int16", "bool", "complex64")
    arguments = [
        Argument(name=f"a{n}", kind="input", element=dtype, dimensions=("N",))
        for n, dtype in enumerate(types)
    ]
    workspace = Argument(name="scratch", kind="workspace", bytes=16)
    changed = structs.replace(family, arguments=(*arguments, workspace, *family.arguments))
    text = launcher_source(changed, family.variants[0])
    named = (
        *(
            "const __nv_fp8_e4m3* a0",
            "const __nv_fp8_e5m2* a1",
            "const signed char* a2",
            "const unsigned char* a3",
        ),
        *("const short* a4", "const bool* a5", "const cuFloatComplex* a6", "void* scratch"),
    )
    assert all(f"    {argument};" in text for argument in named)
    assert {"#include <cuda_fp8.h>", "#include <cuComplex.h>"} <= set(text.splitlines())
    assert set(SCALARS) == set(problem.SCALARS)


OWN = Path(__file__).parents[3] / "data" / "own_kernels" / "every_type" / "family.yaml"


def test_the_reference_of_every_type_accepts_its_own_answer() -> None:
    family = load_family(OWN)
    data = CaseData(np, family)
    made = Problem(np, family, family.case("1027"), data=data)
    made.fill(1)
    for name, (values, _) in data.answers(made.case, 1).items():
        made.arrays[name].store(values)
    assert made.verdict().reason == ""
    made.arrays["positive"]._body[3] = 2
    assert (
        "positive: 1 of 1027 elements are outside the tolerance; worst at [3]: 2 instead of"
        in made.verdict().reason
    )


@pytest.mark.nvcc
def test_kernels_of_every_type_are_compiled(kept_builds: Path) -> None:
    family = load_family(OWN)
    for variant in family.variants:
        _, record = built(family, variant, "sm_90", kept_builds)
        assert record.status == "ok", record.reason
        names = {kernel.kernel.split("(")[0] for kernel in record.kernels}
        assert names == ({"add", "convert"} if variant.name == "right" else {"convert"})
