"""When two builds need no duel: their machine code is the same, that of the host included."""

from pathlib import Path

import pytest
from msgspec import structs

from host_family import compile_c, make_family
from made_up_records import build
from warplog.core.hashing import sha256_file
from warplog.duel.making import Made, same_code
from warplog.duel.sides import Corner


def made(folder: Path, source: str, listing: str = "identifier = {}/launcher.cu\nthe listing") -> Made:
    folder.mkdir()
    family = make_family(folder)
    file = folder / "source.c"
    file.write_text(source)
    compile_c(file, folder / "kernel.so")
    (folder / "kernel.sass").write_text(listing.format(folder))
    record = structs.replace(build(), library_sha256=sha256_file(folder / "kernel.so"))
    return Made(Corner("x", family, family.variant("right")), folder / "kernel.so", record)


BLOCKS = "int blocks(void) {{ return {}; }}"
TABLE = "const int table[2] = {{1, {}}};"


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (BLOCKS.format(128), BLOCKS.format(128) + " int unused;", True),  # another library of the same code
        (BLOCKS.format(128), BLOCKS.format(256), False),  # the kernel is launched in another way
        (TABLE.format(2), TABLE.format(3), False),
    ],
)
def test_code_of_the_host_counts(tmp_path: Path, before: str, after: str, same: bool) -> None:
    pair = made(tmp_path / "a", before), made(tmp_path / "b", after)
    assert pair[0].build != pair[1].build  # by the hash of the library
    assert same_code(*pair) == same


def test_without_a_listing_nothing_is_known_of_the_kernel(tmp_path: Path) -> None:
    sources = BLOCKS.format(128), BLOCKS.format(128) + " int unused;"
    assert not same_code(*(made(tmp_path / str(n), one, "") for n, one in enumerate(sources)))
