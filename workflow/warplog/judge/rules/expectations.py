"""What stands beside an expectation: what the page prints, and what the tables give."""

import math
import re
from collections.abc import Sequence
from fractions import Fraction

from warplog.judge.audited import UNIT, Check, Checks, N, Place, Rule, V


def _rung_elsewhere(
    page: Place, value: str, how: str, case: str, tied: str | None, told: str | None
) -> Checks:
    known, parent = page.known, page.known.parent(page.variant)
    for answer in filter(None, (told or "").split("; ")):
        if found := re.fullmatch(_ANSWER, answer):
            yield from _rung_answer(page, *found.groups(), case)
        else:
            yield from _rung_met(page, answer, case)
    yield Check(case, case if _is_named(page, case) else "not named in the expectation")
    if how == " %":
        yield Check(value, 100 * known.ratio(known.baseline(), page.variant, case))
        yield Check(parent if parent in known.variants else "", "")
        return
    if how != "x":
        yield Check(value, known.speed(page.variant, how.strip(), case))
        yield Check(page.variant, known.baseline())
        return
    yield Check(value, known.ratio(parent, page.variant, case))
    yield Check("tied" if tied else "apart", "tied" if known.tied(page.variant, parent, case) else "apart")


def _is_named(page: Place, case: str) -> bool:
    """Returns whether the expectation is about a case other than the headline case."""
    known = page.known
    expected = str(known.variants[page.variant].get("expected") or "").replace(" x ", "x")
    expected = re.sub(r"(?<=\d) (?=[bf][fp]\d)", "-", expected).replace("-fp32", "")
    sizes = re.findall(r"(\d+) and above", expected) + re.findall(r"from (\d+) on\b", expected)
    least = [
        int(one) for one in known.cases if one.isdigit() and one in expected and "no gain below" in expected
    ]
    larger = case.isdigit() and any(int(case) > int(size) for size in sizes)
    below = case.isdigit() and any(int(case) < size for size in least)
    columns = [f"x{number}" for number in re.findall(r"at (\d+) columns", expected)]
    shaped = any(case.partition("-")[0].endswith(one) for one in columns)
    typed = case == f"{known.case}-bf16" and "in bf16" in expected
    ranges = re.findall(r"at (\d+) to (\d+)\b(?! times)", expected)
    within = case.isdigit() and any(int(low) <= int(case) <= int(high) for low, high in ranges)
    return case != known.case and (case in expected or larger or below or shaped or typed or within)


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
    known, case = page.known, str(cases[0]) if cases else page.known.case
    expected = str(known.variants[page.variant].get("expected") or "").replace("`", "")
    name = other or known.parent(page.variant) or known.baseline()
    yield Check(
        f"{low} {unit}", f"{low} {unit}" if _is_expected(expected, low, high, unit, case) else "not expected"
    )
    ends = [float(Fraction(end)) for end in (low, high or low)]
    if unit == "TFLOP/s":
        value = known.speed(page.variant, unit, case)
        noise = [value * known.measured(page.variant, "median_us", case) / us
                 for us in reversed(known.interval(page.variant, case))]  # fmt: skip
    else:
        value, noise = known.ratio(name, page.variant, case), list(known.ratio_ends(name, page.variant, case))
        if ratio:
            yield Check(ratio, value)
        if known.parent(page.variant) in known.alike.get(page.variant, []) and case == known.case:
            value, noise = 1.0, [1.0, 1.0]
    value = float(f"{value:.3g}")  # as it is printed
    if unit == "%":
        value, noise = 100 * (value - 1), [100 * (one - 1) for one in noise]
    words = {"2": "twice", "3": "three times", "4": "four times", "10": "ten times"}.get(low, low)
    if re.search(
        rf"(?:at least|more than) (?:{low}|{words})|{words}[^.,:;]* or (?:more|better)",
        expected,
        re.IGNORECASE,
    ):
        ends[1] = float("inf")
    elif re.search(rf"At most {low} % faster", expected):
        ends[0] = -float("inf")
    elif not high and abs(value / ends[0] - 1) <= 0.05:
        ends = [value, value]
    inside = "within" if high else "about"
    outside = "below" if value < ends[0] else "above"
    near = noise[0] <= ends[1] and noise[1] >= ends[0]
    yield Check(where, inside if ends[0] <= value <= ends[1] else "within noise of" if near else outside)


