#!/usr/bin/env python3
"""Records what TRL's own loss gives for made-up log-probabilities, for src/algo/objectives_test.cpp.

    python3 tools/record_loss_fixtures.py testdata/algo/losses.json

Needs trl 1.16 and what it imports (torch, transformers, accelerate, datasets). The numbers that go
in are ours; loss and derivatives come from GRPOTrainer._compute_loss in double precision.
"""
import collections
import itertools
import json
import sys
import types

import torch
from trl.trainer.grpo_trainer import GRPOTrainer

LENGTHS = [4, 1, 7, 3, 6, 2]
LONGEST = 16  # the constant of dr_grpo

# Our aggregation for TRL's loss_type.
AGGREGATIONS = {"bnpo": "token-mean", "grpo": "seq-mean-token-mean", "luspo": "seq-mean-token-sum",
                "dr_grpo": "seq-mean-token-sum-norm"}


def made_up():
    generator = torch.Generator().manual_seed(5)
    shape = (len(LENGTHS), max(LENGTHS))
    # Values that fp32 holds exactly, since the program stores log-probabilities so.
    draw = lambda low, high: (low + (high - low) * torch.rand(shape, generator=generator)).float().double()
    old = draw(-4.0, -0.05)
    return {"logp": (old + draw(-.5, .5)).float().double(), "old": old, "reference": (old + draw(-1, 1)).float().double(),
            "advantage": torch.tensor([1.25, -0.5, -0.75, 0.4, -1.1, 0.7], dtype=torch.float64),
            "mask": torch.tensor([[float(t < n) for t in range(shape[1])] for n in LENGTHS], dtype=torch.float64)}


def stand_in(logp, case):
    """What _compute_loss reads of a trainer."""
    accelerator = types.SimpleNamespace(num_processes=1, gather=lambda x: x, gather_for_metrics=lambda x: x,
                                        reduce=lambda x, reduction: x)
    return types.SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *a, **k: (logp, torch.zeros_like(logp), None),
        aux_loss_enabled=False, top_entropy_quantile=1.0, off_policy_mask_threshold=None,
        importance_sampling_level=case["ratio"], beta=case["kl_coef"], loss_type=case["loss_type"],
        epsilon_low=case["clip_low"],
        # For cispo TRL takes the bound on the ratio itself.
        epsilon_high=case["clip_high"] + (1 if case["loss_type"] == "cispo" else 0), use_vllm=False,
        args=types.SimpleNamespace(use_bias_correction_kl=False, delta=None, steps_per_generation=1),
        model=types.SimpleNamespace(training=True), current_gradient_accumulation_steps=1,
        max_completion_length=LONGEST, accelerator=accelerator, _entropy_bonus_enabled=False,
        _metrics=collections.defaultdict(lambda: collections.defaultdict(list)))


def run(data, case):
    logp = data["logp"].clone().requires_grad_(True)
    ids = torch.zeros(logp.shape, dtype=torch.long)
    loss = GRPOTrainer._compute_loss(stand_in(logp, case), None, {
        "prompt_ids": ids[:, :1], "prompt_mask": data["mask"][:, :1], "completion_ids": ids,
        "completion_mask": data["mask"], "advantages": data["advantage"], "old_per_token_logps": data["old"],
        "ref_per_token_logps": data["reference"], "num_items_in_batch": data["mask"].sum()})
    loss.backward()
    return loss.item(), [logp.grad[r, :n].tolist() for r, n in enumerate(LENGTHS)]


def main():
    data = made_up()
    cases = [{"loss_type": kind, "policy": "clip", "aggregation": AGGREGATIONS[kind], "ratio": ratio,
              "clip_low": low, "clip_high": high, "kl_coef": beta}
             for kind, ratio, beta, (low, high) in itertools.product(
                 AGGREGATIONS, ("token", "sequence"), (0.0, 0.3), ((.2, .28), (.05, .1)))]
    cases += [{"loss_type": "cispo", "policy": "cispo", "aggregation": "token-mean", "ratio": "token",
               "clip_low": 1.0, "clip_high": high, "kl_coef": 0.0} for high in (.1, 4.0)]
    for case in cases:
        case["loss"], case["gradient"] = run(data, case)
        del case["loss_type"]
    rows = {name: [data[name][r, :n].tolist() for r, n in enumerate(LENGTHS)] for name in ("logp", "old", "reference")}
    with open(sys.argv[1], "w") as file:
        json.dump({"norm_tokens": LONGEST, "advantage": data["advantage"].tolist(), **rows, "cases": cases}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
