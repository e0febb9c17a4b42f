"""Records are read in place, whether they are files or packed, and a hostile archive is refused in one line."""

import io
import lzma
import tarfile
from pathlib import Path

import pytest

from warplog.core import store
from warplog.core.errors import WarplogError

FILES = {f"time/h200/{family}.json": family.encode() * 100 for family in ("sgemm", "scan")}
ROUND = {"aa/round1/time/h200/scan.json": b"{}"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A campaign with packed times and A/A rounds, and a check that is a file."""
    put(tmp_path, "time", store.pack(FILES))
    put(tmp_path, "aa", store.pack(ROUND))
    (tmp_path / "check" / "h200").mkdir(parents=True)
    (tmp_path / "check" / "h200" / "scan.json").write_text("a file")
    return tmp_path


def put(root: Path, stage: str, data: bytes) -> Path:
    archive = root / "records" / f"{stage}.tar.xz"
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(data)
    return archive


def archive_of(*members: tuple[tarfile.TarInfo, bytes], form: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for member, data in members:
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return lzma.compress(buffer.getvalue())


def of_kind(kind: bytes, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo("time/h200/scan.json")
    member.type, member.linkname = kind, link
    return member


def test_a_packed_record_is_read_by_the_path_of_its_file(root: Path) -> None:
    path = root / "time" / "h200" / "scan.json"
    assert store.is_file(path)
    assert not path.exists()
    assert store.read(path, 1000, "") == FILES["time/h200/scan.json"]
    assert store.holder(path) == root / "records" / "time.tar.xz"


def test_a_file_and_a_missing_record_are_what_they_are(root: Path) -> None:
    file, missing = root / "check" / "h200" / "scan.json", root / "time" / "h200" / "power.json"
    assert store.read(file, 1000, "") == b"a file"
    assert store.holder(file) == file
    assert not store.is_file(missing)
    with pytest.raises(WarplogError, match=r"power\.json: cannot be read \(No such file"):
        store.read(missing, 1000, "")


def test_records_are_found_by_pattern_below_a_campaign_and_below_one_of_its_rounds(root: Path) -> None:
    assert store.glob(root, "time/*/*.json") == [root / name for name in sorted(FILES)]
    assert store.glob(root, "time/h200/s?an.json") == [root / "time/h200/scan.json"]
    assert store.glob(root, "aa/round*/time/*/*.json") == [root / name for name in ROUND]
    assert store.glob(root / "aa" / "round1", "time/*/*.json") == [root / name for name in ROUND]
    assert store.glob(root, "check/*/*.json") == [root / "check/h200/scan.json"]


def test_a_path_relative_to_the_working_directory_is_found(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(root)
    assert store.read(Path("time/h200/scan.json"), 1000, "") == FILES["time/h200/scan.json"]


def test_the_same_files_give_the_same_archive_which_any_tar_opens(root: Path) -> None:
    assert store.pack(FILES) == store.pack(dict(reversed(FILES.items())))
    with tarfile.open(root / "records" / "time.tar.xz") as archive:
        members = archive.getmembers()
    assert [member.name for member in members] == sorted(FILES)
    assert {(member.mtime, member.uid, member.uname, member.mode) for member in members} == {
        (0, 0, "", 0o644)
    }


def test_an_archive_that_is_replaced_is_read_again(root: Path) -> None:
    path = root / "time" / "h200" / "scan.json"
    store.read(path, 1000, "")
    put(root, "time", store.pack({"time/h200/scan.json": b"other"}))
    assert store.read(path, 1000, "") == b"other"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"no archive at all", "format not supported"),
        (store.pack(FILES)[:-20], "cut short"),
        (store.pack(FILES) + b"more", "something follows"),
        (store.pack({"check/h200/scan.json": b""}), "is no name of a record of this stage"),
        (store.pack({"time/../../evil.json": b""}), "is no name"),
        (store.pack({"/time/h200/evil.json": b""}), "is no name"),
        (archive_of((of_kind(tarfile.SYMTYPE, "/etc/passwd"), b"")), "is not a regular file"),
        (archive_of((of_kind(tarfile.LNKTYPE, "a"), b"")), "is not a regular file"),
        (archive_of((of_kind(tarfile.FIFOTYPE), b"")), "is not a regular file"),
        (archive_of((of_kind(tarfile.DIRTYPE), b"")), "is not a regular file"),
        (archive_of((of_kind(tarfile.GNUTYPE_SPARSE), b"")), "is not a regular file"),
        (archive_of((of_kind(tarfile.REGTYPE), b"1"), (of_kind(tarfile.REGTYPE), b"2")), "occurs twice"),
        (
            archive_of((tarfile.TarInfo("time/" + "long" * 80), b"1"), form=tarfile.PAX_FORMAT),
            "is not a regular file",
        ),
        (lzma.compress(b"x" * 1024), "bad checksum|invalid header|truncated"),
        (lzma.compress(lzma.decompress(store.pack(FILES))[:700]), "has a wrong size"),
        (lzma.compress(b"x", format=lzma.FORMAT_ALONE), "format not supported"),
    ],
)
def test_a_hostile_archive_is_refused_in_one_line(tmp_path: Path, data: bytes, words: str) -> None:
    archive = put(tmp_path, "time", data)
    with pytest.raises(WarplogError, match=words) as error:
        store.is_file(tmp_path / "time" / "h200" / "scan.json")
    assert str(error.value).startswith(f"{archive}: is no archive of records (")
    assert "\n" not in str(error.value)


def test_an_archive_that_expands_beyond_the_limit_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "_MOST_BYTES", 1 << 20)
    put(tmp_path, "time", lzma.compress(bytes(8 << 20)))
    with pytest.raises(WarplogError, match="more than 1048576 bytes"):
        store.glob(tmp_path, "time/*/*.json")


def test_more_members_than_the_limit_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_MOST_MEMBERS", 1)
    put(tmp_path, "time", store.pack(FILES))
    with pytest.raises(WarplogError, match="more than 1 members"):
        store.glob(tmp_path, "time/*/*.json")
