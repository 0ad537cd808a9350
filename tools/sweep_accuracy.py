"""Held-out accuracy of a sweep's runs by arm, seed and step, as CSV on standard output.

    python3 tools/sweep_accuracy.py less-deliberate=runs/countdown-full persistent=runs/persistent > docs/evidence/accuracy.csv
"""
import json
import pathlib
import re
import sys

print("teacher,arm,seed,step,accuracy,length,lambda")
for argument in sys.argv[1:]:
    teacher, folder = argument.split("=", 1)
    for file in sorted(pathlib.Path(folder).glob("*/metrics.jsonl")):
        arm, seed = re.fullmatch(r"(.*)-seed(\d+)", file.parent.name).groups()
        for line in file.open():
            row = json.loads(line)
            values = [v for k, v in row.items() if k.startswith("val-core/") and "/acc/mean@" in k and v is not None]
            if values:
                length, weight = row.get("response_length/mean"), row.get("antisd/lambda")
                print(f"{teacher},{arm},{seed},{int(row['training/global_step'])},{sum(values) / len(values):.6f},"
                      f"{'' if length is None else round(length, 2)},{'' if weight is None else weight}")
