"""NPC, net present cost (paper 001, section 3.4): Bottom-Up that joins what is local only where this promises
to be no dearer than to leave the decision to the next level.

    Gamma_l = C_l + sum over i > l of p_i * lambda(V_remote) * d_i     decide here
    Omega_l =       sum over i > l of p_i * lambda(Q) * d_i            decide later

C_l = what V_local costs within the cluster, p_i = the fraction of the network visible at level i. V_local is
made at level l if Omega_l >= Gamma_l.
"""

from __future__ import annotations

from collections.abc import Sequence

from headrace.planners.placement.bottom_up import BottomUp
from headrace.planners.placement.hierarchy import Cluster
from headrace.planners.placement.views import Source, Views


class Npc(BottomUp):
    name = "npc"

    def decides(self, views: Views, cluster: Cluster, streams: int, local: Sequence[Source]) -> bool:
        ahead = self.ahead(views, cluster)
        local_view = views.search(cluster, streams, [], local, cluster.coordinator)
        gamma = local_view.cost + float(views.rates[views.every ^ streams]) * ahead
        omega = float(views.rates[views.every]) * ahead
        if omega < gamma:
            views.tally.plans += local_view.plans  # they were compared, for nothing
        return omega >= gamma

    def ahead(self, views: Views, cluster: Cluster) -> float:
        """sum over i > l of p_i * d_i: how far a stream may have to come from above, per unit of data."""
        above = self.hierarchy.path(views.query.sink)[cluster.level :]
        every = len(self.hierarchy.sites)
        return sum(len(one.sites) / every * self.hierarchy.spreads[one.level - 1] for one in above)
