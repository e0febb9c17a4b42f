"""A family.yaml that is wrong is refused by file, key and remedy."""

from pathlib import Path

import pytest

from host_family import YAML, make_family
from warplog import catalog, contract
from warplog.errors import WarplogError


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
    assert family.value(family.bytes_moved, case) == 8000
    assert family.shape(family.arguments[0], case) == (1000,)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("title:", "tittle:", "did you mean 'title'?"),
        ("bytes: 8*N", "bytes: 8*M", "known names: N, factor"),
        ("bytes: 8*N", "bytes: __import__('os')", "cannot evaluate"),
        ("bytes: 8*N", "bytes: 9**9**9**9", "cannot evaluate"),
        ('headline_case: "64"', 'headline_case: "65"', "headline_case: '65' is not there"),
        ("baseline: right", "baseline: rihgt", "did you mean 'right'?"),
        ("- {name: right,", "- {name: right, file: ../x.cu,", "'../x.cu'"),
        ("- {name: right,", "- {name: left, idea: y}\n  - {name: right,", "left.cu, which is missing"),
        ("dtype: float32, reduction_length", "dtype: float3, reduction_length", "tolerance.dtype"),
        ("odd: {N: 127}", "../odd: {N: 127}", "check_cases"),
        ("family: scale", "family: scales", "must lie in a folder of that name"),
        ("title: scaling", "title: [", "is not valid YAML"),
    ],
)
def test_wrong_family_is_refused(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert words in broken(tmp_path, old, new)


def test_two_families_of_one_name_are_refused(tmp_path: Path) -> None:
    make_family(tmp_path / "a")
    make_family(tmp_path / "b")
    with pytest.raises(WarplogError, match="is also in"):
        catalog.load([tmp_path / "a", tmp_path / "b"])


def test_requirements_say_why_not() -> None:
    assert contract.Requires("sm_80").why_not((9, 0)) == ""
    assert "sm_80 or later" in contract.Requires("sm_80").why_not((7, 5))
    assert contract.Requires("sm_90a").why_not((9, 0)) == ""
    assert "needs sm_90a" in contract.Requires("sm_90a").why_not((10, 0))
    aligned = contract.Requires(multiple_of={"N": 128})
    assert aligned.why_not_case(contract.Case("c", {"N": 127})) == "needs N a multiple of 128"
    assert aligned.why_not_case(contract.Case("c", {"N": 256})) == ""
