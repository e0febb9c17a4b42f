"""Whether a step meets an expectation that can be read, and the cases that an expectation names."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from warplog.core.text import listed

_NUMBER, _NAME = r"\d+(?:\.\d+)?(?:/\d+)?", r"`?(?P<name>its parent|\w+)`?"
_WORDS = {"twice": 2.0, "three times": 3.0, "four times": 4.0, "ten times": 10.0}
_FACTOR = rf"(?:(?P<low>{_NUMBER}) times|(?P<word>(?i:{'|'.join(_WORDS)})))(?: as fast as)?"
# The forms of an expectation, each at the beginning of a clause; the first that fits counts.
_FORMS = {
    "faster": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) times faster than {_NAME}",
    "times": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) times(?: (?!(?:at|in|on|or) ){_NAME})?",
    "percent": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) % faster than {_NAME}",
    "least": rf"(?:[Aa]t least|More than) {_FACTOR} {_NAME}",
    "factor": rf"{_FACTOR}(?: (?!(?:at|in|or) ){_NAME})?",
    "most": rf"At most (?P<low>{_NUMBER}) % faster than {_NAME}",
    "above": rf"(?P<how>[Ff]aster|Slightly faster)(?: than {_NAME}|(?= at ))",
    "not_below": rf"At least as fast as {_NAME}",
    "not_above": rf"(?:No faster than|At most as fast as) {_NAME}|[Nn]o gain(?= (?:at|from|below)\b)",
    "below": rf"(?P<how>[Ss]lower) than {_NAME}",
    "same": rf"(?:As fast as|The same time(?: and the same [\w ]+?)? as|The time of) {_NAME}",
    "between": rf"Between {_NAME} and `?(?P<other>\w+)`?",
    "slowest": r"The slowest of the ladder",
    "less_us": rf"(?P<low>{_NUMBER}) [uµ]s less than {_NAME}",
}
# What limits a clause to other cases or GPUs, or to a part of the work.
_ELSEWHERE = re.compile(r"\b(?:at|on|from|where|for|with|in|or) ")
_ON = re.compile(r"^ on an? (?P<gpu>\w+)\b")
_OR_MORE = re.compile(r"^ or (?:more|better)\b")
_ANY = re.compile(r"^ at any size\b")
_BELOW = re.compile(r"^ below\b")
# "Public kernels reach 654 TFLOP/s at 4096 and 679 at 8192 on an H200": of the variant itself if no other is named.
_SPEEDS = re.compile(
    rf"^(?:.* reach(?:es)? )?(?P<each>{_NUMBER} TFLOP/s at \S+(?: and {_NUMBER} at \S+)*)(?P<rest> on an? .*)$"
)
_SPEED = re.compile(rf"({_NUMBER})(?: TFLOP/s)? at (\S+)")
_COMPARED = ("above", "not_above")  # forms that are about the parent if they name no variant
_ABOUT = 0.05  # by which a ratio may differ from an expected one


@dataclass(frozen=True)
class Measured:
    """How a variant compares with another one at a case.

    Attributes:
        ratio: Its speed over that of the other one.
        tied: Whether the two are tied within noise.
        saved_us: How much less time it takes, in microseconds.
        ends: The least and the largest ratio within noise.
    """

    ratio: float
    tied: bool
    saved_us: float = math.nan
    ends: tuple[float, float] = (math.nan, math.nan)


def answers(
    expected: str,
    parent: str,
    known: Mapping[str, Mapping[str, Measured]],
    headline: str,
    gpu: str,
    tflops: Mapping[str, Measured] = MappingProxyType({}),
) -> dict[str, str]:
    """Returns by case whether an expectation is met: "below the expected 1.1 to 1.3 times", "as expected".

    A clause is judged at the cases that it names, or else at the headline case. Clauses of other forms are left out,
    and so are those about other cases, other GPUs or parts of the work. A tie with the parent is said beside the
    answer, which then only names what was expected.

    Args:
        expected: What is expected of a variant.
        parent: The variant's parent.
        known: How the variant compares with the others, by case and variant.
        headline: The headline case.
        gpu: The name of the GPU.
        tflops: The variant's speed in TFLOP/s by case, in place of the ratio.
    """
    found: dict[str, list[str]] = {}
    name = ""
    for number, clause in enumerate(_clauses(expected, known)):
        for case, text in _speeds(clause, tflops, gpu):
            found.setdefault(case, []).append(text)
        form, words = _form(clause, first=number == 0)
        if form is None or words is None:
            continue
        name = words.groupdict().get("name") or name  # "1.3 times `a` at 64 and 1.1 times at 128"
        name = parent if name == "its parent" or (not name and form in _COMPARED) else name
        rest = clause[words.end() :]
        if more := _OR_MORE.match(rest):
            form, rest = ("least" if form == "factor" else form), rest[more.end() :]
        rest = _without_gpu(rest, gpu)
        rest = _ANY.sub("", rest)
        where = (
            _below(named_cases(expected, known), known) if _BELOW.match(rest) else named_cases(rest, known)
        )
        where = where or _of_type(rest, headline, known)
        if not where and _ELSEWHERE.search(rest):
            continue
        for case in where or (headline,):
            told = _judge(form, words, name, known.get(case, {}), parent)
            if told:
                found.setdefault(case, []).append(told)
    return {case: "; ".join(dict.fromkeys(each)) for case, each in found.items()}


def _without_gpu(rest: str, gpu: str) -> str:
    """Removes " on an H200" from the beginning of a text if that is the GPU."""
    on = _ON.match(rest)
    return rest[on.end() :] if on and on["gpu"] in gpu.split() else rest


def _below(named: Iterable[str], cases: Iterable[str]) -> tuple[str, ...]:
    """Returns the cases smaller than each of those that are named by numbers."""
    sizes = [int(case) for case in named if case.isdigit()]
    return tuple(case for case in cases if case.isdigit() and sizes and int(case) < min(sizes))


def _speeds(clause: str, tflops: Mapping[str, Measured], gpu: str) -> Iterator[tuple[str, str]]:
    """Yields how the variant's speed compares with each that a clause expects on this GPU, with its case."""
    found = _SPEEDS.match(clause)
    if not found or _without_gpu(found["rest"], gpu):
        return
    for least, case in _SPEED.findall(found["each"]):
        if (one := tflops.get(case)) is not None:
            yield case, f"{_near(one, _value(least))} the expected {least} TFLOP/s"


