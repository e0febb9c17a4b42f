"""The record of a campaign: name, GPU, code and tools that all its measurements share."""

from typing import Annotated, Literal

from warplog.records.fields import Arch, Count, Frozen, Origin, Sha256, Slug, Text, Versions, matching

CampaignName = Annotated[
    str, matching("[A-Za-z0-9][A-Za-z0-9_.-]{0,95}", "up to 96 letters, digits and _ . -")
]


class Gpu(Frozen, frozen=True, kw_only=True):
    """A GPU, or the MIG instance of it that CUDA uses; 0, "" or None if the driver does not report a value.

    Attributes:
        slug: name for folders and wildcards, see warplog.machine.device.slug_of.
        arch: architecture for nvcc, such as sm_90.
        sms: number of multiprocessors.
        driver, cuda_driver: driver version, and the newest CUDA version that it supports.
        max_sm_mhz, max_memory_mhz: maximum clocks.
        memory_bus_bits: width of the device-memory bus.
        pcie_generation, pcie_lanes: fastest link that both the GPU and the machine support.
    """

    slug: Slug
    name: Text
    uuid: Text
    compute_capability: tuple[Count, Count]
    arch: Arch
    sms: Count
    memory_bytes: Count
    driver: Text
    cuda_driver: Text
    max_sm_mhz: Count
    power_limit_w: float | None
    pci_bus_id: Text
    max_memory_mhz: Count = 0
    memory_bus_bits: Count = 0
    pcie_generation: Count = 0
    pcie_lanes: Count = 0

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that make this GPU the only one that a CUDA program sees."""
        return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": self.uuid}


class Project(Frozen, frozen=True, kw_only=True):
    """The repository that measured: name of its folder, and hash of its first commit; "" if unknown."""

    name: Annotated[str, matching("[A-Za-z0-9_.-]{0,64}", "up to 64 letters, digits and _ . -")] = ""
    id: Annotated[str, matching("[0-9a-f]{0,64}", "up to 64 hexadecimal digits")] = ""


class Campaign(Frozen, tag_field="stage", tag="campaign", frozen=True, kw_only=True):
    """A campaign.

    Attributes:
        campaign: name in tables and MLflow.
        id: random id; "" if an earlier release wrote none.
        commit_named: whether the configuration names the commit; all measurements then carry it.
        cuda: newest CUDA version that the driver supports.
        evaluated_commit: the commit that made the tables of a recorded campaign from its records; "" if it is `commit`.
    """

    schema: Literal[2] = 2
    campaign: CampaignName
    id: Annotated[str, matching("([0-9a-f]{16})?", "16 hexadecimal digits, or nothing")] = ""
    project: Project = Project()
    gpu: Slug
    gpu_name: Text
    arch: Arch
    origin: Origin
    commit: Text
    commit_named: bool = False
    content_sha256: Sha256
    started: Text
    driver: Text
    cuda: Text
    clocks: Text
    device: Gpu
    tools: Versions
    evaluated_commit: Text = ""

    @property
    def commits(self) -> str:
        """The measured commit, shortened, and the one that made the tables, if that is another."""
        evaluated = f", evaluated at {self.evaluated_commit[:12]}" if self.evaluated_commit else ""
        return f"{self.commit[:12] or 'unknown'}{evaluated}"
