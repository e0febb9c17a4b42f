"""The sentences of a page: for each form, the numbers and comparisons it prints and those that the tables give."""

import math
import re
from collections.abc import Sequence

from warplog.judge.audited import TIME, UNIT, US, Check, Checks, N, Place, Q, Rule, V, number
from warplog.judge.evidence import CEILINGS, metric_of


def _lead_fastest(
    page: Place,
    case: str,
    besides: str | None,
    variant: str,
    speed: str,
    unit: str,
    share: str | None,
    baseline: str | None,
    tied: str | None,
) -> Checks:
    known = page.known
    yield Check(case, known.case)
    own = known.timed()
    best = min(own, key=lambda name: known.measured(name, "median_us"))
    yield Check(variant, best)
    rivals = [name for name in [*own, known.baseline()] if name and name != best and known.tied(name, best)]
    yield Check(tied or "", ", ".join(rivals))
    slower = known.baseline() and known.measured(known.baseline(), "median_us") < known.measured(
        best, "median_us"
    )
    yield Check("besides the baseline" if besides else "", "besides the baseline" if slower else "")
    yield Check(speed, known.speed(variant, unit))
    if share and baseline:
        yield Check(share, 100 * known.ratio(baseline, variant))


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
    yield from _beyond(page, most, beyond, above)
    best = min(known.timed(), key=lambda name: known.measured(name, "median_us"))
    first = best
    while known.parent(first) in known.timed():
        first = known.parent(first)
    if known.baseline() and known.parent(first) == known.baseline():
        first = known.baseline()
    ratios = {name: known.ratio(known.parent(name), name) for name in _way(page, first, best)}
    same = {name for name in ratios if known.tied(name, known.parent(name))}
    slower = sorted(name for name in ratios if ratios[name] < 1 and name not in same)
    yield Check(most, max(ratios, key=ratios.__getitem__))
    yield Check(gain, ratios.get(most, math.nan))
    printed = dict(re.findall(rf"{V}[ \w-]* \({N}x\)", rest.replace("slower than the previous step: ", "")))
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


def _beyond(
    page: Place, variant: str, ratio: str | None, above: str | None, case: str = "", always: bool = False
) -> Checks:
    """Checks the ratio to the ancestor that is faster than the parent over which a variant gains."""
    known = page.known
    way = [variant, known.parent(variant)]
    gains = known.faster(way[0], way[1], case)
    while gains and (parent := known.parent(way[-1])) and known.faster(parent, way[-1], case):
        way.append(parent)
    both = [f"{known.ratio(one, variant, case):#.3g}" for one in (way[1], way[-1])]
    told = len(way) > 2 and (always or both[0] != both[1])
    yield Check(above or "", way[-1] if told else "")
    if ratio and above:
        yield Check(ratio, known.ratio(above, variant, case))


def _lead_by_data(
    page: Place, case: str, head: str, variant: str, ratio: str, energy: str | None, of_head: str | None
) -> Checks:
    known = page.known
    times = [known.measured(variant, "sustained_us", c) for c in (head, case)]
    times = times if times[0] > 0 else [known.measured(variant, "hot_us", c) for c in (head, case)]
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


