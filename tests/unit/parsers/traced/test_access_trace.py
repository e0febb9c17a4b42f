"""The trace of a launch, from made-up bytes: requests, and refusal of what cannot be."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from made_up_accesses import A, Trace
from warplog.core.errors import WarplogError
from warplog.metrics.accesses import Does, What
from warplog.parsers import access_trace
from warplog.parsers.access_trace import ENTRY, HEAD

NAME = "_Z1kPf"


def made(**changed):
    """Returns a kernel of two blocks of 48 threads: a load by all, a store by every third, one region."""
    trace = Trace(NAME, (2, 1), (48, 1), **changed)
    trace.access("LDG", 0, What.GLOBAL, Does.READ, 4, lambda bx, by, x, y: A + 4 * x + 256 * bx)
    trace.access("STS", 0, What.SHARED, Does.WRITE, 8, lambda bx, by, x, y: np.where(x % 3 == 1, 8 * x, -1))
    trace.request(1, 0, 32, What.BULK_GLOBAL, Does.READ, 1, [A])
    trace.entries_of_last()["active"] = 4096
    return trace


def read(folder, content):
    path = folder / "trace"
    path.write_bytes(content)
    return [(kernel, list(kernel.requests())) for kernel in access_trace.read(path)]


def only(folder, content):
    ((kernel, (requests,)),) = read(folder, content)
    return kernel, requests


def test_a_request_has_the_addresses_and_bytes_of_its_lanes(tmp_path):
    kernel, requests = only(tmp_path, made().content())
    assert (kernel.mangled, kernel.grid, kernel.block, kernel.blocks) == (NAME, (2, 1, 1), (48, 1, 1), 2)
    assert (kernel.kept, kernel.lost) == (96 + 32 + 1, 0)
    heads = zip(requests.block, requests.warp, requests.offset, requests.what, requests.does, strict=True)
    loads = [(block, warp, 0, 1, 1) for block in (0, 1) for warp in (0, 1)]
    stores = [(block, warp, 16, 2, 2) for block in (0, 1) for warp in (0, 1)]
    assert list(heads) == [*loads, *stores, (1, 0, 32, 10, 1)]
    assert requests.addresses[2].tolist() == [A + 256 + 4 * lane for lane in range(32)]
    assert requests.sizes[1].tolist() == [4] * 16 + [0] * 16, "a warp of 16 threads"
    assert np.flatnonzero(requests.sizes[5]).tolist() == [lane for lane in range(16) if lane % 3 == 2]
    assert requests.sizes[8].tolist() == [4096] + [0] * 31, "a region has one entry, with its bytes"


def test_two_requests_of_the_same_lanes_are_two(tmp_path):
    trace = Trace(NAME, (1, 1), (32, 1))
    for _ in range(2):
        trace.request(0, 0, 16, What.GLOBAL, Does.READ, 4, [-1, A, A])
    assert len(only(tmp_path, trace.content())[1]) == 2


def test_requests_are_whole_wherever_the_file_is_divided(tmp_path, monkeypatch):
    monkeypatch.setattr(access_trace, "_CHUNK", 37)
    ((_, parts),) = read(tmp_path, made().content())
    assert len(parts) > 2
    monkeypatch.undo()
    _, whole = only(tmp_path, made().content())
    for name, values in vars(whole).items():
        assert np.concatenate([getattr(part, name) for part in parts]).tolist() == values.tolist()


def test_kernels_follow_each_other(tmp_path):
    found = read(tmp_path, made().content() + made(blocks=(1, 1)).content())
    assert [(kernel.first_block, kernel.blocks) for kernel, _ in found] == [(0, 2), (1, 1)]


def test_what_had_no_room_is_counted(tmp_path):
    kernel, _ = only(tmp_path, made().content(used=1000))
    assert (kernel.kept, kernel.lost) == (129, 871)


def test_a_kernel_without_accesses_has_no_requests(tmp_path):
    assert [list(parts) for _, parts in read(tmp_path, Trace(NAME, (1, 1), (32, 1)).content())] == [[]]


def test_an_address_of_shared_memory_is_relative_to_the_block(tmp_path):
    trace = Trace(NAME, (1, 1), (32, 1))
    trace.request(0, 0, 16, What.REMOTE, Does.READ, 4, [0x0300_0410])
    assert only(tmp_path, trace.content())[1].addresses[0, 0] == 0x410


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"magic": b"WLTRACE2"}, "not the head of a kernel"),
        ({"name_bytes": 1 << 20}, "the name of the kernel is truncated"),
        ({"name_bytes": 0}, "the name of the kernel is not readable"),
        ({"grid": (2, 0, 1)}, "is not possible"),
        ({"block": (32, 32, 2)}, "is not possible"),
        ({"first_block": 1}, "blocks 1 to 2 of 2 are not possible"),
        ({"blocks": 0}, "are not possible"),
        ({"used": 5}, "129 accesses of 5 are not possible"),
        ({"used": 130, "kept": 130}, "is truncated"),
    ],
)
def test_a_head_that_cannot_be_is_refused(changed, why, tmp_path):
    with pytest.raises(WarplogError, match=why):
        read(tmp_path, made().content(**changed))


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("thread", 48, "of a thread that its block has not"),
        ("block", 2, "of a block that was not traced"),
        ("what", 0, "of an unknown kind"),
        ("what", 13, "of an unknown kind"),
        ("offset", 8, "of an instruction that is not in its place"),
        ("size", 64, "of more than 32 bytes"),
        ("address", 1 << 60, "of an address beyond the address space"),
        ("active", 1, "of a lane that is not active"),
        ("active", 3, "do not follow each other"),
        ("active", 0xFFFF_FFFE, "do not follow each other"),
        ("thread", 2, "do not follow each other"),
        ("block", 1, "do not follow each other"),
    ],
)
def test_an_entry_that_cannot_be_is_refused(name, value, why, tmp_path):
    trace = made()
    entries = trace.entries()
    entries[1][name] = value
    with pytest.raises(WarplogError, match=f"trace: kernel {NAME}: .*{why}; trace again"):
        read(tmp_path, trace.head() + entries.tobytes())


def test_a_name_that_would_not_fit_in_a_line_is_refused(tmp_path):
    with pytest.raises(WarplogError, match="the name of the kernel is not readable"):
        read(tmp_path, Trace("two\nlines", (1, 1), (32, 1)).content())


@pytest.mark.parametrize("part", [slice(None, -2), slice(1, None)], ids=["end", "begin"])
def test_a_request_that_is_cut_is_refused(part, tmp_path):
    entries = made().entries()[part]
    with pytest.raises(WarplogError, match="do not follow each other"):
        read(tmp_path, made().head(used=len(entries), kept=len(entries)) + entries.tobytes())


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(WarplogError, match="trace: has no kernel"):
        read(tmp_path, b"")


def test_no_cut_passes_for_the_whole_trace(tmp_path):
    content = made().content() + made().content()
    first = len(made().content())
    for end in Random(1).sample(range(1, len(content)), 100):
        if end != first:
            with pytest.raises(WarplogError, match="trace: "):
                read(tmp_path, content[:end])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_damaged_trace_is_refused_in_one_line_or_read(tmp_path, data):
    content = bytearray(made().content())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, HEAD.itemsize + 3 * ENTRY.itemsize))] = data.draw(
            st.integers(0, 255)
        )
    try:
        found, error = read(tmp_path, bytes(content)), f"{tmp_path}"
    except WarplogError as refused:
        found, error = [], str(refused)
    assert error.startswith(str(tmp_path))
    assert "\n" not in error
    assert all(len(part.sizes) <= kernel.kept for kernel, parts in found for part in parts)
