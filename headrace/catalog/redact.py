"""Endpoints without their secrets, for anything that is printed or stored.

When in doubt more is hidden: a value runs to the next `;`, a login's password to the last `@`.
"""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"([;?&/][\w.-]*(?:token|passw|pwd|secret|credential|auth|api[_-]?key)[\w.-]*=)[^;\s]*", re.IGNORECASE
)
_LOGIN = re.compile(r"(://[^/@:\s]*:)[^/\s]+(@)")


def redact(endpoint: str) -> str:
    """The endpoint with the values of tokens and passwords replaced by ***."""
    return _LOGIN.sub(r"\1***\2", _SECRET.sub(r"\1***", endpoint))
