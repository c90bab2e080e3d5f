"""Gives the results of a federated job to each member's sink, exactly once.

A batch is complete when done.json says so (runtime/federated/ledger.py). Its results are then written to the
results folder under a name that is the same on every try, and `published.json` says how far that went, so
that a file which the reader has taken away is not given again. Two jobs may give results of one query while
one takes over from the other, so the name has the job in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from headrace.ids import fingerprint
from headrace.runtime.federated.ledger import Done, Ledger, read_given
from headrace.runtime.files import sync_folder, write_json
from headrace.runtime.spark.publish import MARKER
from headrace.runtime.spark.tree_publish import Reader, write_part


class FederatedPublisher:
    def __init__(self, job: str, ledger: Ledger, state: Path, readers: Mapping[str, Reader]) -> None:
        self._suffix, self._ledger, self._readers = fingerprint(job)[:8], ledger, readers
        self._file = state / "published.json"
        self._batch = self._published()
        for reader in readers.values():
            reader.folder.mkdir(parents=True, exist_ok=True)
            if reader.published:
                (reader.folder / MARKER).touch()

    def _published(self) -> int:
        if not self._file.exists():
            return -1
        return int(json.loads(self._file.read_text(encoding="utf-8"))["batch"])

    def publish(self) -> Done:
        """Publish what was completed since the last call; what is complete, and so published."""
        done = self._ledger.done()
        if done.batch > self._batch or self._ledger.given(done.batch):
            with self._ledger.publishing():
                self._publish(done)
        return done

    def _publish(self, done: Done) -> None:
        found, touched = self._ledger.given(done.batch), set[Path]()
        self._batch = self._published()
        for batch, query, path in found:
            reader = self._readers[query]
            if batch > self._batch and (reader.published or reader.take is not None):
                write_part(reader, reader.finish(read_given(path)), f"part-{batch:06d}-{self._suffix}")
                touched.add(reader.folder)
        for folder in touched:
            sync_folder(folder)
        if done.batch > self._batch:
            write_json(self._file, {"batch": done.batch})
            self._batch = done.batch
        for _, _, path in found:
            path.unlink(missing_ok=True)
