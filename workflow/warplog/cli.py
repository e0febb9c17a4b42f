"""The command `warplog`: a look at the machine, at reports, and at what a campaign has shown."""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.cli_parser import FORMATS, make_parser
from warplog.errors import WarplogError

if TYPE_CHECKING:
    from warplog.catalog import Family

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
    from warplog import catalog, comparison, comparison_text, mlflow_connection
    from warplog.compared_campaigns import PARENTS, Sources, parent_of

    project = _project()
    store = mlflow_connection.tracking_uri(f"sqlite:///{project}/results/mlflow.db")
    folders = [project / "kernels", *options.kernels] if options.a == PARENTS else []
    found = comparison.run(
        (options.a, options.b, *options.again),
        Sources(project, store, options.gpu),
        options.min_effect,
        parent_of(catalog.load(folders)),
    )
    if options.json:
        print(comparison_text.as_json(found), end="")
    else:
        comparison_text.show(found, sys.stdout)
    return found.status


def _explain(options: argparse.Namespace) -> int:
    from warplog import explain, figure_data

    folder = options.folder or _project() / "results" / "tables"
    for family in [options.family] if options.family else explain.families(folder):
        print(explain.markdown(figure_data.load(folder, family, options.gpu)))
    return 0


def _best_of(options: argparse.Namespace) -> int:
    from warplog import best_of

    (family,) = _families([options.family])
    print(best_of.write(family, options.folder or _project() / "results" / "tables", options.gpu))
    return 0


def _claims(options: argparse.Namespace) -> int:
    from warplog import claims

    families = {family.name: family for family in _families([options.family] if options.family else None)}
    folder = options.folder or _project() / "results" / "tables"
    claims.show(claims.judge_all(families, folder, options.gpu), sys.stdout)
    return 0


def _published(options: argparse.Namespace) -> int:
    from warplog import explain, published

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
    from warplog.recording import record_campaign

    folder, size = record_campaign(_project(), options.name, options.report)
    print(f"{folder}: {size / 2**20:.1f} MiB; use it with `snakemake --config recorded={options.name}`")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    if options.oracle:
        from warplog import oracle_report

        return oracle_report.run(options.project or _project(), sys.stdout)
    from warplog import doctor

    findings = doctor.examine(options.project or _project())
    if options.json:
        doctor.show_json(findings, sys.stdout)
    else:
        doctor.show(findings)
    return doctor.exit_status(findings)


def _families(names: Sequence[str] | None) -> list["Family"]:
    """The families of the project, those in the folders that its configuration names too; all without `names`."""
    from warplog import catalog, schema
    from warplog.selection import choose_families

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
    from warplog import report_table

    failures = 0

    def told(error: WarplogError) -> None:
        nonlocal failures
        failures += 1
        _say(f"error: {error}")

    table = report_table.read_all(options.files, told)
    report_table.write(table, style, options.output)
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
