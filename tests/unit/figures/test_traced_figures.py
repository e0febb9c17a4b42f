"""Figures of traced accesses, from made-up traces of kernels whose accesses are known."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from drawn_figures import texts
from matplotlib.collections import PolyCollection
from matplotlib.text import Text
from msgspec import structs
from plotted import plot

from traced_tables import SGEMM, TRANSPOSE, ldmatrix, owners, record, shipped, traced, write_traced
from warplog import figures
from warplog.figures.shared import style
from warplog.figures.shared.settings import settings_of
from warplog.metrics import banks
from warplog.records.config import FigureSettings
from warplog.records.requested.accesses import Reuse
from warplog.tables.view import FigureTables

pytestmark = pytest.mark.filterwarnings("error:.*constrained_layout.*")
FIGURES = ("lanes_over_sectors", "lanes_over_banks", "owners", "tile_order")
GROUPED = [(row + 4 * half, column) for half in range(2) for column in range(8) for row in range(4)]
MATRICES = {
    "plain": ldmatrix(lambda lane: 64 * (lane % 16) + 16 * (lane // 16)),
    "swizzled": ldmatrix(lambda lane: 64 * (lane % 16) + 16 * (lane // 16 ^ lane // 2 % 4)),
}


def in_patches(row: int, column: int) -> int:
    """The thread of an element of a tile of 32 x 32, each with 2 x 2: warp 0 has the first four rows."""
    return row // 2 * 16 + column // 2


@pytest.fixture(scope="module")
def sgemm(tmp_path_factory):
    return shipped(tmp_path_factory.mktemp("sgemm"), "sgemm", SGEMM)


@pytest.fixture(scope="module")
def transpose(tmp_path_factory):
    return shipped(tmp_path_factory.mktemp("transpose"), "transpose", TRANSPOSE)


@pytest.fixture(scope="module")
def blocks():
    """Two orders of 64 tiles, with what the first wave of 16 reads, and a kernel that stores by TMA."""
    reuse = {"block_bytes": 100, "wave_blocks": 16, "wave_bytes_of_blocks": 4_000_000}
    in_rows = owners((256, 256), (32, 32), in_patches)
    return traced(
        "gemm",
        {"row_by_row": "", "grouped": "row_by_row", "by_tma": "grouped"},
        {
            "row_by_row": record(owners=in_rows, reuse=Reuse(**reuse, wave_bytes=2_000_000)),
            "grouped": record(
                owners=owners((256, 256), (32, 32), in_patches, GROUPED),
                reuse=Reuse(**reuse, wave_bytes=1_600_000),
            ),
            "by_tma": record(untraced=(("UTMASTG.2D", 1),)),
        },
    )


def per_request(rows: pd.DataFrame) -> dict[tuple[str, str], tuple[float, float]]:
    """Returns what a request takes and the ideal, by variant and array."""
    panels = rows.drop_duplicates(["row", "column"])
    numbers = zip(panels["per_request"], panels["ideal_per_request"], strict=True)
    return dict(zip(zip(panels["variant"], panels["array"], strict=True), numbers, strict=True))


def drawn(name: str, tables: FigureTables, **settings):
    look = style.look(tables, settings_of(FigureSettings(**settings)))
    return figures.module(name).draw(figures.data(name, tables), look)


def test_the_parent_whose_sectors_differ_most_stands_beside_its_child_array_by_array(sgemm):
    assert per_request(figures.data("lanes_over_sectors", sgemm)) == {
        ("naive", "A"): (32, 4), ("gmem_coalesced", "A"): (1, 1),
        ("naive", "B"): (1, 1), ("gmem_coalesced", "B"): (4, 4),
        ("naive", "C"): (32, 4), ("gmem_coalesced", "C"): (4, 4),
    }  # fmt: skip


def test_a_panel_has_a_row_per_line_of_memory_and_moves_whole_sectors(sgemm):
    figure = drawn("lanes_over_sectors", sgemm)
    words = texts(figure)
    assert words.count("naive") == words.count("gmem_coalesced") == 1
    assert "load from A, 8192 requests, lanes 256 B apart" in words
    assert "32 sectors per request, ideal 4" in words
    assert "load from A, 8192 requests, all lanes at one address" in words
    assert any(word.startswith("27: for (int k = 0; k < K; ++k) sum += a[k]") for word in words)
    moved, asked = (c for c in figure.axes[0].collections if isinstance(c, PolyCollection))
    assert [len(moved.get_paths()), len(asked.get_paths())] == [32, 32]
    edges = moved.get_paths()[0].vertices[:, 0]
    assert (edges.min(), edges.max()) == (0, 8), "a sector is eight words"
    assert len(figure.axes[1].collections[1].get_paths()) == 32, "one word in stripes of 32 lanes"
    assert figure.get_suptitle().replace("\n", " ") == (
        "Lanes over sectors of memory: load from A, 32 sectors (ideal 4) in naive, 1 sector (ideal 1) in gmem_coalesced"
        " · sgemm"
    )


def test_padding_and_swizzle_stand_beside_what_they_mend(transpose):
    rows = figures.data("lanes_over_banks", transpose)
    assert list(dict.fromkeys(rows["variant"])) == ["smem_conflict", "padded", "xor_swizzled"]
    ways = rows.groupby("variant")[["wavefront", "bank"]].nunique()
    assert ways["wavefront"].to_dict() == {"smem_conflict": 32, "padded": 1, "xor_swizzled": 1}
    assert ways["bank"].to_dict() == {"smem_conflict": 1, "padded": 32, "xor_swizzled": 32}
    words = texts(drawn("lanes_over_banks", transpose))
    assert "load, 128 requests, 32-way conflict" in words
    assert words.count("1 wavefront per request, ideal 1") == 2


def test_each_matrix_of_ldmatrix_is_a_pass_of_eight_lanes():
    tables = traced(
        "gemm", {"plain": "", "swizzled": "plain"}, {n: record([own]) for n, own in MATRICES.items()}
    )
    rows = figures.data("lanes_over_banks", tables)
    own = dict(list(rows.groupby("variant")))
    for group in own.values():
        assert group.groupby("pass")["lane"].agg(["min", "max"]).to_numpy().tolist() == [
            [0, 7], [8, 15], [16, 23], [24, 31],
        ]  # fmt: skip
    assert own["plain"].groupby("pass")["wavefront"].nunique().tolist() == [4] * 4
    assert own["swizzled"].groupby("pass")["wavefront"].nunique().tolist() == [1] * 4
    assert "ldmatrix, 64 requests, 4-way conflict" in texts(drawn("lanes_over_banks", tables))


@pytest.mark.parametrize(
    ("kind", "size"),
    [("load", 1), ("load", 4), ("load", 8), ("load", 16), ("atomic", 4), ("atomic", 8), ("ldmatrix", 16)],
)
def test_as_many_wavefronts_are_drawn_as_are_counted(kind, size):
    lanes, random = np.arange(32), np.random.default_rng(size)
    patterns = [
        lanes,
        lanes // 2,
        lanes % 8,
        lanes // 4 * 2 + lanes % 2,
        16 * lanes,
        random.integers(0, 64, 32),
    ]
    for pattern in patterns:
        addresses, active = size * pattern, random.random(32) < 0.8
        about = {"matrices": kind == "ldmatrix", "atomic": kind == "atomic"}
        taken = banks.wavefronts(addresses[None], active[None], size, **about).taken[0]
        request = pd.DataFrame(
            {"lane": lanes[active], "address": addresses[active], "size_bytes": size, "kind": kind}
        )
        words = figures.module("lanes_over_banks").words(request)
        assert words["wavefront"].nunique() == words["wavefront"].max() + 1 == taken


def test_without_a_difference_or_an_excess_there_is_nothing_to_show(sgemm):
    assert figures.data("lanes_over_banks", sgemm).empty
    assert figures.data("lanes_over_sectors@smem_tiled", sgemm).empty


def test_a_variant_stands_beside_its_parent_or_alone_if_that_has_no_such_access(transpose):
    rows = figures.data("lanes_over_banks@xor_swizzled", transpose)
    assert list(dict.fromkeys(rows["variant"])) == ["smem_conflict", "xor_swizzled"]
    assert set(figures.data("lanes_over_banks@smem_conflict", transpose)["variant"]) == {"smem_conflict"}


def test_a_source_that_changed_since_the_trace_is_not_drawn(tmp_path):
    later = shipped(tmp_path, "transpose", TRANSPOSE, source="f" * 64)
    assert len(later.access_lanes)
    assert all(figures.data(name, later).empty for name in FIGURES)


def test_of_several_cases_of_a_variant_the_one_that_pages_show_is_drawn():
    plain, swizzled = (record([own]) for own in MATRICES.values())
    other = structs.replace(swizzled.cases[0], case="128")
    both = {"plain": structs.replace(plain, cases=(other, *plain.cases)), "swizzled": swizzled}
    rows = figures.data("lanes_over_banks", traced("gemm", {"plain": "", "swizzled": "plain"}, both))
    assert set(rows["case"]) == {"64"}
    assert rows.groupby("variant")["wavefront"].nunique().to_dict() == {"plain": 16, "swizzled": 4}


def test_the_note_names_the_case_of_each_variant_if_they_differ():
    plain, swizzled = (record([own]) for own in MATRICES.values())
    other = structs.replace(swizzled, cases=(structs.replace(swizzled.cases[0], case="128"),))
    for child, said in ((swizzled, "case 64"), (other, "case 64 in plain, 128 in swizzled")):
        tables = traced("gemm", {"plain": "", "swizzled": "plain"}, {"plain": plain, "swizzled": child})
        note = drawn("lanes_over_banks", tables).get_supxlabel().replace("\n", " ")
        assert re.search(f"; {said}(;|$)", note), note


def test_owners_are_the_threads_of_the_first_tile_and_the_tiles_of_all_blocks(blocks):
    rows = figures.data("owners", blocks)
    tiles, threads = (rows[rows["kind"] == kind] for kind in ("tile", "thread"))
    assert set(rows["variant"]) == {"row_by_row"}, "the other divides its tiles in the same way"
    assert len(tiles) == 64
    assert threads["width"].sum() == 32 * 32
    assert threads.groupby("thread")["width"].sum().unique().tolist() == [4]
    figure = drawn("owners", blocks)
    words = texts(figure)
    assert {"32 × 32 by 256 threads", "warp 0: 128 elements", "thread 0: 4 elements"} <= set(words)
    assert "C: 64 blocks\n256 × 256" in words
    assert "not drawn: by_tma, as stores by TMA are not traced" in figure.get_supxlabel().replace("\n", " ")


def test_orders_that_differ_stand_side_by_side_with_what_a_wave_reads(blocks):
    rows = figures.data("tile_order", blocks)
    first = {
        name: own[["first_row", "first_column"]].head(5).to_numpy().tolist()
        for name, own in rows.groupby("variant")
    }
    assert first["row_by_row"] == [[0, 0], [0, 32], [0, 64], [0, 96], [0, 128]]
    assert first["grouped"] == [[0, 0], [32, 0], [64, 0], [96, 0], [0, 32]]
    figure = drawn("tile_order", blocks)
    words = texts(figure)
    assert {"first 16 read 2.00 MB", "first 16 read 1.60 MB", "each byte by 2.50 blocks"} <= set(words)
    assert [len(axes.lines[0].get_xdata()) for axes in figure.axes] == [64, 64]
    assert "the first wave reads 2.00 MB in row_by_row, 1.60 MB in grouped" in figure.get_suptitle().replace(
        "\n", " "
    )
    assert "by_tma" in figure.get_supxlabel()


def test_row_by_row_is_one_order_for_any_number_of_tiles():
    fine, coarse = (owners((256, 256), (side, side), in_patches) for side in (32, 64))
    made = {"fine": record(owners=fine), "coarse": record(owners=coarse)}
    assert figures.data("tile_order", traced("gemm", {"fine": "", "coarse": "fine"}, made)).empty


def test_blocks_that_were_not_all_traced_are_called_so(blocks):
    fewer = replace(blocks, traced_kernels=blocks.traced_kernels.assign(blocks=100))
    assert "C: 64 traced blocks\n256 × 256" in texts(drawn("owners", fewer))
    assert texts(drawn("tile_order", fewer)).count("64 traced blocks over 256 × 256") == 2


def test_one_order_is_nothing_to_show(transpose):
    assert figures.data("tile_order", transpose).empty


@pytest.mark.parametrize("width", [3.3, 7.2])
@pytest.mark.parametrize("name", FIGURES)
def test_text_is_large_enough_and_inside_of_the_figure(name, width, sgemm, transpose, blocks):
    tables = {"lanes_over_sectors": sgemm, "lanes_over_banks": transpose}.get(name, blocks)
    settings = settings_of(FigureSettings(style="paper", width_in=width))
    figure = figures.module(name).draw(figures.data(name, tables), style.look(tables, settings))
    with style.theme(settings):
        figure.draw_without_rendering()
        box = figure.get_tightbbox()
    assert min(box.x0, box.y0) > -0.05
    assert box.x1 < width + 0.05
    assert box.y1 < figure.get_figheight() + 0.05
    assert min(text.get_fontsize() for text in figure.findobj(Text) if text.get_text()) >= 7


def test_the_script_draws_them_for_the_family_and_for_each_variant_that_differs(transpose, tmp_path):
    write_traced(transpose, tmp_path / "tables")
    plot(["lanes_over_banks"], tmp_path / "tables", tmp_path / "transpose")
    of = ("", "@smem_conflict", "@padded", "@xor_swizzled")
    assert {path.name for path in (tmp_path / "transpose").glob("*.png")} == {
        f"lanes_over_banks{name}.png" for name in of
    }
    lanes = pd.read_csv(tmp_path / "transpose" / "lanes_over_banks@padded.csv")
    assert {"lane", "bank", "wavefront", "address"} <= set(lanes)
