"""What is known of a query's split, as plain data and as lines: the same facts for the terminal, `--json` and
the picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypedDict

from headrace.catalog.model import Project
from headrace.plan import logical as lp
from headrace.plan.federated import Engine
from headrace.plan.placed import Job, PlacedPlan
from headrace.plan.text import plan_lines
from headrace.planners.federation.problem import Federated, Loser, Part, Split
from headrace.service.calibration_file import federation_costs_of
from headrace.service.federated_records import how_split
from headrace.service.federating import Choice, JoinOrder, asked, choose
from headrace.service.federating_problem import node_ids
from headrace.service.predict import NEVER

SINK = "sink"
_BY = {
    "auto": "chosen by the planner",
    "spark": "all on Spark, as the project file says",
    "duckdb": "all on DuckDB, as the project file says",
    "engines": "as listed in the project file",
}


class OperatorData(TypedDict):
    """An operator that has a choice of engine."""

    operator: str
    """Its name in the text of the plan; with /2 where it stands there a second time."""
    kind: str
    detail: str
    engine: str
    rate: float
    """Rows that it gives a second (lambda)."""
    rows: float
    """Rows in its relation (W)."""
    width: float
    """Bytes of a row that travels; 0: it travels already, for somebody else."""


class PartData(TypedDict):
    """Seconds of CPU for each second of the stream."""

    engine: str
    operators: list[str]
    u: float
    transfer_in: float
    work: float
    statement: float
    transfer_out: float


class TransferData(TypedDict):
    before: str
    after: str
    """Names in the text of the plan, or `sink`."""
    rows_per_second: float
    bytes_per_second: float


class SplitData(TypedDict):
    engines: list[str]
    on_spark: list[str]
    on_duckdb: list[str]
    bottleneck: float
    """C_b"""
    utilisation: float
    """C_u"""
    feasible: bool
    parts: list[PartData]


class RunnerUp(SplitData):
    why: str
    """Why it lost."""


class OrderData(TypedDict):
    """In which order joins of windows are made."""

    chosen: str
    written: str
    changed: bool
    bottleneck: float
    utilisation: float
    """C_b and C_u of the chosen order, with its best engines."""
    written_bottleneck: float
    written_utilisation: float
    """And of the order as written, with its own."""
    examined: int
    """Partial orders that phase one compared."""


class FederationData(TypedDict):
    query: str
    job: str | None
    """The job it runs in; None: an ordinary job on Spark."""
    by: str
    """Who decided: auto, spark, duckdb or engines."""
    cores: float | None
    costs: str
    """Where the unit costs come from."""
    rates: dict[str, float]
    operators: list[OperatorData]
    order: OrderData | None
    """None: its joins have one order only, or are not free."""
    chosen: SplitData
    transfers: list[TransferData]
    runners_up: list[RunnerUp]
    examined: int
    too_much: list[str]
    """Operators that are on Spark because what they read would not fit DuckDB's memory."""
    engines: dict[str, str]
    """Of every node of the plan's text; `spark+duckdb` for one that both do."""
    rows_per_second: dict[str, float]
    """That every node gives."""
    text: list[str]


def split_of(project: Project, job: Job, everything: PlacedPlan) -> FederationData | str | None:
    """How a job is split, also where that ends on Spark alone, or why it is not; None where the project does
    not ask. Raises UserError as `choose` does."""
    shared = {member.query for tree in everything.trees for member in tree.members}
    query = project.queries[job.query]
    if job.query in shared or asked(project, query) is None:
        return None
    members = (m for one in everything.federated for m in one.members if m.query == job.query)
    plan = next((member.written or member.plan for member in members), job.plan)
    choice = choose(project, query, plan)
    ids = {one.id for one in everything.federated}
    together = job.id if job.id in ids else None
    return choice if isinstance(choice, str) else federation_data(project, choice, together)


def members_as_jobs(everything: PlacedPlan) -> list[Job]:
    """The queries that are split, each as if it were a job by itself."""
    return [Job(one.id, m.query, one.site, m.plan) for one in everything.federated for m in one.members]


def split_steps(everything: PlacedPlan) -> list[str]:
    return [
        f"start {member.query} in {job.id} on {job.site}, {how_split(job)}"
        for job in everything.federated
        for member in job.members
    ]


