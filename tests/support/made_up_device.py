"""The GPU of a campaign record that a test makes up."""

from typing import Any

H200: dict[str, Any] = {
    **{"slug": "h200", "name": "NVIDIA H200", "uuid": "GPU-0", "compute_capability": [9, 0], "arch": "sm_90"},
    **{"sms": 132, "memory_bytes": 0, "driver": "580.0", "cuda_driver": "13.0", "max_sm_mhz": 1980},
    **{"power_limit_w": None, "pci_bus_id": ""},
}
