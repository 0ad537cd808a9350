#!/usr/bin/env python3
"""Training steps on busy cores: the default number of threads compared with one thread.

    python3 tools/bench_busy.py build/antisd [--before OTHER/antisd] [--load 6] [--cores 2] [--steps 6] [--rounds 3] [--problems 16]

Countdown (recipes/countdown/quick.toml) with `--load` busy processes on `--cores` cores; runs
alternate, so that other load affects all of them. Prints the median step of each, and the median
and range of its ratio to one thread in the same round. `--before` is the binary of an earlier
revision, with its default threads; `--load 0` means idle cores.
"""
import argparse
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


def one_run(program, cores, steps, problems, folder, *flags):
    """Seconds of each step after the first, which is the warm-up."""
    command = [program, "train", "recipes/countdown/quick.toml", "method.name=antisd", "eval.every=0", "checkpoint.every=0",
               "record.rollouts_every=0", "record.tensorboard=false", f"train.steps={steps + 1}", f"rollout.prompts_per_step={problems}",
               f"record.dir={folder}",
               "--device", "cpu", "--quiet", *flags]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, preexec_fn=lambda: os.sched_setaffinity(0, cores))
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [row["timing_s/step"] for row in rows[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--before")
    parser.add_argument("--load", type=int, default=6)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--problems", type=int, default=16, help="per step, eight responses each")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # the busy processes end with it
    cores = sorted(os.sched_getaffinity(0))[:arguments.cores]
    program = os.path.abspath(arguments.program)
    arms = {"one thread": (program, "--threads", "1"), "default": (program,)}
    if arguments.before:
        arms["default before"] = (os.path.abspath(arguments.before),)
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"], preexec_fn=lambda: os.sched_setaffinity(0, cores))
              for _ in range(arguments.load)]
    rounds = []
    try:
        with tempfile.TemporaryDirectory() as temporary:
            for number in range(arguments.rounds):
                rounds.append({name: statistics.median(one_run(command[0], cores, arguments.steps, arguments.problems,
                                                               pathlib.Path(temporary) / f"{number}-{place}", *command[1:]))
                               for place, (name, command) in enumerate(arms.items())})
    finally:
        for other in others:
            other.kill()
            other.wait()
    print(f"{arguments.load} busy processes on {len(cores)} cores, {arguments.rounds} rounds of {arguments.steps} steps; "
          f"load average {os.getloadavg()[0]:.1f}")
    for name in arms:
        ratios = [one[name] / one["one thread"] for one in rounds]
        print(f"{name:15} {statistics.median(one[name] for one in rounds):7.3f} s a step, {statistics.median(ratios):.2f} x one thread "
              f"({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
