#!/usr/bin/env python3
"""Recomputes every token's advantage of a run from its rollout dumps, with only numpy, and
compares.

    python3 tools/check_advantages.py RUN      # exit status 1 if one differs by more than 1e-5

Group advantages, gate, lambda and the per-token term all come from rewards, log-probabilities and
entropies of the dump and from config.toml; if the dumps start after step 1 or skip steps, the gate
cannot be simulated and lambda is taken from them. So do the weights of loss.rollout_correction. With
rollout.partial, every token has its policy, and every group that was drawn was trained on or is
carried.
"""
import json
import math
import pathlib
import sys
import tomllib

import numpy as np

TOLERANCE = 1e-5

# The sign of the term, then what the method's name fixes.
METHODS = {
    "grpo": {"sign": 0, "gated": False},
    "sd": {"sign": 1, "gated": False, "phi": "kl"},
    "opd": {"sign": 1, "gated": False, "phi": "kl", "group": False},
    "antisd": {},
    "antisd-reverse-kl": {"phi": "kl"},
    "antisd-no-gate": {"kind": "none"},
    "antisd-close-0.90": {"close": 0.90},
    "antisd-close-0.95": {"close": 0.95},
    "antisd-multiplicative": {"compose": "multiplicative"},
    "antisd-student-gate": {"kind": "student_perplexity"},
    "antisd-no-teacher": {"kind": "entropy", "teacher": False},
    "antisd-two-sided": {"band_close": 1.07},
}


class Rules:
    def __init__(self, config):
        method, fixed = config["method"], dict(METHODS[config["method"]["name"]])
        gate, signal = method["gate"], method["signal"]
        self.name = method["name"]
        self.sign, self.gated = fixed.get("sign", -1), fixed.get("gated", True)
        self.group, self.teacher = fixed.get("group", True), fixed.get("teacher", True)
        self.phi = fixed.get("phi", method["phi"])
        if self.name == "sd" and method["preset"] == "released":
            self.phi = "jsd"
        self.compose = fixed.get("compose", method["compose"]) if self.gated else "additive"
        self.kind = fixed.get("kind", gate["kind"]) if self.gated else "none"
        self.warmup = gate["warmup_steps"] if self.gated else 0
        self.gate = gate | {key: fixed[key] for key in ("close",) if key in fixed}
        if self.gate["band_close"] == 0:
            self.gate["band_close"] = fixed.get("band_close", 0)
        self.lambda_max, self.slope = method["lambda_max"], method["lambda_slope"]
        self.by_perplexity = self.gated and method["lambda_rule"] == "perplexity"
        off = {"outlier_sigmas": 0, "clamp_u": 0, "standardise": False, "clamp_term": 0, "max_response_tokens": 0}
        self.signal = signal if self.gated else off
        rule = config.get("advantage", {})  # absent in older runs
        self.baseline, self.scale = rule.get("baseline", "group"), rule.get("scale", "group")
        self.penalty = method.get("penalty", {"below": 0, "size": 0})
        if method.get("bonus", {}).get("words") and method["bonus"]["size"] != 0:
            sys.exit("check_advantages: which tokens method.bonus.words are is not in a dump")


def phi(u):
    return (np.maximum(u, 0) + np.log1p(np.exp(-np.abs(u))) - np.log(2)) / 2


def numbers(row, key):
    return np.array(row[key], dtype=np.float64)


def perplexity(row):
    return math.exp(-numbers(row, "teacher_logp").mean())


def reward_of(row):
    """As the advantage sees it: less the penalties of [reward]."""
    return row.get("shaped_reward", row["reward"])


def group_advantages(rules, rewards, all_rewards):
    graded = np.array([r for r in rewards if r is not None], dtype=np.float64)
    if len(graded) < 2 or np.all(graded == graded[0]):
        return [None if r is None else 0.0 for r in rewards]
    spread = {"group": graded, "batch": np.array(all_rewards, dtype=np.float64)}.get(rules.scale)
    scale = 1.0 if spread is None else spread.std(ddof=1) + 1e-6
    others = {"group": lambda r: graded.mean(),
              "leave-one-out": lambda r: (graded.sum() - r) / (len(graded) - 1)}[rules.baseline]
    return [None if r is None else (r - others(r)) / scale for r in rewards]


def log_ratios(rules, row):
    s = numbers(row, "student_logp")
    return numbers(row, "teacher_logp") - s if rules.teacher else -s


