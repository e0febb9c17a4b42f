"""Which boards of this machine measure a campaign, and which of them measures which family.

A family stays on one board, so that no ratio compares two boards. Families are spread by their times in an earlier
campaign, the longest first, each to the board with the least work so far (the LPT rule; Graham, "Bounds on
multiprocessing timing anomalies", SIAM J. Appl. Math. 17, 1969).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplog.catalog.family import Family, Variant
from warplog.core import schema
from warplog.core.errors import WarplogError
from warplog.core.records import read_json
from warplog.machine.device import Gpu

ALL = "all"
SLOTS = 3  # of three measuring jobs of a board, one measures and the others start up
_STAGES = ("check/*/{}.json", "time/*/{}.json", "profile/*/{}.ncu.json", "profile/*/{}.nsys.json")
_UNKNOWN_S = 1.0  # per variant, if no campaign tells how long any family takes
_MOST_IMBALANCE = 1.25  # families move only if the boards would otherwise differ by more than this


@dataclass(frozen=True)
class Boards:
    """The boards that measure a campaign; none if the jobs run on other machines.

    Attributes:
        uuids: the boards, in the order of CUDA_VISIBLE_DEVICES.
        of_family: the board that measures each family.
        on_host: families that also time the host or its link to the GPU; two of them never run at once.
        skipped: why boards that `gpu` names are not used, for the user.
    """

    uuids: tuple[str, ...] = ()
    of_family: Mapping[str, str] = field(default_factory=dict)
    on_host: frozenset[str] = frozenset()
    skipped: tuple[str, ...] = ()

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

    def slots(self) -> dict[str, Callable[[Any], int]]:
        """Returns what a job that measures a family takes of the resources in `limits`, as input functions."""
        if not self.several:
            return {}
        on_host: Callable[[Any], int] = lambda wildcards: int(wildcards.family in self.on_host)  # noqa: E731
        return {"host_link": on_host, **self._one_of(lambda w: self.of_family.get(w.family, self.uuids[0]))}

    def _one_of(self, chosen: Callable[[Any], str]) -> dict[str, Callable[[Any], int]]:
        def share(uuid: str) -> Callable[[Any], int]:
            return lambda wildcards: int(chosen(wildcards) == uuid)

        return {f"board{index}": share(uuid) for index, uuid in enumerate(self.uuids)}

    def board(self, wildcards: Any) -> str | None:
        """Returns the UUID of the board that measures a family; None if the job takes the one that it finds."""
        return self.of_family.get(wildcards.family) if self.several else None


def choose(setting: str | Sequence[str], visible: Sequence[Gpu]) -> list[Gpu]:
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


def names(setting: str | Sequence[str]) -> list[str]:
    """Returns the parts of a list, or of a text with commas."""
    parts = setting.split(",") if isinstance(setting, str) else setting
    return [str(part).strip() for part in parts]


def names_boards(setting: str | Sequence[str]) -> bool:
    """Returns whether `gpu` names boards by index or UUID, rather than a model, 'auto' or 'all'."""
    return all(name.isdecimal() or name.startswith(("GPU-", "MIG-")) for name in names(setting))


def make(
    setting: str | Sequence[str],
    boards: Sequence[Gpu],
    families: Mapping[str, Family],
    seconds: Callable[[], Mapping[str, float]],
    former: Callable[[], Mapping[str, str]],
    is_busy: Callable[[str], bool],
) -> Boards:
    """Returns the boards of a campaign and the spread of the families.

    Args:
        setting: `gpu` of the configuration.
        boards: the boards that it names.
        families: the families to measure, by name.
        seconds: returns how long each family is expected to measure.
        former: returns the board of each family that has times already.
        is_busy: whether another process measures on the board with this UUID.

    Raises:
        WarplogError: all of several boards are busy.
    """
    if len(boards) == 1 and setting != ALL:
        return Boards((boards[0].uuid,))
    free = [gpu.uuid for gpu in boards if len(boards) == 1 or not is_busy(gpu.uuid)]
    if not free:
        raise WarplogError(
            f"config: gpu: all {len(boards)} boards are busy; `warplog doctor` lists the processes that use them"
        )
    skipped = tuple(f"{gpu.uuid} is busy" for gpu in boards if gpu.uuid not in free)
    on_host = frozenset(n for n, f in families.items() if f.limit == "pcie" or f.measuring.timing == "host")
    if len(free) == 1:
        return Boards(tuple(free), skipped=skipped)
    return Boards(tuple(free), spread(seconds(), free, former()), on_host, skipped)


def spread(
    seconds: Mapping[str, float], boards: Sequence[str], former: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Returns the board of each family: longest first, each to the board with the least work so far.

    A family with times from one of the boards stays there, so that a new variant does not measure its whole family
    again, unless that board would then have over 1.25 times its share of the work.

    Args:
        seconds: expected time of each family.
        boards: UUIDs of the boards.
        former: the board of each family that has times already.
    """
    load = dict.fromkeys(boards, 0.0)
    fair = max([sum(seconds.values()) / len(boards), *seconds.values()], default=0.0)
    of_family = {}
    for family in sorted(seconds, key=lambda name: (-seconds[name], name)):
        own = (former or {}).get(family, "")
        stays = own in load and load[own] + seconds[family] <= _MOST_IMBALANCE * fair
        board = own if stays else min(boards, key=lambda uuid: (load[uuid], boards.index(uuid)))
        load[board] += seconds[family]
        of_family[family] = board
    return of_family


