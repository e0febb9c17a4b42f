"""Why a step is faster or slower: what its sentences print, and what the tables give."""

import math
import re
from collections.abc import Sequence

from warplog.core.columns import Row, number
from warplog.judge.audited import TIME, US, Check, Checks, N, Place, Q, Rule, V
from warplog.judge.evidence import CEILINGS, metric_of


def gain_beyond(
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


def _steps_little(page: Place, at: str | None, percent: str, how: str, other: str) -> Checks:
    known = page.known
    place = at or known.case
    found = known.ratio(other, page.variant, place)
    yield Check(percent, 100 * (max(found, 1 / found) - 1))
    same = known.tied(page.variant, other, place)
    yield Check(how, "tied" if same else "faster" if found > 1 else "slower")


def _steps_beyond(page: Place, above: str, parent: str, ratio: str) -> Checks:
    yield Check(parent, _steps_parent(page))
    yield from gain_beyond(page, page.variant, ratio, above, page.known.profiled, always=True)


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
        yield Check(side, "Factors in its favour" if factor > 1 else "Factors against it")
        yield from _steps_span(page, metric, before, after)
        if waves := re.fullmatch(
            rf", with a (fuller|less full) last wave of blocks: {Q} → {Q} waves", evidence
        ):
            yield from _steps_span(page, "waves_per_sm", *waves.groups()[1:])
            filled = [known.counter(one, "waves_per_sm") for one in (_steps_parent(page), page.variant)]
            filled = [one / math.ceil(one - 1e-6) for one in filled]
            yield Check(waves[1], "fuller" if filled[1] > filled[0] else "less full")
            continue
        moved = 0.0
        for opcode, was, now in re.findall(rf"(\w+) instructions {Q} → {Q}", evidence):
            counter = f"inst_{opcode.lower()}"
            yield from _steps_span(page, counter, was, now)
            moved += known.counter(page.variant, counter) - known.counter(_steps_parent(page), counter)
        if evidence:
            whole = known.counter(page.variant, metric) - known.counter(_steps_parent(page), metric)
            yield Check(evidence.split()[1], "mainly" if moved / whole > 0.5 else "including")


def _steps_clock(page: Place, how: str, before: str, after: str) -> Checks:
    yield Check(how, "rises" if float(after) > float(before) else "falls")
    yield from _steps_span(page, "sm_mhz", before, after)


def _share(line: Row) -> float:
    """Returns the share of the kernel's samples that are in the state of the line."""
    return number(line, "stall_samples") / number(line, "samples") * number(line, "sample_share")


def waited_for(
    page: Place, variant: str, state: str, what: str, kind: str | None, file: str | None, line: str | None
) -> Checks:
    """Checks what a state waits for: most of its samples are on lines that wait so, and the machine code agrees."""
    known = page.known
    share = known.counter(variant, f"stall_{state}_pct") / 100
    if kind and file and line:
        mine = [row for row in known.hot(variant) if row["stall"] == state]
        places = {(str(row["file"]).rsplit("/", 1)[-1], int(number(row, "line"))): row for row in mine}
        at = places.get((file, int(line)))
        texts = "wgmma" if kind == "wgmma" else "mbarrier"
        found = sum(_share(row) for row in mine if row is at or texts in f"{row['file']}{row['text']}")
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
    parent: str | None,
    otherwise: str | None,
    before: str,
    after: str,
    unit: str,
    more: str | None,
) -> Checks:
    known, state = page.known, name or "issuing or ready"
    both = _steps_parent(page), page.variant
    fell = known.spent_us(both[0], state) > known.spent_us(both[1], state)
    if name and what and after == "0":
        yield from _parents_wait(page, name, what)
    elif name and what:
        yield from waited_for(page, page.variant, name, what, kind, file, line)
    if name and otherwise:
        yield Check(str(parent), both[0])
        yield from _parents_wait(page, name, otherwise)
    yield from _spent(page, state, before, after, unit)
    if not more:
        return
    yield Check(more.split()[-3], "fell" if fell else "rose")
    found = re.findall(
        rf"([A-Za-z][\w -]*?)(?: \({Q}(?: ?B)? → {Q}(?: ?B)?\))?(?= and |, | fell| rose)",
        more.removeprefix("; "),
    )
    yield Check(str(len(found) > 0), "True")
    for plain, was, now in found:
        metric = metric_of(plain.removeprefix("and "))
        if was:  # otherwise it is told before
            yield from _steps_span(page, metric, was, now)
        values = [known.counter(one, metric) for one in both]
        yield Check("fell" if fell else "rose", "fell" if values[0] > values[1] else "rose")


def _parents_wait(page: Place, state: str, what: str) -> Checks:
    """Checks what a state waits for in the parent's kernel, whose lines the page does not name."""
    known, parent = page.known, _steps_parent(page)
    kind = {"barrier": "wgmma", "long_scoreboard": "mbarrier"}.get(state, "none")
    mine = [row for row in known.hot(parent) if row["stall"] == state]
    placed = [row for row in mine if kind in f"{row['file']}{row['text']}"]
    found = sum(map(_share, placed))
    is_placed = found >= 0.5 * known.counter(parent, f"stall_{state}_pct") / 100 > 0
    yield from waited_for(page, parent, state, what, kind if is_placed else None, None, None)


