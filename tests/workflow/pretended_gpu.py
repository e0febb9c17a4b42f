"""Imported as sitecustomize: lets the CPU stand in for the GPU, to run the live workflow on a machine without one.

Kernels are C functions with the argument `struct A* a`, compiled with cc; the timing core uses the host's clock.
"""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from host_family import HEADER, STRUCT, make_timer, make_tracer
from warplog.core import locks
from warplog.core.hashing import sha256_file, sha256_of
from warplog.duel import match
from warplog.machine import device, toolchain
from warplog.measure import job as jobs
from warplog.measure.building import build, python_build, tracer
from warplog.measure.worker.python import arrays, launcher
from warplog.records import door
from warplog.records.campaign import Gpu

# Each project has boards of its own: no test waits for the lock of another one's.
UUIDS = os.environ.get("PRETENDED_BOARDS", f"GPU-{sha256_of(__file__)[:16]}").split(",")
GPU = Gpu(
    slug="host",
    name="pretended GPU",
    uuid=UUIDS[0],
    compute_capability=(9, 0),
    arch="sm_90",
    sms=4,
    memory_bytes=1 << 30,
    driver="0",
    cuda_driver="0",
    max_sm_mhz=1000,
    power_limit_w=None,
    pci_bus_id="",
)


def visible():
    """Replaces device.boards: the UUIDS, of which those in LOST_BOARDS do not respond."""
    shown = os.environ.get("CUDA_VISIBLE_DEVICES")
    lost = os.environ.get("LOST_BOARDS", "").split(",")
    boards = [structs.replace(GPU, uuid=uuid) for uuid in UUIDS if shown is None or uuid in shown.split(",")]
    return [board for board in boards if board.uuid not in lost]


def build_variant(family, variant, arch, nvcc, cuobjdump, folder, attempt=1):
    """Replaces build.build_variant for C functions."""
    folder.mkdir(parents=True, exist_ok=True)
    source, library = folder / "launcher.c", folder / "kernel.so"
    body = variant.file.read_text()
    source.write_text(
        f"{HEADER}{STRUCT}int warplog_launch(const struct A* a, void* stream) {{ {body} return 0; }}\n"
    )
    command = ["cc", "-O1", "-shared", "-fPIC", f"-I{variant.file.parent}", "-o", library, source, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    (folder / "compile.log").write_text(done.stderr)
    (folder / "kernel.sass").write_text("")
    record = build.record_head(
        family, variant, arch, {"nvcc": nvcc.version or "", "cuobjdump": cuobjdump.version or ""}, attempt
    )
    if done.returncode:
        library.write_bytes(b"")
        record = structs.replace(record, status="compile_error", reason="error: expected expression")
    else:
        record = structs.replace(record, status="ok", library_sha256=sha256_file(library))
    door.write(folder / "record.json", record)
    return record


def build_timer(nvcc, arch, output, source=None):
    """Replaces build.build_timer by a timing core that uses the host's clock.

    Back to back, the case whose N is in LIMITED_N lowers the clock.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    make_timer(output.parent, int(os.environ.get("LIMITED_N", "0"))).rename(output)


def build_tracer(nvcc, api, arch, output):
    """Replaces tracer.build_tracer by a stand-in that writes the trace of a made-up kernel."""
    output.parent.mkdir(parents=True, exist_ok=True)
    make_tracer(output)


# The lock of a board lies beside this copy, which is removed with it.
_lock_path = locks.lock_path
locks.lock_path = lambda uuid, folder=None: _lock_path(uuid, folder or Path(__file__).parent)
_make_jobs = jobs.make_jobs
jobs.make_jobs = lambda **values: [replace(job, backend="numpy") for job in _make_jobs(**values)]
match.BACKEND = "numpy"
device.detect = lambda: GPU
device.boards = visible
toolchain.ensure = lambda *_: None
build.build_variant = build_variant
build.build_timer = build_timer
tracer.build_tracer = build_tracer
python_build.why_not_here = lambda *_: ""
python_build._compile = lambda *_: []
launcher.import_languages = lambda _: None
launcher.make_caller = lambda *_: arrays.HostCaller()