def expected_seconds(chosen: Mapping[str, Sequence[Variant]], roots: Sequence[Path]) -> dict[str, float]:
    """Returns how long each family is expected to measure, in seconds, from the first campaign that has it.

    The time is that of checking, timing and profiling a variant, by the records, times the number of chosen variants;
    for a family that no campaign has, that of an average variant.

    Args:
        chosen: the variants to measure, by family.
        roots: folders of campaigns.
    """
    each = {name: s for name in chosen if (s := _seconds_per_variant(name, roots)) is not None}
    typical = sum(each.values()) / len(each) if each else _UNKNOWN_S
    return {name: each.get(name, typical) * len(variants) for name, variants in chosen.items()}


def former_boards(chosen: Mapping[str, Sequence[Variant]], root: Path, gpu: str) -> dict[str, str]:
    """Returns the board that the times of each family are from, for families that have any in `root`."""
    found = {}
    for name in chosen:
        for record in _variants(root / "time" / gpu / f"{name}.json").values():
            found[name] = record.get("provenance", {}).get("gpu_uuid", "")
    return found


def _seconds_per_variant(family: str, roots: Sequence[Path]) -> float | None:
    for root in roots:
        files = [path for pattern in _STAGES for path in sorted(root.glob(pattern.format(family)))]
        records = [list(_variants(path).values()) for path in files]
        if count := max(map(len, records), default=0):
            return sum(_seconds(record) for stage in records for record in stage) / count
    return None


def _seconds(record: Mapping[str, Any]) -> float:
    cases = (float(case.get("seconds", 0.0)) for case in record.get("cases", ()))
    return sum(cases) + float(record.get("session", {}).get("start_seconds", 0.0))


def _variants(path: Path) -> Mapping[str, Any]:
    """Returns the records in a file; {} if there is none or it is damaged, which the jobs that read it report."""
    try:
        return dict(read_json(path).get("variants", {})) if path.is_file() else {}
    except WarplogError:
        return {}


def expected_gpu(setting: str | Sequence[str], table: Mapping[str, Any]) -> str:
    """Returns the slug that `gpu` names for jobs on other machines.

    Raises:
        WarplogError: it names boards of this machine, which has none, or a model that no gpus.yaml lists.
    """
    if isinstance(setting, str) and setting in table:
        return setting
    if setting == ALL or names_boards(setting):
        raise WarplogError(f"config: gpu: {setting!r}: this machine has no GPU; name a model, such as h200")
    name = setting if isinstance(setting, str) else ",".join(setting)
    raise WarplogError(
        f"config: gpu: {name!r} has no entry in config/gpus.yaml;"
        f" {schema.suggest(name, table)} (mode: live without a GPU requires such a name)"
    )


def _named(name: str, visible: Sequence[Gpu]) -> Gpu:
    if name.isdecimal() and int(name) < len(visible):
        return visible[int(name)]
    found = [gpu for gpu in visible if name.startswith(("GPU-", "MIG-")) and gpu.uuid.startswith(name)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(f"{index}: {gpu.slug} {gpu.uuid}" for index, gpu in enumerate(visible))
    raise WarplogError(f"config: gpu: {name!r} is none of this machine's boards ({listed})")
