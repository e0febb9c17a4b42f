"""MLflow's saved view: the columns, sorting and charts that an experiment opens with.

The UI of MLflow 3.17 stores a saved view in the experiment tag `mlflow.sharedViewState.<key>`: JSON with a name
and a `state`, which is "deflate;" followed by the base64 of zlib-compressed JSON. The format is undocumented; it
was read from what the UI stores. It is written here because MLflow has no API for views, and without one an
experiment opens with its runs by date and a chart for every metric. pyproject.toml pins mlflow to 3.17, a test
decodes the tag, and a UI that cannot read it reports an invalid share key and falls back to its default view.

No setting writes names at the bars of a chart: the card that the UI draws them on switches them off. The bars have the
order and the colours of the list of runs beside them.
"""

import base64
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from warplog.core.errors import WarplogError
from warplog.metrics import STALL_REASONS
from warplog.track.points import MEASURES, TRACED, headline
from warplog.track.runs import FACTS, GAIN, GAIN_VERDICT, TUNING, Run

CHARTS = "&compareRunsMode=CHART"  # the end of a link that opens the charts of a view
TAG_PREFIX = "mlflow.sharedViewState."
MOST_TAG_CHARACTERS = 20_000
_MARK = "deflate;"
_STALL_CHARTS = 4
_CHARTS_A_ROW = 2  # of three, the names do not fit beside the panel that a fresh browser opens
# One bar chart per metric, if it was measured. The UI uses the metric's name as the title.
_WHY_BARS = (
    "achieved_occupancy_pct",
    "shared_conflict_ways",
    "shared_wavefronts_excess",
    "dram_bytes",
    "l2_hit_pct",
    "issue_active_pct",
)
# A warp that is ready and not selected does not wait for anything.
_STALLS = {f"profile/stall_{one}_cycles_per_issue" for one in STALL_REASONS if one != "not_selected"}
_SCATTER = ("dram_throughput_pct", "sm_throughput_pct")
# Columns after the speed and its share of the baseline, and their widths in pixels, which fit their longest values.
_RESULT = {
    f"tags.`{GAIN}`": 116,
    f"tags.`{GAIN_VERDICT}`": 102,
    "tags.`status`": 92,
    "tags.`dominant_stall`": 128,
    "tags.`occupancy_limiter`": 136,
    "params.`parent`": 150,
}
_NUMBERS = (
    headline("median_us"),
    headline("sustained_gflops"),
    headline("sustained_us"),
    "profile/achieved_occupancy_pct",
    "profile/dram_bytes",
)
_LAST = ("origin", "gpu")
_RUN_NAME = "attributes.`Run Name`"


@dataclass(frozen=True)
class View:
    """A saved view of the runs that match the filter `search`.

    `speed` is the column that measures speed: gflops, gbytes_per_s or median_us. `size_label` names the quantity
    on the step axis. `several`: whether it shows runs of several campaigns.
    """

    name: str
    search: str
    speed: str
    headline_case: str
    size_label: str
    runs: Sequence[Run]
    several: bool = False

    @cached_property
    def metrics(self) -> frozenset[str]:
        """The metric names of these runs; only these get a chart or a column."""
        return frozenset(point.name for run in self.runs for point in run.points)

    @property
    def counters_case(self) -> str:
        """The case at which the headline counters were captured."""
        tags = (run.tags.get("counters_case") for run in self.runs)
        return next((case for case in tags if case), self.headline_case)

    @property
    def traced_cases(self) -> tuple[str, ...]:
        """The cases whose accesses were traced."""
        return tuple(dict.fromkeys(case for run in self.runs if (case := run.tags.get("traced_case"))))

    def has_param(self, name: str) -> bool:
        """Returns whether any run has the parameter."""
        return any(name in run.params for run in self.runs)

    def tag(self) -> str:
        """Returns the value of the experiment tag; equal views have equal tags.

        Raises:
            WarplogError: the tag is longer than MLflow accepts.
        """
        packed = base64.b64encode(zlib.compress(json.dumps(_state(self)).encode(), 9)).decode()
        moment = min((run.started_ms for run in self.runs), default=0)
        stamped = {"name": self.name, "createdAt": moment, "updatedAt": moment}
        value = json.dumps({**stamped, "state": _MARK + packed})
        if len(value) > MOST_TAG_CHARACTERS:
            raise WarplogError(
                f"saved view {self.name!r}: {len(value)} characters; MLflow accepts {MOST_TAG_CHARACTERS}"
            )
        return value


