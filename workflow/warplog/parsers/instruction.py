"""Reads one instruction of SASS, as cuobjdump and Nsight Compute disassemble it: "@!P0 LDG.E.128 R4, [R2.64+0x10]"."""

import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import takewhile

_WORDS = re.compile(r"(@!?\w+ )?(\S+) ?(.*)", re.DOTALL)
_REGISTER = re.compile(r"[-~|]*R(\d+)(?:\.reuse)?\|?")
_GENERAL = re.compile(r"\bR\d")
_NAMED = re.compile(r"\b(UR|UP|R|P)(\d+)(\.64)?")
_NUMBERED = re.compile(r"\b(UR|UP|R|P|B|SB)\d+\b")
_LITERAL = re.compile(r"-?\b(?:0x[0-9a-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)\b")
_CARRY = re.compile(r"U?P[\dT]")
_WIDTH = re.compile(r"\.(?:[US]?(8|16|64|128))\b")
_WIDE = re.compile(r".*\.(?:WIDE|64)\b.*|CS2R")  # writes two registers; SHF.L.U64.HI only one
_MATRICES = re.compile(r"\.M(?:T)?88(?:\.([24]))?\b")  # of LDSM, STSM: 32 bits a lane for each
_WORD_BITS = 32

KINDS = {
    "ffma": "FFMA FFMA2",
    "float": "FADD FMUL FMNMX FSETP FSET FSEL FCHK FSWZADD MUFU F2F F2FP",
    "half": "HFMA2 HADD2 HMUL2 HMNMX2 HSETP2 HSET2",
    "double": "DFMA DADD DMUL DSETP DMNMX",
    "hmma": "HMMA IMMA DMMA BMMA",
    "hgmma": "HGMMA IGMMA QGMMA BGMMA",
    "ldg": "LDG",
    "stg": "STG",
    "generic": "LD ST",
    "local": "LDL STL",
    "lds": "LDS LDSM",
    "sts": "STS STSM STAS",
    "ldgsts": "LDGSTS",
    "tma": "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED UTMACCTL UTMACMDFLUSH",
    "atomic": "ATOM ATOMG ATOMS RED REDG REDUX",
    "shuffle": "SHFL",
    "sync": "BRA BRX BRXU JMP JMX CALL RET EXIT KILL BPT BSSY BSYNC BREAK YIELD NOP BAR B2R BMOV WARPSYNC WARPGROUP"
    " SYNCS ARRIVES DEPBAR LDGDEPBAR MEMBAR ERRBAR CGAERRBAR UCGABAR_ARV UCGABAR_WAIT FENCE CCTL ELECT NANOSLEEP"
    " USETMAXREG ACQBULK VOTE VOTEU",
}
_KIND = {opcode: kind for kind, opcodes in KINDS.items() for opcode in opcodes.split()}
MEMORY = ("ldg", "stg", "generic", "local", "lds", "sts", "ldgsts")
# Arithmetic on whole numbers and addresses, moves, conversions to them, constants and predicates.
_INTEGER = re.compile(r"U?[ILPSV]\w*|U?(?:MOV|BMSK|BREV|FLO|F2I)|U?R2\w+|CS2R")