def _spent(page: Place, state: str, before: str, after: str, unit: str) -> Checks:
    """Checks the times that a state costs in parent and variant; "0" is less than a ten-thousandth of the other."""
    times = [page.known.spent_us(one, state) / US[unit] for one in (_steps_parent(page), page.variant)]
    for printed, time in zip((before, after), times, strict=True):
        zero = "0" if time < 1.01e-4 * max(times) else f"{time:.6g}"
        yield Check(printed, zero) if printed == "0" else Check(printed, time)


def _steps_units(page: Place, listed: str) -> Checks:
    found = re.findall(rf"({CEILING}) {N} % → {N} %", listed)
    yield Check(str(len(found) > 0), "True")
    for name, before, after in found:
        yield Check(before, share_used(page, _steps_parent(page), CEILINGS[name]))
        yield Check(after, share_used(page, page.variant, CEILINGS[name]))


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
        yield Check(
            printed, share_used(page, one, CEILINGS[name[0].lower() + name[1:] if name != "L2" else name])
        )


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
        used = [share_used(page, one, metric) for metric in CEILINGS.values()]
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


def _steps_tile_end(
    page: Place, how: str, before: str, unit: str, ancestor: str, after: str, other: str
) -> Checks:
    known = page.known
    above = known.parent(page.variant)
    while above and not known.tile_end(above) > 0:
        above = known.parent(above)
    yield Check(ancestor, above)
    yield Check(how, "falls" if known.tile_end(page.variant) < known.tile_end(above) else "rises")
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


def share_used(page: Place, variant: str, metric: str) -> float:
    """Returns how much of a ceiling is used, of elapsed cycles: those of L1 and issue slots refer to active ones."""
    used = page.known.counter(variant, metric)
    busy = page.known.counter(variant, "sm_busy_pct") / 100
    return used * busy if metric in ("l1_throughput_pct", "issue_active_pct") and busy < 1 else used


PLACE = r"(?:, mostly at the (wgmma|mbarrier) wait of ([\w.-]+):(\d+))?"
_REACHES = rf"(?:; it reaches {N}x the speed of \w+(, tied within noise)?)?"
_AT = r"(?:At (\S+), where the counters were captured: )?"
_OF = r"(?: %| MHz)?"
_SPAN = rf"{N} → {N} (µs|ms)"
CEILING = "|".join(sorted(map(re.escape, CEILINGS), key=len, reverse=True))
STEPS: Sequence[Rule] = (
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
        rf"The counters cannot explain the difference \({N} %\): it is smaller"
        rf" than that between the profiled and the timed launches \({N} %\)",
        _steps_runs,
    ),
    (r"Contended global atomics (bound it|no longer bound it)", _steps_contended),
    (rf"Same kernel as {V} at (\S+); see step (\d+) for its counters", _steps_one_kernel),
    (rf"It differs most at ([^\s:;]+): {N}x the speed of {V}\.", _steps_most),
    (
        rf"pipeline bubble at the end of a tile (falls|rises) from {TIME}"
        rf" \(in {V}(?:, the nearest ancestor with a timeline)?\) to {TIME}",
        _steps_tile_end,
    ),
    (r"Less time in ([^.;]*?(?:\.\d[^.;]*?)*); more in ((?:(?!\. ).)*?)\.(?= |$)", _steps_offset),
    (
        rf"{_AT}{N}x as fast as {V}\.",
        lambda page, at, ratio, other: _steps_compared(
            page, ratio, "as fast as", other, at or page.known.case
        ),
    ),
    (
        rf"{_AT}Takes {N}x the time of {V}\.",
        lambda page, at, ratio, other: _steps_compared(
            page, ratio, "longer than", other, at or page.known.case
        ),
    ),
    (
        rf"{_AT}As fast as {V} within noise \({N}x\)\.",
        lambda page, at, other, ratio: _steps_compared(page, ratio, "tied", other, at or page.known.case),
    ),
    (rf"{_AT}{N} % (faster|slower) than {V}\.", _steps_little),
    (rf"Compared with {V}, which is faster than {V}, it is {N}x as fast", _steps_beyond),
    (
        rf"At (\S+), it launches the same kernel as {V} \(equal opcode counts, registers, grid and executed"
        rf" instructions\){_REACHES}",
        _steps_same_kernel,
    ),
    (
        rf"At (\S+), it launches the kernel of {V}, compiled to different machine code \((\d+) instead of (\d+)"
        rf" instructions, (\d+) registers in both\){_REACHES}",
        _steps_recompiled,
    ),
    (r"(Factors in its favour|Factors against it): ((?:(?!\. ).)*)\.", _steps_factors),
    (rf"mean SM clock during a launch (rises|falls) from {N} to {N} MHz", _steps_clock),
    (
        rf"(?:Waiting for ([\w ,-]+) \((\w+){PLACE}(?:, where {V} waits for ([\w ,-]+))?\)|Issuing or ready): {_SPAN}"
        r"(; (?:(?!\. ).)*? (?:fell|rose) as well)?",
        _steps_state,
    ),
    (
        rf"[Ss]ectors per global (load|store) {Q} → {Q}",
        lambda page, kind, *span: _steps_span(page, f"global_{kind}_sectors_per_request", *span),
    ),
    (rf"(?:longest kernel|and) of {V}, {N} % of its time", _steps_part),
)