def gate_statistics(rules, rows):
    """The gate's possible signals in a step, by name; {} if there are none."""
    if rules.kind == "none" or not rows:
        return {}
    if rules.kind == "entropy":
        values = np.concatenate([numbers(r, "teacher_entropy" if rules.teacher else "student_entropy") for r in rows])
        return {"median": float(np.median(values)), "mean": float(np.mean(values))}
    if rules.kind == "student_perplexity":
        return {"perplexity": math.exp(-np.concatenate([numbers(r, "student_logp") for r in rows]).mean())}
    limit = rules.gate["max_perplexity"] or math.inf
    values = [p for p in map(perplexity, rows) if p <= limit]
    return {"perplexity": float(np.mean(values))} if values else {}


class Gate:
    """Simulates the gate from the first step: call open() once per step."""

    def __init__(self, rules):
        self.rules, self.steps, self.seen, self.before = rules, 0, [], math.nan
        self.position, self.warm, self.too_small = "open", math.nan, False
        self.read = "perplexity" if rules.kind != "entropy" else rules.gate.get("statistic", "median")

    def tau(self):
        return max(self.rules.gate["close"] * self.warm, self.rules.gate["close_floor"])

    def warming_up(self):
        return self.steps < self.rules.warmup

    def calibrate(self):
        """auto: the median if it is large enough, else the mean. Too small: stays open."""
        middle = {name: float(np.median([values[name] for values in self.seen])) for name in self.seen[0]}
        smallest = self.rules.gate["min_warm"]
        if self.read == "auto":
            self.read = "median" if middle["median"] >= smallest else "mean"
            self.before = self.seen[-1][self.read]
        self.warm = middle[self.read]
        self.too_small = not self.warm >= smallest

    def open(self, statistics):
        gated = self.rules.kind != "none"
        if self.warming_up():
            if gated and not statistics:
                return False
            self.steps += 1
            self.seen.append(statistics)
            if gated:
                self.before = statistics.get(self.read, math.nan)
                if not self.warming_up():
                    self.calibrate()
            return False
        statistic = statistics.get(self.read, math.nan)
        deciding = self.before if self.rules.gate["previous_step"] else statistic
        if not math.isnan(statistic):
            self.before = statistic
        if gated and not self.too_small:
            self.position = self.following(deciding)
        return self.position == "open"

    def following(self, s):
        gate = self.rules.gate
        low = s < self.tau()
        high = gate["band_close"] > 0 and s > gate["band_close"] * self.warm
        if self.position == "open":
            return "low" if low else "high" if high else "open"
        if self.position == "low":
            return "low" if not s >= gate["reopen"] * self.warm else "high" if high else "open"
        return "high" if not s <= gate["band_reopen"] * self.warm else "low" if low else "open"


def response_lambda(rules, gate, is_open, row):
    if rules.sign == 0 or not is_open:
        return 0.0
    if not rules.by_perplexity:
        return rules.lambda_max
    ppl = perplexity(row)
    if 0 < rules.gate["max_perplexity"] < ppl:
        return 0.0
    return min(max(rules.slope * math.log(min(max(ppl / gate.tau(), 0.5), 3.0)), 0.0), rules.lambda_max)


def token_advantages(rules, advantage, row, weight, outlier_limit):
    unlikely = numbers(row, "student_logp") < np.log(max(rules.penalty["below"], 1e-300))
    return taught_advantages(rules, advantage, row, weight, outlier_limit) - rules.penalty["size"] * unlikely


def taught_advantages(rules, advantage, row, weight, outlier_limit):
    plain = np.full(len(row["response_ids"]), advantage if rules.group else 0.0)
    too_long = 0 < rules.signal["max_response_tokens"] <= len(plain)
    if rules.sign == 0 or weight == 0 or too_long:
        return plain
    u = log_ratios(rules, row)
    u[np.abs(u) > outlier_limit] = 0
    if rules.signal["clamp_u"] > 0:
        u = np.clip(u, -rules.signal["clamp_u"], rules.signal["clamp_u"])
    term = rules.sign * (phi(u) if rules.phi == "jsd" else u)
    if rules.signal["standardise"]:
        term = (term - term.mean()) / ((term.std(ddof=1) if len(term) > 1 else 0) + 1e-6)
    if rules.signal["clamp_term"] > 0:
        term = np.clip(term, -rules.signal["clamp_term"], rules.signal["clamp_term"])
    return plain * (1 + weight * term) if rules.compose == "multiplicative" else plain + weight * term


