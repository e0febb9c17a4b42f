"""The list of stages: which rule makes what, in which version, by which code, and what becomes of it.

Everything else that names stages follows from this list: the progress of a run, the summary, `warplog record`, `verify`
and `schema`, and the table in workflow/docs/architecture.md.

A stage's `version` is what makes results stale besides their files and parameters. It is a parameter of the stage's
rule and part of the key of each entry that the stage measures. `tests/tools/stage_versions.py` raises it; a test
compares the code of each stage with that of its version.
"""

import re
from pathlib import Path
from typing import Any

from warplog.core import store
from warplog.records.build import Build, Chips
from warplog.records.campaign import Campaign
from warplog.records.check import Check
from warplog.records.extract import Extract
from warplog.records.fields import Frozen
from warplog.records.profile import Profile
from warplog.records.requested.accesses import Accesses
from warplog.records.requested.sanitize import Sanitize
from warplog.records.requested.step_duels import StepDuels
from warplog.records.requested.timeline import Timeline
from warplog.records.requested.tune import Tune
from warplog.records.time import Time

_KEY = re.compile(r"{(\w+)}")


class Stage(Frozen, frozen=True, kw_only=True):
    """What one rule makes.

    Attributes:
        rule: name of the rule, and of its script.
        word: the stage in one word, as the terminal shows it.
        about: what the stage does, in a phrase.
        code: the modules of the package that compute the results; what they import counts too.
        version: of the results; 0 for a stage whose results are not repeated because its code changed.
        file: the result, or one of them, below the folder of a campaign, with the keys in braces.
        seconds: of one job, roughly; they only weigh what is left of a run.
    """

    rule: str
    word: str
    about: str
    code: tuple[str, ...] = ()
    version: int = 0
    file: str
    seconds: float = 3.0

    @property
    def folder(self) -> str:
        """The folder of the results, and the name of the stage in its records."""
        return self.file.partition("/")[0]

    def at(self, root: Path, **keys: object) -> Path:
        """Returns the file below `root`, the folder of a campaign; `keys` are those in braces."""
        return root / self.file.format(**keys)

    def pattern(self, **keys: str) -> str:
        """Returns the glob pattern of the files below the folder of a campaign, of all or with these keys."""
        return _KEY.sub(lambda key: keys.get(key[1], "*"), self.file)

    def files(self, root: Path, **keys: str) -> list[Path]:
        """Returns the files below `root`, of all or with these keys; those of a recorded campaign may be packed."""
        return [path for path in store.glob(root, self.pattern(**keys)) if self.keys(root, path) is not None]

    def keys(self, root: Path, path: Path) -> dict[str, str] | None:
        """Returns the keys in the place of a file below `root`; None if it is no file of this stage."""
        parts = (
            f"(?P<{part}>[^/.]+)" if index % 2 else re.escape(part)
            for index, part in enumerate(_KEY.split(self.file))
        )
        match = re.fullmatch("".join(parts), path.relative_to(root).as_posix())
        return match and match.groupdict()


class Recorded(Stage, frozen=True, kw_only=True):
    """A stage that makes records.

    Attributes:
        record: the type of a record.
        kept: whether a recorded campaign keeps the records, packed.
    """

    record: type[Any]
    kept: bool = True

    @property
    def of_family(self) -> bool:
        """Whether one file holds the records of all variants of a family."""
        return self.file.rpartition("/")[2].startswith("{family}")


