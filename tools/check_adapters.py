#!/usr/bin/env python3
"""Opens an adapter that the program wrote in peft, and compares log-probabilities.

    .deps/reference/bin/python tools/check_adapters.py build/antisd runs/a/checkpoints/step-000003/adapter

Needs peft and transformers (`make peers`). Random ids are scored by `antisd score ADAPTER` and by
peft in fp32; prints the largest difference, and how far the adapter moves the base.
"""
import json
import pathlib
import random
import subprocess
import sys

import peft
import torch
from transformers import AutoModelForCausalLM

TOLERANCE = 1e-4


def logp_of(model, rows):
    found = []
    for row in rows:
        ids = torch.tensor([row["prompt_ids"] + row["response_ids"]])
        with torch.no_grad():
            every = model(input_ids=ids, use_cache=False).logits[0].float().log_softmax(-1)
        first = len(row["prompt_ids"])
        found += [every[i - 1, ids[0, i]].item() for i in range(first, ids.shape[1])]
    return found


def most_apart(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def main(program, adapter):
    base = json.loads((pathlib.Path(adapter) / "adapter_config.json").read_text())["base_model_name_or_path"]
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32, attn_implementation="eager").eval()
    draw, words = random.Random(1), model.config.vocab_size
    rows = [{"prompt_ids": [draw.randrange(words) for _ in range(5)], "response_ids": [draw.randrange(words) for _ in range(20)]}
            for _ in range(8)]
    scored = subprocess.run([program, "score", adapter, "--device", "cpu"], check=True, text=True, capture_output=True,
                            input="".join(json.dumps(row) + "\n" for row in rows)).stdout
    own = [value for line in scored.splitlines() for value in json.loads(line)["logp"]]
    before = logp_of(model, rows)
    theirs = logp_of(peft.PeftModel.from_pretrained(model, adapter), rows)
    print(f"{most_apart(own, theirs):.2e} apart from peft; the adapter moves the base by {most_apart(theirs, before):.2e}")
    return most_apart(own, theirs) > TOLERANCE


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
