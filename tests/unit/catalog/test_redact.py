from __future__ import annotations

import pytest

from headrace.catalog.redact import redact


@pytest.mark.parametrize(
    ("endpoint", "shown"),
    [
        ("sc://host:1/;token=abc", "sc://host:1/;token=***"),
        ("sc://host:1/;use_ssl=true;token=abc;user_id=me", "sc://host:1/;use_ssl=true;token=***;user_id=me"),
        ("sc://host:1/;Token=a&b?c;x=1", "sc://host:1/;Token=***;x=1"),
        ("sc://host/;x-api-key=k", "sc://host/;x-api-key=***"),
        ("sc://host/;db.password=p=q", "sc://host/;db.password=***"),
        ("spark://me:pass@host:7077", "spark://me:***@host:7077"),
        ("spark://me:p@ss@host:7077", "spark://me:***@host:7077"),
        ("k8s://https://h:6443?access_token=abc", "k8s://https://h:6443?access_token=***"),
        ("local[*]", "local[*]"),
        ("spark://host:7077", "spark://host:7077"),
        ("sc://token-server:1/;user_id=me", "sc://token-server:1/;user_id=me"),
    ],
)
def test_redact(endpoint: str, shown: str) -> None:
    assert redact(endpoint) == shown
    assert redact(shown) == shown
