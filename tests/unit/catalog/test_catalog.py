"""Errors in family.yaml are reported with file, key and remedy."""

from pathlib import Path

import numpy as np
import pytest

from host_family import YAML, make_family
from warplog.catalog import contract
from warplog.catalog import family as catalog
from warplog.catalog.contract import status_words
from warplog.core.errors import WarplogError
from warplog.measure.worker.problem import Problem


def broken(folder: Path, old: str, new: str) -> str:
    make_family(folder)
    path = folder / "scale" / "family.yaml"
    assert old in YAML
    path.write_text(YAML.replace(old, new))
    with pytest.raises(WarplogError) as error:
        catalog.load([folder])
    text = str(error.value)
    assert str(path) in text
    assert "\n" not in text
    return text


def test_right_family_is_read(tmp_path: Path) -> None:
    make_family(tmp_path)
    family = catalog.load([tmp_path])["scale"]
    case = family.cases["1000"]
    assert case.values == {"N": 1000, "factor": 3.0}
    assert family.amount(family.work.bytes, case, 132) == 8000
    assert family.shape(family.arguments[0], case) == (1000,)


def test_the_work_of_every_sm_counts_but_no_array_depends_on_the_gpu(tmp_path: Path) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    path.write_text(YAML.replace("bytes: 8*N", "bytes: 8*N*sms"))
    family = catalog.load([tmp_path])["scale"]
    assert family.amount(family.work.bytes, family.cases["1000"], 132) == 8000 * 132
    assert "known names: N, factor" in broken(tmp_path / "other", "shape: [N]", "shape: [N*sms]")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title:", "tittle:", "did you mean 'title'?"),
        ("bytes: 8*N", "bytes: 8*M", "known names: N, factor"),
        ("bytes: 8*N", "bytes: __import__('os')", "cannot evaluate"),
        ("bytes: 8*N", "bytes: 9**9**9**9", "cannot evaluate"),
        ('headline_case: "64"', 'headline_case: "65"', "headline_case: unknown name '65'"),
        ("baseline: right", "baseline: rihgt", "did you mean 'right'?"),
        ("- {name: right,", "- {name: right, file: ../x.cu,", "'../x.cu'"),
        ("- {name: right,", "- {name: left, idea: y}\n  - {name: right,", "left.cu, which is missing"),
        ("dtype: float32, reduction_length", "dtype: float3, reduction_length", "tolerance.dtype"),
        ("odd: {N: 127}", "../odd: {N: 127}", "check_cases"),
        (
            "- {name: right,",
            "- {name: right, memory: {z: pinned},",
            "variant 'right': memory: unknown name 'z'",
        ),
        (
            "- {name: right,",
            "- {name: right, memory: {N: pinned},",
            "variant 'right': memory: unknown name 'N'",
        ),
        (
            "- {name: right,",
            "- {name: right, requires: {at_most: {M: 9}},",
            "variant 'right': requires: unknown name 'M'",
        ),
        (
            "- {name: right,",
            "- {name: right, requires: {multiple_of: {factr: 2}},",
            "unknown name 'factr'; did you mean 'factor'?",
        ),
        ("- {name: right,", "- {name: right, memory: {x: shared},", "'shared' is not one of"),
        ("baseline: right", "measuring: {timing: cpu}", "'cpu' is not one of"),
        ("baseline: right", "measuring: {hot_second: 2}", "did you mean 'hot_seconds'?"),
        ("baseline: right", "measuring: {hot_seconds: null}", "measuring.hot_seconds: has no value"),
        ("- {name: right,", "- {name: right, tune: null,", "variants.right.tune: has no value"),
        ("baseline: right", "measuring: {profilers: [gdb]}", "'gdb' is not one of"),
        (
            "baseline: right",
            "timeline: {rihgt: '64'}",
            "timeline: unknown name 'rihgt'; did you mean 'right'?",
        ),
        ("baseline: right", "timeline: {right: '65'}", "timeline: unknown name '65'"),
        ("family: scale", "family: scales", "must be in a folder of that name"),
        ("title: scaling", "title: [", "is not valid YAML"),
    ],
)
def test_wrong_family_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in broken(tmp_path, old, new)


