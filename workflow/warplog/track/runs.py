"""Build the MLflow runs of one family from the tables: parameters, tags and metric points."""

import dataclasses
import datetime
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from warplog import metrics
from warplog.analysis.verdicts import judge, timed
from warplog.catalog.claims import counts
from warplog.core.columns import Row, number, text
from warplog.records import remarks
from warplog.records.campaign import Campaign
from warplog.tables.files import as_rows
from warplog.tables.view import FigureTables
from warplog.track import identity, versions
from warplog.track.points import (
    MEASURES,
    Point,
    Steps,
    argued,
    case_steps,
    counted,
    headline,
    limited,
    main_rows,
    measured,
    traced,
)

# Worst first. A variant that does not support a case did not run, which is not a failure.
_FAILURES = ("wrong", "compile_error", "crashed", "error", "out_of_memory", "timeout")
_ABSENCES = ("missing", "denied", "unsupported", "skipped")
# Columns of `variants` -> parameters. Comparing runs starts with the first parameters by name, which every run has.
KERNEL: Mapping[str, str] = {
    "registers_per_thread": "kernel/registers_per_thread",
    "static_shared_bytes": "kernel/static_shared_bytes",
    "spill_bytes": "kernel/spill_bytes",
}
FACTS = tuple(KERNEL.values())
GAIN, GAIN_VERDICT = "gain_over_parent", "gain_verdict"  # tags
MECHANISM, MECHANISM_WORD = "mechanism", "mechanism_word"  # tags: what makes the step, and how that is known
TUNING = "tuning/"  # prefix of the parameters of a variant
_COUNTED = ["variant", "case", "kernel", "launch", "metric", "value", "status", "tool"]  # needed for counters
_PROVENANCE = (
    "campaign",
    "origin",
    "gpu",
    "gpu_name",
    "arch",
    "driver",
    "cuda",
    "clocks",
    "commit",
    "content_sha256",
)


@dataclass(frozen=True)
class Run:
    """Everything that is logged for one variant of one campaign, except its files and its note.

    `line` is project/campaign/gpu/family/variant, `identity` the tags that name project and campaign.
    `selection` is what the content depends on: the cases, and for the run with the verdicts on claims also the
    variants. Runs of another selection are other runs.
    `looks` are tags that also depend on the other variants (colour, position in the ladder, gain over the parent).
    They are updated in place; any other change creates a new run. `took_s` is the time of its jobs, from build to
    profile.
    """

    family: str
    variant: str
    line: str
    selection: tuple[str, ...]
    status: str
    reason: str
    started_ms: int
    params: Mapping[str, str]
    tags: Mapping[str, str]
    points: tuple[Point, ...]
    looks: Mapping[str, str]
    identity: Mapping[str, str]
    took_s: float = 0.0

    @property
    def key(self) -> str:
        """What identifies the run in a store, whatever its numbers are."""
        return versions.key(self.line, self.selection)

    @property
    def outcome(self) -> str:
        """MLflow's status of the run: FINISHED, FAILED, or KILLED if the variant did not run."""
        return "FINISHED" if self.status == "ok" else "KILLED" if self.status in _ABSENCES else "FAILED"

    @property
    def is_baseline(self) -> bool:
        """Whether ratios are relative to this variant."""
        return self.tags["role"] == "baseline"

    @property
    def ended_ms(self) -> int:
        """The end of the run, such that the UI shows the time of its jobs as duration."""
        return self.started_ms + round(1000 * self.took_s)

    def headline(self, column: str) -> float:
        """Returns a column of `measurements` at the headline case, in the table's unit; NaN if it is missing."""
        name, factor = headline(column), MEASURES[column][1]
        return next((p.value / factor for p in self.points if p.name == name), math.nan)


def of_campaign(data: FigureTables, campaign: Campaign) -> FigureTables:
    """Returns the rows of a campaign, variants in ladder order, from the tables of a family that is in it."""
    cut = {
        name: frame[frame["campaign"] == campaign.campaign].reset_index(drop=True)
        for name, frame in vars(data).items()
        if "campaign" in frame
    }
    cut["variants"] = cut["variants"].sort_values(["order", "variant"], kind="stable")
    return dataclasses.replace(data, **cut)


