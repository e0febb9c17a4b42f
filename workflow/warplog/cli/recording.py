"""`warplog record`: keeps a live campaign in results/recorded/, or evaluates one that is kept there anew."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from warplog.core import paths
from warplog.core.errors import WarplogError

if TYPE_CHECKING:
    from warplog.catalog.family import Variant
    from warplog.plan.plan import Plan
    from warplog.records.campaign import Campaign

_ABOUT = """\
Keeps the records and tables of the finished live campaign in results/recorded/NAME, packed, so that machines without a
GPU can use them, and the figures of it that README.md shows. Commit the folder to git.
"""


def add(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Adds the command to the parser of `warplog`."""
    record = commands.add_parser("record", help="copy the live campaign to results/recorded/")
    record.description = _ABOUT
    record.add_argument("name", help="name of the recorded campaign, such as that of its GPU: h200")
    how = record.add_mutually_exclusive_group()
    how.add_argument(
        "--replace",
        action="store_true",
        help="replace a recorded campaign of that name once the new one is complete",
    )
    how.add_argument(
        "--from-records",
        action="store_true",
        help="make the tables of the recorded campaign of that name anew, from its unchanged records, with the families"
        " and configuration of today",
    )
    record.add_argument(
        "--chips",
        action="store_true",
        help="with --from-records: also keep the builds for other chips that `snakemake chips --config recorded=NAME`"
        " made in results/chips",
    )
    record.set_defaults(command="record")


def run(options: argparse.Namespace, project: Path) -> int:
    """Records the campaign, or evaluates the recorded one anew, and prints its folder and size."""
    if options.chips and not options.from_records:
        raise WarplogError(
            "--chips: goes with --from-records; a live campaign keeps results/chips without it"
        )
    if options.from_records:
        folder, size = evaluate_anew(project, options.name, options.chips)
    else:
        folder, size = record_campaign(project, options.name, options.replace)
    use = paths.command(f"--config recorded={options.name}")
    print(f"{folder}: {size / 1e6:.1f} MB; use it with `{use}`")
    return 0


def record_campaign(project: Path, name: str, replaces: bool = False) -> tuple[Path, int]:
    """Keeps the live campaign in results/recorded/<name>; returns the folder and its size in bytes.

    Args:
        replaces: whether a campaign of that name may be replaced, which is done after the new one is complete.

    The folder contains a manifest with the SHA-256 of every file. A campaign that an interrupted call left aside gets
    its name back first.

    Raises:
        WarplogError: a folder of that name exists and is not to be replaced, results/ holds no finished live campaign,
            its tables were made from a recorded one, it exceeds 16 MB, or `name` is not valid.
    """
    from warplog.records.verification import recorded

    target = _target(project, name)
    if os.path.lexists(target) and not replaces:
        raise WarplogError(f"{target}: exists; choose another name, or replace it with --replace")
    results = project / paths.RESULTS
    campaign = _live(results)
    return target, recorded.write(target, recorded.kept(results, recorded.shown(project, name)), campaign)


