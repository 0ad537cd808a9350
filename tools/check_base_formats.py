#!/usr/bin/env python3
"""Compares `antisd score --base-dtype int8|nf4` with transformers, whose matrices are replaced by
numbers of the format that plain PyTorch finds here by trying all of them.

    make peers
    .deps/reference/bin/python tools/check_base_formats.py build/antisd testdata/model/qwen3_gqa_tied ...

Exit status 1 if a log-probability is more than 1e-4 off. The models' configurations have to be
transformers' own, and their matrices those of attention, gated units and experts.
"""
import argparse
import json
import re
import statistics
import subprocess
import sys

import torch
from transformers import AutoModelForCausalLM

PROJECTIONS = re.compile(r"\.(q|k|v|o|gate|up|down)_proj\.weight$|\.experts\.(gate_up|down)_proj$")
TOLERANCE = 1e-4


def nf4_levels():
    """QLoRA's construction: quantiles of a normal distribution at even places, 8 above 0, 7 below, and 0."""
    normal = statistics.NormalDist()
    offset = ((1 - 1 / 30) + (1 - 1 / 32)) / 2
    above = [normal.inv_cdf(offset + (0.5 - offset) * i / 8) for i in range(8)]
    below = [-normal.inv_cdf(offset + (0.5 - offset) * i / 7) for i in range(7)]
    levels = sorted(above + [0.0] + below)
    return torch.tensor([level / levels[-1] for level in levels], dtype=torch.float64)


def nearest(group, levels):
    """Each element of a group becomes the nearest level times the group's largest magnitude."""
    largest = group.abs().max()
    numbers = levels * largest
    return numbers[(group.unsqueeze(-1) - numbers).abs().argmin(-1)]


def nearest_int8(row):
    """Halves are frequent where weights have 8 bits of mantissa: of two numbers that are equally near, the one of fp32
    arithmetic."""
    largest = row.abs().max()
    found = nearest(row, torch.arange(-127, 128, dtype=torch.float64) / 127)
    rounded = (row.float() / (largest.float() / 127)).round().double() * largest / 127
    as_near = (rounded - row).abs() <= (found - row).abs() + 1e-6 * largest
    return torch.where(as_near, rounded, found)


def quantised(weight, kind):
    rows = weight.double().reshape(-1, weight.shape[-1])
    if kind == "int8":
        parts = [nearest_int8(row) for row in rows]
    else:
        levels = nf4_levels()
        parts = [torch.cat([nearest(block, levels) for block in row.split(64)]) for row in rows]
    return torch.stack(parts).reshape(weight.shape).to(weight.dtype)


def score(program, model, kind, rows):
    text = "".join(json.dumps(row) + "\n" for row in rows)
    output = subprocess.run([program, "score", model, "--device", "cpu", "--base-dtype", kind], input=text,
                            capture_output=True, text=True)
    if output.returncode != 0:
        raise SystemExit(f"{model}: {output.stderr.strip()}")
    return [json.loads(line)["logp"] for line in output.stdout.splitlines()]


def expected(model, rows):
    result = []
    for row in rows:
        ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
        logp = model(ids).logits[0].double().log_softmax(-1)
        begin = len(row["prompt_ids"])
        result.append([logp[begin + i - 1, id].item() for i, id in enumerate(row["response_ids"])])
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    options = parser.parse_args()
    torch.set_grad_enabled(False)
    torch.manual_seed(0)
    failed = False
    for name in options.models:
        for kind in ("int8", "nf4"):
            model = AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32, attn_implementation="eager").eval()
            rows = []
            for length in (1, 7, 20):
                ids = torch.randint(model.config.vocab_size, (length + 12,)).tolist()
                rows.append({"prompt_ids": ids[:length], "response_ids": ids[length:]})
            exact = expected(model, rows)
            changed = 0
            for weight_name, weight in model.named_parameters():
                if PROJECTIONS.search(weight_name):
                    weight.copy_(quantised(weight, kind))
                    changed += 1
            wanted = expected(model, rows)
            found = score(options.program, name, kind, rows)
            off = max(abs(a - b) for w, f in zip(wanted, found, strict=True) for a, b in zip(w, f, strict=True))
            moved = max(abs(a - b) for w, e in zip(wanted, exact, strict=True) for a, b in zip(w, e, strict=True))
            good = off < TOLERANCE and changed > 0 and moved > 10 * off
            failed = failed or not good
            print(f"{'ok' if good else 'FAILED'} {name} {kind}: {changed} matrices, largest |delta logp| {off:.2e}; "
                  f"the format itself moves them by up to {moved:.2e}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
