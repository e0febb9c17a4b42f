"""The files that nvcc read for a library, from the list that it writes itself (`-MMD -MF`)."""

import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path

# nvcc puts this header in front of every source; the folder that it is in contains those of CUDA.
_CUDA_HEADER = "cuda_runtime.h"
_WORD = re.compile(r"(?:\\.|[^\s\\])+")


def read(listing: Path, generated: Path, *further: Path) -> list[Path]:
    """Returns the files in lists of nvcc, without those of CUDA and the system, in the order in which they were read.

    Paths are relative to the working directory, as nvcc was given them, or absolute.

    Args:
        listing: the list, a rule for make.
        generated: the translation unit, which is left out.
        further: the lists of further sources.
    """
    files = list(dict.fromkeys(file for file_list in (listing, *further) for file in _listed(file_list)))
    cuda = {file.parent for file in files if file.name == _CUDA_HEADER}
    return [file for file in files if file != generated and not cuda & {*file.parents}]


def _listed(listing: Path) -> list[Path]:
    text = listing.read_text(encoding="utf-8", errors="replace").replace("\\\n", " ")
    words = _WORD.findall(re.split(r"\s*:\s+", text, maxsplit=1)[-1])
    return [Path(os.path.normpath(re.sub(r"\\(.)", r"\1", word).replace("$$", "$"))) for word in words]


def unforeseen(read_files: Sequence[Path], foreseen: Collection[Path]) -> list[Path]:
    """Returns the files that the compiler read but that are not `foreseen`: a change of them would go unnoticed."""
    paths = {os.path.realpath(file) for file in foreseen}
    return [file for file in read_files if os.path.realpath(file) not in paths]
