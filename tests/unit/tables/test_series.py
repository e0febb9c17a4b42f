"""Which cases a line may join."""

import pytest

from warplog.tables.series import series


@pytest.mark.parametrize(
    ("sizes", "headline", "joined"),
    [
        ({"64Ki": 65536, "1Mi": 2**20, "256Ki": 2**18}, "1Mi", ["64Ki", "256Ki", "1Mi"]),
        ({"1024": 1024, "8191x8193": 8191, "8192": 8192}, "8192", ["1024", "8192"]),
        ({"64Mi": 2**26, "64Mi-skewed": 2**26, "4Mi": 2**22}, "64Mi", ["4Mi", "64Mi"]),
        (
            {"1024x1024": 8, "4096x4096": 128, "4096x8192": 256},
            "4096x4096",
            ["1024x1024", "4096x4096", "4096x8192"],
        ),
        ({"16384x1024": 64, "4096x4096": 64.5, "1024x32768": 128}, "4096x4096", []),
        ({"1x65536": 1, "16384x1024": 2, "4096x4096-bf16": 1}, "1x65536", []),
        ({"128x64": 8192, "64x128": 8192}, "128x64", []),
        ({"small": 1, "large": 2}, "large", ["small", "large"]),
    ],
)
def test_only_sizes_in_an_order_form_a_series(sizes, headline, joined):
    assert series(sizes, headline) == joined
