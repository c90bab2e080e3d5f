"""Clusters of hosts: who is looked at, and that plans hold when only a few are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from headrace.planners.admission.check import violations
from headrace.planners.admission.ours import Ours
from headrace.planners.admission.ours_clusters import SIZE, Clusters
from headrace.planners.admission.ours_prices import Tuning
from headrace.planners.admission.problem import Options
from headrace.planners.admission.state import State
from headrace.planners.admission.workload import Setup, paper_problem

MANY = Setup(hosts=200, streams=400, queries=80, bandwidth=60.0)


def test_homes_and_the_clusters_with_most_of_a_query_are_looked_at() -> None:
    problem = paper_problem(0, MANY)
    clusters = Clusters(State(problem))
    for query in problem.queries:
        homes = {problem.streams[name].host for name in query.streams}
        seen = set(clusters.candidates(query.streams).tolist())
        assert homes <= seen
        assert len(seen) < len(problem.hosts)
        groups = [home // SIZE for home in homes]
        fullest = max(groups, key=groups.count)
        if groups.count(fullest) > 1:
            assert set(range(fullest * SIZE, min(200, (fullest + 1) * SIZE))) <= seen


def test_wide_links_make_a_cluster() -> None:
    """Even and odd hosts: wide links among each, narrow ones between."""
    parity = np.arange(2 * SIZE) % 2
    width = np.where(parity[:, None] == parity, 50.0, 1.0)
    problem = replace(paper_problem(0, replace(MANY, hosts=2 * SIZE)), link_bandwidth=width)
    clusters = Clusters(State(problem))
    assert [set((members % 2).tolist()) for members in clusters._members] == [{0}, {1}]


def test_plans_hold_and_few_queries_are_lost() -> None:
    """In clusters first, the others after that: as good as all hosts at once, but for one in fifty."""
    setup = replace(MANY, hosts=100, streams=60, cpu=40.0)
    problem = paper_problem(1, setup)
    admitted = {}
    for clustered in (50, 1000):
        planner = Ours(problem, Options(), lambda: 0.0, Tuning(clustered=clustered))
        names = [query.id for query in problem.queries if planner.submit(query).admitted]
        assert violations(problem, planner.plan, names) == []
        admitted[clustered] = len(names)
    assert admitted[50] >= 0.98 * admitted[1000]
