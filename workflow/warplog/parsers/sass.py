"""Counts the opcodes of each kernel in the output of `cuobjdump -sass`."""

import re
from collections import Counter
from collections.abc import Mapping

from warplog.core.errors import WarplogError

_TARGET = re.compile(r"^\s*code for (sm_\w+)")
_FUNCTION = re.compile(r"^\s*Function : (\S+)")
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z][A-Za-z0-9_.]*)\s*([^;]*);")

_WHOLE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+([^;]*);")
_END = re.compile(r"^\s*\.{6,}[ \t]*\n", re.MULTILINE)
_VOLTA, _BYTES = 70, 16

Listing = list[tuple[int, str, str]]


def parse(text: str, arch: str | None = None) -> dict[str, Counter[str]]:
    """Counts instructions by full opcode (`LDG.E.128.CONSTANT`) for each kernel, keyed by its mangled name.

    Predicates are not part of an opcode. The padding that the assembler appends to every function is not counted,
    because no warp executes it: the NOPs after the last instruction and the branch to itself before them.
    The code of functions that were not inlined is counted with the kernel that contains it.

    Raises:
        WarplogError: if the dump contains several architectures and `arch` is None, or does not contain `arch`.
    """
    listings: dict[tuple[str, str], Listing] = {}
    target, current = "", None
    for line in text.splitlines():
        if instruction := _INSTRUCTION.match(line):
            if current is not None:
                current.append((int(instruction[1], 16), instruction[2], instruction[3].strip()))
        elif section := _TARGET.match(line):
            target, current = section[1], None
        elif function := _FUNCTION.match(line):
            current = listings.setdefault((target, function[1]), [])
    chosen = _one_target(listings, arch)
    return {name: Counter(op for _, op, _ in _without_padding(code)) for name, code in chosen.items()}


def instructions(text: str, kernel: str) -> tuple[str, ...]:
    """Returns the longest function of that name in a dump, an instruction per line as "0010  IMAD R0, R1, R2, RZ".

    `kernel` is the bare name, which a mangled name contains after its length. Empty if the dump has no such function.
    """
    functions: list[list[str]] = []
    current: list[str] | None = None
    for line in text.splitlines():
        if function := _FUNCTION.match(line):
            current = [] if function[1] == kernel or f"{len(kernel)}{kernel}" in function[1] else None
            functions += [] if current is None else [current]
        elif current is not None and (instruction := _WHOLE.match(line)):
            current.append(f"{instruction[1]}  {' '.join(instruction[2].split())}")
    functions.sort(key=len)
    return tuple(functions[-1]) if functions else ()


def check_whole(text: str) -> None:
    """Checks that the dump does not stop inside a function and lacks no instruction.

    cuobjdump ends each function with a line of dots. From Volta on, each instruction takes 16 bytes.

    Raises:
        WarplogError: if the last function has no end, or the addresses in a function are not those of its instructions.
    """
    _, function, rest = text.rpartition("Function : ")
    if function and not _END.search(rest):
        raise WarplogError(
            f"is truncated: function {rest.split(None, 1)[0] if rest.split() else ''} has no end; dump it again"
        )
    arch, next_place = 0, 0
    for line in text.splitlines():
        if target := _TARGET.match(line):
            arch = int("".join(re.findall("[0-9]", target[1]))[:4] or 0)
        elif _FUNCTION.match(line):
            next_place = 0
        elif arch >= _VOLTA and (instruction := _INSTRUCTION.match(line)):
            next_place += _BYTES
            if int(instruction[1], 16) != next_place - _BYTES:
                raise WarplogError(
                    f"is damaged: the instruction at {instruction[1][:16]} is not in its place; dump it again"
                )


def targets(text: str) -> tuple[str, ...]:
    """Returns the architectures in a dump, such as ("sm_80", "sm_90a"), in order of appearance."""
    return tuple(dict.fromkeys(target[1] for line in text.splitlines() if (target := _TARGET.match(line))))


def matching(opcodes: Mapping[str, int], prefix: str) -> int:
    """Counts the instructions whose opcode is `prefix` with any modifiers: "LDG" counts LDG.E.128, not LDGSTS."""
    return sum(n for opcode, n in opcodes.items() if opcode == prefix or opcode.startswith(f"{prefix}."))


def _one_target(listings: Mapping[tuple[str, str], Listing], arch: str | None) -> dict[str, Listing]:
    targets = sorted({target for target, _ in listings})
    if arch is None and len(targets) > 1:
        raise WarplogError(f"SASS dump: contains {', '.join(targets)}; choose one architecture")
    if arch is not None and targets and arch not in targets:
        raise WarplogError(f"SASS dump: {arch}: not in the dump, which contains {', '.join(targets)}")
    return {name: code for (target, name), code in listings.items() if arch in (None, target)}


def _without_padding(code: Listing) -> Listing:
    end = len(code)
    while end and code[end - 1][1] == "NOP":
        end -= 1
    if end and _branches_to_itself(*code[end - 1]):
        end -= 1
    return code[:end]


def _branches_to_itself(address: int, opcode: str, operands: str) -> bool:
    return opcode.split(".")[0] == "BRA" and operands.split(",")[-1].strip() == f"{address:#x}"
