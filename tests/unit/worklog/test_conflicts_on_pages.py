"""Bank conflicts that addresses tell are shown only as far as L1 had wavefronts for them."""

from dataclasses import replace

import pandas as pd
import pytest

import made_up_mechanisms as made
from warplog.analysis.explanation import Explanation
from warplog.figures import bank_conflicts
from warplog.figures.shared.memory_boxes import kernel_metrics
from warplog.tables.conclusions import Traced
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


@pytest.mark.parametrize(("lost", "first"), [(14.25e7, 1.3412e8), (0.0, 0.0), (3e8, 268_435_456)])
def test_lines_lose_no_more_wavefronts_than_their_kernel(recorded, lost, first):
    found = with_metric(recorded, "vectorized", "l1_shared_wavefronts", IDEAL + lost).kernel_lines[
        "vectorized"
    ]
    told = sorted((row["shared_wavefronts_excess"] for row in found), reverse=True)
    assert told[0] == pytest.approx(first, rel=1e-3)
    assert sum(told) == pytest.approx(min(lost, 285_212_672), rel=1e-6)


def test_the_count_that_a_mechanism_rests_on_is_no_more_than_l1_had(merged):
    step = {"variant": "vectorized", "parent": "blocktile_2d", "mechanism": "bank_conflicts"}
    reason = replace(made.PREDICTED, **step, rests_on="shared_wavefronts_excess")
    tables = replace(merged, mechanisms=made.table([reason], gpu="h200", campaign="synthetic"))
    assert "(wavefronts lost to bank conflicts 4 M → 285 M)" in explain.markdown(tables)


def test_a_trace_says_where_l1_had_fewer_wavefronts_than_addresses_tell(merged):
    fewer = {name: found.fewer_ways for name, found in variant_conclusions.by_variant(merged).items()}
    assert [name for name, ways in fewer.items() if ways] == ["blocktile_2d"]
    traced = Cells(Traced.TABLE, Traced("f", "a", "64", "ok", counted=9, differing=0))
    said = "L1 had fewer wavefronts than addresses tell: at 4096, at most 1.01 per ideal one."
    assert said in str(words(str).traced(traced, fewer["blocktile_2d"]))


def test_launches_of_a_report_have_no_more_conflicts_than_l1_had():
    values = dict(zip((*NAMES, "l1_shared_wavefronts"), (200.0, 100.0, 2.0, 110.0), strict=True))
    key = {"source": "a", "tool": "ncu", "gpu": "", "cc": "", "kernel": "k", "launch": 0}
    table = pd.DataFrame([{**key, "metric": name, "value": value} for name, value in values.items()])
    assert tuple(launches.summary(table)[list(NAMES[1:])].iloc[0]) == (10.0, 1.1)
