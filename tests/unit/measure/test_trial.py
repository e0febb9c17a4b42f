"""make_inputs and reference are tried with NumPy; a mistake is named with file, function, case, array and remedy."""

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from host_family import REFERENCE, YAML, make_family
from shipped_families import FAMILIES
from warplog.catalog.family import Family, load_family
from warplog.core.errors import WarplogError
from warplog.measure import trial
from warplog.measure.stages import check
from warplog.measure.trial import try_reference
from warplog.reference import round_to_bfloat16

INPUTS = 'return {"x": rng.random(int(case["N"])).astype(xp.float32)}'
ANSWER = 'return {"y": (expected, xp.abs(expected))}'


def family_with(folder: Path, *changes: tuple[str, str], yaml: tuple[str, str] = ("", "")) -> Family:
    """Returns the family with changes of its reference.py and family.yaml."""
    make_family(folder)
    text = REFERENCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (folder / "scale" / "reference.py").write_text(text)
    (folder / "scale" / "family.yaml").write_text(YAML.replace(*yaml))
    return load_family(folder / "scale" / "family.yaml")


def test_the_references_of_all_shipped_families_are_right() -> None:
    assert {name: why for name, family in FAMILIES.items() if (why := try_reference(family))} == {}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (INPUTS, "return rng.random(3)", ("make_inputs", "expected a dict", "got an array")),
        (INPUTS, INPUTS.replace('"x"', '"z"'), ("make_inputs", "'x' of the input", "got 'z'")),
        (INPUTS, INPUTS.replace('["N"])', '["N"] + 1)'), ("make_inputs", "x", "[127]", "[128]")),
        (INPUTS, INPUTS.replace('["N"]', '["n"]'), ("make_inputs", "line 3", "KeyError: 'n'", "known: N, factor")),
        (INPUTS, INPUTS.replace(".astype(xp.float32)", ""),
         ("make_inputs", "x[0]", "float32", "float64", "return x.astype('float32')")),
        (INPUTS, INPUTS.replace(".astype(xp.float32)", ".tolist()"), ("make_inputs", "x", "got a list of 127")),
        (ANSWER, 'return {"out": (expected, abs(expected))}', ("reference", "'y' of the output", "got 'out'")),
        (ANSWER, 'return {"y": expected}', ("reference", "y", "a pair (values, scale)")),
        (ANSWER, "return None", ("reference", "expected a dict", "got None")),
        (ANSWER, 'return {"y": (expected[:-1], expected)}', ("reference", "y", "[127]", "[126]")),
        (ANSWER, 'return {"y": (expected, expected[:, None])}', ("y: the scale", "[127]", "[127, 1]")),
        (ANSWER, 'return {"y": (expected, expected[:5])}', ("y: the scale", "[127]", "[5]")),
        (ANSWER, 'return {"y": (expected.astype(xp.float32), expected)}', ("y", "float64", "got float32")),
        (ANSWER, 'return {"y": (expected / 0, 1.0)}', ("y", "finite", "127 of 127", "inf")),
        (ANSWER, 'return {"y": (expected, -expected)}', ("y: the scale", "at least 0", "-")),
        (ANSWER, 'return {"y": (expected, xp.inf)}', ("y: the scale", "finite", "inf")),
        (ANSWER, 'raise ValueError("no\\nidea")', ("reference", "line 7", "ValueError: no idea")),
        (ANSWER, "raise SystemExit(3)", ("reference", "line 7", "SystemExit: 3")),
        (ANSWER, f'inputs["x"] += 1\n    {ANSWER}', ("reference", "changes its input 'x'", "copy")),
        (ANSWER, f'inputs.pop("x")[0] = 9\n    {ANSWER}', ("reference", "changes its input 'x'", "copy")),
        (ANSWER, "raise KeyError", ("reference", "line 7", "KeyError")),
        ("def make_inputs", "1 / 0\ndef make_inputs", ("imported", "line 2", "ZeroDivisionError")),
    ],
)  # fmt: skip
def test_a_mistake_is_named(tmp_path: Path, old: str, new: str, words: tuple[str, ...]) -> None:
    family = family_with(tmp_path, (old, new))
    with pytest.raises(WarplogError) as error:
        try_reference(family)
    text = str(error.value)
    assert text.startswith(str(tmp_path / "scale" / "reference.py"))
    assert "\n" not in text
    assert [word for word in words if word not in text] == [], text


