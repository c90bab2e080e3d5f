"""What a library prints past Python does not end up in the answer."""

from __future__ import annotations

import ctypes
import os

import pytest

from headrace.cli.own_stdout import own_stdout

C = ctypes.CDLL(None)


def test_what_c_prints_is_thrown_away(capfd: pytest.CaptureFixture[str]) -> None:
    C.puts(b"before")
    print("python before")
    with own_stdout():
        C.puts(b"within")
        os.write(1, b"raw\n")
        os.write(2, b"to stderr\n")
    print("python after")
    C.puts(b"after")
    C.fflush(None)
    shown = capfd.readouterr()
    assert sorted(shown.out.splitlines()) == ["after", "before", "python after", "python before"]
    assert shown.err == "to stderr\n"


def test_it_is_given_back_after_an_error(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="no"), own_stdout():
        C.puts(b"within")
        raise ValueError("no")
    os.write(1, b"after\n")
    assert capfd.readouterr().out == "after\n"


def test_without_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(descriptor: int) -> int:
        raise OSError(descriptor)

    monkeypatch.setattr(os, "dup", closed)
    with own_stdout():
        pass
