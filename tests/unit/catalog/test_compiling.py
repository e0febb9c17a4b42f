"""`compile`, `requires.where`, tolerances by output and borrowed baselines in family.yaml: what is read and refused."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from host_family import YAML, make_family
from warplog.catalog.compiling import root_of
from warplog.catalog.family import Family, load_family
from warplog.core.errors import WarplogError

RIGHT = "{name: right,"


def loaded(root: Path, *changes: tuple[str, str], name: str = "scale") -> Family:
    """Writes root/kernels/<name>, whose family.yaml has these changes, and loads it."""
    text = YAML.replace("family: scale", f"family: {name}")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    make_family(root / "kernels" / "made")
    folder = root / "kernels" / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    (root / "kernels" / "made" / "scale").rename(folder)
    (folder / "family.yaml").write_text(text)
    return load_family(folder / "family.yaml")


def refused(root: Path, *changes: tuple[str, str]) -> str:
    with pytest.raises(WarplogError) as error:
        loaded(root, *changes)
    text = str(error.value)
    assert text.startswith(f"{root}/kernels/scale/family.yaml: ")
    assert "\n" not in text
    return text


def test_a_variant_extends_what_its_family_says(tmp_path: Path) -> None:
    for name in ("inc", "more"):
        (tmp_path / name).mkdir()
    own = (
        "compile: {include: [../../more], flags: [-b -d], defines: {A: 2}, link: [curand], fast_math: true},"
    )
    family = "compile: {include: [../../inc], flags: [-a], defines: {A: 1, B: x}, std: 20, link: [cuda]}"
    variant = loaded(
        tmp_path, (RIGHT, f"{RIGHT} {own}"), ("baseline: right", f"baseline: right\n{family}")
    ).variants[0]
    merged = variant.compile
    assert merged.include == ("../../more", "../../inc"), "the variant's folders are searched first"
    assert merged.flags == ("-a", "-b", "-d")
    assert merged.defines == {"A": 2, "B": "x"}
    assert (merged.std, merged.link, merged.fast_math) == (20, ("cuda", "curand"), True)
    places = [folder.relative_to(tmp_path) for folder in variant.include_folders()[:-1]]
    assert places == [Path(name) for name in ("kernels/scale", "more", "inc", "kernels/include")]


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("-o x.so", "'-o' cannot be used: warplog names the output"),
        ("--output-file=x", "'--output-file=x' cannot be used: warplog names the output"),
        ("-ptx", "'-ptx' cannot be used: warplog names the output"),
        ("-arch=sm_80", "write `requires: {arch: sm_80}`"),
        ("-gencode arch=compute_80,code=sm_80", "write `requires: {arch: sm_80}`"),
        ("-x cu", "the language is that of the file's name"),
        ("-std=c++20", "use the key `std`"),
        ("-I/usr/include", "use the key `include`"),
        ("-isystem /usr", "use the key `include`"),
        ("-lcublas", "use the key `link`"),
        ("-include a.h", "write #include in the source"),
        ("-lineinfo a.cu", "'a.cu' cannot be used: use the key `sources`"),
        ("-Xcompiler '-O2", "no closing quotation"),
        ("lineinfo", "flags.0: 'lineinfo': expected one line that begins with -"),
    ],
)
def test_a_flag_that_would_break_the_build_is_refused_with_its_remedy(
    tmp_path: Path, flag: str, words: str
) -> None:
    text = refused(tmp_path, (RIGHT, f'{RIGHT} compile: {{flags: ["{flag}"]}},'))
    assert words in text


@pytest.mark.parametrize(
    "flag",
    [
        "-lineinfo",
        "-Xcompiler -O2",
        "-Xptxas -o3",
        "--maxrregcount 64",
        "-DX=1",
        "-rdc=true",
        "-L/opt/lib",
        "-G",
    ],
)
def test_other_flags_are_passed_on(tmp_path: Path, flag: str) -> None:
    family = loaded(tmp_path, (RIGHT, f"{RIGHT} compile: {{flags: [{flag}]}},"))
    assert " ".join(family.variants[0].compile.options()) == flag


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("compile: {inclde: [x]},", "did you mean 'include'?"),
        ("compile: {std: 14},", "variants.right.compile.std: 14 is not one of 17, 20"),
        ("compile: {defines: {A: true}},", "variants.right.compile.defines.A: expected"),
        ("compile: {defines: {TILE: 1}}, parameters: {TILE: 2},", "'TILE' is in `parameters` and in `compile.defines`"),
        ("compile: {sources: [../a.cu]},", "compile.sources '../a.cu': requires"),
        ("compile: {include: [../inc]},", "compile.include '../inc': requires"),
        ("compile: {include: [../../..]},", "compile.include '../../..': is outside of"),
        ("compile: {include: [/usr/include]},", "'/usr/include': expected a path relative to family.yaml"),
        ("file: ../../../x.cu,", "file '../../../x.cu': is outside of"),
        ("library: ../a.so,", "library '../a.so': requires"),
        ("library: ../a.so, parameters: {A: 1},", "library '../a.so' is compiled already; remove 'parameters'"),
        ("requires: {where: [M > 3]},", "requires.where (64): cannot evaluate 'M > 3'"),
        ("requires: {where: [N % 2]},", "'N % 2' gives int, not true or false; write a comparison"),
    ],
)  # fmt: skip
def test_a_wrong_key_of_a_variant_is_refused_by_name(tmp_path: Path, entry: str, words: str) -> None:
    assert words in refused(tmp_path, (RIGHT, f"{RIGHT} {entry}"))


def test_a_requirement_may_be_a_formula(tmp_path: Path) -> None:
    entry = "requires: {arch: sm_80, at_most: {N: 900}, where: ['N*factor % 128 == 0', 'N >= 128']},"
    family = loaded(tmp_path, (RIGHT, f"{RIGHT} {entry}"))
    why = {
        name: family.variants[0].requires.why_not_case(family.case(name)) for name in ("even", "64", "1000")
    }
    assert why == {
        "even": "",
        "64": "needs N*factor % 128 == 0 and N >= 128",
        "1000": "needs N to be at most 900 and N*factor % 128 == 0",
    }


def test_sources_may_lie_anywhere_in_the_repository_else_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "deep" / "project" / "kernels" / "scale"
    folder.mkdir(parents=True)
    assert root_of(folder) == tmp_path / "deep" / "project", "the folder above that of the families"
    (folder.parent / "kernels").mkdir()
    monkeypatch.chdir(folder.parent)
    assert root_of(folder) == folder.parent, "the project that is run"
    (tmp_path / "deep" / ".git").touch()  # a file in worktrees and submodules
    assert root_of(folder) == tmp_path / "deep"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kind: output, dtype: float32,", "kind: output,", "arguments.y: the required key 'dtype' is missing"),
        ("kind: output, dtype: float32,", "kind: workspace,", "arguments.y: the required key 'bytes' is missing"),
        ("kind: input, dtype: float32,", "kind: input, dtype: float32, tolerance: {dtype: float16,"
         " reduction_length: 1, factor: 1},", "arguments.tolerance: unknown name 'x'; known: y"),
        ("factor, kind: scalar, dtype: float32", "factor, kind: scalar, dtype: bfloat16", "bfloat16: a scalar"),
        ("dtype: float32, shape", "dtype: float8, shape", "'float8' is not one of"),
    ],
)  # fmt: skip
def test_a_wrong_argument_is_refused_by_name(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in refused(tmp_path, (old, new))


BORROWED = ("baseline: right", "baseline: lender.right")


def test_a_baseline_of_another_family_becomes_the_last_variant(tmp_path: Path) -> None:
    figures = "{value: 1, unit: GFLOP/s, gpu: g, source: s, case: '%s'}"
    published = f"published: [{figures % 64}, {figures % 2000}],"
    more = ('"1000": {N: 1000}', '"1000": {N: 1000}, "2000": {N: 2000}')
    first = ("variants:", "variants:\n  - {name: first, file: right.cu, idea: x}")
    lender = loaded(tmp_path, (RIGHT, f"{RIGHT} {published} parent: first,"), first, more, name="lender")
    order = "  - {name: factor, kind: scalar, dtype: float32}\n"
    moved = YAML[YAML.index("  - {name: x") : YAML.index(order)]
    family = loaded(
        tmp_path, BORROWED, (moved + order, order + moved), (RIGHT, "{name: mine, file: right.cu,")
    )
    assert family.baseline == "right"
    assert [v.name for v in family.variants] == ["mine", "right"]
    borrowed = family.variant("right")
    assert (borrowed.family, borrowed.parent) == ("scale", None)
    assert borrowed.file == tmp_path / "kernels" / "lender" / "right.cu"
    assert borrowed.fingerprint() == lender.variant("right").fingerprint()
    assert [a.name for a in borrowed.arguments] == ["x", "y", "N", "factor"], "its launcher has another order"
    assert [figure.case for figure in borrowed.published] == ["64"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("baseline: lender.right", "baseline: nobody.right"), "no other family 'nobody' in"),
        (("baseline: lender.right", "baseline: lender.left"), "no variant 'left'"),
        (("baseline: lender.right", "baseline: scale.right"), "no other family 'scale'"),
        (("{N: 64}", "{N: 32}"), "case '64': x is [32] here and [64] in lender; use the same shapes"),
        (('"1000": {', '"1024": {'), "lender has no case '1024'; known: 64, 1000"),
        (("input, dtype: float32", "input, dtype: int32"), "'x' (input, float32); the one here is input, int32"),
        (("{name: mine, file: right.cu", "{name: right"), "the variant 'right' occurs twice"),
    ],
)  # fmt: skip
def test_a_baseline_that_does_not_fit_is_refused_by_name(
    tmp_path: Path, change: tuple[str, str], words: str
) -> None:
    loaded(tmp_path, name="lender")
    with pytest.raises(WarplogError) as error:
        loaded(tmp_path, BORROWED, (RIGHT, "{name: mine, file: right.cu,"), change)
    assert words in str(error.value)


def test_the_record_of_options_is_empty_without_any(tmp_path: Path) -> None:
    variant = loaded(tmp_path).variants[0]
    assert variant.compile.record() == {}
    assert variant.compile.text() == ""
    other = replace(variant, compile=replace(variant.compile, std=20, link=("cuda",)))
    assert other.compile.record() == {"std": 20, "link": ["cuda"]}
    assert other.compile.text() == "-std=c++20 -lcuda"
