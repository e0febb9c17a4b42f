"""The sentences of a page: for each form, the numbers and comparisons it prints and those that the tables give."""

import math
import re
from collections.abc import Sequence

from warplog.judge.audited import TIME, UNIT, US, Check, Checks, N, Place, Q, Rule, V, number
from warplog.judge.evidence import CEILINGS
from warplog.judge.rules.expectations import EXPECTATIONS
from warplog.judge.rules.steps import CEILING, PLACE, STEPS, gain_beyond, share_used, waited_for
from warplog.records import remarks


def _lead_fastest(
    page: Place,
    case: str,
    besides: str | None,
    variant: str | None,
    several: str | None,
    low: str | None,
    high: str,
    unit: str,
    low_share: str | None,
    share: str | None,
    baseline: str | None,
    tied: str | None,
) -> Checks:
    known = page.known
    yield Check(case, known.case)
    own, best = known.timed(), known.best()
    alike = known.alike.get(best, [best])
    yield Check((several or str(variant)).replace(" and ", ", "), ", ".join(alike))
    others = [name for name in [*own, known.baseline()] if name and name not in alike]
    rivals = [name for name in others if known.kernels_tied(name, best)]
    yield Check(tied or "", ", ".join(rivals))
    slower = known.baseline() and known.measured(known.baseline(), "median_us") < known.measured(
        best, "median_us"
    )
    yield Check("besides the baseline" if besides else "", "besides the baseline" if slower else "")
    speeds = sorted((known.speed(name, unit) for name in alike), reverse=unit == "µs")
    yield Check(low or high, speeds[0])
    yield Check(high, speeds[-1])
    if share and baseline:
        ratios = sorted(100 * known.ratio(baseline, name) for name in alike)
        yield Check(low_share or share, ratios[0])
        yield Check(share, ratios[-1])


def _lead_long(page: Place, regime: str, fastest: str | None, variant: str, speed: str, unit: str) -> Checks:
    known = page.known
    if not fastest:
        yield Check(regime.lower(), _regime(page, variant))
    time = known.long_us(variant) if known.is_long(variant) else known.measured(variant, "median_us")
    yield Check(speed, known.speed(variant, unit) * known.measured(variant, "median_us") / time)


def _lead_faster(
    page: Place, steps: str, first: str, speed: str, unit: str, variant: str, ratio: str | None
) -> Checks:
    known = page.known
    yield Check(variant, known.best())
    if ratio:
        yield Check(ratio, known.ratio(first, variant))
    else:
        yield Check(first, known.baseline())
    yield Check(speed, known.speed(first, unit))
    yield Check(steps, len(_way(page, first, variant)), exact=True)


def _way(page: Place, first: str, variant: str) -> list[str]:
    """Returns the variants that lead from `first`, which is left out, to `variant`."""
    way = [variant]
    while (parent := page.known.parent(way[-1])) and parent != first:
        way.append(parent)
    return way


def _lead_extremes(
    page: Place, most: str, gain: str, beyond: str | None, above: str | None, rest: str
) -> Checks:
    known = page.known
    yield from gain_beyond(page, most, beyond, above)
    best = first = known.best()
    while (parent := known.parent(first)) and parent in (*known.timed(), known.baseline()):
        first = parent
    way = [name for name in _way(page, first, best) if known.parent(name) not in known.alike.get(name, [])]
    ratios = {name: known.ratio(known.parent(name), name) for name in way}
    same = {name for name in ratios if known.tied(name, known.parent(name))}
    slower = sorted(name for name in ratios if ratios[name] < 1 and name not in same)
    yield Check(most, max(ratios, key=ratios.__getitem__))
    yield Check(gain, ratios.get(most, math.nan))
    printed = dict(
        re.findall(rf"{V}[ \w-]* \({N}x\)", re.sub(r"\w+ steps? \w+ slower than[^:]*: ", "", rest))
    )
    least = min(ratios, key=ratios.__getitem__)
    alike = sum(f"{one:#.3g}" == f"{ratios[least]:#.3g}" for one in ratios.values()) > 1
    told = slower or ([] if alike and least not in same else [least])
    yield Check(", ".join(sorted(printed)), ", ".join(told))
    for name, loss in printed.items():
        yield Check(loss, ratios.get(name, math.nan))
    if not rest:
        return
    how = "slower" if ": " in rest else "tied" if "within noise" in rest else "smallest"
    yield Check(how, "slower" if slower else "tied" if least in same else "smallest")


