"""The paper's cluster (V-B) as a problem: 15 hosts, 10 Mbps each, 300 streams of 10 Kbps, 250 queries.

Rates are in Kbps here. Queries are joins of two and three streams in equal parts; selectivities and Zipf's
law as everywhere in section V. "Each host could support up to 15 2- and 3-way joins" is read as 15 joins of
two base streams: then 250 queries are more than the cluster can take, as Fig. 7 shows. Read as 15 whole
queries (a fourth more CPU), nearly all of them would fit.
"""

from __future__ import annotations

from headrace.planners.admission.problem import AdmissionProblem
from headrace.planners.admission.workload import Setup, paper_problem

JOINS_OF_A_HOST = 15
CLUSTER = Setup(
    hosts=15,
    streams=300,
    queries=250,
    bandwidth=10_000.0,
    cpu=JOINS_OF_A_HOST * 2 * 10.0,
    link=10_000.0,
    rate=10.0,
    ways=(2, 3),
)
EPOCH = 50
"""Queries that are submitted together."""


def cluster_problem(seed: int, setup: Setup = CLUSTER) -> AdmissionProblem:
    return paper_problem(seed, setup)