def path(experiment_id: str, key: str) -> str:
    """Returns the path of a link, after the server's address, that opens the table of the view; see CHARTS."""
    return f"#/experiments/{experiment_id}/runs?workflowType=machine_learning&viewStateShareKey={key}"


def run_path(experiment_id: str, run_id: str) -> str:
    """Returns the path of a link, after the server's address, that opens a run in the mode for models."""
    return f"#/experiments/{experiment_id}/runs/{run_id}?workflowType=machine_learning"


def _state(view: View) -> dict[str, Any]:
    columns = _columns(view)
    charts = [chart for chart in _charts(view) if _metrics_of(chart) <= view.metrics]
    used = {chart["metricSectionId"] for chart in charts}
    sections = [name for name in _sections(view) if _id(name) in used]
    groups = sorted({name.rpartition("/")[0] for name in view.metrics} - set(sections))
    return {
        "searchFilter": view.search,
        "orderByKey": _order(view) if charts else "attributes.start_time",
        "orderByAsc": view.speed == "median_us",
        "startTime": "ALL",
        "lifecycleFilter": "Active",
        "datasetsFilter": [],
        "modelVersionFilter": "All Runs",
        "selectedColumns": list(columns),
        "columnOrder": [_RUN_NAME, *columns],
        "columnWidths": {_RUN_NAME: 190, **columns},
        # With hundreds of runs, charts of all of them take long and show nothing.
        "runsHiddenMode": "FIRST_20_RUNS" if view.several else "SHOW_ALL",
        "compareRunCharts": charts,
        # The UI adds a chart for every other metric; their sections stay folded.
        "compareRunSections": [*(_section(s, True) for s in sections), *(_section(g, False) for g in groups)],
        "viewMaximized": False,
        "runListHidden": False,
        "isAccordionReordered": True,
        "useGroupedValuesInCharts": True,
        "hideEmptyCharts": True,
        "groupBy": None,
        "groupsExpanded": {},
        "globalLineChartConfig": {"xAxisKey": "step", "lineSmoothness": 0, "selectedXAxisMetricKey": ""},
        "autoRefreshEnabled": False,
    }


def _sections(view: View) -> tuple[str, str, str]:
    traced = " or ".join(view.traced_cases)
    return (
        f"1 Speed by {view.size_label}",
        f"2 Counters at {view.counters_case}" + (f", traced at {traced}" if traced else ""),
        "3 Parameters and speed",
    )


def _columns(view: View) -> dict[str, int]:
    """Returns column -> width in pixels; the result comes first, to fit on a small screen."""
    knobs = [name for name in (*_common_knobs(view.runs), *FACTS[:2]) if view.has_param(name)]
    speeds, numbers = (
        [f"metrics.`{name}`" for name in names if name in view.metrics]
        for names in ((headline(view.speed), headline("ratio_to_baseline")), _NUMBERS)
    )
    names = ["tags.`campaign`", "tags.`project`"] if view.several else []
    names += [*speeds, *_RESULT, *(f"params.`{name}`" for name in knobs), *numbers]
    names += [f"tags.`{name}`" for name in _LAST]
    # The UI shows which column orders the runs by a sign in its head.
    return {name: 6 * len(name) - (10 if name == _order(view) else 26) for name in names} | _RESULT


def _order(view: View) -> str:
    return f"metrics.`{headline(view.speed)}`"