def _lead_by_data(
    page: Place, case: str, head: str, variant: str, ratio: str, energy: str | None, of_head: str | None
) -> Checks:
    known = page.known
    times = [known.measured(variant, "sustained_us", c) for c in (head, case)]
    yield Check(ratio, times[0] / times[1])
    for printed, place in ((energy, case), (of_head, head)):
        if printed:
            yield Check(printed, known.measured(variant, "pj_per_flop", place))


def _lead_share(page: Place, printed: str, baseline: str) -> Checks:
    known = page.known
    best = min(known.timed(), key=lambda name: known.measured(name, "median_us"))
    yield Check(printed, 100 * known.ratio(baseline, page.variant or best))


def _lead_case(page: Place, case: str, size: str) -> Checks:
    yield Check(case, page.known.case)
    yield Check(
        size,
        next(float(row["size"]) for (_, name), row in page.known.rows.items() if name == case),
        exact=True,
    )


def _lead_processes(page: Place, least: str | None, most: str) -> Checks:
    known = page.known
    counts = [number(row.get("processes")) for (_, case), row in known.rows.items() if case == known.case]
    counts = [count for count in counts if count > 1]
    yield Check(most, max(counts), exact=True)
    yield Check(least or most, min(counts), exact=True)


def _lead_own_limit(page: Place, parameter: str, most: str, names: str) -> Checks:
    known = page.known
    for name in names.split(", "):
        limits = [known.own_limits(name, case).get(parameter) for case in known.cases]
        yield Check(most, most if most in limits else f"not a limit of {name}")


_LIST = rf"{V[1:-1]}(?:, {V[1:-1]})*(?: and {V[1:-1]})?"
_THAT = rf"(?:, {N}x that of {V})?"
_LEAD: Sequence[Rule] = (
    (rf"(?<=[:;] )(\w+) at most (\S+) \(({V[1:-1]}(?:, {V[1:-1]})*)\)", _lead_own_limit),
    (
        rf"At (\S+), the fastest variants?( besides the baseline)?"
        rf" (?:is {V}|are ({_LIST}), which launch the same kernel,)"
        rf" with (?:{N} to )?{N} {UNIT}(?:, (?:{N} to )?{N} % of {V}(?: \([^)]*\))?)?"
        rf"(?:; tied with (?:it|them) within noise: ({_LIST}))?(?=\.)",
        _lead_fastest,
    ),
    (rf"(Sustained|Back to back), (the fastest variant is )?{V} (?:reaches|with) {N} {UNIT}", _lead_long),
    (
        rf"In (\d+) steps?, the main path leads from {V} \({N} {UNIT}\) to {V}(?:, which is {N}x as fast)?\.",
        _lead_faster,
    ),
    (
        rf"Of these steps, {V} brings the largest speed-up \({N}x the speed of the previous step{_THAT}\)"
        r"((?:(?:; (?:one step is|some steps are) slower than the previous one by more than the noise: |[;,] )"
        r"[^.]*(?:\.\d[^.]*)*)?)\.(?= |$)",
        _lead_extremes,
    ),
    (
        rf"With the data of (\S+) instead of (\S+), {V} is {N}x as fast(?: and takes {N} instead of {N} pJ/FLOP)?",
        _lead_by_data,
    ),
    (r"Case (\S+) is (?:[A-Zn]+ = )+(\d+)\.", _lead_case),
    (r"the median over (?:(\d+) to )?(\d+) processes", _lead_processes),
)


def _rung_speed(page: Place, value: str, unit: str, case: str) -> Checks:
    known = page.known
    yield Check(case, known.case)
    yield Check(value, known.speed(page.variant, unit))


def _regime(page: Place, variant: str) -> str:
    """Returns what a long run is called: sustained only if the variant reached a limit of the board."""
    row = page.known.rows[(variant, page.known.case)]
    reached = page.known.measured(variant, "sustained_us") > 0 and str(row.get("limited_by") or "")
    return "sustained" if reached else "back to back"


