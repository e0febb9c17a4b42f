"""What was expected at other sizes than the headline case is answered at them."""

from dataclasses import replace

import pytest
from worklog_pages import Page, rung, told

from warplog import worklog
from warplog.worklog.html import html
from warplog.worklog.ladder import named_cases


def test_an_expectation_about_other_sizes_is_answered_at_them(recorded, tmp_path):
    rows = recorded.measurements
    times = rows.set_index(["variant", "case"])["median_us"]
    missing = rows.assign(
        status=rows["status"].where((rows["variant"] != "warptile") | (rows["case"] != "1024"), "wrong")
    )
    expects = recorded.variants.assign(expected="0 to 3 % faster at 4096, 8192 and 1024; 512 B at a time")
    page = told(replace(recorded, variants=expects, measurements=missing))
    step = rung(page, "warptile")
    ratio = times["vectorized", "8192"] / times["warptile", "8192"]
    assert step.elsewhere == ((f"{ratio:#.3g}x", "at 8192"), ("no time", "at 1024"))
    shown = f"**{ratio:#.3g}x** at 8192; **no time** at 1024;"
    assert shown in worklog.markdown(page, tmp_path)
    assert shown.replace("*", "") in Page(html(page)).text
    assert rung(page, "naive").elsewhere[0][0].endswith(" %"), "of the baseline, without a parent"


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ("faster at 8192 and 16384; no gain at 1024", ("8192", "16384", "1024")),
        ("3 to 4 times a at 128 to 512 (on an H200)", ("128", "512")),
        ("0.9 of a copy at 65536 x 128.", ("65536x128",)),
        ("Slow. At 4096 x 4096: 4 sectors", ("4096x4096",)),
        ("654 at 4096 and 679 at 8192", ("4096", "8192")),
        ("1 KiB for 8192 FLOP; at 128/128/16/8/8; at 512.5 and 1024-skewed", ()),
    ],
)
def test_the_sizes_that_an_expectation_names_are_found(text, cases):
    known = ("128", "512", "1024", "4096", "8192", "16384", "65536x128", "4096x4096")
    assert named_cases(text, known) == cases