def rollout_weights(loss, row):
    """min(w, C), or whether w is within [1/C, C]; None without loss.rollout_correction."""
    kind, cap = loss.get("rollout_correction", "none"), loss.get("rollout_correction_cap", 2)
    if kind == "none":
        return None
    ratio = np.exp(np.clip(numbers(row, "student_logp") - numbers(row, "sampling_logp"), -20, 20))
    return np.minimum(ratio, cap) if kind == "tis" else 1.0 * ((ratio <= cap) & (ratio * cap >= 1))


def weight_gap(loss, row):
    ours, theirs = rollout_weights(loss, row), row.get("rollout_weight")
    assert (ours is None) == (theirs is None), "a row with rollout_weight, or without"
    return 0.0 if ours is None else np.abs(ours - np.array(theirs)).max()


def check_policies(row, place):
    """[[steps ago, tokens], ...], the oldest first."""
    ages, counts = zip(*row["policies"])
    assert sum(counts) == len(row["response_ids"]) and min(counts) > 0, f"{place}: tokens without a policy"
    assert list(ages) == sorted(set(ages), reverse=True) and ages[-1] >= 0, f"{place}: ages {ages}"


def check_carried(run, config, groups):
    """No group is lost or trained on twice: drawn = trained on + carried after the last step."""
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    drawn = len(rows) * config["rollout"]["prompts_per_step"]
    carried = rows[-1]["rollout/carried_groups"]
    assert drawn == groups + carried, f"{drawn} groups were drawn, {groups} trained on, {carried} are carried"


def check_recorded(run, gate):
    """The newest checkpoint must have made the same choice."""
    saved = sorted((run / "checkpoints").glob("step-*/state.json"))
    recorded = json.loads(saved[-1].read_text())["gate"] if saved else {}
    if recorded.get("h_warm") is not None and "statistic" in recorded:  # absent in older ones
        ours = (gate.read, gate.too_small)
        theirs = (recorded["statistic"], recorded["too_small"])
        assert ours == theirs, f"{saved[-1]}: the gate reads {theirs}, computed anew {ours}"


def main():
    run = pathlib.Path(sys.argv[1])
    config = tomllib.loads((run / "config.toml").read_text())
    rules, size = Rules(config), config["rollout"]["group_size"]
    files = sorted((run / "rollouts").glob("step-*.jsonl"))
    followed = [f.stem for f in files] == [f"step-{k:06}" for k in range(1, len(files) + 1)]
    gate, warmup_u, worst, tokens, weighted, groups = Gate(rules), [], 0.0, 0, 0, 0
    partial = config["rollout"].get("partial", False)
    for file in files:
        rows = [json.loads(line) for line in file.read_text().splitlines()]
        graded = [row for row in rows if row["reward"] is not None]
        warming_up = gate.warming_up()
        is_open = gate.open(gate_statistics(rules, graded))
        sigmas = rules.signal["outlier_sigmas"]
        limit = sigmas * np.std(np.concatenate(warmup_u)) if sigmas > 0 and warmup_u else math.inf
        for begin in range(0, len(rows), size):
            group, groups = rows[begin:begin + size], groups + 1
            for row in group if partial else []:
                check_policies(row, file)
            rewards, of_all = [reward_of(r) for r in group], [reward_of(r) for r in graded]
            for row, advantage in zip(group, group_advantages(rules, rewards, of_all)):
                if advantage is None:
                    assert row["token_advantage"] is None, f"{file}: a failed grade has an advantage"
                    continue
                if row["token_advantage"] is None and row["truncated"] and config["loss"].get("overlong_filter"):
                    continue
                weight = response_lambda(rules, gate, is_open, row) if followed else row["lambda"]
                ours = token_advantages(rules, advantage, row, weight, limit)
                gaps = np.abs(ours - np.array(row["token_advantage"]))
                worst = max(worst, gaps.max(), abs(weight - row["lambda"]), weight_gap(config["loss"], row))
                tokens, weighted = tokens + len(ours), weighted + (len(ours) if weight > 0 else 0)
        if rules.sign != 0 and warming_up:
            warmup_u += [log_ratios(rules, row) for row in graded]
    if followed and partial and config["rollout"]["refill"] == 0:
        check_carried(run, config, groups)
    if followed and rules.kind == "entropy" and not gate.warming_up():
        check_recorded(run, gate)
    print(f"{rules.name}: {tokens} tokens of {len(files)} steps, {weighted} with a weight, largest difference {worst:.3g}")
    return 0 if tokens > 0 and worst <= TOLERANCE else 1


if __name__ == "__main__":
    sys.exit(main())
