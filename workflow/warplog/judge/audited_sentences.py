"""The sentences of a page: for each form, the numbers and comparisons it prints and those that the tables give."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from warplog.judge.audited import TIME, UNIT, US, Check, Checks, N, Place, Q, Rule, V, number
from warplog.judge.evidence import CEILINGS, metric_of


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


def _lead_long(page: Place, variant: str, speed: str, unit: str) -> Checks:
    known = page.known
    time = known.long_us(variant) if known.is_long(variant) else known.measured(variant, "median_us")
    yield Check(speed, known.speed(variant, unit) * known.measured(variant, "median_us") / time)


def _lead_faster(
    page: Place, steps: str, first: str, speed: str, unit: str, variant: str, ratio: str
) -> Checks:
    known = page.known
    yield Check(variant, known.best())
    yield Check(ratio, known.ratio(first, variant))
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
    best = first = known.best()
    while known.parent(first) in known.timed():
        first = known.parent(first)
    if known.baseline() and known.parent(first) == known.baseline():
        first = known.baseline()
    way = [name for name in _way(page, first, best) if known.parent(name) not in known.alike.get(name, [])]
    ratios = {name: known.ratio(known.parent(name), name) for name in way}
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


_LIST = rf"{V[1:-1]}(?:, {V[1:-1]})*(?: and {V[1:-1]})?"
_THAT = rf"(?:, {N}x that of {V})?"
_LEAD: Sequence[Rule] = (
    (rf"(?<=[:;] )(\w+) at most (\S+) \(({V[1:-1]}(?:, {V[1:-1]})*)\)", _lead_own_limit),
    (
        rf"At (\S+), the fastest variants?( besides the baseline)?"
        rf" (?:is {V}|are ({_LIST}), which launch the same kernel,)"
        rf" with (?:{N} to )?{N} {UNIT}(?:, (?:{N} to )?{N} % of {V})?"
        rf"(?:; tied with (?:it|them) within noise: ({_LIST}))?(?=\.)",
        _lead_fastest,
    ),
    (rf"(?:Sustained|Back to back), (?:the fastest variant is )?{V} (?:reaches|with) {N} {UNIT}", _lead_long),
    (
        rf"In (\d+) steps?, the main path leads from {V} \({N} {UNIT}\) to {V}, which is {N}x as fast",
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
    (r"Case (\S+) is (?:[A-Z]+ = )+(\d+)\.", _lead_case),
    (r"the median over (?:(\d+) to )?(\d+) processes", _lead_processes),
)


def _rung_speed(page: Place, value: str, unit: str, case: str) -> Checks:
    known = page.known
    yield Check(case, known.case if case != known.case else case)
    yield Check(value, known.speed(page.variant, unit))


def _rung_long(page: Place, value: str, unit: str) -> Checks:
    known = page.known
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


def _rung_elsewhere(
    page: Place, value: str, how: str, case: str, told: str | None, tied: str | None
) -> Checks:
    known = page.known
    expected = str(known.variants[page.variant].get("expected") or "").replace(" x ", "x")
    expected = re.sub(r"(?<=\d) (?=[bf][fp]\d)", "-", expected).replace("-fp32", "")
    if told and (found := re.fullmatch(_ANSWER, told)):
        yield from _rung_answer(page, *found.groups(), case)
    elif told:
        yield Check(told, _met(page, case))
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


def _rung_answer(
    page: Place,
    ratio: str | None,
    other: str | None,
    where: str,
    low: str,
    high: str | None,
    unit: str,
    *cases: str | None,
) -> Checks:
    known, case = page.known, str(*cases)
    expected = str(known.variants[page.variant].get("expected") or "").replace("`", "")
    range_ = f"{low} to {high} {unit}" if high else f"{low} {unit}"
    words = {"2 times": "twice", "3 times": "three times", "4 times": "four times", "10 times": "ten times"}
    named = any(text in expected.lower() for text in (range_, words.get(range_, range_)))
    yield Check(range_, range_ if named else "not the expectation")
    found = known.ratio(other or known.parent(page.variant), page.variant, case)
    if ratio:
        yield Check(ratio, found)
    if page.known.parent(page.variant) in known.alike.get(page.variant, []) and case in ("", known.case):
        found = 1.0
    value = found if unit == "times" else 100 * (found - 1)
    ends = [float(Fraction(end)) for end in (low, high or low)]
    if not high:
        ends = [ends[0] * 0.95, ends[1] * 1.05]
    yield Check(
        where, "below" if value < ends[0] else "above" if value > ends[1] else "within" if high else "about"
    )


def _met(page: Place, case: str = "") -> str:
    """Returns whether an expectation in words is met at a case: the first that is about that case."""
    known, parent = page.known, page.known.parent(page.variant)
    expected = (
        str(known.variants[page.variant].get("expected") or "").replace("`", "").replace("its parent", parent)
    )
    if expected.startswith("The slowest of the ladder"):
        slower = [name for name in known.timed() if known.faster(page.variant, name, case)]
        verb = "is" if len(slower) == 1 else "are"
        return f"not as expected: {' and '.join(slower)} {verb} slower" if slower else "as expected"
    if found := re.match(r"Between (\w+) and (\w+)", expected):
        slow, fast = sorted(known.ratio(name, page.variant, case) for name in found.groups())
        return (
            "as expected"
            if slow <= 1 <= fast
            else f"not as expected: {'slower' if fast < 1 else 'faster'} than both"
        )
    if found := re.match(rf"{N} us less than (\w+)", expected):
        times = [known.measured(name, "median_us", case) for name in (found[2], page.variant)]
        met = times[0] - times[1] >= 0.95 * float(found[1])
        less = (
            f"{abs(times[0] - times[1]):.2f} µs {'less' if times[0] > times[1] else 'more'} than {found[2]}"
        )
        return f"{'as' if met else 'not as'} expected: {less}"
    if found := re.match(
        r"(?:More than|At least) (ten|[\d.]+) times (\w+)|(Twice) as fast as (\w+) or", expected
    ):
        factor, other = found[1] or found[3], found[2] or found[4]
        least = {"ten": 10.0, "Twice": 2.0}.get(factor) or float(factor)
        met = known.ratio(other, page.variant, case) >= least
        return "as expected" if met else "below the expected factor"
    how = r"(No faster|At most as fast|At least as fast|[Ff]aster|Slower) (?:than|as) (\w+)"
    compared = re.search(how, expected)
    return _met_by(page, compared[1], compared[2], case) if compared else "no expectation that can be judged"


def _met_by(page: Place, how: str, other: str, case: str) -> str:
    known = page.known
    faster, slower = known.faster(page.variant, other, case), known.faster(other, page.variant, case)
    met = {
        "No faster": not faster,
        "At most as fast": not faster,
        "At least as fast": not slower,
        "Slower": slower,
    }
    if met.get(how, faster):
        return "as expected"
    told = "faster than expected" if how in ("No faster", "At most as fast") else "not as expected"
    if other == known.parent(page.variant):
        return told
    tied = ", tied within noise" if known.tied(page.variant, other, case) else ""
    return f"{told}: {known.ratio(other, page.variant, case):#.3g}x the speed of {other}{tied}"


def _rung_met(page: Place, told: str) -> Checks:
    yield Check(told, _met(page))


def _rung_slower(page: Place, count: str, cases: str, ratio: str, case: str) -> Checks:
    known, parent = page.known, page.known.parent(page.variant)
    both = [one for one in known.cases if known.ratio(parent, page.variant, one) > 0]
    slower = [
        one
        for one in both
        if known.ratio(parent, page.variant, one) < 0.98 and known.faster(parent, page.variant, one)
    ]
    yield Check(count, len(slower), exact=True)
    yield Check(cases, len(both), exact=True)
    yield Check(case, min(slower, key=lambda one: known.ratio(parent, page.variant, one), default="none"))
    yield Check(ratio, known.ratio(parent, page.variant, case))


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
        yield from _rung_spread(page, ("process_min_us", "process_max_us"), *rest[:4])
    samples, *quartiles, both, unit_of_both = rest[4:]
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
    remark = f"{dropped} of {taken} launches discarded: clock below {mhz} MHz"
    reason = str(page.known.rows[(page.variant, page.known.case)].get("reason"))
    yield Check(remark, remark if remark in reason else reason)


def _rung_spills(page: Place, stores: str, loads: str) -> Checks:
    truth = page.known.spills(page.variant)
    yield Check(stores, truth[0], exact=True)
    yield Check(loads, truth[1], exact=True)


def _rung_spills_in_all(page: Place, count: str) -> Checks:
    yield Check(count, number(page.known.variants[page.variant].get("spill_bytes")), exact=True)


_ENDS = rf"{N}(?: (µs|ms))? to {N} (µs|ms)"
_ANSWER = (
    rf"(?:{N}x the speed of {V}, )?(below|within|above|about) the expected"
    r" ([\d./]+)(?: to ([\d./]+))? (times|% faster)"
)
_RUNG: Sequence[Rule] = (
    (
        rf"Got: \*\*{N}(x\*\* the speed| %\*\*) of {V}(, tied within noise)?{_THAT} \((\S+?)(, at rest)?\)",
        _rung_got,
    ),
    (rf"Got: \*\*the same kernel\*\* as {V} \((\S+?)(, at rest)?\)", _rung_same),
    (
        rf"\*\*{N}(x| %)\*\* at ([^\s;]+?)(?: \(((?:below|above|about|within|as|not as|faster than) [^)]*)\))?"
        r"( \(tied within noise\))?(?=;|\.$)",
        _rung_elsewhere,
    ),
    (r"\*\*no time\*\* at ([^\s;]+?)(?=;|\.$)", _rung_no_time),
    (rf"(?<=; ){_ANSWER}", _rung_answer),
    (r"(?<=; )((?:as expected|not as expected|faster than expected)(?:: [^;]*?)?)(?=;|\.$)", _rung_met),
    (rf"(?<=; )slower at (\d+) of (\d+) cases, {N}x at ([^\s;]+?)(?=;|\.$)", _rung_slower),
    (
        r"(?<=[;:] )(?:(\d+) claims?|claim) (confirmed|refuted|within noise|not judged)"
        r"((?:, \d+ (?:refuted|within noise|not judged))*)(?: \(at ([^)]*)\))?(?=\.$)",
        _rung_claims,
    ),
    (rf"\*\*{N} {UNIT}\*\* at ([^\s,]+)", _rung_speed),
    (rf"\*\*{N} {UNIT}\*\* (?:sustained|back to back)", _rung_long),
    (rf"\*\*{N}x\*\* the speed of {V}(, tied within noise)?{_THAT}", _rung_over),
    (rf"^{TIME} (?:with a cold L2|at rest): median of (?:(\d+) processes \({_ENDS}\), )?(\d+) launches(?: in all)?;"
     rf" (?:quartiles {_ENDS}|both quartiles {TIME})\.", _rung_noise),
    (rf"One launch with a cold L2: {TIME}", _rung_one),
    (r"spill stores (\d+) B, loads (\d+) B", _rung_spills),
    (r"spill stores and loads (\d+) B", _rung_spills_in_all),
    (r"(\d+) of (\d+) launches discarded: set SM clock below (\d+) MHz", _rung_discarded),
    (r"[\w.+-]+\.\w+, from line \d+", lambda _: iter(())),
    (r"\b([A-Z][A-Z0-9_]*) (\d+)(?=,|$|;| \(not used)", _rung_parameter),
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
        rf"([A-Za-z][\w ]*?) {Q}{_OF} → {Q}{_OF} \({N}x(, (?:mainly|including|with) [^)]*)?\)", listed
    )
    yield Check(str(len(found) > 0), "True")
    for name, before, after, times, evidence in found:
        metric = metric_of(name.removeprefix("and "))
        factor = known.factor(_steps_parent(page), page.variant, metric)
        yield Check(times, factor)
        yield Check(side, "In its favour" if factor > 1 else "Against it")
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
    what: str | None,
    name: str | None,
    kind: str | None,
    file: str | None,
    line: str | None,
    before: str,
    after: str,
    unit: str,
    more: str | None,
) -> Checks:
    known, state = page.known, name or "issuing or ready"
    both = _steps_parent(page), page.variant
    fell = known.spent_us(both[0], state) > known.spent_us(both[1], state)
    if name and what:
        yield from _waiting(page, both[0] if fell else both[1], name, what, kind, file, line)
    yield from _spent(page, state, before, after, unit)
    if not more:
        return
    yield Check(more.split()[-3], "fell" if fell else "rose")
    for plain, was, now in re.findall(rf"([A-Za-z][\w -]*?) \({Q}(?: ?B)? → {Q}(?: ?B)?\)", more):
        metric = metric_of(plain.removeprefix("and "))
        yield from _steps_span(page, metric, was, now)
        values = [known.counter(one, metric) for one in both]
        yield Check("fell" if fell else "rose", "fell" if values[0] > values[1] else "rose")


def _spent(page: Place, state: str, before: str, after: str, unit: str) -> Checks:
    """Checks the times that a state costs in parent and variant; "0" is less than a thousandth of the other."""
    times = [page.known.spent_us(one, state) / US[unit] for one in (_steps_parent(page), page.variant)]
    for printed, time in zip((before, after), times, strict=True):
        zero = "0" if time < 1.01e-3 * max(times) else f"{time:.6g}"
        yield Check(printed, zero) if printed == "0" else Check(printed, time)


def _steps_units(page: Place, listed: str) -> Checks:
    found = re.findall(rf"({_CEILING}) {N} % → {N} %", listed)
    yield Check(str(len(found) > 0), "True")
    for name, before, after in found:
        yield Check(before, _used(page, _steps_parent(page), CEILINGS[name]))
        yield Check(after, _used(page, page.variant, CEILINGS[name]))


def _steps_even(page: Place, name: str, before: str, after: str, moved: str) -> Checks:
    """Checks the use of a unit that moves the same bytes as in the parent, within 5 %."""
    known, both = page.known, (_steps_parent(page), page.variant)
    bytes_of = {"L2": "l2_bytes", "Device memory": "dram_bytes"}[name]
    counts = [known.counter(one, bytes_of) for one in both]
    yield Check(moved, counts[1])
    yield Check(
        "the same traffic", "the same traffic" if max(counts) < 1.05 * min(counts) else "other traffic"
    )
    for printed, one in zip((before, after), both, strict=True):
        yield Check(printed, _used(page, one, CEILINGS[name[0].lower() + name[1:] if name != "L2" else name]))


def _steps_traffic(page: Place, listed: str) -> Checks:
    for name, before, after in re.findall(rf"(L2|device memory) {Q}B → {Q}B", listed):
        yield from _steps_span(page, {"L2": "l2_bytes"}.get(name, "dram_bytes"), before, after)


def _steps_occupancy(
    page: Place, before: str, after: str, blocks: str | None, of_variant: str | None
) -> Checks:
    yield from _steps_span(page, "theoretical_occupancy_pct", before, after)
    if blocks and of_variant:
        yield Check(blocks, page.known.blocks_per_sm(_steps_parent(page)), exact=True)
        yield Check(of_variant, page.known.blocks_per_sm(page.variant), exact=True)


def _steps_grid(page: Place, *printed: str) -> Checks:
    yield from _steps_span(page, "grid_blocks", *printed[:2])
    yield from _steps_span(page, "waves_per_sm", *printed[2:])


def _steps_sectors(page: Place, kind: str, before: str, after: str) -> Checks:
    yield from _steps_span(page, f"global_{kind}_sectors_per_request", before, after)


def _steps_elsewhere(page: Place, *printed: str) -> Checks:
    known, both = page.known, (_steps_parent(page), page.variant)
    kernels = [known.counter(one, "duration_us") for one in both]
    others = [known.others_us(one) for one in both]
    for (before, after, unit), times in ((printed[:3], kernels), (printed[3:], others)):
        for text, time in zip((before, after), times, strict=True):
            yield Check(text, max(time, 0.0) / US[unit])


def _steps_runs(page: Place, own: str, runs: str) -> Checks:
    known, parent = page.known, _steps_parent(page)
    ratios = known.ratio(parent, page.variant, known.profiled), known.remainder(parent, page.variant)
    for printed, ratio in zip((own, runs), ratios, strict=True):
        yield Check(printed, 100 * (max(ratio, 1 / ratio) - 1), exact=True)
    yield Check("smaller", "smaller" if abs(math.log(ratios[0])) < abs(math.log(ratios[1])) else "larger")


def _steps_contended(page: Place, how: str) -> Checks:
    """Checks that one of the two kernels has global atomics and uses less than a quarter of every unit."""
    found = []
    for one in (_steps_parent(page), page.variant):
        atomics = any(re.match(r"(ATOMG?|REDG?)(\.|$)", code) for code in page.known.opcodes(one))
        used = [_used(page, one, metric) for metric in CEILINGS.values()]
        found.append(atomics and max(pct for pct in used if not math.isnan(pct)) < 25)
    yield Check(how, "bound it" if found[1] else "no longer bound it" if found[0] else "never bound it")


def _steps_one_kernel(page: Place, first: str, case: str, step: str) -> Checks:
    known = page.known
    yield Check(first, known.alike.get(page.variant, ["another kernel"])[0])
    yield Check(case, known.case)
    yield Check(step, list(known.variants).index(first) + 1, exact=True)


def _steps_most(page: Place, case: str, ratio: str, parent: str) -> Checks:
    known = page.known
    yield Check(parent, _steps_parent(page))
    apart = {one: known.ratio(parent, page.variant, one) for one in known.cases if one != known.case}
    apart = {one: r for one, r in apart.items() if r > 0 and not known.tied(parent, page.variant, one)}
    yield Check(case, max(apart, key=lambda one: abs(math.log(apart[one]))))
    yield Check(ratio, known.ratio(parent, page.variant, case))


def _steps_tile_end(page: Place, before: str, unit: str, after: str, other: str, ancestor: str) -> Checks:
    known = page.known
    above = known.parent(page.variant)
    while above and not known.tile_end(above) > 0:
        above = known.parent(above)
    yield Check(ancestor, above)
    yield Check(before, known.tile_end(above) / US[unit], exact=True)
    yield Check(after, known.tile_end(page.variant) / US[other], exact=True)


def _steps_offset(page: Place, less: str, more: str) -> Checks:
    known, parent = page.known, _steps_parent(page)
    for text, how in ((less, "less"), (more, "more")):
        found = re.findall(rf"(\w+|issuing or ready)(?: \([\w ,-]+\))?: {N} → {N} (µs|ms)", text)
        yield Check(str(len(found) > 0), "True")
        for state, before, after, unit in found:
            yield from _spent(page, state, before, after, unit)
            fell = known.spent_us(parent, state) > known.spent_us(page.variant, state)
            yield Check(how, "less" if fell else "more")


def _steps_part(page: Place, variant: str, share: str) -> Checks:
    known = page.known
    of_launch = known.counter(variant, "duration_us") / known.measured(variant, "ncu_us", known.profiled)
    yield Check(share, 100 * of_launch, exact=True)


_PLACE = r"(?:, mostly at the (wgmma|mbarrier) wait of ([\w.-]+):(\d+))?"
_REACHES = rf"(?:; it reaches {N}x the speed of \w+(, tied within noise)?)?"
_AT = r"(?:At (\S+), where the counters were captured: )?"
_OF = r"(?: %| MHz)?"
_SPAN = rf"{N} → {N} (µs|ms)"
_CEILING = "|".join(sorted(map(re.escape, CEILINGS), key=len, reverse=True))
_STEPS: Sequence[Rule] = (
    (r"Utilisation: ((?:(?!\. |\.$).)*)\.", _steps_units),
    (r"Traffic: ((?:(?!\. |\.$).)*)\.", _steps_traffic),
    (rf"Theoretical occupancy {N} % → {N} %(?: \((\d+) → (\d+) blocks per SM\))?\.", _steps_occupancy),
    (rf"(L2|Device memory) {N} % → {N} % of its peak at the same traffic \({Q}B\)", _steps_even),
    (rf"Blocks in the grid {Q} → {Q} \({Q} → {Q} waves\)", _steps_grid),
    (
        rf"The longest kernel takes {_SPAN} under ncu, the other kernels of the launch {_SPAN}",
        _steps_elsewhere,
    ),
    (
        rf"The difference \({N} %\) is smaller than that between the profiled and the timed launches \({N} %\)",
        _steps_runs,
    ),
    (r"Contended global atomics (bound it|no longer bound it)", _steps_contended),
    (rf"Same kernel as {V} at (\S+); see step (\d+) for its counters", _steps_one_kernel),
    (rf"It differs most at ([^\s:;]+): {N}x the speed of {V}\.", _steps_most),
    (rf"gap in computing at a tile end is {TIME} → {TIME}, compared with {V}", _steps_tile_end),
    (r"Less ([^.;]*?(?:\.\d[^.;]*?)*), offset by more ((?:(?!\. ).)*?)\.(?= |$)", _steps_offset),
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
    (r"(In its favour|Against it): ((?:(?!\. ).)*)\.", _steps_factors),
    (rf"mean SM clock during a launch goes from {N} to {N} MHz", _steps_clock),
    (
        rf"(?:Waiting for ([\w ,-]+) \((\w+){_PLACE}\)|Issuing or ready): {_SPAN}"
        r"(; (?:(?!\. ).)*? (?:fell|rose) as well)?",
        _steps_state,
    ),
    (rf"[Ss]ectors per global (load|store) {Q} → {Q}", _steps_sectors),
    (rf"(?:longest kernel|and) of {V}, {N} % of its time", _steps_part),
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


def _limits_bound(page: Place, *printed: str | None) -> Checks:
    return _limits_ceiling(page, "bound", *printed)


def _limits_close(page: Place, *printed: str | None) -> Checks:
    return _limits_ceiling(page, "close", *printed)


def _limits_far(page: Place, *printed: str | None) -> Checks:
    return _limits_ceiling(page, "far", *printed)


def _limits_ceiling(page: Place, kind: str, name: str | None, used: str | None, l2: str | None = None,
                    dram: str | None = None, shared: str | None = None, l1: str | None = None) -> Checks:  # fmt: skip
    pct = _limits_used(page, CEILINGS[str(name)])
    yield Check(str(used), pct)
    if shared:
        opcodes = ("lds", "sts", "ldsm", "stsm", "atoms")
        counts = [_limits_value(page, f"inst_{opcode}") for opcode in opcodes]
        yield Check(shared, sum(count for count in counts if not math.isnan(count)))
    if l1:
        peak = 128 * page.known.peak("sms") * _limits_value(page, "gpu_cycles")
        yield Check(l1, 100 * _limits_value(page, "l1_bytes") / peak)
    for printed, metric in ((l2, "l2_throughput_pct"), (dram, "dram_throughput_pct")):
        if printed:
            yield Check(printed, _limits_value(page, metric))
    known = [_limits_used(page, metric) for metric in CEILINGS.values()]
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


def _limits_traffic(
    page: Place, moved: str, unit: str, times: str | None, least: str, least_unit: str
) -> Checks:
    known = page.known
    compulsory = number(known.variants[page.variant].get("bytes"))
    yield Check(f"{moved} {unit.removesuffix('B')}".strip(), _limits_value(page, "dram_bytes"))
    ratio = _limits_value(page, "dram_bytes") / compulsory
    yield (
        Check(times, ratio, exact=True)
        if times
        else Check("about", "about" if 0.95 < ratio < 1.05 else "more or less")
    )
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
    rf"(?:, through its {Q} shared-memory instructions)?"
    rf"(?: \(global and local accesses use {N} % of its bandwidth\))?"
)
_LIMITS: Sequence[Rule] = (
    (rf"\b[Ii]t is bound by ({_CEILING}), at {N} % of its peak{_SAME}", _limits_bound),
    (rf"The busiest unit is ({_CEILING}), at {N} % of its peak{_SAME}", _limits_close),
    (rf"No unit is near its peak; the busiest is ({_CEILING}), at {N} %{_SAME}", _limits_far),
    (rf"The largest stall is (\w+) \({N} % of warp cycles{_PLACE}\): waiting for ([\w ,-]+)\.", _limits_stall),
    (rf"Theoretical occupancy is {N} %(?:, limited by [\w, ]+)?(?:; achieved occupancy is {N} %"
     r"( \(more than theory allows: the counters are inexact\))?)?", _limits_occupied),
    (rf"The kernel moves {N} (\w?B) to and from device memory, (?:{N} times|about) the compulsory {N} (\w?B)",
     _limits_traffic),
    (rf"Bank conflicts cause {N} % of its {Q} shared-memory wavefronts", _limits_conflicts),
    (rf"launches are limited by ([\w ]+): ((set SM clock {N} → {N} MHz)?(?: at )?(?:{N} W)?; )?{TIME}"
     rf" (?:at rest|with a cold L2), {TIME} (?:sustained|back to back) \({N}x the time\)",
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
    *_STEPS,
    *_LIMITS,
    (rf"\*?\*?{N} %\*?\*? of (?!the\b|its\b|their\b){V}", _lead_share),
)
