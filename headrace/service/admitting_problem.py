"""Joins of a project as an admission problem (planners/admission): may they be done, and where?

    hosts      the sites, with what is left of each resource that counts (utilisation.py)
    links      of the project, each direction with what is left, if they are the cheapest way between their
               ends; other pairs of sites have none, so what goes further is passed on by the sites between
    streams    the leaves of the queries as they are cut at their homes, in bytes per second
    rates      of every set of them, by the placement problem
    operators  cores per byte that a join reads: the price of a row over the middle width of the leaves' rows

The planner lets any host give an answer to the client. Here it has to be the query's own site. So what a site
wants has an *anchor* there: a stream that is too wide for any link, and so can only be joined where it is. A
query joins its streams with the anchor, which brings them to its site; the CPU of that last join is added to
what the site has left. Queries that want the same there have one anchor, all others their own: with one for a
site, a query might be made of another one's last join. What several queries want of a leaf is taken together.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from headrace.catalog.model import Project
from headrace.planners.admission.problem import AdmissionProblem, Base, HostLimits, Query
from headrace.planners.placement.problem import Query as Placing
from headrace.planners.placement.rates import Held, data_rate, together, wanted
from headrace.service.calibration_file import costs_of
from headrace.service.placing_flows import Paths
from headrace.service.placing_problem import Placeable
from headrace.service.utilisation import Key

_LITTLE = 1e-3
"""Of the least stream: what is left of a query's answer after its last join."""


def anchor(site: str, streams: Collection[str]) -> str:
    """No other stream is called so."""
    return f"@{site}/{'+'.join(sorted(streams))}"


def in_words(why: str, problem: AdmissionProblem) -> str:
    """A planner's reason without the anchors: what a site needs and has of its cores is with the last joins,
    what is missing is not."""
    for name in problem.streams:
        why = why.replace(f"{name}*", "") if name.startswith("@") else why
    why = re.sub(r"; @\S+ comes nearest over [^()]*\([^()]*\)", "", why)
    return re.sub(r"(cpu of host \S+ )\([^(),]* needed of [^(),]*, ", r"\1(", why)


def admission_problem(
    project: Project, found: Placeable, left: Mapping[Key, float], barred: Collection[str] = ()
) -> AdmissionProblem:
    """`left` has only what counts; `barred` are sites that join nothing; bytes may pass them."""
    problem, scale = found.problem, found.scale
    sites = [str(site) for site in problem.network.sites]
    holding = _holding(found)
    rates = {
        frozenset(part): data_rate(problem, holding, part) * scale
        for query in problem.queries
        for size in range(1, len(query.streams) + 1)
        for part in combinations(sorted(query.streams), size)
    }
    little, ample = _LITTLE * min(rates.values()), max(10, len(sites)) * sum(rates.values())
    anchors = {q.id: anchor(sites[q.sink], q.streams) for q in problem.queries}
    asked = [Query(q.id, frozenset(q.streams) | {anchors[q.id]}) for q in problem.queries]
    streams = {
        name: Base(name, stream.site, rates[frozenset({name})]) for name, stream in problem.streams.items()
    }
    streams |= {anchors[q.id]: Base(anchors[q.id], q.sink, 2 * ample) for q in problem.queries}
    # Where rows cost nothing anywhere, joins still must not be put on a site that is barred.
    price = max((costs_of(project, site)[0].plain_row for site in sites), default=0.0) or 1.0
    cost = price * _rows_per_byte(holding, rates)
    given = {(frozenset(q.streams), sites[q.sink]) for q in problem.queries}
    last = {
        site: sum(cost * (rates[part] + 2 * ample) for part, sink in given if sink == site) for site in sites
    }
    return AdmissionProblem(
        tuple(
            HostLimits(
                site,
                _cores(project, site, left, price, barred) + last[site],
                min(left.get(("in", site), ample), ample),
                min(left.get(("out", site), ample), ample) + little * len(asked),
            )
            for site in sites
        ),
        _links(found, sites, left, ample),
        streams,
        {part: rate for part, rate in rates.items() if len(part) > 1}
        | {query.streams: little for query in asked},
        tuple(asked),
        operator_cost=cost,
    )


def _holding(found: Placeable) -> dict[str, Held]:
    problem = found.problem
    every = [wanted(problem, query) for query in problem.queries]
    return {name: together(problem, [one[name] for one in every if name in one]) for name in problem.streams}


def _rows_per_byte(holding: Mapping[str, Held], rates: Mapping[frozenset[str], float]) -> float:
    sent = {name: rates[frozenset({name})] for name in holding}
    rows = sum(rate / holding[name].width for name, rate in sent.items())
    return rows / sum(sent.values())


def _cores(
    project: Project, site: str, left: Mapping[Key, float], price: float, barred: Collection[str]
) -> float:
    """In those of the site where a row is dearest."""
    own = costs_of(project, site)[0].plain_row
    if site in barred:
        return 0.0
    return left.get(("cpu", site), float("inf")) * price / own if own else float("inf")


def _links(
    found: Placeable, sites: list[str], left: Mapping[Key, float], ample: float
) -> NDArray[np.float64]:
    """A link that is not the cheapest way between its own ends is left out: nothing is counted on it, also
    what is passed on from one of them to the other."""
    width = np.zeros((len(sites), len(sites)))
    np.fill_diagonal(width, ample)
    paths = Paths(found.problem.network)
    for a, b, _ in found.problem.network.links:
        for x, y in ((a, b), (b, a)):
            if paths.between(x, y) == (x, y):
                width[x, y] = min(left.get(("link", f"{sites[x]} > {sites[y]}"), ample), ample)
    return width


def most_streams(queries: Iterable[Placing]) -> int:
    return max(len(query.streams) for query in queries)
