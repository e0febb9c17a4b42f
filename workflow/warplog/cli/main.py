"""The command `warplog`: its options, and one function per subcommand."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warplog import __version__
from warplog.cli import (
    browsing,
    documents,
    drawing,
    duelling,
    extracting,
    migrating,
    pruning,
    recording,
    running,
    starting,
    verifying,
)
from warplog.cli.checkup import packages
from warplog.core import paths
from warplog.core.errors import WarplogError
from warplog.core.text import Screen, one_line

if TYPE_CHECKING:
    from warplog.catalog.family import Family
    from warplog.core.columns import Row

_CAMPAIGN = "results folder, or name of a recorded campaign such as h200 (default: results)"

_ABOUT = """\
Is my CUDA kernel correct, how fast is it really, and why?

The campaign is a Snakemake workflow: `warplog run` runs it in a repository of kernels of your own, `uv run snakemake`
in a checkout of warplog. The other commands check the machine, read profiler reports and evaluate campaigns.
"""
_EXAMPLES = """\
examples:
  warplog doctor                        what works on this machine, and how to fix the rest
  warplog init --op matmul              write a folder warplog/ for kernels of your own, here
  warplog run                           run the campaign of that folder
  warplog ui                            browse its runs in MLflow
  warplog explain --family sgemm        why each variant is faster than its parent, from the counters
  warplog claims --family sgemm         which published claims the measurements confirm
  warplog ab HEAD:warptile warptile     is the change in the working tree faster? within seconds, on a GPU
  warplog watch sgemm/warptile          is it faster? after every save
  warplog gate main                     does it make any kernel slower than on main?
  warplog bisect v1.2 main              which commit made a kernel slower?
  warplog compare h200 results          is this campaign slower than the recorded one? exit status 1 if so
  warplog beside h200 h100              two GPUs side by side, as a page with figures
  warplog figures sgemm/ladder --style paper --width 3.3
                                        draw a figure for one column of an article
  warplog record h200                   keep this campaign for machines without a GPU
  warplog verify                        are records consistent, and recorded files unchanged?
  warplog extract run.ncu-rep           metrics of an Nsight Compute report as CSV
  warplog extract *.ncu-rep *.sqlite -o all.parquet
                                        several reports (Nsight Systems too) as one table

`warplog help COMMAND` explains a command, `warplog docs` lists the pages of the documentation.
"""
_COMPARE = """\
Compares B with A, for each variant and case, by the medians of their processes.
FASTER, SLOWER: the gap is larger than the floor, which the same code exceeds from run to run with p = 0.002.
SAME: the 95 % interval of the ratio lies within --margin. AMBIGUOUS: neither; the interval states what is not excluded.
REFUSED: GPU, driver or clocks differ, or the case is missing or failed in A or B. Cases that are unsupported in both
are left out.
Floors are estimated from the processes and A/A rounds of A and B, else of results/ (`snakemake aa`); without any, 0.3 %
between processes is assumed.
Counters get a separate verdict: MORE, LESS, MIXED or SAME.
Exit status 1: a case is certain to be SLOWER (in time and in cycles, on the same board, in every process, of another
build, with p below 0.05 divided by the number of such pairs), or no case could be compared.
"""


_COMPARED = """\
examples:
  warplog ab HEAD:warptile warptile     is the change in the working tree faster? within seconds, on a GPU
  warplog bisect v1.2 main              which commit made a kernel slower?
  warplog compare h200 results                  this campaign with the recorded one
  warplog compare parents results --all         each variant with its parent, also where nothing changed
  warplog compare before.ncu-rep after.ncu-rep  two reports, kernel by kernel
