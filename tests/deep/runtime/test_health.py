"""Asking sites that take connections and do not answer. It loads Spark's client, which takes seconds."""

from __future__ import annotations

import socket

from tests.unit.runtime.test_health import CHECKER


def test_one_that_takes_connections_and_says_nothing_is_given_up_in_time() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"sc://127.0.0.1:{silent.getsockname()[1]}"
        found = CHECKER.check_all({"a": address, "b": address}, 0.5)
    assert not found["a"].answers and not found["b"].answers
    assert max(one.seconds for one in found.values()) < 3
