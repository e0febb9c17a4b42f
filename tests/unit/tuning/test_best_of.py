"""The table of best_of follows the measurements: the fastest variant per case, also for older GPUs."""

import re
import shutil
from pathlib import Path

import pandas as pd
import pytest

import shipped_families
from sass_builds import Kind, built
from warplog.catalog import family as catalog
from warplog.catalog import winners
from warplog.cli import main
from warplog.core.errors import WarplogError
from warplog.measure.tuning import best_of
from warplog.records.config import Config
from warplog.tables import view

PROJECT = Path(__file__).parents[3]
TABLES = PROJECT / "results" / "recorded" / Config().recorded / "tables"
FAMILY = shipped_families.FAMILIES["sgemm"]
# Time in us at 256, 1024 and 4096.
TIMES = {
    "warptile": (40, 150, 3088),
    "split_k": (9, 60, 3400),
    "cp_async_pipelined": (38, 147, 2970),
    "stream_k": (12, 50, 2500),
    "cublas": (1, 1, 1),  # the baseline is never called, and neither is best_of itself
    "best_of": (1, 1, 1),
}


def measurements(times=TIMES):
    rows = [
        {"variant": variant, "case": case, "median_us": us, "status": "ok"}
        for variant, all_us in times.items()
        for case, us in zip(("256", "1024", "4096"), all_us, strict=True)
    ]
    rows.append({"variant": "naive", "case": "256", "median_us": 0.1, "status": "wrong"})
    return pd.DataFrame(rows).assign(campaign="h200-1", gpu_name="NVIDIA H200")


def branches(text):
    """Returns {minimum architecture: {M: variant}}."""
    parts = re.split(r"^#(?:el)?if __CUDA_ARCH_LIST__ >= (\d+)$", text, flags=re.MULTILINE)[1:]
    row = re.compile(r"^ +\{(\d+), (?:\d+, )+(\w+)::launch_", re.MULTILINE)
    return {
        int(arch): {int(m): name for m, name in row.findall(body)}
        for arch, body in zip(parts[::2], parts[1::2], strict=True)
    }


def test_each_case_has_the_fastest_variant_that_the_architecture_can_run():
    text = best_of.text(FAMILY, measurements(), 132)
    assert branches(text) == {
        900: {256: "split_k", 1024: "stream_k", 4096: "stream_k"},
        800: {256: "split_k", 1024: "split_k", 4096: "cp_async_pipelined"},
        750: {256: "split_k", 1024: "split_k", 4096: "warptile"},
    }
    assert "h200-1, NVIDIA H200" in text
    assert "MULTIPROCESSORS = 132" in text


def test_variants_get_their_parameters_from_the_family():
    text = best_of.text(FAMILY, measurements(), 132)
    for name, value in FAMILY.variant("stream_k").parameters.items():
        assert re.search(rf"\b{name} = {value}\b", text)


def test_without_any_time_there_is_an_error():
    with pytest.raises(WarplogError, match="run a campaign"):
        best_of.text(FAMILY, measurements({"cublas": (1, 1, 1)}), 132)


def test_the_committed_table_is_what_the_command_writes_except_for_close_times(tmp_path, monkeypatch):
    """A campaign runs with the table of an earlier one; of two equally fast variants, either may win."""
    kernels = tmp_path / "kernels" / "sgemm"
    shutil.copytree(FAMILY.folder, kernels)
    (tmp_path / "Snakefile").touch()
    (kernels / "best_of.cuh").unlink()
    monkeypatch.chdir(tmp_path)
    assert main.main(["best-of", "sgemm", str(TABLES)]) == 0
    fresh, kept = (branches((folder / "best_of.cuh").read_text()) for folder in (kernels, FAMILY.folder))
    assert {arch: set(rows) for arch, rows in kept.items()} == {
        arch: set(rows) for arch, rows in fresh.items()
    }
    rows = view.load(TABLES, "sgemm").measurements.set_index(["variant", "case"])["median_us"]
    for arch, chosen in kept.items():
        for m, name in chosen.items():
            assert rows[name, str(m)] <= 1.03 * rows[fresh[arch][m], str(m)], (arch, m, name)


def test_the_committed_table_has_the_tuned_parameters():
    text = (FAMILY.folder / "best_of.cuh").read_text()
    family = winners.with_winners({"sgemm": FAMILY}, "h200")["sgemm"]
    for name in {name for rows in branches(text).values() for name in rows.values()}:
        constants = re.search(rf"^namespace {name} \{{\nconstexpr int ([^;]+);", text, re.MULTILINE)[1]
        written = dict(pair.split(" = ") for pair in constants.split(", "))
        assert {key: int(number) for key, number in written.items()} == dict(family.variant(name).parameters)


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_75", "sm_90"])
def test_a_table_of_many_variants_compiles(tmp_path, arch):
    shutil.copytree(FAMILY.folder.parent, tmp_path / "kernels")
    family = catalog.load_family(tmp_path / "kernels" / "sgemm" / "family.yaml")
    header = family.folder / "best_of.cuh"
    header.write_text(best_of.text(family, measurements(), 132))
    variant = family.variant("best_of")
    assert {"split_k.cu", "stream_k.cu", "tma_tiles.cuh"} <= {path.name for path in variant.headers()}
    kind = None if arch == "sm_90" else Kind.RESOURCES
    folder, record = built(family, variant, arch, tmp_path / "builds", kind)
    assert record.status == "ok", record.reason
    assert "warning" not in (folder / "compile.log").read_text()
    called = {"sm_75": {"warptile", "split_k"}, "sm_90": {"stream_k", "split_k"}}[arch]
    for name in called:
        assert any(name in kernel.mangled for kernel in record.kernels), name
