"""A/A from launcher to table without a GPU: a stand-in for the timer times a C function in fresh processes."""

import csv
from dataclasses import replace

import pytest

from host_family import make_job, make_timer, named
from warplog.judge import aa
from warplog.measure.stages.check import check_family
from warplog.measure.stages.timing import time_family
from warplog.records.config import TimeSettings
from warplog.records.family_file import FamilyRecord
from warplog.records.stages import ROUND
from warplog.records.time import Time

BODY = """
FILE* log = fopen("{folder}/pids", "a"); fprintf(log, "%d\\n", (int)getpid()); fclose(log);
for (int repeat = 0; repeat < 2000; ++repeat)
    for (int i = 0; i < a->N; ++i) ((volatile float*)a->y)[i] = a->factor * a->x[i];
"""
ROUNDS, PROCESSES = 3, 2


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Returns a results folder with three rounds of two variants and two cases."""
    place = tmp_path_factory.mktemp("aa")
    job = make_job(place, BODY.format(folder=place))
    jobs = named(job, "right", "other")
    check_family(jobs)
    timer = make_timer(place)
    policy = TimeSettings(
        max_samples=30,
        max_seconds=0.3,
        hot_seconds=0.001,
        processes=PROCESSES,
        most_processes=1,
        timeout_s=20.0,
    )
    for number in range(1, ROUNDS + 1):
        record = ROUND.at(place / "results", round=number, gpu="none", family="scale")
        timing = [
            replace(j, record=record, scratch=record.with_name(".scale.work"), settings=policy) for j in jobs
        ]
        time_family(timing, job.record, timer, ("64", "1000"))
    return place


def test_every_round_has_processes_of_its_own(place):
    """One more process is that of the check."""
    pids = (place / "pids").read_text().split()
    assert len(set(pids)) == 1 + PROCESSES * ROUNDS


def test_the_rounds_are_time_records_like_all_others(place):
    files = sorted((place / "results" / "aa").glob("round*/time/none/scale.json"))
    records = [record for path in files for record in FamilyRecord.read(path, Time).variants.values()]
    assert [r.status for r in records] == ["ok"] * 2 * ROUNDS
    assert all(len(case.cold.samples_us) >= 10 for r in records for case in r.cases)


def test_table_and_floor_follow(place, tmp_path):
    found = aa.judge_rounds(place / "results", "none")
    assert len(found.measured) == ROUNDS
    counts = found.counts(aa.OWN, "rest")
    assert sum(counts.values()) == ROUNDS * 4  # three pairs of rounds, two variants, two cases
    assert counts["REFUSED"] == 0
    aa.write(found, *(tmp_path / name for name in ("verdicts.csv", "floors.csv", "summary.md")))
    rows = list(csv.DictReader((tmp_path / "floors.csv").open()))
    assert [(row["variant"], row["case"]) for row in rows] == [
        (name, case) for name in ("right", "other") for case in ("64", "1000")
    ]
    assert all(float(row["floor"]) >= 0.005 for row in rows)
    assert found.summary().splitlines()[-1].startswith("floor to use: ")