def _charts(view: View) -> Iterable[dict[str, Any]]:
    speed, why, knobs = _sections(view)
    target = headline(view.speed)
    yield _chart("BAR", speed, {"metricKey": target})
    yield _line(speed, MEASURES[view.speed][0])
    yield _line(speed, MEASURES["ratio_to_baseline"][0])
    yield _chart("BAR", speed, {"metricKey": headline("sustained_gflops")})
    bars = *(f"profile/{name}" for name in _WHY_BARS), *(f"traced/{name}" for name in TRACED)
    for name in (*_worst_stalls(view.runs), *bars):
        yield _chart("BAR", why, {"metricKey": name})
    x, y = ({"key": f"profile/{name}", "type": "METRIC"} for name in _SCATTER)
    yield _chart("SCATTER", why, {"xaxis": x, "yaxis": y})
    tuned = _common_knobs(view.runs)
    if len(tuned) > 1:
        yield _parallel(knobs, tuned, [target])
    facts = [name for name in FACTS[:2] if view.has_param(name)]
    if facts:
        yield _parallel(knobs, facts, ["profile/achieved_occupancy_pct", target])


def _worst_stalls(runs: Sequence[Run]) -> list[str]:
    """Returns the metrics of the stall reasons with the most cycles, summed over all runs."""
    cost: dict[str, float] = {}
    for point in (point for run in runs for point in run.points):
        if point.name in _STALLS and point.value > 0:
            cost[point.name] = cost.get(point.name, 0.0) + point.value
    return sorted(cost, key=lambda name: (-cost[name], name))[:_STALL_CHARTS]


def _common_knobs(runs: Sequence[Run]) -> list[str]:
    """Returns the parameters that at least half of the tuned variants have; the chart omits runs without them."""
    tuned = [[name for name in run.params if name.startswith(TUNING)] for run in runs]
    tuned = [names for names in tuned if names]
    every = dict.fromkeys(name for names in tuned for name in names)
    return [name for name in every if 2 * sum(name in names for names in tuned) >= len(tuned)]


def _metrics_of(chart: Mapping[str, Any]) -> set[str]:
    named = [chart.get("metricKey"), *chart.get("selectedMetrics", [])]
    named += [chart[axis]["key"] for axis in ("xaxis", "yaxis") if axis in chart]
    return {name for name in named if name}


def _line(section: str, metric: str) -> dict[str, Any]:
    axes = {
        "xAxisScaleType": "log",
        "scaleType": "linear",
        "range": {},
        "xAxisKey": "step",
        "yAxisKey": "metric",
    }
    own = {"useGlobalXaxisKey": False, "useGlobalLineSmoothing": False, "lineSmoothness": 0}
    rest = {
        "selectedXAxisMetricKey": "",
        "yAxisExpressions": [],
        "ignoreOutliers": False,
        "displayPoints": True,
    }
    picked = {"metricKey": metric, "selectedMetricKeys": [metric]}
    return _chart("LINE", section, {**picked, **axes, **own, **rest})


def _parallel(section: str, params: Sequence[str], metrics: Sequence[str]) -> dict[str, Any]:
    picked = {"selectedParams": list(params), "selectedMetrics": list(metrics), "showAllRuns": True}
    return _chart("PARALLEL", section, picked)


def _chart(kind: str, section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    place = {
        "metricSectionId": _id(section),
        "deleted": False,
        "isGenerated": False,
        "runsCountToCompare": 200,
    }
    return {"uuid": _id(kind, section, json.dumps(settings)), "type": kind, **place, **settings}


def _section(name: str, unfolded: bool) -> dict[str, Any]:
    settled = {"display": unfolded, "isReordered": True, "deleted": False, "isGenerated": False}
    return {"uuid": _id(name), "name": name, "columns": _CHARTS_A_ROW, **settled}


def _id(*parts: str) -> str:
    """Returns an identifier derived from `parts`, so that writing the same view again changes nothing."""
    return hashlib.sha256("|".join(parts).encode()).hexdigest()[:20]