def _near(one: Measured, expected: float) -> str:
    """Returns where a ratio is with regard to a single expected value."""
    value = float(f"{one.ratio:.3g}")  # as it is printed
    if abs(value / expected - 1) <= _ABOUT:
        return "about"
    return _where(value, one.ends, (expected, expected), "about")


def _where(value: float, ends: tuple[float, float], range_: tuple[float, float], inside: str) -> str:
    """Returns where a value is with regard to a range; `ends` are the least and the largest value within noise."""
    if range_[0] <= value <= range_[1]:
        return inside
    if ends[0] <= range_[1] and ends[1] >= range_[0]:
        return "within noise of"
    return "below" if value < range_[0] else "above"


def _clauses(expected: str, cases: Iterable[str]) -> list[str]:
    """Splits an expectation at punctuation, and where "and" begins another number, with its cases as they are named."""
    return re.split(r"[,:;] |\. |\.$| and (?=\d[\d./]* times )", _plain(expected, cases))


def _form(clause: str, first: bool) -> "tuple[str | None, re.Match[str] | None]":
    for form, pattern in _FORMS.items():
        if found := re.match(pattern, clause[:1].upper() + clause[1:] if first else clause):
            return form, found
    return None, None


def _of_type(rest: str, headline: str, cases: Iterable[str]) -> tuple[str, ...]:
    """Returns the headline case for " in fp32", which its name does not say, or the same one in another type."""
    kind = re.match(r"^ in ((?:bf|fp)\d+)$", rest)
    if not kind or re.search(r"-(?:bf16|fp16|fp8)", headline):
        return ()
    one = headline if kind[1] == "fp32" else f"{headline}-{kind[1]}"
    return (one,) if one in cases else ()


def _judge(form: str, words: "re.Match[str]", name: str, known: Mapping[str, Measured], parent: str) -> str:
    """Returns whether a clause is met, given how the variant compares with the others at a case; "" if unknown."""
    if form == "slowest":
        slower = [other for other, one in known.items() if one.ratio > 1 and not one.tied]
        verb = "is" if len(slower) == 1 else "are"
        return (
            f"not as expected: {listed(slower)} {verb} slower" if slower else "as expected" if known else ""
        )
    name = next((one for one in known if one.lower() == name.lower()), "")  # cuBLAS, CUB
    if not name:
        return ""
    one = known[name]
    whose = "" if name == parent else f"{one.ratio:#.3g}x the speed of {name}, "
    if form in ("times", "faster", "percent", "least", "most", "factor"):
        return whose + _in_range(form, words, one)
    if form == "less_us":
        met = one.saved_us >= (1 - _ABOUT) * _value(words["low"])
        less = f"{abs(one.saved_us):.2f} µs {'less' if one.saved_us > 0 else 'more'}"
        return f"{'as' if met else 'not as'} expected: {less} than {name}"
    if form == "between":
        other = known.get(words["other"])
        if other is None:
            return ""
        ends = sorted((one.ratio, other.ratio))
        met = ends[0] <= 1 <= ends[1] or one.tied or other.tied
        return "as expected" if met else f"not as expected: {'slower' if ends[1] < 1 else 'faster'} than both"
    how = words.groupdict().get("how") or ""
    return _compared(form, one, how.lower(), "" if name == parent else name)


