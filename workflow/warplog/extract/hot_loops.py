"""The hot loops of a launch, instruction by instruction: part of the extract record and of the table `instructions`."""

from collections.abc import Sequence
from pathlib import PurePath

from warplog.parsers.loops import Region, regions
from warplog.parsers.ncu.source import SourceInstruction
from warplog.records.extract import MOST_INSTRUCTIONS, MOST_LOOPS, HotLoop, LoopInstruction

_MOST_TEXT = 500


def hottest(case: str, kernel: str, launch: int, code: Sequence[SourceInstruction]) -> list[HotLoop]:
    """Returns the loops with most of the launch's samples, or instructions if it was not sampled, the hottest first.

    The code outside of all loops counts as one of them if none has more samples. A loop with more than
    MOST_INSTRUCTIONS is left out. A kernel without a line table has none here: it is that of a library, whose machine
    code is not ours to publish.
    """
    if not any(instruction.line for instruction in code):
        return []
    weight = "samples" if any(instruction.samples for instruction in code) else "instructions"
    parts = regions([(instruction.offset, instruction.text) for instruction in code])
    weighed = {region: sum(_amount(code[place], weight) for place in region.places) for region in parts}
    ranked = sorted((region for region in parts if weighed[region]), key=lambda region: -weighed[region])
    ranked = [
        region
        for rank, region in enumerate(ranked)
        if (region.iterates or not rank) and len(region.places) <= MOST_INSTRUCTIONS
    ]
    samples = int(sum(_amount(instruction, "samples") for instruction in code))
    return [_loop(case, kernel, launch, code, region, samples) for region in ranked[:MOST_LOOPS]]


def _amount(instruction: SourceInstruction, weight: str) -> float:
    return (
        sum(instruction.samples.values())
        if weight == "samples"
        else instruction.counts.get("instructions", 0.0)
    )


def _loop(
    case: str, kernel: str, launch: int, code: Sequence[SourceInstruction], region: Region, samples: int
) -> HotLoop:
    return HotLoop(
        case=case,
        kernel=kernel,
        launch=launch,
        iterates=region.iterates,
        kernel_samples=samples,
        iterations=int(_amount(code[region.head], "instructions")),
        instructions=tuple(_instruction(code[place]) for place in region.places),
    )


def _instruction(instruction: SourceInstruction) -> LoopInstruction:
    waits = {state: count for state, count in instruction.samples.items() if state != "selected"}
    stall = max(waits, key=waits.__getitem__, default="")
    return LoopInstruction(
        offset=instruction.offset,
        text=instruction.text[:_MOST_TEXT],
        executed=int(instruction.counts.get("instructions", 0)),
        samples=int(sum(instruction.samples.values())),
        stall=stall,
        stall_samples=int(waits.get(stall, 0)),
        file=PurePath(instruction.file).name,
        line=instruction.line,
    )
