"""The command `warplog`: its options and what each subcommand does."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warplog import __version__
from warplog.core.errors import WarplogError

if TYPE_CHECKING:
    from warplog.catalog.family import Family

FORMATS = ("csv", "json", "parquet")

_ABOUT = """\
Is my CUDA kernel right, how fast is it really, and why?

The campaign itself is a Snakemake workflow: run `uv run snakemake` in the project's folder.
This command looks after what surrounds it.
"""
_EXAMPLES = """\
examples:
  warplog doctor                        what this machine can do, what it lacks, and the remedy
  warplog doctor --json                 the same, for programs
  warplog extract run.ncu-rep           metrics of an Nsight Compute report, as CSV
  warplog extract *.ncu-rep *.sqlite -o all.parquet
                                        many reports, Nsight Systems too, as one table
  warplog record h200                   keep this campaign for machines without a GPU
  warplog compare h200 results          is this campaign slower than the recorded one? status 1 if so
  warplog compare parents results       is every variant faster than the one it improves on?
  warplog explain --family sgemm        why each variant beats its parent, from the counters
  warplog claims --family sgemm         what the numbers say of what was published
"""
_COMPARE = """\
Says of every variant and case whether B is FASTER, SLOWER or the SAME as A, from all samples of both: rank-sum
test (p < 0.002 after Holm's correction), interval of the ratio, least gap, and the same again in cycles.
The least gap is what the same code shows from process to process, by the A/A rounds of A, B or results/; 1.3 % where
there are none, 0.5 % at least.
AMBIGUOUS: nothing is shown, and why. REFUSED: GPU, driver, clocks or status differ. Counters are judged apart.
Exit status 1: a case is SLOWER, in time and in cycles, or nothing could be compared.
"""
_EXTRACT = """\
Reads reports, made by warplog or not: Nsight Compute's .ncu-rep, its CSV (raw and details pages) and its text,
Nsight Systems' SQLite exports, .nsys-rep (where nsys is installed) and `nsys stats`, logs of `nvcc -Xptxas -v`,
and SASS dumps of cuobjdump. Writes one row for each metric and kernel launch:
source, tool, tool_version, gpu, cc, kernel, launch, metric, value, unit, status, reason.
A metric that a report lacks has no value, and the reason beside it. Neither a GPU nor ncu or nsys is needed.
"""


def make_parser() -> argparse.ArgumentParser:
    """The parser; what it parses has the command's name in `command`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser("warplog", description=_ABOUT, epilog=_EXAMPLES, formatter_class=raw)
    parser.add_argument("--version", action="version", version=f"warplog {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)

    _add_doctor(commands)
    extract = commands.add_parser(
        "extract", help="turn profiler reports into a table", description=_EXTRACT, formatter_class=raw
    )
    extract.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a report, see above")
    extract.add_argument("--format", choices=FORMATS, help="default: as OUT ends, else csv")
    extract.add_argument(
        "-o", "--output", type=Path, metavar="OUT", help="write there, not to standard output"
    )
    extract.set_defaults(command="extract", parser=extract)

    _add_record(commands)
    _add_compare(commands)
    _add_readers(commands)
    _add_best_of(commands)
    return parser


def _add_record(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    record = commands.add_parser("record", help="keep the live campaign in results/recorded/")
    record.description = (
        "Copies the records and tables of the finished live campaign, without the large files, so that a"
        " machine without a GPU can work from them. Commit the folder."
    )
    record.add_argument("name", help="name of the recorded campaign, for instance the GPU's: h200")
    record.add_argument(
        "--report",
        action="append",
        default=[],
        metavar="VARIANT",
        help="keep the ncu session that holds it too (repeatable)",
    )
    record.set_defaults(command="record")


def _add_doctor(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    doctor = commands.add_parser("doctor", help="say what this machine can do and what it lacks")
    doctor.description = (
        "Looks at GPU, driver, tools and settings. Changes nothing. Exit status 1: it cannot work, or --oracle"
        " found a wrong number."
    )
    doctor.add_argument("--json", action="store_true", help="write JSON")
    doctor.add_argument(
        "--oracle",
        action="store_true",
        help="run the kernels whose true answers are known (`snakemake oracle`)",
    )
    doctor.add_argument("--project", type=Path, help="the project's folder (default: the one we are in)")
    doctor.set_defaults(command="doctor")


def _add_compare(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    compare = commands.add_parser(
        "compare",
        help="say what became slower or faster",
        description=_COMPARE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    where = "results folder, name of a recorded campaign, or mlflow:<campaign or run id>"
    compare.add_argument("a", metavar="A", help=f"{where}; or parents: the parent of each variant, in B")
    compare.add_argument("b", metavar="B", help=f"{where}: what is judged")
    compare.add_argument(
        "--again", action="append", default=[], metavar="A2",
        help="another run of A's sources (repeatable): a further process for A, and for the least gap",
    )  # fmt: skip
    compare.add_argument(
        "--kernels", action="append", default=[], type=Path, metavar="FOLDER",
        help="for parents: a folder of families beside kernels/ (repeatable)",
    )  # fmt: skip
    compare.add_argument(
        "--min-effect", type=_share, default=0.005, metavar="X", help="least gap that counts (default: 0.005)"
    )
    compare.add_argument("--gpu", default="", help="the GPU's slug, where a folder holds several")
    compare.add_argument("--json", action="store_true", help="write JSON")
    compare.set_defaults(command="compare")


def _add_readers(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    explain = commands.add_parser("explain", help="say why a variant is faster than its parent")
    explain.description = (
        "Writes Markdown: for each variant and its parent, what changed and how much of the cycles it accounts"
        " for; for each kernel, what bounds it. Only what the tables' counters support."
    )
    explain.set_defaults(command="explain")
    claims = commands.add_parser("claims", help="say which published claims the numbers confirm")
    claims.description = (
        "Judges each family's claims by the tables. A refuted claim is a finding, no failure."
    )
    claims.set_defaults(command="claims")
    published = commands.add_parser("published", help="set a campaign beside what others printed")
    published.description = (
        "Writes Markdown: each variant's speed, its share of the baseline at every timed size, and the figures"
        " under `published` in family.yaml."
    )
    published.add_argument(
        "--into",
        type=Path,
        metavar="FILE",
        help="put it between the lines <!-- warplog published --> and <!-- end --> of FILE",
    )
    published.set_defaults(command="published")
    for reader in (explain, claims, published):
        reader.add_argument("folder", nargs="?", type=Path, metavar="FOLDER", help="default: results/tables")
        reader.add_argument("--family", default="", help="default: every family in the tables")
        reader.add_argument("--gpu", default="", help="the GPU's slug, where the tables hold several")


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text}: a share from 0 to 1 is wanted, such as 0.005")
    return value


def _add_best_of(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    best_of = commands.add_parser("best-of", help="write the table that the variant best_of dispatches by")
    best_of.description = (
        "Writes kernels/FAMILY/best_of.cuh from a campaign's tables: the fastest variant of each case."
    )
    best_of.add_argument("family", metavar="FAMILY")
    best_of.add_argument(
        "folder", nargs="?", type=Path, metavar="FOLDER", help="folder of tables (default: results/tables)"
    )
    best_of.add_argument("--gpu", default="", help="the GPU's slug, where the tables hold several")
    best_of.set_defaults(command="best-of")


_FAILED, _INTERRUPTED, _PIPE_CLOSED = 1, 130, 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit status: 0, 1 (failed), 2 (wrong usage), 130 (Ctrl-C)."""
    options = make_parser().parse_args(arguments)
    try:
        status = int(_COMMANDS[options.command](options))
        sys.stdout.flush()
        return status
    except KeyboardInterrupt:
        _say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has what it wanted; Python must not complain about it at exit.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _PIPE_CLOSED
    except WarplogError as error:
        _say(f"error: {error}")
    except ModuleNotFoundError as error:
        _say(f"error: the Python package {error.name} is not installed; run it as `uv run warplog`")
    except OSError as error:
        _say(f"error: {error}")
    return _FAILED


def _compare(options: argparse.Namespace) -> int:
    from warplog.catalog import family as catalog
    from warplog.judge import comparison
    from warplog.judge import comparison as comparison_text
    from warplog.judge.sources import PARENTS, Sources, parent_of
    from warplog.track import connection

    project = _project()
    store = connection.tracking_uri(f"sqlite:///{project}/results/mlflow.db")
    folders = [project / "kernels", *options.kernels] if options.a == PARENTS else []
    found = comparison.run(
        (options.a, options.b, *options.again),
        Sources(project, store, options.gpu, project / "results"),
        options.min_effect,
        parent_of(catalog.load(folders)),
    )
    if options.json:
        print(comparison_text.as_json(found), end="")
    else:
        comparison_text.show(found, sys.stdout)
    return found.status


def _explain(options: argparse.Namespace) -> int:
    from warplog.tables import view
    from warplog.worklog import explain

    folder = options.folder or _project() / "results" / "tables"
    for family in [options.family] if options.family else explain.families(folder):
        print(explain.markdown(view.load(folder, family, options.gpu)))
    return 0


def _best_of(options: argparse.Namespace) -> int:
    from warplog.measure.tuning import best_of

    (family,) = _families([options.family])
    print(best_of.write(family, options.folder or _project() / "results" / "tables", options.gpu))
    return 0


def _claims(options: argparse.Namespace) -> int:
    from warplog.judge import claims

    families = {family.name: family for family in _families([options.family] if options.family else None)}
    folder = options.folder or _project() / "results" / "tables"
    claims.show(claims.judge_all(families, folder, options.gpu), sys.stdout)
    return 0


def _published(options: argparse.Namespace) -> int:
    from warplog.tables import published
    from warplog.worklog import explain

    folder = options.folder or _project() / "results" / "tables"
    named = _families([options.family] if options.family else explain.families(folder))
    shown = [f for f in named if options.family or any(v.published for v in f.variants)]
    pages = "\n".join(published.page(f, *published.chosen(f, folder, options.gpu)) for f in shown)
    if options.into:
        published.put_into(options.into, pages)
    else:
        print(pages, end="")
    return 0


def _record(options: argparse.Namespace) -> int:
    from warplog.cli.recording import record_campaign

    folder, size = record_campaign(_project(), options.name, options.report)
    print(f"{folder}: {size / 2**20:.1f} MiB; use it with `snakemake --config recorded={options.name}`")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    if options.oracle:
        from warplog.judge import oracle

        return oracle.run_oracle(options.project or _project(), sys.stdout)
    from warplog.cli import doctor

    findings = doctor.examine(options.project or _project())
    if options.json:
        doctor.show_json(findings, sys.stdout)
    else:
        doctor.show(findings)
    return doctor.exit_status(findings)


def _families(names: Sequence[str] | None) -> list["Family"]:
    """The families of the project, those in the folders that its configuration names too; all without `names`."""
    from warplog.catalog import family as catalog
    from warplog.core import schema
    from warplog.plan.selection import choose_families

    project = _project()
    config = project / "config" / "config.yaml"
    further = schema.read_yaml(config, "config").get("kernel_folders", []) if config.is_file() else []
    families = catalog.load([project / "kernels", *(project / folder for folder in further)])
    return list(choose_families(list(families) if names is None else list(names), families).values())


def _project() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if (folder / "Snakefile").is_file()), here)


def _extract(options: argparse.Namespace) -> int:
    style = options.format or _format_of(options.output)
    if style == "parquet" and options.output is None:
        options.parser.error("parquet is not for a terminal: name a file with -o")
    from warplog.parsers import reports

    failures = 0

    def told(error: WarplogError) -> None:
        nonlocal failures
        failures += 1
        _say(f"error: {error}")

    table = reports.read_all(options.files, told)
    reports.write(table, style, options.output)
    return _FAILED if failures else 0


def _format_of(output: Path | None) -> str:
    suffix = output.suffix.lstrip(".").lower() if output else ""
    return suffix if suffix in FORMATS else "csv"


def _say(text: str) -> None:
    with suppress(OSError):
        print(" ".join(text.split()), file=sys.stderr, flush=True)


_COMMANDS = {
    "best-of": _best_of,
    "claims": _claims,
    "compare": _compare,
    "doctor": _doctor,
    "explain": _explain,
    "published": _published,
    "extract": _extract,
    "record": _record,
}
