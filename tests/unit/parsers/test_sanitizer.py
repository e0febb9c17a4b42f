"""Messages of several versions of compute-sanitizer become findings with kind, kernel and source line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplog.parsers.sanitizer import Finding, parse

MEMCHECK = """\
========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 4 bytes
=========     at oob(float *, int)+0x90 in /tmp/kernels/oob.cu:5
=========     by thread (96,0,0) in block (0,0,0)
=========     Access at 0x7f9c1b200180 is out of bounds
=========     and is 1 bytes after the nearest allocation at 0x7f9c1b200000 of size 384 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: warplog_launch [0x1754] in kernel.so
=========
========= Invalid __global__ write of size 4 bytes
=========     at oob(float *, int)+0x90 in /tmp/kernels/oob.cu:5
=========     by thread (97,0,0) in block (0,0,0)
=========     Access at 0x7f9c1b200184 is out of bounds
=========
========= Program hit cudaErrorLaunchFailure (error 719) due to "unspecified launch failure" on CUDA API call to cudaDeviceSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= ERROR SUMMARY: 3 errors
"""  # noqa: E501
RACECHECK = """\
========= COMPUTE-SANITIZER
noise of the program itself: ========= Invalid nothing
========= Error: Race reported between Write access at void tile<(bool)0>(const float *, int)+0x150 in tile.cu:27
=========     and Read access at void tile<(bool)0>(const float *, int)+0x160 in tile.cu:30 [4096 hazards]
=========     and Write access at void tile<(bool)0>(const float *, int)+0x150 in tile.cu:27 [64 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
OLD_RACECHECK = """\
========= COMPUTE-SANITIZER
========= ERROR: Race reported between Read access at 0x6360 in /home/me/convolution.cu:123:convolve(pixel const*, int)
=========     and Write access at 0x1fe0 in /home/me/convolution.cu:63:convolve(pixel const*, int) [1088 hazards]
=========
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
BROKEN_LINE = """\
========= COMPUTE-SANITIZER
========= Error: Race reported between Write access at
=========     race_condition(float *)+0xb0 in demo.cu:28
=========     and Read access at
=========     race_condition(float *)+0xc0 in demo.cu:30
=========     [1024 hazards]
========= RACECHECK SUMMARY: 1 hazard displayed (1 error, 0 warnings)
"""
INITCHECK = """\
========= COMPUTE-SANITIZER
========= Uninitialized __global__ memory read of size 4 bytes
=========     at add(float const *, float *, unsigned long)+0x130 in /input/kernel.cu:8
=========     by thread (0,0,0) in block (0,0,0)
=========     Address 0x7f3c7ec000fc
========= ERROR SUMMARY: 257 errors
========= ERROR SUMMARY: 157 errors were not printed. Use --print-limit option to adjust the number of printed errors
"""
SYNCCHECK = """\
========= COMPUTE-SANITIZER
========= Barrier error detected. Divergent thread(s) in warp.
=========     at __syncwarp(unsigned int)+0xe0 in sm_30_intrinsics.hpp:110
=========     by thread (19,0,0) in block (0,0,0)
=========         Device Frame: broken(float *, unsigned long)+0xb0 in /input/kernel.cu:12
========= Target application returned an error
========= ERROR SUMMARY: 17 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


def test_equal_errors_of_many_threads_are_one_finding_with_a_count():
    report = parse(MEMCHECK)
    write, api = report.findings
    assert write == Finding(
        "invalid_write", "Invalid __global__ write of size 4 bytes", "oob", "oob.cu", 5, 2
    )
    assert (api.kind, api.count) == ("api_error", 1)
    assert report.errors == 3


def test_a_race_names_both_accesses_and_the_first_place():
    (race,) = parse(RACECHECK).findings
    assert (race.kind, race.kernel, race.file, race.line) == ("race", "tile<(bool)0>", "tile.cu", 27)
    assert "and Read access at" in race.message
    assert "tile.cu:30" in race.message
    assert parse(RACECHECK).errors == 1


@pytest.mark.parametrize(
    ("text", "kernel", "file", "line"),
    [
        (OLD_RACECHECK, "convolve", "convolution.cu", 123),
        (BROKEN_LINE, "race_condition", "demo.cu", 28),
        (INITCHECK, "add", "kernel.cu", 8),
        (SYNCCHECK, "broken", "kernel.cu", 12),
    ],
)
def test_places_are_read_in_all_forms(text, kernel, file, line):
    (one,) = parse(text).findings
    assert (one.kernel, one.file, one.line) == (kernel, file, line)


def test_an_error_of_unknown_wording_is_quoted():
    text = CLEAN.replace("0 errors", "2 errors")
    (one,) = parse(text.replace("SANITIZER\n", "SANITIZER\n========= Something new\n")).findings
    assert (one.kind, one.message) == ("other", "Something new")
    assert parse(text).findings == ()


@pytest.mark.parametrize(
    ("summaries", "errors"),
    [
        (["RACECHECK SUMMARY: 2 hazards displayed (3 errors, 1 warnings)"], 3),
        (["RACECHECK SUMMARY: 4 hazards displayed (0 errors, 4 warnings)"], 4),
        (["ERROR SUMMARY: 5 errors", "ERROR SUMMARY: 0 errors"], 5),
        (["ERROR SUMMARY: 257 errors", "ERROR SUMMARY: 357 errors were not printed. Use --print-limit"], 257),
    ],
)
def test_the_number_of_errors_is_the_largest_that_a_summary_names(summaries, errors):
    assert parse("\n".join(f"========= {line}" for line in summaries)).errors == errors


def test_clean_is_told_from_cut():
    assert parse(CLEAN) == parse("program output\n" + CLEAN)
    assert (parse(CLEAN).findings, parse(CLEAN).errors) == ((), 0)
    assert parse(CLEAN.splitlines()[0]).errors is None
    assert parse("").errors is None


@pytest.mark.parametrize("text", [MEMCHECK, RACECHECK, OLD_RACECHECK, INITCHECK, SYNCCHECK])
def test_cut_anywhere_before_its_summary_it_is_incomplete(text):
    end = text.index("SUMMARY")
    for cut in range(0, end, 7):
        assert parse(text[:cut]).errors is None


@given(st.text(alphabet="=Invaldrce Rotp_:+0x()<>[]\n", max_size=400))
def test_any_text_is_read_without_an_error(text):
    for prefix in ("", "========= "):
        parse("\n".join(prefix + line for line in text.split("\n")))
