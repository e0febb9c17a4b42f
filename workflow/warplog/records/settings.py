"""Settings of the stages as the configuration has them and as records keep them; defaults are those of the project."""

from typing import Annotated, Literal

from msgspec import Meta

from warplog.records.fields import Frozen, refuse_repetitions, unique

Positive = Annotated[float, Meta(gt=0)]
SanitizerTool = Literal["memcheck", "racecheck", "initcheck", "synccheck"]


class CheckSettings(Frozen, frozen=True, kw_only=True):
    """Correctness checks."""

    rounds: Annotated[int, Meta(ge=1, le=1000, description="Rounds of new random inputs per case")] = 3
    timeout_s: Annotated[Positive, Meta(description="Time limit per case in seconds")] = 60.0


class SanitizeSettings(Frozen, frozen=True, kw_only=True):
    """Settings of `snakemake sanitize`."""

    tools: Annotated[
        tuple[SanitizerTool, ...],
        Meta(min_length=1),
        unique("compute-sanitizer tools to run, in order"),
    ] = ("memcheck", "racecheck", "initcheck", "synccheck")
    largest_elements: Annotated[
        int, Meta(ge=1, description="Largest check case to run, in array elements")
    ] = 300_000
    timeout_s: Annotated[Positive, Meta(description="Time limit per case in seconds")] = 120.0

    def __post_init__(self) -> None:
        """Raises ValueError if a tool is named twice."""
        refuse_repetitions(self.tools)


class TimeSettings(Frozen, frozen=True, kw_only=True):
    """Timing."""

    processes: Annotated[int, Meta(ge=1, le=99, description="Fresh processes that measure each case")] = 3
    most_processes: Annotated[
        int, Meta(ge=1, le=99, description="Maximum number of processes if they differ too much")
    ] = 15
    further_seconds: Annotated[
        float,
        Meta(ge=0, description="Maximum time of a case in the processes beyond the first ones in seconds"),
    ] = 0.8
    run_error: Annotated[
        Positive,
        Meta(
            description="Relative standard error of the median over processes that further processes aim for"
        ),
    ] = 0.0035
    min_samples: Annotated[
        int,
        Meta(
            ge=3,
            description="Minimum number of cold samples per process unless max_seconds is reached first",
        ),
    ] = 8
    max_samples: Annotated[int, Meta(ge=3, description="Maximum number of cold samples per process")] = 20
    max_seconds: Annotated[
        Positive, Meta(description="Maximum sampling time per case and process in seconds")
    ] = 0.045
    rel_error: Annotated[
        Positive, Meta(description="Relative standard error of the median at which sampling stops")
    ] = 0.003
    warmup_launches: Annotated[
        int, Meta(ge=1, description="Minimum number of warm-up launches unless they take longer than 10 ms")
    ] = 3
    warmup_ms: Annotated[float, Meta(ge=0, description="Minimum warm-up time in milliseconds")] = 2.0
    hot_seconds: Annotated[
        Positive,
        Meta(description="GPU time of the hot measurement (CUDA graph) in seconds, in the first process"),
    ] = 0.1
    hot_cases: Annotated[Literal["captured", "all"], Meta(description="Cases that get a hot time")] = (
        "captured"
    )
    timeout_s: Annotated[Positive, Meta(description="Time limit per case in seconds")] = 120.0


class ProfileSettings(Frozen, frozen=True, kw_only=True):
    """Profiler captures."""

    ncu: Annotated[bool, Meta(description="Collect hardware counters with Nsight Compute")] = True
    nsys: Annotated[bool, Meta(description="Capture the timeline with Nsight Systems")] = True
    metrics: Annotated[
        Literal["all", "lean", "sections"],
        Meta(
            description="'all': all metrics of the registry; 'lean': only the cheaper ones; 'sections': all plus"
            " ncu's full section set"
        ),
    ] = "all"
    launches: Annotated[int, Meta(ge=1, le=1000, description="Back-to-back launches per case under nsys")] = (
        10
    )
    timeout_s: Annotated[Positive, Meta(description="Time limit per captured case in seconds")] = 300.0


class TuneSettings(Frozen, frozen=True, kw_only=True):
    """Parameter search of `snakemake tune`."""

    minutes: Annotated[Positive, Meta(description="Time limit of the search per variant in minutes")] = 10.0
    timeout_s: Annotated[Positive, Meta(description="Time limit per setting in seconds")] = 60.0


class TimelineSettings(Frozen, frozen=True, kw_only=True):
    """Settings of `snakemake timeline`."""

    rounds: Annotated[
        int,
        Meta(
            ge=1, le=100, description="Rounds in which the builds with and without marks are timed in turns"
        ),
    ] = 6
    samples: Annotated[int, Meta(ge=1, le=100, description="Cold samples per build and round")] = 5
    pause_us: Annotated[
        float, Meta(ge=0, le=100_000, description="Pause before each sample in microseconds")
    ] = 2000.0
    most_mib: Annotated[
        int,
        Meta(
            ge=1,
            le=16384,
            description="Largest buffer for events in MiB; events beyond it are counted as lost",
        ),
    ] = 512
    timeout_s: Annotated[Positive, Meta(description="Time limit per variant in seconds")] = 120.0
