"""Two campaigns side by side: absolute and normalised speeds, and what differs."""

import shutil
from dataclasses import replace

import pandas as pd
import pytest
from worklog_pages import CAMPAIGN, CLAIM, RECORDED

from warplog.worklog.beside import beside
from warplog.worklog.site import Site

NAMES = ("h200", "h100")


def other(tables, slower=2.0):
    """A campaign on a GPU with half the SMs and a quarter of the bandwidth, where each time is `slower` as long."""
    rows = tables.measurements.copy()
    for column in ("median_us", "q1_us", "q3_us"):
        rows[column] *= slower
    rows["gflops"] /= slower
    gpus = tables.gpus.assign(sms=tables.gpus["sms"] / 2)
    gpus["dram_gbytes_per_s_peak"] = tables.gpus["dram_gbytes_per_s_peak"] / 4
    return replace(tables, measurements=rows.assign(gpu="h100"), gpus=gpus)


def cells(table, name):
    return dict(zip(table.titles, next(row for row in table.rows if row[0] == name), strict=True))


def test_ratios_are_given_as_measured_and_relative_to_sms_and_bandwidth(recorded):
    row = cells(beside(recorded, other(recorded), NAMES).speeds, "warptile")
    assert row["ratio"] == "0.500x"
    assert row["per SM and clock"] == "1.00x"
    assert row["per DRAM bandwidth"] == "2.00x"
    assert (row["TFLOP/s, h200"], row["TFLOP/s, h100"]) == ("44.5", "22.3")


def test_nothing_differs_where_all_variants_scale_alike(recorded):
    found = beside(recorded, other(recorded), NAMES)
    assert found.facts == ("The fastest variant is warptile on both.",)
    assert found.steps is None
    assert found.claims is None
    assert all(row[-1].split(" → ")[0] == row[-1].split(" → ")[1] for row in found.speeds.rows)


def test_variants_that_change_places_steps_that_turn_and_claims_that_flip_are_said(recorded):
    theirs = other(recorded)
    rows = theirs.measurements
    hit = rows["variant"] == "warptile"
    rows.loc[hit, ["median_us", "q1_us", "q3_us"]] *= 3
    ours = replace(recorded, claims=pd.DataFrame([CLAIM]))
    theirs = replace(theirs, claims=pd.DataFrame([CLAIM | {"verdict": "refuted"}]))
    found = beside(ours, theirs, NAMES)
    assert found.facts[0] == "The fastest variant is warptile on h200 and vectorized on h100."
    (step,) = found.steps.rows
    assert step[:2] == ("warptile", "vectorized")
    assert float(step[2][:-1]) > 1 > float(step[3][:-1])
    assert found.claims.rows == (("C1: coalescing brings 6x", "confirmed", "refuted"),)
    before, after = cells(found.speeds, "warptile")["place"].split(" → ")
    assert int(before) < int(after)


@pytest.mark.parametrize(("gpu", "written"), [("h100", True), ("h200", False)])
def test_the_site_has_a_page_for_a_campaign_of_another_gpu_only(page, recorded, tmp_path, gpu, written):
    tables = shutil.copytree(RECORDED / "tables", tmp_path / "second" / "tables")
    for path in tables.glob("*.parquet"):
        table = pd.read_parquet(path)
        if "gpu" in table:
            table.assign(gpu=gpu).to_parquet(path)
    site = Site(tmp_path / "site", "")
    site.add(page, recorded)
    site.beside(tables)
    site.finish(CAMPAIGN)
    assert (tmp_path / "site" / "beside-second.html").is_file() == written
    assert ("beside-second.html" in (tmp_path / "site" / "index.html").read_text()) == written