def _is_expected(expected: str, low: str, high: str | None, unit: str, case: str) -> bool:
    """Returns whether an expectation has a range, or a number in its unit."""
    if unit == "TFLOP/s":
        return bool(re.search(rf"\b{low}(?: TFLOP/s)? at {case}\b", expected))
    unit = "times" if unit == "times" else "% faster"
    range_ = f"{low} to {high} {unit}" if high else f"{low} {unit}"
    words = {"2 times": "twice", "3 times": "three times", "4 times": "four times", "10 times": "ten times"}
    return any(text in expected.lower() for text in (range_, words.get(range_, range_)))


def _met(page: Place, case: str) -> list[str]:
    """Returns the answers to the expectations in words at a case."""
    known = page.known
    above = known.parent(page.variant) or known.baseline()
    expected = (
        str(known.variants[page.variant].get("expected") or "").replace("`", "").replace("its parent", above)
    )
    found = []
    if expected.startswith("The slowest of the ladder"):
        slower = [name for name in known.timed() if known.faster(page.variant, name, case)]
        verb = "is" if len(slower) == 1 else "are"
        found.append(f"not as expected: {' and '.join(slower)} {verb} slower" if slower else "as expected")
    if words := re.match(r"Between (\w+) and (\w+)", expected):
        slow, fast = sorted(known.ratio(name, page.variant, case) for name in words.groups())
        met = slow <= 1 <= fast
        found.append(
            "as expected" if met else f"not as expected: {'slower' if fast < 1 else 'faster'} than both"
        )
    if words := re.match(rf"{N} us less than (\w+)", expected):
        saved = known.measured(words[2], "median_us", case) - known.measured(page.variant, "median_us", case)
        less = f"{abs(saved):.2f} µs {'less' if saved > 0 else 'more'} than {words[2]}"
        found.append(f"{'as' if saved >= 0.95 * float(words[1]) else 'not as'} expected: {less}")
    for least, other, twice in re.findall(
        r"(?:More than|[Aa]t least) (ten|[\d.]+) times (\w+)|Twice(?: as fast as)? (\w+) or (?:more|better)",
        expected,
    ):
        name = _named(page, other or twice)
        factor = {"ten": 10.0, "": 2.0}.get(least) or float(least)
        ratio = known.ratio(name, page.variant, case)
        whose = "" if name == above else f"{ratio:#.3g}x the speed of {name}, "
        found += [f"{whose}as expected"] if float(f"{ratio:.3g}") >= factor else []
    for most, other in re.findall(r"At most ([\d.]+) % faster than (\w+)", expected):
        gain = 100 * (known.ratio(_named(page, other), page.variant, case) - 1)
        found += ["as expected"] if gain <= float(most) else []
    comparisons = (
        r"(No faster than|At most as fast as|At least as fast as|As fast as|(?:Slightly )?[Ff]aster than|[Ss]lower than"
        r"|The time of|The same time)(?:(?: and the same [\w ]+?)? as)? (\w+)"
    )
    for how, other in re.findall(comparisons, expected):
        how = re.sub(r" (?:than|as|of)$", "", how)
        found.append(_met_by(page, how, _named(page, other), above, case))
    if "Faster at " in expected:
        found.append(_met_by(page, "Faster", above, above, case))
    if re.search(r"[Nn]o gain (?:at|from|below)", expected):
        found.append(_met_by(page, "No faster", above, above, case))
    return found


def _named(page: Place, name: str) -> str:
    """Returns the variant with a name in any spelling: cuBLAS is cublas."""
    return next((one for one in page.known.variants if one.lower() == name.lower()), name)


