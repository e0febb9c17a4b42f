"""Which boards of this machine measure a campaign, and how many jobs Snakemake starts for each of them."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplog.core import paths, schema
from warplog.core.errors import WarplogError
from warplog.measure.family_board import note_of, noted
from warplog.records.campaign import Gpu
from warplog.records.config import Gpus

ALL = "all"
SLOTS = 3  # of three measuring jobs of a board, one measures and the others start up


@dataclass(frozen=True)
class Boards:
    """The boards that measure a campaign; none if the jobs run on other machines.

    Attributes:
        uuids: the boards, in the order of CUDA_VISIBLE_DEVICES.
        gpu: slug of their model.
        results: folder of the campaign, where the first job of a family notes its board.
        on_host: families that also time the host or its link to the GPU; two of them never run at once.
    """

    uuids: tuple[str, ...] = ()
    gpu: str = ""
    results: Path = paths.RESULTS
    on_host: frozenset[str] = frozenset()

    @property
    def several(self) -> bool:
        """Whether the campaign is spread over more than one board."""
        return len(self.uuids) > 1

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that show exactly these boards to the jobs of this machine."""
        return {"CUDA_VISIBLE_DEVICES": ",".join(self.uuids)} if self.uuids else {}

    def limits(self) -> dict[str, int]:
        """Returns the limits of Snakemake's resources; {} for a single board, whose limits are in the profile."""
        if not self.several:
            return {}
        each = {f"board{index}": SLOTS for index in range(len(self.uuids))}
        return {"measuring": self.measuring, "host_link": 1, **each}

    @property
    def measuring(self) -> int:
        """The limit of the resource `measuring`: the slots of all boards."""
        return SLOTS * max(1, len(self.uuids))

    @property
    def priority(self) -> int:
        """The priority of jobs after a family's first: its board works on it before another family gets a board."""
        return int(self.several)

    def slots(self) -> dict[str, int | Callable[[Any], int]]:
        """Returns what a job that measures a family takes of the resources in `limits`.

        A family's first job, which finds a board, takes as much of `measuring` as all others that run on that board at
        once. So it starts when another family is about to be done.
        """
        if not self.several:
            return {"measuring": 1}
        each = {f"board{index}": self._share(uuid) for index, uuid in enumerate(self.uuids)}
        return {
            "measuring": lambda wildcards: 1 if self._board(wildcards.family) in self.uuids else SLOTS,
            "host_link": lambda wildcards: int(wildcards.family in self.on_host),
            **each,
        }

    def _share(self, uuid: str) -> Callable[[Any], int]:
        return lambda wildcards: int(self._board(wildcards.family) == uuid)

    def _board(self, family: str) -> str:
        return noted(note_of(self.results, self.gpu, family))


def choose(setting: Gpus, visible: Sequence[Gpu]) -> list[Gpu]:
    """Returns the boards that `gpu` of the configuration names, of those that are visible.

    Args:
        setting: 'auto' (the first board), 'all' (all boards of the first one's model), the slug of a model (the first
            board of it), or indices in `visible` and UUIDs, as a list or separated by commas.
        visible: all boards; not empty.

    Raises:
        WarplogError: no board has that index or UUID, or the boards are of several models.
    """
    if setting == "auto":
        return [visible[0]]
    if setting == ALL:
        return [gpu for gpu in visible if gpu.slug == visible[0].slug]
    of_model = [gpu for gpu in visible if gpu.slug == setting]
    chosen = of_model[:1] or [_named(name, visible) for name in names(setting)]
    if len({gpu.slug for gpu in chosen}) > 1:
        models = ", ".join(sorted({gpu.slug for gpu in chosen}))
        raise WarplogError(
            f"config: gpu: boards of several models ({models}); run a campaign for each of them"
        )
    return list({gpu.uuid: gpu for gpu in chosen}.values())


def names(setting: str | Sequence[int | str]) -> list[str]:
    """Returns the parts of a list, or of a text with commas."""
    parts = setting.split(",") if isinstance(setting, str) else setting
    return [str(part).strip() for part in parts]


def names_boards(setting: str | Sequence[int | str]) -> bool:
    """Returns whether `gpu` names boards by index or UUID, rather than a model, 'auto' or 'all'."""
    return all(name.isdecimal() or name.startswith(("GPU-", "MIG-")) for name in names(setting))


def expected_gpu(setting: Gpus, models: Collection[str]) -> str:
    """Returns the slug that `gpu` names for jobs on other machines.

    Raises:
        WarplogError: it names boards of this machine, which has none, or a model that no gpus.yaml lists.
    """
    if isinstance(setting, str) and setting in models:
        return setting
    if setting == ALL or names_boards(setting):
        raise WarplogError(f"config: gpu: {setting!r}: this machine has no GPU; name a model, such as h200")
    name = ",".join(names(setting))
    raise WarplogError(
        f"config: gpu: {name!r} has no entry in config/gpus.yaml;"
        f" {schema.suggest(name, models)} (mode: live without a GPU requires such a name)"
    )


def _named(name: str, visible: Sequence[Gpu]) -> Gpu:
    if name.isdecimal() and int(name) < len(visible):
        return visible[int(name)]
    matches = [gpu for gpu in visible if name.startswith(("GPU-", "MIG-")) and gpu.uuid.startswith(name)]
    if len(matches) == 1:
        return matches[0]
    listed = ", ".join(f"{index}: {gpu.slug} {gpu.uuid}" for index, gpu in enumerate(visible))
    raise WarplogError(f"config: gpu: {name!r} is none of this machine's boards ({listed})")
