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

    rounds: Annotated[
        int,
        Meta(ge=1, le=1000, description="rounds of new random inputs per check case; use 10 for a release"),
    ] = 3
    timeout_s: Annotated[
        Positive,
        Meta(
            description="time limit per case; one that exceeds it is a `timeout`, and the campaign continues"
        ),
    ] = 60.0


class SanitizeSettings(Frozen, frozen=True, kw_only=True):
    """Settings of `snakemake sanitize`."""

    tools: Annotated[
        tuple[SanitizerTool, ...],
        Meta(min_length=1, description="tools of compute-sanitizer that `snakemake sanitize` runs, in order"),
        UNIQUE,
    ] = ("memcheck", "racecheck", "initcheck", "synccheck")
    largest_elements: Annotated[
        int,
        Meta(
            ge=1,
            description="largest check case under these tools, in array elements, since a checked access is about a"
            " hundred times slower; a family may replace it",
        ),
    ] = 300_000
    timeout_s: Annotated[Positive, Meta(description="time limit per case and tool")] = 120.0

    def __post_init__(self) -> None:
        """Raises ValueError if a tool is named twice."""
        each_once(self.tools)


class TimeSettings(Frozen, frozen=True, kw_only=True):
    """Timing."""

    processes: Annotated[
        int,
        Meta(
            ge=1,
            le=99,
            description="fresh processes that measure each case, with variants in random order and arrays at random"
            " addresses",
        ),
    ] = 3
    most_processes: Annotated[
        int, Meta(ge=1, le=99, description="most processes of a case whose medians differ too much")
    ] = 9
    further_seconds: Annotated[
        float, Meta(ge=0, description="most time of a case in the processes beyond the first `processes`")
    ] = 0.8
    run_error: Annotated[
        Positive,
        Meta(
            description="relative standard error of the median over processes at which no further ones are started"
        ),
    ] = 0.0035
    min_samples: Annotated[
        int,
        Meta(
            ge=3,
            description="fewest cold samples per case and process, unless `max_seconds` is reached (then at least 3)",
        ),
    ] = 8
    max_samples: Annotated[int, Meta(ge=3, description="most cold samples per case and process")] = 20
    max_seconds: Annotated[
        Positive, Meta(description="longest sampling per case and process; a family may replace it")
    ] = 0.045
    rel_error: Annotated[
        Positive, Meta(description="relative standard error of the median at which sampling stops")
    ] = 0.003
    warmup_launches: Annotated[
        int, Meta(ge=1, description="fewest warm-up launches, unless they take longer than 10 ms")
    ] = 3
    warmup_ms: Annotated[float, Meta(ge=0, description="shortest warm-up")] = 2.0
    hot_seconds: Annotated[
        Positive,
        Meta(
            description="GPU time of the hot measurement (a CUDA graph of back-to-back launches) in the first process;"
            " the others take a fifth. If it lowers the clock, the hot time is that of short bursts, and the case is"
            " also measured sustained"
        ),
    ] = 0.1
    hot_cases: Annotated[
        Literal["captured", "all"],
        Meta(
            description="cases with a hot time: `captured`, those of the profilers, where it is compared with nsys; or"
            " `all`"
        ),
    ] = "captured"
    timeout_s: Annotated[Positive, Meta(description="time limit per case")] = 120.0


class ProfileSettings(Frozen, frozen=True, kw_only=True):
    """Profiler captures."""

    ncu: Annotated[bool, Meta(description="collect hardware counters with Nsight Compute")] = True
    nsys: Annotated[bool, Meta(description="capture a trace with Nsight Systems")] = True
    metrics: Annotated[
        Literal["all", "lean", "sections"],
        Meta(
            description="`all`: every metric of the registry (23 passes on Hopper); `lean`: without throughput"
            " summaries and tensor operations (15 passes); `sections`: all, plus ncu's full section set for its own"
            " viewer"
        ),
    ] = "all"
    launches: Annotated[int, Meta(ge=1, le=1000, description="back-to-back launches per case under nsys")] = (
        10
    )
    timeout_s: Annotated[Positive, Meta(description="time limit per captured case")] = 300.0


class TuneSettings(Frozen, frozen=True, kw_only=True):
    """Parameter search of `snakemake tune`."""

    minutes: Annotated[
        Positive,
        Meta(
            description="time limit of `snakemake tune` per variant; the best setting so far is used, and a later run"
            " with more minutes goes on"
        ),
    ] = 10.0
    timeout_s: Annotated[
        Positive, Meta(description="time limit per setting; one that exceeds it is a `timeout`")
    ] = 60.0


class TimelineSettings(Frozen, frozen=True, kw_only=True):
    """Settings of `snakemake timeline`."""

    rounds: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="rounds in which `snakemake timeline` times the builds with and without marks in turns",
        ),
    ] = 6
    samples: Annotated[int, Meta(ge=1, le=100, description="cold samples per build and round")] = 5
    pause_us: Annotated[float, Meta(ge=0, le=100_000, description="pause before each of these samples")] = (
        2000.0
    )
    most_mib: Annotated[
        int,
        Meta(
            ge=1,
            le=16384,
            description="largest buffer for the events of a launch; events beyond it are counted as lost",
        ),
    ] = 512
    timeout_s: Annotated[Positive, Meta(description="time limit per variant")] = 120.0


