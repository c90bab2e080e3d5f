"""What gRPC, Spark and Java say of an error, cut down to what tells its cause."""

from __future__ import annotations

import re

_CONDITION = re.compile(r"\[[A-Z_.]+\][^\n]*")
"""Spark's own way to say it; the last one of a text is the innermost."""
_CALL = re.compile(r"status = StatusCode\.(\w+)\s+details = \"(.*?)\"\s*(?:debug_error_string|\Z)", re.DOTALL)
"""An error of gRPC as text, whose first line says nothing."""
_INNERMOST = "Caused by: "
_GONE = re.compile(r"INVALID_HANDLE\.SESSION_|StatusCode\.UNAVAILABLE")


def cause_of(error: BaseException, most: int = 500) -> str:
    """In one line of at most so many characters, without stack and plan."""
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    if callable(code) and callable(details):
        return _joined(code().name, str(details() or ""))[:most]
    text = str(getattr(error, "desc", "") or error).strip()
    conditions = _CONDITION.findall(text)
    if conditions:
        return str(conditions[-1])[:most]
    call = _CALL.search(text)
    if call is not None:
        return _joined(call[1], call[2])[:most]
    return (_told(text) or repr(error))[:most]


def is_site_gone(error: BaseException) -> bool:
    """Whether the server, or the session that it had for us, is there no more: an error that tells nothing of
    the job that met it."""
    status = getattr(error, "getGrpcStatusCode", None)
    code = f"StatusCode.{status().name}" if callable(status) else ""
    return _GONE.search(f"{code} {getattr(error, 'desc', '') or error}") is not None


def _joined(code: str, details: str) -> str:
    told = _told(details)
    return f"{code}: {told}" if told else code


def _told(text: str) -> str:
    """The first line, and the innermost cause where a stack follows."""
    lines = [line.strip() for line in text.strip().splitlines()]
    inner = [line.removeprefix(_INNERMOST) for line in lines[1:] if line.startswith(_INNERMOST)]
    return ": ".join(part.rstrip(":") for part in (*lines[:1], *inner[-1:]))
