"""What was expected at other sizes than the headline case is answered at them."""

import re
from dataclasses import replace

import pytest
from warplog.worklog.steps.expectations import Measured, answers, named_cases
from worklog_pages import Page, rung, told

from warplog import worklog
from warplog.worklog.html import html


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
    assert rung(page, "naive").elsewhere[1][0].endswith(" %"), "of the baseline, without a parent"


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
    """That the two are tied stands beside the answer."""
    assert answered("Faster than vectorized", 1.01, tied=True) == {"64x64": "faster was expected"}
    assert answered("Slightly faster than its parent", 0.99, tied=True) == {
        "64x64": "slightly faster was expected"
    }
    assert answered("Slower than vectorized, since", 0.99, tied=True) == {"64x64": "slower was expected"}
    assert answered("No faster than vectorized", 1.01, tied=True) == {"64x64": "as expected"}
    assert answered("At least as fast as vectorized", 0.99, tied=True) == {"64x64": "as expected"}


def compared(expected, ratio, ends, headline="4096", **others):
    """The answers for a ratio over the parent that lies between `ends` within noise, at 2048 to 8192."""
    one = Measured(ratio, ends[0] <= 1 <= ends[1], ends=ends)
    known = {"parent": one} | {name: Measured(other, False) for name, other in others.items()}
    return answers(
        expected, "parent", dict.fromkeys(("2048", "4096", "8192"), known), headline, "NVIDIA H200"
    )


@pytest.mark.parametrize(
    ("expected", "ratio", "ends", "told"),
    [
        ("0 to 3 % faster than parent", 0.997, (0.99, 1.01), "within noise of the expected gain of 0 to 3 %"),
        ("0 to 3 % faster than parent", 0.997, (0.99, 0.999), "below the expected gain of 0 to 3 %"),
        ("0 to 3 % faster than parent", 1.04, (1.029, 1.06), "within noise of the expected gain of 0 to 3 %"),
        ("1.1 to 1.3 times parent", 1.02, (0.98, 1.05), "below the expected 1.1 to 1.3 times"),
        ("1.1 to 1.3 times parent", 1.09, (1.05, 1.11), "within noise of the expected 1.1 to 1.3 times"),
        ("1.2 times parent", 1.11, (1.0, 1.21), "within noise of the expected 1.2 times"),
        ("1.2 times parent", 1.27, (1.21, 1.3), "above the expected 1.2 times"),
        ("1.2 times parent", 1.25, (1.21, 1.3), "about the expected 1.2 times"),
        ("At least 1.2 times parent", 1.19, (1.1, 1.21), "within noise of the expected 1.2 times"),
        ("At most 2 % faster than parent", 0.9, (0.8, 1.0), "as expected"),
        ("At most 2 % faster than parent", 1.05, (1.03, 1.06), "above the expected gain of 2 %"),
    ],
)
def test_what_lies_within_noise_of_an_expected_range_is_called_that(expected, ratio, ends, told):
    assert compared(expected, ratio, ends) == {"4096": told}


@pytest.mark.parametrize(
    ("expected", "ratio", "told"),
    [
        ("The same time and the same number of loads as parent (Boehm).", 1.03, "about as expected"),
        ("As fast as `parent`: the same algorithm", 0.9, "not as expected"),
        ("The time of padded, and no excess", 1.5, "about as expected: 0.960x the speed of padded"),
        ("2.9 to 3.1 times parent; faster than CUB, which", 3.0, "within the expected 2.9 to 3.1 times; as expected:"
         " 1.02x the speed of cub"),
        ("Slower than other at 4096, since", 1.2, "as expected: 0.800x the speed of other"),
        ("Near: at least 0.95 times cuBLAS, since", 1.2, "0.970x the speed of cublas, as expected"),
        ("As fast as a copy", 1.0, ""),
        ("As fast as parent where rows are short", 1.0, ""),
    ],
)  # fmt: skip
def test_an_expectation_that_names_a_variant_is_answered_by_it(expected, ratio, told):
    others = {"padded": 0.96, "cub": 1.02, "other": 0.8, "cublas": 0.97}
    assert compared(expected, ratio, (ratio, ratio), **others).get("4096", "") == told


def test_a_tie_with_another_variant_than_the_parent_is_said_with_the_answer():
    known = {"4096": {"parent": Measured(1.2, False), "cub": Measured(1.01, True)}}
    assert answers("Faster than CUB.", "parent", known, "4096", "NVIDIA H200") == {
        "4096": "1.01x the speed of cub, tied within noise: faster was expected"
    }


def test_no_gain_is_expected_at_the_sizes_that_are_named():
    lost = compared("Faster at 8192 and above, where; no gain at 2048", 0.9, (0.9, 0.9))
    assert lost == {"8192": "not as expected", "2048": "as expected"}
    assert compared("3 to 4 times parent at 2048; no gain from 4096 on", 1.2, (1.2, 1.2)) == {
        "2048": "below the expected 3 to 4 times", "4096": "faster than expected", "8192": "faster than expected"
    }  # fmt: skip
    assert compared("0 to 3 % faster than parent at 8192; no gain below, where", 0.99, (0.99, 0.99)) == {
        "8192": "below the expected gain of 0 to 3 %", "2048": "as expected", "4096": "as expected"
    }  # fmt: skip


