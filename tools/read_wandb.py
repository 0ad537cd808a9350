#!/usr/bin/env python3
"""Prints what wandb recorded offline below a run directory, read with wandb's own reader: a JSON
list, one object for each start of the run, oldest first.

    .deps/reference/bin/python tools/read_wandb.py RUN

Each has "id", "project", "name", "group", "tags", "config", "history" (a list of rows), "summary"
and "exit_code" (null where wandb was ended before it finished).
"""
import json
import pathlib
import sys

from wandb.proto import wandb_internal_pb2
from wandb.sdk.internal import datastore


def records_of(path):
    store = datastore.DataStore()
    store.open_for_scan(str(path))
    while True:
        try:
            data = store.scan_data()
        except AssertionError:  # the last block of a file that was not finished
            return
        if data is None:
            return
        record = wandb_internal_pb2.Record()
        record.ParseFromString(data)
        yield record


def put(tree, item):
    """An item of history, summary or config: its key is a name or a path of names."""
    path = list(item.nested_key) or [item.key]
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
    tree[path[-1]] = json.loads(item.value_json)


def read_run(path):
    found = {"config": {}, "history": [], "summary": {}, "exit_code": None}
    for record in records_of(path):
        kind = record.WhichOneof("record_type")
        if kind == "run":
            found.update(id=record.run.run_id, project=record.run.project, name=record.run.display_name,
                         group=record.run.run_group, tags=list(record.run.tags))
            for item in record.run.config.update:
                put(found["config"], item)
        elif kind == "history":
            row = {}
            for item in record.history.item:
                put(row, item)
            found["history"].append(row)
        elif kind == "summary":
            for item in record.summary.update:
                put(found["summary"], item)
        elif kind == "exit":
            found["exit_code"] = record.exit.exit_code
    return found


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("wandb/offline-run-*/*.wandb"))
    json.dump([read_run(path) for path in files], sys.stdout, indent=1)
    print()


main()