START = Recorded(
    rule="start_campaign",
    word="start",
    about="the campaign gets its name, GPU, commit and tools",
    file="campaign/{gpu}.json",
    kept=False,
    record=Campaign,
)
TRIAL = Stage(
    rule="try_reference",
    word="try",
    about="`make_inputs` and `reference` are tried with NumPy on small check cases",
    code=("measure.trial",),
    version=1,
    file="build/.references",
)
TIMER = Stage(
    rule="build_timer",
    word="timer",
    about="nvcc compiles the timing core",
    code=("measure.building.build",),
    version=1,
    file="build/{arch}/timer.so",
    seconds=5,
)
BUILD = Recorded(
    rule="build_variant",
    word="build",
    about="the variant is compiled, and its machine code disassembled",
    code=("measure.building.build", "measure.building.python_build"),
    version=1,
    file="build/{arch}/{family}/{variant}/record.json",
    record=Build,
    seconds=4,
)
CHECK = Recorded(
    rule="check_family",
    word="check",
    about="all check cases are compared with the float64 reference",
    code=("measure.stages.check", "measure.worker.check_case", "measure.worker.python.launcher"),
    version=1,
    file="check/{gpu}/{family}.json",
    record=Check,
    seconds=5,
)
TIME = Recorded(
    rule="time_family",
    word="time",
    about="the timed cases, at rest, hot and sustained",
    code=("measure.stages.timing", "measure.worker.time_case", "measure.worker.python.launcher"),
    version=1,
    file="time/{gpu}/{family}.json",
    record=Time,
    seconds=40,
)
NCU = Recorded(
    rule="profile_ncu",
    word="ncu",
    about="Nsight Compute collects the counters of the captured cases",
    code=("measure.stages.capture", "measure.worker.capture_case", "measure.worker.python.launcher"),
    version=2,
    file="profile/{gpu}/{family}.ncu.json",
    record=Profile,
    seconds=15,
)
NSYS = Recorded(
    rule="profile_nsys",
    word="nsys",
    about="Nsight Systems records the captured cases as they run",
    code=NCU.code,
    version=1,
    file="profile/{gpu}/{family}.nsys.json",
    record=Profile,
    seconds=5,
)
EXTRACT = Recorded(
    rule="extract_family",
    word="extract",
    about="the reports become metrics, hot lines and loops, and activities",
    code=("extract.stage",),
    version=2,
    file="extract/{gpu}/{family}.json",
    record=Extract,
    seconds=5,
)
TABLES = Stage(
    rule="make_tables",
    word="tables",
    about="the records of all families become tables",
    code=("tables.rows", "tables.files"),
    version=3,
    file="tables/measurements.parquet",
    seconds=6,
)
FLOORS = Stage(
    rule="judge_floors",
    word="floors",
    about="the smallest difference that counts, case by case",
    code=("judge.floors",),
    version=1,
    file="tables/floors.parquet",
    seconds=2,
)
CLAIMS = Stage(
    rule="judge_claims",
    word="claims",
    about="claims, predictions and expectations are judged",
    code=("judge.claims", "analysis.answers"),
    version=3,
    file="tables/claims.parquet",
    seconds=2,
)
ANALYSIS = Stage(
    rule="analyse",
    word="analysis",
    about="what follows from the tables becomes tables: verdicts, ladder, steps, bounds, mechanisms, forecasts",
    code=("analysis.conclude", "analysis.mechanisms.steps"),
    version=8,
    file="tables/steps.parquet",
    seconds=5,
)
SUMMARY = Stage(
    rule="summarize",
    word="summary",
    about="the result in a few rows, the table of all variants, and the page to open",
    code=("judge.summary", "worklog.site.index"),
    version=1,
    file="summary.json",
    seconds=4,
)
FIGURES = Stage(
    rule="plot_family",
    word="figures",
    about="the figures of a family",
    code=("figures",),
    version=5,
    file="figures/{family}",
    seconds=8,
)
SAVINGS = Stage(
    rule="plot_savings",
    word="savings",
    about="the predicted against the measured saving of every step",
    code=("figures.campaign",),
    version=1,
    file="mechanisms",
)
CHARTS = Stage(
    rule="bundle_charts",
    word="charts",
    about="the JavaScript of interactive charts, in one file",
    file="assets/charts.js",
)
PAGE = Stage(
    rule="write_worklog",
    word="page",
    about="the page of a family, as HTML, Markdown and LaTeX",
    code=("worklog",),
    version=6,
    file="worklog/{family}.html",
)
SITE = Stage(
    rule="write_site",
    word="site",
    about="all pages as a static site",
    code=("worklog",),
    version=5,
    file="site",
)
TRACK = Stage(
    rule="log_mlflow",
    word="MLflow",
    about="one MLflow run per variant",
    code=("track.log", "track.links"),
    version=2,
    file="track/mlflow.json",
    seconds=15,
)
ATTACH = Stage(
    rule="log_figures",
    word="attach",
    about="the figures are added to the runs of their family",
    code=("track.log",),
    version=1,
    file="track/figures.json",
)
SANITIZE = Recorded(
    rule="sanitize_family",
    word="sanitize",
    about="compute-sanitizer runs over the small check cases",
    code=("measure.stages.sanitize", "measure.worker.sanitize_case", "measure.worker.python.launcher"),
    version=1,
    file="sanitize/{gpu}/{family}.json",
    record=Sanitize,
    seconds=120,
)
FINDINGS = Stage(
    rule="list_findings",
    word="findings",
    about="what compute-sanitizer found becomes a table",
    code=("measure.stages.sanitize",),
    version=1,
    file="tables/sanitize.parquet",
)
MARKED = Recorded(
    rule="build_marked",
    word="marked",
    about="the variant is compiled with the marks of its timeline",
    code=BUILD.code,
    version=1,
    file="timeline/build/{arch}/{family}/{variant}/record.json",
    kept=False,
    record=Build,
    seconds=4,
)
TIMELINE = Recorded(
    rule="capture_timelines",
    word="timeline",
    about="when each block of the marked kernels does what",
    code=("measure.stages.timeline", "measure.worker.timeline_case"),
    version=1,
    file="timeline/{gpu}/{family}.json",
    record=Timeline,
    seconds=20,
)
TRACER = Stage(
    rule="build_tracer",
    word="tracer",
    about="nvcc and the host compiler make the tracer of memory accesses",
    code=("measure.building.tracer",),
    version=1,
    file="accesses/build/{arch}/tracer.so",
    seconds=8,
)
ACCESSES = Recorded(
    rule="trace_accesses",
    word="accesses",
    about="every address of one launch on a small case is traced, and counted by instruction",
    code=("measure.stages.accesses", "measure.worker.access_case", "measure.worker.python.launcher"),
    version=2,
    file="accesses/{gpu}/{family}.json",
    record=Accesses,
    seconds=30,
)
LIST_ACCESSES = Stage(
    rule="list_accesses",
    word="accesses",
    about="the traced accesses become a table, beside what the counters say",
    code=("tables.traced.accesses",),
    version=2,
    file="tables/accesses.parquet",
)
TUNE = Recorded(
    rule="tune_variant",
    word="tune",
    about="the best parameters of a variant are searched, and those that come closest duel",
    code=(
        "measure.tuning.search",
        "measure.tuning.record",
        "measure.worker.tune_setting",
        "duel.match",
        "duel.worker",
    ),
    version=2,
    file="tune/{gpu}/{family}/{variant}.json",
    record=Tune,
    seconds=600,
)
TUNED = Stage(
    rule="plot_tuning",
    word="heat map",
    about="the best time of each pair of parameter values",
    code=("measure.tuning.figure",),
    version=2,
    file="tune/{gpu}/{family}/{variant}.png",
)
DUELS = Recorded(
    rule="duel_steps",
    word="duels",
    about="variants that the campaign's times do not tell from their parents duel with them",
    code=("duel.open_steps", "duel.worker"),
    version=1,
    file="duels/{gpu}/{family}/record.json",
    record=StepDuels,
    seconds=30,
)
LIST_DUELS = Stage(
    rule="list_duels",
    word="duels",
    about="the verdicts of these duels become a table",
    code=("duel.open_steps",),
    version=1,
    file="tables/duels.parquet",
)
ROUND = Recorded(
    rule="time_round",
    word="time",
    about="a whole measurement of every variant, for the comparison of equal code",
    code=TIME.code,
    version=1,
    file="aa/round{round}/time/{gpu}/{family}.json",
    record=Time,
    seconds=40,
)
ROUNDS = Stage(
    rule="judge_rounds",
    word="A/A",
    about="all pairs of rounds are compared: false verdicts, and the smallest difference that counts",
    code=("judge.aa",),
    version=1,
    file="aa/verdicts.csv",
)
COMPARISON = Stage(
    rule="compare_campaigns",
    word="compare",
    about="two campaigns are compared, case by case",
    code=("judge.comparison", "judge.figures"),
    version=1,
    file="compare/verdicts.json",
)
HISTORY = Stage(
    rule="plot_history",
    word="history",
    about="the time of each variant over the campaigns",
    code=("judge.history", "judge.figures"),
    version=1,
    file="history/{family}.png",
)
ORACLE = Stage(
    rule="judge_oracle",
    word="oracle",
    about="measurements are compared with their known true values",
    code=("judge.oracle", "tables.rows", "analysis.quantities"),
    version=1,
    file="tables/oracle.parquet",
)

