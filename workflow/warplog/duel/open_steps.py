"""Steps that a campaign leaves open: each variant that its times do not tell from its parent duels with it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from warplog.analysis.verdicts import AMBIGUOUS, SAME
from warplog.core.errors import say
from warplog.core.hashing import sha256_of
from warplog.core.numbers import signed_percent
from warplog.duel import match
from warplog.measure.job import Job
from warplog.measure.tuning.finalists import Fight
from warplog.records import door
from warplog.records.requested.duel import Duel
from warplog.records.requested.step_duels import StepDuel, StepDuels
from warplog.tables import conclusions
from warplog.tables.conclusions import Step
from warplog.tables.files import read_table


def duel_steps(jobs: Sequence[Job[Any]], tables: Path, fight: Fight = match.of_jobs) -> None:
    """Brings the record of a family up to date, which is written after each duel; one with the same inputs is kept.

    Args:
        jobs: those of the family's variants.
        tables: the folder with the table `steps`.

    Raises:
        WarplogError: A tool is missing or fails, or a file cannot be read or written.
    """
    by_variant = {job.variant.name: job for job in jobs}
    path, family, gpu = jobs[0].record, jobs[0].family.name, jobs[0].gpu.slug
    before = {one.variant: one for one in door.read(path, StepDuels).duels} if path.is_file() else {}
    steps = list(_open(conclusions.rows(read_table(tables, Step.TABLE), Step, family)))
    keys = {step.variant: _key(step, by_variant) for step in steps}
    done = {
        name: before[name]
        for name, key in keys.items()
        if name in before and before[name].inputs_sha256 == key
    }

    def write() -> None:
        found = tuple(done[name] for name in keys if name in done)
        door.write(path, StepDuels(gpu=gpu, family=family, duels=found))

    write()
    for step in steps:
        name, parent = step.variant, step.parent
        if name not in done:
            duel = fight(by_variant[parent], by_variant[name], step.case)
            done[name] = StepDuel(variant=name, parent=parent, inputs_sha256=keys[name], duel=duel)
            write()
            say(f"  duels   {family}/{name} {step.case}  {_shown(duel)}  ({len(done)}/{len(steps)})")


def _key(step: Step, jobs: Mapping[str, Job[Any]]) -> str:
    """Returns the hash of everything that the duel of a step depends on."""
    sides = [jobs[name] for name in (step.parent, step.variant)]
    return sha256_of(step.case, [(job.inputs_sha256, job.build.identity) for job in sides])


def _open(steps: Iterable[Step]) -> Iterator[Step]:
    """Yields the steps within noise, except those that launch the same machine code as their parent."""
    for step in steps:
        if step.word in (SAME, AMBIGUOUS) and (step.twin, step.twin_code) != (step.parent, "same"):
            yield step


def _shown(duel: Duel) -> str:
    if duel.status != "ok":
        return f"{duel.status}: {duel.reason}"
    return f"{duel.judged[0].time.word}  {signed_percent(duel.judged[0].time.ratio)}"


def rows(records: Iterable[StepDuels]) -> list[conclusions.Duel]:
    """Returns the rows of the table `duels`."""
    return [_row(record.family, one) for record in records for one in record.duels]


def _row(family: str, one: StepDuel) -> conclusions.Duel:
    duel = one.duel
    row = conclusions.Duel(
        family=family,
        variant=one.variant,
        against=one.parent,
        case=duel.case,
        status=duel.status,
        source_sha256=duel.b.source_sha256,
        against_sha256=duel.a.source_sha256,
    )
    if not duel.judged:
        return row
    judged, time = duel.judged[0], duel.judged[0].time
    gain_pct, low_pct, high_pct = (100 * (1 / ratio - 1) for ratio in (time.ratio, time.high, time.low))
    return replace(
        row,
        word=time.word,
        reason=time.reason,
        us=judged.b_us,
        against_us=judged.a_us,
        gain_pct=gain_pct,
        low_pct=low_pct,
        high_pct=high_pct,
        floor_pct=100 * time.floor,
        processes=len(judged.windows),
    )
