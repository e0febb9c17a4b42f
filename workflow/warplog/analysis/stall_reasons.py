"""What a kernel waits for in a warp state that several instructions share, where its hot lines show it.

On sm_90, the wait for wgmma counts as `barrier`, and the wait at an mbarrier, at which TMA loads arrive, as
`long_scoreboard`. The name of the state then misleads: the instruction at which most of its samples fall decides.
`short_scoreboard` and `mio_throttle` stand for all instructions of the MIO, such as shuffles and reads of special
registers: only of a kernel that executes more instructions on shared memory than others of these, it is known.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from warplog.core.columns import Row, number, text

_WGMMA, _MBARRIER = "wgmma", "mbarrier"
# A line that waits: by the PTX instruction, or by a function that is named after it (wgmma::wait, warpgroup_wait).
_WAITS = {
    _WGMMA: re.compile(r"\bwgmma\w*(?:::|\.|->)wait|\b(?:wgmma|warpgroup)_wait"),
    _MBARRIER: re.compile(r"\bmbarrier\w*(?:::|\.|->|_)(?:try_|test_)?wait"),
}
_LOOP_END = re.compile(r"^\s*\}\s*(?:while\b|$)")
_EITHER = {_WGMMA: "barrier_or_wgmma", _MBARRIER: "mbarrier_or_memory"}
_MOST = 0.5
# SASS: instructions on a warpgroup's products and on mbarriers, a poll of an mbarrier, an arrival at one that brings no
# bytes, and the loads of the TMA unit.
_OPCODES = {_WGMMA: "WARPGROUP", _MBARRIER: "SYNCS"}
OPCODES = tuple(_OPCODES.values())
MIO_STATES = ("short_scoreboard", "mio_throttle")
# Instructions of the MIO that return a result: on shared memory, and others; stores only take room in its queue.
_SHARED, _STORES, _OTHERS = ("LDS", "LDSM", "ATOMS"), ("STS", "STSM"), ("SHFL", "MUFU", "I2F", "F2I", "REDUX")
_POLL, _ARRIVAL, _TMA_LOADS = "SYNCS.PHASECHK", re.compile(r"SYNCS\.ARRIVE\..*A1T0"), ("UTMALDG", "UBLKCP")


@dataclass(frozen=True)
class Wait:
    """What a state waits for, and the line at which most of its samples fall; "" if none is shown.

    `awaited` is wgmma (the tensor cores), barrier_or_wgmma, tma (loads by TMA), mbarrier (loads or other warps),
    mbarrier_or_memory, shared (data from shared memory) or shared_queue (room for such instructions).
    """

    awaited: str
    line: str = ""


def waits(
    lines: Sequence[Row],
    texts: Mapping[str, str],
    opcodes: Iterable[str],
    shares: Mapping[str, float],
    executed: Mapping[str, float],
) -> dict[str, Wait]:
    """Returns what the states of a kernel wait for, where that is not their name.

    Args:
        lines: The kernel's rows of the table `lines`.
        texts: Its sources by file name, as far as they are known: they show the loop that a line closes.
        opcodes: The opcodes in its machine code, or those that it executed; without them nothing is returned.
        shares: The share of warp cycles by state, from 0 to 1.
        executed: The number of executed instructions by opcode without modifiers, as far as they are known.
    """
    by_state = _mio(executed)
    codes = set(opcodes)
    for state, kind in (("barrier", _WGMMA), ("long_scoreboard", _MBARRIER)):
        if not any(code.startswith(_OPCODES[kind]) for code in codes):
            continue
        waiting = [row for row in lines if row["stall"] == state and _waits(kind, row, texts)]
        samples = {f"{_file(row)}:{number(row, 'line'):.0f}": _samples(row) for row in waiting}
        if sum(samples.values()) >= _MOST * shares.get(state, 0.0) * _all_samples(lines) > 0:
            by_state[state] = Wait(_what(kind, codes), max(samples, key=samples.__getitem__))
        else:
            by_state[state] = Wait(_EITHER[kind])
    return by_state


def _mio(executed: Mapping[str, float]) -> dict[str, Wait]:
    """Returns what the two states of the MIO wait for, if most of its instructions are on shared memory."""
    loads, stores, others = (
        sum(count for code in codes if (count := executed.get(code, 0.0)) > 0)
        for codes in (_SHARED, _STORES, _OTHERS)
    )
    by_state = {"short_scoreboard": Wait("shared")} if loads > others else {}
    return by_state | ({"mio_throttle": Wait("shared_queue")} if loads + stores > others else {})


def _what(kind: str, codes: set[str]) -> str:
    """Returns what a wait of this kind is for: TMA loads, if nothing else arrives at the kernel's mbarriers."""
    if kind == _WGMMA:
        return "wgmma"
    loads, polls = (any(code.startswith(opcode) for code in codes) for opcode in (_TMA_LOADS, _POLL))
    return "tma" if loads and polls and not any(map(_ARRIVAL.match, codes)) else "mbarrier"


def _waits(kind: str, row: Row, texts: Mapping[str, str]) -> bool:
    """Returns whether a line waits in this way: by its own text, or because it closes a loop around such a wait."""
    line, waiting = text(row, "text"), _WAITS[kind]
    if waiting.search(line):
        return True
    source = texts.get(_file(row), "").splitlines()
    end = int(number(row, "line"))
    if not _LOOP_END.match(line) or not 0 < end <= len(source) or source[end - 1].split() != line.split():
        return False
    depth = 0
    for start in range(end - 1, -1, -1):
        depth += source[start].count("}") - source[start].count("{") * (start < end - 1)
        if depth <= 0:
            return any(map(waiting.search, source[start:end]))
    return False


def _all_samples(lines: Sequence[Row]) -> float:
    """Returns the number of samples of the whole kernel, of which each row gives its share."""
    shares = ((number(row, "samples"), number(row, "sample_share")) for row in lines)
    return next((samples / share for samples, share in shares if share > 0), 0.0)


def _samples(row: Row) -> float:
    samples = number(row, "stall_samples")
    return 0.0 if math.isnan(samples) else samples


def _file(row: Row) -> str:
    return text(row, "file").rsplit("/", 1)[-1]
