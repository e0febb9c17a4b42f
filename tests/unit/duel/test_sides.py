"""Which variants the words of a command name, and whether two sides can share a process."""

import subprocess
from pathlib import Path

import pytest
from msgspec import structs

import made_up_records
from host_family import REFERENCE, YAML
from warplog.core.errors import WarplogError
from warplog.duel import making
from warplog.duel.making import Made
from warplog.duel.match import side_task
from warplog.duel.sides import Corner, differences, resolve, why_other_work
from warplog.machine import toolchain
from warplog.measure.building.launcher import PREBUILT

OTHER = """\
  - {name: fast, file: right.cu, idea: a setting of the same source, parameters: {WIDE: 2}}
  - {name: module, language: cupy, idea: in Python}
  - {name: compiled, library: own.so, idea: compiled elsewhere}
"""


def write_family(project: Path, name: str, variants: str = "") -> Path:
    folder = project / "kernels" / name
    folder.mkdir(parents=True)
    (folder / "family.yaml").write_text(
        YAML.replace("family: scale", f"family: {name}").rstrip() + "\n" + variants
    )
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "right.cu").write_text(f"// of {name}\n")
    return folder


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns a project with two families that both have a variant `right`."""
    place = tmp_path / "project"
    scale = write_family(place, "scale", OTHER)
    (scale / "module.py").write_text("def launch(arrays, scalars, stream): ...\n")
    (scale / "own.so").touch()
    write_family(place, "shift", "  - {name: slow, idea: another source}\n")
    (place / "kernels" / "shift" / "slow.cu").write_text("// slow\n")
    monkeypatch.chdir(place)
    return place


def names(corners: tuple[Corner, Corner]) -> list[str]:
    return [f"{corner.family.name}/{corner.variant.name}" for corner in corners]


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        ("scale/right", "scale/fast", ["scale/right", "scale/fast"]),
        ("right", "slow", ["shift/right", "shift/slow"]),  # the other side says which family
        ("fast", "right", ["scale/fast", "scale/right"]),
        ("kernels/shift/slow.cu", "right", ["shift/slow", "shift/right"]),
        ("slow", "nvcc:13.3", ["shift/slow", "shift/slow"]),
        ("nvcc:13.0:slow", "nvcc:13.3:right", ["shift/slow", "shift/right"]),
    ],
)
def test_a_name_that_several_families_have_is_that_of_the_other_side(
    project: Path, a: str, b: str, found: list[str]
) -> None:
    assert names(resolve(a, b, project, [])) == found


def test_a_file_of_no_variant_takes_the_place_of_the_other_sides_source(project: Path) -> None:
    own = project / "mine.cu"
    own.write_text("// mine\n")
    before, after = resolve("scale/fast", "mine.cu", project, [])
    assert after.variant.file == own
    assert structs.replace(after.variant, file=before.variant.file) == before.variant
    assert after.variant.fingerprint() != before.variant.fingerprint()


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        ("right", "right", "may be scale/right and shift/right"),
        ("scale/fast", "shift/slow", "only variants of one family"),
        ("scale/slow", "right", "no variant 'slow'"),
        ("scales/right", "right", "did you mean 'scale'"),
        ("kernels/scale/right.cu", "scale/fast", "may be scale/right and scale/fast"),
        ("mine.cu", "other.cu", "one of them must name a variant or the file of one, or --variant"),
        ("HEAD:right", "right", "not a git repository"),
        ("scale/right", "mine.py", "cannot take the place of"),
        ("nvcc:13.0", "nvcc:13.3", "or --variant"),
        ("nvcc:13", "scale/right", "'13' is no version of nvcc; write nvcc:13.0"),
        ("nvcc:scale/right", "scale/right", "not a git repository"),  # a branch of that name
        ("scale/module", "nvcc:13.3", "nvcc does not compile .*module.py; name a variant of CUDA sources"),
        ("nvcc:13.3:scale/compiled", "scale/right", "nvcc does not compile .*own.so"),
    ],
)
def test_what_cannot_be_told_is_an_error(project: Path, a: str, b: str, why: str) -> None:
    for name in ("mine.cu", "other.cu", "mine.py"):
        (project / name).write_text("// mine\n")
    with pytest.raises(WarplogError, match=why):
        resolve(a, b, project, [])


def test_sides_that_name_no_variant_are_the_one_of_the_option(project: Path) -> None:
    (project / "mine.cu").write_text("// mine\n")
    for a, b in (("nvcc:13.0", "nvcc:13.3.73"), ("nvcc:13.0:mine.cu", "nvcc:13.3.73:mine.cu")):
        pair = resolve(a, b, project, [], "scale/fast")
        assert names(pair) == ["scale/fast", "scale/fast"]
        assert [one.toolkit for one in pair] == ["13.0", "13.3.73"]
        assert differences(*pair) == ()
    before, after = resolve("scale/right", "nvcc:13.3:mine.cu", project, [], "scale/fast")
    assert (before.toolkit, before.name, after.toolkit) == ("", "scale/right", "13.3")
    assert differences(before, after) == ("sources", "parameters")
    assert resolve("nvcc:13.0", "nvcc:13.3", project, [], "scale/fast")[1].name == "nvcc:13.3:scale/fast"


def test_a_commit_has_its_own_sources_settings_and_headers(project: Path) -> None:
    git = ("git", "-C", project, "-c", "user.name=T", "-c", "user.email=t@example.com")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    family = project / "kernels" / "scale" / "family.yaml"
    family.write_text(family.read_text().replace("WIDE: 2", "WIDE: 4"))
    (project / "kernels" / "scale" / "right.cu").write_text("// changed\n")
    before, after = resolve("nvcc:13.0:HEAD:", "fast", project, [])
    assert (before.name, before.toolkit) == ("nvcc:13.0:HEAD:scale/fast", "13.0")
    assert (before.variant.parameters, after.variant.parameters) == ({"WIDE": 2}, {"WIDE": 4})
    assert before.variant.file.read_text() == "// of scale\n"
    assert before.commit
    assert why_other_work(before, after, "64") == ""
    family.write_text(family.read_text().replace('"64": {N: 64}', '"64": {N: 65}'))
    assert "case 64 of scale differ" in why_other_work(before, resolve("fast", "fast", project, [])[0], "64")


def test_in_a_repository_with_sources_elsewhere_both_are_those_of_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `warplog init` makes it: the project is a folder, and family.yaml names sources of the repository."""
    project = tmp_path / "warplog"
    entry = "  - {name: own, file: ../../../src/own.cu, idea: a source of the repository}\n"
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "own.cu").write_text("// first\n")
    git = ("git", "-C", tmp_path, "-c", "user.name=T", "-c", "user.email=t@example.com")
    subprocess.run([*git, "init", "-q"], check=True)
    write_family(project, "scale", entry)
    for words in (("add", "-A"), ("commit", "-q", "-m", "first")):
        subprocess.run([*git, *words], check=True, capture_output=True)
    (tmp_path / "src" / "own.cu").write_text("// second\n")
    monkeypatch.chdir(tmp_path / "src")
    for name in ("HEAD:own", "HEAD:src/own.cu"):
        before, after = resolve(name, "own.cu", project, [])
        assert before.variant.file.read_text() == "// first\n"
        assert after.variant.file.read_text() == "// second\n"
        assert before.variant.name == after.variant.name == "own"