_THAT = rf"(?:, {N}x that of {V})?"
_LEAD: Sequence[Rule] = (
    (rf"(?<=[:;] )(\w+) at most (\S+) \(({V[1:-1]}(?:, {V[1:-1]})*)\)", _lead_own_limit),
    (
        rf"At (\S+), the fastest variant( besides the baseline)? is {V} with {N} {UNIT}"
        rf"(?:, {N} % of {V}(?: \([^)]*\))?)?"
        rf"(?:; tied with it within noise: ({V[1:-1]}(?:, {V[1:-1]})*))?(?=\.)",
        _lead_fastest,
    ),
    (rf"(Sustained|Back to back), (the fastest variant is )?{V} (?:reaches|with) {N} {UNIT}", _lead_long),
    (
        rf"In (\d+) steps?, the main path leads from {V} \({N} {UNIT}\) to {V}(?:, which is {N}x as fast)?\.",
        _lead_faster,
    ),
    (
        rf"Of these steps, {V} brings the largest speed-up \({N}x the speed of the previous step{_THAT}\)"
        r"((?:(?:; slower than the previous step: |[;,] )[^.]*(?:\.\d[^.]*)*)?)\.(?= |$)",
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
    yield Check(case, known.case if case != known.case else case)
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
    yield from _beyond(page, page.variant, beyond, above)


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


def _rung_elsewhere(page: Place, value: str, how: str, case: str, tied: str | None) -> Checks:
    known = page.known
    expected = str(known.variants[page.variant].get("expected") or "").replace(" x ", "x")
    smaller = [one for one in known.cases if one.isdigit() and case.isdigit() and int(one) < int(case)]
    named = case in expected or any(f"{one} and above" in expected for one in smaller)
    yield Check(case, case if named and case != known.case else "not named in the expectation")
    parent = known.parent(page.variant)
    if how == " %":
        yield Check(value, 100 * known.ratio(known.baseline(), page.variant, case))
        yield Check(parent if parent in known.variants else "", "")
        return
    yield Check(value, known.ratio(parent, page.variant, case))
    yield Check("tied" if tied else "apart", "tied" if known.tied(page.variant, parent, case) else "apart")


def _rung_no_time(page: Place, case: str) -> Checks:
    known = page.known
    times = [known.measured(name, "median_us", case) for name in (page.variant, known.parent(page.variant))]
    yield Check("no time", "a time" if all(time > 0 for time in times) else "no time")


def _rung_answer(page: Place, where: str, low: str, high: str, unit: str) -> Checks:
    known = page.known
    range_ = f"{low} to {high} {unit}"
    expected = str(known.variants[page.variant].get("expected") or "")
    yield Check(range_, range_ if expected.startswith(range_) else "not the expectation")
    ratio = known.ratio(known.parent(page.variant), page.variant)
    value = ratio if unit == "times" else 100 * (ratio - 1)
    yield Check(where, "below" if value < float(low) else "above" if value > float(high) else "within")


def _rung_claims(page: Place, confirmed: str, count: str, refuted: str | None, noise: str | None,
                 unjudged: str | None, cases: str | None) -> Checks:  # fmt: skip
    found = page.known.verdicts(page.variant)
    if len(found) > found.count("not_measurable"):
        named = set(cases.split(", ")) if cases else {page.known.case}
        yield Check(", ".join(sorted(named)), ", ".join(sorted(page.known.claimed_cases(page.variant))))
    yield Check(count, len(found), exact=True)
    printed = {"confirmed": confirmed, "refuted": refuted, "within_noise": noise, "not_measurable": unjudged}
    for verdict, number_of in printed.items():
        yield Check(number_of or "0", found.count(verdict), exact=True)


def _rung_noise(page: Place, samples: str, median: str, unit: str) -> Checks:
    known = page.known
    yield Check(samples, known.measured(page.variant, "samples"), exact=True)
    yield Check(median, known.measured(page.variant, "median_us") / US[unit], exact=True)


def _rung_spread(page: Place, kind: str, low: str, unit: str, high: str, other: str) -> Checks:
    known = page.known
    ends = ("q1_us", "q3_us") if kind == "quartiles" else ("process_min_us", "process_max_us")
    for printed, scale, column in ((low, unit, ends[0]), (high, other, ends[1])):
        yield Check(printed, known.measured(page.variant, column) / US[scale], exact=True)


def _rung_same(page: Place, value: str, unit: str) -> Checks:
    known = page.known
    for column in ("q1_us", "q3_us"):
        yield Check(value, known.measured(page.variant, column) / US[unit], exact=True)


def _rung_count(page: Place, n: str) -> Checks:
    known = page.known
    yield Check(n, known.measured(page.variant, "processes"), exact=True)


def _rung_parameter(page: Place, name: str, value: str) -> Checks:
    known = page.known
    if name in (given := known.parameters(page.variant)):
        yield Check(value, float(given[name]), exact=True)


def _rung_discarded(page: Place, dropped: str, taken: str, mhz: str) -> Checks:
    remark = f"{dropped} of {taken} launches discarded: set SM clock below {mhz} MHz"
    reason = str(page.known.rows[(page.variant, page.known.case)].get("reason"))
    earlier = remark.replace("set SM clock", "clock")  # in tables of an earlier version
    yield Check(remark, remark if remark in reason or earlier in reason else reason)


def _rung_spills(page: Place, stores: str, loads: str) -> Checks:
    truth = page.known.spills(page.variant)
    yield Check(stores, truth[0], exact=True)
    yield Check(loads, truth[1], exact=True)


def _rung_spills_in_all(page: Place, count: str) -> Checks:
    yield Check(count, number(page.known.variants[page.variant].get("spill_bytes")), exact=True)


_RUNG: Sequence[Rule] = (
    (
        rf"Got: \*\*{N}(x\*\* the speed| %\*\*) of {V}(, tied within noise)?{_THAT} \((\S+?)(, at rest)?\)",
        _rung_got,
    ),
    (rf"\*\*{N}(x| %)\*\* at ([^\s;]+?)( \(tied within noise\))?(?=;|\.$)", _rung_elsewhere),
    (r"\*\*no time\*\* at ([^\s;]+?)(?=;|\.$)", _rung_no_time),
    (rf"(below|within|above) the expected {N} to {N} (times|% faster)", _rung_answer),
    (
        r"(\d+) of (\d+) claims? confirmed(?:, (\d+) refuted)?(?:, (\d+) within noise)?(?:, (\d+) not judged)?"
        r"(?: \(claims at ([^)]*)\))?",
        _rung_claims,
    ),
    (r"(\d+) claims? not judged", lambda page, count: _rung_claims(page, "0", count, None, None, count, None)),
    (rf"\*\*{N} {UNIT}\*\* at ([^\s,]+)", _rung_speed),
    (rf"\*\*{N} {UNIT}\*\* (sustained|back to back)", _rung_long),
    (rf"\*\*{N}x\*\* the speed of {V}(, tied within noise)?{_THAT}", _rung_over),
    (rf"(?:Median of|One) (\d+)? ?launch(?:es)? (?:with a cold L2|at rest): {TIME}",
     lambda page, n, *rest: _rung_noise(page, n or "1", *rest)),
    (r"medians of (\d+)(?= processes)", _rung_count),
    (rf"(quartiles|processes) {TIME} to {TIME}", _rung_spread),
    (rf"both quartiles {TIME}", _rung_same),
    (r"spill stores (\d+) B, loads (\d+) B", _rung_spills),
    (r"spill stores and loads (\d+) B", _rung_spills_in_all),
    (r"(\d+) of (\d+) launches discarded: set SM clock below (\d+) MHz", _rung_discarded),
    (r"[\w.+-]+\.\w+, from line \d+", lambda _: iter(())),
    (r"\b([A-Z][A-Z0-9_]*) (\d+)(?=,|$|;)", _rung_parameter),
)  # fmt: skip


def _steps_parent(page: Place) -> str:
    known = page.known
    return known.parent(page.variant)


def _steps_compared(page: Place, ratio: str, how: str, other: str, place: str) -> Checks:
    known = page.known
    found = known.ratio(other, page.variant, place)
    same = known.tied(page.variant, other, place)
    truth = "tied" if same else "as fast as" if found > 1 else "longer than"
    yield Check(ratio, 1 / found if how == "longer than" else found)
    yield Check(how, truth)


def _steps_faster(page: Place, at: str | None, ratio: str, other: str) -> Checks:
    return _steps_compared(page, ratio, "as fast as", other, at or page.known.case)


def _steps_longer(page: Place, at: str | None, ratio: str, other: str) -> Checks:
    return _steps_compared(page, ratio, "longer than", other, at or page.known.case)


def _steps_equal(page: Place, at: str | None, other: str, ratio: str) -> Checks:
    return _steps_compared(page, ratio, "tied", other, at or page.known.case)


def _steps_little(page: Place, at: str | None, percent: str, how: str, other: str) -> Checks:
    known = page.known
    place = at or known.case
    found = known.ratio(other, page.variant, place)
    yield Check(percent, 100 * (max(found, 1 / found) - 1))
    same = known.tied(page.variant, other, place)
    yield Check(how, "tied" if same else "faster" if found > 1 else "slower")


def _steps_beyond(page: Place, above: str, parent: str, ratio: str) -> Checks:
    yield Check(parent, _steps_parent(page))
    yield from _beyond(page, page.variant, ratio, above, page.known.profiled, always=True)


def _steps_same_kernel(page: Place, case: str, other: str, ratio: str | None, tied: str | None) -> Checks:
    known = page.known
    yield Check(case, known.profiled)
    codes = [known.machine_code(one) for one in (other, page.variant)]
    yield Check("same code", "same code" if any(code in codes[1] for code in codes[0]) else "other code")
    for metric in ("registers_per_thread", "grid_blocks", "block_threads"):
        yield Check(f"{known.counter(other, metric):.0f}", known.counter(page.variant, metric), exact=True)
    executed = known.counter(page.variant, "instructions_executed") / known.counter(
        other, "instructions_executed"
    )
    yield Check("as many", "as many" if abs(executed - 1) <= 1e-3 else "more or fewer")
    yield from _steps_over_twin(page, other, ratio, tied)


def _steps_recompiled(page: Place, case: str, other: str, own: str, of_other: str, registers: str, ratio: str | None,
                      tied: str | None) -> Checks:  # fmt: skip
    known = page.known
    yield Check(case, known.profiled)
    for printed, variant in ((own, page.variant), (of_other, other)):
        sizes = {
            f"{dict(code).get('sass_instructions', math.nan):.0f}" for code in known.machine_code(variant)
        }
        yield Check(printed, printed if printed in sizes else " or ".join(sorted(sizes)))
    yield Check(registers, known.counter(page.variant, "registers_per_thread"), exact=True)
    yield from _steps_over_twin(page, other, ratio, tied)


def _steps_over_twin(page: Place, other: str, ratio: str | None, tied: str | None) -> Checks:
    known = page.known
    if ratio:
        yield Check(ratio, known.ratio(other, page.variant, known.profiled))
        same = known.tied(other, page.variant, known.profiled)
        yield Check("tied" if tied else "apart", "tied" if same else "apart")


def _steps_span(page: Place, metric: str, before: str, after: str) -> Checks:
    known = page.known
    yield Check(before, known.counter(_steps_parent(page), metric))
    yield Check(after, known.counter(page.variant, metric))


def _steps_factors(page: Place, side: str, listed: str) -> Checks:
    known = page.known
    found = re.findall(
        rf"([A-Za-z][\w ]*?) {Q}{_OF} → {Q}{_OF} \({N}(, (?:mainly|including|with) [^)]*)?\)", listed
    )
    yield Check(str(len(found) > 0), "True")
    for name, before, after, times, evidence in found:
        metric = metric_of(name.removeprefix("and "))
        factor = known.factor(_steps_parent(page), page.variant, metric)
        yield Check(times, factor)
        yield Check(side, "above" if factor > 1 else "below")
        yield from _steps_span(page, metric, before, after)
        if waves := re.fullmatch(rf", with {Q} → {Q} waves of blocks", evidence):
            yield from _steps_span(page, "waves_per_sm", *waves.groups())
            continue
        moved = 0.0
        for opcode, was, now in re.findall(rf"(\w+) instructions {Q} → {Q}", evidence):
            counter = f"inst_{opcode.lower()}"
            yield from _steps_span(page, counter, was, now)
            moved += known.counter(page.variant, counter) - known.counter(_steps_parent(page), counter)
        if evidence:
            whole = known.counter(page.variant, metric) - known.counter(_steps_parent(page), metric)
            yield Check(evidence.split()[1], "mainly" if moved / whole > 0.5 else "including")


def _steps_clock(page: Place, before: str, after: str) -> Checks:
    yield from _steps_span(page, "sm_mhz", before, after)


def _waiting(
    page: Place, variant: str, state: str, what: str, kind: str | None, file: str | None, line: str | None
) -> Checks:
    """Checks what a state waits for: most of its samples are on lines that wait so, and the machine code agrees."""
    known = page.known
    share = known.counter(variant, f"stall_{state}_pct") / 100
    if kind and file and line:
        mine = [row for row in known.hot(variant) if row["stall"] == state]
        places = {(str(row["file"]).rsplit("/", 1)[-1], int(row["line"])): row for row in mine}
        at = places.get((file, int(line)))
        texts = "wgmma" if kind == "wgmma" else "mbarrier"
        found = sum(row["stall_samples"] / row["samples"] * row["sample_share"] for row in mine
                    if row is at or texts in f"{row['file']}{row['text']}")  # fmt: skip
        yield Check(f"{file}:{line}", f"{file}:{line}" if at is not None else "no such line")
        yield Check("mostly", "mostly" if found >= 0.5 * share else "less than half")
    codes = known.opcodes(variant)
    arrivals = any("SYNCS.ARRIVE." in code and "A1T0" in code for code in codes)
    loads = any(code.startswith(("UTMALDG", "UBLKCP")) for code in codes) and not arrivals
    truth = {
        ("barrier", True): "the tensor cores",
        ("barrier", False): "a barrier or the tensor cores",
        ("long_scoreboard", True): "TMA loads" if loads else "loads or other warps",
        ("long_scoreboard", False): "an mbarrier, or data from global or local memory",
    }
    uses = {"barrier": "WARPGROUP", "long_scoreboard": "SYNCS"}.get(state, "none")
    if any(code.startswith(uses) for code in codes):
        yield Check(what, truth[state, bool(kind)])
    elif state in ("barrier", "long_scoreboard"):
        yield Check(what, {"barrier": "a barrier"}.get(state, "data from global or local memory"))


def _steps_state(
    page: Place,
    how: str,
    what: str,
    name: str,
    kind: str | None,
    file: str | None,
    line: str | None,
    before: str,
    after: str,
    parent: str,
    more: str | None,
) -> Checks:
    known = page.known
    yield from _waiting(page, parent if how == "Less" else page.variant, name, what, kind, file, line)
    spent = [known.spent(parent, one, name) for one in (parent, page.variant)]
    yield Check(parent, _steps_parent(page))
    yield Check(before, spent[0], exact=True)
    yield Check(after, spent[1], exact=True)
    yield Check(how, "Less" if spent[1] < spent[0] else "More")
    for plain, was, now in re.findall(rf"([A-Za-z][\w ]*?) \({Q} → {Q}\)", more or ""):
        yield from _steps_span(page, metric_of(plain.removeprefix("and ")), was, now)


def _steps_units(page: Place, listed: str) -> Checks:
    found = re.findall(rf"({_CEILING}) {N} % → {N} %", listed)
    yield Check(str(len(found) > 0), "True")
    for name, before, after in found:
        yield Check(before, _used(page, _steps_parent(page), CEILINGS[name]))
        yield Check(after, _used(page, page.variant, CEILINGS[name]))


def _steps_traffic(page: Place, listed: str) -> Checks:
    for name, before, after in re.findall(rf"(L2 bytes|DRAM bytes) {Q} → {Q}", listed):
        yield from _steps_span(page, metric_of(name), before, after)


def _steps_blocks(page: Place, before: str, after: str) -> Checks:
    yield Check(before, page.known.blocks_per_sm(_steps_parent(page)), exact=True)
    yield Check(after, page.known.blocks_per_sm(page.variant), exact=True)


def _steps_tile_end(page: Place, before: str, unit: str, after: str, other: str, ancestor: str) -> Checks:
    known = page.known
    above = known.parent(page.variant)
    while above and not known.tile_end(above) > 0:
        above = known.parent(above)
    yield Check(ancestor, above)
    yield Check(before, known.tile_end(above) / US[unit], exact=True)
    yield Check(after, known.tile_end(page.variant) / US[other], exact=True)


def _steps_offset(page: Place, less: str, *rest: str) -> Checks:
    for how, (name, _, before, after, parent) in zip((less, "more"), (rest[:5], rest[5:]), strict=True):
        known = page.known
        spent = [known.spent(parent, one, name) for one in (parent, page.variant)]
        yield Check(parent, _steps_parent(page))
        yield Check(before, spent[0], exact=True)
        yield Check(after, spent[1], exact=True)
        yield Check(how.lower(), "less" if spent[1] < spent[0] else "more")


def _steps_part(page: Place, variant: str, share: str) -> Checks:
    known = page.known
    of_launch = known.counter(variant, "duration_us") / known.measured(variant, "ncu_us", known.profiled)
    yield Check(share, 100 * of_launch, exact=True)


_PLACE = r"(?:, mostly at the (wgmma|mbarrier) wait of ([\w.-]+):(\d+))?"
_REACHES = rf"(?:; it reaches {N}x the speed of \w+(, tied within noise)?)?"
_AT = r"(?:At (\S+), where the counters were captured: )?"
_OF = r"(?: %| MHz)?"
_MOVED = rf"(\w+) \(([\w ,-]+)\): {N} % → {N} % of the cycles of {V}"
_CEILING = "|".join(sorted(map(re.escape, CEILINGS), key=len, reverse=True))
_STEPS: Sequence[Rule] = (
    (r"Utilisation: ((?:(?!\. |\.$).)*)\.", _steps_units),
    (r"Traffic: ((?:(?!\. |\.$).)*)\.", _steps_traffic),
    (r"Blocks per SM (\d+) → (\d+)\.", _steps_blocks),
    (rf"gap in computing at a tile end is {TIME} → {TIME}, compared with {V}", _steps_tile_end),
    (rf"(Less) {_MOVED}, offset by more {_MOVED}", _steps_offset),
    (rf"{_AT}{N}x as fast as {V}\.", _steps_faster),
    (rf"{_AT}Takes {N}x the time of {V}\.", _steps_longer),
    (rf"{_AT}As fast as {V} within noise \({N}x\)\.", _steps_equal),
    (rf"{_AT}{N} % (faster|slower) than {V}\.", _steps_little),
    (rf"Compared with {V}, which is faster than {V}, it is {N}x as fast", _steps_beyond),
    (
        rf"At (\S+), it launches the same kernel as {V} \(equal opcode counts, registers, grid and executed"
        rf" instructions\){_REACHES}",
        _steps_same_kernel,
    ),
    (
        rf"At (\S+), it launches the kernel of {V}, compiled to other machine code \((\d+) instead of (\d+)"
        rf" instructions, (\d+) registers\){_REACHES}",
        _steps_recompiled,
    ),
    (r"Factors (above|below) 1: ((?:(?!\. ).)*)\.", _steps_factors),
    (rf"mean SM clock during a launch goes from {N} to {N} MHz", _steps_clock),
    (
        rf"(Less|More) time waiting for ([\w ,-]+) \((\w+){_PLACE}\): {N} % → {N} % of the cycles of {V}"
        r"(; (?:(?!\. ).)*? (?:fell|rose) as well)?",
        _steps_state,
    ),
    (rf"longest kernel of {V}, {N} % of its time", _steps_part),
)


def _limits_value(page: Place, metric: str) -> float:
    known = page.known
    return known.counter(page.variant, metric)


def _limits_used(page: Place, metric: str) -> float:
    return _used(page, page.variant, metric)


def _used(page: Place, variant: str, metric: str) -> float:
    """Returns how much of a ceiling is used, of elapsed cycles: the counter of L1 refers to active ones."""
    used = page.known.counter(variant, metric)
    busy = page.known.counter(variant, "sm_busy_pct") / 100
    return used * busy if metric == "l1_throughput_pct" and busy < 1 else used


def _limits_bound(page: Place, name: str, used: str, l2: str | None, l1: str | None) -> Checks:
    return _limits_ceiling(page, "bound", name, used, l2, l1)


def _limits_close(page: Place, name: str, used: str, l2: str | None, l1: str | None) -> Checks:
    return _limits_ceiling(page, "close", name, used, l2, l1)


def _limits_far(page: Place, name: str, used: str, l2: str | None, l1: str | None) -> Checks:
    return _limits_ceiling(page, "far", name, used, l2, l1)


def _limits_ceiling(page: Place, kind: str, name: str, used: str, l2: str | None, l1: str | None) -> Checks:
    pct = _limits_used(page, CEILINGS[name])
    yield Check(used, pct)
    if l1:
        peak = 128 * page.known.peak("sms") * _limits_value(page, "gpu_cycles")
        yield Check(l1, 100 * _limits_value(page, "l1_bytes") / peak)
    if l2:
        yield Check(l2, _limits_value(page, "l2_throughput_pct"))
    known = [_limits_used(page, metric) for metric in CEILINGS.values()]
    highest = max(v for v in known if not math.isnan(v))
    slack = (
        10.0
        if name == "device memory" and _limits_value(page, "l2_throughput_pct") == highest
        else 0.01 * highest
    )
    yield Check(name, name if pct >= highest - slack else "another ceiling")
    bound = 80 if name == "device memory" else 90
    yield Check(kind, "bound" if pct >= bound else "close" if pct >= 60 else "far")


def _limits_stall(
    page: Place, name: str, share: str, kind: str | None, file: str | None, line: str | None, what: str
) -> Checks:
    known = page.known
    values = known.counters.get(page.variant, {})
    states = {m[6:-4]: v for m, v in values.items() if re.fullmatch(r"stall_\w+_pct", m)}
    stalls = {s: v for s, v in states.items() if s not in ("selected", "not_selected")}
    yield Check(name, max(stalls, key=stalls.__getitem__))
    yield Check(share, stalls.get(name, math.nan), exact=True)
    yield from _waiting(page, page.variant, name, what, kind, file, line)


def _limits_occupied(page: Place, theoretical: str, achieved: str | None, above: str | None) -> Checks:
    yield Check(theoretical, _limits_value(page, "theoretical_occupancy_pct"))
    if achieved:
        yield Check(achieved, _limits_value(page, "achieved_occupancy_pct"))
        yield Check("above" if above else "", "above" if float(achieved) > float(theoretical) else "")


def _limits_traffic(page: Place, moved: str, unit: str, times: str, least: str, least_unit: str) -> Checks:
    known = page.known
    compulsory = number(known.variants[page.variant].get("bytes"))
    yield Check(f"{moved} {unit.removesuffix('B')}".strip(), _limits_value(page, "dram_bytes"))
    yield Check(times, _limits_value(page, "dram_bytes") / compulsory, exact=True)
    yield Check(f"{least} {least_unit.removesuffix('B')}".strip(), compulsory)


def _limits_conflicts(page: Place, share: str, whole: str) -> Checks:
    wavefronts = _limits_value(page, "shared_wavefronts")
    yield Check(share, 100 * _limits_value(page, "shared_wavefronts_excess") / wavefronts, exact=True)
    yield Check(whole, wavefronts)


def _limits_limited(page: Place, limit: str, before: str | None, after: str | None, watts: str | None,
                    rest: str, unit: str, long: str, other: str, longer: str) -> Checks:  # fmt: skip
    known = page.known
    row = known.rows[(page.variant, known.profiled)]
    reasons = str(row.get("throttle_reasons") or "")
    reported = "power" if "power" in reasons else "temperature" if "thermal" in reasons else ""
    yield Check(limit, str(row.get("limited_by") or "") or reported)
    sustained = known.measured(page.variant, "sustained_us", known.profiled) > 0
    names = ("sustained_sm_mhz", "sustained_power_w") if sustained else ("hot_sm_mhz", "hot_power_w")
    set_mhz = known.measured(page.variant, "set_mhz", known.profiled)
    if before and after:
        yield Check(before, known.peak("max_sm_mhz") if math.isnan(set_mhz) else set_mhz, exact=True)
        yield Check(after, known.measured(page.variant, names[0], known.profiled), exact=True)
    if watts:
        yield Check(watts, known.measured(page.variant, names[1], known.profiled), exact=True)
    column = "sustained_us" if sustained else "hot_us"
    yield Check(rest, known.measured(page.variant, "median_us", known.profiled) / US[unit], exact=True)
    yield Check(long, known.measured(page.variant, column, known.profiled) / US[other], exact=True)
    times = [known.measured(page.variant, name, known.profiled) for name in (column, "median_us")]
    yield Check(longer, times[0] / times[1])


def _limits_profiled(page: Place, times: str) -> Checks:
    known = page.known
    cycles = [known.measured(page.variant, name, known.profiled) for name in ("median_us", "sm_mhz")]
    yield Check(times, _limits_value(page, "gpu_cycles") / math.prod(cycles))


def _limits_engine(page: Place, name: str, share: str) -> Checks:
    known = page.known
    engines = {
        "kernels": "kernel_us",
        "copies to the device": "to_device_us",
        "copies to the host": "to_host_us",
    }
    times = {plain: known.whole_launch.get((page.variant, m), math.nan) for plain, m in engines.items()}
    yield Check(name, max(times, key=times.__getitem__))
    yield Check(share, known.whole_launch.get((page.variant, "longest_engine_pct"), math.nan), exact=True)


def _limits_hidden(page: Place, share: str, of_parent: str | None, parent: str | None) -> Checks:
    known = page.known
    yield Check(share, known.whole_launch.get((page.variant, "copy_hidden_pct"), math.nan), exact=True)
    if of_parent and parent:
        yield Check(of_parent, known.whole_launch.get((parent, "copy_hidden_pct"), math.nan), exact=True)


_SAME = (
    rf"(?: \(L2, through which this traffic passes, is at {N} %\))?"
    rf"(?: \(global and local accesses use {N} % of L1's bytes per cycle\))?"
)
_LIMITS: Sequence[Rule] = (
    (rf"\b[Ii]t is bound by ({_CEILING}), at {N} % of the peak{_SAME}", _limits_bound),
    (rf"The busiest unit is ({_CEILING}), at {N} % of its peak{_SAME}", _limits_close),
    (rf"No unit is near its peak; the busiest is ({_CEILING}), at {N} %{_SAME}", _limits_far),
    (rf"The largest stall is (\w+) \({N} % of warp cycles{_PLACE}\): waiting for ([\w ,-]+)\.", _limits_stall),
    (rf"Theoretical occupancy is {N} %(?:, limited by [\w, ]+)?(?:; achieved occupancy is {N} %"
     r"(, above the theoretical value by the inaccuracy of the counters)?)?", _limits_occupied),
    (rf"The kernel moves {N} (\w?B) to and from device memory, {N} times the compulsory {N} (\w?B)", _limits_traffic),
    (rf"Bank conflicts cause {N} % of its {Q} shared-memory wavefronts", _limits_conflicts),
    (rf"launches are limited by ([\w ]+): ((set SM clock {N} → {N} MHz)?(?: at )?(?:{N} W)?; )?{TIME}"
     rf" (?:at rest|with a cold L2), {TIME} (?:sustained|back to back) \({N}x the time\)",
     lambda page, limit, _, __, *rest: _limits_limited(page, limit, *rest)),
    (rf"a launch that took {N}x the cycles of the timed ones", _limits_profiled),
    (rf"The busiest engine \(([\w ]+)\) is active for {N} % of the launch", _limits_engine),
    (rf"{N} % of the copy time passes while another engine is active(?: \({N} % in {V}\))?", _limits_hidden),
)  # fmt: skip

RULES: Sequence[Rule] = (
    *_LEAD,
    *_RUNG,
    *_STEPS,
    *_LIMITS,
    (rf"\*?\*?{N} %\*?\*? of (?!the\b|its\b|their\b){V}", _lead_share),
)