def _in_range(form: str, words: "re.Match[str]", one: Measured) -> str:
    value, ends = float(f"{one.ratio:.3g}"), one.ends  # as it is printed
    if form in ("percent", "most"):
        value, ends = 100 * (value - 1), (100 * (ends[0] - 1), 100 * (ends[1] - 1))
    high = words.groupdict().get("high")
    low = words["low"] or words["word"].lower()
    least = _WORDS.get(low) or _value(low)
    text = f"{f'{least:g}' if low in _WORDS else low}{f' to {high}' if high else ''}"
    unit = f"gain of {text} %" if form in ("percent", "most") else f"{text} times"
    limits = {"least": (least, math.inf), "most": (-math.inf, least)}.get(form)
    if limits:
        where = _where(value, ends, limits, "")
        return f"{where} the expected {unit}" if where else "as expected"
    if high:
        return f"{_where(value, ends, (least, _value(high)), 'within')} the expected {unit}"
    return f"{_near(one, least)} the expected {unit}"


def _compared(form: str, one: Measured, how: str, name: str) -> str:
    """Returns whether a variant compares as expected with another one, which is named unless it is the parent."""
    faster, slower = (side and not one.tied for side in (one.ratio > 1, one.ratio < 1))
    same = one.tied or abs(float(f"{one.ratio:.3g}") - 1) <= _ABOUT
    met = {"above": faster, "below": slower, "not_below": not slower, "not_above": not faster, "same": same}[
        form
    ]
    tied = f"{how} was expected" if one.tied and not met else ""
    if not name and tied:
        return tied  # the tie stands beside it
    told = "as expected" if met else "faster than expected" if form == "not_above" else "not as expected"
    told = f"about {told}" if met and form == "same" and not one.tied else told
    if not name:
        return told
    speed = f"{one.ratio:#.3g}x the speed of {name}"
    return f"{speed}, tied within noise: {tied}" if tied else f"{told}: {speed}"


def _value(text: str) -> float:
    whole, _, part = text.partition("/")
    return float(whole) / float(part or 1)


def _plain(text: str, cases: Iterable[str]) -> str:
    """Writes shapes as names of cases: "1024 x 65536 bf16" as "1024x65536-bf16", "64 x 64 fp32" as "64x64".

    "at 128 columns" stands for all cases of that shape: "at 64x128 and 64x128-bf16".
    """
    known = dict.fromkeys(cases)

    def shapes(found: "re.Match[str]") -> str:
        same = [case for case in known if re.fullmatch(rf"\d+x{found[1]}(?:-\w+)?", case)]
        return f"at {' and '.join(same)}" if same else found[0]

    def name(found: "re.Match[str]") -> str:
        shape, kind = found[0].replace(" x ", "x").split(" ")[0], found[1]
        return (
            f"{shape}-{kind}"
            if kind and f"{shape}-{kind}" in known
            else shape
            if kind in (None, "fp32")
            else found[0]
        )

    text = re.sub(r"\bat (\d+) columns\b", shapes, text)
    return re.sub(r"\b\d+(?: x \d+)+(?: ((?:bf|fp)\d+))?", name, text)


def named_cases(expected: str, cases: Iterable[str]) -> tuple[str, ...]:
    """Returns the cases that an expectation names after "at": "at 8192 and 16384", "at 4096 x 4096".

    "and above" and "from 4096 on" add the larger cases, if they are named by numbers.
    """
    known = list(cases)
    each = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    listed = rf"\b(?:[Aa]t ((?:(?:{each})(?![\w/-]|\.\d)(?:, and |, | and | or | to )?)+)(above)?|from ({each}) (on)\b)"
    found: list[str] = []
    for names, above in (
        (one[0] or one[2], one[1] or one[3]) for one in re.findall(listed, _plain(expected, known))
    ):
        found += re.findall(each, _whole_ranges(names, known))
        if above and found[-1].isdigit():
            found += sorted((c for c in known if c.isdigit() and int(c) > int(found[-1])), key=int)
    return tuple(dict.fromkeys(found))


def _whole_ranges(names: str, cases: Sequence[str]) -> str:
    """Adds the cases between the ends of a range of numbers: "128 to 512" becomes "128, 256, 512"."""

    def between(found: "re.Match[str]") -> str:
        low, high = sorted(map(int, found.groups()))
        return ", ".join(sorted((one for one in cases if one.isdigit() and low <= int(one) <= high), key=int))

    return re.sub(r"\b(\d+) to (\d+)\b(?![\w-])", between, names)