def federation_data(project: Project, choice: Choice, job: str | None) -> FederationData:
    answer = choice.answer
    calibration = federation_costs_of(project, choice.site)[1]
    data = FederationData(
        query=choice.query,
        job=job,
        by=choice.asked,
        cores=answer.plan.cores,
        costs=NEVER if calibration is None else f"calibrated {calibration.date}",
        rates={stream.name: stream.rate for stream in answer.plan.streams},
        operators=list(_operators(choice)),
        order=_order(choice.order),
        chosen=_split(answer, answer.split),
        transfers=list(_transfers(answer)),
        runners_up=[_runner(answer, loser) for loser in answer.losers],
        examined=answer.examined,
        too_much=list(choice.too_much),
        engines=node_engines(choice.plan, choice.engines),
        rows_per_second=_node_rates(choice),
        text=[],
    )
    data["text"] = _lines(data)
    return data


def _order(order: JoinOrder | None) -> OrderData | None:
    if order is None:
        return None
    return OrderData(
        chosen=order.chosen_text,
        written=order.written_text,
        changed=order.chosen_text != order.written_text,
        bottleneck=order.chosen_split.bottleneck,
        utilisation=order.chosen_split.utilisation,
        written_bottleneck=order.written_split.bottleneck,
        written_utilisation=order.written_split.utilisation,
        examined=order.examined,
    )


def _operators(choice: Choice) -> Iterator[OperatorData]:
    answer = choice.answer
    known = {line.id: line for line in plan_lines(choice.plan)}
    for operator, sizes, engine in zip(
        answer.plan.operators, answer.sizes, answer.split.engines, strict=True
    ):
        line = known[operator.name.split("/")[0]]
        yield OperatorData(
            operator=operator.name,
            kind=line.operator,
            detail=line.detail,
            engine=engine.value,
            rate=sizes.rate,
            rows=sizes.rows,
            width=sizes.width,
        )


def _split(answer: Federated, split: Split) -> SplitData:
    names = [operator.name for operator in answer.plan.operators]
    both = list(zip(names, split.engines, strict=True))
    return SplitData(
        engines=[engine.value for engine in split.engines],
        on_spark=[name for name, engine in both if engine is Engine.SPARK],
        on_duckdb=[name for name, engine in both if engine is Engine.DUCKDB],
        bottleneck=split.bottleneck,
        utilisation=split.utilisation,
        feasible=split.feasible,
        parts=[_part(part) for part in split.parts],
    )


def _part(part: Part) -> PartData:
    return PartData(
        engine=part.engine.value,
        operators=list(part.operators),
        u=part.u,
        transfer_in=part.transfer_in,
        work=part.work,
        statement=part.statement,
        transfer_out=part.transfer_out,
    )


def _runner(answer: Federated, loser: Loser) -> RunnerUp:
    return RunnerUp(**_split(answer, loser.split), why=loser.why)


def _transfers(answer: Federated) -> Iterator[TransferData]:
    """Rows that go from one engine to the other. What is given by DuckDB at the end goes to the sink."""
    plan, engines = answer.plan, answer.split.engines
    sizes = {one.name: size for one, size in zip(plan.operators, answer.sizes, strict=True)}
    at = {one.name: engine for one, engine in zip(plan.operators, engines, strict=True)}
    rates = {stream.name: stream.rate for stream in plan.streams}
    windows = {window.name: window for window in plan.windows}
    for operator in plan.operators:
        for name in operator.inputs:
            if name in windows and at[operator.name] is Engine.DUCKDB:
                window = windows[name]
                yield _transfer(window.stream, operator.name, rates[window.stream], window.width)
            elif name in at and at[name] is not at[operator.name]:
                yield _transfer(name, operator.name, sizes[name].rate, sizes[name].width)
    root = plan.operators[-1].name
    if at[root] is Engine.DUCKDB:
        yield _transfer(root, SINK, sizes[root].rate, sizes[root].width)


def _transfer(before: str, after: str, rate: float, width: float) -> TransferData:
    return TransferData(before=before, after=after, rows_per_second=rate, bytes_per_second=rate * width)


def node_engines(plan: lp.LogicalPlan, engines: Sequence[Engine]) -> dict[str, str]:
    """Who does each node: scans are Spark's, projections go with what is below them, a window belongs to
    whoever reads it."""
    ids, found, left = node_ids(plan), dict[str, set[Engine]](), iter(engines)

    def visit(node: lp.LogicalPlan) -> Engine | None:
        below = [visit(child) for child in node.inputs]
        own: Engine | None = None
        if isinstance(node, lp.StreamScan | lp.IntervalJoin):
            own = Engine.SPARK
        elif isinstance(node, lp.Project):
            own = below[0]
        elif isinstance(node, lp.Filter | lp.Aggregate | lp.WindowJoin | lp.TableJoin):
            own = next(left) if node.shape is not lp.Shape.TABLE else None
        if own is not None:
            found.setdefault(ids[node], set()).add(own)
            for child, engine in zip(node.inputs, below, strict=True):
                if engine is None:
                    _give(child, own)
        return own

    def _give(node: lp.LogicalPlan, engine: Engine) -> None:
        if isinstance(node, lp.Window):
            found.setdefault(ids[node], set()).add(engine)

    visit(plan)
    return {name: "+".join(sorted(who, reverse=True)) for name, who in found.items()}