def test_a_speed_that_was_expected_on_this_gpu_is_set_beside_its_own():
    tflops = {
        "4096": Measured(368.9, False, ends=(360.0, 370.0)),
        "8192": Measured(640.0, False, ends=(630.0, 680.0)),
    }

    def told(expected, gpu="NVIDIA H200"):
        return answers(expected, "parent", {"4096": {}, "8192": {}}, "4096", gpu, tflops)

    assert told(
        "317 TFLOP/s on an H100 (Gordic). Public kernels of this kind reach 376 TFLOP/s at 4096 on an H200."
    ) == {"4096": "about the expected 376 TFLOP/s"}
    assert told("the public kernel reaches 454 TFLOP/s at 4096 and 679 at 8192 on an H200.") == {
        "4096": "below the expected 454 TFLOP/s",
        "8192": "within noise of the expected 679 TFLOP/s",
    }
    assert told("Fast: 300 TFLOP/s at 4096 on an H200") == {"4096": "above the expected 300 TFLOP/s"}
    assert told("300 TFLOP/s at 4096 on an H200", "NVIDIA H100 80GB") == {}
    assert told("300 TFLOP/s at 1024 on an H200") == {}, "no such case"


def test_an_expectation_about_a_number_of_columns_or_a_type_is_answered_at_these_cases():
    cases = ("4096x4096", "4096x4096-bf16", "64x128", "64x128-bf16")
    known = {case: {"a": Measured(2.5, False)} for case in cases}
    assert answers("Twice `a` or more at 128 columns, where", "a", known, "4096x4096", "H200") == {
        "64x128": "as expected",
        "64x128-bf16": "as expected",
    }
    assert answers("2.4 times `a` in fp32, twice in bf16, where", "a", known, "4096x4096", "H200") == {
        "4096x4096": "about the expected 2.4 times",
        "4096x4096-bf16": "above the expected 2 times",
    }
    assert named_cases("at 128 columns", cases) == ("64x128", "64x128-bf16")
    sizes = ("64", "128", "256", "512", "1024")
    assert named_cases("3 to 4 times `a` at 128 to 512", sizes) == ("128", "256", "512")
    assert named_cases("3 to 4 times `a` at 512 to 128", sizes) == ("128", "256", "512")
    assert named_cases("from 2048 on; from 1 MiB on", ("1", "1024", "2048", "4096")) == ("2048", "4096")


def test_the_answer_is_shown_and_an_expectation_without_a_range_has_none(recorded, tmp_path):
    expects = recorded.variants.assign(expected="2 to 3 times vectorized; fewer registers")
    page = told(replace(recorded, variants=expects))
    assert rung(page, "warptile").answer == "below the expected 2 to 3 times"
    assert "; below the expected 2 to 3 times" in worklog.markdown(page, tmp_path)
    assert "; below the expected 2 to 3 times" in Page(html(page)).text


def test_the_words_of_an_answer_are_explained_where_they_occur(recorded):
    def notes(expected):
        return " ".join(told(replace(recorded, variants=recorded.variants.assign(expected=expected))).notes)

    assert "means within 5 % of the expected value" in notes("1.3 times vectorized")
    assert "means within 5 %" not in notes("0.1 to 9 times vectorized")
    assert "means within 5 %" not in notes("Faster than vectorized")


def test_a_step_that_is_faster_at_the_headline_case_only_says_where_it_is_slower(recorded):
    rows = recorded.measurements.copy()
    expects = recorded.variants.assign(expected="Faster than vectorized.")
    for case, ratio in (("1024", 0.5), ("2048", 0.9), ("512", 0.99)):
        parent = rows.loc[(rows["variant"] == "vectorized") & (rows["case"] == case), "median_us"].iloc[0]
        hit = (rows["variant"] == "warptile") & (rows["case"] == case)
        for column in ("median_us", "process_min_us", "process_max_us"):
            rows.loc[hit, column] = parent / ratio
    cases = len(rows[(rows["variant"] == "vectorized") & (rows["status"] == "ok")])
    tables = replace(recorded, variants=expects, measurements=rows)
    answer = rung(told(tables), "warptile").answer
    assert answer == (
        f"as expected; slower than vectorized by more than 2 % at 2 of {cases} cases, 0.500x at 1024"
    ), "0.99 is no loss to tell"
    named = tables.variants.assign(expected="Faster than vectorized, at 1024 too.")
    step = rung(told(replace(tables, variants=named)), "warptile")
    assert step.answer == f"as expected; slower than vectorized by more than 2 % at 2 of {cases} cases"
    assert step.elsewhere == (("0.500x", "at 1024"),), "which says the worst"
    rows.loc[
        (rows["variant"] == "warptile") & (rows["case"] == "4096"),
        ["median_us", "process_min_us", "process_max_us"],
    ] *= 2
    answer = rung(told(tables), "warptile").answer
    assert re.fullmatch(
        rf"not as expected; faster than vectorized by more than 2 % at \d of {cases} cases, \S+x at \d+",
        answer,
    )
