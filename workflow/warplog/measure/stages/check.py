"""Stage check: runs all check cases of a family's variants, which are compared with the reference."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from warplog.measure.job import Job
from warplog.measure.progress import show_results
from warplog.measure.stages.family_stage import FamilyStage, Part, by_case, family_task, refuse
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import CheckWork
from warplog.measure.trial import try_reference
from warplog.records.check import Check, CheckCase
from warplog.records.config import CheckSettings
from warplog.records.measured import Session


class CheckStage(FamilyStage[CheckSettings, CheckCase, Check]):
    """The checks of all variants in one worker; an entry has the status of its first supported case that is not ok."""

    name = "check"
    kind = Check
    any_board = True

    def part(self, job: Job[CheckSettings]) -> Part[CheckSettings]:
        """Returns what is done with a variant: all check cases, unless it was not built."""
        return self._part(job, tuple(job.family.check_cases), refuse(job))

    def measure(self, parts: Sequence[Part[CheckSettings]]) -> Iterator[list[Check]]:
        """Runs the cases of one variant after the other."""
        first = parts[0].job
        task = family_task(parts, CheckWork(rounds=first.settings.rounds))
        show = show_results(self.name, first, len(task.runs))
        results, session = run_cases(task, first.settings.timeout_s, show, BREAKS)
        yield [self.entry(part, by_case(results, CheckCase, part.variant), session) for part in parts]
        discard(Path(task.folder))

    def entry(self, part: Part[CheckSettings], ran: Mapping[str, CheckCase], session: Session) -> Check:
        """Returns the check of a variant."""
        cases = part.all_cases(CheckCase, ran)
        return Check(
            **part.job.head(session, part.outcome(cases), part.inputs_sha256),
            cases=cases,
            session=session,
            settings=part.job.settings,
        )


def check_family(jobs: Sequence[Job[CheckSettings]]) -> None:
    """Checks the variants of one family, once its reference was tried; see `FamilyStage.run`.

    Raises:
        WarplogError: The reference is wrong.
    """
    try_reference(jobs[0].family)
    CheckStage().run(jobs)
