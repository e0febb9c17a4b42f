"""Which project and campaign a run belongs to, in a store that projects and people share.

Both are read from the campaign record, so that a campaign has the same identity wherever it is logged. Its name is not
unique: by default it is GPU, date and commit.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from warplog.core.errors import WarplogError
from warplog.core.hashing import sha256_of
from warplog.records import door
from warplog.records.campaign import Campaign

if TYPE_CHECKING:
    from mlflow.entities import Run as StoredRun

PROJECT, PROJECT_ID, CAMPAIGN_ID = "project", "project_id", "campaign_id"


def identified(campaign: Campaign) -> Campaign:
    """Returns the campaign with an id; one of an earlier version gets the hash of its content."""
    return campaign if campaign.id else replace(campaign, id=sha256_of(door.plain(campaign))[:16])


def project_in(campaign: Campaign) -> str:
    """Returns name and id of the project that measured a campaign; '' if its record does not say."""
    return "-".join(filter(None, (campaign.project.name, campaign.project.id[:12])))


def line(campaign: Campaign, family: str, variant: str) -> str:
    """Returns the line of a variant's runs: project/campaign/gpu/family/variant."""
    name = f"{campaign.campaign}-{campaign.id}"
    return f"{project_in(campaign) or 'unknown'}/{name}/{campaign.gpu}/{family}/{variant}"


def tags(campaign: Campaign) -> dict[str, str]:
    """Returns the tags that name project and campaign."""
    project = campaign.project
    named = {PROJECT: project.name, PROJECT_ID: project.id, CAMPAIGN_ID: campaign.id}
    return {key: value for key, value in named.items() if value}


def check_one(name: str, runs: Iterable["StoredRun"]) -> None:
    """Checks that all runs belong to one campaign.

    Raises:
        WarplogError: several campaigns have that name; the message lists their ids.
    """
    projects = {run.data.tags.get(CAMPAIGN_ID, ""): run.data.tags.get(PROJECT, "unknown") for run in runs}
    if len(projects) > 1:
        ids = [f"{id_ or 'none'} (project {project})" for id_, project in sorted(projects.items())]
        raise WarplogError(
            f"campaign {name}: {len(ids)} campaigns have this name; use an id: {', '.join(ids)}"
        )
