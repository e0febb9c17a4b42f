"""Stage build: compiles a variant to a shared object; the record holds kernel resources and SASS opcode counts."""

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warplog.catalog.contract import Argument
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError
from warplog.core.files import write_text
from warplog.core.process import explain_exit, minimal_env, run
from warplog.core.records import SCHEMA_VERSION, Record, read_json, sha256_file, write_json
from warplog.machine import aslr
from warplog.machine.toolchain import Tool, nvcc_command
from warplog.measure import dependencies
from warplog.measure.loading import LAUNCHER, why_not_loaded
from warplog.measure.quoting import Places
from warplog.parsers import ptxas, sass

FLAGS = ("-std=c++17", "-O3", "-lineinfo", "-Xptxas", "-v", "-Xcompiler", "-fPIC,-Wall", "-shared")
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "void": "void",  # depends on the case
}
_HEADERS = {"float16": "cuda_fp16.h", "bfloat16": "cuda_bf16.h"}
_LAUNCHER_SOURCE = "launcher.cu"
_TIMEOUT_S = 900
_MOST_OUTPUT = 4000


def build_variant(
    family: Family, variant: Variant, arch: str, nvcc: Tool, cuobjdump: Tool, folder: Path, attempt: int = 1
) -> Record:
    """Compiles one variant into `folder` and returns its record, which is also written there.

    A compile error, a library that cannot be loaded, a timeout or an unsupported architecture is not an exception but
    a record with that status and the reason; kernel.so and kernel.sass are then empty.

    Args:
        family: the variant's family; its arguments define the launcher's signature.
        variant: source, compile-time parameters and required architecture.
        arch: architecture of the GPU, such as `sm_90`; a variant that requires `sm_90a` is compiled for that.
        nvcc: the compiler.
        cuobjdump: the disassembler, from the CUDA toolkit or its wheel.
        folder: output folder for launcher.cu, kernel.so, compile.log, kernel.sass and record.json.
        attempt: number of this build, for the record: see warplog.plan.staleness.

    Raises:
        WarplogError: nvcc or cuobjdump is missing or fails to run, the disk is full, or a source changed meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library, source = folder / "kernel.so", folder / _LAUNCHER_SOURCE
    write_text(source, launcher_source(family, variant))
    target = variant.requires.arch if variant.requires.arch == f"{arch}a" else arch
    command = compile_command(nvcc, variant, source, target, library)
    places = _places(nvcc, variant, folder)
    begin, fingerprint = time.monotonic(), variant.fingerprint()
    if unsupported := variant.requires.why_not(capability_of(arch)):
        outcome: Record = {"status": "unsupported", "reason": unsupported}
    else:
        outcome = _compile(command, family, variant, folder, places)
        outcome |= {} if "status" in outcome else _inspected(folder, cuobjdump)
    if variant.fingerprint() != fingerprint:
        raise WarplogError(f"{variant.file}: it or a header changed while nvcc compiled it; run again")
    if outcome["status"] != "ok":
        library.write_bytes(b"")
        write_text(folder / "kernel.sass", "")
    record = _record(
        family, variant, arch, places.command(command), time.monotonic() - begin, nvcc, cuobjdump
    )
    record |= {"source_sha256": fingerprint, "attempt": attempt, **outcome}
    write_json(folder / "record.json", record, "record")
    return record


def _places(nvcc: Tool, variant: Variant, folder: Path) -> Places:
    toolkit = nvcc.path.resolve().parent.parent if nvcc.path else Path("/usr/local/cuda")
    return Places(Path.cwd(), variant.file.absolute().parents[1], folder.absolute(), toolkit)


def _compile(command: list[str], family: Family, variant: Variant, folder: Path, places: Places) -> Record:
    """Compiles and loads the library; returns the files that nvcc read, or status and reason if it fails.

    compile.log, which is published with the record, quotes the same as the record.
    """
    source, listing, log = folder / _LAUNCHER_SOURCE, folder / "kernel.d", folder / "compile.log"
    with aslr.fixed():
        done = run([*command, "-MMD", "-MF", str(listing)], timeout_s=_TIMEOUT_S, env=minimal_env(), log=log)
    if "No space left on device" in done.output_tail:
        raise WarplogError(f"{folder}: the disk is full; free space and run again")
    output = places.quoted(log.read_text(errors="replace"))
    write_text(log, output)
    if not done.ok:
        words = output.strip()[-_MOST_OUTPUT:] or explain_exit(done)
        status = "timeout" if done.timed_out else "compile_error"
        reason = places.text(_reason(words, family, variant))
        return {"status": status, "reason": reason, "compiler_output": words}
    files = dependencies.read(listing, source)
    listing.unlink()
    if unforeseen := dependencies.unforeseen(files, (variant.file, *variant.headers())):
        header = places.name(unforeseen[0])
        return _failed(
            f"{places.name(variant.file)}: nvcc read {header}, but no #include line names it, so changes of it would go"
            " unnoticed; write one with the name itself instead of a macro, between #if 0 and #endif if need be"
        )
    if why_not := why_not_loaded(folder / "kernel.so"):
        return _failed(places.text(f"{variant.file}: {why_not}"))
    return {"dependencies": {places.name(file): sha256_file(file) for file in files}}


def _failed(reason: str) -> Record:
    return {"status": "compile_error", "reason": reason}


def _inspected(folder: Path, cuobjdump: Tool) -> Record:
    """Returns the part of the record that describes a library: its hash, and its kernels."""
    library, log = folder / "kernel.so", folder / "compile.log"
    dump = _disassemble(cuobjdump, library, folder / "kernel.sass")
    kernels = kernel_facts(log.read_text(errors="replace"), dump)
    return {"status": "ok", "reason": "", "library_sha256": sha256_file(library), "kernels": kernels}


def take_recorded(recorded: Path, folder: Path) -> Record:
    """Copies a recorded build into `folder` in place of a live one, for machines without nvcc.

    Files that the recorded campaign does not contain, such as kernel.so, become empty files.

    Args:
        recorded: the recorded record.json.
        folder: where a live build would be written.

    Raises:
        WarplogError: The recorded record is missing or invalid.
    """
    record: Record = read_json(recorded, "record") | {"origin": "recorded"}
    for name in ("kernel.so", "kernel.sass", "compile.log"):
        beside = recorded.with_name(name)
        write_text(folder / name, beside.read_text() if beside.is_file() else "")
    write_json(folder / "record.json", record, "record")
    return record


def compile_command(nvcc: Tool, variant: Variant, source: Path, target: str, library: Path) -> list[str]:
    """Returns the nvcc command line for one architecture, such as `sm_90` or `sm_90a`.

    Names of internal symbols contain a hash of the path of the source, by which ptxas orders functions. cudafe++ gets a
    path that is the same in every folder instead (and does not exist), so that names and order do not depend on it.
    """
    include = [folder for folder in variant.include_folders() if folder.is_dir()]
    return [
        *nvcc_command(nvcc),
        *FLAGS,
        *("-Xcudafe", f"--orig_src_path_name=/{variant.family}/{variant.file.stem}/{_LAUNCHER_SOURCE}"),
        "-gencode",
        f"arch={target.replace('sm_', 'compute_')},code={target}",
        *(f"-I{folder}" for folder in include),
        *(f"-D{name}={value}" for name, value in variant.parameters.items()),
        str(source),
        "-o",
        str(library),
    ]


def launcher_source(family: Family, variant: Variant) -> str:
    """Returns the translation unit to compile: it includes the variant's file and adds a launcher.

    The launcher takes its arguments packed in a structure and calls the variant's `launch`, whose parameters must have
    exactly the types of family.yaml: the compiler would convert a float to an int and compute something else.
    """
    headers = sorted({_HEADERS[a.dtype] for a in family.arguments if a.dtype in _HEADERS})
    types = ", ".join([*map(_c_type, family.arguments), "cudaStream_t"])
    return "\n".join(
        [
            f"// Generated from {family.name}/family.yaml for {variant.name}; warplog fills the structure.",
            *(f"#include <{header}>" for header in headers),
            f"#include <{variant.file.name}>  // not in quotes: they would search this folder first",
            "",
            "template <typename Result>",
            f"constexpr bool warplog_accepts(Result (*)({types})) {{ return true; }}",
            'static_assert(warplog_accepts(launch), "the arguments in family.yaml");',
            "",
            "struct LauncherArguments {",
            *(f"    {_c_type(a)} {a.name};" for a in family.arguments),
            "};",
            f'extern "C" int {LAUNCHER}(const LauncherArguments* packed, cudaStream_t stream) {{',
            f"    return launch({', '.join(f'packed->{a.name}' for a in family.arguments)}, stream);",
            "}",
            "",
        ]
    )


def capability_of(arch: str) -> tuple[int, int]:
    """Returns the compute capability of an architecture: (9, 0) for 'sm_90' and 'sm_90a'."""
    number = int(arch.removeprefix("sm_").removesuffix("a"))
    return number // 10, number % 10


def kernel_facts(log: str, dump: str) -> list[Record]:
    """Returns the resources of each kernel with its SASS opcode counts, joined by mangled name.

    Args:
        log: output of nvcc with `-Xptxas -v`.
        dump: output of `cuobjdump -sass`.
    """
    opcodes = sass.parse(dump)
    facts = []
    for kernel in ptxas.parse(log):
        counts: Mapping[str, int] = opcodes.get(kernel.mangled, {})
        facts.append(
            {
                "kernel": kernel.kernel,
                "mangled": kernel.mangled,
                "registers_per_thread": kernel.registers_per_thread,
                "static_shared_bytes": kernel.static_shared_bytes,
                "constant_bytes": kernel.constant_bytes,
                "stack_bytes": kernel.stack_bytes,
                "spill_store_bytes": kernel.spill_store_bytes,
                "spill_load_bytes": kernel.spill_load_bytes,
                "barriers": kernel.barriers,
                "sass_instructions": sum(counts.values()),
                "opcodes": dict(sorted(counts.items())),
            }
        )
    return facts


def build_timer(nvcc: Tool, arch: str, library: Path) -> None:
    """Compiles the timing core (worker/timer.cu) for one architecture.

    Raises:
        WarplogError: It does not compile; the text contains the compiler's first error.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    source = Path(__file__).parent / "worker" / "timer.cu"
    target = f"arch={arch.replace('sm_', 'compute_')},code={arch}"
    flags = [f for f in FLAGS if f != "-lineinfo"]
    command = [*nvcc_command(nvcc), *flags, "-gencode", target, str(source), "-o", str(library)]
    done = run(command, timeout_s=_TIMEOUT_S, env=minimal_env())
    if not done.ok:
        raise WarplogError(f"{source}: nvcc failed: {_first_error(done.output_tail) or explain_exit(done)}")


