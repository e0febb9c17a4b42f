"""The campaigns of a run: one, or one per GPU model that `gpus` names, each in a results folder of its own.

A single campaign is in results/, one of several in results/<gpu>/, with the same files. Rules name their files with
`path`, and take inputs and parameters from `each`, which asks the plan of the campaign that a job belongs to.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core import paths, schema
from warplog.core.columns import TABLES
from warplog.core.defaults import DEFAULTS
from warplog.core.errors import WarplogError
from warplog.core.records import SCHEMA_VERSION, read_json, write_json
from warplog.judge.sources import newest_of_gpu
from warplog.machine import device
from warplog.plan import boards
from warplog.plan.judging import Judging
from warplog.plan.plan import Plan, make_plan
from warplog.plan.selection import typed


@dataclass(frozen=True)
class Campaigns:
    """The plans of a run's campaigns, by the slug of their GPU, in the order of the configuration."""

    plans: Mapping[str, Plan]

    @property
    def several(self) -> bool:
        """Whether the run has more than one campaign."""
        return len(self.plans) > 1

    @property
    def gpus(self) -> list[str]:
        """The GPU of each campaign."""
        return list(self.plans)

    @property
    def first(self) -> Plan:
        """The plan of the first campaign; families, variants, figures and settings are those of all."""
        return next(iter(self.plans.values()))

    @property
    def message(self) -> str:
        """One line per campaign for the user."""
        return "\n".join(plan.message for plan in self.plans.values())

    def on(self, wildcards: Any) -> Plan:
        """Returns the plan of the campaign that a job belongs to."""
        return self.plans[wildcards.gpu] if self.several else self.first

    def path(self, name: str) -> str:
        """Returns a pattern for a file of a campaign: results/<name>, or results/{gpu}/<name> if there are several."""
        return str(paths.RESULTS / "{gpu}" / name if self.several else paths.RESULTS / name)

    def tables(self, *names: str, suffix: str = "parquet") -> list[str]:
        """Returns the patterns of tables of a campaign."""
        return [self.path(f"tables/{name}.{suffix}") for name in names]

    def joined(self) -> list[str]:
        """Returns the tables that hold the rows of all campaigns; none if there is one campaign."""
        names = [
            f"{name}.{suffix}" for name in (*TABLES, "floors", "claims") for suffix in ("parquet", "csv")
        ]
        return [str(paths.RESULTS / "tables" / name) for name in names] if self.several else []

    def each(self, method: Callable[..., Any], *arguments: Any) -> Callable[[Any], Any]:
        """Returns the function of a job's wildcards that calls a method of `Plan` or `Judging` for its campaign."""
        takes_wildcards = "wildcards" in inspect.signature(method).parameters
        judges = method.__qualname__.startswith(f"{Judging.__name__}.")

        def of_job(wildcards: Any) -> Any:
            plan = self.on(wildcards)
            given = (wildcards, *arguments) if takes_wildcards else arguments
            return method(Judging(plan) if judges else plan, *given)

        return of_job

    def all(self, method: Callable[..., list[str]], *arguments: Any) -> list[str]:
        """Returns the files that a method of `Plan` lists, of all campaigns."""
        return [file for plan in self.plans.values() for file in method(plan, *arguments)]

    def everywhere(self, patterns: str | Iterable[str], **values: Iterable[str]) -> list[str]:
        """Returns the files of all campaigns, from patterns with the wildcard `gpu` and those in `values`."""
        found = [patterns] if isinstance(patterns, str) else [str(pattern) for pattern in patterns]
        for name, known in {"gpu": self.gpus, **values}.items():
            found = [
                pattern.replace(f"{{{name}}}", value)
                for pattern in found
                for value in (known if f"{{{name}}}" in pattern else [""])
            ]
        return found

    def write(self, path: Path) -> None:
        """Writes the complete plans for jobs that Snakemake starts on other machines.

        Raises:
            WarplogError: the disk is full or the folder is not writable.
        """
        plans = [plan.complete() for plan in self.plans.values()]
        write_json(path, {"schema": SCHEMA_VERSION, "campaigns": plans}, "plan")

    @classmethod
    def read(cls, path: Path) -> "Campaigns":
        """Returns the campaigns that `write` wrote to `path`.

        Raises:
            WarplogError: the file is missing or damaged, or a family or variant no longer exists.
        """
        plans = [Plan.made_of(data) for data in read_json(path, "plan")["campaigns"]]
        return cls({plan.gpu: plan for plan in plans})


def make_campaigns(config: Mapping[str, Any], project: Path | None = None) -> Campaigns:
    """Makes the plans for a configuration: one per GPU in `gpus`, else one for `gpu`.

    A recorded campaign of a GPU is the one that `recorded` names if it is of that GPU, else the newest.

    Raises:
        WarplogError: as `make_plan`; or `gpus` is set together with `gpu` or `campaign`, or names a GPU of this machine
            although there are several.
    """
    project = paths.project() if project is None else project
    schema.check({key: typed(key, value) for key, value in config.items()}, "config", "config")
    gpus = list(dict.fromkeys(boards.names(config.get("gpus", DEFAULTS["gpus"]))))
    if not gpus:
        plan = make_plan(config, project)
        return Campaigns({plan.gpu: plan})
    for key in ("gpu", "campaign"):
        if config.get(key, "auto") != "auto":
            raise WarplogError(
                f"config: {key}: {config[key]!r} is for one campaign, but `gpus` names {', '.join(gpus)}; set one of"
                " the two keys"
            )
    rest = {key: value for key, value in config.items() if key != "gpus"}
    plans = {}
    for gpu in gpus:
        own = {**rest, "gpu": gpu}
        if (name := newest_of_gpu(gpu, config.get("recorded", DEFAULTS["recorded"]), project)) is not None:
            own["recorded"] = name
        elif len(gpus) > 1 and config.get("mode", DEFAULTS["mode"]) != "live" and not device.boards():
            raise WarplogError(
                f"config: gpus: no campaign in results/recorded/ was measured on {gpu}; leave it out, or set `mode`"
                " to live if the jobs run on another machine"
            )
        plans[gpu] = make_plan(own, project, paths.RESULTS / gpu if len(gpus) > 1 else paths.RESULTS)
    here = [gpu for gpu, plan in plans.items() if plan.boards.uuids]
    if here and len(gpus) > 1:
        raise WarplogError(
            f"config: gpus: this machine has the GPU {here[0]}; `gpus` is for jobs on other machines and for"
            " recorded campaigns; measure each model in a folder of its own"
            " (snakemake --directory FOLDER --config gpu=MODEL)"
        )
    return Campaigns(plans)
