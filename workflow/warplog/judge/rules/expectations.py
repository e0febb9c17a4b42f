"""What stands beside an expectation: what the page prints, and what the tables give."""

import re
from collections.abc import Sequence
from fractions import Fraction

from warplog.judge.audited import Check, Checks, N, Place, Rule, V


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
    unit = "times" if unit == "times" else "% faster"
    range_ = f"{low} to {high} {unit}" if high else f"{low} {unit}"
    words = {"2 times": "twice", "3 times": "three times", "4 times": "four times", "10 times": "ten times"}
    named = any(text in expected.lower() for text in (range_, words.get(range_, range_)))
    yield Check(range_, range_ if named else "not the expectation")
    found = known.ratio(other or known.parent(page.variant), page.variant, case)
    if ratio:
        yield Check(ratio, found)
    if page.known.parent(page.variant) in known.alike.get(page.variant, []) and case in ("", known.case):
        found = 1.0
    found = float(f"{found:.3g}")  # as it is printed
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


_ANSWER = (
    rf"(?:{N}x the speed of {V}, )?(below|within|above|about) the expected(?: gain of)?"
    r" ([\d./]+)(?: to ([\d./]+))? (times|%)"
)
EXPECTATIONS: Sequence[Rule] = (
    (
        rf"\*\*{N}(x| %)\*\* at ([^\s;]+?)(?: \(((?:below|above|about|within|as|not as|faster than) [^)]*)\))?"
        r"( \(tied within noise\))?(?=;|\.$)",
        _rung_elsewhere,
    ),
    (r"\*\*no time\*\* at ([^\s;]+?)(?=;|\.$)", _rung_no_time),
    (rf"(?<=; ){_ANSWER}", _rung_answer),
    (r"(?<=; )((?:as expected|not as expected|faster than expected)(?:: [^;]*?)?)(?=;|\.$)", _rung_met),
    (rf"(?<=; )slower at (\d+) of (\d+) cases, {N}x at ([^\s;]+?)(?=;|\.$)", _rung_slower),
)
