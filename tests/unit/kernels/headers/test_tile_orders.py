"""The index arithmetic of persistent kernels, compiled for the host: tile orders, even shares, peers in a cluster."""

import ctypes
from collections import Counter
from itertools import pairwise

import pytest
from host_headers import host_library

from warplog.figures import tile_schedule

SOURCE = """
#include "cluster.cuh"
#include "tiles.cuh"
extern "C" void in_groups(int rows, int columns, int group, int* out) {
    for (int i = 0; i < rows * columns; ++i) {
        const tiles::Tile tile = tiles::in_groups(i, rows, columns, group);
        out[i] = tile.row * columns + tile.column;
    }
}
extern "C" void along_hilbert(int rows, int columns, int* out) {
    for (int i = 0; i < rows * columns; ++i) {
        const tiles::Tile tile = tiles::along_hilbert(i, rows, columns);
        out[i] = tile.row < rows && tile.column < columns ? tile.row * columns + tile.column : -1;
    }
}
extern "C" int even_workers(int work, int most) { return tiles::even_workers(work, most); }
template <int Down, int Across>
void describe(int rank, int* peers, int* masks) {
    const Cluster<Down, Across> here(rank);
    for (int i = 0; i < here.PEERS; ++i) peers[i] = here.peer(i);
    masks[0] = here.row_mask(), masks[1] = here.column_mask();
}
extern "C" void cluster(int down, int across, int rank, int* peers, int* masks) {
    if (down == 2 && across == 1) describe<2, 1>(rank, peers, masks);
    if (down == 1 && across == 2) describe<1, 2>(rank, peers, masks);
    if (down == 2 && across == 2) describe<2, 2>(rank, peers, masks);
    if (down == 4 && across == 1) describe<4, 1>(rank, peers, masks);
    if (down == 2 && across == 4) describe<2, 4>(rank, peers, masks);
}
"""
GRIDS = [(1, 1), (1, 7), (9, 1), (2, 2), (3, 5), (8, 8), (9, 11), (16, 8), (11, 9), (33, 64), (43, 31)]

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return host_library(SOURCE, tmp_path_factory.mktemp("tiles"))


def order(function, rows, columns, *more):
    out = (ctypes.c_int * (rows * columns))()
    function(rows, columns, *more, out)
    return list(out)


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_every_order_takes_every_tile_once(native, rows, columns):
    every = list(range(rows * columns))
    assert sorted(order(native.along_hilbert, rows, columns)) == every
    for group in (1, 8, 16):
        assert sorted(order(native.in_groups, rows, columns, group)) == every


@pytest.mark.parametrize(("rows", "columns"), GRIDS)
def test_the_figure_draws_the_orders_of_the_kernels(native, rows, columns):
    def drawn(place, *more):
        places = [place(index, rows, columns, *more) for index in range(rows * columns)]
        return [row * columns + column for row, column in places]

    assert drawn(tile_schedule.along_hilbert) == order(native.along_hilbert, rows, columns)
    for group in (1, 8):
        assert drawn(tile_schedule.in_groups, group) == order(native.in_groups, rows, columns, group)


def test_a_group_of_one_goes_row_by_row_and_a_wider_one_column_by_column(native):
    assert order(native.in_groups, 3, 4, 1) == list(range(12))
    assert order(native.in_groups, 3, 2, 2) == [0, 2, 1, 3, 4, 5]


@pytest.mark.parametrize("side", [2, 4, 8, 16, 32])
def test_neighbours_on_the_hilbert_curve_are_neighbours_in_the_square(native, side):
    places = [divmod(tile, side) for tile in order(native.along_hilbert, side, side)]
    for (row, column), (next_row, next_column) in pairwise(places):
        assert abs(row - next_row) + abs(column - next_column) == 1


def test_64_clusters_start_each_round_in_a_square_of_8_by_8(native):
    places = [divmod(tile, 16) for tile in order(native.along_hilbert, 16, 16)]
    for first in range(0, 256, 64):
        corners = {(row // 8, column // 8) for row, column in places[first : first + 64]}
        assert len(corners) == 1


@pytest.mark.parametrize("most", [1, 32, 64, 66, 132])
def test_even_workers_take_no_more_rounds_and_are_not_one_too_many(native, most):
    for work in (1, 63, 64, 65, 66, 67, 256, 1024, 4096):
        workers = native.even_workers(work, most)
        rounds = -(-work // most)
        assert 1 <= workers <= most
        assert workers == tile_schedule.even_workers(work, most)
        assert -(-work // workers) == rounds
        assert workers == 1 or -(-work // (workers - 1)) > rounds
    assert native.even_workers(256, 66) == 64


@pytest.mark.parametrize(("down", "across"), [(2, 1), (1, 2), (2, 2), (4, 1), (2, 4)])
def test_blocks_load_for_their_peers_and_every_part_comes_once(native, down, across):
    blocks = down * across
    peers, masks = [], []
    for rank in range(blocks):
        peer, mask = (ctypes.c_int * (down + across - 1))(), (ctypes.c_int * 2)()
        native.cluster(down, across, rank, peer, mask)
        peers.append(list(peer))
        masks.append(list(mask))
    # What reaches a block: a share of A from each of its row, one of B from each of its column.
    for part, senders in ((0, across), (1, down)):
        received = Counter(to for mask in masks for to in range(blocks) if mask[part] >> to & 1)
        assert received == dict.fromkeys(range(blocks), senders)
    for rank in range(blocks):
        reached = {to for to in range(blocks) if (masks[rank][0] | masks[rank][1]) >> to & 1}
        assert set(peers[rank]) == reached
        assert len(peers[rank]) == len(reached)
        assert all(rank in peers[other] for other in peers[rank])
