"""Stage time: measures the variants that passed their checks, in fresh processes, at rest and sustained."""

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from warplog.measure import rounds
from warplog.measure.job import Job
from warplog.measure.pooling import missing_sustained, pooled
from warplog.measure.progress import show_results
from warplog.measure.results import Result
from warplog.measure.rounds import Pair, found_at_rest
from warplog.measure.stages.family_stage import AfterCheck, Part, family_task
from warplog.measure.supervise import BREAKS, discard, run_cases
from warplog.measure.task import SustainWork, TimeWork
from warplog.records.config import TimeSettings
from warplog.records.measured import Session
from warplog.records.time import NoSustained, Time, TimeCase

_NEAR_FASTEST = 1.05


@dataclass(frozen=True)
class TimeStage(AfterCheck[TimeSettings, TimeCase, Time]):
    """The times of all variants; they are compared with each other, so they come from one board; see `time_family`."""

    timer: Path
    timed: Sequence[str]
    name = "time"
    kind = Time

    def part(self, job: Job[TimeSettings]) -> Part[TimeSettings]:
        """Returns what is done with a variant: the timed cases, if it passed its check."""
        return self._part(job, tuple(self.timed), self.refuse(job))

    def measure(self, parts: Sequence[Part[TimeSettings]]) -> Iterator[list[Time]]:
        """Measures all variants in the same processes."""
        processes = _Processes(parts, self.timer)
        times = processes.measure()
        yield [
            self.entry(part, {case: times[part.variant, case] for case in part.runnable}, processes.session)
            for part in parts
        ]
        for folder in processes.folders:
            discard(folder)

    def entry(self, part: Part[TimeSettings], ran: Mapping[str, TimeCase], session: Session) -> Time:
        """Returns the times of a variant."""
        cases = part.all_cases(TimeCase, ran)
        return Time(
            **part.job.head(session, part.outcome(cases), part.inputs_sha256),
            check=self.check_of(part.job).status,
            cases=cases,
            session=session,
            settings=part.job.settings,
        )


def time_family(jobs: Sequence[Job[TimeSettings]], check: Path, timer: Path, cases: Sequence[str]) -> None:
    """Times the variants of one family whose checks passed; see `FamilyStage.run`.

    Each case is measured at rest in `processes` fresh processes. If these are too few for a median with a standard
    error of `run_error`, it is measured in further ones, up to `most_processes`, for up to `further_seconds`. If a
    power or thermal limit lowers the clock of back-to-back launches, it is also measured sustained, in as many
    processes, and in up to as many again if these differ too much. In each process, the variants run in a random
    order for each case. The seed of the order and of the addresses follows from campaign and file, so that an
    interrupted job goes on with the same one.

    Args:
        jobs: the variants of one family.
        check: the family's check records.
        timer: the compiled timing core.
        cases: names of the cases to time.
    """
    TimeStage(check, timer, cases).run(jobs)


class _Processes:
    """The processes that measure the variants of a family, in both regimes.

    Attributes:
        session: facts about the last one, with the start-up time of all.
        folders: their working files.
    """

    def __init__(self, parts: Sequence[Part[TimeSettings]], timer: Path) -> None:
        self.session = Session()
        self.folders: set[Path] = set()
        self._parts, self._timer = parts, timer
        self._job, self._settings = parts[0].job, parts[0].job.settings
        pairs = [(part.variant, case) for part in parts for case in part.runnable]
        self._rest: dict[Pair, list[Result]] = {pair: [] for pair in pairs}
        self._sustained: dict[Pair, list[Result]] = {pair: [] for pair in pairs}

    def measure(self) -> dict[Pair, TimeCase]:
        """Returns the times by variant and case."""
        settings, limit_w = self._settings, self._job.gpu.power_limit_w
        count = settings.processes
        self._run(TimeWork, 1, dict.fromkeys(self._rest, count), self._rest)
        # The worker goes on with the further processes; if it died, another one runs what is left.
        self._run(TimeWork, *rounds.further(self._rest, settings), self._rest)
        self._run(TimeWork, *rounds.further(self._rest, settings), self._rest)
        why_not = self._why_not_sustained()
        limited = {pair: count for pair, why in why_not.items() if not why}
        self._run(SustainWork, 1, limited, self._sustained)
        further = {
            pair: min(missing_sustained(results, settings.run_error, limit_w), count)
            for pair, results in self._sustained.items()
        }
        self._run(SustainWork, count + 1, further, self._sustained)
        return {
            pair: pooled(rest, self._sustained[pair], why_not.get(pair, ""), settings, limit_w)
            for pair, rest in self._rest.items()
        }

    def _why_not_sustained(self) -> dict[Pair, NoSustained]:
        """Returns why a case is not measured sustained, "" if it is, for all cases that have times at rest.

        It is if a limit lowers its clock, or if the family has `hot_seconds`; of a case that the profilers do not
        capture, only the baseline and the variants near the fastest at rest.
        """
        family = self._job.family
        at_rest = {
            pair: found_at_rest(rest)
            for pair, rest in self._rest.items()
            if all(result.status == "ok" for result in rest)
        }
        rest_us = {pair: median(run.cold.median_us for run in runs) for pair, runs in at_rest.items()}
        fastest_us: dict[str, float] = {}
        for (_, case), us in rest_us.items():
            fastest_us[case] = min(us, fastest_us.get(case, us))

        def why_not(variant: str, case: str) -> NoSustained:
            first = at_rest[variant, case][0]
            if family.measuring.hot_seconds:
                return ""
            if not first.limited:
                return "not_limited" if first.hot else "no_hot"
            near = rest_us[variant, case] <= _NEAR_FASTEST * fastest_us[case]
            kept = near or variant == family.baseline or case in family.profile_cases
            return "" if kept else "not_near_fastest"

        return {pair: why_not(*pair) for pair in at_rest}

    def _run(
        self, kind: type[TimeWork], first: int, counts: Mapping[Pair, int], into: dict[Pair, list[Result]]
    ) -> None:
        """Measures each case in its number of processes, from the process `first` on; adds the results to `into`."""
        seed = zlib.crc32(f"{self._job.campaign}/{self._job.record}".encode())
        # The result of a case does not depend on how long it may take.
        work = kind(settings=replace(self._settings, timeout_s=TimeSettings().timeout_s), seed=seed)
        runs = rounds.in_order(first, counts, list(self._job.family.cases), f"{seed}/{work.mode}")
        if not runs:
            return
        task = family_task(self._parts, work, runs, self._timer)
        self.folders.add(Path(task.folder))
        show = show_results(work.mode, self._job, len(runs))
        results, session = run_cases(task, self._settings.timeout_s, show, BREAKS)
        for result in results:
            into[result.run.variant, result.run.case].append(result)
        share = len({run.variant for run in runs}) / len(self._parts)
        start_s = self.session.start_seconds + share * session.start_seconds
        self.session = replace(session, start_seconds=start_s, seed=seed)
