"""Stage build: compiles a variant to a shared object; the record holds kernel resources and SASS opcode counts."""

import re
import shutil
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from msgspec.structs import replace

from warplog.catalog.compiling import STANDARD, root_of
from warplog.catalog.family import Family, Variant
from warplog.core.errors import WarplogError, fullest
from warplog.core.files import temporary_folder, write_text
from warplog.core.hashing import sha256_file
from warplog.core.process import Completed, explain_exit, minimal_env, run
from warplog.machine import aslr
from warplog.machine.toolchain import Tool, nvcc_command
from warplog.measure.building import dependencies
from warplog.measure.building.launcher import PREBUILT, SOURCE, launcher_source, signature
from warplog.measure.building.loading import link_options, why_not_loaded
from warplog.measure.building.quoting import Places, shortened
from warplog.parsers import ptxas, sass, usage
from warplog.parsers.ptxas import KernelResources
from warplog.records import door
from warplog.records.build import Build, Compiled, KernelCode
from warplog.records.fields import Language, Status

FLAGS = ("-O3", "-lineinfo", "-Xptxas", "-v", "-Xcompiler", "-fPIC,-Wall", "-shared")
TIMER = Path(__file__).parents[1] / "worker" / "timer.cu"
_TIMEOUT_S = 900
_MOST_OUTPUT = 4000
_NO_LIBRARY = re.compile(r"cannot find -l[\w.+-]+")
_NO_HEADER = re.compile(r"fatal error: .+: No such file or directory|cannot open source file")
_NO_LAUNCH = 'identifier "launch" is undefined'
# nvcc's description of the `launch` that it found: "int (const float *, long)"
_FOUND = re.compile(r"argument types are: \((\w.*?) \((.*)\)\)$", re.MULTILINE)


def build_variant(
    family: Family, variant: Variant, arch: str, nvcc: Tool, cuobjdump: Tool, folder: Path, attempt: int = 1
) -> Build:
    """Compiles one variant into `folder` and returns its record, which is also written there.

    A compile error, a library that cannot be loaded, a timeout or an unsupported architecture is not an exception but
    a record with that status and the reason; kernel.so and kernel.sass are then empty.

    Args:
        family: the variant's family; its arguments define the launcher's signature.
        variant: source, compile-time parameters and required architecture.
        arch: architecture of the GPU, such as `sm_90`; a variant that requires `sm_90a` is compiled for that.
        nvcc: the compiler.
        cuobjdump: the disassembler, from the CUDA toolkit or its wheel.
        folder: output folder for launcher.cu, kernel.so, compile.log, kernel.sass and record.json; and prebuilt.so, if
            the variant is a library that is compiled already.
        attempt: number of this build, for the record: see `warplog.plan.parameters.attempt`.

    Raises:
        WarplogError: nvcc or cuobjdump is missing or fails to run, the disk is full, or a source changed meanwhile.
    """
    folder.mkdir(parents=True, exist_ok=True)
    library, source = folder / "kernel.so", folder / SOURCE
    write_text(source, launcher_source(family, variant))
    if variant.prebuilt:
        shutil.copyfile(variant.file, folder / PREBUILT)
    command = compile_command(nvcc, variant, source, target_of(variant, arch), library)
    places = places_of(nvcc, variant, folder)
    begin = time.monotonic()
    tools = {"nvcc": nvcc.version or "", "cuobjdump": cuobjdump.version or ""}
    head = record_head(family, variant, arch, tools, attempt, places.command(command))
    if unsupported := variant.requires.why_not(capability_of(arch)):
        record = replace(head, status="unsupported", reason=unsupported)
    else:
        linking = link_options(variant.compile.link, folder, nvcc.libraries)
        record = _compile(head, command, linking, family, variant, folder, places, cuobjdump)
    if variant.fingerprint() != head.source_sha256:
        raise WarplogError(f"{variant.file}: it or a header changed while nvcc compiled it; run again")
    if record.status != "ok":
        library.write_bytes(b"")
        write_text(folder / "kernel.sass", "")
    record = replace(record, seconds=round(time.monotonic() - begin, 3))
    door.write(folder / "record.json", record)
    return record


def target_of(variant: Variant, arch: str) -> str:
    """Returns what nvcc compiles a variant for: `sm_90a` for `sm_90` if the variant requires that."""
    return variant.requires.arch if variant.requires.arch == f"{arch}a" else arch


def places_of(nvcc: Tool, variant: Variant, folder: Path) -> Places:
    """Returns the folders of a build, for what its record quotes."""
    toolkit = nvcc.path.resolve().parent.parent if nvcc.path else Path("/usr/local/cuda")
    families, repository = variant.folder.absolute().parent, root_of(variant.folder)
    return Places(Path.cwd(), families, folder.absolute(), toolkit, repository)


