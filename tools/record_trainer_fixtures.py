#!/usr/bin/env python3
"""Writes testdata/trainer: three AntiSD updates of a small model in plain PyTorch.

    .deps/reference/bin/python tools/record_trainer_fixtures.py   # the same bytes each time

The model is testdata/model/qwen3_gqa_tied. Rollouts, rewards and teacher prompts are made up
(updates.json); each step scores the teacher with the weights of the step, takes s from its own
forward pass, and applies torch.optim.AdamW after clip_grad_norm_. updates.safetensors holds the
change of every weight after the third step.
"""
import json
import pathlib

import numpy as np
import torch
from safetensors.torch import save_file
from transformers import Qwen3ForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent
STEPS, LR, LAMBDA = 3, 1e-3, 0.5


def make_batch():
    rng = np.random.default_rng(7)
    ids = lambda n: [int(i) for i in rng.integers(4, 48, n)]
    groups = []
    for rewards in ([1, 0, 0, 1], [0, 0.5, 0, 1], [0, 0, 0, 0]):
        groups.append({"prompt": ids(6), "rollouts": [
            {"response": ids(int(rng.integers(2, 10))), "teacher_prompt": ids(int(rng.integers(9, 15))), "reward": r}
            for r in rewards]})
    return groups


def log_probabilities(model, prompt, response):
    logits = model(torch.tensor([prompt + response])).logits[0].float()
    rows = logits[len(prompt) - 1:-1].log_softmax(-1)
    return rows.gather(1, torch.tensor(response)[:, None])[:, 0]


def loss_of(model, groups):
    total, tokens = 0.0, 0
    for group in groups:
        rewards = torch.tensor([r["reward"] for r in group["rollouts"]], dtype=torch.float64)
        deviation = rewards.std(correction=1)
        for reward, rollout in zip(rewards, group["rollouts"]):
            a = 0.0 if deviation == 0 else float((reward - rewards.mean()) / (deviation + 1e-6))
            s = log_probabilities(model, group["prompt"], rollout["response"])
            with torch.no_grad():
                t = log_probabilities(model, rollout["teacher_prompt"], rollout["response"])
                phi = (torch.nn.functional.softplus(t - s) - np.log(2)) / 2
                advantage = a - LAMBDA * phi
            ratio = (s - s.detach()).exp()
            total = total + torch.maximum(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).sum()
            tokens += len(rollout["response"])
    return total / tokens


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    source = ROOT / "testdata/model/qwen3_gqa_tied"
    model = Qwen3ForCausalLM.from_pretrained(source, dtype=torch.float32, attn_implementation="eager").train()
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01)
    groups, losses, norms = make_batch(), [], []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = loss_of(model, groups)
        loss.backward()
        norms.append(float(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)))
        losses.append(float(loss.detach()))
        optimizer.step()
    folder = ROOT / "testdata/trainer"
    folder.mkdir(exist_ok=True)
    save_file({name: (p.detach() - before[name]).contiguous() for name, p in model.named_parameters()},
              folder / "updates.safetensors")
    (folder / "updates.json").write_text(json.dumps(
        {"model": "qwen3_gqa_tied", "lr": LR, "lambda": LAMBDA, "losses": losses, "grad_norms": norms,
         "groups": groups}, indent=1) + "\n")
    print(losses, norms)


if __name__ == "__main__":
    main()