def runs(
    data: FigureTables,
    campaign: Campaign,
    colours: Mapping[str, str] = MappingProxyType({}),
    took_s: Mapping[tuple[str, str], float] = MappingProxyType({}),
) -> list[Run]:
    """Returns one run per variant, in ladder order.

    `campaign` is an identified campaign record; `colours` maps variants to hexadecimal colours, `took_s`
    (family, variant) to the seconds of its jobs.

    The home run carries the verdicts on the family's claims as tags.
    """
    steps = case_steps(as_rows(data.measurements[["case", "size"]]), data.case)
    speed = data.quantity().column
    times = _by("variant", as_rows(data.measurements))
    profiled = data.metrics[data.metrics["case"] == data.profiled_case]
    counters = _by("variant", as_rows(profiled[_COUNTED]))
    traces = {str(row["variant"]): row for row in as_rows(data.shown_traces) if row["status"] == "ok"}
    profiled_steps = data.mechanisms[data.mechanisms["case"] == data.profiled_case]
    reasons = {str(row["variant"]): row for row in as_rows(profiled_steps)}
    made = []
    for variant in as_rows(data.variants):
        name = str(variant["variant"])
        own = times.get(name, []), counters.get(name, []), traces.get(name, {}), reasons.get(name, {})
        made.append(_run(data, variant, *own, steps, speed, campaign))
    home_run, verdicts, gains = home(made), _verdicts(data), _gains(data)
    colour = {variant: {"mlflow.runColor": shown} for variant, shown in colours.items()}
    judged = tuple(f"variant {run.variant}" for run in made) if verdicts else ()
    return [
        dataclasses.replace(
            run,
            looks={**run.looks, **colour.get(run.variant, {}), **gains.get(run.variant, {})},
            took_s=took_s.get((run.family, run.variant), 0.0),
            tags={**run.tags, **(verdicts if run is home_run else {})},
            selection=run.selection + (judged if run is home_run else ()),
        )
        for run in made
    ]


def home(runs: Sequence[Run]) -> Run:
    """Returns the run that holds what belongs to the whole family: the baseline's, else the first."""
    return next((run for run in runs if run.is_baseline), runs[0])


def _gains(data: FigureTables) -> dict[str, dict[str, str]]:
    """Returns by variant its gain over its parent, which is in the tables, at the headline case, and the verdict on it.

    The gain is the parent's time over the variant's; there is none without both, or if two boards measured them.
    """
    rows = {str(row["variant"]): row for row in as_rows(data.ladder(data.case))}
    gains = {}
    for name, row in rows.items():
        if (parent := rows.get(str(row["parent"]))) is None:
            continue
        before, after = (
            timed(measured) if measured["status"] == "ok" else None for measured in (parent, row)
        )
        if before and after and parent["board"] == row["board"]:
            gains[name] = {
                GAIN: f"{before.us / after.us:#.3g}".rstrip("."),
                GAIN_VERDICT: judge(before, after).word,
            }
        else:
            gains[name] = {GAIN: "n/a", GAIN_VERDICT: "n/a"}
    return gains


def _verdicts(data: FigureTables) -> dict[str, str]:
    """Returns tags with the number of claims per verdict and with the verdict on each claim."""
    if data.claims.empty:
        return {}
    verdicts = {str(row["id"]): str(row["verdict"]) for row in as_rows(data.claims)}
    counted = {f"claims_{verdict}": str(n) for verdict, n in counts(verdicts.values()).items()}
    return counted | {f"claim.{name}": verdict for name, verdict in verdicts.items()}


def _by(column: str, rows: Sequence[Row]) -> dict[str, list[Row]]:
    by_value: dict[str, list[Row]] = {}
    for row in rows:
        by_value.setdefault(str(row[column]), []).append(row)
    return by_value


