"""The language of a variant, and what a Python module must define; nothing of it is imported for the plan."""

from pathlib import Path

import pytest

from host_family import PYTHON_RIGHT, YAML, make_python_family
from warplog.catalog.family import load_family
from warplog.catalog.imported import imported
from warplog.core.errors import WarplogError


def refused(folder: Path, entry: str, module: str = PYTHON_RIGHT) -> str:
    make_python_family(folder, {"right": PYTHON_RIGHT})
    path = folder / "scale" / "family.yaml"
    path.with_name("right.py").write_text(module)
    path.write_text(YAML.replace("{name: right, idea: as it should be}", f"{{name: right, idea: x{entry}}}"))
    with pytest.raises(WarplogError) as error:
        load_family(path)
    text = str(error.value)
    assert "\n" not in text
    return text


def test_a_python_variant_is_read_and_nothing_of_it_runs(tmp_path: Path) -> None:
    family = make_python_family(tmp_path, {"right": "raise SystemExit\n" + PYTHON_RIGHT}, language="triton")
    variant = family.variants[0]
    assert (variant.language, variant.is_python, variant.file.name) == ("triton", True, "right.py")


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (", file: right.py", "right.py is Python; add language: triton | cupy | torch"),
        (", file: right.py, language: cuda", "language: cuda requires a .cu file, not right.py"),
        (", file: right.cu, language: triton", "language: triton requires a .py file, not right.cu"),
        (
            ", language: cute",
            "language: cute is not supported: CuTe DSL keeps its compiled kernels to itself",
        ),
        (", language: cutlass", "cutlass"),
        (
            ", language: torch, memory: {x: pinned}",
            "memory requires language: cuda, not torch; remove the key",
        ),
    ],
)
def test_a_language_that_does_not_fit_is_refused_with_the_remedy(
    tmp_path: Path, entry: str, words: str
) -> None:
    assert words in refused(tmp_path, entry)


def test_a_module_without_launch_is_refused_before_anything_runs(tmp_path: Path) -> None:
    message = refused(tmp_path, ", language: torch", "def lunch():\n    pass\n")
    assert "right.py: the function launch is missing; define launch(arrays, scalars, stream)" in message
    assert "cannot be read as Python" in refused(tmp_path, ", language: torch", "def launch(:\n")


def test_the_fingerprint_is_of_the_module_what_it_imports_and_the_language(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    shared, beside = tmp_path / "include" / "shared.py", tmp_path / "scale" / "beside.py"
    shared.write_text("A = 1\n")
    beside.parent.mkdir()
    beside.write_text("from shared import A\n")
    variant = make_python_family(tmp_path, {"right": "from .beside import A\n" + PYTHON_RIGHT}).variants[0]
    assert variant.headers() == sorted([shared, beside])
    seen = {variant.fingerprint()}
    shared.write_text("A = 2\n")
    seen.add(variant.fingerprint())
    variant.file.write_text(PYTHON_RIGHT)
    seen.add(variant.fingerprint())
    seen.add(
        make_python_family(tmp_path, {"right": PYTHON_RIGHT}, language="torch").variants[0].fingerprint()
    )
    assert len(seen) == 4


def test_modules_are_found_wherever_and_however_they_are_imported(tmp_path: Path) -> None:
    package = tmp_path / "tiles"
    package.mkdir()
    for name in ("__init__", "sizes", "inner"):
        (package / f"{name}.py").write_text("")
    (package / "sizes.py").write_text("from . import inner\nfrom .. import outside\n")
    (tmp_path / "late.py").write_text("def broken(:\n")
    source = tmp_path / "source.py"
    source.write_text(
        "import os, numpy\nfrom tiles.sizes import WIDTH\n\ndef launch():\n    import late\n    import source\n"
    )
    names = [path.relative_to(tmp_path).as_posix() for path in imported(source, [tmp_path])]
    assert names == ["late.py", "tiles/__init__.py", "tiles/inner.py", "tiles/sizes.py"]