def _rung_long(page: Place, value: str, unit: str, regime: str) -> Checks:
    known = page.known
    yield Check(regime, _regime(page, page.variant))
    rest = known.measured(page.variant, "median_us")
    yield Check(value, known.speed(page.variant, unit) * rest / known.long_us(page.variant))


def _rung_over(
    page: Place, ratio: str, parent: str, tied: str | None, beyond: str | None, above: str | None
) -> Checks:
    known = page.known
    yield Check(ratio, known.ratio(parent, page.variant))
    same = known.tied(page.variant, parent)
    yield Check("tied" if tied else "apart", "tied" if same else "apart")
    yield from gain_beyond(page, page.variant, beyond, above)


def _rung_got(
    page: Place,
    value: str,
    how: str,
    other: str,
    tied: str | None,
    beyond: str | None,
    above: str | None,
    case: str,
    rest: str | None,
) -> Checks:
    known = page.known
    if how == "x** the speed":
        yield from _rung_over(page, value, other, tied, beyond, above)
        yield Check(other, known.parent(page.variant))
    else:
        yield Check(value, 100 * known.ratio(known.baseline(), page.variant))
        yield Check(other, known.baseline())
    yield Check(case, known.case)
    yield Check(
        "at rest" if rest else "",
        "at rest" if known.measured(page.variant, "set_mhz", known.case) > 0 else "",
    )


def _rung_got_speed(page: Place, value: str, unit: str, case: str, rest: str | None) -> Checks:
    known = page.known
    yield Check(page.variant, known.baseline())
    yield Check(value, known.speed(page.variant, unit))
    yield Check(case, known.case)
    yield Check("at rest" if rest else "", "at rest" if known.measured(page.variant, "set_mhz") > 0 else "")


def _rung_same(page: Place, other: str, case: str, rest: str | None) -> Checks:
    known = page.known
    yield Check(other, known.parent(page.variant))
    yield Check(
        "the same kernel",
        "the same kernel" if other in known.alike.get(page.variant, []) else "another kernel",
    )
    yield Check(case, known.case)
    yield Check(
        "at rest" if rest else "",
        "at rest" if known.measured(page.variant, "set_mhz", known.case) > 0 else "",
    )


def _rung_claims(page: Place, count: str | None, verdict: str, rest: str, cases: str | None) -> Checks:
    found = page.known.verdicts(page.variant)
    printed = {verdict: count or "1"} | {name: n for n, name in re.findall(r", (\d+) ([a-z ]+)", rest)}
    named = set(re.split(", | and ", cases)) if cases else {page.known.case}
    yield Check(", ".join(sorted(named)), ", ".join(sorted(page.known.claimed_cases(page.variant))))
    for one in ("confirmed", "refuted", "within_noise", "not_measurable"):
        words = {"within_noise": "within noise", "not_measurable": "not judged"}.get(one, one)
        yield Check(printed.get(words, "0"), found.count(one), exact=True)


def _rung_noise(page: Place, median: str, unit: str, processes: str | None, *rest: str | None) -> Checks:
    known = page.known
    yield Check(median, known.measured(page.variant, "median_us") / US[unit], exact=True)
    if processes:
        yield Check(processes, known.measured(page.variant, "processes"), exact=True)
        low, unit_of_low, high, unit_of_high, each, unit_of_each = rest[:6]
        ends = (each, unit_of_each, each, unit_of_each) if each else (low, unit_of_low, high, unit_of_high)
        yield from _rung_spread(page, ("process_min_us", "process_max_us"), *ends)
    samples, *quartiles, both, unit_of_both = rest[6:]
    yield Check(str(samples), known.measured(page.variant, "samples"), exact=True)
    if both and unit_of_both:
        quartiles = [both, unit_of_both, both, unit_of_both]
    yield from _rung_spread(page, ("q1_us", "q3_us"), *quartiles)


def _rung_spread(page: Place, ends: tuple[str, str], low: str | None, unit: str | None, high: str | None,
                 other: str | None) -> Checks:  # fmt: skip
    for printed, scale, column in ((low, unit or other, ends[0]), (high, other, ends[1])):
        yield Check(str(printed), page.known.measured(page.variant, column) / US[str(scale)], exact=True)