def _compile(
    head: Build,
    command: list[str],
    linking: list[str],
    family: Family,
    variant: Variant,
    folder: Path,
    places: Places,
    cuobjdump: Tool,
) -> Build:
    """Compiles, loads and inspects the library; returns the record with the files that nvcc read, or why it fails.

    compile.log, which is published with the record, quotes the same as the record.
    """
    source, log = folder / SOURCE, folder / "compile.log"
    last = [*command, *linking, *_device_link_options(variant)]
    commands = [*_further_commands(command, variant, folder), last]
    listings = [folder / f"{number}.d" for number in range(len(commands))]
    done = _run_all(zip(commands, listings, strict=True), log)
    output = places.quoted(log.read_text(errors="replace"))
    write_text(log, output)
    if not done.ok:
        words = shortened(output.strip()[-_MOST_OUTPUT:] or explain_exit(done))
        reason = shortened(places.text(_reason(words, family, variant)))
        status: Status = "timeout" if done.timed_out else "compile_error"
        return replace(head, status=status, reason=reason, compiler_output=words)
    if not (folder / "kernel.so").is_file():
        return _failed(head, "nvcc made no library; remove the flag that makes it write something else")
    files = dependencies.read(listings[-1], source, *listings[:-1])
    for listing in listings:
        listing.unlink()
    if unforeseen := dependencies.unforeseen(files, (variant.file, *variant.headers())):
        header = places.name(unforeseen[0])
        return _failed(
            head,
            f"{places.name(variant.file)}: nvcc read {header}, but no #include line names it, so changes of it would go"
            " unnoticed; write one with the name itself instead of a macro, between #if 0 and #endif if need be",
        )
    if why_not := _why_not_loaded(variant, folder):
        return _failed(head, shortened(places.text(f"{variant.file}: {why_not}")))
    head = replace(head, dependencies={places.name(file): sha256_file(file) for file in files})
    return _inspected(head, variant, folder, cuobjdump)


def _device_link_options(variant: Variant) -> list[str]:
    """Returns the option that skips the device linker, whose empty cubin takes cuobjdump as long as a kernel.

    It is needed only with flags such as -rdc=true.
    """
    return [] if variant.compile.flags else ["-nodlink"]


def _failed(head: Build, reason: str) -> Build:
    return replace(head, status="compile_error", reason=reason)


def _further_commands(command: Sequence[str], variant: Variant, folder: Path) -> list[list[str]]:
    """Returns the commands that compile the further sources to the object files that `command` links."""
    options = [word for word in command[: command.index(str(folder / SOURCE))] if word != "-shared"]
    pairs = zip(variant.further_sources(), objects(variant, folder), strict=True)
    return [[*options, "-c", str(source), "-o", made] for source, made in pairs]


def objects(variant: Variant, folder: Path) -> list[str]:
    """Returns the object files of a variant's further sources."""
    return [str(folder / f"{number}.o") for number, _ in enumerate(variant.compile.sources)]


def _run_all(commands: Iterable[tuple[Sequence[str], Path]], log: Path) -> Completed:
    """Runs compilers one after the other until one fails; all output goes to `log`, the files read to the listings."""
    output, part = "", log.with_suffix(".part")
    for command, listing in commands:
        done = run_compiler([*command, "-MMD", "-MF", str(listing)], log.parent, part)
        output += part.read_text(errors="replace")
        if not done.ok:
            break
    part.unlink()
    write_text(log, output)
    return done


def run_compiler(command: Sequence[str], folder: Path, log: Path | None = None) -> Completed:
    """Runs a tool that writes to `folder` and to a temporary folder, where a compiler that is killed leaves its files.

    Raises:
        WarplogError: The disk is full.
    """
    with temporary_folder() as temporary, aslr.fixed():
        done = run(command, timeout_s=_TIMEOUT_S, env=minimal_env({"TMPDIR": str(temporary)}), log=log)
        if not done.ok and "No space left on device" in done.output_tail:
            full = fullest(folder, temporary)
            raise WarplogError(
                f"{folder}: {Path(command[0]).name} found the disk full ({full}); free space on it and run again"
            )
    return done


def _why_not_loaded(variant: Variant, folder: Path) -> str:
    """Returns why the libraries of a variant cannot be loaded; '' if they can."""
    if variant.prebuilt and (why_not := why_not_loaded(folder / PREBUILT, "launch")):
        return why_not
    return why_not_loaded(folder / "kernel.so", driver="cuda" in variant.compile.link)


