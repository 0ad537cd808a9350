#!/usr/bin/env python3
"""Prints the scalars of a folder of TensorBoard event files as JSON, {tag: [[step, value], ...]},
as TensorBoard itself reads them: checksums are verified, and values that a resumed run replaced are
left out. For the tests of src/run/metrics.

    .deps/reference/bin/python tools/read_tensorboard.py RUN
"""
import json
import sys

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