"""


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; the parsed options hold the command's name as `command`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("warplog", description=_ABOUT, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"warplog {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    _add_doctor(commands)
    extracting.add(commands)
    recording.add(commands)
    verifying.add(commands, _CAMPAIGN)
    migrating.add(commands, _CAMPAIGN)
    _add_compare(commands)
    duelling.add(commands)
    _add_readers(commands)
    _add_beside(commands)
    _add_audit(commands)
    _add_best_of(commands)
    drawing.add(commands, _CAMPAIGN)
    browsing.add(commands)
    pruning.add(commands)
    starting.add(commands)
    running.add(commands)
    documents.add(commands)
    return parser


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = commands.add_parser("doctor", help="report what works on this machine and how to fix the rest")
    doctor.description = (
        "Checks the GPU, driver, tools and settings without changing anything. Exit status 1: a campaign cannot"
        " run here, or --oracle found a wrong number."
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    doctor.add_argument(
        "--oracle",
        action="store_true",
        help="run kernels whose true results are known in advance (`snakemake oracle`)",
    )
    doctor.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="folder of the project, or one in it (default: this folder)",
    )
    doctor.set_defaults(command="doctor")


def _add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compare = commands.add_parser(
        "compare",
        help="report which cases became slower or faster",
        description=_COMPARE,
        epilog=_COMPARED,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = (
        "results folder, name of a recorded campaign such as h200, mlflow:<campaign or run id>, or a report: of ncu,"
        " or an SQLite export of nsys, whose kernels are compared by name and size"
    )
    compare.add_argument("a", metavar="A", help=f"{where}; or parents: each variant's parent in B")
    compare.add_argument("b", metavar="B", help="the same")
    compare.add_argument(
        "--again",
        action="append",
        default=[],
        metavar="A2",
        help="a further run of A's sources (repeatable): pooled with A and used to estimate the floors",
    )
    compare.add_argument(
        "--kernels",
        action="append",
        default=[],
        type=Path,
        metavar="FOLDER",
        help="with parents: a folder of families in addition to kernels/ (repeatable)",
    )
    compare.add_argument(
        "--margin",
        type=fraction,
        default=0.02,
        metavar="X",
        help="largest relative gap between two times that are SAME (default: 0.02)",
    )
    compare.add_argument("--gpu", default="", help="GPU, such as h200, if a campaign has timings of several")
    compare.add_argument("--all", action="store_true", help="also show the cases that are SAME")
    compare.add_argument("--json", action="store_true", help="print JSON")
    compare.set_defaults(command="compare")


def _add_readers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain", help="explain why each variant is faster than its parent")
    explain.description = (
        "Prints Markdown, the steps of the pages: for each variant, its speed relative to its parent with the interval,"
        " what changed, what that costs, and what bounds its kernel. With --all, everything that changed, occupancy,"
        " memory traffic and long runs as well. The table `steps` says why a step is not explained."
        " CAMPAIGN may also be a single report that `warplog extract` reads: prints what bounds each of its launches."
    )
    explain.add_argument(
        "--all",
        action="store_true",
        dest="whole",
        help="everything that changed, occupancy, traffic and long runs",
    )
    explain.epilog = "example: warplog explain h200 --family sgemm"
    explain.set_defaults(command="explain")
    claims = commands.add_parser("claims", help="judge published claims by the measurements")
    claims.description = (
        "Judges the claims of each family by the tables. In a folder without kernels/, prints the verdicts"
        " in the table `claims`. A refuted claim is a result, not a failure."
    )
    claims.epilog = "example: warplog claims h200 --family sgemm"
    claims.set_defaults(command="claims")
    published = commands.add_parser("published", help="list measured speeds next to published ones")
    published.description = (
        "Prints Markdown: each variant's speed, its ratio to the baseline at every timed size, and the numbers"
        " under `published` in family.yaml."
    )
    published.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="write to FILE, between the lines <!-- warplog published --> and <!-- end -->",
    )
    published.set_defaults(command="published")
    for reader in (explain, claims, published):
        reader.add_argument("campaign", nargs="?", metavar="CAMPAIGN", help=_CAMPAIGN)
        reader.add_argument("--family", default="", help="default: all families of the campaign")


def _add_beside(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("beside", help="set runs of several GPUs side by side")
    parser.description = (
        "Writes index.html, a page with the speed of each variant on each GPU, as measured and relative to SMs, clock"
        " and DRAM bandwidth, and the steps and claims that differ; and for each family a figure with its numbers."
        " Ratios between GPUs are no verdicts; `warplog compare` compares two runs of one GPU."
    )
    parser.epilog = "example: warplog beside h200 h100"
    where = "results folder with tables, or name of a recorded campaign such as h200"
    parser.add_argument("first", metavar="RUN", help=where)
    parser.add_argument(
        "others", metavar="RUN", nargs="+", help="run of another GPU, which is set beside the first"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FOLDER", help="folder to write to (default: results/beside)"
    )
    parser.set_defaults(command="beside")


def _add_audit(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    audit = commands.add_parser("audit", help="look up every number on the pages in the tables")
    audit.description = (
        "Looks up every number on the pages (worklog/*.html) of a campaign in its tables. Exit status 1: a number"
        " differs from its cell or is rounded differently, or names no cell."
    )
    audit.add_argument("campaign", nargs="?", metavar="CAMPAIGN", help=_CAMPAIGN)
    audit.set_defaults(command="audit")


def fraction(text: str) -> float:
    """Returns the number in `text`.

    Raises:
        ArgumentTypeError: it is below 0, or 1 or above.
    """
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: expected a number from 0 to below 1, such as 0.005")
    return value


def _add_best_of(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    best_of = commands.add_parser("best-of", help="write the dispatch table of the variant best_of")
    best_of.description = (
        "Writes kernels/FAMILY/best_of.cuh, which names the fastest variant for each case, from the tables of a"
        " campaign. The variant best_of of the family is built with it."
    )
    best_of.add_argument("family", metavar="FAMILY", help="one with a variant best_of, such as sgemm")
    best_of.add_argument("campaign", nargs="?", metavar="CAMPAIGN", help=_CAMPAIGN)
    best_of.set_defaults(command="best-of")


_FAILED, _INTERRUPTED, _PIPE_CLOSED = 1, 130, 141  # the last two as a shell reports SIGINT and SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status: 0, 1 (failed), 130 (Ctrl-C), 141 (output pipe closed), or its own.

    Raises:
        SystemExit: with status 2 for wrong usage, 0 after --help or --version.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    rest: list[str] = []
    if given[:1] == ["help"]:
        given = [*given[1:], "--help"]
    if given[:1] == ["run"]:
        given, rest = running.parted(given)
    options = make_parser().parse_args(extracting.guarded(given) if given[:1] == ["extract"] else given)
    options.options, options.terminal = rest, sys.stdout.isatty()
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = map(Screen, streams)
    try:
        status = int(_COMMANDS[options.command](options))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _to_stderr("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) closed the pipe; without this, Python would print an error at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except ModuleNotFoundError as error:
        _to_stderr(f"error: {packages.missing(error.name or '')}")
    except (WarplogError, OSError) as error:
        _to_stderr(f"error: {error}")
    finally:
        sys.stdout, sys.stderr = streams
    return _FAILED


def _compare(options: argparse.Namespace) -> int:
    from warplog.catalog import family as catalog
    from warplog.cli.checkup.host import store
    from warplog.judge import comparison, profiled
    from warplog.judge.campaigns import PARENTS, Sources, parent_of

    here = _project()
    folders = [here / "kernels", *options.kernels] if options.a == PARENTS else []
    compared = comparison.run(
        (options.a, options.b, *options.again),
        Sources(here, store(here), options.gpu, read_report=profiled.load),
        options.margin,
        parent_of(catalog.load(folders)),
    )
    if options.json:
        print(comparison.as_json(compared), end="")
    else:
        comparison.show(compared, sys.stdout, options.all)
    return compared.status


def _explain(options: argparse.Namespace) -> int:
    from warplog.tables import view
    from warplog.worklog import explain

    if options.campaign and Path(options.campaign).is_file():
        print(_explained(Path(options.campaign)))
        return 0
    folder = _tables(options)
    for name in [options.family] if options.family else explain.families(folder):
        print(explain.markdown(view.load(folder, name), options.whole))
    if not options.whole:
        print("Everything that changed, occupancy and traffic: warplog explain --all")
    return 0


def _explained(report: Path) -> str:
    """Returns Markdown with what bounds each kernel launch in a report that `warplog extract` reads."""
    from warplog.parsers import reports
    from warplog.worklog import launches

    def fail(error: WarplogError) -> None:
        raise error

    return launches.markdown(reports.read_all([report], fail))


def _beside(options: argparse.Namespace) -> int:
    from warplog.judge import campaigns
    from warplog.worklog.site import gpus

    here = _project()
    folders = [campaigns.folder_of(name, here, "tables") for name in (options.first, *options.others)]
    page = gpus.write(folders, options.output or here / paths.RESULTS / "beside")
    print(f"open {paths.shown(page)}")
    return 0


def _audit(options: argparse.Namespace) -> int:
    from warplog.worklog.audit import audit

    return 0 if audit(_campaign(options), sys.stdout).passed else _FAILED


def _best_of(options: argparse.Namespace) -> int:
    from warplog.measure.tuning import best_of

    (family,) = _families([options.family])
    print(best_of.write(family, _tables(options)))
    return 0


def _claims(options: argparse.Namespace) -> int:
    from warplog.analysis import answers
    from warplog.judge import claims

    folder = _tables(options)
    rows: Sequence[Row]
    if (_project() / "kernels").is_dir():
        families = {family.name: family for family in _families([options.family] if options.family else None)}
        rows = claims.judge_all(families, answers.read(folder))
    else:
        rows = _recorded_verdicts(folder, options.family)
        _to_stderr(f"no kernels/ here: these are the verdicts in {folder}/claims")
    claims.show(rows, sys.stdout)
    return 0


def _recorded_verdicts(folder: Path, family: str) -> "Sequence[Row]":
    """Returns the rows of the table `claims` in `folder`, of one family if it is named.

    Raises:
        WarplogError: the table is missing or not readable, or has no row of that family.
    """
    from warplog.core.columns import CLAIMS
    from warplog.core.schema import suggest
    from warplog.tables.files import as_rows, read_table

    table = read_table(folder, "claims").reindex(columns=list(CLAIMS), fill_value="")
    families = sorted(set(table["family"]))
    if family and family not in families:
        raise WarplogError(f"{folder}/claims: no family {family!r}; {suggest(family, families)}")
    return as_rows(table[table["family"] == family] if family else table)


def _published(options: argparse.Namespace) -> int:
    from warplog.core.files import put_between
    from warplog.tables import published
    from warplog.worklog import explain

    folder = _tables(options)
    named = _families([options.family] if options.family else explain.families(folder))
    shown = [f for f in named if options.family or any(v.published for v in f.variants)]
    pages = "\n".join(published.page(f, *published.chosen(f, folder)) for f in shown)
    if options.into:
        put_between(options.into, "published", pages)
    else:
        print(pages, end="")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    if options.oracle:
        from warplog.judge import oracle

        return oracle.run_oracle(paths.nearest_project(options.folder), sys.stdout)
    from warplog.cli import doctor

    findings = doctor.examine(paths.nearest_project(options.folder))
    if options.json:
        doctor.show_json(findings, sys.stdout)
    else:
        doctor.show(findings)
    return doctor.exit_status(findings)


def _families(names: Sequence[str] | None) -> list["Family"]:
    """Returns the named families of the project and of its `kernel_folders`; all of them if `names` is None."""
    from warplog.cli.checkup import kernels
    from warplog.plan.selection import choose_families

    families = kernels.load(_project())
    return list(choose_families(tuple(families if names is None else names), families).values())


def _project() -> Path:
    return paths.nearest_project(Path.cwd())


def _campaign(options: argparse.Namespace) -> Path:
    """Returns the folder of the campaign that is named, else the results of the project.

    Raises:
        WarplogError: there is no such folder or recorded campaign.
    """
    from warplog.judge import campaigns

    here, name = _project(), options.campaign
    if name is None:
        return here / paths.RESULTS
    if "family" in options and (here / "kernels" / name / "family.yaml").is_file():
        raise WarplogError(
            f"{name}: is a family, not a campaign; use `warplog {options.command} --family {name}`"
        )
    return campaigns.folder_of(name, here, holds="")


def _tables(options: argparse.Namespace) -> Path:
    """Returns the folder of tables of the campaign; the campaign may also be given as that folder."""
    folder = _campaign(options)
    is_tables = not (folder / "tables").is_dir() and any(folder.glob("*.csv"))
    return folder if is_tables else folder / "tables"


def _figures(options: argparse.Namespace) -> int:
    return drawing.run(
        options, _project(), _tables(options), {family.name: family for family in _families(None)}
    )


def _to_stderr(text: str) -> None:
    with suppress(OSError):
        print(one_line(text), file=sys.stderr, flush=True)


_COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "ab": lambda options: duelling.run(options, _project()),
    "audit": _audit,
    "beside": _beside,
    "best-of": _best_of,
    "bisect": lambda options: duelling.run_bisect(options, _project()),
    "claims": _claims,
    "compare": _compare,
    "docs": documents.show,
    "doctor": _doctor,
    "explain": _explain,
    "figures": _figures,
    "gate": lambda options: duelling.run_gate(options, _project()),
    "published": _published,
    "extract": lambda options: extracting.run(options, _to_stderr),
    "init": starting.run,
    "migrate": lambda options: migrating.run(_campaign(options)),
    "prune": lambda options: pruning.run(options, _project()),
    "record": lambda options: recording.run(options, _project()),
    "run": running.run,
    "schema": documents.show_schema,
    "ui": lambda options: browsing.run(options, _project()),
    "verify": lambda options: verifying.run(options, _campaign(options), _to_stderr),
    "watch": lambda options: duelling.run_watch(options, _project()),
}
