"""Bottom-Up (paper 001, section 3.3): a query starts in the cluster of its sink; what is found there is
joined there (V_local), and the rest (V_remote) is asked for one level up, until all is found.

V_local is then one stream to all levels above: plans that take it apart again are not looked at, which is why
the answer can be arbitrarily worse than the best (a selective join of one local stream with a heavy remote
one, for instance).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headrace.planners.placement.by_hierarchy import ByHierarchy
from headrace.planners.placement.hierarchy import Cluster
from headrace.planners.placement.views import NoWay, Source, Views


class BottomUp(ByHierarchy):
    name = "bottom-up"

    def plan(self, views: Views) -> Source:
        view: Source | None = None
        for cluster in self.hierarchy.path(views.query.sink):
            local = _local(views.sources, cluster, view)
            # A stream that must be widened at its origin is no local one: it may be read, but not relied on.
            streams = _most((one.streams for one in local if one is view or not one.extra), views)
            if streams == views.every:
                return views.instantiate(cluster, streams, [], local, views.query.sink)
            local = [source for source in local if source.streams | streams == streams]
            if streams and self.decides(views, cluster, streams, local):
                view = views.instantiate(cluster, streams, [], local, cluster.coordinator)
        raise NoWay

    def decides(self, views: Views, cluster: Cluster, streams: int, local: Sequence[Source]) -> bool:
        """Whether V_local is made in this cluster; if not, all is left to the next level."""
        return True


def _local(sources: Sequence[Source], cluster: Cluster, view: Source | None) -> list[Source]:
    """What can be read below the cluster. A view from below is one stream now: a source with some of its
    streams, but not all, is of no use any more."""
    found = [source for source in sources if source.site in cluster.member_of]
    if view is None:
        return found
    return [view] + [one for one in found if one.streams & view.streams in (0, view.streams)]


def _most(available: Iterable[int], views: Views) -> int:
    """The most streams that can be had together; of those, what comes to the least data."""
    together = {0}
    for streams in sorted(set(available)):
        together |= {streams | others for others in together if not streams & others}
    return min(together, key=lambda found: (-found.bit_count(), float(views.rates[found]), found))