def _run(
    data: FigureTables,
    variant: Row,
    times: Sequence[Row],
    counted_rows: Sequence[Row],
    trace: Row,
    argument: Row,
    steps: Steps,
    speed: str,
    campaign: Campaign,
) -> Run:
    name = str(variant["variant"])
    counters = main_rows(counted_rows)
    points = [
        *measured(times, steps, data.case, speed),
        *counted(counters),
        *traced(trace),
        *argued(argument),
    ]
    cases = []
    for row in sorted(
        times, key=lambda row: row["case"] != data.case
    ):  # the headline case's reason goes first
        reason = remarks.of_row(row)
        named = f"{row['case']}: {reason}" if reason and row["case"] != data.case else reason
        cases.append((str(row["status"]), named))
    status, reason = status_of(cases)
    started = min((str(r["measured_at"]) for r in times if r.get("measured_at")), default=campaign.started)
    about = {"status": status, "reason": reason, "measured_at": started}
    commit = next((str(r["commit"]) for r in times if r.get("commit")), "")
    tags = _tags(variant, campaign) | about | _findings(counters, data.profiled_case)
    tags["traced_case"] = text(trace, "case")
    tags |= {MECHANISM: text(argument, "mechanism"), MECHANISM_WORD: text(argument, "word")}
    return Run(
        family=data.family,
        variant=name,
        line=identity.line(campaign, data.family, name),
        selection=tuple(sorted({str(row["case"]) for row in times})),
        status=status,
        reason=reason,
        started_ms=_milliseconds(started),
        params=_params(variant),
        tags={key: value for key, value in (tags | ({"commit": commit} if commit else {})).items() if value},
        points=tuple(limited(points)),
        looks={"ladder_order": _number(number(variant, "order"))},
        identity=identity.tags(campaign),
    )


def _findings(rows: Sequence[Row], profiled_case: str) -> dict[str, str]:
    """Returns tags that summarise the counters of the profiled case; empty if there are none."""
    mine = [row for row in rows if math.isfinite(number(row, "value"))]
    if not mine:
        return {}
    values = {str(row["metric"]): row["value"] for row in mine}
    return {
        "counters_case": profiled_case,
        "main_kernel": next((str(r["kernel"]) for r in mine if r["kernel"] and r["tool"] == "ncu"), ""),
        "dominant_stall": metrics.dominant_stall(values) or "",
        "occupancy_limiter": ", ".join(metrics.occupancy_limiter(values)),
    }


def status_of(cases: Sequence[tuple[str, str]]) -> tuple[str, str]:
    """Reduces (status, reason) of all cases to the worst failure, else ok if any is, else why none ran."""
    for candidate in (*_FAILURES, "ok", *_ABSENCES):
        reasons = [reason for status, reason in cases if status == candidate]
        if reasons:
            return candidate, next((reason for reason in reasons if reason), "")
    return "missing", "not measured"


def _params(variant: Row) -> dict[str, str]:
    """Returns the parameters, numbers without units: the UI's parallel coordinates require that."""
    tuning: dict[str, float] = json.loads(text(variant, "parameters") or "{}")
    numbers = {f"{TUNING}{name}": value for name, value in tuning.items()}
    # Without spills there is nothing to compare, and comparing starts with the next parameter.
    kernel = {name: number(variant, column) for column, name in KERNEL.items()}
    numbers |= {name: value for name, value in kernel.items() if value or name != KERNEL["spill_bytes"]}
    words = {name: text(variant, name) for name in ("variant", "parent", "language")}
    plain = {name: _number(value) for name, value in numbers.items() if math.isfinite(value)}
    return {name: word for name, word in words.items() if word} | plain


def _tags(variant: Row, campaign: Campaign) -> dict[str, str]:
    tags: dict[str, str] = {name: getattr(campaign, name) for name in _PROVENANCE}
    tags["tools"] = ", ".join(f"{tool} {version}" for tool, version in campaign.tools.items() if version)
    words = ("family", "variant", "parent", "source_sha256", "build_origin")
    tags |= {name: text(variant, name) for name in words}
    return tags | {"role": "baseline" if variant["is_baseline"] else "variant"}


def _number(value: float) -> str:
    return str(int(value)) if float(value).is_integer() else str(value)


def _milliseconds(moment: str) -> int:
    try:
        return int(datetime.datetime.fromisoformat(moment).timestamp() * 1000)
    except ValueError:
        return 0
