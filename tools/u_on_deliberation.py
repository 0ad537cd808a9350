"""Mean u on deliberation tokens of a sweep's runs, from their rollout dumps: one line per arm and
step.

    python3 tools/u_on_deliberation.py build/antisd models/countdown runs/countdown-full recipes/countdown/words.txt

Each dump goes through `antisd inspect --json`; seeds are averaged, and each seed's value is printed
beside the mean. Runs without a teacher (GRPO) have no u and are left out.
"""
import collections
import json
import pathlib
import re
import subprocess
import sys


def mean_u(antisd, model, dump, words):
    done = subprocess.run([antisd, "inspect", model, str(dump), "--json", "--show", "0", "--words", words], capture_output=True, text=True)
    if done.returncode != 0 or not done.stdout.strip():
        return None
    summary = json.loads(done.stdout)["summary"]
    for kind in summary["kinds"]:
        if kind.get("kind", kind.get("name")) == "deliberation":
            return kind.get("mean", kind.get("mean_u"))
    return None


def main():
    antisd, model, folder, words = sys.argv[1:5]
    values = collections.defaultdict(list)
    for dump in sorted(pathlib.Path(folder).glob("*/rollouts/step-*.jsonl")):
        arm = re.sub(r"-seed\d+$", "", dump.parts[-3])
        u = mean_u(antisd, model, dump, words)
        if u is not None:
            values[arm, int(dump.stem[5:])].append(u)
    for (arm, step), us in sorted(values.items()):
        print(f"{arm:24} step {step:4}  mean u {sum(us) / len(us):+.3f}  by seed " + " ".join(f"{u:+.3f}" for u in us))


if __name__ == "__main__":
    main()
