"""Makes the plan of a campaign from its configuration; it starts no process and writes no file."""

import csv
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from warplog.catalog import family as catalog
from warplog.catalog import winners
from warplog.core import paths, store, text
from warplog.core.errors import WarplogError
from warplog.judge.campaigns import recorded_campaign
from warplog.machine import device, interpreter
from warplog.plan import boards
from warplog.plan.boards import Boards
from warplog.plan.plan import Plan
from warplog.plan.selection import choose_cases, choose_families, choose_figures, choose_variants, typed
from warplog.records import door, stages
from warplog.records.campaign import Gpu
from warplog.records.config import Config, Gpus
from warplog.track import address


def make_plan(config: Mapping[str, object], project: Path | None = None) -> Plan:
    """Makes the plan of one campaign for a configuration.

    Args:
        project: folder of kernels/ and config/; by default `paths.project()`.

    Raises:
        WarplogError: a key, family, variant, case or GPU is unknown, several campaigns are named, the address of the
            tracking store contains a password, there is neither a GPU nor a recorded campaign, or Snakemake cannot
            start jobs with this interpreter.
    """
    if why := interpreter.unusable():
        raise WarplogError(f"{why}; {interpreter.REMEDY}")
    project = paths.project() if project is None else project
    config = {key: typed(key, value) for key, value in config.items()}
    _refuse_several(config)
    settings = door.decode(config, Config, "config")
    address.refuse_secrets(settings.track.uri)
    folders = (project / "kernels", *map(Path, settings.kernel_folders))
    families = catalog.load(folders)
    chosen = choose_variants(settings.variants, choose_families(settings.families, families))
    cases = choose_cases(settings.cases, families, chosen)
    gpu, arch, live, root, message, own_boards = _campaign(settings, project)
    families |= winners.with_winners({f: families[f] for f in chosen}, gpu)
    chosen = {
        name: tuple(families[name].variant(v.name) for v in variants) for name, variants in chosen.items()
    }
    recorded = {
        need: [f for f in chosen if store.is_file(stage.at(root, gpu=gpu, family=f))]
        for need, stage in (("timelines", stages.TIMELINE), ("accesses", stages.ACCESSES))
    }
    drawn = choose_figures(chosen, families, recorded)
    on_host = frozenset(
        n for n, f in families.items() if f.work.limit == "pcie" or f.measuring.timing == "host"
    )
    measuring = Boards(tuple(board.uuid for board in own_boards), gpu, paths.RESULTS, on_host)
    if measuring.several:
        message = f"{message}; each family is measured on one of {len(own_boards)} boards"
    message = "; ".join((message, *_no_longer_shown(paths.RESULTS / "tables", chosen)))
    return Plan(
        settings,
        folders,
        families,
        chosen,
        cases,
        gpu,
        arch,
        live,
        root,
        message,
        drawn,
        project,
        measuring,
    )


def _refuse_several(config: Mapping[str, object]) -> None:
    for key in ("gpu", "gpus", "recorded"):
        value = config.get(key)
        named = boards.names(value) if isinstance(value, (str, list)) else []
        if len(named) > 1 and not boards.names_boards(named):
            raise WarplogError(
                f"config: {key}: {', '.join(named)}: a run evaluates one campaign; run each in a folder of its own"
                " (snakemake --directory FOLDER), then set results folders or recorded campaigns side by side:"
                f" `{paths.own_command('beside RUN RUN')}`"
            )


def _no_longer_shown(tables: Path, chosen: Container[str]) -> list[str]:
    """Says which families the tables have that this run leaves out; [] if there are none.

    Tables, figures and pages are those of one run. Records stay, so that the families come back without measuring.
    """
    try:
        with (tables / "variants.csv").open(encoding="utf-8", newline="") as file:
            shown = dict.fromkeys(row["family"] for row in csv.DictReader(file))
    except (OSError, ValueError, KeyError, csv.Error):
        return []  # there are none yet, or they will be made anew
    gone = [name for name in shown if name not in chosen]
    warning = f"tables, figures and pages will leave out {text.listed(gone)}, which are not in `families`"
    return [f"{warning}; their records stay"] if gone else []


def _campaign(settings: Config, project: Path) -> tuple[str, str, bool, Path, str, Sequence[Gpu]]:
    """Returns `gpu`, `arch`, `live`, `root` and `message` of the plan, and the boards of this machine to use."""
    visible = [] if settings.mode == "recorded" else device.boards()
    if settings.mode == "live" or visible:
        named = _named_boards(settings.gpu, visible)
        if named:
            gpu, arch = named[0].slug, named[0].arch
        else:
            models = device.known_gpus(project)
            gpu = boards.expected_gpu(settings.gpu, models)
            arch = models[gpu].arch
        message = (
            f"live on {named[0].name} ({arch})" if named else f"live for {gpu} ({arch}), which is not here"
        )
        return gpu, arch, True, paths.RESULTS, message, named
    root, record = recorded_campaign(settings, project)
    why = "mode: recorded" if settings.mode == "recorded" else f"no GPU here ({device.why_not()})"
    message = (
        f"{why}: using the recorded campaign {record.campaign}"
        f" ({record.gpu_name}, {record.started[:10]}, commit {record.commits})"
    )
    return record.gpu, record.arch, False, root, message, ()


def _named_boards(setting: Gpus, visible: Sequence[Gpu]) -> list[Gpu]:
    """Returns the boards of this machine that `gpu` names; [] if it names a model that this machine does not have."""
    here = ["auto", boards.ALL, *(gpu.slug for gpu in visible)]
    elsewhere = setting not in here and not boards.names_boards(setting)
    return [] if not visible or elsewhere else boards.choose(setting, visible)