LEFT = "- {name: left, file: right.cu, idea: x"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("bytes: 8*N", "bytes: 8*N^2", ("work.bytes", "8*N^2", "**")),
        ("bytes: 8*N", "bytes: 8*(N - 64)", ("work.bytes", "'64'", "gives 0")),
        ("bytes: 8*N", "bytes: 100 - N", ("work.bytes", "'1000'", "gives -900")),
        ("flops: N", "flops: 64 - N", ("work.flops", "'1000'", "gives -936")),
        ("flops: N", "flops: 1e308 * N * N", ("work.flops", "'64'", "not a finite number")),
        ("length: 1,", "length: 1 - N,", ("reduction_length", "'64'", "gives -63")),
        ("input, dtype: float32, shape: [N]", "input, dtype: float32", ("arguments.x", "'shape' is missing")),
        ("input, dtype: float32, shape: [N]", "input, dtype: float32, shape: []", ("arguments.x.shape",)),
        ("one: {N: 1}", "one: {N: -5}", ("argument 'x'", "shape", "'one'", "'N'", "-5", "at least 1")),
        ("one: {N: 1}", "one: {N: 0}", ("argument 'x'", "shape", "'one'", "gives 0", "`empty_arrays: true`")),
        ("float32, shape: [N]}\n  - {name: y", "float32, shape: [N/2]}\n  - {name: y", ("'odd'", "63.5", "//")),
        ("{name: right,", "{name: right, parent: right,", ("variant 'right'", "parent", "right -> right", "null")),
        ("{name: right,", "{name: right, parent: lefd,", ("variant 'right'", "parent", "unknown name 'lefd'")),
        ("- {name: right,", LEFT + ", parent: right}\n  - {name: right, parent: left,",
         ("variant 'right'", "parent: 'left'", "left -> right -> left", "null")),
        ("idea: as it should be", "idea: tiles, as it should be", ("variants.right", "as it should be", "comma needs")),
        ("idea: as it should be", "idea: tiles: as it should be", ("line 19", "quotes")),
        ("name: right,", "name: Right,", ("variants.Right.name", "'Right'", "small letters")),
        ("name: right,", 'name: "right\\n",', ("name", "small letters")),
        ("name: right,", "name: right, parameters: {TILE: 8.0},", ("parameters", "int")),
        ("name: right,", "name: right, parameters: {tile: 8},", ("variants.right.parameters", "'tile'", "capital")),
        ("name: right,", "name: right, requires: {arch: 90},", ("variants.right.requires.arch", "90", "text")),
        ("name: right,", "name: right, requires: {arch: '90'},", ("variants.right.requires.arch", "'90'", "sm_80")),
        ("1000}", "5000000000}", ("'1000'", "N: 5000000000 is no int32")),
        ("odd: {N: 127}", '"1024": {N: x}', ("check_cases.1024.N: expected a number, got 'x'",)),
        ("odd:", "odd size:", ("check_cases", "'odd size'", "letters, digits")),
        ("factor: 2}", "factor: 0}", ("tolerance.factor", "larger than 0", "got 0")),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place_value_and_remedy(
    tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    text = broken(tmp_path, old, new)
    assert [word for word in words if word not in text] == [], text
    assert "[a-z]" not in text
    assert "^[" not in text


def test_arrays_of_check_cases_may_be_empty_if_the_family_says_so(tmp_path: Path) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    path.write_text(YAML.replace("one: {N: 1}", "none: {N: 0}") + "empty_arrays: true\n")
    family = catalog.load_family(path)
    assert family.shape(family.arguments[0], family.case("none")) == (0,)
    path.write_text(YAML.replace('"64": {N: 64}', '"64": {N: 0}') + "empty_arrays: true\n")
    with pytest.raises(WarplogError, match=r"'64'.*gives 0"):
        catalog.load_family(path)


def test_published_figures_are_read_and_their_case_must_be_one(tmp_path: Path) -> None:
    figure = '{value: 93, unit: TFLOP/s, gpu: H100, source: someone, case: "64"}'
    entry = "idea: as it should be"
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    path.write_text(YAML.replace(entry, f"{entry}, published: [{figure}]"))
    figures = catalog.load([tmp_path])["scale"].variant("right").published
    assert figures == (contract.Published(value=93, unit="TFLOP/s", gpu="H100", source="someone", case="64"),)
    for old, new, words in (
        ('"64"', '"65"', "variant 'right': published.case: unknown name '65'"),
        ("TFLOP/s", "TFLOPS", "variants.right.published.0.unit"),
        ("value: 93, ", "", "the required key 'value' is missing"),
        ("gpu:", "card:", "unknown key 'card'"),
    ):
        path.write_text(YAML.replace(entry, f"{entry}, published: [{figure.replace(old, new)}]"))
        with pytest.raises(WarplogError) as error:
            catalog.load([tmp_path])
        assert words in str(error.value)


def test_a_family_says_how_it_is_measured_and_where_arrays_live(tmp_path: Path) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    plain = catalog.load_family(path)
    assert plain.measuring == contract.Measuring()
    assert (plain.measuring.timing, plain.measuring.hot_seconds) == ("stream", None)
    changed = YAML.replace("baseline: right", "measuring: {timing: host, hot_seconds: 2, profilers: [nsys]}")
    path.write_text(changed.replace("{name: right,", "{name: right, memory: {y: pageable},"))
    family = catalog.load_family(path)
    assert family.measuring == contract.Measuring(timing="host", hot_seconds=2, profilers=("nsys",))
    assert family.variants[0].memory == {"y": "pageable"}


def test_two_families_of_one_name_are_refused(tmp_path: Path) -> None:
    make_family(tmp_path / "a")
    make_family(tmp_path / "b")
    with pytest.raises(WarplogError, match="is also in"):
        catalog.load([tmp_path / "a", tmp_path / "b"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            None,
            "the file is missing; it must define make_inputs(xp, rng, case) and reference(xp, inputs, case)",
        ),
        ("def make_inputs(xp, rng, case): ...\n", "the function reference is missing; it must define"),
        (
            "def reference(xp, inputs, case):\n    def make_inputs(): ...\n",
            "the function make_inputs is missing",
        ),
        ("def make_inputs(xp, rng, case)\n", "cannot be read as Python: expected ':'"),
    ],
)
def test_a_reference_that_cannot_be_used_is_refused_before_anything_runs(
    tmp_path: Path, text: str | None, words: str
) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "reference.py"
    path.unlink() if text is None else path.write_text(text)
    with pytest.raises(WarplogError) as error:
        catalog.load([tmp_path])
    assert f"{path}: {words}" in str(error.value)


