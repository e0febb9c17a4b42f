"""The table of a library's kernels: from the recorded campaign, and from captures with only nsys or only ncu."""

import pytest

import small_campaign
from made_up_records import event, extract, launched
from made_up_records import metric as row
from warplog.core.columns import LIBRARY_KERNELS
from warplog.metrics.kernels import short_name
from warplog.records.extract import Extract
from warplog.records.family_file import FamilyRecord
from warplog.tables.files import as_frame
from warplog.tables.library import library_kernels

RECORDED = small_campaign.FOLDER / "extract" / "h200" / "sgemm.json"
XMMA = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_"


def test_recorded_cublas_splits_k_at_256_and_takes_larger_tiles_behind() -> None:
    rows = list(library_kernels(FamilyRecord.read(RECORDED, Extract).variants["cublas"]))
    assert [(r["case"], r["order"], r["is_split_k"]) for r in rows] == [
        ("128", 0, False),
        ("256", 0, False),
        ("256", 1, True),
        ("512", 0, False),
        ("512", 1, True),
        ("1024", 0, False),
        ("2048", 0, False),
        ("4096", 0, False),
        ("8192", 0, False),
        ("16384", 0, False),
    ]
    of_xmma = [r for r in rows if "xmma" in r["short_name"]]
    tiles = ["32x32x8", "32x32x8", "32x32x8", "64x64x8", "64x64x8", "128x64x8", "256x128x8", "256x128x8"]
    assert [r["short_name"].split()[1] for r in of_xmma] == tiles
    assert [r["grid_blocks"] for r in rows] == [16, 256, 64, 256, 128, 128, 128, 512, 2048, 8192]
    assert [r["registers_per_thread"] for r in rows] == [80, 80, 72, 121, 72, 224, 202, 254, 254, 202]
    assert sum(r["share_pct"] for r in rows if r["case"] == "256") == pytest.approx(100)
    assert [r["case"] for r in rows if r.get("ncu_us")] == ["4096"], "ncu captured the headline case only"
    assert all(r["nsys_us"] for r in rows)
    frame = as_frame(rows, LIBRARY_KERNELS, "library_kernels")
    assert list(frame["grid"])[:3] == ["4x4x1", "8x8x4", "8x8x1"]


def test_nsys_tells_the_launch_and_copies_say_so() -> None:
    kernel = launched("void f<int>(int)", "8", grid=(4, 2, 3), block=(32, 4, 1))
    rows = [
        row("nsys_duration_us", "8", "", 0, 8.0, "nsys"),
        row("nsys_kernel_duration_us", "8", "void f<int>(int)", 0, 6.0, "nsys"),
        row("nsys_kernel_duration_us", "8", "Memset", 1, 2.0, "nsys"),
    ]
    trace = [event("Memset", "memset", "8"), event("f", "kernel", "8")]
    parts = list(library_kernels(extract(rows, [kernel], trace)))
    assert [(r["kind"], r["short_name"], r["share_pct"]) for r in parts] == [
        ("kernel", "f", 75.0),
        ("memset", "Memset", 25.0),
    ]
    first = parts[0]
    assert (first["grid"], first["grid_blocks"], first["block"], first["block_threads"]) == (
        "4x2x3",
        24,
        "32x4x1",
        128,
    )


def test_ncu_serves_where_nsys_saw_nothing_and_matches_names_that_differ_in_types() -> None:
    ncu = [row("duration_us", "8", "f(int)", i, 1.5) for i in (0, 1)]
    ncu += [row("grid_blocks", "8", "f(int)", 0, 7.0), row("duration_us", "8", "g()", 2, 4.0)]
    alone = library_kernels(extract(ncu))
    assert [(r["order"], r["short_name"], r["ncu_us"], r["nsys_us"]) for r in alone] == [
        (0, "f", 3.0, None),
        (1, "g", 4.0, None),
    ]
    nsys = [
        row("nsys_kernel_duration_us", "8", "f(unsigned)", 0, 2.0, "nsys"),
        row("nsys_kernel_duration_us", "8", "h(unsigned)", 1, 2.0, "nsys"),
    ]
    both = library_kernels(extract([*ncu, *nsys]))
    assert [(r["short_name"], r.get("ncu_us"), r.get("grid_blocks")) for r in both] == [
        ("f", 3.0, 7),
        ("h", None, None),
    ]


def test_no_capture_gives_no_rows() -> None:
    assert list(library_kernels(extract([row("duration_us", "8", "", 0, None)]))) == []


@pytest.mark.parametrize(
    ("name", "short"),
    [
        (XMMA + "kernel__5x_cublas", "sm80_xmma_gemm_nn 128x64x8 stage3 warps2x2x1"),
        (XMMA + "split_k_kernel__5x_cublas", "sm80_xmma_gemm_nn 128x64x8 stage3 warps2x2x1 split_k"),
        ("void cutlass::Kernel2<cutlass_80_simt_sgemm_256x128>(T1::Params)", "cutlass_80_simt_sgemm_256x128"),
        ("void cub::detail::DeviceReduceKernel<cub::P<float>::Policy, float*>(T2, T3)", "DeviceReduceKernel"),
        ("void (anonymous namespace)::foo(int)", "foo"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("", ""),
    ],
)  # fmt: skip
def test_short_names_keep_what_tells_kernels_apart(name: str, short: str) -> None:
    assert short_name(name) == short
