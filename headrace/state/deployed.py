"""The deployment in its tables. Functions on an open transaction."""

from __future__ import annotations

import sqlite3

from headrace.state.records import DeployedQuery, Deployment, Doomed, TreeRecord


def read(db: sqlite3.Connection) -> Deployment:
    trees = db.execute("SELECT id, site, shape FROM trees ORDER BY position").fetchall()
    queries = db.execute("SELECT query, tree, fingerprint FROM deployed ORDER BY position").fetchall()
    doomed = db.execute("SELECT name, results, tree FROM doomed ORDER BY name").fetchall()
    return Deployment(
        tuple(TreeRecord(*row) for row in trees),
        tuple(DeployedQuery(*row) for row in queries),
        tuple(Doomed(name, bool(results), tree) for name, results, tree in doomed),
    )


def write(db: sqlite3.Connection, deployment: Deployment) -> None:
    """The whole of it: a few hundred rows, so that no difference has to be right."""
    for table in ("deployed", "trees", "doomed"):
        db.execute(f"DELETE FROM {table}")
    db.executemany(
        "INSERT INTO trees (position, id, site, shape) VALUES (?, ?, ?, ?)",
        [(n, tree.id, tree.site, tree.shape) for n, tree in enumerate(deployment.trees)],
    )
    db.executemany(
        "INSERT INTO deployed (position, query, tree, fingerprint) VALUES (?, ?, ?, ?)",
        [(n, one.query, one.tree, one.fingerprint) for n, one in enumerate(deployment.queries)],
    )
    db.executemany(
        "INSERT INTO doomed (name, results, tree) VALUES (?, ?, ?)",
        [(one.name, int(one.results), one.tree) for one in deployment.doomed],
    )
