#!/usr/bin/env python3
"""How long small commands take from their start to their end.

    tools/bench_start.py build/antisd [--before OTHER/antisd] [--rounds 20]

Each command does one small piece of work: its time is that of starting. The programs take turns, so
that both meet the same load. Per command: the median of the wall time and of the processor time,
and how many times that of `--before` it is.
"""
import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import tempfile
import time

from synthetic_runs import SyntheticRun

ROOT = pathlib.Path(__file__).resolve().parent.parent


def cases(folder):
    """name -> (arguments, standard input)"""
    SyntheticRun(folder / "run", steps=20).write_all()
    return {
        "version": (["version"], ""),
        "help": (["--help"], ""),
        "tokenize": (["tokenize", ROOT / "models/countdown"], '{"text":"Numbers 4 11 3 target 47"}\n'),
        "grade math": (["grade", "math"], '{"answer":"7","response":"\\\\boxed{7}"}\n'),
        "report": (["report", folder / "run", "-o", folder / "page.html"], ""),
    }


def measure(program, arguments, text):
    """Wall and processor seconds of one run."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    subprocess.run([program, *arguments], input=text, text=True, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    wall = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("program", type=pathlib.Path)
    options.add_argument("--before", type=pathlib.Path)
    options.add_argument("--rounds", type=int, default=20)
    arguments = options.parse_args()
    programs = [path.resolve() for path in (arguments.program, arguments.before) if path]
    print(f"load {os.getloadavg()[0]:.1f}; milliseconds, median of {arguments.rounds}")
    with tempfile.TemporaryDirectory() as folder:
        for name, (flags, text) in cases(pathlib.Path(folder)).items():
            times = {program: [] for program in programs}
            for _ in range(arguments.rounds):
                for program in programs:
                    times[program].append(measure(program, flags, text))
            wall, cpu = ([1000 * statistics.median(run[kind] for run in times[program]) for program in programs]
                         for kind in (0, 1))
            line = f"{name:<12} wall {wall[0]:7.1f}  processor {cpu[0]:7.1f}"
            if arguments.before:
                line += (f"   before: wall {wall[1]:7.1f}  processor {cpu[1]:7.1f}"
                         f"   x {wall[0] / wall[1]:.3f}, x {cpu[0] / cpu[1]:.3f}")
            print(line)


if __name__ == "__main__":
    main()
