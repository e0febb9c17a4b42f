"""The record of the job that logs to a store: what the store then held."""

from collections.abc import Mapping

from warplog.records.fields import Frozen


class LoggedExperiment(Frozen, frozen=True, kw_only=True):
    """One experiment; `home` is the variant whose run holds what belongs to the whole family. runs: ids by variant."""

    family: str
    experiment_id: str
    link: str
    home: str
    runs: Mapping[str, str]


class LoggedCampaign(Frozen, frozen=True, kw_only=True):
    """The content of the store after logging, the same after a second run that changed nothing.

    Attributes:
        uri: the store, without a password.
        last: the run that was written last.
        attempt: number of the attempt, see `presence.destination`.
    """

    uri: str
    experiments: tuple[LoggedExperiment, ...]
    last: str
    attempt: int = 1