def _inspected(head: Build, variant: Variant, folder: Path, cuobjdump: Tool) -> Build:
    """Returns the record with the library's hash and its kernels."""
    library, log, dump = folder / "kernel.so", folder / "compile.log", folder / "kernel.sass"
    if variant.prebuilt:
        kernels, lacking = _prebuilt_kernels(head.arch, folder, cuobjdump)
        if lacking:
            return _failed(head, f"{variant.file}: {lacking}")
    else:
        kernels = kernel_facts(log.read_text(errors="replace"), _dump(cuobjdump, "-sass", library, dump))
    digest = sha256_file(library)
    return replace(head, status="ok", library_sha256=digest, kernels=tuple(kernels))


def _prebuilt_kernels(arch: str, folder: Path, cuobjdump: Tool) -> tuple[list[KernelCode], str]:
    """Returns the kernels of a library that is compiled already, or why it cannot run on the architecture.

    Machine code runs on its own architecture and on those of the same generation that are later (CUDA C++ Programming
    Guide, "Binary Compatibility"). With PTX alone the driver compiles, and nothing is known about the kernels.
    """
    text = _dump(cuobjdump, "-res-usage", folder / PREBUILT, folder / "usage.txt")
    binaries, ptx = usage.architectures(text)
    target = _best_binary(binaries, arch)
    dump = _dump(cuobjdump, "-sass", folder / PREBUILT, folder / "kernel.sass")
    if not target:
        has = ", ".join(binaries) or "no GPU"
        why = f"it has machine code for {has} and no PTX; compile it for {arch}"
        return [], "" if any(capability_of(virtual) <= capability_of(arch) for virtual in ptx) else why
    resources = [kernel for kernel in usage.parse(text) if kernel.arch == target]
    return _facts(resources, sass.parse(dump, target)), ""


def _best_binary(binaries: Sequence[str], arch: str) -> str:
    """Returns the architecture whose machine code a GPU runs; '' if there is none."""
    if f"{arch}a" in binaries:
        return f"{arch}a"
    major, minor = capability_of(arch)
    others = (binary for binary in binaries if binary[-1].isdigit())
    fitting = (b for b in others if capability_of(b)[0] == major and capability_of(b)[1] <= minor)
    return max(fitting, key=capability_of, default="")


def take_recorded(recorded: Path, folder: Path) -> Build:
    """Copies a recorded build into `folder` in place of a live one, for machines without nvcc.

    The other files of a build, which no recorded campaign contains, become empty files.

    Args:
        recorded: the recorded record.json.
        folder: where a live build would be written.

    Raises:
        WarplogError: The recorded record is missing or invalid.
    """
    record = replace(door.read(recorded, Build), origin="recorded")
    for name in ("kernel.so", "kernel.sass", "compile.log"):
        write_text(folder / name, "")
    door.write(folder / "record.json", record)
    return record


def compile_command(nvcc: Tool, variant: Variant, source: Path, target: str, library: Path) -> list[str]:
    """Returns the nvcc command line for one architecture, such as `sm_90` or `sm_90a`.

    Names of internal symbols contain a hash of the path of the source, by which ptxas orders functions. cudafe++ gets a
    path that is the same in every folder instead (and does not exist), so that names and order do not depend on it.
    """
    include = [folder for folder in variant.include_folders() if folder.is_dir()]
    return [
        *nvcc_command(nvcc),
        f"-std=c++{variant.compile.std or STANDARD}",
        *FLAGS,
        *("-Xcudafe", f"--orig_src_path_name=/{variant.family}/{variant.file.stem}/{SOURCE}"),
        "-gencode",
        f"arch={target.replace('sm_', 'compute_')},code={target}",
        *(f"-I{folder}" for folder in include),
        *(f"-D{name}={value}" for name, value in variant.parameters.items()),
        *variant.compile.options(),
        str(source),
        *objects(variant, library.parent),
        "-o",
        str(library),
    ]


def device_command(nvcc: Tool, variant: Variant, source: Path, target: str, cubin: Path) -> list[str]:
    """Returns the command that compiles the kernels of one source with the options of a build, but no host code."""
    options = compile_command(nvcc, variant, source, target, cubin)
    options = options[: options.index(str(source))]
    return [*("-cubin" if word == "-shared" else word for word in options), str(source), "-o", str(cubin)]


def capability_of(arch: str) -> tuple[int, int]:
    """Returns the compute capability of an architecture: (9, 0) for 'sm_90' and 'sm_90a'."""
    number = int(arch.removeprefix("sm_").removesuffix("a"))
    return number // 10, number % 10