FOR_CHIPS = Recorded(
    rule="build_for_chips",
    word="chips",
    about="the variants of a family are compiled for an architecture whose GPU need not be there",
    code=("measure.building.chips",),
    version=1,
    file="chips/{arch}/{family}/record.json",
    record=Chips,
    seconds=12,
)
CHIPS = Stage(
    rule="list_chips",
    word="chips",
    about="registers, spills, shared memory and occupancy of each variant on each of these architectures",
    code=("tables.chips",),
    version=2,
    file="tables/chips.parquet",
)

# In the order of a run; those after ATTACH run only if they are asked for.
STAGES = (
    *(START, TRIAL, TIMER, BUILD, CHECK, TIME, NCU, NSYS, EXTRACT),
    *(TABLES, FLOORS, CLAIMS, ANALYSIS, SUMMARY, FIGURES, SAVINGS, CHARTS, PAGE, TRACK, ATTACH),
    *(
        SITE,
        SANITIZE,
        FINDINGS,
        MARKED,
        TIMELINE,
        TRACER,
        ACCESSES,
        LIST_ACCESSES,
        TUNE,
        TUNED,
        DUELS,
        LIST_DUELS,
        ROUND,
        ROUNDS,
        COMPARISON,
        HISTORY,
        ORACLE,
    ),
    *(FOR_CHIPS, CHIPS),
)
BY_RULE = {stage.rule: stage for stage in STAGES}
# The stages of a campaign that measure a variant; the records of a family are in one file each.
MEASURING: tuple[Recorded, ...] = (CHECK, TIME, NCU, NSYS, SANITIZE, TIMELINE, ACCESSES)

RECORDED = tuple(stage for stage in STAGES if isinstance(stage, Recorded))
KINDS = tuple(dict.fromkeys(stage.record for stage in RECORDED))


def folder_of(record: type) -> str:
    """Returns the folder of the records of a type, and the name of their stage."""
    return next(stage.folder for stage in RECORDED if stage.record is record)
