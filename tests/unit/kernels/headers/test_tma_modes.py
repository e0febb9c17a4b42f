"""The swizzle modes of TMA, compiled for the host: where pieces lie, and which banks a warp reads."""

import numpy as np
import pytest
from host_headers import host_library

from shipped_families import FAMILIES

FAMILY = FAMILIES["tma_swizzle"]
MODES = [(v.parameters["ROW_BYTES"], v.parameters["SWIZZLE"]) for v in FAMILY.variants]
TILE_BYTES, PIECE_BYTES, PHASE_LANES, BANK_GROUPS = 8192, 16, 8, 8
SOURCE = """
#include "tma_modes.cuh"
extern "C" int place(int swizzle, int offset) {
    if (swizzle == 32) return tma::place<32>(offset);
    if (swizzle == 64) return tma::place<64>(offset);
    if (swizzle == 128) return tma::place<128>(offset);
    return tma::place<0>(offset);
}
"""

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return host_library(SOURCE, tmp_path_factory.mktemp("place"))


def places(native, row_bytes, swizzle):
    """Where each piece of a tile lies, by row and piece, according to the header."""
    offsets = range(0, TILE_BYTES, PIECE_BYTES)
    return np.array([native.place(swizzle, o) for o in offsets]).reshape(-1, row_bytes // PIECE_BYTES)


def passes(addresses):
    """Passes through the banks of reads of 16 bytes per lane, eight lanes at a time, over those without conflicts."""
    groups = addresses.reshape(-1, PHASE_LANES) // PIECE_BYTES % BANK_GROUPS
    taken = sum(np.bincount(phase, minlength=BANK_GROUPS).max() for phase in groups)
    return taken / len(groups)


@pytest.mark.parametrize(("row_bytes", "swizzle"), MODES)
def test_pieces_lie_where_the_ptx_isa_draws_them(native, row_bytes, swizzle):
    rows, pieces = TILE_BYTES // row_bytes, row_bytes // PIECE_BYTES
    row, piece = np.mgrid[:rows, :pieces]
    turn = {0: 0 * row, 32: row // 4 % 2, 64: row // 2 % 4, 128: row % 8}[swizzle]
    expected = row * row_bytes + (piece ^ turn) * PIECE_BYTES
    assert (places(native, row_bytes, swizzle) == expected).all()


@pytest.mark.parametrize(("row_bytes", "swizzle"), MODES)
def test_columns_conflict_as_family_yaml_predicts_and_rows_never(native, row_bytes, swizzle):
    at = places(native, row_bytes, swizzle)
    assert passes(at.T.reshape(-1)) == (1 if swizzle else row_bytes // PIECE_BYTES)
    assert passes(at.reshape(-1)) == 1
    (variant,) = [v for v, mode in zip(FAMILY.variants, MODES, strict=True) if mode == (row_bytes, swizzle)]
    for prediction in variant.predicts:
        if prediction.quantity == "shared_conflict_ways":
            assert prediction.low <= passes(at.T.reshape(-1)) <= prediction.high
