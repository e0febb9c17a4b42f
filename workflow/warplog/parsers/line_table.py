"""Opcode and source line of each instruction, in the output of `nvdisasm -c -g`.

The line of what is inlined is that of the called function. Nsight Compute shows the same line, except for the first
instruction after a call, which it counts to the calling one.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from warplog.parsers.inputs import valid_unicode

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+),")
_LINE = re.compile(r'^\s*//## File "([^"]*)", line (\d{1,9})')
_INSTRUCTION = re.compile(r"^\s+/\*([0-9a-f]{4,8})\*/\s+(?:@!?\w+\s+)?([A-Z][A-Za-z0-9_.]*)")


@dataclass(frozen=True)
class Place:
    """One instruction: its opcode with modifiers, and the source line; "" and 0 without a line table."""

    opcode: str
    file: str
    line: int


def parse(text: str) -> dict[str, Mapping[int, Place]]:
    """Returns the instructions of each kernel by offset, keyed by its mangled name.

    A function that is not inlined is part of the section of the kernel that calls it.
    """
    kernels: dict[str, Mapping[int, Place]] = {}
    code: dict[int, Place] = {}
    file, line = "", 0
    for row in text.splitlines():
        if instruction := _INSTRUCTION.match(row):
            code[int(instruction[1], 16)] = Place(instruction[2], file, line)
        elif place := _LINE.match(row):
            file, line = valid_unicode(place[1]), int(place[2])
        elif section := _SECTION.match(row):
            code, file, line = {}, "", 0
            kernels[section[1]] = code
    return kernels
