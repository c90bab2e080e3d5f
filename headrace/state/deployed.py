"""The deployment in its tables. Functions on an open transaction."""

from __future__ import annotations

import sqlite3

from headrace.state.records import DeployedQuery, Deployment, Doomed, FederatedRecord, TreeRecord


def read(db: sqlite3.Connection) -> Deployment:
    trees = db.execute("SELECT id, site, shape FROM trees ORDER BY position").fetchall()
    columns = "query, tree, fingerprint, federated, site"
    queries = db.execute(f"SELECT {columns} FROM deployed ORDER BY position").fetchall()
    doomed = db.execute("SELECT name, results, tree FROM doomed ORDER BY name").fetchall()
    split = db.execute("SELECT id, site, members FROM federated ORDER BY position").fetchall()
    channels = db.execute("SELECT plan FROM channels").fetchone()
    return Deployment(
        tuple(TreeRecord(*row) for row in trees),
        tuple(DeployedQuery(*row) for row in queries),
        tuple(Doomed(name, bool(results), tree) for name, results, tree in doomed),
        tuple(FederatedRecord(*row) for row in split),
        "" if channels is None else str(channels[0]),
    )


def write(db: sqlite3.Connection, deployment: Deployment) -> None:
    """The whole of it: a few hundred rows, so that no difference has to be right."""
    for table in ("deployed", "trees", "doomed", "federated", "channels"):
        db.execute(f"DELETE FROM {table}")
    db.executemany(
        "INSERT INTO trees (position, id, site, shape) VALUES (?, ?, ?, ?)",
        [(n, tree.id, tree.site, tree.shape) for n, tree in enumerate(deployment.trees)],
    )
    db.executemany(
        "INSERT INTO deployed (position, query, tree, fingerprint, federated, site)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (n, one.query, one.tree, one.fingerprint, one.federated, one.site)
            for n, one in enumerate(deployment.queries)
        ],
    )
    db.executemany(
        "INSERT INTO federated (position, id, site, members) VALUES (?, ?, ?, ?)",
        [(n, one.id, one.site, one.members) for n, one in enumerate(deployment.federated)],
    )
    if deployment.channels:
        db.execute("INSERT INTO channels (plan) VALUES (?)", (deployment.channels,))
    db.executemany(
        "INSERT INTO doomed (name, results, tree) VALUES (?, ?, ?)",
        [(one.name, int(one.results), one.tree) for one in deployment.doomed],
    )