def kernel_facts(log: str, dump: str) -> list[KernelCode]:
    """Returns the resources of each kernel with its SASS opcode counts, joined by mangled name.

    Args:
        log: output of nvcc with `-Xptxas -v`.
        dump: output of `cuobjdump -sass`.
    """
    return _facts(ptxas.parse(log), sass.parse(dump))


def _facts(
    resources: Iterable[KernelResources], opcodes: Mapping[str, Mapping[str, int]]
) -> list[KernelCode]:
    return [kernel_record(kernel, opcodes.get(kernel.mangled, {})) for kernel in resources]


def kernel_record(kernel: KernelResources, counts: Mapping[str, int]) -> KernelCode:
    """Returns the entry of a kernel in a build record, from its resources and the counts of its opcodes."""
    return KernelCode(
        kernel=kernel.kernel,
        mangled=kernel.mangled,
        registers_per_thread=kernel.registers_per_thread,
        static_shared_bytes=kernel.static_shared_bytes,
        constant_bytes=kernel.constant_bytes,
        stack_bytes=kernel.stack_bytes,
        spill_store_bytes=kernel.spill_store_bytes,
        spill_load_bytes=kernel.spill_load_bytes,
        barriers=kernel.barriers,
        sass_instructions=sum(counts.values()),
        opcodes=dict(sorted(counts.items())),
    )


def build_timer(nvcc: Tool, arch: str, library: Path, source: Path = TIMER) -> None:
    """Compiles the timing core, by default worker/timer.cu, for one architecture.

    Raises:
        WarplogError: It does not compile; the text contains the compiler's first error.
    """
    library.parent.mkdir(parents=True, exist_ok=True)
    target = f"arch={arch.replace('sm_', 'compute_')},code={arch}"
    flags = [f for f in FLAGS if f != "-lineinfo"]
    command = [*nvcc_command(nvcc), "-std=c++17", *flags, "-gencode", target, str(source), "-o", str(library)]
    done = run_compiler(command, library.parent)
    if not done.ok:
        raise WarplogError(f"{source}: nvcc failed: {first_error(done.output_tail) or explain_exit(done)}")


def _dump(cuobjdump: Tool, what: str, library: Path, output: Path) -> str:
    """Returns the output of cuobjdump with the option `what`, which is also written to `output`."""
    if cuobjdump.path is None:
        raise WarplogError(f"cuobjdump: not found; {cuobjdump.remedy}")
    temporary = output.with_suffix(".part")
    done = run_compiler([str(cuobjdump.path), what, str(library)], output.parent, temporary)
    if not done.ok and "does not contain device code" not in done.output_tail:
        raise WarplogError(
            f"{library}: cuobjdump failed ({explain_exit(done)}): {done.output_tail[-300:].strip()}"
        )
    shutil.move(temporary, output)
    return output.read_text(errors="replace")


def record_head(
    family: Family,
    variant: Variant,
    arch: str,
    tools: Mapping[str, str],
    attempt: int,
    command: Iterable[str] = (),
) -> Build:
    """Returns a build's record before its outcome is known: with status 'error'.

    Args:
        tools: version of each tool and package; '' if unknown.
        attempt: number of this build.
        command: of the compiler; empty if there is none.
    """
    return Build(
        family=family.name,
        variant=variant.name,
        status="error",
        reason="",
        origin="live",
        arch=arch,
        language=cast(Language, variant.language),
        source_sha256=variant.fingerprint(),
        parameters=dict(variant.parameters),
        compile=door.decode(variant.compile.record(), Compiled, str(family.file)),
        command=tuple(command),
        seconds=0.0,
        tools=tools,
        attempt=attempt,
    )


def _reason(output: str, family: Family, variant: Variant) -> str:
    """Returns the first error; in the launcher's own lines it means that `launch` is missing or has other arguments."""
    error = first_error(output)
    if unfound := _NO_LIBRARY.search(output):
        return f"{unfound[0]}: install the library, or name its folder: `compile: {{flags: [-L/folder]}}`"
    if _NO_HEADER.search(error):
        return (
            f"{error}; name the folder that has it, relative to family.yaml: `compile: {{include: [FOLDER]}}`"
        )
    if f"{SOURCE}(" not in error:
        return error
    launcher = _FOUND.search(output)
    other = "none" if _NO_LAUNCH in output else "another"
    got = f"{launcher[1]} launch({launcher[2]})" if launcher else f"{other}: {error}"
    needed = f"int {signature(family, variant)}"
    return f"{variant.file}: must define {needed}, with the arguments of {family.file}; got {got}"


def first_error(output: str) -> str:
    """Returns the first error in the output of a compiler, else its first line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower() or "fatal" in line.lower()]
    return (errors or lines or [""])[0][:500]
