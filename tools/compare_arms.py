#!/usr/bin/env python3
"""Compares arms of a sweep with GRPO at equal steps, equal sampled tokens and equal mean length,
paired by seed.

    python3 tools/compare_arms.py docs/evidence/accuracy-400.csv [--baseline grpo]

Columns of the file: arm, seed, step, accuracy, length (the mean length of the step's responses), as
tools/sweep_accuracy.py writes them. Intervals are Student's t over seeds, 95 %; all seeds share one
set of problems, and the intervals do not include the choice of these. "Equal tokens" compares an
arm at a step with GRPO when it has sampled as many tokens, "equal length" with GRPO when its
responses are as long, both interpolated between evaluations of the same seed. Equal length is
compared while GRPO's responses grow (steps up to 200); a seed whose GRPO never wrote such long ones
is left out.
"""
import argparse
import csv
import math
import statistics

GROWING = 200  # steps
T_975 = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def read(path):
    """arm -> seed -> [(step, accuracy, length, tokens so far)], in the order of steps."""
    arms = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            curve = arms.setdefault(row["arm"], {}).setdefault(int(row["seed"]), [])
            curve.append((int(row["step"]), float(row["accuracy"]), float(row["length"] or 0)))
    for seeds in arms.values():
        for seed, curve in seeds.items():
            curve.sort()
            tokens, whole = 0.0, []
            for before, now in zip([curve[0], *curve], curve):
                first = before[2] or now[2]  # nothing is sampled at step 0: use the first length
                tokens += (now[0] - before[0]) * (first + now[2]) / 2
                whole.append((*now, tokens))
            seeds[seed] = whole
    return arms


def at(points, x):
    """The polyline's y, or nothing outside it. If it turns back, the first crossing counts."""
    for (x0, y0), (x1, y1) in zip(points, points[1:]):
        if min(x0, x1) <= x <= max(x0, x1) and x0 != x1:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    return None


def text(differences):
    if not differences:
        return "-"
    mean = statistics.fmean(differences)
    shown = f"{mean:+.3f}"
    if len(differences) > 1:
        half = T_975[len(differences) - 1] * statistics.stdev(differences) / math.sqrt(len(differences))
        shown += f" [{mean - half:+.3f}, {mean + half:+.3f}]"
    return shown + ("" if len(differences) > 1 else " (one seed)")


def at_step(curve, step):
    return next((point for point in curve if point[0] == step), None)


def by_step(arm, baseline, step):
    pairs = [(at_step(arm[seed], step), at_step(baseline[seed], step)) for seed in arm if seed in baseline]
    return [ours[1] - theirs[1] for ours, theirs in pairs if ours and theirs]


def by_column(arm, baseline, step, column, last=math.inf):
    """Compared with the baseline where its column has the arm's value; up to step `last` of both.
    """
    found = []
    for seed in arm:
        here = at_step(arm[seed], step)
        there = [(p[column], p[1]) for p in baseline.get(seed, []) if 0 < p[0] <= last]
        theirs = at(there, here[column]) if here and step <= last else None
        if theirs is not None:
            found.append(here[1] - theirs)
    return found


def by_tokens(arm, baseline, step):
    return by_column(arm, baseline, step, 3)


def by_length(arm, baseline, step):
    return by_column(arm, baseline, step, 2, last=GROWING)


def last_three(arm, baseline):
    mean = lambda curve: statistics.fmean(p[1] for p in curve[-3:])
    return [mean(arm[s]) - mean(baseline[s]) for s in arm if s in baseline and len(arm[s]) == len(baseline[s])]


def pooled(arm, baseline, steps):
    """Equal length, each seed's mean over some steps."""
    means = []
    for seed in arm:
        one = [d for step in steps for d in by_length({seed: arm[seed]}, baseline, step)]
        if one:
            means.append(statistics.fmean(one))
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--baseline", default="grpo")
    arguments = parser.parse_args()
    arms = read(arguments.file)
    baseline = arms[arguments.baseline]
    for name, arm in sorted(arms.items(), key=lambda one: one[0] != arguments.baseline):
        print(f"{name}: last accuracy by seed " + " ".join(f"{arm[s][-1][1]:.3f}" for s in sorted(arm)))
    for name, arm in arms.items():
        if name == arguments.baseline:
            continue
        print(f"\n{name} - {arguments.baseline}\n  step  equal steps                equal tokens               equal length               lengths")
        for step in sorted({p[0] for curve in arm.values() for p in curve} - {0}):
            length = lambda one: statistics.fmean(p[2] for curve in one.values() for p in curve if p[0] == step)
            print(f"  {step:4}  {text(by_step(arm, baseline, step)):26} {text(by_tokens(arm, baseline, step)):26} "
                  f"{text(by_length(arm, baseline, step)):26} {length(arm):.0f} / {length(baseline):.0f}")
        print(f"  mean of the last three evaluations: {text(last_three(arm, baseline))}")
        print(f"  equal length, mean of steps 60 to 100: {text(pooled(arm, baseline, (60, 80, 100)))}")


if __name__ == "__main__":
    main()
