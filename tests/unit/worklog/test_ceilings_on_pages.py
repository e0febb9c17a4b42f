"""What a page says of ceilings: those that its kernels show, and of which rate a bound is a share."""

import sys
from dataclasses import replace

from worklog_pages import RECORDED, Page, uncharted

from made_up_ceilings import DRAM, ceilings
from warplog import worklog
from warplog.tables.conclusions import NAN, Ceiling, columns
from warplog.tables.files import write_parquet
from warplog.worklog.audit import audit

OWN = replace(DRAM, family="sgemm", variant="naive", measure='gbytes_per_s(naive, "512")', value=3987.4)
ODD = replace(OWN, ceiling="step_ns", value=0.1, unit="ns", low=1.0, high=2e4, word="missed")
NONE = replace(
    OWN, ceiling="far_us", value=NAN, value_low=NAN, value_high=NAN, word="not_measurable", reason="no_time"
)


def test_a_page_lists_what_its_kernels_show_and_each_number_is_a_cell(recorded, tmp_path, capsys):
    table = ceilings(OWN, ODD, NONE, DRAM)
    page = uncharted(replace(recorded, ceilings=table))
    source = worklog.html(page)
    text = Page(source).text
    assert (
        "dram_gbytes_per_s reading device memory 3987 GB/s 3990 GB/s to 4010 GB/s at least 100 GB/s" in text
    )
    assert text.count("reading device memory") == 3, "not those of another family"
    assert "1 ns to 20.00 µs" in text
    assert "not used, since it is outside of what is expected" in text
    assert "far_us reading device memory n/a" in text
    assert "not measured: no time" in text
    (tmp_path / "worklog").mkdir()
    (tmp_path / "worklog" / "sgemm.html").write_text(source)
    (tmp_path / "tables").mkdir()
    for path in (RECORDED / "tables").iterdir():
        (tmp_path / "tables" / path.name).symlink_to(path)
    write_parquet(table.to_dict("records"), columns(Ceiling), tmp_path / "tables" / "ceilings")
    assert audit(tmp_path, sys.stdout).passed, capsys.readouterr().out
    assert "| far_us | reading device memory | n/a |" in worklog.markdown(page, tmp_path)


def test_a_page_without_ceilings_has_no_place_for_them(page):
    assert "What they show of the GPU" not in Page(worklog.html(page)).text


def test_a_bound_says_of_which_rate_it_is_a_share(recorded):
    rows = recorded.bounds.assign(gap="", kind="memory", ceiling="dram_gbytes_per_s", ceiling_pct=95.0)
    assert (
        "Bound by device memory, at 95 % of its measured rate."
        in Page(worklog.html(uncharted(replace(recorded, bounds=rows)))).text
    )
    near = replace(recorded, bounds=rows.assign(kind="near", ceiling_pct=70.0, beside=""))
    assert (
        "the busiest is at 70 % of its measured rate (device memory)"
        in Page(worklog.html(uncharted(near))).text
    )
