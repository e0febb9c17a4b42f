"""Lists which chips have which counters of the registry, from the library `nvperf_host` of the package ncu-report.

    python tests/tools/chip_counters.py    writes the list, tests/data/chip_counters.json, and prints the passes

The library needs no GPU. The list has the counters without their suffixes, as `lts__t_bytes` for `lts__t_bytes.sum`;
`everywhere` are those of all chips. Counters that ncu computes itself, such as `launch__grid_size`, are not in it.
"""

import ctypes
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from warplog.metrics import METRICS, counters_to_collect
from warplog.metrics.counters import SetName, alternatives

LIST = Path(__file__).parents[1] / "data" / "chip_counters.json"
CHIPS = {
    "TU102": (7, 5), "TU116": (7, 5), "GA100": (8, 0), "GA102": (8, 6), "GA10B": (8, 7), "AD102": (8, 9),
    "GH100": (9, 0), "GB100": (10, 0), "GB110": (10, 3), "GR100": (10, 7), "GB10B": (11, 0), "GB202": (12, 0),
    "GB20B": (12, 1),
}  # fmt: skip
OF_NCU = ("profiler__", "launch__", "device__", "sass__", "memory_l1_", "sm__maximum_warps_")
_TYPES = range(3)  # counters, ratios and throughputs
_PACKAGE = find_spec("ncu_report")
LIBRARY = Path(_PACKAGE.origin if _PACKAGE and _PACKAGE.origin else "missing").with_name("libnvperf_host.so")
_TEXT, _POINTER, _SIZE = ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t
_SIZES = ctypes.POINTER(_SIZE)
_PROFILER = 1  # NVPA_ACTIVITY_KIND_PROFILER: counts while kernels run one after the other


class _Request(ctypes.Structure):
    """What is computed of which counter: NVPW_MetricEvalRequest."""

    _fields_ = (
        ("index", _SIZE),
        ("type", ctypes.c_uint8),
        ("rollup", ctypes.c_uint8),
        ("submetric", ctypes.c_uint16),
    )


class _RawRequest(ctypes.Structure):
    """A counter of the hardware: NVPA_RawMetricRequest."""

    _fields_ = (("structure_size", _SIZE), ("private", _POINTER), ("name", _TEXT), ("isolated", ctypes.c_uint8),
                ("kept", ctypes.c_uint8))  # fmt: skip


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
    return {chip: _of_chip(chip) for chip in chips}


def _of_chip(chip: str) -> set[str]:
    with _evaluator(chip) as (library, evaluator):
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
        return {
            ctypes.string_at(part.names + part.starts[i]).decode()
            for part in listed
            for i in range(part.count)
        }


def passes(chip: str, names: Iterable[str]) -> int:
    """Returns how often a kernel runs until the chip has counted all of these; ncu adds passes for those OF_NCU."""
    with _evaluator(chip) as (library, evaluator):
        raw = _raw(library, evaluator, [name for name in names if not name.startswith(OF_NCU)])
        fields = {"kind": ctypes.c_int, "chip": _TEXT, "availability": _POINTER, "config": _POINTER}
        create = "NVPW_CUDA_RawMetricsConfig_Create_V2"
        config = _call(library, create, fields, kind=_PROFILER, chip=chip.encode()).config
        wanted = (_RawRequest * len(raw))(
            *(_RawRequest(_RawRequest.kept.offset + 1, None, n, 1, 1) for n in raw)
        )
        steps: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
            ("BeginPassGroup", {"most": _SIZE}, {"most": 0}),
            ("AddMetrics", {"requests": _POINTER, "count": _SIZE}, _array("requests", wanted)),
            ("EndPassGroup", {}, {}),
            ("GenerateConfigImage", {"merge": ctypes.c_uint8}, {"merge": 0}),
            ("GetNumPasses", {"pipelined": _SIZE, "isolated": _SIZE}, {}),
            ("Destroy", {}, {}),
        ]
        done = {
            step: _call(
                library, f"NVPW_RawMetricsConfig_{step}", {"config": _POINTER, **own}, config=config, **given
            )
            for step, own, given in steps
        }
        return int(done["GetNumPasses"].pipelined + done["GetNumPasses"].isolated)


def _raw(library: ctypes.CDLL, evaluator: int, names: Sequence[str]) -> list[bytes]:
    """Returns the names of the hardware's counters from which those `names` are computed."""
    requests = (_Request * len(names))()
    fields = {"evaluator": _POINTER, "name": _TEXT, "request": _POINTER, "size": _SIZE}
    convert = "NVPW_MetricsEvaluator_ConvertMetricNameToMetricEvalRequest"
    size = _Request.submetric.offset + _Request.submetric.size
    for name, request in zip(names, requests, strict=True):
        given = {
            "evaluator": evaluator,
            "name": name.encode(),
            "request": ctypes.addressof(request),
            "size": size,
        }
        _call(library, convert, fields, **given)
    fields = {"evaluator": _POINTER, "requests": _POINTER, "count": _SIZE, "size": _SIZE, "stride": _SIZE}
    fields |= {"raw": _POINTER, "raw_count": _SIZE, "optional": _POINTER, "optional_count": _SIZE}
    given = {
        "evaluator": evaluator,
        "size": size,
        "stride": ctypes.sizeof(_Request),
        **_array("requests", requests),
    }
    find = "NVPW_MetricsEvaluator_GetMetricRawDependencies"
    found = (_TEXT * _call(library, find, fields, **given).raw_count)()
    _call(library, find, fields, **given, **_array("raw", found, "raw_count"))
    return [name for name in found if name]


def _array(name: str, values: "ctypes.Array[Any]", count: str = "count") -> dict[str, int]:
    return {name: ctypes.addressof(values), count: len(values)}


@contextmanager
def _evaluator(chip: str) -> Iterator[tuple[ctypes.CDLL, int]]:
    library = ctypes.CDLL(str(LIBRARY))
    _call(library, "NVPW_InitializeHost")
    fields = {"chip": _TEXT, "availability": _POINTER, "size": _SIZE}
    name = chip.encode()
    size = _call(library, "NVPW_CUDA_MetricsEvaluator_CalculateScratchBufferSize", fields, chip=name).size
    memory = ctypes.create_string_buffer(size)
    fields = {"memory": _POINTER, "size": _SIZE, "chip": _TEXT}
    fields |= {"availability": _POINTER, "image": _POINTER, "image_size": _SIZE, "evaluator": _POINTER}
    given: dict[str, Any] = {"memory": ctypes.addressof(memory), "size": size, "chip": name}
    evaluator = _call(library, "NVPW_CUDA_MetricsEvaluator_Initialize", fields, **given).evaluator
    yield library, evaluator
    _call(library, "NVPW_MetricsEvaluator_Destroy", {"evaluator": _POINTER}, evaluator=evaluator)


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
    for chip, capability in CHIPS.items():
        needed = {name: passes(chip, counters_to_collect(name, capability)) for name in get_args(SetName)}
        print(chip, *(f"{name} {count}" for name, count in needed.items()))