def made(folder: Path, corner: Corner, needed: str, soname: str = "libneeded.so.1") -> Made:
    """Returns a side whose prebuilt library loads a shared library of `folder`."""
    folder.mkdir()
    (folder / "needed.c").write_text(f"int needed(void) {{ return {needed}; }}\n")
    (folder / "launch.c").write_text("int needed(void); int launch(void) { return needed(); }\n")
    cc, shared = ["cc", "-shared", "-fPIC"], folder / soname
    subprocess.run([*cc, f"-Wl,-soname,{soname}", folder / "needed.c", "-o", shared], check=True)
    own = [f"-Wl,-rpath,{folder}", folder / "launch.c", shared, "-o", folder / PREBUILT]
    subprocess.run([*cc, *own], check=True)
    (folder / "kernel.so").write_bytes((folder / PREBUILT).read_bytes())
    return Made(corner, folder / "kernel.so", made_up_records.build(library_sha256="a" * 64))


def test_two_libraries_of_one_name_share_no_process(project: Path, tmp_path: Path) -> None:
    """The dynamic linker would give the second one what the first has loaded."""
    corner, _ = resolve("scale/right", "scale/fast", project, [])
    a, b = made(tmp_path / "a", corner, "1"), made(tmp_path / "b", corner, "2")
    assert "different files as libneeded.so.1" in making.why_apart((a, b))
    assert making.why_apart((a, a)) == ""
    assert making.why_apart((a, made(tmp_path / "c", corner, "1", "libother.so.1"))) == ""


def test_a_library_of_another_file_than_every_process_loads_is_loaded_apart(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A side that looks for cuBLAS in its process would find the one that the other side links."""
    corner, _ = resolve("scale/right", "scale/fast", project, [])
    a, b = made(tmp_path / "a", corner, "1"), made(tmp_path / "b", corner, "2", "libother.so.1")
    assert (making.why_apart((a, b)), making.own_copy(a)) == ("", "")
    monkeypatch.setattr(toolchain, "library", lambda _: tmp_path / "elsewhere" / "libneeded.so.1")
    assert "different files as libneeded.so.1" in making.why_apart((a, b))
    assert (making.own_copy(a), making.own_copy(b)) == ("libneeded.so.1", "")
    assert str(tmp_path / "a" / "libneeded.so.1") in side_task(a, tmp_path / "copy").libraries


def test_a_library_is_copied_with_the_one_beside_it(project: Path, tmp_path: Path) -> None:
    corner, _ = resolve("scale/right", "scale/fast", project, [])
    copy = making.copied(made(tmp_path / "a", corner, "1"), tmp_path / "copy")
    assert copy.parent == tmp_path / "copy"
    assert (copy.parent / PREBUILT).is_file()
