"""Asking sites that are not there, or do not answer. Ones that do are in spark/."""

from __future__ import annotations

import socket
import time
import uuid

import pytest

from headrace.runtime.spark.health import Checker, SiteDown, place
from headrace.runtime.spark.remote import Left, address_of, named

CHECKER = Checker(time.monotonic, lambda: str(uuid.uuid4()))


def test_nobody_there_is_said_at_once() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = CHECKER.check(f"sc://127.0.0.1:{port}", 5)
    assert not found.answers and "refused" in found.reason.lower() and found.seconds < 2


def test_a_lost_site_is_told_without_its_secrets() -> None:
    text = SiteDown("edge", "sc://host:1/;token=s3cret", "it is gone", "12:00").render()
    assert "edge" in text and "since 12:00" in text and "checkpoints" in text and "s3cret" not in text


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("sc://a:4", "a", 4), ("sc://b", "b", 15002), ("sc://[::1]:7/;token=x", "::1", 7)],
)
def test_where_an_address_leads(address: str, host: str, port: int) -> None:
    assert place(address) == (host, port)


def test_a_session_is_named_in_its_address_and_found_with_its_secrets() -> None:
    assert named("sc://a:1", "S") == "sc://a:1/;session_id=S;user_id=headrace"
    assert named("sc://a:1/", "S") == "sc://a:1/;session_id=S;user_id=headrace"
    assert named("sc://a:1/;token=t", "S") == "sc://a:1/;token=t;session_id=S;user_id=headrace"
    assert named("sc://a:1/;user_id=me", "S") == "sc://a:1/;user_id=me;session_id=S"
    left = Left("S", "sc://a:1/;token=***")
    assert address_of(left, ["sc://b:1", "sc://a:1/;token=t"]) == "sc://a:1/;token=t"
    assert address_of(left, []) == "sc://a:1/;token=***"