class AccessSettings(Frozen, frozen=True, kw_only=True):
    """Settings of `snakemake accesses`."""

    most_entries: Annotated[
        int,
        Meta(
            ge=1,
            le=1 << 28,
            description="accesses by lanes that the trace of a launch holds; beyond it, fewer blocks are traced",
        ),
    ] = 1 << 23
    timeout_s: Annotated[Positive, Meta(description="time limit per variant")] = 60.0


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
            description="`web`: for pages and reports; `paper`: text of 7 pt, without title and notes, PDF too; `dark`:"
            " on a dark ground, for slides. The keys below replace single values of the style"
        ),
    ] = "web"
    width_in: (
        Annotated[
            float,
            Meta(
                ge=3,
                le=20,
                description="width in inches; text keeps its size. Below 5, only the main columns of numbers are shown",
            ),
        ]
        | UnsetType
    ) = UNSET
    font: Annotated[str, Meta(min_length=1, max_length=100, description="an installed font")] | UnsetType = (
        UNSET
    )
    font_pt: Annotated[float, Meta(ge=5, le=16, description="font size in points")] | UnsetType = UNSET
    titles: (
        Annotated[
            bool,
            Meta(
                description="whether a title stands above a figure, and its origin and notes below; if not,"
                " `<figure>.txt` holds them for a caption"
            ),
        ]
        | UnsetType
    ) = UNSET
    formats: (
        Annotated[
            tuple[Literal["png", "svg", "pdf"], ...],
            Meta(
                min_length=1,
                description="files of each figure: `png`, which the workflow writes in any case, `svg`, `pdf`",
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
        Meta(
            description="MLflow's tracking URI; the environment variable `MLFLOW_TRACKING_URI` takes precedence, and is"
            " the only place for a user name or password"
        ),
    ] = "sqlite:///results/mlflow.db"


class RoundsSettings(Frozen, frozen=True, kw_only=True):
    """A/A test, which times the same code repeatedly."""

    rounds: Annotated[
        int,
        Meta(ge=2, le=99, description="rounds of `snakemake aa`, each a whole measurement of every variant"),
    ] = 3


class Config(Frozen, frozen=True, kw_only=True):
    """Configuration of a campaign (config/config.yaml and --config)."""

    families: Annotated[
        Choice,
        Meta(
            description="`all` (without drafts and the oracle), or names of families (folders in `kernels/`), as a list"
            " or separated by commas. Tables hold these only, until the next run with all, which measures nothing again"
        ),
    ] = "all"
    variants: Annotated[
        Choice,
        Meta(
            description="`all` (without drafts), or names such as `warptile` or `sgemm/warptile`; the baseline of a"
            " family always runs"
        ),
    ] = "all"
    cases: Annotated[Choice, Meta(description="`all`, or names of timed cases")] = "all"
    kernel_folders: Annotated[
        tuple[str, ...],
        Meta(description="further folders with families, laid out like `kernels/`: `<family>/family.yaml`"),
    ] = ()
    gpu: Annotated[
        Gpus,
        Meta(
            description="`auto`: the first visible GPU; `all`: all GPUs of its model; indices or UUIDs, such as `0,1`;"
            " or a known model, such as `h200`: its first board or, with `mode: live`, a login node without a GPU"
        ),
    ] = "auto"
    mode: Annotated[
        Literal["auto", "live", "recorded"],
        Meta(
            description="`live`: measure; `recorded`: use the recorded campaign, never a GPU; `auto`: `live` with a"
            " GPU, else `recorded`"
        ),
    ] = "auto"
    recorded: Annotated[
        Slug,
        Meta(
            description="recorded campaign (folder in `results/recorded/`) to use without a GPU. Only variants whose"
            " source, headers or parameters differ from the recorded ones are compiled; `snakemake build` compiles all"
        ),
    ] = "h200"
    campaign: Annotated[
        str,
        matching("[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "up to 64 letters, digits and _ . -"),
        Meta(
            description="name of the campaign in tables and MLflow; `auto` is `<gpu>-<date>-<commit>` of its start"
        ),
    ] = "auto"
    commit: Annotated[
        str,
        matching("(auto|[0-9a-f]{7,40})", "'auto', or 7 to 40 hexadecimal digits"),
        Meta(
            description="commit that the campaign carries, for a folder that is no Git checkout; `auto` asks Git"
        ),
    ] = "auto"
    check: CheckSettings = CheckSettings()
    time: TimeSettings = TimeSettings()
    profile: ProfileSettings = ProfileSettings()
    sanitize: SanitizeSettings = SanitizeSettings()
    timeline: TimelineSettings = TimelineSettings()
    accesses: AccessSettings = AccessSettings()
    tune: TuneSettings = TuneSettings()
    figures: FigureSettings = FigureSettings()
    track: TrackSettings = TrackSettings()
    baseline: Annotated[
        Source,
        Meta(
            description="reference of `snakemake compare`: a recorded campaign, a results folder, `mlflow:<campaign or"
            " run id>`, `parents` (each variant's parent in the candidate), or `auto`, the campaign in `recorded`"
        ),
    ] = "auto"
    candidate: Annotated[
        Source,
        Meta(
            description="what is compared with it, named in the same way; `results` is the campaign of this folder,"
            " measured first if there is a GPU"
        ),
    ] = "results"
    aa: RoundsSettings = RoundsSettings()
    history: Annotated[
        Source | Annotated[tuple[Source, ...], Meta(max_length=1000)],
        Meta(
            description="campaigns that `snakemake history` draws: `all` (recorded ones and `results/`), or a list of"
            " recorded campaigns, results folders and folders that contain them"
        ),
    ] = "all"
    strict: Annotated[
        bool,
        Meta(
            description="exit with status 1 as long as a variant is `compile_error`, `wrong`, `crashed`, `timeout`,"
            " `out_of_memory`, `error` or, after `snakemake sanitize`, `finding`, even if there is nothing to do. Other"
            " statuses, failed captures and disagreement with a profiler do not count"
        ),
    ] = False

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
