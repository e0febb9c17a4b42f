"""What was expected at other sizes than the headline case is answered at them."""

from dataclasses import replace

import pytest
from worklog_pages import Page, rung, told

from warplog import worklog
from warplog.worklog.html import html
from warplog.worklog.steps.expectations import Measured, answers, named_cases


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


def answered(expected, ratio=1.07, tied=False, headline="64x64", others=(), gpu="NVIDIA H200"):
    """The answers by case if a variant has a `ratio` over its parent `vectorized` at each case."""
    one = {"vectorized": Measured(ratio, tied, 0.9)} | {
        name: Measured(other, False) for name, other in others
    }
    return answers(
        expected, "vectorized", dict.fromkeys(("64x64", "64x64-bf16", "8x64-bf16"), one), headline, gpu
    )


@pytest.mark.parametrize(
    ("expected", "ratio", "told"),
    [
        ("0.9 to 1.1 times vectorized, which waits", 1.12, "above the expected 0.9 to 1.1 times"),
        ("0.9 to 1.1 times `vectorized`: the same", 1.1, "within the expected 0.9 to 1.1 times"),
        ("0.9 to 1.1 times vectorized.", 0.89, "below the expected 0.9 to 1.1 times"),
        ("1.1 to 1.2 times vectorized on an H200: 50 TFLOP/s", 1.07, "below the expected 1.1 to 1.2 times"),
        ("5 to 10 % faster than vectorized; less power", 1.07, "within the expected gain of 5 to 10 %"),
        ("1.1 to 1.2 times faster than vectorized.", 1.3, "above the expected 1.1 to 1.2 times"),
        ("1.2 times `vectorized` in fp32, twice in bf16", 1.15, "about the expected 1.2 times"),
        ("1.2 times `vectorized` at 64 x 64, at least 0.9 of a copy", 1.02, "below the expected 1.2 times"),
        ("Near a copy; 3/2 times `vectorized`.", 1.08, "below the expected 3/2 times"),
        ("4/3 times its parent: the ring", 1.34, "about the expected 4/3 times"),
        ("Twice as fast as vectorized or better; 32", 3.1, "as expected"),
        ("More than ten times `vectorized` at 64 x 64: 4", 9.0, "below the expected 10 times"),
        ("Faster than `vectorized`; full warps", 0.804, "not as expected"),
        ("Slightly faster than its parent, since", 1.01, "as expected"),
        ("At least as fast as `vectorized`, which", 0.983, "not as expected"),
        ("No faster than vectorized, since", 1.02, "faster than expected"),
        ("Slower than vectorized at 64x64, since", 0.9, "as expected"),
        (
            "2 us less than `vectorized` at any size; faster",
            1.01,
            "not as expected: 0.90 µs less than vectorized",
        ),
        ("1.1 to 1.2 times vectorized on an A100: 50 TFLOP/s", 1.07, ""),
        ("1.08 times vectorized on the GPU it was tuned for", 1.07, ""),
        ("3 to 4 times vectorized at 128 to 512", 1.07, ""),
        ("1.1 to 1.3 times vectorized where reading is the limit", 1.07, ""),
        ("Twice `vectorized` or more at 128 columns", 1.07, ""),
        ("10 to 50 times faster than global_atomics.", 1.07, ""),
        ("1.1 to 1.2 times naive", 1.07, ""),
        ("Faster at 8192 and above", 1.07, ""),
        ("Faster.", 1.07, ""),
    ],
)
def test_an_expectation_that_can_be_read_is_answered_and_nothing_else(expected, ratio, told):
    assert answered(expected, ratio).get("64x64", "") == told


def test_an_expectation_in_bf16_is_answered_at_the_bf16_case_only():
    expected = (
        "1.35 times `vectorized` at 8 x 64 bf16 and 1.15 times at 64 x 64 fp32: 0.9. 2 times at 64 x 64 bf16."
    )
    assert answered(expected, 1.16) == {
        "8x64-bf16": "below the expected 1.35 times",
        "64x64": "about the expected 1.15 times",
        "64x64-bf16": "below the expected 2 times",
    }
    assert answered("1.3 times `vectorized` in fp32.", headline="64x64-bf16") == {}
    assert answered("1.3 times `vectorized` at 64 x 64 fp16.") == {}, "no such case"


def test_a_comparison_with_other_variants_than_the_parent_names_them():
    others = {"shuffle": 0.44, "stride": 0.14}
    assert answered("Between `shuffle` and `stride`: n", others=others.items()) == {
        "64x64": "not as expected: slower than both"
    }
    assert answered("Between shuffle and vectorized", others=others.items()) == {"64x64": "as expected"}
    assert answered("Faster than shuffle, since", others=others.items()) == {
        "64x64": "not as expected: 0.440x the speed of shuffle"
    }
    assert answered("1.5 times stride.", others=others.items())["64x64"] == (
        "0.140x the speed of stride, below the expected 1.5 times"
    )
    assert answered("The slowest of the ladder; few", 0.8, others={"atomics": 1.6, "more": 1.2}.items()) == {
        "64x64": "not as expected: atomics and more are slower"
    }
    assert answered("The slowest of the ladder", 0.8) == {"64x64": "as expected"}


def test_a_tie_is_neither_faster_nor_slower():
    assert answered("Faster than vectorized", 1.01, tied=True) == {"64x64": "not as expected"}
    assert answered("No faster than vectorized", 1.01, tied=True) == {"64x64": "as expected"}
    assert answered("At least as fast as vectorized", 0.99, tied=True) == {"64x64": "as expected"}


def test_the_answer_is_shown_and_an_expectation_without_a_range_has_none(recorded, tmp_path):
    expects = recorded.variants.assign(expected="2 to 3 times vectorized; fewer registers")
    page = told(replace(recorded, variants=expects))
    assert rung(page, "warptile").answer == "below the expected 2 to 3 times"
    assert "; below the expected 2 to 3 times" in worklog.markdown(page, tmp_path)
    assert "; below the expected 2 to 3 times" in Page(html(page)).text


def test_a_step_that_is_faster_at_the_headline_case_only_says_where_it_is_slower(recorded):
    rows = recorded.measurements.copy()
    expects = recorded.variants.assign(expected="Faster than vectorized.")
    for case, ratio in (("1024", 0.5), ("2048", 0.9), ("512", 0.99)):
        parent = rows.loc[(rows["variant"] == "vectorized") & (rows["case"] == case), "median_us"].iloc[0]
        hit = (rows["variant"] == "warptile") & (rows["case"] == case)
        for column in ("median_us", "q1_us", "q3_us"):
            rows.loc[hit, column] = parent / ratio
    cases = len(rows[rows["variant"] == "warptile"])
    tables = replace(recorded, variants=expects, measurements=rows)
    answer = rung(told(tables), "warptile").answer
    assert answer == f"as expected; slower at 2 of {cases} cases, 0.500x at 1024", "0.99 is no loss to tell"
    rows.loc[(rows["variant"] == "warptile") & (rows["case"] == "4096"), ["median_us", "q1_us", "q3_us"]] *= 2
    assert rung(told(tables), "warptile").answer == "not as expected"