def _rung_one(page: Place, median: str, unit: str) -> Checks:
    yield Check("1", page.known.measured(page.variant, "samples"), exact=True)
    yield Check(median, page.known.measured(page.variant, "median_us") / US[unit], exact=True)


def _rung_parameter(page: Place, name: str, value: str) -> Checks:
    known = page.known
    if name in (given := known.parameters(page.variant)):
        yield Check(value, float(given[name]), exact=True)


def _rung_discarded(page: Place, dropped: str, taken: str, mhz: str) -> Checks:
    remark = f"{dropped} of {taken} launches discarded: set SM clock below {mhz} MHz"
    known = remarks.of_row(page.known.rows[(page.variant, page.known.case)])
    yield Check(remark, remark if remark in known else known)


def _rung_spills(page: Place, stores: str, loads: str) -> Checks:
    truth = page.known.spills(page.variant)
    yield Check(stores, truth[0], exact=True)
    yield Check(loads, truth[1], exact=True)


def _rung_spills_in_all(page: Place, count: str) -> Checks:
    yield Check(count, number(page.known.variants[page.variant].get("spill_bytes")), exact=True)


_ENDS = rf"{N}(?: (µs|ms))? to {N} (µs|ms)"
_RUNG: Sequence[Rule] = (
    (
        rf"Got: \*\*{N}(x\*\* the speed| %\*\*) of {V}(, tied within noise)?{_THAT} \((\S+?)(, at rest)?\)",
        _rung_got,
    ),
    (rf"Got: \*\*{N} {UNIT}\*\* \((\S+?)(, at rest)?\)", _rung_got_speed),
    (rf"Got: \*\*the same kernel\*\* as {V} \((\S+?)(, at rest)?\)", _rung_same),
    *EXPECTATIONS,
    (
        r"(?<=[;:] )(?:(\d+) claims?|claim) (confirmed|refuted|within noise|not judged)"
        r"((?:, \d+ (?:refuted|within noise|not judged))*)(?: \(at ([^)]*)\))?(?=\.$)",
        _rung_claims,
    ),
    (
        r"(?<=[;:] )claims at ([^:]*): (\d+) (confirmed|refuted|within noise|not judged)"
        r"((?:, \d+ (?:refuted|within noise|not judged))*)(?=\.$)",
        lambda page, cases, count, verdict, rest: _rung_claims(page, count, verdict, rest, cases),
    ),
    (rf"\*\*{N} {UNIT}\*\* at ([^\s,]+)", _rung_speed),
    (rf"\*\*{N} {UNIT}\*\* (sustained|back to back)", _rung_long),
    (rf"\*\*{N}x\*\* the speed of {V}(, tied within noise)?{_THAT}", _rung_over),
    (rf"^{TIME} (?:with a cold L2|at rest): median of (?:(\d+) processes \((?:{_ENDS}|{TIME} each)\), )?(\d+) launches"
     rf"; (?:quartiles {_ENDS}|both quartiles {TIME})\.", _rung_noise),
    (rf"One launch with a cold L2: {TIME}", _rung_one),
    (r"spill stores (\d+) B, loads (\d+) B", _rung_spills),
    (r"spill stores and loads (\d+) B", _rung_spills_in_all),
    (r"(\d+) of (\d+) launches discarded: set SM clock below (\d+) MHz", _rung_discarded),
    (r"[\w.+-]+\.\w+, from line \d+", lambda _: iter(())),
    (r"\b([A-Z][A-Z0-9_]*) (\d+)(?=,|$|;| \(not used)", _rung_parameter),
)  # fmt: skip


def _limits_value(page: Place, metric: str) -> float:
    return page.known.counter(page.variant, metric)


