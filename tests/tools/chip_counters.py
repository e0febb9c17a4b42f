"""Lists which chips have which counters of the registry, from the library `nvperf_host` of the package ncu-report.

    python tests/tools/chip_counters.py    writes the list, tests/data/chip_counters.json

The library needs no GPU. The list has the counters without their suffixes, as `lts__t_bytes` for `lts__t_bytes.sum`;
`everywhere` are those of all chips. Counters that ncu computes itself, such as `launch__grid_size`, are not in it.
"""

import ctypes
import json
from collections.abc import Iterable
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from warplog.metrics import METRICS
from warplog.metrics.counters import alternatives

LIST = Path(__file__).parents[1] / "data" / "chip_counters.json"
CHIPS = {
    "TU102": (7, 5), "TU116": (7, 5), "GA100": (8, 0), "GA102": (8, 6), "GA10B": (8, 7), "AD102": (8, 9),
    "GH100": (9, 0), "GB100": (10, 0), "GB110": (10, 3), "GR100": (10, 7), "GB10B": (11, 0), "GB202": (12, 0),
    "GB20B": (12, 1),
}  # fmt: skip
OF_NCU = ("launch__", "device__", "sass__", "memory_l1_", "sm__maximum_warps_")
_TYPES = range(3)  # counters, ratios and throughputs
_PACKAGE = find_spec("ncu_report")
LIBRARY = Path(_PACKAGE.origin if _PACKAGE and _PACKAGE.origin else "missing").with_name("libnvperf_host.so")
_TEXT, _POINTER, _SIZE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_SIZES = ctypes.POINTER(_SIZE)


def base(counter: str) -> str:
    """Returns a counter without its suffixes."""
    return counter.split(".", 1)[0]


def registered() -> list[str]:
    """Returns the counters of the registry that chips have, without their suffixes."""
    slots = chain.from_iterable(metric.counters for metric in METRICS.values())
    names = chain.from_iterable(alternatives(slot) for slot in slots if not slot.startswith("@"))
    return sorted({base(name) for name in names if not name.startswith(OF_NCU)})


def counters(chips: Iterable[str]) -> dict[str, set[str]]:
    """Returns all counters that the library lists, by chip."""
    library = ctypes.CDLL(str(LIBRARY))
    _call(library, "NVPW_InitializeHost")
    return {chip: _of_chip(library, chip.encode()) for chip in chips}


def _of_chip(library: ctypes.CDLL, chip: bytes) -> set[str]:
    fields = {"chip": _TEXT, "availability": _POINTER, "size": _SIZE}
    size = _call(library, "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", fields, chip=chip).size
    memory = ctypes.create_string_buffer(size)
    fields = {"memory": _POINTER, "size": _SIZE, "chip": _TEXT}
    fields |= {"availability": _POINTER, "image": _POINTER, "image_size": _SIZE, "evaluator": _POINTER}
    given: dict[str, Any] = {"memory": ctypes.addressof(memory), "size": size, "chip": chip}
    evaluator = _call(library, "NVPW_CUDA_MetricsEvaluator_Initialize", fields, **given).evaluator
    fields = {
        "evaluator": _POINTER,
        "type": ctypes.c_uint8,
        "names": _POINTER,
        "starts": _SIZES,
        "count": _SIZE,
    }
    listed = [
        _call(library, "NVPW_MetricsEvaluator_GetMetricNames", fields, evaluator=evaluator, type=of_type)
        for of_type in _TYPES
    ]
    names = {
        ctypes.string_at(part.names + part.starts[i]).decode() for part in listed for i in range(part.count)
    }
    _call(library, "NVPW_MetricsEvaluator_Destroy", {"evaluator": _POINTER}, evaluator=evaluator)
    return names


def _call(library: ctypes.CDLL, function: str, fields: dict[str, Any] | None = None, **given: Any) -> Any:
    """Calls a function of the library with its structure of arguments and results, and returns the structure."""
    layout = {"structure_size": _SIZE, "private": _POINTER, **(fields or {})}
    structure = type(function, (ctypes.Structure,), {"_fields_": list(layout.items())})
    arguments: Any = structure(**given)
    last = getattr(structure, list(layout)[-1])
    arguments.structure_size = last.offset + last.size
    status = getattr(library, function)(ctypes.byref(arguments))
    if status:
        raise SystemExit(f"{LIBRARY}: {function} failed with status {status}")
    return arguments


def listing() -> dict[str, Any]:
    """Returns the list: the counters of the registry that all chips have, and the chips of the others."""
    of_chip = counters(CHIPS)
    having = {name: [chip for chip in CHIPS if name in of_chip[chip]] for name in registered()}
    everywhere = [name for name, chips in having.items() if len(chips) == len(CHIPS)]
    return {
        "everywhere": everywhere,
        "some": {name: " ".join(chips) for name, chips in having.items() if name not in everywhere},
    }


if __name__ == "__main__":
    LIST.write_text(json.dumps(listing(), indent=1) + "\n")
