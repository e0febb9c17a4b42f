"""What was expected at other sizes than the headline case is answered at them."""

from dataclasses import replace

import pytest
from worklog_pages import Page, rung, told

from warplog import worklog
from warplog.worklog.html import html
from warplog.worklog.steps.expectations import answer, named_cases


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
    shown = f"**{ratio:#.3g}x** at 8192; **no time** at 1024"
    assert shown in worklog.markdown(page, tmp_path)
    assert shown.replace("*", "") in Page(html(page)).text
    assert rung(page, "naive").elsewhere[0][0].endswith(" %"), "of the baseline, without a parent"


@pytest.mark.parametrize(
    ("text", "cases"),
    [
        ("faster at 8192 and 16384; no gain at 1024", ("8192", "16384", "1024")),
        ("3 to 4 times a at 128 to 512 (on an H200)", ("128", "512")),
        ("Faster at 8192 and above", ("8192", "16384")),
        ("0.9 of a copy at 65536 x 128.", ("65536x128",)),
        ("Slow. At 4096 x 4096: 4 sectors", ("4096x4096",)),
        ("654 at 4096 and 679 at 8192", ("4096", "8192")),
        ("1 KiB for 8192 FLOP; at 128/128/16/8/8; at 512.5 and 1024-skewed", ()),
    ],
)
def test_the_sizes_that_an_expectation_names_are_found(text, cases):
    known = ("128", "512", "1024", "4096", "8192", "16384", "65536x128", "4096x4096")
    assert named_cases(text, known) == cases


@pytest.mark.parametrize(
    ("expected", "ratio", "told"),
    [
        ("0.9 to 1.1 times vectorized, which waits", 1.12, "above the expected 0.9 to 1.1 times"),
        ("0.9 to 1.1 times `vectorized`: the same", 1.1, "within the expected 0.9 to 1.1 times"),
        ("0.9 to 1.1 times vectorized.", 0.89, "below the expected 0.9 to 1.1 times"),
        ("1.1 to 1.2 times vectorized on an H200: 50 TFLOP/s", 1.07, "below the expected 1.1 to 1.2 times"),
        ("5 to 10 % faster than vectorized; less power", 1.07, "within the expected 5 to 10 % faster"),
        ("1.1 to 1.2 times vectorized on an A100: 50 TFLOP/s", 1.07, ""),
        ("3 to 4 times vectorized at 128 to 512", 1.07, ""),
        ("1.1 to 1.3 times vectorized where reading is the limit", 1.07, ""),
        ("10 to 50 times faster than global_atomics.", 1.07, ""),
        ("1.1 to 1.2 times naive", 1.07, ""),
        ("Faster.", 1.07, ""),
    ],
)
def test_a_range_over_the_parent_is_answered_and_nothing_else(expected, ratio, told):
    assert answer(expected, "vectorized", ratio, "NVIDIA H200") == told


def test_the_answer_is_shown_and_an_expectation_without_a_range_has_none(recorded, tmp_path):
    expects = recorded.variants.assign(expected="2 to 3 times vectorized; fewer registers")
    page = told(replace(recorded, variants=expects))
    assert rung(page, "warptile").answer == "below the expected 2 to 3 times"
    assert "; below the expected 2 to 3 times" in worklog.markdown(page, tmp_path)
    assert "; below the expected 2 to 3 times" in Page(html(page)).text
    assert not rung(page, "naive").answer, "it has no parent"