def _node_rates(choice: Choice) -> dict[str, float]:
    """Windows and projections give as many rows as they get."""
    answer, ids = choice.answer, node_ids(choice.plan)
    streams = {stream.name: stream.rate for stream in answer.plan.streams}
    rates = {one.name: size.rate for one, size in zip(answer.plan.operators, answer.sizes, strict=True)}
    for node, name in ids.items():
        if isinstance(node, lp.StreamScan | lp.IntervalJoin):
            rates[name] = streams.get(" x ".join(lp.streams_of(node)), 0.0)
        elif isinstance(node, lp.Window | lp.Project):
            rates[name] = rates.get(ids[node.input], 0.0)
    return {name: rate for name, rate in rates.items() if name in ids.values()}


# -- lines ------------------------------------------------------------------------------------------


def _lines(data: FederationData) -> list[str]:
    chosen = data["chosen"]
    where = f"in {data['job']}" if data["job"] else "as a job on Spark"
    if data["job"] and not chosen["on_duckdb"]:
        where += ", all on Spark, and is looked at again while it runs"
    rates = ", ".join(f"{name} {rate:,.6g} rows/s" for name, rate in data["rates"].items())
    cores = "" if data["cores"] is None else f" of {data['cores']:g}"
    feasible = "feasible" if chosen["feasible"] else "NOT feasible: it cannot keep up"
    return [
        f"{_BY[data['by']]}; it runs {where}",
        f"at {rates}  (unit costs: {data['costs']})",
        *_order_lines(data["order"]),
        *(_operator_line(one) for one in data["operators"]),
        *(_part_line(number, part) for number, part in enumerate(chosen["parts"], 1)),
        *_room_lines(data["too_much"]),
        f"C_b {chosen['bottleneck']:.3g}, C_u {chosen['utilisation']:.3g}{cores} cores: {feasible}",
        *(_transfer_line(one) for one in data["transfers"]),
        *(_runner_line(one) for one in data["runners_up"]),
    ]


def _order_lines(order: OrderData | None) -> list[str]:
    if order is None:
        return []
    looked = f"{order['examined']:,} partial orders compared"
    if not order["changed"]:
        return [f"joins as they are written, {order['written']}: no order is cheaper ({looked})"]
    costs = "C_b {:.3g}, C_u {:.3g}"
    before = costs.format(order["written_bottleneck"], order["written_utilisation"])
    after = costs.format(order["bottleneck"], order["utilisation"])
    return [f"joins as {order['chosen']}: {after}; as written, {order['written']}: {before} ({looked})"]


def _room_lines(too_much: Sequence[str]) -> list[str]:
    if not too_much:
        return []
    return [f"on Spark because what they read does not fit DuckDB's memory: {', '.join(too_much)}"]


def _operator_line(one: OperatorData) -> str:
    detail = one["detail"] if len(one["detail"]) <= 60 else one["detail"][:57] + "..."
    gives = f"gives {one['rate']:,.4g} rows/s, window {one['rows']:,.4g} rows"
    return f"  {one['engine']:7}{one['operator']:6}{one['kind']:11}{gives:42}{detail}"


def _part_line(number: int, part: PartData) -> str:
    text = f"  part {number} on {part['engine']}: {', '.join(part['operators'])}  u = {part['u']:.3g}"
    if part["engine"] == Engine.SPARK:
        return text
    shares = (part["transfer_in"], part["work"], part["statement"], part["transfer_out"])
    return text + " = in {:.2g} + work {:.2g} + statements {:.2g} + out {:.2g}".format(*shares)


def _transfer_line(one: TransferData) -> str:
    size = f"{one['bytes_per_second']:,.4g} bytes/s" if one["bytes_per_second"] else "travels already"
    return f"  transfer {one['before']} -> {one['after']}: {one['rows_per_second']:,.4g} rows/s, {size}"


def _runner_line(one: RunnerUp) -> str:
    return f"  not {described(one)}: {one['why']}"


def described(split: SplitData) -> str:
    if not split["on_duckdb"]:
        return "all on Spark"
    if not split["on_spark"]:
        return "all on DuckDB"
    return f"{', '.join(split['on_duckdb'])} on DuckDB and {', '.join(split['on_spark'])} on Spark"
