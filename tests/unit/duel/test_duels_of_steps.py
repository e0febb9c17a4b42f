"""Which steps of a family duel with their parents, what is kept, and what the table says, from made-up verdicts."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from host_family import make_job, named
from made_up_duels import failed, found, write_steps
from warplog.duel import open_steps
from warplog.measure.job import Job
from warplog.records import door
from warplog.records.requested.duel import Duel
from warplog.records.requested.step_duels import StepDuels

WORDS = {"clear": "FASTER", "close": "SAME", "open": "AMBIGUOUS", "again": "SAME", "wrong": ""}
Fought = Callable[..., list[tuple[str, str, str]]]


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    job = replace(make_job(tmp_path, ""), record=tmp_path / "duels" / "none" / "scale" / "record.json")
    return [replace(one, inputs_sha256="a" * 64) for one in named(job, "first", *WORDS)]


@pytest.fixture
def fought(jobs: list[Job], tmp_path: Path) -> Fought:
    """Returns a function that brings the record up to date, and says who met whom where."""

    def fought(answer: Duel | None = None, **words: str) -> list[tuple[str, str, str]]:
        rows = [
            {"family": "scale", "variant": name, "parent": "first", "case": "64", "word": word}
            | ({"twin": "first", "twin_code": "same"} if name == "again" else {})
            for name, word in {**WORDS, **words}.items()
        ]
        write_steps(tmp_path, *rows)
        met = []

        def fight(a: Job[Any], b: Job[Any], case: str) -> Duel:
            if len(met) == 1 and answer is None:
                raise KeyboardInterrupt
            met.append((a.variant.name, b.variant.name, case))
            return answer or found("SLOWER", 1.005)

        try:
            open_steps.duel_steps(jobs, tmp_path, fight)
        except KeyboardInterrupt:
            met.append("interrupted")
        return met

    return fought


def recorded(jobs: list[Job]) -> list[str]:
    return [one.variant for one in door.read(jobs[0].record, StepDuels).duels]


def test_steps_within_noise_duel_unless_they_launch_the_code_of_their_parent(
    fought: Fought, jobs: list[Job]
) -> None:
    assert fought(found("SAME", 1.0)) == [("first", "close", "64"), ("first", "open", "64")]
    assert recorded(jobs) == ["close", "open"]


def test_a_finished_duel_is_kept_until_its_inputs_change_or_the_step_is_decided(
    fought: Fought, jobs: list[Job]
) -> None:
    assert fought() == [("first", "close", "64"), "interrupted"]
    assert recorded(jobs) == ["close"]
    assert fought(found("SAME", 1.0)) == [("first", "open", "64")]
    jobs[list(WORDS).index("close") + 1] = replace(jobs[2], inputs_sha256="b" * 64)
    assert fought(found("SAME", 1.0)) == [("first", "close", "64")]
    assert fought(found("SAME", 1.0), close="FASTER") == []
    assert recorded(jobs) == ["open"]


def test_without_an_open_step_the_record_is_empty(fought: Fought, jobs: list[Job]) -> None:
    assert fought(close="FASTER", open="SLOWER") == []
    assert recorded(jobs) == []


def test_a_row_says_how_much_faster_the_variant_is(fought: Fought, jobs: list[Job]) -> None:
    fought(found("SLOWER", 1.005, floor=0.001))
    row = open_steps.rows([door.read(jobs[0].record, StepDuels)])[0]
    assert (row.variant, row.against, row.case, row.word, row.processes) == (
        "close",
        "first",
        "2048",
        "SLOWER",
        4,
    )
    assert (row.against_us, row.us) == (100.0, 100.5)
    assert row.gain_pct == pytest.approx(100 * (1 / 1.005 - 1))
    assert row.low_pct < row.gain_pct < row.high_pct < 0
    assert row.high_pct == pytest.approx(100 * (1.001 / 1.005 - 1))


def test_a_side_that_cannot_be_measured_has_a_row_without_a_verdict(fought: Fought, jobs: list[Job]) -> None:
    fought(failed("crashed", "B: SIGSEGV"))
    row = open_steps.rows([door.read(jobs[0].record, StepDuels)])[0]
    assert (row.status, row.word) == ("crashed", "")