def _limits_ceiling(page: Place, kind: str, name: str | None, used: str | None, l2: str | None = None,
                    dram: str | None = None, shared: str | None = None, l1: str | None = None) -> Checks:  # fmt: skip
    pct = share_used(page, page.variant, CEILINGS[str(name)])
    if used:
        yield Check(used, pct)
    if shared:
        yield Check(shared, _limits_value(page, "shared_wavefronts"))
    if l1:
        peak = 128 * page.known.peak("sms") * _limits_value(page, "gpu_cycles")
        yield Check(l1, 100 * _limits_value(page, "l1_bytes") / peak)
    for printed, metric in ((l2, "l2_throughput_pct"), (dram, "dram_throughput_pct")):
        if printed:
            yield Check(printed, _limits_value(page, metric))
    known = [share_used(page, page.variant, metric) for metric in CEILINGS.values()]
    highest = max(v for v in known if not math.isnan(v))
    slack = (
        10.0
        if name == "device memory" and _limits_value(page, "l2_throughput_pct") == highest
        else 0.01 * highest
    )
    yield Check(str(name), str(name) if pct >= highest - slack else "another ceiling")
    bound = 80 if name == "device memory" else 90
    yield Check(kind, "bound" if pct >= bound else "close" if pct >= 60 else "far")


def _limits_stall(
    page: Place, name: str, share: str, kind: str | None, file: str | None, line: str | None, what: str | None
) -> Checks:
    known = page.known
    values = known.counters.get(page.variant, {})
    states = {m[6:-4]: v for m, v in values.items() if re.fullmatch(r"stall_\w+_pct", m)}
    stalls = {s: v for s, v in states.items() if s not in ("selected", "not_selected")}
    yield Check(name, max(stalls, key=stalls.__getitem__))
    yield Check(share, stalls.get(name, math.nan), exact=True)
    if what:  # otherwise the step has told it
        yield from waited_for(page, page.variant, name, what, kind, file, line)


def _limits_occupied(page: Place, theoretical: str) -> Checks:
    yield Check(theoretical, _limits_value(page, "theoretical_occupancy_pct"))


def _limits_achieved(page: Place, achieved: str, above: str | None) -> Checks:
    yield Check(achieved, _limits_value(page, "achieved_occupancy_pct"))
    theoretical = _limits_value(page, "theoretical_occupancy_pct")
    yield Check("above" if above else "", "above" if float(achieved) > float(f"{theoretical:.3g}") else "")


def _limits_traffic(
    page: Place, moved: str | None, unit: str | None, times: str | None, least: str, least_unit: str
) -> Checks:
    known = page.known
    compulsory = number(known.variants[page.variant].get("bytes"))
    if moved and unit:
        yield Check(f"{moved} {unit.removesuffix('B')}".strip(), _limits_value(page, "dram_bytes"))
    ratio = _limits_value(page, "dram_bytes") / compulsory
    yield (
        Check(times, ratio, exact=True)
        if times
        else Check("about", "about" if 0.95 < ratio < 1.05 else "more or less")
    )
    yield Check(f"{least} {least_unit.removesuffix('B')}".strip(), compulsory)


def _limits_conflicts(page: Place, share: str, whole: str | None) -> Checks:
    wavefronts = _limits_value(page, "shared_wavefronts")
    yield Check(share, 100 * _limits_value(page, "shared_wavefronts_excess") / wavefronts, exact=True)
    if whole:
        yield Check(whole, wavefronts)


def _limits_limited(page: Place, limit: str, before: str | None, after: str | None, watts: str | None,
                    long: str, unit: str, longer: str, rest: str) -> Checks:  # fmt: skip
    known = page.known
    row = known.rows[(page.variant, known.profiled)]
    yield Check(limit, str(row.get("limited_by") or ""))
    columns = ("set_mhz", "sustained_sm_mhz", "sustained_power_w", "sustained_us", "median_us")
    set_mhz, sm_mhz, power_w, long_us, rest_us = (
        known.measured(page.variant, column, known.profiled) for column in columns
    )
    if before and after:
        yield Check(before, set_mhz, exact=True)
        yield Check(after, sm_mhz, exact=True)
    if watts:
        yield Check(watts, power_w, exact=True)
    yield Check(long, long_us / US[unit], exact=True)
    yield Check(rest, "at rest" if set_mhz > 0 else "with a cold L2")
    yield Check(longer, long_us / rest_us)


def _limits_profiled(page: Place, times: str) -> Checks:
    known = page.known
    cycles = [known.measured(page.variant, name, known.profiled) for name in ("median_us", "sm_mhz")]
    yield Check(times, _limits_value(page, "gpu_cycles") / math.prod(cycles))


