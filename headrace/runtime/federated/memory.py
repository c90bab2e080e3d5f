"""How much memory the database beside a stream has. Without an import: planning wants it, too."""

from __future__ import annotations

BYTES = 10**9
