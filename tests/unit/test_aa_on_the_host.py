"""A/A from launcher to table without a GPU: a stand-in for the timer times a C function in fresh processes."""

import csv
from dataclasses import replace

import pytest
from one_variant import check_variant, time_variant

from host_family import make_job, make_timer
from warplog.core import paths as layout
from warplog.core.records import read_json
from warplog.judge import aa
from warplog.plan.plan import DEFAULTS

BODY = """
FILE* log = fopen("{folder}/pids", "a"); fprintf(log, "%d\\n", (int)getpid()); fclose(log);
for (int repeat = 0; repeat < 2000; ++repeat)
    for (int i = 0; i < a->N; ++i) ((volatile float*)a->y)[i] = a->factor * a->x[i];
"""
ROUNDS = 3


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Returns a results folder with three rounds of one variant and two cases."""
    place = tmp_path_factory.mktemp("aa")
    job = make_job(place, BODY.format(folder=place))
    check_variant(job)
    timer = make_timer(place)
    policy = {
        **DEFAULTS["time"],
        "max_samples": 30,
        "max_seconds": 0.3,
        "hot_seconds": 0.001,
        "timeout_s": 20,
    }
    for number in range(1, ROUNDS + 1):
        root = place / "results" / "aa" / f"round{number}"
        record = layout.record(root, "time", "none", "scale", "right")
        timing = replace(job, record=record, scratch=record.with_name(".right.work"), settings=policy)
        time_variant(timing, job.record, timer, ("64", "1000"))
    return place


def test_every_round_is_a_process_of_its_own(place):
    pids = (place / "pids").read_text().split()
    assert len(set(pids)) == 1 + ROUNDS


def test_the_rounds_are_time_records_like_all_others(place):
    paths = sorted((place / "results" / "aa").glob("round*/time/none/scale/right.json"))
    records = [read_json(path, "record") for path in paths]
    assert [(r["stage"], r["status"]) for r in records] == [("time", "ok")] * ROUNDS
    assert all(len(case["cold"]["samples_us"]) >= 10 for r in records for case in r["cases"])


def test_table_and_floor_follow(place, tmp_path):
    found = aa.judge_rounds(place / "results", "none")
    assert found.rounds == ROUNDS
    counts = found.counts(found.judged)
    assert sum(counts.values()) == ROUNDS * 2  # three pairs of rounds, two cases
    assert counts["REFUSED"] == 0
    aa.write(found, *(tmp_path / name for name in ("verdicts.csv", "floors.csv", "summary.md")))
    rows = list(csv.DictReader((tmp_path / "floors.csv").open()))
    assert [(row["variant"], row["case"]) for row in rows] == [("right", "64"), ("right", "1000")]
    assert all(float(row["floor"]) >= 0.005 for row in rows)
    assert found.summary().splitlines()[-1].startswith("floor to use: ")
