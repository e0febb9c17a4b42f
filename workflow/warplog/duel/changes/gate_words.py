"""The record of a gate in words: lines for a terminal, Markdown for a pull request, JUnit for a build server."""

from xml.etree import ElementTree

from warplog.analysis.verdicts import FASTER, SLOWER
from warplog.core.numbers import signed_percent
from warplog.core.text import Table, join_notes, markdown_table
from warplog.duel.words import counted
from warplog.records.requested.duel import Duel
from warplog.records.requested.gate import Gate, GateCase

_MEANS = {
    "gain": "faster, and nothing slower",
    "loss": "a confirmed regression",
    "same": "no difference beyond the margin",
    "machine": "an unchanged variant moved: nothing is said of the change",
    "not enough data": "some variants that differ have no clear verdict",
    "nothing to measure": "no machine code differs",
}
# What differs besides sources.
_METHODS = {"options": "options of the compiler", "parameters": "parameters", "compiler": "compiler"}
_TITLES = ("verdict", "variant", "case", "time", "interval", "in cycles", "notes")


def lines(gate: Gate) -> list[str]:
    """Returns the verdict in a line, and one for each case that was to be measured, the worst first."""
    head = gate.head or "the working tree"
    rows = [_cells(one) for one in gate.cases]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)] if rows else []
    table = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return [f"{gate.word.upper()}  {head} against {gate.base}: {_MEANS[gate.word]}", *table, *_notes(gate)]


def markdown(gate: Gate) -> str:
    """Returns a comment for a pull request."""
    head = gate.head or "the working tree"
    table = markdown_table(Table(_TITLES, tuple(map(_cells, gate.cases)))) if gate.cases else []
    title = f"### {gate.word.capitalize()}: {head} against {gate.base}"
    notes = [f"{note}  " for note in _notes(gate)]
    return (
        "\n".join([title, "", f"{_MEANS[gate.word].capitalize()}.", "", *table, "", *notes]).rstrip() + "\n"
    )


def junit(gate: Gate) -> str:
    """Returns JUnit XML: a regression is a failure, and a case without a clear verdict is skipped."""
    suite = ElementTree.Element("testsuite", name="warplog gate", tests=str(len(gate.cases)))
    for one in gate.cases:
        name = f"{one.variant} {one.case}" + (" (control)" if one.control else "")
        case = ElementTree.SubElement(suite, "testcase", classname=one.family, name=name)
        text = join_notes(*_cells(one)[3:])
        if one.word == "loss" or (one.control and one.word == "gain"):
            ElementTree.SubElement(case, "failure", message=text or one.word)
        elif one.word not in ("gain", "same"):
            ElementTree.SubElement(case, "skipped", message=text or one.word)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _cells(one: GateCase) -> tuple[str, ...]:
    judged = one.duel.judged[0] if one.duel and one.duel.judged else None
    numbers = ["", "", ""]
    if judged:
        interval = f"{signed_percent(judged.time.low)} to {signed_percent(judged.time.high)}"
        cycles = signed_percent(judged.cycles.ratio) if judged.cycles else ""
        numbers = [signed_percent(judged.time.ratio), interval, cycles]
    methods = [_METHODS[what] for what in one.differs if what in _METHODS]
    method = f"method changed: {', '.join(methods)}" if methods else ""
    counters = _counters(one.duel) if one.duel and judged and judged.time.word in (FASTER, SLOWER) else ""
    notes = join_notes("control" if one.control else "", method, one.reason, counters)
    return (one.word, f"{one.family}/{one.variant}", one.case, *numbers, notes)


def _counters(duel: Duel) -> str:
    if duel.no_counters:
        return f"no counters: {duel.no_counters}"
    changes = (
        f"{counted(one)} {signed_percent(one.b / one.a) if one.a else f'0 to {one.b:.6g}'}"
        for one in duel.counters
    )
    return ", ".join(changes) or "no counter differs"


def _notes(gate: Gate) -> list[str]:
    listed = [("only at the head", gate.added), ("only at the base", gate.removed)]
    return [
        f"machine code unchanged: {gate.unchanged} variants; {gate.seconds:.0f} s",
        *(f"{where}: {', '.join(names)}" for where, names in listed if names),
    ]
