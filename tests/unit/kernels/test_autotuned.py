"""The search space of sgemm/autotuned: its settings, and that they compile without warnings."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from msgspec import structs

from sass_builds import Kind, built
from shipped_families import FAMILIES
from warplog.catalog.space import name_of
from warplog.parsers import sass

FAMILY = FAMILIES["sgemm"]
VARIANT = FAMILY.variant("autotuned")
SPACE = VARIANT.tune
NAMES = ("BM", "BN", "BK", "TM", "TN")
# Thread tiles of 2, 4, 8 and 16, few and many threads, the largest BK, and the best settings of two other GPUs.
SAMPLE = [
    (32, 128, 64, 4, 2),
    (64, 128, 16, 2, 16),
    (128, 256, 16, 8, 8),
    (64, 64, 16, 4, 4),
    (256, 32, 8, 8, 16),
]


def test_space_has_the_published_settings_first_and_some_hundreds_of_valid_ones() -> None:
    settings = [tuple(s.values()) for s in SPACE.settings()]
    assert settings[:2] == [(128, 128, 16, 8, 8), (64, 64, 16, 4, 4)]
    assert 300 <= len(settings) == len(set(settings)) <= 500
    assert set(SAMPLE) <= set(settings)


def test_order_is_reproducible_and_not_sorted_by_value() -> None:
    names = [name_of(s) for s in SPACE.settings()]
    assert names == [name_of(s) for s in SPACE.settings()]
    assert names != sorted(names)
    assert len({s["BM"] for s in SPACE.settings()[:20]}) == len(SPACE.values["BM"])


def test_every_setting_satisfies_the_assertions_of_the_kernel() -> None:
    for s in SPACE.settings():
        bm, bn, bk, tm, tn = (s[name] for name in NAMES)
        threads = SPACE.block_threads(s)
        assert threads == (bm // tm) * (bn // tn)
        assert bm % tm == bn % tn == bk % 4 == threads % 32 == 0
        assert threads <= 1024
        assert bm * bk % (4 * threads) == bk * bn % (4 * threads) == 0
        assert 4 * bk * (bm + bn) <= 48 * 1024


def test_every_setting_of_the_warp_tile_satisfies_the_assertions_of_its_kernel() -> None:
    space = FAMILY.variant("warptile_autotuned").tune
    settings = space.settings()
    assert settings[1] == {
        **settings[1],
        "BM": 128,
        "BN": 128,
        "WM": 64,
        "WN": 64,
        "WN_PASSES": 4,
    }  # the published one
    assert 200 <= len(settings) == len({name_of(s) for s in settings}) <= 400
    for s in map(space.parameters, settings):
        bm, bn, bk, wm, wn, tm, tn = (s[name] for name in ("BM", "BN", "BK", "WM", "WN", "TM", "TN"))
        threads = bm // wm * (bn // wn) * 32
        rows = wm * wn // (32 * tm * tn * s["WN_PASSES"])  # of passes
        lanes_m, lanes_n = wm // rows // tm, wn // s["WN_PASSES"] // tn
        assert bm % wm == bn % wn == wm % (rows * tm) == wn % (s["WN_PASSES"] * tn) == 0
        assert (lanes_m * lanes_n, lanes_m % 2, lanes_n % 2) == (32, 0, 0)
        assert bm * bk % (4 * threads) == bk * bn % (4 * threads) == threads % (bn // 4) == bk % 8 == 0
        assert bm % (threads // 2) == 0 or threads // 2 % bm == 0
        assert 4 * bk * (bm + bn) <= 48 * 1024


@pytest.mark.nvcc
@pytest.mark.parametrize("arch", ["sm_90", "sm_75"])
def test_settings_compile_without_warnings_or_spills_to_the_widest_loads(
    arch: str, kept_builds: Path
) -> None:
    def one(values: tuple[int, ...]) -> None:
        setting = dict(zip(NAMES, values, strict=True))
        variant = structs.replace(VARIANT, parameters=SPACE.parameters(setting))
        folder, record = built(FAMILY, variant, arch, kept_builds, Kind.KERNELS)
        assert record.status == "ok", record.reason
        assert not re.search(r"\bwarning\b", (folder / "compile.log").read_text())
        assert len(record.kernels) == 2
        for kernel in record.kernels:
            assert kernel.spill_store_bytes == kernel.spill_load_bytes == 0
            widths = {code.rsplit(".", 1)[-1] for code in kernel.opcodes if code.startswith("LDS")}
            assert widths == ({"128", "64"} if 2 in values[3:] else {"128"})
        wide = max(record.kernels, key=lambda k: sass.matching(k.opcodes, "LDG.E.128"))
        assert sass.matching(wide.opcodes, "LDG.E.128") > 0

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, SAMPLE))
