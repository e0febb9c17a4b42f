"""What keeps the memory busy, in machine code: loads under way together, registers that leave room for blocks."""

import re

import pytest

from sass_builds import builder, check
from shipped_families import FAMILIES

WATCHED = {
    "scan": ("decoupled_lookback", "warp_specialised"),
    "reduction": ("float4",),
    "histogram": ("vectorized_in_flight",),
    "dsmem": ("cluster_8", "passes"),
}

pytestmark = pytest.mark.nvcc


@pytest.fixture(scope="module")
def builds(kept_builds):
    return {
        name: built
        for family, names in WATCHED.items()
        for name, built in builder(FAMILIES[family], kept_builds, names)("sm_90").items()
    }


def together(builds, name, load, user):
    """The most instructions of the kind `load` with none of the kind `user` between them."""
    text = (builds[name][0] / "kernel.sass").read_text()
    most = found = 0
    for line in re.findall(r"^\s+/\*[0-9a-f]{4,5}\*/\s+(.*?)\s*;", text, re.MULTILINE):
        found = 0 if user in line else found + (load in line)
        most = max(most, found)
    return most


@pytest.mark.parametrize("family", WATCHED)
def test_compiles_and_keeps_what_family_yaml_expects(builds, family):
    for variant in (v for v in FAMILIES[family].variants if v.name in WATCHED[family]):
        check(variant, *builds[variant.name])


@pytest.mark.parametrize(
    ("name", "load", "user"),
    [
        ("float4", "LDG.E.128", "FADD"),
        ("vectorized_in_flight", "LDG.E.128", "ATOMS"),
        ("cluster_8", "LDG.E.CONSTANT", "ATOM"),
        ("passes", "LDG.E.CONSTANT", "ATOMS"),
        ("warp_specialised", "LDG.E.64.STRONG", "FADD"),
    ],
)
def test_four_loads_are_under_way_before_the_first_is_used(builds, name, load, user):
    assert together(builds, name, load, user) >= 4


def test_a_scan_leaves_room_for_the_blocks_it_was_made_for(builds):
    """Eight blocks of 256 threads have 32 registers a thread."""
    (kernel,) = [k for k in builds["decoupled_lookback"][1].kernels if "<true>" in k.kernel]
    assert kernel.registers_per_thread <= 32
