"""What the machine code of planted pairs tells of what is planted in them."""

import pytest

from sass_builds import built
from shipped_families import FAMILIES
from warplog.analysis.mechanisms.code import dependent, loads_in_flight, overlapped
from warplog.parsers import loops, sass
from warplog.parsers.instruction import parse

CAUSES = FAMILIES["causes"]
SPINS = 100  # iterations of an inner loop for each of the outer one

pytestmark = pytest.mark.nvcc


@pytest.fixture
def regions(kept_builds):
    """Returns the loops of a variant's kernel: their instructions by address."""

    def of_variant(name):
        variant = next(v for v in CAUSES.variants if v.name == name)
        folder, _ = built(CAUSES, variant, "sm_90", kept_builds)
        lines = sass.instructions((folder / "kernel.sass").read_text(), variant.file.stem)
        code = [(int(address, 16), text) for address, _, text in (line.partition("  ") for line in lines)]
        return [
            {place: parse(code[place][1]) for place in region.places}
            for region in loops.regions(code)
            if region.iterates
        ]

    return of_variant


@pytest.mark.parametrize("rings", [1, 2, 4, 8])
def test_rings_that_are_followed_at_a_time_are_loads_in_flight(regions, rings):
    most = max(loads_in_flight(list(loop.values()), repeats=True) for loop in regions(f"chase_{rings}"))
    assert most == rings


def test_eight_chains_of_128_products_are_16_that_wait_for_each_other(regions):
    assert 16 in [dependent(list(loop.values()), repeats=True) for loop in regions("chains_warps_8")]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("load_and_wait", 0, 0.05),
        ("load_and_wait_long", 0, 0.05),
        ("load_ahead", 0.95, 1),
        ("load_ahead_long", 0.95, 1),
    ],
)
def test_a_tile_that_is_loaded_ahead_is_in_flight_during_the_computation(regions, name, low, high):
    found = regions(name)
    copies = any(i.kind == "ldgsts" for loop in found for i in loop.values())
    executed = {
        place: 1 if any(i.kind == "ldgsts" for i in loop.values()) else SPINS
        for loop in found
        for place in loop
    }
    code = {place: instruction for loop in found for place, instruction in loop.items()}
    places = sorted(code)
    share = overlapped([code[place] for place in places], [executed[place] for place in places])
    assert copies
    assert low <= share <= high
