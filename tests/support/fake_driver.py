"""A stand-in for nvidia-ml-py (pynvml) and the driver, for machines without a GPU."""

import sys
from types import ModuleType, SimpleNamespace

from warplog.records.campaign import Gpu

H200 = {
    "GetName": "NVIDIA H200",
    "GetUUID": "GPU-aaaa",
    "GetCudaComputeCapability": (9, 0),
    "GetNumGpuCores": 16896,
    "GetMemoryInfo": SimpleNamespace(total=150_754_820_096),
    ("GetMaxClockInfo", "sm"): 1980,
    ("GetMaxClockInfo", "mem"): 3201,
    ("GetClockInfo", "sm"): 1755,
    ("GetClockInfo", "mem"): 3201,
    "GetMemoryBusWidth": 6144,
    "GetMaxPcieLinkGeneration": 5,
    "GetMaxPcieLinkWidth": 16,
    "GetEnforcedPowerLimit": 700_000,
    "GetPowerUsage": 400_000,
    "GetTemperature": 41,
    "GetPciInfo": SimpleNamespace(busId=b"00000000:01:00.0"),
    "GetMigMode": [0, 0],
    "GetEccMode": [1, 1],
    "GetPersistenceMode": 0,
    "GetComputeMode": 0,
    "GetCurrentClocksEventReasons": 0,
    "GetComputeRunningProcesses": [SimpleNamespace(pid=42, usedGpuMemory=1 << 30)],
    "GetGraphicsRunningProcesses": [SimpleNamespace(pid=7, usedGpuMemory=None)],
}
DESCRIBED = Gpu(
    slug="h200",
    name="NVIDIA H200",
    uuid="GPU-aaaa",
    compute_capability=(9, 0),
    arch="sm_90",
    sms=132,
    memory_bytes=150_754_820_096,
    driver="580.159.04",
    cuda_driver="13.0",
    max_sm_mhz=1980,
    power_limit_w=700.0,
    pci_bus_id="00000000:01:00.0",
    max_memory_mhz=3201,
    memory_bus_bits=6144,
    pcie_generation=5,
    pcie_lanes=16,
)  # the GPU that these answers describe
CLOCKS = {"sm": 1, "mem": 2}


class Driver(ModuleType):
    """A stand-in for pynvml: returns the answers of a board by function; others raise Not Supported."""

    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU, NVML_FI_DEV_POWER_INSTANT = 1, 2, 0, 186

    class NVMLError(Exception):
        pass

    class NVMLError_LibraryNotFound(NVMLError):
        pass

    class NVMLLibraryMismatchError(Exception):
        """Not derived from NVMLError, as in nvidia-ml-py."""

    def __init__(self, *boards, mig=None):
        super().__init__("pynvml")
        self.boards, self.mig, self.users = list(boards), mig or {}, 0

    def nvmlInit(self):
        if not self.boards:
            raise self.NVMLError_LibraryNotFound("NVML Shared Library Not Found")
        self.users += 1

    def nvmlShutdown(self):
        self.users -= 1

    def nvmlDeviceGetCount(self):
        return len(self.boards)

    def nvmlDeviceGetHandleByIndex(self, index):
        return self.boards[index]

    def nvmlDeviceGetHandleByUUID(self, uuid):
        if uuid not in self.mig:
            raise self.NVMLError("Not Found")
        return self.mig[uuid][0]

    def nvmlDeviceGetDeviceHandleFromMigDeviceHandle(self, part):
        return next(board for device, board in self.mig.values() if device is part)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, board, index):
        parts = [part for part, whole in self.mig.values() if whole is board]
        if index != 2 or not parts:  # real boards may have empty slots, too
            raise self.NVMLError("Not Found")
        return parts[0]

    def nvmlSystemGetDriverVersion(self):
        return "580.159.04"

    def nvmlSystemGetCudaDriverVersion_v2(self):
        return 13000

    def __getattr__(self, name):
        if not name.startswith("nvmlDevice"):
            raise AttributeError(name)
        return lambda handle, *rest: self.answer(handle, name.removeprefix("nvmlDevice"), rest)

    def answer(self, handle, function, rest):
        clock = next((name for name, number in CLOCKS.items() if rest == (number,)), None)
        value = handle.get((function, clock), handle.get(function, self.NVMLError("Not Supported")))
        if isinstance(value, Exception):
            raise value
        return value.pop(0) if isinstance(value, Queue) else value


class Queue(list):
    """Answers to return one after the other."""


def install(monkeypatch, *boards, **more):
    """Replaces the driver by one with these boards, all visible, and returns it."""
    driver = Driver(*boards, **more)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    return driver
