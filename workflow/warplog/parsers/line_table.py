"""Opcode and source line of each instruction, in the output of `nvdisasm -c -g`.

The line of what is inlined is that of the called function. Nsight Compute shows the same line, except for the first
instruction after a call, which it counts to the calling one.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from warplog.parsers.inputs import valid_unicode

_HEADER = np.dtype(
    {"names": ["sections", "count"], "formats": ["<u8", "<u2"], "offsets": [40, 60], "itemsize": 64}
)
_SECTION_HEADER = np.dtype(
    {
        "names": ["type", "offset", "size", "link"],
        "formats": ["<u4", "<u8", "<u8", "<u4"],
        "offsets": [4, 24, 32, 40],
        "itemsize": 64,
    }
)
_SYMBOL = np.dtype({"names": ["name", "type"], "formats": ["<u4", "u1"], "offsets": [0, 4], "itemsize": 24})
_SYMBOLS, _FUNCTION = 2, 2  # types of a section and of a symbol

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


def functions(cubin: bytes, names: Iterable[str]) -> list[int]:
    """Returns the indices of the functions with these names in the symbol table of a cubin, as nvdisasm numbers them.

    Raises:
        ValueError: The file is truncated, or points beyond its end.
    """
    header = _rows(cubin, _HEADER, 0, 1)[0]
    start = int(header["sections"])
    # A file of 65,280 sections or more has their number in the first one.
    count = int(header["count"]) or int(_rows(cubin, _SECTION_HEADER, start, 1)["size"][0])
    sections = _rows(cubin, _SECTION_HEADER, start, count)
    indices: list[int] = []
    for section in sections[sections["type"] == _SYMBOLS]:
        symbols = _rows(cubin, _SYMBOL, int(section["offset"]), int(section["size"]) // _SYMBOL.itemsize)
        texts = sections[int(section["link"]) % count]
        text = cubin[int(texts["offset"]) : int(texts["offset"]) + int(texts["size"])]
        places = [text.find(f"\0{name}\0".encode()) + 1 for name in names]
        found = np.isin(symbols["name"], [place for place in places if place])
        indices += np.flatnonzero(found & (symbols["type"] & 15 == _FUNCTION)).tolist()
    return indices


def _rows(cubin: bytes, kind: np.dtype[np.void], start: int, count: int) -> NDArray[np.void]:
    if start + count * kind.itemsize > len(cubin):
        raise ValueError("a table lies beyond its end")
    return np.frombuffer(cubin, kind, count, start)
