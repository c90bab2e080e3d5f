"""What gRPC, Spark, Java and Python say of an error, cut down to what tells its cause."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile

_CONDITION = re.compile(r"\[[A-Z_.]+\][^\n]*")
"""Spark's own way to say it; the last one of a text is the innermost."""
_CALL = re.compile(r"status = StatusCode\.(\w+)\s+details = \"(.*?)\"\s*(?:debug_error_string|\Z)", re.DOTALL)
"""An error of gRPC as text, whose first line says nothing."""
_INNERMOST = "Caused by: "
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r"[ \t]")
"""Lines of a traceback that are not yet the exception."""
_AFTER = re.compile(
    r"\s*SQLSTATE:|===|JVM stacktrace:|Driver stacktrace:|\s+at |Caused by: |\s+\.\.\. \d+ more"
)
"""What Spark and Java write behind the exception of a Python worker."""
_OURS = re.compile(r"headrace\.errors\.\w+: ")
_WAITED = re.compile(r"Exception thrown in (?:awaitResult|Future\.get):?[ \t]*")
"""What Spark says where one of its threads waited for another: not what happened to that one."""
_GONE = re.compile(r"INVALID_HANDLE\.SESSION_|StatusCode\.UNAVAILABLE|NO_ACTIVE_SESSION|Channel closed!")
"""All jobs of a site share a client: once it has heard that the session is gone, or was closed because the
site was, it tells the others that there is none."""


def cause_of(error: BaseException, most: int = 500) -> str:
    """In one line of at most so many characters, without stack and plan."""
    code, details = getattr(error, "code", None), getattr(error, "details", None)
    if callable(code) and callable(details):
        return _joined(code().name, str(details() or ""))[:most]
    text = str(getattr(error, "desc", "") or error).strip()
    raised = _raised(text)
    if raised:
        return raised[:most]
    conditions = _CONDITION.findall(text)
    if conditions:
        said = str(conditions[-1])
        return _WAITED.sub(lambda waited: _behind(error, text) or waited[0], said, count=1)[:most]
    call = _CALL.search(text)
    if call is not None:
        return _joined(call[1], call[2])[:most]
    return (_told(text) or repr(error))[:most]


def is_site_gone(error: BaseException) -> bool:
    """Whether the server, or the session that it had for us, is there no more: an error, or what it was
    raised from, that tells nothing of the job that met it."""
    status = getattr(error, "getGrpcStatusCode", None)
    code = f"StatusCode.{status().name}" if callable(status) else ""
    gone = _GONE.search(f"{code} {getattr(error, 'desc', '') or error}") is not None
    return gone or (error.__cause__ is not None and is_site_gone(error.__cause__))


def _behind(error: BaseException, text: str) -> str:
    """The first line of the innermost cause that Spark passed on, with a blank; empty: it passed on none."""
    inner: object = error
    while getattr(inner, "_cause", None) is not None:
        inner = getattr(inner, "_cause")  # noqa: B009  Spark gives no other way to it.
    told = "" if inner is error else str(getattr(inner, "_desc", "") or inner)
    lines = told.strip().splitlines() or [
        line.strip().removeprefix(_INNERMOST) for line in reversed(text.splitlines()) if _INNERMOST in line
    ]
    return f"{lines[0].strip()} " if lines else ""


def _joined(code: str, details: str) -> str:
    told = _told(details)
    return f"{code}: {told}" if told else code


def _told(text: str) -> str:
    """What Python raised, or the first line, and the innermost cause where a stack follows."""
    raised = _raised(text)
    if raised:
        return raised
    lines = [line.strip() for line in text.strip().splitlines()]
    inner = [line.removeprefix(_INNERMOST) for line in lines[1:] if line.startswith(_INNERMOST)]
    return ": ".join(part.rstrip(":") for part in (*lines[:1], *inner[-1:]))


def _raised(text: str) -> str:
    """The exception at the end of the last traceback of Python, with all lines of its message and its notes:
    a worker sends nothing else, and Spark puts only words of its own around it. Empty: there is none."""
    _, found, rest = text.rpartition(_TRACEBACK)
    lines = rest.splitlines()[1:] if found else []
    said = list(takewhile(lambda line: not _AFTER.match(line), dropwhile(_FRAME.match, lines)))
    parts = [line.strip() for line in said if line.strip()]
    return _OURS.sub("", "; ".join(parts), count=1).strip()