@pytest.mark.parametrize(
    ("dtype", "values", "words"),
    [
        ("bfloat16", "xp.full(int(case['N']), 0.1)", "warplog.reference.round_to_bfloat16(xp, values)"),
        ("int32", "xp.full(int(case['N']), 0.5)", "becomes 0.0"),
        ("uint8", "xp.full(int(case['N']), 300)", "becomes 44.0"),
        ("bool", "xp.full(int(case['N']), 2)", "becomes 1.0"),
        ("float16", "xp.full(int(case['N']), 1e6)", "becomes inf"),
    ],
)
def test_inputs_that_their_type_does_not_hold_are_refused(
    tmp_path: Path, dtype: str, values: str, words: str
) -> None:
    """Else the kernels would get other numbers than the reference."""
    yaml = ("x, kind: input, dtype: float32", f"x, kind: input, dtype: {dtype}")
    family = family_with(tmp_path, (INPUTS, f'return {{"x": {values}}}'), yaml=yaml)
    with pytest.raises(WarplogError) as error:
        try_reference(family)
    assert words in str(error.value)


def test_inputs_may_be_nan_or_infinite_and_a_scale_one_number(tmp_path: Path) -> None:
    inputs = INPUTS.replace("return ", "x = ").replace('{"x": ', "").replace(")}", ")")
    inputs += '\n    x[0], x[-1] = xp.nan, xp.inf\n    return {"x": x}'
    answer = 'return {"y": (xp.nan_to_num(expected, posinf=0), 1)}'
    assert try_reference(family_with(tmp_path, (INPUTS, inputs), (ANSWER, answer))) == ""


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("import cupy_of_tomorrow", "No module named 'cupy_of_tomorrow'"),
        ("xp.asnumpy(expected)", "has no attribute 'asnumpy'"),
        ("expected.get()", "has no attribute 'get'"),
        ("xp.rsqrt(expected)", "has no attribute 'rsqrt'"),
    ],
)
def test_a_reference_that_needs_cupy_is_not_tried(tmp_path: Path, line: str, why: str) -> None:
    assert why in try_reference(family_with(tmp_path, (ANSWER, f"{line}\n    {ANSWER}")))


def test_an_error_inside_of_cupy_or_one_of_its_arrays_is_no_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cupy = types.ModuleType("cupy")
    exec("def exp(x): raise TypeError('Unsupported type')\nclass ndarray: ...", cupy.__dict__)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    for line in ("cupy.exp(expected)", "expected = cupy.ndarray()"):
        family = family_with(
            tmp_path, (ANSWER, f"import cupy\n    {line}\n    return {{'y': (expected, 1)}}")
        )
        assert try_reference(family) != ""


def test_a_slow_reference_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "_MOST_S", 0.1)
    endless = "try:\n        while True: pass\n    except Exception: pass"
    assert "longer than 0.1 s" in try_reference(family_with(tmp_path, (ANSWER, endless)))


def test_large_cases_are_not_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "MOST_ELEMENTS", 2)
    right_for_one = ANSWER.replace("expected,", "expected[:1],")
    assert try_reference(family_with(tmp_path, (ANSWER, right_for_one))) == "", (
        "the case `one` has two elements"
    )
    monkeypatch.setattr(trial, "MOST_ELEMENTS", 1)
    assert "at most 1 elements" in try_reference(family_with(tmp_path, (ANSWER, "raise ValueError")))


def test_values_are_rounded_to_bfloat16() -> None:
    one, step = np.float32(1), np.float32(2.0**-7)
    values = np.array([1, 1 + step / 4, 1 + step / 2, 1 + 3 * step / 2, -3.1415927, 0], dtype=np.float32)
    rounded = round_to_bfloat16(np, values)
    assert rounded.dtype == np.float32
    assert rounded.tolist() == [one, one, one, one + 2 * step, -3.140625, 0], "ties go to the even one"


def test_no_gpu_is_used_for_a_family_whose_reference_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    family = family_with(tmp_path, (ANSWER, "return {}"))
    monkeypatch.setattr(check, "run_cases", lambda *_: pytest.fail("the GPU is used"))
    with pytest.raises(WarplogError, match="expected the key 'y'"):
        check.check_family([types.SimpleNamespace(family=family)])
