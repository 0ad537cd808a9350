#!/usr/bin/env python3
"""Computes every token's advantage of a run anew from its rollout dumps, with numpy alone, and compares.

    python3 tools/check_advantages.py RUN      # exit status 1 where one differs by more than 1e-5

Knows A, A + lambda u, lambda u, A - lambda phi(u), A - lambda u and A (1 - lambda phi(u)), with u = t - s, or -s without a
teacher; not the released code's filters.
"""
import json
import pathlib
import sys
import tomllib

import numpy as np

TOLERANCE = 1e-5


def phi(u):
    return (np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))) - np.log(2)) / 2


def group_advantages(rewards):
    graded = np.array([r for r in rewards if r is not None], dtype=np.float64)
    if len(graded) < 2 or np.all(graded == graded[0]):
        return [None if r is None else 0.0 for r in rewards]
    mean, deviation = graded.mean(), graded.std(ddof=1)
    return [None if r is None else (r - mean) / (deviation + 1e-6) for r in rewards]


def token_advantages(method, compose, advantage, row):
    s = np.array(row["student_logp"], dtype=np.float64)
    weight = row["lambda"]
    if method == "grpo":
        return np.full(len(s), advantage)
    u = -s if method == "antisd-no-teacher" else np.array(row["teacher_logp"], dtype=np.float64) - s
    if method == "sd":
        return advantage + weight * u
    if method == "opd":
        return weight * u
    term = u if method == "antisd-reverse-kl" else phi(u)
    if method == "antisd-multiplicative" or compose == "multiplicative":
        return advantage * (1 - weight * term)
    return advantage - weight * term


def main():
    run = pathlib.Path(sys.argv[1])
    config = tomllib.loads((run / "config.toml").read_text())
    method, compose = config["method"]["name"], config["method"]["compose"]
    worst, tokens, files = 0.0, 0, sorted((run / "rollouts").glob("step-*.jsonl"))
    for file in files:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        size = config["rollout"]["group_size"]
        for begin in range(0, len(rows), size):
            group = rows[begin:begin + size]
            for row, advantage in zip(group, group_advantages([r["reward"] for r in group])):
                if advantage is None:
                    assert row["token_advantage"] is None, f"{file}: a failed grade has an advantage"
                    continue
                ours = token_advantages(method, compose, advantage, row)
                gap = np.abs(ours - np.array(row["token_advantage"])).max()
                worst, tokens = max(worst, gap), tokens + len(ours)
    print(f"{method}: {tokens} tokens of {len(files)} steps, largest difference {worst:.3g}")
    return 0 if tokens > 0 and worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
