#!/usr/bin/env python3
"""Times steps of training on several ranks against one process with as many threads, in turns.

    python3 tools/bench_ranks.py build/antisd
    python3 tools/bench_ranks.py build/antisd --ranks 4 --steps 20 --rounds 5 method.name=grpo

Arguments with "=" are settings for both. The first step of a run is not counted. Prints seconds per
step of both, their ratio (above 1: the ranks are faster), and which part of a step the ranks' own
messages and memory took (timing_s/exchange).
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile


def steps_of(program, folder, options, extra):
    command = [program, "train", options.recipe, "method.name=antisd", "eval.every=0", "record.rollouts_every=0",
               "checkpoint.every=0", f"train.steps={options.steps + 1}", f"record.dir={folder}", "--quiet",
               *options.settings, *extra]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return rows[1:]


def mean(rows, name):
    return statistics.mean(row[name] for row in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("settings", nargs="*", help="key=value")
    parser.add_argument("--recipe", default="recipes/countdown/quick.toml")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    ratios, shares = [], []
    with tempfile.TemporaryDirectory() as work:
        for n in range(options.rounds):
            folder = pathlib.Path(work)
            one = steps_of(options.program, folder / f"one-{n}", options, ["--threads", str(options.ranks)])
            many = steps_of(options.program, folder / f"ranks-{n}", options, ["--processes", str(options.ranks)])
            one_s, many_s = mean(one, "timing_s/step"), mean(many, "timing_s/step")
            ratios.append(one_s / many_s)
            shares.append(mean(many, "timing_s/exchange") / many_s)
            print(f"round {n + 1}: one process with {options.ranks} threads {one_s:.3f} s a step, "
                  f"{options.ranks} ranks {many_s:.3f} s: {ratios[-1]:.3f} x; exchange {shares[-1]:.2%}", flush=True)
    print(f"median: {statistics.median(ratios):.3f} x; exchange {statistics.median(shares):.2%} of a step")


if __name__ == "__main__":
    main()
