"""All variants of a family as nvcc makes them, for tests of their machine code."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from warplog.machine import toolchain
from warplog.measure import build


def compilers():
    """nvcc and cuobjdump; the test is skipped where one is missing."""
    tools = toolchain.find("nvcc"), toolchain.find("cuobjdump")
    for tool in tools:
        if not tool.ok:
            pytest.skip(f"{tool.name}: {tool.remedy}")
    return tools


def builder(family, tmp_path_factory, names=None):
    """build_all(arch): folder and record of every variant, or of those named; skipped without the tools."""
    nvcc, cuobjdump = compilers()

    def all_of(arch):
        root = tmp_path_factory.mktemp(arch)

        def one(variant):
            folder = root / variant.name
            return variant.name, (folder, build.build_variant(family, variant, arch, nvcc, cuobjdump, folder))

        with ThreadPoolExecutor(2) as pool:
            return dict(pool.map(one, [v for v in family.variants if names is None or v.name in names]))

    return all_of
