"""The final level of a tree: fragments in, the windows of every query out. Pure: no Spark, no clock."""

from headrace.runtime.windows.bucket import Bucket
from headrace.runtime.windows.kept import Span, covers, valid_from
from headrace.runtime.windows.partials import Needs, needs_of, unsupported
from headrace.runtime.windows.rows import wire_type
from headrace.runtime.windows.spec import Output, Partial, PartialKind, QuerySpec, TreeSpec
from headrace.runtime.windows.weaver import Advanced, Weaver

__all__ = [
    "Advanced",
    "Bucket",
    "Needs",
    "Output",
    "Partial",
    "PartialKind",
    "QuerySpec",
    "Span",
    "TreeSpec",
    "Weaver",
    "covers",
    "needs_of",
    "unsupported",
    "valid_from",
    "wire_type",
]
