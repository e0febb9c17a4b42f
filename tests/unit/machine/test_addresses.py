"""Address randomisation is off for programs started in the block, and unchanged afterwards."""

import subprocess

import pytest

from warplog.machine import aslr


def personality() -> int:
    return int(subprocess.run(["cat", "/proc/self/personality"], capture_output=True, check=True).stdout, 16)


def test_inside_addresses_are_fixed_and_afterwards_as_before() -> None:
    before = personality()
    with aslr.fixed() as done:
        if not done:
            pytest.skip("this container forbids personality(2)")
        assert personality() == before | 0x0040000
    assert personality() == before


def test_an_error_inside_puts_them_back() -> None:
    before = personality()
    with pytest.raises(KeyError), aslr.fixed():
        raise KeyError
    assert personality() == before


def test_where_it_is_forbidden_programs_run_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aslr.ctypes, "CDLL", lambda _: type("C", (), {"personality": lambda *_: -1})())
    with aslr.fixed() as done:
        assert done is False
        assert personality() >= 0
