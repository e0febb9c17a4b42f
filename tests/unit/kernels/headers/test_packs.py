"""How rows are cut into packs of 16 bytes, compiled for the host: every column once, whatever a row starts on."""

import ctypes

import pytest
from host_headers import host_library

SOURCE = """
#include "rows.cuh"
template <typename T>
int walk(const void* matrix, int row, int columns, int* out) {
    const rows::Row<T, false> r(static_cast<const T*>(matrix), row, columns);
    for (int p = 0; p <= r.packs(); ++p) {
        int* pack = out + 4 * p;
        pack[0] = r.first(p), pack[1] = r.count(p), pack[2] = r.is_whole(p), pack[3] = 0;
        for (int i = 0; i < r.SIZE; ++i) pack[3] += r.holds(p, i);
    }
    return r.packs();
}
extern "C" int packs_of(int bytes, const void* matrix, int row, int columns, int* out) {
    return bytes == 4 ? walk<float>(matrix, row, columns, out) : walk<__nv_bfloat16>(matrix, row, columns, out);
}
extern "C" int aligned(int columns, const void* x, const void* y) {
    return rows::are_aligned<__nv_bfloat16>(columns, x, y);
}
extern "C" int threads(int packs, int per_thread) { return rows::threads_for(packs, per_thread); }
"""

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    library = host_library(SOURCE, tmp_path_factory.mktemp("rows"))
    library.packs_of.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    library.aligned.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    return library


@pytest.mark.parametrize("bytes_each", [2, 4])
@pytest.mark.parametrize("columns", [1, 3, 7, 8, 9, 31, 128, 1000, 4097])
def test_each_column_is_in_one_pack_and_packs_start_on_16_bytes(native, bytes_each, columns):
    size = 16 // bytes_each
    for start in range(4096, 4112, bytes_each):
        for row in range(size + 1):
            out = (ctypes.c_int * (4 * (columns // size + 4)))()
            packs = native.packs_of(bytes_each, start, row, columns, out)
            found = [tuple(out[4 * p : 4 * p + 4]) for p in range(packs + 1)]
            assert found.pop()[1:] == (0, 0, 0)
            covered = [c for first, _, _, _ in found for c in range(first, first + size) if 0 <= c < columns]
            assert covered == list(range(columns))
            for first, count, whole, held in found:
                assert (start + bytes_each * (row * columns + first)) % 16 == 0
                assert count == held == len([c for c in range(first, first + size) if 0 <= c < columns]) > 0
                assert whole == (count == size)


def test_rows_are_aligned_only_if_all_arrays_and_the_length_are(native):
    assert native.aligned(1000, 256, 512)
    assert not native.aligned(1001, 256, 512)
    assert not native.aligned(1000, 258, 512)
    assert not native.aligned(1000, 256, 520)


@pytest.mark.parametrize("per_thread", [4, 8])
def test_a_block_has_the_fewest_whole_warps_that_hold_a_row(native, per_thread):
    for packs in range(1, 5000, 7):
        threads = native.threads(packs, per_thread)
        assert threads % 32 == 0
        assert (threads - 32) * per_thread < packs <= threads * per_thread
