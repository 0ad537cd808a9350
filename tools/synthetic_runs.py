"""Synthetic run directories in the format of `antisd train`, for the browser test and the report's
benchmark.

    from synthetic_runs import SyntheticRun
    run = SyntheticRun(folder / "antisd-seed0", method="antisd", seed=0, steps=200)
    run.write_all()
    run.append(201)          # one more row, as a running trainer writes it
"""
import json
import math
import pathlib
import random

PROBLEM = "What is the sum of the first {n} odd numbers?"


class SyntheticRun:
    def __init__(self, folder, method="grpo", seed=0, steps=200, every=50):
        self.folder, self.method, self.seed, self.steps, self.every = pathlib.Path(folder), method, seed, steps, every
        self.random = random.Random(f"{method} {seed}")
        self.gain = {"grpo": 0.25, "antisd": 0.38, "sd": 0.12}.get(method, 0.3)
        self.open = False

    def accuracy(self, step):
        return 0.3 + self.gain * (1 - math.exp(-3 * step / max(self.steps, 1)))

    def row(self, step):
        noise = lambda size: self.random.gauss(0, size)
        share = step / max(self.steps, 1)
        entropy = 0.9 - 0.5 * share + noise(0.02)
        row = {"training/global_step": step}

        def spread(name, value, width):
            row.update({f"{name}/mean": value, f"{name}/max": value + width, f"{name}/min": value - width})

        reward = min(1.0, max(0.0, self.accuracy(step) + noise(0.06)))
        spread("critic/rewards", reward, 0.0)
        row["critic/rewards/max"], row["critic/rewards/min"] = 1.0, 0.0
        clip = max(0.0, 0.08 - 0.05 * share + noise(0.02))
        row["reward/non_truncated"] = min(1.0, reward / (1 - clip))
        row["reward/grader_failed"] = 0.0
        row["group/all_right_fraction"], row["group/all_wrong_fraction"] = reward * reward, (1 - reward) ** 2
        spread("response_length", 900 + 600 * share + noise(60), 500.0)
        row["response_length/clip_ratio"] = clip
        spread("prompt_length", 120.3, 40.0)
        spread("critic/advantages", noise(0.01), 2.0)
        row.update({"actor/pg_loss": noise(0.02), "actor/entropy": entropy, "actor/pg_clipfrac": abs(noise(0.002)),
                    "actor/pg_clipfrac_lower": 0.0, "actor/ppo_kl": abs(noise(1e-4)),
                    "actor/grad_norm": None if step % 97 == 0 else 0.4 + abs(noise(0.1)), "actor/lr": 1e-6,
                    "training/rollout_probs_diff_mean": 1e-6 * abs(noise(1)), "training/rollout_probs_diff_max": 1e-5 * abs(noise(1))})
        if self.method != "grpo":
            teacher = 0.7 + 0.08 * math.sin(step / 17 + self.seed) + noise(0.01)
            self.open = step > 5 and teacher > 0.65
            row.update({"antisd/lambda": 0.5 if self.open else 0.0, "antisd/gate": 1 if self.open else 0, "antisd/gate_signal": teacher,
                        "antisd/h_warm": 0.7 if step > 5 else None, "antisd/tau": 0.651 if step > 5 else None})
            spread("antisd/u", 0.04 + noise(0.01), 6.0)
            row.update({"antisd/u/std": 0.5 + noise(0.02), "antisd/u/frac_neg": 0.42 + noise(0.01), "antisd/phi/mean": noise(0.01),
                        "antisd/term_ratio": 0.2 + noise(0.02) if self.open else 0.0, "teacher/entropy_mean": teacher + 0.1,
                        "teacher/entropy_median": teacher, "teacher/ppl": math.exp(teacher)})
            for source, part in (("peer", 0.7), ("dataset", 0.3), ("answer", 0.0), ("feedback", 0.0)):
                row[f"context/{source}_fraction"] = part
        times = {"gen": 41 + noise(2), "reward": 0.4 + abs(noise(0.1)), "score": 0.0 if self.method == "grpo" else 9 + noise(0.4),
                 "adv": 0.02, "update_actor": 30 + noise(1), "save": 4.0 if step % 10 == 0 else 0.0}
        for name, value in times.items():
            row[f"timing_s/{name}"] = value
        whole = sum(times.values())
        row.update({"timing_s/step": whole, "perf/total_num_tokens": 262144 + noise(9000), "perf/time_per_step": whole,
                    "perf/throughput": 262144 / whole, "perf/max_memory_allocated_gb": 61.25})
        return row

    def append(self, step):
        with open(self.folder / "metrics.jsonl", "a") as file:
            file.write(json.dumps(self.row(step), separators=(",", ":")) + "\n")

    def write_config(self):
        gate = "" if self.method == "grpo" else "[method.gate]\nclose = 0.93\nreopen = 1.0\n"
        (self.folder / "config.toml").write_text(
            f'[model]\npath = "tiny"\n[method]\nname = "{self.method}"\nlambda_max = 0.5\n{gate}[optim]\nlr = 1e-06\n'
            f'[train]\nsteps = {self.steps}\nseed = {self.seed}\n[record]\ndir = "{self.folder.name}"\nrollouts_every = {self.every}\n')

    def write_dump(self, step):
        folder = self.folder / "rollouts"
        folder.mkdir(exist_ok=True)
        with open(folder / f"step-{step:06d}.jsonl", "w") as file:
            for prompt in range(4):
                for sample in range(2):
                    n = 10 + prompt
                    right = (sample + prompt) % 2 == 0
                    text = (f"Let me see. The first odd numbers are 1, 3, 5, ... and the {n}th is {2 * n - 1}.\n"
                            f"Pairing first and last gives {n} numbers with mean {n}.\n"
                            f"<script>alert('{self.method}')</script> <b>So</b> the sum is \\boxed{{{n * n if right else n * n + 1}}}.")
                    ids = [self.random.randrange(1000) for _ in range(40)]
                    file.write(json.dumps({"step": step, "prompt_id": f"odd-{n}", "sample": sample, "prompt_ids": [1, 2, 3],
                                           "response_ids": ids, "text": text, "reward": 1.0 if right else 0.0,
                                           "reason": "equal" if right else "different", "truncated": False,
                                           "student_logp": [-0.5] * 40, "token_advantage": [0.1] * 40}) + "\n")

    def write_evaluation(self, step):
        benches = {}
        for name, problems, easier in (("aime24", 30, 0.0), ("math500", 500, 0.25)):
            p = min(0.97, self.accuracy(step) - 0.1 + easier)
            width = 1.96 * math.sqrt(p * (1 - p) / problems)
            passes = {str(k): 1 - (1 - p) ** (0.6 * k ** 0.5 + 0.4) for k in range(1, 33)}
            benches[name] = {"problems": problems, "n": 32, "avg": p, "avg_interval": [p - width, min(1, p + width)],
                             "pass": passes, "pass_interval": {k: [max(0, v - 0.05), min(1, v + 0.05)] for k, v in passes.items()},
                             "truncated": 0.04, "mean_tokens": 812.5, "extraction_failed": 0.01, "grader_failed": 0, "samples": 32 * problems}
        average = sum(bench["avg"] for bench in benches.values()) / 2
        folder = self.folder / "eval" / f"step-{step:06d}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "summary.json").write_text(json.dumps({"model": "tiny", "step": step, "settings": {}, "benches": benches,
                                                         "average": average, "average_interval": [average - 0.05, average + 0.05]}))

    def write_all(self, dumps=True):
        self.folder.mkdir(parents=True, exist_ok=True)
        self.write_config()
        (self.folder / "run.json").write_text(json.dumps({"version": "0", "method": self.method, "seed": self.seed,
                                                          "started": "2026-01-01T00:00:00Z", "exit_reason": None, "earlier": []}))
        (self.folder / "log.txt").write_text("2026-01-01T00:00:00Z begins\n")
        if self.method == "sd":
            with open(self.folder / "log.txt", "a") as file:
                file.write("2026-01-01T00:10:00Z warning: 3 responses were not graded: <b>timeout</b>\n")
        with open(self.folder / "metrics.jsonl", "w") as file:
            for step in range(1, self.steps + 1):
                file.write(json.dumps(self.row(step), separators=(",", ":")) + "\n")
        if not dumps:
            return
        for step in range(self.every, self.steps + 1, self.every):
            self.write_dump(step)
            self.write_evaluation(step)
