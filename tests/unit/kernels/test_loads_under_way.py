"""What keeps the memory busy, in machine code: loads under way together, registers that leave room for blocks."""

import pytest

from sass_builds import assert_as_expected, builder, code
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
    most = found = 0
    for line in code(builds[name][0]):
        found = 0 if user in line else found + (load in line)
        most = max(most, found)
    return most


@pytest.mark.parametrize(
    ("family", "name"), [(family, name) for family in WATCHED for name in WATCHED[family]]
)
def test_compiles_to_what_family_yaml_expects(builds, family, name):
    assert_as_expected(FAMILIES[family].variant(name), *builds[name])


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
    (kernel,) = [k for k in builds["decoupled_lookback"][1]["kernels"] if "<true>" in k["kernel"]]
    assert kernel["registers_per_thread"] <= 32
