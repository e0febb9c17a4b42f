"""The loops of a kernel in a disassembly."""

import re

_LINE = re.compile(r"^\s+/\*([0-9a-f]{4,})\*/\s+(?:@!?\w+\s+)?([A-Z][\w.]*) ?([^;]*);", re.MULTILINE)


def opcodes_of_loops(text):
    """The opcodes of each loop in a dump, the shortest loop first."""
    loops = []
    for function in text.split("Function : ")[1:]:
        code = _LINE.findall(function)
        for place, opcode, rest in code:
            target = rest.split()[-1] if rest else ""
            if opcode == "BRA" and target.startswith("0x") and int(target, 16) < int(place, 16):
                body = [o for at, o, _ in code if int(target, 16) <= int(at, 16) <= int(place, 16)]
                loops.append(" ".join(body))
    return sorted(loops, key=len)