def evaluate_anew(project: Path, name: str, chips: bool = False) -> tuple[Path, int]:
    """Makes the tables and the manifest of a recorded campaign anew; its records stay as they are.

    Variants that are newer than the campaign are not in its tables. The record of the campaign then names the commit
    that evaluated it. Returns folder and size in bytes.

    Args:
        chips: whether the builds in results/chips become part of it.

    Raises:
        WarplogError: there is no such campaign, a file of it is not as its manifest says, or builds in results/chips
            are of other sources or parameters.
    """
    from dataclasses import replace

    from msgspec import structs

    from warplog.core import schema
    from warplog.core.files import temporary_folder
    from warplog.measure.provenance import commit_of
    from warplog.plan import evaluate
    from warplog.plan.making import make_plan
    from warplog.records import door
    from warplog.records.campaign import Campaign
    from warplog.records.verification import manifest, recorded

    target = _target(project, name)
    if not target.is_dir():
        raise WarplogError(
            f"{target}: no such recorded campaign; without --from-records, `warplog record` makes one"
        )
    manifest.check(target)
    configured = project / "config" / "config.yaml"
    settings = schema.load_yaml(configured) or {} if configured.is_file() else {}
    plan = make_plan({**settings, "mode": "recorded", "recorded": name, "gpu": "auto"}, project)
    # As on the machine that measured: all rows are live, and no build is of today.
    source = replace(plan.source(), origin="live", results=plan.root)
    figures = {str(path.relative_to(target)) for path in target.glob("figures/*/*.png")}
    if chips:
        recorded.write(target, recorded.kept(target, figures) | _chips(project, plan), source.campaign)
    files = {n: data for n, data in recorded.kept(target, figures).items() if not n.startswith("tables/")}
    with temporary_folder() as place:
        evaluate.write_all(replace(plan, chosen=_measured(plan)), source, place / "tables")
        files |= recorded.kept(place, ())
    about = target / "campaign" / f"{plan.gpu}.json"
    campaign, commit = door.read(about, Campaign), commit_of(project)
    evaluated = structs.replace(
        campaign, evaluated_commit="" if commit == campaign.commit else commit or "unknown"
    )
    files[str(about.relative_to(target))] = f"{door.as_json(evaluated, indent=1)}\n".encode()
    return target, recorded.write(target, files, evaluated)


def _measured(plan: "Plan") -> dict[str, tuple["Variant", ...]]:
    """Returns the chosen variants that a recorded campaign has timed or tried to."""
    from warplog.records import stages
    from warplog.records.family_file import FamilyRecord

    timed = {
        (record.family, record.variant)
        for path in stages.TIME.files(plan.root)
        for record in FamilyRecord.read(path, stages.TIME.record).variants.values()
    }
    measured = {
        family: tuple(v for v in variants if (family, v.name) in timed)
        for family, variants in plan.chosen.items()
    }
    return {family: variants for family, variants in measured.items() if variants}


def _chips(project: Path, plan: "Plan") -> dict[str, bytes]:
    """Returns the recorded builds for other chips, by path, and in their place those in results/chips.

    The latter must be of the sources of the plan.
    """
    from warplog.core import store
    from warplog.records import door, stages
    from warplog.records.build import Chips

    results, again = (
        project / paths.RESULTS,
        f"`{paths.command(f'chips --config recorded={plan.root.name}')}`",
    )
    sources = {(family, v.name): v.fingerprint() for family, own in plan.chosen.items() for v in own}
    made = stages.FOR_CHIPS.files(results)
    if not made:
        raise WarplogError(f"{results}/chips: holds no builds; run {again}")
    for path in made:
        record = door.read(path, Chips)
        for name, build in record.variants.items():
            if build.source_sha256 != sources.get((record.family, name)):
                raise WarplogError(
                    f"{path}: {name}: was built from another source or parameters; run {again}"
                )
    return {
        str(path.relative_to(root)): store.read(path, 64 << 20, f"run {again}")
        for root in (project / plan.root, results)
        for path in stages.FOR_CHIPS.files(root)
    }


def _target(project: Path, name: str) -> Path:
    """Returns the folder of a recorded campaign, which gets its name back if an interrupted call left it aside."""
    from warplog.records.verification import recorded

    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,63}", name):
        raise WarplogError(
            f"{name!r}: the name of a recorded campaign consists of lower-case letters, digits and hyphens"
        )
    target = project / paths.recorded_root(name)
    recorded.restore(target)
    return target


def _live(results: Path) -> "Campaign":
    """Returns the record of the finished live campaign."""
    from warplog.records import door
    from warplog.records.campaign import Campaign

    files = sorted((results / "campaign").glob("*.json"))
    if len(files) != 1:
        raise WarplogError(
            f"{results}/campaign: {len(files)} live campaigns, expected one; run `snakemake` on a machine with a GPU,"
            " each model in a folder of its own (--directory)"
        )
    tables = results / "tables" / "measurements.csv"
    if not tables.is_file():
        raise WarplogError(f"{tables}: is missing; finish the campaign first")
    head = tables.read_text(encoding="utf-8").splitlines()
    if len(head) < 2 or ",live," not in head[1]:
        raise WarplogError(
            f"{tables}: the rows are not live; these tables were made from a recorded campaign"
        )
    return door.read(files[0], Campaign)