@dataclass(frozen=True)
class Instruction:
    """One instruction.

    Attributes:
        predicate: "@!P0"; "" without one.
        opcode: with its modifiers, `LDG.E.128.CONSTANT`.
        operands: as they are written, targets first.
    """

    predicate: str
    opcode: str
    operands: tuple[str, ...]

    @cached_property
    def base(self) -> str:
        """The opcode without modifiers."""
        return self.opcode.partition(".")[0]

    @cached_property
    def kind(self) -> str:
        """What it does: a key of KINDS, `integer` for whole numbers, addresses and moves, or `other`."""
        kind = _KIND.get(self.base)
        if kind == "half" and not any(_GENERAL.search(operand) for operand in self.operands[1:]):
            return "integer"  # ptxas moves constants with HFMA2.MMA R1, -RZ, RZ, 0, 0
        if kind:
            return kind
        return "integer" if _INTEGER.fullmatch(self.base) else "other"

    @cached_property
    def shape(self) -> str:
        """The instruction without what a compiler allocates: numbers of registers, addresses, constants, reuse."""
        operands = _NUMBERED.sub(r"\1", ", ".join(self.operands).replace(".reuse", ""))
        return f"{self.opcode} {_LITERAL.sub('#', operands)}"

    @cached_property
    def bits(self) -> int:
        """The width of a load or store in bits a lane; 0 for another instruction."""
        if self.kind not in MEMORY:
            return 0
        if matrices := _MATRICES.search(self.opcode):
            return _WORD_BITS * int(matrices[1] or 1)
        widths = _WIDTH.findall(self.opcode)
        return int(widths[-1]) if widths else _WORD_BITS

    @property
    def reused(self) -> int:
        """The number of its operands that stay in the reuse cache for the next instruction."""
        return sum(".reuse" in operand for operand in self.operands)

    @cached_property
    def target(self) -> int | None:
        """The address that a branch goes to; None for another instruction and for a computed address."""
        if self.base not in ("BRA", "JMP") or not self.operands:
            return None
        address = re.fullmatch(r"0x([0-9a-f]+)", self.operands[-1].split()[-1])
        return int(address[1], 16) if address else None

    @property
    def goes_on(self) -> bool:
        """Whether the next instruction can follow: not behind a branch or an exit without a condition."""
        if self.predicate or self.base not in ("BRA", "JMP", "BRX", "BRXU", "JMX", "RET", "EXIT", "KILL"):
            return True
        return self.target is not None and len(self.operands) > 1  # `BRA UP0, 0x80`, `BRA.DIV UR4, 0x80`

    @cached_property
    def sources(self) -> tuple[int | None, ...]:
        """The numbers of the source registers of an instruction with one target; None for another kind of operand."""
        registers = [_REGISTER.fullmatch(operand) for operand in self.operands[1:]]
        return tuple(int(register[1]) if register else None for register in registers)

    @cached_property
    def _targets(self) -> int:
        """How many operands are targets: the first one, a register behind a predicate, carries behind a register."""
        first, *others = self.operands or ("",)
        if self.base in ("SHFL", "ATOM", "ATOMG", "ATOMS", "LOP3", "ULOP3", "R2UR") and first.startswith(
            ("P", "UP")
        ):
            return 2
        if not _NAMED.fullmatch(first):
            return 0
        carries = takewhile(_CARRY.match, others if self.kind == "integer" and "P" not in first else ())
        return 1 + len(list(carries))

    @cached_property
    def written(self) -> frozenset[str]:
        """The registers and predicates that it writes, as "R4"; of a product of matrices only the first one."""
        is_wide = self.kind == "double" or _WIDE.fullmatch(self.opcode)
        bits = self.bits or (2 * _WORD_BITS if is_wide else _WORD_BITS)
        targets = (_NAMED.fullmatch(operand) for operand in self.operands[: self._targets])
        return frozenset().union(*(_run(target, bits) for target in targets if target))

    @cached_property
    def read(self) -> frozenset[str]:
        """The registers and predicates that it needs; of wide arithmetic only the first one of each operand."""
        sources = self.operands[self._targets :]
        stored = _NAMED.fullmatch(sources[-1]) if sources and not self._targets else None
        named = (match for text in (self.predicate, *sources) for match in _NAMED.finditer(text))
        pairs = (_run(match, 2 * _WORD_BITS if match[3] else _WORD_BITS) for match in named)
        return frozenset().union(*pairs, _run(stored, self.bits) if stored else ())


def _run(first: re.Match[str], bits: int) -> frozenset[str]:
    """Returns the names of neighbouring registers that hold so many bits; one at least."""
    start = int(first[2])
    return frozenset(f"{first[1]}{number}" for number in range(start, start + max(1, bits // _WORD_BITS)))


@lru_cache(maxsize=1 << 16)
def parse(text: str) -> Instruction:
    """Returns the instruction in a line of SASS without its address; one without any text is an empty `NOP`."""
    words = _WORDS.fullmatch(" ".join(text.replace(";", " ").split()))
    if words is None:
        return Instruction("", "NOP", ())
    operands = tuple(operand for operand in words[3].split(", ") if operand)
    return Instruction((words[1] or "").strip(), words[2], operands)
