"""Builds the tracer of memory accesses: the code that it puts into kernels, inside the library that puts it there."""

from collections.abc import Sequence
from pathlib import Path

from warplog.core.errors import WarplogError
from warplog.core.files import temporary_folder
from warplog.core.process import explain_exit
from warplog.machine.toolchain import SanitizerApi, Tool, nvcc_command
from warplog.measure.building.build import first_error, run_compiler

SOURCES = Path(__file__).parents[1] / "tracer"
_DEVICE = ("-fatbin", "--keep-device-functions", "-Xptxas", "--compile-as-tools-patch")
_HOST = ("-std=c++17", "-O2", "-shared", "-cudart", "none", "-Xcompiler", "-fPIC,-Wall")


def build_tracer(nvcc: Tool, api: SanitizerApi, arch: str, library: Path) -> None:
    """Compiles the tracer (measure/tracer) for one architecture.

    Raises:
        WarplogError: It does not compile; the text contains the compiler's first error.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    include = [f"-I{SOURCES}", f"-I{api.headers}"]
    target = ("-gencode", f"arch={arch.replace('sm_', 'compute_')},code={arch}")
    link = (f"-L{api.library.parent}", "-lsanitizer-public", "-Xlinker", f"-rpath,{api.library.parent}")
    with temporary_folder() as folder:
        patch = folder / "patch.fatbin"
        _compile(nvcc, [*_DEVICE, *target, *include], SOURCES / "patch.cu", patch)
        options = [*_HOST, f'-DPATCH="{patch}"', *include]
        _compile(nvcc, options, SOURCES / "tracer.cpp", library, link)


def _compile(
    nvcc: Tool, options: Sequence[str], source: Path, output: Path, link: Sequence[str] = ()
) -> None:
    done = run_compiler([*nvcc_command(nvcc), *options, str(source), "-o", str(output), *link], output.parent)
    if not done.ok:
        raise WarplogError(f"{source}: nvcc failed: {first_error(done.output_tail) or explain_exit(done)}")
