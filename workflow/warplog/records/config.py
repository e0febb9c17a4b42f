"""The configuration of a campaign, config/config.yaml and `--config`, with the settings that records keep."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from warplog.records import door
from warplog.records.fields import UNIQUE, Frozen, Slug, each_once, matching

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
        Meta(min_length=1, description="compute-sanitizer tools to run, in order"),
        UNIQUE,
    ] = ("memcheck", "racecheck", "initcheck", "synccheck")
    largest_elements: Annotated[
        int, Meta(ge=1, description="Largest check case to run, in array elements")
    ] = 300_000
    timeout_s: Annotated[Positive, Meta(description="Time limit per case in seconds")] = 120.0

    def __post_init__(self) -> None:
        """Raises ValueError if a tool is named twice."""
        each_once(self.tools)


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
    nsys: Annotated[bool, Meta(description="Record a trace with Nsight Systems")] = True
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


Choice = int | str | tuple[int | str, ...]
Source = Annotated[str, Meta(min_length=1, max_length=4096)]
Gpus = (
    Annotated[
        str,
        matching(
            "[A-Za-z0-9][A-Za-z0-9-]{0,63}(,[A-Za-z0-9][A-Za-z0-9-]{0,63})*",
            "'auto', 'all', a model such as h200, or indices or UUIDs of GPUs, separated by commas",
        ),
    ]
    | Annotated[tuple[int | str, ...], Meta(min_length=1), UNIQUE]
)


class FigureSettings(Frozen, frozen=True, kw_only=True):
    """Look of the figures; keys that are not given have the values of the style."""

    style: Annotated[
        Literal["web", "paper", "dark"],
        Meta(
            description="'web': for pages and reports; 'paper': smaller text, without title and notes, PDF too;"
            " 'dark': on a dark ground, for slides"
        ),
    ] = "web"
    width_in: (
        Annotated[float, Meta(ge=3, le=20, description="Width in inches; text keeps its size")] | UnsetType
    ) = UNSET
    font: (
        Annotated[str, Meta(min_length=1, max_length=100, description="Family name of an installed font")]
        | UnsetType
    ) = UNSET
    font_pt: Annotated[float, Meta(ge=5, le=16, description="Font size in points")] | UnsetType = UNSET
    titles: (
        Annotated[
            bool,
            Meta(
                description="Whether a title stands above, and origin and notes below; if not, a text file holds them"
                " for a caption"
            ),
        ]
        | UnsetType
    ) = UNSET
    formats: (
        Annotated[
            tuple[Literal["png", "svg", "pdf"], ...],
            Meta(
                min_length=1,
                description="Files of each figure; the workflow writes png in any case, which pages and the report"
                " show",
            ),
            UNIQUE,
        ]
        | UnsetType
    ) = UNSET

    def __post_init__(self) -> None:
        """Raises ValueError if a format is named twice."""
        each_once(self.formats or ())


class TrackSettings(Frozen, frozen=True, kw_only=True):
    """MLflow tracking."""

    uri: Annotated[
        str,
        Meta(description="Tracking URI; the environment variable MLFLOW_TRACKING_URI takes precedence"),
    ] = "sqlite:///results/mlflow.db"


class RoundsSettings(Frozen, frozen=True, kw_only=True):
    """A/A test, which times the same code repeatedly."""

    rounds: Annotated[int, Meta(ge=2, le=99, description="Number of processes that time each variant")] = 3


class Config(Frozen, frozen=True, kw_only=True):
    """Configuration of a campaign (config/config.yaml and --config)."""

    families: Annotated[
        Choice,
        Meta(description="Families to run: 'all', or family names as a list or a comma-separated string"),
    ] = "all"
    variants: Annotated[
        Choice,
        Meta(
            description="Variants to run: 'all', or names as `variant` or `family/variant`; the baseline always runs"
        ),
    ] = "all"
    cases: Annotated[Choice, Meta(description="Timed cases to run: 'all', or case names (as strings)")] = (
        "all"
    )
    kernel_folders: Annotated[
        tuple[str, ...], Meta(description="Additional folders with families, beside kernels/")
    ] = ()
    gpu: Annotated[
        Gpus,
        Meta(
            description="'auto': the first GPU; 'all': all GPUs of its model; indices or UUIDs of GPUs, as a list or"
            " separated by commas; or the slug of a GPU that warplog or config/gpus.yaml lists, to submit jobs from a"
            " machine without one"
        ),
    ] = "auto"
    mode: Annotated[
        Literal["auto", "live", "recorded"],
        Meta(
            description="'auto': live if a GPU is found, else recorded; 'live': measure (also on a login node that"
            " submits GPU jobs); 'recorded': use the recorded campaign, never a GPU"
        ),
    ] = "auto"
    recorded: Annotated[
        Slug, Meta(description="Recorded campaign (folder in results/recorded/) to use without a GPU")
    ] = "h200"
    campaign: Annotated[
        str,
        matching("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "up to 64 letters, digits and _ . -"),
        Meta(description="Name of this campaign in tables and MLflow; 'auto' is <gpu>-<date>-<commit>"),
    ] = "auto"
    commit: Annotated[
        str,
        matching("(auto|[0-9a-f]{7,40})", "'auto', or 7 to 40 hexadecimal digits"),
        Meta(description="Commit to record if the folder is not a Git checkout; 'auto' asks Git"),
    ] = "auto"
    check: CheckSettings = CheckSettings()
    timeline: TimelineSettings = TimelineSettings()
    sanitize: SanitizeSettings = SanitizeSettings()
    time: TimeSettings = TimeSettings()
    profile: ProfileSettings = ProfileSettings()
    tune: TuneSettings = TuneSettings()
    figures: FigureSettings = FigureSettings()
    track: TrackSettings = TrackSettings()
    baseline: Annotated[
        Source,
        Meta(
            description="Reference of `snakemake compare`: a recorded campaign, a results folder, mlflow:<campaign or"
            " run id>, parents, or auto (the campaign in `recorded`)"
        ),
    ] = "auto"
    candidate: Annotated[
        Source,
        Meta(
            description="What `snakemake compare` compares with the baseline, named in the same way; `results` is the"
            " campaign of this folder"
        ),
    ] = "results"
    aa: RoundsSettings = RoundsSettings()
    history: Annotated[
        Source | Annotated[tuple[Source, ...], Meta(max_length=1000)],
        Meta(
            description="Campaigns in the history: all (recorded ones and results), or names of recorded campaigns,"
            " results folders and folders that contain them"
        ),
    ] = "all"
    strict: Annotated[bool, Meta(description="Whether a run fails if a variant is not ok")] = False

    def __post_init__(self) -> None:
        """Raises ValueError if a GPU is named twice."""
        each_once(self.gpu if isinstance(self.gpu, tuple) else ())


def configured(project: Path) -> Config:
    """Returns the configuration in config/config.yaml of a project; the defaults if there is no such file.

    Raises:
        WarplogError: the file is not valid.
    """
    path = project / "config" / "config.yaml"
    return door.read_yaml(path, Config) if path.is_file() else Config()