def test_a_reference_is_not_run_when_it_is_looked_at(tmp_path: Path) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "reference.py"
    path.write_text(
        "from elsewhere import reference\ntry:\n    1 / 0\nfinally:\n    make_inputs = lambda xp, rng, case: {}\n"
    )
    assert catalog.load([tmp_path])["scale"].name == "scale"


def test_requirements_say_why_not() -> None:
    assert contract.Requires(arch="sm_80").why_not((9, 0)) == ""
    assert "sm_80 or later" in contract.Requires(arch="sm_80").why_not((7, 5))
    assert contract.Requires(arch="sm_90a").why_not((9, 0)) == ""
    assert "needs sm_90a" in contract.Requires(arch="sm_90a").why_not((10, 0))
    aligned = contract.Requires(multiple_of={"N": 128})
    assert aligned.why_not_case(contract.Case("c", {"N": 127})) == "needs N to be a multiple of 128"
    assert aligned.why_not_case(contract.Case("c", {"N": 256})) == ""
    slow = contract.Requires(multiple_of={"N": 8}, at_most={"M": 8192})
    assert slow.why_not_case(contract.Case("c", {"M": 8192, "N": 8})) == ""
    odd = contract.Case("c", {"M": 16384, "N": 9})
    assert slow.why_not_case(odd) == "needs N to be a multiple of 8 and M to be at most 8192"
    assert slow.own_limits(odd) == {}


