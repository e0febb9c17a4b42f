"""Argues each step of a campaign, and forecasts what would help each variant: rows of three tables."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from warplog.analysis.explanation import Sources
from warplog.analysis.mechanisms import accounts, causes
from warplog.analysis.mechanisms import campaign as of_campaign
from warplog.analysis.mechanisms.accounts import Account, Bubbles
from warplog.analysis.mechanisms.campaign import Campaign, Key, Tables
from warplog.analysis.mechanisms.ceilings import Gpu
from warplog.analysis.mechanisms.forecasts import forecasts
from warplog.analysis.mechanisms.model import LAUNCHES, Calibration, Prediction, launch_us, predict, total
from warplog.analysis.mechanisms.units import missing
from warplog.analysis.mechanisms.work import Launch, Work
from warplog.analysis.verdicts import FASTER, SLOWER, Verdict, judge
from warplog.catalog.contract import Mechanism
from warplog.catalog.family import Family
from warplog.core.columns import Row, number, text
from warplog.parsers.instruction import parse
from warplog.tables.conclusions import NAN, Conclusion, Forecast, Reason, UnitTime

PREDICTED, ACCOUNTED, NOT_IN_EVIDENCE = WORDS = ("predicted", "accounted", "not_in_evidence")
LEAST = 0.05  # of the slower time: for less, the model names no mechanism
_ALSO = 0.2  # of the predicted saving: what another mechanism has at least, to be named as well
_NONE: Mechanism = "none"
_ALIKE = 1.25
_BY_ADDRESS = ("dram", "l2", "l1")
_WORK_COUNTS = ("l1_wavefronts", "l2_requests_from_sms")
# Instructions on whose lines a mechanism acts, and how many of them a kernel executes.
_ON_LINES: Mapping[Mechanism, tuple[tuple[str, ...], Callable[[Work], float]]] = {
    "spills": (("LDL", "STL"), lambda work: work.spills),
    "barriers": (("BAR",), lambda work: work.barriers),
    "fences": (("MEMBAR",), lambda work: work.fences),
    "atomics": (("RED", "REDG", "ATOM", "ATOMG"), lambda work: work.atomics),
    "wide_accesses": (("LDG", "STG"), lambda work: work.loads + work.stores),
}
_HALF = 2
_ONE_EACH = 2  # kernels of both, where each launches one


def rows(
    tables: Tables,
    calibration: Calibration,
    sources: Mapping[str, Sources],
    families: Mapping[str, Family],
) -> Mapping[type[Conclusion], Sequence[Conclusion]]:
    """Returns the rows of the three tables, by their types.

    A step of which a count or a ceiling is unknown is not predicted: it is not in evidence, and needs what is missing.
    """
    found = of_campaign.read(tables, sources, families)
    unknown = {key: _unknown(found, key) for key in found.launches}
    known = replace(found, launches={k: launch for k, launch in found.launches.items() if not unknown[k]})
    argued = list(reasons(known, calibration))
    lacking = [
        Reason(*key[:2], of_parent[1], key[2], _NONE, NOT_IN_EVIDENCE, *(NAN,) * 3, _saved_us(found, of_parent, key),
               ",".join(dict.fromkeys(unknown[of_parent] + unknown[key])))
        for of_parent, key in _steps(found)
        if unknown[of_parent] or unknown[key]
    ]  # fmt: skip
    own = text(next(iter(tables["variants"]), {}), "campaign")
    others = ",".join(sorted({ceiling.campaign for ceiling in found.gpu.ceilings.values()} - {own, ""}))
    return {
        Reason: [replace(row, ceilings_of=others) for row in (*(reason for reason, _ in argued), *lacking)],
        UnitTime: [unit_time for _, unit_times in argued for unit_time in unit_times],
        Forecast: list(forecast(known, calibration)),
    }


def reasons(campaign: Campaign, calibration: Calibration) -> Iterator[tuple[Reason, list[UnitTime]]]:
    """Yields why each variant is faster or slower than its parent, at each case at which both have times and counts."""
    for of_parent, key in _steps(campaign):
        parent, child = campaign.launches[of_parent], campaign.launches[key]
        yield _argued(campaign, of_parent, key, parent, child, calibration)


def forecast(campaign: Campaign, calibration: Calibration) -> Iterator[Forecast]:
    """Yields what would help each variant at each case at which it has a time and counts, the best first.

    What would save less than the noise of the time is left out.
    """
    for key, launch in campaign.launches.items():
        if key in campaign.times:
            timed, compulsory = campaign.times[key], campaign.compulsory_bytes.get(key[::2], math.nan)
            for mended in forecasts(launch, timed, campaign.gpu, calibration, compulsory):
                prediction, line = mended.prediction, line_of(campaign, key, mended.mechanism)
                if prediction.saved_us > timed.us * timed.noise.gap():
                    yield Forecast(
                        *key, mended.mechanism, timed.us, prediction.saved_us, prediction.speedup,
                        *prediction.speedup_interval, mended.bound, line,
                    )  # fmt: skip


def line_of(campaign: Campaign, key: Key, mechanism: Mechanism) -> str:
    """Returns the line, as file:line, on which a mechanism acts most: by its counts, or executed instructions.

    It is "" if that line is not of the variant's own files, or if most of these instructions are in no hot loop.
    """
    counts: dict[str, float] = {}
    for row, count in _counted(campaign, key, mechanism):
        if text(row, "file") and count > 0:
            line = f"{text(row, 'file')}:{number(row, 'line'):.0f}"
            counts[line] = counts.get(line, 0.0) + count
    _, executed = _ON_LINES.get(mechanism, ((), lambda _: 0.0))
    if _HALF * sum(counts.values()) < sum(map(executed, campaign.launches.get(key, ()))):
        return ""
    most = max(counts, key=counts.__getitem__, default="")
    return most if most.rpartition(":")[0] in campaign.files.get(key[:2], ()) else ""


def _counted(campaign: Campaign, key: Key, mechanism: Mechanism) -> Iterator[tuple[Row, float]]:
    """Yields rows with a line, and how much of a mechanism each has."""
    if mechanism == "bank_conflicts":
        for row in campaign.lines.get(key, ()):
            yield row, number(row, "shared_wavefronts_excess")
    elif mechanism == "coalescing":
        for row in campaign.accesses.get(key[:2], ()):
            yield row, number(row, "traced_sectors") - number(row, "sectors_ideal")
    else:
        opcodes, _ = _ON_LINES.get(mechanism, ((), None))
        for row in campaign.instructions.get(key, ()):
            if parse(text(row, "text")).base in opcodes:
                yield row, number(row, "executed")


def _steps(campaign: Campaign) -> Iterator[tuple[Key, Key]]:
    """Yields parent and child of each case at which both have times and counts.

    A child that launches the kernel of another variant is no step from its parent.
    """
    for key in campaign.launches:
        family, variant, case = key
        of_parent = family, campaign.parents.get((family, variant), ""), case
        known = of_parent in campaign.launches and {key, of_parent} <= set(campaign.times)
        if known and not _is_others(campaign, of_parent, key):
            yield of_parent, key


def _is_others(campaign: Campaign, of_parent: Key, key: Key) -> bool:
    """Returns whether a variant launches the kernel of one whose source it includes, where its parent does not."""
    own, (source, *headers) = _executed(campaign, key), campaign.files.get(key[:2]) or ("",)
    if not own or own == _executed(campaign, of_parent):
        return False
    included = (
        (family, variant, key[2])
        for (family, variant), files in campaign.files.items()
        if family == key[0] and (first := next(iter(files), source)) != source and first in headers
    )
    return any(_executed(campaign, other) == own for other in included)


def _executed(campaign: Campaign, key: Key) -> list[tuple[str, float]]:
    """Returns the instructions that were sampled, and how often each was executed."""
    return [(text(row, "text"), number(row, "executed")) for row in campaign.instructions.get(key, ())]


def _unknown(campaign: Campaign, key: Key) -> tuple[str, ...]:
    """Returns what is not known of the work of a launch, and of the ceilings that it rests on."""
    launch = campaign.launches[key]
    counts = () if all(work.is_clean for work in launch) else _WORK_COUNTS
    return (*counts, *(f"ceilings/{name}" for name in missing(launch, campaign.gpu)))


def _saved_us(campaign: Campaign, of_parent: Key, key: Key) -> float:
    return campaign.times[of_parent].us - campaign.times[key].us


def _argued(
    campaign: Campaign, of_parent: Key, key: Key, parent: Launch, child: Launch, calibration: Calibration
) -> tuple[Reason, list[UnitTime]]:
    before, after = campaign.times[of_parent], campaign.times[key]
    prediction = predict(parent, child, before, campaign.gpu, calibration)
    verdict, measured_us = judge(before, after), before.us - after.us
    predicted = (prediction.saved_us, prediction.low_us, prediction.high_us) if prediction else (NAN,) * 3
    family, variant, case = key
    deciding = ",".join(_deciding(campaign, of_parent, key))
    reason = Reason(
        family, variant, of_parent[1], case, _NONE, NOT_IN_EVIDENCE, *predicted, measured_us, deciding
    )
    if prediction:
        is_ahead = (of_parent if measured_us > 0 else key) in campaign.ahead
        reason = _judged(reason, parent, child, prediction, verdict, campaign.gpu, is_ahead)
    if reason.mechanism in (_NONE, *causes.OF_MEMORY) and verdict.word in (FASTER, SLOWER):
        account = _account(campaign, of_parent, key, parent, child, measured_us, calibration.error)
        # Accesses to shared memory that fill the queue to L1 keep those to global memory waiting.
        if account and (reason.mechanism == _NONE or account.mechanism == "shared_accesses"):
            rests_on = ",".join(account.rests_on)
            reason = replace(
                reason, mechanism=account.mechanism, word=ACCOUNTED, rests_on=rests_on, also="", least_pct=NAN
            )
    return (
        reason,
        list(_unit_times(of_parent, key, parent, child, prediction, campaign)) if prediction else [],
    )


def _judged(
    reason: Reason,
    parent: Launch,
    child: Launch,
    prediction: Prediction,
    verdict: Verdict,
    gpu: Gpu,
    is_ahead: bool,
) -> Reason:
    """Returns the reason of a step that is as predicted, with its mechanisms; else as it is given.

    Nothing that makes memory faster is a reason if the slower kernel has its data `is_ahead` of their use.
    """
    before_us, saved_us, measured_us = verdict.before_us, prediction.saved_us, reason.measured_us
    as_predicted = replace(reason, word=PREDICTED, rests_on="")
    few_us, many_us = sorted((before_us, before_us - saved_us))
    resolved = many_us >= (1 + verdict.floor) * few_us
    holds = _holds(prediction, measured_us, verdict)
    if verdict.word not in (FASTER, SLOWER):
        return as_predicted if holds or not resolved else reason
    if not (holds and resolved):
        return reason
    least_us = LEAST * max(before_us, before_us - measured_us)
    if many_us - few_us < least_us:
        is_small = abs(measured_us) < least_us and measured_us * saved_us > 0
        return replace(as_predicted, least_pct=100 * LEAST) if is_small else reason
    parts = causes.by_mechanism(parent, child, prediction, gpu)
    mechanism = causes.named(parts, saved_us)
    never = (_NONE, *(causes.OF_MEMORY if is_ahead else ()))
    if mechanism in never:
        return reason
    others = (m for m, us in parts.items() if m not in (mechanism, *never) and us / saved_us >= _ALSO)
    rests_on = causes.rests_on(mechanism, parent, child, saved_us, gpu)
    return replace(as_predicted, mechanism=mechanism, also=",".join(others), rests_on=",".join(rests_on))


def _holds(prediction: Prediction, measured_us: float, verdict: Verdict) -> bool:
    """Returns whether a measured saving is the predicted one, given what the same code shows."""
    noise_us = verdict.floor * verdict.before_us
    return prediction.low_us - noise_us <= measured_us <= prediction.high_us + noise_us


def _account(
    campaign: Campaign,
    of_parent: Key,
    key: Key,
    parent: Launch,
    child: Launch,
    measured_us: float,
    error: float,
) -> Account | None:
    before, after = (causes.longest(launch, campaign.gpu) for launch in (parent, child))
    found = accounts.accounts(
        before,
        after,
        campaign.times[of_parent].us,
        campaign.times[key].us,
        campaign.changes.get(key, ()),
        _bubbles(campaign, of_parent, key),
        campaign.others_us.get(key, NAN) if len(parent) + len(child) > _ONE_EACH else NAN,
    )
    return accounts.best(found, measured_us, error)


def _bubbles(campaign: Campaign, of_parent: Key, key: Key) -> Bubbles:
    return _bubble(campaign, of_parent), campaign.bubbles_pct.get(key, math.nan)


def _bubble(campaign: Campaign, key: Key) -> float:
    """Returns the share of bubbles of a variant, or of its nearest ancestor with a timeline; NaN without one.

    Tiles of an ancestor end as those of the variant only if blocks are of the same size, and an SM holds as many.
    """
    nearest = next((each for each in _ancestry(campaign, key) if each in campaign.bubbles_pct), key)
    is_alike = _blocks(campaign, nearest) == _blocks(campaign, key)
    return campaign.bubbles_pct.get(nearest, math.nan) if is_alike else math.nan


def _ancestry(campaign: Campaign, key: Key) -> Iterator[Key]:
    """Yields a variant, its parent, and so on, at one case."""
    family, variant, case = key
    seen: set[str] = set()
    while variant and variant not in seen:
        seen.add(variant)
        yield family, variant, case
        variant = campaign.parents.get((family, variant), "")


def _end_alike(campaign: Campaign, of_parent: Key, key: Key) -> bool:
    """Returns whether bubbles are alike in the nearest kernels with a timeline before and after a step."""
    pct = campaign.bubbles_pct
    before, after = (
        next((pct[each] for each in line if each in pct), math.nan)
        for line in (_ancestry(campaign, of_parent), _offspring(campaign, key))
    )
    return before <= _ALIKE * after and after <= _ALIKE * before


def _offspring(campaign: Campaign, key: Key) -> Iterator[Key]:
    """Yields a variant, its children, theirs, and so on, at one case."""
    found = [key]
    for family, variant, case in found:
        yield family, variant, case
        children = (
            (family, child, case)
            for (of, child), parent in campaign.parents.items()
            if (of, parent) == (family, variant)
        )
        found += [child for child in children if child not in found]


def _blocks(campaign: Campaign, key: Key) -> list[tuple[float, float, float]]:
    launch = campaign.launches.get(key, ())
    return [(work.block_warps, work.block_shared_bytes, work.resident) for work in launch]


def _deciding(campaign: Campaign, of_parent: Key, key: Key) -> tuple[str, ...]:
    """Returns what would decide about a step that is not explained.

    It is what was not recorded; else the addresses, if the work changed most for a unit that takes longer for some
    orders of them (rows of device memory, slices of L2, lines), and if these are known, how fast device memory answers
    in this order, unless SMs hold too little for it to be busy; else a timeline of tiles. Else nothing that is known
    would.
    """
    parent, child = campaign.launches[of_parent], campaign.launches[key]
    works = (*parent, *child)
    longest = [(each, causes.longest(campaign.launches[each], campaign.gpu)) for each in (of_parent, key)]
    if any(work.same_address and not work.traced for work in works):
        return ("accesses",)
    if any(work.loads and not campaign.instructions.get(key) for key, work in longest):
        return ("instructions",)
    sides = [total(launch, campaign.gpu) for launch in (parent, child)]
    changes = {u: abs(sides[0].get(u, 0.0) - sides[1].get(u, 0.0)) for u in (*sides[0], *sides[1])}
    most = max(changes, key=changes.__getitem__, default="")
    traced = all(campaign.accesses.get(each[:2]) for each in (of_parent, key))
    untimed = math.isnan(sum(_bubbles(campaign, of_parent, key)))
    tiles = any(map(causes.multiplies, works)) and untimed and not _end_alike(campaign, of_parent, key)
    if most in _BY_ADDRESS and not traced:
        return ("accesses",)
    if most == "dram" and not _holds_less(*(work for _, work in longest)):
        return ("dram_rows",)
    return ("launches",) if tiles else ()


def _holds_less(one: Work, other: Work) -> bool:
    """Returns whether an SM holds half as many warps in one, or one block: while that waits, no other one loads."""
    few, many = sorted(work.block_warps * work.resident for work in (one, other))
    blocks = sorted((one.resident, other.resident))
    return _HALF * few <= many or blocks[0] == 1 < blocks[1]


def _unit_times(
    of_parent: Key, key: Key, parent: Launch, child: Launch, prediction: Prediction, campaign: Campaign
) -> Iterator[UnitTime]:
    family, variant, case = key
    start = launch_us(campaign.gpu)
    sides = [{**total(launch, campaign.gpu), LAUNCHES: start * len(launch)} for launch in (parent, child)]
    for unit in dict.fromkeys((*sides[0], *sides[1], *prediction.shares)):
        before, after = (side.get(unit, 0.0) for side in sides)
        saved_us = prediction.shares.get(unit, 0.0)
        yield UnitTime(family, variant, of_parent[1], case, unit, before, after, saved_us)
