"""Whether a step meets an expectation that is a range of numbers, and the cases that an expectation names."""

import re
from collections.abc import Iterable

_TIMES = r"(?P<low>\d[\d.]*) to (?P<high>\d[\d.]*) times `?(?P<name>\w+)`?"
_PERCENT = r"(?P<low>\d[\d.]*) to (?P<high>\d[\d.]*) % faster than `?(?P<name>\w+)`?"
# What limits a range to other cases or GPUs, or to a part of the work.
_ELSEWHERE = re.compile(r"\b(?:at|on an?|from|where|for|with|in) ")
_ON = re.compile(r"^ on an? (?P<gpu>\w+)\b")


def answer(expected: str, parent: str, ratio: float, gpu: str) -> str:
    """Returns whether a ratio is within an expected range: "above the expected 0.9 to 1.1 times"; "" if it has none.

    Only an expectation that begins with a range over the parent is answered, and only if its clause names no other
    cases and no GPU but `gpu`.
    """
    for pattern, unit in ((_TIMES, "times"), (_PERCENT, "% faster")):
        found = re.match(pattern, expected)
        if not found or found["name"] != parent:
            continue
        clause = re.split(r"[,:;]|\. |\.$", expected[found.end() :])[0]
        if (on := _ON.match(clause)) and on["gpu"] in gpu.split():
            clause = clause[on.end() :]
        if _ELSEWHERE.search(clause):
            return ""
        low, high = (float(found[end]) for end in ("low", "high"))
        value = ratio if unit == "times" else 100 * (ratio - 1)
        where = "below" if value < low else "above" if value > high else "within"
        return f"{where} the expected {found['low']} to {found['high']} {unit}"
    return ""


def named_cases(expected: str, cases: Iterable[str]) -> tuple[str, ...]:
    """Returns the cases that an expectation names after "at": "at 8192 and 16384", "at 4096 x 4096".

    "and above" adds the larger cases, if they are named by numbers.
    """
    known = list(cases)
    each = "|".join(sorted(map(re.escape, known), key=len, reverse=True))
    listed = rf"\b[Aa]t ((?:(?:{each})(?![\w/-]|\.\d)(?:, and |, | and | or | to )?)+)(above)?"
    text = re.sub(r"(?<=\d) x (?=\d)", "x", expected)
    found: list[str] = []
    for names, above in re.findall(listed, text):
        found += re.findall(each, names)
        if above and found[-1].isdigit():
            found += sorted((c for c in known if c.isdigit() and int(c) > int(found[-1])), key=int)
    return tuple(dict.fromkeys(found))