def _c_type(argument: Argument) -> str:
    base = _C_TYPES[argument.dtype]
    return {"scalar": base, "input": f"const {base}*"}.get(argument.kind, f"{base}*")


def _disassemble(cuobjdump: Tool, library: Path, output: Path) -> str:
    if cuobjdump.path is None:
        raise WarplogError(f"cuobjdump: not found; {cuobjdump.remedy}")
    temporary = output.with_suffix(".part")
    done = run(
        [str(cuobjdump.path), "-sass", str(library)], timeout_s=_TIMEOUT_S, env=minimal_env(), log=temporary
    )
    if not done.ok:
        raise WarplogError(
            f"{library}: cuobjdump failed ({explain_exit(done)}): {done.output_tail[-300:].strip()}"
        )
    shutil.move(temporary, output)
    return output.read_text(errors="replace")


def _record(
    family: Family,
    variant: Variant,
    arch: str,
    command: Sequence[str],
    seconds: float,
    nvcc: Tool,
    cuobjdump: Tool,
) -> Record:
    tools: dict[str, Any] = {"nvcc": nvcc.version or "", "cuobjdump": cuobjdump.version or ""}
    return {
        "schema": SCHEMA_VERSION,
        "stage": "build",
        "family": family.name,
        "variant": variant.name,
        "arch": arch,
        "origin": "live",
        "parameters": dict(variant.parameters),
        "command": list(command),
        "seconds": round(seconds, 3),
        "tools": tools,
    }


def _reason(output: str, family: Family, variant: Variant) -> str:
    """Returns the first error; in the launcher's own lines it means that `launch` is missing or has other arguments."""
    error = _first_error(output)
    if f"{_LAUNCHER_SOURCE}(" not in error:
        return error
    arguments = ", ".join(f"{_c_type(a)} {a.name}" for a in family.arguments)
    needed = f"int launch({arguments}, cudaStream_t stream)"
    return f"{variant.file}: must define {needed}, with the arguments of {family.file}: {error}"


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (errors or lines or [""])[0][:500]