def test_a_case_beyond_the_limits_that_a_variant_sets_itself_is_not_run() -> None:
    slow = contract.Requires(at_most={"M": 8192, "N": 16})
    assert slow.own_limits(contract.Case("c", {"M": 16384, "N": 17})) == {"M": 8192, "N": 16}
    assert slow.own_limits(contract.Case("c", {"M": 8192, "N": 17})) == {"N": 16}
    assert slow.own_limits(contract.Case("c", {"M": 8192, "N": 16})) == {}
    assert status_words("unsupported", '{"M": 8192}') == "not run"
    assert status_words("unsupported") == "unsupported"
    assert status_words("compile_error") == "compile error"


TUNED = """  - name: right
    idea: as it should be
    parameters: {A: 2, B: 4}
    tune:
      cases: ["64"]
      values: {A: [1, 2], B: [2, 4]}
      threads: 32 * A
      where: [THREADS * B <= 256 and B % A == 0]
      first: [{B: 2}]
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('      cases: ["64"]', '      cases: ["65"]', "variant 'right': tune.cases: unknown name '65'"),
        ("{A: 2, B: 4}", "{A: 2}", "tune.values: 'B' has no default in `parameters`"),
        ("{A: 2, B: 4}", "{A: 4, B: 4}", "A4_B4 violates 'A: 4 is not one of [1, 2]'"),
        ("<= 256", "<= 128", "A2_B4 violates 'THREADS * B <= 128 and B % A == 0'"),
        ("[THREADS * B <= 256 and B % A == 0]", "[A * B]", "gives int, not true or false"),
        ("[THREADS * B <= 256 and B % A == 0]", "[C < 4]", "known names: A, B, THREADS"),
        ("[THREADS * B <= 256 and B % A == 0]", '[\'"A".upper() < "B"\']', "cannot evaluate"),
        ("threads: 32 * A", "threads: A < 1", "gives bool, not a number"),
        ("[{B: 2}]", "[{C: 2}]", "tune.first: 'C' is not a searched parameter"),
        ("[{B: 2}]", "[{B: 3}]", "A2_B3 violates 'B: 3 is not one of [2, 4]'"),
        ("[{B: 2}]", "[{B: 2}]\n      wher: []", "did you mean 'where'?"),
        ("{A: [1, 2], B: [2, 4]}", "{A: [1, 2], B: []}", "tune.values.B"),
    ],
)
def test_wrong_search_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    good = YAML.replace("  - {name: right, idea: as it should be}\n", TUNED)
    path.write_text(good)
    assert len(catalog.load([tmp_path])["scale"].variant("right").tune.settings()) == 4
    assert old in TUNED
    path.write_text(good.replace(old, new))
    with pytest.raises(WarplogError) as error:
        catalog.load([tmp_path])
    assert words in str(error.value)
    assert str(path) in str(error.value)


def test_too_many_combinations_are_refused(tmp_path: Path) -> None:
    make_family(tmp_path)
    path = tmp_path / "scale" / "family.yaml"
    many = str(list(range(64)))
    names = ("A", "B", "C")
    text = TUNED.replace("{A: 2, B: 4}", "{A: 2, B: 4, C: 1}")
    text = text.replace("{A: [1, 2], B: [2, 4]}", "{" + ", ".join(f"{n}: {many}" for n in names) + "}")
    path.write_text(YAML.replace("  - {name: right, idea: as it should be}\n", text))
    with pytest.raises(WarplogError, match="262144 combinations, the limit is 100000"):
        catalog.load([tmp_path])


BY_CASE = "{name: y, kind: output, dtype: {float32: wide == 1, bfloat16: wide == 0}, shape: [N]}"
WIDE_AND_NARROW = (
    ("{name: y, kind: output, dtype: float32, shape: [N]}", BY_CASE),
    ("defaults: {factor: 3.0}", "defaults: {factor: 3.0, wide: 1}"),
    ("odd: {N: 127}", "odd: {N: 127, wide: 0}"),
)


def by_case(folder: Path, *changes: tuple[str, str]) -> Path:
    """Writes the family `scale` with an output whose type depends on the case, and further changes to its text."""
    make_family(folder)
    text = YAML
    for old, new in (*WIDE_AND_NARROW, *changes):
        assert old in text
        text = text.replace(old, new)
    path = folder / "scale" / "family.yaml"
    path.write_text(text)
    return path


def test_the_dtype_of_an_array_may_depend_on_the_case(tmp_path: Path) -> None:
    family = catalog.load_family(by_case(tmp_path))
    x, y = family.arguments[:2]
    assert [family.dtype(x, family.case(name)) for name in ("odd", "even")] == ["float32", "float32"]
    assert [family.dtype(y, family.case(name)) for name in ("odd", "even")] == ["bfloat16", "float32"]


TOLERANCES = (
    "tolerance: {dtype: float32, reduction_length: 1, factor: 2}",
    "tolerance: [{when: wide == 1, dtype: float32, reduction_length: 1, factor: 2},"
    " {when: wide == 0, dtype: bfloat16, reduction_length: N, factor: 3}]",
)


def test_the_tolerance_may_depend_on_the_case(tmp_path: Path) -> None:
    family = catalog.load_family(by_case(tmp_path, TOLERANCES))
    even, odd = (Problem(np, family, family.case(name)).tolerance("y") for name in ("even", "odd"))
    assert (even, odd) == (2 * 2.0**-24, 3 * 2.0**-8 * 127**0.5)
    plain = catalog.load_family(by_case(tmp_path))
    assert plain.contract() != family.contract()


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (
            "wide == 1, dtype: float32, r",
            "wide == 2, dtype: float32, r",
            "(64): y has no tolerance: none of its",
        ),
        ("when: wide == 0", "when: width == 0", "known names: N, factor, wide"),
        ("when: wide == 0, dtype", "dtype", "when"),
        ("reduction_length: N, factor: 3", "reduction_length: N - 200, factor: 3", "gives -73"),
        (", {when: wide == 0, dtype: bfloat16, reduction_length: N, factor: 3}", "", "tolerance"),
    ],
)
def test_a_tolerance_that_depends_on_the_case_wrongly_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = by_case(tmp_path, TOLERANCES, (old, new))
    with pytest.raises(WarplogError) as error:
        catalog.load_family(path)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("odd: {N: 127, wide: 0}", "odd: {N: 127, wide: 2}", "(odd): y has no dtype: none of its conditions"),
        ("bfloat16: wide == 0", "bfloat16: width == 0", "known names: N, factor, wide"),
        ("bfloat16: wide == 0", "bfloat16: wide", "gives int, not true or false"),
        ("bfloat16: wide == 0", "bf16: wide == 0", "'bf16'"),
        (", bfloat16: wide == 0", "", "arguments.y.dtype"),
        (
            "kind: scalar, dtype: int32",
            "kind: scalar, dtype: {int32: wide == 1, int64: wide == 0}",
            "N: only the dtype of an array may depend on the case",
        ),
    ],
)
def test_a_dtype_that_depends_on_the_case_wrongly_is_refused(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = by_case(tmp_path, (old, new))
    with pytest.raises(WarplogError) as error:
        catalog.load_family(path)
    assert str(path) in str(error.value)
    assert words in str(error.value)
