"""The end of the process: nothing that Spark's client leaves behind keeps it from coming."""

from __future__ import annotations

import subprocess
import sys

HANGS = """
import atexit, sys, threading, types
sys.modules["grpc"] = types.ModuleType("grpc")
atexit.register(threading.Event().wait)
sys.argv = ["headrace", {argument!r}]
from headrace.cli.main import main
main()
"""


def test_the_command_ends_though_the_end_of_python_would_hang() -> None:
    for argument, code in (("--version", 0), ("--versoin", 2)):
        command = [sys.executable, "-c", HANGS.format(argument=argument)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=50)
        assert ended.returncode == code
        assert ("headrace " in ended.stdout) == (code == 0) and bool(ended.stderr) == (code == 2)
