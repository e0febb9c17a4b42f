"""A process that ends at any change of a folder, without ending the test's own."""

import os
from collections.abc import Callable
from typing import Any

import pytest


class Stopped(BaseException):
    """The process ends here."""


def stop_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Lets only `step` changes of a folder happen; the next one raises Stopped."""
    left = iter(range(step))

    def counted(change: Callable[..., object]) -> Callable[..., object]:
        def stopping(*arguments: Any, **options: Any) -> object:
            if next(left, None) is None:
                raise Stopped
            return change(*arguments, **options)

        return stopping

    for name in ("mkdir", "rename", "replace", "rmdir", "unlink"):
        patch.setattr(os, name, counted(getattr(os, name)))
