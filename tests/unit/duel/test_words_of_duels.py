"""The line of a verdict, and the notes below it."""

from msgspec import structs

from made_up_duels import DUEL, JUDGED, SIDE, WINDOW, failed
from warplog.analysis.verdicts import Verdict
from warplog.duel import words
from warplog.duel.watch import Saved
from warplog.records.requested.duel import Counter


def test_one_line_says_word_sides_case_ratio_interval_times_and_effort() -> None:
    assert words.lines(DUEL)[0] == (
        "SLOWER  warptile against HEAD:warptile, sgemm 2048 at rest: +0.50 % (+0.40 % to +0.60 %) in time;"
        " 100 to 100.5 us; 4 processes, 3.0 s"
    )


def test_a_save_is_a_line_with_its_time_verdicts_seconds_and_the_session() -> None:
    verdict = Verdict("FASTER", "", 137.2, 0.9, 0.89, 0.91, 0.001, 1e-6)
    saved = Saved("ok", "", 123.456, 3.21, 2.5, {"right": verdict})
    assert words.saved_line(saved, [200.0, 0.0, 123.456]) == (
        "123.46 us  FASTER against right: -10.00 % (-11.00 % to -9.00 %)  (compiled in 3.2 s, judged in 2.5 s)  █x▁"
    )
    failed = Saved("compile_error", "mine.cu(3): error: expected a ;", compile_s=1.0)
    line = "compile_error: mine.cu(3): error: expected a ;  (compiled in 1.0 s)  x"
    assert words.saved_line(failed, [0.0]) == line


def test_the_bars_are_those_of_the_last_forty_saves() -> None:
    assert words.sparkline([1000.0, *[10.0] * 39, 20.0]) == "▁" * 39 + "█"


def test_notes_say_what_changed_in_the_code_and_what_the_clock_resolves() -> None:
    notes = words.lines(DUEL)[1:]
    assert "  registers per thread: 96 to 104" in notes
    assert "  machine instructions: 400 to 420" in notes
    assert "  rest: the clock's step of 0.032 us is 0.032 % of a launch, 0.0004 % of their mean" in notes
    assert len(notes) == 3


def test_notes_name_two_compilers_and_say_if_they_made_the_same_code() -> None:
    a = structs.replace(SIDE, name="nvcc:13.0", nvcc="13.0.88", sass_sha256="c" * 64)
    b = structs.replace(a, name="nvcc:13.3", nvcc="13.3.73", library_sha256="b" * 64)
    same = structs.replace(DUEL, a=a, b=b, differs=("compiler",))
    assert words.lines(same)[1:3] == [
        "  the machine code of the kernels is the same",
        "  nvcc: 13.0.88 to 13.3.73",
    ]
    other = structs.replace(same, b=structs.replace(b, sass_sha256="d" * 64))
    assert words.lines(other)[1] == "  nvcc: 13.0.88 to 13.3.73"


def test_notes_name_the_counters_that_differ_or_why_they_are_unknown() -> None:
    counters = (
        Counter(name="dram_bytes", a=8e6, b=1e7),
        Counter(name="l2_bytes", a=0.0, b=2e6),
        Counter(name="instructions_executed", a=900.0, b=3600.0, kernel="void add<4>(float *)", number=2),
    )
    text = "\n".join(words.lines(structs.replace(DUEL, counters=counters, no_counters="ncu was not found")))
    assert "dram_bytes: 8e+06 to 1e+07 (+25.00 %)" in text
    assert "l2_bytes: 0 to 2e+06" in text
    assert "instructions_executed of kernel 2, add: 900 to 3600 (+300.00 %)" in text
    assert "no counters: ncu was not found" in text


def test_notes_say_how_the_sides_ran_if_not_as_usual() -> None:
    held = structs.replace(JUDGED, windows=(structs.replace(WINDOW, held=True, not_blocked=3200),))
    odd = structs.replace(DUEL, b=DUEL.a, apart="two modules", same_arrays=False, judged=(held,))
    text = "\n".join(words.lines(odd))
    for part in (
        "equal, byte by byte",
        "alternating processes",
        "held the SM clock down",
        "host time counts",
    ):
        assert part in text


def test_a_duel_without_a_verdict_says_why() -> None:
    assert words.lines(failed("wrong", "B: y is all zero")) == ["NO VERDICT  wrong: B: y is all zero"]
