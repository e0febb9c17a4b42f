"""The generated launcher: it unpacks the arguments that warplog fills and calls the `launch` of a variant."""

from collections.abc import Sequence

from warplog.catalog.contract import Argument
from warplog.catalog.family import Family, Variant
from warplog.core.hashing import sha256_file
from warplog.measure.building.loading import LAUNCHER

SOURCE = "launcher.cu"
PREBUILT = "prebuilt.so"  # the copy of a library that is compiled already, beside the launcher
_C_TYPES = {
    "float32": "float",
    "float64": "double",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float8_e4m3": "__nv_fp8_e4m3",
    "float8_e5m2": "__nv_fp8_e5m2",
    "complex64": "cuFloatComplex",
    "int8": "signed char",
    "uint8": "unsigned char",
    "int16": "short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long long",
    "bool": "bool",
    "void": "void",  # depends on the case
}
_HEADERS = {
    "float16": "cuda_fp16.h",
    "bfloat16": "cuda_bf16.h",
    "float8_e4m3": "cuda_fp8.h",
    "float8_e5m2": "cuda_fp8.h",
    "complex64": "cuComplex.h",
}


def launcher_source(family: Family, variant: Variant) -> str:
    """Returns the translation unit to compile: it includes the variant's file and adds a launcher.

    The launcher takes its arguments packed in a structure and calls the variant's `launch`, whose parameters must have
    exactly the types of family.yaml: the compiler would convert a float to an int and compute something else. A library
    that is compiled already is loaded from the launcher's folder by its path: two libraries with the same name in one
    process would otherwise be one.
    """
    headers = sorted({_HEADERS[a.dtype] for a in family.arguments if a.dtype in _HEADERS})
    types = ", ".join([*map(_c_type, _called(family, variant)), "cudaStream_t"])
    return "\n".join(
        [
            f"// Generated from {family.name}/family.yaml for {variant.name}; warplog fills the structure.",
            *(f"#include <{header}>" for header in headers),
            *(_loaded(variant, types) if variant.prebuilt else _included(variant, types)),
            "",
            "struct LauncherArguments {",
            *(f"    {_c_type(a)} {a.name};" for a in family.arguments),
            "};",
            f'extern "C" int {LAUNCHER}(const LauncherArguments* packed, cudaStream_t stream) {{',
            *(_FIND if variant.prebuilt else ()),
            f"    return launch({', '.join(f'packed->{a.name}' for a in _called(family, variant))}, stream);",
            "}",
            "",
        ]
    )


def signature(family: Family, variant: Variant) -> str:
    """Returns the launcher that a variant must define, without its result: `launch(const float* x, ...)`."""
    arguments = ", ".join(f"{_c_type(a)} {a.name}" for a in _called(family, variant))
    return f"launch({arguments}, cudaStream_t stream)"


_FIND = (
    "    static const Launch launch = find();",
    "    if (!launch) return cudaErrorSharedObjectSymbolNotFound;",
)


def _called(family: Family, variant: Variant) -> tuple[Argument, ...]:
    return variant.arguments or family.arguments


def _included(variant: Variant, types: str) -> Sequence[str]:
    return (
        f"#include <{variant.file.name}>  // not in quotes: they would search this folder first",
        "",
        "template <typename Result>",
        f"constexpr bool warplog_accepts(Result (*)({types})) {{ return true; }}",
        'static_assert(warplog_accepts(launch), "the arguments in family.yaml");',
    )


def _loaded(variant: Variant, types: str) -> Sequence[str]:
    return (
        "#include <cuda_runtime.h>",
        "#include <dlfcn.h>",
        "#include <string>",
        "",
        "// Identifies the library that is called, and so makes this one another if that one is rebuilt.",
        f'extern "C" const char warplog_prebuilt[] = "{sha256_file(variant.file)}";',
        "",
        f"using Launch = int (*)({types});",
        "static Launch find() {",
        "    Dl_info own{};",
        "    dladdr(warplog_prebuilt, &own);",
        "    const std::string path = own.dli_fname;",
        f"    const std::string beside = path.substr(0, path.rfind('/') + 1) + \"{PREBUILT}\";",
        "    void* library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);",
        '    return library ? reinterpret_cast<Launch>(dlsym(library, "launch")) : nullptr;',
        "}",
    )


def _c_type(argument: Argument) -> str:
    if argument.kind == "workspace":
        return "void*"
    base = _C_TYPES[argument.dtype]
    return {"scalar": base, "input": f"const {base}*"}.get(argument.kind, f"{base}*")
