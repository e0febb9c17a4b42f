"""`warplog gate --pack` where the repository is, and `--packed` where only a GPU is; the CPU stands in for the GPU."""

import json
import shutil
import tarfile
from io import BytesIO
from pathlib import Path

import pytest
from test_duel_on_the_host import RIGHT, ab, git

from host_family import REFERENCE, YAML, pretend
from warplog.core import store
from warplog.records import door
from warplog.records.requested.gate import Gate

WIDE = ("--margin", "0.3")  # the clock is that of a busy host
FAST, SLOW = (f"usleep({us}); {RIGHT}" for us in (1000, 2500))
NO_COMPILER = """
def refuse(*_, **__):
    raise AssertionError("a machine with a pack compiles nothing")
build.build_variant = build.build_timer = refuse
"""


def machine(place: Path, more: str = "") -> Path:
    """Returns a project on a machine of its own."""
    pretend(place, "match._WINDOW_S = match._WINDOW_APART_S = 0.06\n" + more)
    (place / "kernels").mkdir()
    return place


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns a repository, without a GPU, in whose working tree `right` is slower than at its commit."""
    here = machine(
        tmp_path_factory.mktemp("pack") / "here", "device.boards = lambda: []\ndevice.detect = lambda: None\n"
    )
    family = here / "kernels" / "scale"
    family.mkdir()
    (family / "family.yaml").write_text(YAML.rstrip() + "\n  - {name: second, idea: unchanged}\n")
    (family / "reference.py").write_text(REFERENCE)
    (family / "right.cu").write_text(FAST)
    (family / "second.cu").write_text(FAST)
    (here / ".gitignore").write_text("results/\nsite/\ntemporary/\n")
    git(here, "init", "-q")
    git(here, "add", "-A")
    git(here, "commit", "-q", "-m", "first")
    (family / "right.cu").write_text(SLOW)
    return here


@pytest.fixture(scope="module")
def pack(here: Path) -> Path:
    output, _ = ab(here, "HEAD", "--pack", "gate.tar.xz", "--arch", "sm_90", verb="gate")
    assert "SHA-256" in output
    return here / "gate.tar.xz"


@pytest.fixture(scope="module")
def there(here: Path) -> Path:
    return machine(here.parent / "there", NO_COMPILER)


def test_a_pack_is_measured_where_there_is_neither_repository_nor_compiler(
    here: Path, pack: Path, there: Path
) -> None:
    shutil.copyfile(pack, there / "renamed.tar.xz")
    output, _ = ab(there, "--packed", "renamed.tar.xz", *WIDE, "--json", status=1, verb="gate")
    gate = door.decode(json.loads(output), Gate, "output")
    assert (gate.word, gate.base, gate.head, gate.head_commit) == ("loss", "HEAD", "", "")
    assert {(one.variant, one.control): one.word for one in gate.cases} == {
        ("second", True): "same",
        ("right", False): "loss",
    }


def test_a_changed_library_is_refused(pack: Path, there: Path) -> None:
    ab(there, "--packed", str(pack), "--minutes", "1e-9", status=3, verb="gate")
    (library,) = (there / "results").glob(".duel/packs/*/builds/scale.right.tree/kernel.so")
    kept = library.read_bytes()
    library.write_bytes(kept + b"x")
    _, errors = ab(there, "--packed", str(pack), status=3, verb="gate")
    library.write_bytes(kept)
    assert "the library differs from its record" in errors


def test_a_pack_for_another_gpu_is_refused(here: Path, there: Path) -> None:
    ab(here, "HEAD", "--pack", "other.tar.xz", "--arch", "sm_80", verb="gate")
    _, errors = ab(there, "--packed", str(here / "other.tar.xz"), status=3, verb="gate")
    assert "was compiled for sm_80, and this GPU is sm_90" in errors


def repacked(pack: Path, **changes: bytes) -> bytes:
    files = dict(store.unpack(pack.read_bytes(), "pack", "a file"))
    return store.pack(files | {name.replace("__", "/"): data for name, data in changes.items()})


def linked(_: Path) -> bytes:
    buffer = BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", format=tarfile.USTAR_FORMAT) as archive:
        member = tarfile.TarInfo("pack/builds/timer.so")
        member.type, member.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(member)
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("damage", "why"),
    [
        (lambda pack: pack.read_bytes()[:-40], "is no pack of a gate"),
        (lambda pack: repacked(pack, pack__builds__more=b""), "differ from their digests"),
        (lambda pack: store.pack({"pack/../../evil": b""}), "is no name of a file of a pack"),
        (lambda pack: store.pack({"/pack/evil": b""}), "is no name of a file of a pack"),
        (lambda pack: store.pack({"pack/evil": b""}), "pack.json"),
        (linked, "is not a regular file"),
        (lambda pack: b"no archive", "is no pack of a gate"),
    ],
)
def test_a_hostile_or_damaged_archive_is_refused(
    here: Path, pack: Path, there: Path, damage, why: str
) -> None:
    bad = there / "bad.tar.xz"
    bad.write_bytes(damage(pack))
    before = set((there / "results" / ".duel").rglob("*"))
    assert why in ab(there, "--packed", "bad.tar.xz", status=2, verb="gate")[1]
    assert set((there / "results" / ".duel").rglob("*")) <= before | {there / "results" / ".duel" / "packs"}


@pytest.mark.parametrize("words", [(), ("HEAD", "--packed", "x"), ("--packed", "x", "--pack", "y")])
def test_a_pack_and_commits_exclude_each_other(here: Path, words: tuple[str, ...]) -> None:
    assert "name BASE, or a pack alone" in ab(here, *words, status=2, verb="gate")[1]


def test_without_a_gpu_the_architecture_must_be_named(here: Path) -> None:
    assert "--arch" in ab(here, "HEAD", "--pack", "x.tar.xz", status=3, verb="gate")[1]
