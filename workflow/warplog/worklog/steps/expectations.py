"""Whether a step meets an expectation that can be read, and the cases that an expectation names."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from warplog.core.text import listed

_NUMBER, _NAME = r"\d+(?:\.\d+)?(?:/\d+)?", r"`?(?P<name>its parent|\w+)`?"
_WORDS = {"twice": 2.0, "three times": 3.0, "four times": 4.0, "ten times": 10.0}
_FACTOR = rf"(?:(?P<low>{_NUMBER}) times|(?P<word>(?i:{'|'.join(_WORDS)})))(?: as fast as)?"
# The forms of an expectation, each at the beginning of a clause; the first that fits counts.
_FORMS = {
    "faster": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) times faster than {_NAME}",
    "times": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) times(?: (?!(?:at|in|on|or) ){_NAME})?",
    "percent": rf"(?P<low>{_NUMBER}) to (?P<high>{_NUMBER}) % faster than {_NAME}",
    "least": rf"(?:At least|More than) {_FACTOR} {_NAME}",
    "factor": rf"{_FACTOR}(?: (?!(?:at|in|or) ){_NAME})?",
    "above": rf"(?:Slightly f|F)aster than {_NAME}",
    "not_below": rf"At least as fast as {_NAME}",
    "not_above": rf"(?:No faster than|At most as fast as) {_NAME}",
    "below": rf"Slower than {_NAME}",
    "between": rf"Between {_NAME} and `?(?P<other>\w+)`?",
    "slowest": r"The slowest of the ladder",
    "less_us": rf"(?P<low>{_NUMBER}) [uµ]s less than {_NAME}",
}
# What limits a clause to other cases or GPUs, or to a part of the work.
_ELSEWHERE = re.compile(r"\b(?:at|on|from|where|for|with|in|or) ")
_ON = re.compile(r"^ on an? (?P<gpu>\w+)\b")
_OR_MORE = re.compile(r"^ or (?:more|better)\b")
_ANY = re.compile(r"^ at any size\b")
_ABOUT = 0.05  # by which a ratio may differ from an expected one


@dataclass(frozen=True)
class Measured:
    """How a variant compares with another one at a case.

    Attributes:
        ratio: Its speed over that of the other one.
        tied: Whether the two are tied within noise.
        saved_us: How much less time it takes, in microseconds.
    """

    ratio: float
    tied: bool
    saved_us: float = math.nan


def answers(
    expected: str, parent: str, known: Mapping[str, Mapping[str, Measured]], headline: str, gpu: str
) -> dict[str, str]:
    """Returns by case whether an expectation is met: "below the expected 1.1 to 1.3 times", "as expected".

    A clause is judged at the cases that it names, or else at the headline case. Clauses of other forms are left out,
    and so are those about other cases, other GPUs or parts of the work.

    Args:
        expected: What is expected of a variant.
        parent: The variant's parent.
        known: How the variant compares with the others, by case and variant.
        headline: The headline case.
        gpu: The name of the GPU.
    """
    found: dict[str, str] = {}
    name = ""
    for number, clause in enumerate(_clauses(expected, known)):
        form, words = _form(clause, first=number == 0)
        if form is None or words is None:
            continue
        name = words.groupdict().get("name") or name  # "1.3 times `a` at 64 and 1.1 times at 128"
        name = parent if name == "its parent" else name
        rest = clause[words.end() :]
        if more := _OR_MORE.match(rest):
            form, rest = ("least" if form == "factor" else form), rest[more.end() :]
        if (on := _ON.match(rest)) and on["gpu"] in gpu.split():
            rest = rest[on.end() :]
        rest = _ANY.sub("", rest)
        where = named_cases(rest, known)
        if not where and _ELSEWHERE.search(_headline_type(rest, headline)):
            continue
        for case in where or (headline,):
            told = _judge(form, words, name, known.get(case, {}), parent)
            if told:
                found.setdefault(case, told)
    return found


def _clauses(expected: str, cases: Iterable[str]) -> list[str]:
    """Splits an expectation at punctuation, and where "and" begins another number, with its cases as they are named."""
    return re.split(r"[,:;] |\. |\.$| and (?=\d[\d./]* times )", _plain(expected, cases))


def _form(clause: str, first: bool) -> "tuple[str | None, re.Match[str] | None]":
    for form, pattern in _FORMS.items():
        if found := re.match(pattern, clause[:1].upper() + clause[1:] if first else clause):
            return form, found
    return None, None


def _headline_type(rest: str, headline: str) -> str:
    """Removes "in fp32" if the headline case is of that type: one whose name does not end in another type."""
    return rest if re.search(r"-(?:bf16|fp16|fp8)", headline) else re.sub(r"^ in fp32\b", "", rest)


def _judge(form: str, words: "re.Match[str]", name: str, known: Mapping[str, Measured], parent: str) -> str:
    """Returns whether a clause is met, given how the variant compares with the others at a case; "" if unknown."""
    if form == "slowest":
        slower = [other for other, one in known.items() if one.ratio > 1 and not one.tied]
        verb = "is" if len(slower) == 1 else "are"
        return (
            f"not as expected: {listed(slower)} {verb} slower" if slower else "as expected" if known else ""
        )
    if name not in known:
        return ""
    one = known[name]
    whose = "" if name == parent else f"{one.ratio:#.3g}x the speed of {name}, "
    if form in ("times", "faster", "percent", "least", "factor"):
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
    return _compared(form, one, "" if name == parent else name)


def _in_range(form: str, words: "re.Match[str]", one: Measured) -> str:
    ratio = float(f"{one.ratio:.3g}")  # as it is printed
    value = 100 * (ratio - 1) if form == "percent" else ratio
    low = words["low"] if "high" in words.groupdict() or words["low"] else words["word"].lower()
    if "high" in words.groupdict():
        where = "below" if value < _value(low) else "above" if value > _value(words["high"]) else "within"
        range_ = f"{low} to {words['high']}"
        return f"{where} the expected {f'gain of {range_} %' if form == 'percent' else f'{range_} times'}"
    least = _WORDS.get(low) or _value(low)
    text = f"{least:g} times" if low in _WORDS else f"{low} times"
    if form == "least":
        return "as expected" if value >= least else f"below the expected {text}"
    where = "below" if value < least * (1 - _ABOUT) else "above" if value > least * (1 + _ABOUT) else "about"
    return f"{where} the expected {text}"


def _compared(form: str, one: Measured, name: str) -> str:
    faster, slower = (side and not one.tied for side in (one.ratio > 1, one.ratio < 1))
    met = {"above": faster, "below": slower, "not_below": not slower, "not_above": not faster}[form]
    if met:
        return "as expected"
    told = "faster than expected" if form == "not_above" else "not as expected"
    tied = ", tied within noise" if one.tied else ""
    return f"{told}: {one.ratio:#.3g}x the speed of {name}{tied}" if name else told


def _value(text: str) -> float:
    whole, _, part = text.partition("/")
    return float(whole) / float(part or 1)


def _plain(text: str, cases: Iterable[str]) -> str:
    """Writes shapes as names of cases: "1024 x 65536 bf16" as "1024x65536-bf16", "64 x 64 fp32" as "64x64"."""
    known = set(cases)

    def name(found: "re.Match[str]") -> str:
        shape, kind = found[0].replace(" x ", "x").split(" ")[0], found[1]
        return (
            f"{shape}-{kind}"
            if kind and f"{shape}-{kind}" in known
            else shape
            if kind in (None, "fp32")
            else found[0]
        )

    return re.sub(r"\b\d+(?: x \d+)+(?: ((?:bf|fp)\d+))?", name, text)


def named_cases(expected: str, cases: Iterable[str]) -> tuple[str, ...]:
    """Returns the cases that an expectation names after "at": "at 8192 and 16384", "at 4096 x 4096".

    "and above" adds the larger cases, if they are named by numbers.
    """
    known = list(cases)
    each = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    listed = rf"\b[Aa]t ((?:(?:{each})(?![\w/-]|\.\d)(?:, and |, | and | or | to )?)+)(above)?"
    found: list[str] = []
    for names, above in re.findall(listed, _plain(expected, known)):
        found += re.findall(each, names)
        if above and found[-1].isdigit():
            found += sorted((c for c in known if c.isdigit() and int(c) > int(found[-1])), key=int)
    return tuple(dict.fromkeys(found))
