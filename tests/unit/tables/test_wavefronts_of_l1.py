"""Bank conflicts that addresses tell are shown only as far as L1 had wavefronts for them."""

from dataclasses import replace

import pandas as pd
import pytest

import made_up_mechanisms as made
from small_campaign import FOLDER
from warplog.analysis.explanation import Explanation
from warplog.figures import bank_conflicts
from warplog.figures.shared.memory_boxes import kernel_metrics
from warplog.tables import view
from warplog.tables.conclusions import NAN, AccessLine, Traced
from warplog.worklog import explain, launches, variant_conclusions
from warplog.worklog.cells import Cells
from warplog.worklog.texts import words

IDEAL, LOST = 436_207_616, 4e6
NAMES = ("shared_wavefronts", "shared_wavefronts_excess", "shared_conflict_ways")


def with_metric(tables, variant, name, value):
    """The tables with another value of a metric of a variant."""
    metrics = tables.metrics.copy()
    metrics.loc[(metrics["variant"] == variant) & (metrics["metric"] == name), "value"] = value
    return replace(tables, metrics=metrics)


@pytest.fixture(scope="module")
def recorded():
    """The sgemm tables of the small campaign."""
    return view.load(FOLDER / "tables", "sgemm")


@pytest.fixture(scope="module")
def merged(recorded):
    """The small campaign as if L1 had served most conflicts of blocktile_2d, 268 M by addresses, together."""
    return with_metric(recorded, "blocktile_2d", "l1_shared_wavefronts", IDEAL + LOST)


def test_a_step_and_the_figures_have_no_more_conflicts_than_l1_had(merged):
    steps = {step.variant: step for step in Explanation(merged).steps}
    assert (steps["blocktile_2d"].use.excess, steps["vectorized"].use.excess.before) == (None, LOST)
    for rows in (bank_conflicts.data(merged), kernel_metrics(merged)):
        row = rows.set_index("variant").loc["blocktile_2d"]
        assert tuple(row[["shared_wavefronts", "shared_conflict_ways"]]) == (IDEAL + LOST, 1 + LOST / IDEAL)


def test_counters_where_l1_had_all_wavefronts_stay(recorded):
    assert tuple(recorded.counters(NAMES).set_index("variant").loc["vectorized", list(NAMES[:2])]) == (
        721_420_288,
        285_212_672,
    )


@pytest.mark.parametrize(("lost", "is_told"), [(2.6e8, True), (2.5e8, False), (0.0, False)])
def test_lines_lose_no_wavefronts_if_l1_had_too_few_for_them(recorded, lost, is_told):
    tables = with_metric(recorded, "vectorized", "l1_shared_wavefronts", IDEAL + lost)
    found = [row["shared_wavefronts_excess"] for row in tables.kernel_lines["vectorized"]]
    assert (sum(count > 0 for count in found), 268_435_456 in found) == ((5, True) if is_told else (0, False))


@pytest.mark.parametrize(("had", "told"), [(IDEAL + LOST, False), (8e8, True)])
def test_a_mechanism_rests_on_no_count_that_l1_contradicts(recorded, had, told):
    step = {"variant": "vectorized", "parent": "blocktile_2d", "mechanism": "bank_conflicts"}
    reason = replace(made.PREDICTED, **step, rests_on="shared_wavefronts_excess")
    mechanisms = made.table([reason], gpu="h200", campaign="synthetic")
    tables = with_metric(
        replace(recorded, mechanisms=mechanisms), "blocktile_2d", "l1_shared_wavefronts", had
    )
    count = "bank conflicts (wavefronts lost to bank conflicts 268 M → 285 M)"
    assert (count in explain.markdown(tables)) == told


def test_a_trace_says_where_l1_had_fewer_wavefronts_than_addresses_tell(merged):
    found = {name: found.wavefronts for name, found in variant_conclusions.by_variant(merged).items()}
    assert [name for name, wavefronts in found.items() if wavefronts] == ["blocktile_2d"]
    traced = Traced("sgemm", "blocktile_2d", "128", "ok", counted=9, differing=0)
    said = "At 4096, L1 had 440 M wavefronts for shared memory, fewer than the 705 M by addresses."
    assert said in str(words(str).traced(Cells(Traced.TABLE, traced), found["blocktile_2d"]))
    line = AccessLine(
        *("sgemm", "blocktile_2d", "128", "a.cu", 7, "", "shared", "load", ""),
        requests=8, per_request=2.0, ideal=1.0, unit="wavefront/request", used_bytes=NAN, ways=2, finding="conflicts",
        counted="equal",
    )  # fmt: skip
    shown = {row.TABLE: made.table([row], gpu="h200", campaign="synthetic") for row in (traced, line)}
    assert f"(up to 2-way conflicts). {said}" in explain.markdown(replace(merged, **shown))


def test_wavefronts_of_l1_are_said_to_be_of_shuffles_too():
    assert str(words(str).metric("l1_shared_wavefronts")).endswith(" for shared memory and shuffles")


def test_launches_of_a_report_have_no_more_conflicts_than_l1_had():
    values = dict(zip((*NAMES, "l1_shared_wavefronts"), (200.0, 100.0, 2.0, 110.0), strict=True))
    key = {"source": "a", "tool": "ncu", "gpu": "", "cc": "", "kernel": "k", "launch": 0}
    table = pd.DataFrame([{**key, "metric": name, "value": value} for name, value in values.items()])
    assert tuple(launches.summary(table)[list(NAMES[1:])].iloc[0]) == (10.0, 1.1)