def _met_by(page: Place, how: str, other: str, above: str, case: str) -> str:
    known = page.known
    if other not in known.variants:
        return ""
    ratio, tied = known.ratio(other, page.variant, case), known.tied(page.variant, other, case)
    faster, slower = known.faster(page.variant, other, case), known.faster(other, page.variant, case)
    alike = tied or abs(float(f"{ratio:.3g}") - 1) <= 0.05
    met = {
        "No faster": not faster,
        "At most as fast": not faster,
        "At least as fast": not slower,
        "Slower": slower,
        "slower": slower,
        **dict.fromkeys(("As fast", "The time", "The same time"), alike),
    }.get(how, faster)
    speed = "" if other == above else f"{ratio:#.3g}x the speed of {other}"
    if tied and not met:
        return (
            f"{speed}, tied within noise: {how.lower()} was expected"
            if speed
            else f"{how.lower()} was expected"
        )
    told = "as expected" if met else "not as expected"
    if not met and how in ("No faster", "At most as fast"):
        told = "faster than expected"
    if met and not tied and how in ("As fast", "The time", "The same time"):
        told = "about as expected"
    return f"{told}: {speed}" if speed else told


def _rung_met(page: Place, told: str, case: str = "") -> Checks:
    truths = _met(page, case or page.known.case)
    yield Check(
        told, told if told in truths else " or ".join(filter(None, truths)) or "no expectation in words"
    )


def _rung_reversed(
    page: Place, word: str, than: str, count: str, cases: str, ratio: str | None, case: str | None
) -> Checks:
    known, parent = page.known, page.known.parent(page.variant)
    yield Check(than, parent)
    both = {one: known.ratio(parent, page.variant, one) for one in known.cases}
    both = {one: found for one, found in both.items() if found > 0}
    lost = both.get(known.case, math.nan) < 1 / 1.02 and known.faster(parent, page.variant, known.case)
    yield Check(word, "faster" if lost else "slower")
    pair = (parent, page.variant) if word == "slower" else (page.variant, parent)
    differs = {one: found if word == "faster" else 1 / found for one, found in both.items()}
    turned = [one for one in both if differs[one] > 1.02 and known.faster(*pair, one)]
    yield Check(count, len(turned), exact=True)
    yield Check(cases, len(both), exact=True)
    worst = max(turned, key=differs.__getitem__, default="none")
    if not ratio or not case:  # it follows with the other sizes that the expectation names
        yield Check("named", "named" if _is_named(page, worst) else "not named")
        return
    yield Check(case, worst)
    yield Check(ratio, known.ratio(parent, page.variant, case))


_ANSWER = (
    rf"(?:{N}x the speed of {V}, )?(below|within|above|about|within noise of) the expected(?: gain of)?"
    r" ([\d./]+)(?: to ([\d./]+))? (times|%|TFLOP/s)"
)
EXPECTATIONS: Sequence[Rule] = (
    (
        rf"\*\*{N}(x| %| {UNIT[1:-1]})\*\* at ([^\s;]+?)(?: \((?:(tied within noise)(?:; )?)?([^)]*)\))?(?=;|\.$)",
        _rung_elsewhere,
    ),
    (r"\*\*no time\*\* at ([^\s;]+?)(?=;|\.$)", _rung_no_time),
    (rf"(?<=; ){_ANSWER}", _rung_answer),
    (
        r"(?<=; )((?:[\d.]+x the speed of \w+, (?:tied within noise: )?)?"
        r"(?:(?:(?:about |not )?as|faster than) expected|(?:slightly )?(?:faster|slower) was expected)(?:: [^;]*?)?)"
        r"(?=;|\.$)",
        _rung_met,
    ),
    (
        rf"(?<=; )(slower|faster) than {V} by more than 2 % at (\d+) of (\d+) cases(?:, {N}x at ([^\s;]+?))?(?=;|\.$)",
        _rung_reversed,
    ),
)
