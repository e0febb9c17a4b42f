"""Drawings of tiles from the parameters of a kernel."""

from warplog.worklog.pictures.tiles import panels, tiling

SGEMM = {"BM": 64, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 4}


def notes(parameters, source=""):
    return [panel.note for panel in panels(tiling(parameters, source))]


def test_each_level_is_drawn_from_the_result_to_the_thread():
    assert notes(SGEMM) == [
        "64 x 128 per block; blue: one block",
        "64 x 16 and 16 x 128; green: tiles of A and B, white: tile of C",
        "64 x 128, 32 x 64 per warp (blue)",
        "32 x 64, 8 x 4 per thread (blue)",
    ]
    drawn = panels(tiling(SGEMM, ""))
    assert drawn[0].title == "A part of C", "it shows a few blocks only"
    assert [sum(shape.kind == "tile on" for shape in panel.shapes) for panel in drawn] == [1, 0, 1, 1]
    warps, lanes = (len(panel.shapes) for panel in drawn[2:])
    assert (warps, lanes) == (2 * 2, 4 * 16)


def test_stages_and_clusters_are_drawn_and_named():
    given = {"BM": 128, "BN": 256, "BK": 64, "STAGES": 4, "DOWN": 2, "ACROSS": 2}
    assert notes(given)[:2] == [
        "128 x 256 per block, 4 blocks per cluster; blue: one cluster",
        "128 x 64 and 64 x 256, 4 stages; green: tiles of A and B, grey: those of the other stages, white: tile of C",
    ]
    blocks, step = panels(tiling(given, ""))[:2]
    assert sum(shape.kind == "tile on" for shape in blocks.shapes) == 4
    assert sum(shape.kind.startswith("operand") for shape in step.shapes) == 2 * 4


def test_a_size_that_is_no_parameter_comes_from_the_constants_of_the_source():
    rows = "constexpr int ROWS = wgmma::M;\nconstexpr int M = 64;\n"
    source = f"{rows}constexpr int CONSUMERS = 2, BM = CONSUMERS * ROWS;\n"
    found = tiling({"BN": 256}, source + "constexpr int BK = tma::BOX;  // bytes\nconstexpr int BOX = 64;")
    assert (found.block, found.depth, found.group) == ((128, 256), 64, (64, 256))


def test_no_tile_is_invented():
    assert tiling({"BLOCK": 256}, "") is None
    assert tiling({}, "constexpr int BM = 64, BN = 64;") is None  # of a header that it includes
    assert tiling({"BM": 64}, "") is None


def test_every_shape_lies_within_its_drawing():
    for panel in panels(tiling({**SGEMM, "STAGES": 3}, "")):
        for one in panel.shapes:
            assert one.x >= 0 <= one.y
            assert one.x + one.width <= panel.width
            assert one.y + one.height <= panel.height


def test_only_tiles_with_many_cells_have_thinner_lines():
    assert [panel.is_fine for panel in panels(tiling({"BLOCK": 32}, "BLOCK * BLOCK"))] == [False, True]
