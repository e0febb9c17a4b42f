"""The tables of a page: for each kind, the numbers in a row and those that the tables of the campaign give."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from warplog.core import columns
from warplog.core.text import one_line
from warplog.judge.audited import Check, Checks, N, Place, Q, V, agrees, number
from warplog.judge.evidence import metric_of

if TYPE_CHECKING:
    import pandas as pd

Cells = dict[str, str]


def _factors(page: Place, row: Cells, _: list[str]) -> Checks:
    known, variant = page.known, page.variant
    parent, name = known.parent(variant), row["quantity"]
    if name == "speed":
        yield Check(row["factor"], known.ratio(parent, variant, known.profiled), exact=True)
    elif name == "remainder":
        yield Check(row["factor"], known.remainder(parent, variant), exact=True)
    else:
        metric = metric_of(name)
        yield Check(row["before"], known.counter(parent, metric))
        yield Check(row["after"], known.counter(variant, metric))
        yield Check(row["factor"], known.factor(parent, variant, metric), exact=True)


def _states(page: Place, row: Cells, _: list[str]) -> Checks:
    known, variant, state = page.known, page.variant, row["state"].partition(" ")[0]
    parent = known.parent(variant)
    ends = row["before, µs"], row["after, µs"]
    yield Check(row["saved, µs"], float(ends[0]) - float(ends[1]), exact=True)
    for printed, one in zip(ends, (parent, variant), strict=True):
        yield Check(printed, known.spent_us(one, state), exact=True)
    for name, before, after in re.findall(
        rf"([A-Za-z][\w -]*?) {Q}(?: ?B)? → {Q}", row["changed along with it"]
    ):
        yield Check(before, known.counter(parent, metric_of(name)))
        yield Check(after, known.counter(variant, metric_of(name)))


def _lines(page: Place, row: Cells, _: list[str]) -> Checks:
    if row["line"] == "other lines":
        yield from _other_lines(page, row)
        return
    file, _sep, at = row["line"].rpartition(":")
    lines = page.known.lines.get(page.variant, [])
    mine = [
        one for one in lines if columns.number(one, "line") == int(at) and str(one["file"]).endswith(file)
    ]
    for title, column in (("samples", "sample_share"), ("instructions", "instruction_share")):
        if row.get(title):
            printed = row[title].removesuffix(" %")
            truths = [100 * share for one in mine if not math.isnan(share := columns.number(one, column))]
            yield Check(printed, _closest(printed, truths), exact=True)
    if row.get("excess wavefronts"):
        yield Check(
            row["excess wavefronts"],
            _nearest(
                row["excess wavefronts"], [columns.number(one, "shared_wavefronts_excess") for one in mine]
            ),
        )


def _other_lines(page: Place, row: Cells) -> Checks:
    """Checks what the five lines before leave: at least the samples outside of the five hottest lines."""
    hot = page.known.hot(page.variant)
    for title, column in (("samples", "sample_share"), ("instructions", "instruction_share")):
        if row.get(title):
            shares = sorted(
                (share for one in hot if (share := columns.number(one, column)) > 0), reverse=True
            )
            least, most = 100 * (1 - sum(shares[:5])), 100.0
            printed = float(re.sub(r"[^0-9.]", "", row[title]))
            yield Check(row[title], row[title] if least - 1 <= printed <= most else f"{least:.0f} % or more")
    if row.get("excess wavefronts"):
        total = sum(lost for one in hot if (lost := columns.number(one, "shared_wavefronts_excess")) > 0)
        yield Check(
            row["excess wavefronts"].partition(" ")[0],
            row["excess wavefronts"].partition(" ")[0] if total else "0",
        )


def _published(page: Place, row: Cells, cells: list[str]) -> Checks:
    known, unit, case = page.known, page.header[3], cells[2]
    if cells[0] == "this campaign":
        if _isnumber(cells[3]):
            yield Check(cells[3], known.speed(page.variant, unit, case))
            if cells[4]:
                yield Check(cells[4], 100 * known.ratio(known.baseline(), page.variant, case))
        return
    mine = [
        one
        for one in known.published.get(page.variant, [])
        if (one["published_source"], one["published_gpu"]) == (cells[0], cells[1])
    ]
    cases = [str(one["published_case"] or "not stated") for one in mine]
    yield Check(case, case if case in cases else " or ".join(dict.fromkeys(cases)) or "not published")
    gflops = {"TFLOP/s": 1e3}
    values = [
        columns.number(one, "published") * gflops.get(str(one["unit"]), 1.0) / gflops.get(unit, 1.0)
        for one in mine
    ]
    yield Check(cells[3], _closest(cells[3], values))
    if cells[4]:
        shares = [
            100 * share for one in mine if not math.isnan(share := columns.number(one, "published_ratio"))
        ]
        yield Check(cells[4], _closest(cells[4], shares))


def _claims(page: Place, row: Cells, _: list[str]) -> Checks:
    table = page.known.tables["claims"]
    name, _sep, text = row["claim"].partition(": ")
    mine = table[table["id"] == name]
    if mine.empty:
        yield Check(name, "no such claim")
        return
    claim = mine.iloc[0]
    margin = str(claim.get("margin") or "")
    yield Check(row["verdict"], ", ".join(filter(None, (_verdict(claim), margin))))
    yield Check(text, one_line(str(claim["claim"])))
    named = row["case"].split(", ")
    yield Check(
        row["case"], row["case"] if set(named) <= {*page.known.cases, claim["case"]} else "unknown case"
    )
    if row["measured here"]:
        unit = str(claim["unit"] or "").partition("/")[0]
        plain = re.match(rf"{N} {re.escape(unit)}", row["measured here"]) if unit else None
        printed = plain or re.match(Q, row["measured here"])
        yield Check(printed[1] if printed else row["measured here"], float(claim["measured"]))
    for title in ("confirmed if", "published", "source", "note"):
        column = {"confirmed if": "condition", "note": "reason"}.get(title, title)
        if row.get(title):
            text = one_line(str(claim[column]))
            if title == "confirmed if" and (ratio := re.match(r"(x|%)(?![^ ])", str(claim["unit"] or ""))):
                text += {"x": "x", "%": " %"}[ratio[1]]
            yield Check(row[title], _written(row[title], text))


def _written(printed: str, condition: str) -> str:
    """Returns the condition as printed, if "== 2" is the only integer in "1.99 .. 2.01"; otherwise the condition."""
    exact, within = re.fullmatch(r"== (-?\d+)", printed), re.fullmatch(rf"{N} \.\. {N}", condition)
    if exact and within and float(within[1]) < int(exact[1]) < float(within[2]):
        return printed if float(within[2]) - float(within[1]) < 0.021 else condition
    return condition


def _verdict(claim: "pd.Series[Any]") -> str:
    """Returns the words for a verdict: a measured number without a verdict, or one about another GPU, is not judged."""
    words = str(claim["verdict"]).replace("_", " ")
    if words != "not measurable":
        return words
    if claim["about"]:
        return f"not judged: about {claim['about']}"
    return words if math.isnan(claim["measured"]) else "not judged"


def _summary(page: Place, row: Cells, cells: list[str]) -> Checks:
    """Checks a table of all variants and cases: speeds, percent of the baseline, or resources."""
    known, title = page.known, page.header[0]
    if page.section.startswith("Resources"):
        metrics = ("registers_per_thread", "block_threads", "shared_bytes_per_block", "", "theoretical_occupancy_pct",
                   "achieved_occupancy_pct")  # fmt: skip
        for printed, metric in zip(cells[1:], metrics, strict=True):
            if " / " in printed:
                for one, truth in zip(printed.split(" / "), known.spills(cells[0]), strict=True):
                    yield Check(one, truth, exact=True)
                continue
            spilled = known.variants.get(cells[0], {}).get("spill_bytes")
            truth = known.counter(cells[0], metric) if metric else max(number(spilled), -math.inf)
            yield Check(printed, truth if math.isfinite(truth) else math.nan, exact=True)
        return
    unit = page.section.partition(" by case")[0]
    for head, printed in zip(page.header[1:], cells[1:], strict=True):
        variant, case = (cells[0], head) if title == "variant" else (head, cells[0])
        if printed in ("not run", "unsupported"):
            yield Check(printed, "not run" if known.own_limits(variant, case) else "unsupported")
        if not _isnumber(printed):
            continue
        if page.section.startswith("Percent of"):
            yield Check(printed, 100 * known.ratio(page.section.split()[-1], variant, case))
        else:
            yield Check(printed, known.speed(variant, unit, case))


def _facts(page: Place, _: Cells, cells: list[str]) -> Checks:
    """Checks clocks and SMs; the other facts name the campaign and its tools."""
    known = page.known
    if found := re.search(rf"mean SM clock during a launch at \S+: {N} to {N} MHz", cells[1]):
        clocks = [known.measured(name, "sm_mhz") for name in known.variants]
        clocks = [clock for clock in clocks if not math.isnan(clock)]
        yield Check(found[1], min(clocks), exact=True)
        yield Check(found[2], max(clocks), exact=True)
    if found := re.search(rf"{N} SMs", cells[1]):
        yield Check(found[1], known.peak("sms"), exact=True)


def _main_path(page: Place, row: Cells, cells: list[str]) -> Checks:
    """Checks a step of the main path, which is based on the step before, and its detours."""
    known, name = page.known, row["main path"]
    value, unit = row["speed"].split(" ")
    yield Check(value, known.speed(name, unit))
    if found := re.fullmatch(
        rf"{N}x(?: \((tied)?(?:, )?(?:{N}x over {V})?\))?", row["over the previous step"]
    ):
        yield Check(found[1], known.ratio(known.parent(name), name))
        yield Check(found[2] or "apart", "tied" if known.tied(name, known.parent(name)) else "apart")
        if found[3]:
            yield Check(found[3], known.ratio(found[4], name))
            yield Check(
                found[4], found[4] if known.faster(found[4], known.parent(name)) else "a slower variant"
            )
    elif row["over the previous step"]:
        same = known.parent(name) in known.alike.get(name, [])
        yield Check(row["over the previous step"], "same kernel" if same else "an unknown form")
    for other, ratio in re.findall(rf"(\S+) {N}x", " ".join(cells[3:])):
        yield Check(ratio, known.ratio(name, other))


def _nearest(printed: str, values: Iterable[float]) -> float:
    """Returns the value that agrees with a printed number with a suffix; the largest if none does."""
    known = [float(value) for value in values if not math.isnan(value)]
    return next((value for value in known if agrees(Check(printed, value))), max(known, default=math.nan))


def _closest(printed: str, values: Sequence[float]) -> float:
    """Returns the value that a printed number is closest to; NaN without values."""
    return min(values, key=lambda value: abs(value - float(printed)), default=math.nan)


def _isnumber(text: str) -> bool:
    return bool(re.fullmatch(N, text))


TABLES: dict[tuple[str, ...], Callable[[Place, Cells, list[str]], Checks]] = {
    ("quantity", "before"): _factors,
    ("state", "saved, µs"): _states,
    ("line", "code"): _lines,
    ("source", "GPU"): _published,
    ("claim", "case"): _claims,
    ("main path", ""): _main_path,
    ("variant", ""): _summary,
    ("case", ""): _summary,
    ("", ""): _facts,
}
