"""How wgmma_stream_k deals out tiles, compiled for the host: every step once, and nobody waits for who waits."""

import ctypes
from itertools import pairwise

import pytest
from host_headers import host_library

SOURCE = """
#include "pieces.cuh"
static_assert(pieces::deal_out(1024, 128, 66).shared == 100, "may be known at compile time");
extern "C" int handover_steps() { return pieces::HANDOVER_STEPS; }
extern "C" void deal(int tiles, int steps, int most, int* out) {
    const pieces::Deal deal = pieces::deal_out(tiles, steps, most);
    out[0] = deal.clusters, out[1] = deal.shared;
}
extern "C" int walk(int tiles, int steps, int most, int cluster, int* out) {
    const pieces::Deal deal = pieces::deal_out(tiles, steps, most);
    pieces::Walk walk(deal, cluster);
    int count = 0;
    for (pieces::Piece piece; walk.next(piece); ++count) {
        out[3 * count] = piece.tile, out[3 * count + 1] = piece.begin, out[3 * count + 2] = piece.end;
    }
    return count;
}
extern "C" int is_cut(int tiles, int steps, int most, int cluster) {
    return pieces::deal_out(tiles, steps, most).is_cut(cluster);
}
"""
# 8192, 16384 and the check case that is cut, on 66 clusters; no whole round; the remainder a single tile; shares of
# just a tile; other GPUs; and what stays whole, 4096 first.
CUT = [
    (1024, 128, 66), (4096, 256, 66), (143, 17, 66), (67, 512, 66), (67, 12, 66), (100, 37, 66),
    (133, 13, 66), (1024, 128, 64 + 1), (143, 24, 57), (5, 40, 2), (3, 100, 2), (77, 1000, 33),
]  # fmt: skip
WHOLE = [
    (256, 64, 66), (67, 9, 66), (143, 17, 57), (256, 64, 64), (64, 32, 66), (16, 16, 66), (1, 1, 66),
    (99, 3, 66), (131, 64, 66), (66, 500, 66),
]  # fmt: skip
WHOLE += [(7, 9, 1), (132, 1000, 66)]

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return host_library(SOURCE, tmp_path_factory.mktemp("pieces"))


def deal(native, *problem):
    """Clusters, and the number of tiles that are dealt out as pieces."""
    out = (ctypes.c_int * 2)()
    native.deal(*problem, out)
    return out[0], out[1]


def walks(native, *problem):
    """(tile, begin, end) of what each cluster computes, in order."""
    out = (ctypes.c_int * (3 * (problem[0] + 2)))()
    found = []
    for cluster in range(deal(native, *problem)[0]):
        count = native.walk(*problem, cluster, out)
        found.append([tuple(out[3 * i : 3 * i + 3]) for i in range(count)])
    return found


def lengths(pieces):
    return sum(end - begin for _, begin, end in pieces)


@pytest.mark.parametrize("problem", CUT + WHOLE)
def test_every_step_of_every_tile_is_computed_once(native, problem):
    tiles, steps, _ = problem
    found = sorted(piece for walk in walks(native, *problem) for piece in walk)
    assert all(begin < end for _, begin, end in found)
    at = (0, 0)
    for tile, begin, end in found:
        assert (tile, begin) == at
        at = (tile, end) if end < steps else (tile + 1, 0)
    assert at == (tiles, 0)


@pytest.mark.parametrize("problem", CUT)
def test_shares_differ_by_one_step_at_most_and_take_less_than_one_more_round(native, problem):
    tiles, steps, most = problem
    clusters, shared = deal(native, *problem)
    assert clusters == most
    assert most < shared < 2 * most
    found = [lengths(walk) for walk in walks(native, *problem)]
    assert max(found) - min(found) <= 1
    assert max(found) + native.handover_steps() < -(-tiles // most) * steps


@pytest.mark.parametrize("problem", CUT)
def test_a_share_is_one_stretch_walked_from_its_last_tile_to_its_first_before_whole_tiles(native, problem):
    _, steps, _ = problem
    _, shared = deal(native, *problem)
    for walk in walks(native, *problem):
        share = [piece for piece in walk if piece[0] < shared]
        assert walk[: len(share)] == share
        assert all((begin, end) == (0, steps) for _, begin, end in walk[len(share) :])
        for (tile, begin, _), (previous, _, end) in pairwise(share):
            assert (begin, previous, end) == (0, tile - 1, steps)


@pytest.mark.parametrize("problem", CUT)
def test_who_waits_waits_for_what_the_cluster_before_leaves_first_and_has_left_by_then(native, problem):
    _, steps, _ = problem
    found = walks(native, *problem)
    for cluster, walk in enumerate(found):
        leaves = [i for i, (_, _, end) in enumerate(walk) if end < steps]
        takes = [i for i, (_, begin, _) in enumerate(walk) if begin > 0]
        # Once at most, as their barriers have one phase; leaving is first, so it never waits behind taking.
        assert leaves in ([], [0])
        assert len(takes) <= 1
        assert not set(leaves) & set(takes)
        assert bool(leaves) == bool(native.is_cut(*problem, cluster + 1))
        assert bool(takes) == bool(native.is_cut(*problem, cluster))
        if takes:
            tile, begin, end = walk[takes[0]]
            assert found[cluster - 1][0] == (tile, 0, begin)
            assert end == steps
            # Both having started together, the first steps are done when the last ones begin, but for a step.
            assert lengths(walk[: takes[0]]) >= begin - 1


@pytest.mark.parametrize("problem", WHOLE)
def test_where_cutting_does_not_pay_tiles_are_whole_and_evenly_dealt_out_in_the_parents_order(
    native, problem
):
    tiles, steps, most = problem
    clusters, shared = deal(native, *problem)
    assert shared == 0
    rounds = -(-tiles // most)
    assert clusters == -(-tiles // rounds)
    for cluster, walk in enumerate(walks(native, *problem)):
        assert walk == [(tile, 0, steps) for tile in range(cluster, tiles, clusters)]
        assert not native.is_cut(*problem, cluster)
        assert not native.is_cut(*problem, cluster + 1)


def test_any_problem_is_dealt_out_whole_and_is_cut_only_where_that_is_shorter(native):
    for most in (1, 2, 7, 66):
        for tiles in (*range(1, 70, 3), 2 * most + 1, 3 * most - 1, 5 * most):
            for steps in (1, 2, 5, 16, 61):
                found = walks(native, tiles, steps, most)
                assert sum(lengths(walk) for walk in found) == tiles * steps
                longest = max(lengths(walk) for walk in found)
                assert longest <= -(-tiles // most) * steps
                assert len({piece for walk in found for piece in walk}) == sum(map(len, found))