def _limits_copies(page: Place, time: str, unit: str) -> Checks:
    yield Check(time, page.known.copies_us(page.variant) / US[unit], exact=True)


def _limits_grid(page: Place, blocks: str, sms: str, waves: str) -> Checks:
    yield Check(blocks, _limits_value(page, "grid_blocks"))
    yield Check(sms, page.known.peak("sms"), exact=True)
    yield Check(waves, _limits_value(page, "waves_per_sm"))


def _limits_engines(page: Place, *printed: str) -> Checks:
    metrics = ("wall_us", "to_device_us", "kernel_us", "to_host_us")
    for metric, time, unit in zip(metrics, printed[::2], printed[1::2], strict=True):
        us = page.known.whole_launch.get((page.variant, metric), math.nan)
        yield Check(time, us / US[unit], exact=True)


def _limits_hidden(page: Place, share: str | None, of_parent: str | None, parent: str | None) -> Checks:
    known = page.known
    hidden = known.whole_launch.get((page.variant, "copy_hidden_pct"), math.nan)
    yield Check(share or "0", hidden, exact=True)
    if of_parent and parent:
        yield Check(parent, known.parent(page.variant))
        yield Check(of_parent, known.whole_launch.get((parent, "copy_hidden_pct"), math.nan), exact=True)


_SAME = (
    rf"(?:; the same bytes use {N} % of L2)?(?:; device memory is at {N} %)?"
    rf"(?:, mainly through its (?:{Q} )?shared-memory wavefronts)?"
    rf"(?: \((?:in its busiest part; )?global and local accesses use {N} % of its bandwidth\))?"
)
_LIMITS: Sequence[Rule] = (
    (rf"\b[Ii]t is bound by ({CEILING})(?:, at {N} % of its peak)?{_SAME}",
     lambda page, *printed: _limits_ceiling(page, "bound", *printed)),
    (rf"The busiest units? (?:is|are) ({CEILING})(?:, at {N} % of (?:its|their) peak)?{_SAME}",
     lambda page, *printed: _limits_ceiling(page, "close", *printed)),
    (rf"No unit is near its peak; the busiest (?:is|are) ({CEILING})(?:, at {N} %)?{_SAME}",
     lambda page, *printed: _limits_ceiling(page, "far", *printed)),
    (rf"The largest stall is (\w+) \({N} % of warp cycles{PLACE}\)(?:: waiting for ([\w ,-]+))?\.", _limits_stall),
    (rf"Theoretical occupancy is {N} %(?:, limited by [\w, ]+)?", _limits_occupied),
    (rf"[Aa]chieved occupancy is {N} %( \(more than theory allows: the counters are inexact\))?", _limits_achieved),
    (rf"(?:The kernel moves {N} (\w?B) to and from device memory,|Device-memory traffic is) (?:{N} times|about) the"
     rf" compulsory {N} (\w?B)", _limits_traffic),
    (rf"Bank conflicts cause {N} % of its (?:{Q} )?shared-memory wavefronts", _limits_conflicts),
    (rf"launches are limited by ([\w ]+): ((set SM clock {N} → {N} MHz)?(?: at )?(?:{N} W)?; )?{TIME}"
     rf" a launch, {N}x the time (at rest|with a cold L2)",
     lambda page, limit, _, __, *rest: _limits_limited(page, limit, *rest)),
    (rf"a launch that took {N}x the cycles of the timed ones", _limits_profiled),
    (rf"copies take {TIME} of a launch", _limits_copies),
    (rf"The grid does not fill the GPU: {Q} blocks for (\d+) SMs \({Q} waves\)", _limits_grid),
    (rf"Traced back to back, a launch takes {TIME}, with copies in for {TIME}, kernels for {TIME} and copies out for"
     rf" {TIME}", _limits_engines),
    (rf"(?:{N} % of the|No) copy time is overlapped(?: \({N} % in {V}\))?", _limits_hidden),
)  # fmt: skip

RULES: Sequence[Rule] = (
    *_LEAD,
    *_RUNG,
    *STEPS,
    *_LIMITS,
    (rf"\*?\*?{N} %\*?\*? of (?!the\b|its\b|their\b){V}", _lead_share),
)
