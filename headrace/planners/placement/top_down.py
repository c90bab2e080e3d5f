"""Top-Down (paper 001, section 3.2): a query starts at the top of the hierarchy, over coarse estimates of all
the network, and its views go down to ever smaller and better known portions of it.

At most h * join orders * max_cs^(K-1) plans are compared (Theorem 2)."""

from __future__ import annotations

from headrace.planners.placement.by_hierarchy import ByHierarchy
from headrace.planners.placement.views import Source, Views


class TopDown(ByHierarchy):
    name = "top-down"

    def plan(self, views: Views) -> Source:
        return views.instantiate(self.hierarchy.top, views.every, [], views.sources, views.query.sink)
